package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/agent/work/worktest"
	"satchel/store"
)

// testInterval is long because these tests simulate days.
const testInterval = 10 * time.Minute

// fixture is a data folder with a Scheduler, inside a synctest bubble.
type fixture struct {
	*Scheduler
	folder *store.Folder
	db     *store.DB
	calls  *calls
}

// calls records calls and determines their results.
type calls struct {
	mu    sync.Mutex
	seen  []Callback
	tasks []TaskCall
	at    []time.Time
	do    func(ctx context.Context, c Callback) error
}

func (c *calls) run(ctx context.Context, _ *store.DB, call Callback) (string, error) {
	c.mu.Lock()
	c.seen = append(c.seen, call)
	c.at = append(c.at, time.Now().UTC())
	do := c.do
	c.mu.Unlock()
	if do == nil {
		return "execution-" + call.RunID, nil
	}
	return "", do(ctx, call)
}

// onCall sets the result of calls from now on.
func (c *calls) onCall(do func(context.Context, Callback) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.do = do
}

// times formats the times of calls since the start of the bubble.
func (c *calls) times() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, at := range c.at {
		out = append(out, at.Format("15:04:05"))
	}
	return strings.Join(out, " ")
}

func (c *calls) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

// bubble runs a test in a synctest bubble, whose time starts at midnight UTC on
// 1 January 2000 and advances while all goroutines are blocked.
func bubble(t *testing.T, test func(t *testing.T, h *fixture)) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, path)
		test(t, h)
		h.close(t)
	})
}

// open starts a server on a data folder. close stops it.
func open(t *testing.T, path string, options ...func(*fixture)) *fixture {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	folder, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	c := &calls{}
	h := &fixture{folder: folder, db: folder.Default(), calls: c, Scheduler: New(Options{
		Env:     store.Env{Folder: folder, Log: quiet},
		Runners: map[string]Runner{agent.CallbackAgent: c.run},
		Tasks:   c.runTask,
	})}
	h.clockInterval = testInterval
	for _, set := range options {
		set(h)
	}
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *fixture) close(t *testing.T) {
	t.Helper()
	h.Stop()
	if err := h.folder.Close(); err != nil {
		t.Error(err)
	}
}

// make creates a schedule from JSON, which calls the agent.
func (h *fixture) make(t *testing.T, body string) agent.Schedule {
	t.Helper()
	s, _, err := h.Create(
		t.Context(),
		h.db,
		change(t, `{"name":"s","callback_type":"agent","payload":{"prompt":"go"}}`, body),
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func change(t *testing.T, bodies ...string) (c agent.ScheduleChange) {
	t.Helper()
	for _, body := range bodies {
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (h *fixture) put(t *testing.T, id, body string) agent.Schedule {
	t.Helper()
	s, _, err := h.Update(t.Context(), h.db, id, change(t, body))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (h *fixture) sql(t *testing.T, query string, params ...any) {
	t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	var p store.Params
	if len(params) > 0 {
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.db.SQL(t.Context(), query, p, store.Access{Write: true}); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// get returns a schedule and its runs, "status scheduled_for" newest first.
func (h *fixture) get(t *testing.T, id string) (agent.Schedule, []string) {
	t.Helper()
	s, runs, err := h.db.Schedule(t.Context(), id, 2000)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range runs {
		out = append(out, string(r.Status)+" "+r.ScheduledFor.Format("15:04"))
	}
	return s, out
}

// pass advances the time by d and waits until all goroutines are blocked.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestCronRunsOnTime(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		s := h.make(t, `{"type":"cron","cron_expression":"*/15 * * * *"}`)
		want(t, "first planned run", s.NextRun, "2000-01-01T00:15:00.000Z")
		pass(time.Hour)
		want(t, "calls", h.calls.times(), "00:15:00 00:30:00 00:45:00 01:00:00")
		s, runs := h.get(t, s.ID)
		want(t, "runs", runs, []string{"success 01:00", "success 00:45", "success 00:30", "success 00:15"})
		want(t, "last run", s.LastRun, "2000-01-01T01:00:00.000Z")
		want(t, "next run", s.NextRun, "2000-01-01T01:15:00.000Z")
		want(t, "status", s.Status, "active")
		h.put(t, s.ID, `{"status":"paused"}`)
		pass(time.Hour)
		want(t, "calls while paused", h.calls.count(), 4)
		s = h.put(t, s.ID, `{"status":"active"}`)
		want(t, "next run after resuming", s.NextRun, "2000-01-01T02:15:00.000Z")
		pass(15 * time.Minute)
		want(t, "calls once active", h.calls.count(), 5)
	})
}

func TestOnceAndDelayed(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		once := h.make(t, `{"type":"once","next_run":"2000-01-01T00:10:00Z"}`)
		delayed := h.make(t, `{"type":"delayed","delay_seconds":90}`)
		release := make(chan struct{})
		h.calls.onCall(func(ctx context.Context, c Callback) error {
			if c.Schedule.ID == once.ID {
				<-release
			}
			return nil
		})
		pass(10 * time.Minute)
		want(t, "calls", h.calls.times(), "00:01:30 00:10:00")
		got, runs := h.get(t, delayed.ID)
		want(t, "delayed", []any{got.Status, got.NextRun, runs}, "[completed  [success 00:01]]")
		got, runs = h.get(t, once.ID)
		want(t, "once while running", []any{got.Status, got.NextRun, runs}, "[active  [running 00:10]]")
		close(release)
		synctest.Wait()
		got, _ = h.get(t, once.ID)
		want(t, "once after running", got.Status, "completed")
		h.put(t, once.ID, `{"name":"renamed","next_run":null,"status":"completed"}`)
		pass(time.Hour)
		want(t, "calls after the end", h.calls.count(), 2)
		got = h.put(t, once.ID, `{"next_run":"2000-01-01T03:00:00Z"}`)
		want(t, "once with a new time", got.Status, "active")
		got = h.put(t, delayed.ID, `{"status":"active"}`)
		want(t, "delayed again", got.NextRun, "2000-01-01T01:11:30.000Z")
		pass(3 * time.Hour)
		want(t, "calls", h.calls.times(), "00:01:30 00:10:00 01:11:30 03:00:00")
	})
}

func TestChangesBySQL(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		s := h.make(t, `{"type":"cron","cron_expression":"0 * * * *"}`)
		h.sql(t, "UPDATE schedules SET cron_expression = '*/30 * * * *' WHERE id = ?", s.ID)
		got, _ := h.get(t, s.ID)
		want(t, "planned by SQL", got.NextRun, "2000-01-01T00:30:00.000Z")
		pass(30 * time.Minute)
		want(t, "calls", h.calls.times(), "00:30:00")
		h.sql(t, "UPDATE schedules SET next_run = '2000-01-01T00:31:00.000Z' WHERE id = ?", s.ID)
		pass(time.Minute)
		want(t, "calls at a next_run by SQL", h.calls.times(), "00:30:00 00:31:00")
		h.sql(t, "UPDATE schedules SET status = 'paused'")
		pass(time.Hour)
		want(t, "calls after pausing by SQL", h.calls.count(), 2)
		h.sql(t, "UPDATE schedules SET status = 'active'")
		pass(29 * time.Minute)
		want(t, "calls after resuming by SQL", h.calls.times(), "00:30:00 00:31:00 02:00:00")
		h.sql(t, "DELETE FROM schedules")
		h.sql(
			t,
			`INSERT INTO schedules(name, type, delay_seconds, callback_type, payload) VALUES ('by SQL', 'delayed', `+
				`60, 'agent', '{"prompt":"x"}')`,
		)
		pass(time.Minute)
		want(t, "calls of a schedule created by SQL", h.calls.times(), "00:30:00 00:31:00 02:00:00 02:01:00")
		h.sql(t, "UPDATE schedules SET delay_seconds = 120")
		pass(2 * time.Minute)
		want(t, "calls after a new next_run by SQL", h.calls.count(), 5)
		h.sql(t, "UPDATE schedules SET type = 'once', next_run = '2000-01-01T03:00:00.000Z'")
		pass(time.Hour)
		want(
			t,
			"calls after a change of type by SQL",
			h.calls.times(),
			"00:30:00 00:31:00 02:00:00 02:01:00 02:03:00 03:00:00",
		)
	})
}

// TestInvalidRows writes rows by SQL that the API would reject: they must not affect
// other schedules.
func TestInvalidRows(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		valid := h.make(t, `{"type":"cron","cron_expression":"0 * * * *"}`)
		for _, set := range []string{
			"type = 'cron', cron_expression = 'nonsense'",
			"type = 'cron', cron_expression = '@daily'",
			"type = 'cron', timezone = 'Mars/Base'",
			"type = 'delayed', delay_seconds = -5",
			"type = 'once', next_run = NULL",
			"callback_type = 'workflow', callback_id = 'nowhere'",
			"name = ''",
			"payload = '{}'",
		} {
			s := h.make(t, `{"type":"cron","cron_expression":"30 * * * *"}`)
			h.sql(t, "UPDATE schedules SET "+set+" WHERE id = ?", s.ID)
			got, runs := h.get(t, s.ID)
			if got.Status != agent.SchedulePaused || len(runs) != 1 || !strings.HasPrefix(runs[0], "error") {
				t.Errorf("%s: %s, runs %v; want paused with an error", set, got.Status, runs)
			}
		}
		for _, set := range []string{
			"status = 'asleep'",
			"next_run = 'tomorrow'",
			"next_run = '2000-01-01 10:00:00'",
			"payload = '[]'",
			"overlap = 'x'",
			"delay_seconds = 'x'",
		} {
			if _, err := h.db.SQL(
				t.Context(),
				"UPDATE schedules SET "+set,
				store.Params{},
				store.Access{Write: true},
			); agent.ErrorCode(err) != agent.CodeExecution {
				t.Errorf("%s: %v, want an error", set, err)
			}
		}
		if _, err := h.db.SQL(
			t.Context(),
			"DELETE FROM runs",
			store.Params{},
			store.Access{Write: true},
		); agent.ErrorCode(err) != agent.CodeForbiddenOperation {
			t.Errorf("deleting runs by SQL: %v", err)
		}
		pass(time.Hour)
		want(t, "calls", h.calls.times(), "01:00:00")
		got, _ := h.get(t, valid.ID)
		want(t, "the valid schedule", got.NextRun, "2000-01-01T02:00:00.000Z")
	})
}

func TestPausedAgentRunsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		h.make(t, `{"type":"cron","cron_expression":"* * * * *"}`)
		set := func(status agent.Status) {
			if _, err := h.folder.UpdateAgent(t.Context(), h.db, agent.AgentChange{
				Status: agent.Some(status),
			}); err != nil {
				t.Fatal(err)
			}
		}
		set(agent.StatusPaused)
		pass(10 * time.Minute)
		want(t, "calls while paused", h.calls.count(), 0)
		set(agent.StatusActive)
		synctest.Wait()
		calls := h.calls.count()
		want(t, "calls once active", calls, 1)
		set(agent.StatusDisabled)
		pass(10 * time.Minute)
		want(t, "calls while disabled", h.calls.count(), calls)
	})
}

func TestRunNow(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		s := h.make(t, `{"type":"cron","cron_expression":"0 * * * *","status":"paused"}`)
		release := make(chan error)
		h.calls.onCall(func(context.Context, Callback) error { return <-release })
		run, err := h.Run(t.Context(), h.db, s.ID)
		if err != nil || run.Status != agent.RunRunning {
			t.Fatalf("got %v, %v", run, err)
		}
		if _, err := h.Run(t.Context(), h.db, s.ID); agent.ErrorCode(err) != agent.CodeConflict {
			t.Errorf("a second run: %v", err)
		}
		if _, err := h.Run(t.Context(), h.db, "schedule-x"); agent.ErrorCode(err) != agent.CodeNotFound {
			t.Errorf("an unknown schedule: %v", err)
		}
		release <- agent.Errorf(agent.CodeUpstream, "the receiver is down")
		synctest.Wait()
		got, runs, err := h.db.Schedule(t.Context(), s.ID, 10)
		if err != nil || len(runs) != 1 || runs[0].Error != "the receiver is down" || runs[0].Status != agent.RunError {
			t.Errorf("got %+v, %v", runs, err)
		}
		want(t, "status", got.Status, "paused")
		h.calls.onCall(func(context.Context, Callback) error { panic("secret text") })
		if _, err := h.Run(t.Context(), h.db, s.ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		_, runs, _ = h.db.Schedule(t.Context(), s.ID, 1)
		if runs[0].Status != agent.RunError || strings.Contains(runs[0].Error, "secret") {
			t.Errorf("got %+v", runs[0])
		}
	})
}

// TestClockIsSet: runs that become due because the clock was set start soon.
func TestClockIsSet(t *testing.T) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var offset atomic.Int64
		offset.Store(int64(-24 * time.Hour))
		h := open(t, path, func(h *fixture) {
			h.now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
			h.clockInterval = clockInterval
		})
		h.make(t, `{"type":"once","next_run":"2000-01-01T00:10:00Z"}`)
		pass(20*time.Minute + 10*time.Second)
		want(t, "calls while the clock is behind", h.calls.count(), 0)
		offset.Store(0)
		pass(clockInterval)
		want(t, "calls once it is set", h.calls.count(), 1)
		h.close(t)
	})
}

// TestSlots: slow calls of an agent do not use the slots of other agents, and runs that
// released their slot do not count.
func TestSlots(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		release := make(chan struct{})
		h.calls.onCall(func(ctx context.Context, c Callback) error {
			if c.Schedule.Name == "waits" {
				work.Release(ctx)
			}
			<-release
			return nil
		})
		const each = maxAgentRuns + 8
		for _, name := range []string{"waits", "calls"} {
			for range each {
				h.make(t, `{"type":"once","next_run":"2000-01-01T00:10:00Z","name":"`+name+`"}`)
			}
		}
		other, err := h.folder.CreateAgent(t.Context(), agent.Agent{Name: "other"}, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := h.Create(
			t.Context(),
			other,
			change(
				t,
				`{"name":"s","callback_type":"agent","payload":{"prompt":"go"},"type":"once",`+
					`"next_run":"2000-01-01T00:10:00Z"}`,
			),
		); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		others, all := 0, h.calls.count()
		for _, c := range h.calls.seen {
			if c.Schedule.Name == "s" {
				others++
			}
		}
		want(t, "concurrent calls, and calls of the other agent", []int{all, others}, []int{each + maxAgentRuns + 1, 1})
		close(release)
		synctest.Wait()
		want(t, "calls", h.calls.count(), 2*each+1)
	})
}

// TestExecutionIsShown: the execution that a run started is visible while it runs.
func TestExecutionIsShown(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		release := make(chan struct{})
		h.calls.onCall(func(_ context.Context, c Callback) error {
			c.Started("execution-1")
			<-release
			return nil
		})
		s := h.make(t, `{"type":"once","next_run":"2000-01-01T00:10:00Z"}`)
		shows := func() (string, agent.RunStatus) {
			_, runs, err := h.db.Schedule(t.Context(), s.ID, 1)
			if err != nil || len(runs) != 1 {
				t.Fatalf("got %v, %v", runs, err)
			}
			return runs[0].ExecutionID, runs[0].Status
		}
		pass(10*time.Minute + writeStartAfter)
		if id, status := shows(); id != "execution-1" || status != agent.RunRunning {
			t.Errorf("while running: %s %s", id, status)
		}
		close(release)
		synctest.Wait()
		if _, status := shows(); status != agent.RunSuccess || len(h.unwritten) > 0 || len(h.active) > 0 {
			t.Errorf("after the end: %s; still in memory: %v, %v", status, h.unwritten, h.active)
		}
	})
}

// TestEndedBeforeRestart: a run that was read as interrupted but ended before it could
// be started again is not called.
func TestEndedBeforeRestart(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		s := h.make(t, `{"type":"once","next_run":"2000-01-01T00:10:00Z"}`)
		pass(10 * time.Minute)
		s, runs, err := h.db.Schedule(t.Context(), s.ID, 1)
		if err != nil || len(runs) != 1 {
			t.Fatalf("got %v, %v", runs, err)
		}
		h.enqueue(dueKey{h.db, true}, store.DueRuns{Runs: []store.ScheduledRun{{Schedule: s, Run: runs[0]}}})
		synctest.Wait()
		want(t, "calls and active runs", []any{h.calls.count(), len(h.active)}, "[1 0]")
	})
}

// TestDeletedAgent: the calls of a deleted agent end, and no others start.
func TestDeletedAgent(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		db, err := h.folder.CreateAgent(t.Context(), agent.Agent{Name: "other"}, "")
		if err != nil {
			t.Fatal(err)
		}
		h.db = db
		h.calls.onCall(func(ctx context.Context, _ Callback) error {
			<-ctx.Done()
			return ctx.Err()
		})
		for range maxAgentRuns + 1 {
			h.make(t, `{"type":"once","next_run":"2000-01-01T00:10:00Z"}`)
		}
		pass(10 * time.Minute)
		if err := h.folder.DeleteAgent(db); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want(t, "calls and active runs", []any{h.calls.count(), len(h.active), h.runs.Stats()}, []any{
			maxAgentRuns,
			0,
			work.Stats{},
		})
	})
}

func TestClockJumps(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		s := h.make(t, `{"type":"cron","cron_expression":"* * * * *"}`)
		// The clock cannot jump in a bubble; a row a day in the past is
		// equivalent.
		h.sql(t, "UPDATE schedules SET next_run = '1999-12-31T00:00:00.000Z' WHERE id = ?", s.ID)
		pass(time.Second)
		want(t, "calls after a day", h.calls.count(), 1)
		h.sql(t, "UPDATE schedules SET next_run = '2000-01-02T00:00:00.000Z' WHERE id = ?", s.ID)
		pass(time.Hour)
		want(t, "calls while the clock is behind", h.calls.count(), 1)
	})
}

// TestStartStop starts and stops repeatedly while schedules are created.
func TestStartStop(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		worktest.Stress(t, h, 20, func(int) { h.make(t, `{"type":"delayed","delay_seconds":5}`) })
		pass(5 * time.Second)
		want(t, "calls", h.calls.count(), 20)
	})
}

func TestTrigger(t *testing.T) {
	c := Callback{
		RunID:    "run-1",
		Schedule: agent.Schedule{ID: "schedule-1", Payload: json.RawMessage(`{"a":1,"schedule":"mine"}`)},
	}
	var got struct {
		A        int
		Payload  map[string]any
		Schedule map[string]string
	}
	if err := json.Unmarshal(c.Trigger(), &got); err != nil ||
		got.A != 1 ||
		got.Payload["schedule"] != "mine" ||
		got.Schedule["id"] != "schedule-1" {
		t.Errorf("got %s, %v", c.Trigger(), err)
	}
}

func TestCheck(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		for _, tc := range []struct{ body, field string }{
			{`{"callback_type":"workflow","callback_id":"workflow-1"}`, "callback_type"},
			{`{"callback_type":"tool","callback_id":"tool-1"}`, "callback_type"},
			{`{"callback_type":"webhook","callback_id":"ftp://example.com"}`, "callback_id"},
			{`{"callback_type":"webhook","callback_id":"http://127.0.0.1/"}`, "callback_id"},
			{`{"callback_type":"webhook","callback_id":"https://example.com/","secret":"short"}`, "secret"},
			{`{"payload":{}}`, "payload.prompt"},
		} {
			_, _, err := h.Create(
				t.Context(),
				h.db,
				change(
					t,
					`{"name":"s","type":"cron","cron_expression":"* * * * *","callback_type":"agent",`+
						`"payload":{"prompt":"x"}}`,
					tc.body,
				),
			)
			var e *agent.Error
			if !errors.As(err, &e) || e.Details["field"] != tc.field {
				t.Errorf("%s: %v, want an error about %s", tc.body, err, tc.field)
			}
		}
		list, total, err := h.db.Schedules(t.Context(), store.ScheduleFilter{}, store.Page{Limit: 10})
		if err != nil || total != 0 || len(list) != 0 {
			t.Errorf("a schedule was created: %v %d %v", list, total, err)
		}
	})
}
