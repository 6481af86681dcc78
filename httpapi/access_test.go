package httpapi

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/browse"
	"satchel/agent/mcp/registry"
	"satchel/browser"
	"satchel/browser/live"
	"satchel/crawl"
	"satchel/flow"
	"satchel/httpapi/apitest"
	"satchel/httpapi/rest"
	"satchel/schedule"
	"satchel/store"
	"satchel/vector"
)

// openWith starts a service with options that the test changes.
func openWith(t *testing.T, change func(*Options)) (*testClient, *Server) {
	t.Helper()
	return openFolderWith(t, t.TempDir(), change)
}

// openFolderWith is openWith on a data folder that the test has prepared.
func openFolderWith(t *testing.T, path string, change func(*Options)) (*testClient, *Server) {
	t.Helper()
	inParallel(t)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	folder, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	env := store.Env{Folder: folder, Log: quiet}
	parts := Parts{
		Folder:    folder,
		Index:     vector.New(folder, vector.Local(), quiet),
		Crawler:   crawl.New(crawl.Options{Env: env}),
		Flow:      flow.New(flow.Options{Env: env}),
		Scheduler: schedule.New(schedule.Options{Env: env}),
		Browser:   browser.New(browser.Options{Env: env}),
		MCP:       registry.New(registry.Options{Env: env}),
	}
	o := Options{
		Parts:       parts,
		CORSOrigins: []string{"*"},
		DefaultRole: agent.RoleAdmin,
		MaxUpload:   1 << 20,
		PublicURL:   "http://satchel.example",
		Log:         quiet,
	}
	change(&o)
	if o.Live == nil {
		o.Live = live.New(live.Options{Browser: o.Browser, PublicURL: o.PublicURL, Log: quiet})
	}
	if o.Navigator == nil {
		o.Navigator = browse.New(browse.Options{Chat: o.Chat, Live: o.Live, Log: quiet})
	}
	server := New(o)
	ts := httptest.NewServer(server.Handler())
	t.Cleanup(func() {
		ts.Close()
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	return &testClient{url: ts.URL, folder: folder, header: http.Header{}}, server
}

// proxiedServer is a service behind an identity proxy.
type proxiedServer struct {
	*testClient
	server *Server
	proxy  *apitest.IdentityProxy
}

func newProxiedServer(t *testing.T, change func(*Options)) *proxiedServer {
	t.Helper()
	proxy := newIdentityProxy(t)
	c, server := openWith(t, func(o *Options) {
		o.Verifier = proxy.Verifier
		if change != nil {
			change(o)
		}
	})
	return &proxiedServer{c, server, proxy}
}

// as returns a client with the identity of a person.
func (c *proxiedServer) as(t *testing.T, email string) *testClient {
	t.Helper()
	return c.with("Edge-Access-JWT-Assertion", c.proxy.Token(t, email))
}

// TestRolesOverTheWholeTable calls every route as every caller and checks that access is
// as the table of routes says.
func TestRolesOverTheWholeTable(t *testing.T) {
	c := newProxiedServer(t, nil)
	c.as(t, "owner@example.com").must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	for email, role := range map[string]string{"admin@example.com": "admin", "viewer@example.com": "viewer"} {
		c.as(t, "owner@example.com").must(
			t,
			201,
			"POST",
			"/api/agents/bakery/admins",
			`{"email":"`+strings.ToUpper(email)+`","role":"`+role+`"}`,
		)
	}
	callers := []struct {
		name   string
		client *testClient
		role   agent.Role
	}{
		{"viewer", c.as(t, "viewer@example.com"), agent.RoleViewer},
		{"admin", c.as(t, "admin@example.com"), agent.RoleAdmin},
		{"stranger", c.as(t, "stranger@example.com"), agent.RoleNone},
		{"nobody", c.testClient, agent.RoleNone},
	}
	for _, r := range c.server.table {
		if !r.UnderAgent() {
			continue
		}
		for _, caller := range callers {
			target := strings.NewReplacer("{id}", "bakery", "{", "", "}", "").Replace("/api" + r.Path)
			a := caller.client.do(t, r.Method, target, strings.NewReader("{"), "text/nonsense")
			refused := a.StatusCode == http.StatusForbidden
			if want := !caller.role.Covers(r.Access.Role()); refused != want {
				t.Errorf("%s as %s: %d, refused should be %v\n%s", target, caller.name, a.StatusCode, want, a.text)
			}
		}
	}
}

// TestEveryWriteNeedsMoreThanViewer keeps mistakes out of the table of routes.
func TestEveryWriteNeedsMoreThanViewer(t *testing.T) {
	_, server := openWith(t, func(*Options) {})
	readOnly := []string{"/agents/{id}/sources/search", "/agents/{id}/sql/execute", "/agents/{id}/presence"}
	for _, r := range server.table {
		if r.Access == rest.Platform {
			if r.Path != "/agents/{id}/gateways/{gatewayId}/webhook" || r.Class != rest.Inbound {
				t.Errorf("%s %s requires no identity", r.Method, r.Path)
			}
			continue
		}
		if r.UnderAgent() &&
			r.Method != http.MethodGet &&
			!slices.Contains(readOnly, r.Path) &&
			!r.Access.Role().Covers(agent.RoleAdmin) {
			t.Errorf("%s %s is open to viewers", r.Method, r.Path)
		}
		if r.Access == rest.Anyone && r.UnderAgent() {
			t.Errorf("%s %s requires no role", r.Method, r.Path)
		}
		if r.Summary == "" || !strings.HasPrefix(r.Path, "/") || path.Clean(r.Path) != r.Path {
			t.Errorf("%s %s: a line of the table is incomplete", r.Method, r.Path)
		}
	}
}

func TestAccess(t *testing.T) {
	c := newProxiedServer(t, nil)
	ada, bob := c.as(t, "Ada@Example.com"), c.as(t, "bob@example.com")
	made := ada.must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	if made["owner_email"] != "ada@example.com" {
		t.Errorf("owner_email is %v", made["owner_email"])
	}
	owner := ada.must(t, 200, "GET", "/api/agents/bakery/admins", "")
	ownerID := at(owner, "admins.0.id").(string)
	if at(owner, "admins.0.role") != "owner" {
		t.Errorf("the creator is not the owner: %v", owner)
	}
	for _, tc := range []struct {
		who *testClient
		apiCase
	}{
		{
			ada,
			apiCase{
				"the last owner stays",
				"DELETE",
				"/api/agents/bakery/admins/" + ownerID,
				"",
				409,
				code("CONFLICT"),
			},
		},
		{
			ada,
			apiCase{
				"own role", "GET", "/api/auth/agents", "", 200,
				map[string]any{"agents.0.role": "owner", "agents.0.name": "bakery"},
			},
		},
		{
			ada,
			apiCase{
				"same admin twice",
				"POST",
				"/api/agents/bakery/admins",
				`{"email":"ada@example.com","role":"viewer"}`,
				409,
				code("CONFLICT"),
			},
		},
		{bob, apiCase{"no role", "GET", "/api/agents/bakery", "", 403, code("FORBIDDEN")}},
		{bob, apiCase{"no such agent, identified caller", "GET", "/api/agents/nothing", "", 404, code("NOT_FOUND")}},
		{
			bob,
			apiCase{
				"sees the default agent only",
				"GET", "/api/agents", "", 200,
				map[string]any{"meta.total": "1", "agents.0.id": "default"},
			},
		},
		{
			c.testClient,
			apiCase{"no such agent, unidentified caller", "GET", "/api/agents/nothing", "", 403, code("FORBIDDEN")},
		},
		{
			c.testClient,
			apiCase{"unidentified: create an agent", "POST", "/api/agents", `{"name":"x"}`, 401, code("UNAUTHORIZED")},
		},
		{
			c.testClient,
			apiCase{"unidentified: list own agents", "GET", "/api/auth/agents", "", 401, code("UNAUTHORIZED")},
		},
		{c.testClient, apiCase{"unidentified: list keys", "GET", "/api/keys", "", 401, code("UNAUTHORIZED")}},
		{c.testClient, apiCase{"unidentified: import", "POST", "/api/agents/import", "", 401, code("UNAUTHORIZED")}},
		{
			c.testClient,
			apiCase{
				"unidentified: use the default agent",
				"POST",
				"/api/agents/default/contacts",
				`{"name":"x"}`,
				201,
				nil,
			},
		},
		{
			c.testClient,
			apiCase{"unidentified: list its admins", "GET", "/api/agents/default/admins", "", 403, code("FORBIDDEN")},
		},
		{
			c.testClient,
			apiCase{
				"unidentified: add an admin",
				"POST",
				"/api/agents/default/admins",
				`{"email":"x@y.z","role":"owner"}`,
				403,
				code("FORBIDDEN"),
			},
		},
		{
			c.testClient,
			apiCase{"unidentified: make a backup", "POST", "/api/agents/default/backup", "", 403, code("FORBIDDEN")},
		},
		{
			c.testClient,
			apiCase{"unidentified: fork", "POST", "/api/agents/default/fork", `{"name":"x"}`, 403, code("FORBIDDEN")},
		},
		{
			c.with("Edge-Access-JWT-Assertion", "nonsense"),
			apiCase{"a bad token is refused", "GET", "/api/agents/default", "", 401, code("UNAUTHORIZED")},
		},
		{
			c.with("Cf-Access-Jwt-Assertion", "nonsense"),
			apiCase{"the proxy's own header", "GET", "/api/agents/default", "", 401, code("UNAUTHORIZED")},
		},
		{
			c.with("X-API-Key", "satchel_nonsense"),
			apiCase{"an unknown key", "GET", "/api/agents/default", "", 401, code("UNAUTHORIZED")},
		},
		{
			c.with("Authorization", "Bearer nonsense"),
			apiCase{"an unknown bearer", "GET", "/api/agents/default", "", 401, code("UNAUTHORIZED")},
		},
	} {
		tc.run(t, tc.who)
	}
}

func TestKeys(t *testing.T) {
	c := newProxiedServer(t, nil)
	ada := c.as(t, "ada@example.com")
	ada.must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	ada.must(t, 201, "POST", "/api/agents/bakery/admins", `{"email":"vera@example.com","role":"viewer"}`)
	vera := c.as(t, "vera@example.com")
	made := vera.must(t, 201, "POST", "/api/keys", `{"name":"reader","role":"viewer","agents":["bakery"]}`)
	secret := made["key"].(string)
	if !strings.HasPrefix(secret, made["prefix"].(string)) || len(secret) < 40 {
		t.Errorf("key %q has prefix %q", secret, made["prefix"])
	}
	if listed := vera.send(t, "GET", "/api/keys", ""); strings.Contains(listed.text, secret) {
		t.Error("the list shows a key")
	}
	reader := c.with("Authorization", "Bearer "+secret)
	apiCase{
		"viewer searches with the model",
		"GET",
		"/api/agents/bakery/sources/search?query=x&expand=true",
		``,
		403,
		code("FORBIDDEN"),
	}.run(t, vera)
	apiCase{
		"viewer creates an admin key",
		"POST",
		"/api/keys",
		`{"name":"k","role":"admin","agents":["bakery"]}`,
		403,
		code("FORBIDDEN"),
	}.run(t, vera)
	apiCase{
		"key creates a key with a higher role",
		"POST",
		"/api/keys",
		`{"name":"k","role":"owner","agents":["bakery"]}`,
		403,
		code("FORBIDDEN"),
	}.run(t, reader)
	apiCase{
		"key creates a key for more agents",
		"POST",
		"/api/keys",
		`{"name":"k","role":"viewer","agents":["*"]}`,
		403,
		code("FORBIDDEN"),
	}.run(t, reader)
	apiCase{"key reads", "GET", "/api/agents/bakery/contacts", "", 200, nil}.run(t, reader)
	apiCase{"key writes", "POST", "/api/agents/bakery/contacts", `{"name":"x"}`, 403, code("FORBIDDEN")}.run(t, reader)
	apiCase{"key on another agent", "GET", "/api/agents/default/contacts", "", 403, code("FORBIDDEN")}.run(t, reader)
	apiCase{
		"a viewer's key creates an agent",
		"POST", "/api/agents", `{"name":"y"}`, 403,
		code("FORBIDDEN"),
	}.run(t, reader)
	apiCase{
		"another person's key",
		"DELETE",
		"/api/keys/" + made["id"].(string),
		"",
		404,
		code("NOT_FOUND"),
	}.run(t, ada)

	admins := ada.must(t, 200, "GET", "/api/agents/bakery/admins", "")
	for _, a := range admins["admins"].([]any) {
		if at(a, "email") == "vera@example.com" {
			ada.must(t, 204, "DELETE", "/api/agents/bakery/admins/"+at(a, "id").(string), "")
		}
	}
	apiCase{
		"a key does no more than its creator may now",
		"GET",
		"/api/agents/bakery/contacts",
		"",
		403,
		code("FORBIDDEN"),
	}.run(t, reader)
	vera.must(t, 204, "DELETE", "/api/keys/"+made["id"].(string), "")
	apiCase{"a revoked key", "GET", "/api/agents/bakery/contacts", "", 401, code("UNAUTHORIZED")}.run(t, reader)
}

// TestFirstKeyCloses creates the first key of an open server, and revokes it.
func TestFirstKeyCloses(t *testing.T) {
	c, server := openWith(t, func(*Options) {})
	c.must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	made := c.must(t, 201, "POST", "/api/keys", `{"name":"all","role":"owner","agents":["*"]}`)
	if server.Open() {
		t.Fatal("the server is open although a key was created")
	}
	keyed := c.with("X-API-Key", made["key"].(string))
	apiCase{"nobody", "GET", "/api/agents/bakery", "", 403, code("FORBIDDEN")}.run(t, c)
	apiCase{"the key", "GET", "/api/agents/bakery", "", 200, map[string]any{"name": "bakery"}}.run(t, keyed)
	apiCase{
		"a stray proxy token is ignored",
		"GET", "/api/agents/bakery", "", 200, nil,
	}.run(t, keyed.with("Cf-Access-Jwt-Assertion", "stray"))
	limited := keyed.must(t, 201, "POST", "/api/keys", `{"name":"one","role":"admin","agents":["bakery"]}`)
	one := c.with("X-API-Key", limited["key"].(string))
	one.must(t, 201, "POST", "/api/agents", `{"name":"second"}`)
	apiCase{"a key can use the agents it created", "GET", "/api/agents/second", "", 200, nil}.run(t, one)
	keyed.must(t, 204, "DELETE", "/api/keys/"+limited["id"].(string), "")
	keyed.must(t, 204, "DELETE", "/api/keys/"+made["id"].(string), "")
	apiCase{"still closed without keys", "GET", "/api/agents/bakery", "", 403, code("FORBIDDEN")}.run(t, c)
}

func TestDisabledAgent(t *testing.T) {
	c, _ := openWith(t, func(*Options) {})
	c.must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	c.must(t, 200, "PUT", "/api/agents/bakery", `{"status":"disabled"}`)
	apiCase{"contacts", "GET", "/api/agents/bakery/contacts", "", 403, code("AGENT_DISABLED")}.run(t, c)
	apiCase{"settings", "PUT", "/api/agents/bakery/settings", `{}`, 403, code("AGENT_DISABLED")}.run(t, c)
	apiCase{"read", "GET", "/api/agents/bakery", "", 200, map[string]any{"status": "disabled"}}.run(t, c)
	apiCase{"delete", "DELETE", "/api/agents/bakery", "", 200, map[string]any{"success": true}}.run(t, c)
	apiCase{"deleted", "GET", "/api/agents/bakery", "", 404, code("NOT_FOUND")}.run(t, c)
}

func TestGate(t *testing.T) {
	open, _ := openWith(t, func(*Options) {})
	named, _ := openWith(t, func(o *Options) {
		o.CORSOrigins, o.CORSConfigured = []string{"https://app.example"}, true
	})
	star, _ := openWith(t, func(o *Options) { o.CORSConfigured = true })
	cross := func(c *testClient, origin string) *testClient {
		return c.with("Sec-Fetch-Site", "cross-site").with("Origin", origin)
	}
	get := func(name string, status int) apiCase { return apiCase{name, "GET", "/api/agents", "", status, nil} }
	get("plain", 200).run(t, open)
	get("another site", 403).run(t, cross(open, "https://evil.example"))
	get("same site", 200).run(t, open.with("Sec-Fetch-Site", "same-origin"))
	get("an allowed origin", 200).run(t, cross(named, "https://app.example"))
	get("an origin that is not allowed", 403).run(t, cross(named, "https://evil.example"))
	get("every origin allowed", 200).run(t, cross(star, "https://evil.example"))
	for host, status := range map[string]int{
		"localhost:1":            200,
		"127.0.0.1":              200,
		"[::1]:80":               200,
		"satchel.example":        200,
		"evil.example":           403,
		"127.0.0.1.evil.example": 403,
		"10.0.0.1":               403,
	} {
		get("host "+host, status).run(t, open.with("Host", host))
	}
	pre := cross(open, "https://evil.example").do(t, "OPTIONS", "/api/agents", nil, "")
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin":      "*",
		"Access-Control-Allow-Methods":     "GET, POST, PUT, DELETE, OPTIONS",
		"Access-Control-Allow-Headers":     "Content-Type, Authorization",
		"Access-Control-Allow-Credentials": "",
	} {
		if got := pre.Header.Get(name); got != want || pre.StatusCode != 204 {
			t.Errorf("preflight %d: %s is %q, want %q", pre.StatusCode, name, got, want)
		}
	}
	if got := named.with(
		"Origin",
		"https://evil.example",
	).send(t, "GET", "/api/agents", "").Header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("an origin that was not allowed may read: %q", got)
	}
	got := cross(open, "https://evil.example").send(t, "GET", "/api/agents", "").Header
	if got.Get("Access-Control-Allow-Origin") != "*" || got.Get("Access-Control-Expose-Headers") == "" {
		t.Errorf("headers for pages of any origin: %v", got)
	}
	form := open.do(t, "POST", "/api/agents", strings.NewReader(`{"name":"x"}`), "text/plain")
	if form.StatusCode != 415 || at(form.json, "error.code") != "UNSUPPORTED_FORMAT" {
		t.Errorf("a form's media type: %d %s", form.StatusCode, form.text)
	}
	big := open.send(t, "POST", "/api/agents", `{"name":"`+strings.Repeat("x", 10<<20)+`"}`)
	if big.StatusCode != 413 {
		t.Errorf("a body over the limit: %d %s", big.StatusCode, big.text)
	}
}

func TestRateLimit(t *testing.T) {
	c, server := openWith(t, func(o *Options) {
		o.RateLimits = map[string]int{"general": 3, "bulk": 1}
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	now := time.Unix(1_800_000_010, 0)
	server.limiter = rest.NewLimiter(
		server.options.RateLimits,
		server.options.TrustedProxies,
		func() time.Time { return now },
	)
	for left := 2; left >= 0; left-- {
		a := c.send(t, "GET", "/api/nothing", "")
		if a.Header.Get("X-RateLimit-Limit") != "3" ||
			a.Header.Get("X-RateLimit-Remaining") != string(rune('0'+left)) ||
			a.Header.Get("X-RateLimit-Reset") != "1800000070" {
			t.Errorf("headers with %d left: %v", left, a.Header)
		}
	}
	now = now.Add(10 * time.Second)
	limited := c.send(t, "GET", "/api/agents", "")
	apiCase{
		"limited", "GET", "/api/%61gents", "", 429,
		map[string]any{
			"error.code":                   "RATE_LIMITED",
			"error.details.limit":          "3",
			"error.details.window_seconds": "60",
			"error.details.retry_after":    "50",
		},
	}.run(t, c)
	if limited.Header.Get("Retry-After") != "50" {
		t.Errorf("Retry-After is %q", limited.Header.Get("Retry-After"))
	}
	apiCase{"another class", "GET", "/api/agents/default/contacts/export", "", 200, nil}.run(t, c)
	apiCase{
		"another client behind the proxy",
		"GET", "/api/agents", "", 200, nil,
	}.run(t, c.with("X-Forwarded-For", "203.0.113.9"))
	for i, status := range []int{200, 200, 429} {
		forged := "198.51.100." + string(rune('1'+i)) + ", 203.0.113.9"
		apiCase{
			"forged hops in front of the proxy's",
			"GET", "/api/agents", "", status, nil,
		}.run(t, c.with("X-Forwarded-For", forged))
	}
	now = now.Add(time.Minute)
	apiCase{"the next minute", "GET", "/api/agents", "", 200, nil}.run(t, c)
	if health := c.send(t, "GET", "/api/health", ""); health.Header.Get("X-RateLimit-Limit") != "" {
		t.Error("health is counted")
	}
}
