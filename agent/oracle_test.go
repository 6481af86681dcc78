package agent

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/teambition/rrule-go"
)

var rruleDays = []rrule.Weekday{rrule.SU, rrule.MO, rrule.TU, rrule.WE, rrule.TH, rrule.FR, rrule.SA}

// randomTask returns a task in UTC and the equivalent rule.
func randomTask(r *rand.Rand) (Task, rrule.ROption) {
	start := time.Date(2020+r.IntN(10), time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), 0, 0, time.UTC)
	t := Task{
		ID:        "task-1",
		Title:     "t",
		StartTime: At(start),
		EndTime:   At(start.Add(time.Duration(r.IntN(100)) * time.Hour)),
		Timezone:  "UTC",
		Status:    TaskPending,
	}
	o := rrule.ROption{Dtstart: start}
	switch r.IntN(3) {
	case 0:
		t.Recurrence, o.Freq = RecurDaily, rrule.DAILY
	case 1:
		t.Recurrence, o.Freq = RecurWeekly, rrule.WEEKLY
		for day := range 7 {
			if r.IntN(3) == 0 {
				t.RecurrenceDays, o.Byweekday = append(t.RecurrenceDays, day), append(o.Byweekday, rruleDays[day])
			}
		}
	case 2:
		t.Recurrence, o.Freq = RecurMonthly, rrule.MONTHLY
		for _, day := range []int{-1, 1 + r.IntN(28), 29, 30, 31} {
			if r.IntN(3) == 0 {
				t.RecurrenceDays, o.Bymonthday = append(t.RecurrenceDays, day), append(o.Bymonthday, day)
			}
		}
	}
	switch r.IntN(3) {
	case 0:
		t.RecurrenceCount = 1 + r.IntN(40)
		o.Count = t.RecurrenceCount
	case 1:
		t.RecurrenceEnd = At(start.Add(time.Duration(r.IntN(900*24)) * time.Hour))
		o.Until = t.RecurrenceEnd.Time
	}
	t.Fill("UTC")
	return t, o
}

// TestOccurrencesMatchRRule compares occurrences with another
// implementation of the rules of RFC 5545.
func TestOccurrencesMatchRRule(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		task, option := randomTask(r)
		if err := task.Validate(); err != nil {
			t.Fatal(err)
		}
		rule, err := rrule.NewRRule(option)
		if err != nil {
			t.Fatal(err)
		}
		from := task.StartTime.Add(time.Duration(r.IntN(600*24)-2400) * time.Hour)
		to := from.Add(time.Duration(r.IntN(400*24)) * time.Hour)
		length := task.EndTime.Sub(task.StartTime.Time)
		var want []string
		for _, start := range rule.Between(from.Add(-length), to, true) {
			end := start.Add(length)
			if start.Before(to) && (end.After(from) || !start.Before(from)) {
				want = append(want, At(start).String())
			}
		}
		var got []string
		for _, o := range task.Occurrences(At(from), At(to), 10_000) {
			got = append(got, o.StartTime.String())
			if o.EndTime.Sub(o.StartTime.Time) != length || o.ID != "task-1@"+o.StartTime.Format("20060102T150405Z") {
				t.Fatalf("occurrence %+v", o)
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Fatalf("%+v from %s to %s:\n got %v\nwant %v\nof %s", task, from, to, got, want, rule)
		}
	}
}
