package flow

import (
	"slices"
	"time"

	"satchel/agent"
)

// When pending results are committed. Results of pure nodes wait, so that many
// of them share one commit.
const (
	commitAfter    = 500                    // number of results
	commitBytes    = 1 << 20                // approximate size of their outputs
	commitInterval = 100 * time.Millisecond // since the first result
)

// pendingResults are results that are not committed yet.
type pendingResults struct {
	results []agent.NodeResult
	bytes   int
	since   time.Time // when the first result was added
	urgent  bool      // one is of a node with side effects
}

func (h *pendingResults) add(result agent.NodeResult) {
	if len(h.results) == 0 {
		h.since = time.Now()
	}
	h.results = append(h.results, result)
	h.bytes += len(result.Output) + len(result.Items)
}

func (h *pendingResults) full() bool {
	return len(h.results) >= commitAfter || h.bytes >= commitBytes
}

// untilCommit returns how long the pending results may still wait. There must
// be at least one.
func (r *run) untilCommit() time.Duration {
	return r.engine.commitInterval - time.Since(r.pending.since)
}

// commitDue commits if a commit is due. It returns false if that stopped the
// run.
func (r *run) commitDue() bool {
	if !r.due() {
		return true
	}
	if !r.commit(false) {
		return false
	}
	for _, committed := range r.commitWaiters {
		close(committed)
	}
	r.commitWaiters = nil
	return true
}

// due reports whether the run must commit before it continues: a node with side
// effects has finished or is about to start, the results have waited long
// enough, or there is more to write than results.
func (r *run) due() bool {
	if r.pending.urgent ||
		r.pending.full() ||
		r.begin ||
		len(r.commitWaiters)+len(r.waits)+len(r.waitEnds)+len(r.children) > 0 {
		return true
	}
	if len(r.pending.results) > 0 && r.untilCommit() <= 0 {
		return true
	}
	return slices.ContainsFunc(r.effects, func(in instance) bool {
		return !r.program.nodes[in.node].repeatable
	})
}
