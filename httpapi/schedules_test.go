package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestScheduleInput(t *testing.T) {
	c := newTestClient(t)
	const list = "/api/agents/default/schedules"
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	body := func(fields string) string {
		return `{"name":"n","callback_type":"webhook","callback_id":"` + receiver.URL + `",` + fields + `}`
	}
	cron := c.must(
		t, 201, "POST", list,
		body(`"type":"cron","cron_expression":"*/5 * * * *","timezone":"Europe/Berlin"`),
	)
	id := cron["id"].(string)
	if secret, _ := cron["secret"].(string); !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("no secret: %v", cron)
	}
	past := time.Now().Add(-2 * time.Minute).UTC().Format(time.RFC3339)
	soon := time.Now().Add(-30 * time.Second).UTC().Format(time.RFC3339)
	for _, tc := range []apiCase{
		{"no body", "POST", list, ``, 400, invalid("name")},
		{"no type", "POST", list, body(`"cron_expression":"* * * * *"`), 400, invalid("type")},
		{"bad type", "POST", list, body(`"type":"hourly"`), 400, invalid("type")},
		{"no expression", "POST", list, body(`"type":"cron"`), 400, invalid("cron_expression")},
		{
			"six fields",
			"POST",
			list,
			body(`"type":"cron","cron_expression":"0 0 9 * * *"`),
			400,
			invalid("cron_expression"),
		},
		{
			"a named expression",
			"POST",
			list,
			body(`"type":"cron","cron_expression":"@daily"`),
			400,
			invalid("cron_expression"),
		},
		{
			"an expression that never matches",
			"POST",
			list,
			body(`"type":"cron","cron_expression":"0 0 30 2 *"`),
			400,
			invalid("cron_expression"),
		},
		{
			"a number for an expression",
			"POST",
			list,
			body(`"type":"cron","cron_expression":5`),
			400,
			invalid("cron_expression"),
		},
		{"once without a time", "POST", list, body(`"type":"once"`), 400, invalid("next_run")},
		{
			"once without a readable time",
			"POST",
			list,
			body(`"type":"once","next_run":"tomorrow"`),
			400,
			invalid("next_run"),
		},
		{"once in the past", "POST", list, body(`"type":"once","next_run":"` + past + `"`), 400, invalid("next_run")},
		{
			"once a moment ago",
			"POST",
			list,
			body(`"type":"once","next_run":"` + soon + `"`),
			201,
			map[string]any{"status": "active"},
		},
		{"no delay", "POST", list, body(`"type":"delayed"`), 400, invalid("delay_seconds")},
		{"delay of zero", "POST", list, body(`"type":"delayed","delay_seconds":0`), 400, invalid("delay_seconds")},
		{
			"delay of more than a year",
			"POST",
			list,
			body(`"type":"delayed","delay_seconds":31536001`),
			400,
			invalid("delay_seconds"),
		},
		{
			"a year's delay",
			"POST",
			list,
			body(`"type":"delayed","delay_seconds":31536000`),
			201,
			map[string]any{"delay_seconds": "31536000"},
		},
		{
			"bad zone",
			"POST",
			list,
			body(`"type":"cron","cron_expression":"* * * * *","timezone":"Local"`),
			400,
			invalid("timezone"),
		},
		{
			"bad policy",
			"POST",
			list,
			body(`"type":"cron","cron_expression":"* * * * *","misfire_policy":"often"`),
			400,
			invalid("misfire_policy"),
		},
		{
			"bad overlap",
			"POST",
			list,
			body(`"type":"cron","cron_expression":"* * * * *","overlap":"yes"`),
			400,
			invalid("overlap"),
		},
		{
			"created as completed",
			"POST",
			list,
			body(`"type":"cron","cron_expression":"* * * * *","status":"completed"`),
			400,
			invalid("status"),
		},
		{
			"payload not an object",
			"POST",
			list,
			body(`"type":"cron","cron_expression":"* * * * *","payload":[]`),
			400,
			invalid("payload"),
		},
		{
			"bad secret",
			"POST",
			list,
			body(`"type":"cron","cron_expression":"* * * * *","secret":"x"`),
			400,
			invalid("secret"),
		},
		{
			"unknown tool",
			"POST",
			list,
			`{"name":"n","type":"cron","cron_expression":"* * * * *","callback_type":"tool","callback_id":"tool-x"}`,
			400,
			invalid("callback_id"),
		},
		{
			"unknown source",
			"POST",
			list,
			`{"name":"n","type":"cron","cron_expression":"* * * * *","callback_type":"source",` +
				`"callback_id":"source-x"}`,
			400,
			invalid("callback_id"),
		},
		{
			"agent without a prompt",
			"POST",
			list,
			`{"name":"n","type":"cron","cron_expression":"* * * * *","callback_type":"agent","payload":{"prompt":" "}}`,
			400,
			invalid("payload.prompt"),
		},
		{
			"unknown workflow",
			"POST",
			list,
			`{"name":"n","type":"cron","cron_expression":"* * * * *","callback_id":"workflow-x"}`,
			400,
			invalid("callback_id"),
		},
		{
			"no callback",
			"POST",
			list,
			`{"name":"n","type":"cron","cron_expression":"* * * * *","callback_type":"webhook"}`,
			400,
			invalid("callback_id"),
		},
		{
			"metadata address",
			"POST",
			list,
			`{"name":"n","type":"cron","cron_expression":"* * * * *","callback_type":"webhook",` +
				`"callback_id":"http://169.254.169.254/"}`,
			400,
			invalid("callback_id"),
		},
		{
			"unknown callback type",
			"POST",
			list,
			body(`"type":"cron","cron_expression":"* * * * *","callback_type":"mail"`),
			400,
			invalid("callback_type"),
		},
		{"long name", "POST", list, `{"name":"` + strings.Repeat("x", 201) + `"}`, 400, invalid("name")},
		{"bad filter", "GET", list + "?status=asleep", ``, 400, invalid("status")},
		{"bad type filter", "GET", list + "?type=daily", ``, 400, invalid("type")},
		{"bad sort", "GET", list + "?sort=payload", ``, 400, invalid("sort")},
		{
			"filtered",
			"GET",
			list + "?status=active&type=cron",
			``,
			200,
			map[string]any{"meta.total": "1", "schedules.0.id": id},
		},
		{"unknown", "GET", list + "/schedule-x", ``, 404, code("NOT_FOUND")},
		{"change of an unknown one", "PUT", list + "/schedule-x", `{}`, 404, code("NOT_FOUND")},
		{"deletion of an unknown one", "DELETE", list + "/schedule-x", ``, 404, code("NOT_FOUND")},
		{"run of an unknown one", "POST", list + "/schedule-x/run", ``, 404, code("NOT_FOUND")},
		{"status set to completed", "PUT", list + "/" + id, `{"status":"completed"}`, 400, invalid("status")},
		{"a bad change", "PUT", list + "/" + id, `{"cron_expression":"* * * *"}`, 400, invalid("cron_expression")},
		{"to once without a time", "PUT", list + "/" + id, `{"type":"once"}`, 400, invalid("next_run")},
		{
			"nothing was changed", "GET", list + "/" + id, ``, 200,
			map[string]any{"cron_expression": "*/5 * * * *", "type": "cron", "status": "active", "secret": nil},
		},
		{
			"next_run of a cron cannot be set",
			"PUT",
			list + "/" + id,
			`{"next_run":"2001-01-01T00:00:00Z","name":"other"}`,
			200,
			map[string]any{"name": "other", "next_run": cron["next_run"], "secret": nil},
		},
		{
			"paused", "PUT", list + "/" + id, `{"status":"paused"}`, 200,
			map[string]any{"next_run": nil, "status": "paused"},
		},
	} {
		tc.run(t, c)
	}
	whole := c.send(t, "GET", list+"/"+id, "").text
	if again := c.must(t, 200, "PUT", list+"/"+id, whole); again["cron_expression"] != "*/5 * * * *" ||
		again["status"] != "paused" {
		t.Errorf("writing back what was read changes %v", again)
	}
	if a := c.send(t, "DELETE", list+"/"+id, ""); a.StatusCode != 204 || a.text != "" {
		t.Errorf("DELETE: %d %q", a.StatusCode, a.text)
	}
}

// TestRunNow has a schedule call a receiver at once.
func TestRunNow(t *testing.T) {
	c := newTestClient(t)
	got := make(chan *http.Request, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r }))
	t.Cleanup(receiver.Close)
	list := "/api/agents/default/schedules"
	made := c.must(
		t, 201, "POST", list,
		`{"name":"n","type":"cron","cron_expression":"0 0 1 1 *","callback_type":"webhook","callback_id":"`+
			receiver.URL+`"}`,
	)
	run := c.must(t, 200, "POST", list+"/"+made["id"].(string)+"/run", "")
	if r := <-got; r.Header.Get("webhook-id") != run["id"] {
		t.Errorf("webhook-id %s, want the run's id %v", r.Header.Get("webhook-id"), run["id"])
	}
	s := c.waitRun(t, list+"/"+made["id"].(string))
	if at(s, "executions.0.status") != "success" ||
		at(s, "executions.0.id") != run["id"] ||
		s["last_run"] == nil ||
		s["next_run"] != made["next_run"] {
		t.Errorf("%v", s)
	}
}

// waitRun waits until the newest run of a schedule has ended and returns the
// schedule.
func (c *testClient) waitRun(t *testing.T, path string) (s map[string]any) {
	t.Helper()
	c.until(t, path, "has no run in progress", func() bool {
		s = c.must(t, 200, "GET", path, "")
		return at(s, "executions.0.status") != "running"
	})
	return s
}

// callbackRun creates a schedule, runs it now and returns it with the result of the run.
func (c *testClient) callbackRun(t *testing.T, fields string) map[string]any {
	t.Helper()
	const list = "/api/agents/default/schedules"
	made := c.must(t, 201, "POST", list, `{"name":"n","type":"cron","cron_expression":"0 0 1 1 *",`+fields+`}`)
	path := list + "/" + made["id"].(string)
	c.must(t, 200, "POST", path+"/run", "")
	return c.waitRun(t, path)
}

// TestScheduledPrompt has a schedule ask the agent: prompt and answer are stored in a
// conversation of the run's own or in one that is named, and no message counts as
// received.
func TestScheduledPrompt(t *testing.T) {
	c, m := newClientWithModel(t, func(n int, _ map[string]any) string { return fmt.Sprintf("Answer %d.", n) })
	const conversations = "/api/agents/default/conversations"
	c.must(
		t,
		201,
		"POST",
		"/api/agents/default/workflows",
		`{"name":"w","status":"active","nodes":[{"id":"t","type":"trigger",`+
			`"data":{"event":"message.received"}}],"edges":[]}`,
	)
	s := c.callbackRun(t, `"callback_type":"agent","payload":{"prompt":"What is new?"}`)
	if at(s, "executions.0.status") != "success" {
		t.Fatalf("%v", s)
	}
	list := c.must(t, 200, "GET", conversations, "")
	id := at(list, "conversations.0.id").(string)
	if at(list, "conversations.0.metadata.run_id") != at(s, "executions.0.id") ||
		at(list, "conversations.0.metadata.schedule_id") != s["id"] {
		t.Errorf("its conversation: %v", list)
	}
	c.callbackRun(t, `"callback_type":"agent","payload":{"prompt":"And now?","conversation_id":"`+id+`"}`)
	kept := c.must(t, 200, "GET", conversations+"/"+id, "")
	var said []string
	for _, message := range kept["messages"].([]any) {
		said = append(said, fmt.Sprint(at(message, "role"), ": ", at(message, "content")))
	}
	if got := strings.Join(said, " | "); got != "user: What is new? | assistant: Answer 1. | user: "+
		"And now? | assistant: Answer 2." {
		t.Errorf("kept %s", got)
	}
	if sent := m.Messages(1); len(sent) != 4 {
		t.Errorf("the model received %v", sent)
	}
	// a user's message, answered by chat
	events := c.must(t, 200, "POST", "/api/agents/default/chat", `{"message":"Hi"}`)
	if events["conversation_id"] == nil {
		t.Errorf("%v", events)
	}
	c.must(t, 201, "POST", conversations+"/"+id+"/messages", `{"role":"user","content":"from a platform"}`)
	started := c.executions(t, 1)
	if at(started[0], "trigger") != "message.received" ||
		at(
			c.must(t, 200, "GET", "/api/agents/default/workflows/executions/"+at(started[0], "id").(string), ""),
			"input.message.content",
		) != "from a platform" {
		t.Errorf("started %v", started)
	}
	c.must(t, 200, "PUT", "/api/agents/default/settings", `{"llm_provider":null}`)
	s = c.callbackRun(t, `"callback_type":"agent","payload":{"prompt":"Anyone?"}`)
	if problem := fmt.Sprint(at(s, "executions.0.error")); at(s, "executions.0.status") != "error" ||
		!strings.Contains(problem, "llm_provider") {
		t.Errorf("without a model: %v", s)
	}
	if n := at(c.must(t, 200, "GET", conversations, ""), "meta.total"); n != json.Number("2") {
		t.Errorf("%v conversations: one was created without an answer", n)
	}
}

// executions waits until the default agent has n executions and returns them, newest
// first.
func (c *testClient) executions(t *testing.T, n int) (list []any) {
	t.Helper()
	c.until(t, streamPath, fmt.Sprintf("has %d executions", n), func() bool {
		list = c.must(t, 200, "GET", "/api/agents/default/workflows/executions", "")["executions"].([]any)
		return len(list) >= n
	})
	return list
}

// TestScheduledTool has schedules call tools: the payload is the arguments, an API gets
// the run's id as Idempotency-Key, and the run reports failures.
func TestScheduledTool(t *testing.T) {
	c := newTestClient(t)
	got := make(chan *http.Request, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("city") == "nowhere" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		got <- r
	}))
	t.Cleanup(api.Close)
	tool := c.must(t, 201, "POST", "/api/agents/default/tools", `{"name":"weather","type":"api","config":{"url":"`+api.URL+`/?city={{city}}",
		"parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}`)["id"].(string)
	fields := `"callback_type":"tool","callback_id":"` + tool + `","payload":`
	for _, payload := range []string{`{"city":"Bonn"}`, `{"arguments":{"city":"Bonn"}}`} {
		s := c.callbackRun(t, fields+payload)
		r := <-got
		if at(s, "executions.0.status") != "success" ||
			r.URL.Query().Get("city") != "Bonn" ||
			r.Header.Get("Idempotency-Key") != at(s, "executions.0.id") {
			t.Errorf("%s: %v, called %s with key %s", payload, s["executions"], r.URL, r.Header.Get("Idempotency-Key"))
		}
	}
	for payload, want := range map[string]string{`{"city":"nowhere"}`: "418", `{"town":"Bonn"}`: "city"} {
		s := c.callbackRun(t, fields+payload)
		if problem := fmt.Sprint(at(s, "executions.0.error")); at(s, "executions.0.status") != "error" ||
			!strings.Contains(problem, want) {
			t.Errorf("%s: %v", payload, s["executions"])
		}
	}
}

// TestScheduledSource has schedules refresh sources: the run ends with the work on the
// source, and fails with it.
func TestScheduledSource(t *testing.T) {
	c := newTestClient(t)
	var broken atomic.Bool
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		io.WriteString(w, `[{"text":"What is in stock"}]`)
	}))
	t.Cleanup(api.Close)
	source := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/sources",
		`{"name":"stock","type":"api","config":{"url":"`+api.URL+`"}}`,
	)["id"].(string)
	path := "/api/agents/default/sources/" + source
	c.waitIndexed(t, path)
	fields := `"callback_type":"source","callback_id":"` + source + `"`
	if s := c.callbackRun(t, fields); at(s, "executions.0.status") != "success" ||
		c.must(t, 200, "GET", path, "")["status"] != "ready" {
		t.Errorf("%v", s["executions"])
	}
	broken.Store(true)
	s := c.callbackRun(t, fields)
	if at(s, "executions.0.status") != "error" || c.must(t, 200, "GET", path, "")["status"] != "error" {
		t.Errorf("a source that fails: %v", s["executions"])
	}
}

func TestScheduleCap(t *testing.T) {
	c := newTestClient(t)
	one := `{"name":"n","type":"cron","cron_expression":"0 0 1 1 *","callback_type":"webhook",` +
		`"callback_id":"https://example.com/"}`
	c.must(t, 201, "POST", "/api/agents/default/schedules", one)
	fill := `{"query":"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n ` +
		`WHERE i < %d) INSERT INTO schedules(name, type, cron_expression, callback_type, callback_id) ` +
		`SELECT 'n', 'cron', '0 0 1 1 *', 'webhook', 'https://example.com/' FROM n"}`
	// a constraint that a running statement violates
	c.must(t, 500, "POST", "/api/agents/default/sql/execute", fmt.Sprintf(fill, 1000))
	c.must(t, 200, "POST", "/api/agents/default/sql/execute", fmt.Sprintf(fill, 999))
	c.must(t, 409, "POST", "/api/agents/default/schedules", one)
}
