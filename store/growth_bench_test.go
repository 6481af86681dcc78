package store

import (
	"fmt"
	"testing"
)

// fillGrowth gives an agent n contacts, executions and conversations, and twice as many
// log entries.
func fillGrowth(b *testing.B, db *DB, n int) {
	b.Helper()
	const numbers = "WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < ?) "
	do(
		b,
		db,
		numbers+`INSERT INTO contacts(id, name, email, phone, tags) SELECT printf('contact-%07d', i), 'Person ' || `+
			`i, 'p' || i || '@example.com', '+49151' || i, '["a","b"]' FROM k`,
		n,
	)
	do(b, db, "INSERT INTO workflows(id, name) VALUES ('w', 'two')")
	do(b, db, numbers+`INSERT INTO executions(id, workflow_id, version, status, trigger, created_at, started_at, completed_at)
		SELECT printf('execution-%07d', i), 'w', 1, 'complete', 'manual', strftime('%Y-%m-%dT%H:%M:%fZ','now'), strftime('%Y-%m-%dT%H:%M:%fZ','now'), strftime('%Y-%m-%dT%H:%M:%fZ','now') FROM k`, n)
	do(
		b,
		db,
		numbers+
			`INSERT INTO conversations(id, contact_id) SELECT printf('conversation-%07d', i), 'contact-0000001' FROM k`,
		n,
	)
	do(
		b,
		db,
		numbers+`INSERT INTO messages(conversation_id, role, content) SELECT printf('conversation-%07d', i), `+
			`'user', 'Where is my order ' || i FROM k`,
		n,
	)
	do(b, db, numbers+`INSERT INTO logs(created_at, level, source, message, data) SELECT printf('2026-01-01T%02d:%02d:%02d.%03dZ', i / 60000 % 24, i / 1000 % 60, i % 60, i % 1000), 'info', 'audit', 'message added',
		json_object('by', 'ada@example.com', 'conversation_id', printf('conversation-%07d', i)) FROM k`, 2*n)
}

// BenchmarkGrowth reads pages of lists with each filter and each order, among few records
// and many.
func BenchmarkGrowth(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		db := createAgent(b, openFolder(b), "a")
		fillGrowth(b, db, n)
		contacts := func(tags []string, p Page) func() (int, error) {
			return func() (int, error) {
				_, total, err := db.Contacts(b.Context(), tags, p)
				return total, err
			}
		}
		executions := func(f ExecutionFilter) func() (int, error) {
			return func() (int, error) {
				_, total, err := db.Executions(b.Context(), f, Page{Limit: 50})
				return total, err
			}
		}
		conversations := func(f ConversationFilter, p Page) func() (int, error) {
			return func() (int, error) {
				_, total, err := db.Conversations(b.Context(), f, p)
				return total, err
			}
		}
		logs := func(f LogFilter, p Page) func() (int, error) {
			return func() (int, error) {
				_, total, err := db.Logs(b.Context(), f, p)
				return total, err
			}
		}
		for _, l := range []struct {
			name  string
			list  func() (int, error)
			total int
		}{
			{"contacts", contacts(nil, Page{Limit: 50}), n},
			{"contacts/search", contacts(nil, Page{Limit: 10, Search: fmt.Sprint("person ", n/2)}), 1},
			{"contacts/tag_by_name", contacts([]string{"a"}, Page{Limit: 20, Order: []Order{{"name", false}}}), n},
			{"contacts/middle", contacts(nil, Page{Limit: 50, Offset: n / 2}), n},
			{"executions", executions(ExecutionFilter{}), n},
			{"executions/workflow", executions(ExecutionFilter{WorkflowID: "w"}), n},
			{"executions/errored", executions(ExecutionFilter{Statuses: []string{"errored"}}), 0},
			{
				"conversations/contact",
				conversations(ConversationFilter{ContactIDs: []string{"contact-0000001"}}, Page{Limit: 50}),
				n,
			},
			{
				"conversations/search",
				conversations(ConversationFilter{}, Page{Limit: 50, Search: fmt.Sprint("order ", n-1)}),
				1,
			},
			{"logs", logs(LogFilter{}, Page{Limit: 50}), 0},
			{"logs/search", logs(LogFilter{}, Page{Limit: 50, Search: "nothing-like-this"}), 0},
			{"logs/error", logs(LogFilter{Levels: []string{"error"}}, Page{Limit: 50}), 0},
			{"overview", func() (int, error) {
				_, err := db.Overview(b.Context(), 14)
				return 0, err
			}, 0},
		} {
			if _, err := l.list(); err != nil { // so that filling is fast
				b.Fatal(err)
			}
			growAll(b, db)
			b.Run(fmt.Sprintf("%s/%d", l.name, n), func(b *testing.B) {
				done := measureCPU(b)
				for b.Loop() {
					if total, err := l.list(); err != nil || l.total > 0 && total != l.total {
						b.Fatal(total, err)
					}
				}
				done()
			})
		}
	}
}
