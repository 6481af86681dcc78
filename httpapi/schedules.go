package httpapi

import (
	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store"
)

type listSchedulesIn struct {
	rest.ListParams
	Status []string `query:"status" doc:"active, paused or completed; may be repeated."`
	Type   []string `query:"type" doc:"once, delayed or cron; may be repeated."`
}

type schedulesOut struct {
	Schedules []agent.Schedule `json:"schedules"`
	Meta      rest.Meta        `json:"meta"`
}

func (s *Server) listSchedules(c *rest.Call, in *listSchedulesIn) (schedulesOut, error) {
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
	found, total, err := c.DB.Schedules(c, store.ScheduleFilter{Statuses: in.Status, Types: in.Type}, page)
	return schedulesOut{found, rest.MetaOf(page, total)}, err
}

type createScheduleIn struct {
	Body struct {
		Name string             `json:"name" required:"true" example:"Morning report"`
		Type agent.ScheduleType `json:"type" required:"true" enum:"once,delayed,cron" example:"cron"`
		agent.ScheduleChange
	}
}

// writtenSchedule is a schedule as it was written.
type writtenSchedule struct {
	agent.Schedule
	Secret string `json:"secret,omitempty" doc:"Signs the calls of a webhook. Shown only in the answer to the request that made it."`
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

// newestRuns is how many runs come with a schedule.
const newestRuns = 100

type scheduleOut struct {
	agent.Schedule
	Executions []agent.Run `json:"executions" doc:"The newest 100 runs, newest first."`
}

func (s *Server) getSchedule(c *rest.Call, in *scheduleIn) (scheduleOut, error) {
	found, runs, err := c.DB.Schedule(c, in.ID, newestRuns)
	return scheduleOut{found, runs}, err
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
