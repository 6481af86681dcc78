package httpapi

import (
	"strings"
	"testing"
)

func (w *contractClient) checkMCPServers(t *testing.T, agent string) {
	t.Helper()
	server := newMCPServer(t, "sesame-7")
	id := w.create(
		t,
		agent+"/mcp",
		`{"name":"Tickets","url":"`+server.URL+`","auth":{"type":"bearer","token":"sesame-7"}}`,
	)
	w.request(t, 200, "GET", agent+"/mcp", "")
	w.request(t, 200, "GET", agent+"/mcp/"+id+"/tools", "")
	w.request(t, 200, "PUT", agent+"/mcp/"+id, `{"name":"Issues"}`)
	w.request(t, 400, "PUT", agent+"/mcp/"+id, `{"url":"http://127.0.0.1:1/"}`)
	w.request(t, 200, "POST", agent+"/mcp/"+id+"/call", `{"tool":"open","arguments":{"title":"x"}}`)
	w.request(t, 400, "POST", agent+"/mcp/"+id+"/call", `{"tool":""}`)
	w.request(t, 200, "GET", "/api/mcp-catalogue?search=tickets", "")
	w.request(t, 400, "GET", "/api/mcp-catalogue?search="+strings.Repeat("x", 101), "")
	w.request(t, 409, "POST", agent+"/mcp/"+id+"/connect", "")
	login := w.create(t, agent+"/mcp", `{"name":"Login","url":"`+newMCPLogin(t).URL+`/mcp","auth":{"type":"login"}}`)
	w.request(t, 200, "POST", agent+"/mcp/"+login+"/connect", "")
	w.request(t, 409, "GET", agent+"/mcp/"+login+"/tools", "")
	server.Close()
	w.request(t, 200, "GET", agent+"/mcp/"+id+"/tools", "")
	away := w.create(t, agent+"/mcp", `{"name":"Away","url":"`+server.URL+`"}`)
	w.request(t, 500, "GET", agent+"/mcp/"+away+"/tools", "")
	w.request(t, 400, "POST", agent+"/mcp", `{"name":"Away"}`)
	w.request(t, 400, "POST", agent+"/mcp", `{"name":"Shell","command":"sh"}`)
	w.request(t, 204, "DELETE", agent+"/mcp?id="+id, "")
	w.request(t, 404, "DELETE", agent+"/mcp?id="+id, "")
}

// TestMCPServers checks a registered server from its creation to its deletion, and looks
// for its token where it must not be.
func TestMCPServers(t *testing.T) {
	c := newOwnClient(t)
	server := newMCPServer(t, "sesame-7")
	a := c.send(
		t,
		"POST",
		"/api/agents/default/mcp",
		`{"name":"Tickets","url":"`+server.URL+`","auth":{"type":"bearer","token":"sesame-7"}}`,
	)
	id, _ := a.json["id"].(string)
	if a.StatusCode != 201 ||
		a.json["status"] != "connected" ||
		a.json["last_error"] != "" ||
		a.json["auth_type"] != "bearer" ||
		a.Header.Get("Location") != "/api/agents/default/mcp/"+id+"/tools" ||
		!strings.HasPrefix(id, "mcp-") {
		t.Fatalf("%d %s", a.StatusCode, a.text)
	}
	tools := c.must(t, 200, "GET", "/api/agents/default/mcp/"+id+"/tools", "")
	if at(tools, "tools.0.name") != "open" ||
		at(tools, "tools.0.description") != "Opens a ticket" ||
		at(tools, "tools.0.parameters.properties.title.type") != "string" ||
		tools["stale"] != nil {
		t.Errorf("tools %v", tools)
	}
	wrong := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/mcp",
		`{"name":"Wrong","url":"`+server.URL+`","auth":{"type":"bearer","token":"open-8"}}`,
	)
	if wrong["status"] != "error" || wrong["last_error"] != "the MCP server rejected the credentials (HTTP 401)" {
		t.Errorf("wrong token: %v", wrong)
	}
	server.Close()
	unreachable := c.must(t, 201, "POST", "/api/agents/default/mcp", `{"name":"Gone","url":"`+server.URL+`"}`)
	if unreachable["status"] != "disconnected" ||
		unreachable["last_error"] != "the MCP server cannot be reached: the connection was refused" {
		t.Errorf("a server that does not respond: %v", unreachable)
	}
	if tools := c.must(t, 200, "GET", "/api/agents/default/mcp/"+id+"/tools", ""); tools["stale"] != true ||
		at(tools, "tools.0.name") != "open" {
		t.Errorf("tools of a server that does not respond: %v", tools)
	}
	if a := c.send(
		t,
		"GET",
		"/api/agents/default/mcp/"+unreachable["id"].(string)+"/tools",
		"",
	); a.StatusCode != 500 || at(a.json, "error.code") != "UPSTREAM_ERROR" {
		t.Errorf("an unknown server: %d %s", a.StatusCode, a.text)
	}
	list := c.must(t, 200, "GET", "/api/agents/default/mcp?sort=name&order=desc", "")
	if at(list, "servers.0.name") != "Wrong" ||
		at(list, "servers.1.name") != "Tickets" ||
		at(list, "servers.1.status") != "disconnected" {
		t.Errorf("list %v", list)
	}
	for _, path := range []string{"/mcp", "/logs", "/mcp/" + id + "/tools"} {
		if a := c.send(t, "GET", "/api/agents/default"+path, ""); strings.Contains(a.text, "sesame-7") ||
			strings.Contains(a.text, "open-8") {
			t.Errorf("%s shows a token", path)
		}
	}
	c.must(t, 204, "DELETE", "/api/agents/default/mcp?id="+id, "")
}

// TestChangedMCPServer gives a server a wrong token, the right one and another address:
// it is checked each time, and a token stays with its host.
func TestChangedMCPServer(t *testing.T) {
	c, server, other := newTestClient(t), newMCPServer(t, "sesame-7"), newMCPServer(t, "sesame-7")
	path := "/api/agents/default/mcp/" +
		c.must(
			t,
			201,
			"POST",
			"/api/agents/default/mcp",
			`{"name":"Tickets","url":"`+server.URL+`","auth":{"type":"bearer","token":"sesame-7"}}`,
		)["id"].(string)
	call := func() map[string]any {
		t.Helper()
		return c.must(t, 200, "POST", path+"/call", `{"tool":"open","arguments":{"title":"Lights"}}`)
	}
	if done := call(); done["success"] != true {
		t.Errorf("called: %v", done)
	}
	if s := c.must(t, 200, "PUT", path, `{"name":"Issues","url":"`+server.URL+`/mcp"}`); s["name"] != "Issues" ||
		s["status"] != "connected" ||
		s["auth_type"] != "bearer" {
		t.Errorf("renamed: %v", s)
	}
	if s := c.must(t, 200, "PUT", path, `{"auth":{"type":"bearer","token":"open-8"}}`); s["status"] != "error" {
		t.Errorf("with a wrong token: %v", s)
	}
	if done := call(); done["success"] != false || !strings.Contains(at(done, "error.message").(string), "(HTTP 401)") {
		t.Errorf("called with a wrong token: %v", done)
	}
	if a := c.send(t, "PUT", path, `{"url":"`+other.URL+`"}`); a.StatusCode != 400 ||
		at(a.json, "error.details.field") != "auth" {
		t.Errorf("another host: %d %s", a.StatusCode, a.text)
	}
	if s := c.must(
		t, 200, "PUT", path,
		`{"url":"`+other.URL+`","auth":{"type":"bearer","token":"sesame-7"}}`,
	); s["status"] != "connected" || s["url"] != other.URL {
		t.Errorf("with its token: %v", s)
	}
	if s := c.must(t, 200, "PUT", path, `{"auth":{"type":"none"}}`); s["status"] != "error" ||
		s["auth_type"] != "none" {
		t.Errorf("without credentials: %v", s)
	}
	if done := call(); done["success"] != false {
		t.Errorf("called without credentials: %v", done)
	}
	if a := c.send(t, "POST", path+"/call", `{"tool":"open","arguments":[]}`); a.StatusCode != 400 ||
		at(a.json, "error.details.field") != "arguments" {
		t.Errorf("a list of arguments: %d %s", a.StatusCode, a.text)
	}
}
