package store

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestFewReadsWaitForTheWriter: a read waits for the writer with a few others before it
// opens a connection.
func TestFewReadsWaitForTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for others, want := range []time.Duration{borrowWait, borrowWait, borrowWait, 0} {
			f := &file{running: true, waiting: make([]chan *conn, others)}
			began := time.Now()
			if c := f.borrow(t.Context()); c != nil || time.Since(began) != want {
				t.Errorf("behind %d reads it waited %v, want %v", others, time.Since(began), want)
			}
		}
	})
}
