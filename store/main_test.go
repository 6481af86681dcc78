package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"satchel/agent"
	"satchel/agent/testenv"
	"satchel/store/sqlite"
)

// childRole, when set, makes the test binary run as another process.
const childRole = "SATCHEL_TEST_CHILD"

// children are the roles that the test binary can run.
var children = map[string]func(){}

func TestMain(m *testing.M) {
	sqlite.CheckUse = true
	if role := os.Getenv(childRole); role != "" {
		children[role]()
		os.Exit(0)
	}
	os.Exit(testenv.Run(m))
}

// openAt opens a data folder that closes with the test. It has no watcher: tests call
// pollFolder and maintain themselves.
func openAt(t testing.TB, path string, keys ...[]byte) *Folder {
	t.Helper()
	return openWith(t, Options{Path: path, MasterKeys: keys})
}

func openWith(t testing.TB, o Options) *Folder {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	f, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeFolder(t, f) })
	return f
}

// openLogged opens a data folder that logs to j.
func openLogged(t testing.TB, path string, j *journal) *Folder {
	t.Helper()
	return openWith(t, Options{Path: path, Log: slog.New(slog.NewTextHandler(j, nil))})
}

func openFolder(t testing.TB) *Folder {
	t.Helper()
	return openAt(t, t.TempDir())
}

func closeFolder(t testing.TB, f *Folder) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func createAgent(t testing.TB, f *Folder, name string) *DB {
	t.Helper()
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: name}, "")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// byName finds an agent, or fails.
func byName(t testing.TB, f *Folder, idOrName string) *DB {
	t.Helper()
	db, err := f.Agent(idOrName)
	if err != nil {
		t.Fatalf("agent %s: %v", idOrName, err)
	}
	return db
}

func named(name string) agent.ContactChange { return agent.ContactChange{Name: agent.Some(name)} }

func createContact(t testing.TB, db *DB, change agent.ContactChange) agent.Contact {
	t.Helper()
	c, err := db.CreateContact(t.Context(), change)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantCode(t testing.TB, err error, code agent.Code) *agent.Error {
	t.Helper()
	var e *agent.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return e
}

// do runs SQL as a write of the agent.
func do(t testing.TB, db *DB, query string, args ...any) {
	t.Helper()
	if err := try(db, query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func try(db *DB, query string, args ...any) error {
	return db.Do(context.Background(), func(tx *Tx) error {
		_, err := tx.exec(query, args...)
		return err
	})
}

// value reads one value of an agent.
func value[T any](t testing.TB, db *DB, query string, args ...any) (v T) {
	t.Helper()
	v, err := Read(context.Background(), db, func(tx *Tx) (v T, err error) { return v, tx.value(&v, query, args...) })
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// valueIn reads one value of a database file that is not open here.
func valueIn[T any](t testing.TB, path, query string, args ...any) (v T) {
	t.Helper()
	c, err := openConn(unlockedSource(path))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.value(&v, query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// hashOf returns a hash of a file's bytes. The file must not be open here.
func hashOf(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// copyClosed copies a file that is not open here.
func copyClosed(t testing.TB, to, from string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// writeBlank writes an agent's file without records.
func writeBlank(t testing.TB, path string) {
	t.Helper()
	image, err := blankImage()
	if err == nil {
		setWALMode(image)
		err = os.WriteFile(path, image, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pollFolder runs the watcher n times.
func pollFolder(f *Folder, n int) {
	for range n {
		f.watch()
	}
}

func fileCount(t testing.TB, pattern string) int {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// journal collects what a folder logs.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// numberedContact is the i-th of many contacts that differ.
func numberedContact(i int) agent.ContactChange {
	return agent.ContactChange{
		Name:  agent.Some(fmt.Sprintf("Contact %d", i)),
		Email: agent.Some(fmt.Sprintf("contact%d@example.com", i)),
		Phone: agent.Some(fmt.Sprintf("+1 555 %07d", i)),
		Tags:  agent.Some([]string{"vip"}),
	}
}
