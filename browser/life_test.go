package browser

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/browser/install/installtest"
	"satchel/store"
)

func TestIdleAndOldSessionsAreClosed(t *testing.T) {
	t.Parallel()
	b, db := ownAgent(t, "idle")
	for name, age := range map[string]func(*Session){
		"idle": func(s *Session) { s.activity = s.activity.Add(-DefaultIdle) },
		"old":  func(s *Session) { s.opened = s.opened.Add(-DefaultLifetime) },
	} {
		s := openIn(t, b, db, agent.SessionOptions{})
		s.maintain(t.Context(), time.Now())
		if s.Status() != agent.SessionActive {
			t.Fatalf("%s: closed too early", name)
		}
		s.mu.Lock()
		age(s)
		s.mu.Unlock()
		s.maintain(t.Context(), time.Now())
		<-s.Done()
		s.end("") // waits for the end in progress
		row, err := b.Describe(t.Context(), db, s.ID())
		if err != nil || row.Status != agent.SessionClosed || row.ClosedAt.IsZero() {
			t.Errorf("%s: %+v, %v", name, row, err)
		}
	}
	s := openIn(t, b, db, agent.SessionOptions{})
	if err := b.options.Folder.DeleteAgent(db); err != nil {
		t.Fatal(err)
	}
	s.maintain(t.Context(), time.Now())
	<-s.Done()
}

// ownAgent creates an agent for one test in the shared Browser.
func ownAgent(t *testing.T, name string) (*Browser, *store.DB) {
	t.Helper()
	installtest.Need(t)
	b, err := sharedBrowser()
	if err != nil {
		t.Fatal(err)
	}
	db, err := b.options.Folder.CreateAgent(t.Context(), agent.Agent{Name: name}, "")
	if err != nil {
		t.Fatal(err)
	}
	return b, db
}

// A renderer that crashes ends only its tab.
func TestPageCrashes(t *testing.T) {
	t.Parallel()
	s, other := open(t, agent.SessionOptions{}), open(t, agent.SessionOptions{})
	p := s.ActivePage()
	go func() { _, _ = p.page.Goto("chrome://crash") }() // it never returns
	<-p.Done()
	s.waitFor(t, "another tab", func() bool { return s.ActivePage() != nil })
	for _, s := range []*Session{s, other} {
		must(t, s, `{"action":"evaluate","script":"1"}`)
	}
}

// childSpin makes this process only use processor time.
const childSpin = "SATCHEL_TEST_SPIN"

// childData makes this process a server that opens a session and waits to be
// killed.
const childData = "SATCHEL_TEST_BROWSER_CHILD"

// childSite is the site where that session logs in; the session is persistent then.
const childSite = "SATCHEL_TEST_BROWSER_SITE"

func serveAsChild(path string) {
	folder, err := store.Open(store.Options{Path: path})
	if err == nil {
		b := New(Options{Env: store.Env{Folder: folder, Allow: allowed}, Find: installed})
		err = b.Start(context.Background())
		var row agent.Session
		url := os.Getenv(childSite)
		if err == nil {
			row, err = b.Create(context.Background(), folder.Default(), agent.SessionOptions{Persist: url != ""})
		}
		if err == nil && url != "" {
			err = storeLogin(b, folder.Default(), row.ID, url)
		}
		if err == nil {
			s, _ := b.Session(folder.Default(), row.ID)
			fmt.Println(
				row.ID,
				s.chromium.folder.path,
				s.chromium.folder.pid(chromiumName),
				s.chromium.folder.pid(driverName),
			)
			select {}
		}
	}
	fmt.Println("error", err)
	os.Exit(1)
}

// storeLogin stores a login of a site in a session that stays open, and returns once
// the agent's file has the site's data.
func storeLogin(b *Browser, db *store.DB, id, url string) error {
	s, err := b.Session(db, id)
	for _, a := range []agent.Action{
		{Action: "navigate", URL: url + "/login"},
		{
			Action: "evaluate",
			Script: "document.cookie = 'login=whale-song; max-age=1000'; localStorage.cart = 'three-loaves'",
		},
	} {
		if err == nil {
			_, err = s.Do(context.Background(), a)
		}
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for state := ""; err == nil &&
		!(strings.Contains(state, "whale-song") && strings.Contains(state, "three-loaves")); {
		<-tick.C
		state, _, err = db.BrowserState(context.Background())
	}
	return err
}

// startServer starts a server that opens a session, in another process, and returns
// the fields that it prints.
func startServer(t *testing.T, path, site string) (child *exec.Cmd, fields []string) {
	t.Helper()
	installtest.Need(t)
	child = exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childData+"="+path, childSite+"="+site)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	fields = strings.Fields(line)
	if err != nil || len(fields) != 4 || fields[0] == "error" {
		t.Fatalf("got %q, %v", line, err)
	}
	return child, fields
}

func TestNothingOutlivesAKilledServer(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and tests a child process")
	}
	t.Parallel()
	path := t.TempDir()
	child, fields := startServer(t, path, "")
	start := time.Now()
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	for _, field := range fields[2:] {
		pid, err := strconv.Atoi(field)
		if err != nil || pid == 0 {
			t.Fatalf("%q: %v", fields, err)
		}
		waitExit(t, pid)
	}
	t.Logf("Chromium and its driver ended within %v", time.Since(start))
	if err := os.Chtimes(fields[1], time.Time{}, time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err) // the folder must exist; a server removes it at its start if it is not new
	}
	folder, err := store.Open(store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	if folder.Default().Pending().Sessions.IsZero() {
		t.Error("the catalog does not have the session that was left open")
	}
	b := New(Options{Env: store.Env{Folder: folder}})
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	if _, err := os.Stat(fields[1]); !os.IsNotExist(err) {
		t.Errorf("%s still exists: %v", fields[1], err)
	}
	rows, err := folder.Default().Session(t.Context(), fields[0])
	if err != nil || rows.Status != agent.SessionFailed {
		t.Errorf("the row: %+v, %v", rows, err)
	}
}

// TestTempFolder: sockets have short paths, wherever temporary files are.
func TestTempFolder(t *testing.T) {
	long := "/" + strings.Repeat("a", 30)
	for _, tc := range []struct{ temporary, want string }{{"/mnt", "/mnt"}, {long[:30], long[:30]}, {long, "/tmp"}} {
		t.Setenv("TMPDIR", tc.temporary)
		if got := tempFolder(); runtime.GOOS == "linux" && got != tc.want {
			t.Errorf("%s: %s, want %s", tc.temporary, got, tc.want)
		}
	}
}
