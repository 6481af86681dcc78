package replica

import (
	"time"

	"satchel/store/capture"
)

// Resume implements capture.Sink.
func (replicator *Replicator) Resume(id string) (at capture.Position, used uint64) {
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	a := replicator.agentLocked(id)
	at = a.at
	a.at = capture.Position{} // the file is open
	return at, a.sent
}

// Committed implements capture.Sink.
func (replicator *Replicator) Committed(id string) {
	now := replicator.Now()
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	if a := replicator.agentLocked(id); a.uncaptured.IsZero() {
		a.uncaptured = now
		replicator.uploads.EnqueueAt(id, now.Add(collectTime))
	}
}

// Commit implements capture.Sink. It accepts no commit beyond the limits, nor any of an
// abandoned generation, before the next snapshot.
func (replicator *Replicator) Commit(id string, commit capture.Commit) bool {
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	replicated, size := replicator.agentLocked(id), int64(len(commit.Data))
	if commit.Generation == replicated.ended {
		return false
	}
	if replicated.size+size > maxWaiting || replicator.waiting+size > maxAllWaiting {
		replicator.Log.Warn(
			"too many changes of an agent are waiting for their upload: a snapshot will replace them",
			"agent",
			id,
		)
		replicator.dropLocked(replicated)
		replicator.lostLocked(id, replicated)
		return false
	}
	if len(replicated.pending) == 0 {
		replicated.since = time.UnixMilli(commit.Began)
		replicator.uploads.EnqueueAt(id, replicator.Now().Add(collectTime))
	}
	replicated.uncaptured = time.Time{}
	replicated.pending = append(replicated.pending, commit)
	replicated.size += size
	replicator.waiting += size
	return true
}

// uploadTime is how long an idle file waits for its commits to be uploaded.
const uploadTime = 10 * time.Second

// Uploading implements capture.Sink.
func (replicator *Replicator) Uploading(id string) bool {
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	a := replicator.agents[id]
	return a != nil && len(a.pending) > 0 && replicator.Now().Sub(a.since) < uploadTime
}

// Checkpointed implements capture.Sink. The position is saved at once: the next
// commit may begin the -wal again.
func (replicator *Replicator) Checkpointed(id string, at capture.Position) {
	replicator.mu.Lock()
	waits := replicator.checkpointedLocked(id, at)
	replicator.mu.Unlock()
	if waits {
		replicator.saveCommits(id)
	}
	replicator.append(id)
}

// checkpointedLocked replaces the newest position, pending or uploaded, with one of the
// same transaction that identifies it after the checkpoint, unless there is a newer
// commit. It reports whether there are pending commits that may leave the -wal now. The
// caller holds mu.
func (replicator *Replicator) checkpointedLocked(id string, at capture.Position) (waits bool) {
	a := replicator.agentLocked(id)
	n := len(a.pending)
	stands := &a.end
	if n > 0 {
		stands = &a.pending[n-1].Position
	}
	if stands.Generation != at.Generation || stands.TXID != at.TXID || *stands == at {
		return false
	}
	*stands = at
	a.unsaved = a.unsaved || n == 0
	return n > 0
}

// dropLocked drops the pending commits.
func (replicator *Replicator) dropLocked(a *replicated) {
	replicator.waiting -= a.size
	a.pending, a.size, a.uncaptured = nil, 0, time.Time{}
	a.dropped++
}

// lostLocked requests a snapshot that begins a new generation.
func (replicator *Replicator) lostLocked(id string, a *replicated) {
	if a.resumed { // it is not known whether the replica ends before the waiting commits
		replicator.dropLocked(a)
		a.resumed = false
	}
	a.lost++
	a.restarts, replicator.changed = true, true
	a.at, a.end, a.sent = capture.Position{}, capture.Position{}, 0
	replicator.snapshots.Enqueue(id)
}

// Lost implements capture.Sink.
func (replicator *Replicator) Lost(id string, reason error) {
	if reason != nil {
		replicator.Log.Info("the replica of an agent starts again with a snapshot", "agent", id, "reason", reason)
	}
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	// A file that is opened for a snapshot has no position either; that is not a new
	// loss.
	if a := replicator.agentLocked(id); reason != nil || !a.restarts {
		replicator.lostLocked(id, a)
	}
}

// Closed implements capture.Sink.
func (replicator *Replicator) Closed(id string, at capture.Position) {
	replicator.mu.Lock()
	replicator.agentLocked(id).at, replicator.changed = at, true
	waits := replicator.checkpointedLocked(id, at)
	replicator.mu.Unlock()
	if waits {
		replicator.saveCommits(id)
	}
	replicator.append(id)
}

// Deleted implements capture.Sink. The replica is kept for Options.Keep, like every
// agent's past.
func (replicator *Replicator) Deleted(id string) {
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	a := replicator.agentLocked(id)
	replicator.dropLocked(a)
	a.at, a.end, a.sent, a.deleted, a.restarts, replicator.changed =
		capture.Position{}, capture.Position{}, 0, true, false, true
	replicator.uploads.Enqueue(id)
}
