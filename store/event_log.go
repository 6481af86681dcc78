package store

import (
	"context"
	"slices"
	"strings"

	"satchel/agent"
)

// EventFilter selects events of the outbox; empty fields select all.
type EventFilter struct {
	Types     []string // names, or patterns such as "workflow.*"
	From, To  agent.Time
	Search    string // a substring of the data as JSON
	GatewayID string // of the gateway that the event is about
	Before    int64  // only events with smaller numbers
}

// Bounds of one page of events.
const (
	eventWindow   = 20_000  // numbers that are examined
	maxEventBytes = 4 << 20 // of data
)

// EventLog returns up to limit events of the outbox, newest first, and the value of
// Before for the next page, 0 at the end. A page can be short or even empty although
// more follow, since only a limited part of the outbox is examined.
func (db *DB) EventLog(
	ctx context.Context,
	filter EventFilter,
	limit int,
) (events []agent.Event, next int64, err error) {
	events, err = Read(ctx, db, func(tx *Tx) ([]agent.Event, error) {
		low, high, err := tx.eventRange(filter)
		if err != nil || low >= high {
			return []agent.Event{}, err
		}
		floor := max(low, high-eventWindow)
		where, args := clause(filter.conditions(floor, high), false)
		found, err := all(
			tx,
			scanEvent,
			"SELECT "+eventColumns+" FROM _events"+where+" ORDER BY seq DESC LIMIT ?",
			append(args, limit)...,
		)
		if err != nil {
			return nil, err
		}
		found, cut := cutEvents(found)
		if cut || len(found) == limit {
			floor = found[len(found)-1].Seq
		}
		if floor > low {
			next = floor
		}
		return slices.Concat([]agent.Event{}, found), nil
	})
	return events, next, err
}

// eventRange returns the range of numbers, from low up to but not including high,
// that a filter's times and cursor allow.
func (tx *Tx) eventRange(filter EventFilter) (low, high int64, err error) {
	if err := tx.value(&low, "SELECT coalesce(min(seq), 0) FROM _events"); err != nil {
		return 0, 0, err
	}
	if err := tx.value(&high, "SELECT coalesce(max(seq) + 1, 0) FROM _events"); err != nil {
		return 0, 0, err
	}
	first, last := low, high
	if !filter.From.IsZero() {
		if low, err = tx.firstEventAt(filter.From, first, last); err != nil {
			return 0, 0, err
		}
	}
	if !filter.To.IsZero() {
		if high, err = tx.firstEventAt(filter.To, first, last); err != nil {
			return 0, 0, err
		}
	}
	if filter.Before > 0 {
		high = min(high, filter.Before)
	}
	return low, high, nil
}

// firstEventAt returns the number of the first event at or after a time, among those
// from low to high; high if there is none. Numbers are in chronological order.
func (tx *Tx) firstEventAt(at agent.Time, low, high int64) (int64, error) {
	for low < high {
		middle := low + (high-low)/2
		found, err := all(
			tx,
			scanEvent,
			"SELECT "+eventColumns+" FROM _events WHERE seq >= ? ORDER BY seq LIMIT 1",
			middle,
		)
		if err != nil {
			return 0, err
		}
		if len(found) == 0 ||
			found[0].Seq >= high ||
			!found[0].CreatedAt.Before(at.Time) {
			high = middle
		} else {
			low = found[0].Seq + 1
		}
	}
	return low, nil
}

func (f EventFilter) conditions(low, high int64) []condition {
	var where filter
	where.add("seq >= ? AND seq < ?", low, high)
	if len(f.Types) > 0 {
		where.in("type", matchingEvents(f.Types)...)
	}
	if f.GatewayID != "" {
		where.add("json_extract(data, '$.gateway.id') = ?", f.GatewayID)
	}
	where.search([]string{"data"}, strings.TrimSpace(f.Search))
	return where.where
}

// matchingEvents returns the event names that match patterns.
func matchingEvents(patterns []string) []string {
	var names []string
	for _, name := range agent.EventNames {
		if slices.ContainsFunc(patterns, func(p string) bool {
			return agent.MatchEvent(p, name)
		}) {
			names = append(names, name)
		}
	}
	return names
}

// cutEvents drops events from the end of a page whose data is too long in total.
func cutEvents(events []agent.Event) (kept []agent.Event, cut bool) {
	size := 0
	for i, e := range events {
		if size += len(e.Data); size > maxEventBytes && i > 0 {
			return events[:i], true
		}
	}
	return events, false
}
