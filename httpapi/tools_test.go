package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	agentchat "satchel/agent/chat"
)

// backwards returns what a service may repeat of a secret without its being masked.
func backwards(text string) string {
	raw := []byte(text)
	slices.Reverse(raw)
	return string(raw)
}

// newForecast starts an API for tools that echoes its request.
func newForecast(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.HasPrefix(r.URL.Path, "/broken"):
			w.WriteHeader(http.StatusBadGateway)
			io.WriteString(w, `{"oh":"no"}`)
		case r.URL.Path == "/inward":
			http.Redirect(w, r, "http://10.0.0.1/", http.StatusFound)
		default:
			_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{
				"method": r.Method,
				"path":   r.URL.EscapedPath(),
				"query":  r.URL.RawQuery,
				"auth":   backwards(r.Header.Get("Authorization")),
				"key":    backwards(r.Header.Get("X-Api-Key")),
				"body":   string(body),
			}})
		}
	}))
	t.Cleanup(s.Close)
	return s
}

const cityParameters = `"parameters":{"type":"object","properties":{"city":{"type":"string"},` +
	`"days":{"type":"integer"}},"required":["city"]}`

func TestAPITool(t *testing.T) {
	c, api := newTestClient(t), newForecast(t)
	tools := "/api/agents/default/tools"
	made := c.must(t, 201, "POST", tools, `{"name":"weather","description":"Tells the weather","type":"api","config":{"method":"POST","url":"`+api.URL+`/of/{{city}}?unit=c",
		"query":{"days":"{{days}}","none":"{{nothing}}"},"headers":{"X-Api-Key":"k-secret","X-City":"{{city}}"},"auth":{"type":"bearer","token":"t-secret"},
		"body":{"q":"{{city}}","n":"{{days}}","text":"in {{city}}"},"response_path":"data",`+cityParameters+`}}`)
	id := fmt.Sprint(made["id"])
	if at(made, "config.auth.token") != "********" ||
		at(made, "config.headers.X-Api-Key") != "********" ||
		at(made, "config.headers.X-City") != "{{city}}" {
		t.Errorf("not masked: %v", made)
	}
	call := func(arguments string) map[string]any {
		return c.must(t, 200, "POST", tools+"/"+id+"/execute", `{"arguments":`+arguments+`}`)
	}
	got := call(`{"city":"Aix/en {{days}}?x=1","days":2}`)
	for path, want := range map[string]any{
		"success":       true,
		"result.method": "POST",
		"result.path":   "/of/Aix%2Fen%20%7B%7Bdays%7D%7D%3Fx=1",
		"result.query":  "days=2&unit=c",
		"result.auth":   backwards("Bearer t-secret"),
		"result.key":    backwards("k-secret"),
		"result.body":   `{"n":2,"q":"Aix/en {{days}}?x=1","text":"in Aix/en {{days}}?x=1"}`,
	} {
		if at(got, path) != want {
			t.Errorf("%s is %v, want %v", path, at(got, path), want)
		}
	}
	for arguments, issue := range map[string]string{`{}`: "city", `{"city":7}`: "city", `[]`: "object"} {
		a := c.send(t, "POST", tools+"/"+id+"/execute", `{"arguments":`+arguments+`}`)
		if a.StatusCode != 400 || at(a.json, "error.details.field") != "arguments" || !strings.Contains(a.text, issue) {
			t.Errorf("%s: %d %s", arguments, a.StatusCode, a.text)
		}
	}
	// A mask that is written back keeps the secret; another value replaces it.
	c.must(
		t, 200, "PUT", tools+"/"+id,
		`{"config":{"url":"`+api.URL+`/a","headers":{"X-Api-Key":"new-secret"},"auth":{"type":"bearer",`+
			`"token":"********"},"response_path":"data"}}`,
	)
	if got := call(`{}`); at(got, "result.auth") != backwards("Bearer t-secret") ||
		at(got, "result.key") != backwards("new-secret") {
		t.Errorf("after the change: %v", got)
	}
	for path, code := range map[string]string{"data.nothing": "UPSTREAM_ERROR", "data[": "VALIDATION_ERROR"} {
		c.must(t, 200, "PUT", tools+"/"+id, `{"config":{"url":"`+api.URL+`/a","response_path":"`+path+`"}}`)
		if got := call(`{}`); got["success"] != false || at(got, "error.code") != code {
			t.Errorf("response_path %s: %v", path, got)
		}
	}
	c.must(t, 200, "PUT", tools+"/"+id, `{"config":{"url":"`+api.URL+`/broken"}}`)
	if got := call(`{}`); got["success"] != false ||
		at(got, "error.code") != "UPSTREAM_ERROR" ||
		!strings.Contains(fmt.Sprint(at(got, "error.message")), "502") {
		t.Errorf("%v", got)
	}
	c.must(t, 200, "PUT", tools+"/"+id, `{"config":{"url":"`+api.URL+`/inward"}}`)
	if got := call(`{}`); got["success"] != false || at(got, "error.code") != "BLOCKED_ADDRESS" {
		t.Errorf("%v", got)
	}
	dump := c.send(t, "POST", "/api/agents/default/backup", "").text
	for _, secret := range []string{"t-secret", "k-secret", "new-secret"} {
		if strings.Contains(dump, secret) {
			t.Errorf("%s is in the file in clear", secret)
		}
	}
	c.must(t, 204, "DELETE", tools+"/"+id, "")
	c.must(t, 404, "GET", tools+"/"+id, "")
}

func TestFunctionTool(t *testing.T) {
	c := newTestClient(t)
	tools := "/api/agents/default/tools"
	id := fmt.Sprint(c.must(
		t, 201, "POST", tools,
		`{"name":"add","type":"function","config":{"code":"if (args.a < 0) throw new Error('too small'); `+
			`return {sum: args.a + args.b}","parameters":{"type":"object","properties":{"a":{"type":"number"},`+
			`"b":{"type":"number"}},"required":["a","b"]}}}`,
	)["id"])
	got := c.must(t, 200, "POST", tools+"/"+id+"/execute", `{"arguments":{"a":2,"b":3}}`)
	if got["success"] != true || at(got, "result.sum") != json.Number("5") {
		t.Errorf("%v", got)
	}
	got = c.must(t, 200, "POST", tools+"/"+id+"/execute", `{"arguments":{"a":-2,"b":3}}`)
	if got["success"] != false || !strings.Contains(fmt.Sprint(at(got, "error.message")), "too small") {
		t.Errorf("%v", got)
	}
	c.must(t, 200, "PUT", tools+"/"+id, `{"config":{"code":"return {sum: args.a + args.b, key: idempotencyKey}"}}`)
	if got = c.must(
		t, 200, "POST", tools+"/"+id+"/execute",
		`{"arguments":{"a":2,"b":3}}`,
	); at(got, "result.key") != "" {
		t.Errorf("%v", got)
	}
	graph := `{"name":"Sum","status":"active","nodes":[{"id":"t","type":"trigger"},{"id":"add",` +
		`"type":"tool","data":{"tool_id":"` + id +
		`","arguments":{"a":"{{a}}","b":40}}}],"edges":[{"source":"t","target":"add"}]}`
	flow := fmt.Sprint(c.must(t, 201, "POST", "/api/agents/default/workflows", graph)["id"])
	x := c.must(
		t,
		200,
		"POST",
		"/api/agents/default/workflows/execute?wait=30",
		`{"workflow_id":"`+flow+`","input":{"a":2}}`,
	)
	if at(x, "output.result.sum") != json.Number("42") || at(x, "output.result.key") != fmt.Sprint(x["id"], ":add:0") {
		t.Errorf("%v", x)
	}
}

// The model calls one of the agent's tools and answers with its result.
func TestChatCallsTools(t *testing.T) {
	c, m := newClientWithModel(t, func(n int, asked map[string]any) string {
		if n == 1 {
			return `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant",` +
				`"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"double",` +
				`"arguments":"{\"n\":21}"}}]}}]}`
		}
		return "It is 42."
	})
	c.must(
		t,
		201,
		"POST",
		"/api/agents/default/tools",
		`{"name":"double","description":"Doubles","type":"function","config":{"code":"return args.n * 2"}}`,
	)
	got := c.must(t, 200, "POST", "/api/agents/default/chat", `{"message":"What is twice 21?"}`)
	if at(got, "message.content") != "It is 42." ||
		at(got, "tool_calls.0.name") != "double" ||
		at(got, "tool_calls.0.result") != json.Number("42") {
		t.Errorf("%v", got)
	}
	if sent := m.Messages(1); at(sent[len(sent)-1], "content") != "42" {
		t.Errorf("the model received %v", sent)
	}
}

func TestToolsAreChecked(t *testing.T) {
	c := newTestClient(t)
	tools := "/api/agents/default/tools"
	c.must(t, 201, "POST", tools, `{"name":"taken","type":"function","config":{"code":"return 1"}}`)
	for _, one := range []apiCase{
		{"no name", "POST", tools, `{"type":"function","config":{"code":"x"}}`, 400, invalid("name")},
		{"a bad name", "POST", tools, `{"name":"a b","type":"function","config":{"code":"x"}}`, 400, invalid("name")},
		{
			"a name that is taken",
			"POST",
			tools,
			`{"name":"taken","type":"function","config":{"code":"x"}}`,
			409,
			code("CONFLICT"),
		},
		{"no type", "POST", tools, `{"name":"x"}`, 400, invalid("type")},
		{"a bad type", "POST", tools, `{"name":"x","type":"magic"}`, 400, invalid("type")},
		{"no url", "POST", tools, `{"name":"x","type":"api"}`, 400, invalid("config.url")},
		{
			"a file URL",
			"POST",
			tools,
			`{"name":"x","type":"api","config":{"url":"file:///etc/passwd"}}`,
			400,
			invalid("config.url"),
		},
		{
			"an argument as the host",
			"POST",
			tools,
			`{"name":"x","type":"api","config":{"url":"http://{{host}}/"}}`,
			400,
			invalid("config.url"),
		},
		{
			"a bad method",
			"POST",
			tools,
			`{"name":"x","type":"api","config":{"url":"http://example.com","method":"SPY"}}`,
			400,
			invalid("config.method"),
		},
		{
			"a bad header",
			"POST",
			tools,
			`{"name":"x","type":"api","config":{"url":"http://example.com","headers":{"a b":"c"}}}`,
			400,
			invalid("config.headers.a b"),
		},
		{
			"a bad auth",
			"POST",
			tools,
			`{"name":"x","type":"api","config":{"url":"http://example.com","auth":{"type":"magic"}}}`,
			400,
			invalid("config.auth.type"),
		},
		{
			"a bad schema",
			"POST",
			tools,
			`{"name":"x","type":"function","config":{"code":"x","parameters":{"type":"strange"}}}`,
			400,
			invalid("config.parameters"),
		},
		{
			"a schema of an array",
			"POST",
			tools,
			`{"name":"x","type":"function","config":{"code":"x","parameters":{"type":"array"}}}`,
			400,
			invalid("config.parameters"),
		},
		{
			"a remote schema",
			"POST",
			tools,
			`{"name":"x","type":"function","config":{"code":"x","parameters":{"$ref":"http://10.0.0.1/"}}}`,
			400,
			invalid("config.parameters"),
		},
		{"config not an object", "POST", tools, `{"name":"x","type":"function","config":[]}`, 400, invalid("config")},
		{
			"config of a wrong type",
			"POST",
			tools,
			`{"name":"x","type":"function","config":{"code":7}}`,
			400,
			invalid("config"),
		},
		{
			"an unknown server",
			"POST",
			tools,
			`{"name":"x","type":"mcp","config":{"server_id":"mcp-x","tool_name":"y"}}`,
			400,
			invalid("config.server_id"),
		},
		{
			"no server",
			"POST",
			tools,
			`{"name":"x","type":"mcp","config":{"tool_name":"y"}}`,
			400,
			invalid("config.server_id"),
		},
		{"unknown", "POST", tools + "/tool-x/execute", `{}`, 404, code("NOT_FOUND")},
	} {
		one.run(t, c)
	}
}

// TestFunctionToolWithoutCode checks that a function may be described before its code is
// written. Until then calls to it fail, and models do not see it.
func TestFunctionToolWithoutCode(t *testing.T) {
	c := newTestClient(t)
	made := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/tools",
		`{"name":"later","type":"function","config":{"parameters":{"type":"object",`+
			`"properties":{"a":{"type":"number"}},"required":["a"]}}}`,
	)
	path := "/api/agents/default/tools/" + made["id"].(string)
	if at(made, "config.parameters.required.0") != "a" {
		t.Errorf("created %v", made)
	}
	c.must(t, 400, "POST", path+"/execute", `{"arguments":{}}`)
	if done := c.must(t, 200, "POST", path+"/execute", `{"arguments":{"a":1}}`); done["success"] != false ||
		at(done, "error.message") != "the tool later has no code yet" {
		t.Errorf("called: %v", done)
	}
	seen := func() int {
		t.Helper()
		tools, err := agentchat.NewToolbox(agentchat.ToolOptions{}).Tools(
			t.Context(),
			c.db(),
			agentchat.Choice{},
		)
		if err != nil {
			t.Fatal(err)
		}
		return len(tools)
	}
	if n := seen(); n != 0 {
		t.Errorf("models see %d tools", n)
	}
	c.must(t, 200, "PUT", path, `{"config":{"code":"return args.a + 1"}}`)
	if done := c.must(
		t, 200, "POST", path+"/execute", `{"arguments":{"a":1}}`,
	); done["result"] != json.Number("2") || seen() != 1 {
		t.Errorf("called again: %v", done)
	}
}

// TestToolSwitchedOff checks that a disabled tool fails for everybody, and that models do
// not see it.
func TestToolSwitchedOff(t *testing.T) {
	c := newTestClient(t)
	made := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/tools",
		`{"name":"add","type":"function","config":{"code":"return 42"}}`,
	)
	path := "/api/agents/default/tools/" + made["id"].(string)
	if made["enabled"] != true {
		t.Errorf("created %v", made)
	}
	if off := c.must(t, 200, "PUT", path, `{"enabled":false}`); off["enabled"] != false || off["name"] != "add" {
		t.Errorf("disabled: %v", off)
	}
	if done := c.must(t, 200, "POST", path+"/execute", `{}`); done["success"] != false ||
		at(done, "error.message") != "the tool add is switched off" {
		t.Errorf("called: %v", done)
	}
	if seen, err := agentchat.NewToolbox(agentchat.ToolOptions{}).Tools(
		t.Context(),
		c.db(),
		agentchat.Choice{},
	); err != nil || len(seen) != 0 {
		t.Errorf("models see %v, %v", seen, err)
	}
	if list := c.must(t, 200, "GET", "/api/agents/default/tools", ""); at(list, "tools.0.enabled") != false {
		t.Errorf("listed: %v", list)
	}
	c.must(t, 200, "PUT", path, `{"enabled":true}`)
	if done := c.must(t, 200, "POST", path+"/execute", `{}`); done["success"] != true {
		t.Errorf("called again: %v", done)
	}
}

// TestWorkflowTool checks that a tool runs a workflow with its arguments and its
// defaults.
func TestWorkflowTool(t *testing.T) {
	c := newTestClient(t)
	const tools = "/api/agents/default/tools"
	flow := fmt.Sprint(c.must(
		t,
		201,
		"POST",
		"/api/agents/default/workflows",
		`{"name":"Greet","status":"active","nodes":[{"id":"t","type":"trigger"},{"id":"s","type":"set",`+
			`"data":{"values":{"text":"{{trigger.greeting}} {{trigger.name}}"}}}],`+
			`"edges":[{"source":"t","target":"s"}]}`,
	)["id"])
	config := `{"workflow_id":"` + flow + `","defaults":{"greeting":"Hello"},"response_path":"text",` +
		`"parameters":{"type":"object","properties":{"name":{"type":"string"},"greeting":{"type":"string"}},` +
		`"required":["name","greeting"]}}`
	id := fmt.Sprint(c.must(t, 201, "POST", tools, `{"name":"greet","type":"workflow","config":`+config+`}`)["id"])
	run := tools + "/" + id + "/execute"
	if got := c.must(t, 200, "POST", run, `{"arguments":{"name":"Ada"}}`); got["result"] != "Hello Ada" {
		t.Errorf("%v", got)
	}
	c.must(t, 400, "POST", run, `{"arguments":{}}`)
	if got := c.must(
		t, 400, "POST", tools,
		`{"name":"x","type":"workflow","config":{"workflow_id":"workflow-none"}}`,
	); at(got, "error.details.field") != "config.workflow_id" {
		t.Errorf("%v", got)
	}
	c.must(t, 400, "POST", tools, `{"name":"x","type":"workflow","config":{}}`)
	off := fmt.Sprint(c.must(t, 201, "POST", tools, `{"name":"x","type":"workflow","enabled":false,"config":{}}`)["id"])
	if got := c.must(
		t, 400, "PUT", tools+"/"+off, `{"enabled":true}`,
	); at(got, "error.details.field") != "config.workflow_id" {
		t.Errorf("%v", got)
	}
	c.must(t, 200, "PUT", "/api/agents/default/workflows/"+flow, `{"status":"draft"}`)
	if got := c.must(t, 200, "POST", run, `{"arguments":{"name":"Ada"}}`); at(got, "error.code") != "CONFLICT" {
		t.Errorf("%v", got)
	}
}
