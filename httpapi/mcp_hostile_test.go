package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// badMCPServer is an MCP server whose list of tools and results the test sets; at first
// it lists one valid tool.
type badMCPServer struct {
	*httptest.Server
	tools, result atomic.Value // results as JSON; of call also "100 MB", "a page", "cut"
}

func newBadMCPServer(t *testing.T) *badMCPServer {
	t.Helper()
	l := &badMCPServer{}
	l.tools.Store(`{"tools":[{"name":"open","description":"Opens a ticket",` +
		`"inputSchema":{"type":"object"}}],"resultType":"complete"}`)
	l.result.Store(`{"content":[{"type":"text","text":"opened"}],"resultType":"complete"}`)
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&asked)
		result := `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}`
		switch asked.Method {
		case "tools/list":
			result = l.tools.Load().(string)
		case "tools/call":
			result = l.result.Load().(string)
		}
		w.Header().Set("Content-Type", "application/json")
		switch result {
		case "100 MB":
			for block := strings.Repeat("x", 1<<20); failure(io.WriteString(w, block)) == nil; {
			}
		case "a page":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<h1>Mallory</h1>")
		case "cut":
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"te`, asked.ID)
		default:
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, asked.ID, result)
		}
	}))
	t.Cleanup(l.Close)
	return l
}

func failure(_ int, err error) error { return err }

// TestRogueMCPServers checks that what a registered server does wrong becomes an error of
// the tool, both for a caller of the API and for the model, which then answers.
func TestRogueMCPServers(t *testing.T) {
	c, m := newClientWithModel(t, func(n int, _ map[string]any) string {
		if n%2 == 0 {
			return "It did not work."
		}
		return `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,` +
			`"tool_calls":[{"id":"c","type":"function","function":{"name":"ticket","arguments":"{}"}}]}}]}`
	})
	l := newBadMCPServer(t)
	server := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/mcp",
		`{"name":"Tickets","url":"`+l.URL+`","auth":{"type":"bearer","token":"sesame-7"}}`,
	)
	if server["status"] != "connected" {
		t.Fatalf("%v", server)
	}
	tool := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/tools",
		`{"name":"ticket","type":"mcp","config":{"server_id":"`+fmt.Sprint(server["id"])+`","tool_name":"open"}}`,
	)
	execute := "/api/agents/default/tools/" + fmt.Sprint(tool["id"]) + "/execute"
	if got := c.must(t, 200, "POST", execute, `{"arguments":{}}`); got["success"] != true || got["result"] != "opened" {
		t.Fatalf("the honest server: %v", got)
	}
	for call, want := range map[string]string{
		"100 MB": "more than 8 MB",
		"a page": "not MCP",
		"cut":    "",
		`7`:      "not MCP",
		`{"isError":true,"content":[{"type":"text","text":"no, Bearer ` +
			`sesame-7"}],"resultType":"complete"}`: "no, Bearer ********",
		`{"isError":true,"content":[],"resultType":"complete"}`: "without an error message",
		`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create",` +
			`"params":{"message":"Your password?"}}},"content":[]}`: "",
	} {
		l.result.Store(call)
		got := c.must(t, 200, "POST", execute, `{"arguments":{}}`)
		said := fmt.Sprint(at(got, "error.message"))
		if got["success"] != false ||
			!strings.Contains(said, want) ||
			strings.Contains(said, "sesame") ||
			strings.Contains(said, "Mallory") {
			t.Errorf("%s: %v", call, got)
		}
		turn := c.must(t, 200, "POST", "/api/agents/default/chat", `{"message":"Open a ticket","sources":false}`)
		if at(turn, "message.content") != "It did not work." ||
			!strings.Contains(fmt.Sprint(at(turn, "tool_calls.0.error")), want) {
			t.Errorf("%s in a turn: %v", call, turn)
		}
		sent := m.Messages(len(m.Requests) - 1)
		if last := fmt.Sprint(at(sent[len(sent)-1], "content")); !strings.HasPrefix(last, "Error: ") ||
			strings.Contains(last, "sesame") {
			t.Errorf("%s: the model received %s", call, last)
		}
	}
	l.tools.Store(`{"tools":7,"resultType":"complete"}`)
	list := c.must(t, 200, "GET", "/api/agents/default/mcp/"+fmt.Sprint(server["id"])+"/tools", "")
	if list["stale"] != true || at(list, "tools.0.description") != "Opens a ticket" {
		t.Errorf("an invalid list replaced the valid one: %v", list)
	}
	if a := c.send(t, "GET", "/api/agents/default/logs?limit=200", ""); strings.Contains(a.text, "sesame-7") {
		t.Error("the token is in the log")
	}
}

// TestMCPToolWithoutParameters checks that a tool that names only its server and the
// server's tool is offered with the server's description and schema, whatever that uses.
func TestMCPToolWithoutParameters(t *testing.T) {
	c, m := newClientWithModel(t, func(n int, _ map[string]any) string {
		if n == 1 {
			return `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant",` +
				`"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"ticket",` +
				`"arguments":"{\"city\":\"Rome\"}"}}]}}]}`
		}
		return "Done."
	})
	l := newBadMCPServer(t)
	const schema = `{"properties":{"city":{"pattern":"^(?=R).*$","type":"string"},` +
		`"where":{"$ref":"https://example.com/place.json#/$defs/place"}},"required":["city"],"type":"object"}`
	l.tools.Store(`{"tools":[{"name":"open","description":"Opens a ticket","inputSchema":` + schema +
		`},{"name":"other","inputSchema":7}],"resultType":"complete"}`)
	server := c.must(t, 201, "POST", "/api/agents/default/mcp", `{"name":"Tickets","url":"`+l.URL+`"}`)
	of := `"config":{"server_id":"` + fmt.Sprint(server["id"]) + `","tool_name":"open"`
	tool := c.must(t, 201, "POST", "/api/agents/default/tools", `{"name":"ticket","type":"mcp",`+of+`}}`)
	turn := c.must(t, 200, "POST", "/api/agents/default/chat", `{"message":"Open a ticket","sources":false}`)
	if at(turn, "message.content") != "Done." || at(turn, "tool_calls.0.result") != "opened" {
		t.Errorf("%v", turn)
	}
	offered := at(m.Requests[0]["tools"].([]any)[0], "function")
	if raw, _ := json.Marshal(at(offered, "parameters")); string(raw) != schema ||
		at(offered, "description") != "Opens a ticket" {
		t.Errorf("the model was offered %v", offered)
	}
	c.must(
		t,
		201,
		"POST",
		"/api/agents/default/tools",
		`{"name":"copied","type":"mcp",`+of+`,"parameters":`+schema+`}}`,
	)
	l.tools.Store(
		`{"tools":[{"name":"open","inputSchema":{"type":"object","required":["city"]}}],"resultType":"complete"}`,
	)
	c.must(t, 200, "GET", "/api/agents/default/mcp/"+fmt.Sprint(server["id"])+"/tools", "")
	c.must(t, 400, "POST", "/api/agents/default/tools/"+fmt.Sprint(tool["id"])+"/execute", `{"arguments":{}}`)
}
