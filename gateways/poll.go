package gateways

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Poller asks Telegram for the messages of every active gateway, where Telegram
// cannot reach this server. How far each has come is a row of the agent's file,
// written in the commit of what came, so that a kill loses nothing and repeats
// change nothing.
type Poller struct {
	gateways *Gateways
	folder   *store.Folder
	log      *slog.Logger
	slots    chan struct{} // of calls under way
	asked    func()        // is told of each call that has come back and been stored; tests set it

	mu     sync.Mutex
	ctx    context.Context // nil: not started
	agents map[*store.DB]*polling

	startMu sync.Mutex
	stop    context.CancelFunc
	running sync.WaitGroup
}

// polling is what the poller knows of an agent.
type polling struct {
	status  agent.Status // when it was last looked at
	looking bool
	again   bool                          // look once more
	polls   map[string]context.CancelFunc // by gateway
}

// Bounds of asking.
const (
	pollsAtOnce    = 1000
	pollTimeout    = 25 * time.Second // how long Telegram holds an answer back
	pollLimit      = 100              // updates of an answer
	firstBackoff   = time.Second      // doubled with each failure
	longestBackoff = time.Minute
)

// NewPoller makes the poller of g's gateways. On a server that the world can
// reach it does nothing: there platforms post.
func NewPoller(g *Gateways) *Poller {
	p := &Poller{gateways: g, folder: g.folder, log: g.log, slots: make(chan struct{}, pollsAtOnce), asked: func() {}, agents: map[*store.DB]*polling{}}
	g.changed = p.look
	return p
}

// Start begins to ask. It returns at once and may be called twice. The work
// ends with ctx or Stop.
func (p *Poller) Start(ctx context.Context) error {
	p.startMu.Lock()
	defer p.startMu.Unlock()
	if p.stop != nil || p.gateways.public {
		return nil
	}
	ctx, p.stop = context.WithCancel(ctx)
	p.mu.Lock()
	p.ctx = ctx
	p.mu.Unlock()
	for _, db := range p.folder.Agents() {
		if db.MayPoll() {
			p.look(db)
		}
	}
	return nil
}

// Stop cuts the calls under way and waits until nothing runs.
func (p *Poller) Stop() {
	p.startMu.Lock()
	defer p.startMu.Unlock()
	if p.stop == nil {
		return
	}
	p.stop()
	p.mu.Lock()
	p.ctx, p.agents = nil, map[*store.DB]*polling{}
	p.mu.Unlock()
	p.running.Wait()
	p.stop = nil
}

// Wake tells that something happened to an agent: its status may be another.
// It returns at once.
func (p *Poller) Wake(db *store.DB) {
	p.mu.Lock()
	a := p.agents[db]
	same := p.ctx == nil || a != nil && a.status == db.Agent().Status
	p.mu.Unlock()
	if !same {
		p.look(db)
	}
}

// look sees to it that the gateways of an agent that are to ask do, and no
// others. It returns at once.
func (p *Poller) look(db *store.DB) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx == nil {
		return
	}
	a := p.agents[db]
	if a == nil {
		a = &polling{polls: map[string]context.CancelFunc{}}
		p.agents[db] = a
	}
	a.status = db.Agent().Status
	if a.looking {
		a.again = true
		return
	}
	a.looking = true
	ctx := p.ctx
	p.running.Go(func() { p.settle(ctx, db, a) })
}

// settle starts and ends the polls of an agent until they are as they should be.
func (p *Poller) settle(ctx context.Context, db *store.DB, a *polling) {
	for {
		wanted, err := p.wanted(ctx, db)
		p.mu.Lock()
		if err != nil && ctx.Err() == nil && agent.ErrorCode(err) != agent.CodeNotFound {
			p.log.Error("an agent's gateways could not be read", "agent", db.ID(), "error", err)
		}
		if err == nil || agent.ErrorCode(err) == agent.CodeNotFound {
			p.arrange(ctx, db, a, wanted)
		}
		if !a.again || ctx.Err() != nil {
			a.looking = false
			if agent.ErrorCode(err) == agent.CodeNotFound && p.agents[db] == a {
				delete(p.agents, db) // the agent was deleted
			}
			p.mu.Unlock()
			return
		}
		a.again = false
		p.mu.Unlock()
	}
}

// wanted lists the gateways that are to ask; those of a paused agent rest.
func (p *Poller) wanted(ctx context.Context, db *store.DB) ([]string, error) {
	if db.Agent().Status != agent.StatusActive {
		return nil, nil
	}
	return db.PolledGateways(ctx)
}

// arrange starts what is wanted and ends the rest. The caller holds p.mu.
func (p *Poller) arrange(ctx context.Context, db *store.DB, a *polling, wanted []string) {
	keep := map[string]bool{}
	for _, id := range wanted {
		keep[id] = true
		if a.polls[id] != nil || ctx.Err() != nil {
			continue
		}
		one, cancel := context.WithCancel(ctx)
		a.polls[id] = cancel
		p.running.Go(func() {
			defer cancel()
			p.poll(one, db, id)
			if one.Err() != nil {
				return
			}
			p.mu.Lock()
			delete(a.polls, id)
			p.mu.Unlock()
			p.look(db) // it ended by itself, and may be wanted again since
		})
	}
	for id, cancel := range a.polls {
		if !keep[id] {
			cancel()
			delete(a.polls, id)
		}
	}
}

// poll asks for one gateway until it is not to any more.
func (p *Poller) poll(ctx context.Context, db *store.DB, id string) {
	pause, problem := time.Duration(0), ""
	for ctx.Err() == nil {
		o, next, ok, err := db.PollFrom(ctx, id)
		if err == nil && (!ok || db.Agent().Status != agent.StatusActive) {
			return
		}
		if err == nil && problem != "" { // still, and it is not that the gateway changed meanwhile
			err = db.NoteGatewayError(ctx, id, problem)
		}
		well := false
		if err == nil {
			well, err = p.session(ctx, db, o, next)
			problem = "messages could not be fetched: " + told(err)
		}
		if ctx.Err() != nil || agent.ErrorCode(err) == agent.CodeNotFound {
			return
		}
		p.log.Info("a gateway could not fetch its messages", "agent", db.ID(), "gateway", id, "error", err)
		if unauthorized(err) {
			if err := db.EndVerify(ctx, o.Gateway, problem); err != nil {
				p.log.Warn("trouble with a gateway could not be noted", "agent", db.ID(), "gateway", id, "error", err)
			}
			return
		}
		if well {
			pause = 0
		}
		pause = min(max(2*pause, firstBackoff), longestBackoff)
		_ = p.gateways.wait(ctx, max(pause+time.Duration(rand.Int64N(int64(pause)/4)), asks(err)))
	}
}

func unauthorized(err error) bool {
	var status *statusError
	return errors.As(err, &status) && (status.status == http.StatusUnauthorized || status.status == http.StatusNotFound)
}

// asks is how long a platform that failed wants to be left alone.
func asks(err error) time.Duration {
	var status *statusError
	if errors.As(err, &status) {
		return min(status.asks, time.Hour)
	}
	return 0
}

// session takes away a webhook that may be left at Telegram, which would keep
// messages from us, and asks until something fails. well tells whether it
// succeeded at least once.
func (p *Poller) session(ctx context.Context, db *store.DB, o store.OpenGateway, next int64) (well bool, err error) {
	if o.Locked {
		return false, failed(lockedConfig, nil)
	}
	if err := p.limited(ctx, func(ctx context.Context, _ bool) error {
		return telegram{}.call(ctx, p.gateways, o.Config, "deleteWebhook", true, map[string]bool{"drop_pending_updates": false}, nil)
	}); err != nil {
		return false, err
	}
	limit := pollLimit
	for {
		updates, err := p.ask(ctx, o.Config, next, limit)
		switch {
		case err == nil:
			limit = pollLimit
		case limit > 1 && told(err) == telegramGarbled: // perhaps longer than we read
			limit /= 4
			continue
		default:
			return well, err
		}
		// Once none is left, what comes next is new whatever its number.
		if next, err = p.keep(ctx, db, o, updates); err != nil {
			return well, err
		}
		well = true
		p.asked()
	}
}

// ask fetches the updates from next on, and waits for the first where none is
// there.
func (p *Poller) ask(ctx context.Context, c agent.GatewayConfig, next int64, limit int) (updates []json.RawMessage, err error) {
	err = p.limited(ctx, func(ctx context.Context, crowded bool) error {
		hold := int(pollTimeout / time.Second)
		if crowded {
			hold = 1
		}
		return telegram{}.call(ctx, p.gateways, c, "getUpdates", false, map[string]any{"offset": next, "limit": limit, "timeout": hold, "allowed_updates": []string{}}, &updates)
	})
	return updates, err
}

// limited makes a call once there is room for it; crowded tells that others
// wait for room too.
func (p *Poller) limited(ctx context.Context, call func(ctx context.Context, crowded bool) error) error {
	crowded := len(p.slots) == cap(p.slots)
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.slots }()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return call(ctx, crowded)
}

// keep stores updates in one commit with where to go on, which it returns; 0
// without updates.
func (p *Poller) keep(ctx context.Context, db *store.DB, o store.OpenGateway, updates []json.RawMessage) (next int64, err error) {
	receipts := make([]store.Receipt, 0, len(updates))
	for _, raw := range updates {
		id, t := readUpdate(botOf(o.Config), raw)
		if id == 0 {
			return 0, failed(telegramGarbled, nil)
		}
		receipts = append(receipts, store.Receipt{EventID: t.EventID, Messages: t.Messages, Payload: t.Payload})
		next = max(next, id+1)
	}
	if next == 0 {
		return 0, nil
	}
	_, err = db.ReceiveInbound(ctx, o.ID, receipts, next)
	return next, err
}
