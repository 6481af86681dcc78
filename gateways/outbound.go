package gateways

import (
	"context"
	"sync"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Bounds of what is sent at once, and pauses.
const (
	looksAtOnce    = 4
	lookAgainAfter = 30 * time.Second // when an agent's file could not be read
	holdAfter      = time.Minute      // when what came of a send could not be written
	longestTimer   = 30 * time.Second // so that a clock that was set is noticed
	sendsAtOnce    = 64
	sendsOfAgent   = 8
	loadedOfAgent  = 2 * sendsOfAgent
	drainFor       = 3 * time.Second
)

// outbound sends the messages of conversations. Their rows in the agent's file
// are the queue; memory holds which agents have some and what is under way.
type outbound struct {
	mu      sync.Mutex
	ctx     context.Context // nil: not started
	desks   map[*store.DB]*desk
	met     map[*store.DB]bool // agents whose cut sends were settled
	toLook  []*desk
	lookers int
	places  int                                          // sends under way
	parked  []*desk                                      // that have more to send than there are places
	tried   func(*store.DB, *store.Sending, store.Ended) // is told of each try; tests set it
	drain   time.Duration                                // what Stop gives the sends under way

	startMu sync.Mutex
	stop    context.CancelFunc
	running sync.WaitGroup
}

// desk is an agent with messages to be sent.
type desk struct {
	db      *store.DB
	busy    map[string]bool // conversations with a send under way
	looking bool            // in toLook, or being looked at
	again   bool            // look once more
	parked  bool
	resting bool    // the agent is disabled
	timer   stopper // for the next look; nil: none
	at      time.Time
}

func newOutbound() *outbound {
	return &outbound{desks: map[*store.DB]*desk{}, met: map[*store.DB]bool{}, drain: drainFor,
		tried: func(*store.DB, *store.Sending, store.Ended) {}}
}

// Start begins to send the messages that wait. It returns at once and may be
// called twice. The work ends with ctx or Stop.
func (g *Gateways) Start(ctx context.Context) error {
	o := g.out
	o.startMu.Lock()
	defer o.startMu.Unlock()
	if o.stop != nil {
		return nil
	}
	ctx, o.stop = context.WithCancel(ctx)
	o.mu.Lock()
	o.ctx = ctx
	o.mu.Unlock()
	for _, db := range g.folder.Agents() {
		g.Resume(db)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.desks {
		g.lookAt(d)
	}
	return nil
}

// Stop begins no more sends, gives those under way three seconds, cuts the
// rest and waits until nothing runs. A send that was cut counts as one whose
// outcome nobody knows.
func (g *Gateways) Stop() {
	o := g.out
	o.startMu.Lock()
	defer o.startMu.Unlock()
	if o.stop == nil {
		return
	}
	o.mu.Lock()
	o.ctx = nil
	for _, d := range o.desks {
		d.looking = false
		d.rest()
	}
	o.toLook = nil
	o.mu.Unlock()
	cut := time.AfterFunc(o.drain, o.stop)
	o.running.Wait()
	cut.Stop()
	o.stop()
	o.stop = nil
	clear(o.met) // what was cut is settled by the next Start
	g.guard.CloseIdleConnections()
}

// rest takes away a desk's timer.
func (d *desk) rest() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// Resume takes up the messages that an agent had to send when its file was
// loaded, the first time that it is asked to, and those of an agent that is
// disabled no more. It returns at once and may be called often.
func (g *Gateways) Resume(db *store.DB) {
	g.out.mu.Lock()
	defer g.out.mu.Unlock()
	d := g.out.desks[db]
	if d == nil && !g.out.met[db] && !db.NextSending().IsZero() || d != nil && d.resting {
		g.lookAt(g.desk(db))
	}
}

// Kick tells that an agent has messages to send. It returns at once. Before
// Start the work waits for it.
func (g *Gateways) Kick(db *store.DB) {
	g.out.mu.Lock()
	defer g.out.mu.Unlock()
	g.lookAt(g.desk(db))
}

func (g *Gateways) desk(db *store.DB) *desk {
	d := g.out.desks[db]
	if d == nil {
		d = &desk{db: db, busy: map[string]bool{}}
		g.out.desks[db] = d
	}
	return d
}

// lookAt sees to it that a desk is looked at. The caller holds mu.
func (g *Gateways) lookAt(d *desk) {
	o := g.out
	switch {
	case o.ctx == nil: // Start does
	case d.looking:
		d.again = true
	default:
		d.looking = true
		o.toLook = append(o.toLook, d)
		g.pump()
	}
}

// pump starts the looks that there is room for. The caller holds mu.
func (g *Gateways) pump() {
	o := g.out
	for o.ctx != nil && len(o.toLook) > 0 && o.lookers < looksAtOnce {
		d, ctx := o.toLook[0], o.ctx
		o.toLook = o.toLook[1:]
		o.lookers++
		o.running.Go(func() { g.look(ctx, d) })
	}
}

// look loads what is due of an agent and begins to send it.
func (g *Gateways) look(ctx context.Context, d *desk) {
	var due []store.DueMessage
	var next agent.Time
	var err error
	now := g.now()
	resting := d.db.Agent().Status == agent.StatusDisabled
	if !resting {
		if err = g.settle(ctx, d.db, now); err == nil {
			due, next, err = d.db.DueMessages(ctx, agent.At(now), loadedOfAgent)
		}
	}
	o := g.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lookers--
	defer g.pump()
	if o.ctx != ctx {
		return // Stop came between; the next Start looks
	}
	d.looking, d.resting = false, resting
	switch {
	case agent.ErrorCode(err) == agent.CodeNotFound || d.db.Problem() != nil:
		due = nil
		delete(o.met, d.db)
	case err != nil:
		g.log.Error("read the messages that an agent has to send", "agent", d.db.ID(), "error", err)
		g.plan(d, now.Add(lookAgainAfter))
	case !next.IsZero():
		g.plan(d, next.Time)
	}
	for _, m := range due {
		if !g.begin(ctx, d, m) {
			break
		}
	}
	if d.again {
		d.again = false
		g.lookAt(d)
	}
	g.forget(d)
}

// begin begins to send a message; false when there is no place. The caller
// holds mu.
func (g *Gateways) begin(ctx context.Context, d *desk, m store.DueMessage) bool {
	o := g.out
	switch {
	case d.busy[m.ConversationID]:
		return true
	case len(d.busy) >= sendsOfAgent:
		return false // the end of one of its sends looks again
	case o.places >= sendsAtOnce:
		if !d.parked {
			d.parked = true
			o.parked = append(o.parked, d)
		}
		return false
	}
	o.places++
	d.busy[m.ConversationID] = true
	o.running.Go(func() {
		g.sendOne(ctx, d.db, m.ID)
		g.end(d, m.ConversationID)
	})
	return true
}

// end gives a place to the next.
func (g *Gateways) end(d *desk, conversationID string) {
	o := g.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.places--
	delete(d.busy, conversationID)
	g.lookAt(d)
	if len(o.parked) > 0 {
		next := o.parked[0]
		o.parked = o.parked[1:]
		next.parked = false
		g.lookAt(next)
	}
	g.forget(d)
}

// plan looks at a desk at a moment, or soon before. The caller holds mu.
func (g *Gateways) plan(d *desk, at time.Time) {
	if d.timer != nil && !at.Before(d.at) {
		return
	}
	d.rest()
	pause := min(max(at.Sub(g.now()), 0), longestTimer)
	d.at = g.now().Add(pause)
	d.timer = g.after(pause, func() {
		g.out.mu.Lock()
		defer g.out.mu.Unlock()
		d.timer = nil
		g.lookAt(d)
	})
}

// forget drops a desk that is at rest, so that memory holds working agents only.
func (g *Gateways) forget(d *desk) {
	if len(d.busy) == 0 && !d.looking && !d.parked && !d.resting && d.timer == nil && g.out.ctx != nil && g.out.desks[d.db] == d {
		delete(g.out.desks, d.db)
	}
}

// settle decides, before anything else of an agent is sent, about what the
// program was ended in the middle of: it is sent again where the platform can
// tell a repeat, else it has failed.
func (g *Gateways) settle(ctx context.Context, db *store.DB, now time.Time) error {
	g.out.mu.Lock()
	met := g.out.met[db]
	g.out.mu.Unlock()
	if met {
		return nil
	}
	cut, err := db.CutSendings(ctx)
	for i := 0; err == nil && i < len(cut); i++ {
		s := &cut[i]
		e := store.Ended{Parts: s.Parts, ExternalID: s.ExternalID, Channel: s.Channel, Problem: "the server was stopped in the middle of sending"}
		if g.knowsAgain(s, now) {
			e.Next = agent.At(now)
		} else {
			e.Problem += unsure
		}
		err = db.EndSending(ctx, s, e)
	}
	if err != nil {
		return err
	}
	g.out.mu.Lock()
	g.out.met[db] = true
	g.out.mu.Unlock()
	return nil
}
