package flow

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// begun starts a workflow without waiting for its end.
func begun(tb testing.TB, db *store.DB, e *Engine, w agent.Workflow, input string) string {
	tb.Helper()
	s, err := e.Execute(tb.Context(), db, Request{WorkflowID: w.ID, Input: json.RawMessage(input), Trigger: "manual"})
	if err != nil {
		tb.Fatal(err)
	}
	return s.Execution.ID
}

// ended waits for an execution's end and returns it with its story.
func ended(tb testing.TB, db *store.DB, e *Engine, id string) (agent.Execution, string) {
	tb.Helper()
	if _, err := e.Await(tb.Context(), db, id); err != nil {
		tb.Fatal(err)
	}
	x, results, err := db.Execution(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	return x, story(results)
}

// until waits until a node of an execution has a status, by its live events.
func until(tb testing.TB, db *store.DB, e *Engine, id, node string, status agent.NodeStatus) {
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

// asleep waits until an execution has left memory.
func asleep(tb testing.TB, e *Engine, db *store.DB, id string) {
	tb.Helper()
	for tb.Context().Err() == nil {
		e.mu.Lock()
		gone := e.agents[db].active[id] == nil
		e.mu.Unlock()
		if gone {
			return
		}
		runtime.Gosched()
	}
}

func TestWaits(t *testing.T) {
	db, e := open(t)
	for _, c := range []struct {
		name, graph string
		end         func(id string) error
		output      string
	}{
		{"a moment", "t trigger\nw wait {\"duration\":0.01}\nt -> w", nil, `{"resumed_by":"timer","data":null}`},
		{"a time that is past", "t trigger\nw wait {\"until\":\"2020-01-01T00:00:00Z\"}\nt -> w", nil, `{"resumed_by":"timer","data":null}`},
		{"an event that does not come", "t trigger\nw wait {\"event\":\"x.y\",\"timeout\":0.01}\nt -> w", nil, `{"resumed_by":"timeout","data":null}`},
		{"an approval that nobody gives", "t trigger\na approval {\"timeout\":0.01}\ns set {\"values\":{\"late\":1}}\nt -> a\na:timeout -> s", nil, `{"late":1}`},
		{"an event", sleeper, func(string) error {
			_, err := e.OnEvents(t.Context(), db, []agent.Event{{ID: "event-1", Type: "message.received", Data: json.RawMessage(`{"message":{"text":"hi"}}`), CreatedAt: agent.Now()}})
			return err
		}, `{"by":"event","text":"hi"}`},
		{"by hand", sleeper, func(id string) error {
			_, err := e.Resume(t.Context(), db, id, Answer{NodeID: "w", Data: json.RawMessage(`{"message":{"text":"yo"}}`)})
			return err
		}, `{"by":"api","text":"yo"}`},
		{"a yes", "t trigger\na approval {}\ns set {\"values\":{\"by\":\"{{nodes.a.by}}\"}}\nt -> a\na -> s", func(id string) error {
			_, err := e.Resume(t.Context(), db, id, Answer{NodeID: "a", By: "ada@example.com", Data: json.RawMessage(`{"decision":"approved"}`)})
			return err
		}, `{"by":"ada@example.com"}`},
		{"waits in a loop", "t trigger\nl loop {\"items\":[1,2,3],\"concurrency\":3}\nw wait {\"duration\":0.01}\nt -> l\nl:loop -> w\nw -> l", nil,
			`{"count":3,"errors":[],"results":[{"data":null,"resumed_by":"timer"},{"data":null,"resumed_by":"timer"},{"data":null,"resumed_by":"timer"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := begun(t, db, e, made(t, db, e, c.graph), "{}")
			if c.end != nil {
				node := "w"
				if !strings.Contains(c.graph, "w wait") {
					node = "a"
				}
				until(t, db, e, id, node, agent.NodeWaiting)
				if err := c.end(id); err != nil {
					t.Fatal(err)
				}
			}
			x, told := ended(t, db, e, id)
			var got, want any
			_ = json.Unmarshal(x.Output, &got)
			_ = json.Unmarshal([]byte(c.output), &want)
			if x.Status != agent.ExecutionComplete || string(mustJSON(got)) != string(mustJSON(want)) {
				t.Errorf("%s: %s\n%s", x.Status, told, x.Output)
			}
		})
	}
}

// TestWaitsSurvive stops the engine while executions wait, and starts another
// over the same file.
func TestWaitsSurvive(t *testing.T) {
	folder, e := openAt(t, t.TempDir())
	db := folder.Default()
	timed := begun(t, db, e, made(t, db, e, "t trigger\nw wait {\"duration\":0.05}\nt -> w"), "{}")
	evented := begun(t, db, e, made(t, db, e, sleeper), "{}")
	asleep(t, e, db, evented)
	e.Stop()
	again := New(Options{Folder: folder})
	if err := again.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer again.Stop()
	if x, told := ended(t, db, again, timed); x.Status != agent.ExecutionComplete {
		t.Errorf("%s %s", x.Status, told)
	}
	if _, err := again.OnEvents(t.Context(), db, []agent.Event{{ID: "event-2", Type: "message.received", CreatedAt: agent.Now()}}); err != nil {
		t.Fatal(err)
	}
	if x, told := ended(t, db, again, evented); x.Status != agent.ExecutionComplete {
		t.Errorf("%s %s", x.Status, told)
	}
}

// TestStopCuts stops the engine while a node hangs: it runs again, and one
// that may run at most once ends as an error.
func TestStopCuts(t *testing.T) {
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
	twice := begun(t, db, e, made(t, db, e, "t trigger\na chat {\"prompt\":\"x\"}\nt -> a"), "{}")
	once := begun(t, db, e, made(t, db, e, "t trigger\na chat {\"prompt\":\"x\",\"at_most_once\":true}\nt -> a"), "{}")
	until(t, db, e, twice, "a", agent.NodeRunning)
	until(t, db, e, once, "a", agent.NodeRunning)
	e.Stop()
	hangs.Store(false)
	if err := e.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	x, told := ended(t, db, e, twice)
	if want := `{"key":"` + twice + `:a:0"}`; x.Status != agent.ExecutionComplete || string(x.Output) != want {
		t.Errorf("%s %s %s, want %s", x.Status, told, x.Output, want)
	}
	if x, told := ended(t, db, e, once); x.Status != agent.ExecutionErrored || x.Error.Code != "INTERRUPTED" {
		t.Errorf("%s %s %v", x.Status, told, x.Error)
	}
}

func TestTerminate(t *testing.T) {
	db, e := open(t)
	hanging := made(t, db, e, "t trigger\na chat {\"prompt\":\"hang\"}\nt -> a")
	working := begun(t, db, e, hanging, "{}")
	until(t, db, e, working, "a", agent.NodeRunning)
	waiting := begun(t, db, e, made(t, db, e, sleeper), "{}")
	until(t, db, e, waiting, "w", agent.NodeWaiting)
	for id, want := range map[string]string{working: "t=success", waiting: "t=success w=cancelled"} {
		if _, err := e.Terminate(t.Context(), db, id); err != nil {
			t.Fatal(err)
		}
		if x, told := ended(t, db, e, id); x.Status != agent.ExecutionTerminated || told != want || x.CompletedAt.IsZero() {
			t.Errorf("%s: %s", x.Status, told)
		}
		_, err := e.Terminate(t.Context(), db, id)
		wantCode(t, err, agent.CodeConflict)
	}
	deleted := begun(t, db, e, hanging, "{}")
	until(t, db, e, deleted, "a", agent.NodeRunning)
	if err := errors.Join(db.DeleteWorkflow(t.Context(), hanging.ID), e.Look(t.Context(), db)); err != nil {
		t.Fatal(err)
	}
	asleep(t, e, db, deleted)
	_, _, err := db.Execution(t.Context(), deleted)
	wantCode(t, err, agent.CodeNotFound)
}

// TestDisabledAtOnce disables an agent while a node of its runs: the node has
// stopped when that returns, and the execution goes on when it is enabled again.
func TestDisabledAtOnce(t *testing.T) {
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
	id := begun(t, db, e, made(t, db, e, "t trigger\na chat {\"prompt\":\"x\"}\nt -> a"), "{}")
	until(t, db, e, id, "a", agent.NodeRunning)
	set := func(status agent.Status) {
		if _, err := e.folder.UpdateAgent(t.Context(), db, agent.AgentChange{Status: agent.Some(status)}); err != nil {
			t.Fatal(err)
		}
		e.Follow(t.Context(), db, false)
	}
	set(agent.StatusDisabled)
	select {
	case <-stopped:
	default:
		t.Error("a node of a disabled agent goes on")
	}
	if x, _, err := db.Execution(t.Context(), id); err != nil || x.Status != agent.ExecutionRunning || tries.Load() != 1 {
		t.Errorf("%s, %v after %d tries", x.Status, err, tries.Load())
	}
	set(agent.StatusActive)
	if x, told := ended(t, db, e, id); x.Status != agent.ExecutionComplete || told != "t=success a=success" {
		t.Errorf("%s: %s", x.Status, told)
	}
}

func TestQueue(t *testing.T) {
	db, e := open(t)
	release := make(chan struct{})
	var most, now atomic.Int64
	e.Register(map[string]*Kind{"chat": {Run: func(context.Context, *Call) (Outcome, error) {
		most.Store(max(most.Load(), now.Add(1)))
		<-release
		now.Add(-1)
		return Outcome{Output: map[string]any{}}, nil
	}}})
	w := madeWith(t, db, e, "t trigger\na chat {\"prompt\":\"x\"}\nt -> a", agent.WorkflowSettings{Concurrency: 2, OnConflict: agent.ConflictQueue})
	var ids []string
	for range 8 {
		ids = append(ids, begun(t, db, e, w, "{}"))
	}
	queued, _, err := db.Executions(t.Context(), store.ExecutionFilter{Statuses: []string{"queued"}}, store.Page{Limit: 10})
	if err != nil || len(queued) != 6 {
		t.Errorf("%d in the queue, %v", len(queued), err)
	}
	if _, err := e.Terminate(t.Context(), db, ids[4]); err != nil {
		t.Fatal(err)
	}
	close(release)
	var last agent.Time
	for i, id := range ids {
		x, told := ended(t, db, e, id)
		if want := map[bool]agent.ExecutionStatus{true: agent.ExecutionTerminated, false: agent.ExecutionComplete}[i == 4]; x.Status != want {
			t.Errorf("%d: %s %s", i, x.Status, told)
		}
		if i != 4 && x.StartedAt.Before(last.Time) {
			t.Errorf("%d began before the one before it", i)
		}
		if i != 4 {
			last = x.StartedAt
		}
	}
	if most.Load() > 2 {
		t.Errorf("%d ran at once", most.Load())
	}
}

func TestSubWorkflows(t *testing.T) {
	db, e := open(t)
	good := made(t, db, e, "t trigger\ns set {\"values\":{\"twice\":\"{{n}}{{n}}\"}}\nt -> s")
	bad := made(t, db, e, "t trigger\na chat {\"prompt\":\"fail\"}\nt -> a")
	slow := made(t, db, e, sleeper)
	parent := func(id, more string) agent.Workflow {
		return made(t, db, e, `t trigger
			w workflow {"workflow_id":"`+id+`","input":{"n":"{{n}}"}`+more+`}
			s set {"values":{"status":"{{nodes.w.status}}","got":"{{nodes.w.output.twice}}"}}
			t -> w
			w -> s`)
	}
	s := ran(t, db, e, parent(good.ID, ""), `{"n":4}`)
	if s.Execution.Status != agent.ExecutionComplete || string(s.Execution.Output) != `{"got":"44","status":"complete"}` {
		t.Errorf("%s %s %v", s.Execution.Status, s.Execution.Output, s.Execution.Error)
	}
	if s := ran(t, db, e, parent(bad.ID, ""), `{}`); s.Execution.Status != agent.ExecutionErrored || s.Execution.Error.NodeID != "w" {
		t.Errorf("%s %v", s.Execution.Status, s.Execution.Error)
	}
	if s := ran(t, db, e, parent(slow.ID, `,"wait":false`), `{}`); s.Execution.Status != agent.ExecutionComplete || !strings.Contains(string(s.Execution.Output), `"running"`) {
		t.Errorf("%s %s", s.Execution.Status, s.Execution.Output)
	}
	id := begun(t, db, e, parent(slow.ID, ""), `{}`)
	until(t, db, e, id, "w", agent.NodeWaiting)
	if _, err := e.Terminate(t.Context(), db, id); err != nil {
		t.Fatal(err)
	}
	children, _, err := db.Executions(t.Context(), store.ExecutionFilter{WorkflowID: slow.ID}, store.Page{Limit: 1})
	if err != nil || children[0].Status != agent.ExecutionTerminated || children[0].ParentID != id {
		t.Errorf("the child of a terminated execution: %+v %v", children[0], err)
	}
	// One that starts itself comes to an end.
	w := made(t, db, e, "t trigger\ns set {\"values\":{}}\nt -> s")
	w, err = db.UpdateWorkflow(t.Context(), w.ID, func(w *agent.Workflow) error {
		w.Settings = many
		w.Nodes, w.Edges = drawn("t trigger\nw workflow {\"workflow_id\":\"" + w.ID + "\"}\nt -> w")
		return e.Check(*w)
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := ran(t, db, e, w, "{}"); s.Execution.Status != agent.ExecutionErrored {
		t.Errorf("a workflow that starts itself: %s", s.Execution.Status)
	}
	if _, total, err := db.Executions(t.Context(), store.ExecutionFilter{WorkflowID: w.ID}, store.Page{Limit: 1}); err != nil || total != agent.MaxEventDepth {
		t.Errorf("it started %d executions, %v", total, err)
	}
}

func TestRetries(t *testing.T) {
	db, e := open(t)
	var calls atomic.Int64
	e.Register(map[string]*Kind{"chat": {Run: func(_ context.Context, c *Call) (Outcome, error) {
		if calls.Add(1) < 3 {
			return Outcome{}, agent.Errorf(agent.CodeUpstream, "not yet")
		}
		return Outcome{Output: map[string]any{"n": calls.Load()}}, nil
	}}})
	s := ran(t, db, e, made(t, db, e, `t trigger
		a chat {"prompt":"x","retry":{"max_attempts":3,"delay_ms":1,"backoff":"exponential"}}
		t -> a`), "{}")
	if s.Execution.Status != agent.ExecutionComplete || s.Results[1].Attempt != 3 || string(s.Execution.Output) != `{"n":3}` {
		t.Errorf("%s, attempt %d, %s", s.Execution.Status, s.Results[1].Attempt, s.Execution.Output)
	}
	calls.Store(0)
	s = ran(t, db, e, made(t, db, e, "t trigger\na chat {\"prompt\":\"x\",\"retry\":{\"max_attempts\":2,\"delay_ms\":0}}\nt -> a"), "{}")
	if s.Execution.Status != agent.ExecutionErrored || s.Results[1].Attempt != 2 || calls.Load() != 2 {
		t.Errorf("%s, attempt %d of %d", s.Execution.Status, s.Results[1].Attempt, calls.Load())
	}
	for _, c := range []struct {
		r       retry
		attempt int
		want    time.Duration
	}{{retry{delay: time.Second, most: time.Minute}, 5, time.Second}, {retry{delay: time.Second, most: time.Minute, exponential: true}, 4, 8 * time.Second},
		{retry{delay: time.Second, most: 5 * time.Second, exponential: true}, 10, 5 * time.Second}} {
		if got := c.r.pause(c.attempt); got != c.want {
			t.Errorf("behind attempt %d of %+v: %s, want %s", c.attempt, c.r, got, c.want)
		}
	}
}

// TestRetryFromFailure repeats executions that failed: what was done before is
// taken over, with its iterations, and is not done again.
func TestRetryFromFailure(t *testing.T) {
	db, e := open(t)
	var broken atomic.Bool
	var asked atomic.Pointer[[]string]
	asked.Store(&[]string{})
	e.Register(map[string]*Kind{"chat": {Run: func(_ context.Context, c *Call) (Outcome, error) {
		log := append(*asked.Load(), c.Text("prompt"))
		asked.Store(&log)
		if broken.Load() && c.Text("prompt") == "b" {
			return Outcome{}, agent.Errorf(agent.CodeUpstream, "broken")
		}
		return Outcome{Output: map[string]any{"said": c.Text("prompt")}}, nil
	}}})
	for _, c := range []struct{ name, graph, from, again, output string }{
		{"in a line", "t trigger\na chat {\"prompt\":\"a\"}\nb chat {\"prompt\":\"b\"}\nc chat {\"prompt\":\"c\"}\nt -> a\na -> b\nb -> c", "", "b c", `{"said":"c"}`},
		{"from the first", "t trigger\na chat {\"prompt\":\"a\"}\nb chat {\"prompt\":\"b\"}\nt -> a\na -> b", "a", "a b", `{"said":"b"}`},
		{"in a loop", "t trigger\nl loop {\"items\":[\"a\",\"b\",\"c\"]}\nx chat {\"prompt\":\"{{item}}\"}\ny chat {\"prompt\":\"y{{item}}\"}\nt -> l\nl:loop -> x\nx -> y", "",
			"b yb c yc", `{"count":3,"errors":[],"results":[{"said":"ya"},{"said":"yb"},{"said":"yc"}]}`},
		{"behind a loop", "t trigger\nl loop {\"items\":[\"a\",\"c\"]}\nx chat {\"prompt\":\"{{item}}\"}\nz chat {\"prompt\":\"b\"}\nt -> l\nl:loop -> x\nl:done -> z", "",
			"b", `{"said":"b"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			broken.Store(true)
			w := made(t, db, e, c.graph)
			failed := ran(t, db, e, w, "{}")
			if failed.Execution.Status != agent.ExecutionErrored {
				t.Fatalf("%s", failed.Execution.Status)
			}
			broken.Store(false)
			asked.Store(&[]string{})
			x, err := e.Retry(t.Context(), db, failed.Execution.ID, c.from)
			if err != nil {
				t.Fatal(err)
			}
			done, told := ended(t, db, e, x.ID)
			if got := strings.Join(*asked.Load(), " "); done.Status != agent.ExecutionComplete || got != c.again || string(done.Output) != c.output || done.RetriedFrom != failed.Execution.ID {
				t.Errorf("%s %s\nasked %q, want %q\n%s", done.Status, told, got, c.again, done.Output)
			}
		})
	}
}

func TestTriggers(t *testing.T) {
	db, e := open(t)
	made(t, db, e, `t trigger {"event":"contact.created","filter":[{"left":"{{contact.name}}","operator":"starts_with","right":"A"}]}
		s set {"values":{"hello":"{{contact.name}}","event":"{{event.type}}"}}
		t -> s`)
	made(t, db, e, "t trigger {\"event\":\"contact.*\"}\ns set {\"values\":{}}\nt -> s")
	off := made(t, db, e, "t trigger {\"event\":\"*\"}\ns set {\"values\":{}}\nt -> s")
	if _, err := db.UpdateWorkflow(t.Context(), off.ID, func(w *agent.Workflow) error { w.Status = agent.WorkflowPaused; return nil }); err != nil {
		t.Fatal(err)
	}
	event := func(id, kind, name string, depth int) agent.Event {
		return agent.Event{ID: id, Type: kind, Depth: depth, CreatedAt: agent.Now(), Data: mustJSON(map[string]any{"contact": map[string]any{"name": name}})}
	}
	for _, c := range []struct {
		name string
		ev   agent.Event
		more int
	}{
		{"both", event("event-a", "contact.created", "Ada", 0), 2},
		{"again", event("event-a", "contact.created", "Ada", 0), 0},
		{"the filter", event("event-b", "contact.created", "Bob", 0), 1},
		{"another event", event("event-c", "source.ready", "", 0), 0},
		{"the pattern", event("event-d", "contact.deleted", "Ada", 3), 1},
		{"the end of a chain", event("event-e", "contact.created", "Ada", agent.MaxEventDepth), 0},
	} {
		_, before, _ := db.Executions(t.Context(), store.ExecutionFilter{}, store.Page{Limit: 1})
		if done, err := e.OnEvents(t.Context(), db, []agent.Event{c.ev}); err != nil || done != 1 {
			t.Fatalf("%s: %d %v", c.name, done, err)
		}
		found, after, err := db.Executions(t.Context(), store.ExecutionFilter{}, store.Page{Limit: 10})
		if err != nil || after-before != c.more {
			t.Errorf("%s: %d executions more, want %d: %v", c.name, after-before, c.more, err)
		}
		for _, x := range found[:c.more] {
			if x, told := ended(t, db, e, x.ID); x.Status != agent.ExecutionComplete || x.Trigger != c.ev.Type || x.Depth != c.ev.Depth+1 {
				t.Errorf("%s: %s %s, trigger %s, depth %d", c.name, x.Status, told, x.Trigger, x.Depth)
			}
		}
	}
	events, err := db.Events(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	deepest := 0
	for _, ev := range events {
		deepest = max(deepest, ev.Depth)
	}
	if deepest != 4 {
		t.Errorf("events of executions are %d deep, want 4", deepest)
	}
}

// TestCopiesRest has a file copied in the middle of an execution: the copy
// rests until somebody makes it active.
func TestCopiesRest(t *testing.T) {
	folder, e := openAt(t, t.TempDir())
	db := folder.Default()
	id := begun(t, db, e, made(t, db, e, "t trigger\nw wait {\"duration\":0.2}\nt -> w"), "{}")
	until(t, db, e, id, "w", agent.NodeWaiting)
	copied, err := folder.Fork(t.Context(), db, "copy", "")
	if err != nil {
		t.Fatal(err)
	}
	if x, told := ended(t, db, e, id); x.Status != agent.ExecutionComplete {
		t.Fatalf("%s %s", x.Status, told)
	}
	e.sweep(time.Now())
	if due, err := copied.NextWait(t.Context()); err != nil || !due.IsZero() {
		t.Errorf("a copy waits for %s, %v", due, err)
	}
	if x, _, err := copied.Execution(t.Context(), id); err != nil || x.Status != agent.ExecutionRunning {
		t.Errorf("the copy's execution is %s, %v", x.Status, err)
	}
	if _, err := folder.UpdateAgent(t.Context(), copied, agent.AgentChange{Status: agent.Some(agent.StatusActive)}); err != nil {
		t.Fatal(err)
	}
	e.sweep(time.Now())
	if x, told := ended(t, copied, e, id); x.Status != agent.ExecutionComplete {
		t.Errorf("%s %s", x.Status, told)
	}
}

func TestStartStop(t *testing.T) {
	folder, e := openAt(t, t.TempDir())
	db := folder.Default()
	w := madeWith(t, db, e, four, many)
	for range 20 {
		if err := errors.Join(e.Start(context.Background()), e.Start(context.Background())); err != nil {
			t.Fatal(err)
		}
		begun(t, db, e, w, `{"n":7}`)
		e.Stop()
		e.Stop()
	}
	if _, err := e.Execute(t.Context(), db, Request{WorkflowID: w.ID}); err == nil {
		t.Error("a stopped engine executes")
	}
	if err := e.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	found, total, err := db.Executions(t.Context(), store.ExecutionFilter{}, store.Page{Limit: 50})
	if err != nil || total != 20 {
		t.Fatalf("%d executions, %v", total, err)
	}
	for _, x := range found {
		if x, told := ended(t, db, e, x.ID); x.Status != agent.ExecutionComplete {
			t.Errorf("%s %s", x.Status, told)
		}
	}
}

func TestHTTPNode(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "auth "+r.Header.Get("Authorization"), http.StatusTeapot)
	}))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			raw := make([]byte, 1000)
			n, _ := r.Body.Read(raw)
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "query": r.URL.RawQuery, "type": r.Header.Get("Content-Type"), "x": r.Header.Get("X-A"),
				"auth": r.Header.Get("Authorization"), "body": string(raw[:n]), "agent": r.Header.Get("User-Agent")})
		case "/huge":
			for range 11 {
				_, _ = w.Write(make([]byte, 1<<20))
			}
		case "/binary":
			_, _ = w.Write([]byte{0xff, 0xfe, 0})
		case "/broken":
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{oops"))
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		case "/drip":
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
			}
		case "/inward":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
		case "/other":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/hang":
			<-r.Context().Done()
		default:
			http.Error(w, "no", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	db, e := open(t)
	for _, c := range []struct{ name, data, want string }{
		{"all fields", `"url":"URL/echo?a=1","method":"put","query":{"b":["x y","z"]},"headers":{"X-A":"{{who}}"},"body":{"n":"{{n}}"},"auth":{"type":"bearer","token":"{{who}}"}`,
			`200 {"agent":"Satchel/test","auth":"Bearer Ada","body":"{\"n\":7}","method":"PUT","query":"a=1&b=x+y&b=z","type":"application/json","x":"Ada"}`},
		{"a form", `"url":"URL/echo","method":"POST","body_type":"form","body":{"a":"1 2"},"auth":{"type":"basic","username":"u","password":"p"}`,
			`200 {"agent":"Satchel/test","auth":"Basic dTpw","body":"a=1+2","method":"POST","query":"","type":"application/x-www-form-urlencoded","x":""}`},
		{"text", `"url":"URL/echo","method":"POST","body":"plain","headers":{"Authorization":"mine"}`,
			`200 {"agent":"Satchel/test","auth":"mine","body":"plain","method":"POST","query":"","type":"text/plain; charset=utf-8","x":""}`},
		{"a failure", `"url":"URL/"`, `UPSTREAM_ERROR the server answered with status 503`},
		{"a failure that is none", `"url":"URL/","fail_on_status":false`, `503 "no\n"`},
		{"too much", `"url":"URL/huge"`, `RESPONSE_TOO_LARGE response too large: 127.0.0.1`},
		{"binary", `"url":"URL/binary"`, `200 "//4A"`},
		{"broken JSON", `"url":"URL/broken"`, `200 "{oops"`},
		{"another host", `"url":"URL/other","fail_on_status":false,"auth":{"type":"bearer","token":"secret"}`, `418 "auth \n"`},
		{"a slow one", `"url":"URL/hang","timeout_ms":30`, `ACTION_TIMEOUT the node took longer than 30ms`},
		{"without end", `"url":"URL/endless"`, `RESPONSE_TOO_LARGE response too large: 127.0.0.1`},
		{"one that drips", `"url":"URL/drip","timeout_ms":30`, `ACTION_TIMEOUT the node took longer than 30ms`},
		{"redirected inward", `"url":"URL/inward"`, `BLOCKED_ADDRESS address not allowed: 169.254.169.254: cloud metadata address`},
		{"no address", `"url":"{{nothing}}"`, `EXECUTION_ERROR url is no http or https address`},
		{"a private address", `"url":"http://10.0.0.1/"`, `BLOCKED_ADDRESS address not allowed: 10.0.0.1: private address`},
		{"a file", `"url":"file://localhost/etc/passwd"`, `UNSUPPORTED_SCHEME scheme not allowed: only http and https`},
		{"a header that breaks out", `"url":"URL/echo","headers":{"X-A":"a\r\nb: c"}`, `EXECUTION_ERROR headers has a name or value that HTTP does not allow: X-A`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ran(t, db, e, made(t, db, e, "t trigger\nh http-request {"+strings.ReplaceAll(c.data, "URL", server.URL)+"}\nt -> h"), `{"who":"Ada","n":7}`)
			var got string
			if x := s.Execution; x.Error != nil {
				got = x.Error.Code + " " + x.Error.Message
			} else {
				var out struct {
					Status json.Number
					Body   any
				}
				if err := json.Unmarshal(x.Output, &out); err != nil {
					t.Fatal(err)
				}
				got = out.Status.String() + " " + string(mustJSON(out.Body))
				got = strings.ReplaceAll(got, `\u0026`, "&")
			}
			if got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}
