//go:build !linux

package browser

import (
	"testing"
	"time"
)

// waitExit waits until a process has exited.
func waitExit(t *testing.T, pid int) {
	t.Helper()
	for tick := time.NewTicker(10 * time.Millisecond); running(pid); {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("process %d is still running", pid)
		}
	}
}
