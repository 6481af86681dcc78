package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/store/cluster/pgtest"
)

// dueTarget is the other service that a cluster's due work calls. It records the calls of
// each path by the key that identifies repeats.
type dueTarget struct {
	*httptest.Server
	mu     sync.Mutex
	keys   map[string][]string // keys of the calls, by path
	called chan struct{}       // receives after a call
}

// newDueTarget returns a target that does not answer the first call of /repeated, and
// makes the caller retry the first of /message 8 seconds later.
func newDueTarget(t *testing.T) *dueTarget {
	d := &dueTarget{keys: map[string][]string{}, called: make(chan struct{}, 1)}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *dueTarget) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	path, key := r.URL.Path, r.Header.Get("Idempotency-Key")
	var body struct{ Type string }
	_ = json.Unmarshal(raw, &body)
	if key == "" {
		key = r.Header.Get("Webhook-Id")
	}
	if path == "/ended" || body.Type == "ping" {
		path += " " + body.Type
	}
	d.mu.Lock()
	first := len(d.keys[path]) == 0
	d.keys[path] = append(d.keys[path], key)
	d.mu.Unlock()
	select {
	case d.called <- struct{}{}:
	default: // await has not read the last one
	}
	switch {
	case path == "/repeated" && first:
		<-r.Context().Done() // the server is killed
	case path == "/message" && first:
		w.Header().Set("Retry-After", "8")
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}
}

// await waits until paths were called as often as times says; events that were delivered
// again count once.
func (d *dueTarget) await(t *testing.T, times map[string]int) {
	t.Helper()
	limit := time.After(2 * time.Minute)
	for {
		calls, left := d.calls(), maps.Clone(times)
		maps.DeleteFunc(left, func(path string, n int) bool {
			keys := calls[path]
			if strings.HasPrefix(path, "/ended ") {
				slices.Sort(keys)
				keys = slices.Compact(keys)
			}
			return len(keys) >= n
		})
		if len(left) == 0 {
			return
		}
		select {
		case <-d.called:
		case <-limit:
			t.Fatalf("%v were not called; calls: %v", left, calls)
		}
	}
}

func (d *dueTarget) calls() map[string][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	calls := map[string][]string{}
	for path, keys := range d.keys {
		calls[path] = slices.Clone(keys)
	}
	return calls
}

// must makes a request to the agent of the test with a JSON body, and returns the
// response.
func (n *clusterNode) must(t *testing.T, method, path, body string) map[string]any {
	t.Helper()
	status, answer := n.insist(t, method, "/agents/bakery"+path, json.RawMessage(body))
	if status != 200 && status != 201 {
		t.Fatalf("%s %s: %d %v", method, path, status, answer)
	}
	return answer
}

// TestClusterTakesOverDueWork kills the owner of an agent while a call of a schedule is
// in progress, another schedule is due soon, and a workflow and a message in the outbox
// are waiting. The new owner does each of them once, and repeats the call that was in
// progress with its key.
func TestClusterTakesOverDueWork(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	target := newDueTarget(t)
	database := pgtest.Start(t).Database("satchel")
	a, b := startNode(t, database), startNode(t, database)
	if status, made := a.insist(t, "POST", "/agents", map[string]any{"name": "Bakery"}); status != 201 {
		t.Fatalf("%d %v", status, made)
	}
	with := func(body string) string { return strings.ReplaceAll(body, "URL", target.URL) }
	a.must(
		t,
		"POST",
		"/webhooks",
		with(`{"name":"w","url":"URL/ended","events":["schedule.executed","workflow.complete","message.sent"]}`),
	)
	execution := a.startWaiting(t, with(`{"name":"w","status":"active","nodes":[{"id":"t","type":"trigger"},
		{"id":"before","type":"http-request","data":{"url":"URL/before"}},{"id":"wait","type":"wait","data":{"duration":15}},
		{"id":"after","type":"http-request","data":{"url":"URL/after"}}],
		"edges":[{"source":"t","target":"before"},{"source":"before","target":"wait"},{"source":"wait","target":"after"}]}`))
	gateway := a.must(
		t,
		"POST",
		"/gateways",
		with(`{"type":"webhook","name":"Shop","config":{"url":"URL/message"}}`),
	)["id"]
	a.must(t, "POST", "/gateways/"+gateway.(string)+"/verify", `{}`)
	contact := a.must(t, "POST", "/contacts", `{"name":"Ada","email":"ada@example.com"}`)["id"]
	conversation := a.must(
		t,
		"POST",
		"/conversations",
		fmt.Sprintf(`{"gateway_id":%q,"contact_id":%q}`, gateway, contact),
	)["id"]
	a.must(
		t,
		"POST",
		"/conversations/"+conversation.(string)+"/messages",
		`{"role":"assistant","content":"Ready","send":true}`,
	)
	target.await(t, map[string]int{"/message": 1})
	tool := a.must(t, "POST", "/tools", with(`{"name":"call","type":"api","config":{"method":"POST","url":"URL/{{name}}",
		"parameters":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}`))["id"]
	var schedules []string
	for _, body := range []string{
		`"delay_seconds":10,"payload":{"name":"later"}`,
		`"delay_seconds":1,"payload":{"name":"repeated"}`,
	} {
		made := a.must(
			t,
			"POST",
			"/schedules",
			fmt.Sprintf(`{"name":"s","type":"delayed","callback_type":"tool","callback_id":%q,%s}`, tool, body),
		)
		schedules = append(schedules, made["id"].(string))
	}
	target.await(t, map[string]int{"/repeated": 1})
	if err := a.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	target.await(t, map[string]int{
		"/repeated":                2,
		"/later":                   1,
		"/after":                   1,
		"/message":                 2,
		"/ended schedule.executed": 2,
		"/ended workflow.complete": 1,
		"/ended message.sent":      1,
	})
	t.Logf("all done %v after the kill: %v", time.Since(killed), target.calls())
	target.check(t, b, schedules)
	if e := b.must(t, "GET", "/workflows/executions/"+execution, `{}`); e["status"] != "complete" {
		t.Errorf("the execution is %v", e)
	}
}

// startWaiting executes a workflow until it waits, and returns the execution's id.
func (n *clusterNode) startWaiting(t *testing.T, workflow string) string {
	t.Helper()
	id := n.must(t, "POST", "/workflows", workflow)["id"].(string)
	execution := n.must(t, "POST", "/workflows/execute", `{"workflow_id":"`+id+`"}`)["execution_id"].(string)
	for deadline := time.Now().Add(time.Minute); ; {
		e := n.must(t, "GET", "/workflows/executions/"+execution, `{}`)
		if strings.Contains(fmt.Sprint(e["node_results"]), "status:waiting") {
			return execution
		}
		if time.Now().After(deadline) {
			t.Fatalf("the execution is %v", e)
		}
		<-time.After(50 * time.Millisecond) // the server needs CPU time, too
	}
}

// check checks how often the target was called, and with which keys.
func (d *dueTarget) check(t *testing.T, n *clusterNode, schedules []string) {
	t.Helper()
	calls := d.calls()
	for path, times := range map[string]int{"/before": 1, "/after": 1, "/later": 1, "/repeated": 2, "/message": 2} {
		keys := calls[path]
		if len(keys) != times || keys[0] == "" || keys[0] != keys[times-1] {
			t.Errorf("%s was called with the keys %q", path, keys)
		}
	}
	for i, id := range schedules {
		runs, _ := n.must(t, "GET", "/schedules/"+id, `{}`)["executions"].([]any)
		if len(runs) != 1 ||
			runs[0].(map[string]any)["status"] != "success" ||
			runs[0].(map[string]any)["id"] != calls[[]string{"/later", "/repeated"}[i]][0] {
			t.Errorf("the runs of schedule %s are %v", id, runs)
		}
	}
}
