// Package dispatch hands the events of every agent's outbox to those who act
// on them.
//
// What holds: a consumer gets every event at least once, after the commit that
// wrote it, and those of one agent in their order. How far it has come is a row
// of the agent's file, so a kill at any point repeats at most the last batch;
// consumers tell a repeat by the event's id. Consumers and agents do not wait
// for each other. Agents at rest cost nothing: a commit that wrote events wakes
// the dispatcher, and the catalog knows at the start whose events are left.
package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"satchel/agent"
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
	// Triggers says that the events start work: those that find their agent
	// paused or disabled are passed over for good, and so are those that too
	// many executions led to (agent.MaxEventDepth).
	Triggers bool
}

// Bounds of the work.
const (
	batchSize     = 128 // events of a turn, passed in one commit
	turnsAtOnce   = 32  // agents that a consumer works for at a time
	handleTimeout = 30 * time.Second
	firstRetry    = time.Second // doubled with each failure
	longestRetry  = time.Minute
	giveUpAfter   = 10 // failures of the same event, about four minutes

	// pace is the least time from one turn of an agent to the next when events
	// come without a pause, so that a turn takes many at the cost of one.
	pace = 5 * time.Millisecond
)

// Dispatcher runs consumers over the agents of a folder.
type Dispatcher struct {
	folder *store.Folder
	lanes  []*lane

	startMu sync.Mutex
	stop    context.CancelFunc
	running sync.WaitGroup
}

// New makes a dispatcher over the agents of a folder. log may be nil.
func New(folder *store.Folder, log *slog.Logger, consumers ...Consumer) *Dispatcher {
	if log == nil {
		log = slog.Default()
	}
	d := &Dispatcher{folder: folder}
	for _, c := range consumers {
		d.lanes = append(d.lanes, &lane{Consumer: c, log: log.With("consumer", c.Name), owner: d,
			agents: map[*store.DB]*visit{}, after: time.AfterFunc})
	}
	return d
}

// Start begins to deliver, first what was left. It returns at once and may be
// called twice. The work ends with ctx or Stop.
func (d *Dispatcher) Start(ctx context.Context) error {
	d.startMu.Lock()
	defer d.startMu.Unlock()
	if d.stop != nil {
		return nil
	}
	ctx, d.stop = context.WithCancel(ctx)
	for _, l := range d.lanes {
		l.begin(ctx)
	}
	for _, db := range d.folder.Agents() {
		if db.Behind() {
			d.Wake(db)
		}
	}
	return nil
}

// Stop ends the work and waits until nothing runs. What is left goes on with
// the next Start, in this process or another.
func (d *Dispatcher) Stop() {
	d.startMu.Lock()
	defer d.startMu.Unlock()
	if d.stop == nil {
		return
	}
	d.stop()
	for _, l := range d.lanes {
		l.end()
	}
	d.running.Wait()
	d.stop = nil
}

// Wake tells that an agent may have events to deliver. It returns at once.
// Before Start the work waits for it.
func (d *Dispatcher) Wake(db *store.DB) {
	for _, l := range d.lanes {
		l.wake(db)
	}
}

// turn hands the next events of an agent to the consumer and tells whether
// more may be there.
func (l *lane) turn(ctx context.Context, db *store.DB, limit int) (more bool, err error) {
	events, standing, err := db.Undelivered(ctx, l.Name, limit)
	if err != nil || len(events) == 0 {
		return false, err
	}
	done := len(events)
	if l.Triggers {
		if wanted := l.wanted(db, standing, events); len(wanted) > 0 {
			var handled int
			if handled, err = l.handle(ctx, db, wanted); handled < len(wanted) {
				done = int(indexOf(events, wanted[handled].Seq))
			}
		}
	} else {
		done, err = l.handle(ctx, db, events)
	}
	if done > 0 {
		if err := db.PassEvents(context.WithoutCancel(ctx), l.Name, events[done-1].Seq); err != nil {
			return false, err
		}
	}
	return done > 0 && (done < len(events) || len(events) == limit), err
}

func indexOf(events []agent.Event, seq int64) int {
	for i, e := range events {
		if e.Seq == seq {
			return i
		}
	}
	return 0
}

// wanted picks the events that may start work.
func (l *lane) wanted(db *store.DB, standing store.Standing, events []agent.Event) []agent.Event {
	if standing.Status != agent.StatusActive {
		return nil
	}
	wanted := make([]agent.Event, 0, len(events))
	for _, e := range events {
		if e.Seq <= standing.Woken {
			continue
		}
		if e.Depth < agent.MaxEventDepth {
			wanted = append(wanted, e)
		} else {
			l.log.Warn("an event starts nothing: a chain of executions is too long", "agent", db.ID(), "event", e.Type, "depth", e.Depth)
		}
	}
	return wanted
}

// guarded runs fn; its panic is an error.
func guarded(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return fn()
}

// handle calls the consumer within its time; its panic is an error.
func (l *lane) handle(ctx context.Context, db *store.DB, events []agent.Event) (done int, err error) {
	ctx, cancel := context.WithTimeout(ctx, handleTimeout)
	defer cancel()
	err = guarded(func() (err error) {
		done, err = l.Handle(ctx, db, events)
		return err
	})
	if err == nil && done < len(events) {
		err = fmt.Errorf("%d of %d events were handled", done, len(events))
	}
	return min(max(done, 0), len(events)), err
}
