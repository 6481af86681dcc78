package store

import (
	"testing"
	"time"

	"satchel/agent"
)

// A schedule that an execution creates, through the API or by SQL, belongs to the
// execution's chain, and stays in it when a person changes it.
func TestScheduledChains(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	accept := func(*agent.Schedule) error { return nil }
	ctx := WithChain(t.Context(), agent.Chain{Root: "execution-x", Depth: 4})
	chainOf := func(id string) agent.Chain {
		t.Helper()
		c, err := db.ScheduledChain(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	want := agent.Chain{Root: "execution-x", Depth: 1, Remote: true}
	mine, err := db.CreateSchedule(ctx, delayed(60), accept)
	if err != nil || chainOf(mine.ID) != want {
		t.Errorf("%+v %v", chainOf(mine.ID), err)
	}
	theirs, err := db.CreateSchedule(t.Context(), delayed(60), accept)
	if err != nil || chainOf(theirs.ID) != (agent.Chain{}) {
		t.Errorf("%+v %v", chainOf(theirs.ID), err)
	}
	const insert = `INSERT INTO schedules(id, name, type, delay_seconds, callback_type, payload) ` +
		`VALUES ('schedule-sql', 's', 'delayed', 60, 'agent', '{"prompt":"x"}')`
	if _, err := db.SQL(ctx, insert, Params{}, Access{Write: true}); err != nil || chainOf("schedule-sql") != want {
		t.Errorf("%+v %v", chainOf("schedule-sql"), err)
	}
	if _, err := db.UpdateSchedule(
		ctx,
		theirs.ID,
		agent.ScheduleChange{DelaySeconds: agent.Some(60)},
		accept,
	); err != nil || chainOf(theirs.ID) != want {
		t.Errorf("changed by an execution: %+v %v", chainOf(theirs.ID), err)
	}
	if _, err := db.UpdateSchedule(
		t.Context(),
		mine.ID,
		agent.ScheduleChange{DelaySeconds: agent.Some(60)},
		accept,
	); err != nil || chainOf(mine.ID) != want {
		t.Errorf("changed by a person: %+v %v", chainOf(mine.ID), err)
	}
	if err := db.DeleteSchedule(t.Context(), "schedule-sql"); err != nil ||
		value[int](t, db, "SELECT count(*) FROM _chains") != 2 {
		t.Errorf("%d rows are left, %v", value[int](t, db, "SELECT count(*) FROM _chains"), err)
	}
	// The run's events belong to the chain too.
	do(t, db, "UPDATE schedules SET next_run = ? WHERE id = ?", agent.At(time.Now().Add(-time.Second)), theirs.ID)
	due, err := db.TakeDue(t.Context())
	if err != nil || len(due.Runs) != 1 {
		t.Fatal(due, err)
	}
	run := due.Runs[0].Run
	run.Status = agent.RunSuccess
	if _, err := db.UpdateRuns(t.Context(), RunChanges{Runs: []agent.Run{run}}); err != nil {
		t.Fatal(err)
	}
	events := eventsAfter(t, db, 0)
	if last := events[len(events)-1]; last.Type != agent.EventScheduleExecuted ||
		last.Root != want.Root ||
		last.Depth != 1 {
		t.Errorf("%+v", last)
	}
}
