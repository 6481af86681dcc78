package browser

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/testenv"
	"satchel/browser/install/installtest"
	"satchel/store"
)

// TestMain is also the entry point of the child processes that start the driver and
// Chromium.
func TestMain(m *testing.M) {
	if RunChild(os.Args) {
		return
	}
	for os.Getenv(childSpin) != "" {
	}
	if path := os.Getenv(childData); path != "" {
		serveAsChild(path)
	}
	code := testenv.Run(m)
	if shared != nil {
		shared.Stop()
		code = max(code, exitCode(shared.options.Folder.Close()), exitCode(os.RemoveAll(shared.options.Folder.Path())))
	}
	os.Exit(code)
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// shared is the Browser that sharedBrowser started.
var shared *Browser

// installed finds Chromium and its driver.
func installed(context.Context) (Program, error) {
	p, err := installtest.Find()
	return Program{Chromium: p.Chromium, Driver: p.Driver, Environment: os.Environ()}, err
}

// allowed is the address of this machine that pages may reach in tests.
var allowed = agent.MustAddressRanges("127.0.0.1/32")

func newFolderOf(t testing.TB) *store.Folder {
	t.Helper()
	folder, err := store.Open(store.Options{Path: t.TempDir(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// newBrowser starts a Browser with its own Chromium for one test.
func newBrowser(t testing.TB, change func(*Options)) (*Browser, *store.DB) {
	t.Helper()
	folder := newFolderOf(t)
	o := Options{Env: store.Env{Folder: folder, Allow: allowed}}
	if change != nil {
		change(&o)
	}
	if o.Find == nil {
		installtest.Need(t)
		o.Find = installed
	}
	b := New(o)
	if err := b.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	return b, folder.Default()
}

// sharedBrowser starts a Browser for tests that do not disturb its Chromium.
var sharedBrowser = sync.OnceValues(func() (*Browser, error) {
	path, err := os.MkdirTemp("", "satchel-test-")
	if err != nil {
		return nil, err
	}
	folder, err := store.Open(store.Options{Path: path, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return nil, err
	}
	shared = New(Options{
		Env:         store.Env{Folder: folder, Allow: allowed},
		Find:        installed,
		AgentMax:    50,
		MaxSessions: 50,
		MaxDownload: 8 << 20,
	})
	return shared, shared.Start(context.Background())
})

// open opens a session in the shared Browser until the test ends.
func open(t testing.TB, o agent.SessionOptions) *Session {
	t.Helper()
	installtest.Need(t)
	b, err := sharedBrowser()
	if err != nil {
		t.Fatal(err)
	}
	return openIn(t, b, b.options.Folder.Default(), o)
}

func openIn(t testing.TB, b *Browser, db *store.DB, o agent.SessionOptions) *Session {
	t.Helper()
	row, err := b.Create(t.Context(), db, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Session(db, row.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.end("") })
	return s
}

// serveSite serves pages by path.
func serveSite(t testing.TB, pages map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html>", body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// waitFor waits until a condition holds, checking it after each change of the session.
func (s *Session) waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	changed, end := s.Changes()
	defer end()
	limit := time.After(time.Minute)
	for !ok() {
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}
