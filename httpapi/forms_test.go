package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"satchel/agent"
)

const contactForm = `"event":"form","title":"Contact <us>","fields":[{"name":"email","type":"email","required":true,"label":"Your \"mail\" <b>"},
	{"name":"kind","type":"choice","options":["a","<script>alert(1)</script>"]},{"name":"tags","type":"choices","options":["x","y"]},{"name":"n","type":"number"},
	{"name":"ok","type":"boolean"},{"name":"day","type":"date"},{"name":"text","type":"long_text"},{"name":"cv","type":"file"}]`

// newFormServer starts a server with access control and an agent with a form
// whose submissions become rows.
func newFormServer(t *testing.T, change func(*Options)) (*proxiedServer, *testClient) {
	t.Helper()
	c := newProxiedServer(t, change)
	if err := c.server.flow.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.server.flow.Stop)
	owner := c.as(t, "owner@example.com")
	owner.must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	owner.must(t, 201, "POST", "/api/agents/bakery/tables", `{"name":"sent","columns":[{"name":"email","type":"text"},{"name":"kind","type":"text"},{"name":"tags","type":"json"},
		{"name":"n","type":"number"},{"name":"ok","type":"boolean"},{"name":"day","type":"time"},{"name":"text","type":"text"},{"name":"cv","type":"json"}]}`)
	return c, owner
}

// createForm creates an active workflow with a form, and returns its path.
func createForm(t *testing.T, owner *testClient, trigger, more string) string {
	t.Helper()
	if more == "" {
		more = `{"id":"row","type":"table","data":{"table":"sent","operation":"insert","row":"{{values}}"}}],` +
			`"edges":[{"source":"t","target":"row"}]`
	}
	made := owner.must(
		t,
		201,
		"POST",
		"/api/agents/bakery/workflows",
		`{"name":"w","status":"active","settings":{"concurrency":50},"nodes":[{"id":"t","type":"trigger","data":{`+
			trigger+`}},`+more+`}`,
	)
	agentID := owner.must(t, 200, "GET", "/api/agents/bakery", "")["id"].(string)
	return "/f/" + agentID + "/" + made["id"].(string)
}

const openToAll = `,"auth":{"type":"none"}`

func (c *testClient) submit(t *testing.T, path string, values url.Values) answer {
	t.Helper()
	return c.do(t, "POST", path, strings.NewReader(values.Encode()), "application/x-www-form-urlencoded")
}

// waitForRows waits for the executions and returns the rows that they added.
func waitForRows(t *testing.T, c *proxiedServer, owner *testClient) []any {
	t.Helper()
	db, err := c.folder.Agent("bakery")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range owner.must(t, 200, "GET", "/api/agents/bakery/workflows/executions", "")["executions"].([]any) {
		ended, err := c.server.flow.Await(t.Context(), db, at(x, "id").(string))
		if err != nil || ended.Status != agent.ExecutionComplete {
			t.Fatalf("%s %v %v", ended.Status, ended.Error, err)
		}
	}
	return owner.must(t, 200, "GET", "/api/agents/bakery/tables/sent/rows", "")["rows"].([]any)
}

// TestForm serves a form to a client without an identity, accepts submissions, also from
// a page of another site, and has a workflow create a row from each.
func TestForm(t *testing.T) {
	c, owner := newFormServer(t, nil)
	path := createForm(t, owner, contactForm+openToAll, "")
	page := c.send(t, "GET", path+"?email=a@x&kind=a&nobody="+url.QueryEscape(`"><script>`), "")
	if page.StatusCode != 200 ||
		!strings.Contains(page.text, "Contact &lt;us&gt;") ||
		strings.Contains(page.text, "<script") ||
		strings.Contains(page.text, "<us>") ||
		!strings.Contains(page.text, `value="a@x"`) ||
		!strings.Contains(page.text, `enctype="multipart/form-data"`) {
		t.Fatalf("%d %s", page.StatusCode, page.text)
	}
	if policy := page.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") ||
		strings.Contains(policy, "script") {
		t.Errorf("policy %s", policy)
	}
	hostile := "'); DROP TABLE x; -- {{agent}} <img src=x onerror=alert(1)>"
	foreign := c.with("Origin", "https://elsewhere.example").with("Sec-Fetch-Site", "cross-site")
	sent := foreign.submit(t, path, url.Values{
		"email": {"ada@example.com"},
		"kind":  {"<script>alert(1)</script>"},
		"tags":  {"x", "y"},
		"n":     {"1.5"},
		"ok":    {"true"},
		"day":   {"2026-01-31"},
		"text":  {hostile},
	})
	if sent.StatusCode != 200 || !strings.Contains(sent.text, "Thank you") {
		t.Fatalf("%d %s", sent.StatusCode, sent.text)
	}
	rows := waitForRows(t, c, owner)
	if len(rows) != 1 ||
		at(rows[0], "text") != hostile ||
		fmt.Sprintf("%v %v %v", at(rows[0], "tags"), at(rows[0], "n"), at(rows[0], "ok")) != "[x y] 1.5 true" {
		t.Errorf("%v", rows)
	}
	wrong := c.submit(t, path, url.Values{"email": {"nobody"}, "kind": {"other"}, "n": {"many"}, "text": {"kept <b>"}})
	if wrong.StatusCode != 400 ||
		strings.Count(wrong.text, `class="note error"`) != 3 ||
		!strings.Contains(wrong.text, "kept &lt;b&gt;") {
		t.Errorf("%d %s", wrong.StatusCode, wrong.text)
	}
	if a := c.send(
		t,
		"POST",
		path,
		`{"email":"bob@example.com","tags":["y"],"ok":true}`,
	); a.StatusCode != 200 || at(a.json, "execution_id") == "" {
		t.Errorf("JSON: %d %s", a.StatusCode, a.text)
	}
	if a := c.send(t, "POST", path, `{"email":"x"}`); a.StatusCode != 400 ||
		at(a.json, "error.details.field") != "email" {
		t.Errorf("JSON: %d %s", a.StatusCode, a.text)
	}
}

// TestFormToken checks that a submission counts once, however often it is sent, and that
// one that fills in the trap field is ignored.
func TestFormToken(t *testing.T) {
	c, owner := newFormServer(t, nil)
	path := createForm(t, owner, contactForm+openToAll, "")
	token := regexp.MustCompile(`name="_token" value="([^"]+)"`).FindStringSubmatch(c.send(t, "GET", path, "").text)[1]
	for range 3 {
		if a := c.submit(t, path, url.Values{"email": {"a@example.com"}, "_token": {token}}); a.StatusCode != 200 {
			t.Error(a.text)
		}
	}
	if a := c.submit(t, path, url.Values{
		"email": {"spam@example.com"},
		"_url":  {"https://spam.example"},
	}); a.StatusCode != 200 || !strings.Contains(a.text, "Thank you") {
		t.Error(a.text)
	}
	if rows := waitForRows(t, c, owner); len(rows) != 1 {
		t.Errorf("%v", rows)
	}
}

// TestFormAccess requests forms that not everyone may use.
func TestFormAccess(t *testing.T) {
	c, owner := newFormServer(t, nil)
	values := url.Values{"email": {"a@example.com"}}
	forms := map[string]string{}
	for name, auth := range map[string]string{
		"roles": "",
		"basic": `,"auth":{"type":"basic","username":"ada","password":"s3cret"}`,
	} {
		forms[name] = createForm(t, owner, contactForm+auth, "")
	}
	draft := owner.must(
		t,
		201,
		"POST",
		"/api/agents/bakery/workflows",
		`{"name":"d","nodes":[{"id":"t","type":"trigger","data":{`+contactForm+openToAll+`}}]}`,
	)
	hook := owner.must(
		t,
		201,
		"POST",
		"/api/agents/bakery/workflows",
		`{"name":"h","status":"active","nodes":[{"id":"t","type":"trigger","data":{"event":"webhook",`+
			`"auth":{"type":"none"}}}]}`,
	)
	base := forms["roles"][:strings.LastIndex(forms["roles"], "/")+1]
	request, _ := http.NewRequest("GET", c.url, nil)
	request.SetBasicAuth("ada", "s3cret")
	known := c.with("Authorization", request.Header.Get("Authorization"))
	for _, tt := range []struct {
		name   string
		client *testClient
		path   string
		want   int
	}{
		{"stranger", c.testClient, forms["roles"], 403},
		{"owner", owner, forms["roles"], 200},
		{"no password", c.testClient, forms["basic"], 401},
		{"password", known, forms["basic"], 200},
		{"password from another site", known.with("Sec-Fetch-Site", "cross-site"), forms["basic"], 403},
		{"owner from another site", owner.with("Sec-Fetch-Site", "cross-site"), forms["roles"], 403},
		{"draft", c.testClient, base + draft["id"].(string), 404},
		{"hook", c.testClient, base + hook["id"].(string), 404},
		{"nothing", c.testClient, base + "workflow-x", 404},
		{"no agent", c.testClient, "/f/nobody/workflow-x", 404},
	} {
		if a := tt.client.send(t, "GET", tt.path, ""); a.StatusCode != tt.want || strings.Contains(a.text, "s3cret") {
			t.Errorf("%s: GET: %d", tt.name, a.StatusCode)
		}
		if a := tt.client.submit(t, tt.path, values); a.StatusCode != tt.want {
			t.Errorf("%s: POST: %d %s", tt.name, a.StatusCode, a.text)
		}
	}
	owner.must(t, 200, "PUT", "/api/agents/bakery", `{"status":"paused"}`)
	if a := known.send(t, "GET", forms["basic"], ""); a.StatusCode != 404 {
		t.Errorf("paused: %d", a.StatusCode)
	}
}

// TestFormAnswers checks that the page shows what a webhook-response returns.
func TestFormAnswers(t *testing.T) {
	c, owner := newFormServer(t, nil)
	for body, want := range map[string]string{
		`"Hello {{email}} <b>"`: "Hello a@example.com &lt;b&gt;",
		`{"title":"Done <i>","message":"Number 7"}`: "<h1><bdi>Done &lt;i&gt;</bdi></h1><p class=\"text\" " +
			"role=\"status\"><bdi>Number 7</bdi></p>",
		`{"x":1}`: `{"x":1}`,
	} {
		path := createForm(
			t,
			owner,
			contactForm+openToAll,
			`{"id":"r","type":"webhook-response","data":{"body":`+body+`}}],"edges":[{"source":"t","target":"r"}]`,
		)
		a := c.submit(t, path, url.Values{"email": {"a@example.com"}})
		if a.StatusCode != 200 || !strings.Contains(a.text, want) {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.text)
		}
	}
	path := createForm(
		t,
		owner,
		contactForm+openToAll,
		`{"id":"r","type":"webhook-response","data":{"headers":{"Content-Type":"text/html"},"body":"`+
			`<script>alert(1)</script>"}}],"edges":[{"source":"t","target":"r"}]`,
	)
	if a := c.submit(t, path, url.Values{"email": {"a@example.com"}}); !strings.HasPrefix(
		a.Header.Get("Content-Security-Policy"),
		"sandbox",
	) {
		t.Errorf("a page of a workflow has the policy %q", a.Header.Get("Content-Security-Policy"))
	}
}

// TestFormFiles uploads files: those within the limits reach the workflow.
func TestFormFiles(t *testing.T) {
	c, owner := newFormServer(t, nil)
	path := createForm(t, owner, contactForm+openToAll, "")
	send := func(name string, content []byte) answer {
		t.Helper()
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		_ = w.WriteField("email", "a@example.com")
		part, err := w.CreateFormFile("cv", name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write(content)
		_ = w.Close()
		return c.do(t, "POST", path, &body, w.FormDataContentType())
	}
	if a := send(`..\..\etc/pass`+"\u202e"+`wd.txt`, []byte("hello")); a.StatusCode != 200 {
		t.Fatal(a.text)
	}
	rows := waitForRows(t, c, owner)
	raw, _ := json.Marshal(at(rows[0], "cv"))
	if string(raw) != `{"data":"aGVsbG8=","mime_type":"text/plain; charset=utf-8","name":"passwd.txt","size":5}` {
		t.Errorf("%s", raw)
	}
	if a := send("big", bytes.Repeat([]byte("x"), agent.MaxFormFileData+1)); a.StatusCode != 413 ||
		!strings.Contains(a.text, "too large") {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	if a := send("huge", bytes.Repeat([]byte("x"), agent.MaxFormBody)); a.StatusCode != 413 {
		t.Errorf("%d", a.StatusCode)
	}
	for media, body := range map[string]string{
		"multipart/form-data":             "x",
		"multipart/form-data; boundary=b": "--b\r\nx",
		"text/plain":                      "x",
		"application/json":                "[1]",
	} {
		if a := c.do(t, "POST", path, strings.NewReader(body), media); a.StatusCode < 400 || a.StatusCode >= 500 {
			t.Errorf("%s: %d %s", media, a.StatusCode, a.text)
		}
	}
}

// TestFormFlood checks that ten submissions a minute are accepted from one network.
func TestFormFlood(t *testing.T) {
	c, owner := newFormServer(t, func(o *Options) { o.RateLimits = map[string]int{"general": 1000} })
	path := createForm(t, owner, contactForm+openToAll, "")
	for i := range formLimit + 2 {
		a := c.submit(t, path, url.Values{"email": {"nobody"}})
		// a minute may end meanwhile
		if want := map[bool]int{true: 400, false: 429}[i < formLimit]; a.StatusCode != want && i != formLimit {
			t.Errorf("%d: %d, want %d", i, a.StatusCode, want)
		}
		if a.StatusCode == 429 && a.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
}

// TestFormChecks checks that forms that cannot be filled in are refused.
func TestFormChecks(t *testing.T) {
	_, owner := newFormServer(t, nil)
	for fields, field := range map[string]string{
		`[]`:                             "nodes[0].data.fields",
		`{}`:                             "nodes[0].data.fields",
		`[{"name":"a b"}]`:               "nodes[0].data.fields[0].name",
		`[{"name":"values"}]`:            "nodes[0].data.fields[0].name",
		`[{"name":"a"},{"name":"a"}]`:    "nodes[0].data.fields[1].name",
		`[{"name":"a","type":"x"}]`:      "nodes[0].data.fields[0].type",
		`[{"name":"a","type":"choice"}]`: "nodes[0].data.fields[0].options",
		`[{"name":7}]`:                   "nodes[0].data.fields",
	} {
		a := owner.send(
			t,
			"POST",
			"/api/agents/bakery/workflows",
			`{"name":"w","status":"active","nodes":[{"id":"t","type":"trigger","data":{"event":"form","fields":`+
				fields+`}}]}`,
		)
		if a.StatusCode != 400 || at(a.json, "error.details.field") != field {
			t.Errorf("%s: %d %s", fields, a.StatusCode, a.text)
		}
	}
}
