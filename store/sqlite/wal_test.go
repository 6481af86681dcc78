package sqlite

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// openWAL opens a database with a -wal.
func openWAL(t *testing.T, path string, pragmas ...string) *Conn {
	t.Helper()
	return open(t, Source{Path: path, Mode: Create, Pragmas: append([]string{"journal_mode(WAL)"}, pragmas...)})
}

// run runs statements.
func run(t *testing.T, c *Conn, script string, args ...any) {
	t.Helper()
	if err := c.Script(fmt.Sprintf(script, args...)); err != nil {
		t.Fatal(err)
	}
}

// content identifies a state of the table t.
func content(t *testing.T, c *Conn) string {
	t.Helper()
	var text string
	if err := c.QueryRow(
		"SELECT count(*) || ' ' || total(id) || ' ' || total(n * id) || ' ' || total(length(b)) FROM t",
	).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// A commit of several pages is written by one system call.
func TestCommitIsWrittenAtOnce(t *testing.T) {
	c := openWAL(t, filepath.Join(t.TempDir(), "a.db"), "synchronous(FULL)")
	run(t, c, "CREATE TABLE t(id INTEGER PRIMARY KEY, n, b); CREATE INDEX t_n ON t(n); CREATE INDEX t_b ON t(b)")
	writes := 0
	for _, table := range gathering {
		class, _ := classOf.Load(table)
		counted, write := class.(fileClass), class.(fileClass).write
		counted.write = func(tls *libc.TLS, file, buffer uintptr, n int32, at lib.Tsqlite3_int64) int32 {
			writes++
			return write(tls, file, buffer, n, at)
		}
		classOf.Store(table, counted)
		defer classOf.Store(table, class)
	}
	run(t, c, "BEGIN; INSERT INTO t(n, b) VALUES (1, 2); COMMIT")
	if writes != 1 {
		t.Errorf("%d writes of one commit", writes)
	}
}

// What a commit wrote is visible to other connections and after a restart, whatever
// transactions did before: spilled from the cache, rolled back in part or as a whole, and
// with or without a sync.
func TestGatheredWrites(t *testing.T) {
	for _, sync := range []string{"FULL", "OFF"} {
		t.Run(sync, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.db")
			writers := []*Conn{
				openWAL(t, path, "synchronous("+sync+")", "cache_size(10)"),
				openWAL(t, path, "synchronous("+sync+")", "cache_size(50)"),
			}
			run(t, writers[0], "CREATE TABLE t(id INTEGER PRIMARY KEY, n, b); CREATE INDEX t_n ON t(n)")
			reader := openWAL(t, path)
			random := rand.New(rand.NewPCG(3, 5))
			for range 50 {
				w, before := writers[random.IntN(2)], content(t, reader)
				run(t, w, "BEGIN IMMEDIATE; SAVEPOINT s")
				for range 1 + random.IntN(4) {
					run(
						t,
						w,
						"INSERT INTO t(n, b) WITH k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < %d) "+
							"SELECT random(), randomblob(%d) FROM k",
						1+random.IntN(60),
						random.IntN(3000),
					)
					run(
						t,
						w,
						"UPDATE t SET n = n + 1 WHERE id %% 7 = %d; DELETE FROM t WHERE id %% 11 = %d",
						random.IntN(7),
						random.IntN(11),
					)
					if random.IntN(5) == 0 {
						run(t, w, "ROLLBACK TO s")
					}
				}
				if random.IntN(4) == 0 {
					run(t, w, "ROLLBACK")
				} else {
					before = content(t, w)
					run(t, w, "COMMIT")
				}
				if after := content(t, reader); after != before {
					t.Fatalf("another connection reads %s, want %s", after, before)
				}
				if random.IntN(10) == 0 {
					run(
						t,
						writers[random.IntN(2)],
						"PRAGMA wal_checkpoint(%s)",
						[]string{"PASSIVE", "RESTART", "TRUNCATE"}[random.IntN(3)],
					)
				}
			}
			checkRecovered(t, path, content(t, reader))
		})
	}
}

// checkRecovered checks the content of a copy of the files, as after a kill.
func checkRecovered(t *testing.T, path, want string) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		copyFile(t, path+suffix, copied+suffix)
	}
	c := openWAL(t, copied)
	if got := content(t, c); got != want {
		t.Errorf("after a kill there is %s, want %s", got, want)
	}
	var sound string
	if err := c.QueryRow("PRAGMA integrity_check").Scan(&sound); err != nil || sound != "ok" {
		t.Errorf("the file is damaged: %s, %v", sound, err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Pages that a transaction wrote and rolled back are not written once another connection
// has committed in their place.
func TestRolledBackWritesStayUnwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	a, b := openWAL(t, path, "cache_size(10)"), openWAL(t, path)
	run(t, a, "CREATE TABLE t(id INTEGER PRIMARY KEY, n, b)")
	run(
		t,
		a,
		"INSERT INTO t(n, b) WITH k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 300) "+
			"SELECT i, randomblob(1000) FROM k",
	)
	for rows := 20; rows < 100; rows += 7 {
		// so that nothing reads the -wal
		run(t, a, "PRAGMA wal_checkpoint(TRUNCATE)")
		// more pages than the cache has
		run(t, a, "BEGIN IMMEDIATE; UPDATE t SET n = -n WHERE id <= %d", rows)
		// the lock is free
		run(t, a, "ROLLBACK; BEGIN IMMEDIATE; ROLLBACK")
		// in the same place
		run(t, b, "UPDATE t SET b = randomblob(1000) WHERE id < 20; UPDATE t SET n = n + 1 WHERE id < 20")
		want := content(t, b)
		if got := content(t, a); got != want {
			t.Fatalf("after %d rows were rolled back: %s, want %s", rows, got, want)
		}
		checkRecovered(t, path, want)
	}
}
