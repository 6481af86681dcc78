package store

import (
	"testing"
	"time"
)

// Memory is released once after a start, and again after work, but not during work nor
// every few seconds.
func TestMemoryIsReleased(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	start := time.Now()
	at := func(after time.Duration) bool {
		before := f.releasedAt
		f.releaseMemory(start.Add(after))
		return f.releasedAt != before
	}
	use := func(after time.Duration) { f.Default().lastUse.Store(start.Add(after).UnixNano()) }
	createContact(t, f.Default(), numberedContact(0))
	for _, step := range []struct {
		after time.Duration
		use   bool
		gives bool
	}{
		{0, true, false},
		{releaseAfter - time.Second, false, false},
		{releaseAfter, false, true},
		{2 * releaseAfter, false, false},
		{2 * keepFor, false, false}, // nothing was done since
		{2*keepFor + time.Second, true, false},
		{2*keepFor + time.Second + releaseAfter, false, true},
		{2*keepFor + 10*time.Second, true, false},
		{2*keepFor + 20*time.Second, false, false}, // too soon
		{3*keepFor + 30*time.Second, false, true},
	} {
		if step.use {
			use(step.after)
		}
		if got := at(step.after); got != step.gives {
			t.Errorf("after %v: releases %v", step.after, got)
		}
	}
}
