package gateways

import (
	"context"
	"net/url"
	"slices"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// Bounds of the deliveries. A target is one scheme, host and port. A
// subscription whose last try failed has one try at a time, so that a target
// that hangs holds few slots.
const (
	triesAtOnce   = 128
	triesAtTarget = 8
	agentsAtOnce  = 4                 // whose due deliveries are read
	enqueuedLimit = 4 * triesAtTarget // deliveries of a subscription that are enqueued
	agentInterval = 5 * time.Millisecond
	errorPause    = time.Minute // after a try whose outcome could not be written
)

// deliveryKey names a delivery in the queue.
type deliveryKey struct {
	db         *store.DB
	id, target string
}

// subscription names a subscription of an agent.
type subscription struct {
	db *store.DB
	id string
}

func (w *Webhooks) makeQueues() {
	w.agents = work.New(work.Options[*store.DB]{Run: w.enqueueDue, Limit: agentsAtOnce, Now: w.now,
		OnError: func(db *store.DB, err error) { w.log.Error("read due deliveries", "agent", db.ID(), "error", err) }})
	w.deliveries = work.New(work.Options[deliveryKey]{
		Run: w.deliver, Limit: triesAtOnce, Now: w.now,
		Group:      func(key deliveryKey) any { return key.target },
		GroupLimit: func(any) int { return triesAtTarget },
		Backoff:    func(int, error) time.Duration { return errorPause },
		OnError: func(key deliveryKey, err error) {
			w.log.Error("deliver an event", "agent", key.db.ID(), "delivery", key.id, "error", err)
		},
	})
}

// notify enqueues an agent whose deliveries may be due.
func (w *Webhooks) notify(db *store.DB, p store.Pending) {
	if p.Changed {
		w.agents.Retry(db)
	} else {
		w.agents.EnqueueAt(db, p.Deliveries.Time)
	}
}

// suspended reports whether the deliveries of an agent wait for its status or
// file to change.
func suspended(db *store.DB) bool {
	return db.Gone() || db.Problem() != nil || db.Agent().Status == agent.StatusDisabled
}

// enqueueDue enqueues the deliveries of an agent that are due.
func (w *Webhooks) enqueueDue(ctx context.Context, db *store.DB) (work.Next, error) {
	if suspended(db) {
		return work.Next{}, nil
	}
	due, next, err := db.DueDeliveries(ctx, agent.At(w.now()), enqueuedLimit)
	if err != nil {
		return work.Next{}, ignoreNotFound(err)
	}
	for _, d := range due {
		target := targetName(d.URL)
		for _, id := range w.untried(subscription{db, d.WebhookID}, d.IDs) {
			w.deliveries.Enqueue(deliveryKey{db, id, target})
		}
	}
	return work.Next{At: next.Time, Rest: agentInterval}, nil
}

// untried returns the deliveries of a subscription that are not being tried.
func (w *Webhooks) untried(s subscription, ids []string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(ids, func(id string) bool { return w.tries[s][id] })
}

func targetName(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "?"
	}
	return u.Scheme + "://" + u.Host
}

// deliver tries a delivery once, if it is still due.
func (w *Webhooks) deliver(ctx context.Context, key deliveryKey) (work.Next, error) {
	if suspended(key.db) {
		return work.Next{}, nil
	}
	o, err := key.db.Outgoing(ctx, key.id, agent.At(w.now()))
	if err != nil || o == nil || !w.begin(key, o) {
		return work.Next{}, ignoreNotFound(err)
	}
	defer w.end(key.db, o)
	return work.Next{}, ignoreNotFound(w.attempt(ctx, key.db, o))
}

func ignoreNotFound(err error) error {
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return nil
	}
	return err
}

// begin reports whether a delivery may be tried now, and notes that it is. One
// that may not is enqueued again when a try of its subscription ends, or for
// its new target.
func (w *Webhooks) begin(key deliveryKey, o *store.Outgoing) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := subscription{key.db, o.WebhookID}
	tries := w.tries[s]
	if tries[o.ID] || o.Failing && len(tries) > 0 || targetName(o.URL) != key.target {
		return false
	}
	if tries == nil {
		tries = map[string]bool{}
		w.tries[s] = tries
	}
	tries[o.ID] = true
	return true
}

// end notes that a try has ended, and has its agent's next deliveries enqueued.
func (w *Webhooks) end(db *store.DB, o *store.Outgoing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := subscription{db, o.WebhookID}
	if delete(w.tries[s], o.ID); len(w.tries[s]) == 0 {
		delete(w.tries, s)
	}
	w.agents.Enqueue(db)
}

// attempt makes a try and stores its outcome, unless Stop cut it.
func (w *Webhooks) attempt(ctx context.Context, db *store.DB, o *store.Outgoing) error {
	marked := ctx
	if o.Chain.Depth > 0 {
		marked = w.own.Mark(ctx, agent.ChainHeader, o.Chain.Signed())
	}
	a, asked := w.post(marked, o.URL, o.Secrets, o.EventID, o.Body)
	if a.Error != "" && ctx.Err() != nil {
		return ctx.Err()
	}
	a.DeliveryID, a.WebhookID = o.ID, o.WebhookID
	if pause, again := nextTry(o.Attempt+1, asked); a.Error != "" && !a.Gone && again {
		a.Next = agent.At(w.now().Add(pause))
	}
	off, err := db.EndAttempt(context.WithoutCancel(ctx), a)
	if off {
		w.log.Warn("a webhook subscription was switched off", "agent", db.ID(), "webhook", o.WebhookID)
	}
	w.tried(a)
	return err
}
