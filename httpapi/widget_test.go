package httpapi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/gateways"
	"satchel/httpapi/apitest"
	"satchel/httpapi/rest"
	"satchel/store"
)

const shopOrigin = "https://shop.example.com"

// createWidget creates an active widget and returns its id, path and secret.
func (c *testClient) createWidget(tb testing.TB, config string) (id, path, secret string) {
	tb.Helper()
	made := c.must(tb, 201, "POST", "/api/agents/default/gateways", `{"type":"web","name":"Shop","config":`+config+`}`)
	id = made["id"].(string)
	if v := c.must(tb, 200, "POST", "/api/agents/default/gateways/"+id+"/verify", ""); v["success"] != true {
		tb.Fatalf("verified %v", v)
	}
	return id, "/widget/default/" + id, made["webhook_secret"].(string)
}

const shopWidget = `{"allowedOrigins":["` + shopOrigin + `"]}`

// asVisitor returns a client with the token of a new visitor.
func (c *testClient) asVisitor(tb testing.TB, path string) *testClient {
	tb.Helper()
	ticket := c.with("Origin", shopOrigin).must(tb, 200, "POST", path+"/ticket", "")["ticket"].(string)
	token := c.must(
		tb, 200, "POST", path+"/session",
		`{"ticket":"`+ticket+`","origin":"`+shopOrigin+`"}`,
	)["token"].(string)
	return c.with("Authorization", "Bearer "+token)
}

// TestWidgetFiles checks that any page may load the script, but only allowed origins may
// embed the frame.
func TestWidgetFiles(t *testing.T) {
	c := newTestClient(t)
	_, path, _ := c.createWidget(t, `{"allowedOrigins":["`+shopOrigin+`","http://localhost:3000"]}`)
	_, nowhere, _ := c.createWidget(t, `{}`)
	script := c.with("Accept-Encoding", "gzip").send(t, "GET", "/widget.js", "")
	if h := script.Header; script.StatusCode != 200 ||
		h.Get("Cross-Origin-Resource-Policy") != "cross-origin" ||
		h.Get("X-Content-Type-Options") != "nosniff" ||
		h.Get("Content-Encoding") != "gzip" ||
		len(script.text) > 4<<10 {
		t.Errorf("%d, %d bytes, %v", script.StatusCode, len(script.text), h)
	}
	first := 0 // bytes that the first click on the button loads
	for _, file := range []string{
		path,
		"/console/app/widget-frame.css",
		"/console/app/widget-frame.js",
		"/console/lib/preact.js",
	} {
		first += len(c.with("Accept-Encoding", "gzip").send(t, "GET", file, "").text)
	}
	if first > 25<<10 {
		t.Errorf("the widget is %d bytes long", first)
	}
	for at, ancestors := range map[string]string{path: shopOrigin + " http://localhost:3000", nowhere: "'none'"} {
		frame := c.send(t, "GET", at, "")
		policy := frame.Header.Get("Content-Security-Policy")
		if frame.StatusCode != 200 ||
			!strings.HasSuffix(policy, "frame-ancestors "+ancestors) ||
			!strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") ||
			frame.Header.Get("X-Frame-Options") != "" {
			t.Errorf("%d %s, %v", frame.StatusCode, policy, frame.Header)
		}
	}
	for _, unknown := range []string{
		"/widget/default/gateway-none",
		"/widget/agent-none/gateway-none",
		"/widget/default/gateway-none/settings",
		"/widget/default/gateway-none/stream",
	} {
		if a := c.with("Origin", shopOrigin).send(t, "GET", unknown, ""); a.StatusCode != 404 ||
			at(a.json, "error.code") != "NOT_FOUND" {
			t.Errorf("%s: %d %s", unknown, a.StatusCode, a.text)
		}
	}
}

// TestWidgetOrigins checks that the Origin header decides, and that only that origin may
// read the response.
func TestWidgetOrigins(t *testing.T) {
	c := newTestClient(t)
	_, path, _ := c.createWidget(t, shopWidget)
	_, nowhere, _ := c.createWidget(t, `{}`)
	for _, tc := range []struct {
		path, origin string
		status       int
	}{
		{path, shopOrigin, 200},
		{path, "", 403},
		{path, "null", 403},
		{path, "https://evil.example", 403},
		{path, c.url, 403},
		{path, "HTTPS://shop.example.com", 403},
		{path, shopOrigin + ".evil.example", 403},
		{nowhere, shopOrigin, 403},
		{nowhere, "null", 403},
	} {
		for _, call := range []string{"POST /ticket", "GET /settings"} {
			method, what, _ := strings.Cut(call, " ")
			a := c.with("Origin", tc.origin).send(t, method, tc.path+what, "")
			allowed := a.Header.Get("Access-Control-Allow-Origin")
			if a.StatusCode != tc.status ||
				(tc.status == 200) != (allowed == tc.origin && allowed != "") ||
				a.Header.Get("Vary") != "Origin" ||
				a.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s from %q: %d, readable by %q, %s", call, tc.origin, a.StatusCode, allowed, a.text)
			}
		}
	}
	body := `{"ticket":"` + c.with("Origin", shopOrigin).must(t, 200, "POST", path+"/ticket", "")["ticket"].(string) +
		`","origin":"` + shopOrigin + `"}`
	entered := c.send(t, "POST", path+"/session", body)
	if entered.StatusCode != 200 || len(entered.Cookies()) != 0 || entered.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", entered.StatusCode, entered.Header)
	}
	c.must(t, 401, "POST", path+"/session", body) // a second time
	for bad, status := range map[string]int{
		`{"origin":"` + shopOrigin + `"}`: 401,
		`{"ticket":"x"}`:                  401,
		`x`:                               400,
		`{"ticket":1}`:                    400,
		`{"ticket":"` + strings.Repeat("x", 70_000) + `"}`: 413,
	} {
		if a := c.send(t, "POST", path+"/session", bad); a.StatusCode != status {
			t.Errorf("%.40s: %d %s", bad, a.StatusCode, a.text)
		}
	}
}

// visitorEvents opens a visitor's stream; the function reads the next event.
func (c *testClient) visitorEvents(t *testing.T, path, after string) func() (string, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", c.url+path+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = c.header.Clone()
	req.Header.Set("Last-Event-ID", after)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != 200 {
		t.Fatalf("the stream has the status %d", resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	return func() (name string, data map[string]any) {
		t.Helper()
		for lines.Scan() {
			switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
			case "event":
				name = value
			case "data":
				if err := json.Unmarshal([]byte(value), &data); err != nil {
					t.Fatal(err)
				}
				return name, data
			}
		}
		t.Fatal("the stream has ended")
		return "", nil
	}
}

// waitEvent reads events up to the first with a name that matches.
func waitEvent(
	t *testing.T,
	next func() (string, map[string]any),
	name string,
	fits func(map[string]any) bool,
) map[string]any {
	t.Helper()
	for {
		if got, data := next(); got == name && fits(data) {
			return data
		}
	}
}

func anyEvent(map[string]any) bool { return true }

// TestVisitorTalks checks that a visitor's question is answered by the model from a
// source, then by a person, and that visitors do not see each other's messages.
func TestVisitorTalks(t *testing.T) {
	c := newTestClient(t)
	model := apitest.NewFixedModel(t, "Within two days [1]. "+hostile)
	c.must(
		t,
		201,
		"POST",
		"/api/agents/default/tools",
		`{"name":"refund","description":"Pays back","type":"function","config":{"code":"return 1"}}`,
	)
	c.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"openai-compatible","llm_base_url":"`+model+
			`","llm_api_key":"k","llm_model":"small","auto_reply":true}`,
	)
	source := c.upload(t, "/api/agents/default/sources", "handbook.md", handbook, nil)
	c.waitIndexed(t, "/api/agents/default/sources/"+source.json["id"].(string))
	_, path, _ := c.createWidget(t, shopWidget)
	ada, bob := c.asVisitor(t, path), c.asVisitor(t, path)
	next := ada.visitorEvents(t, path, "")
	if hello := waitEvent(t, next, "hello", anyEvent); hello["title"] != "Ask us" || hello["ask_email"] != "offline" {
		t.Errorf("%v", hello)
	}
	waitEvent(t, next, "state", func(s map[string]any) bool { return s["bot"] == true && s["open"] == true })
	question := `{"id":"one","text":"How long may I return bread?"}`
	ada.must(t, 201, "POST", path+"/messages", question)
	ada.must(t, 200, "POST", path+"/messages", question) // a repeat
	if said := waitEvent(t, next, "message", anyEvent); said["from"] != "visitor" || said["client_id"] != "one" {
		t.Errorf("%v", said)
	}
	answer := waitEvent(t, next, "message", anyEvent)
	if fmt.Sprint(answer["sources"]) != "[map[n:1 name:handbook.md]]" ||
		answer["from"] != "bot" ||
		!strings.Contains(answer["text"].(string), "<script>") {
		t.Errorf("%v", answer)
	}
	for name := range answer {
		if !strings.Contains("id from text sources created_at", name) {
			t.Errorf("a visitor sees %s", name)
		}
	}
	ada.must(t, 201, "POST", path+"/messages", `{"id":"two","text":"A person, please","person":true}`)
	waitEvent(t, next, "state", func(s map[string]any) bool { return s["needs_human"] == true && s["person"] == true })
	waiting := c.must(t, 200, "GET", "/api/agents/default/waiting", "")
	if fmt.Sprint(at(waiting, "waiting.0.kind")) != "handover" {
		t.Errorf("%v", waiting)
	}
	conversation := at(waiting, "waiting.0.conversation_id").(string)
	c.must(
		t,
		201,
		"POST",
		"/api/agents/default/conversations/"+conversation+"/messages",
		`{"role":"note","content":"a secret note"}`,
	)
	c.must(
		t,
		201,
		"POST",
		"/api/agents/default/conversations/"+conversation+"/messages",
		`{"role":"assistant","content":"Here I am","send":true}`,
	)
	if said := waitEvent(t, next, "message", func(m map[string]any) bool {
		return m["from"] != "visitor"
	}); said["text"] != "Here I am" ||
		said["from"] != "person" {
		t.Errorf("%v", said)
	}
	again := ada.visitorEvents(t, path, fmt.Sprint(answer["id"]))
	for _, want := range []string{"A person, please", "Here I am"} {
		if said := waitEvent(t, again, "message", anyEvent); said["text"] != want {
			t.Errorf("after a reconnect %v, want %s", said, want)
		}
	}
	theirs := bob.visitorEvents(t, path, "")
	if name, data := theirs(); name != "hello" {
		t.Errorf("%s %v", name, data)
	}
	if name, data := theirs(); name != "state" || data["needs_human"] != false {
		t.Errorf("another visitor sees %s %v", name, data)
	}
	list := c.must(t, 200, "GET", "/api/agents/default/conversations", "")
	if at(list, "conversations.0.gateway.type") != "web" || at(list, "meta.total") != json.Number("1") {
		t.Errorf("%v", list)
	}
}

// TestVisitorLimits checks that messages are limited per visitor and per address, apart
// from other requests.
func TestVisitorLimits(t *testing.T) {
	folder, server := openService(t)
	server.limiter = rest.NewLimiter(map[string]int{"general": 1000, "widget": 30}, nil, func() time.Time {
		return time.Unix(1_800_000_010, 0)
	})
	ts := httptest.NewServer(server.Handler())
	t.Cleanup(ts.Close)
	c := &testClient{url: ts.URL, folder: folder, header: http.Header{}}
	_, path, _ := c.createWidget(t, shopWidget)
	clients := []*testClient{c.asVisitor(t, path), c.asVisitor(t, path), c.asVisitor(t, path), c.asVisitor(t, path)}
	codes := map[int]int{}
	for n := range 11 {
		codes[clients[0].send(t, "POST", path+"/messages", fmt.Sprintf(`{"id":"%d","text":"Hi"}`, n)).StatusCode]++
	}
	if codes[201] != 10 || codes[429] != 1 {
		t.Errorf("one visitor: %v", codes)
	}
	codes = map[int]int{}
	for n := range 24 {
		a := clients[1+n%3].send(t, "POST", path+"/messages", fmt.Sprintf(`{"id":"%d","text":"Hi"}`, n))
		if codes[a.StatusCode]++; a.StatusCode == 429 && a.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	if codes[201] != 15 || codes[429] != 9 { // after 4 new visitors and 11 messages
		t.Errorf("one address: %v", codes)
	}
	c.must(t, 200, "GET", "/api/agents/default/gateways", "")
	for name, bad := range map[string]string{
		"text":  `{"id":"x","text":""}`,
		"id":    `{"text":"x"}`,
		"email": `{"id":"x","text":"x","email":"x"}`,
	} {
		other := newTestClient(t)
		_, path, _ := other.createWidget(t, shopWidget)
		a := other.asVisitor(t, path).send(t, "POST", path+"/messages", bad)
		if a.StatusCode != 400 || at(a.json, "error.details.field") != name {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.text)
		}
	}
}

// TestVisitorMessageLength checks that a message may have 4,000 characters, however many
// bytes they take.
func TestVisitorMessageLength(t *testing.T) {
	c := newTestClient(t)
	_, path, _ := c.createWidget(t, shopWidget)
	ada := c.asVisitor(t, path)
	ada.must(t, 201, "POST", path+"/messages", `{"id":"1","text":"`+strings.Repeat("é", 4000)+`"}`)
	if a := ada.send(
		t,
		"POST",
		path+"/messages",
		`{"id":"2","text":"`+strings.Repeat("x", 4001)+`"}`,
	); a.StatusCode != 400 || at(a.json, "error.details.field") != "text" {
		t.Errorf("4,001 characters: %d %s", a.StatusCode, a.text)
	}
}

// TestWidgetDailyLimit checks that the visitors of a widget together may send so many
// messages a day, and that a stored message is confirmed even beyond that.
func TestWidgetDailyLimit(t *testing.T) {
	c := newTestClient(t)
	_, path, _ := c.createWidget(t, `{"allowedOrigins":["`+shopOrigin+`"],"messagesPerDay":2}`)
	ada, bob := c.asVisitor(t, path), c.asVisitor(t, path)
	ada.must(t, 201, "POST", path+"/messages", `{"id":"1","text":"Hi"}`)
	bob.must(t, 201, "POST", path+"/messages", `{"id":"1","text":"Hi"}`)
	a := bob.send(t, "POST", path+"/messages", `{"id":"2","text":"Hi"}`)
	if a.StatusCode != 429 ||
		at(a.json, "error.code") != "RATE_LIMITED" ||
		at(a.json, "error.details.limit") != json.Number("2") {
		t.Errorf("the third message: %d %s", a.StatusCode, a.text)
	}
	ada.must(t, 200, "POST", path+"/messages", `{"id":"1","text":"Hi"}`)
}

// TestVisitorsOnly checks that a widget needs its own visitor token, and that the token
// gives access to nothing else.
func TestVisitorsOnly(t *testing.T) {
	c := newOwnClient(t)
	id, path, _ := c.createWidget(t, shopWidget)
	_, other, _ := c.createWidget(t, shopWidget)
	ada := c.asVisitor(t, path)
	c.must(t, 201, "POST", "/api/keys", `{"name":"k","role":"owner","agents":["*"]}`) // closes the server
	for _, call := range []string{"POST /messages", "POST /email", "GET /stream"} {
		method, what, _ := strings.Cut(call, " ")
		for name, client := range map[string]*testClient{"nobody": c, "another widget's": ada} {
			at := path
			if name != "nobody" {
				at = other
			}
			if a := client.send(
				t,
				method,
				at+what,
				`{"id":"1","text":"x","email":"a@b.example"}`,
			); a.StatusCode != 401 {
				t.Errorf("%s of %s: %d", call, name, a.StatusCode)
			}
		}
	}
	for _, at := range []string{
		"/api/agents/default",
		"/api/agents/default/conversations",
		"/api/agents/default/gateways/" + id + "/widget",
	} {
		if a := ada.send(t, "GET", at, ""); a.StatusCode != 401 {
			t.Errorf("a visitor's token at %s: %d", at, a.StatusCode)
		}
	}
	ada.must(t, 201, "POST", path+"/messages", `{"id":"1","text":"Hello"}`)
	if a := ada.send(t, "POST", path+"/email", `{"email":"ada@example.com"}`); a.StatusCode != 204 {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	if _, err := c.db().UpdateGateway(
		t.Context(),
		id,
		agent.GatewayChange{Config: agent.Some(agent.GatewayConfigChange{})},
		func(agent.GatewayType, *agent.GatewayConfig) error { return nil },
	); err != nil {
		t.Fatal(err)
	}
	if a := ada.send(t, "POST", path+"/messages", `{"id":"2","text":"Hello"}`); a.StatusCode != 404 {
		t.Errorf("to a widget that is not active: %d", a.StatusCode)
	}
}

// TestWidgetOptions checks that the response has what the console's form shows, and no
// secret.
func TestWidgetOptions(t *testing.T) {
	c := newOwnClient(t)
	id, _, secret := c.createWidget(
		t,
		`{"allowedOrigins":["https://Shop.example.com/"],"greeting":"Hi","secret":"s3cret-of-mine"}`,
	)
	a := c.send(t, "GET", "/api/agents/default/gateways/"+id+"/widget", "")
	if at(a.json, "config.allowedOrigins.0") != shopOrigin ||
		at(a.json, "config.greeting") != "Hi" ||
		at(a.json, "config.messagesPerDay") != json.Number("500") ||
		!strings.Contains(a.text, `data-widget=\"default/`+id+`\"`) ||
		strings.Contains(a.text, secret) ||
		strings.Contains(a.text, "s3cret") {
		t.Errorf("%s", a.text)
	}
	bot := c.must(t, 201, "POST", "/api/agents/default/gateways", `{"type":"telegram","name":"Bot"}`)["id"].(string)
	c.must(t, 400, "GET", "/api/agents/default/gateways/"+bot+"/widget", "")
	for field, config := range map[string]string{
		"config.allowedOrigins": `{"allowedOrigins":["*"]}`,
		"config.color":          `{"color":"red"}`,
		"config.hours":          `{"hours":"always"}`,
		"config.askEmail":       `{"askEmail":"x"}`,
		"config.messagesPerDay": `{"messagesPerDay":-1}`,
		"config.greeting":       `{"greeting":"` + strings.Repeat("x", 1001) + `"}`,
	} {
		if a := c.send(
			t,
			"POST",
			"/api/agents/default/gateways",
			`{"type":"web","name":"x","config":`+config+`}`,
		); a.StatusCode != 400 || at(a.json, "error.details.field") != field {
			t.Errorf("%s: %d %s", field, a.StatusCode, a.text)
		}
	}
}

// TestNetworkHasShareOfWidget: a visitor who sends what they can, from one network, leaves
// others room to begin, and who has begun can go on after no others can begin.
func TestNetworkHasShareOfWidget(t *testing.T) {
	c, _ := openWith(t, func(o *Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		o.Gateways = gateways.New(gateways.Options{Env: store.Env{Folder: o.Folder, Log: o.Log}})
	})
	from := func(address string) *testClient { return c.with("X-Forwarded-For", address) }
	for _, limit := range []int{8, 12, 40} {
		_, path, _ := c.createWidget(
			t,
			fmt.Sprintf(`{"allowedOrigins":["%s"],"messagesPerDay":%d,"messagesPerMinute":100}`, shopOrigin, limit),
		)
		sent := 0
		// send sends a message and reports whether it was accepted.
		send := func(v *testClient) bool {
			sent++
			a := v.send(t, "POST", path+"/messages", fmt.Sprintf(`{"id":"%d","text":"Hi"}`, sent))
			if a.StatusCode != 201 && (a.StatusCode != 429 || at(a.json, "error.code") != "RATE_LIMITED") {
				t.Fatalf("%d %s", a.StatusCode, a.text)
			}
			return a.StatusCode == 201
		}
		accepted := func(v *testClient) (n int) {
			for send(v) {
				n++
			}
			return n
		}
		ada := from("192.0.2.1").asVisitor(t, path)
		if !send(ada) {
			t.Fatal("the first message is refused")
		}
		// The same network by other addresses of its /64, and as new visitors.
		n := 0
		for i := range 2 * limit {
			if send(from(fmt.Sprintf("2001:db8:0:1::%x", i+1)).asVisitor(t, path)) {
				n++
			}
		}
		if n == 0 || n > limit/4 {
			t.Errorf("limit %d: new visitors of one network send %d messages", limit, n)
		}
		one := from("198.51.100.7").asVisitor(t, path)
		if n := accepted(one); n == 0 || n > limit/4 {
			t.Errorf("limit %d: one visitor sends %d messages", limit, n)
		}
		if n := accepted(from("198.51.100.7").asVisitor(t, path)); n != 0 {
			t.Errorf("limit %d: their next visitor sends %d messages", limit, n)
		}
		for i := 0; send(from(fmt.Sprintf("203.0.113.%d", i+1)).asVisitor(t, path)); i++ {
			if i > limit {
				t.Fatalf("limit %d: no end of new visitors", limit)
			}
		}
		if !send(ada) {
			t.Errorf("limit %d: a conversation that has begun is refused", limit)
		}
	}
}
