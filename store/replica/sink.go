package replica

import (
	"time"

	"satchel/store/capture"
)

// Resume implements capture.Sink.
func (r *Replicator) Resume(id string) (at capture.Position, used uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.agentLocked(id)
	at = a.at
	a.at = capture.Position{} // the file is open
	return at, a.sent
}

// Committed implements capture.Sink.
func (r *Replicator) Committed(id string) {
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.agentLocked(id); a.uncaptured.IsZero() {
		a.uncaptured = now
		r.uploads.EnqueueAt(id, now.Add(collectTime))
	}
}

// Commit implements capture.Sink. It accepts no commit beyond the limits, nor any of an
// abandoned generation, before the next snapshot.
func (r *Replicator) Commit(id string, c capture.Commit) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, size := r.agentLocked(id), int64(len(c.Data))
	if c.Generation == a.ended {
		return false
	}
	if a.size+size > maxWaiting || r.waiting+size > maxAllWaiting {
		r.Log.Warn(
			"too many changes of an agent are waiting for their upload: a snapshot will replace them",
			"agent",
			id,
		)
		r.dropLocked(a)
		r.lostLocked(id, a)
		return false
	}
	if len(a.pending) == 0 {
		a.since = time.UnixMilli(c.Began)
		r.uploads.EnqueueAt(id, r.Now().Add(collectTime))
	}
	a.uncaptured = time.Time{}
	a.pending = append(a.pending, c)
	a.size += size
	r.waiting += size
	return true
}

// uploadTime is how long an idle file waits for its commits to be uploaded.
const uploadTime = 10 * time.Second

// Uploading implements capture.Sink.
func (r *Replicator) Uploading(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.agents[id]
	return a != nil && len(a.pending) > 0 && r.Now().Sub(a.since) < uploadTime
}

// Checkpointed implements capture.Sink. The position is saved at once: the next
// commit may begin the -wal again.
func (r *Replicator) Checkpointed(id string, at capture.Position) {
	r.mu.Lock()
	waits := r.checkpointedLocked(id, at)
	r.mu.Unlock()
	if waits {
		r.saveCommits(id)
	}
	r.append(id)
}

// checkpointedLocked replaces the newest position, pending or uploaded, with one of the
// same transaction that identifies it after the checkpoint, unless there is a newer
// commit. It reports whether there are pending commits that may leave the -wal now. The
// caller holds mu.
func (r *Replicator) checkpointedLocked(id string, at capture.Position) (waits bool) {
	a := r.agentLocked(id)
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
func (r *Replicator) dropLocked(a *replicated) {
	r.waiting -= a.size
	a.pending, a.size, a.uncaptured = nil, 0, time.Time{}
	a.dropped++
}

// lostLocked requests a snapshot that begins a new generation.
func (r *Replicator) lostLocked(id string, a *replicated) {
	if a.resumed { // it is not known whether the replica ends before the waiting commits
		r.dropLocked(a)
		a.resumed = false
	}
	a.lost++
	a.restarts, r.changed = true, true
	a.at, a.end, a.sent = capture.Position{}, capture.Position{}, 0
	r.snapshots.Enqueue(id)
}

// Lost implements capture.Sink.
func (r *Replicator) Lost(id string, reason error) {
	if reason != nil {
		r.Log.Info("the replica of an agent starts again with a snapshot", "agent", id, "reason", reason)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// A file that is opened for a snapshot has no position either; that is not a new
	// loss.
	if a := r.agentLocked(id); reason != nil || !a.restarts {
		r.lostLocked(id, a)
	}
}

// Closed implements capture.Sink.
func (r *Replicator) Closed(id string, at capture.Position) {
	r.mu.Lock()
	r.agentLocked(id).at, r.changed = at, true
	waits := r.checkpointedLocked(id, at)
	r.mu.Unlock()
	if waits {
		r.saveCommits(id)
	}
	r.append(id)
}

// Deleted implements capture.Sink. The replica is kept for Options.Keep, like every
// agent's past.
func (r *Replicator) Deleted(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.agentLocked(id)
	r.dropLocked(a)
	a.at, a.end, a.sent, a.deleted, a.restarts, r.changed = capture.Position{}, capture.Position{}, 0, true, false, true
	r.uploads.Enqueue(id)
}
