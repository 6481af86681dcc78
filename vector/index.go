package vector

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
	"satchel/vector/document"
	"satchel/vector/models"
)

// Index builds and searches the knowledge of the agents of one data folder.
//
// Agents take turns. A turn reads one document or embeds one batch of chunks,
// so that a large import of one agent does not delay the small one of another.
type Index struct {
	folder   *store.Folder
	embedder Embedder
	network  Remote
	files    *models.Library
	log      *slog.Logger
	step     func(name string) // called at each step of the work; for tests

	// processors holds a token for each computing goroutine. Its capacity is one less
	// than the number of processors, so that requests find one free: without that, a
	// small request took ten times as long at the 99th percentile.
	processors chan struct{}

	// The work of an agent is split between queues: local computation, reading
	// texts, reading documents, of which few are in memory at the same time, and
	// requests to the network. The documents of agents whose last one took too long
	// are in a queue of their own, so that they only wait for each other.
	local, reading, documents, late, remote *work.Queue[*store.DB]
	handovers                               atomic.Int64 // number of moves of agents between queues

	readDocument func(
		ctx context.Context,
		name, media string,
		data []byte,
		limits document.Limits,
	) (*document.Document, error)

	mu               sync.Mutex
	unavailableUntil map[*store.DB]time.Time // agents whose provider did not respond, and until when it is not called
	lateAgents       map[*store.DB]bool      // agents whose last document took too long to read

	backgrounds map[string][][]float32 // see backgroundOf
}

// New returns an Index of the agents of a folder. log may be nil.
func New(folder *store.Folder, embedder Embedder, log *slog.Logger) *Index {
	if log == nil {
		log = slog.Default()
	}
	ix := &Index{
		folder:           folder,
		embedder:         embedder,
		files:            models.New(folder.Path()),
		log:              log,
		step:             func(string) {},
		processors:       make(chan struct{}, max(1, work.Processors-1)),
		unavailableUntil: map[*store.DB]time.Time{},
		lateAgents:       map[*store.DB]bool{},
		backgrounds:      map[string][][]float32{},
		readDocument:     document.Read,
	}
	ix.local = ix.queue(cap(ix.processors), ix.runLocal)
	ix.reading = ix.queue(maxReaders, ix.runReading)
	ix.documents = ix.queue(maxReaders, func(ctx context.Context, db *store.DB) (work.Next, error) {
		return work.Next{}, ix.runDocument(ctx, db, ix.documents)
	})
	ix.late = ix.queue(1, func(ctx context.Context, db *store.DB) (work.Next, error) {
		return work.Next{}, ix.runDocument(ctx, db, ix.late)
	})
	ix.remote = ix.queue(maxCallers, ix.runRemote)
	ix.SetRemote(Remote{})
	folder.OnPending(ix.notify)
	return ix
}

func (ix *Index) queue(limit int, run func(context.Context, *store.DB) (work.Next, error)) *work.Queue[*store.DB] {
	return work.New(work.Options[*store.DB]{
		Run: func(ctx context.Context, db *store.DB) (work.Next, error) {
			if db.Suspended() {
				ix.noteAvailability(db, false, time.Time{})
				return work.Next{}, nil
			}
			next, err := run(ctx, db)
			return next, agent.IgnoreNotFound(err)
		},
		Limit:   limit,
		Backoff: work.Exponential(firstRetry, lastRetry),
		OnError: ix.report,
	})
}

func (ix *Index) report(db *store.DB, err error) {
	if !errors.Is(err, errRetryLater) { // logged with its cause
		ix.log.Error("index sources", "agent", db.ID(), "error", err)
	}
}

// notify handles a notification of pending work of an agent.
func (ix *Index) notify(db *store.DB, p store.Pending) {
	due := p.Sources
	if due.IsZero() || !p.Pages.IsZero() && p.Pages.Before(due.Time) {
		due = p.Pages
	}
	if due.IsZero() {
		return
	}
	ix.local.Notify(db, due.Time, p.Changed)
	ix.remote.Notify(db, due.Time, p.Changed)
}

// maxReaders limits the texts, and the documents, that are read, and thus in memory,
// at the same time; maxCallers limits the requests in progress to APIs and providers.
const (
	maxReaders = 2
	maxCallers = 8
)

// The delay after a failure, doubled with each consecutive one.
const (
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
)

func (ix *Index) queues() []*work.Queue[*store.DB] {
	return []*work.Queue[*store.DB]{ix.local, ix.reading, ix.documents, ix.late, ix.remote}
}

// Start resumes unfinished work and begins to work. It returns immediately and
// may be called twice. The work ends with ctx or Stop.
func (ix *Index) Start(ctx context.Context) error {
	for _, q := range ix.queues() {
		q.Start(ctx)
	}
	return nil
}

// Stop ends the work after the texts being embedded and waits until nothing
// runs. The rest continues with the next Start, in this process or another.
func (ix *Index) Stop() {
	for _, q := range ix.queues() {
		q.Stop()
	}
}

// Wait returns nil when no work for an agent is queued or running, or ctx's
// error. Work that waits for the agent to be enabled, or for a retry after a
// failure, does not count.
func (ix *Index) Wait(ctx context.Context, db *store.DB) error {
	for {
		before := ix.handovers.Load()
		for _, q := range ix.queues() {
			if err := q.Wait(ctx, db); err != nil {
				return err
			}
		}
		if ix.handovers.Load() == before {
			return nil
		}
	}
}

// moveTo enqueues an agent's next step in another queue.
func (ix *Index) moveTo(db *store.DB, to *work.Queue[*store.DB]) {
	to.Enqueue(db)
	ix.handovers.Add(1)
}

// documentQueue returns the queue for an agent's next document.
func (ix *Index) documentQueue(db *store.DB) *work.Queue[*store.DB] {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.lateAgents[db] {
		return ix.late
	}
	return ix.documents
}

// noteLate records whether the last document of an agent took too long to read.
func (ix *Index) noteLate(db *store.DB, late bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if delete(ix.lateAgents, db); late {
		ix.lateAgents[db] = true
	}
	maps.DeleteFunc(ix.lateAgents, func(other *store.DB, _ bool) bool {
		return other != db && other.Suspended() && !ix.late.Busy(other) // perhaps deleted
	})
}
