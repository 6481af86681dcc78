package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

const streamPath = "/api/agents/default/stream"

// changeOf reports whether an event is a change of a kind and an operation.
func changeOf(kind, op string) func(event) bool {
	return func(e event) bool { return e.name == "change" && e.data["kind"] == kind && e.data["op"] == op }
}

func named(name string) func(event) bool { return func(e event) bool { return e.name == name } }

// TestStream checks that each change, whatever made it, is sent with the row that its
// list shows, and that counts are sent too.
func TestStream(t *testing.T) {
	c := newTestClient(t)
	s := openEvents(t, c, streamPath, "")
	first, _ := s.next()
	if first.name != "hello" ||
		first.data["role"] != "owner" ||
		first.data["stream"] == "" ||
		fmt.Sprint(first.data["waiting"], first.data["unread"]) != "0 0" ||
		first.id != "" {
		t.Fatalf("first: %+v", first)
	}
	contact := c.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada","notes":"not listed"}`)
	made := s.until(changeOf("contact", "create"))
	listed := c.must(t, 200, "GET", "/api/agents/default/contacts", "")
	if made.id == "" ||
		made.data["id"] != contact["id"] ||
		string(encode(made.data["row"])) != string(encode(at(listed, "contacts.0"))) {
		t.Errorf("created: %+v", made)
	}
	conversation := createHandover(t, c)
	var said event
	counted := false // counts are read after changes, and may be ahead of them
	s.until(func(e event) bool {
		if changeOf("message", "create")(e) {
			said = e
		}
		counted = counted || e.name == "counts" && fmt.Sprint(e.data["waiting"], e.data["unread"]) == "1 1"
		return said.name != "" && counted
	})
	if said.data["conversation_id"] != conversation || at(said.data, "row.content") != "A person please" {
		t.Errorf("message: %+v", said)
	}
	c.must(
		t,
		201,
		"POST",
		"/api/agents/default/conversations/"+conversation+"/messages",
		`{"role":"assistant","content":"here"}`,
	)
	s.until(func(e event) bool {
		return e.name == "counts" && fmt.Sprint(e.data["waiting"], e.data["unread"]) == "0 0"
	})

	workflow := approvalWorkflow(t, c)
	executeToApproval(t, c, workflow, `{"amount":1}`)
	if e := s.until(changeOf("execution", "create")); at(e.data, "row.workflow_id") != workflow ||
		at(e.data, "row.input") != nil {
		t.Errorf("execution: %+v", e)
	}
	s.until(func(e event) bool { return e.name == "counts" && fmt.Sprint(e.data["waiting"]) == "1" })
	c.must(t, 200, "PUT", "/api/agents/default/settings", `{"llm_model":"m"}`)
	if e := s.until(changeOf("setting", "update")); at(e.data, "row.llm_model") != "m" {
		t.Errorf("settings: %+v", e)
	}
	c.must(t, 200, "PUT", "/api/agents/default", `{"description":"new"}`)
	s.until(func(e event) bool { return changeOf("agent", "update")(e) && at(e.data, "row.description") == "new" })
	c.must(t, 204, "DELETE", "/api/agents/default/contacts/"+contact["id"].(string), "")
	if e := s.until(changeOf("contact", "delete")); e.data["row"] != nil {
		t.Errorf("deleted: %+v", e)
	}
	c.must(
		t,
		200,
		"POST",
		"/api/agents/default/sql/execute",
		`{"query":"INSERT INTO contacts(name) VALUES ('By SQL')"}`,
	)
	if e := s.until(changeOf("contact", "create")); at(e.data, "row.name") != "By SQL" {
		t.Errorf("by SQL: %+v", e)
	}
}

// TestStreamKinds checks that each kind of record that lists show is streamed as its list
// shows it.
func TestStreamKinds(t *testing.T) {
	c := newTestClient(t)
	s := openEvents(t, c, streamPath, "")
	s.until(named("hello"))
	at1 := "/api/agents/default"
	workflow := createFlow(t, c, simpleNodes, simpleEdges, "")
	s.until(changeOf("workflow", "create"))
	schedule := c.must(
		t, 201, "POST", at1+"/schedules",
		`{"name":"Later","type":"delayed","delay_seconds":3600,"callback_type":"workflow","callback_id":"`+
			workflow+`"}`,
	)["id"].(string)
	s.until(changeOf("schedule", "create"))
	c.must(t, 200, "POST", at1+"/schedules/"+schedule+"/run", "")
	if e := s.until(changeOf("run", "create")); e.data["schedule_id"] != schedule {
		t.Errorf("run: %+v", e)
	}
	c.must(t, 201, "POST", at1+"/calendar", `{"title":"Lunch","start_time":"2099-01-01T12:00:00Z"}`)
	if e := s.until(changeOf("task", "create")); at(e.data, "row.title") != "Lunch" {
		t.Errorf("task: %+v", e)
	}
	c.must(
		t, 201, "POST", at1+"/tools",
		`{"name":"t","type":"function","description":"d","config":{"code":"return 1"}}`,
	)
	if e := s.until(changeOf("tool", "create")); at(e.data, "row.name") != "t" || at(e.data, "row.config") != nil {
		t.Errorf("tool: %+v", e)
	}
	api := c.must(
		t, 201, "POST", at1+"/apis",
		`{"name":"shop","document":"{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Shop\",\"version\":\"1\"},`+
			`\"servers\":[{\"url\":\"https://shop.example.com\"}],`+
			`\"paths\":{\"/orders\":{\"get\":{\"operationId\":\"orders\"}}}}"}`,
	)
	if e := s.until(changeOf("api", "create")); at(e.data, "row.name") != "shop" || e.data["id"] != api["id"] {
		t.Errorf("api: %+v", e)
	}
	c.send(t, "DELETE", at1+"/apis/shop", "")
	if e := s.until(changeOf("api", "delete")); e.data["id"] != api["id"] {
		t.Errorf("api: %+v", e)
	}
	c.must(t, 201, "POST", at1+"/webhooks", `{"url":"http://127.0.0.1:1/","events":["contact.created"]}`)
	s.until(changeOf("webhook", "create"))
	c.must(t, 201, "POST", at1+"/contacts", `{"name":"Ada"}`)
	s.until(changeOf("delivery", "create"))
	c.must(t, 201, "POST", at1+"/gateways", `{"type":"webhook","name":"g","config":{"secret":"0123456789abcdef"}}`)
	if e := s.until(changeOf("gateway", "create")); at(e.data, "row.name") != "g" || at(e.data, "row.config") != nil {
		t.Errorf("gateway: %+v", e)
	}
	took := createTakeover(t, c.db())
	s.until(changeOf("session", "create"))
	if e := s.until(changeOf("takeover", "create")); at(e.data, "row.takeover_id") != took.ID {
		t.Errorf("takeover: %+v", e)
	}
}

// TestStreamProgress checks that work on a source is sent with its progress.
func TestStreamProgress(t *testing.T) {
	c, _ := openWith(t, func(o *Options) { o.NoAuth = true }) // the index does not run: the source stays as it is
	s := openEvents(t, c, streamPath, "")
	s.until(named("hello"))
	body, media := multipartForm(t, nil, "a.txt", []byte("hello"), nil)
	id := c.do(t, "POST", "/api/agents/default/sources", body, media).json["id"]
	if e := s.until(changeOf("source", "create")); e.data["id"] != id || at(e.data, "row.status") != "processing" {
		t.Errorf("created: %+v", e)
	}
	if e := s.until(named("progress")); e.data["kind"] != "source" ||
		e.data["id"] != id ||
		e.data["done"] == nil ||
		e.data["total"] == nil {
		t.Errorf("progress: %+v", e)
	}
}

// TestStreamResumes checks that a client that reconnects gets what it missed, once for
// each record, and a reset when that is not known.
func TestStreamResumes(t *testing.T) {
	c := newTestClient(t)
	s := openEvents(t, c, streamPath, "")
	s.until(named("hello"))
	c.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada"}`)
	last := s.until(changeOf("contact", "create")).id
	s.close()
	missed := c.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Bob"}`)["id"].(string)
	c.must(t, 200, "PUT", "/api/agents/default/contacts/"+missed, `{"name":"Rob"}`)

	again := openEvents(t, c, streamPath, last)
	again.until(named("hello"))
	if e, _ := again.next(); e.name != "change" ||
		e.data["id"] != missed ||
		e.data["op"] != "create" ||
		at(e.data, "row.name") != "Rob" ||
		e.id == "" ||
		e.id == last {
		t.Errorf("missed: %+v", e)
	}
	for _, id := range []string{"other-1", "x", last + "9999"} {
		s := openEvents(t, c, streamPath, id)
		s.until(named("hello"))
		if e, _ := s.next(); e.name != "reset" || e.id == "" {
			t.Errorf("after %s: %+v", id, e)
		}
	}
	for i := range ringSize + 1 {
		if _, err := c.db().CreateContact(t.Context(), agent.ContactChange{
			Name: agent.Some(fmt.Sprint(i)),
		}); err != nil {
			t.Fatal(err)
		}
	}
	old := openEvents(t, c, streamPath, last)
	old.until(named("hello"))
	if e, _ := old.next(); e.name != "reset" {
		t.Errorf("after %d changes: %+v", ringSize+1, e)
	}
}

// TestStreamMerges checks that a record that changes all the time is sent at most four
// times a second, and that its last state is sent.
func TestStreamMerges(t *testing.T) {
	c := newTestClient(t)
	id := c.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada"}`)["id"].(string)
	s := openEvents(t, c, streamPath, "")
	s.until(named("hello"))
	began := time.Now()
	const n = 200
	for i := range n {
		if _, err := c.db().UpdateContact(t.Context(), id, agent.ContactChange{
			Name: agent.Some(fmt.Sprint("name", i)),
		}); err != nil {
			t.Fatal(err)
		}
	}
	events := 0
	s.until(func(e event) bool {
		if e.name == "change" {
			events++
		}
		return e.name == "change" && at(e.data, "row.name") == fmt.Sprint("name", n-1)
	})
	if most := 2 + int(time.Since(began)/recordInterval); events > most {
		t.Errorf("%d events of %d changes, at most %d", events, n, most)
	}
}

// TestStreamEnds checks that streams end with the agent, with the key, and with the
// server.
func TestStreamEnds(t *testing.T) {
	c, server := openWith(t, func(o *Options) { o.NoAuth = true })
	db, err := c.folder.CreateAgent(t.Context(), agent.Agent{Name: "short"}, "")
	if err != nil {
		t.Fatal(err)
	}
	ends := func(what string, s *eventStream, end func()) {
		t.Helper()
		s.until(named("hello"))
		end()
		if _, err := io.Copy(io.Discard, s.resp.Body); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	ends("the agent's deletion", openEvents(t, c, "/api/agents/short/stream", ""), func() {
		if err := c.folder.DeleteAgent(db); err != nil {
			t.Fatal(err)
		}
	})
	ends("the server's stop", openEvents(t, c, streamPath, ""), server.Stop)

	under := newProxiedServer(t, nil)
	_, secret, err := under.folder.CreateKey(t.Context(), agent.Key{
		Name:   "k",
		Role:   agent.RoleViewer,
		Agents: []string{"default"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ends("the key's end", openEvents(t, under.with("X-API-Key", secret), streamPath, ""), func() {
		keys, err := under.folder.Keys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			if k.Name == "k" {
				if err := under.folder.DeleteKey(t.Context(), k.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := under.db().CreateContact(t.Context(), agent.ContactChange{
			Name: agent.Some("secret"),
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStreamLimits checks the limit of streams of a client.
func TestStreamLimits(t *testing.T) {
	c := newOwnClient(t) // other tests hold streams from the same address
	open := make([]*eventStream, maxClientStreams)
	for i := range open {
		open[i] = openEvents(t, c, streamPath, "")
		open[i].until(named("hello"))
	}
	more := openEvents(t, c, streamPath, "")
	if more.resp.StatusCode != http.StatusTooManyRequests || more.resp.Header.Get("Retry-After") == "" {
		t.Errorf("one too many: %d", more.resp.StatusCode)
	}
}

// TestStrangersStreams checks that strangers cannot hold more streams of any route than a client may, nor all of an
// agent.
func TestStrangersStreams(t *testing.T) {
	c := newProxiedServer(t, func(o *Options) { o.DefaultRole = agent.RoleViewer })
	if _, err := c.db().CreateAdmin(t.Context(), agent.Admin{
		Email: "ada@example.com",
		Role:  agent.RoleAdmin,
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.server.flow.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.server.flow.Stop)
	ada, stranger := c.as(t, "ada@example.com"), c.testClient
	workflow := createFlow(
		t,
		ada,
		`[{"id":"t","type":"trigger"},{"id":"w","type":"wait","data":{"duration":1,"unit":"hours"}}]`,
		`[{"source":"t","target":"w"}]`,
		"",
	)
	run := ada.must(t, 200, "POST", "/api/agents/default/workflows/execute", `{"workflow_id":"`+workflow+`"}`)
	path := "/api/agents/default/workflows/executions/" + run["execution_id"].(string) + "/events"
	for range maxClientStreams {
		openEvents(t, stranger, path, "").until(named("node.started"))
	}
	if more := openEvents(t, stranger, path, ""); more.resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one too many: %d", more.resp.StatusCode)
	}
	openEvents(t, ada, path, "").until(named("node.started"))
	openEvents(t, stranger, streamPath, "").until(named("hello"))
}

// TestPresence checks that viewers with a role of their own see where others are and when
// they leave, and that nobody can set another viewer's presence.
func TestPresence(t *testing.T) {
	c := newProxiedServer(t, func(o *Options) { o.DefaultRole = agent.RoleViewer })
	for _, email := range []string{"ada@example.com", "bob@example.com"} {
		if _, err := c.db().CreateAdmin(t.Context(), agent.Admin{
			Email: email,
			Role:  agent.RoleViewer,
		}); err != nil {
			t.Fatal(err)
		}
	}
	ada, bob := c.as(t, "ada@example.com"), c.as(t, "bob@example.com")
	seen := openEvents(t, ada, streamPath, "")
	seen.until(named("hello"))
	stranger := openEvents(t, c.testClient, streamPath, "")
	stranger.until(named("hello"))
	bobs := openEvents(t, bob, streamPath, "")
	stream := bobs.until(named("hello")).data["stream"].(string)
	body := `{"stream":"` + stream + `","at":"workflow-1","editing":true}`
	ada.must(t, 404, "PUT", "/api/agents/default/presence", body)
	bob.must(t, 204, "PUT", "/api/agents/default/presence", body)
	if e := seen.until(named("presence")); e.data["who"] != "bob@example.com" ||
		e.data["at"] != "workflow-1" ||
		e.data["editing"] != true ||
		e.data["stream"] != stream {
		t.Errorf("present: %+v", e)
	}
	late := openEvents(t, ada, streamPath, "")
	late.until(named("hello"))
	if e, _ := late.next(); e.name != "presence" || e.data["at"] != "workflow-1" {
		t.Errorf("after joining late: %+v", e)
	}
	bobs.close()
	if e := seen.until(named("presence")); e.data["at"] != "" || e.data["stream"] != stream {
		t.Errorf("left: %+v", e)
	}
	if _, err := c.db().CreateContact(t.Context(), agent.ContactChange{Name: agent.Some("x")}); err != nil {
		t.Fatal(err)
	}
	if e, _ := stranger.next(); e.name != "change" {
		t.Errorf("a stranger receives %+v", e)
	}
}

// TestStreamOfLongRecords checks that a change that is too large to send is a reset.
func TestStreamOfLongRecords(t *testing.T) {
	c := newTestClient(t)
	id := c.must(t, 201, "POST", "/api/agents/default/conversations", `{}`)["id"].(string)
	s := openEvents(t, c, streamPath, "")
	s.until(named("hello"))
	query := `{"query":"INSERT INTO messages(conversation_id, role, content) SELECT ?, 'system', printf('%.*c', ` +
		`90000, 'x') FROM json_each('[` + strings.TrimSuffix(strings.Repeat("1,", 60), ",") + `]')","params":["` +
		id + `"]}`
	c.must(t, 200, "POST", "/api/agents/default/sql/execute", query)
	if e, _ := s.next(); e.name != "reset" || e.id == "" {
		t.Errorf("received %s %s", e.name, e.id)
	}
}

// TestSlowViewer checks that a viewer that does not read loses changes and is sent a
// reset; other viewers and writers do not wait for it.
func TestSlowViewer(t *testing.T) {
	f := newChangeFeed(&Server{}, nil)
	v := &viewer{queue: make(chan string, maxBatches)}
	f.viewers[v] = true
	for i := range maxBatches + 3 {
		f.send(fmt.Sprint(i), false)
	}
	if !v.lost.Load() || f.resetViewer(v) != frame("reset", f.idLocked(), struct{}{}) || len(v.queue) != 0 {
		t.Errorf("%d are queued", len(v.queue))
	}
	f.noteLocked(store.Change{Kind: agent.KindContact, ID: "contact-1", Op: store.OpCreate})
	if _, ok := f.sinceLocked(f.idLocked()); !ok {
		t.Error("changes after the reset are not known")
	}
}
