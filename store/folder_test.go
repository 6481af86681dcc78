package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"satchel/agent"
)

func TestOpenMakesTheFolderAndTheDefaultAgent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "data")
	f := openAt(t, path)
	if f.Path() != path {
		t.Errorf("Path() = %s", f.Path())
	}
	db := f.Default()
	if a := db.Agent(); a.ID != agent.DefaultID ||
		a.Name != "default" ||
		a.Status != agent.StatusActive ||
		a.OwnerEmail != "" ||
		a.CreatedAt.IsZero() {
		t.Errorf("%+v", a)
	}
	for name, want := range map[string]fs.FileMode{
		".":                 0o700,
		"agents":            0o700,
		"master.key":        0o600,
		"agents/default.db": 0o600,
	} {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestReopenFindsEverything(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	f := openAt(t, path)
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "Support", Description: "helps"}, "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	created := createContact(t, db, numberedContact(1))
	closeFolder(t, f)
	if left := fileCount(t, filepath.Join(path, "agents", "*-wal")); left != 0 {
		t.Errorf("%d -wal files are left", left)
	}
	if _, err := os.Stat(filepath.Join(path, "tmp")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("tmp is left: %v", err)
	}

	f = openAt(t, path)
	again := byName(t, f, "support")
	if again.Agent() != db.Agent() || again.Roles()["ada@example.com"] != agent.RoleOwner || again.Problem() != nil {
		t.Errorf("%+v %v %v", again.Agent(), again.Roles(), again.Problem())
	}
	if c, err := again.Contact(t.Context(), created.ID); err != nil ||
		c.Email != created.Email ||
		c.CreatedAt != created.CreatedAt {
		t.Errorf("%+v, %v", c, err)
	}
	if len(f.Agents()) != 2 {
		t.Errorf("%d agents", len(f.Agents()))
	}
}

func TestSecondServerIsRefused(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	if _, err := Open(Options{Path: f.Path()}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), f.Path()) {
		t.Errorf("%v", err)
	}
	createContact(t, f.Default(), named("still working"))
	closeFolder(t, f)
	openAt(t, f.Path())
}

func TestClosedFolder(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "a")
	closeFolder(t, f)
	closeFolder(t, f)
	if _, err := db.CreateContact(t.Context(), named("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("write: %v", err)
	}
	if _, err := db.Stats(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if _, err := f.CreateAgent(t.Context(), agent.Agent{Name: "b"}, ""); !errors.Is(err, ErrClosed) {
		t.Errorf("create: %v", err)
	}
	if _, err := f.Import(t.Context(), strings.NewReader(""), 1, openMode); !errors.Is(err, ErrClosed) {
		t.Errorf("import: %v", err)
	}
	if _, err := f.Fork(t.Context(), db, "b", ""); !errors.Is(err, ErrClosed) {
		t.Errorf("fork: %v", err)
	}
	if err := f.Start(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("start: %v", err)
	}
}

// A folder that is closed twice must not interfere with the server that opened it since.
func TestClosingTwiceLeavesTheNextServerAlone(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	closeFolder(t, f)
	next := openAt(t, f.Path())
	closeFolder(t, f)
	if _, err := os.Stat(next.tempPath("")); err != nil {
		t.Errorf("the next server's tmp is gone: %v", err)
	}
	createAgent(t, next, "works")
}

func TestCloseWhileWritesRun(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := f.Default()
	acknowledged := make([]int, 8)
	var running sync.WaitGroup
	begun := make(chan struct{}, len(acknowledged))
	for w := range acknowledged {
		running.Go(func() {
			for {
				_, err := db.CreateContact(context.Background(), named("x"))
				if errors.Is(err, ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				if acknowledged[w]++; acknowledged[w] == 3 {
					begun <- struct{}{}
				}
			}
		})
	}
	for range acknowledged {
		<-begun
	}
	closeFolder(t, f)
	running.Wait()
	want := 0
	for _, n := range acknowledged {
		want += n
	}
	if got := value[int](t, openAt(t, f.Path()).Default(), "SELECT count(*) FROM contacts"); got != want {
		t.Errorf("%d contacts, %d were acknowledged", got, want)
	}
}

func TestStartAndStopInAnyOrder(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	f.Stop()
	for range 2 {
		for range 2 {
			if err := f.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		f.Stop()
		f.Stop()
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := f.Start(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-f.done
	if err := f.Start(t.Context()); err != nil || ended(f.done) {
		t.Fatalf("it does not start again after its context ended: %v", err)
	}
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() { _ = f.Start(t.Context()) })
		running.Go(f.Stop)
	}
	running.Wait()
}

func TestFileInPlaceOfTheFolder(t *testing.T) {
	t.Parallel()
	for name, block := range map[string]func(path string) error{
		"a file where the folder should be": func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"a file where agents should be": func(p string) error {
			return errors.Join(os.Mkdir(p, 0o700), os.WriteFile(p+"/agents", nil, 0o600))
		},
		"a folder where the key should be":  func(p string) error { return os.MkdirAll(p+"/master.key", 0o700) },
		"a folder where the lock should be": func(p string) error { return os.MkdirAll(p+"/satchel.lock", 0o700) },
		"a text where the key should be": func(p string) error {
			return errors.Join(os.Mkdir(p, 0o700), os.WriteFile(p+"/master.key", []byte("secret"), 0o600))
		},
		"nothing where the key should be": func(p string) error {
			return errors.Join(os.Mkdir(p, 0o700), os.WriteFile(p+"/master.key", nil, 0o600))
		},
		"a foreign file as the default agent": func(p string) error {
			return errors.Join(os.MkdirAll(p+"/agents/default.db", 0o700))
		},
		"a link to nowhere as the data folder": func(p string) error { return os.Symlink(p+"-gone/x", p) },
	} {
		path := filepath.Join(t.TempDir(), "data")
		if err := block(path); err != nil {
			t.Fatal(err)
		}
		f, err := Open(Options{Path: path})
		if err == nil {
			t.Errorf("%s: opened", name)
			closeFolder(t, f)
			continue
		}
		if !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error does not help: %v", name, err)
		}
	}
}

// Files that are closed already are not closed again.
func TestNothingIsLeftToClose(t *testing.T) {
	f := openFolder(t)
	f.openLimit = 64
	f.closeExcess()
	if n := f.OpenCount(); n != 1 {
		t.Errorf("%d files are open, want 1", n)
	}
}
