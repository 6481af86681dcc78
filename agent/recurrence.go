package agent

import (
	"slices"
	"time"

	"satchel/agent/clock"
)

// Occurrences returns the occurrences of a valid task that overlap a range, in
// order, at most limit of them. Ranges are half-open. A zero from or to leaves
// that end open.
func (t *Task) Occurrences(from, to Time, limit int) (list []Occurrence) {
	beyond := func(start Time) bool {
		return !to.IsZero() && !start.Before(to.Time)
	}
	within := func(o Occurrence) bool {
		return !beyond(o.StartTime) && (from.IsZero() || o.EndTime.After(from.Time) || !o.StartTime.Before(from.Time))
	}
	t.eachStart(from, func(start Time) bool {
		if beyond(start) {
			return false
		}
		if _, changed := t.exception(start); !changed && within(t.regularOccurrence(start)) {
			list = append(list, t.regularOccurrence(start))
		}
		return len(list) < limit
	})
	for _, o := range t.changedOccurrences() {
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
func (t *Task) NextStart(after Time) (next Time) {
	t.eachStart(after, func(start Time) bool {
		if _, changed := t.exception(start); !changed && start.After(after.Time) {
			next = start
		}
		return next.IsZero()
	})
	for _, o := range t.changedOccurrences() {
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
func (t *Task) eachStart(from Time, yield func(start Time) bool) {
	zone, err := clock.Zone(t.Timezone)
	if err != nil {
		return // invalid
	}
	wall := t.StartTime.UTC().Add(clock.Offset(t.StartTime.Time, zone))
	first := time.Date(wall.Year(), wall.Month(), wall.Day(), 0, 0, 0, 0, time.UTC)
	timeOfDay, date := wall.Sub(first), first
	if skip := from.Add(-t.EndTime.Sub(t.StartTime.Time) - 48*time.Hour).Sub(first); !from.IsZero() &&
		skip > 0 &&
		t.RecurrenceCount == 0 &&
		t.Recurrence != RecurNone {
		date = first.AddDate(0, 0, int(skip/(24*time.Hour)))
	}
	for n := 0; date.Before(latest) && (t.RecurrenceCount == 0 || n < t.RecurrenceCount); date = date.AddDate(0, 0, 1) {
		if !t.occursOn(date, first) {
			if t.Recurrence == RecurNone {
				return
			}
			continue
		}
		start := t.StartTime
		if !date.Equal(first) {
			at, _, _ := clock.ToInstant(date.Add(timeOfDay), zone)
			start = At(at)
		}
		if !t.RecurrenceEnd.IsZero() && start.After(t.RecurrenceEnd.Time) {
			return
		}
		if n++; !yield(start) {
			return
		}
	}
}

// occursOn reports whether a task occurs on a date. first is the date of its start.
func (t *Task) occursOn(date, first time.Time) bool {
	switch t.Recurrence {
	case RecurDaily:
		return true
	case RecurWeekly:
		if len(t.RecurrenceDays) == 0 {
			return date.Weekday() == first.Weekday()
		}
		return slices.Contains(t.RecurrenceDays, int(date.Weekday()))
	case RecurMonthly:
		if len(t.RecurrenceDays) == 0 {
			return date.Day() == first.Day()
		}
		last := date.AddDate(0, 0, 1).Day() == 1
		return slices.Contains(t.RecurrenceDays, date.Day()) || last && slices.Contains(t.RecurrenceDays, -1)
	}
	return date.Equal(first)
}
