package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/clock"
	"satchel/httpapi/rest"
	"satchel/store"
)

type listSchedulesIn struct {
	rest.ListParams
	Status []string `query:"status" doc:"active, paused or completed; may be repeated."`
	Type   []string `query:"type" doc:"once, delayed or cron; may be repeated."`
}

// scheduleItem is a schedule in a list.
type scheduleItem struct {
	agent.Schedule
	Words     string     `json:"words" doc:"When it runs, in English." example:"Monday to Friday at 09:00"`
	NewestRun *agent.Run `json:"newest_run" types:"null" doc:"null before the first."`
}

// scheduleItems adds the fields that lists show.
func scheduleItems(ctx context.Context, db *store.DB, found []agent.Schedule) ([]scheduleItem, error) {
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.ID
	}
	last, err := db.LastRuns(ctx, ids)
	items := make([]scheduleItem, len(found))
	for i, f := range found {
		items[i] = scheduleItem{Schedule: f, Words: f.Words()}
		if run, ran := last[f.ID]; ran {
			items[i].NewestRun = &run
		}
	}
	return items, err
}

type schedulesOut struct {
	Schedules []scheduleItem `json:"schedules"`
	Meta      rest.Meta      `json:"meta"`
}

func (s *Server) listSchedules(call *rest.Call, in *listSchedulesIn) (schedulesOut, error) {
	page, err := in.Page("name", "created_at", "updated_at", "next_run", "last_run", "status", "type")
	if err != nil {
		return schedulesOut{}, err
	}
	if err := rest.CheckValues("status", in.Status, agent.ScheduleStatuses); err != nil {
		return schedulesOut{}, err
	}
	if err := rest.CheckValues("type", in.Type, agent.ScheduleTypes); err != nil {
		return schedulesOut{}, err
	}
	found, total, err := call.DB.Schedules(
		call,
		store.ScheduleFilter{Statuses: in.Status, Types: in.Type},
		page,
	)
	if err != nil {
		return schedulesOut{}, err
	}
	items, err := scheduleItems(call, call.DB, found)
	return schedulesOut{items, rest.MetaOf(page, total)}, err
}

type previewScheduleIn struct {
	Type         string     `query:"type" enum:"once,delayed,cron" doc:"Default: cron." example:"cron"`
	Cron         string     `query:"cron_expression" doc:"For type cron." example:"0 9 * * MON-FRI"`
	NextRun      agent.Time `query:"next_run" format:"date-time" doc:"For type once."`
	DelaySeconds int        `query:"delay_seconds" doc:"For type delayed."`
	Timezone     string     `query:"timezone" doc:"IANA name. Default: the agent's time zone." example:"Europe/Berlin"`
}

type previewOut struct {
	Words    string       `json:"words" doc:"When it runs, in English." example:"Monday to Friday at 09:00"`
	Timezone string       `json:"timezone" example:"Europe/Berlin"`
	Next     []agent.Time `json:"next" doc:"The next runs; five for a cron expression."`
}

// previewedRuns is the number of runs in the preview of a cron expression.
const previewedRuns = 5

func (s *Server) previewSchedule(call *rest.Call, in *previewScheduleIn) (previewOut, error) {
	settings, err := call.DB.Settings(call)
	if err != nil {
		return previewOut{}, err
	}
	draft := agent.Schedule{
		Type:           agent.ScheduleType(in.Type),
		CronExpression: in.Cron,
		NextRun:        in.NextRun,
		DelaySeconds:   in.DelaySeconds,
		Timezone:       in.Timezone,
	}
	if draft.Type == "" {
		draft.Type = agent.ScheduleCron
	}
	if !slices.Contains(agent.ScheduleTypes, draft.Type) {
		return previewOut{}, agent.Invalid("type", "must be once, delayed or cron")
	}
	draft.Fill(settings.Timezone)
	next, err := draft.Preview(agent.Now(), previewedRuns)
	if err != nil {
		return previewOut{}, err
	}
	return previewOut{draft.Words(), draft.Timezone, next}, nil
}

type scheduleDaysIn struct {
	Start agent.Bound `query:"start" required:"true" doc:"The first day, as a bare date." example:"2027-01-01"`
	End   agent.Bound `query:"end" required:"true" doc:"The last day, at most 61 days later." example:"2027-01-31"`
}

type scheduleDaysOut struct {
	Days []agent.ScheduleDay `json:"days" doc:"By date, then by the first run."`
}

// maxScheduleDays limits the days of one request.
const maxScheduleDays = 62

// scheduleDays returns past and planned runs of schedules by day.
func (s *Server) scheduleDays(call *rest.Call, in *scheduleDaysIn) (out scheduleDaysOut, err error) {
	days, err := daysBetween(call, in)
	if err != nil {
		return out, err
	}
	past, coming, err := call.DB.ScheduleDays(call, days)
	if err != nil {
		return out, err
	}
	for i := range coming {
		for day, planned := range coming[i].Planned(days) {
			past[day] = addPlanned(past[day], &coming[i], planned)
		}
		if err := call.Err(); err != nil {
			return out, err
		}
	}
	out.Days = []agent.ScheduleDay{}
	for i, day := range past {
		agent.Sort(day, func(a, b agent.ScheduleDay) int {
			return cmp.Or(a.First.Compare(b.First.Time), strings.Compare(a.ScheduleID, b.ScheduleID))
		})
		for _, d := range day {
			d.Date = in.Start.Time.AddDate(0, 0, i).Format(time.DateOnly)
			out.Days = append(out.Days, d)
		}
	}
	return out, nil
}

// addPlanned adds a schedule's planned runs to a day.
func addPlanned(day []agent.ScheduleDay, s *agent.Schedule, planned agent.ScheduleDay) []agent.ScheduleDay {
	for i := range day {
		if day[i].ScheduleID == s.ID {
			day[i].Planned = planned.Planned
			return day
		}
	}
	planned.ScheduleID, planned.Name = s.ID, s.Name
	return append(day, planned)
}

// daysBetween returns the starts of days in the agent's time zone, and the end
// of the last.
func daysBetween(call *rest.Call, in *scheduleDaysIn) (days []agent.Time, err error) {
	for field, bound := range map[string]agent.Bound{"start": in.Start, "end": in.End} {
		if !bound.Day {
			return nil, agent.Invalid(field, "must be a date such as 2027-01-31")
		}
	}
	settings, err := call.DB.Settings(call)
	if err != nil {
		return nil, err
	}
	zone, err := clock.Zone(settings.Timezone)
	if err != nil {
		zone = time.UTC
	}
	n := int(in.End.Time.Sub(in.Start.Time.Time).Hours()/24) + 1
	if n < 1 || n > maxScheduleDays {
		return nil, agent.Invalid("end", fmt.Sprintf("must be from 0 to %d days after start", maxScheduleDays-1))
	}
	for i := range n + 1 {
		at, _, _ := clock.ToInstant(in.Start.Time.AddDate(0, 0, i), zone)
		days = append(days, agent.At(at))
	}
	return days, nil
}

type createScheduleIn struct {
	Body struct {
		Name string             `json:"name" required:"true" example:"Morning report"`
		Type agent.ScheduleType `json:"type" required:"true" enum:"once,delayed,cron" example:"cron"`
		agent.ScheduleChange
	}
}

// writtenSchedule is a schedule after it was created or updated.
type writtenSchedule struct {
	agent.Schedule
	Secret string `json:"secret,omitempty" doc:"Signs the requests of a webhook. Only shown in the response to the request that created it."`
}

func scheduleLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/schedules/" + out.(writtenSchedule).ID
}

func (s *Server) createSchedule(c *rest.Call, in *createScheduleIn) (writtenSchedule, error) {
	change := in.Body.ScheduleChange
	change.Name, change.Type = agent.Some(in.Body.Name), agent.Some(in.Body.Type)
	made, secret, err := s.options.Scheduler.Create(c, c.DB, change)
	return writtenSchedule{made, secret}, err
}

type scheduleIn struct {
	ID string `path:"scheduleId" doc:"Id of the schedule." example:"schedule-06f1q2s3t4v5a6b7c8d9"`
}

// newestRuns is the number of runs in the response with a schedule.
const newestRuns = 100

type scheduleOut struct {
	agent.Schedule
	Words      string      `json:"words" doc:"When it runs, in English." example:"Monday to Friday at 09:00"`
	Executions []agent.Run `json:"executions" doc:"The newest 100 runs, newest first."`
}

func (s *Server) getSchedule(c *rest.Call, in *scheduleIn) (scheduleOut, error) {
	found, runs, err := c.DB.Schedule(c, in.ID, newestRuns)
	return scheduleOut{found, found.Words(), runs}, err
}

type updateScheduleIn struct {
	scheduleIn
	Body agent.ScheduleChange
}

func (s *Server) updateSchedule(c *rest.Call, in *updateScheduleIn) (writtenSchedule, error) {
	changed, secret, err := s.options.Scheduler.Update(c, c.DB, in.ID, in.Body)
	return writtenSchedule{changed, secret}, err
}

func (s *Server) deleteSchedule(c *rest.Call, in *scheduleIn) (none, error) {
	return none{}, c.DB.DeleteSchedule(c, in.ID)
}

func (s *Server) runSchedule(c *rest.Call, in *scheduleIn) (agent.Run, error) {
	return s.options.Scheduler.Run(c, c.DB, in.ID)
}
