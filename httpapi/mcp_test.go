package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"satchel/agent"
	"satchel/browser"
	"satchel/httpapi/rest"
	"satchel/store"
)

// headers adds a client's headers to the requests of the SDK's client.
type headers struct{ http.Header }

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range h.Header {
		r.Header[name] = values
	}
	return http.DefaultTransport.RoundTrip(r)
}

// mcpSession connects the SDK's client to an agent.
func (c *testClient) mcpSession(t *testing.T, agent, protocol string) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(
		t.Context(),
		&sdk.StreamableClientTransport{
			Endpoint:   c.url + "/mcp/" + agent,
			HTTPClient: &http.Client{Transport: headers{c.header}},
		},
		&sdk.ClientSessionOptions{ProtocolVersion: protocol},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != protocol {
		t.Fatalf("protocol %s, want %s", got, protocol)
	}
	return session
}

func toolNames(t *testing.T, session *sdk.ClientSession) []string {
	t.Helper()
	var names []string
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// callTool returns a tool's text and whether it is an error.
func callTool(t *testing.T, session *sdk.ClientSession, tool, arguments string) (string, bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	return result.Content[0].(*sdk.TextContent).Text, result.IsError
}

const doubling = `{"name":"Double It!","description":"Doubles n","status":"active","nodes":[
	{"id":"start","type":"trigger","position":{"x":0,"y":0},"data":{"event":"manual"}},
	{"id":"set","type":"set","position":{"x":0,"y":0},"data":{"values":{"said":"{{trigger.word}}{{trigger.word}}"}}}],
	"edges":[{"id":"e","source":"start","target":"set"}]}`

// TestAgentAsMCPServer uses an agent through the SDK's own client, with both generations
// of the protocol.
func TestAgentAsMCPServer(t *testing.T) {
	c := newTestClient(t)
	c.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada","tags":["vip"]}`)
	double := c.must(t, 201, "POST", "/api/agents/default/workflows", doubling)["id"]
	c.must(
		t,
		201,
		"POST",
		"/api/agents/default/tools",
		fmt.Sprintf(
			`{"name":"echo_word","type":"workflow","config":{"workflow_id":%q,"response_path":"said",`+
				`"parameters":{"type":"object","properties":{"word":{"type":"string"}},"required":["word"]}}}`,
			double,
		),
	)
	c.must(t, 201, "POST", "/api/agents/default/workflows", strings.Replace(doubling, `"active"`, `"draft"`, 1))
	for _, protocol := range []string{"2026-07-28", "2025-11-25"} {
		session := c.mcpSession(t, "default", protocol)
		if got := strings.Join(
			toolNames(t, session),
			" ",
		); got != "browser_act browser_browse browser_click browser_close browser_extract browser_navigate "+
			"browser_observe browser_open browser_screenshot browser_snapshot browser_type echo_word list_contacts "+
			"search_knowledge send_message sql_query workflow_double_it_" {
			t.Errorf("%s: tools %s", protocol, got)
		}
		for _, call := range []struct {
			tool, arguments, has string
			failed               bool
		}{
			{
				"sql_query",
				`{"query":"SELECT name FROM contacts WHERE name = ?","params":["Ada"]}`,
				`"rows":[["Ada"]]`,
				false,
			},
			{"sql_query", `{"query":"UPDATE contacts SET notes = 'x'"}`, `"changes":1`, false},
			{"sql_query", `{"query":"DROP TABLE contacts"}`, "FORBIDDEN_OPERATION: ", true},
			{"sql_query", `{}`, "VALIDATION_ERROR: query is required", true},
			{"sql_query", `{"query":7}`, "VALIDATION_ERROR: arguments do not match the tool's schema", true},
			{"list_contacts", `{"tags":["vip"]}`, `"name":"Ada"`, false},
			{"list_contacts", `{"limit":0}`, "VALIDATION_ERROR: limit", true},
			{"search_knowledge", `{"query":"refunds"}`, `"results":[]`, false},
			{"search_knowledge", `{}`, "VALIDATION_ERROR: query", true},
			{"workflow_double_it_", `{"word":"so"}`, `"output":{"said":"soso"}`, false},
			{"echo_word", `{"word":"so"}`, "soso", false},
			{"echo_word", `{}`, "VALIDATION_ERROR: ", true},
		} {
			text, failed := callTool(t, session, call.tool, call.arguments)
			if failed != call.failed || !strings.Contains(text, call.has) {
				t.Errorf("%s: %s %s: %v, %s", protocol, call.tool, call.arguments, failed, text)
			}
		}
		if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "workflow_x"}); err == nil {
			t.Errorf("%s: an unknown tool answered", protocol)
		}
	}
}

// TestMCPAccess checks that the access rules of the API apply to MCP too.
func TestMCPAccess(t *testing.T) {
	c := newProxiedServer(t, func(o *Options) {
		o.Browser = browser.New(browser.Options{Env: store.Env{Folder: o.Folder, Log: o.Log}})
	})
	c.as(t, "owner@example.com").must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	c.as(t, "owner@example.com").must(t, 201, "POST", "/api/agents/bakery/workflows", doubling)
	c.as(t, "owner@example.com").must(
		t,
		201,
		"POST",
		"/api/agents/bakery/admins",
		`{"email":"viewer@example.com","role":"viewer"}`,
	)
	session := c.as(t, "viewer@example.com").mcpSession(t, "bakery", "2026-07-28")
	if got := strings.Join(toolNames(t, session), " "); got != "list_contacts search_knowledge sql_query" {
		t.Errorf("a viewer's tools are %s", got)
	}
	if text, failed := callTool(
		t,
		session,
		"sql_query",
		`{"query":"DELETE FROM contacts"}`,
	); !failed || !strings.HasPrefix(text, "FORBIDDEN: ") {
		t.Errorf("a viewer who writes: %s", text)
	}
	if _, failed := callTool(t, session, "sql_query", `{"query":"SELECT 1"}`); failed {
		t.Error("a viewer may not read")
	}
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for name, test := range map[string]struct {
		client *testClient
		agent  string
		status int
	}{
		"nobody":        {c.testClient, "bakery", 403},
		"stranger":      {c.as(t, "stranger@example.com"), "bakery", 403},
		"no such agent": {c.as(t, "owner@example.com"), "brewery", 404},
		"bad token":     {c.with("Edge-Access-JWT-Assertion", "x.y.z"), "bakery", 401},
		"bad key":       {c.with("X-API-Key", "satchel_x"), "bakery", 401},
		"the owner": {
			c.as(t, "owner@example.com").with("Accept", "application/json, text/event-stream"),
			"bakery",
			200,
		},
	} {
		if a := test.client.send(t, "POST", "/mcp/"+test.agent, list); a.StatusCode != test.status {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.text)
		}
	}
	c.as(t, "owner@example.com").must(t, 200, "PUT", "/api/agents/bakery", `{"status":"disabled"}`)
	if a := c.as(t, "owner@example.com").send(t, "POST", "/mcp/bakery", list); a.StatusCode != 403 ||
		at(a.json, "error.code") != "AGENT_DISABLED" {
		t.Errorf("disabled: %d %s", a.StatusCode, a.text)
	}
}

// TestMCPGate checks that host, origin, rate and sizes are limited as in the API.
func TestMCPGate(t *testing.T) {
	c, _ := openWith(t, func(o *Options) { o.RateLimits = map[string]int{"general": 6} })
	accepting := c.with("Accept", "application/json, text/event-stream")
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, test := range []struct {
		name   string
		client *testClient
		method string
		status int
	}{
		{"rebound name", accepting.with("Host", "evil.example"), "POST", 403},
		{"another site's page", accepting.with("Sec-Fetch-Site", "cross-site"), "POST", 403},
		{"preflight", c, "OPTIONS", 204},
		{"GET", accepting, "GET", 405},
		{"DELETE", accepting, "DELETE", 405},
		{"not accepting", c, "POST", 400},
		{"one", accepting, "POST", 200},
		{"two", accepting, "POST", 200},
		{"three", accepting, "POST", 200},
		{"too many", accepting, "POST", 429},
	} {
		a := test.client.send(t, test.method, "/mcp/default", list)
		if a.StatusCode != test.status {
			t.Errorf("%s: %d, want %d: %s", test.name, a.StatusCode, test.status, a.text)
		}
		if test.name == "preflight" && !strings.Contains(a.Header.Get("Access-Control-Allow-Headers"), "Mcp-Method") {
			t.Errorf("preflight allows %q", a.Header.Get("Access-Control-Allow-Headers"))
		}
	}
}

// TestMCPBrowserRate checks that calls of browser tools count towards the limit of
// requests to browsers, and others do not.
func TestMCPBrowserRate(t *testing.T) {
	c, server := openWith(t, func(o *Options) { o.RateLimits = map[string]int{"general": 1000, "browser": 3} })
	server.limiter = rest.NewLimiter(server.options.RateLimits, nil, func() time.Time {
		return time.Unix(1_800_000_010, 0)
	})
	session := c.mcpSession(t, "default", "2026-07-28")
	for i, want := range []string{"NOT_FOUND: ", "NOT_FOUND: ", "NOT_FOUND: ", "RATE_LIMITED: "} {
		if text, failed := callTool(
			t,
			session,
			"browser_snapshot",
			`{"session_id":"session-x"}`,
		); !failed || !strings.HasPrefix(text, want) {
			t.Errorf("call %d: %s", i, text)
		}
	}
	if a := c.send(
		t,
		"POST",
		"/api/agents/default/browser/session-x/execute",
		`{"action":"reload"}`,
	); a.StatusCode != 429 {
		t.Errorf("a request to a browser: %d", a.StatusCode)
	}
	if text, failed := callTool(t, session, "sql_query", `{"query":"SELECT 1"}`); failed {
		t.Errorf("another tool: %s", text)
	}
}

func TestWorkflowToolNames(t *testing.T) {
	taken := map[string]bool{}
	long := strings.Repeat("x", 100)
	for _, test := range [][2]string{
		{"Double It!", "workflow_double_it_"},
		{"double-it?", "workflow_double_it__2"},
		{"Süß", "workflow_s__"},
		{"", "workflow_"},
		{long, "workflow_" + long[:55]},
		{long, "workflow_" + long[:53] + "_2"},
	} {
		if got := workflowTool(test[0], taken); got != test[1] || len(got) > maxToolName {
			t.Errorf("%q is the tool %s, want %s", agent.Clip(test[0], 20), got, test[1])
		}
	}
}
