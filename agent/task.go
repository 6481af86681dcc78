package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"satchel/agent/clock"
)

// TaskStatus is the state of a calendar task or of one of its occurrences.
type TaskStatus string

// The statuses of a task. A recurring task stays pending; its occurrences have
// their own status.
const (
	TaskPending   TaskStatus = "pending"
	TaskRunning   TaskStatus = "running"
	TaskCompleted TaskStatus = "completed"
	TaskFailed    TaskStatus = "failed"
	TaskCancelled TaskStatus = "cancelled"
)

// TaskStatuses lists every status of a task.
var TaskStatuses = []TaskStatus{TaskPending, TaskRunning, TaskCompleted, TaskFailed, TaskCancelled}

// How a task recurs.
const (
	RecurNone    = "none"
	RecurDaily   = "daily"
	RecurWeekly  = "weekly"
	RecurMonthly = "monthly"
)

var recurrences = []string{RecurNone, RecurDaily, RecurWeekly, RecurMonthly}

// Limits of the calendar.
const (
	MaxTasks           = 10_000 // per agent
	MaxRecurrenceCount = 1_000
)

// Task is a calendar entry, which may start a workflow.
type Task struct {
	ID              string          `json:"id" example:"task-06f1q2s3t4v5a6b7c8d9"`
	Title           string          `json:"title" example:"Weekly review"`
	Description     string          `json:"description" example:"Numbers of the week"`
	StartTime       Time            `json:"start_time" format:"date-time"`
	EndTime         Time            `json:"end_time" format:"date-time"`
	Timezone        string          `json:"timezone" doc:"IANA name. Occurrences keep their time of day in this zone." example:"Europe/Berlin"`
	Recurrence      string          `json:"recurrence" enum:"none,daily,weekly,monthly" example:"weekly"`
	RecurrenceDays  []int           `json:"recurrence_days" doc:"weekly: 0 (Sunday) to 6; monthly: 1 to 31, or -1 for the last day; empty: the day of start_time." example:"[1,3,5]"`
	RecurrenceEnd   Time            `json:"recurrence_end" nullable:"true" format:"date-time" doc:"No occurrence starts later; null for no end."`
	RecurrenceCount int             `json:"recurrence_count" doc:"Number of occurrences; 0 for no limit." example:"0"`
	Exceptions      []TaskException `json:"exceptions" doc:"Occurrences that are cancelled, moved or named differently; empty for an item that is an occurrence."`
	WorkflowID      string          `json:"workflow_id" doc:"The workflow that runs at start_time." example:""`
	Status          TaskStatus      `json:"status" enum:"pending,running,completed,failed,cancelled" example:"pending"`
	NextRun         Time            `json:"next_run" nullable:"true" format:"date-time" doc:"When the next occurrence starts; null if there are no more."`
	CreatedAt       Time            `json:"created_at" format:"date-time"`
	UpdatedAt       Time            `json:"updated_at" format:"date-time"`
}

// Bound is one end of a range: a time, or a whole day that was written as a
// bare date.
type Bound struct {
	Time Time
	Day  bool // Time is midnight UTC
}

// UnmarshalText accepts the same text as Time.
func (b *Bound) UnmarshalText(text []byte) error {
	b.Day = len(text) == len(time.DateOnly)
	return b.Time.UnmarshalText(text)
}

// UnmarshalJSON accepts the same JSON as Time.
func (b *Bound) UnmarshalJSON(data []byte) error {
	b.Day = len(data) == len(time.DateOnly)+2
	return b.Time.UnmarshalJSON(data)
}

// First returns the first moment of the bound. Days are days in zone.
func (b Bound) First(zone *time.Location) Time {
	return b.midnight(zone, 0)
}

// Past returns the first moment after the bound. A bare date includes that day.
func (b Bound) Past(zone *time.Location) Time {
	return b.midnight(zone, 1)
}

func (b Bound) midnight(zone *time.Location, days int) Time {
	if !b.Day || b.Time.IsZero() {
		return b.Time
	}
	at, _, _ := clock.ToInstant(b.Time.AddDate(0, 0, days), zone)
	return At(at)
}

// TaskChange is a partial update of a task. null resets an optional field to
// its default.
type TaskChange struct {
	Title           Optional[string]          `json:"title,omitempty" example:"Weekly review"`
	Description     Optional[string]          `json:"description,omitempty" example:"Numbers of the week"`
	StartTime       Optional[Time]            `json:"start_time,omitempty" format:"date-time"`
	EndTime         Optional[Time]            `json:"end_time,omitempty" format:"date-time" doc:"Default: one hour after start_time."`
	Timezone        Optional[string]          `json:"timezone,omitempty" doc:"IANA name. Default: the agent's time zone." example:"Europe/Berlin"`
	Recurrence      Optional[string]          `json:"recurrence,omitempty" enum:"none,daily,weekly,monthly" doc:"Default: none." example:"weekly"`
	RecurrenceDays  Optional[[]int]           `json:"recurrence_days,omitempty" doc:"weekly: 0 (Sunday) to 6, 7 is also Sunday; monthly: 1 to 31, or -1 for the last day." example:"[1,3,5]"`
	RecurrenceEnd   Optional[Bound]           `json:"recurrence_end,omitempty" doc:"No occurrence starts later; a bare date includes that day." example:"2027-01-31"`
	RecurrenceCount Optional[int]             `json:"recurrence_count,omitempty" doc:"1 to 1000 occurrences."`
	Exceptions      Optional[[]TaskException] `json:"exceptions,omitempty" doc:"All occurrences that differ from the others, at most 500. When the times of the task change without them, they stay with the occurrences on their dates."`
	WorkflowID      Optional[string]          `json:"workflow_id,omitempty" doc:"The workflow that runs at start_time."`
	Status          Optional[TaskStatus]      `json:"status,omitempty" enum:"pending,running,completed,failed,cancelled" doc:"Clients can set all except running." example:"pending"`
}

// Apply writes the given fields into t. zone is the default time zone. Moving
// the start also moves the end.
func (c TaskChange) Apply(task *Task, zone string) {
	before := *task
	c.Title.Into(&task.Title)
	c.Description.Into(&task.Description)
	c.StartTime.Into(&task.StartTime)
	c.EndTime.Into(&task.EndTime)
	c.Timezone.Into(&task.Timezone)
	c.Recurrence.Into(&task.Recurrence)
	c.RecurrenceDays.Into(&task.RecurrenceDays)
	c.RecurrenceCount.Into(&task.RecurrenceCount)
	c.WorkflowID.Into(&task.WorkflowID)
	c.Status.Into(&task.Status)
	if c.StartTime.Given && !c.EndTime.Given && !before.EndTime.IsZero() {
		task.EndTime = At(task.StartTime.Add(before.EndTime.Sub(before.StartTime.Time)))
	}
	if c.Recurrence.Given && !c.RecurrenceDays.Given && task.Recurrence != before.Recurrence {
		task.RecurrenceDays = nil
	}
	task.Fill(zone)
	if c.RecurrenceEnd.Given {
		task.RecurrenceEnd = c.RecurrenceEnd.Value.Time
		if z, err := clock.Zone(task.Timezone); err == nil && c.RecurrenceEnd.Value.Day {
			task.RecurrenceEnd = At(c.RecurrenceEnd.Value.Past(z).Add(-time.Millisecond))
		}
	}
	if c.Exceptions.Given {
		task.Exceptions = c.Exceptions.Value
	} else if !task.sameTimes(&before) {
		task.AlignExceptions()
	}
	task.fillExceptions()
}

// seriesField returns the first field given that one occurrence does not have.
func (c TaskChange) seriesField() string {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"timezone", c.Timezone.Given},
		{"recurrence", c.Recurrence.Given},
		{"recurrence_days", c.RecurrenceDays.Given},
		{"recurrence_end", c.RecurrenceEnd.Given},
		{"recurrence_count", c.RecurrenceCount.Given},
		{"exceptions", c.Exceptions.Given},
		{"workflow_id", c.WorkflowID.Given},
		{"status", c.Status.Given},
	} {
		if f.given {
			return f.name
		}
	}
	return ""
}

// Fill sets empty fields to their defaults.
func (task *Task) Fill(zone string) {
	task.Title = strings.TrimSpace(task.Title)
	if task.Timezone == "" {
		task.Timezone = zone
	}
	if task.Recurrence == "" {
		task.Recurrence = RecurNone
	}
	if task.Status == "" {
		task.Status = TaskPending
	}
	if task.EndTime.IsZero() && !task.StartTime.IsZero() {
		task.EndTime = At(task.StartTime.Add(time.Hour))
	}
	days := []int{}
	for _, day := range task.RecurrenceDays {
		if task.Recurrence == RecurWeekly && day == 7 {
			day = 0
		}
		if !slices.Contains(days, day) {
			days = append(days, day)
		}
	}
	task.RecurrenceDays = days
	task.fillExceptions()
}

// The earliest and latest start of a task.
var (
	earliest = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Validate checks the fields that clients set.
func (task *Task) Validate() error {
	var is Issues
	is.Check(task.Title != "", "title", "is required")
	is.checkText("title", task.Title, 200)
	is.checkText("description", task.Description, 5000)
	is.Check(!task.StartTime.IsZero(), "start_time", "is required")
	is.Check(
		task.StartTime.IsZero() || task.StartTime.After(earliest) && task.StartTime.Before(latest),
		"start_time",
		"must be between the years 1900 and 2200",
	)
	is.Check(!task.EndTime.Before(task.StartTime.Time), "end_time", "must not be before start_time")
	is.Check(
		task.EndTime.Sub(task.StartTime.Time) <= 366*24*time.Hour,
		"end_time",
		"must be at most 366 days after start_time",
	)
	_, err := clock.Zone(task.Timezone)
	is.addError("timezone", err)
	is.Check(slices.Contains(recurrences, task.Recurrence), "recurrence", "must be none, daily, weekly or monthly")
	task.checkDays(&is)
	is.Check(
		task.RecurrenceEnd.IsZero() || !task.RecurrenceEnd.Before(task.StartTime.Time),
		"recurrence_end",
		"must not be before start_time",
	)
	is.Check(
		task.RecurrenceCount >= 0 && task.RecurrenceCount <= MaxRecurrenceCount,
		"recurrence_count",
		fmt.Sprintf("must be from 1 to %d", MaxRecurrenceCount),
	)
	task.checkExceptions(&is)
	is.checkText("workflow_id", task.WorkflowID, 100)
	is.Check(slices.Contains(TaskStatuses, task.Status), "status", "must be pending, completed, failed or cancelled")
	return is.Err()
}

func (task *Task) checkDays(is *Issues) {
	for i, day := range task.RecurrenceDays {
		field := fmt.Sprintf("recurrence_days[%d]", i)
		switch task.Recurrence {
		case RecurWeekly:
			is.Check(day >= 0 && day <= 6, field, "must be from 0, Sunday, to 6")
		case RecurMonthly:
			is.Check(day == -1 || day >= 1 && day <= 31, field, "must be from 1 to 31, or -1 for the last")
		default:
			is.Add("recurrence_days", "are for weekly and monthly only")
			return
		}
	}
}

// Plan sets the next start, and the status that follows from it, of a valid
// task that was created (was is nil) or changed. A task that has ended becomes
// pending when it is moved to the future.
func (task *Task) Plan(before *Task, now Time) error {
	if task.Status == TaskRunning && (before == nil || before.Status != TaskRunning) {
		return Invalid("status", "must not be running: Satchel sets that itself")
	}
	if before == nil || !slices.Equal(task.Exceptions, before.Exceptions) {
		if err := task.checkOriginals(); err != nil {
			return err
		}
	}
	moved := before == nil || !task.sameTimes(before)
	if !moved && task.Status == before.Status {
		if !slices.Equal(task.Exceptions, before.Exceptions) {
			task.PlanFurther(before, now)
		}
		return nil
	}
	task.Replan(!moved || before == nil || task.Status != before.Status || task.Status == TaskCancelled, now)
	return nil
}

// Replan sets the next start of a changed task. Unless keep is set, a task with
// a future start becomes pending.
func (task *Task) Replan(keep bool, now Time) {
	next := task.NextStart(At(now.Add(-MaxLateness)))
	if !keep && !next.IsZero() {
		task.Status = TaskPending
	}
	if task.Status != TaskPending {
		next = Time{}
	}
	task.NextRun = next
}

func (task *Task) sameTimes(o *Task) bool {
	return task.StartTime == o.StartTime &&
		task.EndTime == o.EndTime &&
		task.Timezone == o.Timezone &&
		task.Recurrence == o.Recurrence &&
		slices.Equal(task.RecurrenceDays, o.RecurrenceDays) &&
		task.RecurrenceEnd == o.RecurrenceEnd &&
		task.RecurrenceCount == o.RecurrenceCount
}

// Occurrence is one occurrence of a task.
type Occurrence struct {
	ID            string `json:"id"`
	OriginalStart Time   `json:"original_start"` // by the recurrence; the start of one that was not moved
	StartTime     Time   `json:"start_time"`
	EndTime       Time   `json:"end_time"`
}

// occurrenceLayout is how ids of occurrences write the time.
const occurrenceLayout = "20060102T150405Z"

// occurrenceID returns the id of the occurrence that starts at a time by the
// recurrence.
func occurrenceID(taskID string, start Time) string {
	return taskID + "@" + start.Format(occurrenceLayout)
}

// OccurrenceStatus returns the status of an occurrence without a stored status.
func (task *Task) OccurrenceStatus() TaskStatus {
	if task.Recurrence == RecurNone || task.Status == TaskCancelled {
		return task.Status
	}
	return TaskPending
}

// DecodeDays parses stored recurrence_days. Values that are not integers,
// written by SQL, are an error.
func DecodeDays(raw []byte) (days []int, err error) {
	days = []int{}
	if err := json.Unmarshal(raw, &days); err != nil {
		return nil, Invalid("recurrence_days", "must be a list of whole numbers")
	}
	return days, nil
}
