package work

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// turn is one call of Run. The queue's mutex protects it.
type turn[K comparable] struct {
	queue     *Queue[K]
	entry     *entry[K]
	ctx       context.Context
	cancel    context.CancelFunc
	released  bool // the slot has been released
	forgotten bool
}

type turnKey struct{}

// Release releases the slot of the turn that ctx belongs to before the turn
// ends. The rest of the turn, such as waiting for something that runs
// elsewhere, does not count against the limits. The key still has no other turn
// in the meantime.
func Release(ctx context.Context) {
	if t, ok := ctx.Value(turnKey{}).(interface{ release() }); ok {
		t.release()
	}
}

// fill starts turns while there are slots and ready keys.
func (q *Queue[K]) fill() {
	for q.started {
		rank, may := q.next()
		if !may {
			return
		}
		t := q.begin(rank)
		turns := q.turns
		turns.Go(func() {
			for t != nil {
				t = q.run(t, turns)
			}
		})
	}
}

// next returns the rank of the next turn, if there is a ready key and a slot for it.
func (q *Queue[K]) next() (rank int, may bool) {
	for rank := range ranks {
		limit := q.options.Limit
		if rank != rankFirst {
			limit -= q.options.Reserved
		}
		if q.running < limit && q.ready[rank].len > 0 {
			return rank, true
		}
	}
	return 0, false
}

// begin removes the first key of the next group of a rank from the lists, and moves
// the group to the end.
func (q *Queue[K]) begin(rank int) *turn[K] {
	g := q.ready[rank].first.value
	e := g.ready[rank].first.value
	g.ready[rank].remove(e.element)
	q.ready[rank].remove(g.element[rank])
	e.element, g.element[rank] = nil, nil
	q.readyLen--
	q.running++
	g.running++
	q.updateReadyGroups(g)
	e.due, e.first = time.Time{}, false
	t := &turn[K]{queue: q, entry: e}
	t.ctx, t.cancel = context.WithCancel(context.WithValue(q.base, turnKey{}, t))
	e.turn = t
	return t
}

// TryBegin starts a turn of a key that the caller runs itself, instead of Run,
// if a slot is free and the key has no other work. The caller must call end
// once, with what Run would return. Stop waits for such a turn but does not
// cancel it, nor does Forget.
func (q *Queue[K]) TryBegin(key K) (end func(Next, error), ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	id := q.options.Group(key)
	limit, group := q.options.GroupLimit(id), q.groups[id]
	if !q.started ||
		q.running >= q.options.Limit-q.options.Reserved ||
		q.entries[key] != nil ||
		group != nil && limit > 0 && group.running >= limit {
		return nil, false
	}
	entry := q.entry(key)
	t := &turn[K]{
		queue:  q,
		entry:  entry,
		cancel: func() {},
	}
	entry.turn = t
	q.running++
	entry.group.running++
	q.updateReadyGroups(entry.group)
	turns := q.turns
	turns.Add(1)
	return func(next Next, err error) {
		defer turns.Done()
		if err != nil {
			q.options.OnError(key, err)
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.end(t, next, err, false)
		q.releaseSlot(t)
		q.fill()
		q.arm()
	}, true
}

// run runs a turn and returns the next one for this goroutine, if any.
func (q *Queue[K]) run(turn *turn[K], turns *sync.WaitGroup) *turn[K] {
	next, err := q.call(turn.ctx, turn.entry.key)
	cancelled := turn.ctx.Err() != nil
	if err != nil && !cancelled {
		q.options.OnError(turn.entry.key, err)
	}
	turn.cancel()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.base.Err() != nil {
		q.halt() // the context of Start has ended
	}
	q.end(turn, next, err, cancelled)
	q.releaseSlot(turn)
	defer q.arm()
	rank, may := q.next()
	if !q.started || q.turns != turns || !may {
		return nil
	}
	defer q.fill()
	return q.begin(rank)
}

func (q *Queue[K]) call(ctx context.Context, key K) (next Next, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return q.options.Run(ctx, key)
}

func (t *turn[K]) release() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.queue.releaseSlot(t)
	t.queue.fill()
}

func (q *Queue[K]) releaseSlot(t *turn[K]) {
	if t.released {
		return
	}
	t.released = true
	q.running--
	t.entry.group.running--
	q.updateReadyGroups(t.entry.group)
}

// end ends a turn and records what its key needs next.
func (q *Queue[K]) end(turn *turn[K], next Next, err error, cancelled bool) {
	entry, now := turn.entry, time.Now()
	entry.turn = nil
	switch {
	case turn.forgotten: // requests since then stay
	case err != nil && cancelled: // stopped: the next Start runs it again
		entry.requestTurn(longAgo)
	case err != nil:
		entry.failures++
		entry.retryAt = now.Add(q.options.Backoff(entry.failures, err))
		entry.requestTurn(longAgo)
	default:
		entry.failures, entry.retryAt = 0, time.Time{}
		if next.Rest > 0 {
			entry.restUntil = now.Add(next.Rest)
		}
		if next.Again {
			entry.requestTurn(longAgo)
		}
		entry.requestTurn(next.At)
	}
	q.reschedule(entry)
	if entry.turn == nil && !entry.isReady() {
		entry.signalIdle()
	}
}
