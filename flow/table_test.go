package flow

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

func leadsTable(t *testing.T, db *store.DB) {
	t.Helper()
	_, err := db.CreateTable(
		t.Context(),
		agent.Table{
			Name: "leads",
			Columns: []agent.TableColumn{
				{Name: "email", Type: agent.ColumnText, Required: true, Unique: true},
				{Name: "amount", Type: agent.ColumnNumber},
				{Name: "status", Type: agent.ColumnText},
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
}

// TestTableNode runs each operation with values from templates, including hostile
// ones, which stay text.
func TestTableNode(t *testing.T) {
	db, e := open(t)
	leadsTable(t, db)
	w := createWorkflow(t, db, e, `t trigger {}
		add table {"table":"leads","operation":"insert","row":{"email":"{{email}}","amount":"{{amount}}"}}
		more table {"table":"leads","operation":"insert","rows":[{"email":"b@x","amount":1},{"email":"c@x","amount":2}]}
		up table {"table":"leads","operation":"upsert","key":"email","row":{"email":"{{email}}","status":"won"}}
		change table {"table":"leads","operation":"update","conditions":[{"column":"amount","operator":"lt","value":"{{nodes.add.row.amount}}"}],"row":{"status":"small"}}
		find table {"table":"leads","conditions":[{"column":"email","operator":"equals","value":"{{email}}"}]}
		gone table {"table":"leads","operation":"delete","conditions":[{"column":"email","operator":"in","value":["b@x","nobody"]}]}
		count table {"table":"leads","operation":"count"}
		t -> add
		add -> more
		more -> up
		up -> change
		change -> find
		find -> gone
		gone -> count`)
	hostile := `'); DROP TABLE data_leads; --{{nodes.t}}`
	s := execute(t, db, e, w, fmt.Sprintf(`{"email":%s,"amount":"12.5"}`, mustJSON(hostile)))
	if s.Execution.Status != agent.ExecutionComplete {
		t.Fatalf("got %s %+v", s.Execution.Status, s.Execution.Error)
	}
	want := map[string]string{"add": "1", "more": "2", "up": "1", "change": "2", "find": "1", "gone": "1", "count": "2"}
	for _, r := range s.Results {
		var out struct {
			Row     map[string]any
			Count   json.Number
			Created bool
		}
		if r.NodeID == "t" {
			continue
		}
		if err := json.Unmarshal(r.Output, &out); err != nil || out.Count.String() != want[r.NodeID] {
			t.Errorf("%s: %s %v", r.NodeID, r.Output, err)
		}
		if r.NodeID == "find" &&
			(out.Row["email"] != hostile || out.Row["status"] != "won" || out.Row["amount"] != 12.5) {
			t.Errorf("got %v", out.Row)
		}
	}
}

func TestTableNodeFails(t *testing.T) {
	db, e := open(t)
	leadsTable(t, db)
	for data, want := range map[string]string{
		`{"table":"nobody"}`: "there is no table nobody",
		`{"table":"leads","operation":"insert","row":{"amount":1}}`:                 "email is required",
		`{"table":"leads","operation":"insert","row":{"email":"a","x":1}}`:          "x is not a column",
		`{"table":"leads","operation":"delete","conditions":[]}`:                    "at least one condition",
		`{"table":"leads","operation":"upsert","key":"amount","row":{"email":"a"}}`: "column that is unique",
		`{"table":"leads","operation":"update","conditions":[{"column":"x",` +
			`"operator":"equals"}],"row":{"amount":1}}`: "not a column of the table",
		`{"table":"leads","operation":"update","conditions":[{"column":"amount",` +
			`"operator":"like"}],"row":{"amount":1}}`: "operator is unknown",
		`{"table":"leads","conditions":[{"column":"amount","operator":"gt","value":"many"}]}`: "must be a number",
	} {
		w := createWorkflow(t, db, e, "t trigger {}\n n table "+data+"\n t -> n")
		s := execute(t, db, e, w, "{}")
		if s.Execution.Error == nil || !strings.Contains(s.Execution.Error.Message, want) {
			t.Errorf("%s: %+v", data, s.Execution.Error)
		}
	}
	for data, field := range map[string]string{
		`{}`:                                     "nodes[1].data.table",
		`{"table":"No Name"}`:                    "nodes[1].data.table",
		`{"table":"leads","operation":"drop"}`:   "nodes[1].data.operation",
		`{"table":"leads","operation":"insert"}`: "nodes[1].data.row",
		`{"table":"leads","operation":"update","row":{}}`:        "nodes[1].data.conditions",
		`{"table":"leads","operation":"delete"}`:                 "nodes[1].data.conditions",
		`{"table":"leads","conditions":[{"operator":"equals"}]}`: "nodes[1].data.conditions[0].column",
	} {
		w := agent.Workflow{Name: "w", Status: agent.WorkflowActive, Settings: agent.DefaultWorkflowSettings()}
		w.Nodes, w.Edges = parseGraph("t trigger {}\n n table " + data + "\n t -> n")
		if got := issueOfError(e.Check(w)).Field; got != field {
			t.Errorf("%s: %s, want %s", data, got, field)
		}
		if w.Status = agent.WorkflowDraft; !strings.Contains(data, "No Name") &&
			!strings.Contains(data, "drop") &&
			e.Check(w) != nil {
			t.Errorf("%s: rejected as a draft: %v", data, e.Check(w))
		}
	}
}

// TestTableTrigger checks that rows of the trigger's table, and no others, start a
// workflow.
func TestTableTrigger(t *testing.T) {
	db, e := open(t)
	leadsTable(t, db)
	if _, err := db.CreateTable(t.Context(), agent.Table{
		Name:    "other",
		Columns: []agent.TableColumn{{Name: "a", Type: agent.ColumnText}},
	}); err != nil {
		t.Fatal(err)
	}
	w := createWorkflow(t, db, e, `t trigger {"event":"row.*","table":"leads","filter":[{"left":"{{row.amount}}","operator":"gt","right":5}]}
		s set {"values":{"text":"{{row.email}} of {{table}}"}}
		t -> s`)
	for table, row := range map[string]agent.Row{"leads": {"email": "a@x", "amount": 6.0}, "other": {"a": "x"}} {
		if _, err := db.InsertRows(t.Context(), table, []agent.Row{row}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.InsertRows(t.Context(), "leads", []agent.Row{{"email": "b@x", "amount": 5.0}}, nil); err != nil {
		t.Fatal(err)
	}
	events, err := db.Events(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := e.OnEvents(t.Context(), db, events); err != nil || n != len(events) {
		t.Fatal(n, err)
	}
	started, total, err := db.Executions(t.Context(), store.ExecutionFilter{}, store.Page{Limit: 10})
	if err != nil || total != 1 {
		t.Fatalf("%d executions, %v", total, err)
	}
	ended, _ := waitForEnd(t, db, e, started[0].ID)
	if ended.WorkflowID != w.ID || string(ended.Output) != `{"text":"a@x of leads"}` {
		t.Errorf("got %s", ended.Output)
	}
}
