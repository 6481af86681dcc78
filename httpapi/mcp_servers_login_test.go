package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/agent/credentials"
	"satchel/httpapi/apitest"
	"satchel/httpapi/rest"
	"satchel/store"
)

// TestMCPLogin connects a server as a person does, and attacks the login: it cannot be
// completed in another browser, for another login or from another issuer, and nothing is
// sent to another host.
func TestMCPLogin(t *testing.T) {
	c, m := newTestClient(t), newMCPLogin(t)
	made := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/mcp",
		`{"name":"Tickets","url":"`+m.URL+`/mcp","auth":{"type":"login"}}`,
	)
	path := fmt.Sprint("/api/agents/default/mcp/", made["id"])
	if made["status"] != "needs_login" || made["auth_type"] != "login" || made["credential"] != "" {
		t.Fatalf("registered as %v", made)
	}
	if a := c.send(t, "GET", path+"/tools", ""); a.StatusCode != 409 || at(a.json, "error.code") != "CREDENTIAL_LOGIN" {
		t.Errorf("tools before the login: %d %s", a.StatusCode, a.text)
	}
	begun := c.must(t, 200, "POST", path+"/connect", "")
	credential := credentialsAt + "/" + fmt.Sprint(begun["credential_id"])
	for name, turn := range map[string]func(url.Values, *http.Cookie) (url.Values, *http.Cookie){
		"another issuer": func(q url.Values, k *http.Cookie) (url.Values, *http.Cookie) {
			q.Set("iss", m.Provider.URL)
			return q, k
		},
		"no issuer": func(q url.Values, k *http.Cookie) (url.Values, *http.Cookie) {
			q.Del("iss")
			return q, k
		},
		"a code of another login": func(q url.Values, k *http.Cookie) (url.Values, *http.Cookie) {
			q.Set("code", "code-of-the-attacker")
			return q, k
		},
		"another browser": func(q url.Values, _ *http.Cookie) (url.Values, *http.Cookie) { return q, nil },
	} {
		location, cookie := c.start(t, path)
		query, cookie := turn(m.Agree(t, location), cookie)
		if a := c.back(t, query, cookie); a.StatusCode < 400 {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.text)
		}
		if now := c.must(t, 200, "GET", credential, ""); now["status"] != "needs_login" {
			t.Errorf("%s: it is %v", name, now["status"])
		}
	}
	location, cookie := c.start(t, path)
	if q, _ := url.Parse(location); q.Query().Get("resource") != m.URL+"/mcp" ||
		q.Query().Get("scope") != "tools" ||
		q.Query().Get("code_challenge_method") != "S256" {
		t.Errorf("the login is redirected to %s", location)
	}
	if a := c.back(t, m.Agree(t, location), cookie); a.StatusCode != 200 {
		t.Fatalf("callback: %d %s", a.StatusCode, a.text)
	}
	// although it was just checked
	if now := c.must(t, 200, "GET", "/api/agents/default/mcp", ""); at(now, "servers.0.checked_at") != nil {
		t.Errorf("the server is not due: %v", now)
	}
	if tools := c.must(t, 200, "GET", path+"/tools", ""); at(tools, "tools.0.name") != "open" {
		t.Errorf("tools: %v", tools)
	}
	if now := c.must(t, 200, "GET", "/api/agents/default/mcp", ""); at(now, "servers.0.status") != "connected" {
		t.Errorf("connected: %v", now)
	}
	if now := c.must(t, 200, "GET", credential, ""); now["name"] != "Tickets" ||
		at(now, "hosts.0") != m.URL ||
		at(now, "used_by.0.id") != made["id"] ||
		at(now, "config.resource") != m.URL+"/mcp" {
		t.Errorf("the credential: %v", now)
	}
	c.mcpTokenStays(t, m, path)

	// The provider revokes the connection.
	m.Provider.Set(func() {
		clear(m.Provider.Access)
		m.Provider.Fail = "invalid_grant"
	})
	o, err := c.db().OpenCredential(t.Context(), fmt.Sprint(begun["credential_id"]))
	if err != nil {
		t.Fatal(err)
	}
	o.Tokens.IssuedAt.Time = o.Tokens.IssuedAt.Add(-3600e9)
	if err := c.db().PutTokens(t.Context(), o, o.Tokens, ""); err != nil {
		t.Fatal(err)
	}
	if a := c.must(t, 200, "POST", path+"/call", `{"tool":"open"}`); at(a, "error.code") != "CREDENTIAL_LOGIN" {
		t.Errorf("a call after the revocation: %v", a)
	}
	if tools := c.must(t, 200, "GET", path+"/tools", ""); tools["stale"] != true {
		t.Errorf("tools after the revocation: %v", tools)
	}
	if now := c.must(t, 200, "GET", "/api/agents/default/mcp", ""); at(now, "servers.0.status") != "needs_login" {
		t.Errorf("after the revocation: %v", now)
	}
	c.must(t, 204, "DELETE", "/api/agents/default/mcp?id="+fmt.Sprint(made["id"]), "")
	c.must(t, 404, "GET", credential, "")
	for _, secret := range []string{"client-secret-4711", "access-token-number", "refresh-token-number"} {
		c.mustNotContain(t, secret)
	}
}

// mcpTokenStays tries to send the token of a connected server to another host, and checks
// that it does not arrive there.
func (c *testClient) mcpTokenStays(t *testing.T, m *apitest.MCPLogin, path string) {
	t.Helper()
	evil := newMCPLogin(t)
	m.Mu.Lock()
	m.To = evil.URL + "/mcp"
	m.Mu.Unlock()
	if a := c.must(t, 200, "POST", path+"/call", `{"tool":"open"}`); a["success"] != false {
		t.Errorf("a redirect to another host: %v", a)
	}
	m.Mu.Lock()
	m.To = ""
	m.Mu.Unlock()
	c.sql(t, `UPDATE mcp_servers SET url = '`+evil.URL+`/mcp'`)
	if a := c.must(t, 200, "POST", path+"/call", `{"tool":"open"}`); a["success"] != false {
		t.Errorf("an address changed by SQL: %v", a)
	}
	if a := c.send(t, "POST", path+"/connect", ""); a.StatusCode != 409 {
		t.Errorf("a login at an address changed by SQL: %d %s", a.StatusCode, a.text)
	}
	c.sql(t, `UPDATE mcp_servers SET url = '`+evil.URL+`/mcp', auth_type = 'none'`)
	if a := c.must(t, 200, "POST", path+"/call", `{"tool":"open"}`); a["success"] != false {
		t.Errorf("an address and a type changed by SQL: %v", a)
	}
	c.sql(t, `UPDATE mcp_servers SET url = '`+m.URL+`/mcp', auth_type = 'login'`)
	for _, token := range evil.Tokens {
		if token != "" {
			t.Errorf("the token %q reached another host", token)
		}
	}
	if a := c.must(t, 200, "POST", path+"/call", `{"tool":"open"}`); a["success"] != true {
		t.Errorf("back home: %v", a)
	}
}

// TestOAuthPages checks that the pages of sign-ins are limited like those of forms, and
// that a server with https describes itself to authorization servers.
func TestOAuthPages(t *testing.T) {
	c, server := openWith(t, func(o *Options) { o.RateLimits = map[string]int{"general": 1000} })
	describe := func(address string) {
		server.options.Credentials = credentials.New(credentials.Options{
			Env:     store.Env{Folder: server.folder},
			Address: address,
		})
	}
	describe("http://127.0.0.1:8787")
	if a := c.send(t, "GET", "/oauth/client.json", ""); a.StatusCode != 404 {
		t.Errorf("the document of a server without https: %d", a.StatusCode)
	}
	describe("https://satchel.example.com")
	a := c.send(t, "GET", "/oauth/client.json", "")
	if a.json["client_id"] != "https://satchel.example.com/oauth/client.json" ||
		at(a.json, "redirect_uris.0") != "https://satchel.example.com/oauth/callback" ||
		a.json["token_endpoint_auth_method"] != "none" {
		t.Errorf("the document: %d %s", a.StatusCode, a.text)
	}
	server.limiter = rest.NewLimiter(server.options.RateLimits, nil, func() time.Time {
		return time.Unix(1_800_000_010, 0)
	})
	for range 600 {
		c.send(t, "GET", "/oauth/start/x", "")
	}
	for _, page := range []string{"/oauth/start/x", "/oauth/callback?state=x", "/oauth/client.json"} {
		if a := c.send(t, "GET", page, ""); a.StatusCode != 429 ||
			a.Header.Get("Retry-After") == "" ||
			strings.Contains(a.text, "Not connected") != (page != "/oauth/client.json") {
			t.Errorf("%s: %d %s", page, a.StatusCode, a.text)
		}
	}
}
