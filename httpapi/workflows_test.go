package httpapi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

const flowBase = "/api/agents/default/workflows"

// createFlow creates an active workflow from nodes and edges and returns its id.
func createFlow(t *testing.T, c *testClient, nodes, edges, settings string) string {
	t.Helper()
	if settings == "" {
		settings = "{}"
	}
	return c.must(
		t, 201, "POST", flowBase,
		`{"name":"Flow","status":"active","nodes":`+nodes+`,"edges":`+edges+`,"settings":`+settings+`}`,
	)["id"].(string)
}

const (
	simpleNodes = `[{"id":"t","type":"trigger","data":{"event":"manual"}},{"id":"s","type":"set",` +
		`"data":{"values":{"hello":"{{name}}"}}}]`
	simpleEdges = `[{"id":"e","source":"t","target":"s"}]`
	// sleeper waits for an event that is never emitted.
	sleeperNodes = `[{"id":"t","type":"trigger"},{"id":"w","type":"wait","data":{"event":"schedule.executed"}}]`
	sleeperEdges = `[{"source":"t","target":"w"}]`
)

func TestBadWorkflows(t *testing.T) {
	c := newTestClient(t)
	id := createFlow(t, c, simpleNodes, simpleEdges, "")
	one := flowBase + "/" + id
	done := c.must(t, 200, "POST", flowBase+"/execute?wait=30", `{"workflow_id":"`+id+`"}`)["id"].(string)
	suspended := c.must(
		t, 200, "POST", flowBase+"/execute",
		`{"workflow_id":"`+createFlow(t, c, sleeperNodes, sleeperEdges, "")+`"}`,
	)["execution_id"].(string)
	draft := c.must(
		t, 201, "POST", flowBase,
		`{"name":"Draft","nodes":[{"id":"h","type":"http-request"}]}`,
	)["id"].(string)
	paused := c.must(
		t, 201, "POST", flowBase,
		`{"name":"Paused","status":"paused","nodes":`+simpleNodes+`,"edges":`+simpleEdges+`}`,
	)["id"].(string)
	executions := flowBase + "/executions/"
	node := func(id string) map[string]any {
		return map[string]any{"error.code": "VALIDATION_ERROR", "error.details.node_id": id}
	}
	for _, tc := range []apiCase{
		{"no name", "POST", flowBase, `{}`, 400, invalid("name")},
		{"nodes that are an object", "POST", flowBase, `{"name":"x","nodes":{}}`, 400, invalid("nodes")},
		{"nodes that are text", "POST", flowBase, `{"name":"x","nodes":"x"}`, 400, invalid("nodes")},
		{"an unknown status", "POST", flowBase, `{"name":"x","status":"asleep"}`, 400, invalid("status")},
		{
			"concurrency 0",
			"POST",
			flowBase,
			`{"name":"x","settings":{"concurrency":0}}`,
			400,
			invalid("settings.concurrency"),
		},
		{
			"concurrency as text",
			"POST",
			flowBase,
			`{"name":"x","settings":{"concurrency":"all"}}`,
			400,
			map[string]any{"error.code": "VALIDATION_ERROR"},
		},
		{
			"an unknown on_conflict",
			"POST",
			flowBase,
			`{"name":"x","settings":{"on_conflict":"fight"}}`,
			400,
			invalid("settings.on_conflict"),
		},
		{
			"a dangling edge in a draft",
			"POST",
			flowBase,
			`{"name":"x","nodes":[{"id":"a","type":"set"}],"edges":[{"source":"a","target":"b"}]}`,
			400,
			invalid("edges[0].target"),
		},
		{
			"duplicate ids in a draft",
			"POST",
			flowBase,
			`{"name":"x","nodes":[{"id":"a","type":"set"},{"id":"a","type":"set"}]}`,
			400,
			node("a"),
		},
		{
			"a wrong type in a draft",
			"POST",
			flowBase,
			`{"name":"x","nodes":[{"id":"a","type":"set","data":{"values":1}}]}`,
			400,
			node("a"),
		},
		{
			"a template that cannot be parsed",
			"POST",
			flowBase,
			`{"name":"x","nodes":[{"id":"a","type":"set","data":{"values":{"v":"{{oops"}}}]}`,
			400,
			node("a"),
		},
		{
			"an unknown operator",
			"POST",
			flowBase,
			`{"name":"x","nodes":[{"id":"a","type":"if-else","data":{"conditions":[{"left":1,` +
				`"operator":"loves","right":2}]}}]}`,
			400,
			node("a"),
		},
		{
			"an invalid pattern",
			"POST",
			flowBase,
			`{"name":"x","nodes":[{"id":"a","type":"if-else","data":{"conditions":[{"left":1,` +
				`"operator":"matches","right":"("}]}}]}`,
			400,
			node("a"),
		},
		{
			"unknown auth",
			"POST",
			flowBase,
			`{"name":"x","nodes":[{"id":"a","type":"http-request","data":{"auth":{"type":"magic"}}}]}`,
			400,
			node("a"),
		},
		{"active and empty", "POST", flowBase, `{"name":"x","status":"active"}`, 400, invalid("nodes")},
		{"activating an unfinished draft", "PUT", flowBase + "/" + draft, `{"status":"active"}`, 400, node("h")},
		{"a bad change", "PUT", one, `{"nodes":[{"id":"t","type":"trigger"}]}`, 400, invalid("edges[0].target")},
		{"null name", "PUT", one, `{"name":null}`, 400, invalid("name")},
		{"unknown workflow", "GET", flowBase + "/workflow-x", ``, 404, code("NOT_FOUND")},
		{"change of an unknown one", "PUT", flowBase + "/workflow-x", `{"name":"y"}`, 404, code("NOT_FOUND")},
		{"deletion of an unknown one", "DELETE", flowBase + "/workflow-x", ``, 404, code("NOT_FOUND")},
		{"bad filter", "GET", flowBase + "?status=asleep", ``, 400, invalid("status")},
		{"version 0 read", "GET", one + "/versions/0", ``, 404, code("NOT_FOUND")},
		{"version 0", "POST", one + "/versions/0/restore", ``, 404, code("NOT_FOUND")},
		{"version x", "POST", one + "/versions/x/restore", ``, 400, invalid("version")},
		{"test of an unknown node", "POST", one + "/test-node", `{"node_id":"x"}`, 400, invalid("node_id")},
		{"test without a node", "POST", one + "/test-node", `{}`, 400, invalid("node_id")},
		{"test with a text as input", "POST", one + "/test-node", `{"node_id":"s","input":"x"}`, 400, invalid("input")},
		{
			"test of an unfinished node",
			"POST",
			flowBase + "/" + draft + "/test-node",
			`{"node_id":"h"}`,
			400,
			node("h"),
		},

		{"execute without a workflow", "POST", flowBase + "/execute", `{}`, 400, invalid("workflow_id")},
		{
			"execute an unknown one",
			"POST",
			flowBase + "/execute",
			`{"workflow_id":"workflow-x"}`,
			404,
			code("NOT_FOUND"),
		},
		{
			"execute with a list",
			"POST",
			flowBase + "/execute",
			`{"workflow_id":"` + id + `","input":[1]}`,
			400,
			invalid("input"),
		},
		{
			"execute with deeply nested input",
			"POST",
			flowBase + "/execute",
			`{"workflow_id":"` + id + `","input":{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}}`,
			400,
			invalid("input"),
		},
		{
			"execute with NUL",
			"POST",
			flowBase + "/execute",
			`{"workflow_id":"` + id + `","input":{"a":"\u0000"}}`,
			400,
			invalid("input"),
		},
		{
			"execute an unfinished draft",
			"POST",
			flowBase + "/execute",
			`{"workflow_id":"` + draft + `"}`,
			400,
			node("h"),
		},
		{
			"execute a paused one",
			"POST",
			flowBase + "/execute",
			`{"workflow_id":"` + paused + `"}`,
			400,
			invalid("workflow_id"),
		},
		{"wait too long", "POST", flowBase + "/execute?wait=301", `{"workflow_id":"` + id + `"}`, 400, invalid("wait")},
		{"negative wait", "POST", flowBase + "/execute?wait=-1", `{"workflow_id":"` + id + `"}`, 400, invalid("wait")},
		{"unknown execution", "GET", executions + "execution-x", ``, 404, code("NOT_FOUND")},
		{"events of an unknown one", "GET", executions + "execution-x/events", ``, 404, code("NOT_FOUND")},
		{"terminate an unknown one", "POST", executions + "execution-x/terminate", ``, 404, code("NOT_FOUND")},
		{"retry of an unknown one", "POST", executions + "execution-x/retry", `{}`, 404, code("NOT_FOUND")},
		{
			"resume of an unknown one",
			"POST",
			executions + "execution-x/resume",
			`{"node_id":"w"}`,
			404,
			code("NOT_FOUND"),
		},
		{"terminate one that has ended", "POST", executions + done + "/terminate", ``, 409, code("CONFLICT")},
		{"resume one that has ended", "POST", executions + done + "/resume", `{"node_id":"s"}`, 409, code("CONFLICT")},
		{"resume without a node", "POST", executions + suspended + "/resume", `{}`, 400, invalid("node_id")},
		{"retry one that is running", "POST", executions + suspended + "/retry", `{}`, 409, code("CONFLICT")},
		{"retry one that did not fail", "POST", executions + done + "/retry", `{}`, 400, invalid("from_node")},
		{
			"retry from an unknown node",
			"POST",
			executions + done + "/retry",
			`{"from_node":"x"}`,
			400,
			invalid("from_node"),
		},
		{"bad execution filter", "GET", flowBase + "/executions?status=asleep", ``, 400, invalid("status")},
		{"hook of an unknown one", "POST", "/api/agents/default/hooks/workflow-x", `{}`, 404, code("NOT_FOUND")},
		{"hook of one with another trigger", "POST", "/api/agents/default/hooks/" + id, `{}`, 404, code("NOT_FOUND")},
	} {
		tc.run(t, c)
	}
}

// TestNodeTypes reads the catalogue, and again with its tag.
func TestNodeTypes(t *testing.T) {
	c := newTestClient(t)
	a := c.send(t, "GET", "/api/node-types", "")
	types := map[string]any{}
	for _, e := range a.json["types"].([]any) {
		types[at(e, "type").(string)] = e
	}
	if at(types["chatbot_a"], "label") != "Telegram" ||
		at(types["wait"], "data.properties.duration.x-widget") != "duration" ||
		at(types["switch"], "handles_from") != "cases" ||
		at(types["http-request"], "data.properties.auth.properties.token.writeOnly") != true ||
		at(a.json, "common.properties.retry") == nil {
		t.Errorf("%s", a.text)
	}
	tag := a.Header.Get("ETag")
	if again := c.with("If-None-Match", tag).send(t, "GET", "/api/node-types", ""); tag == "" ||
		again.StatusCode != 304 {
		t.Errorf("with the tag %q: %d", tag, again.StatusCode)
	}
}

// TestValidate checks that all problems of a graph are reported at once.
func TestValidate(t *testing.T) {
	c := newTestClient(t)
	nodes := `[{"id":"t","type":"trigger"},{"id":"h","type":"http-request","data":{"method":"STEAL","headers":{"a":"{{oops"}}},{"id":"i","type":"if-else","data":{"conditions":[{"left":1,"operator":"loves"}]}},
		{"id":"x","type":"teleport"},{"id":"s","type":"set","data":{"values":{"a":["{{nodes.t.name}}","{{nodes.late.name}}"],"b":"{{nodes.ghost.name}}"}}},{"id":"late","type":"set","data":{"values":{}}},
		{"id":"alone","type":"set","data":{"values":{}}},{"id":"after","type":"set","data":{"values":{}}},{"id":"off","type":"set","data":{"disabled":true,"values":{}}}]`
	edges := `[{"id":"e5","source":"alone","target":"after"},{"id":"e1","source":"t","target":"h"},{"id":"e2",` +
		`"source":"i","target":"s","sourceHandle":"maybe"},{"id":"e3","source":"t","target":"i"},{"id":"e4",` +
		`"source":"s","target":"late"}]`
	issues := func(body string) string {
		t.Helper()
		var lines []string
		for _, is := range c.must(t, 200, "POST", flowBase+"/validate", body)["issues"].([]any) {
			edge, _ := at(is, "edge_id").(string)
			node, _ := at(is, "node_id").(string)
			lines = append(
				lines,
				strings.TrimSpace(at(is, "severity").(string)+" "+node+" "+edge+" "+at(is, "field").(string)),
			)
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	warnings := "warning after  nodes[7]\nwarning alone  nodes[6]\nwarning s  nodes[4].data.values.a[1]\n" +
		"warning s  nodes[4].data.values.b\nwarning x  nodes[3].type"
	drafted := "error h  nodes[1].data.headers.a\nerror h  nodes[1].data.method\n" +
		"error i  nodes[2].data.conditions[0].operator\n"
	active := "error h  nodes[1].data.headers.a\nerror h  nodes[1].data.method\nerror h  nodes[1].data.url\n" +
		"error i  nodes[2].data.conditions[0].operator\nerror i e2 nodes[2].sourceHandle\n"
	graph := `"nodes":` + nodes + `,"edges":` + edges
	if got := issues(`{` + graph + `}`); got != active+warnings {
		t.Errorf("for activation:\n%s", got)
	}
	if got := issues(`{` + graph + `,"status":"draft"}`); got != drafted+warnings {
		t.Errorf("of a draft:\n%s", got)
	}
	if got := issues(
		`{"nodes":` + simpleNodes + `,"edges":[{"id":"e","source":"t","target":"gone"}]}`,
	); got != "error  e edges[0].target" {
		t.Errorf("a dangling edge: %s", got)
	}
	if got := issues(`{"nodes":` + simpleNodes + `,"edges":` + simpleEdges + `}`); got != "" {
		t.Errorf("a sound graph: %s", got)
	}
	code := func(text string) string {
		return `{"nodes":[{"id":"t","type":"trigger"},{"id":"c","type":"code","data":{"code":` + quoted(text) +
			`}},{"id":"i","type":"if-else","data":{"condition":` + quoted(text) +
			`}}],"edges":[{"id":"e1","source":"t","target":"c"},{"id":"e2","source":"c","target":"i"}]}`
	}
	if got := issues(code("input.n >")); got != "warning c  nodes[1].data.code\nwarning i  nodes[2].data.condition" {
		t.Errorf("code that is not JavaScript: %s", got)
	}
	if got := issues(code("input.n > 1")); got != "" {
		t.Errorf("code that is JavaScript: %s", got)
	}
	list := c.must(t, 200, "POST", flowBase+"/validate", code("1\n+ 2\n* * 3"))["issues"].([]any)
	if why, _ := at(list[0], "issue").(string); !strings.HasPrefix(why, "is not valid JavaScript: ") ||
		!strings.HasSuffix(why, "(line 3)") {
		t.Errorf("the issue is %q", why)
	}
	c.must(t, 400, "POST", flowBase+"/validate", `{"nodes":{}}`)
	c.must(t, 400, "POST", flowBase+"/validate", `{"nodes":[],"edges":[],"status":"asleep"}`)
	if list := c.must(t, 200, "GET", flowBase, ""); len(list["workflows"].([]any)) != 0 {
		t.Error("validation saved a workflow")
	}
}

func TestWorkflowRecord(t *testing.T) {
	c := newTestClient(t)
	w := c.must(t, 201, "POST", flowBase, `{"name":"Welcome","description":"d","nodes":[{"id":"t","type":"trigger","position":{"x":1.5,"y":2},"selected":true,"data":{"label":"Start","mine":{"a":[1]}}}],
		"edges":[],"status":"draft"}`)
	if w["status"] != "draft" ||
		at(w, "nodes.0.selected") != true ||
		at(w, "nodes.0.data.mine.a") == nil ||
		at(w, "settings.on_conflict") != "reject" {
		t.Errorf("created: %v", w)
	}
	one := flowBase + "/" + w["id"].(string)
	changed := c.must(t, 200, "PUT", one, `{"name":"Hello","settings":{"on_conflict":"queue"}}`)
	if changed["name"] != "Hello" ||
		changed["description"] != "d" ||
		at(changed, "settings.on_conflict") != "queue" ||
		at(changed, "version").(interface{ String() string }).String() != "2" ||
		at(changed, "nodes.0.selected") != true {
		t.Errorf("changed: %v", changed)
	}
	if same := c.must(t, 200, "PUT", one, `{"description":"only words"}`); at(same, "version") != changed["version"] {
		t.Errorf("a new description created a version: %v", same["version"])
	}
	c.must(t, 200, "PUT", one, `{"nodes":[{"id":"x","type":"set"}]}`)
	versions := c.must(t, 200, "GET", one+"/versions", "")
	if len(versions["versions"].([]any)) != 3 || at(versions, "versions.0.current") != true {
		t.Errorf("versions: %v", versions)
	}
	if old := c.must(t, 200, "GET", one+"/versions/1", ""); at(old, "nodes.0.id") != "t" ||
		old["version"] != json.Number("1") ||
		old["name"] != "Hello" {
		t.Errorf("version 1: %v", old)
	}
	back := c.must(t, 200, "POST", one+"/versions/1/restore", "")
	if at(back, "nodes.0.id") != "t" ||
		at(back, "nodes.0.selected") != true ||
		at(back, "settings.on_conflict") != "reject" ||
		back["name"] != "Hello" {
		t.Errorf("restored: %v", back)
	}
	if got := c.must(t, 200, "DELETE", one, ""); got["success"] != true {
		t.Errorf("deleted: %v", got)
	}
	c.must(t, 404, "GET", one, "")
}

// TestSavingTogether has two people save: the later save conflicts, and what only the
// editor draws creates no version.
func TestSavingTogether(t *testing.T) {
	c := newTestClient(t)
	made := c.send(
		t,
		"POST",
		flowBase,
		`{"name":"Flow","note":"first try","nodes":`+simpleNodes+`,"edges":`+simpleEdges+`}`,
	)
	one := flowBase + "/" + made.json["id"].(string)
	put := func(tag, body string) answer {
		t.Helper()
		return c.with("If-Match", tag).send(t, "PUT", one, body)
	}
	if made.Header.Get("ETag") != `"1"` ||
		c.send(t, "GET", one, "").Header.Get("ETag") != `"1"` ||
		made.json["updated_by"] != "open mode" {
		t.Errorf("created: %s %s", made.Header.Get("ETag"), made.text)
	}
	moved := strings.Replace(
		simpleNodes,
		`"id":"s",`,
		`"id":"s","position":{"x":5,"y":6},"metadata":{"pin":{"a":1}},`,
		1,
	)
	if a := put(
		`"1"`,
		`{"nodes":`+moved+`,"edges":[{"id":"e","source":"t","target":"s","metadata":{"bend":1}}]}`,
	); a.StatusCode != 200 || a.Header.Get("ETag") != `"1"` {
		t.Errorf("moved: %d %s", a.StatusCode, a.text)
	}
	if v := c.must(t, 200, "GET", one+"/versions/1", ""); at(v, "nodes.1.position.x") != json.Number("5") ||
		at(v, "edges.0.metadata.bend") != json.Number("1") {
		t.Errorf("version 1: %v", v)
	}
	changed := strings.Replace(moved, "hello", "bye", 1)
	if a := put(`"1"`, `{"nodes":`+changed+`,"note":"more polite"}`); a.StatusCode != 200 ||
		a.Header.Get("ETag") != `"2"` {
		t.Errorf("changed: %d %s", a.StatusCode, a.text)
	}
	if a := put(`"1"`, `{"nodes":`+moved+`}`); a.StatusCode != 409 ||
		at(a.json, "error.details.version") != json.Number("2") ||
		at(a.json, "error.details.updated_by") != "open mode" ||
		at(a.json, "error.details.updated_at") == nil {
		t.Errorf("the later save: %d %s", a.StatusCode, a.text)
	}
	if a := put(`W/"7", "2"`, `{"name":"Other"}`); a.StatusCode != 200 {
		t.Errorf("one of several: %d %s", a.StatusCode, a.text)
	}
	c.must(t, 200, "POST", "/api/agents/default/sql/execute", `{"query":"UPDATE workflows SET edges = '[]'"}`)
	c.must(t, 200, "POST", one+"/versions/1/restore", "")
	var story []string
	for _, v := range c.must(t, 200, "GET", one+"/versions", "")["versions"].([]any) {
		story = append(story, at(v, "author").(string)+": "+at(v, "note").(string))
	}
	if got := strings.Join(story, "; "); got != "open mode: Version 1 restored; : ; open mode: "+
		"more polite; open mode: first try" {
		t.Errorf("versions: %s", got)
	}
	c.must(t, 400, "PUT", one, `{"note":"`+strings.Repeat("x", 501)+`"}`)
}

func TestWatchedExecution(t *testing.T) {
	c := newTestClient(t)
	id := createFlow(
		t,
		c,
		`[{"id":"t","type":"trigger"},{"id":"a","type":"approval"},{"id":"s","type":"set",`+
			`"data":{"values":{"by":"{{nodes.a.comment}}"}}}]`,
		`[{"source":"t","target":"a"},{"source":"a","target":"s","sourceHandle":"rejected"}]`,
		"",
	)
	x := c.must(t, 200, "POST", flowBase+"/execute", `{"workflow_id":"`+id+`"}`)["execution_id"].(string)
	resp, err := http.Get(c.url + flowBase + "/executions/" + x + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if media := resp.Header.Get("Content-Type"); media != "text/event-stream" {
		t.Fatalf("a stream of %s", media)
	}
	var story []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, ok := strings.CutPrefix(lines.Text(), "event: ")
		if !ok {
			continue
		}
		lines.Scan()
		_, node, _ := strings.Cut(lines.Text(), `"node_id":"`)
		node, _, _ = strings.Cut(node, `"`)
		story = append(story, strings.TrimSpace(name+" "+node))
		if name == "node.started" && node == "a" {
			c.must(
				t,
				200,
				"POST",
				flowBase+"/executions/"+x+"/resume",
				`{"node_id":"a","data":{"decision":"rejected","comment":"no"}}`,
			)
		}
	}
	got := strings.Join(story, ", ")
	if want := "node.finished t, node.started a, node.finished a, node.finished s, execution.complete"; got != want {
		t.Errorf("events: %s\nwant:   %s", got, want)
	}
	if done := c.must(t, 200, "GET", flowBase+"/executions/"+x, ""); at(done, "output.by") != "no" {
		t.Errorf("ended as %v", done)
	}
}

func TestHook(t *testing.T) {
	c := newTestClient(t)
	id := createFlow(
		t,
		c,
		`[{"id":"t","type":"trigger","data":{"event":"webhook"}},{"id":"r","type":"webhook-response","data":{"status":202,
		"headers":{"X-Kind":"{{headers.x-kind}}","Retry-After":7,"Content-Type":"text/html"},"body":"<b>{{name}} {{body.name}} {{query.q}} {{method}}</b>"}}]`,
		`[{"source":"t","target":"r"}]`,
		"",
	)
	a := c.with("X-Kind", "order").
		with("Authorization", "").
		send(t, "POST", "/api/agents/default/hooks/"+id+"?q=7", `{"name":"Ada"}`)
	if a.StatusCode != 202 ||
		a.text != "<b>Ada Ada 7 POST</b>" ||
		a.Header.Get("X-Kind") != "order" ||
		a.Header.Get("Retry-After") != "7" {
		t.Errorf("%d %s %v", a.StatusCode, a.text, a.Header)
	}
	if policy := a.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "sandbox") {
		t.Errorf("a page of a workflow has the policy %q", policy)
	}
	plain := createFlow(
		t,
		c,
		`[{"id":"t","type":"trigger","data":{"event":"webhook"}},{"id":"s","type":"set",`+
			`"data":{"values":{"got":"{{body}}"}}}]`,
		`[{"source":"t","target":"s"}]`,
		"",
	)
	if at := c.must(
		t,
		200,
		"POST",
		"/api/agents/default/hooks/"+plain,
		`{"a":[1]}`,
	); at["execution_id"] == nil || at["status"] != "running" {
		t.Errorf("response %v", at)
	}
	c.must(t, 200, "PUT", "/api/agents/default", `{"status":"paused"}`)
	c.must(t, 404, "POST", "/api/agents/default/hooks/"+plain, `{}`)
}

// TestFlowOverHTTP runs a node that calls another service.
func TestFlowOverHTTP(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"key":"` + r.Header.Get("Idempotency-Key") + `","id":12345678901234567890}`))
	}))
	defer other.Close()
	c := newTestClient(t)
	id := createFlow(
		t,
		c,
		`[{"id":"t","type":"trigger"},{"id":"h","type":"http-request","data":{"url":"`+other.URL+
			`"}},{"id":"s","type":"set","data":{"values":{"key":"{{nodes.h.body.key}}","id":"{{nodes.h.body.id}}"}}}]`,
		`[{"source":"t","target":"h"},{"source":"h","target":"s"}]`,
		"",
	)
	x := c.must(t, 200, "POST", flowBase+"/execute?wait=30", `{"workflow_id":"`+id+`"}`)
	if at(x, "output.key") != x["id"].(string)+":h:0" ||
		at(x, "output.id").(interface{ String() string }).String() != "12345678901234567890" {
		t.Errorf("ended as %v", x)
	}
}

// TestAuditOfExecutions checks that each action of a person on an execution is a row of
// the log, and that what the program starts itself is not.
func TestAuditOfExecutions(t *testing.T) {
	c := newTestClient(t)
	id := createFlow(
		t,
		c,
		`[{"id":"t","type":"trigger"},{"id":"w","type":"wait","data":{"event":"agent.updated"}}]`,
		`[{"source":"t","target":"w"}]`,
		"",
	)
	body := `{"workflow_id":"` + id + `"}`
	first := c.must(t, 200, "POST", flowBase+"/execute", body)["execution_id"].(string)
	c.must(t, 200, "POST", flowBase+"/executions/"+first+"/terminate", "")
	second := c.must(t, 200, "POST", flowBase+"/execute?wait=1", body)["execution_id"].(string)
	c.must(t, 200, "POST", flowBase+"/executions/"+second+"/resume", `{"node_id":"w"}`)
	c.must(t, 200, "PUT", flowBase+"/"+id, `{"settings":{"concurrency":5}}`)
	c.must(t, 200, "POST", flowBase+"/executions/"+first+"/retry", "{}")
	by := map[string]int{}
	for _, row := range c.must(
		t,
		200,
		"GET",
		"/api/agents/default/logs?source=audit&search=execut",
		"",
	)["logs"].([]any) {
		if at(row, "data.by") != "open mode" {
			t.Errorf("%v", row)
		}
		by[at(row, "message").(string)]++
	}
	if want := (map[string]int{
		"workflow executed":    2,
		"execution terminated": 1,
		"execution retried":    1,
		"execution resumed":    1,
	}); !maps.Equal(by, want) {
		t.Errorf("%v, want %v", by, want)
	}
}

func TestExecutionRunning(t *testing.T) {
	release := make(chan struct{})
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer other.Close()
	c := newTestClient(t)
	id := createFlow(
		t,
		c,
		`[{"id":"t","type":"trigger"},{"id":"h","type":"http-request","data":{"url":"`+other.URL+`"}}]`,
		`[{"source":"t","target":"h"}]`,
		"",
	)
	body := `{"workflow_id":"` + id + `"}`
	first := c.must(t, 200, "POST", flowBase+"/execute", body)
	if first["status"] != "running" || first["started_at"] == nil {
		t.Errorf("started as %v", first)
	}
	refused := c.must(t, 409, "POST", flowBase+"/execute", body)
	if at(refused, "error.code") != "EXECUTION_ALREADY_RUNNING" {
		t.Errorf("refused as %v", refused)
	}
	c.must(t, 200, "PUT", flowBase+"/"+id, `{"settings":{"on_conflict":"queue"}}`)
	second := c.must(t, 200, "POST", flowBase+"/execute", body)
	if second["status"] != "queued" {
		t.Errorf("the second is %v", second)
	}
	close(release)
	if last := c.must(t, 200, "POST", flowBase+"/execute?wait=30", body); last["status"] != "complete" {
		t.Errorf("the third is %v", last)
	}
	if done := c.must(
		t,
		200,
		"GET",
		flowBase+"/executions/"+second["execution_id"].(string),
		"",
	); done["status"] != "complete" {
		t.Errorf("the second ended as %v", done)
	}
}

// TestSecretsOfNodes stores a credential in a node's data: it is used, and never
// returned.
func TestSecretsOfNodes(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer open-sesame" && r.Header.Get("X-Api-Key") == "k-sesame" {
			_, _ = w.Write([]byte("let in"))
		}
	}))
	defer other.Close()
	c := newTestClient(t)
	body := `{"name":"Flow","status":"active","nodes":[{"id":"t","type":"trigger"},{"id":"h","type":"http-request","data":{"url":"` + other.URL + `",
		"auth":{"type":"bearer","token":"open-sesame"},"headers":{"X-Api-Key":"k-sesame"}}}],"edges":[{"source":"t","target":"h"}]}`
	a := c.send(t, "POST", flowBase, body)
	one := flowBase + "/" + a.json["id"].(string)
	nodes := string(mustRaw(t, at(a.json, "nodes")))
	answers := []answer{a, c.send(t, "GET", one, ""), c.send(t, "PUT", one, `{"nodes":`+nodes+`}`),
		c.send(t, "POST", flowBase+"/execute?wait=30", `{"workflow_id":"`+a.json["id"].(string)+`"}`),
		c.send(t, "POST", one+"/test-node", `{"node_id":"h"}`),
		c.send(t, "POST", "/api/agents/default/sql/execute", `{"query":"SELECT * FROM workflows"}`)}
	for i, got := range answers {
		if got.StatusCode >= 300 || strings.Contains(got.text, "sesame") {
			t.Errorf("answer %d: %d %s", i, got.StatusCode, got.text)
		}
	}
	if got := at(answers[3].json, "output.body"); got != "let in" {
		t.Errorf("the other server returned %v", got)
	}
	if got := at(answers[4].json, "output.body"); got != "let in" {
		t.Errorf("tested alone: %v", got)
	}
	refused := c.send(t, "POST", flowBase, `{"name":"Copy","nodes":`+nodes+`}`)
	if refused.StatusCode != 400 || at(refused.json, "error.details.node_id") != "h" {
		t.Errorf("a mask in a new workflow: %d %s", refused.StatusCode, refused.text)
	}
}

func mustRaw(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestWorkflowListTriggers checks the triggers in a list of workflows, also for invalid
// nodes that SQL wrote.
func TestWorkflowListTriggers(t *testing.T) {
	c := newTestClient(t)
	c.must(
		t, 201, "POST", flowBase,
		`{"name":"a","nodes":[{"id":"t","type":"trigger","data":{"event":"message.received"}},{"id":"u",`+
			`"type":"trigger"},{"id":"v","type":"trigger","data":{"event":"manual"}},{"id":"s","type":"set"}]}`,
	)
	c.must(t, 201, "POST", flowBase, `{"name":"b"}`)
	c.must(
		t,
		200,
		"POST",
		"/api/agents/default/sql/execute",
		`{"query":"INSERT INTO workflows (name, nodes) VALUES ('c', '[1, \"x\", null, {}, [], `+
			`{\"type\":\"trigger\",\"data\":7}]')"}`,
	)
	list := c.must(t, 200, "GET", flowBase+"?sort=name&order=asc", "")
	for i, want := range []string{"[message.received manual]", "[]", "[]"} {
		if got := fmt.Sprint(at(list, fmt.Sprintf("workflows.%d.triggers", i))); got != want {
			t.Errorf("workflow %d starts by %s, want %s", i, got, want)
		}
	}
}

// TestRecentOfWorkflows checks that a list of workflows has their newest executions if
// they are requested.
func TestRecentOfWorkflows(t *testing.T) {
	c := newTestClient(t)
	id := c.must(
		t, 201, "POST", flowBase,
		`{"name":"Two","status":"active","nodes":`+simpleNodes+`,"edges":`+simpleEdges+`}`,
	)["id"].(string)
	for range 3 {
		c.must(t, 200, "POST", flowBase+"/execute?wait=10", `{"workflow_id":"`+id+`"}`)
	}
	newest := at(c.must(t, 200, "GET", flowBase+"/executions", ""), "executions.0.id")
	list := c.must(t, 200, "GET", flowBase+"?recent=2", "")
	if recent, _ := at(list, "workflows.0.recent").([]any); len(recent) != 2 ||
		at(recent[0], "id") != newest ||
		at(recent[0], "status") != "complete" {
		t.Errorf("recent executions are %v, want two, first %v", recent, newest)
	}
	if recent := at(c.must(t, 200, "GET", flowBase, ""), "workflows.0.recent"); recent != nil {
		t.Errorf("recent executions that were not requested: %v", recent)
	}
	if field := at(c.must(t, 400, "GET", flowBase+"?recent=21", ""), "error.details.field"); field != "recent" {
		t.Errorf("the field of the error is %v", field)
	}
}

// TestHookHeaders saves and runs webhook-responses with headers that instruct browsers
// about this server. They are refused when written out, and left out when filled in.
func TestHookHeaders(t *testing.T) {
	c := newTestClient(t)
	respond := func(headers string) string {
		return `[{"id":"t","type":"trigger","data":{"event":"webhook"}},{"id":"r",` +
			`"type":"webhook-response","data":{"headers":` + headers + `,"body":"<b>hi</b>"}}]`
	}
	for _, status := range []string{"draft", "active"} {
		for name, value := range map[string]string{
			"Content-Encoding":           "gzip",
			"Refresh":                    "0;url=/",
			"X-Frame-Options":            "ALLOWALL",
			"Cross-Origin-Opener-Policy": "unsafe-none",
			"set-cookie":                 "a=b",
			"Location":                   "javascript:alert(1)",
			"Clear-Site-Data":            "{{body.x}}",
		} {
			a := c.send(
				t,
				"POST",
				flowBase,
				`{"name":"x","status":"`+status+`","nodes":`+respond(`{"X-Ok":"1",`+quoted(name)+`:`+quoted(value)+`}`)+
					`,"edges":[{"source":"t","target":"r"}]}`,
			)
			if a.StatusCode != 400 || !strings.Contains(a.text, "data.headers."+name) {
				t.Errorf("%s, %s: %d %s", status, name, a.StatusCode, a.text)
			}
		}
	}
	id := createFlow(t, c, respond(`"{{body.headers}}"`), `[{"source":"t","target":"r"}]`, "")
	a := c.send(
		t,
		"POST",
		"/api/agents/default/hooks/"+id,
		`{"headers":{"X-Ok":"1","Content-Type":"text/html","Refresh":"0;url=/","Set-Cookie":"a=b",`+
			`"Location":"javascript:alert('{{')","Content-Encoding":"gzip","Service-Worker-Allowed":"/"}}`,
	)
	h := a.Header
	if a.StatusCode != 200 ||
		a.text != "<b>hi</b>" ||
		h.Get("X-Ok") != "1" ||
		!strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox") ||
		h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %q %v", a.StatusCode, a.text, h)
	}
	for _, name := range []string{"Refresh", "Set-Cookie", "Location", "Content-Encoding", "Service-Worker-Allowed"} {
		if h.Get(name) != "" {
			t.Errorf("%s is %q", name, h.Get(name))
		}
	}
	x := c.must(t, 200, "GET", flowBase+"/executions?workflow_id="+id, "")
	done := c.must(t, 200, "GET", flowBase+"/executions/"+fmt.Sprint(at(x, "executions.0.id")), "")
	if logs := fmt.Sprint(at(done, "node_results.1.logs")); strings.Count(logs, "was left out") != 5 ||
		!strings.Contains(logs, "Refresh") {
		t.Errorf("the log of the node: %s", logs)
	}
	moved := createFlow(t, c, respond(`{"Location":"{{body.to}}"}`), `[{"source":"t","target":"r"}]`, "")
	for to, want := range map[string]string{
		"https://example.com/x": "https://example.com/x",
		"data:text/html,x":      "",
		"javascript:{{}}":       "",
	} {
		if a := c.send(
			t,
			"POST",
			"/api/agents/default/hooks/"+moved,
			`{"to":`+quoted(to)+`}`,
		); a.Header.Get("Location") != want {
			t.Errorf("a redirect to %q: %d %v", to, a.StatusCode, a.Header)
		}
	}
}
