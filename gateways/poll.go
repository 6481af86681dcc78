package gateways

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// Poller fetches messages from Telegram for every active gateway, if Telegram
// cannot reach this server. The offset of each gateway is a row of the agent's
// file, written in the same commit as its messages, so that a kill loses
// nothing and repeats change nothing.
type Poller struct {
	gateways *Gateways
	log      *slog.Logger
	agents   *work.Queue[*store.DB] // agents whose gateways must be read
	polls    *work.Queue[pollKey]
	stored   func() // called when a response has been stored; for tests

	mu       sync.Mutex
	sessions map[pollKey]pollSession // of gateways that are polled, or have failed
}

type pollKey struct {
	db      *store.DB
	gateway string
}

// pollSession is the state shared by consecutive calls of a gateway.
type pollSession struct {
	webhookDeleted bool   // at Telegram: while a webhook is set, getUpdates returns nothing
	next           int64  // offset of the next update; 0 for any
	limit          int    // updates per response
	problem        string // of the last call
}

// Limits of polling.
const (
	pollsAtOnce  = 1000
	pollAgents   = 8                // agents whose gateways are read at the same time
	pollTimeout  = 25 * time.Second // how long Telegram holds a response
	pollLimit    = 100              // updates per response
	firstBackoff = time.Second      // doubled with each failure
	maxBackoff   = time.Minute
)

// NewPoller returns the poller of g's gateways. On a server that platforms can
// reach it does nothing: they post there.
func NewPoller(g *Gateways) *Poller {
	return newPoller(g, pollBackoff)
}

func newPoller(gateways *Gateways, backoff func(failures int, err error) time.Duration) *Poller {
	poller := &Poller{
		gateways: gateways,
		log:      gateways.log,
		stored:   func() {},
		sessions: map[pollKey]pollSession{},
	}
	poller.agents = work.New(work.Options[*store.DB]{
		Run:   poller.enqueueActive,
		Limit: pollAgents,
		OnError: func(db *store.DB, err error) {
			poller.log.Error("read gateways", "agent", db.ID(), "error", err)
		},
	})
	poller.polls = work.New(work.Options[pollKey]{
		Run:        poller.poll,
		Limit:      pollsAtOnce,
		Backoff:    backoff,
		Group:      func(key pollKey) any { return key.db },
		GroupLimit: func(any) int { return 0 },
		OnError: func(key pollKey, err error) {
			poller.log.Info("fetch messages of gateway", "agent", key.db.ID(), "gateway", key.gateway, "error", err)
		},
	})
	if !gateways.public {
		gateways.folder.OnPending(func(db *store.DB, pending store.Pending) {
			poller.agents.EnqueueAt(db, pending.Gateways.Time)
		})
	}
	return poller
}

// pollBackoff returns how long a gateway waits after a failure: exponential
// with a random part, and at least as long as the platform asks.
func pollBackoff(failures int, err error) time.Duration {
	pause := work.Exponential(firstBackoff, maxBackoff)(failures, err)
	return max(pause+time.Duration(rand.Int64N(int64(pause)/4)), retryAfter(err))
}

// Start begins to poll. It returns immediately and may be called twice. The
// work ends with ctx or Stop.
func (p *Poller) Start(ctx context.Context) error {
	p.agents.Start(ctx)
	p.polls.Start(ctx)
	return nil
}

// Stop cancels the calls in progress and waits until nothing runs.
func (p *Poller) Stop() {
	p.agents.Stop()
	p.polls.Stop()
}

// enqueueActive enqueues the polls of an agent's gateways, and forgets gateways
// that are no longer polled. A paused agent has none.
func (p *Poller) enqueueActive(ctx context.Context, db *store.DB) (work.Next, error) {
	var wanted []string
	if !db.Gone() && db.Problem() == nil && db.Agent().Status == agent.StatusActive {
		var err error
		if wanted, err = db.PolledGateways(ctx); err != nil && agent.ErrorCode(err) != agent.CodeNotFound {
			return work.Next{}, err
		}
	}
	for _, id := range wanted {
		p.polls.Enqueue(pollKey{db, id})
	}
	for _, key := range p.polls.Keys(db) {
		if !slices.Contains(wanted, key.gateway) {
			p.polls.Forget(key)
			p.setSession(key, pollSession{})
		}
	}
	return work.Next{}, nil
}

// poll fetches updates of a gateway once.
func (p *Poller) poll(ctx context.Context, key pollKey) (work.Next, error) {
	session := p.session(key)
	gateway, next, ok, err := key.db.PollFrom(ctx, key.gateway)
	switch {
	case agent.ErrorCode(err) == agent.CodeNotFound, err == nil && (!ok || key.db.Agent().Status != agent.StatusActive):
		p.setSession(key, pollSession{})
		return work.Next{}, nil
	case err != nil:
		return work.Next{}, err
	}
	if session.problem != "" { // the problem persists, and the gateway was not changed in the meantime
		if err := key.db.NoteGatewayError(ctx, key.gateway, session.problem); err != nil {
			return work.Next{}, err
		}
		session.problem = ""
	}
	if !session.webhookDeleted {
		session.next = next
	}
	err = p.fetch(ctx, key.db, gateway, &session)
	if ctx.Err() != nil {
		return work.Next{}, ctx.Err()
	}
	if err == nil {
		p.setSession(key, session)
		return work.Next{Again: true}, nil
	}
	return work.Next{}, p.fail(ctx, key, gateway, err)
}

// fail records the problem of a gateway. Polling ends if the token is rejected.
func (p *Poller) fail(ctx context.Context, key pollKey, o store.OpenGateway, err error) error {
	problem := "messages could not be fetched: " + clientMessage(err)
	if agent.ErrorCode(err) == agent.CodeNotFound {
		p.setSession(key, pollSession{})
		return nil
	}
	if !unauthorized(err) {
		p.setSession(key, pollSession{problem: problem})
		return err
	}
	p.setSession(key, pollSession{})
	p.log.Info("disable gateway whose token was rejected", "agent", key.db.ID(), "gateway", key.gateway, "error", err)
	return key.db.EndVerify(ctx, o.Gateway, problem)
}

func (p *Poller) session(key pollKey) pollSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[key]
	if s.limit == 0 {
		s.limit = pollLimit
	}
	return s
}

func (p *Poller) setSession(key pollKey, s pollSession) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s == (pollSession{}) {
		delete(p.sessions, key)
	} else {
		p.sessions[key] = s
	}
}

func unauthorized(err error) bool {
	var status *statusError
	return errors.As(err, &status) && (status.status == http.StatusUnauthorized || status.status == http.StatusNotFound)
}

// retryAfter returns how long a failing platform asks to wait.
func retryAfter(err error) time.Duration {
	var status *statusError
	if errors.As(err, &status) {
		return min(status.retryAfter, time.Hour)
	}
	return 0
}

// fetch makes one call and stores the result. A session first deletes a webhook
// that may still be set at Telegram.
func (p *Poller) fetch(ctx context.Context, db *store.DB, gateway store.OpenGateway, session *pollSession) error {
	if gateway.Locked {
		return newClientError(lockedConfig, nil)
	}
	if !session.webhookDeleted {
		if err := p.call(
			ctx, gateway.Config, "deleteWebhook", true,
			map[string]bool{"drop_pending_updates": false},
			nil,
		); err != nil {
			return err
		}
		session.webhookDeleted = true
	}
	updates, err := p.getUpdates(ctx, gateway.Config, session.next, session.limit)
	switch {
	case err == nil:
		session.limit = pollLimit
	case session.limit > 1 && clientMessage(err) == telegramMalformed: // perhaps longer than what is read
		session.limit /= 4
		return nil
	default:
		return err
	}
	// When none is left, the next update is new whatever its number.
	if session.next, err = p.storeUpdates(ctx, db, gateway, updates); err != nil {
		return err
	}
	p.stored()
	return nil
}

// getUpdates fetches updates from next on, and waits for the first one if there
// is none, unless other gateways are waiting for their turn.
func (p *Poller) getUpdates(
	ctx context.Context,
	config agent.GatewayConfig,
	next int64,
	limit int,
) (updates []json.RawMessage, err error) {
	hold := int(pollTimeout / time.Second)
	if p.polls.Stats().Ready > 0 {
		hold = 1
	}
	err = p.call(
		ctx, config, "getUpdates", false,
		map[string]any{
			"offset":          next,
			"limit":           limit,
			"timeout":         hold,
			"allowed_updates": []string{},
		},
		&updates,
	)
	return updates, err
}

func (p *Poller) call(
	ctx context.Context,
	c agent.GatewayConfig,
	method string,
	again bool,
	in, out any,
) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return telegram{}.call(ctx, p.gateways, c, method, again, in, out)
}

// storeUpdates stores updates in one commit with the next offset, which it
// returns; 0 if there are no updates.
func (p *Poller) storeUpdates(
	ctx context.Context,
	db *store.DB,
	gateway store.OpenGateway,
	updates []json.RawMessage,
) (next int64, err error) {
	receipts := make([]store.Receipt, 0, len(updates))
	for _, raw := range updates {
		id, t := readUpdate(botID(gateway.Config), raw)
		if id == 0 {
			return 0, newClientError(telegramMalformed, nil)
		}
		receipts = append(receipts, store.Receipt{
			EventID:  t.EventID,
			Messages: t.Messages,
			Payload:  t.Payload,
			Moved:    t.Moved,
		})
		next = max(next, id+1)
	}
	if next == 0 {
		return 0, nil
	}
	_, err = db.ReceiveInbound(ctx, gateway.ID, receipts, next)
	return next, err
}
