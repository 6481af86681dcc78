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

	// pace is the least time from one turn of an agent to the next, so that a
	// turn takes many events at the cost of one, and deafPace that of an agent
	// where nobody listens to any.
	pace     = 5 * time.Millisecond
	deafPace = 100 * time.Millisecond
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

// turn is what came of one.
type turn struct {
	more bool // there may be other events
	deaf bool // nobody listens to any event of this agent
}

// turn hands the next events of an agent to the consumer.
func (l *lane) turn(ctx context.Context, db *store.DB, limit int) (turn, error) {
	u, err := db.Undelivered(ctx, l.Name, limit)
	if err != nil {
		return turn{}, err
	}
	passed, wanted := u.Last, u.Events
	if l.Triggers {
		wanted = l.wanted(db, u)
	}
	if len(wanted) > 0 {
		var handled int
		if handled, err = l.handle(ctx, db, wanted); handled < len(wanted) {
			passed = wanted[handled].Seq - 1
		}
	}
	if passed <= u.After {
		return turn{deaf: u.Deaf}, err
	}
	if err := db.PassEvents(context.WithoutCancel(ctx), l.Name, passed); err != nil {
		return turn{}, err
	}
	return turn{more: u.More || passed < u.Last, deaf: u.Deaf}, err
}

// wanted picks the events that may start work.
func (l *lane) wanted(db *store.DB, u store.Undelivered) []agent.Event {
	if u.Status != agent.StatusActive {
		return nil
	}
	wanted := make([]agent.Event, 0, len(u.Events))
	for _, e := range u.Events {
		if e.Seq <= u.Woken {
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
