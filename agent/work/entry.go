package work

import "time"

// entry is the state of a key that has work, is running, or is resting.
type entry[K comparable] struct {
	key   K
	group *group[K]
	turn  *turn[K] // the key's turn, while it runs

	due       time.Time // when the next turn is due by the wall clock, or zero
	retryAt   time.Time // end of the backoff after a failure, monotonic
	restUntil time.Time // end of the rest that a turn requested, monotonic
	failures  int
	first     bool // EnqueueFirst requested the next turn

	member  *element[*entry[K]] // in the group's list of all entries
	element *element[*entry[K]] // in the group's list of ready entries
	wake    time.Time           // time in the timeline, monotonic
	index   int                 // index in the timeline, from 1; 0 if absent
	idle    chan struct{}       // closed when neither ready nor running
}

// group is a set of keys that share a limit.
type group[K comparable] struct {
	id      any
	entries list[*entry[K]]
	ready   [ranks]list[*entry[K]]
	running int
	element [ranks]*element[*group[K]] // in the queue's lists
}

// Ready keys are in lists by rank; those of an earlier one run first.
const (
	rankFirst = iota // requested by EnqueueFirst
	rankNormal
	ranks
)

func (e *entry[K]) rank() int {
	if e.first {
		return rankFirst
	}
	return rankNormal
}

func (e *entry[K]) isReady() bool { return e.element != nil }

// isBusy reports whether a key has a turn that is running or due, possibly
// after its rest.
func (q *Queue[K]) isBusy(e *entry[K]) bool {
	if e.turn != nil || e.isReady() {
		return true
	}
	return !e.due.IsZero() &&
		!e.due.After(q.options.Now()) &&
		!e.retryAt.After(time.Now())
}

// entry returns the entry of a key, creating it if there is none.
func (q *Queue[K]) entry(key K) *entry[K] {
	e := q.entries[key]
	if e != nil {
		return e
	}
	id := q.options.Group(key)
	g := q.groups[id]
	if g == nil {
		g = &group[K]{id: id}
		q.groups[id] = g
	}
	e = &entry[K]{key: key, group: g}
	e.member = g.entries.push(e)
	q.entries[key] = e
	return e
}

// remove drops an entry that is in no list.
func (q *Queue[K]) remove(e *entry[K]) {
	delete(q.entries, e.key)
	if e.group.entries.remove(e.member); e.group.entries.len == 0 {
		delete(q.groups, e.group.id)
	}
	e.signalIdle()
}

func (e *entry[K]) signalIdle() {
	if e.idle != nil {
		close(e.idle)
		e.idle = nil
	}
}

// schedule requests a turn of an entry at a time, unless an earlier one is
// already requested.
func (q *Queue[K]) schedule(e *entry[K], at time.Time) {
	e.requestTurn(at)
	if e.turn == nil && !e.isReady() {
		q.reschedule(e)
	}
}

// longAgo is a time in the past on every clock.
var longAgo = time.Unix(0, 0)

func (e *entry[K]) requestTurn(at time.Time) {
	if at = at.Round(0); !at.IsZero() && (e.due.IsZero() || at.Before(e.due)) {
		e.due = at
	}
}

// unschedule withdraws the requested turn of an entry.
func (q *Queue[K]) unschedule(e *entry[K]) {
	q.timeline.remove(e)
	q.removeReady(e)
	e.due, e.first = time.Time{}, false
}

// removeReady takes an entry out of the ready list if it is there.
func (q *Queue[K]) removeReady(e *entry[K]) {
	if !e.isReady() {
		return
	}
	e.group.ready[e.rank()].remove(e.element)
	e.element = nil
	q.readyLen--
	q.updateReadyGroups(e.group)
}

// reschedule moves an entry that is not running to where it belongs: the ready list, the
// timeline, or neither.
func (q *Queue[K]) reschedule(entry *entry[K]) {
	now := time.Now()
	at := later(entry.retryAt, entry.restUntil)
	if !entry.due.IsZero() {
		at = later(at, now.Add(entry.due.Sub(q.options.Now().Round(0))))
	}
	switch {
	case at.After(now):
		q.timeline.set(entry, at)
		entry.signalIdle()
	case entry.due.IsZero():
		q.timeline.remove(entry)
		q.remove(entry)
	default:
		q.timeline.remove(entry)
		entry.element = entry.group.ready[entry.rank()].push(entry)
		q.readyLen++
		q.updateReadyGroups(entry.group)
	}
}

// updateReadyGroups adds a group to the queue's list of each rank of which it has a key that may
// run, and removes it from the others.
func (q *Queue[K]) updateReadyGroups(g *group[K]) {
	limit := q.options.GroupLimit(g.id)
	for rank := range ranks {
		may := g.ready[rank].len > 0 && (limit <= 0 || g.running < limit)
		switch {
		case may && g.element[rank] == nil:
			g.element[rank] = q.ready[rank].push(g)
		case !may && g.element[rank] != nil:
			q.ready[rank].remove(g.element[rank])
			g.element[rank] = nil
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
