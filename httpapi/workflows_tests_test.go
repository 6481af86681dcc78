package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// TestGraphTests runs graphs that are not saved: completely, up to a node, and one node
// alone.
func TestGraphTests(t *testing.T) {
	var calls atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"n":1}`))
	}))
	defer other.Close()
	c := newTestClient(t)
	id := createFlow(t, c, simpleNodes, simpleEdges, "")
	graph := `"nodes":[{"id":"t","type":"trigger"},{"id":"h","type":"http-request","data":{"url":"` + other.URL + `"}},
		{"id":"l","type":"loop","data":{"items":[1,2]}},{"id":"b","type":"set","data":{"values":{"x":"{{item}} {{nodes.h.body.n}}"}}},{"id":"after","type":"set","data":{"values":{"y":"{{item}}"}}},
		{"id":"i","type":"if-else","data":{"conditions":[{"left":"{{nodes.h.body.n}}","operator":"gt","right":5}]}},{"id":"s","type":"set","data":{"values":{"got":"{{input.results}} {{nodes.h.body.n}} {{name}}"}}}],
		"edges":[{"source":"t","target":"h"},{"source":"h","target":"l"},{"source":"l","target":"b","sourceHandle":"loop"},{"source":"b","target":"after"},{"source":"after","target":"l"},
		{"source":"l","target":"i","sourceHandle":"done"},{"source":"i","target":"s","sourceHandle":"true"}]`
	run := func(more string) (map[string]any, string) {
		t.Helper()
		x := c.must(
			t, 200, "POST", flowBase+"/test?wait=30",
			`{"workflow_id":"`+id+`","input":{"name":"Ada"},`+more+graph+`}`,
		)
		var story []string
		for _, r := range x["node_results"].([]any) {
			mark := ""
			if at(r, "pinned") == true {
				mark = "*"
			}
			story = append(story, at(r, "node_id").(string)+"="+at(r, "status").(string)+mark)
		}
		return x, strings.Join(story, " ")
	}
	for _, test := range []struct {
		more, story, output string
		calls               int32
	}{
		{
			``,
			"t=success h=success b=success after=success b=success after=success l=success i=success s=skipped",
			`{"result":false}`,
			1,
		},
		{
			`"pins":{"h":{"body":{"n":7}}},`,
			"t=success h=success* b=success after=success b=success after=success l=success i=success s=success",
			`7 Ada`,
			0,
		},
		{`"mode":"to","node_id":"b",`, "t=success h=success b=success b=success l=success", `{"x":"2 1"}`, 1},
		{`"mode":"to","node_id":"h",`, "t=success h=success", `"n":1`, 1},
		{`"mode":"node","node_id":"s","pins":{"l":{"results":["r"]}},`, "s=success", `[\"r\"] 1 Ada`, 0},
		{
			`"mode":"node","node_id":"l","pins":{"h":{"body":{"n":9}}},`,
			"b=success after=success b=success after=success l=success",
			`"count":2`,
			0,
		},
	} {
		before := calls.Load()
		x, story := run(test.more)
		if x["status"] != "complete" ||
			x["trigger"] != "test" ||
			story != test.story ||
			!strings.Contains(string(mustRaw(t, x["output"])), test.output) ||
			calls.Load()-before != test.calls {
			t.Errorf(
				"%s: %v %s, output %s, %d calls, error %v",
				test.more,
				x["status"],
				story,
				mustRaw(t, x["output"]),
				calls.Load()-before,
				x["error"],
			)
		}
		if len(x["nodes"].([]any)) != 7 || len(x["edges"].([]any)) != 7 {
			t.Errorf("%s: the execution does not have the graph: %v", test.more, x["nodes"])
		}
	}
	list := func(query string) int {
		t.Helper()
		return len(c.must(t, 200, "GET", flowBase+"/executions"+query, "")["executions"].([]any))
	}
	c.must(t, 200, "POST", flowBase+"/execute?wait=30", `{"workflow_id":"`+id+`"}`)
	if got := fmt.Sprint(list(""), list("?trigger=test"), list("?tests=true")); got != "1 6 7" {
		t.Errorf("lists: %s", got)
	}
	for range 20 {
		c.must(t, 200, "POST", flowBase+"/test?wait=30", `{"workflow_id":"`+id+`","nodes":`+simpleNodes+`}`)
	}
	if got := list("?trigger=test"); got != 20 {
		t.Errorf("%d tests are kept", got)
	}
	if events := c.must(
		t,
		200,
		"POST",
		"/api/agents/default/sql/execute",
		`{"query":"SELECT count(*) FROM executions WHERE trigger = 'test'"}`,
	); at(events, "rows.0.0") == nil {
		t.Error("no rows")
	}
	for _, bad := range []string{
		`"mode":"some",`,
		`"mode":"to","node_id":"x",`,
		`"mode":"node",`,
		`"pins":{"h":5},`,
		`"pins":{"h":{"a":"` + strings.Repeat("x", 257<<10) + `"}},`,
	} {
		if a := c.send(t, "POST", flowBase+"/test", `{"workflow_id":"`+id+`",`+bad+graph+`}`); a.StatusCode != 400 {
			t.Errorf("%s: %d %s", bad[:min(len(bad), 40)], a.StatusCode, a.text)
		}
	}
	secret := `{"workflow_id":"` + id +
		`","nodes":[{"id":"t","type":"trigger"},{"id":"h","type":"http-request","data":{"url":"` + other.URL +
		`","auth":{"type":"bearer","token":"sesame"}}}]}`
	if a := c.send(t, "POST", flowBase+"/test", secret); a.StatusCode != 400 || strings.Contains(a.text, "sesame") {
		t.Errorf("a credential: %d %s", a.StatusCode, a.text)
	}
}

// TestGraphTestThatWaits approves a test like any execution, next to one that occupies
// the workflow's only slot.
func TestGraphTestThatWaits(t *testing.T) {
	c := newTestClient(t)
	id := createFlow(t, c, simpleNodes, simpleEdges, "")
	x := c.must(
		t, 200, "POST", flowBase+"/test",
		`{"workflow_id":"`+id+`","nodes":[{"id":"t","type":"trigger"},{"id":"a","type":"approval"}],`+
			`"edges":[{"source":"t","target":"a"}]}`,
	)
	one := flowBase + "/executions/" + x["id"].(string)
	for waits := false; !waits; {
		waits = slices.ContainsFunc(c.must(t, 200, "GET", one, "")["node_results"].([]any), func(r any) bool {
			return at(r, "status") == "waiting"
		})
	}
	if waiting := c.must(t, 200, "GET", "/api/agents/default/waiting", "")["waiting"].([]any); len(waiting) != 0 {
		t.Errorf("a test is listed among what waits for people: %v", waiting)
	}
	if done := c.must(
		t,
		200,
		"POST",
		flowBase+"/execute?wait=30",
		`{"workflow_id":"`+id+`"}`,
	); done["status"] != "complete" {
		t.Errorf("next to the test: %v", done)
	}
	c.must(t, 200, "POST", one+"/resume", `{"node_id":"a","data":{"decision":"approved"}}`)
	for c.must(t, 200, "GET", one, "")["status"] != "complete" {
	}
	complete := at(c.must(t, 200, "GET", "/api/agents/default/overview?days=1", ""), "series.executions.complete.0")
	if complete != json.Number("1") {
		t.Errorf("%v executions are complete in the overview", complete)
	}
	if a := c.send(t, "POST", one+"/retry", `{"from_node":"a"}`); a.StatusCode != 409 {
		t.Errorf("retried: %d %s", a.StatusCode, a.text)
	}
}
