package replica

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"satchel/agent/work"
	"satchel/store"
	"satchel/store/capture"
)

// Limits of one upload.
const (
	maxBatch      = 256 // commits
	maxBatchBytes = 4 << 20
)

// upload uploads an agent's oldest pending commits as one object.
func (r *Replicator) upload(ctx context.Context, id string) (work.Next, error) {
	r.capture(id)
	if err := r.align(ctx, id); err != nil {
		return work.Next{}, err
	}
	batch, dropped := r.batch(id)
	if len(batch) == 0 {
		r.append(id)
		return work.Next{}, r.describe(ctx, id)
	}
	first, last := batch[0], batch[len(batch)-1]
	o := object{
		generation: first.Generation,
		level:      levelCommits,
		first:      first.First,
		last:       last.TXID,
		at:         last.Time,
	}
	r.append(id) // includes the commits about to be sent
	raw, err := mergeCommits(ctx, batch)
	if err == nil {
		err = r.Target.storage.put(
			ctx,
			id+"/"+o.name(),
			bytes.NewReader(raw),
			int64(len(raw)),
		)
	}
	if err != nil {
		return work.Next{}, err
	}
	r.succeeded()
	next := r.uploaded(id, len(batch), dropped, int64(len(raw)))
	r.append(id)
	return next, r.describe(ctx, id)
}

// capture makes package capture read an agent's new commits from the -wal.
func (r *Replicator) capture(id string) {
	r.mu.Lock()
	a := r.agents[id]
	noted := a != nil && !a.uncaptured.IsZero()
	if noted {
		a.uncaptured = time.Time{} // commits from now on are noted again
	}
	r.mu.Unlock()
	if !noted {
		return
	}
	if db := r.agent(id); db != nil {
		db.Capture()
	}
}

// batch returns the oldest pending commits of one generation, and records that they are
// about to be sent.
func (r *Replicator) batch(id string) (batch []capture.Commit, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, size := r.agents[id], 0
	if a == nil {
		return nil, 0
	}
	for n, c := range a.pending {
		if size += len(c.Data); n > 0 &&
			(c.Generation != a.pending[0].Generation || n == maxBatch || size > maxBatchBytes) {
			break
		}
		batch = append(batch, c)
	}
	if n := len(batch); n > 0 && batch[0].Generation == a.end.Generation {
		a.sent, a.unsaved = batch[n-1].TXID, true
	}
	return batch, a.dropped
}

// mergeCommits merges commits into one LTX file.
func mergeCommits(ctx context.Context, batch []capture.Commit) ([]byte, error) {
	if len(batch) == 1 {
		return batch[0].Data, nil
	}
	parts := make([]io.Reader, len(batch))
	for i, c := range batch {
		parts[i] = bytes.NewReader(c.Data)
	}
	var out bytes.Buffer
	err := capture.Merge(ctx, &out, parts)
	return out.Bytes(), err
}

// uploaded records that the oldest n commits are uploaded, and returns when the next
// upload is due.
func (r *Replicator) uploaded(id string, n, dropped int, size int64) (next work.Next) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.agentLocked(id)
	if a.dropped != dropped {
		return work.Next{Again: len(a.pending) > 0}
	}
	r.advanceEndLocked(a, n)
	a.base.Since += size
	if a.hasPending() {
		next.At = a.oldest().Add(collectTime)
	}
	if !a.merging {
		a.merging = true
		r.tidying.EnqueueAt(id, r.Now().Add(mergeEvery))
	}
	if a.base.due(r.Now()) {
		r.snapshots.Enqueue(id)
	}
	return next
}

// advanceEndLocked records that the replica has the oldest n commits, which are
// then no longer kept. The caller holds mu.
func (r *Replicator) advanceEndLocked(a *replicated, n int) {
	for _, c := range a.pending[:n] {
		a.size -= int64(len(c.Data))
		r.waiting -= int64(len(c.Data))
	}
	a.end, a.sent, a.unsaved, r.changed = a.pending[n-1].Position, 0, true, true
	a.pending = append([]capture.Commit(nil), a.pending[n:]...)
	if len(a.pending) > 0 {
		a.since = time.UnixMilli(a.pending[0].Began)
	}
}

// align determines where the replica of an agent from an earlier start ends: at
// the position in the file of positions, or at most after the upload that was
// in progress. Waiting commits that it already has are not uploaded again. If
// it ends elsewhere, a new snapshot replaces the waiting commits.
func (r *Replicator) align(ctx context.Context, id string) error {
	r.mu.Lock()
	a := r.agents[id]
	if a == nil || !a.resumed || len(a.pending) == 0 {
		r.mu.Unlock()
		return nil
	}
	generation, from, to, dropped := a.end.Generation, a.end.TXID, max(a.end.TXID, a.sent), a.dropped
	r.mu.Unlock()
	objects, err := listObjects(ctx, r.Target.storage, id+"/"+generation+"/")
	if err != nil {
		return err
	}
	c, end := chain(objects, endOfTime), uint64(0)
	if len(c) > 0 {
		end = c[len(c)-1].last
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if a = r.agentLocked(id); a.dropped != dropped {
		return nil
	}
	if last := a.pending[len(a.pending)-1]; end < from ||
		end > to ||
		end > last.TXID ||
		continuesAfter(objects, end) ||
		last.Generation != generation {
		a.ended = generation
		r.lostLocked(id, a)
		return nil
	}
	a.resumed = false
	uploaded := 0
	for uploaded < len(a.pending) && a.pending[uploaded].TXID <= end {
		uploaded++
	}
	if uploaded > 0 {
		r.advanceEndLocked(a, uploaded)
	}
	return nil
}

// continuesAfter reports whether any object has transactions after last.
func continuesAfter(objects []object, last uint64) bool {
	for _, o := range objects {
		if o.last > last {
			return true
		}
	}
	return false
}

// When the snapshot that a replica builds on is replaced: after an hour, if more than
// half its size was uploaded since, and after a week in any case.
const (
	minBaseAge = time.Hour
	maxBaseAge = 7 * 24 * time.Hour
)

// due reports whether a new snapshot would shorten a restore.
func (b baseline) due(now time.Time) bool {
	age := now.Sub(time.UnixMilli(b.At))
	return b.Generation != "" && (age >= maxBaseAge || age >= minBaseAge && b.Since > b.Size/2)
}

// snapshot uploads a snapshot of an agent if one is needed.
func (r *Replicator) snapshot(ctx context.Context, id string) (work.Next, error) {
	r.mu.Lock()
	a := r.agentLocked(id)
	lost, fresh, needed := a.lost, a.restarts, a.restarts || a.base.due(r.Now())
	r.mu.Unlock()
	db := r.agent(id)
	if db == nil || !needed {
		r.forgetIfGone(id, db != nil)
		return work.Next{}, nil
	}
	// A small object first shows whether the target can be reached.
	if err := r.putInfo(ctx, id, info{ID: id, Name: db.Agent().Name}); err != nil {
		return work.Next{}, err
	}
	at, size, err := r.putSnapshot(ctx, db, fresh)
	if errors.Is(err, store.ErrClosed) {
		return work.Next{}, nil // the next start makes the snapshot
	} else if err != nil {
		return work.Next{}, err
	}
	r.succeeded()
	again := r.recordSnapshot(id, at, size, lost, db.Agent().Name)
	r.append(id)
	return work.Next{Again: again}, nil
}

// recordSnapshot records that a snapshot was uploaded, and reports whether another one is needed.
// lost is the count of reasons from before it was made.
func (r *Replicator) recordSnapshot(id string, at capture.Position, size int64, lost int, name string) (again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.agentLocked(id)
	a.name, r.changed = name, true
	if a.lost != lost {
		return true
	}
	a.restarts, a.deleted = false, false
	a.base = baseline{
		Generation: at.Generation,
		At:         at.Time,
		Size:       size,
	}
	if a.end.Generation != at.Generation {
		a.end = at
	}
	a.unsaved = true
	return false
}

// agent returns the agent with this id, or nil if it does not exist or cannot be opened.
func (r *Replicator) agent(id string) *store.DB {
	db, err := r.folder.Agent(id)
	if err != nil || db.ID() != id || db.Problem() != nil {
		return nil
	}
	return db
}

// forgetIfGone forgets an agent that is not there, unless it was deleted.
func (r *Replicator) forgetIfGone(id string, exists bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.agents[id]; !exists && a != nil && !a.deleted {
		r.dropLocked(a)
		delete(r.agents, id)
	}
}

// putSnapshot uploads a snapshot through a temporary file.
func (r *Replicator) putSnapshot(
	ctx context.Context,
	db *store.DB,
	fresh bool,
) (at capture.Position, size int64, err error) {
	temp, err := os.CreateTemp(filepath.Join(r.Path, "tmp"), "snapshot-")
	if err != nil {
		return at, 0, err
	}
	defer func() {
		err = errors.Join(err, temp.Close(), os.Remove(temp.Name()))
	}()
	out := bufio.NewWriterSize(temp, 256<<10)
	if at, err = db.Snapshot(ctx, out, fresh); err != nil {
		return at, 0, err
	}
	if err := out.Flush(); err != nil {
		return at, 0, err
	}
	if size, err = temp.Seek(0, io.SeekCurrent); err != nil {
		return at, 0, err
	}
	o := object{
		generation: at.Generation,
		level:      levelSnapshots,
		first:      1,
		last:       at.TXID,
		at:         at.Time,
	}
	return at, size, r.Target.storage.put(
		ctx,
		db.ID()+"/"+o.name(),
		temp,
		size,
	)
}

// info is the content of agent.json.
type info struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	DeletedAt *time.Time `json:"deleted_at,omitempty"`
}

func infoKey(id string) string { return id + "/agent.json" }

func (r *Replicator) putInfo(ctx context.Context, id string, i info) error {
	raw, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return r.Target.storage.put(
		ctx,
		infoKey(id),
		bytes.NewReader(raw),
		int64(len(raw)),
	)
}

// describe updates agent.json if the agent was renamed or deleted.
func (r *Replicator) describe(ctx context.Context, id string) error {
	r.mu.Lock()
	var known replicated
	if a := r.agents[id]; a != nil {
		known.deleted, known.name = a.deleted, a.name
	}
	r.mu.Unlock()
	i := info{ID: id, Name: known.name}
	if db := r.agent(id); db != nil {
		i.Name = db.Agent().Name
	}
	if known.deleted {
		now := r.Now().UTC()
		i.DeletedAt = &now
	} else if i.Name == known.name || known.name == "" { // the first snapshot writes it
		return nil
	}
	if err := r.putInfo(ctx, id, i); err != nil {
		return fmt.Errorf("describe the replica: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.agents[id]; a != nil && known.deleted {
		delete(r.agents, id)
	} else if a != nil {
		a.name, r.changed = i.Name, true
	}
	return nil
}
