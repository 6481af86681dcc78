package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

func TestScheduleDays(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	accept := func(*agent.Schedule) error { return nil }
	start := time.Date(2027, 1, 4, 0, 0, 0, 0, time.UTC)
	s, err := db.CreateSchedule(t.Context(), once(agent.At(start.Add(30*time.Hour))), accept)
	if err != nil {
		t.Fatal(err)
	}
	other, err := db.CreateSchedule(t.Context(), once(agent.At(start.Add(100*time.Hour))), accept)
	if err != nil {
		t.Fatal(err)
	}
	for i, run := range []struct {
		schedule string
		at       time.Duration
		status   string
	}{
		{s.ID, -1, "success"},
		{s.ID, 0, "error"},
		{s.ID, time.Hour, "missed"},
		{other.ID, 2 * time.Hour, "running"},
		{s.ID, 24*time.Hour - 1, "success"},
		{s.ID, 24 * time.Hour, "skipped"},
		{s.ID, 48 * time.Hour, "success"},
	} {
		do(
			t,
			db,
			"INSERT INTO runs(id, schedule_id, scheduled_for, status) VALUES (?,?,?,?)",
			fmt.Sprint("run-", i),
			run.schedule,
			agent.At(start.Add(run.at.Truncate(time.Millisecond)).Add(min(0, run.at%time.Millisecond))),
			run.status,
		)
	}
	days := []agent.Time{agent.At(start), agent.At(start.AddDate(0, 0, 1)), agent.At(start.AddDate(0, 0, 2))}
	past, coming, err := db.ScheduleDays(t.Context(), days)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, day := range past {
		for _, d := range day {
			got = append(
				got,
				fmt.Sprintf(
					"%d %t %s: %d runs, %d failed, %d missed, %d running",
					i,
					d.ScheduleID == s.ID,
					d.First.Format("15:04"),
					d.Runs, d.Failed, d.Missed, d.Running,
				),
			)
		}
	}
	want := "0 true 00:00: 3 runs, 1 failed, 1 missed, 0 running\n0 false 02:00: 1 runs, 0 failed, 0 missed, " +
		"1 running\n1 true 00:00: 1 runs, 0 failed, 0 missed, 0 running"
	if strings.Join(got, "\n") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "\n"), want)
	}
	if len(coming) != 1 || coming[0].ID != s.ID {
		t.Errorf("future: %v", coming)
	}
	last, err := db.LastRuns(t.Context(), []string{s.ID, other.ID, "schedule-x"})
	if err != nil || len(last) != 2 || last[s.ID].ID != "run-6" || last[other.ID].ID != "run-3" {
		t.Errorf("%v, %v", last, err)
	}
}
