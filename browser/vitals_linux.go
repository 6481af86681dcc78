package browser

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// answerWay are the processes that a sign of life passes through.
type answerWay struct {
	driver, chromium int
	helpers          []int                 // what Chromium started itself: its network and its graphics, for which it may wait
	began            map[int]time.Duration // processor time of the main threads at the first look
}

// clockTick is the unit of processor times in /proc: see sysconf(_SC_CLK_TCK),
// which is 100 on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

func newAnswerWay(driver, chromium int) *answerWay {
	w := &answerWay{driver: driver, chromium: chromium, began: map[int]time.Duration{}}
	for _, pid := range numbers("/proc") {
		if t, ok := readThread("/proc/" + strconv.Itoa(pid) + "/stat"); ok && t.parent == chromium {
			w.helpers = append(w.helpers, pid)
		}
	}
	return w
}

// look sees how the processes are now.
func (w *answerWay) look() vitals {
	var v vitals
	for _, pid := range []int{w.driver, w.chromium} {
		main, ok := readThread("/proc/" + strconv.Itoa(pid) + "/stat")
		if !ok {
			continue
		}
		v.known = true
		v.stopped = v.stopped || main.state == 'T'
		// The process's own line counts all of its threads' time.
		if main, ok = readThread("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(pid) + "/stat"); ok {
			if _, seen := w.began[pid]; !seen {
				w.began[pid] = main.used
			}
			v.used = max(v.used, main.used-w.began[pid])
		}
	}
	for _, pid := range append([]int{w.driver, w.chromium}, w.helpers...) {
		v.busy = v.busy || busy(pid, 0)
	}
	runtime.LockOSThread() // this thread runs for certain
	defer runtime.UnlockOSThread()
	v.own = busy(os.Getpid(), unix.Gettid())
	return v
}

// busy reports whether a thread of a process, but for one, runs or waits for a
// processor or a disk.
func busy(pid, but int) bool {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	for _, tid := range numbers(tasks) {
		t, ok := readThread(tasks + "/" + strconv.Itoa(tid) + "/stat")
		if ok && tid != but && (t.state == 'R' || t.state == 'D') {
			return true
		}
	}
	return false
}

// numbers are the entries of a folder whose names are numbers.
func numbers(folder string) (out []int) {
	f, err := os.Open(folder)
	if err != nil {
		return nil // the process has ended
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // what could be read is all that is there
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// thread is a line of proc_pid_stat(5).
type thread struct {
	state  byte
	parent int
	used   time.Duration
}

func readThread(path string) (t thread, ok bool) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return t, false
	}
	return parseThread(raw)
}

func parseThread(raw []byte) (t thread, ok bool) {
	// The name before it may hold anything.
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) < 13 {
		return t, false
	}
	t.state = fields[0][0]
	var user, system int
	for i, number := range map[int]*int{1: &t.parent, 11: &user, 12: &system} {
		var err error
		if *number, err = strconv.Atoi(string(fields[i])); err != nil {
			return t, false
		}
	}
	t.used = time.Duration(user+system) * clockTick
	return t, true
}
