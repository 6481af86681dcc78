package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/httpapi/rest"
)

// attack has the headers that a browser sends with a hostile page's request.
type attack struct {
	name    string
	headers map[string]string
}

func (a attack) sentBy(c *testClient) *testClient {
	for name, value := range a.headers {
		c = c.with(name, value)
	}
	return c
}

// attacks are refused unless the request has an API key.
var attacks = []attack{
	{"cross-site, no origin", map[string]string{"Sec-Fetch-Site": "cross-site"}},
	{"cross-site", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}},
	{"cross-site, in capitals", map[string]string{"Sec-Fetch-Site": "Cross-Site", "Origin": "https://evil.example"}},
	{
		"cross-site, the public address as origin",
		map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "http://satchel.example"},
	},
	{
		"cross-site, a navigation",
		map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
	},
	{
		"a sibling subdomain",
		map[string]string{
			"Sec-Fetch-Site": "same-site",
			"Origin":         "http://wiki.satchel.example",
			"Host":           "satchel.example",
		},
	},
	{"another port of the same host", map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:1"}},
	{"a sibling's image", map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "image"}},
	{"an unknown Sec-Fetch-Site, no origin", map[string]string{"Sec-Fetch-Site": "nearby"}},
	{"an unknown Sec-Fetch-Site", map[string]string{"Sec-Fetch-Site": "nearby", "Origin": "https://evil.example"}},
	{"origin only", map[string]string{"Origin": "https://evil.example"}},
	{"origin null", map[string]string{"Origin": "null"}},
	{"origin file", map[string]string{"Origin": "file://"}},
	{"origin that begins like the public address", map[string]string{"Origin": "http://satchel.example.evil.example"}},
	{"origin with the public address as user", map[string]string{"Origin": "http://satchel.example@evil.example"}},
	{"origin of another scheme", map[string]string{"Origin": "ftp://satchel.example"}},
	{
		"a rebound name",
		map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example", "Host": "evil.example"},
	},
	{"a rebound name, no origin", map[string]string{"Host": "evil.example:8787"}},
	{"a rebound name like an address", map[string]string{"Host": "127.0.0.1.evil.example"}},
	{"a rebound name that ends like localhost", map[string]string{"Host": "evillocalhost"}},
	{"an address of another machine", map[string]string{"Host": "10.0.0.1"}},
}

// refusedAsForeign reports whether the cross-site rule refused a request, rather than
// another rule with the same status.
func refusedAsForeign(a answer) bool {
	message, _ := at(a.json, "error.message").(string)
	return a.StatusCode == http.StatusForbidden && at(a.json, "error.code") == "FORBIDDEN" &&
		(strings.Contains(message, "another site") || strings.Contains(message, "this Host"))
}

// guarded lists every request line that the rule covers.
func guarded(s *Server) []string {
	lines := []string{"GET /metrics", "GET /v1/sessions/cast?sessionId=nothing", "GET /v1/sessions/nothing/logs"}
	for key, r := range s.routes {
		if r.Access != rest.Platform {
			lines = append(lines, key.method+" "+strings.NewReplacer(":id", "nothing", ":", "").Replace(key.path))
		}
	}
	slices.Sort(lines)
	return lines
}

// withKey creates an API key and returns a client that sends it.
func (c *testClient) withKey(t *testing.T, role agent.Role, agents ...string) *testClient {
	t.Helper()
	_, secret, err := c.folder.CreateKey(t.Context(), agent.Key{Name: "k", Role: role, Agents: agents})
	if err != nil {
		t.Fatal(err)
	}
	return c.with("X-API-Key", secret)
}

// TestForeignPagesOverTheWholeTable sends attacks to every route in every mode of access,
// each without an API key; then the same without the attack, and with a key. In the open
// mode and behind an identity proxy, every route gets all attacks; in the other modes it
// gets some of them in turn.
func TestForeignPagesOverTheWholeTable(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	open, openServer := openWith(t, func(*Options) {})
	unlocked, unlockedServer := openWith(t, func(o *Options) { o.NoAuth = true })
	unlockedKey := unlocked.withKey(t, agent.RoleOwner, "*")
	closedByKey, keyServer := openWith(t, func(*Options) {})
	key := closedByKey.withKey(t, agent.RoleOwner, "*")
	proxy := newProxiedServer(t, nil)
	ada := proxy.as(t, "ada@example.com")
	proxyKey := proxy.withKey(t, agent.RoleOwner, "*")
	both := ada.with("X-API-Key", proxyKey.header.Get("X-API-Key"))
	for _, mode := range []struct {
		name   string
		server *Server
		caller *testClient // whom the rule protects
		exempt *testClient // the same with an API key; nil where keys do not count
		all    bool        // sends all attacks to every route
	}{
		{"open", openServer, open, nil, true},
		{"open, an invalid Authorization header", openServer, open.with("Authorization", "Bearer nothing"), nil, false},
		{"opened by the operator, with an unnecessary key", unlockedServer, unlockedKey, nil, false},
		{"closed by a key, unidentified", keyServer, closedByKey, key, false},
		{
			"closed by a key, credentials of another kind",
			keyServer,
			closedByKey.with("Authorization", "Basic YTpi"),
			key,
			false,
		},
		{"identity proxy, unidentified", proxy.server, proxy.testClient, proxyKey, false},
		{"identity proxy, an identity", proxy.server, ada, proxyKey, true},
		{"identity proxy, an identity and a key", proxy.server, both, proxyKey, false},
	} {
		t.Run(mode.name, func(t *testing.T) {
			tried, held := 0, 0
			for i, line := range guarded(mode.server) {
				method, target, _ := strings.Cut(line, " ")
				for j, a := range attacks {
					if !mode.all && (i+j)%7 != 0 {
						continue
					}
					tried++
					if got := a.sentBy(mode.caller).send(t, method, target, ""); refusedAsForeign(got) {
						held++
					} else {
						t.Errorf("%s, %s: %d %s", line, a.name, got.StatusCode, got.text)
					}
					if mode.exempt != nil && refusedAsForeign(a.sentBy(mode.exempt).send(t, method, target, "")) {
						t.Errorf("%s, %s: refused although an API key was sent", line, a.name)
					}
				}
				if got := mode.caller.send(t, method, target, ""); refusedAsForeign(got) {
					t.Errorf("%s of a program is refused: %s", line, got.text)
				}
			}
			t.Logf("%d attacks, %d refused", tried, held)
			least := 600
			if mode.all {
				least = 2000
			}
			if tried < least {
				t.Errorf("only %d attacks were tried", tried)
			}
		})
	}
}

// TestOwnPages sends requests that the rule must allow.
func TestOwnPages(t *testing.T) {
	star, _ := openWith(t, func(o *Options) { o.CORSConfigured = true })
	named, _ := openWith(t, func(o *Options) {
		o.CORSOrigins, o.CORSConfigured = []string{"https://app.example"}, true
	})
	secure, _ := openWith(t, func(o *Options) { o.PublicURL = "https://satchel.example:8443" })
	c := newProxiedServer(t, func(o *Options) { o.DefaultRole = agent.RoleViewer })
	own := strings.TrimPrefix(c.url, "http://")
	port := own[strings.LastIndex(own, ":"):]
	for _, tc := range []struct {
		name    string
		who     *testClient
		headers map[string]string
		status  int
	}{
		{"no headers of a browser", c.testClient, nil, 200},
		{"typed into the address bar", c.testClient, map[string]string{"Sec-Fetch-Site": "none"}, 200},
		{"own page", c.testClient, map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": c.url}, 200},
		{"own page, no Sec-Fetch-Site", c.testClient, map[string]string{"Origin": c.url}, 200},
		{
			"own page behind a proxy with TLS",
			c.testClient,
			map[string]string{"Origin": "https://satchel.example", "Host": "satchel.example"},
			200,
		},
		{"own page by the public address", c.testClient, map[string]string{"Origin": "http://satchel.example"}, 200},
		{
			"own page, with the default port",
			c.testClient,
			map[string]string{"Origin": "http://satchel.example", "Host": "satchel.example:80"},
			200,
		},
		{
			"the public address with a port",
			secure,
			map[string]string{"Origin": "https://satchel.example:8443", "Host": "satchel.example:8443"},
			200,
		},
		{
			"another port of the public host",
			secure,
			map[string]string{"Origin": "https://satchel.example", "Host": "satchel.example:8443"},
			403,
		},
		{"another scheme of the public host", secure, map[string]string{"Origin": "http://satchel.example:8443"}, 403},
		{
			"localhost",
			c.testClient,
			map[string]string{"Origin": "http://localhost" + port, "Host": "localhost" + port},
			200,
		},
		{
			"localhost with a dot",
			c.testClient,
			map[string]string{"Origin": "http://localhost." + port, "Host": "LOCALHOST." + port},
			200,
		},
		{
			"a subdomain of localhost",
			c.testClient,
			map[string]string{"Origin": "http://app.localhost" + port, "Host": "app.localhost" + port},
			200,
		},
		{"IPv6", c.testClient, map[string]string{"Origin": "http://[::1]" + port, "Host": "[::1]" + port}, 200},
		{"IPv6, no port", c.testClient, map[string]string{"Origin": "http://[::1]", "Host": "[::1]"}, 200},
		{"IPv4 within IPv6", c.testClient, map[string]string{"Host": "[::ffff:127.0.0.1]"}, 200},
		{
			"a tunnel's port",
			c.testClient,
			map[string]string{"Origin": "http://127.0.0.1:9", "Host": "127.0.0.1:9"},
			200,
		},
		{"localhost calls 127.0.0.1", c.testClient, map[string]string{"Origin": "http://localhost" + port}, 403},
		{
			"an allowed origin",
			named,
			map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://app.example"},
			200,
		},
		{"an allowed origin, no Sec-Fetch-Site", named, map[string]string{"Origin": "https://app.example"}, 200},
		{
			"an origin that is not allowed",
			named,
			map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
			403,
		},
		{"no origin where one is allowed", named, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{
			"every origin allowed",
			star,
			map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
			200,
		},
		{
			"a rebound name where every origin is allowed",
			star,
			map[string]string{"Origin": "https://evil.example", "Host": "evil.example"},
			403,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := attack{headers: tc.headers}.sentBy(tc.who).send(t, "GET", "/api/agents", "")
			if a.StatusCode != tc.status || a.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%d, want %d: %s", a.StatusCode, tc.status, a.text)
			}
		})
	}
	t.Run("two origins", func(t *testing.T) {
		next := c.with("Origin", c.url)
		next.header["Origin"] = append(next.header["Origin"], "https://evil.example")
		if a := next.send(t, "GET", "/api/agents", ""); a.StatusCode != http.StatusForbidden {
			t.Errorf("%d %s", a.StatusCode, a.text)
		}
	})
	t.Run("preflights and pages", func(t *testing.T) {
		for _, line := range []string{
			"OPTIONS /api/agents", "OPTIONS /mcp/default", "GET /", "GET /docs",
			"GET /console/app/main.js",
		} {
			method, target, _ := strings.Cut(line, " ")
			for _, a := range attacks {
				if got := a.sentBy(c.testClient).send(t, method, target, ""); got.StatusCode >= 400 ||
					got.Header.Get("Access-Control-Allow-Credentials") != "" {
					t.Errorf("%s, %s: %d", line, a.name, got.StatusCode)
				}
			}
		}
	})
}

// TestForeignHooks calls hooks as pages of other sites do: for a hook with a secret of
// its own the secret decides, for one without, the rule of all other routes.
func TestForeignHooks(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	c := newTestClient(t)
	hook := func(auth string) string {
		made := c.must(
			t, 201, "POST", flowBase,
			`{"name":"h","status":"active","nodes":[{"id":"s","type":"trigger","data":{"event":"webhook"`+
				auth+`}}],"edges":[]}`,
		)
		return "/api/agents/default/hooks/" + made["id"].(string)
	}
	bare, secret, public :=
		hook(""), hook(`,"auth":{"type":"header","name":"X-Hook-Token","value":"s3cret"}`),
		hook(`,"auth":{"type":"none"}`)
	tried := 0
	for _, a := range attacks {
		for _, tc := range []struct {
			name   string
			who    *testClient
			target string
			status int
		}{
			{"a hook without auth", c, bare, 403},
			{"a hook whose secret is missing", c, secret, 401},
			{"a hook whose secret is sent", c.with("X-Hook-Token", "s3cret"), secret, 200},
			{"a hook for everyone", c, public, 200},
		} {
			tried++
			if got := a.sentBy(tc.who).do(
				t,
				"POST",
				tc.target,
				strings.NewReader("a=b"),
				"application/x-www-form-urlencoded",
			); got.StatusCode != tc.status {
				t.Errorf("%s, %s: %d, want %d: %s", tc.name, a.name, got.StatusCode, tc.status, got.text)
			}
		}
	}
	t.Logf("%d calls", tried)
	if got := c.do(
		t,
		"POST",
		bare,
		strings.NewReader("a=b"),
		"application/x-www-form-urlencoded",
	); got.StatusCode != 200 {
		t.Errorf("a form from a program: %d %s", got.StatusCode, got.text)
	}
}

// TestBodiesThatPagesCanSend sends bodies that need no preflight to every route.
func TestBodiesThatPagesCanSend(t *testing.T) {
	c, server := openWith(t, func(*Options) {})
	c.must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	tried := 0
	for key, r := range server.routes {
		if r.Access == rest.Platform || r.OwnSecret {
			continue
		}
		path := strings.NewReplacer(":id", "bakery", ":", "").Replace(key.path)
		for _, media := range []string{
			"text/plain",
			"application/x-www-form-urlencoded",
			"text/plain; application/json",
			"application/jsonp",
			"",
		} {
			tried++
			if a := c.do(t, key.method, path, strings.NewReader("{}"), media); a.StatusCode != 415 ||
				!strings.Contains(a.text, "UNSUPPORTED_FORMAT") {
				t.Errorf("%v with %q: %d %s", key, media, a.StatusCode, a.text)
			}
		}
	}
	t.Logf("%d bodies, each refused", tried)
}
