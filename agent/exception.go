package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"satchel/agent/clock"
)

// maxExceptions is how many exceptions a task may have.
const maxExceptions = 500

// maxExceptionText limits the texts of a task's exceptions together, in bytes.
const maxExceptionText = 100_000

// TaskException is an occurrence of a recurring task that differs from the
// others: it is cancelled, or has its own time or text. In iCalendar it is an
// EXDATE, or an event with a RECURRENCE-ID (RFC 5545, sections 3.8.5.1 and
// 3.8.4.4).
type TaskException struct {
	OriginalStart Time   `json:"original_start" format:"date-time" doc:"When the occurrence would start by the recurrence."`
	Cancelled     bool   `json:"cancelled,omitempty" doc:"It does not take place." example:"false"`
	StartTime     Time   `json:"start_time,omitzero" format:"date-time" doc:"When it starts, if it was moved."`
	EndTime       Time   `json:"end_time,omitzero" format:"date-time" doc:"When it ends, if it was moved. Default: it lasts as long as the others."`
	Title         string `json:"title,omitempty" doc:"Default: the task's." example:"Review with the auditors"`
	Description   string `json:"description,omitempty" doc:"Default: the task's." example:"In the large room"`
}

// DecodeExceptions parses stored exceptions. If SQL has stored a text that is
// not a list of them, the result is rejected by Validate.
func DecodeExceptions(raw []byte) []TaskException {
	list := []TaskException{}
	if json.Unmarshal(raw, &list) != nil {
		return []TaskException{{}}
	}
	return list
}

// exception returns the exception for the occurrence whose original start is start.
func (t *Task) exception(start Time) (TaskException, bool) {
	i, ok := t.exceptionAt(start)
	if !ok {
		return TaskException{}, false
	}
	return t.Exceptions[i], true
}

func (t *Task) exceptionAt(start Time) (int, bool) {
	return slices.BinarySearchFunc(t.Exceptions, start, func(e TaskException, start Time) int {
		return e.OriginalStart.Compare(start.Time)
	})
}

// regularOccurrence returns the occurrence that the recurrence puts at start.
func (t *Task) regularOccurrence(start Time) Occurrence {
	return Occurrence{
		ID:            occurrenceID(t.ID, start),
		OriginalStart: start,
		StartTime:     start,
		EndTime:       At(start.Add(t.EndTime.Sub(t.StartTime.Time))),
	}
}

// changedOccurrences returns the occurrences that have an exception and take place.
func (t *Task) changedOccurrences() (list []Occurrence) {
	for _, e := range t.Exceptions {
		if !e.Cancelled {
			list = append(list, t.occurrenceOf(e))
		}
	}
	return list
}

func (t *Task) occurrenceOf(e TaskException) Occurrence {
	o := t.regularOccurrence(e.OriginalStart)
	if !e.StartTime.IsZero() {
		o.StartTime, o.EndTime = e.StartTime, e.EndTime
	}
	return o
}

// Occurrence returns the occurrence whose original start is start, with the time
// to which it was moved. Fractions of a second are ignored, since the ids of
// occurrences have none.
func (t *Task) Occurrence(start Time) (o Occurrence, err error) {
	if t.Recurrence == RecurNone {
		return o, Invalid("taskId", "does not recur: change the task itself")
	}
	second := func(at Time) time.Time { return at.Truncate(time.Second) }
	t.eachStart(start, func(s Time) bool {
		if second(s).Equal(second(start)) {
			o = t.regularOccurrence(s)
		}
		return s.Before(start.Time)
	})
	if o.ID == "" {
		return o, NotFound("occurrence", occurrenceID(t.ID, start))
	}
	if e, ok := t.exception(o.StartTime); ok {
		o = t.occurrenceOf(e)
	}
	return o, nil
}

// WithOccurrence returns the task as one of its occurrences shows it: with the texts of that
// occurrence, and without exceptions.
func (t Task) WithOccurrence(o Occurrence) Task {
	if e, ok := t.exception(o.OriginalStart); ok {
		if e.Title != "" {
			t.Title = e.Title
		}
		if e.Description != "" {
			t.Description = e.Description
		}
	}
	t.Exceptions = []TaskException{}
	return t
}

// ParseOccurrenceStart parses the start of an occurrence in a URL: in the format
// of occurrence ids, or in any format that Time accepts.
func ParseOccurrenceStart(text string) (start Time, err error) {
	if at, err := time.Parse(occurrenceLayout, text); err == nil {
		return At(at), nil
	}
	if err := start.UnmarshalText([]byte(text)); err != nil || start.IsZero() {
		return start, Invalid("start", "must be the original_start of an occurrence, such as 20270104T080000Z")
	}
	return start, nil
}

// ChangeOccurrence applies a change to one occurrence. Fields that only a whole
// task has are an error. A cancelled occurrence takes place again.
func (t *Task) ChangeOccurrence(start Time, c TaskChange) error {
	if field := c.seriesField(); field != "" {
		return Invalid(
			field,
			"cannot be set for one occurrence; give scope=following to set it for this and all later ones",
		)
	}
	before, err := t.Occurrence(start)
	if err != nil {
		return err
	}
	e, _ := t.exception(before.OriginalStart)
	e.OriginalStart, e.Cancelled, e.StartTime, e.EndTime = before.OriginalStart, false, before.StartTime, before.EndTime
	c.Title.Into(&e.Title)
	c.Description.Into(&e.Description)
	if c.StartTime.Given {
		if e.StartTime = c.StartTime.Value; c.StartTime.Null {
			e.StartTime = e.OriginalStart
		}
		e.EndTime = At(e.StartTime.Add(before.EndTime.Sub(before.StartTime.Time)))
	}
	if c.EndTime.Given {
		e.EndTime = c.EndTime.Value
	}
	if e.Title == t.Title {
		e.Title = ""
	}
	if e.Description == t.Description {
		e.Description = ""
	}
	t.setException(e)
	return nil
}

// CancelOccurrence cancels one occurrence.
func (t *Task) CancelOccurrence(start Time) error {
	o, err := t.Occurrence(start)
	if err == nil {
		t.setException(TaskException{OriginalStart: o.OriginalStart, Cancelled: true})
	}
	return err
}

func (t *Task) setException(e TaskException) {
	t.Exceptions = slices.Clone(t.Exceptions)
	if i, ok := t.exceptionAt(e.OriginalStart); ok {
		t.Exceptions[i] = e
	} else {
		t.Exceptions = slices.Insert(t.Exceptions, i, e)
	}
	t.fillExceptions()
}

// Split ends a recurring task before the occurrence whose original start is start,
// and returns that occurrence and all later ones as a new task. whole reports that
// it was the first, so nothing is left of t.
func (t *Task) Split(start Time) (rest Task, whole bool, err error) {
	o, err := t.Occurrence(start)
	if err != nil {
		return rest, false, err
	}
	start = o.OriginalStart
	n := 0
	t.eachStart(Time{}, func(s Time) bool {
		if s.Before(start.Time) {
			n++
		}
		return s.Before(start.Time)
	})
	rest = *t
	regular := t.regularOccurrence(start)
	rest.StartTime, rest.EndTime = regular.StartTime, regular.EndTime
	i, _ := t.exceptionAt(start)
	rest.Exceptions, t.Exceptions = slices.Clone(t.Exceptions[i:]), slices.Clone(t.Exceptions[:i])
	if t.RecurrenceCount > 0 {
		t.RecurrenceCount, rest.RecurrenceCount = n, t.RecurrenceCount-n
	} else {
		t.RecurrenceEnd = At(start.Add(-time.Millisecond))
	}
	return rest, n == 0, nil
}

// fillExceptions sorts exceptions, sets their empty fields to their defaults and
// drops those that change nothing.
func (t *Task) fillExceptions() {
	list := []TaskException{}
	for _, e := range t.Exceptions {
		regular := t.regularOccurrence(e.OriginalStart)
		switch {
		case e.Cancelled:
			e = TaskException{OriginalStart: e.OriginalStart, Cancelled: true}
		case !e.StartTime.IsZero() && e.EndTime.IsZero():
			e.EndTime = At(e.StartTime.Add(t.EndTime.Sub(t.StartTime.Time)))
		case e.StartTime.IsZero() && !e.EndTime.IsZero():
			e.StartTime = e.OriginalStart
		}
		if e.StartTime == regular.StartTime && e.EndTime == regular.EndTime {
			e.StartTime, e.EndTime = Time{}, Time{}
		}
		if e != (TaskException{OriginalStart: e.OriginalStart}) || e.OriginalStart.IsZero() {
			list = append(list, e)
		}
	}
	if t.Recurrence == RecurNone {
		list = list[:0]
	}
	Sort(list, func(a, b TaskException) int {
		return a.OriginalStart.Compare(b.OriginalStart.Time)
	})
	t.Exceptions = list
}

// AlignExceptions moves the exceptions of a task whose times changed to its
// occurrences on the same dates, and drops those of dates without one.
func (t *Task) AlignExceptions() {
	zone, err := clock.Zone(t.Timezone)
	if err != nil || len(t.Exceptions) == 0 {
		return
	}
	date := func(at Time) string {
		return at.In(zone).Format(time.DateOnly)
	}
	starts := map[string]Time{}
	first, last := t.Exceptions[0].OriginalStart, t.Exceptions[len(t.Exceptions)-1].OriginalStart
	t.eachStart(At(first.AddDate(0, 0, -1)), func(start Time) bool {
		starts[date(start)] = start
		return start.Before(last.AddDate(0, 0, 1))
	})
	list := []TaskException{}
	for _, e := range t.Exceptions {
		start, ok := starts[date(e.OriginalStart)]
		if ok {
			e.OriginalStart = start
		}
		if ok || e.OriginalStart.IsZero() { // Validate refuses the latter
			list = append(list, e)
		}
	}
	t.Exceptions = list
	t.fillExceptions()
}

// checkExceptions checks the exceptions without the recurrence.
func (t *Task) checkExceptions(is *Issues) {
	is.Check(
		len(t.Exceptions) <= maxExceptions,
		"exceptions",
		fmt.Sprintf("must be at most %d; end the task and begin a new one", maxExceptions),
	)
	text := 0
	for i, e := range t.Exceptions {
		field := func(name string) string { return fmt.Sprintf("exceptions[%d].%s", i, name) }
		is.Check(!e.OriginalStart.IsZero(), field("original_start"), "is required")
		is.Check(
			i == 0 || e.OriginalStart != t.Exceptions[i-1].OriginalStart,
			field("original_start"),
			"is that of another exception, too",
		)
		is.Check(
			e.StartTime.IsZero() || e.StartTime.After(earliest) && e.StartTime.Before(latest),
			field("start_time"),
			"must be between the years 1900 and 2200",
		)
		is.Check(!e.EndTime.Before(e.StartTime.Time), field("end_time"), "must not be before start_time")
		is.Check(
			e.EndTime.Sub(e.StartTime.Time) <= 366*24*time.Hour,
			field("end_time"),
			"must be at most 366 days after start_time",
		)
		is.checkText(field("title"), e.Title, 200)
		is.checkText(field("description"), e.Description, 5000)
		text += len(e.Title) + len(e.Description)
	}
	is.Check(
		text <= maxExceptionText,
		"exceptions",
		fmt.Sprintf("must have at most %d bytes of titles and descriptions", maxExceptionText),
	)
}

// checkOriginals returns an error about the first exception of a valid task that
// belongs to no occurrence.
func (t *Task) checkOriginals() error {
	if len(t.Exceptions) == 0 {
		return nil
	}
	known := map[Time]bool{}
	last := t.Exceptions[len(t.Exceptions)-1].OriginalStart
	t.eachStart(t.Exceptions[0].OriginalStart, func(start Time) bool {
		known[start] = true
		return start.Before(last.Time)
	})
	for i, e := range t.Exceptions {
		if !known[e.OriginalStart] {
			return Invalid(
				fmt.Sprintf("exceptions[%d].original_start", i),
				"is not when an occurrence starts by the recurrence",
			)
		}
	}
	return nil
}

// PlanFurther sets the next start of a task after a change to occurrences that
// have not started. was is the task before the change. An occurrence that was
// moved to a time at most MaxLateness ago still starts.
func (t *Task) PlanFurther(before *Task, now Time) {
	if t.NextRun = (Time{}); t.Status != TaskPending {
		return
	}
	after := now
	if !before.NextRun.IsZero() && !before.NextRun.After(now.Time) {
		after = At(before.NextRun.Add(-time.Millisecond))
	}
	t.NextRun = t.NextStart(after)
	for _, o := range t.changedOccurrences() {
		if o.StartTime.After(now.Time) ||
			!o.StartTime.After(now.Add(-MaxLateness)) ||
			!t.NextRun.IsZero() && !o.StartTime.Before(t.NextRun.Time) {
			continue
		}
		if before, err := before.Occurrence(o.OriginalStart); err == nil && before.StartTime != o.StartTime {
			t.NextRun = o.StartTime
		}
	}
}
