package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/agent/work/worktest"
	"satchel/store"
)

var quiet = slog.New(slog.DiscardHandler)

func openFolder(tb testing.TB, path string) *store.Folder {
	tb.Helper()
	f, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.Close() })
	return f
}

func makeAgent(tb testing.TB, f *store.Folder, name string) *store.DB {
	tb.Helper()
	db, err := f.CreateAgent(tb.Context(), agent.Agent{Name: name}, "")
	if err != nil {
		tb.Fatal(err)
	}
	return db
}

func contact(tb testing.TB, db *store.DB, name string) {
	tb.Helper()
	if _, err := db.CreateContact(tb.Context(), agent.ContactChange{Name: agent.Some(name)}); err != nil {
		tb.Fatal(err)
	}
}

// delivered is an event that a consumer received.
type delivered struct {
	db *store.DB
	agent.Event
}

// recorder is a consumer that records what it receives.
type recorder struct {
	events chan delivered
	fail   func(db *store.DB, e agent.Event) error // nil: never
}

// each returns a Handle that calls a func for each event.
func each(
	act func(ctx context.Context, db *store.DB, e agent.Event) error,
) func(context.Context, *store.DB, []agent.Event) (int, error) {
	return func(ctx context.Context, db *store.DB, events []agent.Event) (int, error) {
		for i, e := range events {
			if err := recoverPanic(func() error { return act(ctx, db, e) }); err != nil {
				return i, err
			}
		}
		return len(events), nil
	}
}

// listen creates a workflow that every event starts, so that the agent has a
// subscriber.
func listen(tb testing.TB, db *store.DB) {
	tb.Helper()
	if _, err := db.CreateWorkflow(tb.Context(), agent.Workflow{
		Name:   "all",
		Status: agent.WorkflowActive,
		Nodes:  []agent.RawNode{agent.RawNode(`{"id":"t","type":"trigger","data":{"event":"*"}}`)},
		Edges:  []agent.RawEdge{},
	}); err != nil {
		tb.Fatal(err)
	}
}

func newRecorder() *recorder { return &recorder{events: make(chan delivered, 100_000)} }

func (e *recorder) consumer(name string) Consumer {
	return Consumer{Name: name, Handle: each(func(_ context.Context, db *store.DB, event agent.Event) error {
		if e.fail != nil {
			if err := e.fail(db, event); err != nil {
				return err
			}
		}
		e.events <- delivered{db, event}
		return nil
	})}
}

func (e *recorder) next(tb testing.TB) delivered {
	tb.Helper()
	return <-e.events
}

// run starts a dispatcher that stops with the test.
func run(tb testing.TB, f *store.Folder, consumers ...Consumer) *Dispatcher {
	tb.Helper()
	d := New(f, quiet, consumers...)
	begin(tb, d)
	return d
}

func begin(tb testing.TB, d *Dispatcher) {
	tb.Helper()
	if err := d.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(d.Stop)
}

// idle waits until a consumer has passed every event of an agent, by sending
// one more event.
func idle(tb testing.TB, db *store.DB, e *recorder) {
	tb.Helper()
	contact(tb, db, "the last")
	for {
		if t := e.next(tb); t.db == db && string(t.Data) != "" && containsName(t, "the last") {
			return
		}
	}
}

func containsName(t delivered, name string) bool {
	return slices.Contains([]string{nameOf(t)}, name)
}

func TestOrder(t *testing.T) {
	f := openFolder(t, t.TempDir())
	first, second := newRecorder(), newRecorder()
	run(t, f, first.consumer("one"), second.consumer("two"))
	dbs := []*store.DB{f.Default(), makeAgent(t, f, "a"), makeAgent(t, f, "b")}
	const each = 300
	var writers sync.WaitGroup
	for _, db := range dbs {
		writers.Go(func() {
			for i := range each {
				contact(t, db, fmt.Sprint(i))
			}
		})
	}
	writers.Wait()
	for name, e := range map[string]*recorder{"one": first, "two": second} {
		last := map[*store.DB]int64{}
		for range each * len(dbs) {
			got := e.next(t)
			if got.Seq <= last[got.db] {
				t.Fatalf("%s: event %d of %s after %d", name, got.Seq, got.db.ID(), last[got.db])
			}
			last[got.db] = got.Seq
		}
		if len(e.events) != 0 {
			t.Errorf("%s: %d events too many", name, len(e.events))
		}
	}
}

// TestResume: after a restart, exactly the pending events are delivered, in the
// same process or another.
func TestResume(t *testing.T) {
	path := t.TempDir()
	f := openFolder(t, path)
	listen(t, f.Default())
	e := newRecorder()
	d := run(t, f, e.consumer(store.ConsumerWorkflows))
	contact(t, f.Default(), "before")
	e.next(t)
	d.Stop()
	contact(t, f.Default(), "between")
	begin(t, d)
	if got := e.next(t); nameOf(got) != "between" {
		t.Errorf("after a restart: %s", got.Data)
	}
	d.Stop()
	contact(t, f.Default(), "later")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = openFolder(t, path)
	run(t, f, e.consumer(store.ConsumerWorkflows))
	if got := e.next(t); nameOf(got) != "later" {
		t.Errorf("after a new process: %s", got.Data)
	}
}

// TestSlowAgent: a consumer that is blocked on one agent serves the others.
func TestSlowAgent(t *testing.T) {
	f := openFolder(t, t.TempDir())
	slow, quick := makeAgent(t, f, "slow"), makeAgent(t, f, "quick")
	release := make(chan struct{})
	e := newRecorder()
	e.fail = func(db *store.DB, _ agent.Event) error {
		if db == slow {
			<-release
		}
		return nil
	}
	run(t, f, e.consumer("c"))
	contact(t, slow, "x")
	for i := range 100 {
		contact(t, quick, fmt.Sprint(i))
	}
	for range 100 {
		if got := e.next(t); got.db != quick {
			t.Fatal("the blocked event was delivered first")
		}
	}
	close(release)
	if got := e.next(t); got.db != slow {
		t.Error("the blocked event was lost")
	}
}

// newRecordingDispatcher returns a dispatcher whose backoff delays pass
// immediately and are recorded.
func newRecordingDispatcher(f *store.Folder, consumers ...Consumer) (*Dispatcher, chan time.Duration) {
	waits := make(chan time.Duration, 1000)
	backoff := work.Exponential(firstRetry, longestRetry)
	return newDispatcher(f, quiet, func(failures int, err error) time.Duration {
		waits <- backoff(failures, err)
		return 0
	}, consumers...), waits
}

// TestRetries: a failing event is retried with growing delays, and the events
// after it wait.
func TestRetries(t *testing.T) {
	f := openFolder(t, t.TempDir())
	e := newRecorder()
	failures, panics := 3, 1
	e.fail = func(_ *store.DB, event agent.Event) error {
		switch nameOf(delivered{Event: event}) {
		case "bad":
			if failures--; failures >= 0 {
				return errors.New("temporary failure")
			}
		case "panics":
			if panics--; panics >= 0 {
				panic("in a consumer")
			}
		}
		return nil
	}
	d, waits := newRecordingDispatcher(f, e.consumer("c"))
	for _, name := range []string{"good", "bad", "behind", "panics", "last"} {
		contact(t, f.Default(), name)
	}
	begin(t, d)
	var order []string
	for range 5 {
		order = append(order, nameOf(e.next(t)))
	}
	if !slices.Equal(order, []string{"good", "bad", "behind", "panics", "last"}) {
		t.Errorf("order %v", order)
	}
	if a, b, c := <-waits, <-waits, <-waits; a != time.Second || b != 2*time.Second || c != 4*time.Second {
		t.Errorf("waits %s, %s, %s", a, b, c)
	}
	if again := <-waits; again != time.Second {
		t.Errorf("the next failure waits %s", again)
	}
}

// TestSkipsFailing: an event that always fails does not block the others
// forever.
func TestSkipsFailing(t *testing.T) {
	f := openFolder(t, t.TempDir())
	e := newRecorder()
	tries := 0
	e.fail = func(_ *store.DB, event agent.Event) error {
		if nameOf(delivered{Event: event}) == "poison" {
			tries++
			return errors.New("permanent failure")
		}
		return nil
	}
	d, waits := newRecordingDispatcher(f, e.consumer("c"))
	begin(t, d)
	contact(t, f.Default(), "poison")
	contact(t, f.Default(), "behind")
	if got := e.next(t); nameOf(got) != "behind" || tries != skipAfter {
		t.Errorf("%s after %d attempts", got.Data, tries)
	}
	var total time.Duration
	for range len(waits) {
		total += <-waits
	}
	if total < 3*time.Minute || total > 10*time.Minute {
		t.Errorf("given up after %s", total)
	}
}

// TestStopInterrupts: Stop interrupts a consumer, and the event is delivered
// again.
func TestStopInterrupts(t *testing.T) {
	f := openFolder(t, t.TempDir())
	started := make(chan struct{}, 10)
	d := New(f, quiet, Consumer{
		Name: "c",
		Handle: func(ctx context.Context, _ *store.DB, events []agent.Event) (int, error) {
			started <- struct{}{}
			<-ctx.Done()
			return 0, ctx.Err()
		},
	})
	begin(t, d)
	contact(t, f.Default(), "x")
	<-started
	d.Stop()
	d.Stop()
	begin(t, d)
	<-started
}

// TestStartStop starts and stops repeatedly while events arrive.
func TestStartStop(t *testing.T) {
	f := openFolder(t, t.TempDir())
	e := newRecorder()
	d := run(t, f, e.consumer("c"))
	const events = 400
	worktest.Stress(t, d, events, func(i int) { contact(t, f.Default(), fmt.Sprint(i)) })
	for seen := map[string]bool{}; len(seen) < events; {
		seen[e.next(t).ID] = true
	}
	idle(t, f.Default(), e)
	if err := d.Wait(t.Context(), f.Default()); err != nil {
		t.Error(err)
	}
}

// TestDeletedAgent: pending events of a deleted agent are dropped.
func TestDeletedAgent(t *testing.T) {
	f := openFolder(t, t.TempDir())
	db := makeAgent(t, f, "a")
	contact(t, db, "left")
	d := New(f, quiet, newRecorder().consumer("c"))
	if err := f.DeleteAgent(db); err != nil {
		t.Fatal(err)
	}
	begin(t, d)
	c := d.consumers[0]
	if err := c.queue.Wait(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if stats := c.queue.Stats(); stats.Ready+stats.Running > 0 || len(c.failing) > 0 {
		t.Errorf("the queue is not empty: %+v", stats)
	}
}
