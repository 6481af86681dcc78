package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/gateways"
	"satchel/httpapi/rest"
	"satchel/store"
)

// hooked creates an active custom webhook and returns its path and a client that knows
// its secret.
func (c *testClient) hooked(tb testing.TB, agent string) (id, path string, platform *testClient) {
	tb.Helper()
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	tb.Cleanup(target.Close)
	made := c.must(
		tb,
		201,
		"POST",
		"/api/agents/"+agent+"/gateways",
		`{"type":"webhook","name":"Shop","config":{"url":"`+target.URL+`"}}`,
	)
	id = made["id"].(string)
	if v := c.must(tb, 200, "POST", "/api/agents/"+agent+"/gateways/"+id+"/verify", ""); v["success"] != true {
		tb.Fatalf("verified %v", v)
	}
	anonymous := &testClient{url: c.url, folder: c.folder, header: http.Header{}}
	return id, made["webhook_url"].(string), anonymous.with("X-Webhook-Secret", made["webhook_secret"].(string))
}

// TestPostsOfPlatforms posts over HTTP what a platform may send and what others may not.
func TestPostsOfPlatforms(t *testing.T) {
	c := newTestClient(t)
	id, path, platform := c.hooked(t, "default")
	for _, tc := range []struct {
		name   string
		client *testClient
		media  string
		body   string
		status int
	}{
		{"as JSON", platform, "application/json", `{"id":"1","from":"ada","text":"Hello"}`, 200},
		{"as something else", platform, "text/plain", `{"id":"2","from":"ada","text":"Hello"}`, 200},
		{"without a media type", platform, "", `{"id":"3","from":"ada","text":"Hello"}`, 200},
		{
			"as another site's page could",
			platform.with("Sec-Fetch-Site", "cross-site").with("Origin", "https://evil.example"),
			"text/plain",
			`{"id":"4","from":"ada","text":"Hello"}`,
			200,
		},
		{
			"under another host",
			platform.with("Host", "tunnel.example"),
			"application/json",
			`{"id":"5","from":"ada","text":"Hello"}`,
			200,
		},
		{
			"with a strange bearer",
			platform.with("Authorization", "Bearer theirs"),
			"application/json",
			`{"id":"6","from":"ada","text":"Hello"}`,
			200,
		},
		{
			"without the secret",
			&testClient{url: c.url, header: http.Header{}},
			"application/json",
			`{"id":"7","from":"ada","text":"Hello"}`,
			401,
		},
		{"one byte too many", platform, "application/json", `"` + strings.Repeat("x", gateways.MaxPost-1) + `"`, 413},
		{"ten megabytes", platform, "application/json", strings.Repeat("x", 10<<20), 413},
		{"as much as fits", platform, "application/json", `"` + strings.Repeat("x", gateways.MaxPost-2) + `"`, 200},
		{"garbage", platform, "application/json", "\x00\x01\xff", 400},
	} {
		a := tc.client.do(t, "POST", path, strings.NewReader(tc.body), tc.media)
		if a.StatusCode != tc.status {
			t.Errorf("%s: %d, want %d: %.200s", tc.name, a.StatusCode, tc.status, a.text)
		}
		if a.StatusCode >= 400 && at(a.json, "error.code") == nil {
			t.Errorf("%s: not the error envelope: %s", tc.name, a.text)
		}
	}
	unsized, err := http.NewRequestWithContext(
		t.Context(),
		"POST",
		c.url+path,
		io.MultiReader(strings.NewReader(strings.Repeat(" ", gateways.MaxPost+5))),
	)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultTransport.RoundTrip(unsized); err != nil || resp.StatusCode != 413 {
		t.Errorf("of unknown length: %v, %v", resp, err)
	} else {
		_ = resp.Body.Close()
	}
	g := c.must(t, 200, "GET", "/api/agents/default/gateways/"+id, "")
	if g["event_count"] != json.Number("7") ||
		g["events_today"] != json.Number("7") ||
		g["last_event_at"] == nil ||
		g["last_error"] == "" {
		t.Errorf("counted %v", g)
	}
	for _, nowhere := range []string{
		"/api/agents/default/gateways/gateway-none/webhook",
		"/api/agents/agent-none/gateways/" + id + "/webhook",
	} {
		apiCase{"nowhere", "POST", nowhere, `{}`, 404, code("NOT_FOUND")}.run(t, platform)
	}
}

// Under access control platforms need no identity, and a disabled agent accepts nothing.
func TestPostsUnderAccessControl(t *testing.T) {
	platforms := func(o *Options) {
		o.Gateways = gateways.New(gateways.Options{
			Env: store.Env{Folder: o.Folder, Allow: agent.MustAddressRanges("127.0.0.0/8"), Log: o.Log},
		})
	}
	c := newProxiedServer(t, platforms)
	ada := c.as(t, "ada@example.com")
	ada.must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	_, path, platform := ada.hooked(t, "bakery")
	apiCase{
		"by a platform",
		"POST",
		path,
		`{"from":"x","text":"Hello"}`,
		200,
		map[string]any{"success": true},
	}.run(t, platform)
	apiCase{
		"by the agent's name",
		"POST",
		strings.Replace(path, strings.Split(path, "/")[3], "bakery", 1),
		`{"from":"x","text":"Hello"}`,
		200,
		nil,
	}.run(t, platform)
	apiCase{
		"by anybody else",
		"POST",
		path,
		`{"from":"x","text":"Hello"}`,
		401,
		code("UNAUTHORIZED"),
	}.run(t, c.testClient)
	apiCase{
		"with an invalid key",
		"POST",
		path,
		`{"from":"x","text":"Hello"}`,
		200,
		nil,
	}.run(t, platform.with("X-API-Key", "satchel_nonsense"))
	apiCase{
		"no such agent",
		"POST",
		"/api/agents/agent-x/gateways/gateway-x/webhook",
		`{}`,
		404,
		code("NOT_FOUND"),
	}.run(t, c.testClient)
	apiCase{"register without an identity", "POST", path + "/register", ``, 403, nil}.run(t, c.testClient)
	ada.must(t, 200, "PUT", "/api/agents/bakery", `{"status":"paused"}`)
	apiCase{"paused", "POST", path, `{"from":"x","text":"Hello"}`, 200, nil}.run(t, platform)
	ada.must(t, 200, "PUT", "/api/agents/bakery", `{"status":"disabled"}`)
	apiCase{"disabled", "POST", path, `{"from":"x","text":"Hello"}`, 403, code("AGENT_DISABLED")}.run(t, platform)
}

// A gateway's posts have a limit of their own, 600 a minute, whoever sends them; unknown
// gateways count for the caller.
func TestRateOfPosts(t *testing.T) {
	now := time.Unix(1_800_000_010, 0)
	c, server := openWith(t, func(o *Options) {
		o.Gateways = gateways.New(gateways.Options{
			Env: store.Env{Folder: o.Folder, Allow: agent.MustAddressRanges("127.0.0.0/8"), Log: o.Log},
		})
	})
	_, path, platform := c.hooked(t, "default")
	_, other, another := c.hooked(t, "default")
	server.limiter = rest.NewLimiter(map[string]int{"general": 3}, nil, func() time.Time { return now })
	apiCase{"the first, which finds the gateway", "POST", path, `{}`, 200, nil}.run(t, platform)
	for n := range 600 {
		a := platform.send(t, "POST", path, `{}`)
		if a.StatusCode != 200 ||
			a.Header.Get("X-RateLimit-Remaining") != fmt.Sprint(600-1-n) ||
			a.Header.Get("X-RateLimit-Limit") != "600" {
			t.Fatalf("post %d: %d, %v", n, a.StatusCode, a.Header)
		}
	}
	apiCase{
		"one too many", "POST", path, `{}`, 429,
		map[string]any{"error.code": "RATE_LIMITED", "error.details.limit": "600"},
	}.run(t, platform)
	apiCase{"another gateway", "POST", other, `{}`, 200, nil}.run(t, another)
	apiCase{"another class", "GET", "/api/agents", ``, 200, nil}.run(t, c)
	last := 0
	for n := range 600 {
		last = platform.send(
			t,
			"POST",
			fmt.Sprint("/api/agents/default/gateways/gateway-", n, "/webhook"),
			`{}`,
		).StatusCode
	}
	if last != 429 {
		t.Errorf("unknown gateways are not limited: %d", last)
	}
	apiCase{"a gateway that exists", "POST", other, `{}`, 200, nil}.run(t, another)
}

// A trigger may be limited to one gateway; triggers of a paused agent do not run.
func TestTriggerOfGateway(t *testing.T) {
	c := newTestClient(t)
	id, path, platform := c.hooked(t, "default")
	_, other, another := c.hooked(t, "default")
	workflow := func(name, trigger string) string {
		made := c.must(
			t,
			201,
			"POST",
			"/api/agents/default/workflows",
			`{"name":"`+name+`","status":"active","nodes":[{"id":"t","type":"trigger","data":`+trigger+
				`},{"id":"s","type":"set","data":{"values":{"text":"{{message.content}}","who":"{{contact.name}}",`+
				`"by":"{{gateway.id}}"}}}],"edges":[{"id":"e","source":"t","target":"s"}],`+
				`"settings":{"on_conflict":"queue"}}`,
		)
		return made["id"].(string)
	}
	one := workflow("one", `{"event":"message.received","gateway_id":"`+id+`"}`)
	all := workflow("all", `{"event":"message.received"}`)
	events := workflow("events", `{"event":"gateway.event","gateway_id":"`+id+`"}`)
	platform.must(t, 200, "POST", path, `{"id":"1","from":"ada","name":"Ada","text":"to the one"}`)
	another.must(t, 200, "POST", other, `{"id":"2","from":"bob","text":"to the other"}`)
	platform.must(t, 200, "POST", path, `{"id":"3","kind":"reaction"}`)
	another.must(t, 200, "POST", other, `{"id":"4","kind":"reaction"}`)
	ended := func(workflow string, n int) (list []any) {
		t.Helper()
		c.until(t, streamPath, fmt.Sprintf("has %d executions of %s that ended", n, workflow), func() bool {
			list = c.must(
				t,
				200,
				"GET",
				"/api/agents/default/workflows/executions?status=complete&workflow_id="+workflow,
				"",
			)["executions"].([]any)
			return len(list) >= n
		})
		for i := range list {
			list[i] = any(c.must(
				t,
				200,
				"GET",
				"/api/agents/default/workflows/executions/"+at(list[i], "id").(string),
				"",
			))
		}
		return list
	}
	if got := ended(all, 2); len(got) != 2 {
		t.Fatalf("the trigger on all gateways: %v", got)
	}
	got := ended(one, 1)
	if len(got) != 1 ||
		at(got[0], "output.text") != "to the one" ||
		at(got[0], "output.who") != "Ada" ||
		at(got[0], "output.by") != id {
		t.Errorf("the trigger on one gateway: %v", got)
	}
	if got := ended(events, 1); len(got) != 1 || at(got[0], "input.payload.kind") != "reaction" {
		t.Errorf("the trigger on events of one gateway: %v", got)
	}
	c.must(t, 200, "PUT", "/api/agents/default", `{"status":"paused"}`)
	platform.must(t, 200, "POST", path, `{"id":"5","from":"ada","text":"while paused"}`)
	c.must(t, 200, "PUT", "/api/agents/default", `{"status":"active"}`)
	platform.must(t, 200, "POST", path, `{"id":"6","from":"ada","text":"awake again"}`)
	for _, x := range ended(one, 2) {
		if at(x, "output.text") == "while paused" {
			t.Error("a message to a paused agent started a workflow")
		}
	}
}

// TestUnauthenticPostsUseUpNothing: posts that a stranger sends to a gateway without its
// secret do not count among those of the platform.
func TestUnauthenticPostsUseUpNothing(t *testing.T) {
	c, server := openWith(t, func(o *Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		o.Gateways = gateways.New(gateways.Options{Env: store.Env{Folder: o.Folder, Log: o.Log}})
	})
	start := func() time.Time { return time.Unix(1_800_000_000, 0) }
	server.limiter = rest.NewLimiter(map[string]int{"general": 100}, server.options.TrustedProxies, start)
	made := c.must(t, 201, "POST", "/api/agents/default/gateways", `{"type":"webhook","name":"In"}`)
	path, secret := "/api/agents/default/gateways/"+made["id"].(string)+"/webhook", made["webhook_secret"].(string)
	stranger := c.with("X-Forwarded-For", "192.0.2.1")
	status := 0
	for range rest.InboundLimit + 2 {
		status = stranger.send(t, "POST", path, `{"from":"eve","text":"Hi"}`).StatusCode
	}
	if status != 429 {
		t.Errorf("a stranger's posts end with %d", status)
	}
	platform := c.with("X-Forwarded-For", "192.0.2.2").with("X-Webhook-Secret", secret)
	for range rest.InboundLimit {
		if status = platform.send(t, "POST", path, `{"from":"ada","text":"Hi"}`).StatusCode; status != 200 {
			t.Fatalf("the platform's post: %d", status)
		}
	}
	if a := platform.with("X-Forwarded-For", "192.0.2.3").send(
		t,
		"POST",
		path,
		`{"from":"ada","text":"Hi"}`,
	); a.StatusCode != 429 {
		t.Errorf("the platform's posts over the limit: %d %s", a.StatusCode, a.text)
	}
}
