package replica

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/store"
)

// brokenReplica is a replica of two agents, whose objects a test breaks: each has a snapshot
// and three objects with a contact each.
type brokenReplica struct {
	*served
	s3    *fakeS3
	id    string
	other string
}

func newBrokenReplica(t *testing.T) brokenReplica {
	t.Helper()
	s3, target := newFakeS3(t)
	s := serveAt(t, t.TempDir(), target)
	a, b := s.create("Support"), s.create("Other")
	s.snapshots()
	for _, notes := range []string{"one", "two", "three"} {
		for _, db := range []*store.DB{a, b} {
			s.contact(db, notes)
			if _, err := s.r.upload(t.Context(), db.ID()); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.stop()
	return brokenReplica{s, s3, a.ID(), b.ID()}
}

// objects returns an agent's objects of a level, oldest first.
func (r brokenReplica) objects(id string, level int) (found []object) {
	r.t.Helper()
	all, err := listObjects(r.t.Context(), r.target.storage, id+"/")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, generation := range byGeneration(all) {
		for _, o := range generation {
			if o.level == level {
				found = append(found, o)
			}
		}
	}
	return found
}

func (r brokenReplica) read(key string) []byte {
	r.t.Helper()
	body, err := r.target.storage.get(r.t.Context(), key)
	if err != nil {
		r.t.Fatal(err)
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		r.t.Fatal(err)
	}
	return data
}

func (r brokenReplica) write(key string, data []byte) {
	r.t.Helper()
	if err := r.target.storage.put(r.t.Context(), key, bytes.NewReader(data), int64(len(data))); err != nil {
		r.t.Fatal(err)
	}
}

// An object that is missing or damaged ends a restore with its name and the time of the
// newest state before it, which can be restored, and nothing is written.
func TestBrokenReplica(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		damage func(r brokenReplica, snapshot object, commits []object)
		says   string
		safe   int // contacts in the state that the error names; -1: none
		listed bool
	}{
		"missing in the middle": {func(r brokenReplica, _ object, c []object) {
			_ = r.target.storage.remove(t.Context(), r.id+"/"+c[1].name())
		}, "are missing", 1, true},
		"first missing": {func(r brokenReplica, _ object, c []object) {
			_ = r.target.storage.remove(t.Context(), r.id+"/"+c[0].name())
		}, "are missing", 0, true},
		"snapshot missing": {func(r brokenReplica, s object, _ []object) {
			_ = r.target.storage.remove(t.Context(), r.id+"/"+s.name())
		}, "the snapshot ", -1, true},
		"truncated": {func(r brokenReplica, _ object, c []object) {
			key := r.id + "/" + c[1].name()
			r.write(key, r.read(key)[:200])
		}, "damaged", 1, false},
		"empty": {
			func(r brokenReplica, _ object, c []object) { r.write(r.id+"/"+c[2].name(), nil) },
			"damaged",
			2,
			false,
		},
		"bytes changed": {func(r brokenReplica, _ object, c []object) {
			key := r.id + "/" + c[1].name()
			data := r.read(key)
			data[len(data)/2] ^= 0xff
			r.write(key, data)
		}, "damaged", 1, false},
		"swapped": {func(r brokenReplica, _ object, c []object) {
			one, two := r.read(r.id+"/"+c[0].name()), r.read(r.id+"/"+c[1].name())
			r.write(r.id+"/"+c[0].name(), two)
			r.write(r.id+"/"+c[1].name(), one)
		}, "damaged", 0, false},
		"snapshot damaged": {
			func(r brokenReplica, s object, _ []object) { r.write(r.id+"/"+s.name(), []byte("x")) },
			"damaged",
			-1,
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newBrokenReplica(t)
			snapshots, commits := r.objects(r.id, levelSnapshots), r.objects(r.id, levelCommits)
			if len(snapshots) != 1 || len(commits) != 3 {
				t.Fatalf("%v, %v", snapshots, commits)
			}
			tc.damage(r, snapshots[0], commits)
			to := t.TempDir()
			_, _, err := Commands{r.target}.Put(t.Context(), r.id, time.Time{}, to)
			if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), r.id+"/") {
				t.Fatal(err)
			}
			if left, _ := filepath.Glob(filepath.Join(to, "*", "*")); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
			_, at, there := strings.Cut(err.Error(), "--at ")
			if there != (tc.safe >= 0) {
				t.Fatal(err)
			}
			if there {
				when, e := time.Parse(time.RFC3339, at)
				if e != nil {
					t.Fatal(e)
				}
				if n := contactsIn(t, restore(t, r.target, r.id, when)); n != tc.safe {
					t.Errorf("%d contacts as of %s, want %d", n, at, tc.safe)
				}
			}
			finding := Commands{r.target}.Doctor(t.Context())
			if finding.OK == tc.listed || tc.listed && !strings.Contains(finding.Message, tc.says) {
				t.Errorf("doctor: %+v", finding)
			}
			if n := contactsIn(t, restore(t, r.target, r.other, time.Time{})); n != 3 {
				t.Errorf("the other agent has %d contacts", n)
			}
		})
	}
}

// An object with the changes of another agent is refused by its transactions and its time.
func TestObjectOfAnotherAgent(t *testing.T) {
	t.Parallel()
	r := newBrokenReplica(t)
	commits, others := r.objects(r.id, levelCommits), r.objects(r.other, levelCommits)
	r.write(r.id+"/"+commits[1].name(), r.read(r.other+"/"+others[1].name()))
	path := filepath.Join(t.TempDir(), "x.db")
	if _, err := Restore(t.Context(), r.target, r.id, time.Time{}, path); err == nil ||
		!strings.Contains(err.Error(), commits[1].name()) {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was written")
	}
}

// Objects that were merged into one with a later time are not missing.
func TestMergedIsNoGap(t *testing.T) {
	at := func(level int, first, last uint64, at int64) object {
		return object{generation: strings.Repeat("0", 21), level: level, first: first, last: last, at: at}
	}
	all := []object{
		at(levelSnapshots, 1, 1, 10),
		at(levelMinutes, 2, 5, 50),
		at(levelCommits, 4, 4, 40),
		at(levelCommits, 5, 5, 50),
	}
	for until := int64(10); until < 60; until += 10 {
		if g := findGap("a", all, until); g != nil {
			t.Errorf("at %d: %v", until, g)
		}
	}
	if g := findGap("a", all[:1:1], endOfTime); g != nil {
		t.Error(g)
	}
	if g := findGap("a", append(all[:1:1], all[3]), endOfTime); g == nil || g.safe != 10 {
		t.Error(g)
	}
}
