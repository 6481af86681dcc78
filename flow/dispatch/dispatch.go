// Package dispatch delivers the events in every agent's outbox to consumers.
//
// Guarantees: a consumer gets every event at least once, after the commit that
// wrote it, and the events of one agent in order. The consumer's cursor is a
// row in the agent's file, so a crash at any point repeats at most the last
// batch; consumers recognize a repeat by the event's id. Consumers and agents
// do not wait for each other. Agents without events cost nothing.
package dispatch

import (
	"context"
	"log/slog"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// Consumer handles events.
type Consumer struct {
	// Name is the name of its cursor, one of store's Consumer constants.
	Name string
	// Handle handles events of one agent, in order, and returns how many are
	// done. The others are delivered again, as is the whole batch after a
	// crash. Its context ends after 30 seconds.
	Handle func(ctx context.Context, db *store.DB, events []agent.Event) (done int, err error)
}

// Limits and intervals.
const (
	batchSize     = 128 // events per turn, passed in one commit
	maxTurns      = 32  // agents that a consumer serves at the same time
	handleTimeout = 30 * time.Second
	firstRetry    = time.Second // doubled after each failure
	longestRetry  = time.Minute
	skipAfter     = 10 // failures of the same event, about four minutes

	// interval is the least time between two turns of an agent, so that one
	// turn handles many events; idleInterval applies to an agent without
	// subscribers.
	interval     = 5 * time.Millisecond
	idleInterval = 100 * time.Millisecond
)

// Dispatcher runs consumers over the agents of a folder.
type Dispatcher struct {
	consumers []*consumer
}

// New returns a dispatcher for the agents of a folder. log may be nil.
func New(folder *store.Folder, log *slog.Logger, consumers ...Consumer) *Dispatcher {
	return newDispatcher(folder, log, work.Exponential(firstRetry, longestRetry), consumers...)
}

func newDispatcher(
	folder *store.Folder,
	log *slog.Logger,
	backoff func(failures int, err error) time.Duration,
	consumers ...Consumer,
) *Dispatcher {
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

// Start begins to dispatch, beginning with pending events. It returns
// immediately and may be called twice. The work ends with ctx or Stop.
func (d *Dispatcher) Start(ctx context.Context) error {
	for _, c := range d.consumers {
		c.queue.Start(ctx)
	}
	return nil
}

// Stop ends the work and waits until nothing runs. Pending events are delivered
// after the next Start, in this process or another.
func (d *Dispatcher) Stop() {
	for _, c := range d.consumers {
		c.queue.Stop()
	}
}

// Wait returns when every consumer has handled the events of an agent that
// existed when it was called, or with the error of ctx.
func (d *Dispatcher) Wait(ctx context.Context, db *store.DB) error {
	for _, c := range d.consumers {
		c.queue.Enqueue(db)
		if err := c.queue.Wait(ctx, db); err != nil {
			return err
		}
	}
	return nil
}
