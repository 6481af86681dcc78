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
	if got, ok := parseThread([]byte("4242 (a) R (b) S 17 4242 4242 0")); !ok || got != (thread{'S', 17}) {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, cut := range []string{"", ")", "1 (a) S", "1 (a) S x 4242"} {
		if got, ok := parseThread([]byte(cut)); ok {
			t.Errorf("%q: %+v", cut, got)
		}
	}
}

// A probe of this machine's processes tells busy ones from those that rest or
// are stopped.
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
		t.Error("processes that cannot be seen are taken for idle")
	}
}

// spin starts processes that take all processor time they get until the test
// ends.
func spin(t *testing.T, n int) (pids []int) {
	t.Helper()
	for range n {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), childSpins+"=1", "GOMAXPROCS=1")
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = child.Process.Kill(), child.Wait() })
		pids = append(pids, child.Process.Pid)
	}
	return pids
}

// A machine that has far too much to do makes Chromium slow; that is no hang.
func TestBusyMachine(t *testing.T) {
	b, db := newBrowser(t, nil)
	s := openIn(t, b, db, agent.SessionOptions{})
	// Eight weigh like five hundred when the browser has the lowest priority.
	for _, pid := range append(processTree(t, s.chromium), s.chromium.folder.pid(driverName)) {
		for _, tid := range numericEntries("/proc/" + strconv.Itoa(pid) + "/task") {
			if err := unix.Setpriority(unix.PRIO_PROCESS, tid, 19); err != nil {
				t.Fatal(err)
			}
		}
	}
	spin(t, 8)
	began := s.chromium.heartbeats.Load()
	for s.chromium.heartbeats.Load() < began+4 {
		if _, err := s.Do(context.Background(), agent.Action{Action: "extract", Selector: "body"}); err != nil && agent.ErrorCode(err) != agent.CodeActionTimeout {
			t.Fatal(err)
		}
	}
	must(t, s, `{"action":"evaluate","script":"1","timeout":60000}`)
}
