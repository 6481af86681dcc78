//go:build !linux

package child

import (
	"os"
	"runtime/metrics"
	"syscall"
	"time"
)

func executable() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// closeOnExec does nothing: Go marks the files that it opens.
func closeOnExec() {}

// attributes returns nil: a child exits when its standard input ends.
func attributes() *syscall.SysProcAttr { return nil }

// apply does nothing: WatchMemory and the parent's timeout limit a child.
func (l Limits) apply() {}

// LowerPriority does nothing on this system.
func LowerPriority(int) {}

// Memory returns the bytes of memory that Go uses.
func Memory() uint64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// ProcessorTime returns 0: it is unknown on this system.
func ProcessorTime() time.Duration { return 0 }
