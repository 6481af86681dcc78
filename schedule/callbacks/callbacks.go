// Package callbacks implements what schedules call other than webhooks:
// workflows, prompts to the agent, sources and tools.
package callbacks

import (
	"context"
	"encoding/json"
	"time"

	"satchel/agent"
	"satchel/agent/chat"
	"satchel/agent/work"
	"satchel/flow"
	"satchel/schedule"
	"satchel/store"
)

// Callbacks runs what schedules and tasks call.
type Callbacks struct {
	Engine  *flow.Engine
	Chat    *chat.Chat
	Toolbox *chat.Toolbox
}

// Runners returns the runners for schedule.Options, by callback_type.
func (cb Callbacks) Runners() map[string]schedule.Runner {
	return map[string]schedule.Runner{
		agent.CallbackWorkflow: cb.workflow,
		agent.CallbackAgent:    cb.agent,
		agent.CallbackTool:     cb.tool,
		agent.CallbackSource:   cb.source,
	}
}

// Task starts the workflow of a calendar task, see schedule.Options.Tasks.
func (cb Callbacks) Task(ctx context.Context, db *store.DB, c schedule.TaskCall) (string, error) {
	return cb.Engine.ExecuteIdempotent(
		ctx,
		db,
		flow.Request{
			WorkflowID:     c.Task.WorkflowID,
			Trigger:        "calendar",
			IdempotencyKey: c.RunID,
			Input:          c.Trigger(),
		},
		releasing(ctx, c.Started),
	)
}

func (cb Callbacks) workflow(ctx context.Context, db *store.DB, c schedule.Callback) (string, error) {
	return cb.Engine.ExecuteIdempotent(
		ctx,
		db,
		flow.Request{
			WorkflowID:     c.Schedule.CallbackID,
			Trigger:        "schedule",
			IdempotencyKey: c.RunID,
			Input:          c.Trigger(),
		},
		releasing(ctx, c.Started),
	)
}

// releasing returns started, which also releases the slot of a run. A run holds
// its slot until its execution is in the file, so that not all of many due runs
// start at once.
func releasing(ctx context.Context, started func(string)) func(string) {
	return func(executionID string) {
		work.Release(ctx)
		started(executionID)
	}
}

// Time limits of calls.
const (
	agentTimeout = 5 * time.Minute
	toolTimeout  = 2 * time.Minute
)

// agent runs a chat turn. Prompt and answer are stored once per run, in the
// conversation that the payload names or in a separate one.
func (cb Callbacks) agent(ctx context.Context, db *store.DB, callback schedule.Callback) (string, error) {
	var payload struct {
		Prompt         string `json:"prompt"`
		ConversationID string `json:"conversation_id"`
	}
	if err := json.Unmarshal(callback.Schedule.Payload, &payload); err != nil {
		return "", agent.Invalid("payload", "must have prompt and conversation_id as strings")
	}
	about, err := json.Marshal(map[string]string{"schedule_id": callback.Schedule.ID, "run_id": callback.RunID})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(
		ctx,
		agentTimeout,
		agent.Errorf(agent.CodeUpstream, "the agent did not answer within %s", agentTimeout),
	)
	defer cancel()
	_, err = cb.Chat.Ask(ctx, db, payload.ConversationID, callback.RunID, payload.Prompt, about)
	return "", timeoutCause(ctx, err)
}

// tool calls one of the agent's tools. The payload is its arguments, or
// contains them under arguments, like the body of the tool's own endpoint.
func (cb Callbacks) tool(ctx context.Context, db *store.DB, callback schedule.Callback) (string, error) {
	arguments := callback.Schedule.Payload
	var wrapped map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &wrapped); err == nil &&
		len(wrapped) == 1 &&
		len(wrapped["arguments"]) > 0 &&
		wrapped["arguments"][0] == '{' {
		arguments = wrapped["arguments"]
	}
	ctx, cancel := context.WithTimeoutCause(
		ctx,
		toolTimeout,
		agent.Errorf(agent.CodeUpstream, "the tool did not answer within %s", toolTimeout),
	)
	defer cancel()
	done, err := cb.Toolbox.Execute(
		chat.WithKey(ctx, callback.RunID),
		db,
		callback.Schedule.CallbackID,
		arguments,
	)
	if err == nil && done.Error != nil {
		err = agent.Errorf(done.Error.Code, "%s", done.Error.Message)
	}
	return "", timeoutCause(ctx, err)
}

// timeoutCause returns err, or the timeout that caused it.
func timeoutCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && agent.ErrorCode(cause) == agent.CodeUpstream {
		return cause
	}
	return err
}
