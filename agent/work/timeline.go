package work

import (
	"container/heap"
	"slices"
	"time"
)

// timeline is a heap of entries by wake time.
type timeline[K comparable] []*entry[K]

func (t timeline[K]) Len() int { return len(t) }
func (t timeline[K]) Less(i, j int) bool {
	return t[i].wake.Before(t[j].wake)
}
func (t timeline[K]) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i+1, j+1
}

// Push appends an entry. Use set.
func (t *timeline[K]) Push(x any) {
	e := x.(*entry[K])
	*t = append(*t, e)
	e.index = len(*t)
}

// Pop removes the last entry. Use remove.
func (t *timeline[K]) Pop() any {
	last := len(*t) - 1
	e := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	e.index = 0
	return e
}

// set adds an entry at a time, or moves it there.
func (t *timeline[K]) set(e *entry[K], at time.Time) {
	e.wake = at
	if e.index == 0 {
		heap.Push(t, e)
		return
	}
	heap.Fix(t, e.index-1)
}

func (t *timeline[K]) remove(e *entry[K]) {
	if e.index > 0 {
		heap.Remove(t, e.index-1)
	}
}

const (
	// maxSleep limits how long a change of the wall clock goes unnoticed.
	maxSleep = 30 * time.Second
	// maxDrift is how far the wall clock may drift from elapsed time before the
	// timeline is rebuilt.
	maxDrift = 100 * time.Millisecond
)

// arm sets the timer to the first time of the timeline.
func (q *Queue[K]) arm() {
	if !q.started || len(q.timeline) == 0 {
		return
	}
	now := time.Now()
	sleep := min(max(q.timeline[0].wake.Sub(now), 0), maxSleep)
	at := now.Add(sleep)
	if !q.timerAt.IsZero() && !at.Before(q.timerAt) {
		return
	}
	q.timerAt = at
	if q.timer == nil {
		q.timer = time.AfterFunc(sleep, q.expire)
		return
	}
	q.timer.Reset(sleep)
}

// expire makes entries ready whose time has come.
func (q *Queue[K]) expire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timerAt = time.Time{}
	if !q.started {
		return
	}
	q.followClock()
	now := time.Now()
	for len(q.timeline) > 0 && !q.timeline[0].wake.After(now) {
		e := q.timeline[0]
		q.timeline.remove(e)
		q.reschedule(e)
	}
	q.fill()
	q.arm()
}

// followClock rebuilds the timeline if the wall clock was set.
func (q *Queue[K]) followClock() {
	offset := q.clockOffset()
	if (offset - q.offset).Abs() < maxDrift {
		return
	}
	q.offset = offset
	for _, e := range slices.Clone(q.timeline) {
		q.reschedule(e)
	}
}

func (q *Queue[K]) clockOffset() time.Duration {
	return q.options.Now().Round(0).Sub(q.epoch.Round(0)) - time.Since(q.epoch)
}
