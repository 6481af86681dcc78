package browser

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/agent"
)

func TestParseThread(t *testing.T) {
	line := "4242 (a) R (b) S 17 4240 4242 0 -1 4194304 5 0 0 0 1 2 0 0 20 0 1 0 99 1234567 321 184 0"
	if got, ok := parseThread([]byte(line)); !ok || got != (thread{'S', 17, 4240, 321}) {
		t.Errorf("got %+v, %v", got, ok)
	}
	for _, invalid := range []string{"", ")", "1 (a) S", "1 (a) S x 4242"} {
		if got, ok := parseThread([]byte(invalid)); ok {
			t.Errorf("%q: %+v", invalid, got)
		}
	}
}

// A page that uses too much memory is ended alone, and its session continues.
func TestLargePages(t *testing.T) {
	s, other := open(t, agent.SessionOptions{}), open(t, agent.SessionOptions{})
	large := s.ActivePage()
	chromium := s.chromium.folder.pid(chromiumName)
	if ended := endLargePages(chromium, maxPageMemory); len(ended) != 0 {
		t.Errorf("ended %v", ended)
	}
	if must(
		t,
		s,
		`{"action":"evaluate","script":"window.kept = new Uint8Array(600e6).fill(1); 1"}`,
	); len(endLargePages(chromium, 500<<20)) != 1 {
		t.Error("the large page was not ended alone")
	}
	<-large.Done()
	s.waitFor(t, "another tab", func() bool { return s.ActivePage() != nil })
	for _, s := range []*Session{s, other} {
		must(t, s, `{"action":"evaluate","script":"1"}`)
	}
}

// A probe of this machine's processes distinguishes busy ones from idle and stopped
// ones.
func TestProbe(t *testing.T) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	s := open(t, agent.SessionOptions{})
	if p := newProbe(s.chromium.folder.pid(driverName), s.chromium.folder.pid(chromiumName)); len(p.helpers) == 0 {
		t.Errorf("no helpers: %+v", p)
	} else {
		for p.busy() {
			<-tick.C // until it is idle
		}
	}
	spinning := spin(t, 1)[0]
	p := newProbe(spinning, spinning)
	for !p.busy() {
		<-tick.C
	}
	if err := unix.Kill(spinning, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for p.busy() {
		<-tick.C
	}
	if !newProbe(0, 0).busy() {
		t.Error("processes that cannot be read are reported as idle")
	}
}

// spin starts processes that use all available processor time until the test ends.
func spin(t *testing.T, n int) (pids []int) {
	t.Helper()
	for range n {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), childSpin+"=1", "GOMAXPROCS=1")
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = child.Process.Kill(), child.Wait() })
		pids = append(pids, child.Process.Pid)
	}
	return pids
}

// Chromium on an overloaded machine is slow, which must not count as a hang.
func TestBusyMachine(t *testing.T) {
	b, db := newBrowser(t, nil)
	s := openIn(t, b, db, agent.SessionOptions{})
	// With the lowest priority for the browser, eight spinning processes are like five hundred.
	for _, pid := range append(processTree(t, s.chromium), s.chromium.folder.pid(driverName)) {
		for _, tid := range numericEntries("/proc/" + strconv.Itoa(pid) + "/task") {
			if err := unix.Setpriority(unix.PRIO_PROCESS, tid, 19); err != nil {
				t.Fatal(err)
			}
		}
	}
	spin(t, 8)
	start := s.chromium.heartbeats.Load()
	for s.chromium.heartbeats.Load() < start+4 {
		if _, err := s.Do(context.Background(), agent.Action{Action: "extract", Selector: "body"}); err != nil &&
			agent.ErrorCode(err) != agent.CodeActionTimeout {
			t.Fatal(err)
		}
	}
	must(t, s, `{"action":"evaluate","script":"1","timeout":60000}`)
}
