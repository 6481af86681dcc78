package store

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"satchel/agent"
)

// backupOf makes a backup of an agent and returns its bytes.
func backupOf(t testing.TB, db *DB) []byte {
	t.Helper()
	b, err := db.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(b)
	if err != nil || int64(len(data)) != b.Size {
		t.Errorf("%d bytes of %d, %v", len(data), b.Size, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if n := fileCount(t, db.folder.tempPath("backup*")); n != 0 {
		t.Errorf("%d files are left in tmp", n)
	}
	return data
}

// Backups are complete and sound while the agent is written to as fast as possible.
func TestBackupDuringWrites(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	for n := range 500 {
		createContact(t, db, numberedContact(-n-1))
	}
	var acknowledged atomic.Int64
	stop := make(chan struct{})
	var writing sync.WaitGroup
	for range 4 {
		writing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := write(db, func(tx *Tx) error {
					return insertLogs(tx, strings.Repeat("x", 500), 3)
				}); err != nil {
					t.Error(err)
					return
				}
				acknowledged.Add(3)
			}
		})
	}
	for round := range 20 {
		for acknowledged.Load() < int64(30*round) { // so that there is something new
			if t.Failed() {
				break
			}
			createContact(t, db, named("meanwhile"))
		}
		before := acknowledged.Load()
		path := filepath.Join(t.TempDir(), "copy.db")
		if err := os.WriteFile(path, backupOf(t, db), 0o600); err != nil {
			t.Fatal(err)
		}
		if verdict := valueIn[string](t, path, "PRAGMA integrity_check"); verdict != "ok" {
			t.Fatalf("round %d: %s", round, verdict)
		}
		if n := valueIn[int64](t, path, "SELECT count(*) FROM logs"); n < before || n%3 != 0 {
			t.Errorf("round %d: %d rows, %d were acknowledged", round, n, before)
		}
	}
	close(stop)
	writing.Wait()
}

func TestFork(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "Support")
	made := createContact(t, db, numberedContact(0))
	setCredential(t, db, "sk-1")
	fork, err := f.Fork(t.Context(), db, "Trial", "ada@x.y")
	if err != nil {
		t.Fatal(err)
	}
	if a := fork.Agent(); a.Name != "Trial" ||
		a.Status != agent.StatusPaused ||
		a.ID == db.id ||
		a.OwnerEmail != "ada@x.y" ||
		fork.Roles()["ada@x.y"] != agent.RoleOwner {
		t.Errorf("%+v, %v", a, fork.Roles())
	}
	if got, err := fork.SettingsCredential(
		t.Context(),
		"openai_api_key",
		agent.OpenAIAPI,
	); got != "sk-1" || err != nil {
		t.Errorf("credential %q, %v", got, err)
	}
	if err := fork.DeleteContact(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Contact(t.Context(), made.ID); err != nil {
		t.Errorf("the fork's change reached the original: %v", err)
	}
	for _, name := range []string{"trial", "SUPPORT", "default"} {
		_, err = f.Fork(t.Context(), db, name, "")
		wantCode(t, err, agent.CodeAgentNameExists)
	}
	_, err = f.Fork(t.Context(), db, "no name", "")
	wantCode(t, err, agent.CodeValidation)
	if fork, err = f.Fork(t.Context(), f.Default(), "Home", ""); err != nil || fork.id == agent.DefaultID {
		t.Errorf("a fork of the default agent: %v", err)
	}
	if n := fileCount(t, f.tempPath("fork*")); n != 0 {
		t.Errorf("%d files are left in tmp", n)
	}
}

// Of concurrent forks and creates with the same name, one succeeds.
func TestForksOfOneName(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "Support")
	var won atomic.Int32
	var running sync.WaitGroup
	for n := range 6 {
		running.Go(func() {
			var err error
			if n%2 == 0 {
				_, err = f.Fork(t.Context(), db, "Twin", "")
			} else {
				_, err = f.CreateAgent(t.Context(), agent.Agent{Name: "twin"}, "")
			}
			if err == nil {
				won.Add(1)
			} else if agent.ErrorCode(err) != agent.CodeAgentNameExists {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if won.Load() != 1 || len(f.Agents()) != 3 {
		t.Errorf("%d won, %d agents", won.Load(), len(f.Agents()))
	}
}

func BenchmarkBackup(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("contacts=%d", n), func(b *testing.B) {
			db := openFolder(b).Default()
			fillContacts(b, db, n)
			for b.Loop() {
				backup, err := db.Backup(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(backup.Size)
				if err := backup.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// fillContacts adds n contacts in few transactions.
func fillContacts(t testing.TB, db *DB, n int) {
	t.Helper()
	for from := 0; from < n; from += 5000 {
		rows := make([]agent.ContactChange, 0, 5000)
		for i := from; i < min(n, from+5000); i++ {
			rows = append(rows, numberedContact(i))
		}
		if _, err := db.ImportContacts(t.Context(), rows, DuplicateError); err != nil {
			t.Fatal(err)
		}
	}
}
