package schedule

import (
	"context"
	"encoding/json"

	"satchel/agent"
	"satchel/store"
)

// Callback is a run of a schedule, as passed to what it calls.
type Callback struct {
	RunID        string // the same when an interrupted run is started again
	Schedule     agent.Schedule
	ScheduledFor agent.Time

	// Started must be called with the id of the execution that the run started,
	// as soon as it is known.
	Started func(executionID string)
}

// Runner makes a call of one callback_type and returns when it has ended.
// executionID is the workflow execution, if any. An interrupted call is made
// again with the same RunID and must not do its work twice. A runner that waits
// for work with its own limit releases its slot with work.Release.
type Runner func(ctx context.Context, db *store.DB, c Callback) (executionID string, err error)

// Trigger returns the payload for a workflow, a JSON object: the keys of the
// schedule's payload, the whole payload under payload, and the schedule.
func (c Callback) Trigger() json.RawMessage {
	trigger := map[string]any{}
	_ = agent.DecodeJSON(c.Schedule.Payload, &trigger) // the store only holds objects
	trigger["payload"] = c.Schedule.Payload
	trigger["schedule"] = map[string]any{
		"id":   c.Schedule.ID,
		"name": c.Schedule.Name,
		"type": c.Schedule.Type,
	}
	trigger["run_id"], trigger["scheduled_for"] = c.RunID, c.ScheduledFor
	return object(trigger)
}

// object encodes a payload.
func object(value map[string]any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil { // impossible: everything in it was decoded from JSON
		return json.RawMessage("{}")
	}
	return raw
}

// Check returns an error if the Scheduler cannot call what a schedule refers
// to.
func (s *Scheduler) Check(sched *agent.Schedule) error {
	if s.runners[sched.CallbackType] == nil {
		return agent.Invalid("callback_type", sched.CallbackType+" is not available in this version")
	}
	if sched.CallbackType != agent.CallbackWebhook {
		return nil
	}
	if _, err := s.webhook.client.CheckURL(sched.CallbackID); err != nil {
		return agent.Invalid("callback_id", "must be an http or https URL that may be reached: "+err.Error())
	}
	return nil
}

// Run starts a run of a schedule now, whatever its status, and returns it as it
// starts. See store.DB.StartRun for when it has to wait or is rejected.
func (s *Scheduler) Run(ctx context.Context, db *store.DB, id string) (agent.Run, error) {
	r, err := db.StartRun(ctx, id, s.Check)
	if err == nil && !r.Run.ExecutedAt.IsZero() {
		s.enqueue(dueKey{db: db}, store.DueRuns{Runs: []store.ScheduledRun{r}})
	}
	return r.Run, err
}

// newRun returns a run of a schedule for the queue.
func (s *Scheduler) newRun(db *store.DB, r store.ScheduledRun) *run {
	return &run{
		row:   r.Run,
		group: runGroup{workflows: r.Schedule.CallbackType == agent.CallbackWorkflow},
		call: func(ctx context.Context, started func(string)) (string, error) {
			return s.call(ctx, db, Callback{
				RunID:        r.Run.ID,
				Schedule:     r.Schedule,
				ScheduledFor: r.Run.ScheduledFor,
				Started:      started,
			})
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
// executions that created a schedule or a task, if any did.
func (s *Scheduler) chained(ctx context.Context, db *store.DB, id string) (context.Context, error) {
	chain, err := db.ScheduledChain(ctx, id)
	if err != nil || chain.Root == "" {
		return ctx, err
	}
	return s.own.Mark(store.WithChain(ctx, chain), agent.ChainHeader, chain.Signed()), nil
}
