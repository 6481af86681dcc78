package vector

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Index makes and searches the knowledge of the agents of one data folder.
//
// Agents take turns: a turn is the reading of one document or the embedding of
// one batch of chunks, so that a large import of one agent does not keep the
// small one of another waiting. Few documents are in memory at a time. What
// waits for the network has turns of its own, beside those.
type Index struct {
	folder   *store.Folder
	embedder Embedder
	outside  Outside
	log      *slog.Logger
	step     func(name string) // told of each step of the work; tests set it

	// processors holds a token for each goroutine that computes. There is room
	// for one less than there are processors, so that requests find one free:
	// with as many, a small request took ten times as long at the 99th of 100.
	processors chan struct{}

	mu      sync.Mutex
	work    map[workKey]*work       // of agents that are not at rest
	met     map[*store.DB]bool      // agents whose unfinished work was taken up
	down    map[*store.DB]time.Time // agents whose provider did not answer, and until when it is not asked
	reading lane                    // agents whose next step is to read a document
	general lane                    // all others
	remote  lane                    // agents whose next step is over the network

	startMu sync.Mutex
	stop    context.CancelFunc
	running sync.WaitGroup
}

// New makes an Index over the agents of a folder. log may be nil.
func New(folder *store.Folder, embedder Embedder, log *slog.Logger) *Index {
	if log == nil {
		log = slog.Default()
	}
	ix := &Index{
		folder: folder, embedder: embedder, log: log, step: func(string) {},
		processors: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1)),
		work:       map[workKey]*work{}, met: map[*store.DB]bool{}, down: map[*store.DB]time.Time{},
	}
	ix.reading.ready.L, ix.general.ready.L, ix.remote.ready.L = &ix.mu, &ix.mu, &ix.mu
	ix.Reach(Outside{})
	return ix
}

// readers bounds the documents that are read at a time, and so in memory;
// callers the requests to APIs and providers that wait for their answers.
const (
	readers = 2
	callers = 8
)

// sweepEvery is how often the Index looks for agents that appeared, were
// enabled again or may be tried again after a failure.
const sweepEvery = 2 * time.Second

// Start takes up what is unfinished and begins to work. It returns at once and
// may be called twice. The work ends with ctx or Stop.
func (ix *Index) Start(ctx context.Context) error {
	ix.startMu.Lock()
	defer ix.startMu.Unlock()
	if ix.stop != nil {
		return nil
	}
	ctx, ix.stop = context.WithCancel(ctx)
	ix.sweep(time.Now())
	for range readers {
		ix.running.Go(func() { ix.serve(ctx, &ix.reading) })
	}
	for range callers {
		ix.running.Go(func() { ix.serve(ctx, &ix.remote) })
	}
	for range cap(ix.processors) {
		ix.running.Go(func() { ix.serve(ctx, &ix.general) })
	}
	ix.running.Go(func() { ix.tick(ctx) })
	return nil
}

// Stop ends the work after the texts being embedded and waits until nothing
// runs. What is left goes on with the next Start, in this process or another.
func (ix *Index) Stop() {
	ix.startMu.Lock()
	defer ix.startMu.Unlock()
	if ix.stop == nil {
		return
	}
	ix.stop()
	ix.running.Wait()
	ix.stop = nil
}

// tick sweeps now and then, and lets the others go when ctx ends.
func (ix *Index) tick(ctx context.Context) {
	defer ix.wakeAll()
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			ix.sweep(now)
		}
	}
}

// sweep takes up the unfinished work of agents not met before, and queues those
// whose wait is over.
func (ix *Index) sweep(now time.Time) {
	var unfinished []*store.DB
	for _, db := range ix.folder.Agents() {
		if db.Unfinished() {
			unfinished = append(unfinished, db)
		}
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	met := make(map[*store.DB]bool, len(unfinished))
	for _, db := range unfinished {
		met[db] = true
		if !ix.met[db] {
			ix.kick(db)
		}
	}
	ix.met = met
	for _, w := range ix.work {
		due := w.state == waiting && !now.Before(w.retryAt)
		if due || w.state == disabled && w.db.Agent().Status != agent.StatusDisabled {
			ix.enqueue(w, ix.home(w))
		}
	}
	for db, until := range ix.down {
		if now.After(until) {
			delete(ix.down, db)
		}
	}
}

// Kick tells that an agent may have new work: a source was made, restarted or
// deleted. It returns at once. Before Start the work waits for it.
func (ix *Index) Kick(db *store.DB) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.kick(db)
}

// Wait returns nil once nothing is queued or under way for an agent, or ctx's
// error. Work that waits for the agent to be enabled, or to be tried again
// after a failure, does not count.
func (ix *Index) Wait(ctx context.Context, db *store.DB) error {
	for {
		rested := ix.busy(db)
		if rested == nil {
			return nil
		}
		select {
		case <-rested:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// busy returns what tells of the end of some work of an agent; nil without any.
func (ix *Index) busy(db *store.DB) <-chan struct{} {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for _, remote := range []bool{false, true} {
		if w := ix.work[workKey{db, remote}]; w != nil && w.state != waiting && w.state != disabled {
			return w.rested
		}
	}
	return nil
}
