package chat

import (
	"context"
	"encoding/json"
	"time"

	"satchel/agent"
	"satchel/agent/llm"
	"satchel/agent/template"
	"satchel/store"
)

// workflowTimeout is how long a workflow may run for a tool without its own
// time limit.
const workflowTimeout = 60 * time.Second

// answerMargin is how long before its time limit a model is told that a workflow is
// still running.
const answerMargin = time.Second

// WorkflowRun is a workflow that a tool runs.
type WorkflowRun struct {
	WorkflowID string
	Input      json.RawMessage
	Key        string    // a second run with the same key is the first; empty: none
	Deadline   time.Time // when the tool must answer although the execution continues; zero: it waits for the end
}

// RunningWorkflow is the result of a tool whose workflow takes longer than the model
// can wait.
type RunningWorkflow struct {
	Status      string `json:"status"` // running
	ExecutionID string `json:"execution_id"`
	Message     string `json:"message"`
}

// workflowTool returns a tool of type workflow for a model, which does not see the
// arguments that have defaults.
func (b *Toolbox) workflowTool(db *store.DB, t agent.Tool, c agent.ToolConfig) (Tool, error) {
	visible, err := withoutDefaults(parametersOf(c), c.Defaults)
	return Tool{
		ID: t.ID,
		Tool: llm.Tool{
			Name:        t.Name,
			Description: t.Description,
			Parameters:  visible,
		},
		Call: func(ctx context.Context, arguments json.RawMessage) (any, error) {
			return b.run(ctx, db, t, arguments)
		},
	}, err
}

// runWorkflow runs the workflow of a tool with the arguments as its input, and
// returns its output, or the value at a path in it.
func (b *Toolbox) runWorkflow(
	ctx context.Context,
	db *store.DB,
	config agent.ToolConfig,
	arguments json.RawMessage,
) (any, error) {
	path, err := template.ParsePath(config.ResponsePath)
	if err != nil {
		return nil, agent.Invalid("config.response_path", err.Error())
	}
	visible, err := withoutDefaults(parametersOf(config), config.Defaults)
	if err != nil {
		return nil, err
	}
	if err := CheckArguments(visible, arguments); err != nil {
		return nil, err
	}
	input, err := withDefaults(arguments, config.Defaults)
	if err != nil {
		return nil, err
	}
	outer := ctx
	ctx, cancel := withinLimit(ctx, config, workflowTimeout)
	defer cancel()
	run := WorkflowRun{WorkflowID: config.WorkflowID, Input: input, Key: keyOf(ctx)}
	if until, limited := outer.Deadline(); limited && config.TimeoutMS > int(workflowTimeout.Milliseconds()) {
		run.Deadline = until.Add(-answerMargin)
	}
	if b.options.Workflow == nil {
		return nil, agent.Errorf(agent.CodeExecution, "this server does not run workflows")
	}
	output, err := b.options.Workflow(ctx, db, run)
	if running, is := output.(RunningWorkflow); err != nil || is {
		return running, err
	}
	found, ok := path.Walk(output)
	if !ok {
		return nil, agent.Errorf(
			agent.CodeExecution,
			"the output of the workflow has no value at %s",
			config.ResponsePath,
		)
	}
	return found, nil
}
