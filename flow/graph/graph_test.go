package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"satchel/agent"
)

// entries splits a JSON list into its entries.
func entries[T ~[]byte](tb testing.TB, text string) []T {
	tb.Helper()
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		tb.Fatalf("%v: %s", err, text)
	}
	out := make([]T, len(raw))
	for i, r := range raw {
		out[i] = T(r)
	}
	return out
}

// malformed lists graphs that are invalid even in a draft. field and node are
// what the error must name.
var malformed = []struct{ name, nodes, edges, field, node string }{
	{"a node that is a number", `[5]`, `[]`, "nodes[0]", ""},
	{"a node that is null", `[null]`, `[]`, "nodes[0]", ""},
	{"a node without id", `[{"type":"set"}]`, `[]`, "nodes[0].id", ""},
	{"an id that is a number", `[{"id":5,"type":"set"}]`, `[]`, "nodes[0].id", ""},
	{"an empty id", `[{"id":"","type":"set"}]`, `[]`, "nodes[0].id", ""},
	{"a long id", `[{"id":"` + strings.Repeat("x", 101) + `","type":"set"}]`, `[]`, "nodes[0].id", ""},
	{"an id with NUL", `[{"id":"a\u0000","type":"set"}]`, `[]`, "nodes[0]", ""},
	{"a duplicate node id", `[{"id":"a","type":"set"},{"id":"a","type":"set"}]`, `[]`, "nodes[1].id", "a"},
	{"no type", `[{"id":"a"}]`, `[]`, "nodes[0].type", "a"},
	{"a type that is a list", `[{"id":"a","type":[]}]`, `[]`, "nodes[0].type", "a"},
	{"data that is a list", `[{"id":"a","type":"set","data":[]}]`, `[]`, "nodes[0].data", "a"},
	{"a position that is text", `[{"id":"a","type":"set","position":"left"}]`, `[]`, "nodes[0].position", "a"},
	{
		"nested too deep",
		`[{"id":"a","type":"set","data":{"values":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}}]`,
		`[]`,
		"nodes[0]",
		"",
	},
	{"values that are text", `[{"id":"a","type":"set","data":{"values":"x"}}]`, `[]`, "nodes[0].data.values", "a"},
	{
		"an unknown method",
		`[{"id":"a","type":"http-request","data":{"method":"STEAL"}}]`,
		`[]`,
		"nodes[0].data.method",
		"a",
	},
	{"a time limit of 0", `[{"id":"a","type":"set","data":{"timeout_ms":0}}]`, `[]`, "nodes[0].data.timeout_ms", "a"},
	{
		"a time limit that is text",
		`[{"id":"a","type":"set","data":{"timeout_ms":"soon"}}]`,
		`[]`,
		"nodes[0].data.timeout_ms",
		"a",
	},
	{"an unknown on_error", `[{"id":"a","type":"set","data":{"on_error":"cry"}}]`, `[]`, "nodes[0].data.on_error", "a"},
	{
		"eleven attempts",
		`[{"id":"a","type":"set","data":{"retry":{"max_attempts":11}}}]`,
		`[]`,
		"nodes[0].data.retry.max_attempts",
		"a",
	},
	{
		"an unknown backoff",
		`[{"id":"a","type":"set","data":{"retry":{"backoff":"wild"}}}]`,
		`[]`,
		"nodes[0].data.retry.backoff",
		"a",
	},
	{
		"an unknown unit",
		`[{"id":"a","type":"wait","data":{"duration":1,"unit":"eons"}}]`,
		`[]`,
		"nodes[0].data.unit",
		"a",
	},
	{
		"conditions that are an object",
		`[{"id":"a","type":"if-else","data":{"conditions":{}}}]`,
		`[]`,
		"nodes[0].data.conditions",
		"a",
	},
	{
		"a condition that is text",
		`[{"id":"a","type":"if-else","data":{"conditions":["x"]}}]`,
		`[]`,
		"nodes[0].data.conditions",
		"a",
	},
	{
		"a condition without operator",
		`[{"id":"a","type":"if-else","data":{"conditions":[{"left":1}]}}]`,
		`[]`,
		"nodes[0].data.conditions",
		"a",
	},
	{
		"a case without id",
		`[{"id":"a","type":"switch","data":{"cases":[{"value":1}]}}]`,
		`[]`,
		"nodes[0].data.cases",
		"a",
	},
	{
		"a duplicate case id",
		`[{"id":"a","type":"switch","data":{"cases":[{"id":"x"},{"id":"x"}]}}]`,
		`[]`,
		"nodes[0].data.cases",
		"a",
	},
	{
		"a case called default",
		`[{"id":"a","type":"switch","data":{"cases":[{"id":"default"}]}}]`,
		`[]`,
		"nodes[0].data.cases",
		"a",
	},
	{
		"too many iterations",
		`[{"id":"a","type":"loop","data":{"items":[],"max_iterations":1000000}}]`,
		`[]`,
		"nodes[0].data.max_iterations",
		"a",
	},
	{"an edge that is text", `[{"id":"a","type":"set"}]`, `["a"]`, "edges[0]", ""},
	{"an unknown source", `[{"id":"a","type":"set"}]`, `[{"source":"x","target":"a"}]`, "edges[0].source", ""},
	{"an unknown target", `[{"id":"a","type":"set"}]`, `[{"source":"a","target":"x"}]`, "edges[0].target", ""},
	{"an edge without target", `[{"id":"a","type":"set"}]`, `[{"source":"a"}]`, "edges[0].target", ""},
	{
		"a handle that is a number",
		`[{"id":"a","type":"set"}]`,
		`[{"source":"a","target":"a","sourceHandle":1}]`,
		"edges[0].sourceHandle",
		"",
	},
	{
		"a duplicate edge id",
		`[{"id":"a","type":"set"},{"id":"b","type":"set"}]`,
		`[{"id":"e","source":"a","target":"b"},{"id":"e","source":"a","target":"b"}]`,
		"edges[1].id",
		"",
	},
}

// unsound lists graphs that are valid in a draft but not executable.
var unsound = []struct{ name, nodes, edges, field, node string }{
	{"empty", `[]`, `[]`, "nodes", ""},
	{"no trigger", `[{"id":"a","type":"set","data":{"values":{}}}]`, `[]`, "nodes", ""},
	{"an unknown type", `[{"id":"t","type":"trigger"},{"id":"a","type":"teleport"}]`, `[]`, "nodes[1].type", "a"},
	{"no values", `[{"id":"t","type":"trigger"},{"id":"a","type":"set"}]`, `[]`, "nodes[1].data.values", "a"},
	{
		"no url",
		`[{"id":"t","type":"trigger"},{"id":"a","type":"http-request","data":{"url":""}}]`,
		`[]`,
		"nodes[1].data.url",
		"a",
	},
	{
		"neither conditions nor condition",
		`[{"id":"t","type":"trigger"},{"id":"a","type":"if-else"}]`,
		`[]`,
		"nodes[1].data",
		"a",
	},
	{
		"a wait for two things",
		`[{"id":"t","type":"trigger"},{"id":"a","type":"wait","data":{"duration":1,"event":"x"}}]`,
		`[]`,
		"nodes[1].data",
		"a",
	},
	{
		"an edge to a trigger",
		`[{"id":"t","type":"trigger"},{"id":"a","type":"set","data":{"values":{}}}]`,
		`[{"source":"a","target":"t"}]`,
		"nodes[0].type",
		"t",
	},
	{
		"an unknown handle",
		`[{"id":"t","type":"trigger"},{"id":"a","type":"if-else","data":{"conditions":[]}},{"id":"b",` +
			`"type":"set","data":{"values":{}}}]`,
		`[{"source":"a","target":"b","sourceHandle":"maybe"}]`,
		"nodes[1].sourceHandle",
		"a",
	},
	{
		"an unknown case",
		`[{"id":"t","type":"trigger"},{"id":"a","type":"switch","data":{"cases":[{"id":"x"}]}},{"id":"b",` +
			`"type":"set","data":{"values":{}}}]`,
		`[{"source":"a","target":"b","sourceHandle":"y"}]`,
		"nodes[1].sourceHandle",
		"a",
	},
	{
		"a node that leads to itself",
		`[{"id":"t","type":"trigger"},{"id":"a","type":"set","data":{"values":{}}}]`,
		`[{"source":"a","target":"a"}]`,
		"nodes[1].id",
		"a",
	},
	{
		"a cycle of two",
		`[{"id":"t","type":"trigger"},{"id":"a","type":"set","data":{"values":{}}},{"id":"b",` +
			`"type":"set","data":{"values":{}}}]`,
		`[{"source":"t","target":"a"},{"source":"a","target":"b"},{"source":"b","target":"a"}]`,
		"nodes[1].id",
		"a",
	},
	{
		"a cycle from after a loop back into it",
		`[{"id":"t","type":"trigger"},{"id":"l","type":"loop","data":{"items":[]}},{"id":"b",` +
			`"type":"set","data":{"values":{}}}]`,
		`[{"source":"t","target":"l"},{"source":"l","target":"b","sourceHandle":"done"},{"source":"b","target":"l"}]`,
		"nodes[1].id",
		"l",
	},
	{
		"an edge into a loop's body",
		`[{"id":"t","type":"trigger"},{"id":"l","type":"loop","data":{"items":[]}},{"id":"b",` +
			`"type":"set","data":{"values":{}}}]`,
		`[{"source":"t","target":"l"},{"source":"l","target":"b","sourceHandle":"loop"},{"source":"t","target":"b"}]`,
		"nodes[2].id",
		"b",
	},
	{
		"a loop body that is also after the loop",
		`[{"id":"t","type":"trigger"},{"id":"l","type":"loop","data":{"items":[]}},{"id":"b",` +
			`"type":"set","data":{"values":{}}}]`,
		`[{"source":"t","target":"l"},{"source":"l","target":"b","sourceHandle":"loop"},{"source":"l",` +
			`"target":"b","sourceHandle":"done"}]`,
		"nodes[2].id",
		"b",
	},
	{
		"interleaved loops",
		`[{"id":"t","type":"trigger"},{"id":"l","type":"loop","data":{"items":[]}},{"id":"m","type":"loop",` +
			`"data":{"items":[]}},{"id":"b","type":"set","data":{"values":{}}}]`,
		`[{"source":"t","target":"l"},{"source":"l","target":"m","sourceHandle":"loop"},{"source":"m","target":"b",` +
			`"sourceHandle":"loop"},{"source":"b","target":"l"}]`,
		"nodes[1].type",
		"l",
	},
}

func TestMalformedGraphs(t *testing.T) {
	for _, c := range malformed {
		for _, executable := range []bool{false, true} {
			checkRefused(t, c.name, c.nodes, c.edges, c.field, c.node, executable)
		}
	}
	for _, c := range unsound {
		if _, err := Parse(entries[agent.RawNode](t, c.nodes), entries[agent.RawEdge](t, c.edges), false); err != nil {
			t.Errorf("%s: rejected as a draft: %v", c.name, err)
		}
		checkRefused(t, c.name, c.nodes, c.edges, c.field, c.node, true)
	}
}

func checkRefused(t *testing.T, name, nodes, edges, field, node string, executable bool) {
	t.Helper()
	_, err := Parse(entries[agent.RawNode](t, nodes), entries[agent.RawEdge](t, edges), executable)
	var e *agent.Error
	if !errors.As(err, &e) || e.Code != agent.CodeValidation {
		t.Errorf("%s: %v", name, err)
		return
	}
	got, _ := e.Details["node_id"].(string)
	if e.Details["field"] != field || got != node {
		t.Errorf("%s: field %v, node %q: %s", name, e.Details["field"], got, e.Message)
	}
}

func TestGraphBounds(t *testing.T) {
	many := func(n int, entry func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = entry(i)
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	node := func(i int) string { return fmt.Sprintf(`{"id":"n%d","type":"set"}`, i) }
	edge := func(i int) string { return `{"source":"n0","target":"n1"}` }
	for _, c := range []struct{ nodes, edges, field string }{
		{many(1001, node), `[]`, "nodes"},
		{many(2, node), many(5001, edge), "edges"},
		{`[{"id":"a","type":"set","note":"` + strings.Repeat("x", 5<<20) + `"}]`, `[]`, "nodes"},
	} {
		checkRefused(t, "too much", c.nodes, c.edges, c.field, "", false)
	}
	if _, err := Parse(
		entries[agent.RawNode](t, many(1000, node)),
		entries[agent.RawEdge](t, many(5000, edge)),
		false,
	); err != nil {
		t.Error(err)
	}
}

func TestLoopsAreFound(t *testing.T) {
	g, err := Parse(
		entries[agent.RawNode](t, `[{"id":"t","type":"trigger"},{"id":"l","type":"loop","data":{"items":[]}},{"id":"m","type":"loop","data":{"items":[]}},
		{"id":"a","type":"set","data":{"values":{}}},{"id":"b","type":"set","data":{"values":{}}},{"id":"c","type":"set","data":{"values":{}}}]`),
		entries[agent.RawEdge](t, `[{"source":"t","target":"l"},{"source":"l","target":"m","sourceHandle":"loop"},{"source":"m","target":"a","sourceHandle":"loop"},
		{"source":"a","target":"m"},{"source":"m","target":"b"},{"source":"b","target":"l"},{"source":"l","target":"c","sourceHandle":"done"}]`),
		true,
	)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{-1, -1, 1, 2, 1, -1}; fmt.Sprint(g.Loop) != fmt.Sprint(want) {
		t.Errorf("loops around the nodes: %v, want %v", g.Loop, want)
	}
}

// FuzzParse feeds lists of nodes and edges. A graph accepted as executable can
// be traversed to its end.
func FuzzParse(f *testing.F) {
	for _, c := range malformed {
		f.Add(c.nodes, c.edges)
	}
	for _, c := range unsound {
		f.Add(c.nodes, c.edges)
	}
	f.Add(
		`[{"id":"t","type":"trigger"},{"id":"l","type":"loop","data":{"items":[1]}},{"id":"a",`+
			`"type":"set","data":{"values":{}}}]`,
		`[{"source":"t","target":"l"},{"source":"l","target":"a","sourceHandle":"loop"},{"source":"a","target":"l"}]`,
	)
	f.Fuzz(func(t *testing.T, nodes, edges string) {
		var n []agent.RawNode
		var e []agent.RawEdge
		if json.Unmarshal([]byte(nodes), &n) != nil || json.Unmarshal([]byte(edges), &e) != nil {
			return
		}
		_, draft := Parse(n, e, false)
		g, err := Parse(n, e, true)
		if err != nil {
			var known *agent.Error
			if !errors.As(err, &known) || known.Message == "" {
				t.Fatalf("not an *agent.Error: %v", err)
			}
			return
		}
		if draft != nil {
			t.Fatalf("executable but rejected as a draft: %v", draft)
		}
		for node := range g.Nodes {
			seen := 0
			for loop := g.Loop[node]; loop >= 0; loop = g.Loop[loop] {
				if seen++; seen > len(g.Nodes) || g.Nodes[loop].Type != agent.NodeLoop {
					t.Fatalf("infinite traversal at %q", g.Nodes[node].ID)
				}
			}
		}
	})
}

// An edge to a node that does not exist is rejected with the missing id.
func TestDanglingEdgeNamesTheID(t *testing.T) {
	nodes := []agent.RawNode{agent.RawNode(`{"id":"t","type":"trigger"}`)}
	for edge, want := range map[string]string{
		`{"source":"t","target":"ghost"}`: `there is no node "ghost"`,
		`{"source":"ghost","target":"t"}`: `there is no node "ghost"`,
		`{"source":"t"}`:                  "is required",
	} {
		t.Run(edge, func(t *testing.T) {
			_, err := Parse(nodes, []agent.RawEdge{agent.RawEdge(edge)}, false)
			if agent.ErrorCode(err) != agent.CodeValidation || !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
		})
	}
}
