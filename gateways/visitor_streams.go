package gateways

import (
	"sync"
	"time"

	"satchel/agent"
)

// visitKey identifies a visitor's conversation.
type visitKey struct{ agent, gateway, thread string }

func (w *Widget) visit(v Visitor) visitKey {
	return visitKey{w.db.ID(), w.ID, v.ID}
}

// Limits on visitors' event streams.
const (
	maxWidgetStreams  = 500 // of one widget
	maxVisitorStreams = 10
	maxUsedTickets    = 100_000
)

// visitors is the state of connected visitors: their streams, answers being
// generated for them, and used tickets.
type visitors struct {
	key []byte

	mu      sync.Mutex // guards the fields below
	streams map[visitKey]map[chan struct{}]bool
	open    map[string]int // number of streams by gateway
	partial map[visitKey]string
	used    map[string]time.Time // expiry of used tickets
	uploads map[visitKey]int     // number of running uploads; see uploadLimits
	day     string               // of sent, in UTC
	sent    map[sentKey]sent
}

func newVisitors(key []byte) *visitors {
	return &visitors{
		key:     key,
		streams: map[visitKey]map[chan struct{}]bool{},
		open:    map[string]int{},
		partial: map[visitKey]string{},
		used:    map[string]time.Time{},
		uploads: map[visitKey]int{},
		sent:    map[sentKey]sent{},
	}
}

// markTicketUsed reports whether a ticket is used for the first time, and marks it as
// used.
func (vs *visitors) markTicketUsed(id string, until, now time.Time) bool {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if _, used := vs.used[id]; used || len(vs.used) >= maxUsedTickets && !vs.forgetLocked(now) {
		return false
	}
	if vs.used[id] = until; len(vs.used)%1000 == 0 {
		vs.forgetLocked(now)
	}
	return true
}

// forgetLocked removes expired tickets and reports whether there were any.
func (vs *visitors) forgetLocked(now time.Time) (any bool) {
	for id, until := range vs.used {
		if !now.Before(until) {
			delete(vs.used, id)
			any = true
		}
	}
	return any
}

// Follow subscribes to a visitor's conversation: the channel receives a value
// after each change, until stop is called.
func (w *Widget) Follow(visitor Visitor) (news <-chan struct{}, stop func(), err error) {
	vs, key, c := w.gateways.visitors, w.visit(visitor), make(chan struct{}, 1)
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.open[w.ID] >= maxWidgetStreams || len(vs.streams[key]) >= maxVisitorStreams {
		return nil, nil, agent.Errorf(agent.CodeRateLimited, "too many streams are open").With("retry_after", 30)
	}
	if vs.streams[key] == nil {
		vs.streams[key] = map[chan struct{}]bool{}
	}
	vs.streams[key][c] = true
	vs.open[w.ID]++
	return c, func() {
		vs.mu.Lock()
		defer vs.mu.Unlock()
		if delete(vs.streams[key], c); len(vs.streams[key]) == 0 {
			delete(vs.streams, key)
		}
		if vs.open[w.ID]--; vs.open[w.ID] == 0 {
			delete(vs.open, w.ID)
		}
	}, nil
}

// Partial returns the text so far of an answer that is being generated for a
// visitor.
func (w *Widget) Partial(v Visitor) string {
	vs := w.gateways.visitors
	vs.mu.Lock()
	defer vs.mu.Unlock()
	return vs.partial[w.visit(v)]
}

// notify notifies a visitor's streams.
func (vs *visitors) notify(key visitKey) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.wakeLocked(key)
}

func (vs *visitors) wakeLocked(key visitKey) {
	for c := range vs.streams[key] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// appendPartial appends text to the answer that is being generated for a visitor.
func (vs *visitors) appendPartial(key visitKey, piece string) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.partial[key] += piece
	vs.wakeLocked(key)
}

// clearPartial removes the answer that was being generated.
func (vs *visitors) clearPartial(key visitKey) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	delete(vs.partial, key)
	vs.wakeLocked(key)
}
