package browser

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// probe determines whether the processes that handle a heartbeat have any work.
type probe struct {
	main    []int // the driver and Chromium
	helpers []int // started by Chromium: its network and GPU processes, for which it may wait
}

func newProbe(driver, chromium int) *probe {
	p := &probe{main: []int{driver, chromium}}
	for _, pid := range numericEntries("/proc") {
		if t, ok := readThread("/proc/" + strconv.Itoa(pid) + "/stat"); ok && t.parent == chromium {
			p.helpers = append(p.helpers, pid)
		}
	}
	return p
}

// busy reports whether a thread of the processes is running, or waits for a
// processor or a disk, so that the answer may merely be late. It is false if
// the driver or Chromium is stopped by a signal or a debugger, and true if the
// processes cannot be inspected.
func (p *probe) busy() bool {
	seen := false
	for _, pid := range p.main {
		t, ok := readThread("/proc/" + strconv.Itoa(pid) + "/stat")
		if ok && (t.state == 'T' || t.state == 't') {
			return false
		}
		seen = seen || ok
	}
	return !seen || slices.ContainsFunc(slices.Concat(p.main, p.helpers), isBusy)
}

// isBusy reports whether a thread of a process is running, or waits for a
// processor or a disk.
func isBusy(pid int) bool {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	for _, tid := range numericEntries(tasks) {
		if t, ok := readThread(tasks + "/" + strconv.Itoa(tid) + "/stat"); ok && (t.state == 'R' || t.state == 'D') {
			return true
		}
	}
	return false
}

// numericEntries returns the numeric names in a folder.
func numericEntries(folder string) (out []int) {
	f, err := os.Open(folder)
	if err != nil {
		return nil // the process has ended
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // whatever was read is all there is
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// endLargePages ends the processes of pages of a Chromium that have more than limit
// bytes in memory, and returns their ids. Chromium and its processes are one group.
func endLargePages(chromium int, limit int64) (ended []int) {
	for _, pid := range numericEntries("/proc") {
		path := "/proc/" + strconv.Itoa(pid)
		t, ok := readThread(path + "/stat")
		if !ok || t.group != chromium || t.pages*int64(os.Getpagesize()) <= limit {
			continue
		}
		command, _ := os.ReadFile(path + "/cmdline") // empty if it has ended
		if bytes.Contains(command, []byte("--type=renderer")) && unix.Kill(pid, unix.SIGKILL) == nil {
			ended = append(ended, pid)
		}
	}
	return ended
}

// thread is a part of a line of proc_pid_stat(5).
type thread struct {
	state         byte
	parent, group int
	pages         int64 // in memory, of its process
}

func readThread(path string) (t thread, ok bool) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return t, false
	}
	return parseThread(raw)
}

func parseThread(raw []byte) (t thread, ok bool) {
	// The name before it may contain anything.
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) < 22 {
		return t, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	group, err2 := strconv.Atoi(string(fields[2]))
	pages, err3 := strconv.ParseInt(string(fields[21]), 10, 64)
	return thread{fields[0][0], parent, group, pages}, errors.Join(err, err2, err3) == nil
}
