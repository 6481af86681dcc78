package browser

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

func TestIdleAndOldSessionsAreClosed(t *testing.T) {
	b, db := ownAgent(t, "idle")
	for name, age := range map[string]func(*Session){
		"idle": func(s *Session) { s.activity = s.activity.Add(-DefaultIdle) },
		"old":  func(s *Session) { s.opened = s.opened.Add(-DefaultLifetime) },
	} {
		s := openIn(t, b, db, agent.SessionOptions{})
		s.maintain(t.Context(), time.Now())
		if s.Status() != agent.SessionActive {
			t.Fatalf("%s: closed before its time", name)
		}
		s.mu.Lock()
		age(s)
		s.mu.Unlock()
		s.maintain(t.Context(), time.Now())
		<-s.Done()
		s.end("") // it is on its way
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

// ownAgent is an agent of the test's own in the shared Browser.
func ownAgent(t *testing.T, name string) (*Browser, *store.DB) {
	t.Helper()
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

// A renderer that crashes takes its tab.
func TestPageCrashes(t *testing.T) {
	s, other := open(t, agent.SessionOptions{}), open(t, agent.SessionOptions{})
	p := s.ActivePage()
	go func() { _, _ = p.page.Goto("chrome://crash") }() // it never answers
	<-p.Done()
	s.waitFor(t, "another tab", func() bool { return s.ActivePage() != nil })
	for _, s := range []*Session{s, other} {
		must(t, s, `{"action":"evaluate","script":"1"}`)
	}
}

// childSpins makes this process one that only takes processor time.
const childSpins = "SATCHEL_TEST_SPIN"

// childData makes this process a server that opens a session and waits to be
// killed.
const childData = "SATCHEL_TEST_BROWSER_CHILD"

// childSite is where that session logs in; it is to be kept then.
const childSite = "SATCHEL_TEST_BROWSER_SITE"

func serveAsChild(path string) {
	folder, err := store.Open(store.Options{Path: path})
	if err == nil {
		b := New(Options{Env: store.Env{Folder: folder, Allow: allowed}, Find: func(context.Context) (Program, error) { return installed() }})
		err = b.Start(context.Background())
		var row agent.Session
		url := os.Getenv(childSite)
		if err == nil {
			row, err = b.Create(context.Background(), folder.Default(), agent.SessionOptions{Persist: url != ""})
		}
		if err == nil && url != "" {
			err = logIn(b, folder.Default(), row.ID, url)
		}
		if err == nil {
			s, _ := b.Session(folder.Default(), row.ID)
			fmt.Println(row.ID, s.chromium.folder.path, s.chromium.folder.pid(chromiumName), s.chromium.folder.pid(driverName))
			select {}
		}
	}
	fmt.Println("error", err)
	os.Exit(1)
}

// logIn leaves a site in a session that stays open, once the agent's file has
// got what the site stored.
func logIn(b *Browser, db *store.DB, id, url string) error {
	s, err := b.Session(db, id)
	for _, a := range []agent.Action{{Action: "navigate", URL: url + "/login"},
		{Action: "evaluate", Script: "document.cookie = 'login=whale-song; max-age=1000'; localStorage.cart = 'three-loaves'"}} {
		if err == nil {
			_, err = s.Do(context.Background(), a)
		}
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for state := ""; err == nil && !(strings.Contains(state, "whale-song") && strings.Contains(state, "three-loaves")); {
		<-tick.C
		state, _, err = db.BrowserState(context.Background())
	}
	return err
}

// startServer starts a server that opens a session, in a process of its own, and
// returns what it tells of itself.
func startServer(t *testing.T, path, site string) (child *exec.Cmd, words []string) {
	t.Helper()
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
	words = strings.Fields(line)
	if err != nil || len(words) != 4 || words[0] == "error" {
		t.Fatalf("%q, %v", line, err)
	}
	return child, words
}

func TestNothingOutlivesAKilledServer(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and what is killed is another process")
	}
	path := t.TempDir()
	child, words := startServer(t, path, "")
	began := time.Now()
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	for _, word := range words[2:] {
		pid, err := strconv.Atoi(word)
		if err != nil || pid == 0 {
			t.Fatalf("%q: %v", words, err)
		}
		waitExit(t, pid)
	}
	t.Logf("Chromium and its driver ended within %v", time.Since(began))
	if err := os.Chtimes(words[1], time.Time{}, time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err) // the folder is there, and a server's start removes it when it is not new
	}
	folder, err := store.Open(store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	if folder.Default().Pending().Sessions.IsZero() {
		t.Error("the catalog does not know of the session that was left open")
	}
	b := New(Options{Env: store.Env{Folder: folder}})
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	if _, err := os.Stat(words[1]); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", words[1], err)
	}
	rows, err := folder.Default().Session(t.Context(), words[0])
	if err != nil || rows.Status != agent.SessionFailed {
		t.Errorf("the row: %+v, %v", rows, err)
	}
}
