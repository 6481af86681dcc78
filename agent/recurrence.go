package agent

import (
	"slices"
	"time"

	"satchel/agent/clock"
)

// Occurrences returns the occurrences of a valid task that overlap a range, in
// order, at most limit of them. Ranges are half-open. A zero from or to leaves
// that end open.
func (task *Task) Occurrences(from, to Time, limit int) (list []Occurrence) {
	beyond := func(start Time) bool {
		return !to.IsZero() && !start.Before(to.Time)
	}
	within := func(o Occurrence) bool {
		return !beyond(o.StartTime) && (from.IsZero() || o.EndTime.After(from.Time) || !o.StartTime.Before(from.Time))
	}
	task.eachStart(from, func(start Time) bool {
		if beyond(start) {
			return false
		}
		if _, changed := task.exception(start); !changed && within(task.regularOccurrence(start)) {
			list = append(list, task.regularOccurrence(start))
		}
		return len(list) < limit
	})
	for _, o := range task.changedOccurrences() {
		if within(o) {
			list = append(list, o)
		}
	}
	Sort(list, func(a, b Occurrence) int {
		return a.StartTime.Compare(b.StartTime.Time)
	})
	return list[:min(limit, len(list))]
}

// NextStart returns the first start of a valid task after a time, or zero if
// there is none.
func (task *Task) NextStart(after Time) (next Time) {
	task.eachStart(after, func(start Time) bool {
		if _, changed := task.exception(start); !changed && start.After(after.Time) {
			next = start
		}
		return next.IsZero()
	})
	for _, o := range task.changedOccurrences() {
		if o.StartTime.After(after.Time) && (next.IsZero() || o.StartTime.Before(next.Time)) {
			next = o.StartTime
		}
	}
	return next
}

// eachStart calls yield with the starts of a task by its recurrence, whatever its
// exceptions say, in order until it returns false. Occurrences that end before
// from may be skipped.
//
// The time of day is the wall clock time in the task's zone. As for cron, a
// skipped wall clock time is shifted by the gap, and the first of a repeated
// one is used. A month without the day has no occurrence.
func (task *Task) eachStart(from Time, yield func(start Time) bool) {
	zone, err := clock.Zone(task.Timezone)
	if err != nil {
		return // invalid
	}
	wall := task.StartTime.UTC().Add(clock.Offset(task.StartTime.Time, zone))
	first := time.Date(wall.Year(), wall.Month(), wall.Day(), 0, 0, 0, 0, time.UTC)
	timeOfDay, date := wall.Sub(first), first
	if skip := from.Add(-task.EndTime.Sub(task.StartTime.Time) - 48*time.Hour).Sub(first); !from.IsZero() &&
		skip > 0 &&
		task.RecurrenceCount == 0 &&
		task.Recurrence != RecurNone {
		date = first.AddDate(0, 0, int(skip/(24*time.Hour)))
	}
	for count := 0; date.Before(latest) &&
		(task.RecurrenceCount == 0 || count < task.RecurrenceCount); date = date.AddDate(0, 0, 1) {
		if !task.occursOn(date, first) {
			if task.Recurrence == RecurNone {
				return
			}
			continue
		}
		start := task.StartTime
		if !date.Equal(first) {
			at, _, _ := clock.ToInstant(date.Add(timeOfDay), zone)
			start = At(at)
		}
		if !task.RecurrenceEnd.IsZero() && start.After(task.RecurrenceEnd.Time) {
			return
		}
		if count++; !yield(start) {
			return
		}
	}
}

// occursOn reports whether a task occurs on a date. first is the date of its start.
func (task *Task) occursOn(date, first time.Time) bool {
	switch task.Recurrence {
	case RecurDaily:
		return true
	case RecurWeekly:
		if len(task.RecurrenceDays) == 0 {
			return date.Weekday() == first.Weekday()
		}
		return slices.Contains(task.RecurrenceDays, int(date.Weekday()))
	case RecurMonthly:
		if len(task.RecurrenceDays) == 0 {
			return date.Day() == first.Day()
		}
		last := date.AddDate(0, 0, 1).Day() == 1
		return slices.Contains(task.RecurrenceDays, date.Day()) || last && slices.Contains(task.RecurrenceDays, -1)
	}
	return date.Equal(first)
}
