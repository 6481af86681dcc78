package work

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTurns(t *testing.T) {
	t.Run("a key enqueued during its turn has another", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var turns int
			var q *Queue[string]
			q = New(Options[string]{Run: func(context.Context, string) (Next, error) {
				if turns++; turns == 1 {
					q.Enqueue("a")
					q.Enqueue("a")
				}
				return Next{}, nil
			}})
			run(t, q)
			q.Enqueue("a")
			synctest.Wait()
			equal(t, turns, 2)
			equal(t, len(q.entries)+len(q.groups), 0)
		})
	})
	t.Run("keys enqueued before Start run after it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{}
			q := New(Options[string]{Run: r.run})
			q.Enqueue("a")
			q.EnqueueAt("b", time.Now().Add(time.Second))
			run(t, q)
			pass(time.Minute)
			equal(t, r.keys(), []string{"a", "b"})
		})
	})
	t.Run("Again runs after the other keys", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{next: map[string][]Next{"a": {{Again: true}}}}
			q := New(Options[string]{Run: r.run})
			q.Enqueue("a")
			q.Enqueue("b")
			run(t, q)
			synctest.Wait()
			equal(t, r.keys(), []string{"a", "b", "a"})
		})
	})
	t.Run("at the earliest requested time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			r := &recorder{}
			q := New(Options[string]{Run: r.run})
			run(t, q)
			q.EnqueueAt("a", start.Add(time.Hour))
			q.EnqueueAt("a", start.Add(2*time.Hour))
			q.EnqueueAt("b", start.Add(3*time.Hour))
			q.EnqueueAt("b", start.Add(time.Minute))
			q.EnqueueAt("c", time.Time{})
			pass(5 * time.Hour)
			equal(t, r.times(start), []string{"b 1m0s", "a 1h0m0s"})
		})
	})
	t.Run("Rest delays Enqueue and Retry", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			r := &recorder{next: map[string][]Next{"a": {{Rest: time.Minute}}}}
			q := New(Options[string]{Run: r.run})
			run(t, q)
			q.Enqueue("a")
			synctest.Wait()
			q.Enqueue("a")
			q.Retry("a")
			pass(time.Hour)
			equal(t, r.times(start), []string{"a 0s", "a 1m0s"})
			equal(t, len(q.entries), 0)
		})
	})
}

func TestFailures(t *testing.T) {
	fail := errors.New("no")
	t.Run("are retried with growing delays", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			var failed int
			r := &recorder{errs: []error{fail, fail, fail}}
			q := New(Options[string]{Run: r.run, OnError: func(string, error) { failed++ }})
			run(t, q)
			q.Enqueue("a")
			pass(1500 * time.Millisecond)
			q.Enqueue("a") // does not shorten the backoff
			pass(time.Hour)
			equal(t, r.times(start), []string{"a 0s", "a 1s", "a 3s", "a 7s"})
			equal(t, failed, 3)
		})
	})
	t.Run("Retry does not wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			r := &recorder{errs: []error{fail, fail}}
			q := New(Options[string]{Run: r.run})
			run(t, q)
			q.Enqueue("a")
			pass(100 * time.Millisecond)
			q.Retry("a")
			pass(time.Hour)
			equal(t, r.times(start), []string{"a 0s", "a 100ms", "a 1.1s"})
		})
	})
	t.Run("a panic is a failure", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var failures []string
			var turns int
			q := New(Options[string]{
				Run: func(context.Context, string) (Next, error) {
					if turns++; turns == 1 {
						panic("broken")
					}
					return Next{}, nil
				},
				OnError: func(_ string, err error) { failures = append(failures, err.Error()[:13]) },
			})
			run(t, q)
			q.Enqueue("a")
			pass(time.Minute)
			equal(t, failures, []string{"panic: broken"})
			equal(t, turns, 2)
		})
	})
	t.Run("the backoff has a maximum", func(t *testing.T) {
		backoff := Exponential(time.Second, time.Minute)
		equal(
			t,
			[]time.Duration{backoff(1, fail), backoff(6, fail), backoff(7, fail), backoff(5000, fail)},
			[]time.Duration{time.Second, 32 * time.Second, time.Minute, time.Minute},
		)
	})
}

func TestFairness(t *testing.T) {
	t.Run("groups take turns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{}
			q := New(Options[string]{Run: r.run, Group: firstLetter})
			for _, key := range []string{"a1", "a2", "a3", "b1", "c1", "c2"} {
				q.Enqueue(key)
			}
			run(t, q)
			synctest.Wait()
			equal(t, r.keys(), []string{"a1", "b1", "c1", "a2", "c2", "a3"})
		})
	})
	t.Run("a group at its limit does not block others", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{block: make(chan struct{})}
			q := New(Options[string]{Run: r.run, Limit: 4, Group: firstLetter, GroupLimit: func(any) int { return 2 }})
			run(t, q)
			for _, key := range []string{"a1", "a2", "a3", "a4", "b1"} {
				q.Enqueue(key)
			}
			synctest.Wait()
			equal(t, sorted(r.keys()), []string{"a1", "a2", "b1"})
			equal(t, q.Stats(), Stats{Ready: 2, Running: 3})
			equal(t, sorted(q.Keys(firstLetter("a"))), []string{"a1", "a2", "a3", "a4"})
			close(r.block)
			synctest.Wait()
			equal(t, len(r.keys()), 5)
			equal(t, len(q.Keys(firstLetter("a"))), 0)
		})
	})
	t.Run("EnqueueFirst comes first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{}
			q := New(Options[string]{Run: r.run, Group: firstLetter})
			for _, key := range []string{"a1", "a2", "b1", "a3"} {
				q.Enqueue(key)
			}
			q.EnqueueAt("c1", time.Now().Add(time.Hour))
			for _, key := range []string{"a3", "c1", "a3", "d1"} {
				q.EnqueueFirst(key)
			}
			q.Enqueue("d1") // keeps its place
			run(t, q)
			pass(2 * time.Hour)
			equal(t, r.keys(), []string{"a3", "c1", "d1", "a1", "b1", "a2"})
			equal(t, len(q.entries)+len(q.groups), 0)
		})
	})
	t.Run("once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{
				block: make(chan struct{}),
				next:  map[string][]Next{"a": {{Again: true}}, "b": {{Again: true}}},
			}
			q := New(Options[string]{Run: r.run})
			run(t, q)
			q.Enqueue("a")
			synctest.Wait()
			q.Enqueue("b")
			q.EnqueueFirst("a") // during its turn: the next one comes first
			q.EnqueueFirst("gone")
			q.Forget("gone")
			q.Enqueue("gone")
			close(r.block)
			synctest.Wait()
			equal(t, r.keys(), []string{"a", "a", "b", "gone", "b"})
		})
	})
	t.Run("slots are reserved for EnqueueFirst", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{block: make(chan struct{})}
			q := New(Options[string]{Run: r.run, Limit: 4, Reserved: 2, GroupLimit: func(any) int { return 1 }})
			run(t, q)
			for _, key := range []string{"a", "b", "c"} {
				q.Enqueue(key)
			}
			synctest.Wait()
			equal(t, sorted(r.keys()), []string{"a", "b"})
			for _, key := range []string{"d", "e", "f"} {
				q.EnqueueFirst(key)
			}
			synctest.Wait()
			equal(t, sorted(r.keys()), []string{"a", "b", "d", "e"})
			equal(t, q.Stats(), Stats{Ready: 2, Running: 4})
			close(r.block)
			synctest.Wait()
			equal(t, len(r.keys()), 6)
		})
	})
	t.Run("a turn releases its slot early", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{block: make(chan struct{}), release: true}
			q := New(Options[string]{Run: r.run, Group: firstLetter, GroupLimit: func(any) int { return 1 }})
			run(t, q)
			for _, key := range []string{"a1", "a2", "a1"} {
				q.Enqueue(key)
			}
			synctest.Wait()
			q.Enqueue("a1") // already has a turn
			synctest.Wait()
			equal(t, r.keys(), []string{"a1", "a2"})
			equal(t, q.Stats().Running, 0)
			close(r.block)
			synctest.Wait()
			equal(t, r.keys(), []string{"a1", "a2", "a1"})
		})
	})
}

func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cancelled, failed atomic.Int32
		q := New(Options[string]{
			Run: func(ctx context.Context, key string) (Next, error) {
				<-ctx.Done()
				cancelled.Add(1)
				return Next{Again: true}, ctx.Err()
			},
			OnError: func(string, error) { failed.Add(1) },
		})
		run(t, q)
		q.Enqueue("running")
		q.Enqueue("ready")
		q.EnqueueAt("later", time.Now().Add(time.Hour))
		synctest.Wait()
		for _, key := range []string{"ready", "later", "unknown", "running"} {
			q.Forget(key)
		}
		if err := q.Wait(t.Context(), "running"); err != nil {
			t.Fatal(err)
		}
		equal(t, []int32{cancelled.Load(), failed.Load()}, []int32{1, 0})
		equal(t, len(q.entries)+len(q.groups)+len(q.timeline), 0)
	})
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns atomic.Int32
		q := New(Options[string]{Run: func(ctx context.Context, key string) (Next, error) {
			if turns.Add(1) > 1 {
				return Next{}, nil
			}
			<-ctx.Done()
			return Next{}, ctx.Err()
		}})
		q.Stop()
		q.Start(t.Context())
		q.Start(t.Context())
		q.Enqueue("a")
		synctest.Wait()
		q.Stop()
		q.Stop()
		q.Enqueue("b")
		synctest.Wait()
		equal(t, turns.Load(), 1)
		run(t, q) // runs the cancelled key and the new one
		synctest.Wait()
		equal(t, turns.Load(), 3)
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{
			block: make(chan struct{}),
			next:  map[string][]Next{"a": {{Again: true}, {At: time.Now().Add(time.Hour)}}},
		}
		q := New(Options[string]{Run: r.run})
		run(t, q)
		q.Enqueue("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		equal(t, q.Wait(ctx, "a"), context.DeadlineExceeded)
		equal(t, q.Busy("a"), true)
		close(r.block)
		equal(t, q.Wait(t.Context(), "a"), nil)
		equal(t, r.keys(), []string{"a", "a"}) // the turn in an hour is not waited for
		equal(t, q.Busy("a"), false)
		equal(t, q.Wait(t.Context(), "unknown"), nil)
		r.next["rests"] = []Next{{Rest: time.Minute}}
		q.Enqueue("rests")
		equal(t, q.Wait(t.Context(), "rests"), nil)
		q.Enqueue("rests") // and is delayed
		equal(t, q.Wait(t.Context(), "rests"), nil)
		equal(t, r.keys()[2:], []string{"rests", "rests"})
	})
}

func TestClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var ahead atomic.Int64
		r := &recorder{errs: []error{nil, errors.New("no")}}
		q := New(Options[string]{
			Run:     r.run,
			Now:     func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
			Backoff: func(int, error) time.Duration { return 10 * time.Minute },
		})
		run(t, q)
		q.EnqueueAt("noon", start.Add(12*time.Hour))
		q.EnqueueAt("midnight", start.Add(24*time.Hour))
		pass(time.Minute + time.Second)
		ahead.Store(int64(12 * time.Hour)) // noon is reached, and the turn fails
		pass(time.Minute)
		equal(t, r.times(start), []string{"noon 1m30s"})
		r.mu.Lock()
		r.errs = []error{errors.New("no")}
		r.mu.Unlock()
		q.Enqueue("fails")
		pass(time.Minute)
		ahead.Store(int64(-48 * time.Hour)) // set back: backoff is elapsed time
		pass(20 * time.Minute)
		equal(t, len(r.keys()), 3)
		equal(t, q.Stats().Waiting, 1) // midnight
	})
}

// TestStress calls all methods from many goroutines and checks the queue's guarantees.
// It is most useful under the race detector.
func TestStress(t *testing.T) {
	const keys, actors, actions = 50, 8, 2000
	var running [keys]atomic.Int32
	var enqueued, served [keys]atomic.Int64
	var total atomic.Int32
	q := New(Options[int]{
		Limit:      4,
		Reserved:   1,
		Group:      func(k int) any { return k % 7 },
		GroupLimit: func(any) int { return 2 },
		Backoff:    func(int, error) time.Duration { return time.Millisecond },
		Run: func(ctx context.Context, k int) (Next, error) {
			if n := running[k].Add(1); n != 1 {
				t.Errorf("key %d has %d concurrent turns", k, n)
			}
			defer running[k].Add(-1)
			if n := total.Add(1); n > 4 {
				t.Errorf("%d concurrent turns", n)
			}
			served[k].Store(enqueued[k].Load())
			total.Add(-1)
			switch rand.IntN(8) {
			case 0:
				Release(ctx)
			case 1:
				return Next{}, errors.New("failed")
			case 2:
				return Next{Rest: time.Millisecond}, nil
			}
			return Next{}, nil
		},
	})
	var actorsDone sync.WaitGroup
	for range actors {
		actorsDone.Go(func() {
			for range actions {
				k := rand.IntN(keys)
				switch rand.IntN(20) {
				case 0:
					q.Stop()
				case 1, 2:
					q.Start(t.Context())
				case 3:
					q.Forget(k)
				case 4:
					q.Retry(k)
				case 5, 6:
					q.EnqueueFirst(k)
				case 7:
					if end, ok := q.TryBegin(k); ok {
						if n := running[k].Add(1); n != 1 {
							t.Errorf("key %d has %d concurrent turns", k, n)
						}
						running[k].Add(-1)
						end(Next{Again: true}, nil)
					}
				default:
					q.EnqueueAt(k, time.Now().Add(time.Duration(rand.IntN(3))*time.Millisecond))
				}
			}
		})
	}
	actorsDone.Wait()
	q.Start(t.Context())
	defer q.Stop()
	for k := range keys {
		enqueued[k].Add(1)
		if k%2 == 0 {
			q.EnqueueFirst(k)
		} else {
			q.Enqueue(k)
		}
	}
	for k := range keys {
		for served[k].Load() != enqueued[k].Load() {
			if err := q.Wait(t.Context(), k); err != nil {
				t.Fatal(err)
			}
			q.Retry(k)
		}
	}
}

func BenchmarkTurn(b *testing.B) {
	for _, keys := range []int{1, 1000, 100000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			var left atomic.Int64
			done := make(chan struct{})
			q := New(Options[int]{Limit: 2, Run: func(context.Context, int) (Next, error) {
				switch left.Add(-1) {
				case 0:
					close(done)
				}
				return Next{Again: true}, nil
			}})
			left.Store(int64(b.N))
			for k := range keys {
				q.Enqueue(k)
			}
			b.ResetTimer()
			q.Start(b.Context())
			<-done
			b.StopTimer()
			q.Stop()
		})
	}
}

// recorder is a Run function that records its calls.
type recorder struct {
	next    map[string][]Next // results of each key's turns
	errs    []error           // errors of the first turns
	block   chan struct{}
	release bool

	mu    sync.Mutex
	calls []string
	at    []time.Time
}

func (r *recorder) run(ctx context.Context, key string) (next Next, err error) {
	r.mu.Lock()
	r.calls, r.at = append(r.calls, key), append(r.at, time.Now())
	if n := r.next[key]; len(n) > 0 {
		next, r.next[key] = n[0], n[1:]
	}
	if len(r.errs) > 0 {
		err, r.errs = r.errs[0], r.errs[1:]
	}
	r.mu.Unlock()
	if r.release {
		Release(ctx)
	}
	if r.block != nil {
		<-r.block
	}
	return next, err
}

func (r *recorder) keys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

func (r *recorder) times(start time.Time) (times []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, key := range r.calls {
		times = append(times, fmt.Sprint(key, " ", r.at[i].Sub(start)))
	}
	return times
}

func run[K comparable](t *testing.T, q *Queue[K]) {
	q.Start(t.Context())
	t.Cleanup(q.Stop)
}

// pass advances the fake clock by d and waits until all goroutines are blocked.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func firstLetter(key string) any { return key[0] }

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("got %s, want %s", g, w)
	}
}

// TestEndOfStartContext: once the context of Start has ended, a key whose turn
// was cancelled is not run again.
func TestEndOfStartContext(t *testing.T) {
	for range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		var turns atomic.Int64
		q := New(Options[int]{Limit: 1, Run: func(ctx context.Context, _ int) (Next, error) {
			turns.Add(1)
			<-ctx.Done()
			return Next{}, ctx.Err()
		}})
		q.Start(ctx)
		q.Enqueue(1)
		cancel()
		q.Stop()
		if n := turns.Load(); n > 1 {
			t.Fatalf("%d turns", n)
		}
	}
}
