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
func (replicator *Replicator) upload(ctx context.Context, id string) (work.Next, error) {
	replicator.capture(id)
	if err := replicator.align(ctx, id); err != nil {
		return work.Next{}, err
	}
	batch, dropped := replicator.batch(id)
	if len(batch) == 0 {
		replicator.append(id)
		return work.Next{}, replicator.describe(ctx, id)
	}
	first, last := batch[0], batch[len(batch)-1]
	o := object{
		generation: first.Generation,
		level:      levelCommits,
		first:      first.First,
		last:       last.TXID,
		at:         last.Time,
	}
	replicator.append(id) // includes the commits about to be sent
	raw, err := mergeCommits(ctx, batch)
	if err == nil {
		err = replicator.Target.storage.put(
			ctx,
			id+"/"+o.name(),
			bytes.NewReader(raw),
			int64(len(raw)),
		)
	}
	if err != nil {
		return work.Next{}, err
	}
	replicator.succeeded()
	next := replicator.uploaded(id, len(batch), dropped, int64(len(raw)))
	replicator.append(id)
	return next, replicator.describe(ctx, id)
}

// capture makes package capture read an agent's new commits from the -wal.
func (replicator *Replicator) capture(id string) {
	replicator.mu.Lock()
	a := replicator.agents[id]
	noted := a != nil && !a.uncaptured.IsZero()
	if noted {
		a.uncaptured = time.Time{} // commits from now on are noted again
	}
	replicator.mu.Unlock()
	if !noted {
		return
	}
	if db := replicator.agent(id); db != nil {
		db.Capture()
	}
}

// batch returns the oldest pending commits of one generation, and records that they are
// about to be sent.
func (replicator *Replicator) batch(id string) (batch []capture.Commit, dropped int) {
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	a, size := replicator.agents[id], 0
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

// uploaded records that the oldest count commits are uploaded, and returns when the next
// upload is due.
func (replicator *Replicator) uploaded(id string, count, dropped int, size int64) (next work.Next) {
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	replicated := replicator.agentLocked(id)
	if replicated.dropped != dropped {
		return work.Next{Again: len(replicated.pending) > 0}
	}
	replicator.advanceEndLocked(replicated, count)
	replicated.base.Since += size
	if replicated.hasPending() {
		next.At = replicated.oldest().Add(collectTime)
	}
	if !replicated.merging {
		replicated.merging = true
		replicator.tidying.EnqueueAt(id, replicator.Now().Add(mergeEvery))
	}
	if replicated.base.due(replicator.Now()) {
		replicator.snapshots.Enqueue(id)
	}
	return next
}

// advanceEndLocked records that the replica has the oldest n commits, which are
// then no longer kept. The caller holds mu.
func (replicator *Replicator) advanceEndLocked(a *replicated, n int) {
	for _, c := range a.pending[:n] {
		a.size -= int64(len(c.Data))
		replicator.waiting -= int64(len(c.Data))
	}
	a.end, a.sent, a.unsaved, replicator.changed = a.pending[n-1].Position, 0, true, true
	a.pending = append([]capture.Commit(nil), a.pending[n:]...)
	if len(a.pending) > 0 {
		a.since = time.UnixMilli(a.pending[0].Began)
	}
}

// align determines where the replica of an agent from an earlier start ends: at
// the position in the file of positions, or at most after the upload that was
// in progress. Waiting commits that it already has are not uploaded again. If
// it ends elsewhere, a new snapshot replaces the waiting commits.
func (replicator *Replicator) align(ctx context.Context, id string) error {
	replicator.mu.Lock()
	replicated := replicator.agents[id]
	if replicated == nil || !replicated.resumed || len(replicated.pending) == 0 {
		replicator.mu.Unlock()
		return nil
	}
	generation, from, to, dropped :=
		replicated.end.Generation, replicated.end.TXID, max(replicated.end.TXID, replicated.sent), replicated.dropped
	replicator.mu.Unlock()
	objects, err := listObjects(ctx, replicator.Target.storage, id+"/"+generation+"/")
	if err != nil {
		return err
	}
	c, end := chain(objects, endOfTime), uint64(0)
	if len(c) > 0 {
		end = c[len(c)-1].last
	}
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	if replicated = replicator.agentLocked(id); replicated.dropped != dropped {
		return nil
	}
	if last := replicated.pending[len(replicated.pending)-1]; end < from ||
		end > to ||
		end > last.TXID ||
		continuesAfter(objects, end) ||
		last.Generation != generation {
		replicated.ended = generation
		replicator.lostLocked(id, replicated)
		return nil
	}
	replicated.resumed = false
	uploaded := 0
	for uploaded < len(replicated.pending) && replicated.pending[uploaded].TXID <= end {
		uploaded++
	}
	if uploaded > 0 {
		replicator.advanceEndLocked(replicated, uploaded)
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
func (replicator *Replicator) snapshot(ctx context.Context, id string) (work.Next, error) {
	replicator.mu.Lock()
	replicated := replicator.agentLocked(id)
	lost, fresh, needed :=
		replicated.lost, replicated.restarts, replicated.restarts || replicated.base.due(replicator.Now())
	replicator.mu.Unlock()
	db := replicator.agent(id)
	if db == nil || !needed {
		replicator.forgetIfGone(id, db != nil)
		return work.Next{}, nil
	}
	// A small object first shows whether the target can be reached.
	if err := replicator.putInfo(ctx, id, info{ID: id, Name: db.Agent().Name}); err != nil {
		return work.Next{}, err
	}
	at, size, err := replicator.putSnapshot(ctx, db, fresh)
	if errors.Is(err, store.ErrClosed) {
		return work.Next{}, nil // the next start makes the snapshot
	} else if err != nil {
		return work.Next{}, err
	}
	replicator.succeeded()
	again := replicator.recordSnapshot(id, at, size, lost, db.Agent().Name)
	replicator.append(id)
	return work.Next{Again: again}, nil
}

// recordSnapshot records that a snapshot was uploaded, and reports whether another one is needed.
// lost is the count of reasons from before it was made.
func (replicator *Replicator) recordSnapshot(
	id string,
	at capture.Position,
	size int64,
	lost int,
	name string,
) (again bool) {
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	replicated := replicator.agentLocked(id)
	replicated.name, replicator.changed = name, true
	if replicated.lost != lost {
		return true
	}
	replicated.restarts, replicated.deleted = false, false
	replicated.base = baseline{
		Generation: at.Generation,
		At:         at.Time,
		Size:       size,
	}
	if replicated.end.Generation != at.Generation {
		replicated.end = at
	}
	replicated.unsaved = true
	return false
}

// agent returns the agent with this id, or nil if it does not exist or cannot be opened.
func (replicator *Replicator) agent(id string) *store.DB {
	db, err := replicator.folder.Agent(id)
	if err != nil || db.ID() != id || db.Problem() != nil {
		return nil
	}
	return db
}

// forgetIfGone forgets an agent that is not there, unless it was deleted.
func (replicator *Replicator) forgetIfGone(id string, exists bool) {
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	if a := replicator.agents[id]; !exists && a != nil && !a.deleted {
		replicator.dropLocked(a)
		delete(replicator.agents, id)
	}
}

// putSnapshot uploads a snapshot through a temporary file.
func (replicator *Replicator) putSnapshot(
	ctx context.Context,
	db *store.DB,
	fresh bool,
) (at capture.Position, size int64, err error) {
	temp, err := os.CreateTemp(filepath.Join(replicator.Path, "tmp"), "snapshot-")
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
	return at, size, replicator.Target.storage.put(
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

func (replicator *Replicator) putInfo(ctx context.Context, id string, i info) error {
	raw, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return replicator.Target.storage.put(
		ctx,
		infoKey(id),
		bytes.NewReader(raw),
		int64(len(raw)),
	)
}

// describe updates agent.json if the agent was renamed or deleted.
func (replicator *Replicator) describe(ctx context.Context, id string) error {
	replicator.mu.Lock()
	var known replicated
	if a := replicator.agents[id]; a != nil {
		known.deleted, known.name = a.deleted, a.name
	}
	replicator.mu.Unlock()
	i := info{ID: id, Name: known.name}
	if db := replicator.agent(id); db != nil {
		i.Name = db.Agent().Name
	}
	if known.deleted {
		now := replicator.Now().UTC()
		i.DeletedAt = &now
	} else if i.Name == known.name || known.name == "" { // the first snapshot writes it
		return nil
	}
	if err := replicator.putInfo(ctx, id, i); err != nil {
		return fmt.Errorf("describe the replica: %w", err)
	}
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	if a := replicator.agents[id]; a != nil && known.deleted {
		delete(replicator.agents, id)
	} else if a != nil {
		a.name, replicator.changed = i.Name, true
	}
	return nil
}
