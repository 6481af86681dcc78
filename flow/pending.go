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
func (run *run) untilCommit() time.Duration {
	return run.engine.commitInterval - time.Since(run.pending.since)
}

// commitDue commits if a commit is due. It returns false if that stopped the
// run.
func (run *run) commitDue() bool {
	if !run.due() {
		return true
	}
	if !run.commit(false) {
		return false
	}
	for _, committed := range run.commitWaiters {
		close(committed)
	}
	run.commitWaiters = nil
	return true
}

// due reports whether the run must commit before it continues: a node with side
// effects has finished or is about to start, the results have waited long
// enough, or there is more to write than results.
func (run *run) due() bool {
	if run.pending.urgent ||
		run.pending.full() ||
		run.begin ||
		len(run.commitWaiters)+len(run.waits)+len(run.waitEnds)+len(run.children) > 0 {
		return true
	}
	if len(run.pending.results) > 0 && run.untilCommit() <= 0 {
		return true
	}
	return slices.ContainsFunc(run.effects, func(in instance) bool {
		return !run.program.nodes[in.node].repeatable
	})
}
