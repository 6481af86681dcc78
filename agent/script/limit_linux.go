package script

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childExecutable is this program, even after its file was replaced by an
// upgrade.
func childExecutable() string { return "/proc/self/exe" }

// keepFilesHere marks every open file of this process as one that no child
// gets. Go marks its own; this is for those that came from whoever started the
// server. It needs Linux 5.11, and does nothing before.
func keepFilesHere() { _ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) }

// childAttributes has the kernel kill the child when its parent dies, which
// works also for a child that is stuck. The child has a process group of its
// own: Ctrl-C on the terminal is for the server, which then ends its children
// in its own time.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// addressSlack is the room, in bytes, that the Go runtime reserves without
// using it. The limit on the address space only stops what grows too fast for
// the child to watch.
const addressSlack = 512 << 20

// limitProcess puts limits on this process that the kernel enforces.
func limitProcess() {
	if size, _ := memoryPages(); size > 0 && raceMemory == 0 {
		setLimit(syscall.RLIMIT_AS, size+2*MaxMemory+addressSlack)
	}
	setLimit(syscall.RLIMIT_CPU, uint64((2 * maxCPU).Seconds()))
	setLimit(syscall.RLIMIT_CORE, 0)
	setLimit(syscall.RLIMIT_FSIZE, 0)
	giveWay(5)
}

// giveWay lets the rest of the machine go first: the more so, the nearer to 19
// nice is. There is no way back. The process group stands for all threads.
func giveWay(nice int) { _ = syscall.Setpriority(syscall.PRIO_PGRP, 0, nice) }

// setLimit lowers a limit. One that the system already set lower stays.
func setLimit(resource int, value uint64) {
	var now syscall.Rlimit
	if syscall.Getrlimit(resource, &now) == nil && value < now.Max {
		_ = syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value})
	}
}

// memoryPages returns the bytes of address space and of memory in use, 0 when
// unknown.
func memoryPages() (size, resident uint64) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0
	}
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0, 0
	}
	page := uint64(os.Getpagesize())
	size, _ = strconv.ParseUint(string(fields[0]), 10, 64)
	resident, _ = strconv.ParseUint(string(fields[1]), 10, 64)
	return size * page, resident * page
}

// residentBytes is the memory in use, files of the program included.
func residentBytes() uint64 {
	_, resident := memoryPages()
	return resident
}

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
