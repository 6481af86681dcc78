package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store/sqlite"
)

func any1(*agent.Schedule) error { return nil }

func createSchedule(t testing.TB, db *DB, change agent.ScheduleChange) agent.Schedule {
	t.Helper()
	if !change.Name.Given {
		change.Name = agent.Some("s")
	}
	if !change.CallbackType.Given {
		change.CallbackType, change.CallbackID = agent.Some(agent.CallbackWebhook), agent.Some("https://example.com/")
	}
	s, err := db.CreateSchedule(t.Context(), change, any1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func yearly() agent.ScheduleChange {
	return agent.ScheduleChange{Type: agent.Some(agent.ScheduleCron), CronExpression: agent.Some("0 0 1 1 *")}
}

// TestSchedulesArePending checks when an agent's schedules are due through writes,
// closing, and a start with and without the catalog's cache.
func TestSchedulesArePending(t *testing.T) {
	path := t.TempDir()
	f := openAt(t, path)
	db := createAgent(t, f, "a")
	if p := db.Pending(); !p.Schedules.IsZero() || !p.Runs.IsZero() {
		t.Errorf("a new agent has something due: %+v", p)
	}
	a := subscribe(f)
	a.take(db)
	announces := func(what string, want bool) {
		t.Helper()
		if got := slices.Contains(a.take(db), "Schedules"); got != want {
			t.Errorf("%s: announced %v, want %v", what, got, want)
		}
	}
	s := createSchedule(t, db, yearly())
	announces("a new schedule", true)
	soon := agent.At(time.Now().Add(time.Hour))
	if _, err := db.SQL(
		t.Context(),
		"UPDATE schedules SET next_run = '"+soon.String()+"'",
		Params{},
		Access{Write: true},
	); err != nil {
		t.Fatal(err)
	}
	announces("a time by SQL", true)
	if d, err := db.TakeDue(t.Context()); err != nil || d.Next != soon {
		t.Errorf("due next at %v, %v; want %v", d.Next, err, soon)
	}
	announces("taking what is due", false)
	closeFolder(t, f)
	for _, forget := range []bool{false, true} {
		if forget {
			if err := RemoveIfExists(cachePath(path)); err != nil {
				t.Fatal(err)
			}
		}
		f = openAt(t, path)
		db = byName(t, f, "a")
		if p := db.Pending(); p.Schedules != soon || !p.Runs.IsZero() || db.isOpen() {
			t.Errorf("after a start (without the cache: %v): %+v, want %v", forget, p, soon)
		}
		closeFolder(t, f)
	}
	f = openAt(t, path)
	db = byName(t, f, "a")
	if err := db.DeleteSchedule(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if d, err := db.TakeDue(t.Context()); err != nil || !d.Next.IsZero() {
		t.Errorf("due next at %v once all are deleted, %v", d.Next, err)
	}
}

// TestFilesChangedWhileClosed checks that what another program wrote into a closed file
// is announced when the file is opened.
func TestFilesChangedWhileClosed(t *testing.T) {
	f := openFolder(t)
	db := createAgent(t, f, "a")
	s := createSchedule(t, db, yearly())
	if _, err := db.closeIdle(); err != nil {
		t.Fatal(err)
	}
	a := subscribe(f)
	a.take(db)
	soon := agent.At(time.Now().Add(time.Hour))
	c, err := openConn(source(db.path, sqlite.ReadWrite))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.exec("UPDATE schedules SET next_run = ? WHERE id = ?", soon, s.ID)
	if err := errors.Join(err, c.close()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Schedule(t.Context(), s.ID, 1); err != nil {
		t.Fatal(err)
	}
	if got := a.take(db); !slices.Contains(got, "Schedules") || db.Pending().Schedules != soon {
		t.Errorf("announced %v; due at %v, want %v", got, db.Pending().Schedules, soon)
	}
}

// TestTakeDue checks that due runs are taken once, and that runs which were not finished
// are found.
func TestTakeDue(t *testing.T) {
	path := t.TempDir()
	f := openAt(t, path)
	db := createAgent(t, f, "a")
	s := createSchedule(t, db, yearly())
	take := func() DueRuns {
		t.Helper()
		d, err := db.TakeDue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := take(); len(d.Runs) != 0 {
		t.Errorf("%v is due before its time", d)
	}
	do(t, db, "UPDATE schedules SET next_run = ?", agent.At(time.Now().Add(-time.Second)))
	d := take()
	if len(d.Runs) != 1 || d.Runs[0].Schedule.NextRun != s.NextRun || d.Runs[0].Run.Status != agent.RunRunning {
		t.Fatalf("%+v", d)
	}
	if d := take(); len(d.Runs) != 0 {
		t.Errorf("%v is taken twice", d)
	}
	closeFolder(t, f) // the run is never finished
	f = openAt(t, path)
	db = byName(t, f, "a")
	if db.Pending().Runs.IsZero() {
		t.Error("the interrupted run is not pending")
	}
	left, err := db.Interrupted(t.Context())
	if err != nil || len(left.Runs) != 1 || left.Runs[0].Run.ID != d.Runs[0].Run.ID {
		t.Fatalf("%+v, %v", left, err)
	}
	run := left.Runs[0].Run
	run.Status, run.DurationMS = agent.RunSuccess, 5
	for _, before := range []bool{true, false} { // the second changes nothing
		if under, err := db.RunInProgress(t.Context(), run.ID); err != nil || under != before {
			t.Errorf("in progress: %v, %v", under, err)
		}
		if _, err := db.UpdateRuns(t.Context(), RunChanges{Runs: []agent.Run{run}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := value[int](t, db, "SELECT count(*) FROM _events WHERE type = 'schedule.executed'"); n != 1 {
		t.Errorf("%d events", n)
	}
	if _, runs, err := db.Schedule(t.Context(), s.ID, 10); err != nil ||
		len(runs) != 1 ||
		runs[0].Status != agent.RunSuccess {
		t.Errorf("%+v, %v", runs, err)
	}
}

// TestCopiesLeaveRuns checks that a copied file repeats no runs of its original.
func TestCopiesLeaveRuns(t *testing.T) {
	f := openFolder(t)
	db := createAgent(t, f, "a")
	cron := createSchedule(t, db, yearly())
	once := createSchedule(t, db, agent.ScheduleChange{
		Type:    agent.Some(agent.ScheduleOnce),
		NextRun: agent.Some(agent.Now()),
	})
	late := createSchedule(t, db, agent.ScheduleChange{
		Type:         agent.Some(agent.ScheduleDelayed),
		DelaySeconds: agent.Some(1000),
	})
	if _, err := db.StartRun(t.Context(), late.ID, any1); err != nil {
		t.Fatal(err)
	}
	do(t, db, "UPDATE schedules SET next_run = '2020-01-01T00:00:00.000Z' WHERE id = ?", cron.ID)
	fork, err := f.Fork(t.Context(), db, "copy", "")
	if err != nil {
		t.Fatal(err)
	}
	if p := fork.Pending(); !p.Runs.IsZero() || p.Schedules != late.NextRun {
		t.Errorf("the copy has something due: %+v; want %v", p, late.NextRun)
	}
	got, runs, err := fork.Schedule(t.Context(), once.ID, 10)
	if err != nil || got.Status != agent.ScheduleCompleted || len(runs) != 1 || runs[0].Status != agent.RunMissed {
		t.Errorf("%+v %+v %v", got, runs, err)
	}
	if got, _, err := fork.Schedule(t.Context(), cron.ID, 10); err != nil || got.NextRun != cron.NextRun {
		t.Errorf("%+v %v", got, err)
	}
}

func TestRunsAreTrimmed(t *testing.T) {
	f := openFolder(t)
	db := createAgent(t, f, "a")
	s := createSchedule(t, db, yearly())
	do(t, db, `INSERT INTO runs(id, schedule_id, scheduled_for, status) SELECT 'r' || value, ?, iif(value < 3, '2020-01-01T00:00:00.000Z', ?),
		iif(value = 1, 'running', 'success') FROM json_each('[1,2,3,4,5]')`, s.ID, agent.Now())
	if _, err := Write(t.Context(), db, func(tx *Tx) (bool, error) { return trim(tx) }); err != nil {
		t.Fatal(err)
	}
	if left := value[string](t, db, "SELECT group_concat(id) FROM runs"); left != "r1,r3,r4,r5" {
		t.Errorf("%s are left", left)
	}
}
