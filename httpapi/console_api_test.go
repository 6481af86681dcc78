package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// approvalWorkflow creates an active workflow that asks for an approval.
func approvalWorkflow(t *testing.T, c *testClient) string {
	t.Helper()
	return createFlow(
		t,
		c,
		`[{"id":"t","type":"trigger"},{"id":"a","type":"approval","data":{"title":"Refund {{trigger.amount}}?",`+
			`"message":"For {{trigger.who}}","timeout":3600}}]`,
		`[{"source":"t","target":"a"}]`,
		"",
	)
}

// executeToApproval executes a workflow up to its approval a and returns the execution.
func executeToApproval(t *testing.T, c *testClient, workflow, input string) string {
	t.Helper()
	id := c.must(
		t, 200, "POST", flowBase+"/execute",
		`{"workflow_id":"`+workflow+`","input":`+input+`}`,
	)["execution_id"].(string)
	stream := openEvents(t, c, flowBase+"/executions/"+id+"/events", "")
	defer stream.close()
	stream.until(func(e event) bool { return e.name == "node.started" && e.data["node_id"] == "a" })
	return id
}

// createHandover creates a muted conversation whose last message is a contact's.
func createHandover(t *testing.T, c *testClient) string {
	t.Helper()
	contact := c.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada"}`)["id"].(string)
	id := c.must(t, 201, "POST", "/api/agents/default/conversations", `{"contact_id":"`+contact+`"}`)["id"].(string)
	c.must(
		t,
		201,
		"POST",
		"/api/agents/default/conversations/"+id+"/messages",
		`{"role":"user","content":"A person please"}`,
	)
	c.must(t, 200, "PUT", "/api/agents/default/conversations/"+id, `{"muted":true}`)
	return id
}

// createTakeover inserts a session with a pending takeover.
func createTakeover(t *testing.T, db *store.DB) agent.Takeover {
	t.Helper()
	now := agent.Now()
	session := agent.Session{
		ID:           agent.NewID(agent.KindSession),
		Status:       agent.SessionActive,
		Viewport:     agent.DefaultViewport,
		CreatedAt:    now,
		LastActivity: now,
	}
	if err := db.CreateSession(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	asked, err := db.CreateTakeover(t.Context(), agent.Takeover{
		ID:        agent.NewID(agent.KindTakeover),
		SessionID: session.ID,
		Reason:    "Solve it",
		Timeout:   60,
		CreatedAt: now,
		ExpiresAt: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

// TestWaiting checks that approvals with their templates filled, takeovers and handovers
// are listed and counted until a person has dealt with them.
func TestWaiting(t *testing.T) {
	c := newOwnClient(t)
	workflow := approvalWorkflow(t, c)
	execution := executeToApproval(t, c, workflow, `{"amount":20,"who":"Ada"}`)
	conversation := createHandover(t, c)
	took := createTakeover(t, c.db())

	got := c.must(t, 200, "GET", "/api/agents/default/waiting", "")
	kinds := map[any]map[string]any{}
	for _, w := range got["waiting"].([]any) {
		kinds[at(w, "kind")] = w.(map[string]any)
	}
	for kind, want := range map[string]map[string]any{
		"approval": {
			"title":         "Refund 20?",
			"message":       "For Ada",
			"execution_id":  execution,
			"node_id":       "a",
			"workflow_id":   workflow,
			"workflow_name": "Flow",
		},
		"takeover": {
			"message":     "Solve it",
			"session_id":  took.SessionID,
			"takeover_id": took.ID,
			"expires_at":  took.ExpiresAt.String(),
		},
		"handover": {
			"title":           "Ada",
			"message":         "A person please",
			"conversation_id": conversation,
			"contact_name":    "Ada",
			"expires_at":      nil,
		},
	} {
		for field, value := range want {
			if kinds[kind][field] != value {
				t.Errorf("%s: %s is %v, want %v", kind, field, kinds[kind][field], value)
			}
		}
	}
	if fmt.Sprint(at(got, "meta.total")) != "3" || len(kinds) != 3 || kinds["approval"]["expires_at"] == nil {
		t.Errorf("listed: %v", got)
	}
	console := c.must(t, 200, "GET", "/api/console", "")
	if fmt.Sprint(at(console, "agents.0.waiting")) != "3" {
		t.Errorf("counted: %v", console)
	}
	if page := c.must(
		t,
		200,
		"GET",
		"/api/agents/default/waiting?limit=1&offset=1",
		"",
	); len(page["waiting"].([]any)) != 1 {
		t.Errorf("a page: %v", page)
	}

	c.must(
		t,
		200,
		"POST",
		flowBase+"/executions/"+execution+"/resume",
		`{"node_id":"a","data":{"decision":"approved"}}`,
	)
	c.must(
		t,
		201,
		"POST",
		"/api/agents/default/conversations/"+conversation+"/messages",
		`{"role":"assistant","content":"Here I am"}`,
	)
	if _, err := c.db().MoveTakeover(
		t.Context(),
		took.SessionID,
		took.ID,
		agent.TakeoverCompleted,
	); err != nil {
		t.Fatal(err)
	}
	if left := c.must(t, 200, "GET", "/api/agents/default/waiting", ""); len(left["waiting"].([]any)) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestConsole checks that a page starts with the caller's identity and the agents they
// may see.
func TestConsole(t *testing.T) {
	c := newOwnClient(t)
	for _, name := range []string{"c", "a", "B"} {
		if _, err := c.folder.CreateAgent(t.Context(), agent.Agent{Name: name}, ""); err != nil {
			t.Fatal(err)
		}
	}
	failing := createFlow(
		t,
		c,
		`[{"id":"t","type":"trigger"},{"id":"s","type":"http-request","data":{"url":"http://127.0.0.1:1/"}}]`,
		`[{"source":"t","target":"s"}]`,
		"",
	)
	c.must(t, 200, "POST", flowBase+"/execute?wait=30", `{"workflow_id":"`+failing+`"}`)

	got := c.must(t, 200, "GET", "/api/console", "")
	agents := got["agents"].([]any)
	if len(agents) != 4 ||
		got["more_agents"] != false ||
		got["open"] != true ||
		got["identity"] != nil ||
		fmt.Sprint(at(got, "limits.upload_bytes")) != fmt.Sprint(25<<20) ||
		got["version"] != "test" ||
		got["cluster"] != false {
		t.Errorf("%d agents of %v", len(agents), got)
	}
	if at(agents[0], "id") != "default" ||
		at(agents[0], "role") != "owner" ||
		fmt.Sprint(at(agents[0], "failures")) != "1" ||
		at(agents[1], "name") != "a" ||
		at(agents[2], "name") != "B" {
		t.Errorf("first: %v, %v", agents[0], agents[1])
	}
	var all []visibleAgent
	for _, db := range c.folder.Agents() {
		all = append(all, visibleAgent{Agent: db.Agent()})
	}
	for i, named := range append(all, visibleAgent{}) {
		for _, ref := range []string{named.ID, strings.ToUpper(named.Name)} {
			cut := firstIncluding(all, ref, 2)
			if has := func(v visibleAgent) bool { return v.ID == named.ID }; len(cut) != 2 ||
				cut[0].ID != all[0].ID ||
				ref != "" && !slices.ContainsFunc(cut, has) {
				t.Errorf("agent %d of %d: %v", i, len(all), cut)
			}
		}
	}
}

// TestConsoleUnderAccessControl checks that every caller gets a response with their own
// agents, and only a bad key is refused.
func TestConsoleUnderAccessControl(t *testing.T) {
	c := newProxiedServer(t, func(o *Options) { o.DefaultRole = agent.RoleViewer })
	c.as(t, "ada@example.com").must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	if got := c.must(t, 200, "GET", "/api/console?agent=bakery", ""); len(got["agents"].([]any)) != 1 ||
		at(got, "agents.0.role") != "viewer" ||
		got["identity"] != nil || got["open"] != false || got["default_role"] != "viewer" {
		t.Errorf("a stranger: %v", got)
	}
	ada := c.as(t, "ada@example.com").must(t, 200, "GET", "/api/console", "")
	if len(ada["agents"].([]any)) != 2 ||
		at(ada, "agents.1.role") != "owner" ||
		at(ada, "identity.email") != "ada@example.com" {
		t.Errorf("the owner: %v", ada)
	}
	if key := c.withKey(t, agent.RoleViewer, "default").must(
		t, 200, "GET", "/api/console", "",
	); at(key, "identity.key") == nil {
		t.Errorf("a key: %v", key)
	}
	if bad := c.with(
		"X-API-Key",
		"satchel_"+strings.Repeat("0", 64),
	).send(t, "GET", "/api/console", ""); bad.StatusCode != 401 {
		t.Errorf("a bad key: %d", bad.StatusCode)
	}
	none := newProxiedServer(t, func(o *Options) { o.DefaultRole = agent.RoleNone })
	if got := none.must(t, 200, "GET", "/api/console", ""); len(got["agents"].([]any)) != 0 {
		t.Errorf("a stranger who has no role: %v", got)
	}
}

// TestApprovalWhoseCommentIsTheAnswer is approved only with a comment: because its node
// says so, or because a message has no other text.
func TestApprovalWhoseCommentIsTheAnswer(t *testing.T) {
	c := newTestClient(t)
	for _, kind := range []struct {
		name, data, message string
		required            bool
	}{
		{
			"the node says so",
			`"comment_required":true`,
			`"sms","data":{"disabled":true,"to":"1","message":"You asked. {{nodes.a.comment}}"}`,
			true,
		},
		{
			"the text of a message",
			`"title":"?"`,
			`"chatbot_a","data":{"disabled":true,"to":"1","message":"{{ nodes.a.comment }}"}`,
			true,
		},
		{
			"the text of an email",
			`"title":"?"`,
			`"email","data":{"disabled":true,"to":"a@example.com","subject":"Hello","body":"{{nodes.a.comment}}"}`,
			true,
		},
		{
			"part of a message",
			`"title":"?"`,
			`"sms","data":{"disabled":true,"to":"1","message":"Refused. {{nodes.a.comment}}"}`,
			false,
		},
		{
			"it has a default",
			`"title":"?"`,
			`"sms","data":{"disabled":true,"to":"1","message":"{{nodes.a.comment | default:\"Yes.\"}}"}`,
			false,
		},
		{
			"the node says no",
			`"comment_required":false`,
			`"sms","data":{"disabled":true,"to":"1","message":"{{nodes.a.comment}}"}`,
			false,
		},
	} {
		id := createFlow(
			t,
			c,
			`[{"id":"t","type":"trigger"},{"id":"a","type":"approval","data":{`+kind.data+`}},{"id":"m","type":`+
				kind.message+`}]`,
			`[{"source":"t","target":"a"},{"source":"a","target":"m","sourceHandle":"rejected"}]`,
			`{"concurrency":10}`,
		)
		for _, decision := range []string{
			`{"decision":"approved","comment":"In two days."}`,
			`{"decision":"rejected"}`,
		} {
			execution := executeToApproval(t, c, id, `{}`)
			resume := flowBase + "/executions/" + execution + "/resume"
			listed := at(c.must(t, 200, "GET", "/api/agents/default/waiting", ""), "waiting.0.comment_required")
			if (listed == true) != kind.required {
				t.Errorf("%s: comment_required is %v", kind.name, listed)
			}
			if kind.required {
				for _, empty := range []string{``, `,"comment":" \n"`, `,"comment":5`} {
					refused := c.must(t, 400, "POST", resume, `{"node_id":"a","data":{"decision":"approved"`+empty+`}}`)
					if at(refused, "error.details.field") != "data.comment" {
						t.Errorf("%s: %v", kind.name, refused)
					}
				}
			}
			c.must(t, 200, "POST", resume, `{"node_id":"a","data":`+decision+`}`)
		}
		if !kind.required {
			c.must(
				t,
				200,
				"POST",
				flowBase+"/executions/"+executeToApproval(t, c, id, `{}`)+"/resume",
				`{"node_id":"a","data":{"decision":"approved"}}`,
			)
		}
	}
}
