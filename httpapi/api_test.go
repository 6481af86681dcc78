package httpapi

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"satchel/httpapi/apitest"
	"satchel/store"
)

// testClient sends requests to a complete service over a loopback socket.
type testClient struct {
	url    string
	folder *store.Folder
	agent  *store.DB // which the address serves as the default agent; nil for this one itself
	header http.Header
}

// db returns the agent that the address serves as the default one.
func (c *testClient) db() *store.DB {
	return cmp.Or(c.agent, c.folder.Default())
}

// newTestClient returns a client of the shared service for an agent of the test's own.
func newTestClient(t *testing.T) *testClient {
	t.Helper()
	return newSharedClient(t, sharedServer(t))
}

// newOwnClient starts a service without access control, for tests of keys, of all agents,
// or of the default one.
func newOwnClient(tb testing.TB) *testClient {
	tb.Helper()
	folder, server := openService(tb)
	ts := httptest.NewServer(server.Handler())
	tb.Cleanup(ts.Close)
	return &testClient{url: ts.URL, folder: folder, header: http.Header{}}
}

// with returns a client that sends one more header.
func (c *testClient) with(name, value string) *testClient {
	next := *c
	next.header = c.header.Clone()
	next.header.Set(name, value)
	return &next
}

// until waits until a condition about the agent of a path holds. It checks the condition
// each time that the agent's stream reports a change.
func (c *testClient) until(t *testing.T, path, what string, holds func() bool) {
	t.Helper()
	agent := strings.Split(path, "/")[3] // /api/agents/ID
	apitest.Until(t, c.header, c.url+"/api/agents/"+agent+"/stream", path+" "+what, holds)
}

// answer is a response with its body read and, if it is JSON, decoded.
type answer struct {
	*http.Response
	text string
	json map[string]any
}

// send makes a request; a body that is a string is sent as JSON.
func (c *testClient) send(tb testing.TB, method, path, body string) answer {
	tb.Helper()
	return c.do(tb, method, path, strings.NewReader(body), "application/json")
}

func (c *testClient) do(tb testing.TB, method, path string, body io.Reader, media string) answer {
	tb.Helper()
	var sent []byte
	if text, ok := body.(*strings.Reader); ok {
		sent = make([]byte, text.Len())
		_, _ = text.ReadAt(sent, 0) // a Reader of a text has all of it
	}
	r := apitest.Send(tb, c.header, method, c.url+path, body, media)
	a := answer{r.Response, r.Text, r.JSON}
	checkContract(tb, r.Request, sent, a)
	return a
}

// must is send for a request whose status is known.
func (c *testClient) must(tb testing.TB, status int, method, path, body string) map[string]any {
	tb.Helper()
	a := c.send(tb, method, path, body)
	if a.StatusCode != status {
		tb.Fatalf("%s %s %s: %d, want %d\n%s", method, path, body, a.StatusCode, status, a.text)
	}
	return a.json
}

// apiCase is one request and its expected response: want maps paths in the response to
// values.
type apiCase struct {
	name, method, path, body string
	status                   int
	want                     map[string]any
}

func (c apiCase) run(t *testing.T, cl *testClient) {
	t.Helper()
	a := cl.send(t, c.method, c.path, c.body)
	if a.StatusCode != c.status {
		t.Errorf("%s: %d, want %d\n%s", c.name, a.StatusCode, c.status, a.text)
		return
	}
	for path, want := range c.want {
		got := at(a.json, path)
		if n, ok := got.(json.Number); ok {
			got = n.String()
		}
		if got != want {
			t.Errorf("%s: %s is %v, want %v\n%s", c.name, path, got, want, a.text)
		}
	}
	if a.StatusCode >= 400 {
		if at(a.json, "error.code") == nil || at(a.json, "error.message") == nil || at(a.json, "error.details") == nil {
			t.Errorf("%s: not the error envelope: %s", c.name, a.text)
		}
	}
}

func invalid(field string) map[string]any {
	return map[string]any{"error.code": "VALIDATION_ERROR", "error.details.field": field}
}

func code(code string) map[string]any { return map[string]any{"error.code": code} }

func TestBadInput(t *testing.T) {
	c := newOwnClient(t)
	long := strings.Repeat("x", 300)
	c.must(t, 201, "POST", "/api/agents", `{"name":"taken"}`)
	contact := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/contacts",
		`{"name":"Ada","email":"ada@example.com","phone":"+1 (555) 0100","chatbot_a":"@Ada","external_id":"e1"}`,
	)
	conversation := c.must(t, 201, "POST", "/api/agents/default/conversations", `{}`)["id"].(string)
	id := contact["id"].(string)
	for _, tc := range []apiCase{
		{"no body", "POST", "/api/agents", ``, 400, invalid("name")},
		{"not JSON", "POST", "/api/agents", `{"name":`, 400, code("INVALID_JSON")},
		{"not an object", "POST", "/api/agents", `["name"]`, 400, code("INVALID_JSON")},
		{"null body", "POST", "/api/agents", `null`, 400, code("INVALID_JSON")},
		{"text after the object", "POST", "/api/agents", `{"name":"a"} x`, 400, code("INVALID_JSON")},
		{
			"a million brackets",
			"POST",
			"/api/agents",
			`{"name":` + strings.Repeat("[", 1_000_000),
			400,
			code("INVALID_JSON"),
		},
		{"wrong type", "POST", "/api/agents", `{"name":5}`, 400, invalid("name")},
		{
			"wrong type of description",
			"POST",
			"/api/agents",
			`{"name":"a","description":[]}`,
			400,
			invalid("description"),
		},
		{"null name", "POST", "/api/agents", `{"name":null}`, 400, invalid("name")},
		{"space in name", "POST", "/api/agents", `{"name":"a b"}`, 400, invalid("name")},
		{"emoji in name", "POST", "/api/agents", `{"name":"🙂"}`, 400, invalid("name")},
		{"NUL in name", "POST", "/api/agents", `{"name":"a\u0000"}`, 400, invalid("name")},
		{"double hyphen", "POST", "/api/agents", `{"name":"a--b"}`, 400, invalid("name")},
		{"long name", "POST", "/api/agents", `{"name":"` + long + `"}`, 400, invalid("name")},
		{
			"long description",
			"POST",
			"/api/agents",
			`{"name":"a","description":"` + long + long + `"}`,
			400,
			invalid("description"),
		},
		{
			"NUL in description",
			"POST",
			"/api/agents",
			`{"name":"a","description":"x\u0000"}`,
			400,
			invalid("description"),
		},
		{"name taken", "POST", "/api/agents", `{"name":"TAKEN"}`, 409, code("AGENT_NAME_EXISTS")},
		{"unknown agent", "GET", "/api/agents/nobody", ``, 404, code("NOT_FOUND")},
		{"escaped agent id", "GET", "/api/agents/%64efault", ``, 200, map[string]any{"id": "default"}},
		{"agent id as path", "GET", "/api/agents/%2e%2e%2fdefault", ``, 404, code("NOT_FOUND")},
		{"agent id with NUL", "GET", "/api/agents/default%00", ``, 404, code("NOT_FOUND")},
		{"bad status", "PUT", "/api/agents/default", `{"status":"asleep"}`, 400, invalid("status")},
		{"null status", "PUT", "/api/agents/default", `{"status":null}`, 400, invalid("status")},
		{"delete the default agent", "DELETE", "/api/agents/default", ``, 403, code("FORBIDDEN")},
		{"bad status filter", "GET", "/api/agents?status=asleep", ``, 400, invalid("status")},
		{"limit 0", "GET", "/api/agents?limit=0", ``, 400, invalid("limit")},
		{"limit text", "GET", "/api/agents?limit=ten", ``, 400, invalid("limit")},
		{"negative offset", "GET", "/api/agents?offset=-1", ``, 400, invalid("offset")},
		{"unknown sort", "GET", "/api/agents/default/contacts?sort=shoe_size", ``, 400, invalid("sort")},
		{"bad order", "GET", "/api/agents/default/contacts?sort=name&order=up", ``, 400, invalid("order")},
		{
			"limit is clamped",
			"GET",
			"/api/agents/default/contacts?limit=5000",
			``,
			200,
			map[string]any{"meta.limit": "200"},
		},
		{"no such route", "GET", "/api/nothing", ``, 404, code("NOT_FOUND")},
		{"wrong method", "PUT", "/api/agents", `{}`, 405, code("METHOD_NOT_ALLOWED")},

		{
			"contact without name",
			"POST",
			"/api/agents/default/contacts",
			`{"email":"b@example.com"}`,
			400,
			invalid("name"),
		},
		{"blank name", "POST", "/api/agents/default/contacts", `{"name":"  "}`, 400, invalid("name")},
		{"bad email", "POST", "/api/agents/default/contacts", `{"name":"B","email":"nobody"}`, 400, invalid("email")},
		{
			"phone without digits",
			"POST",
			"/api/agents/default/contacts",
			`{"name":"B","phone":"call me"}`,
			400,
			invalid("phone"),
		},
		{"tags not a list", "POST", "/api/agents/default/contacts", `{"name":"B","tags":"vip"}`, 400, invalid("tags")},
		{"tag not a string", "POST", "/api/agents/default/contacts", `{"name":"B","tags":[1]}`, 400, invalid("tags")},
		{
			"metadata not an object",
			"POST",
			"/api/agents/default/contacts",
			`{"name":"B","metadata":[1]}`,
			400,
			invalid("metadata"),
		},
		{
			"same email",
			"POST",
			"/api/agents/default/contacts",
			`{"name":"B","email":" ADA@example.COM "}`,
			409,
			map[string]any{
				"error.code":                "DUPLICATE_CONTACT",
				"error.details.field":       "email",
				"error.details.existing_id": id,
			},
		},
		{
			"same phone",
			"POST",
			"/api/agents/default/contacts",
			`{"name":"B","phone":"1-555-0100"}`,
			409,
			map[string]any{"error.details.field": "phone"},
		},
		{
			"same handle",
			"POST",
			"/api/agents/default/contacts",
			`{"name":"B","chatbot_a":"ada"}`,
			409,
			map[string]any{"error.details.field": "chatbot_a"},
		},
		{
			"same external id",
			"POST",
			"/api/agents/default/contacts",
			`{"name":"B","external_id":"e1"}`,
			409,
			map[string]any{"error.details.field": "external_id"},
		},
		{
			"own email again",
			"PUT",
			"/api/agents/default/contacts/" + id,
			`{"email":"ADA@example.com"}`,
			200,
			map[string]any{"email": "ADA@example.com", "name": "Ada"},
		},
		{
			"null clears",
			"PUT",
			"/api/agents/default/contacts/" + id,
			`{"chatbot_a":null}`,
			200,
			map[string]any{"chatbot_a": "", "external_id": "e1"},
		},
		{
			"unknown fields are ignored",
			"PUT",
			"/api/agents/default/contacts/" + id,
			`{"shoe_size":44}`,
			200,
			map[string]any{"name": "Ada"},
		},
		{"unknown contact", "GET", "/api/agents/default/contacts/contact-x", ``, 404, code("NOT_FOUND")},
		{"resolve without an identifier", "GET", "/api/agents/default/contacts/resolve", ``, 400, invalid("email")},
		{
			"resolve by two identifiers",
			"GET",
			"/api/agents/default/contacts/resolve?email=a@b.c&phone=1",
			``,
			400,
			invalid("phone"),
		},
		{
			"resolve an unknown contact",
			"GET",
			"/api/agents/default/contacts/resolve?email=no@example.com",
			``,
			404,
			code("NOT_FOUND"),
		},
		{
			"resolve",
			"GET",
			"/api/agents/default/contacts/resolve?email=ada%40EXAMPLE.com",
			``,
			200,
			map[string]any{"matched_by": "email", "contact.id": id},
		},
		{
			"export in an unknown format",
			"GET",
			"/api/agents/default/contacts/export?format=xml",
			``,
			400,
			invalid("format"),
		},

		{
			"conversation with an unknown contact",
			"POST",
			"/api/agents/default/conversations",
			`{"contact_id":"contact-x"}`,
			400,
			invalid("contact_id"),
		},
		{
			"conversation over an unknown gateway",
			"POST",
			"/api/agents/default/conversations",
			`{"gateway_id":"gateway-x"}`,
			400,
			invalid("gateway_id"),
		},
		{
			"bad cursor",
			"GET",
			"/api/agents/default/conversations/" + conversation + "/messages?cursor=zzz",
			``,
			400,
			invalid("cursor"),
		},
		{
			"bad role",
			"POST",
			"/api/agents/default/conversations/" + conversation + "/messages",
			`{"role":"boss","content":"x"}`,
			400,
			invalid("role"),
		},
		{
			"no content",
			"POST",
			"/api/agents/default/conversations/" + conversation + "/messages",
			`{"role":"user"}`,
			400,
			invalid("content"),
		},
		{
			"send without gateway",
			"POST",
			"/api/agents/default/conversations/" + conversation + "/messages",
			`{"role":"user","content":"x","send":true}`,
			400,
			invalid("send"),
		},
		{
			"message in an unknown conversation",
			"POST",
			"/api/agents/default/conversations/conversation-x/messages",
			`{"role":"user","content":"x"}`,
			404,
			code("NOT_FOUND"),
		},

		{
			"bad temperature",
			"PUT",
			"/api/agents/default/settings",
			`{"llm_temperature":3}`,
			400,
			invalid("llm_temperature"),
		},
		{
			"bad provider",
			"PUT",
			"/api/agents/default/settings",
			`{"llm_provider":"skynet"}`,
			400,
			invalid("llm_provider"),
		},
		{"bad zone", "PUT", "/api/agents/default/settings", `{"timezone":"Mars/Olympus"}`, 400, invalid("timezone")},
		{
			"file as address",
			"PUT",
			"/api/agents/default/settings",
			`{"llm_base_url":"file:///etc/passwd"}`,
			400,
			invalid("llm_base_url"),
		},
		{
			"password in address",
			"PUT",
			"/api/agents/default/settings",
			`{"llm_base_url":"https://a:b@example.com"}`,
			400,
			invalid("llm_base_url"),
		},
		{"bad date", "GET", "/api/agents/default/logs?from=yesterday", ``, 400, invalid("from")},
		{"bad level", "GET", "/api/agents/default/logs?level=loud", ``, 400, invalid("level")},

		{"key without role", "POST", "/api/keys", `{"name":"k","agents":["*"]}`, 400, invalid("role")},
		{
			"key for an unknown agent",
			"POST",
			"/api/keys",
			`{"name":"k","role":"admin","agents":["agent-x"]}`,
			400,
			invalid("agents"),
		},
		{
			"key that has expired",
			"POST",
			"/api/keys",
			`{"name":"k","role":"admin","agents":["*"],"expires_at":"2020-01-01"}`,
			400,
			invalid("expires_at"),
		},
		{"admin without email", "POST", "/api/agents/default/admins", `{"role":"admin"}`, 400, invalid("email")},
		{
			"admin with an unknown role",
			"POST",
			"/api/agents/default/admins",
			`{"email":"a@example.com","role":"king"}`,
			400,
			invalid("role"),
		},

		{"file as JSON", "POST", "/api/agents/default/sources", `{"type":"file","name":"x"}`, 400, invalid("type")},
		{
			"page without name",
			"POST",
			"/api/agents/default/sources",
			`{"type":"url","url":"https://example.com"}`,
			400,
			invalid("name"),
		},
		{"page without URL", "POST", "/api/agents/default/sources", `{"type":"url","name":"x"}`, 400, invalid("url")},
		{
			"page too deep",
			"POST",
			"/api/agents/default/sources",
			`{"type":"url","name":"x","url":"https://example.com","config":{"depth":6}}`,
			400,
			invalid("config.depth"),
		},
		{
			"page of too many pages",
			"POST",
			"/api/agents/default/sources",
			`{"type":"url","name":"x","url":"https://example.com","config":{"depth":6,"max_pages":51}}`,
			400,
			map[string]any{
				"error.details.errors.0.field": "config.max_pages",
				"error.details.errors.1.field": "config.depth",
			},
		},
		{
			"page with invalid chunking",
			"POST",
			"/api/agents/default/sources",
			`{"type":"url","name":"x","url":"https://example.com","config":{"overlap":-1}}`,
			400,
			invalid("config.overlap"),
		},
		{"crawl without URL", "POST", "/api/agents/default/sources/crawl", `{"name":"x"}`, 400, invalid("url")},
		{
			"crawl without name",
			"POST",
			"/api/agents/default/sources/crawl",
			`{"url":"https://example.com"}`,
			400,
			invalid("name"),
		},
		{
			"crawl of a file",
			"POST",
			"/api/agents/default/sources/crawl",
			`{"name":"x","url":"file:///etc/passwd"}`,
			400,
			invalid("url"),
		},
		{
			"crawl of a private address",
			"POST",
			"/api/agents/default/sources/crawl",
			`{"name":"x","url":"http://10.0.0.1/"}`,
			400,
			invalid("url"),
		},
		{
			"crawl of metadata",
			"POST",
			"/api/agents/default/sources/crawl",
			`{"name":"x","url":"http://169.254.169.254/"}`,
			400,
			invalid("url"),
		},
		{
			"crawl of a private address in hexadecimal",
			"POST",
			"/api/agents/default/sources/crawl",
			`{"name":"x","url":"http://0xa000001/"}`,
			400,
			invalid("url"),
		},
		{
			"crawl with a password",
			"POST",
			"/api/agents/default/sources/crawl",
			`{"name":"x","url":"http://a:b@example.com/"}`,
			400,
			invalid("url"),
		},
		{
			"crawl of 51 pages",
			"POST",
			"/api/agents/default/sources/crawl",
			`{"name":"x","url":"https://example.com","maxPages":51}`,
			400,
			invalid("maxPages"),
		},
		{
			"crawl of 0 pages",
			"POST",
			"/api/agents/default/sources/crawl",
			`{"name":"x","url":"https://example.com","maxPages":0}`,
			400,
			invalid("maxPages"),
		},
		{
			"crawl too deep",
			"POST",
			"/api/agents/default/sources/crawl",
			`{"name":"x","url":"https://example.com","maxDepth":6}`,
			400,
			invalid("maxDepth"),
		},
		{
			"crawl with a depth as text",
			"POST",
			"/api/agents/default/sources/crawl",
			`{"name":"x","url":"https://example.com","maxDepth":"1"}`,
			400,
			invalid("maxDepth"),
		},
		{
			"crawl with a bad glob",
			"POST",
			"/api/agents/default/sources/crawl",
			`{"name":"x","url":"https://example.com","includePatterns":["/a[","/b"]}`,
			400,
			invalid("includePatterns"),
		},
		{
			"crawl with a glob of many alternatives",
			"POST",
			"/api/agents/default/sources/crawl",
			`{"name":"x","url":"https://example.com","excludePatterns":["{a,b}{a,b}{a,b}{a,b}{a,b}"]}`,
			400,
			invalid("excludePatterns"),
		},
		{
			"crawl with invalid chunking",
			"POST",
			"/api/agents/default/sources/crawl",
			`{"name":"x","url":"https://example.com","config":{"chunk_size":1}}`,
			400,
			invalid("config.chunk_size"),
		},
		{
			"crawl with a browser",
			"POST",
			"/api/agents/default/sources/crawl",
			`{"name":"x","url":"https://example.com","render":true}`,
			400,
			invalid("render"),
		},
		{"crawl without a body", "POST", "/api/agents/default/sources/crawl", ``, 400, invalid("name")},
		{"search without a query", "GET", "/api/agents/default/sources/search", ``, 400, invalid("query")},
		{
			"search in an unknown source",
			"GET",
			"/api/agents/default/sources/search?query=x&source_id=source-x",
			``,
			404,
			code("NOT_FOUND"),
		},
		{"unknown mode", "GET", "/api/agents/default/sources/search?query=x&mode=magic", ``, 400, invalid("mode")},
		{
			"invalid rerank",
			"GET",
			"/api/agents/default/sources/search?query=x&rerank=magic",
			``,
			400,
			invalid("rerank"),
		},
		{
			"invalid rerank in a body",
			"POST",
			"/api/agents/default/sources/search",
			`{"query":"x","rerank":1}`,
			400,
			map[string]any{"error.details.field": "rerank", "error.message": "rerank must be true, false or llm"},
		},
		{
			"rerank as a boolean",
			"POST",
			"/api/agents/default/sources/search",
			`{"query":"x","rerank":true}`,
			200,
			map[string]any{"notice": "no reranker is installed on this server: the results are as without one"},
		},
		{
			"rerank off as a boolean",
			"POST",
			"/api/agents/default/sources/search",
			`{"query":"x","rerank":false}`,
			200,
			map[string]any{"notice": nil},
		},
		{
			"rerank off",
			"GET",
			"/api/agents/default/sources/search?query=x&rerank=false",
			``,
			200,
			map[string]any{"notice": nil},
		},
		{
			"rerank without a model",
			"GET",
			"/api/agents/default/sources/search?query=x&rerank=llm&expand=true",
			``,
			200,
			map[string]any{"notice": "no language model is set up: the search ran without one"},
		},
		{
			"invalid score",
			"GET",
			"/api/agents/default/sources/search?query=x&min_score=high",
			``,
			400,
			invalid("min_score"),
		},
		{"unknown source", "GET", "/api/agents/default/sources/source-x", ``, 404, code("NOT_FOUND")},

		{
			"subscription to no events",
			"POST",
			"/api/agents/default/webhooks",
			`{"url":"https://example.com","events":[]}`,
			400,
			invalid("events"),
		},
		{
			"subscription without events",
			"POST",
			"/api/agents/default/webhooks",
			`{"url":"https://example.com"}`,
			400,
			invalid("events"),
		},
		{"subscription without URL", "POST", "/api/agents/default/webhooks", `{"events":["*"]}`, 400, invalid("url")},
		{
			"events not a list",
			"POST",
			"/api/agents/default/webhooks",
			`{"url":"https://example.com","events":"*"}`,
			400,
			invalid("events"),
		},
		{
			"unknown event",
			"POST",
			"/api/agents/default/webhooks",
			`{"url":"https://example.com","events":["contact.sneezed"]}`,
			400,
			invalid("events[0]"),
		},
		{
			"subscription with the metadata address",
			"POST",
			"/api/agents/default/webhooks",
			`{"url":"http://169.254.169.254/","events":["*"]}`,
			400,
			invalid("url"),
		},
		{
			"subscription with a private address",
			"POST",
			"/api/agents/default/webhooks",
			`{"url":"http://10.0.0.1/","events":["*"]}`,
			400,
			invalid("url"),
		},
		{
			"MCP server without name",
			"POST",
			"/api/agents/default/mcp",
			`{"url":"https://example.com/mcp"}`,
			400,
			invalid("name"),
		},
		{"MCP server without URL", "POST", "/api/agents/default/mcp", `{"name":"x"}`, 400, invalid("url")},
		{
			"MCP server as a command",
			"POST",
			"/api/agents/default/mcp",
			`{"name":"x","url":"stdio:///bin/sh"}`,
			400,
			invalid("url"),
		},
		{
			"MCP server at the metadata address",
			"POST",
			"/api/agents/default/mcp",
			`{"name":"x","url":"http://169.254.169.254/mcp"}`,
			400,
			invalid("url"),
		},
		{
			"MCP server at a private address",
			"POST",
			"/api/agents/default/mcp",
			`{"name":"x","url":"http://10.0.0.1/mcp"}`,
			400,
			invalid("url"),
		},
		{
			"MCP server with a password in the URL",
			"POST",
			"/api/agents/default/mcp",
			`{"name":"x","url":"https://a:b@example.com/mcp"}`,
			400,
			invalid("url"),
		},
		{
			"private token endpoint",
			"POST",
			"/api/agents/default/mcp",
			`{"name":"x","url":"https://example.com/mcp","auth":{"type":"oauth2","token_url":"http://192.168.0.1/",` +
				`"client_id":"a","client_secret":"b"}}`,
			400,
			invalid("auth.token_url"),
		},
		{
			"unknown MCP auth",
			"POST",
			"/api/agents/default/mcp",
			`{"name":"x","url":"https://example.com/mcp","auth":{"type":"magic"}}`,
			400,
			invalid("auth.type"),
		},
		{
			"MCP auth without token",
			"POST",
			"/api/agents/default/mcp",
			`{"name":"x","url":"https://example.com/mcp","auth":{"type":"bearer"}}`,
			400,
			invalid("auth.token"),
		},
		{
			"MCP auth not an object",
			"POST",
			"/api/agents/default/mcp",
			`{"name":"x","url":"https://example.com/mcp","auth":"token"}`,
			400,
			invalid("auth"),
		},
		{
			"MCP header that the protocol uses",
			"POST",
			"/api/agents/default/mcp",
			`{"name":"x","url":"https://example.com/mcp","auth":{"type":"header","name":"Mcp-Name","value":"b"}}`,
			400,
			invalid("auth.name"),
		},
		{
			"MCP header with a line break",
			"POST",
			"/api/agents/default/mcp",
			`{"name":"x","url":"https://example.com/mcp","auth":{"type":"header","name":"X-A","value":"b\r\nHost: x"}}`,
			400,
			invalid("auth.value"),
		},
		{"deletion without an MCP server", "DELETE", "/api/agents/default/mcp", ``, 400, invalid("id")},
		{"deletion of an unknown MCP server", "DELETE", "/api/agents/default/mcp?id=mcp-x", ``, 404, code("NOT_FOUND")},
		{"unknown MCP server's tools", "GET", "/api/agents/default/mcp/mcp-x/tools", ``, 404, code("NOT_FOUND")},
		{"unknown subscription", "GET", "/api/agents/default/webhooks/webhook-x", ``, 404, code("NOT_FOUND")},
		{
			"change of an unknown subscription",
			"PUT",
			"/api/agents/default/webhooks/webhook-x",
			`{"active":false}`,
			404,
			code("NOT_FOUND"),
		},
		{
			"unknown subscription's deliveries",
			"GET",
			"/api/agents/default/webhooks/webhook-x/deliveries",
			``,
			404,
			code("NOT_FOUND"),
		},
		{
			"unknown status of deliveries",
			"GET",
			"/api/agents/default/webhooks/webhook-x/deliveries?status=lost",
			``,
			400,
			invalid("status"),
		},
		{
			"test of an unknown subscription",
			"POST",
			"/api/agents/default/webhooks/webhook-x/test",
			``,
			404,
			code("NOT_FOUND"),
		},

		{"gateway without type", "POST", "/api/agents/default/gateways", `{"name":"g"}`, 400, invalid("type")},
		{"gateway without name", "POST", "/api/agents/default/gateways", `{"type":"email"}`, 400, invalid("name")},
		{
			"gateway of an unknown type",
			"POST",
			"/api/agents/default/gateways",
			`{"type":"pigeon","name":"g"}`,
			400,
			invalid("type"),
		},
		{
			"config not an object",
			"POST",
			"/api/agents/default/gateways",
			`{"type":"email","name":"g","config":"x"}`,
			400,
			invalid("config"),
		},
		{
			"config with a wrong type",
			"POST",
			"/api/agents/default/gateways",
			`{"type":"smtp","name":"g","config":{"smtpPort":"25"}}`,
			400,
			invalid("config.smtpPort"),
		},
		{
			"config with a token of a wrong type",
			"POST",
			"/api/agents/default/gateways",
			`{"type":"telegram","name":"g","config":{"botToken":[1]}}`,
			400,
			invalid("config.botToken"),
		},
		{
			"unknown provider",
			"POST",
			"/api/agents/default/gateways",
			`{"type":"email","name":"g","config":{"provider":"pigeon"}}`,
			400,
			invalid("config.provider"),
		},
		{
			"invalid TLS mode",
			"POST",
			"/api/agents/default/gateways",
			`{"type":"smtp","name":"g","config":{"smtpTls":"maybe"}}`,
			400,
			invalid("config.smtpTls"),
		},
		{
			"port too high",
			"POST",
			"/api/agents/default/gateways",
			`{"type":"smtp","name":"g","config":{"smtpPort":70000}}`,
			400,
			invalid("config.smtpPort"),
		},
		{
			"invalid sender",
			"POST",
			"/api/agents/default/gateways",
			`{"type":"smtp","name":"g","config":{"fromAddress":"shop"}}`,
			400,
			invalid("config.fromAddress"),
		},
		{
			"header in the sender's name",
			"POST",
			"/api/agents/default/gateways",
			`{"type":"smtp","name":"g","config":{"fromName":"a\r\nBcc: b"}}`,
			400,
			invalid("config.fromName"),
		},
		{
			"private base address",
			"POST",
			"/api/agents/default/gateways",
			`{"type":"telegram","name":"g","config":{"apiBaseUrl":"http://10.0.0.1"}}`,
			400,
			invalid("config.apiBaseUrl"),
		},
		{
			"private target",
			"POST",
			"/api/agents/default/gateways",
			`{"type":"webhook","name":"g","config":{"url":"http://169.254.169.254/"}}`,
			400,
			invalid("config.url"),
		},
		{
			"headers not an object",
			"POST",
			"/api/agents/default/gateways",
			`{"type":"webhook","name":"g","config":{"headers":["a"]}}`,
			400,
			invalid("config.headers"),
		},
		{
			"header with a line break",
			"POST",
			"/api/agents/default/gateways",
			`{"type":"webhook","name":"g","config":{"headers":{"X-A":"b\r\nc"}}}`,
			400,
			invalid("config.headers"),
		},
		{
			"invalid public key",
			"POST",
			"/api/agents/default/gateways",
			`{"type":"discord","name":"g","config":{"publicKey":"xyz"}}`,
			400,
			invalid("config.publicKey"),
		},
		{"unknown gateway", "GET", "/api/agents/default/gateways/gateway-x", ``, 404, code("NOT_FOUND")},
		{
			"change of an unknown gateway",
			"PUT",
			"/api/agents/default/gateways/gateway-x",
			`{"name":"g"}`,
			404,
			code("NOT_FOUND"),
		},
		{
			"verify of an unknown gateway",
			"POST",
			"/api/agents/default/gateways/gateway-x/verify",
			``,
			404,
			code("NOT_FOUND"),
		},
		{"gateways of an unknown type", "GET", "/api/agents/default/gateways?type=pigeon", ``, 400, invalid("type")},
		{
			"gateways with an unknown status",
			"GET",
			"/api/agents/default/gateways?status=asleep",
			``,
			400,
			invalid("status"),
		},

		{"query not a string", "POST", "/api/agents/default/sql/execute", `{"query":1}`, 400, invalid("query")},
		{"no query", "POST", "/api/agents/default/sql/execute", `{}`, 400, invalid("query")},
		{
			"two statements",
			"POST",
			"/api/agents/default/sql/execute",
			`{"query":"SELECT 1; SELECT 2"}`,
			400,
			code("INVALID_QUERY"),
		},
		{
			"overflow while it runs",
			"POST",
			"/api/agents/default/sql/execute",
			`{"query":"SELECT abs(?)","params":[-9223372036854775808]}`,
			500,
			map[string]any{"error.code": "EXECUTION_ERROR", "error.message": "integer overflow"},
		},
		{
			"violated constraint",
			"POST",
			"/api/agents/default/sql/execute",
			`{"query":"INSERT INTO contacts(name) VALUES (NULL)"}`,
			500,
			map[string]any{
				"error.code":               "EXECUTION_ERROR",
				"error.message":            "NOT NULL constraint failed: contacts.name",
				"error.details.constraint": "contacts.name",
			},
		},
		{
			"create",
			"POST",
			"/api/agents/default/sql/execute",
			`{"query":"CREATE TABLE x(a)"}`,
			403,
			code("FORBIDDEN_OPERATION"),
		},
		{
			"hidden table",
			"POST",
			"/api/agents/default/sql/execute",
			`{"query":"SELECT * FROM _secrets"}`,
			403,
			code("FORBIDDEN_OPERATION"),
		},
		{
			"params",
			"POST",
			"/api/agents/default/sql/execute",
			`{"query":"SELECT ?, ?","params":[1,"x"]}`,
			200,
			map[string]any{"row_count": "1", "rows.0.0": "1", "rows.0.1": "x"},
		},
		{
			"params not a list",
			"POST",
			"/api/agents/default/sql/execute",
			`{"query":"SELECT 1","params":"x"}`,
			400,
			invalid("params"),
		},
	} {
		tc.run(t, c)
	}
}
