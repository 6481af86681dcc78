package vector

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
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

	// The work of an agent is split between three queues: local computation,
	// reading documents, of which few are in memory at the same time, and
	// requests to the network.
	local, reading, remote *work.Queue[*store.DB]
	handovers              atomic.Int64 // number of moves of agents between queues

	mu               sync.Mutex
	unavailableUntil map[*store.DB]time.Time // agents whose provider did not respond, and until when it is not called

	backgrounds map[string][][]float32 // see backgroundOf
}

// New returns an Index of the agents of a folder. log may be nil.
func New(folder *store.Folder, embedder Embedder, log *slog.Logger) *Index {
	if log == nil {
		log = slog.Default()
	}
	ix := &Index{
		folder: folder, embedder: embedder, files: models.New(folder.Path()), log: log, step: func(string) {},
		processors:       make(chan struct{}, max(1, work.Processors-1)),
		unavailableUntil: map[*store.DB]time.Time{}, backgrounds: map[string][][]float32{},
	}
	ix.local = ix.queue(cap(ix.processors), ix.runLocal)
	ix.reading = ix.queue(maxReaders, ix.runReading)
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
		Limit: limit, Backoff: work.Exponential(firstRetry, lastRetry), OnError: ix.report,
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

// maxReaders limits the documents that are read, and thus in memory, at the same
// time; callers limits the requests in progress to APIs and providers.
const (
	maxReaders = 2
	maxCallers = 8
)

// The delay after a failure, doubled with each consecutive one.
const (
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
)

// Start resumes unfinished work and begins to work. It returns immediately and
// may be called twice. The work ends with ctx or Stop.
func (ix *Index) Start(ctx context.Context) error {
	ix.local.Start(ctx)
	ix.reading.Start(ctx)
	ix.remote.Start(ctx)
	return nil
}

// Stop ends the work after the texts being embedded and waits until nothing
// runs. The rest continues with the next Start, in this process or another.
func (ix *Index) Stop() {
	ix.local.Stop()
	ix.reading.Stop()
	ix.remote.Stop()
}

// Wait returns nil when no work for an agent is queued or running, or ctx's
// error. Work that waits for the agent to be enabled, or for a retry after a
// failure, does not count.
func (ix *Index) Wait(ctx context.Context, db *store.DB) error {
	for {
		before := ix.handovers.Load()
		for _, q := range []*work.Queue[*store.DB]{ix.local, ix.reading, ix.remote} {
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
