package flow

import (
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// dispatchAll delivers events to the engine until its executions emit no more.
func dispatchAll(t *testing.T, db *store.DB, e *Engine) {
	t.Helper()
	after := int64(0)
	for {
		// First, since an execution that ends after events are read may add some.
		idle := waitIdle(t, db, e)
		events, err := db.Events(t.Context(), after, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			if idle {
				return
			}
			continue
		}
		if _, err := e.OnEvents(t.Context(), db, events); err != nil {
			t.Fatal(err)
		}
		after = events[len(events)-1].Seq
	}
}

// waitIdle waits for the executions that have not ended. It returns false if
// there were any.
func waitIdle(t *testing.T, db *store.DB, e *Engine) bool {
	t.Helper()
	open, _, err := db.Executions(
		t.Context(),
		store.ExecutionFilter{Statuses: []string{"running", "queued"}},
		store.Page{Limit: 100},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range open {
		if _, err := e.Await(t.Context(), db, x.ID); err != nil {
			t.Fatal(err)
		}
	}
	return len(open) == 0
}

// executionsOf counts the executions of a workflow that started, and returns
// those that were refused.
func executionsOf(t *testing.T, db *store.DB, id string) (started int, refused []agent.Execution) {
	t.Helper()
	for offset := 0; ; offset += 100 {
		list, _, err := db.Executions(t.Context(), store.ExecutionFilter{WorkflowID: id}, store.Page{
			Limit:  100,
			Offset: offset,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if x.Error != nil && x.Error.Code == string(agent.CodeBudget) && x.Error.NodeID == "" {
				refused = append(refused, x)
			} else {
				started++
			}
		}
		if len(list) < 100 {
			return started, refused
		}
	}
}

func mustCreate(t *testing.T, db *store.DB) {
	t.Helper()
	if _, err := db.CreateContact(t.Context(), agent.ContactChange{Name: agent.Some("first")}); err != nil {
		t.Fatal(err)
	}
}

// A workflow that starts itself through what it writes stops, with an error
// that says why.
func TestBudgetOfEvents(t *testing.T) {
	const insert = `t trigger {"event":"contact.created"}
		a sql {"query":"INSERT INTO contacts(name) VALUES ('a'), ('b'), ('c'), ('d')"}
		t -> a`
	t.Run("by number", func(t *testing.T) {
		db, e := open(t)
		e.budget.limit = 30
		w := createWorkflowWith(t, db, e, insert, many)
		mustCreate(t, db)
		dispatchAll(t, db, e)
		started, refused := executionsOf(t, db, w.ID)
		if started != 31 ||
			len(refused) != 1 ||
			refused[0].Status != agent.ExecutionErrored ||
			!strings.Contains(refused[0].Error.Message, "30") {
			t.Errorf("%d started, refused: %+v", started, refused)
		}
		if n := countLogs(t, db, "an execution was not started"); n != 1 {
			t.Errorf("%d log entries", n)
		}
		// Another root has a budget of its own.
		mustCreate(t, db)
		dispatchAll(t, db, e)
		if started, refused := executionsOf(t, db, w.ID); started != 62 || len(refused) != 2 {
			t.Errorf("%d started, %d were refused", started, len(refused))
		}
	})
	t.Run("by depth", func(t *testing.T) {
		db, e := open(t)
		w := createWorkflowWith(t, db, e, strings.Replace(insert, ", ('b'), ('c'), ('d')", "", 1), many)
		// which its own end starts, too
		createWorkflowWith(t, db, e, "t trigger {\"event\":\"workflow.*\"}\ns set {\"values\":{}}\nt -> s", many)
		mustCreate(t, db)
		dispatchAll(t, db, e)
		if started, refused := executionsOf(t, db, w.ID); started != agent.MaxEventDepth || len(refused) != 1 {
			t.Errorf("%d started, refused: %+v", started, refused)
		}
	})
}

// A root may start executions again a minute later.
func TestBudgetRenewsEachMinute(t *testing.T) {
	b := newBudget()
	b.limit = 3
	now := time.Now()
	b.now = func() time.Time { return now }
	take := func(want ...bool) {
		t.Helper()
		for i, ok := range want {
			if got := b.take("root"); got != ok {
				t.Errorf("number %d: %v", i, got)
			}
		}
	}
	take(true, true)
	now = now.Add(30 * time.Second)
	take(true, false)
	if !b.shouldRecord("root", "w") || b.shouldRecord("root", "w") || !b.shouldRecord("root", "v") || !b.take("other") {
		t.Error("a refusal must be recorded once for each workflow")
	}
	now = now.Add(30 * time.Second)
	take(true, true, false)
	now = now.Add(2 * time.Minute)
	if b.take("new"); len(b.roots) != 1 {
		t.Errorf("%d roots are kept", len(b.roots))
	}
}

// Workflow nodes, including those in loops, count for the root of their
// execution.
func TestBudgetOfWorkflowNodes(t *testing.T) {
	for name, wait := range map[string]string{"waiting": "true", "not waiting": "false"} {
		t.Run(name, func(t *testing.T) {
			db, e := open(t)
			e.budget.limit = 20
			child := createWorkflowWith(t, db, e, "t trigger\ns set {\"values\":{}}\nt -> s", many)
			w := createWorkflowWith(
				t,
				db,
				e,
				loopOver("workflow", `{"workflow_id":"`+child.ID+`","wait":`+wait+`}`),
				many,
			)
			s := execute(t, db, e, w, numbered(50, 1))
			if s.Execution.Status != agent.ExecutionErrored ||
				s.Execution.Error.Code != string(agent.CodeBudget) ||
				s.Execution.Error.NodeID != "c" {
				t.Errorf("got %s %+v", s.Execution.Status, s.Execution.Error)
			}
			waitIdle(t, db, e)
			if started, refused := executionsOf(t, db, child.ID); started != 20 || len(refused) != 0 {
				t.Errorf("%d started, %d were refused", started, len(refused))
			}
			if n := countLogs(t, db, "an execution was not started"); n != 1 {
				t.Errorf("%d log entries", n)
			}
		})
	}
}

// An execution's requests to the server count for its root.
func TestBudgetOfRequests(t *testing.T) {
	db, e := open(t)
	e.budget.limit = 2
	w := createWorkflow(t, db, e, "t trigger\ns set {\"values\":{}}\nt -> s")
	chain, ok := agent.ReadChain(agent.Chain{Root: "execution-x", Depth: 3}.Signed())
	if !ok || chain != (agent.Chain{Root: "execution-x", Depth: 3, Remote: true}) {
		t.Fatal(chain, ok)
	}
	ctx := store.WithChain(t.Context(), chain)
	for i := range 4 {
		s, err := e.Execute(ctx, db, Request{WorkflowID: w.ID, Trigger: "manual", Wait: time.Minute})
		if want := i < 2; want != (err == nil) ||
			want && (s.Execution.RootID != "execution-x" || s.Execution.Depth != 4) ||
			!want && agent.ErrorCode(err) != agent.CodeBudget {
			t.Errorf("number %d: %+v %v", i, s.Execution, err)
		}
	}
	if _, err := e.Execute(
		store.WithChain(t.Context(), agent.Chain{Root: "execution-y", Depth: agent.MaxEventDepth}),
		db,
		Request{WorkflowID: w.ID, Trigger: "manual"},
	); agent.ErrorCode(err) != agent.CodeBudget {
		t.Error(err)
	}
	for _, invalid := range []string{
		"", ".", "1.execution-x", "1.execution-x.", "1.execution-x.AAAA",
		chain.Signed() + "x",
		"0" + chain.Signed(),
		strings.Replace(chain.Signed(), "3.", "1.", 1),
	} {
		if _, ok := agent.ReadChain(invalid); ok {
			t.Errorf("%q is accepted", invalid)
		}
	}
}

// A retry by a person starts a new chain.
func TestBudgetOfRetries(t *testing.T) {
	db, e := open(t)
	w := createWorkflow(t, db, e, "t trigger\na chat {\"prompt\":\"fail\"}\nt -> a")
	old := execute(t, db, e, w, "{}").Execution
	x, err := e.Retry(t.Context(), db, old.ID, "")
	if err != nil || x.RootID != x.ID || x.Depth != 1 {
		t.Errorf("got %+v %v", x, err)
	}
	if x, err := e.Await(t.Context(), db, x.ID); err != nil || x.Status != agent.ExecutionErrored {
		t.Error(x.Status, err)
	}
	chained := store.WithChain(t.Context(), old.Chain())
	if x, err = e.Retry(chained, db, old.ID, ""); err != nil || x.RootID != old.ID || x.Depth != 2 {
		t.Errorf("got %+v %v", x, err)
	}
}

func countLogs(t *testing.T, db *store.DB, message string) int {
	t.Helper()
	r, err := db.SQL(
		t.Context(),
		"SELECT count(*) FROM logs WHERE message LIKE ? || '%'",
		store.Params{List: []any{message}},
		store.Access{},
	)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := r.Rows[0][0].(int64)
	return int(n)
}
