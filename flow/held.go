package flow

import (
	"slices"
	"time"

	"satchel/agent"
)

// Bounds of the results that wait for a commit. Those of nodes without effects
// wait, so that many of them share one.
const (
	commitAfter = 500                    // results
	commitBytes = 1 << 20                // of their outputs, about
	holdTime    = 100 * time.Millisecond // since the first
)

// held are results that are not committed yet.
type held struct {
	results []agent.NodeResult
	bytes   int
	since   time.Time // of the first
	urgent  bool      // one is of a node that changed something outside
}

func (h *held) add(result agent.NodeResult) {
	if len(h.results) == 0 {
		h.since = time.Now()
	}
	h.results = append(h.results, result)
	h.bytes += len(result.Output) + len(result.Items)
}

func (h *held) full() bool { return len(h.results) >= commitAfter || h.bytes >= commitBytes }

// left is how long the results may still wait; there must be some.
func (r *run) left() time.Duration { return r.engine.hold - time.Since(r.held.since) }

// commitDue commits what may wait no longer. It returns false when that ended
// the run.
func (r *run) commitDue() bool {
	if !r.due() {
		return true
	}
	if !r.commit(false) {
		return false
	}
	for _, committed := range r.needed {
		close(committed)
	}
	r.needed = nil
	return true
}

// due reports whether the run must commit before it goes on: a node that changed
// something outside has ended, one that may do so is to begin, the results have
// waited long enough, or there is more to write than results.
func (r *run) due() bool {
	if r.held.urgent || r.held.full() || r.begin || len(r.needed)+len(r.waits)+len(r.unwaits)+len(r.children) > 0 {
		return true
	}
	if len(r.held.results) > 0 && r.left() <= 0 {
		return true
	}
	return slices.ContainsFunc(r.effects, func(in instance) bool { return !r.program.nodes[in.node].repeats })
}
