package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"satchel/httpapi/rest"
)

// contractClient sends requests and checks each response against the OpenAPI description.
type contractClient struct {
	*testClient
	*described
	seen map[*rest.Route]bool
	all  []*rest.Route
}

func newContractClient(t *testing.T) *contractClient {
	return &contractClient{
		testClient: newOwnClient(t),
		described:  describe(t),
		seen:       map[*rest.Route]bool{},
		all:        table(),
	}
}

// request makes a request and checks its status and headers; checkContract checks its
// body.
func (w *contractClient) request(t *testing.T, status int, method, path, body string) answer {
	t.Helper()
	return w.requestWith(t, status, method, path, strings.NewReader(body), "application/json")
}

func (w *contractClient) requestWith(
	t *testing.T,
	status int,
	method, path string,
	body io.Reader,
	media string,
) answer {
	t.Helper()
	bare, _, _ := strings.Cut(strings.TrimPrefix(path, "/api"), "?")
	a, r := w.do(t, method, path, body, media), routeOf(w.all, method, bare)
	if a.StatusCode != status || r == nil {
		t.Fatalf("%s %s: %d, want %d; route %v\n%s", method, path, a.StatusCode, status, r, a.text)
	}
	keys := []string{"paths", r.Path, strings.ToLower(method), "responses", strconv.Itoa(status)}
	described, _ := w.find(keys...)
	if described == nil {
		t.Fatalf("%s %s: the response %d is not described", method, path, status)
	}
	for name := range objectAt(described, "headers") {
		limited := strings.HasPrefix(name, "X-RateLimit") // disabled in these tests
		if a.Header.Get(name) == "" && !limited {
			t.Errorf("%s %s: the header %s is described and missing", method, path, name)
		}
	}
	if status < 300 {
		w.seen[r] = true
	}
	return a
}

func (w *contractClient) create(t *testing.T, path, body string) string {
	t.Helper()
	a := w.request(t, 201, "POST", path, body)
	id, ok := a.json["id"].(string)
	if !ok {
		id = "-"
	}
	return id
}

// TestAnswersAreAsDescribed calls every route and checks the responses against the
// description.
func TestAnswersAreAsDescribed(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	w := newContractClient(t)
	for _, path := range []string{
		"/health", "/ready", "/version", "/openapi.json", "/console", "/node-types", "/templates", "/agents",
		"/auth/agents",
	} {
		w.request(t, 200, "GET", "/api"+path, "")
	}
	for path, method := range map[string]string{
		"":                     "GET",
		"/agents":              "GET",
		"/agents/default/move": "POST",
		"/nodes/node-2/drain":  "POST",
	} {
		w.request(t, 404, method, "/api/cluster"+path, `{"node":"node-2"}`) // a single server has none
		w.seen[routeOf(w.all, method, "/cluster"+path)] = true              // see TestCluster
	}
	id := w.create(t, "/api/agents", `{"name":"described"}`)
	at := "/api/agents/" + id
	w.request(t, 409, "POST", "/api/agents", `{"name":"described"}`)
	w.request(t, 400, "POST", "/api/agents", `{"name":""}`)
	w.request(t, 400, "POST", at+"/sources", `{}`)
	w.request(t, 404, "GET", at+"/contacts/contact-x", "")
	w.checkStream(t, at)
	w.checkContacts(t, at)
	w.checkTables(t, at)
	w.checkKnowledge(t, at)
	w.checkChat(t, at)
	w.checkTools(t, at)
	w.checkWebhooks(t, at)
	w.checkMCPServers(t, at)
	w.checkCredentials(t, at)
	w.checkAPIs(t, at)
	w.checkSchedules(t, at)
	w.checkWorkflows(t, at)
	w.checkGateways(t, at)
	w.checkInbox(t, at)
	for _, path := range []string{
		"", "/waiting", "/overview", "/settings", "/admins", "/logs", "/sql/schema", "/conversations", "/contacts",
		"/sources",
	} {
		w.request(t, 200, "GET", at+path, "")
	}
	w.request(t, 200, "PUT", at, `{"description":"changed","status":"active"}`)
	w.request(t, 200, "PUT", at+"/settings", `{"llm_model":"m","openai_api_key":"k"}`)
	w.request(t, 200, "POST", at+"/sql/execute", `{"query":"SELECT name, NULL, 1.5, x'00' FROM contacts"}`)
	w.request(t, 200, "POST", at+"/sql/execute", `{"query":"UPDATE contacts SET notes = ?","params":["x"]}`)
	w.request(t, 403, "POST", at+"/sql/execute", `{"query":"DROP TABLE contacts"}`)
	admin := w.create(t, at+"/admins", `{"email":"ada@example.com","role":"viewer"}`)
	w.request(t, 409, "POST", at+"/admins", `{"email":"ada@example.com","role":"viewer"}`)
	w.request(t, 200, "PUT", at+"/admins/"+admin, `{"role":"admin"}`)
	w.request(t, 400, "PUT", at+"/admins/"+admin, `{"role":"king"}`)
	w.request(t, 204, "DELETE", at+"/admins/"+admin, "")
	w.create(t, at+"/fork", `{"name":"described-copy"}`)
	backup := w.request(t, 200, "POST", at+"/backup", "")
	body, media := multipartForm(t, nil, "described.db", []byte(backup.text), nil)
	w.requestWith(t, 201, "POST", "/api/agents/import", body, media)
	w.checkBrowser(t, at) // late: without Chromium the rest is skipped
	w.request(t, 200, "DELETE", at, "")
	w.checkKeys(t)
	for _, r := range w.all {
		if !w.seen[r] {
			t.Errorf("%s %s was not called", r.Method, r.Path)
		}
	}
}

// checkStream opens the stream of changes, which does not end.
func (w *contractClient) checkStream(t *testing.T, at string) {
	t.Helper()
	s := openEvents(t, w.testClient, at+"/stream", "")
	defer s.close()
	stream := s.until(named("hello")).data["stream"].(string)
	if media := s.resp.Header.Get("Content-Type"); media != rest.EventStream {
		t.Errorf("a stream of %s", media)
	}
	w.seen[routeOf(w.all, "GET", strings.TrimPrefix(at, "/api")+"/stream")] = true
	w.request(t, 204, "PUT", at+"/presence", `{"stream":"`+stream+`","at":"home"}`)
	w.request(t, 404, "PUT", at+"/presence", `{"stream":"stream-x"}`)
}

func (w *contractClient) checkContacts(t *testing.T, at string) {
	contact := w.create(
		t,
		at+"/contacts",
		`{"name":"Ada","email":"ada@example.com","tags":["vip"],"metadata":{"a":[1]}}`,
	)
	w.request(t, 409, "POST", at+"/contacts", `{"name":"Eve","email":"ada@example.com"}`)
	w.request(t, 200, "GET", at+"/contacts/"+contact, "")
	w.request(t, 200, "PUT", at+"/contacts/"+contact, `{"tags":null}`)
	w.request(t, 200, "GET", at+"/contacts?search=ada&sort=name&order=desc", "")
	w.request(t, 200, "GET", at+"/contacts/resolve?email=ada@example.com", "")
	w.request(t, 200, "GET", at+"/contacts/export", "")
	w.request(t, 200, "GET", at+"/contacts/export?format=json", "")
	body, media := multipartForm(
		t,
		map[string]string{"on_duplicate": "skip"},
		"contacts.csv",
		[]byte("name,email\nBob,bob@example.com\nBad,bad\n"),
		nil,
	)
	w.requestWith(t, 200, "POST", at+"/contacts/import", body, media)
	w.request(t, 200, "GET", at+"/contacts?full=true", "")
	w.request(t, 200, "GET", at+"/contacts/tags", "")
	w.request(t, 200, "POST", at+"/contacts/batch", `{"ids":["`+contact+`"],"add_tags":["new"]}`)
	w.request(t, 400, "POST", at+"/contacts/batch", `{"ids":[]}`)

	conversation := at + "/conversations/" + w.create(t, at+"/conversations", `{"contact_id":"`+contact+`"}`)
	w.create(t, conversation+"/messages", `{"role":"assistant","content":"hello"}`)
	w.request(t, 200, "GET", conversation, "")
	w.request(t, 200, "PUT", conversation, `{"muted":false}`)
	w.request(t, 200, "GET", conversation+"/messages?limit=1", "")
	w.request(t, 204, "DELETE", conversation, "")
	w.request(t, 204, "DELETE", at+"/contacts/"+contact, "")
	w.create(t, at+"/contacts", `{"name":"Ada"}`)
}

func (w *contractClient) checkKnowledge(t *testing.T, at string) {
	body, media := multipartForm(
		t,
		map[string]string{"type": "file"},
		"handbook.md",
		[]byte("# Handbook\nParcels leave at four.\n"),
		nil,
	)
	source := at + "/sources/" + w.requestWith(t, 201, "POST", at+"/sources", body, media).json["id"].(string)
	w.waitIndexed(t, source)
	body, media = multipartBatch(t, nil, [2]string{"one.md", "# One\n"}, [2]string{"one.exe", "MZ"})
	w.requestWith(t, 200, "POST", at+"/sources/batch", body, media)
	w.request(t, 200, "GET", at+"/sources/search?query=parcels", "")
	w.request(t, 200, "POST", at+"/sources/search", `{"query":"parcels","mode":"vector"}`)
	w.request(t, 200, "GET", source+"/chunks", "")
	w.request(t, 200, "GET", source+"/file", "")
	w.request(t, 200, "GET", source+"/text", "")
	w.request(t, 400, "POST", at+"/sources/change", `{"ids":[]}`)
	w.request(t, 200, "POST", source+"/reindex", "")
	w.waitIndexed(t, source)
	w.request(t, 200, "POST", source+"/refresh", "")
	w.waitIndexed(t, source)
	w.request(t, 200, "PUT", source, `{"name":"Manual"}`)
	w.request(t, 400, "PUT", source, `{"config":{"query":"SELECT 1"}}`)
	w.request(
		t, 200, "POST", at+"/sources/change",
		`{"ids":["`+source[strings.LastIndex(source, "/")+1:]+`"],"reindex":true}`,
	)
	w.waitIndexed(t, source)
	w.request(t, 200, "DELETE", source, "")
	w.waitIndexed(
		t,
		at+"/sources/"+
			w.create(
				t,
				at+"/sources",
				`{"type":"database","name":"rows","config":{"query":"SELECT id, name FROM contacts","id_column":"id"}}`,
			),
	)
	site := newSite(t)
	crawled := at + "/sources/" + w.create(t, at+"/sources/crawl", `{"name":"site","url":"`+site.URL+`"}`)
	w.waitIndexed(t, crawled)
	w.request(t, 200, "POST", crawled+"/reindex", "")
	w.waitIndexed(t, crawled)
	site.hold = make(chan struct{})
	w.request(t, 200, "POST", crawled+"/reindex", "")
	w.request(t, 200, "POST", crawled+"/stop", "")
}

func (w *contractClient) checkSchedules(t *testing.T, at string) {
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	w.request(t, 400, "POST", at+"/schedules", `{"name":"x","type":"cron","cron_expression":"@daily"}`)
	made := at + "/schedules/" +
		w.create(
			t,
			at+"/schedules",
			`{"name":"daily","type":"cron","cron_expression":"0 9 * * *","callback_type":"webhook","callback_id":"`+
				receiver.URL+`"}`,
		)
	w.request(t, 200, "GET", at+"/schedules?status=active&type=cron", "")
	w.request(t, 200, "GET", at+"/schedules/preview?cron_expression=0+9+*+*+*", "")
	w.request(t, 400, "GET", at+"/schedules/preview?cron_expression=x", "")
	w.request(t, 200, "GET", at+"/schedules/days?start=2027-01-01&end=2027-01-31", "")
	w.request(t, 200, "POST", made+"/run", "")
	w.request(t, 200, "GET", made, "")
	w.request(t, 200, "PUT", made, `{"status":"paused"}`)
	w.request(t, 204, "DELETE", made, "")

	w.request(t, 400, "POST", at+"/calendar", `{"title":"x"}`)
	task := at + "/calendar/" +
		w.create(
			t,
			at+"/calendar",
			`{"title":"Review","description":"d","start_time":"2027-01-04T09:00:00Z","recurrence":"weekly",`+
				`"recurrence_days":[1,3],"recurrence_end":"2027-06-01"}`,
		)
	w.request(
		t,
		200,
		"PUT",
		task+"/occurrences/20270106T090000Z",
		`{"start_time":"2027-01-06T11:00:00Z","title":"Later"}`,
	)
	w.request(t, 400, "PUT", task+"/occurrences/20270106T090000Z", `{"workflow_id":"workflow-1"}`)
	w.request(t, 204, "DELETE", task+"/occurrences/20270111T090000Z", "")
	w.request(t, 404, "DELETE", task+"/occurrences/20270112T090000Z", "")
	w.request(t, 200, "PUT", task+"/occurrences/20270301T090000Z?scope=following", `{"title":"From March on"}`)
	w.request(t, 200, "GET", at+"/calendar", "")
	w.request(t, 200, "GET", at+"/calendar?start=2027-01-01&end=2027-01-31", "")
	w.request(t, 200, "GET", at+"/calendar.ics", "")
	w.request(t, 200, "GET", task, "")
	w.request(t, 200, "PUT", task, `{"recurrence_end":null}`)
	w.request(t, 204, "DELETE", task, "")
}

func (w *contractClient) checkWorkflows(t *testing.T, at string) {
	graph := `"nodes":[{"id":"t","type":"trigger","data":{"event":"webhook"},"position":{"x":1,"y":2},"color":"red"},{"id":"s","type":"set","data":{"values":{"a":1}}}],
		"edges":[{"id":"e","source":"t","target":"s","animated":true}]`
	id := w.create(t, at+"/workflows", `{"name":"Flow","status":"active",`+graph+`}`)
	flow := at + "/workflows/" + id
	w.request(t, 200, "POST", at+"/workflows/validate", `{`+graph+`}`)
	w.request(
		t,
		201,
		"POST",
		at+"/templates/morning-figures",
		`{"values":{"slack":{"botToken":"xoxb-1","signingSecret":"s"},"channel":"C1"}}`,
	)
	w.request(t, 400, "POST", at+"/templates/morning-figures", `{"values":{"slack":{}}}`)
	w.request(t, 404, "POST", at+"/templates/nothing", `{}`)
	w.request(t, 200, "POST", at+"/workflows/validate", `{"nodes":[{"id":"x","type":"teleport"}]}`)
	w.request(t, 200, "POST", at+"/workflows/import", importBody(t, "schedule", false))
	w.request(t, 200, "POST", at+"/workflows/import", importBody(t, "secrets", true))
	w.request(t, 400, "POST", at+"/workflows/import", `{"format":"n8n","document":{}}`)
	w.request(t, 200, "POST", at+"/workflows/test?wait=30", `{"workflow_id":"`+id+`","pins":{"t":{"a":1}},`+graph+`}`)
	w.request(t, 200, "GET", at+"/workflows?status=active", "")
	w.request(t, 200, "GET", flow, "")
	w.request(t, 400, "PUT", flow, `{"nodes":[{"id":"t"}]}`)
	w.request(t, 200, "GET", flow+"/versions", "")
	w.request(t, 200, "GET", flow+"/versions/1", "")
	w.request(t, 200, "POST", flow+"/versions/1/restore", "")
	w.request(t, 200, "PUT", flow, `{"settings":{"concurrency":5}}`)
	w.request(t, 200, "POST", flow+"/test-node", `{"node_id":"s","input":{"a":2}}`)
	hooked := w.request(t, 200, "POST", at+"/hooks/"+id, `{"a":2}`).json["execution_id"].(string)
	for w.request(t, 200, "GET", at+"/workflows/executions/"+hooked, "").json["status"] != "complete" {
	}
	done := w.request(
		t,
		200,
		"POST",
		at+"/workflows/execute?wait=30",
		`{"workflow_id":"`+id+`","input":{"name":"Ada"}}`,
	)
	executions := at + "/workflows/executions"
	w.request(t, 200, "GET", executions+"?workflow_id="+id, "")
	w.request(t, 200, "GET", executions+"/"+done.json["id"].(string), "")
	w.request(t, 200, "GET", executions+"/"+done.json["id"].(string)+"?preview=100", "")
	w.request(t, 200, "GET", executions+"/"+done.json["id"].(string)+"/nodes/s?part=resolved", "")
	w.request(t, 200, "GET", executions+"/"+done.json["id"].(string)+"/events", "")
	w.request(t, 409, "POST", executions+"/"+done.json["id"].(string)+"/terminate", "")
	w.request(t, 200, "POST", executions+"/"+done.json["id"].(string)+"/retry", `{"from_node":"s"}`)

	waits := w.create(t, at+"/workflows", `{"name":"Waits","status":"active","nodes":[{"id":"t","type":"trigger"},{"id":"w","type":"wait","data":{"event":"contact.created"}},
		{"id":"a","type":"approval"}],"edges":[{"source":"t","target":"w"},{"source":"w","target":"a"}]}`)
	suspended := executions + "/" +
		w.request(t, 200, "POST", at+"/workflows/execute", `{"workflow_id":"`+waits+`"}`).json["execution_id"].(string)
	w.waitNode(t, suspended, "w", "waiting")
	w.request(t, 200, "POST", suspended+"/resume", `{"node_id":"w","data":{"x":1}}`)
	w.waitNode(t, suspended, "a", "waiting")
	w.request(t, 409, "POST", suspended+"/resume", `{"node_id":"w"}`)
	w.request(t, 200, "POST", suspended+"/terminate", "")
	w.request(t, 409, "POST", suspended+"/resume", `{"node_id":"a","data":{"decision":"approved"}}`)
	w.request(t, 200, "DELETE", flow, "")
}

// waitNode reads an execution until a node has a status.
func (w *contractClient) waitNode(t *testing.T, execution, node, status string) {
	t.Helper()
	w.until(t, execution, "has "+node+" "+status, func() bool {
		x := w.request(t, 200, "GET", execution, "")
		return slices.ContainsFunc(x.json["node_results"].([]any), func(r any) bool {
			return at(r, "node_id") == node && at(r, "status") == status
		})
	})
}

// waitIndexed reads a source until it is indexed.
func (w *contractClient) waitIndexed(t *testing.T, source string) {
	t.Helper()
	w.until(t, source, "is indexed", func() bool {
		status := w.request(t, 200, "GET", source, "").json["status"]
		if status == "error" {
			t.Fatalf("%s ended as error", source)
		}
		return status == "ready"
	})
}

// checkKeys comes last: the first key turns access control on.
func (w *contractClient) checkKeys(t *testing.T) {
	a := w.request(t, 201, "POST", "/api/keys", `{"name":"k","role":"owner","agents":["*"]}`)
	w.request(t, 401, "GET", "/api/keys", "")
	w.testClient = w.with("Authorization", "Bearer "+a.json["key"].(string))
	w.create(t, "/api/keys", `{"name":"later","role":"viewer","agents":["*"],"expires_at":"2999-01-01"}`)
	w.request(t, 200, "GET", "/api/keys", "")
	w.request(t, 200, "GET", "/api/access", "")
	w.request(t, 200, "PUT", "/api/access", `{"default_role":"none"}`)
	w.request(t, 200, "PUT", "/api/access", `{"default_role":null}`)
	w.request(t, 204, "DELETE", "/api/keys/"+a.json["id"].(string), "")
}

func (w *contractClient) checkChat(t *testing.T, at string) {
	t.Helper()
	m := newModelServer(t, func(int, map[string]any) string { return "Hello." })
	w.request(t, 400, "POST", at+"/chat", `{"message":"Hi"}`)
	w.request(t, 200, "PUT", at+"/settings", `{"llm_provider":"ollama","llm_model":"m","llm_base_url":"`+m.URL+`/v1"}`)
	w.request(t, 200, "POST", at+"/chat", `{"message":"Where is the harbour?"}`)
	w.request(t, 200, "POST", at+"/chat", `{"message":"Where is the harbour?","run_id":"run-0001"}`)
	said := w.request(t, 200, "POST", at+"/chat", `{"message":"Hello"}`).json["message"].(map[string]any)
	w.request(t, 200, "PUT", at+"/messages/"+fmt.Sprint(said["id"])+"/feedback", `{"rating":1,"comment":"Good."}`)
	w.request(t, 200, "GET", at+"/feedback?rating=good&search=good", "")
	w.request(t, 400, "GET", at+"/feedback?rating=1", "")
	file := "/messages/" + fmt.Sprint(said["id"]) + "/attachments/0"
	w.request(t, 404, "GET", at+file, "")
	w.seen[routeOf(w.all, "GET", "/agents/x"+file)] = true // see TestAttachments
	w.request(t, 200, "GET", at+"/chat/run-0001/events", "")
	w.request(t, 200, "POST", at+"/chat/run-0001/stop", "")
	w.request(t, 200, "GET", at+"/models?llm_base_url="+newModelProvider(t).URL, "")
	w.request(t, 200, "POST", at+"/settings/test", `{}`)
	w.request(t, 200, "POST", at+"/settings/models", `{"llm_base_url":"`+newModelProvider(t).URL+`"}`)
	w.request(t, 200, "GET", at+"/embedding-models", "")
	w.request(t, 200, "GET", at+"/v1/models", "")
	w.request(t, 200, "GET", at+"/v1/models/"+at[strings.LastIndex(at, "/")+1:], "")
	w.request(t, 404, "GET", at+"/v1/models/other", "")
	w.request(t, 200, "POST", at+"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}]}`)
	w.request(t, 400, "POST", at+"/v1/chat/completions", `{"messages":[]}`)
	kept := at + "/v1/responses/" +
		fmt.Sprint(w.request(t, 200, "POST", at+"/v1/responses", `{"input":"Hi"}`).json["id"])
	w.request(t, 400, "POST", at+"/v1/responses", `{"input":[]}`)
	w.request(t, 200, "GET", kept, "")
	w.request(t, 200, "DELETE", kept, "")
	w.request(t, 404, "GET", kept, "")
	w.request(t, 200, "POST", at+"/v1/embeddings", `{"input":"Hi"}`)
}

func (w *contractClient) checkTools(t *testing.T, at string) {
	t.Helper()
	tool := at + "/tools/" +
		w.create(t, at+"/tools", `{"name":"add","type":"function","config":{"code":"return args.a + 1"}}`)
	w.request(t, 409, "POST", at+"/tools", `{"name":"add","type":"function","config":{"code":"return 1"}}`)
	w.request(t, 200, "GET", at+"/tools", "")
	w.request(t, 200, "GET", tool, "")
	w.request(t, 200, "PUT", tool, `{"description":"Adds one"}`)
	w.request(t, 200, "POST", tool+"/execute", `{"arguments":{"a":1}}`)
	w.request(t, 204, "DELETE", tool, "")
}
