package store

import (
	"fmt"
	"slices"
	"testing"

	"satchel/agent"
)

// TestCursors reads lists to their end page by page, by one column and by two in opposite
// directions.
func TestCursors(t *testing.T) {
	t.Parallel()
	db := createAgent(t, openFolder(t), "a")
	do(t, db, `WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 100)
		INSERT INTO contacts(id, name, email, created_at, updated_at) SELECT printf('contact-%03d', i), 'Name ' || (i % 7), iif(i % 3, '', 'E' || i), '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z' FROM k`)
	for _, order := range [][]Order{
		nil,
		{{"name", false}},
		{{"email", true}},
		{{"name", true}, {"email", false}},
		{{"created_at", false}, {"email", true}},
	} {
		whole, total, err := db.Contacts(t.Context(), nil, Page{Limit: 200, Order: order})
		if err != nil || total != 100 {
			t.Fatal(total, err)
		}
		var pages []agent.Contact
		p := Page{Limit: 7, Order: order, Next: &Next{}}
		for range 15 {
			page, total, err := db.Contacts(t.Context(), nil, p)
			if err != nil || total != 100 {
				t.Fatal(total, err)
			}
			pages = append(pages, page...)
			if p.Next.Cursor == nil {
				break
			}
			if p.After, err = ParseCursor(p.Next.Cursor.String()); err != nil {
				t.Fatal(err)
			}
			p.Next = &Next{}
		}
		if !slices.EqualFunc(whole, pages, func(a, b agent.Contact) bool { return a.ID == b.ID }) {
			t.Errorf("%v: pages have %d contacts in another order than the list", order, len(pages))
		}
	}
	_, _, err := db.Contacts(t.Context(), nil, Page{
		Limit: 7,
		After: &Cursor{Order: "-created_at,-id", Values: []any{"x", "y"}},
		Order: []Order{{"name", false}},
	})
	if e := wantCode(t, err, agent.CodeValidation); fmt.Sprint(e.Details["field"]) != "cursor" {
		t.Errorf("%+v", e)
	}
}

// TestFilteredTotals checks that cached totals equal a count, whatever was written before
// and by whom.
func TestFilteredTotals(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	db := createAgent(t, openFolder(t), "a")
	ada := createContact(t, db, agent.ContactChange{Name: agent.Some("Ada"), Tags: agent.Some([]string{"vip", "new"})})
	createContact(t, db, agent.ContactChange{Name: agent.Some("Bob"), Tags: agent.Some([]string{"new"})})
	do(t, db, `INSERT INTO workflows(id, name) VALUES ('w', 'w'), ('x', 'x')`)
	for i, status := range []string{"complete", "running", "errored", "queued", "complete", "terminated"} {
		do(
			t,
			db,
			"INSERT INTO executions(id, workflow_id, version, status, trigger, created_at) VALUES (?, ?, 1, ?, ?, ?)",
			fmt.Sprint("execution-", i),
			[]string{"w", "x"}[i%2],
			status,
			[]string{"manual", "webhook", "test"}[i%3],
			agent.Now(),
		)
	}
	do(t, db, "UPDATE executions SET status = 'errored' WHERE status = 'running'")
	do(t, db, "DELETE FROM executions WHERE id = 'execution-0'")
	do(
		t,
		db,
		`INSERT INTO conversations(id, contact_id, assignee, needs_human) VALUES ('c1', ?1, 'ada@example.com', 0), `+
			`('c2', ?1, NULL, 1), ('c3', '', NULL, 0)`,
		ada.ID,
	)
	do(t, db, "UPDATE conversations SET status = 'resolved', unread = 2 WHERE id = 'c2'")
	do(t, db, "UPDATE conversations SET contact_id = ? WHERE id = 'c3'", ada.ID)
	do(t, db, "DELETE FROM conversations WHERE id = 'c1'")
	p := Page{Limit: 50}
	check := func(what string, listed, total int, err error) {
		t.Helper()
		if listed != total || err != nil {
			t.Errorf("%s: %d listed, %d in all, %v", what, listed, total, err)
		}
	}
	for _, tags := range [][]string{nil, {"vip"}, {"new"}, {"vip", "new"}, {"none"}} {
		list, total, err := db.Contacts(t.Context(), tags, p)
		check(fmt.Sprint("contacts ", tags), len(list), total, err)
	}
	for _, workflow := range []string{"", "w", "x", "none"} {
		for _, statuses := range [][]string{
			nil,
			{"errored"},
			{"complete", "errored"},
			{"queued", "running"},
			{"queued", "complete"},
		} {
			for _, triggers := range [][]string{nil, {"manual"}, {"webhook", "test"}} {
				for _, order := range [][]Order{nil, {{"started_at", true}}, {{"status", false}}} {
					f := ExecutionFilter{
						WorkflowID: workflow,
						Statuses:   statuses,
						Triggers:   triggers,
						Tests:      len(statuses) == 1,
					}
					list, total, err := db.Executions(t.Context(), f, Page{Limit: 50, Order: order})
					check(fmt.Sprintf("executions %+v", f), len(list), total, err)
				}
			}
		}
	}
	for _, f := range []ConversationFilter{
		{},
		{Status: "open"},
		{Status: "resolved", Unread: true},
		{ContactIDs: []string{ada.ID}},
		{ContactIDs: []string{ada.ID, "none"}},
		{ContactIDs: []string{ada.ID}, Status: "open"},
		{Assignee: agent.Some("")},
		{Assignee: agent.Some("ada@example.com")},
		{NeedsHuman: true},
		{Chat: true, Status: "open"},
		{GatewayIDs: []string{"", "none"}},
	} {
		for _, order := range [][]Order{nil, {{"last_message_at", true}}, {{"updated_at", false}}} {
			list, total, err := db.Conversations(t.Context(), f, Page{Limit: 50, Order: order})
			check(fmt.Sprintf("conversations %+v", f), len(list), total, err)
		}
	}
	if n := value[int](t, db, "SELECT count(*) FROM _filter_counts WHERE n <= 0"); n != 0 {
		t.Errorf("%d counts of zero are kept", n)
	}
}
