// Package worktest tests packages that do background work with a queue of agent/work.
package worktest

import (
	"context"
	"sync"
	"testing"
)

// Part does background work.
type Part interface {
	Start(context.Context) error
	Stop()
}

// Limits of a Stress.
const (
	callers = 4  // goroutines that start and stop the part
	rounds  = 10 // of each
)

// Stress starts and stops a part from several goroutines at once, including Stop
// before the first Start and calls twice in a row, while it calls add with each number
// below count in turn to cause work. Then it starts the part for good: the caller checks
// that all work is done, each piece as often as the part promises. It is most useful
// under the race detector.
func Stress(t *testing.T, part Part, count int, add func(i int)) {
	t.Helper()
	start := func() {
		if err := part.Start(context.Background()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(part.Stop)
	part.Stop()
	var running sync.WaitGroup
	running.Go(func() {
		for i := range count {
			add(i)
		}
	})
	for range callers {
		running.Go(func() {
			for range rounds {
				start()
				part.Stop()
			}
		})
	}
	running.Wait()
	part.Stop()
	start()
	start()
}
