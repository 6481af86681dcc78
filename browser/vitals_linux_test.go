package browser

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/agent"
)

func TestParseThread(t *testing.T) {
	line := "4242 (a) R (b) S 17 4242 4242 0 -1 4194304 1 2 3 4 250 50 0 0 20 0 1 0 99"
	if got, ok := parseThread([]byte(line)); !ok || got != (thread{'S', 17, 3 * time.Second}) {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, cut := range []string{"", ")", "1 (a) S", "1 (a) S x 4242 4242 0 -1 4194304 1 2 3 4 250 50"} {
		if got, ok := parseThread([]byte(cut)); ok {
			t.Errorf("%q: %+v", cut, got)
		}
	}
}

// The looks at this machine's processes tell apart who stands, who works and
// who rests.
func TestVitals(t *testing.T) {
	s := open(t, agent.SessionOptions{})
	way := newAnswerWay(s.chromium.folder.pid(driverName), s.chromium.folder.pid(chromiumName))
	if len(way.helpers) == 0 || !way.look().known || way.look().stopped {
		t.Errorf("%+v: %+v", way, way.look())
	}
	spinning := spin(t, 1)[0]
	way = newAnswerWay(spinning, spinning)
	for began := way.look(); !way.look().busy || way.look().used <= began.used; {
		runtime.Gosched()
	}
	if err := unix.Kill(spinning, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for !way.look().stopped {
		runtime.Gosched()
	}
	if v := newAnswerWay(0, 0).look(); v.known || v.stopped || v.busy {
		t.Errorf("of no process: %+v", v)
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
	// Eight weigh like sixty when they go before the browser.
	priority, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	nice := 20 - priority // that is how the kernel answers
	for _, pid := range append(family(t, s.chromium), s.chromium.folder.pid(driverName)) {
		for _, tid := range numbers("/proc/" + strconv.Itoa(pid) + "/task") {
			if err := unix.Setpriority(unix.PRIO_PROCESS, tid, min(nice+9, 19)); err != nil {
				t.Fatal(err)
			}
		}
	}
	spin(t, 8)
	began := s.chromium.asked.Load()
	for s.chromium.asked.Load() < began+4 {
		if _, err := s.Do(context.Background(), agent.Action{Action: "extract", Selector: "body"}); err != nil && agent.ErrorCode(err) != agent.CodeActionTimeout {
			t.Fatal(err)
		}
	}
	must(t, s, `{"action":"evaluate","script":"1","timeout":60000}`)
}
