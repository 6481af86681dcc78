package flow

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// hostile lists texts that an attacker may send to a field that a template reads.
var hostile = []string{
	"x'; UPDATE contacts SET name = 'owned' --",
	"x' OR '1'='1",
	"' || (SELECT group_concat(email) FROM contacts) || '",
	"x'', name = 'owned",
	"1; DELETE FROM contacts",
	"1) UNION SELECT email FROM contacts --",
	"1 OR 1 = 1",
	"(SELECT name FROM contacts)",
	`"; DELETE FROM contacts; --`,
	"x\n'; DELETE FROM contacts",
	"*/ OR 1=1 /*",
	"?1", ":a", "@a", "$a", "{{trigger.secret}}", "\\'; --", "%", "é'", "'", "''", "`", "]", "--",
	"0x31", "1e9", "NULL", "name", "contacts", "_secrets",
}

// createQueryWorkflow creates a workflow with a query node after the trigger,
// and contacts that it can read.
func createQueryWorkflow(t *testing.T, db *store.DB, e *Engine, data map[string]any) agent.Workflow {
	t.Helper()
	text := "start trigger\nq sql " + string(mustJSON(data)) + "\nstart -> q"
	query, _ := data["query"].(string)
	if !strings.Contains(query, "'{{") {
		return createWorkflow(t, db, e, text)
	}
	// Earlier versions accepted it.
	w := agent.Workflow{Name: "Test", Status: agent.WorkflowActive, Settings: agent.DefaultWorkflowSettings()}
	w.Nodes, w.Edges = parseGraph(text)
	if err := e.Check(w); err == nil || !strings.Contains(err.Error(), "within quotes") {
		t.Errorf("check of %q: %v", query, err)
	}
	w, err := db.CreateWorkflow(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestSQLTemplatesAreBound(t *testing.T) {
	db, e := open(t)
	for _, name := range []string{"Ada", "Bob", "Eve"} {
		if _, err := db.CreateContact(t.Context(), agent.ContactChange{
			Name:  agent.Some(name),
			Email: agent.Some(strings.ToLower(name) + "@example.com"),
		}); err != nil {
			t.Fatal(err)
		}
	}
	names := func() string {
		r, err := db.SQL(
			t.Context(),
			"SELECT group_concat(name || ' ' || notes, ',') FROM (SELECT * FROM contacts ORDER BY name)",
			store.Params{},
			store.Access{},
		)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(r.Rows)
	}
	before := names()
	for form, query := range map[string]map[string]any{
		"bare":         {"query": "SELECT name FROM contacts WHERE name = {{trigger.text}}"},
		"quoted":       {"query": "SELECT name FROM contacts WHERE name = '{{trigger.text}}'"},
		"concatenated": {"query": "SELECT name FROM contacts WHERE name LIKE 'no ' || {{trigger.text}}"},
		"in a list": {
			"query": "SELECT name FROM contacts WHERE name IN ('x', {{trigger.text}}, '{{ trigger.text }}')",
		},
		"update": {"query": "UPDATE contacts SET notes = '{{trigger.text}}' WHERE name = {{trigger.text}}"},
		"with list": {
			"query":  "SELECT name FROM contacts WHERE name = ? AND name = {{trigger.text}} AND name = ?",
			"params": []any{"Ada", "Bob"},
		},
		"with numbered": {
			"query":  "SELECT name FROM contacts WHERE name = ?2 AND name = {{trigger.text}} AND name = ?1",
			"params": []any{"Ada", "Bob"},
		},
		"with names": {
			"query":  "SELECT name FROM contacts WHERE name = :a AND name = {{trigger.text}}",
			"params": map[string]any{"a": "Ada"},
		},
		"params too": {
			"query":  "SELECT name FROM contacts WHERE name = ? AND name = {{trigger.text}}",
			"params": []any{"{{trigger.text}}"},
		},
		"in a comment": {
			"query": "SELECT name FROM contacts WHERE name = '' -- {{trigger.text}}\n /* {{trigger.text}} */",
		},
	} {
		t.Run(form, func(t *testing.T) {
			w := createQueryWorkflow(t, db, e, query)
			for _, text := range hostile {
				got := execute(t, db, e, w, string(mustJSON(map[string]any{"text": text, "secret": "hidden"})))
				var r store.Result
				if err := json.Unmarshal(got.Execution.Output, &r); err != nil ||
					got.Execution.Status != agent.ExecutionComplete {
					t.Errorf("%q: %s %+v %v", text, got.Execution.Status, got.Execution.Error, err)
					continue
				}
				if r.RowCount != 0 || r.Changes != 0 {
					t.Errorf("%q reached %d rows: %s", text, r.RowCount, got.Execution.Output)
				}
				if now := names(); now != before {
					t.Fatalf("%q changed the contacts to %s", text, now)
				}
			}
		})
	}
}

func TestSQLTemplateValues(t *testing.T) {
	db, e := open(t)
	input := `{"n": 5, "big": 9007199254740993, "f": 1.5, "yes": true, "none": null, "text": "it's", ` +
		`"list": [1, "b"], "o": {"a": 1}}`
	for query, want := range map[string]string{
		"SELECT typeof({{n}}), {{n}} + 1":                                   `["integer",6]`,
		"SELECT typeof('{{n}}'), '{{n}}' || 'x'":                            `["text","5x"]`,
		"SELECT {{big}} = 9007199254740993":                                 `[1]`,
		"SELECT typeof({{f}}), {{yes}}, typeof({{none}}), typeof({{gone}})": `["real",1,"null","text"]`,
		"SELECT '{{none}}', '{{gone}}', '{{text}}', {{ text | upper }}":     `["","","it's","IT'S"]`,
		"SELECT value FROM json_each({{list}}) LIMIT {{n}} OFFSET 1":        `["b"]`,
		"SELECT {{o}} ->> '$.a', '{{o}}', 'a {b} '' {'":                     `[1,"{\"a\":1}","a {b} ' {"]`,
		"SELECT {{gone | default:\"it's -- 'fine'\"}}, 1 -- {{o}} it's":     `["it's -- 'fine'",1]`,
		"SELECT /* it's {{n}} */ {{n}} AS \"a'b\", `c`.x, [d'].x FROM (SELECT 1 AS x) " +
			"c, (SELECT 2 AS x) AS [d']": `[5,1,2]`,
	} {
		t.Run(query, func(t *testing.T) {
			got := execute(t, db, e, createQueryWorkflow(t, db, e, map[string]any{"query": query}), input)
			var r struct{ Rows []json.RawMessage }
			if err := json.Unmarshal(got.Execution.Output, &r); err != nil ||
				len(r.Rows) != 1 ||
				string(r.Rows[0]) != want {
				t.Errorf("%s %+v, want %s", got.Execution.Output, got.Execution.Error, want)
			}
		})
	}
}

// TestSQLTemplateRefused covers the places where a template cannot stand for a
// value.
func TestSQLTemplateRefused(t *testing.T) {
	db, e := open(t)
	for query, issue := range map[string]string{
		"SELECT * FROM contacts WHERE name LIKE '%{{x}}%'":    "within quotes",
		"SELECT * FROM contacts WHERE name = '{{x}}{{y}}'":    "within quotes",
		"SELECT * FROM contacts WHERE name = '{{x}}'''":       "within quotes",
		"SELECT * FROM contacts WHERE name = ' {{x}}'":        "within quotes",
		"SELECT \"{{x}}\" FROM contacts":                      "within quotes",
		"SELECT `{{x}}` FROM contacts":                        "within quotes",
		"SELECT [{{x}}] FROM contacts":                        "within quotes",
		"SELECT x'{{x}}'":                                     "within quotes",
		"SELECT '{{x}}":                                       "within quotes",
		"SELECT col_{{x}} FROM contacts":                      "name or keyword",
		"SELECT {{x}}_col FROM contacts":                      "name or keyword",
		"SELECT {{x}}(1)":                                     "name or keyword",
		"SELECT 1{{x}}":                                       "name or keyword",
		"SELECT * FROM {{x}}":                                 "name or keyword",
		"SELECT * FROM contacts c JOIN {{x}} ON 1":            "name or keyword",
		"SELECT c.{{x}} FROM contacts c":                      "name or keyword",
		"SELECT name AS {{x}} FROM contacts":                  "name or keyword",
		"SELECT * FROM contacts ORDER BY {{x}}":               "name or keyword",
		"SELECT * FROM contacts ORDER BY name {{x}}":          "name or keyword",
		"SELECT * FROM contacts WHERE name = 'a' {{x}}":       "name or keyword",
		"SELECT * FROM contacts WHERE name = 'a'{{x}}":        "name or keyword",
		"SELECT * FROM contacts WHERE name {{x}} 'a'":         "name or keyword",
		"UPDATE contacts SET {{x}} = 1":                       "name or keyword",
		"UPDATE contacts SET name = 'a' WHERE id = 'b' {{x}}": "name or keyword",
		"INSERT INTO {{x}}(name) VALUES (1)":                  "name or keyword",
		"INSERT INTO contacts({{x}}) VALUES (1)":              "name or keyword",
		"INSERT INTO contacts(name) VALUES (1) {{x}}":         "name or keyword",
		"DELETE FROM contacts WHERE {{x}} {{y}}":              "name or keyword",
		"DELETE FROM contacts {{x}}":                          "name or keyword",
		"PRAGMA table_info({{x}})":                            "name or keyword",
		"{{x}}":                                               "statement",
		"{{x}} FROM contacts":                                 "statement",
		"SELECT {{x":                                          "cannot be read",
		"SELECT {{x + 1}}":                                    "cannot be read",
		"SELECT {{a}}; DELETE FROM contacts":                  "more than one",
		"DROP TABLE {{x}}":                                    "not allowed",
	} {
		t.Run(query, func(t *testing.T) {
			for _, status := range []agent.WorkflowStatus{agent.WorkflowDraft, agent.WorkflowActive} {
				w := agent.Workflow{Name: "Test", Status: status, Settings: agent.DefaultWorkflowSettings()}
				w.Nodes, w.Edges = parseGraph(
					"start trigger\nq sql " + string(mustJSON(map[string]any{"query": query})) + "\nstart -> q",
				)
				err := e.Check(w)
				if agent.ErrorCode(err) != agent.CodeValidation ||
					!strings.Contains(err.Error(), issue) ||
					!strings.Contains(err.Error(), "q") {
					t.Errorf("as %s: %v, want an error about %q", status, err, issue)
				}
				// A file of an older version, or a row written by SQL, may contain it anyway.
				saved, err := db.CreateWorkflow(t.Context(), w)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := e.Execute(t.Context(), db, Request{
					WorkflowID: saved.ID,
					Trigger:    "manual",
				}); agent.ErrorCode(err) != agent.CodeValidation {
					t.Errorf("executed: %v", err)
				}
			}
		})
	}
}
