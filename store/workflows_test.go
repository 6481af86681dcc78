package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// graphOf returns an active workflow with these nodes.
func graphOf(nodes ...string) agent.Workflow {
	w := agent.Workflow{
		Name:     "Flow",
		Status:   agent.WorkflowActive,
		Settings: agent.DefaultWorkflowSettings(),
		Edges:    []agent.RawEdge{},
	}
	for _, n := range nodes {
		w.Nodes = append(w.Nodes, agent.RawNode(n))
	}
	return w
}

func createWorkflow(t testing.TB, db *DB, w agent.Workflow) agent.Workflow {
	t.Helper()
	w, err := db.CreateWorkflow(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// running returns an execution of a workflow that has started.
func running(w agent.Workflow) *agent.Execution {
	now := agent.Now()
	return &agent.Execution{
		ID:          agent.NewID(agent.KindExecution),
		WorkflowID:  w.ID,
		Version:     w.Version,
		Status:      agent.ExecutionRunning,
		Trigger:     "manual",
		TriggerNode: "t",
		Input:       json.RawMessage("{}"),
		Depth:       1,
		CreatedAt:   now,
		StartedAt:   now,
	}
}

func startExecution(t testing.TB, db *DB, w agent.Workflow) *agent.Execution {
	t.Helper()
	x := running(w)
	if _, err := db.InsertExecutions(t.Context(), []StartedExecution{{Execution: x, Name: w.Name}}); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestReplays checks that a repeated request within five minutes starts no second
// execution, and that older requests are forgotten.
func TestReplays(t *testing.T) {
	db := openFolder(t).Default()
	w := createWorkflow(t, db, graphOf(`{"id":"t","type":"trigger"}`))
	startExecution := func(key, replay string) string {
		t.Helper()
		x := running(w)
		inserted, err := db.InsertExecutions(t.Context(), []StartedExecution{{
			Execution:      x,
			Name:           w.Name,
			IdempotencyKey: key,
			Replay:         replay,
		}})
		if err != nil {
			t.Fatal(err)
		}
		id, err := db.ExecutionOf(t.Context(), key, replay)
		if err != nil || inserted[0] != (id == x.ID) {
			t.Errorf("%s %s: inserted %v, and its execution is %s, %v", key, replay, inserted[0], id, err)
		}
		return id
	}
	later := func(minutes string) {
		t.Helper()
		do(t, db, "UPDATE _replays SET created_at = strftime('%Y-%m-%dT%H:%M:%fZ', created_at, ?)", minutes+" minutes")
	}
	one, other := startExecution("c1", "a"), startExecution("c2", "b")
	for _, key := range []string{"", "c1", "c3"} {
		if id := startExecution(key, "a"); id != one {
			t.Errorf("%q immediately leads to another execution", key)
		}
	}
	if id := startExecution("c2", "a"); id != other {
		t.Error("a known key is ignored next to a known request")
	}
	later("-4")
	if id := startExecution("c4", "a"); id != one {
		t.Error("the same request after four minutes leads to another execution")
	}
	later("-2")
	if id := startExecution("c1", "a"); id != one {
		t.Error("the same key after six minutes leads to another execution")
	}
	again := startExecution("c5", "a")
	if again == one {
		t.Error("the same request after six minutes leads to the same execution")
	}
	if n := value[int](t, db, "SELECT count(*) FROM _replays"); n != 1 {
		t.Errorf("%d requests are remembered", n)
	}
	later("+10") // stored when the clock was ahead
	if id := startExecution("", "a"); id == again {
		t.Error("requests stored while the clock was ahead block executions")
	}
}

func subscribersOf(t testing.TB, db *DB, event string) string {
	t.Helper()
	e, err := db.Subscribers(t.Context(), []string{event})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range e.Listeners {
		names = append(names, l.NodeID)
	}
	for _, w := range e.Waits {
		names = append(names, "wait:"+w.NodeID)
	}
	return strings.Join(names, " ")
}

// TestWorkflowsBySQL writes workflows through the SQL sandbox and checks that versions
// and triggers follow.
func TestWorkflowsBySQL(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ask := func(query string, params ...any) {
		t.Helper()
		var p Params
		if err := json.Unmarshal([]byte(mustMarshal(t, params)), &p); err != nil {
			t.Fatal(err)
		}
		if _, err := db.SQL(t.Context(), query, p, Access{Write: true}); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	ask(
		`INSERT INTO workflows(id, name, status, nodes) VALUES ('workflow-x', 'By SQL', 'active', ?)`,
		`[{"id":"a","type":"trigger","data":{"event":"contact.*"}},{"id":"b","type":"trigger",`+
			`"data":{"event":"contact.created","disabled":true}},5,"x",{"type":"trigger"}]`,
	)
	if got := subscribersOf(t, db, "contact.created"); got != "a" {
		t.Errorf("subscribers %q", got)
	}
	ask(
		`UPDATE workflows SET nodes = ? WHERE id = 'workflow-x'`,
		`[{"id":"c","type":"trigger","data":{"event":"contact.created"}}]`,
	)
	if got := subscribersOf(t, db, "contact.created"); got != "c" {
		t.Errorf("subscribers after a change %q", got)
	}
	w, err := db.Workflow(t.Context(), "workflow-x")
	if err != nil || w.Version != 2 {
		t.Errorf("version %d, %v", w.Version, err)
	}
	ask(`UPDATE workflows SET name = 'Other' WHERE id = 'workflow-x'`)
	versions, total, err := db.WorkflowVersions(t.Context(), "workflow-x", Page{Limit: 10})
	if err != nil || total != 2 || !versions[0].Current || versions[1].Nodes != 5 {
		t.Errorf("%d versions: %+v %v", total, versions, err)
	}
	ask(`UPDATE workflows SET status = 'paused' WHERE id = 'workflow-x'`)
	if got := subscribersOf(t, db, "contact.created"); got != "" {
		t.Errorf("subscribers of a paused workflow %q", got)
	}
	x := startExecution(t, db, w)
	if _, err := db.SQL(
		t.Context(),
		"UPDATE executions SET status = 'complete'",
		Params{},
		Access{Write: true},
	); agent.ErrorCode(err) != agent.CodeForbiddenOperation {
		t.Errorf("an execution changed by SQL: %v", err)
	}
	deleted := startExecution(t, db, w)
	ask(`DELETE FROM executions WHERE id = ?`, deleted.ID)
	ask(`DELETE FROM workflows WHERE id = 'workflow-x'`)
	if _, _, err := db.Execution(t.Context(), x.ID); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("an execution of a deleted workflow: %v", err)
	}
	if n := value[int](
		t,
		db,
		"SELECT (SELECT count(*) FROM _workflow_versions) + (SELECT count(*) FROM _triggers) + (SELECT n "+
			"FROM _counts WHERE name = 'executions')",
	); n != 0 {
		t.Errorf("%d rows are left of a deleted workflow", n)
	}
	for _, bad := range []string{`{}`, `[`, `null`} {
		if _, err := db.SQL(
			t.Context(),
			"INSERT INTO workflows(name, nodes) VALUES ('x', '"+bad+"')",
			Params{},
			Access{Write: true},
		); agent.ErrorCode(err) != agent.CodeExecution {
			t.Errorf("nodes %s by SQL: %v", bad, err)
		}
	}
}

func mustMarshal(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestCommitExecution writes an execution step by step.
func TestCommitExecution(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	w := createWorkflow(t, db, graphOf(`{"id":"t","type":"trigger"}`))
	x := startExecution(t, db, w)
	result := func(node string, status agent.NodeStatus, output string) agent.NodeResult {
		return agent.NodeResult{
			NodeID:    node,
			Type:      "set",
			Status:    status,
			StartedAt: agent.Now(),
			Attempt:   1,
			Output:    json.RawMessage(output),
		}
	}
	commit := func(p ExecutionStep) error {
		t.Helper()
		p.Execution, p.Name = x, w.Name
		_, err := db.CommitExecution(t.Context(), p)
		return err
	}
	loop := result("l", agent.NodeRunning, "null")
	loop.Output, loop.Items = nil, json.RawMessage(`[1,2]`)
	wait := Wait{
		ExecutionID: x.ID,
		NodeID:      "w",
		Path:        "1",
		Type:        "wait",
		Kind:        WaitEvent,
		Event:       "a.b",
		DueAt:       agent.At(time.Now().Add(time.Hour)),
		StartedAt:   agent.Now(),
	}
	if err := commit(ExecutionStep{
		Results: []agent.NodeResult{
			result("t", agent.NodeSuccess, `{"big":"`+strings.Repeat("x", 300<<10)+`"}`),
			loop,
		},
		Waits:     []Wait{wait},
		Suspended: true,
		Waiting:   1,
	}); err != nil {
		t.Fatal(err)
	}
	if n := value[int](t, db, "SELECT suspended FROM executions"); n != 1 || subscribersOf(t, db, "a.b") != "wait:w" {
		t.Errorf("suspended %d, subscribed %q", n, subscribersOf(t, db, "a.b"))
	}
	_, results, err := db.Execution(t.Context(), x.ID)
	if err != nil ||
		len(results) != 3 ||
		len(results[0].Output) < 300<<10 ||
		string(results[1].Items) != "[1,2]" ||
		results[2].Status != agent.NodeWaiting ||
		*results[2].Iteration != 1 {
		t.Fatalf("%+v %v", results, err)
	}
	end := WaitEnd{ExecutionID: x.ID, Result: results[2]}
	end.Result.Status = agent.NodeSuccess
	for i, want := range []int{1, 0} {
		if ended, err := db.EndWaits(t.Context(), []WaitEnd{end}); err != nil || len(ended) != want {
			t.Errorf("end %d: %d waits, %v", i, len(ended), err)
		}
	}
	if err := commit(ExecutionStep{Suspended: true, Waiting: 1}); err != nil {
		t.Fatal(err)
	}
	if n := value[int](t, db, "SELECT suspended FROM executions"); n != 0 {
		t.Error("an execution whose wait has ended meanwhile was suspended")
	}
	x.Status, x.CompletedAt, x.Output = agent.ExecutionComplete, agent.Now(), json.RawMessage(`{}`)
	if err := commit(ExecutionStep{Results: []agent.NodeResult{result("l", agent.NodeSuccess, `{}`)}}); err != nil {
		t.Fatal(err)
	}
	if err := commit(ExecutionStep{
		Results: []agent.NodeResult{result("late", agent.NodeSuccess, `{}`)},
	}); !errors.Is(err, ErrEnded) {
		t.Errorf("a step after the end: %v", err)
	}
	_, results, err = db.Execution(t.Context(), x.ID)
	var story []string
	for _, r := range results {
		story = append(story, r.NodeID+"="+string(r.Status))
	}
	if got := strings.Join(story, " "); err != nil || got != "t=success w=success l=success" {
		t.Errorf("%s %v", got, err)
	}
	events, err := db.Events(t.Context(), 0, 10)
	if err != nil ||
		len(events) != 2 ||
		events[0].Type != agent.EventWorkflowStarted ||
		events[1].Type != agent.EventWorkflowComplete ||
		events[1].Depth != 1 {
		t.Errorf("%+v %v", events, err)
	}
}

// TestPendingExecutions checks that the catalog knows the pending executions of a closed
// file.
func TestPendingExecutions(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	f := openAt(t, path)
	awake, timed := createAgent(t, f, "awake"), createAgent(t, f, "timed")
	createAgent(t, f, "rests")
	startExecution(t, awake, createWorkflow(t, awake, graphOf(`{"id":"t","type":"trigger"}`)))
	w := createWorkflow(t, timed, graphOf(`{"id":"t","type":"trigger"}`))
	x, due := startExecution(t, timed, w), agent.At(time.Now().Add(time.Hour))
	wait := Wait{ExecutionID: x.ID, NodeID: "w", Type: "wait", Kind: WaitTimer, DueAt: due, StartedAt: agent.Now()}
	if _, err := timed.CommitExecution(t.Context(), ExecutionStep{
		Execution: x,
		Waits:     []Wait{wait},
		Suspended: true,
		Waiting:   1,
	}); err != nil {
		t.Fatal(err)
	}
	closeFolder(t, f)
	for range 2 { // the second time from the catalog's cache
		f = openAt(t, path)
		for name, want := range map[string]agent.Time{"awake": dueNow, "timed": due, "rests": {}} {
			if got := byName(t, f, name).Pending().Executions; got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		closeFolder(t, f)
	}
}

func TestRetentionOfExecutions(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	w := createWorkflow(t, db, graphOf(`{"id":"t","type":"trigger"}`))
	old, fresh, open := startExecution(t, db, w), startExecution(t, db, w), startExecution(t, db, w)
	for _, x := range []*agent.Execution{old, fresh} {
		x.Status, x.CompletedAt = agent.ExecutionComplete, agent.Now()
		if _, err := db.CommitExecution(t.Context(), ExecutionStep{
			Execution: x,
			Results:   []agent.NodeResult{{NodeID: "t", Type: "trigger", Status: agent.NodeSuccess}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	do(t, db, "UPDATE executions SET created_at = '2020-01-01T00:00:00.000Z' WHERE id IN (?, ?)", old.ID, open.ID)
	for i := range 150 {
		do(t, db, "UPDATE workflows SET nodes = ?", fmt.Sprintf(`[{"id":"t%d","type":"trigger"}]`, i))
	}
	if _, err := Write(t.Context(), db, func(tx *Tx) (bool, error) { return trim(tx) }); err != nil {
		t.Fatal(err)
	}
	left := value[string](t, db, "SELECT group_concat(id, ' ') FROM (SELECT id FROM executions ORDER BY id)")
	if want := fresh.ID + " " + open.ID; left != want {
		t.Errorf("left: %s, want %s", left, want)
	}
	if n := value[int](t, db, "SELECT count(*) FROM _journal"); n != 1 {
		t.Errorf("%d rows of the journal are left", n)
	}
	// The newest hundred, and the first, which an execution uses.
	if n := value[int](t, db, "SELECT count(*) FROM _workflow_versions"); n != maxVersions+1 {
		t.Errorf("%d versions are left", n)
	}
}

func TestNodeSecretsAreSealed(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	f := openAt(t, path)
	db := createAgent(t, f, "a")
	w := createWorkflow(
		t,
		db,
		graphOf(`{"id":"h","type":"http-request","data":{"url":"https://x.y",`+
			`"auth":{"type":"bearer","token":"open-sesame"}}}`),
	)
	if strings.Contains(string(w.Nodes[0]), "sesame") {
		t.Errorf("the returned workflow shows the secret: %s", w.Nodes[0])
	}
	if got, err := db.NodeSecret(
		t.Context(),
		w.ID,
		agent.NodeSecret("h", "auth.token"),
		"https://x.y",
	); err != nil || got != "open-sesame" {
		t.Errorf("opened: %q %v", got, err)
	}
	again, err := db.UpdateWorkflow(t.Context(), w.ID, func(w *agent.Workflow) error {
		w.Name = "Other"
		return nil
	})
	if err != nil || again.Version != 1 {
		t.Errorf("writing a mask back: version %d, %v", again.Version, err)
	}
	_, err = db.CreateWorkflow(t.Context(), graphOf(string(w.Nodes[0])))
	if e := wantCode(t, err, agent.CodeValidation); e.Details["node_id"] != "h" {
		t.Errorf("a mask in a new workflow: %v", e)
	}
	fork, err := f.Fork(t.Context(), db, "b", "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fork.NodeSecret(
		t.Context(),
		w.ID,
		agent.NodeSecret("h", "auth.token"),
		"https://x.y",
	); err != nil || got != "open-sesame" {
		t.Errorf("opened in a fork: %q %v", got, err)
	}
	closeFolder(t, f)
	wantNowhere(t, path, "sesame")
	f = openAt(t, path)
	db = byName(t, f, "a")
	if err := db.DeleteWorkflow(t.Context(), w.ID); err != nil {
		t.Fatal(err)
	}
	if n := value[int](t, db, "SELECT count(*) FROM _secrets"); n != 0 {
		t.Errorf("%d secrets of a deleted workflow", n)
	}
}
