package child

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// executable returns this program, even after its file was replaced by an
// upgrade.
func executable() string { return "/proc/self/exe" }

// closeOnExec marks every open file of this process as close-on-exec. Go
// does that for files it opens; this is for those inherited from whoever
// started the server. It requires Linux 5.11 and does nothing on older kernels.
var closeOnExec = sync.OnceFunc(markOpenFiles)

func markOpenFiles() {
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
}

// attributes makes the kernel kill a child when its parent dies, even if the
// child hangs. A child has its own process group: Ctrl-C in the terminal goes
// to the server, which then stops its children.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// addressSlack is the address space, in bytes, that the Go runtime reserves
// without using it.
const addressSlack = 512 << 20

func (l Limits) apply() {
	// The race detector reserves terabytes of address space.
	if size, _ := memoryPages(); size > 0 && raceMemory == 0 {
		setLimit(syscall.RLIMIT_AS, size+l.Memory+addressSlack)
	}
	setLimit(syscall.RLIMIT_CPU, uint64(l.CPU.Seconds()))
	setLimit(syscall.RLIMIT_CORE, 0)
	setLimit(syscall.RLIMIT_FSIZE, 0)
}

// setLimit lowers a limit. A limit that is already lower stays.
func setLimit(resource int, value uint64) {
	var now syscall.Rlimit
	if syscall.Getrlimit(resource, &now) == nil && value < now.Max {
		_ = syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value})
	}
}

// inheritedNice is the priority with which the process was started, which is that of its
// parent.
var inheritedNice = currentNice()

func currentNice() int {
	const zero = 20 // of what the system call returns, which is never negative
	priority, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	return zero - priority
}

// LowerPriority makes the process's priority lower than its parent's by nice, at most 19.
// It cannot be undone. The process group covers all threads.
func LowerPriority(nice int) {
	_ = syscall.Setpriority(syscall.PRIO_PGRP, 0, min(inheritedNice+nice, 19))
}

// Memory returns the resident memory of this process in bytes, including files
// of the program.
func Memory() uint64 {
	_, resident := memoryPages()
	return resident
}

// openStatm stays open, because a confined child cannot open files.
var openStatm = sync.OnceValues(func() (*os.File, error) {
	return os.Open("/proc/self/statm")
})

// memoryPages returns the bytes of address space and of resident memory, 0 if
// unknown.
func memoryPages() (size, resident uint64) {
	file, err := openStatm()
	if err != nil {
		return 0, 0
	}
	var statm [256]byte
	n, _ := file.ReadAt(statm[:], 0)
	fields := bytes.Fields(statm[:n])
	if len(fields) < 2 {
		return 0, 0
	}
	page := uint64(os.Getpagesize())
	size, _ = strconv.ParseUint(string(fields[0]), 10, 64)
	resident, _ = strconv.ParseUint(string(fields[1]), 10, 64)
	return size * page, resident * page
}

// ProcessorTime returns the processor time that this process has used so far.
func ProcessorTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
