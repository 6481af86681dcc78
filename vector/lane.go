package vector

import (
	"context"
	"sync"
	"time"

	"satchel/store"
)

// state tells where an agent's work stands. An agent at rest has no work.
type state int

const (
	queued   state = iota // in a lane
	running               // a goroutine has it: only one at a time
	waiting               // failed; is tried again at retryAt
	disabled              // the agent is disabled
)

// workKey names the work of an agent: on this machine, or over the network.
// The two go on side by side.
type workKey struct {
	db     *store.DB
	remote bool
}

// work is the state of one agent's work that is not at rest.
type work struct {
	workKey
	state    state
	again    bool // kicked while running
	failures int  // in a row
	retryAt  time.Time
	rested   chan struct{} // closed when the agent comes to rest
}

// lane is a queue of agents. Its fields are guarded by Index.mu.
type lane struct {
	queue []*work
	ready sync.Cond
}

// kick queues an agent; the caller holds ix.mu, as for all below but serve.
func (ix *Index) kick(db *store.DB) {
	ix.kickOne(workKey{db, false})
	ix.kickOne(workKey{db, true})
}

func (ix *Index) kickOne(key workKey) {
	w := ix.work[key]
	if w == nil {
		w = &work{workKey: key, state: waiting, rested: make(chan struct{})}
		ix.work[key] = w
	}
	switch w.state {
	case running:
		w.again = true
	case waiting, disabled:
		ix.enqueue(w, ix.home(w))
	}
}

// home is the lane of work whose next step is not known.
func (ix *Index) home(w *work) *lane {
	if w.remote {
		return &ix.remote
	}
	return &ix.general
}

func (ix *Index) enqueue(w *work, l *lane) {
	w.state, w.again = queued, false
	l.queue = append(l.queue, w)
	l.ready.Signal()
}

// rest ends an agent's turns, until a kick or a sweep when it is parked in a
// state, else for good. A kick that came meanwhile gives it another turn.
func (ix *Index) rest(w *work) {
	if w.again {
		ix.enqueue(w, ix.home(w))
		return
	}
	if w.state == running {
		delete(ix.work, w.workKey)
	}
	close(w.rested)
	w.rested = make(chan struct{})
}

// wakeAll lets goroutines that wait for work see that their context ended.
func (ix *Index) wakeAll() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.reading.ready.Broadcast()
	ix.general.ready.Broadcast()
	ix.remote.ready.Broadcast()
}

// serve gives turns to the agents of a lane until ctx ends.
func (ix *Index) serve(ctx context.Context, l *lane) {
	for {
		w := ix.take(ctx, l)
		if w == nil {
			return
		}
		if w.remote {
			ix.end(ctx, w, ix.callOnce(ctx, w.db))
		} else {
			ix.end(ctx, w, ix.runOnce(ctx, w.db, l == &ix.reading))
		}
	}
}

// take waits for the next agent of a lane; nil means that ctx has ended.
func (ix *Index) take(ctx context.Context, l *lane) *work {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for ctx.Err() == nil {
		if len(l.queue) > 0 {
			w := l.queue[0]
			l.queue = l.queue[1:]
			w.state = running
			return w
		}
		l.ready.Wait()
	}
	return nil
}

// outcome is what a turn came to.
type outcome int

const (
	more    outcome = iota // there is, or may be, more to do
	toRead                 // the next step is to read a document
	nothing                // nothing is left, or the agent is gone
	failed                 // the store or a provider failed; try again later
	stopped                // the agent is disabled
)

// The wait after a failure, which doubles with each one in a row.
const (
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
)

// end puts an agent where its turn leads it.
func (ix *Index) end(ctx context.Context, w *work, o outcome) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ctx.Err() != nil {
		o = more // what was cut goes on after the next Start
	}
	if o != failed {
		w.failures = 0
	}
	switch o {
	case more:
		ix.enqueue(w, ix.home(w))
	case toRead:
		ix.enqueue(w, &ix.reading)
	case failed:
		w.retryAt = time.Now().Add(min(firstRetry<<min(w.failures, 10), lastRetry))
		w.failures++
		w.state = waiting
		ix.rest(w)
	case stopped:
		w.state = disabled
		ix.rest(w)
	case nothing:
		ix.rest(w)
	}
}
