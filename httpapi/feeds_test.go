package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

const sourcesPath = "/api/agents/default/sources"

func TestDatabaseSource(t *testing.T) {
	c := newOwnClient(t)
	contacts := map[string]string{}
	for name, notes := range map[string]string{
		"Ada": "keeps bees on the roof",
		"Bob": "mends clocks",
		"Cy":  "sells rope by the metre",
	} {
		contacts[name] = c.must(
			t,
			201,
			"POST",
			"/api/agents/default/contacts",
			fmt.Sprintf(`{"name":%q,"notes":%q}`, name, notes),
		)["id"].(string)
	}
	a := c.send(
		t,
		"POST",
		sourcesPath,
		`{"type":"database","name":"People","config":{"query":"SELECT id, name, notes, email FROM contacts `+
			`ORDER BY name","id_column":"id","title_column":"name","chunk_size":500}}`,
	)
	if a.StatusCode != 201 ||
		a.json["status"] != "processing" ||
		a.json["type"] != "database" ||
		a.Header.Get("Location") != sourcesPath+"/"+fmt.Sprint(a.json["id"]) {
		t.Fatalf("%d %s", a.StatusCode, a.text)
	}
	path := sourcesPath + "/" + fmt.Sprint(a.json["id"])
	source := c.waitIndexed(t, path)
	if source["status"] != "ready" ||
		fmt.Sprint(source["chunks"]) != "3" ||
		fmt.Sprint(at(source, "config.record_count")) != "3" {
		t.Fatalf("settled as %v", source)
	}
	found := c.must(t, 200, "GET", sourcesPath+"/search?query=honey+and+apiary&limit=1", "")
	if got := at(found, "results.0.content"); got != "notes: keeps bees on the roof" ||
		at(found, "results.0.metadata.section") != "Ada" {
		t.Errorf("found %v", found)
	}
	before := chunkIDs(t, c, path)
	c.must(t, 200, "PUT", "/api/agents/default/contacts/"+contacts["Bob"], `{"notes":"mends watches"}`)
	if a := c.send(t, "DELETE", "/api/agents/default/contacts/"+contacts["Cy"], ""); a.StatusCode != 204 {
		t.Fatal(a.text)
	}
	apiCase{
		"refresh", "POST", path + "/refresh", "", 200,
		map[string]any{"status": "updating", "type": "database"},
	}.run(t, c)
	source = c.waitIndexed(t, path)
	for field, want := range map[string]string{
		"status":                   "ready",
		"chunks":                   "2",
		"config.changed_records":   "1",
		"config.unchanged_records": "1",
		"config.removed_records":   "1",
	} {
		if got := fmt.Sprint(at(source, field)); got != want {
			t.Errorf("after refresh %s is %s, want %s", field, got, want)
		}
	}
	after := chunkIDs(t, c, path)
	if len(after) != 2 ||
		after["notes: keeps bees on the roof"] != before["notes: keeps bees on the roof"] ||
		after["notes: mends watches"] == "" {
		t.Errorf("chunks before %v, after %v", before, after)
	}
	changed := c.must(
		t, 200, "PUT", path,
		`{"name":"Names","config":{"query":"SELECT id, name FROM contacts","title_column":""}}`,
	)
	if changed["name"] != "Names" ||
		at(changed, "config.id_column") != "id" ||
		at(changed, "config.title_column") != "" ||
		fmt.Sprint(at(changed, "config.chunk_size")) != "500" {
		t.Errorf("changed to %v", changed)
	}
	apiCase{"reindex", "POST", path + "/reindex", "", 200, map[string]any{"status": "processing"}}.run(t, c)
	c.waitIndexed(t, path)
	if after = chunkIDs(t, c, path); after["name: Ada"] == "" {
		t.Errorf("after a change of the query: %v", after)
	}
}

// A query that fails in a later row ends the source, which keeps its records.
func TestDatabaseSourceFails(t *testing.T) {
	c := newTestClient(t)
	c.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada","notes":"-1"}`)
	bob := c.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Bob","notes":"-2"}`)["id"].(string)
	made := c.must(
		t, 201, "POST", sourcesPath,
		`{"type":"database","name":"Numbers","config":{"query":"SELECT name, abs(CAST(notes AS INTEGER)) AS n `+
			`FROM contacts ORDER BY name"}}`,
	)
	path := sourcesPath + "/" + fmt.Sprint(made["id"])
	if source := c.waitIndexed(t, path); source["status"] != "ready" || fmt.Sprint(source["chunks"]) != "2" {
		t.Fatalf("settled as %v", source)
	}
	c.must(t, 200, "PUT", "/api/agents/default/contacts/"+bob, `{"notes":"-9223372036854775808"}`)
	c.must(t, 200, "POST", path+"/refresh", "")
	if source := c.waitIndexed(t, path); source["status"] != "error" ||
		at(source, "error.code") != "EXECUTION_ERROR" ||
		at(source, "error.message") != "integer overflow" ||
		fmt.Sprint(source["chunks"]) != "2" {
		t.Errorf("settled as %v", source)
	}
}

func chunkIDs(t *testing.T, c *testClient, path string) map[string]string {
	t.Helper()
	ids := map[string]string{}
	for _, chunk := range c.must(t, 200, "GET", path+"/chunks?limit=200", "")["chunks"].([]any) {
		chunk := chunk.(map[string]any)
		ids[chunk["content"].(string)] = chunk["id"].(string)
	}
	return ids
}

// itemAPI serves pages of two articles to clients with the token.
type itemAPI struct {
	*httptest.Server
	mu    sync.Mutex
	items []map[string]any
	fails int // how many requests to answer with 503
	asked int
}

func newItemAPI(t *testing.T) *itemAPI {
	api := &itemAPI{}
	for i, body := range []string{
		"how to bake bread", "how to mend a clock", "where whales sleep", "why rope frays", "when the post comes",
	} {
		api.items = append(api.items, map[string]any{"id": i, "title": fmt.Sprintf("Article %d", i), "body": body})
	}
	api.Server = httptest.NewServer(api)
	t.Cleanup(api.Close)
	return api
}

func (api *itemAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	api.mu.Lock()
	defer api.mu.Unlock()
	api.asked++
	if r.Header.Get("Authorization") != "Bearer s3cret" || r.Header.Get("X-Secret-Thing") != "h1dden" {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	if api.fails > 0 {
		api.fails--
		w.Header().Set("Retry-After", "0")
		http.Error(w, "later", http.StatusServiceUnavailable)
		return
	}
	var page int
	fmt.Sscan(r.URL.Query().Get("page"), &page)
	from := min(2*(page-1), len(api.items))
	_ = json.NewEncoder(w).Encode(map[string]any{
		"data": map[string]any{"items": api.items[from:min(from+2, len(api.items))]},
	})
}

func TestAPISource(t *testing.T) {
	c, api := newTestClient(t), newItemAPI(t)
	made := c.must(t, 201, "POST", sourcesPath, `{"type":"api","name":"Articles","config":{"url":"`+api.URL+`/articles","auth":{"type":"bearer","token":"s3cret"},
		"headers":{"x-secret-thing":"h1dden","Accept-Language":"en"},"items_path":"data.items","id_path":"id","content_template":"{{title}} tells {{ body }}{{missing}}.","pagination":{"type":"page"}}}`)
	if made["status"] != "processing" ||
		at(made, "config.auth.token") != "********" ||
		at(made, "config.headers.X-Secret-Thing") != "********" ||
		at(made, "config.headers.Accept-Language") != "en" {
		t.Fatalf("created %v", made)
	}
	path := sourcesPath + "/" + fmt.Sprint(made["id"])
	source := c.waitIndexed(t, path)
	if source["status"] != "ready" ||
		fmt.Sprint(source["chunks"]) != "5" ||
		fmt.Sprint(at(source, "config.record_count")) != "5" ||
		at(source, "config.more_pages") != false {
		t.Fatalf("settled as %v", source)
	}
	before := chunkIDs(t, c, path)
	if before["Article 3 tells why rope frays."] == "" {
		t.Errorf("chunks are %v", before)
	}
	for _, place := range []string{path, sourcesPath} {
		if a := c.send(t, "GET", place, ""); strings.Contains(a.text, "s3cret") || strings.Contains(a.text, "h1dden") {
			t.Errorf("%s shows a secret: %s", place, a.text)
		}
	}
	rows := c.must(t, 200, "POST", "/api/agents/default/sql/execute", `{"query":"SELECT config FROM sources"}`)
	if text := fmt.Sprint(rows); strings.Contains(text, "s3cret") || strings.Contains(text, "h1dden") {
		t.Errorf("SQL shows a secret: %s", text)
	}

	api.mu.Lock()
	api.items = append(api.items[1:], map[string]any{"id": 9, "title": "Article 9", "body": "who winds the clock"})
	api.items[0]["body"] = "how to mend a watch"
	api.fails = 2
	api.mu.Unlock()
	c.must(
		t, 200, "PUT", path,
		`{"config":{"auth":{"type":"bearer","token":"********"},"pagination":{"type":"page","max_pages":9}}}`,
	)
	apiCase{
		"refresh", "POST", path + "/refresh", "", 200,
		map[string]any{"status": "updating", "type": "api"},
	}.run(t, c)
	source = c.waitIndexed(t, path)
	for field, want := range map[string]string{
		"status":                        "ready",
		"chunks":                        "5",
		"config.changed_records":        "2",
		"config.unchanged_records":      "3",
		"config.removed_records":        "1",
		"config.headers.X-Secret-Thing": "********",
	} {
		if got := fmt.Sprint(at(source, field)); got != want {
			t.Errorf("after refresh %s is %s, want %s\n%v", field, got, want, source)
		}
	}
	if after := chunkIDs(t, c, path); after["Article 3 tells why rope frays."] !=
		before["Article 3 tells why rope frays."] {
		t.Errorf("chunks before %v, after %v", before, after)
	}

	for _, tc := range []apiCase{
		{
			"a mask for another host",
			"PUT",
			path,
			`{"config":{"url":"http://127.0.0.2/","auth":{"type":"bearer","token":"********"}}}`,
			400,
			invalid("config.auth.token"),
		},
		{
			"a masked header for another host",
			"PUT",
			path,
			`{"config":{"url":"http://127.0.0.2/","auth":{"type":"none"}}}`,
			400,
			invalid("config.headers.X-Secret-Thing"),
		},
		{
			"another secret",
			"PUT",
			path,
			`{"config":{"auth":{"type":"bearer","token":"wrong"}}}`,
			200,
			map[string]any{"config.auth.token": "********"},
		},
	} {
		tc.run(t, c)
	}
	c.must(t, 200, "POST", path+"/refresh", "")
	source = c.waitIndexed(t, path)
	if source["status"] != "error" ||
		at(source, "error.code") != "UPSTREAM_ERROR" ||
		at(source, "error.message") != "the API answered 401 Unauthorized" ||
		fmt.Sprint(source["chunks"]) != "5" {
		t.Errorf("with a wrong token: %v", source)
	}
}

func TestBadFeeds(t *testing.T) {
	c := newTestClient(t)
	made := c.must(t, 201, "POST", sourcesPath, `{"type":"database","name":"x","config":{"query":"SELECT 1 AS one"}}`)
	path := sourcesPath + "/" + fmt.Sprint(made["id"])
	c.waitIndexed(t, path)
	database := func(config string) string { return `{"type":"database","name":"x","config":` + config + `}` }
	api := func(config string) string {
		return `{"type":"api","name":"x","config":{"url":"https://api.example.com",` + config + `}}`
	}
	forbidden := map[string]any{"error.code": "FORBIDDEN_OPERATION", "error.details.field": "config.query"}
	query := map[string]any{"error.code": "INVALID_QUERY", "error.details.field": "config.query"}
	for _, tc := range []apiCase{
		{"no type", "POST", sourcesPath, `{"name":"x"}`, 400, invalid("type")},
		{"unknown type", "POST", sourcesPath, `{"type":"ftp","name":"x"}`, 400, invalid("type")},
		{"config is a list", "POST", sourcesPath, database(`[]`), 400, invalid("config")},
		{
			"database without name",
			"POST",
			sourcesPath,
			`{"type":"database","config":{"query":"SELECT 1"}}`,
			400,
			invalid("name"),
		},
		{"no query", "POST", sourcesPath, database(`{}`), 400, invalid("config.query")},
		{"query is a number", "POST", sourcesPath, database(`{"query":1}`), 400, invalid("config.query")},
		{
			"long query",
			"POST",
			sourcesPath,
			database(`{"query":"SELECT '` + strings.Repeat("x", 20_001) + `'"}`),
			400,
			invalid("config.query"),
		},
		{"not a SELECT", "POST", sourcesPath, database(`{"query":"DELETE FROM contacts"}`), 403, forbidden},
		{"a PRAGMA", "POST", sourcesPath, database(`{"query":"PRAGMA table_info(contacts)"}`), 403, forbidden},
		{"hidden table", "POST", sourcesPath, database(`{"query":"SELECT * FROM _secrets"}`), 403, forbidden},
		{"two statements", "POST", sourcesPath, database(`{"query":"SELECT 1; SELECT 2"}`), 400, query},
		{"broken", "POST", sourcesPath, database(`{"query":"SELECT FROM"}`), 400, query},
		{"parameters", "POST", sourcesPath, database(`{"query":"SELECT ?"}`), 400, query},
		{
			"unknown id column",
			"POST",
			sourcesPath,
			database(`{"query":"SELECT 1 AS one","id_column":"two"}`),
			400,
			invalid("config.id_column"),
		},
		{
			"unknown title column",
			"POST",
			sourcesPath,
			database(`{"query":"SELECT 1 AS one","title_column":"two"}`),
			400,
			invalid("config.title_column"),
		},
		{
			"unknown content column",
			"POST",
			sourcesPath,
			database(`{"query":"SELECT 1 AS one","content_columns":["one","two"]}`),
			400,
			invalid("config.content_columns"),
		},
		{
			"columns not a list",
			"POST",
			sourcesPath,
			database(`{"query":"SELECT 1 AS one","content_columns":"one"}`),
			400,
			invalid("config.content_columns"),
		},
		{
			"invalid chunking",
			"POST",
			sourcesPath,
			database(`{"query":"SELECT 1 AS one","chunk_size":10}`),
			400,
			invalid("config.chunk_size"),
		},
		{
			"unknown chunking method",
			"POST",
			sourcesPath,
			database(`{"query":"SELECT 1 AS one","method":"axe"}`),
			400,
			invalid("config.method"),
		},

		{"no url", "POST", sourcesPath, `{"type":"api","name":"x","config":{}}`, 400, invalid("config.url")},
		{
			"url of a file",
			"POST",
			sourcesPath,
			`{"type":"api","name":"x","config":{"url":"file:///etc/passwd"}}`,
			400,
			invalid("config.url"),
		},
		{
			"private address",
			"POST",
			sourcesPath,
			`{"type":"api","name":"x","config":{"url":"http://10.0.0.1/"}}`,
			400,
			map[string]any{"error.details.field": "config.url", "error.details.code": "BLOCKED_ADDRESS"},
		},
		{
			"metadata",
			"POST",
			sourcesPath,
			`{"type":"api","name":"x","config":{"url":"http://169.254.169.254/"}}`,
			400,
			invalid("config.url"),
		},
		{
			"password in the url",
			"POST",
			sourcesPath,
			`{"type":"api","name":"x","config":{"url":"https://a:b@example.com/"}}`,
			400,
			invalid("config.url"),
		},
		{"unsupported method", "POST", sourcesPath, api(`"method":"DELETE"`), 400, invalid("config.method")},
		{"body with GET", "POST", sourcesPath, api(`"body":{}`), 400, invalid("config.body")},
		{"invalid header name", "POST", sourcesPath, api(`"headers":{"a b":"c"}`), 400, invalid("config.headers.a b")},
		{
			"header with a line break",
			"POST",
			sourcesPath,
			api(`"headers":{"A":"b\r\nC: d"}`),
			400,
			invalid("config.headers.A"),
		},
		{"header Host", "POST", sourcesPath, api(`"headers":{"host":"internal"}`), 400, invalid("config.headers.Host")},
		{"headers not an object", "POST", sourcesPath, api(`"headers":[]`), 400, invalid("config.headers")},
		{"unknown auth", "POST", sourcesPath, api(`"auth":{"type":"magic"}`), 400, invalid("config.auth.type")},
		{"auth is text", "POST", sourcesPath, api(`"auth":"x"`), 400, invalid("config.auth")},
		{
			"bearer without token",
			"POST",
			sourcesPath,
			api(`"auth":{"type":"bearer"}`),
			400,
			invalid("config.auth.token"),
		},
		{
			"basic without name",
			"POST",
			sourcesPath,
			api(`"auth":{"type":"basic","password":"p"}`),
			400,
			invalid("config.auth.username"),
		},
		{
			"header without value",
			"POST",
			sourcesPath,
			api(`"auth":{"type":"header","name":"X-Key"}`),
			400,
			invalid("config.auth.value"),
		},
		{
			"a mask for a secret",
			"POST",
			sourcesPath,
			api(`"auth":{"type":"bearer","token":"********"}`),
			400,
			invalid("config.auth.token"),
		},
		{"invalid items path", "POST", sourcesPath, api(`"items_path":"a..b"`), 400, invalid("config.items_path")},
		{"invalid id path", "POST", sourcesPath, api(`"id_path":"a[x]"`), 400, invalid("config.id_path")},
		{
			"unclosed template",
			"POST",
			sourcesPath,
			api(`"content_template":"{{a"`),
			400,
			invalid("config.content_template"),
		},
		{
			"invalid template",
			"POST",
			sourcesPath,
			api(`"content_template":"{{a..b}}"`),
			400,
			invalid("config.content_template"),
		},
		{
			"unknown pagination",
			"POST",
			sourcesPath,
			api(`"pagination":{"type":"scroll"}`),
			400,
			invalid("config.pagination.type"),
		},
		{
			"cursor without path",
			"POST",
			sourcesPath,
			api(`"pagination":{"type":"cursor"}`),
			400,
			invalid("config.pagination.next_path"),
		},
		{
			"too many pages",
			"POST",
			sourcesPath,
			api(`"pagination":{"type":"page","max_pages":1001}`),
			400,
			invalid("config.pagination.max_pages"),
		},
		{
			"pages as text",
			"POST",
			sourcesPath,
			api(`"pagination":{"type":"page","max_pages":"5"}`),
			400,
			invalid("config.pagination.max_pages"),
		},
		{"unknown chunk method", "POST", sourcesPath, api(`"chunk_method":"axe"`), 400, invalid("config.chunk_method")},

		{"unknown source", "PUT", sourcesPath + "/source-x", `{"name":"y"}`, 404, code("NOT_FOUND")},
		{"blank name", "PUT", path, `{"name":" "}`, 400, invalid("name")},
		{"bad change", "PUT", path, `{"name":"y","config":{"query":"SELECT * FROM _secrets"}}`, 403, forbidden},
		{"unchanged", "GET", path, "", 200, map[string]any{"name": "x", "config.query": "SELECT 1 AS one"}},
	} {
		tc.run(t, c)
	}
	if total := c.must(t, 200, "GET", sourcesPath, ""); fmt.Sprint(at(total, "meta.total")) != "1" {
		t.Errorf("refused sources were created: %v", total)
	}
}
