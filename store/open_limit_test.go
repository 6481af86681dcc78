package store

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"satchel/agent"
)

// A server refuses a limit of open files that it cannot work within, and opens no more
// agents' files than the limit allows.
func TestLimitOfOpenFiles(t *testing.T) {
	for limit, want := range map[int64]bool{64: false, 128: false, 255: false, 256: true, 1024: true, 0: true} {
		if err := checkDescriptors(limit); (err == nil) != want ||
			err != nil && !strings.Contains(err.Error(), fmt.Sprint(limit, " files")) {
			t.Errorf("%d: %v", limit, err)
		}
	}
	for limit, want := range map[int64]int{0: 2000, 100: 1, 256: 16, 1024: 112, 1 << 20: 2000} {
		if got := withinDescriptors(2000, limit); got != want {
			t.Errorf("%d: %d files, want %d", limit, got, want)
		}
	}
	err := explain(fmt.Errorf("open: %w", syscall.EMFILE))
	wantCode(t, err, agent.CodeUnavailable)
}
