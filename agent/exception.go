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
func (task *Task) exception(start Time) (TaskException, bool) {
	i, ok := task.exceptionAt(start)
	if !ok {
		return TaskException{}, false
	}
	return task.Exceptions[i], true
}

func (task *Task) exceptionAt(start Time) (int, bool) {
	return slices.BinarySearchFunc(task.Exceptions, start, func(e TaskException, start Time) int {
		return e.OriginalStart.Compare(start.Time)
	})
}

// regularOccurrence returns the occurrence that the recurrence puts at start.
func (task *Task) regularOccurrence(start Time) Occurrence {
	return Occurrence{
		ID:            occurrenceID(task.ID, start),
		OriginalStart: start,
		StartTime:     start,
		EndTime:       At(start.Add(task.EndTime.Sub(task.StartTime.Time))),
	}
}

// changedOccurrences returns the occurrences that have an exception and take place.
func (task *Task) changedOccurrences() (list []Occurrence) {
	for _, e := range task.Exceptions {
		if !e.Cancelled {
			list = append(list, task.occurrenceOf(e))
		}
	}
	return list
}

func (task *Task) occurrenceOf(e TaskException) Occurrence {
	o := task.regularOccurrence(e.OriginalStart)
	if !e.StartTime.IsZero() {
		o.StartTime, o.EndTime = e.StartTime, e.EndTime
	}
	return o
}

// Occurrence returns the occurrence whose original start is start, with the time
// to which it was moved. Fractions of a second are ignored, since the ids of
// occurrences have none.
func (task *Task) Occurrence(start Time) (occurrence Occurrence, err error) {
	if task.Recurrence == RecurNone {
		return occurrence, Invalid("taskId", "does not recur: change the task itself")
	}
	second := func(at Time) time.Time { return at.Truncate(time.Second) }
	task.eachStart(start, func(s Time) bool {
		if second(s).Equal(second(start)) {
			occurrence = task.regularOccurrence(s)
		}
		return s.Before(start.Time)
	})
	if occurrence.ID == "" {
		return occurrence, NotFound("occurrence", occurrenceID(task.ID, start))
	}
	if e, ok := task.exception(occurrence.StartTime); ok {
		occurrence = task.occurrenceOf(e)
	}
	return occurrence, nil
}

// WithOccurrence returns the task as one of its occurrences shows it: with the texts of that
// occurrence, and without exceptions.
func (task Task) WithOccurrence(o Occurrence) Task {
	if e, ok := task.exception(o.OriginalStart); ok {
		if e.Title != "" {
			task.Title = e.Title
		}
		if e.Description != "" {
			task.Description = e.Description
		}
	}
	task.Exceptions = []TaskException{}
	return task
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
func (task *Task) ChangeOccurrence(start Time, change TaskChange) error {
	if field := change.seriesField(); field != "" {
		return Invalid(
			field,
			"cannot be set for one occurrence; give scope=following to set it for this and all later ones",
		)
	}
	before, err := task.Occurrence(start)
	if err != nil {
		return err
	}
	exception, _ := task.exception(before.OriginalStart)
	exception.OriginalStart, exception.Cancelled, exception.StartTime, exception.EndTime =
		before.OriginalStart, false, before.StartTime, before.EndTime
	change.Title.Into(&exception.Title)
	change.Description.Into(&exception.Description)
	if change.StartTime.Given {
		if exception.StartTime = change.StartTime.Value; change.StartTime.Null {
			exception.StartTime = exception.OriginalStart
		}
		exception.EndTime = At(exception.StartTime.Add(before.EndTime.Sub(before.StartTime.Time)))
	}
	if change.EndTime.Given {
		exception.EndTime = change.EndTime.Value
	}
	if exception.Title == task.Title {
		exception.Title = ""
	}
	if exception.Description == task.Description {
		exception.Description = ""
	}
	task.setException(exception)
	return nil
}

// CancelOccurrence cancels one occurrence.
func (task *Task) CancelOccurrence(start Time) error {
	o, err := task.Occurrence(start)
	if err == nil {
		task.setException(TaskException{OriginalStart: o.OriginalStart, Cancelled: true})
	}
	return err
}

func (task *Task) setException(e TaskException) {
	task.Exceptions = slices.Clone(task.Exceptions)
	if i, ok := task.exceptionAt(e.OriginalStart); ok {
		task.Exceptions[i] = e
	} else {
		task.Exceptions = slices.Insert(task.Exceptions, i, e)
	}
	task.fillExceptions()
}

// Split ends a recurring task before the occurrence whose original start is start,
// and returns that occurrence and all later ones as a new task. whole reports that
// it was the first, so nothing is left of t.
func (task *Task) Split(start Time) (rest Task, whole bool, err error) {
	occurrence, err := task.Occurrence(start)
	if err != nil {
		return rest, false, err
	}
	start = occurrence.OriginalStart
	count := 0
	task.eachStart(Time{}, func(s Time) bool {
		if s.Before(start.Time) {
			count++
		}
		return s.Before(start.Time)
	})
	rest = *task
	regular := task.regularOccurrence(start)
	rest.StartTime, rest.EndTime = regular.StartTime, regular.EndTime
	i, _ := task.exceptionAt(start)
	rest.Exceptions, task.Exceptions = slices.Clone(task.Exceptions[i:]), slices.Clone(task.Exceptions[:i])
	if task.RecurrenceCount > 0 {
		task.RecurrenceCount, rest.RecurrenceCount = count, task.RecurrenceCount-count
	} else {
		task.RecurrenceEnd = At(start.Add(-time.Millisecond))
	}
	return rest, count == 0, nil
}

// fillExceptions sorts exceptions, sets their empty fields to their defaults and
// drops those that change nothing.
func (task *Task) fillExceptions() {
	list := []TaskException{}
	for _, exception := range task.Exceptions {
		regular := task.regularOccurrence(exception.OriginalStart)
		switch {
		case exception.Cancelled:
			exception = TaskException{OriginalStart: exception.OriginalStart, Cancelled: true}
		case !exception.StartTime.IsZero() && exception.EndTime.IsZero():
			exception.EndTime = At(exception.StartTime.Add(task.EndTime.Sub(task.StartTime.Time)))
		case exception.StartTime.IsZero() && !exception.EndTime.IsZero():
			exception.StartTime = exception.OriginalStart
		}
		if exception.StartTime == regular.StartTime && exception.EndTime == regular.EndTime {
			exception.StartTime, exception.EndTime = Time{}, Time{}
		}
		if exception != (TaskException{OriginalStart: exception.OriginalStart}) || exception.OriginalStart.IsZero() {
			list = append(list, exception)
		}
	}
	if task.Recurrence == RecurNone {
		list = list[:0]
	}
	Sort(list, func(a, b TaskException) int {
		return a.OriginalStart.Compare(b.OriginalStart.Time)
	})
	task.Exceptions = list
}

// AlignExceptions moves the exceptions of a task whose times changed to its
// occurrences on the same dates, and drops those of dates without one.
func (task *Task) AlignExceptions() {
	zone, err := clock.Zone(task.Timezone)
	if err != nil || len(task.Exceptions) == 0 {
		return
	}
	date := func(at Time) string {
		return at.In(zone).Format(time.DateOnly)
	}
	starts := map[string]Time{}
	first, last := task.Exceptions[0].OriginalStart, task.Exceptions[len(task.Exceptions)-1].OriginalStart
	task.eachStart(At(first.AddDate(0, 0, -1)), func(start Time) bool {
		starts[date(start)] = start
		return start.Before(last.AddDate(0, 0, 1))
	})
	list := []TaskException{}
	for _, e := range task.Exceptions {
		start, ok := starts[date(e.OriginalStart)]
		if ok {
			e.OriginalStart = start
		}
		if ok || e.OriginalStart.IsZero() { // Validate refuses the latter
			list = append(list, e)
		}
	}
	task.Exceptions = list
	task.fillExceptions()
}

// checkExceptions checks the exceptions without the recurrence.
func (task *Task) checkExceptions(is *Issues) {
	is.Check(
		len(task.Exceptions) <= maxExceptions,
		"exceptions",
		fmt.Sprintf("must be at most %d; end the task and begin a new one", maxExceptions),
	)
	text := 0
	for index, exception := range task.Exceptions {
		field := func(name string) string { return fmt.Sprintf("exceptions[%d].%s", index, name) }
		is.Check(!exception.OriginalStart.IsZero(), field("original_start"), "is required")
		is.Check(
			index == 0 || exception.OriginalStart != task.Exceptions[index-1].OriginalStart,
			field("original_start"),
			"is that of another exception, too",
		)
		is.Check(
			exception.StartTime.IsZero() || exception.StartTime.After(earliest) && exception.StartTime.Before(latest),
			field("start_time"),
			"must be between the years 1900 and 2200",
		)
		is.Check(
			!exception.EndTime.Before(exception.StartTime.Time),
			field("end_time"),
			"must not be before start_time",
		)
		is.Check(
			exception.EndTime.Sub(exception.StartTime.Time) <= 366*24*time.Hour,
			field("end_time"),
			"must be at most 366 days after start_time",
		)
		is.checkText(field("title"), exception.Title, 200)
		is.checkText(field("description"), exception.Description, 5000)
		text += len(exception.Title) + len(exception.Description)
	}
	is.Check(
		text <= maxExceptionText,
		"exceptions",
		fmt.Sprintf("must have at most %d bytes of titles and descriptions", maxExceptionText),
	)
}

// checkOriginals returns an error about the first exception of a valid task that
// belongs to no occurrence.
func (task *Task) checkOriginals() error {
	if len(task.Exceptions) == 0 {
		return nil
	}
	known := map[Time]bool{}
	last := task.Exceptions[len(task.Exceptions)-1].OriginalStart
	task.eachStart(task.Exceptions[0].OriginalStart, func(start Time) bool {
		known[start] = true
		return start.Before(last.Time)
	})
	for i, e := range task.Exceptions {
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
func (task *Task) PlanFurther(before *Task, now Time) {
	if task.NextRun = (Time{}); task.Status != TaskPending {
		return
	}
	after := now
	if !before.NextRun.IsZero() && !before.NextRun.After(now.Time) {
		after = At(before.NextRun.Add(-time.Millisecond))
	}
	task.NextRun = task.NextStart(after)
	for _, o := range task.changedOccurrences() {
		if o.StartTime.After(now.Time) ||
			!o.StartTime.After(now.Add(-MaxLateness)) ||
			!task.NextRun.IsZero() && !o.StartTime.Before(task.NextRun.Time) {
			continue
		}
		if before, err := before.Occurrence(o.OriginalStart); err == nil && before.StartTime != o.StartTime {
			task.NextRun = o.StartTime
		}
	}
}
