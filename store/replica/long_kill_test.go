package replica

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"satchel/agent"
	"satchel/store"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain runs the child that TestKilled kills.
func TestMain(m *testing.M) {
	if path := os.Getenv("REPLICA_CHILD"); path != "" {
		writeUntilKilled(path)
	}
	os.Exit(m.Run())
}

// writeUntilKilled writes to two agents and prints what was acknowledged, and when.
func writeUntilKilled(path string) {
	target, err := Open(os.Getenv("REPLICA_TARGET"), testKeys)
	if err != nil {
		panic(err)
	}
	r := New(Options{Target: target, Path: path, Keep: time.Hour, Log: slog.Default()})
	f, err := store.Open(store.Options{Path: path, Log: slog.New(slog.DiscardHandler), Capture: r})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if err := f.Start(ctx); err != nil {
		panic(err)
	}
	r.Start(ctx, f)
	var writing sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		db, err := f.Agent(name)
		if err != nil {
			if db, err = f.CreateAgent(ctx, agent.Agent{Name: name}, ""); err != nil {
				panic(err)
			}
		}
		writing.Go(func() {
			for n := 0; ; n++ {
				c, err := db.CreateContact(ctx, agent.ContactChange{
					Name:  agent.Some("x"),
					Notes: agent.Some(strings.Repeat("n", n%3000)),
				})
				if err != nil {
					panic(err)
				}
				fmt.Println("wrote", db.ID(), c.ID, time.Now().UnixMilli())
				if n%20 == 19 {
					time.Sleep(30 * time.Millisecond)
				}
				if n%500 == 499 {
					time.Sleep(2 * time.Second) // the file becomes idle
				}
			}
		})
	}
	writing.Wait()
}

// written is a write that was acknowledged.
type written struct {
	id string
	at int64
}

// However the server is killed, the restored file is sound and lacks only the last writes
// before the kill, and none of them before one that it has.
func TestKilled(t *testing.T) {
	n := rounds(t) / 4
	folder := t.TempDir()
	target, err := Open(folder, testKeys)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	all := map[string][]written{}
	var lost []int64
	for round := range n {
		acknowledged, killed := runAndKill(t, path, folder, time.Second+time.Duration(rand.IntN(5000))*time.Millisecond)
		for id, writes := range acknowledged {
			all[id] = append(all[id], writes...)
		}
		for id, writes := range all {
			objects, err := listObjects(t.Context(), target.storage, id+"/")
			if err != nil {
				t.Fatal(err)
			}
			if len(chain(objects, endOfTime)) == 0 {
				continue // killed before the first snapshot
			}
			file := restore(t, target, id, time.Time{})
			integrity(t, file)
			missing := missingOf(t, file, writes)
			os.Remove(file)
			if len(missing) > 0 && missing[0] != len(writes)-len(missing) {
				t.Fatalf(
					"round %d: write %d of %d is missing, and later ones are there",
					round,
					missing[0],
					len(writes),
				)
			}
			// Before the commits that follow a kill are uploaded, the restored state is
			// older.
			if fresh := len(acknowledged[id]); len(missing) > 0 && len(missing) < fresh {
				lost = append(lost, killed-writes[missing[0]].at)
			}
		}
	}
	generations := 0
	for id := range all {
		objects, err := listObjects(t.Context(), target.storage, id+"/")
		if err != nil {
			t.Fatal(err)
		}
		generations += len(byGeneration(objects))
	}
	t.Logf("%d kills of %d agents, which needed %d snapshots after a kill", n, len(all), generations-len(all))
	slices.Sort(lost)
	if len(lost) > 0 {
		t.Logf(
			"in %d of the files what followed the last kill was there: the oldest write that they lack was %d ms "+
				"old in the median, %d at most",
			len(lost),
			lost[len(lost)/2],
			lost[len(lost)-1],
		)
	}
}

// runAndKill runs the child for a while and kills it.
func runAndKill(t *testing.T, path, target string, after time.Duration) (map[string][]written, int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "REPLICA_CHILD="+path, "REPLICA_TARGET="+target)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var killed int64
	timer := time.AfterFunc(after, func() {
		killed = time.Now().UnixMilli()
		_ = cmd.Process.Kill()
	})
	defer timer.Stop()
	writes := map[string][]written{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) == 4 && f[0] == "wrote" {
			at, _ := strconv.ParseInt(f[3], 10, 64)
			writes[f[1]] = append(writes[f[1]], written{f[2], at})
		}
	}
	_ = cmd.Wait()
	return writes, killed
}

// missingOf returns the writes that a file lacks.
func missingOf(t *testing.T, path string, writes []written) (missing []int) {
	t.Helper()
	c, err := sql.Open("sqlite", "file:"+path+"?immutable=1&mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rows, err := c.Query("SELECT id FROM contacts")
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		has[id] = true
	}
	for i, w := range writes {
		if !has[w.id] {
			missing = append(missing, i)
		}
	}
	return missing
}
