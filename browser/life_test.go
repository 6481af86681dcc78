package browser

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

func TestLoginsAreKeptSealed(t *testing.T) {
	b, db := ownAgent(t, "logins")
	url := site(t, map[string]string{"/": `<title>x</title>`})
	s := openIn(t, b, db, agent.SessionOptions{Persist: true})
	must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
	must(t, s, `{"action":"evaluate","script":"document.cookie = 'login=whale-song; max-age=1000'; localStorage.cart = 'three-loaves'"}`)
	s.end("")
	look := `{"action":"evaluate","script":"document.cookie + localStorage.cart"}`
	for _, persist := range []bool{true, false} {
		s := openIn(t, b, db, agent.SessionOptions{Persist: persist})
		must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
		if got := must(t, s, look)["value"]; (got == "login=whale-songthree-loaves") != persist {
			t.Errorf("persist %v: the session begins with %v", persist, got)
		}
		s.end("")
	}
	files, err := filepath.Glob(filepath.Join(b.options.Folder.Path(), "agents", db.ID()+"*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "whale-song") || strings.Contains(string(raw), "three-loaves") {
			t.Errorf("%s shows what is sealed", name)
		}
	}
}

func TestIdleAndOldSessionsAreClosed(t *testing.T) {
	b, db := ownAgent(t, "idle")
	for name, age := range map[string]func(*Session){
		"idle": func(s *Session) { s.activity = s.activity.Add(-DefaultIdle) },
		"old":  func(s *Session) { s.opened = s.opened.Add(-DefaultLifetime) },
	} {
		s := openIn(t, b, db, agent.SessionOptions{})
		s.tend(t.Context(), time.Now())
		if s.Status() != agent.SessionActive {
			t.Fatalf("%s: closed before its time", name)
		}
		s.mu.Lock()
		age(s)
		s.mu.Unlock()
		s.tend(t.Context(), time.Now())
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
	s.tend(t.Context(), time.Now())
	<-s.Done()
}

// ownAgent is an agent of the test's own in the shared Browser.
func ownAgent(t *testing.T, name string) (*Browser, *store.DB) {
	t.Helper()
	b, err := common()
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
	s.until(t, "another tab", func() bool { return s.ActivePage() != nil })
	for _, s := range []*Session{s, other} {
		must(t, s, `{"action":"evaluate","script":"1"}`)
	}
}

// childSpins makes this process one that only takes processor time.
const childSpins = "SATCHEL_TEST_SPIN"

// childData makes this process a server that opens a session and waits to be
// killed.
const childData = "SATCHEL_TEST_BROWSER_CHILD"

func serveAsChild(path string) {
	folder, err := store.Open(store.Options{Path: path})
	if err == nil {
		b := New(Options{Folder: folder, Find: func(context.Context) (Program, error) { return installed() }})
		err = b.Start(context.Background())
		var row agent.Session
		if err == nil {
			row, err = b.Create(context.Background(), folder.Default(), agent.SessionOptions{})
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

func TestNothingOutlivesAKilledServer(t *testing.T) {
	path := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childData+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) != 4 || words[0] == "error" {
		t.Fatalf("%q, %v", line, err)
	}
	began := time.Now()
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	for _, word := range words[2:] {
		pid, err := strconv.Atoi(word)
		if err != nil || pid == 0 {
			t.Fatalf("%q: %v", line, err)
		}
		for running(pid) && !isZombie(pid) && t.Context().Err() == nil {
			runtime.Gosched()
		}
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
	if !folder.Default().SessionsLeft() {
		t.Error("the catalog does not know of the session that was left open")
	}
	b := New(Options{Folder: folder})
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

// isZombie tells whether a process has ended and nobody has asked how.
func isZombie(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(raw), ") Z ")
}
