package httpapi

import (
	"fmt"
	"testing"

	"satchel/agent"
)

// TestOverview checks that activity shows in the checklist, the series, the failures and
// the next runs.
func TestOverview(t *testing.T) {
	c := newTestClient(t)
	empty := c.must(t, 200, "GET", "/api/agents/default/overview", "")
	for i, id := range []string{"knowledge", "model", "ask", "channel", "workflow"} {
		if step := at(empty, "checklist").([]any)[i]; at(step, "id") != id || at(step, "done") != false {
			t.Errorf("step %d: %v", i, step)
		}
	}
	if days := at(empty, "series.days").([]any); len(days) != 14 {
		t.Errorf("days: %v", days)
	}

	// 14 hours ahead
	c.must(t, 200, "PUT", "/api/agents/default/settings", `{"timezone":"Pacific/Kiritimati","llm_provider":"openai"}`)
	good := createFlow(t, c, simpleNodes, simpleEdges, "")
	bad := createFlow(
		t,
		c,
		`[{"id":"t","type":"trigger"},{"id":"s","type":"http-request","data":{"label":"Fetch",`+
			`"url":"http://127.0.0.1:1/"}}]`,
		`[{"source":"t","target":"s"}]`,
		"",
	)
	nameless := createFlow(
		t,
		c,
		`[{"id":"t","type":"trigger"},{"id":"node7","type":"http-request","data":{"url":"http://127.0.0.1:1/"}}]`,
		`[{"source":"t","target":"node7"}]`,
		"",
	)
	for _, id := range []string{good, nameless, bad, bad} {
		c.must(t, 200, "POST", flowBase+"/execute?wait=30", `{"workflow_id":"`+id+`"}`)
	}
	conversation := createHandover(t, c)
	c.must(
		t,
		201,
		"POST",
		"/api/agents/default/conversations/"+conversation+"/messages",
		`{"role":"assistant","content":"hello"}`,
	)
	schedule := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/schedules",
		`{"name":"Later","type":"delayed","delay_seconds":3600,"callback_type":"workflow","callback_id":"`+good+`"}`,
	)

	got := c.must(t, 200, "GET", "/api/agents/default/overview?days=2", "")
	for path, want := range map[string]string{
		"checklist.0.done":             "false",
		"checklist.1.done":             "true",
		"checklist.2.done":             "true",
		"checklist.3.done":             "false",
		"checklist.4.done":             "true",
		"series.executions.complete":   "[0 1]",
		"series.executions.errored":    "[0 3]",
		"series.executions.terminated": "[0 0]",
		"series.messages.in":           "[0 1]",
		"series.messages.out":          "[0 1]",
		"counts.executions":            "4",
		"counts.contacts":              "1",
		"failures.0.workflow_name":     "Flow",
		"failures.0.node_id":           "s",
		"failures.0.node_label":        "Fetch",
		"failures.0.count":             "2",
		"failures.1.node_id":           "node7",
		"failures.1.node_type":         "http-request",
		"failures.1.node_label":        "HTTP request",
		"failures.2":                   "<nil>",
		"next_runs.0.schedule_id":      schedule["id"].(string),
		"next_runs.0.name":             "Later",
		"sessions_open":                "0",
		"sources_at_work":              "0",
		"series.days.1":                agent.Now().UTC().Add(14 * 3600e9).Format("2006-01-02"),
	} {
		if value := fmt.Sprint(at(got, path)); value != want {
			t.Errorf("%s is %s, want %s", path, value, want)
		}
	}
	if at(got, "failures.0.error") == "" || at(got, "failures.0.execution_id") == "" {
		t.Errorf("failures: %v", got["failures"])
	}
	for _, days := range []string{"-1", "91"} {
		c.must(t, 400, "GET", "/api/agents/default/overview?days="+days, "")
	}
}
