package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"satchel/agent"
	"satchel/store"
)

// lane is the work of one consumer. Agents wait in line, each once; turns of
// several agents run at a time, of one agent never.
type lane struct {
	Consumer
	log   *slog.Logger
	owner *Dispatcher
	after func(time.Duration, func()) *time.Timer // time.AfterFunc, but in tests

	mu      sync.Mutex
	ctx     context.Context // nil: not started
	agents  map[*store.DB]*visit
	line    []*store.DB
	workers int
}

// visit is an agent that is not at rest.
type visit struct {
	state    state
	began    time.Time   // its turn
	again    bool        // woken since its turn began
	failures int         // in a row
	careful  int         // turns of a single event, to find the one that fails
	retry    *time.Timer // while resting or waiting
}

type state int

const (
	inLine state = iota
	inTurn
	resting // until its pace allows another turn
	waiting // to be tried again
)

func (l *lane) begin(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx = ctx
	l.staff()
}

func (l *lane) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx = nil
	for db, v := range l.agents {
		if v.retry != nil {
			v.retry.Stop()
			l.enqueue(db, v)
		}
	}
}

func (l *lane) wake(db *store.DB) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.agents[db]
	switch {
	case v == nil:
		v = &visit{}
		l.agents[db] = v
		l.enqueue(db, v)
	case v.state == inTurn || v.state == resting:
		v.again = true
	}
}

// enqueue puts an agent at the end of the line. The caller holds l.mu.
func (l *lane) enqueue(db *store.DB, v *visit) {
	v.state, v.again, v.retry = inLine, false, nil
	l.line = append(l.line, db)
	l.staff()
}

// staff sees to it that someone serves the line. The caller holds l.mu.
func (l *lane) staff() {
	if l.ctx == nil || l.ctx.Err() != nil || len(l.line) == 0 || l.workers == turnsAtOnce {
		return
	}
	l.workers++
	ctx := l.ctx
	l.owner.running.Go(func() { l.serve(ctx) })
}

// serve takes turns until the line is empty.
func (l *lane) serve(ctx context.Context) {
	for {
		db, limit := l.next(ctx)
		if db == nil {
			return
		}
		t, err := l.turn(ctx, db, limit)
		l.ended(ctx, db, t, err)
	}
}

// next takes the first agent of the line and how many events its turn may
// take, or dismisses the worker.
func (l *lane) next(ctx context.Context) (*store.DB, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil || len(l.line) == 0 {
		l.workers--
		return nil, 0
	}
	db := l.line[0]
	l.line = l.line[1:]
	v := l.agents[db]
	v.state, v.began = inTurn, time.Now()
	l.staff()
	if v.careful > 0 {
		v.careful--
		return db, 1
	}
	return db, batchSize
}

// ended decides what comes after a turn: rest, the end of the line, or a wait.
func (l *lane) ended(ctx context.Context, db *store.DB, t turn, err error) {
	failed := err != nil && ctx.Err() == nil
	if agent.ErrorCode(err) == agent.CodeNotFound && !t.more {
		if _, err := l.owner.folder.Agent(db.ID()); err != nil {
			l.forget(db)
			return
		}
	}
	if errors.Is(err, store.ErrClosed) || db.Problem() != nil {
		l.forget(db)
		return
	}
	v, stuck := l.note(db, t.more, failed)
	if failed {
		l.log.Error("events could not be handled", "agent", db.ID(), "failures", v, "error", err)
	}
	if stuck {
		l.skip(ctx, db, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	visit := l.agents[db]
	switch {
	case ctx.Err() != nil || t.more && !failed || stuck:
		l.enqueue(db, visit)
	case failed:
		l.pause(db, visit, waiting, min(firstRetry<<min(visit.failures-1, 10), longestRetry), l.after)
	case t.deaf:
		l.pause(db, visit, resting, deafPace-time.Since(visit.began), time.AfterFunc)
	default:
		l.pause(db, visit, resting, pace-time.Since(visit.began), time.AfterFunc)
	}
}

// note counts failures in a row, and tells when the first event in line has
// used up its tries.
func (l *lane) note(db *store.DB, progress, failed bool) (failures int, stuck bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.agents[db]
	if progress || !failed {
		v.failures = 0
	}
	if failed {
		v.failures++
		v.careful = batchSize
	}
	return v.failures, v.failures >= giveUpAfter
}

// skip passes over the event that its agent's others wait for. When even that
// cannot be written, it stays and is tried again.
func (l *lane) skip(ctx context.Context, db *store.DB, cause error) {
	u, err := db.Undelivered(ctx, l.Name, 1)
	if err == nil && len(u.Events) == 1 {
		given := u.Events[0]
		err = db.PassEvents(ctx, l.Name, given.Seq)
		l.log.Error("an event was given up", "agent", db.ID(), "event", given.ID, "type", given.Type, "error", errors.Join(cause, err))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.agents[db].failures = 0
}

// pause lets an agent rest or wait for a time. One that rested has a turn again
// only if it was woken meanwhile. The caller holds l.mu.
func (l *lane) pause(db *store.DB, v *visit, s state, pause time.Duration, after func(time.Duration, func()) *time.Timer) {
	v.state = s
	v.retry = after(pause, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case l.agents[db] != v || v.state != s:
		case s == waiting || v.again:
			l.enqueue(db, v)
		default:
			delete(l.agents, db)
		}
	})
}

func (l *lane) forget(db *store.DB) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.agents, db)
}
