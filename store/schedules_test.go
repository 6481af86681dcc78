package store

import (
	"encoding/json"
	"testing"
	"time"

	"satchel/agent"
)

// A schedule that has ended becomes active again when its timing is written, also with
// the same value, and not by any other change.
func TestEndedScheduleIsRescheduled(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	accept := func(*agent.Schedule) error { return nil }
	later := agent.At(time.Now().Add(time.Hour).Truncate(time.Millisecond))
	for _, c := range []struct {
		name         string
		made, change agent.ScheduleChange
		again        bool
	}{
		{"the same delay", delayed(60), agent.ScheduleChange{DelaySeconds: agent.Some(60)}, true},
		{"another delay", delayed(60), agent.ScheduleChange{DelaySeconds: agent.Some(90)}, true},
		{"the same type", delayed(60), agent.ScheduleChange{Type: agent.Some(agent.ScheduleDelayed)}, true},
		{"another name", delayed(60), agent.ScheduleChange{Name: agent.Some("other")}, false},
		{
			"another payload",
			delayed(60),
			agent.ScheduleChange{Payload: agent.Some(json.RawMessage(`{"prompt":"y"}`))},
			false,
		},
		{
			"the same delay, paused",
			delayed(60),
			agent.ScheduleChange{DelaySeconds: agent.Some(60), Status: agent.Some(agent.SchedulePaused)},
			false,
		},
		{"the same time", once(later), agent.ScheduleChange{NextRun: agent.Some(later)}, true},
		{
			"another name of one with a single run",
			once(later),
			agent.ScheduleChange{Name: agent.Some("other"), Type: agent.Some(agent.ScheduleOnce)},
			false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := db.CreateSchedule(t.Context(), c.made, accept)
			if err != nil {
				t.Fatal(err)
			}
			do(t, db, "UPDATE schedules SET status = 'completed', next_run = NULL WHERE id = ?", s.ID)
			s, err = db.UpdateSchedule(t.Context(), s.ID, c.change, accept)
			if err != nil || (s.Status == agent.ScheduleActive) != c.again || s.NextRun.IsZero() == c.again {
				t.Errorf("%s, next run %s, %v", s.Status, s.NextRun, err)
			}
		})
	}
}

func delayed(seconds int) agent.ScheduleChange {
	return agent.ScheduleChange{
		Name:         agent.Some("s"),
		Type:         agent.Some(agent.ScheduleDelayed),
		DelaySeconds: agent.Some(seconds),
		CallbackType: agent.Some(agent.CallbackAgent),
		Payload:      agent.Some(json.RawMessage(`{"prompt":"x"}`)),
	}
}

func once(at agent.Time) agent.ScheduleChange {
	c := delayed(0)
	c.Type, c.DelaySeconds, c.NextRun = agent.Some(agent.ScheduleOnce), agent.Optional[int]{}, agent.Some(at)
	return c
}
