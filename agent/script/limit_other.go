//go:build !linux

package script

import (
	"os"
	"runtime/metrics"
	"syscall"
	"time"
)

func childExecutable() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// keepFilesHere does nothing: Go marks the files that it opens.
func keepFilesHere() {}

// childAttributes is nil: a child ends when its standard input does.
func childAttributes() *syscall.SysProcAttr { return nil }

// limitProcess does nothing: the engine's limits and the parent's clock bound
// a child.
func limitProcess() {}

// giveWay does nothing here.
func giveWay(int) {}

// residentBytes is the memory that Go holds; what the engine holds, it bounds
// by itself.
func residentBytes() uint64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// processorTime is not known here; a child stops after maxRuns scripts.
func processorTime() time.Duration { return 0 }
