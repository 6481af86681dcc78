package vector

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// Index makes and searches the knowledge of the agents of one data folder.
//
// Agents take turns: a turn is the reading of one document or the embedding of
// one batch of chunks, so that a large import of one agent does not keep the
// small one of another waiting.
type Index struct {
	folder   *store.Folder
	embedder Embedder
	network  Remote
	log      *slog.Logger
	step     func(name string) // told of each step of the work; tests set it

	// processors holds a token for each goroutine that computes. There is room
	// for one less than there are processors, so that requests find one free:
	// with as many, a small request took ten times as long at the 99th of 100.
	processors chan struct{}

	// The work of an agent goes on in three queues: what this machine computes,
	// the reading of documents, of which few are in memory at a time, and what
	// waits for the network.
	local, reading, remote *work.Queue[*store.DB]
	handovers              atomic.Int64 // of agents from one queue to another

	mu   sync.Mutex
	down map[*store.DB]time.Time // agents whose provider did not answer, and until when it is not asked
}

// New makes an Index over the agents of a folder. log may be nil.
func New(folder *store.Folder, embedder Embedder, log *slog.Logger) *Index {
	if log == nil {
		log = slog.Default()
	}
	ix := &Index{
		folder: folder, embedder: embedder, log: log, step: func(string) {},
		processors: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1)),
		down:       map[*store.DB]time.Time{},
	}
	ix.local = ix.queue(cap(ix.processors), ix.runLocal)
	ix.reading = ix.queue(readers, ix.runReading)
	ix.remote = ix.queue(callers, ix.runRemote)
	ix.SetRemote(Remote{})
	folder.OnPending(ix.notify)
	return ix
}

func (ix *Index) queue(limit int, run func(context.Context, *store.DB) (work.Next, error)) *work.Queue[*store.DB] {
	return work.New(work.Options[*store.DB]{
		Run: func(ctx context.Context, db *store.DB) (work.Next, error) {
			if db.Suspended() {
				ix.noteDown(db, false, time.Time{})
				return work.Next{}, nil
			}
			next, err := run(ctx, db)
			return next, agent.IgnoreNotFound(err)
		},
		Limit: limit, Backoff: work.Exponential(firstRetry, lastRetry), OnError: ix.report,
	})
}

func (ix *Index) report(db *store.DB, err error) {
	if !errors.Is(err, errRetryLater) { // which was logged with its cause
		ix.log.Error("index sources", "agent", db.ID(), "error", err)
	}
}

// notify takes up the work that is announced of an agent.
func (ix *Index) notify(db *store.DB, p store.Pending) {
	due := p.Sources
	if due.IsZero() || !p.Pages.IsZero() && p.Pages.Before(due.Time) {
		due = p.Pages
	}
	if due.IsZero() {
		return
	}
	for _, q := range []*work.Queue[*store.DB]{ix.local, ix.remote} {
		if p.Changed {
			q.Retry(db)
		} else {
			q.EnqueueAt(db, due.Time)
		}
	}
}

// readers bounds the documents that are read at a time, and so in memory;
// callers the requests to APIs and providers that wait for their answers.
const (
	readers = 2
	callers = 8
)

// The wait after a failure, which doubles with each one in a row.
const (
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
)

// Start takes up what is unfinished and begins to work. It returns at once and
// may be called twice. The work ends with ctx or Stop.
func (ix *Index) Start(ctx context.Context) error {
	ix.local.Start(ctx)
	ix.reading.Start(ctx)
	ix.remote.Start(ctx)
	return nil
}

// Stop ends the work after the texts being embedded and waits until nothing
// runs. What is left goes on with the next Start, in this process or another.
func (ix *Index) Stop() {
	ix.local.Stop()
	ix.reading.Stop()
	ix.remote.Stop()
}

// Wait returns nil once nothing is queued or under way for an agent, or ctx's
// error. Work that waits for the agent to be enabled, or to be tried again
// after a failure, does not count.
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
