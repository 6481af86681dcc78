package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/browser/install/installtest"
)

// world is everything outside: it records what it was sent and repeats it.
type world struct {
	*httptest.Server
	mu  sync.Mutex
	got map[string][]string // requests by path
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{got: map[string][]string{}}
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := r.URL.String() + "\n" + fmt.Sprint(r.Header) + "\n" + string(body)
		w.mu.Lock()
		w.got[r.URL.Path] = append(w.got[r.URL.Path], text)
		w.mu.Unlock()
		out.Header().Set("Content-Type", "application/json")
		out.Header().Set("X-Repeated", r.Header.Get("X-Link"))
		_ = json.NewEncoder(out).Encode(map[string]any{
			"ok":       true,
			"ts":       "1.1",
			"channel":  "C1",
			"user_id":  "U1",
			"repeated": text,
		})
	}))
	t.Cleanup(w.Close)
	return w
}

// sent returns the requests to a path.
func (w *world) sent(path string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.got[path])
}

// linkFlow has a node of each kind that sends, a script, and a workflow node. They use the
// link of a takeover, which they find at a path.
func linkFlow(world, gateway, path string) string {
	return `{"name":"send a link","status":"active","nodes":[
		{"id":"t","type":"trigger","data":{"event":"EVENT"}},
		{"id":"h","type":"http-request","data":{"url":"` + world + `/request?link={{` + path + ` | url}}",
			"method":"POST","headers":{"X-Link":"{{` + path + `}}"},"body":{"link":"{{` + path + `}}"}}},
		{"id":"s","type":"team_chat",
			"data":{"gateway_id":"` + gateway + `","channel":"C1","message":"Please help: {{` + path + `}}"}},
		{"id":"c","type":"code","data":{"code":"const seen = JSON.stringify(trigger);` +
		` console.log(seen); return {seen, repeated: nodes.h}"}}],
		"edges":[{"id":"1","source":"t","target":"h"},{"id":"2","source":"h","target":"s"},
			{"id":"3","source":"s","target":"c"}]}`
}

// TestStrangersReadNoTokens uses everything that has a token, a secret or a link, closes
// the server, and looks for them in all that can be read without a credential and as a
// viewer: every GET of the table of routes, every table by SQL, and the stream. No file
// has them either, and those who are sent a link get it.
func TestStrangersReadNoTokens(t *testing.T) {
	installtest.Need(t)
	ts := openToViewers(t)
	w := newWorld(t)
	const base = "/api/agents/default"
	secrets := map[string]string{}
	keep := func(name string, value any) string {
		text, _ := value.(string)
		if len(text) < 12 {
			t.Fatalf("%s is %v", name, value)
		}
		if _, token, found := strings.Cut(text, "token="); found {
			text = token
		}
		secrets[name] = text
		return text
	}
	// What a response has that looks like a token is one.
	post := func(status int, path, body string) map[string]any {
		made := ts.must(t, status, "POST", base+path, body)
		for _, random := range randomTexts(made) {
			secrets[path+" "+random] = random
		}
		return made
	}
	create := func(path, body string) map[string]any { return post(201, path, body) }

	// Records with secrets.
	create("/tools", `{"name":"t","type":"api","config":{"url":"`+w.URL+`/tool",
		"auth":{"type":"bearer","token":"`+keep("tool", "tool-secret-1234567890")+`"}}}`)
	create("/schedules", `{"name":"c","type":"delayed","delay_seconds":1000,"callback_type":"webhook",
		"callback_id":"`+w.URL+`/call","secret":"`+keep("schedule", "whsec_"+strings.Repeat("c2No", 8))+`"}`)
	hook := create("/webhooks", `{"url":"`+w.URL+`/events","events":["*"]}`)
	keep("webhook", hook["secret"])
	slack := create("/gateways", `{"type":"slack","name":"Team","config":{
		"botToken":"`+keep("slack", "xoxb-1234567890")+`","signingSecret":"`+keep("signing", "signing-1234567890")+`",
		"apiBaseUrl":"`+w.URL+`"}}`)["id"].(string)
	if v := ts.must(t, 200, "POST", base+"/gateways/"+slack+"/verify", ""); v["success"] != true {
		t.Fatal(v)
	}
	relay := create("/gateways", `{"type":"webhook","name":"g","config":{"url":"`+w.URL+`/gateway"}}`)
	keep("gateway", relay["webhook_secret"])
	post(200, "/webhooks/"+hook["id"].(string)+"/rotate", "")
	create("/gateways", `{"type":"web","name":"w","config":{"secret":"`+keep("widget", "widget-secret-123")+`"}}`)
	ts.visit(t, keep)
	create("/workflows", `{"name":"hook","status":"active","nodes":[{"id":"t","type":"trigger","data":{"event":"webhook",
		"auth":{"type":"header","name":"X-Hook","value":"`+keep("hook", "hook-secret-123")+`"}}}],"edges":[]}`)
	login := "/credentials/" + create("/credentials", newOAuthProvider(t).Login("google"))["id"].(string)
	ts.beginLogin(t, base+login, keep)
	post(200, login+"/connect", "")
	m := newMCPLogin(t)
	server := create("/mcp", `{"name":"m","url":"`+m.URL+`/mcp","auth":{"type":"login"}}`)["id"].(string)
	ts.beginLogin(t, base+"/mcp/"+server, keep)

	viewerKey := ts.must(t, 201, "POST", "/api/keys", `{"name":"v","role":"viewer","agents":["default"]}`)["key"]
	viewer := ts.with("X-API-Key", keep("viewer", viewerKey))
	stranger := ts.testClient.with("X-Nothing", "")
	ts.header.Set("X-API-Key", keep("admin", ts.mustOwner(t)))
	streams := map[string]*eventStream{}
	for name, who := range map[string]*testClient{"stranger": stranger, "viewer": viewer} {
		streams[name] = openEvents(t, who, streamPath, "")
	}

	// A takeover whose event starts a workflow.
	sender := func(event, path string) (id string) {
		return create("/workflows", strings.Replace(linkFlow(w.URL, slack, path), "EVENT", event, 1))["id"].(string)
	}
	byEvent := sender("browser.takeover.requested", "trigger.takeover.takeover_url")
	byHand := sender("manual", "trigger.link")
	opened := create("/browser", `{"cdp":true}`)
	session := base + "/browser/" + opened["id"].(string)
	keep("CDP", opened["cdp_url"])
	keep("live view", opened["live_view_url"])
	over := ts.must(t, 201, "POST", session+"/takeover", `{"reason":"captcha","timeout":3000}`)
	link, reference := over["takeover_url"].(string), "satchel-link:"+over["takeover_id"].(string)
	keep("takeover", link)
	finished := func(workflow string) (execution string) {
		path := base + "/workflows/executions?workflow_id=" + workflow
		ts.until(t, path, "has ended", func() bool {
			list := ts.must(t, 200, "GET", path, "")["executions"].([]any)
			if len(list) == 0 {
				return false
			}
			execution = at(list[0], "id").(string)
			status := at(list[0], "status")
			return status == "complete" || status == "errored"
		})
		return execution
	}
	x := ts.send(t, "GET", base+"/workflows/executions/"+finished(byEvent), "").text
	if !strings.Contains(x, `"status":"complete"`) || !strings.Contains(x, reference) {
		t.Errorf("the execution does not refer to the takeover: %s", x)
	}
	// People paste links, and programs pass them on.
	all := link + " " + opened["live_view_url"].(string) + " " + opened["cdp_url"].(string)
	ts.must(
		t,
		200,
		"POST",
		base+"/workflows/execute",
		`{"workflow_id":"`+byHand+`","input":{"link":"`+link+`","more":"`+all+`"}}`,
	)
	finished(byHand)
	said := ts.must(
		t,
		201,
		"POST",
		base+"/gateways/"+slack+"/simulate",
		`{"from":"U7","name":"Ada","text":"You wrote: `+all+`"}`,
	)
	conversation := base + "/conversations/" + said["conversation_id"].(string)
	ts.must(
		t, 201, "POST", conversation+"/messages",
		`{"role":"assistant","content":"Open `+link+` please","send":true}`,
	)
	if d := ts.delivery(t, conversation); d["status"] != "sent" {
		t.Errorf("the message is %v", d)
	}
	contact := create("/contacts", `{"name":"Ada","notes":"`+all+`"}`)["id"].(string)
	ts.sql(t, `UPDATE contacts SET notes = notes || '`+all+`' WHERE id = '`+contact+`'`)
	ts.must(
		t, 200, "POST", base+"/sql/execute",
		`{"query":"UPDATE contacts SET notes = notes || ?","params":["`+link+`"]}`,
	)
	create("/schedules", `{"name":"c","type":"delayed","delay_seconds":1000,"callback_type":"workflow",
		"callback_id":"`+byHand+`","payload":{"link":"`+all+`"}}`)
	create("/replies", `{"shortcut":"help","text":"`+all+`"}`)

	// Whoever is to have the link has it, and always the same one.
	ts.until(t, base+"/webhooks", "are delivered", func() bool {
		return strings.Contains(fmt.Sprint(w.sent("/events")), "browser.takeover.requested")
	})
	for path, want := range map[string]int{"/events": 1, "/request": 2 * 3, "/chat.postMessage": 3} {
		sent := fmt.Sprint(w.sent(path))
		if n := strings.Count(sent, secrets["takeover"]); n != want {
			t.Errorf("%s was sent %d links, want %d\n%s", path, n, want, sent)
		}
		if path != "/events" && strings.Contains(sent, "satchel-link") {
			t.Errorf("%s was sent a reference: %s", path, sent)
		}
	}
	if got := ts.must(t, 200, "GET", session, ""); at(got, "takeover.takeover_url") != link {
		t.Errorf("an admin sees %v", got)
	}

	ids := ts.allIDs(t)
	for name, who := range map[string]*testClient{"stranger": stranger, "viewer": viewer} {
		read := who.readEverything(t, ts.server, ids)
		read["the stream"] = streams[name].readTo(t, ts.testClient, "last of "+name)
		if !strings.Contains(read["the stream"], over["takeover_id"].(string)) {
			t.Errorf("the stream does not show the takeover to the %s", name)
		}
		t.Logf("the %s reads %d pages", name, len(read))
		for _, page := range slices.Sorted(maps.Keys(read)) {
			ts.mustHideTokens(t, name+": "+page, read[page], secrets)
		}
	}
	ts.mustStoreNoTokens(t, secrets)
}

// openToViewers starts a service that everybody may read once it is closed.
func openToViewers(t *testing.T) *testServer {
	t.Helper()
	server := New(Options{
		Parts:       Parts(openParts(t)),
		DefaultRole: agent.RoleViewer,
		CORSOrigins: []string{"*"},
		MaxUpload:   25 << 20,
		PublicURL:   "http://localhost",
		Version:     "test",
		Log:         slog.New(slog.DiscardHandler),
	})
	handler := httptest.NewServer(server.Handler())
	t.Cleanup(func() {
		server.Stop()
		handler.Close()
	})
	client := &testClient{url: handler.URL, folder: server.folder, header: http.Header{}}
	return &testServer{testClient: client, server: server}
}

// mustOwner makes a key that may do everything, for the server that it closes.
func (ts *testServer) mustOwner(t *testing.T) string {
	t.Helper()
	key := agent.Key{Name: "all", Role: agent.RoleOwner, Agents: []string{"*"}}
	_, secret, err := ts.folder.CreateKey(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

var (
	anyID    = regexp.MustCompile(`\b[a-z]+-[0-9a-z]{20}\b`)
	anyToken = regexp.MustCompile(`[\w-]{40,}\.[\w-]{43}`)
)

// mustHideTokens checks that a text has none of the secrets and no other token with control.
func (ts *testServer) mustHideTokens(t *testing.T, where, text string, secrets map[string]string) {
	t.Helper()
	for name, secret := range secrets {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s shows the %s token: …%s…", where, name, text[max(0, i-200):min(len(text), i+20)])
		}
	}
	for _, token := range anyToken.FindAllString(text, -1) {
		if g, err := ts.server.options.Live.Grant(token); err == nil && g.Control {
			t.Errorf("%s has a link with control: %+v", where, g)
		}
	}
}

// allIDs returns the ids in all answers, up to maxIDs of each kind.
func (ts *testServer) allIDs(t *testing.T) []string {
	t.Helper()
	found, kinds := otherNames, map[string]int{}
	for range 2 { // the second round reads what the first one found
		for _, text := range ts.testClient.readEverything(t, ts.server, found) {
			for _, id := range anyID.FindAllString(text, -1) {
				kind, _, _ := strings.Cut(id, "-")
				if kinds[kind] < maxIDs && !slices.Contains(found, id) {
					kinds[kind]++
					found = append(found, id)
				}
			}
		}
	}
	return found
}

const maxIDs = 4

// otherNames fill places of paths that are not for ids.
var otherNames = []string{"1", "contacts", "t", "h"}

// readEverything calls every GET of the table of routes, with the ids that fit each place
// in its path, and reads every table by SQL. It returns the answers, headers included.
func (c *testClient) readEverything(t *testing.T, server *Server, ids []string) map[string]string {
	t.Helper()
	read := map[string]string{}
	for key := range server.routes {
		if key.method != "GET" || key.path == streamPath || strings.HasSuffix(key.path, "/:id/stream") {
			continue
		}
		for _, path := range pathsOf(key.path, ids) {
			query := ""
			if strings.Contains(key.path, "/search") {
				query = "?query=link"
			}
			read[path] = c.readOnce(t, path+query)
		}
	}
	schema := c.must(t, 200, "GET", "/api/agents/default/sql/schema", "")
	for _, table := range schema["tables"].([]any) {
		name := fmt.Sprint(at(table, "name"))
		body, _ := json.Marshal(map[string]string{"query": "SELECT * FROM " + name})
		a := c.send(t, "POST", "/api/agents/default/sql/execute", string(body))
		if a.StatusCode != 200 {
			t.Errorf("table %s: %d %s", name, a.StatusCode, a.text)
		}
		read["table "+name] = a.text
	}
	return read
}

// pathsOf fills the places of a route's path: "id" with the default agent, others with the
// ids of their kind, or with other names if there are none of it.
func pathsOf(path string, ids []string) []string {
	start, rest, found := strings.Cut(path, ":")
	if !found {
		return []string{path}
	}
	name, rest, _ := strings.Cut(rest, "/")
	if rest != "" {
		rest = "/" + rest
	}
	fitting := []string{agent.DefaultID}
	if name != "id" {
		kind := strings.ToLower(strings.TrimSuffix(name, "Id"))
		fitting = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !strings.HasPrefix(id, kind+"-") })
	}
	if len(fitting) == 0 {
		fitting = otherNames
	}
	var paths []string
	for _, id := range fitting {
		for _, end := range pathsOf(rest, ids) {
			paths = append(paths, start+id+end)
		}
	}
	return paths
}

// readOnce returns an answer with its headers. A stream is read to its end, or for a while.
func (c *testClient) readOnce(t *testing.T, path string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", c.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = c.header.Clone()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer resp.Body.Close()
	var text bytes.Buffer
	_, _ = io.Copy(&text, resp.Body) // what came before the end of a stream counts
	return fmt.Sprint(resp.Header) + text.String()
}

// readTo makes a contact and returns all that the stream sent until it shows it.
func (s *eventStream) readTo(t *testing.T, c *testClient, contact string) string {
	t.Helper()
	c.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"`+contact+`"}`)
	text := ""
	for s.lines.Scan() {
		if text += s.lines.Text() + "\n"; strings.Contains(s.lines.Text(), contact) {
			return text
		}
	}
	t.Errorf("the stream ended: %s", text)
	return text
}
