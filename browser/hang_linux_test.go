package browser

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/agent"
)

// A Chromium or driver that is killed or hangs ends only its own sessions, not those
// of the other Chromium, and the next session gets a new one.
func TestChromiumEnds(t *testing.T) {
	t.Parallel()
	b, db := newBrowser(t, nil)
	windows := false
	other := openIn(t, b, db, agent.SessionOptions{Headless: &windows})
	send := func(name string, signal unix.Signal) func(*testing.T, *Session) {
		return func(t *testing.T, s *Session) {
			if err := unix.Kill(s.chromium.folder.pid(name), signal); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, failure := range []struct {
		name string
		do   func(*testing.T, *Session)
	}{
		{"Chromium is killed", send(chromiumName, unix.SIGKILL)},
		{"the driver is killed", send(driverName, unix.SIGKILL)},
		{"Chromium is stopped", send(chromiumName, unix.SIGSTOP)},
		{"the driver is stopped", send(driverName, unix.SIGSTOP)},
		{
			"Chromium's main thread is suspended",
			func(t *testing.T, s *Session) { suspend(t, s.chromium.folder.pid(chromiumName)) },
		},
		{
			"the driver's main thread is suspended",
			func(t *testing.T, s *Session) { suspend(t, s.chromium.folder.pid(driverName)) },
		},
	} {
		t.Run(failure.name, func(t *testing.T) {
			s := openIn(t, b, db, agent.SessionOptions{})
			folder, processes := s.chromium.folder, processTree(t, s.chromium)
			processes = append(processes, folder.pid(driverName))
			start := time.Now()
			failure.do(t, s)
			<-s.Done()
			t.Logf("the session ended after %v", time.Since(start))
			s.end("")
			row, err := b.Describe(t.Context(), db, s.ID())
			if err != nil || row.Status != agent.SessionFailed || row.Error == "" {
				t.Errorf("got %+v, %v", row, err)
			}
			if _, err := b.Session(db, s.ID()); agent.ErrorCode(err) != agent.CodeNotFound {
				t.Errorf("the session is still open: %v", err)
			}
			next := openIn(t, b, db, agent.SessionOptions{})
			must(t, next, `{"action":"navigate","url":"about:blank"}`)
			next.end("")
			<-s.chromium.cleaned
			t.Logf("everything was cleaned up after %v; detected failure: %v", time.Since(start), s.chromium.failure)
			for _, pid := range processes {
				waitExit(t, pid)
			}
			if _, err := os.Stat(folder.path); !os.IsNotExist(err) {
				t.Errorf("%s still exists: %v", folder.path, err)
			}
		})
	}
	must(t, other, `{"action":"navigate","url":"about:blank"}`)
}

// suspend stops the main thread of a process, as a deadlock would, until the test
// ends.
func suspend(t *testing.T, pid int) {
	t.Helper()
	suspended, done, released := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(released)
		runtime.LockOSThread() // one thread traces
		defer runtime.UnlockOSThread()
		err := unix.PtraceSeize(pid)
		if err == nil {
			err = unix.PtraceInterrupt(pid)
		}
		suspended <- err
		<-done
	}()
	if err := <-suspended; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(done)
		<-released
	})
}

// renderer finds the process that runs a session's page: the one that uses processor
// time while the page computes.
func renderer(t *testing.T, s *Session) int {
	t.Helper()
	used := func() map[int]float64 {
		answer, err := s.chromium.devTools.Send("SystemInfo.getProcessInfo", nil)
		if err != nil {
			t.Fatal(err)
		}
		all := map[int]float64{}
		for _, entry := range answer.(map[string]any)["processInfo"].([]any) {
			if p := entry.(map[string]any); p["type"] == "renderer" {
				all[int(p["id"].(float64))] = p["cpuTime"].(float64)
			}
		}
		return all
	}
	before := used()
	must(t, s, `{"action":"evaluate","script":"for (const end = performance.now() + 500; performance.now() < end;);"}`)
	most, found := 0.0, 0
	for pid, now := range used() {
		if now-before[pid] > most {
			most, found = now-before[pid], pid
		}
	}
	if found == 0 {
		t.Fatal("no renderer used processor time")
	}
	return found
}

// A page whose process hangs affects only its session.
func TestPageHangs(t *testing.T) {
	s, other := open(t, agent.SessionOptions{}), open(t, agent.SessionOptions{})
	url := serveSite(t, map[string]string{"/": `<title>x</title>`})
	must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
	pid := renderer(t, s)
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := do(
		t,
		s,
		`{"action":"extract","selector":"body","timeout":500}`,
	); agent.ErrorCode(err) != agent.CodeBrowser {
		t.Errorf("a page that hangs: %v", err)
	}
	for start := s.chromium.heartbeats.Load(); s.chromium.heartbeats.Load() < start+4; {
		must(t, other, `{"action":"evaluate","script":"1"}`)
	}
	s.end("")
	waitExit(t, pid) // Chromium ends the process with the session
	must(t, other, `{"action":"evaluate","script":"1"}`)
}
