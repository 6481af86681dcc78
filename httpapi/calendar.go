package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/agent/clock"
	"satchel/httpapi/rest"
	"satchel/schedule"
	"satchel/store"
)

type listTasksIn struct {
	rest.ListParams
	Start  agent.Bound `query:"start" doc:"Occurrences that end after this time. A bare date is midnight in the agent's time zone." example:"2027-01-01"`
	End    agent.Bound `query:"end" doc:"Occurrences that start before this time. A bare date includes that day." example:"2027-01-31"`
	Status []string    `query:"status" doc:"Tasks with this status; may be repeated."`
}

// taskItem is a task as listed: the stored one, or one occurrence.
type taskItem struct {
	agent.Task
	OccurrenceID  string     `json:"occurrence_id,omitempty" doc:"Id of the occurrence, if a range was requested." example:"task-06f1q2s3t4v5a6b7c8d9@20270104T080000Z"`
	OriginalStart agent.Time `json:"original_start,omitzero" format:"date-time" doc:"When the occurrence starts by the recurrence; another time than start_time if it was moved."`
}

type tasksOut struct {
	Tasks []taskItem `json:"tasks"`
	Meta  rest.Meta  `json:"meta"`
}

func (s *Server) listTasks(call *rest.Call, in *listTasksIn) (tasksOut, error) {
	page, err := in.Page("title", "start_time", "end_time", "status", "next_run", "created_at", "updated_at")
	if err != nil {
		return tasksOut{}, err
	}
	if err := rest.CheckValues("status", in.Status, agent.TaskStatuses); err != nil {
		return tasksOut{}, err
	}
	if !in.Start.Time.IsZero() || !in.End.Time.IsZero() {
		return s.expandTasks(call, in, page)
	}
	found, total, err := call.DB.Tasks(call, in.Status, page)
	items := make([]taskItem, len(found))
	for i, t := range found {
		items[i].Task = t
	}
	return tasksOut{items, rest.MetaOf(page, total)}, err
}

// Limits of a calendar range.
const (
	maxOccurrences = 10_000
	openRange      = 366 // days after start, if there is no end
)

// calendarRange converts the bounds of a request to times.
func calendarRange(call *rest.Call, in *listTasksIn) (from, to agent.Time, err error) {
	settings, err := call.DB.Settings(call)
	if err != nil {
		return from, to, err
	}
	zone, err := clock.Zone(settings.Timezone)
	if err != nil {
		zone = time.UTC
	}
	from, to = in.Start.First(zone), in.End.Past(zone)
	if to.IsZero() {
		to = agent.At(from.AddDate(0, 0, openRange))
	}
	if to.Before(from.Time) {
		return from, to, agent.Invalid("end", "must not be before start")
	}
	return from, to, nil
}

// expandTasks returns the occurrences in a range, ordered by start.
func (s *Server) expandTasks(call *rest.Call, in *listTasksIn, page store.Page) (tasksOut, error) {
	backwards := false
	for _, o := range page.Order {
		if o.Field != "start_time" || len(page.Order) > 1 {
			return tasksOut{}, agent.Invalid("sort", "must be start_time for a range")
		}
		backwards = o.Desc
	}
	from, to, err := calendarRange(call, in)
	if err != nil {
		return tasksOut{}, err
	}
	tasks, known, err := call.DB.TasksBetween(call, from, to, in.Status, page.Search)
	if err != nil {
		return tasksOut{}, err
	}
	var items []taskItem
	for _, t := range tasks {
		for _, o := range t.Occurrences(from, to, maxOccurrences-len(items)+1) {
			items = append(items, occurrenceItem(t, o, known))
		}
		if len(items) > maxOccurrences {
			return tasksOut{}, agent.Invalid(
				"end",
				"is a range with more than 10000 occurrences; request a shorter one",
			)
		}
		if err := call.Err(); err != nil {
			return tasksOut{}, err
		}
	}
	slices.SortFunc(items, func(a, b taskItem) int {
		if order := a.StartTime.Compare(b.StartTime.Time); order != 0 {
			return order
		}
		return strings.Compare(a.ID, b.ID)
	})
	if backwards {
		slices.Reverse(items)
	}
	some := rest.Cut(items, page)
	return tasksOut{some, rest.MetaOf(page, len(items))}, describeTasks(call, some)
}

func occurrenceItem(t agent.Task, o agent.Occurrence, known map[string]agent.TaskStatus) taskItem {
	item := taskItem{
		Task:          t.WithOccurrence(o),
		OccurrenceID:  o.ID,
		OriginalStart: o.OriginalStart,
	}
	item.StartTime, item.EndTime, item.Status = o.StartTime, o.EndTime, t.OccurrenceStatus()
	if status, ok := known[o.ID]; ok && t.Recurrence != agent.RecurNone {
		item.Status = status
	}
	return item
}

// describeTasks fills in the descriptions of a page of tasks that have none of
// their own.
func describeTasks(c *rest.Call, items []taskItem) error {
	ids := make([]string, len(items))
	for i := range items {
		ids[i] = items[i].ID
	}
	slices.Sort(ids)
	texts, err := c.DB.TaskDescriptions(c, slices.Compact(ids))
	for i := range items {
		items[i].Description = cmp.Or(items[i].Description, texts[items[i].ID])
	}
	return err
}

type createTaskIn struct {
	Body struct {
		Title     string                     `json:"title" required:"true" example:"Weekly review"`
		StartTime agent.Optional[agent.Time] `json:"start_time" required:"true" format:"date-time"`
		agent.TaskChange
	}
}

func taskLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/calendar/" + out.(agent.Task).ID
}

func (s *Server) createTask(c *rest.Call, in *createTaskIn) (agent.Task, error) {
	change := in.Body.TaskChange
	change.Title, change.StartTime = agent.Some(in.Body.Title), in.Body.StartTime
	return c.DB.CreateTask(c, change, s.options.Scheduler.CheckTask)
}

type taskIn struct {
	ID string `path:"taskId" doc:"Id of the task." example:"task-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) getTask(c *rest.Call, in *taskIn) (agent.Task, error) {
	return c.DB.Task(c, in.ID)
}

type updateTaskIn struct {
	taskIn
	Body agent.TaskChange
}

func (s *Server) updateTask(c *rest.Call, in *updateTaskIn) (agent.Task, error) {
	return c.DB.UpdateTask(c, in.ID, in.Body, s.options.Scheduler.CheckTask)
}

func (s *Server) deleteTask(c *rest.Call, in *taskIn) (none, error) {
	return none{}, c.DB.DeleteTask(c, in.ID)
}

// Which occurrences a change applies to.
const (
	scopeThis      = "this"
	scopeFollowing = "following"
)

type occurrenceIn struct {
	taskIn
	Start string `path:"start" doc:"original_start of the occurrence, as the occurrence_id has it." example:"20270104T080000Z"`
	Scope string `query:"scope" enum:"this,following" default:"this" doc:"following: this and all later ones." example:"this"`
}

// at returns the start of the occurrence.
func (in *occurrenceIn) at() (agent.Time, error) {
	if in.Scope != "" && in.Scope != scopeThis && in.Scope != scopeFollowing {
		return agent.Time{}, agent.Invalid("scope", "must be this or following")
	}
	return agent.ParseOccurrenceStart(in.Start)
}

type updateOccurrenceIn struct {
	occurrenceIn
	Body agent.TaskChange
}

func (s *Server) updateOccurrence(c *rest.Call, in *updateOccurrenceIn) (item taskItem, err error) {
	start, err := in.at()
	if err != nil {
		return item, err
	}
	var t agent.Task
	if in.Scope == scopeFollowing {
		t, err = c.DB.UpdateFollowing(c, in.ID, start, in.Body, s.options.Scheduler.CheckTask)
		return taskItem{Task: t}, err
	}
	if t, err = c.DB.UpdateOccurrence(c, in.ID, start, in.Body); err != nil {
		return item, err
	}
	o, err := t.Occurrence(start)
	return occurrenceItem(t, o, nil), err
}

func (s *Server) deleteOccurrence(c *rest.Call, in *occurrenceIn) (none, error) {
	start, err := in.at()
	if err != nil {
		return none{}, err
	}
	if in.Scope == scopeFollowing {
		return none{}, c.DB.DeleteFollowing(c, in.ID, start)
	}
	return none{}, c.DB.CancelOccurrence(c, in.ID, start)
}

// calendarFeed writes the whole calendar as iCalendar.
func (s *Server) calendarFeed(c *rest.Call) error {
	c.HTTP.Response().Header().Set(echo.HeaderContentType, "text/calendar; charset=utf-8")
	c.HTTP.Response().Header().Set(echo.HeaderContentDisposition, `inline; filename="calendar.ics"`)
	c.HTTP.Response().WriteHeader(http.StatusOK)
	feed := schedule.NewFeed(c.HTTP.Response(), c.DB.Agent().Name, time.Now())
	err := c.DB.EachTask(c, func(t agent.Task) error {
		feed.Add(t)
		return c.Err()
	})
	if err != nil {
		return err
	}
	return feed.Close()
}
