package store

import (
	"maps"
	"slices"
	"sync"
)

// unsubscribed records which consumers of an open file's outbox wait for events
// without subscribers. They are not notified of such events, and no cursor is
// written for each event: their cursors follow when the file is checkpointed or
// closed, or when there is a subscription.
type unsubscribed struct {
	mu      sync.Mutex
	changes uint64          // guarded by mu: number of possible new subscriptions
	known   map[string]bool // guarded by mu: consumers since then, and whether they have no subscribers
	behind  bool            // guarded by mu: a cursor may have to follow
}

// now returns a number that changes when there may be a new subscription.
func (u *unsubscribed) now() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.changes
}

// note stores whether a consumer had no subscribers, in a transaction that began
// after now returned at.
func (u *unsubscribed) note(consumer string, none bool, at uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	none = none && at == u.changes
	if u.known == nil {
		u.known = map[string]bool{}
	}
	u.known[consumer] = none
	u.behind = u.behind || none
}

// consumers returns the consumers without subscribers.
func (u *unsubscribed) consumers() (names []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, none := range maps.All(u.known) {
		if none {
			names = append(names, name)
		}
	}
	return names
}

// isBehind reports whether a cursor may have to follow.
func (u *unsubscribed) isBehind() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.behind
}

// follow notes that cursors are being written.
func (u *unsubscribed) follow() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.behind = false
}

// announce removes from the work of a commit that of events without subscribers.
func (u *unsubscribed) announce(kinds workKinds) workKinds {
	if kinds&(workSubscriptions|workEvents) == 0 {
		return kinds
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if kinds&workSubscriptions != 0 {
		u.changes++
		clear(u.known)
	}
	if kinds&workEvents == 0 ||
		kinds&workChanged != 0 ||
		len(u.known) < len(subscriptions) ||
		slices.Contains(slices.Collect(maps.Values(u.known)), false) {
		return kinds &^ workSubscriptions // there is a subscription, or a consumer has not asked yet
	}
	u.behind = true
	return kinds &^ (workSubscriptions | workEvents)
}

// passUnsubscribed moves the cursors of consumers without subscribers past an event.
// The caller leads.
func (f *file) passUnsubscribed(c *conn, seq int64) error {
	for _, name := range f.unsubscribed.consumers() {
		if err := c.passEvents(name, seq); err != nil {
			return err
		}
	}
	return nil
}

// passAllUnsubscribed does the same for all events. The caller leads and is the only
// writer.
func (f *file) passAllUnsubscribed(c *conn) error {
	if !f.unsubscribed.isBehind() {
		return nil
	}
	f.unsubscribed.follow()
	var last int64
	if err := c.value(&last, lastEvent); err != nil {
		return err
	}
	return f.passUnsubscribed(c, last)
}

// eventsBefore returns the number of the newest event before a write if there are
// consumers without subscribers. The caller leads.
func (f *file) eventsBefore(c *conn) (last int64, err error) {
	if len(f.unsubscribed.consumers()) == 0 {
		return 0, nil
	}
	return last, c.value(&last, lastEvent)
}

// subscribe ensures that a possible new subscription in a write gets only the
// events of that write and later ones. The caller leads.
func (f *file) subscribe(c *conn, kinds workKinds, before int64) error {
	if kinds&workSubscriptions == 0 || before == 0 {
		return nil
	}
	return f.passUnsubscribed(c, before)
}
