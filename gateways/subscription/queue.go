package subscription

import (
	"context"
	"net/url"
	"slices"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// Limits of deliveries. A target is a scheme, host and port. A subscription
// whose last attempt failed has one attempt at a time, so that a hanging target
// holds few slots.
const (
	attemptsAtOnce    = 128
	attemptsPerTarget = 8
	agentsAtOnce      = 4                     // agents whose due deliveries are being read
	enqueuedLimit     = 4 * attemptsPerTarget // enqueued deliveries of a subscription
	agentInterval     = 5 * time.Millisecond
	errorPause        = time.Minute // after an attempt whose outcome could not be written
)

// deliveryKey identifies a delivery in the queue.
type deliveryKey struct {
	db         *store.DB
	id, target string
}

// subscription identifies a subscription of an agent.
type subscription struct {
	db *store.DB
	id string
}

func (s *Subscriptions) makeQueues() {
	s.agents = work.New(work.Options[*store.DB]{
		Run:   s.enqueueDue,
		Limit: agentsAtOnce,
		Now:   s.now,
		OnError: func(db *store.DB, err error) {
			s.log.Error("read due deliveries", "agent", db.ID(), "error", err)
		},
	})
	s.deliveries = work.New(work.Options[deliveryKey]{
		Run:        s.deliver,
		Limit:      attemptsAtOnce,
		Now:        s.now,
		Group:      func(key deliveryKey) any { return key.target },
		GroupLimit: func(any) int { return attemptsPerTarget },
		Backoff:    func(int, error) time.Duration { return errorPause },
		OnError: func(key deliveryKey, err error) {
			s.log.Error("deliver event", "agent", key.db.ID(), "delivery", key.id, "error", err)
		},
	})
}

// notify enqueues an agent whose deliveries may be due.
func (s *Subscriptions) notify(db *store.DB, p store.Pending) {
	s.agents.Notify(db, p.Deliveries.Time, p.Changed)
}

// enqueueDue enqueues the due deliveries of an agent.
func (s *Subscriptions) enqueueDue(ctx context.Context, db *store.DB) (work.Next, error) {
	if db.Suspended() {
		return work.Next{}, nil
	}
	due, next, err := db.DueDeliveries(ctx, agent.At(s.now()), enqueuedLimit)
	if err != nil {
		return work.Next{}, agent.IgnoreNotFound(err)
	}
	for _, d := range due {
		target := targetName(d.URL)
		for _, id := range s.withoutAttempt(subscription{db, d.WebhookID}, d.IDs) {
			s.deliveries.Enqueue(deliveryKey{db, id, target})
		}
	}
	return work.Next{At: next.Time, Rest: agentInterval}, nil
}

// withoutAttempt returns the deliveries of a subscription that have no attempt in
// progress.
func (s *Subscriptions) withoutAttempt(key subscription, ids []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(ids, func(id string) bool {
		return s.attempts[key][id]
	})
}

func targetName(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "?"
	}
	return u.Scheme + "://" + u.Host
}

// deliver attempts a delivery once, if it is still due.
func (s *Subscriptions) deliver(ctx context.Context, key deliveryKey) (work.Next, error) {
	if key.db.Suspended() {
		return work.Next{}, nil
	}
	o, err := key.db.Outgoing(ctx, key.id, agent.At(s.now()))
	if err != nil || o == nil || !s.claim(key, o) {
		return work.Next{}, agent.IgnoreNotFound(err)
	}
	defer s.release(key.db, o)
	return work.Next{}, agent.IgnoreNotFound(s.attempt(ctx, key.db, o))
}

// claim reports whether a delivery may be attempted now, and records that it
// is. If not, it is enqueued again when an attempt of its subscription ends, or
// for its new target.
func (s *Subscriptions) claim(key deliveryKey, o *store.Outgoing) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := subscription{key.db, o.WebhookID}
	tries := s.attempts[of]
	if tries[o.ID] || o.Failing && len(tries) > 0 || targetName(o.URL) != key.target {
		return false
	}
	if tries == nil {
		tries = map[string]bool{}
		s.attempts[of] = tries
	}
	tries[o.ID] = true
	return true
}

// release records that an attempt has ended, and enqueues its agent's next
// deliveries.
func (s *Subscriptions) release(db *store.DB, o *store.Outgoing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := subscription{db, o.WebhookID}
	if delete(s.attempts[of], o.ID); len(s.attempts[of]) == 0 {
		delete(s.attempts, of)
	}
	s.agents.Enqueue(db)
}

// attempt makes an attempt and stores its outcome, unless Stop interrupted it.
func (s *Subscriptions) attempt(ctx context.Context, db *store.DB, outgoing *store.Outgoing) error {
	marked := ctx
	if outgoing.Chain.Depth > 0 {
		marked = s.own.Mark(ctx, agent.ChainHeader, outgoing.Chain.Signed())
	}
	body, err := withLinks(ctx, db, outgoing)
	if err != nil {
		return err
	}
	a, retryAfter := s.post(marked, outgoing.URL, outgoing.Secrets, outgoing.EventID, body)
	if a.Error != "" && ctx.Err() != nil {
		return ctx.Err()
	}
	a.DeliveryID, a.WebhookID = outgoing.ID, outgoing.WebhookID
	if pause, again := retryDelay(outgoing.Attempt+1, retryAfter); a.Error != "" && !a.TargetGone && again {
		a.Next = agent.At(s.now().Add(pause))
	}
	off, err := db.EndAttempt(context.WithoutCancel(ctx), a)
	if off {
		s.log.Warn(
			"disable webhook subscription after failed deliveries",
			"agent", db.ID(),
			"webhook", outgoing.WebhookID,
		)
	}
	s.onAttempt(a)
	return err
}

// withLinks returns the body of a delivery. Only events about takeovers have links to
// them: other events may repeat what a stranger wrote.
func withLinks(ctx context.Context, db *store.DB, o *store.Outgoing) ([]byte, error) {
	if !agent.MatchEvent("browser.takeover.*", o.Event) {
		return o.Body, nil
	}
	body, err := db.FillLinks(ctx, string(o.Body))
	return []byte(body), err
}
