package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// consumer is a Consumer with its queue of agents.
type consumer struct {
	Consumer
	log   *slog.Logger
	queue *work.Queue[*store.DB]

	mu      sync.Mutex
	failing map[*store.DB]failing // agents whose last turn failed
}

// failing is the state of an agent whose events fail.
type failing struct {
	failures int // of the same event
	single   int // remaining turns with a single event each, to find the one that fails
}

func newConsumer(c Consumer, log *slog.Logger, backoff func(failures int, err error) time.Duration) *consumer {
	l := &consumer{
		Consumer: c,
		log:      log.With("consumer", c.Name),
		failing:  map[*store.DB]failing{},
	}
	l.queue = work.New(work.Options[*store.DB]{
		Run:     l.run,
		Limit:   maxTurns,
		Backoff: backoff,
		OnError: l.report,
	})
	return l
}

func (c *consumer) report(db *store.DB, err error) {
	c.log.Error("handle events", "agent", db.ID(), "error", err)
}

// run dispatches the next events of an agent and decides what follows.
func (c *consumer) run(ctx context.Context, db *store.DB) (work.Next, error) {
	if db.Gone() || db.Problem() != nil {
		c.set(db, failing{})
		return work.Next{}, nil
	}
	f, limit := c.get(db), batchSize
	if f.single > 0 {
		f.single--
		limit = 1
	}
	turn, err := c.turn(ctx, db, limit)
	switch {
	case ctx.Err() != nil || db.Gone():
		return work.Next{}, err
	case err == nil:
		f.failures = 0
	case turn.passed: // another event failed than before
		f = failing{failures: 1, single: batchSize}
	default:
		f = failing{failures: f.failures + 1, single: batchSize}
	}
	if f.failures >= skipAfter && c.skip(ctx, db, err) == nil {
		f.failures, err, turn.more = 0, nil, true
	}
	c.set(db, f)
	return turn.next(), err
}

func (c *consumer) get(db *store.DB) failing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failing[db]
}

func (c *consumer) set(db *store.DB, f failing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f == (failing{}) {
		delete(c.failing, db)
	} else {
		c.failing[db] = f
	}
}

// turn is the outcome of one turn.
type turn struct {
	passed        bool // some events were passed
	more          bool // there may be more events
	noSubscribers bool // no event of this agent has a subscriber
}

func (t turn) next() work.Next {
	switch {
	case t.more:
		return work.Next{Again: true}
	case t.noSubscribers:
		return work.Next{Rest: idleInterval}
	}
	return work.Next{Rest: interval}
}

// turn dispatches the next events of an agent to the consumer.
func (c *consumer) turn(ctx context.Context, db *store.DB, limit int) (turn, error) {
	undelivered, err := db.Undelivered(ctx, c.Name, limit)
	if err != nil {
		return turn{}, err
	}
	if undelivered.NoSubscribers {
		return turn{noSubscribers: true}, nil
	}
	passed := undelivered.Last
	if len(undelivered.Events) > 0 {
		var handled int
		if handled, err = c.handle(ctx, db, undelivered.Events); handled < len(undelivered.Events) {
			passed = undelivered.Events[handled].Seq - 1
		}
	}
	if passed <= undelivered.After {
		return turn{}, err
	}
	if err := db.PassEvents(context.WithoutCancel(ctx), c.Name, passed); err != nil {
		return turn{}, err
	}
	return turn{passed: true, more: undelivered.More || passed < undelivered.Last}, err
}

// handle calls the consumer with a time limit. A panic becomes an error.
func (c *consumer) handle(ctx context.Context, db *store.DB, events []agent.Event) (done int, err error) {
	ctx, cancel := context.WithTimeout(ctx, handleTimeout)
	defer cancel()
	err = recoverPanic(func() (err error) {
		done, err = c.Handle(ctx, db, events)
		return err
	})
	if err == nil && done < len(events) {
		err = fmt.Errorf("%d of %d events were handled", done, len(events))
	}
	return min(max(done, 0), len(events)), err
}

// recoverPanic calls fn. A panic becomes an error.
func recoverPanic(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return fn()
}

// skip moves past the event that blocks the others of its agent. If that cannot
// be written, the event is retried.
func (c *consumer) skip(ctx context.Context, db *store.DB, cause error) error {
	u, err := db.Undelivered(ctx, c.Name, 1)
	if err != nil || len(u.Events) == 0 {
		return err
	}
	event := u.Events[0]
	err = db.PassEvents(ctx, c.Name, event.Seq)
	c.log.Error(
		"skip event",
		"agent", db.ID(),
		"event", event.ID,
		"type", event.Type,
		"error", errors.Join(cause, err),
	)
	return err
}
