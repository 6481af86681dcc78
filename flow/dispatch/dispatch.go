// Package dispatch hands the events of every agent's outbox to those who act
// on them.
//
// What holds: a consumer gets every event at least once, after the commit that
// wrote it, and those of one agent in their order. How far it has come is a row
// of the agent's file, so a kill at any point repeats at most the last batch;
// consumers tell a repeat by the event's id. Consumers and agents do not wait
// for each other. Agents without events cost nothing.
package dispatch

import (
	"context"
	"log/slog"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// Consumer acts on events.
type Consumer struct {
	// Name is that of its cursor, one of store's Consumer constants.
	Name string
	// Handle acts on events of one agent, in their order, and returns how many
	// it is done with; the others come again, as do all of a batch that a kill
	// cut. Its context ends after 30 seconds.
	Handle func(ctx context.Context, db *store.DB, events []agent.Event) (done int, err error)
}

// Bounds of the work.
const (
	batchSize     = 128 // events of a turn, passed in one commit
	turnsAtOnce   = 32  // agents that a consumer works for at a time
	handleTimeout = 30 * time.Second
	firstRetry    = time.Second // doubled with each failure
	longestRetry  = time.Minute
	giveUpAfter   = 10 // failures of the same event, about four minutes

	// interval is the least time from one turn of an agent to the next, so that
	// a turn takes many events at the cost of one, and idleInterval that of an
	// agent where nobody subscribes to any.
	interval     = 5 * time.Millisecond
	idleInterval = 100 * time.Millisecond
)

// Dispatcher runs consumers over the agents of a folder.
type Dispatcher struct {
	consumers []*consumer
}

// New makes a dispatcher over the agents of a folder. log may be nil.
func New(folder *store.Folder, log *slog.Logger, consumers ...Consumer) *Dispatcher {
	return newDispatcher(folder, log, work.Exponential(firstRetry, longestRetry), consumers...)
}

func newDispatcher(folder *store.Folder, log *slog.Logger, backoff func(failures int, err error) time.Duration, consumers ...Consumer) *Dispatcher {
	if log == nil {
		log = slog.Default()
	}
	d := &Dispatcher{}
	for _, c := range consumers {
		d.consumers = append(d.consumers, newConsumer(c, log, backoff))
	}
	folder.OnPending(func(db *store.DB, p store.Pending) {
		for _, c := range d.consumers {
			c.queue.EnqueueAt(db, p.Events.Time)
		}
	})
	return d
}

// Start begins to deliver, first what was left. It returns at once and may be
// called twice. The work ends with ctx or Stop.
func (d *Dispatcher) Start(ctx context.Context) error {
	for _, c := range d.consumers {
		c.queue.Start(ctx)
	}
	return nil
}

// Stop ends the work and waits until nothing runs. What is left goes on with
// the next Start, in this process or another.
func (d *Dispatcher) Stop() {
	for _, c := range d.consumers {
		c.queue.Stop()
	}
}

// Wait returns when every consumer has passed the events of an agent that were
// there when it was called, or with the error of ctx.
func (d *Dispatcher) Wait(ctx context.Context, db *store.DB) error {
	for _, c := range d.consumers {
		c.queue.Enqueue(db)
		if err := c.queue.Wait(ctx, db); err != nil {
			return err
		}
	}
	return nil
}
