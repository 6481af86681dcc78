package gateways

import (
	"context"

	"satchel/agent"
	"satchel/store"
)

// unpark lets a line go on that waits for room at its target.
func (w *Webhooks) unpark(t *target) {
	if t != nil && len(t.parked) > 0 {
		l := t.parked[0]
		t.parked = t.parked[1:]
		w.queue.ready = append(w.queue.ready, l)
	}
}

// try makes one try of a delivery and gives its place to the next.
func (w *Webhooks) try(ctx context.Context, l *line, id string) {
	s := l.sender
	a, err := w.attempt(ctx, s.db, id)
	defer w.tried(a)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(s.busy, id)
	l.running--
	l.target.running--
	w.queue.tries--
	switch {
	case ctx.Err() != nil:
		w.lookAt(s) // after the next Start
	case err != nil && agent.ErrorCode(err) != agent.CodeNotFound:
		w.log.Error("a delivery could not be written down", "agent", s.db.ID(), "delivery", id, "error", err)
		s.held[id] = w.now().Add(holdAfter)
		w.plan(s, s.held[id])
	case a != nil:
		l.failing = a.Error != ""
		if !a.Next.IsZero() {
			w.plan(s, a.Next.Time)
		}
	}
	if len(l.ids) == 0 && l.more {
		l.more = false
		w.lookAt(s)
	}
	w.line(l)
	w.unpark(l.target)
	w.forget(s)
	w.arm()
	w.pump()
}

// attempt tries a delivery once and writes down what came of it; nil when it
// waits no more, or was cut by Stop and counts for nothing.
func (w *Webhooks) attempt(ctx context.Context, db *store.DB, id string) (*store.Attempt, error) {
	o, err := db.Outgoing(ctx, id, agent.At(w.now()))
	if err != nil || o == nil {
		return nil, err
	}
	a, asked := w.post(ctx, o.URL, o.Secrets, o.EventID, o.Body)
	if a.Error != "" && ctx.Err() != nil {
		return nil, nil
	}
	a.DeliveryID, a.WebhookID = o.ID, o.WebhookID
	if pause, again := nextTry(o.Attempt+1, asked); a.Error != "" && !a.Gone && again {
		a.Next = agent.At(w.now().Add(pause))
	}
	off, err := db.EndAttempt(context.WithoutCancel(ctx), a)
	if off {
		w.log.Warn("a webhook subscription was switched off", "agent", db.ID(), "webhook", o.WebhookID)
	}
	return &a, err
}
