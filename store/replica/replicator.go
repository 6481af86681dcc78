package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"satchel/agent/work"
	"satchel/store"
	"satchel/store/capture"
)

// Times of the work on replicas: how long commits are collected before they are uploaded,
// how often agents are compared with their replicas, how long after an upload an agent's
// replica is merged, and how often all replicas are tidied.
const (
	collectTime  = time.Second
	compareEvery = time.Minute
	mergeEvery   = 5 * time.Minute
	tidyEvery    = 24 * time.Hour
	flushTime    = 5 * time.Second // when the server stops
)

// Limits of the commits waiting to be uploaded, in bytes, for one agent and for all.
// Beyond them, a new snapshot replaces the commits.
const (
	maxWaiting    = 16 << 20
	maxAllWaiting = 64 << 20
)

// How many uploads run at a time, and how many snapshots.
const (
	uploadsAtOnce   = 8
	snapshotsAtOnce = 2
)

// Options configure a Replicator.
type Options struct {
	Target Target
	Path   string        // the data folder
	Keep   time.Duration // how far back every agent can be restored
	Log    *slog.Logger
	Now    func() time.Time // nil: time.Now
}

// Replicator keeps the replicas of a data folder. It is the sink of the folder's
// commits; its methods are safe for concurrent use.
type Replicator struct {
	Options
	folder    *store.Folder
	used      bool                // this data folder has had replicas in the target before
	uploads   *work.Queue[string] // by agent, like those below
	snapshots *work.Queue[string]
	tidying   *work.Queue[string]

	mu       sync.Mutex
	agents   map[string]*replicated
	prepared bool  // the target is
	waiting  int64 // bytes of all pending commits
	failed   error // of the last upload or snapshot
	changed  bool  // the positions differ from their file

	saving sync.Mutex // while the file of positions is written
	saved  bool       // guarded by saving: the file is for this target, so positions can be appended

	stop context.CancelFunc
	done chan struct{}
}

// replicated is the state of one agent's replica. The mutex of the Replicator guards it.
type replicated struct {
	at      capture.Position // the position of the capture when the file was closed
	end     capture.Position // the end of the replica, where a start after a kill continues
	unsaved bool             // the file of positions lacks stands
	// last transaction of the upload in progress: after a kill, the replica may or may not have it
	sent  uint64
	saved uint64 // last transaction that keep wrote, or 0
	// stands is from an earlier start: align must check that the replica ends there, or at most at sent
	resumed  bool
	ended    string // a generation that was given up
	lost     int    // counts the reasons for a new snapshot
	restarts bool   // a snapshot is to begin a new generation
	base     baseline

	uncaptured time.Time // of the oldest commit that is only in the -wal, or zero
	pending    []capture.Commit
	size       int64     // bytes of pending
	since      time.Time // when the oldest of them was committed
	dropped    int       // counts how often pending was given up

	name    string // in agent.json
	deleted bool
	merging bool // tidying is queued
}

// baseline is the snapshot that an agent's replica builds on.
type baseline struct {
	Generation string `json:"generation"`
	At         int64  `json:"at"`    // Unix milliseconds
	Size       int64  `json:"size"`  // bytes
	Since      int64  `json:"since"` // bytes uploaded after it
}

// New returns a Replicator, to be passed as the sink when the folder is opened.
func New(options Options) *Replicator {
	if options.Now == nil {
		options.Now = time.Now
	}
	replicator := &Replicator{Options: options, agents: map[string]*replicated{}}
	backoff := work.Exponential(time.Second, time.Minute)
	replicator.uploads = work.New(work.Options[string]{
		Run:     replicator.upload,
		Limit:   uploadsAtOnce,
		Backoff: backoff,
		Now:     options.Now,
		OnError: replicator.onError,
	})
	replicator.snapshots = work.New(work.Options[string]{
		Run:     replicator.snapshot,
		Limit:   snapshotsAtOnce,
		Backoff: backoff,
		Now:     options.Now,
		OnError: replicator.onError,
	})
	replicator.tidying = work.New(work.Options[string]{
		Run:     replicator.tidy,
		Backoff: work.Exponential(time.Minute, time.Hour),
		Now:     options.Now,
		OnError: replicator.onError,
	})
	replicator.load()
	replicator.prepare()
	return replicator
}

// Start starts uploading what the folder's agents have committed since the folder was
// opened. Call it once.
func (replicator *Replicator) Start(ctx context.Context, f *store.Folder) {
	replicator.folder = f
	replicator.uploads.Start(ctx)
	ctx, replicator.stop = context.WithCancel(ctx)
	replicator.done = make(chan struct{})
	replicator.snapshots.Start(ctx)
	replicator.tidying.Start(ctx)
	go replicator.watch(ctx)
}

// prepare prepares the target unless that has been done.
func (replicator *Replicator) prepare() {
	replicator.mu.Lock()
	prepared := replicator.prepared
	replicator.mu.Unlock()
	if prepared {
		return
	}
	if err := replicator.Target.storage.prepare(replicator.used); err != nil {
		replicator.onError("", err)
		return
	}
	replicator.mu.Lock()
	replicator.prepared = true
	replicator.mu.Unlock()
}

// watch compares the agents with what is known about their replicas, every compareEvery.
func (replicator *Replicator) watch(ctx context.Context) {
	defer close(replicator.done)
	ticker := time.NewTicker(compareEvery)
	defer ticker.Stop()
	tidied := replicator.Now()
	replicator.prepare()
	replicator.compare(ctx)
	for _, id := range replicator.ids(func(a *replicated) bool {
		return a.resumed && len(a.pending) > 0
	}) {
		replicator.uploads.Enqueue(id)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		replicator.prepare()
		replicator.compare(ctx)
		replicator.save()
		if now := replicator.Now(); now.Sub(tidied) >= tidyEvery {
			tidied = now
			replicator.tidyAll(ctx)
		}
	}
}

// compare requests a snapshot of every agent that has no replica, and captures the rest
// of files that are not as they were left: after a kill, the remaining commits are
// captured; after a change by another program, a snapshot is needed.
func (replicator *Replicator) compare(ctx context.Context) {
	for _, db := range replicator.folder.Agents() {
		if db.Problem() != nil || ctx.Err() != nil {
			continue
		}
		replicator.mu.Lock()
		a, known := replicator.agents[db.ID()]
		var at capture.Position
		if known {
			at = a.at
		}
		replicator.mu.Unlock()
		switch {
		case !known:
			replicator.Lost(db.ID(), nil)
		case at.Generation != "" && !db.CapturedAt(at):
			if err := db.CaptureRest(ctx); err != nil && !errors.Is(err, store.ErrClosed) {
				replicator.Lost(db.ID(), err)
			}
		}
	}
}

// Stop stops everything but uploads, so that the folder can be closed. It may be called
// twice.
func (replicator *Replicator) Stop() {
	if replicator.stop == nil {
		return
	}
	replicator.stop()
	<-replicator.done
	replicator.snapshots.Stop()
	replicator.tidying.Stop()
}

// Close uploads the queued commits, within a few seconds, and stops. Call it once the
// folder is closed: commits made while closing it are uploaded too.
func (replicator *Replicator) Close() {
	if replicator.stop == nil {
		return
	}
	replicator.Stop()
	replicator.uploads.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	replicator.flush(ctx)
	replicator.save()
	replicator.stop = nil
}

// flush uploads the queued commits.
func (replicator *Replicator) flush(ctx context.Context) {
	slots := make(chan struct{}, uploadsAtOnce)
	var running sync.WaitGroup
	for _, id := range replicator.ids(func(a *replicated) bool {
		return a.hasPending() || a.deleted
	}) {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			for more := true; more; {
				if _, err := replicator.upload(ctx, id); err != nil {
					replicator.Log.Warn(
						"the newest changes of an agent are not in its replica",
						"agent", id,
						"error", err,
					)
					return
				}
				more = replicator.hasPending(id)
			}
		})
	}
	running.Wait()
}

// hasPending reports whether an agent has commits to upload.
func (replicator *Replicator) hasPending(id string) bool {
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	a := replicator.agents[id]
	return a != nil && a.hasPending()
}

// hasPending reports whether there are commits to upload.
func (a *replicated) hasPending() bool {
	return len(a.pending) > 0 || !a.uncaptured.IsZero()
}

// oldest returns when the oldest waiting commit was made.
func (a *replicated) oldest() time.Time {
	if len(a.pending) > 0 {
		return a.since
	}
	return a.uncaptured
}

// ids returns the ids of the agents for which are returns true.
func (replicator *Replicator) ids(are func(*replicated) bool) (ids []string) {
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	for id, a := range replicator.agents {
		if are(a) {
			ids = append(ids, id)
		}
	}
	return ids
}

// agentLocked returns the state of an agent's replica, creating it if needed. The caller
// holds mu.
func (replicator *Replicator) agentLocked(id string) *replicated {
	a := replicator.agents[id]
	if a == nil {
		a = &replicated{}
		replicator.agents[id] = a
	}
	return a
}

// onError logs the first of several failures.
func (replicator *Replicator) onError(id string, err error) {
	replicator.mu.Lock()
	first := replicator.failed == nil
	replicator.failed = err
	replicator.mu.Unlock()
	level := slog.LevelDebug
	if first {
		level = slog.LevelError
	}
	replicator.Log.Log(
		context.Background(),
		level,
		"replicas cannot be brought up to date, and are tried again",
		"agent", id,
		"error", err,
	)
}

func (replicator *Replicator) succeeded() {
	replicator.mu.Lock()
	recovered := replicator.failed != nil
	replicator.failed = nil
	replicator.mu.Unlock()
	if recovered {
		replicator.Log.Info("replicas are being updated again")
	}
}

// Status is the state of all replicas.
type Status struct {
	Target    string
	Behind    time.Duration // age of the oldest commit that is not uploaded
	Snapshots int           // agents that wait for a snapshot
	Failure   error         // why nothing can be uploaded at present; nil if it can
}

// Status returns the state of all replicas.
func (replicator *Replicator) Status() Status {
	replicator.mu.Lock()
	defer replicator.mu.Unlock()
	s := Status{Target: replicator.Target.String(), Failure: replicator.failed}
	now := replicator.Now()
	for _, a := range replicator.agents {
		if a.hasPending() {
			s.Behind = max(s.Behind, now.Sub(a.oldest()))
		}
		if a.restarts {
			s.Snapshots++
		}
	}
	return s
}

// String describes the state in a sentence.
func (s Status) String() string {
	switch {
	case s.Failure != nil:
		return fmt.Sprintf("%s: %v", s.Target, s.Failure)
	case s.Snapshots > 0:
		return fmt.Sprintf("%s: %d agents wait for a snapshot", s.Target, s.Snapshots)
	}
	return fmt.Sprintf("%s: %s behind", s.Target, s.Behind.Round(time.Second))
}
