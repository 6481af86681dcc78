package work

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestNotify announces work of a key that failed: at a time it waits for its backoff,
// unless the key changed.
func TestNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, turns := time.Now(), []time.Duration(nil)
		q := New(Options[string]{
			Backoff: func(int, error) time.Duration { return time.Hour },
			Run: func(context.Context, string) (Next, error) {
				turns = append(turns, time.Since(start))
				return Next{}, errors.New("fails")
			},
		})
		q.Start(t.Context())
		defer q.Stop()
		q.Notify("a", time.Time{}, false)
		q.Notify("a", start.Add(time.Minute), false)
		time.Sleep(2 * time.Minute)
		q.Notify("a", start, false)
		synctest.Wait()
		if len(turns) != 1 || turns[0] != time.Minute {
			t.Fatalf("turns at %v, want one after a minute", turns)
		}
		q.Notify("a", time.Time{}, true)
		synctest.Wait()
		if len(turns) != 2 || turns[1] != 2*time.Minute {
			t.Errorf("turns at %v, want one when the key changed", turns)
		}
	})
}
