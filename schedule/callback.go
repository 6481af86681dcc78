package schedule

import (
	"context"
	"encoding/json"

	"satchel/agent"
	"satchel/store"
)

// Callback is a run of a schedule, as what it calls sees it.
type Callback struct {
	RunID        string // the same when a run that was cut is started again
	Schedule     agent.Schedule
	ScheduledFor agent.Time

	// Started is to be called with the execution that the run started, as soon as
	// that is known.
	Started func(executionID string)
}

// Runner makes a call of one callback_type and returns once that has ended.
// executionID names the workflow execution it was, if any. A call that was cut
// is made again with the same RunID, which must not do its work twice. One that
// waits for work with a limit of its own gives its slot back by work.Release.
type Runner func(ctx context.Context, db *store.DB, c Callback) (executionID string, err error)

// Trigger is the payload that a workflow gets, a JSON object: the keys of the
// schedule's payload, the whole of it as payload, and what called.
func (c Callback) Trigger() json.RawMessage {
	trigger := map[string]any{}
	_ = json.Unmarshal(c.Schedule.Payload, &trigger) // the store holds objects only
	trigger["payload"] = c.Schedule.Payload
	trigger["schedule"] = map[string]any{"id": c.Schedule.ID, "name": c.Schedule.Name, "type": c.Schedule.Type}
	trigger["run_id"], trigger["scheduled_for"] = c.RunID, c.ScheduledFor
	return object(trigger)
}

// object writes a payload.
func object(value map[string]any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil { // never: all that is in it was read from JSON
		return json.RawMessage("{}")
	}
	return raw
}

// Check reports whether the Scheduler can call what a schedule names.
func (s *Scheduler) Check(sched *agent.Schedule) error {
	if s.runners[sched.CallbackType] == nil {
		return agent.Invalid("callback_type", sched.CallbackType+" is not available in this version")
	}
	if sched.CallbackType != agent.CallbackWebhook {
		return nil
	}
	if _, err := s.webhook.client.CheckURL(sched.CallbackID); err != nil {
		return agent.Invalid("callback_id", "must be an http or https address that may be reached: "+err.Error())
	}
	return nil
}

// Run starts a run of a schedule now, whatever its status, and returns it as
// it begins. See store.DB.StartRun for when it has to wait or is refused.
func (s *Scheduler) Run(ctx context.Context, db *store.DB, id string) (agent.Run, error) {
	r, err := db.StartRun(ctx, id, s.Check)
	if err == nil && !r.Run.ExecutedAt.IsZero() {
		s.enqueue(dueKey{db: db}, store.DueRuns{Runs: []store.ScheduledRun{r}})
	}
	return r.Run, err
}

// newRun returns a run of a schedule as it is enqueued.
func (s *Scheduler) newRun(db *store.DB, r store.ScheduledRun) *run {
	return &run{
		row: r.Run, group: runGroup{workflows: r.Schedule.CallbackType == agent.CallbackWorkflow},
		call: func(ctx context.Context, started func(string)) (string, error) {
			return s.call(ctx, db, Callback{RunID: r.Run.ID, Schedule: r.Schedule, ScheduledFor: r.Run.ScheduledFor, Started: started})
		},
	}
}

func (s *Scheduler) call(ctx context.Context, db *store.DB, c Callback) (executionID string, err error) {
	if err := s.Check(&c.Schedule); err != nil {
		return "", err
	}
	if ctx, err = s.chained(ctx, db, c.Schedule.ID); err != nil {
		return "", err
	}
	return s.runners[c.Schedule.CallbackType](ctx, db, c)
}

// chained returns a context in which what is called belongs to the chain of
// executions that made or timed a schedule or a task, if one did.
func (s *Scheduler) chained(ctx context.Context, db *store.DB, id string) (context.Context, error) {
	chain, err := db.ScheduledChain(ctx, id)
	if err != nil || chain.Root == "" {
		return ctx, err
	}
	return s.own.Mark(store.WithChain(ctx, chain), agent.ChainHeader, chain.Signed()), nil
}
