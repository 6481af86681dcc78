package store

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestFewReadsWaitForTheWriter checks that a read waits for the writer's connection with
// a few others before it opens another.
func TestFewReadsWaitForTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for others, want := range []time.Duration{borrowWait, borrowWait, borrowWait, 0} {
			f := &file{running: true, waiting: make([]chan *conn, others)}
			began := time.Now()
			if c := f.acquireWriter(t.Context()); c != nil || time.Since(began) != want {
				t.Errorf("with %d reads waiting it waited %v, want %v", others, time.Since(began), want)
			}
		}
	})
}
