package work

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTryBegin(t *testing.T) {
	begin := func(t *testing.T, q *Queue[string], key string, want bool) func(Next, error) {
		t.Helper()
		end, ok := q.TryBegin(key)
		equal(t, ok, want)
		return end
	}
	t.Run("within the limits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{}
			q := New(Options[string]{Run: r.run, Limit: 3, Group: firstLetter, GroupLimit: func(any) int { return 2 }})
			begin(t, q, "a1", false) // not started
			run(t, q)
			end := begin(t, q, "a1", true)
			begin(t, q, "a1", false) // one turn at a time
			defer begin(t, q, "a2", true)(Next{}, nil)
			begin(t, q, "a3", false) // the group's limit
			defer begin(t, q, "b1", true)(Next{}, nil)
			begin(t, q, "b2", false) // the queue's limit
			q.Enqueue("a3")
			synctest.Wait()
			equal(t, r.keys(), nil)
			end(Next{}, nil)
			synctest.Wait()
			equal(t, r.keys(), []string{"a3"})
			begin(t, q, "a1", true)(Next{}, nil)
		})
	})
	t.Run("the next turn runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, start := &recorder{}, time.Now()
			var failed []string
			q := New(Options[string]{
				Run:     r.run,
				Limit:   2,
				OnError: func(key string, _ error) { failed = append(failed, key) },
			})
			run(t, q)
			again, fails := begin(t, q, "a", true), begin(t, q, "b", true)
			q.Enqueue("c")
			again(Next{Again: true}, nil)
			fails(Next{}, errors.New("no"))
			pass(time.Minute)
			equal(t, sorted(r.times(start)), []string{"a 0s", "b 1s", "c 0s"})
			equal(t, failed, []string{"b"})
			equal(t, len(q.entries)+len(q.groups), 0)
		})
	})
	t.Run("Stop waits for the turn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{}
			q := New(Options[string]{Run: r.run})
			run(t, q)
			end := begin(t, q, "a", true)
			var stopped bool
			go func() {
				q.Stop()
				stopped = true
			}()
			synctest.Wait()
			equal(t, stopped, false)
			end(Next{Again: true}, nil)
			synctest.Wait()
			equal(t, stopped, true)
			equal(t, r.keys(), nil)
			q.Start(context.Background())
			synctest.Wait()
			equal(t, r.keys(), []string{"a"})
		})
	})
}
