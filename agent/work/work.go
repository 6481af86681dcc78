// Package work runs background work. A Queue calls one function for each key
// that has work: fairly, within limits, at scheduled times, and again after a
// failure.
package work

import (
	"context"
	"math"
	"sync"
	"time"
)

// Options configure a queue. Only Run is required.
type Options[K comparable] struct {
	// Run does one turn of a key's work and returns what the key needs next.
	// Its context ends with Stop and with Forget of the key.
	Run func(ctx context.Context, key K) (Next, error)
	// Limit is how many turns run at the same time. The default is 1.
	Limit int
	// Reserved is how many of the slots are for keys of EnqueueFirst only. The default
	// is none; it must be less than Limit.
	Reserved int
	// Group returns the group of a key, a comparable value. Groups with work
	// take turns, so that a group with many keys does not hold up the others.
	// By default every key is its own group.
	Group func(key K) any
	// GroupLimit returns how many turns of a group may run at the same time; 0
	// means only the queue's limit. It is called with the queue locked.
	GroupLimit func(group any) int
	// Backoff returns how long a key waits after a number of consecutive
	// failures, from 1, the last of which is err. The default is one second,
	// doubled with each failure up to a minute.
	Backoff func(failures int, err error) time.Duration
	// Now returns the wall clock time, which EnqueueAt and Next.At refer to.
	// The default is time.Now.
	Now func() time.Time
	// OnError is called after each failed turn, except one cancelled by Stop or
	// Forget.
	OnError func(key K, err error)
}

// Next is what a key needs after a turn. The zero value means nothing.
type Next struct {
	// Again requests another turn, after the keys that are waiting.
	Again bool
	// At requests a turn at a wall clock time.
	At time.Time
	// Rest is the minimum time until the key's next turn, whoever requests it.
	Rest time.Duration
}

// Stats describe the contents of a queue.
type Stats struct {
	// Ready counts keys that wait for a slot, Running turns in progress, and
	// Waiting keys whose time has not come.
	Ready, Running, Waiting int
}

// Queue runs a function for each key. Its methods may be called at any time
// and from turns, before Start and after Stop too. Only Wait and Stop block. The
// queue guarantees:
//
//   - A key has one turn at a time. A key that is enqueued during its own turn
//     has another one after it, so that no announcement is lost. Several
//     announcements of a waiting key are combined.
//   - Groups with work that is due take turns in the order in which it became
//     due, and so do the keys of a group. Turns that EnqueueFirst requested come
//     before all others, in the same order.
//   - Turns within Limit and GroupLimit run at once. A turn that called Release
//     no longer counts. TryBegin never overtakes keys that wait for the same slot.
//   - A turn that fails, or panics, is repeated after Backoff. Enqueue does not
//     shorten that time, Retry does. Success ends the count of failures.
//   - Times follow the wall clock, even if it is set, then within half a minute.
//     Backoff and rest are elapsed time.
//   - A key without work uses no memory.
type Queue[K comparable] struct {
	options Options[K]

	mu       sync.Mutex // protects everything below
	entries  map[K]*entry[K]
	groups   map[any]*group[K]
	ready    [ranks]list[*group[K]] // groups that have a ready key of the rank and are below their limit
	timeline timeline[K]
	timer    *time.Timer
	timerAt  time.Time     // when timer fires; zero when it is not set
	epoch    time.Time     // when the queue was made
	offset   time.Duration // of the wall clock, from the time elapsed since epoch
	readyLen int
	running  int             // turns that hold a slot
	turns    *sync.WaitGroup // goroutines that run turns since the last Start
	started  bool
	base     context.Context
	cancel   context.CancelFunc
}

// New returns a queue that collects keys and runs none before Start.
func New[K comparable](options Options[K]) *Queue[K] {
	options.Limit = max(options.Limit, 1)
	if options.Group == nil {
		options.Group = func(key K) any { return key }
	}
	if options.GroupLimit == nil {
		options.GroupLimit = func(any) int { return 0 }
	}
	if options.Backoff == nil {
		options.Backoff = Exponential(time.Second, time.Minute)
	}
	if options.OnError == nil {
		options.OnError = func(K, error) {}
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	q := &Queue[K]{
		options: options,
		entries: map[K]*entry[K]{},
		groups:  map[any]*group[K]{},
		epoch:   time.Now(),
	}
	q.offset = q.clockOffset()
	return q
}

// Exponential returns a backoff that starts with first and doubles with each
// failure, up to last.
func Exponential(first, last time.Duration) func(failures int, _ error) time.Duration {
	return func(failures int, _ error) time.Duration {
		d := float64(first) * math.Pow(2, float64(failures-1))
		return time.Duration(min(d, float64(last)))
	}
}

// Start runs turns until Stop is called or ctx ends. It does nothing if the
// queue is already started.
func (q *Queue[K]) Start(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.started {
		return
	}
	q.started = true
	q.turns = new(sync.WaitGroup)
	q.base, q.cancel = context.WithCancel(ctx)
	base := q.base
	context.AfterFunc(base, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.base == base {
			q.halt()
		}
	})
	q.fill()
	q.arm()
}

// Stop cancels the running turns, waits for them to return, and runs no more.
// Keys with work stay in the queue for the next Start. It must not be called
// from a turn.
func (q *Queue[K]) Stop() {
	q.mu.Lock()
	q.halt()
	turns := q.turns
	q.mu.Unlock()
	if turns != nil {
		turns.Wait()
	}
}

func (q *Queue[K]) halt() {
	if !q.started {
		return
	}
	q.started = false
	q.cancel()
	if q.timer != nil {
		q.timer.Stop()
		q.timerAt = time.Time{}
	}
}

// Enqueue requests a turn of a key as soon as there is a slot.
func (q *Queue[K]) Enqueue(key K) {
	q.EnqueueAt(key, longAgo)
}

// EnqueueFirst is like Enqueue, but the turn precedes those requested by the
// other methods, because a caller waits for it. If the key is already waiting,
// its turn is brought forward.
func (q *Queue[K]) EnqueueFirst(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entry(key)
	if !e.first {
		q.removeReady(e)
		e.first = true
	}
	q.schedule(e, longAgo)
	q.fill()
	q.arm()
}

// EnqueueAt requests a turn of a key at a wall clock time, or immediately if
// that has passed. An earlier request remains. The zero time does nothing.
func (q *Queue[K]) EnqueueAt(key K, at time.Time) {
	if at.IsZero() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.schedule(q.entry(key), at)
	q.fill()
	q.arm()
}

// Retry is like Enqueue but ends the key's backoff. It is for keys of which something
// changed, or when a person asks.
func (q *Queue[K]) Retry(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entry(key)
	e.failures, e.retryAt = 0, time.Time{}
	q.schedule(e, longAgo)
	q.fill()
	q.arm()
}

// Notify announces that a key has work at a time; the zero time announces none. If
// something changed about the key, it is retried immediately instead.
func (q *Queue[K]) Notify(key K, at time.Time, changed bool) {
	if changed {
		q.Retry(key)
	} else {
		q.EnqueueAt(key, at)
	}
}

// Forget drops a key and cancels its turn if one is running. Wait returns when
// that turn has ended.
func (q *Queue[K]) Forget(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	if e == nil {
		return
	}
	q.unschedule(e)
	e.failures, e.retryAt, e.restUntil = 0, time.Time{}, time.Time{}
	if e.turn == nil {
		q.remove(e)
		return
	}
	e.turn.forgotten = true
	e.turn.cancel()
}

// Wait returns when a key has no turn that is running or due, or with the error
// of ctx. A turn held back by Rest is due; one that waits for a time or for the
// end of a backoff is not. Before Start no turn runs.
func (q *Queue[K]) Wait(ctx context.Context, key K) error {
	for {
		q.mu.Lock()
		e := q.entries[key]
		if e == nil || !q.isBusy(e) {
			q.mu.Unlock()
			return ctx.Err()
		}
		if e.idle == nil {
			e.idle = make(chan struct{})
		}
		idle := e.idle
		q.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Busy reports whether a key has a turn that is running or due.
func (q *Queue[K]) Busy(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	return e != nil && q.isBusy(e)
}

// Keys returns the keys of a group that are running, waiting or resting.
func (q *Queue[K]) Keys(group any) (keys []K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if g := q.groups[group]; g != nil {
		for e := g.entries.first; e != nil; e = e.next {
			keys = append(keys, e.value.key)
		}
	}
	return keys
}

// Stats returns the current contents of the queue.
func (q *Queue[K]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Stats{
		Ready:   q.readyLen,
		Running: q.running,
		Waiting: len(q.timeline),
	}
}
