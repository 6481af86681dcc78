package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"satchel/agent/clock"
)

// ScheduleType determines when a schedule runs.
type ScheduleType string

// The types of a schedule: once at a time, once after a delay, or repeatedly by
// a cron expression.
const (
	ScheduleOnce    ScheduleType = "once"
	ScheduleDelayed ScheduleType = "delayed"
	ScheduleCron    ScheduleType = "cron"
)

// ScheduleTypes lists every type of a schedule.
var ScheduleTypes = []ScheduleType{ScheduleOnce, ScheduleDelayed, ScheduleCron}

// ScheduleStatus is the state of a schedule.
type ScheduleStatus string

// The statuses of a schedule.
const (
	ScheduleActive    ScheduleStatus = "active"
	SchedulePaused    ScheduleStatus = "paused"
	ScheduleCompleted ScheduleStatus = "completed"
)

// ScheduleStatuses lists every status of a schedule.
var ScheduleStatuses = []ScheduleStatus{ScheduleActive, SchedulePaused, ScheduleCompleted}

// Types of callbacks.
const (
	CallbackWorkflow = "workflow"
	CallbackAgent    = "agent"
	CallbackWebhook  = "webhook"
	CallbackSource   = "source"
	CallbackTool     = "tool"
)

// callbackTypes lists every callback_type.
var callbackTypes = []string{CallbackWorkflow, CallbackAgent, CallbackWebhook, CallbackSource, CallbackTool}

// What happens to missed runs: one run replaces them all, none is caught up, or
// all are.
const (
	MisfireRunOnce = "run_once"
	MisfireSkip    = "skip"
	MisfireRunAll  = "run_all"
)

var misfirePolicies = []string{MisfireRunOnce, MisfireSkip, MisfireRunAll}

// What happens to a run that is due while another run of its schedule is in
// progress.
const (
	OverlapSkip  = "skip"
	OverlapQueue = "queue"
	OverlapAllow = "allow"
)

var overlaps = []string{OverlapSkip, OverlapQueue, OverlapAllow}

// Limits of schedules.
const (
	MaxSchedules    = 1000 // per agent
	MaxDelaySeconds = 31_536_000
)

// Schedule calls something at a time, after a delay, or repeatedly.
type Schedule struct {
	ID             string          `json:"id" example:"schedule-06f1q2s3t4v5a6b7c8d9"`
	Name           string          `json:"name" example:"Morning report"`
	Type           ScheduleType    `json:"type" enum:"once,delayed,cron" example:"cron"`
	CronExpression string          `json:"cron_expression" doc:"Five fields, for type cron." example:"0 9 * * MON-FRI"`
	NextRun        Time            `json:"next_run" nullable:"true" format:"date-time" doc:"null if there are no more runs."`
	LastRun        Time            `json:"last_run" nullable:"true" format:"date-time" doc:"When the newest run started; null before the first."`
	DelaySeconds   int             `json:"delay_seconds" doc:"For type delayed." example:"0"`
	CallbackType   string          `json:"callback_type" enum:"workflow,agent,webhook,source,tool" example:"webhook"`
	CallbackID     string          `json:"callback_id" doc:"Id of what is called; for a webhook its URL." example:"https://example.com/hook"`
	Payload        json.RawMessage `json:"payload" doc:"Any JSON object, passed to the callback."`
	Timezone       string          `json:"timezone" doc:"IANA name. cron_expression is in this time zone." example:"Europe/Berlin"`
	MisfirePolicy  string          `json:"misfire_policy" enum:"run_once,skip,run_all" example:"run_once"`
	Overlap        string          `json:"overlap" enum:"skip,queue,allow" example:"skip"`
	Status         ScheduleStatus  `json:"status" enum:"active,paused,completed" example:"active"`
	CreatedAt      Time            `json:"created_at" format:"date-time"`
	UpdatedAt      Time            `json:"updated_at" format:"date-time"`
}

// ScheduleChange is a partial update of a schedule. null resets an optional
// field to its default. next_run applies to type once only.
type ScheduleChange struct {
	Name           Optional[string]          `json:"name,omitempty" example:"Morning report"`
	Type           Optional[ScheduleType]    `json:"type,omitempty" enum:"once,delayed,cron" example:"cron"`
	CronExpression Optional[string]          `json:"cron_expression,omitempty" doc:"Five fields: minute, hour, day of the month, month, day of the week." example:"0 9 * * MON-FRI"`
	NextRun        Optional[Time]            `json:"next_run,omitempty" format:"date-time" doc:"For type once. At most one minute in the past."`
	DelaySeconds   Optional[int]             `json:"delay_seconds,omitempty" doc:"For type delayed: 1 to 31536000."`
	CallbackType   Optional[string]          `json:"callback_type,omitempty" enum:"workflow,agent,webhook,source,tool" doc:"Default: workflow." example:"webhook"`
	CallbackID     Optional[string]          `json:"callback_id,omitempty" doc:"Id of what is called; for a webhook its URL." example:"https://example.com/hook"`
	Payload        Optional[json.RawMessage] `json:"payload,omitempty" doc:"Any JSON object, at most 64 KB."`
	Timezone       Optional[string]          `json:"timezone,omitempty" doc:"IANA name. Default: the agent's time zone." example:"Europe/Berlin"`
	MisfirePolicy  Optional[string]          `json:"misfire_policy,omitempty" enum:"run_once,skip,run_all" doc:"What happens to missed runs. Default: run_once." example:"run_once"`
	Overlap        Optional[string]          `json:"overlap,omitempty" enum:"skip,queue,allow" doc:"What happens to a run that is due while another is in progress. Default: skip." example:"skip"`
	Status         Optional[ScheduleStatus]  `json:"status,omitempty" enum:"active,paused,completed" doc:"Clients can set active or paused." example:"active"`
	Secret         Optional[string]          `json:"secret,omitempty" doc:"For callback_type webhook, write-only: whsec_ and base64 of 24 to 64 bytes. Default: generated."`
}

// Times reports whether the change sets a field that determines when a schedule
// of the type runs.
func (c ScheduleChange) Times(t ScheduleType) bool {
	if t == ScheduleOnce {
		return c.NextRun.Given && !c.NextRun.Value.IsZero()
	}
	return c.Type.Given || c.CronExpression.Given || c.DelaySeconds.Given
}

// Apply writes the given fields into s. zone is the default time zone.
func (c ScheduleChange) Apply(schedule *Schedule, zone string) {
	before := *schedule
	c.Name.Into(&schedule.Name)
	c.Type.Into(&schedule.Type)
	c.CronExpression.Into(&schedule.CronExpression)
	c.DelaySeconds.Into(&schedule.DelaySeconds)
	c.CallbackType.Into(&schedule.CallbackType)
	c.CallbackID.Into(&schedule.CallbackID)
	c.Payload.Into(&schedule.Payload)
	c.Timezone.Into(&schedule.Timezone)
	c.MisfirePolicy.Into(&schedule.MisfirePolicy)
	c.Overlap.Into(&schedule.Overlap)
	c.Status.Into(&schedule.Status)
	if schedule.Type == ScheduleOnce {
		if before.Type != ScheduleOnce {
			schedule.NextRun = Time{}
		}
		c.NextRun.Into(&schedule.NextRun)
	}
	schedule.Fill(zone)
}

// Fill sets empty fields to their defaults and clears fields that do not apply
// to the type.
func (s *Schedule) Fill(zone string) {
	s.Name, s.CronExpression = strings.TrimSpace(s.Name), strings.TrimSpace(s.CronExpression)
	s.Payload = defaultObject(s.Payload)
	for field, fallback := range map[*string]string{
		&s.CallbackType:  CallbackWorkflow,
		&s.Timezone:      zone,
		&s.MisfirePolicy: MisfireRunOnce,
		&s.Overlap:       OverlapSkip,
	} {
		if *field == "" {
			*field = fallback
		}
	}
	if s.Status == "" {
		s.Status = ScheduleActive
	}
	if s.Type != ScheduleCron {
		s.CronExpression = ""
	}
	if s.Type != ScheduleDelayed {
		s.DelaySeconds = 0
	}
}

// Validate checks the fields that clients set.
func (s *Schedule) Validate() error {
	var is Issues
	is.Check(s.Name != "", "name", "is required")
	is.checkText("name", s.Name, 200)
	is.Check(slices.Contains(ScheduleTypes, s.Type), "type", "must be once, delayed or cron")
	s.checkTiming(&is)
	is.Check(
		slices.Contains(callbackTypes, s.CallbackType),
		"callback_type",
		"must be "+strings.Join(callbackTypes, ", "),
	)
	s.checkCallback(&is)
	is.checkObject("payload", s.Payload)
	is.Check(slices.Contains(misfirePolicies, s.MisfirePolicy), "misfire_policy", "must be run_once, skip or run_all")
	is.Check(slices.Contains(overlaps, s.Overlap), "overlap", "must be skip, queue or allow")
	is.Check(slices.Contains(ScheduleStatuses, s.Status), "status", "must be active or paused")
	return is.Err()
}

func (s *Schedule) checkTiming(is *Issues) {
	_, err := clock.Zone(s.Timezone)
	is.addError("timezone", err)
	switch s.Type {
	case ScheduleCron:
		if s.CronExpression == "" {
			is.Add("cron_expression", "is required for type cron")
			return
		}
		_, err := clock.ParseCron(s.CronExpression)
		is.addError("cron_expression", err)
	case ScheduleDelayed:
		is.Check(
			s.DelaySeconds >= 1 && s.DelaySeconds <= MaxDelaySeconds,
			"delay_seconds",
			fmt.Sprintf("must be from 1 to %d", MaxDelaySeconds),
		)
	}
}

func (s *Schedule) checkCallback(is *Issues) {
	is.checkText("callback_id", s.CallbackID, maxURLLength)
	if s.CallbackType == CallbackAgent {
		var payload struct {
			Prompt string `json:"prompt"`
		}
		err := json.Unmarshal(s.Payload, &payload)
		is.Check(
			err == nil && strings.TrimSpace(payload.Prompt) != "",
			"payload.prompt",
			"is required for callback_type agent",
		)
		return
	}
	is.Check(s.CallbackID != "", "callback_id", "is required for callback_type "+s.CallbackType)
}

// addError adds the issue in err about a field; nil adds nothing.
func (i *Issues) addError(field string, err error) {
	if err != nil {
		i.Add(field, err.Error())
	}
}

// MaxLateness is how late a run may start without counting as missed, and how far
// in the past the time of a schedule of type once may be.
const MaxLateness = time.Minute

// Plan sets the next run, and the status that follows from it, of a valid
// schedule that was created (was is nil) or changed. timed reports that its
// timing was written, even with the same value: that reactivates a completed
// schedule.
func (s *Schedule) Plan(before *Schedule, timed bool, now Time) error {
	retimed := before == nil ||
		timed && before.Status == ScheduleCompleted ||
		s.Type != before.Type ||
		s.CronExpression != before.CronExpression ||
		s.DelaySeconds != before.DelaySeconds ||
		s.Timezone != before.Timezone && s.Type == ScheduleCron ||
		s.Type == ScheduleOnce && s.NextRun != before.NextRun
	if retimed && before != nil && before.Status == ScheduleCompleted && s.Status == ScheduleCompleted {
		s.Status = ScheduleActive
	}
	if s.Status == ScheduleCompleted && (before == nil || before.Status != ScheduleCompleted) {
		return Invalid("status", "must be active or paused")
	}
	begins := s.Status == ScheduleActive && (before == nil || before.Status != ScheduleActive)
	switch {
	case s.Type == ScheduleOnce:
		if retimed || begins {
			return s.checkOnce(retimed, now)
		}
	case s.Status != ScheduleActive && (retimed || s.Type == ScheduleCron):
		s.NextRun = Time{} // set when it becomes active again
	case retimed, begins && s.Type == ScheduleCron, begins && s.NextRun.IsZero():
		return s.planNext(now)
	}
	return nil
}

// Replan is like Plan, for a schedule that was changed by SQL. With keep, its
// next run is what was written, or its timing did not change.
func (s *Schedule) Replan(keep bool, now Time) error {
	if keep && (s.Type != ScheduleCron || !s.NextRun.IsZero()) {
		return nil
	}
	if !keep && s.Status == ScheduleCompleted {
		s.Status = ScheduleActive
	}
	switch {
	case s.Status != ScheduleActive && s.Type != ScheduleOnce:
		s.NextRun = Time{}
		return nil
	case s.Type == ScheduleOnce:
		return s.checkOnce(false, now)
	}
	return s.planNext(now)
}

func (s *Schedule) checkOnce(retimed bool, now Time) error {
	switch {
	case s.NextRun.IsZero():
		return Invalid("next_run", "is required for type once")
	case retimed && s.NextRun.Before(now.Add(-MaxLateness)):
		return Invalid("next_run", "is past")
	}
	return nil
}

// planNext sets the first run after now from a cron expression or a delay.
func (s *Schedule) planNext(now Time) error {
	if s.Type == ScheduleDelayed {
		s.NextRun = At(now.Add(time.Duration(s.DelaySeconds) * time.Second))
		return nil
	}
	cron, zone, err := s.cron()
	if err != nil {
		return err
	}
	s.NextRun = At(cron.Next(now.Time, zone))
	return nil
}

func (s *Schedule) cron() (clock.Cron, *time.Location, error) {
	cron, err := clock.ParseCron(s.CronExpression)
	if err != nil {
		return cron, nil, Invalid("cron_expression", err.Error())
	}
	zone, err := clock.Zone(s.Timezone)
	if err != nil {
		return cron, nil, Invalid("timezone", err.Error())
	}
	return cron, zone, nil
}
