package gateways

import (
	"context"
	"net/netip"
	"time"

	"satchel/agent"
	"satchel/store"
)

// A network may use a part of what all visitors of a widget may send on a day, so that one
// visitor cannot use up the day of the others. A part of the day, and of each network's
// share, is for conversations that have begun.
const (
	networkShare = 4 // a quarter
	startedShare = 4 // a quarter
	leastShare   = 2 // messages
)

// sentKey identifies a network among the visitors of a widget.
type sentKey struct {
	agent, gateway string
	network        netip.Prefix
}

// sent is what a network has sent on a day.
type sent struct {
	messages int
	bytes    int64 // of files
}

func (w *Widget) sender(v *Visitor) sentKey {
	return sentKey{w.db.ID(), w.ID, v.Network}
}

// takeMessage counts a message of a visitor. It fails if the day of the widget, or the
// share of the visitor's network, is used up. The caller must call refund if the message
// is not stored.
func (w *Widget) takeMessage(ctx context.Context, visitor *Visitor) (refund func(), err error) {
	started, err := w.db.HasVisit(ctx, w.ID, visitor.ID)
	if err != nil {
		return nil, err
	}
	limit, share := w.MessagesPerDay, max(w.MessagesPerDay/networkShare, leastShare)
	room, shareRoom := limit, share
	if !started {
		room, shareRoom = limit-limit/startedShare, share-share/startedShare
	}
	if w.EventsToday >= room {
		return nil, agent.Errorf(
			agent.CodeRateLimited,
			"this widget has reached its daily limit of messages",
		).With("limit", limit)
	}
	if !w.gateways.visitors.take(
		w.sender(visitor),
		sent{messages: 1},
		sent{messages: shareRoom},
		w.gateways.now(),
	) {
		return nil, agent.Errorf(
			agent.CodeRateLimited,
			"your network has sent its share of this widget's messages of today",
		).With("limit", shareRoom)
	}
	return func() {
		w.gateways.visitors.refund(w.sender(visitor), sent{messages: 1})
	}, nil
}

// takeBytes counts bytes of a visitor's file, which must be within the share of their
// network.
func (w *Widget) takeBytes(v *Visitor, n int64) error {
	if !w.gateways.visitors.take(
		w.sender(v),
		sent{bytes: n},
		sent{bytes: agent.MaxWidgetFileBytes / networkShare},
		w.gateways.now(),
	) {
		return store.TooManyFiles()
	}
	return nil
}

// take counts what a network sends, unless it is then over the limit for the day. A
// visitor whose network is not known has no limit.
func (vs *visitors) take(key sentKey, more, limit sent, now time.Time) bool {
	if !key.network.IsValid() {
		return true
	}
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if day := now.UTC().Format(time.DateOnly); day != vs.day {
		vs.day = day
		clear(vs.sent)
	}
	total := vs.sent[key]
	total.messages += more.messages
	total.bytes += more.bytes
	if total.messages > limit.messages && more.messages > 0 || total.bytes > limit.bytes && more.bytes > 0 {
		return false
	}
	vs.sent[key] = total
	return true
}

// refund takes back what was counted and then not stored.
func (vs *visitors) refund(key sentKey, less sent) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	total, known := vs.sent[key]
	if !known { // another day has begun
		return
	}
	total.messages = max(total.messages-less.messages, 0)
	if total.bytes = max(total.bytes-less.bytes, 0); total == (sent{}) {
		delete(vs.sent, key)
		return
	}
	vs.sent[key] = total
}
