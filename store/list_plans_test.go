package store

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store/sqlite"
)

// filterSamples has a value for each field of the filters of lists.
var filterSamples = map[string]any{
	"ContactIDs": []string{"contact-000001", "contact-000002"},
	"GatewayIDs": []string{"g", "h"},
	"Chat":       true,
	"Status":     agent.ConversationOpen,
	"Assignee":   agent.Some("ada@example.com"),
	"Unread":     true,
	"NeedsHuman": true,
	"WorkflowID": "w",
	"Version":    1,
	"ContactID":  "contact-000001",
	"Statuses":   []string{"errored", "complete"},
	"Triggers":   []string{"webhook"},
	"Tests":      true,
	"From":       agent.Now(),
	"To":         agent.Now(),
	"Levels":     []string{"error", "warn"},
	"Sources":    []string{"audit", "flow"},
	"Rating":     -1,
}

// filtersOf returns filters with none, with each one, and with each pair of their fields
// set.
func filtersOf[F any](t *testing.T) []F {
	t.Helper()
	of := reflect.TypeFor[F]()
	set := func(fields ...int) (f F) {
		for _, i := range fields {
			name := of.Field(i).Name
			sample, ok := filterSamples[name]
			if !ok {
				t.Fatalf("%s.%s has no sample", of, name)
			}
			reflect.ValueOf(&f).Elem().Field(i).Set(reflect.ValueOf(sample))
		}
		return f
	}
	list := []F{set()}
	for i := range of.NumField() {
		list = append(list, set(i))
		for j := range i {
			list = append(list, set(j, i))
		}
	}
	return list
}

// bigTables grow without a bound, so that reading all their rows is too slow.
var bigTables = []string{"contacts", "_contact_tags", "conversations", "messages", "executions", "logs"}

// TestListsAreFoundByIndexes checks that no filter and no order of a list reads all rows
// of a big table, or sorts more than a page or what the filter leaves. The filters and
// orders are taken from the code.
func TestListsAreFoundByIndexes(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	db := createAgent(t, openFolder(t), "a")
	fillPeople(t, db, 1200)
	do(t, db, `UPDATE contacts SET tags = '["vip"]' WHERE rowid % 100 = 0`)
	do(t, db, "INSERT INTO workflows(id, name) VALUES ('w', 'w')") // and its version 1
	do(
		t,
		db,
		`INSERT INTO executions(id, workflow_id, version, status, trigger, created_at) SELECT 'execution-' || `+
			`id, 'w', 1, iif(rowid % 100, 'complete', 'errored'), iif(rowid % 90, 'manual', `+
			`'webhook'), created_at FROM contacts`,
	)
	do(
		t,
		db,
		"INSERT INTO conversations(id, contact_id, unread) SELECT 'conversation-' || id, id, rowid % 2 FROM contacts",
	)
	do(
		t,
		db,
		"INSERT INTO messages(conversation_id, role, content) SELECT id, 'user', 'hello' "+
			"FROM conversations WHERE rowid % 3",
	)
	for _, p := range schemaParts {
		if err := db.alone(t.Context(), func(c *conn) error { return makePart(c, &p) }); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
	}
	plans := planner{t: t, db: db, seen: map[string]bool{}}
	for _, tags := range [][]string{nil, {"vip"}, {"vip", "new"}} {
		plans.check("contacts", contactListing.sort, func(p Page) (err error) {
			_, _, err = db.Contacts(t.Context(), tags, p)
			return err
		})
	}
	for _, f := range filtersOf[ConversationFilter](t) {
		plans.check("conversations", conversationListing.sort, func(p Page) (err error) {
			_, _, err = db.Conversations(t.Context(), f, p)
			return err
		})
	}
	for _, f := range filtersOf[ExecutionFilter](t) {
		plans.check("executions", executionListing.sort, func(p Page) (err error) {
			_, _, err = db.Executions(t.Context(), f, p)
			return err
		})
	}
	for _, f := range filtersOf[LogFilter](t) {
		plans.check("logs", logListing.sort, func(p Page) (err error) {
			_, _, err = db.Logs(t.Context(), f, p)
			return err
		})
	}
	do(
		t,
		db,
		"UPDATE messages SET role = 'assistant', rating = iif(id % 2, 1, -1), comment = "+
			"'person 1199' WHERE id % 20 = 0",
	)
	for _, f := range filtersOf[FeedbackFilter](t) {
		plans.check("messages", feedbackListing.sort, func(p Page) (err error) {
			_, _, err = db.Feedback(t.Context(), f, p)
			return err
		})
	}
	if _, err := db.RecentExecutions(t.Context(), []string{"w"}, 20); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.WorkflowVersions(t.Context(), "w", Page{Limit: 10}); err != nil {
		t.Fatal(err)
	}
	if plans.explain(); !plans.seen[recentExecutions] || !plans.seen[versionExecutions] {
		t.Error("the plans of recent executions and of those by version were not checked")
	}
	err := db.read(t.Context(), true, func(tx *Tx) error {
		plan, err := all(tx, scanStep, "EXPLAIN QUERY PLAN "+versionExecutions, "w", 1, 20)
		if len(plan) != 1 ||
			!strings.Contains(
				plan[0],
				"USING COVERING INDEX executions_version (workflow_id=? AND version>? AND version<?)",
			) {
			t.Errorf("executions by version are counted with %q", plan)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(plans.seen) < 200 {
		t.Errorf("only %d queries were made", len(plans.seen))
	}
}

// planner examines the plans of the queries that lists make.
type planner struct {
	t    *testing.T
	db   *DB
	seen map[string]bool
}

// check reads a list in each of its orders, with and without a search and a cursor.
func (p *planner) check(name string, sort map[string]string, list func(Page) error) {
	p.t.Helper()
	for _, field := range slices.Sorted(maps.Keys(sort)) {
		for _, text := range []string{"", "person 1199"} {
			if name == "executions" && text != "" {
				continue
			}
			page := Page{Limit: 10, Order: []Order{{field, true}}, Search: text, Next: &Next{}}
			if err := list(page); err != nil {
				p.t.Fatalf("%s by %s: %v", name, field, err)
			}
			if page.After = page.Next.Cursor; page.After != nil {
				if err := list(page); err != nil {
					p.t.Fatalf("%s by %s, after a page: %v", name, field, err)
				}
			}
			p.explain()
		}
	}
}

// explain checks the plans of the queries that a reader has run since the last call.
func (p *planner) explain() {
	err := p.db.read(p.t.Context(), true, func(tx *Tx) error {
		for _, query := range tx.sql.Queries() {
			if p.seen[query] || !strings.HasPrefix(query, "SELECT") || strings.Contains(query, "EXPLAIN") {
				continue
			}
			p.seen[query] = true
			if why := p.fault(tx, query); why != "" {
				p.t.Errorf("%s:\n%s", why, query)
			}
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func scanStep(rows *sqlite.Rows) (detail string, err error) {
	var ignored int
	return detail, rows.Scan(&ignored, &ignored, &ignored, &detail)
}

// fault returns what is wrong with the plan of a query, "" for nothing.
func (p *planner) fault(tx *Tx, query string) string {
	plan, err := all(tx, scanStep, "EXPLAIN QUERY PLAN "+query, make([]any, strings.Count(query, "?"))...)
	if err != nil {
		return fmt.Sprint("no plan: ", err)
	}
	sorts := strings.Contains(query, "ORDER BY +") || strings.Contains(query, "key_0")
	sorted := slices.ContainsFunc(plan, func(step string) bool {
		return strings.Contains(step, "TEMP B-TREE FOR ORDER BY")
	})
	inOrder := strings.Contains(query, "ORDER BY") && !sorted // and so until the page is full
	scans := slices.ContainsFunc(plan, func(step string) bool {
		words := strings.Fields(step)
		few := strings.HasSuffix(step, " executions_tests") ||
			strings.HasSuffix(step, " executions_unfinished") ||
			strings.HasSuffix(step, " messages_rated")
		return words[0] == "SCAN" && slices.Contains(bigTables, words[1]) && !inOrder && !few
	})
	if scans || sorted && !sorts {
		return strings.Join(plan, "\n")
	}
	return ""
}
