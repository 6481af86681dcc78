package flow

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

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
	w := createWorkflowWith(t, db, e, "t trigger\na chat {\"prompt\":\"x\"}\nt -> a", agent.WorkflowSettings{
		Concurrency: 2,
		OnConflict:  agent.ConflictQueue,
	})
	var ids []string
	for range 8 {
		ids = append(ids, startWorkflow(t, db, e, w, "{}"))
	}
	queued, _, err := db.Executions(
		t.Context(),
		store.ExecutionFilter{Statuses: []string{"queued"}},
		store.Page{Limit: 10},
	)
	if err != nil || len(queued) != 6 {
		t.Errorf("%d in the queue, %v", len(queued), err)
	}
	if _, err := e.Terminate(t.Context(), db, ids[4]); err != nil {
		t.Fatal(err)
	}
	close(release)
	var last agent.Time
	for i, id := range ids {
		x, printed := waitForEnd(t, db, e, id)
		if want := map[bool]agent.ExecutionStatus{
			true:  agent.ExecutionTerminated,
			false: agent.ExecutionComplete,
		}[i == 4]; x.Status != want {
			t.Errorf("%d: %s %s", i, x.Status, printed)
		}
		if i != 4 && x.StartedAt.Before(last.Time) {
			t.Errorf("execution %d started before its predecessor", i)
		}
		if i != 4 {
			last = x.StartedAt
		}
	}
	if most.Load() > 2 {
		t.Errorf("%d ran concurrently", most.Load())
	}
}

func TestSubWorkflows(t *testing.T) {
	db, e := open(t)
	good := createWorkflow(t, db, e, "t trigger\ns set {\"values\":{\"twice\":\"{{n}}{{n}}\"}}\nt -> s")
	bad := createWorkflow(t, db, e, "t trigger\na chat {\"prompt\":\"fail\"}\nt -> a")
	slow := createWorkflow(t, db, e, sleeper)
	parent := func(id, more string) agent.Workflow {
		return createWorkflow(t, db, e, `t trigger
			w workflow {"workflow_id":"`+id+`","input":{"n":"{{n}}"}`+more+`}
			s set {"values":{"status":"{{nodes.w.status}}","got":"{{nodes.w.output.twice}}"}}
			t -> w
			w -> s`)
	}
	s := execute(t, db, e, parent(good.ID, ""), `{"n":4}`)
	if s.Execution.Status != agent.ExecutionComplete ||
		string(s.Execution.Output) != `{"got":"44","status":"complete"}` {
		t.Errorf("got %s %s %v", s.Execution.Status, s.Execution.Output, s.Execution.Error)
	}
	if s := execute(t, db, e, parent(bad.ID, ""), `{}`); s.Execution.Status != agent.ExecutionErrored ||
		s.Execution.Error.NodeID != "w" {
		t.Errorf("got %s %v", s.Execution.Status, s.Execution.Error)
	}
	if s := execute(t, db, e, parent(slow.ID, `,"wait":false`), `{}`); s.Execution.Status != agent.ExecutionComplete ||
		!strings.Contains(string(s.Execution.Output), `"running"`) {
		t.Errorf("got %s %s", s.Execution.Status, s.Execution.Output)
	}
	id := startWorkflow(t, db, e, parent(slow.ID, ""), `{}`)
	waitForStatus(t, db, e, id, "w", agent.NodeWaiting)
	if _, err := e.Terminate(t.Context(), db, id); err != nil {
		t.Fatal(err)
	}
	children, _, err := db.Executions(t.Context(), store.ExecutionFilter{WorkflowID: slow.ID}, store.Page{Limit: 1})
	if err != nil || children[0].Status != agent.ExecutionTerminated || children[0].ParentID != id {
		t.Errorf("the child of a terminated execution: %+v %v", children[0], err)
	}
	// A workflow that starts itself stops eventually.
	w := createWorkflow(t, db, e, "t trigger\ns set {\"values\":{}}\nt -> s")
	w, err = db.UpdateWorkflow(t.Context(), w.ID, func(w *agent.Workflow) error {
		w.Settings = many
		w.Nodes, w.Edges = parseGraph("t trigger\nw workflow {\"workflow_id\":\"" + w.ID + "\"}\nt -> w")
		return e.Check(*w)
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := execute(t, db, e, w, "{}"); s.Execution.Status != agent.ExecutionErrored {
		t.Errorf("a workflow that starts itself: %s", s.Execution.Status)
	}
	if _, total, err := db.Executions(
		t.Context(),
		store.ExecutionFilter{WorkflowID: w.ID},
		store.Page{Limit: 1},
	); err != nil || total != agent.MaxEventDepth {
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
	s := execute(t, db, e, createWorkflow(t, db, e, `t trigger
		a chat {"prompt":"x","retry":{"max_attempts":3,"delay_ms":1,"backoff":"exponential"}}
		t -> a`), "{}")
	if s.Execution.Status != agent.ExecutionComplete ||
		s.Results[1].Attempt != 3 ||
		string(s.Execution.Output) != `{"n":3}` {
		t.Errorf("%s, attempt %d, %s", s.Execution.Status, s.Results[1].Attempt, s.Execution.Output)
	}
	calls.Store(0)
	s = execute(
		t,
		db,
		e,
		createWorkflow(
			t,
			db,
			e,
			"t trigger\na chat {\"prompt\":\"x\",\"retry\":{\"max_attempts\":2,\"delay_ms\":0}}\nt -> a",
		),
		"{}",
	)
	if s.Execution.Status != agent.ExecutionErrored || s.Results[1].Attempt != 2 || calls.Load() != 2 {
		t.Errorf("%s, attempt %d of %d", s.Execution.Status, s.Results[1].Attempt, calls.Load())
	}
	for _, c := range []struct {
		r       retry
		attempt int
		want    time.Duration
	}{
		{retry{delay: time.Second, maxDelay: time.Minute}, 5, time.Second},
		{retry{delay: time.Second, maxDelay: time.Minute, exponential: true}, 4, 8 * time.Second},
		{retry{delay: time.Second, maxDelay: 5 * time.Second, exponential: true}, 10, 5 * time.Second},
	} {
		if got := c.r.pause(c.attempt); got != c.want {
			t.Errorf("delay after attempt %d of %+v: %s, want %s", c.attempt, c.r, got, c.want)
		}
	}
}

// TestRetryFromFailure repeats failed executions: results from before the
// failure are reused, with their iterations, and do not run again.
func TestRetryFromFailure(t *testing.T) {
	db, e := open(t)
	var broken atomic.Bool
	var prompts atomic.Pointer[[]string]
	prompts.Store(&[]string{})
	e.Register(map[string]*Kind{"chat": {Run: func(_ context.Context, c *Call) (Outcome, error) {
		log := append(*prompts.Load(), c.Text("prompt"))
		prompts.Store(&log)
		if broken.Load() && c.Text("prompt") == "b" {
			return Outcome{}, agent.Errorf(agent.CodeUpstream, "broken")
		}
		return Outcome{Output: map[string]any{"said": c.Text("prompt")}}, nil
	}}})
	for _, c := range []struct{ name, graph, from, again, output string }{
		{
			"in a line",
			"t trigger\na chat {\"prompt\":\"a\"}\nb chat {\"prompt\":\"b\"}\n" +
				"c chat {\"prompt\":\"c\"}\nt -> a\na -> b\nb -> c",
			"",
			"b c",
			`{"said":"c"}`,
		},
		{
			"from the first",
			"t trigger\na chat {\"prompt\":\"a\"}\nb chat {\"prompt\":\"b\"}\nt -> a\na -> b",
			"a",
			"a b",
			`{"said":"b"}`,
		},
		{
			"in a loop",
			"t trigger\nl loop {\"items\":[\"a\",\"b\",\"c\"]}\nx chat {\"prompt\":\"{{item}}\"}\n" +
				"y chat {\"prompt\":\"y{{item}}\"}\nt -> l\nl:loop -> x\nx -> y",
			"",
			"b yb c yc",
			`{"count":3,"errors":[],"results":[{"said":"ya"},{"said":"yb"},{"said":"yc"}]}`,
		},
		{
			"after a loop",
			"t trigger\nl loop {\"items\":[\"a\",\"c\"]}\nx chat {\"prompt\":\"{{item}}\"}\n" +
				"z chat {\"prompt\":\"b\"}\nt -> l\nl:loop -> x\nl:done -> z",
			"",
			"b",
			`{"said":"b"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			broken.Store(true)
			w := createWorkflow(t, db, e, c.graph)
			failed := execute(t, db, e, w, "{}")
			if failed.Execution.Status != agent.ExecutionErrored {
				t.Fatalf("got %s", failed.Execution.Status)
			}
			broken.Store(false)
			prompts.Store(&[]string{})
			x, err := e.Retry(t.Context(), db, failed.Execution.ID, c.from)
			if err != nil {
				t.Fatal(err)
			}
			done, printed := waitForEnd(t, db, e, x.ID)
			if got := strings.Join(*prompts.Load(), " "); done.Status != agent.ExecutionComplete ||
				got != c.again ||
				string(done.Output) != c.output ||
				done.RetriedFrom != failed.Execution.ID {
				t.Errorf("%s %s\nprompts %q, want %q\n%s", done.Status, printed, got, c.again, done.Output)
			}
		})
	}
}

func TestTriggers(t *testing.T) {
	db, e := open(t)
	createWorkflow(t, db, e, `t trigger {"event":"contact.created","filter":[{"left":"{{contact.name}}","operator":"starts_with","right":"A"}]}
		s set {"values":{"hello":"{{contact.name}}","event":"{{event.type}}"}}
		t -> s`)
	createWorkflow(t, db, e, "t trigger {\"event\":\"contact.*\"}\ns set {\"values\":{}}\nt -> s")
	off := createWorkflow(t, db, e, "t trigger {\"event\":\"*\"}\ns set {\"values\":{}}\nt -> s")
	if _, err := db.UpdateWorkflow(t.Context(), off.ID, func(w *agent.Workflow) error {
		w.Status = agent.WorkflowPaused
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	event := func(id, kind, name string, depth int) agent.Event {
		return agent.Event{
			Seq:       1 << 40,
			ID:        id,
			Type:      kind,
			Depth:     depth,
			CreatedAt: agent.Now(),
			Data:      mustJSON(map[string]any{"contact": map[string]any{"name": name}}),
		}
	}
	for _, c := range []struct {
		name string
		ev   agent.Event
		more int
	}{
		{"both", event("event-a", "contact.created", "Ada", 0), 2},
		{"a duplicate", event("event-a", "contact.created", "Ada", 0), 0},
		{"filtered by one", event("event-b", "contact.created", "Bob", 0), 1},
		{"another event", event("event-c", "source.ready", "", 0), 0},
		{"the pattern", event("event-d", "contact.deleted", "Ada", 3), 1},
		{"the end of a chain", event("event-e", "contact.created", "Ada", agent.MaxEventDepth), 2},
	} {
		_, before, _ := db.Executions(t.Context(), store.ExecutionFilter{}, store.Page{Limit: 1})
		if done, err := e.OnEvents(t.Context(), db, []agent.Event{c.ev}); err != nil || done != 1 {
			t.Fatalf("%s: %d %v", c.name, done, err)
		}
		found, after, err := db.Executions(t.Context(), store.ExecutionFilter{}, store.Page{Limit: 10})
		if err != nil || after-before != c.more {
			t.Errorf("%s: %d new executions, want %d: %v", c.name, after-before, c.more, err)
		}
		for _, x := range found[:c.more] {
			x, printed := waitForEnd(t, db, e, x.ID)
			if refused := x.Depth > agent.MaxEventDepth; refused != (x.Status == agent.ExecutionErrored) ||
				!refused && x.Status != agent.ExecutionComplete ||
				x.Trigger != c.ev.Type ||
				x.Depth != c.ev.Depth+1 {
				t.Errorf("%s: %s %s, trigger %s, depth %d", c.name, x.Status, printed, x.Trigger, x.Depth)
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
	if deepest != agent.MaxEventDepth+1 { // the depth of rejected executions
		t.Errorf("events of executions are %d deep", deepest)
	}
}

// TestCopiesStayPaused copies a file in the middle of an execution: the copy
// stays paused until it is activated.
func TestCopiesStayPaused(t *testing.T) {
	folder, e := openAt(t, t.TempDir())
	db := folder.Default()
	id := startWorkflow(t, db, e, createWorkflow(t, db, e, "t trigger\nw wait {\"duration\":0.2}\nt -> w"), "{}")
	waitForStatus(t, db, e, id, "w", agent.NodeWaiting)
	copied, err := folder.Fork(t.Context(), db, "copy", "")
	if err != nil {
		t.Fatal(err)
	}
	if x, printed := waitForEnd(t, db, e, id); x.Status != agent.ExecutionComplete {
		t.Fatalf("got %s %s", x.Status, printed)
	}
	if w, err := copied.ExecutionWork(t.Context(), agent.Now(), 1, false); err != nil ||
		!w.Next.IsZero() ||
		len(w.Due)+len(w.Running) != 0 {
		t.Errorf("the copy has pending work: %+v, %v", w, err)
	}
	if x, _, err := copied.Execution(t.Context(), id); err != nil || x.Status != agent.ExecutionRunning {
		t.Errorf("the copy's execution is %s, %v", x.Status, err)
	}
	if _, err := folder.UpdateAgent(t.Context(), copied, agent.AgentChange{
		Status: agent.Some(agent.StatusActive),
	}); err != nil {
		t.Fatal(err)
	}
	if x, printed := waitForEnd(t, copied, e, id); x.Status != agent.ExecutionComplete {
		t.Errorf("got %s %s", x.Status, printed)
	}
}
