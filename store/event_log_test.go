package store

import (
	"fmt"
	"testing"
	"time"

	"satchel/agent"
)

// TestEventLog reads the outbox by type, time, text and gateway, page by page.
func TestEventLog(t *testing.T) {
	db := openFolder(t).Default()
	do(t, db, `INSERT INTO _events(seq, type, data, created_at) VALUES
		(10, 'source.ready', '{"source":{"id":"source-1"}}', '2026-01-01T00:00:00.000Z'),
		(11, 'message.received', '{"gateway":{"id":"gateway-1"},"message":{"content":"Where is my order?"}}', '2026-01-02T00:00:00.000Z'),
		(15, 'message.sent', '{"gateway":{"id":"gateway-2"},"message":{"content":"50% done"}}', '2026-01-02T00:00:00.000Z'),
		(16, 'gateway.event', '{"gateway":{"id":"gateway-1"},"payload":null}', '2026-01-03T00:00:00.000Z')`)
	day := func(n int) agent.Time { return agent.At(time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC)) }
	for name, c := range map[string]struct {
		filter EventFilter
		limit  int
		want   string
	}{
		"all":          {EventFilter{}, 9, "[16 15 11 10] 0"},
		"first page":   {EventFilter{}, 2, "[16 15] 15"},
		"second page":  {EventFilter{Before: 15}, 2, "[11 10] 0"},
		"past the end": {EventFilter{Before: 10}, 2, "[] 0"},
		"type":         {EventFilter{Types: []string{"source.ready"}}, 9, "[10] 0"},
		"pattern":      {EventFilter{Types: []string{"message.*"}}, 9, "[15 11] 0"},
		"from":         {EventFilter{From: day(2)}, 9, "[16 15 11] 0"},
		"to":           {EventFilter{To: day(2)}, 9, "[10] 0"},
		"one day":      {EventFilter{From: day(2), To: day(3)}, 9, "[15 11] 0"},
		"later":        {EventFilter{From: day(4)}, 9, "[] 0"},
		"earlier":      {EventFilter{To: day(1)}, 9, "[] 0"},
		"text":         {EventFilter{Search: "my ORDER"}, 9, "[11] 0"},
		"no wildcards": {EventFilter{Search: "0% d"}, 9, "[15] 0"},
		"gateway":      {EventFilter{GatewayID: "gateway-1"}, 9, "[16 11] 0"},
	} {
		t.Run(name, func(t *testing.T) {
			events, next, err := db.EventLog(t.Context(), c.filter, c.limit)
			if err != nil {
				t.Fatal(err)
			}
			seqs := []int64{}
			for _, e := range events {
				seqs = append(seqs, e.Seq)
			}
			if got := fmt.Sprint(seqs, next); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestEventLogIsBounded searches a long outbox for a rare event: no page reads all of the
// outbox, and the pages together find the event.
func TestEventLogIsBounded(t *testing.T) {
	db := openFolder(t).Default()
	do(t, db, `INSERT INTO _events(type, data) VALUES ('source.error', '{}')`)
	do(
		t,
		db,
		`INSERT INTO _events(type, data) WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM k WHERE i < ?) `+
			`SELECT 'contact.created', '{}' FROM k`,
		2*eventWindow,
	)
	pages, found := 0, 0
	for f := (EventFilter{Types: []string{"source.*"}}); ; pages++ {
		events, next, err := db.EventLog(t.Context(), f, 10)
		if err != nil {
			t.Fatal(err)
		}
		if found += len(events); next == 0 {
			break
		}
		f.Before = next
	}
	if pages != 2 || found != 1 {
		t.Errorf("%d events after %d more pages", found, pages)
	}
}
