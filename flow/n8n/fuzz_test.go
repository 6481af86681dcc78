package n8n_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/agent/script"
	"satchel/flow"
	"satchel/flow/n8n"
	"satchel/store"
)

// FuzzRead checks that every document is rejected with an error that names a
// field, or becomes drafts that can be saved, with every node in the report.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.json")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var one fixture
		if err := json.Unmarshal(raw, &one); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(one.Document))
	}
	for _, text := range hostile {
		f.Add([]byte(text))
	}
	e := checker()
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) < 1<<16 {
			check(t, e, raw)
		}
	})
}

// checker returns an engine that only checks whether graphs can be saved.
func checker() *flow.Engine {
	e := flow.New(flow.Options{
		Env:     store.Env{Log: slog.New(slog.DiscardHandler)},
		Scripts: script.New(script.Options{}),
	})
	e.Register(flow.MessageKinds(nil))
	e.Register(map[string]*flow.Kind{"chat": flow.ChatKind(nil)})
	return e
}

func check(t *testing.T, e *flow.Engine, raw []byte) {
	t.Helper()
	read, err := n8n.Read(raw, issuesOf(e))
	if err != nil {
		var known *agent.Error
		if !errors.As(err, &known) || known.Code != agent.CodeValidation || known.Details["field"] == "" {
			t.Fatalf("%v names no field", err)
		}
		return
	}
	lines := map[string]bool{}
	for _, line := range read.Report {
		lines[line.Workflow+"\x00"+line.Node] = true
	}
	for _, w := range read.Workflows {
		if err := e.Check(w); err != nil {
			t.Fatalf("the draft cannot be saved: %v\n%s", err, graphOf(w))
		}
		if w.Status != agent.WorkflowDraft {
			t.Fatalf("the workflow is %s", w.Status)
		}
	}
	if len(read.Report) > 0 && len(lines) == 0 {
		t.Fatal("the report is empty")
	}
}

const trigger = `{"name":"T","type":"n8n-nodes-base.manualTrigger","position":[0,0],"parameters":{}}`

// hostile lists documents that n8n would never export.
var hostile = []string{
	`{"nodes":[],"connections":{}}`,
	`{"nodes":[` + trigger + `],"connections":{"T":{"main":[[{"node":"T","type":"main","index":0}]]}}}`,
	`{"nodes":[` + trigger + `,{"name":"__proto__","type":"n8n-nodes-base.set","typeVersion":3.4,` +
		`"parameters":{"assignments":{"assignments":[{"name":"__proto__.polluted","type":"string","value":"={{ ` +
		`$json.__proto__.x }}"},{"name":"constructor","value":"={{ $('__proto__').item.json.a }}"}]}}}],` +
		`"connections":{"T":{"main":[[{"node":"__proto__"}]]},"__proto__":{"main":[[{"node":"__proto__"}]]}}}`,
	`{"nodes":[` + trigger + `,{"name":"L","type":"n8n-nodes-base.splitInBatches","typeVersion":3},{"name":"M",` +
		`"type":"n8n-nodes-base.splitInBatches","typeVersion":3}],"connections":{"T":{"main":[[{"node":"L"}]]},` +
		`"L":{"main":[[{"node":"M"}],[{"node":"M"},{"node":"L"}]]},"M":{"main":[[{"node":"L"}],` +
		`[{"node":"L"},{"node":"M"}]]}}}`,
	`{"nodes":[` + trigger + `,{"name":"A","type":"n8n-nodes-base.merge"},{"name":"B",` +
		`"type":"n8n-nodes-base.merge"}],"connections":{"T":{"main":[[{"node":"A","index":1}]]},` +
		`"A":{"main":[[{"node":"B"}]]},"B":{"main":[[{"node":"A"}]]}}}`,
	`{"nodes":[` + trigger + `,{"name":"A","type":"n8n-nodes-base.httpRequest","typeVersion":"x",` +
		`"parameters":{"url":[1],"method":{},"options":7,"queryParameters":{"parameters":"no"},"sendQuery":true,` +
		`"jsonBody":5},"credentials":[],"position":"here"}],"connections":{"T":{"main":[null,[{"node":"A"},` +
		`{"node":"gone"}]]},"gone":{"main":[[{"node":"A"}]]}}}`,
	`{"nodes":[` + trigger + `,{"name":"A","type":"n8n-nodes-base.set","typeVersion":3.4,` +
		`"parameters":{"assignments":{"assignments":[{"name":"","value":"={{"},{"name":"a..b.","value":"={{ }}"},` +
		`{"name":"a.b","value":{"{{":"}}"}},{"name":"a","value":"}}{{ '"}]}}}],` +
		`"connections":{"T":{"main":[[{"node":"A"}]]}}}`,
	`{"nodes":[` + trigger + `,{"name":"S","type":"n8n-nodes-base.switch","typeVersion":3,` +
		`"parameters":{"rules":{"values":[{},{"conditions":{"conditions":[{"operator":{"operation":"regex"},` +
		`"leftValue":"={{ $json.a }}","rightValue":"("}]}},7]}}}],"connections":{"T":{"main":[[{"node":"S"}]]}}}`,
	`{"nodes":[` + trigger + `,{"name":"W","type":"n8n-nodes-base.wait","parameters":{"amount":1e308,"unit":"years",` +
		`"resume":"specificTime","dateTime":"never"}}],"connections":{"T":{"main":[[{"node":"W"}]]}}}`,
	`{"nodes":[{"name":"F","type":"n8n-nodes-base.formTrigger","parameters":{"formTitle":"` +
		strings.Repeat("x", 3000) +
		`","formFields":{"values":[{"fieldLabel":"values"},{"fieldLabel":"values"},{"fieldLabel":"é"},` +
		`{"fieldType":"nope"},{"fieldType":"dropdown"}]}}}],"connections":{}}`,
	`{"nodes":[` + trigger + `,{"name":"C","type":"n8n-nodes-base.code","parameters":{"jsCode":"` +
		strings.Repeat("return [", 2000) + `"}}],"connections":{"T":{"main":[[{"node":"C"}]]}}}`,
	`[[]]`, `[]`, `null`, `7`, `"x"`, `{}`, `{"nodes":{}}`, `{"nodes":[7]}`,
	`{"nodes":[{"name":"a"}]}`,
	`{"nodes":[],"connections":[]}`,
	`{"workflow":{"workflow":{"nodes":[]}}}`,
	`{"nodes":[],"connections":{"a":7}}`,
	`{"nodes":[` + trigger + `,` + trigger + `],"connections":{}}`,
	strings.Repeat(`{"workflow":`, 600) + `1` + strings.Repeat(`}`, 600),
}

func TestHostileDocuments(t *testing.T) {
	e := checker()
	for _, text := range hostile {
		check(t, e, []byte(text))
	}
}

var wrong = []any{
	nil, 7.5, "{{ x", "={{ $json.a ",
	"={{ $('Start').item.json['a'] }}",
	true,
	[]any{[]any{}},
	map[string]any{"a": 1.0},
}

// TestWrongTypes replaces each parameter of each fixture by a value of another
// type.
func TestWrongTypes(t *testing.T) {
	e := checker()
	n := 0
	all := fixtures(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		var document any
		if err := json.Unmarshal(f.Document, &document); err != nil {
			t.Fatal(err)
		}
		mutate(document, false, &n, func() {
			raw, _ := json.Marshal(document)
			check(t, e, raw)
		})
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// mutate replaces, one at a time, each value below parameters, and calls try.
func mutate(v any, below bool, n *int, try func()) {
	next := func() any {
		*n++
		return wrong[*n%len(wrong)]
	}
	switch v := v.(type) {
	case map[string]any:
		for key, was := range v {
			if below {
				v[key] = next()
				try()
				v[key] = was
			}
			mutate(was, below || key == "parameters", n, try)
		}
	case []any:
		for i, was := range v {
			if below {
				v[i] = next()
				try()
				v[i] = was
			}
			mutate(was, below, n, try)
		}
	}
}

// TestLargest checks that 1,000 nodes are accepted, and no more.
func TestLargest(t *testing.T) {
	var nodes, connections []string
	for i := range n8n.MaxNodes {
		kind := "set"
		if i == 0 {
			kind = "manualTrigger"
		}
		nodes = append(
			nodes,
			fmt.Sprintf(
				`{"name":"n%d","type":"n8n-nodes-base.%s","typeVersion":3.4,"position":[%d,0],"parameters":{}}`,
				i, kind, i*200,
			),
		)
		connections = append(
			connections,
			fmt.Sprintf(`"n%d":{"main":[[{"node":"n%d","type":"main","index":0}]]}`, i, (i+1)%n8n.MaxNodes),
		)
	}
	document := `{"nodes":[` + strings.Join(nodes, ",") + `],"connections":{` + strings.Join(connections, ",") + `}}`
	read, err := n8n.Read([]byte(document), issuesOf(checker()))
	if err != nil || len(read.Report) < n8n.MaxNodes {
		t.Fatalf("%v, %d lines", err, len(read.Report))
	}
	for field, document := range map[string]string{
		"document.nodes": `{"nodes":[` + strings.Join(nodes, ",") + `,{"name":"x","type":"y"}],"connections":{}}`,
		"document":       `{"nodes":[],"name":"` + strings.Repeat("x", n8n.MaxDocument) + `"}`,
	} {
		var known *agent.Error
		if _, err := n8n.Read([]byte(document), issuesOf(checker())); !errors.As(err, &known) ||
			known.Details["field"] != field {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}
