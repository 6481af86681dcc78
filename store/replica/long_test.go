package replica

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // opens files by other means than the store

	"satchel/agent"
	"satchel/agent/cputime"
	"satchel/store"
)

// longRounds is the variable that sets how often the long tests of this file repeat:
//
//	SATCHEL_REPLICA_ROUNDS=200 go test ./store/replica -run 'UnderLoad|Killed|Large|Cost' -v -timeout 1h
//	SATCHEL_REPLICA_ROUNDS=200 go test ./store/replica -run 'UnderLoad|Killed|Large|Cost' -v -timeout 1h
const longRounds = "SATCHEL_REPLICA_ROUNDS"

func rounds(t *testing.T) int {
	n, _ := strconv.Atoi(os.Getenv(longRounds))
	if n <= 0 || testing.Short() {
		t.Skip("long; set " + longRounds)
	}
	return n
}

// start serves with its queues running.
func start(t *testing.T, path string, target Target) *served {
	t.Helper()
	s := serveAt(t, path, target)
	ctx := store.Background(context.Background())
	if err := s.folder.Start(ctx); err != nil {
		t.Fatal(err)
	}
	s.r.Start(ctx, s.folder)
	return s
}

// writePause is the time between the writes of one writer.
const writePause = 20 * time.Millisecond

// load writes to an agent until its context ends; hold pauses it.
type load struct {
	hold    sync.RWMutex
	writers sync.WaitGroup
}

func (l *load) write(ctx context.Context, t *testing.T, db *store.DB, n int) {
	l.writers.Go(func() {
		pace := time.NewTicker(writePause) // or the disk fills up
		defer pace.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			<-pace.C
			l.hold.RLock()
			_, err := db.CreateContact(ctx, agent.ContactChange{
				Name:  agent.Some(fmt.Sprint(n, i)),
				Notes: agent.Some(strings.Repeat(fmt.Sprint(i, " "), rand.IntN(2000))),
			})
			if err == nil && i%50 == 49 {
				_, err = db.SQL(
					ctx,
					"DELETE FROM contacts WHERE id IN (SELECT id FROM contacts ORDER BY id LIMIT 30)",
					store.Params{},
					store.Access{Write: true},
				)
			}
			l.hold.RUnlock()
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
}

// imageOf returns the bytes of an agent's file, which must have no writers, including
// what is in its -wal. Only SQLite's own code makes it.
func imageOf(t *testing.T, s *served, db *store.DB) []byte {
	t.Helper()
	path := filepath.Join(s.path, "agents", db.ID()+".db")
	to := filepath.Join(t.TempDir(), "x.db")
	defer os.Remove(to)
	for _, suffix := range []string{"-wal", ""} { // a checkpoint between the two does no harm
		raw, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(to+suffix, raw, 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	c, err := sql.Open("sqlite", to)
	if err != nil {
		t.Fatal(err)
	}
	var busy, frames, moved int
	if err := errors.Join(
		c.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved),
		c.Close(),
	); err != nil || busy != 0 {
		t.Fatal(busy, err)
	}
	raw, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// integrity fails unless SQLite finds the file sound.
func integrity(t *testing.T, path string) {
	t.Helper()
	c, err := sql.Open("sqlite", "file:"+path+"?immutable=1&mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var verdict string
	if err := c.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("%s: %s, %v", path, verdict, err)
	}
}

// Under load, a restored file is sound and equals the original byte for byte.
func TestRestoresUnderLoad(t *testing.T) {
	n := rounds(t)
	_, target := newFakeS3(t)
	s := start(t, t.TempDir(), target)
	ctx, stop := context.WithCancel(t.Context())
	var loads [4]load
	var dbs []*store.DB
	for i := range loads {
		dbs = append(dbs, s.create(fmt.Sprintf("a%d", i)))
		s.contact(dbs[i], "opens the file")
		for w := range 2 {
			loads[i].write(ctx, t, dbs[i], w)
		}
	}
	var behind time.Duration
	var all []time.Duration
	for len(s.r.ids(func(a *replicated) bool { return a.restarts })) > 0 {
		time.Sleep(100 * time.Millisecond)
	}
	for round := range n {
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
		behind = max(behind, s.r.Status().Behind)
		db, l := dbs[round%len(dbs)], &loads[round%len(dbs)]
		l.hold.Lock() // the others go on
		var want []byte
		var at time.Time
		for now := imageOf(t, s, db); !bytes.Equal(now, want); now = imageOf(t, s, db) {
			want = now // once more if maintenance, which makes indexes, has committed meanwhile
			for uploaded := false; !uploaded; {
				time.Sleep(20 * time.Millisecond)
				uploaded = !s.r.hasPending(db.ID())
				behind = max(behind, s.r.Status().Behind)
			}
			at = time.Now()
			time.Sleep(2 * time.Millisecond) // no commit in the same millisecond
		}
		l.hold.Unlock()
		began := time.Now()
		path := restore(t, target, db.ID(), at)
		all = append(all, time.Since(began))
		integrity(t, path)
		got, err := os.ReadFile(path)
		if err != nil || string(got) != string(want) {
			t.Fatalf("round %d: %d bytes, want %d, %v", round, len(got), len(want), err)
		}
		os.Remove(path)
	}
	stop()
	for i := range loads {
		loads[i].writers.Wait()
	}
	slices.Sort(all)
	t.Logf(
		"%d restores, all sound and equal; at most %v behind; a restore took %v (median), %v (longest)",
		n,
		behind,
		all[len(all)/2],
		all[len(all)-1],
	)
}

// Replication adds little to the cost of a commit. Commits with and without replication
// alternate in one run, and their CPU times, including the upload, are compared, so that
// the machine's other load affects both equally.
func TestCommitCost(t *testing.T) {
	n := rounds(t)
	_, target := newFakeS3(t)
	s := serveAt(t, t.TempDir(), target)
	replicated := s.create("a")
	s.snapshots()
	plain := createAlone(t)
	const commits = 100 // about as many as in one second, which are uploaded together
	cost := func(db *store.DB) float64 {
		before := cpuTime(t)
		for range commits {
			if _, err := db.CreateContact(t.Context(), agent.ContactChange{
				Name:  agent.Some("x"),
				Notes: agent.Some(strings.Repeat("n", 500)),
			}); err != nil {
				t.Fatal(err)
			}
		}
		s.r.flush(t.Context())
		return float64((cpuTime(t) - before).Microseconds()) / commits
	}
	var with, without, ratios []float64
	for range n {
		a, b := cost(replicated), cost(plain)
		with, without, ratios = append(with, a), append(without, b), append(ratios, a/b)
	}
	for _, values := range [][]float64{with, without, ratios} {
		slices.Sort(values)
	}
	t.Logf(
		"a commit takes %.0f µs of CPU time with replication and %.0f µs without (medians); the ratio is %.2f "+
			"(median), %.2f to %.2f for nine in ten blocks of %d",
		with[n/2],
		without[n/2],
		ratios[n/2],
		ratios[n/20],
		ratios[n-1-n/20],
		commits,
	)
}

// createAlone creates an agent without a replica.
func createAlone(t *testing.T) *store.DB {
	t.Helper()
	f, err := store.Open(store.Options{Path: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "a"}, "")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// cpuTime returns the CPU time that this process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	used, err := cputime.Used()
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// An agent of 100 MB is restored within ten seconds of processor time.
func TestLargeRestore(t *testing.T) {
	rounds(t)
	_, target := newFakeS3(t)
	s := serveAt(t, t.TempDir(), target)
	db := s.create("Large")
	for n := range 115 {
		insert := fmt.Sprintf("INSERT INTO contacts(id, name, notes) VALUES ('c-%d', 'x', hex(randomblob(225000)))", n)
		if _, err := db.SQL(t.Context(), insert, store.Params{}, store.Access{Write: true}); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	s.snapshots()
	t.Logf("snapshot: %v", time.Since(began))
	for range 300 { // one per second
		s.contact(db, "later")
		s.r.flush(t.Context())
	}
	s.stop()
	info, err := os.Stat(filepath.Join(s.path, "agents", db.ID()+".db"))
	if err != nil {
		t.Fatal(err)
	}
	used := cpuTime(t)
	began = time.Now()
	if _, _, err := (Commands{target}).Put(t.Context(), db.ID(), time.Time{}, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	took, used := time.Since(began), cpuTime(t)-used
	t.Logf(
		"%d MB and 300 objects after the snapshot, with the check of its integrity: %v, %v of processor time",
		info.Size()>>20,
		took,
		used,
	)
	wantRestored(t, s, db)
	if used > 10*time.Second { // of both ends: the machine may be busy with other work
		t.Errorf("a restore took %v of processor time", used)
	}
}
