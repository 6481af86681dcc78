package flow

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/work/worktest"
	"satchel/store"
)

// startWorkflow starts a workflow without waiting for its end.
func startWorkflow(tb testing.TB, db *store.DB, e *Engine, w agent.Workflow, input string) string {
	tb.Helper()
	s, err := e.Execute(tb.Context(), db, Request{WorkflowID: w.ID, Input: json.RawMessage(input), Trigger: "manual"})
	if err != nil {
		tb.Fatal(err)
	}
	return s.Execution.ID
}

// waitForEnd waits for an execution to end, and returns it and the summary of
// its results.
func waitForEnd(tb testing.TB, db *store.DB, e *Engine, id string) (agent.Execution, string) {
	tb.Helper()
	if _, err := e.Await(tb.Context(), db, id); err != nil {
		tb.Fatal(err)
	}
	x, results, err := db.Execution(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	return x, summarize(results)
}

// waitForStatus waits for a live event in which a node of an execution has a
// status.
func waitForStatus(tb testing.TB, db *store.DB, e *Engine, id, node string, status agent.NodeStatus) {
	tb.Helper()
	live, done := e.Watch(id)
	defer done()
	_, results, err := e.Execution(tb.Context(), db, id)
	if err != nil {
		tb.Fatal(err)
	}
	for _, r := range results {
		if r.NodeID == node && r.Status == status {
			return
		}
	}
	for ev := range live {
		if ev.Node != nil && ev.Node.NodeID == node && ev.Node.Status == status {
			return
		}
		if ev.Execution != nil {
			tb.Fatalf("the execution ended as %s: %v", ev.Execution.Status, ev.Execution.Error)
		}
	}
}

func wantCode(tb testing.TB, err error, code agent.Code) {
	tb.Helper()
	if got := agent.ErrorCode(err); got != code {
		tb.Fatalf("error %v, want %s", err, code)
	}
}

const sleeper = `t trigger
	w wait {"event":"message.received","timeout":3600}
	s set {"values":{"by":"{{nodes.w.resumed_by}}","text":"{{nodes.w.data.message.text}}"}}
	t -> w
	w -> s`

// waitReleased waits until an execution has been released from memory.
func waitReleased(e *Engine, db *store.DB, id string) {
	e.mu.Lock()
	r := e.states[db].runs[id]
	e.mu.Unlock()
	if r != nil {
		<-r.done
	}
}

// An execution that is stored as waiting is about to release its slot: the next
// start waits for the slot and is not rejected.
func TestNextStartsOnceOneWaits(t *testing.T) {
	db, e := open(t)
	w := createWorkflow(t, db, e, sleeper)
	_, unwatch := e.Watch("execution-other") // so that runs publish their events
	defer unwatch()
	e.watchMu.Lock() // a run blocks while it publishes what it has stored
	id := startWorkflow(t, db, e, w, `{}`)
	for waiting := false; !waiting; {
		<-time.After(2 * time.Millisecond)
		_, results, err := db.Execution(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		waiting = slices.ContainsFunc(results, func(r agent.NodeResult) bool { return r.Status == agent.NodeWaiting })
	}
	second := make(chan error, 1)
	go func() {
		_, err := e.Execute(t.Context(), db, Request{WorkflowID: w.ID, Input: json.RawMessage(`{}`), Trigger: "manual"})
		second <- err
	}()
	var err error
	select {
	case err = <-second:
	case <-time.After(200 * time.Millisecond): // the start waits
	}
	e.watchMu.Unlock()
	if err == nil {
		err = <-second
	}
	if err != nil {
		t.Error(err)
	}
}

func TestWaits(t *testing.T) {
	db, e := open(t)
	for _, c := range []struct {
		name, graph string
		end         func(id string) error
		output      string
	}{
		{"a short time", "t trigger\nw wait {\"duration\":0.01}\nt -> w", nil, `{"resumed_by":"timer","data":null}`},
		{
			"a time in the past",
			"t trigger\nw wait {\"until\":\"2020-01-01T00:00:00Z\"}\nt -> w",
			nil,
			`{"resumed_by":"timer","data":null}`,
		},
		{
			"an event that times out",
			"t trigger\nw wait {\"event\":\"x.y\",\"timeout\":0.01}\nt -> w",
			nil,
			`{"resumed_by":"timeout","data":null}`,
		},
		{
			"an approval that times out",
			"t trigger\na approval {\"timeout\":0.01}\ns set {\"values\":{\"late\":1}}\nt -> a\na:timeout -> s",
			nil,
			`{"late":1}`,
		},
		{"an event", sleeper, func(string) error {
			_, err := e.OnEvents(t.Context(), db, []agent.Event{{
				Seq:       1 << 40,
				ID:        "event-1",
				Type:      "message.received",
				Data:      json.RawMessage(`{"message":{"text":"hi"}}`),
				CreatedAt: agent.Now(),
			}})
			return err
		}, `{"by":"event","text":"hi"}`},
		{"by the API", sleeper, func(id string) error {
			_, err := e.Resume(t.Context(), db, id, Answer{
				NodeID: "w",
				Data:   json.RawMessage(`{"message":{"text":"yo"}}`),
			})
			return err
		}, `{"by":"api","text":"yo"}`},
		{
			"an approval",
			"t trigger\na approval {}\ns set {\"values\":{\"by\":\"{{nodes.a.by}}\"}}\nt -> a\na -> s",
			func(id string) error {
				_, err := e.Resume(t.Context(), db, id, Answer{
					NodeID: "a",
					By:     "ada@example.com",
					Data:   json.RawMessage(`{"decision":"approved"}`),
				})
				return err
			},
			`{"by":"ada@example.com"}`,
		},
		{
			"waits in a loop",
			"t trigger\nl loop {\"items\":[1,2,3],\"concurrency\":3}\nw wait {\"duration\":0.01}\n" +
				"t -> l\nl:loop -> w\nw -> l",
			nil,
			`{"count":3,"errors":[],"results":[{"data":null,"resumed_by":"timer"},{"data":null,` +
				`"resumed_by":"timer"},{"data":null,"resumed_by":"timer"}]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := startWorkflow(t, db, e, createWorkflow(t, db, e, c.graph), "{}")
			if c.end != nil {
				node := "w"
				if !strings.Contains(c.graph, "w wait") {
					node = "a"
				}
				waitForStatus(t, db, e, id, node, agent.NodeWaiting)
				if err := c.end(id); err != nil {
					t.Fatal(err)
				}
			}
			x, printed := waitForEnd(t, db, e, id)
			var got, want any
			_ = json.Unmarshal(x.Output, &got)
			_ = json.Unmarshal([]byte(c.output), &want)
			if x.Status != agent.ExecutionComplete || string(mustJSON(got)) != string(mustJSON(want)) {
				t.Errorf("%s: %s\n%s", x.Status, printed, x.Output)
			}
		})
	}
}

// TestWaitsSurviveRestart stops the engine while executions wait, and starts another
// one on the same file.
func TestWaitsSurviveRestart(t *testing.T) {
	folder, e := openAt(t, t.TempDir())
	db := folder.Default()
	waitsForTime := startWorkflow(
		t,
		db,
		e,
		createWorkflow(t, db, e, "t trigger\nw wait {\"duration\":0.05}\nt -> w"),
		"{}",
	)
	waitsForEvent := startWorkflow(t, db, e, createWorkflow(t, db, e, sleeper), "{}")
	waitReleased(e, db, waitsForEvent)
	e.Stop()
	again := New(Options{Env: store.Env{Folder: folder}})
	if err := again.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer again.Stop()
	if x, printed := waitForEnd(t, db, again, waitsForTime); x.Status != agent.ExecutionComplete {
		t.Errorf("got %s %s", x.Status, printed)
	}
	if _, err := again.OnEvents(t.Context(), db, []agent.Event{{
		Seq:       1 << 40,
		ID:        "event-2",
		Type:      "message.received",
		CreatedAt: agent.Now(),
	}}); err != nil {
		t.Fatal(err)
	}
	if x, printed := waitForEnd(t, db, again, waitsForEvent); x.Status != agent.ExecutionComplete {
		t.Errorf("got %s %s", x.Status, printed)
	}
}

// TestStopInterrupts stops the engine while a node hangs: the node runs again,
// unless it may run at most once; then it fails.
func TestStopInterrupts(t *testing.T) {
	folder, e := openAt(t, t.TempDir())
	db := folder.Default()
	e.drain = time.Millisecond
	var hangs atomic.Bool
	hangs.Store(true)
	e.Register(map[string]*Kind{"chat": {Timeout: time.Hour, Run: func(ctx context.Context, c *Call) (Outcome, error) {
		if hangs.Load() {
			<-ctx.Done()
			return Outcome{}, ctx.Err()
		}
		return Outcome{Output: map[string]any{"key": c.Key}}, nil
	}}})
	twice := startWorkflow(t, db, e, createWorkflow(t, db, e, "t trigger\na chat {\"prompt\":\"x\"}\nt -> a"), "{}")
	once := startWorkflow(
		t,
		db,
		e,
		createWorkflow(t, db, e, "t trigger\na chat {\"prompt\":\"x\",\"at_most_once\":true}\nt -> a"),
		"{}",
	)
	waitForStatus(t, db, e, twice, "a", agent.NodeRunning)
	waitForStatus(t, db, e, once, "a", agent.NodeRunning)
	e.Stop()
	hangs.Store(false)
	if err := e.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	x, printed := waitForEnd(t, db, e, twice)
	if want := `{"key":"` + twice + `:a:0"}`; x.Status != agent.ExecutionComplete || string(x.Output) != want {
		t.Errorf("%s %s %s, want %s", x.Status, printed, x.Output, want)
	}
	if x, printed := waitForEnd(t, db, e, once); x.Status != agent.ExecutionErrored || x.Error.Code != "INTERRUPTED" {
		t.Errorf("got %s %s %v", x.Status, printed, x.Error)
	}
}

func TestTerminate(t *testing.T) {
	db, e := open(t)
	hanging := createWorkflow(t, db, e, "t trigger\na chat {\"prompt\":\"hang\"}\nt -> a")
	runningID := startWorkflow(t, db, e, hanging, "{}")
	waitForStatus(t, db, e, runningID, "a", agent.NodeRunning)
	waiting := startWorkflow(t, db, e, createWorkflow(t, db, e, sleeper), "{}")
	waitForStatus(t, db, e, waiting, "w", agent.NodeWaiting)
	for id, want := range map[string]string{runningID: "t=success", waiting: "t=success w=cancelled"} {
		if _, err := e.Terminate(t.Context(), db, id); err != nil {
			t.Fatal(err)
		}
		if x, printed := waitForEnd(t, db, e, id); x.Status != agent.ExecutionTerminated ||
			printed != want ||
			x.CompletedAt.IsZero() {
			t.Errorf("%s: %s", x.Status, printed)
		}
		_, err := e.Terminate(t.Context(), db, id)
		wantCode(t, err, agent.CodeConflict)
	}
	deleted := startWorkflow(t, db, e, hanging, "{}")
	waitForStatus(t, db, e, deleted, "a", agent.NodeRunning)
	if err := db.DeleteWorkflow(t.Context(), hanging.ID); err != nil {
		t.Fatal(err)
	}
	waitReleased(e, db, deleted)
	_, _, err := db.Execution(t.Context(), deleted)
	wantCode(t, err, agent.CodeNotFound)
}

// TestDisabled disables an agent while one of its nodes runs: the node is
// stopped, and the execution resumes when the agent is enabled again.
func TestDisabled(t *testing.T) {
	db, e := open(t)
	var tries atomic.Int64
	stopped := make(chan struct{})
	e.Register(map[string]*Kind{"chat": {Run: func(ctx context.Context, _ *Call) (Outcome, error) {
		if tries.Add(1) > 1 {
			return Outcome{Output: map[string]any{"done": true}}, nil
		}
		<-ctx.Done()
		close(stopped)
		return Outcome{}, ctx.Err()
	}}})
	id := startWorkflow(t, db, e, createWorkflow(t, db, e, "t trigger\na chat {\"prompt\":\"x\"}\nt -> a"), "{}")
	waitForStatus(t, db, e, id, "a", agent.NodeRunning)
	set := func(status agent.Status) {
		if _, err := e.folder.UpdateAgent(t.Context(), db, agent.AgentChange{Status: agent.Some(status)}); err != nil {
			t.Fatal(err)
		}
	}
	set(agent.StatusDisabled)
	<-stopped
	waitReleased(e, db, id)
	if _, err := e.Execute(t.Context(), db, Request{WorkflowID: "w"}); agent.ErrorCode(err) != agent.CodeAgentDisabled {
		t.Errorf("a disabled agent executed: %v", err)
	}
	if x, _, err := db.Execution(t.Context(), id); err != nil ||
		x.Status != agent.ExecutionRunning ||
		tries.Load() != 1 {
		t.Errorf("%s, %v after %d attempts", x.Status, err, tries.Load())
	}
	set(agent.StatusActive)
	if x, printed := waitForEnd(t, db, e, id); x.Status != agent.ExecutionComplete || printed != "t=success a=success" {
		t.Errorf("%s: %s", x.Status, printed)
	}
}

// TestEventsBeforeActivation: events from while an agent was paused or disabled
// start nothing, even if they are handled after the agent became active again.
func TestEventsBeforeActivation(t *testing.T) {
	for _, status := range []agent.Status{agent.StatusPaused, agent.StatusDisabled} {
		t.Run(string(status), func(t *testing.T) {
			db, e := open(t)
			createWorkflow(t, db, e, "t trigger {\"event\":\"contact.created\"}\ns set {\"values\":{}}\nt -> s")
			handle := func(status agent.Status, want int) {
				t.Helper()
				if _, err := e.folder.UpdateAgent(t.Context(), db, agent.AgentChange{
					Status: agent.Some(status),
				}); err != nil {
					t.Fatal(err)
				}
				events, err := db.Events(t.Context(), 0, 100)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := e.OnEvents(t.Context(), db, events); err != nil {
					t.Fatal(err)
				}
				if _, total, err := db.Executions(
					t.Context(),
					store.ExecutionFilter{},
					store.Page{Limit: 1},
				); err != nil || total != want {
					t.Errorf("%s: %d executions, want %d (%v)", status, total, want, err)
				}
			}
			contact := func() {
				if _, err := db.CreateContact(t.Context(), agent.ContactChange{Name: agent.Some("Ada")}); err != nil {
					t.Fatal(err)
				}
			}
			handle(status, 0)
			contact()
			handle(status, 0)
			handle(agent.StatusActive, 0)
			contact()
			handle(agent.StatusActive, 1)
		})
	}
}

// Accepted executions are completed, however often the engine starts and stops.
func TestStartStop(t *testing.T) {
	folder, e := openAt(t, t.TempDir())
	db := folder.Default()
	w := createWorkflowWith(t, db, e, four, many)
	startWorkflow(t, db, e, w, `{"n":7}`)
	accepted := 1
	worktest.Stress(t, e, 200, func(int) {
		if err := e.Start(context.Background()); err != nil { // a stopped engine rejects executions
			t.Error(err)
		}
		if _, err := e.Execute(t.Context(), db, Request{WorkflowID: w.ID, Input: []byte(`{"n":7}`)}); err == nil {
			accepted++
		}
	})
	found, total, err := db.Executions(t.Context(), store.ExecutionFilter{}, store.Page{Limit: 300})
	if err != nil || total < accepted {
		t.Fatalf("%d executions, %d accepted, %v", total, accepted, err)
	}
	for _, x := range found {
		if x, printed := waitForEnd(t, db, e, x.ID); x.Status != agent.ExecutionComplete {
			t.Errorf("got %s %s", x.Status, printed)
		}
	}
	e.Stop()
	if _, err := e.Execute(t.Context(), db, Request{WorkflowID: w.ID}); err == nil {
		t.Error("a stopped engine accepted an execution")
	}
}

// A client that sees that an execution has ended can start the next one at once,
// even if the workflow allows only one at a time.
func TestNextStartsOnceTheEndIsSeen(t *testing.T) {
	db, e := open(t)
	w := createWorkflow(t, db, e, "t trigger\na approval {\"title\":\"Pay?\"}\nt -> a")
	for range 50 {
		id := startWorkflow(t, db, e, w, `{}`)
		waitForStatus(t, db, e, id, "a", agent.NodeWaiting)
		live, done := e.Watch(id)
		if _, err := e.Resume(t.Context(), db, id, Answer{
			NodeID: "a",
			Data:   json.RawMessage(`{"decision":"approved"}`),
		}); err != nil {
			t.Fatal(err)
		}
		for ev := range live {
			if ev.Execution != nil {
				break
			}
		}
		done()
	}
}
