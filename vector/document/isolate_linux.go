package document

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// childExecutable is this program, even after its file was replaced by an
// upgrade.
func childExecutable() string { return "/proc/self/exe" }

// childAttributes has the kernel kill the child when its parent dies, which
// works also for a child that is stuck.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// addressSlack is the room, in bytes, that the Go runtime reserves without
// using it. The limit on the address space only stops what grows too fast for
// watchMemory.
const addressSlack = 512 << 20

// limitProcess puts limits on this process that the kernel enforces.
func limitProcess(limits Limits) {
	if held := addressSpace(); held > 0 {
		setLimit(syscall.RLIMIT_AS, held+uint64(limits.Memory)+addressSlack)
	}
	// Time of all threads together, of which there may be two for each second.
	setLimit(syscall.RLIMIT_CPU, uint64(2*limits.Time/time.Second)+2)
	setLimit(syscall.RLIMIT_CORE, 0)
	setLimit(syscall.RLIMIT_FSIZE, 0)
}

// setLimit lowers a limit. One that the system already set lower stays.
func setLimit(resource int, value uint64) {
	var now syscall.Rlimit
	if syscall.Getrlimit(resource, &now) == nil && value < now.Max {
		_ = syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value})
	}
}

// addressSpace returns the bytes of address space in use, 0 when unknown.
func addressSpace() uint64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	first, _, _ := bytes.Cut(statm, []byte(" "))
	pages, _ := strconv.ParseUint(string(first), 10, 64)
	return pages * uint64(os.Getpagesize())
}
