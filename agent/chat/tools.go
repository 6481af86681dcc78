package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"satchel/agent"
	"satchel/agent/apis"
	"satchel/agent/egress"
	"satchel/agent/llm"
	"satchel/agent/script"
	"satchel/store"
)

// Toolbox runs the tools of agents.
type Toolbox struct {
	options ToolOptions
}

// ToolOptions configure a Toolbox.
type ToolOptions struct {
	Scripts *script.Pool   // for tools of type function
	HTTP    *egress.Client // for tools of type api
	// MCP calls a tool of an MCP server; nil: tools of type mcp fail.
	MCP func(ctx context.Context, db *store.DB, serverID, tool string, arguments json.RawMessage) (any, error)
	// Workflow runs an active workflow until ctx ends and returns its output; nil:
	// tools of type workflow fail. A second call with the same key, unless it is
	// empty, starts nothing new.
	Workflow    func(ctx context.Context, db *store.DB, run WorkflowRun) (any, error)
	Credentials store.CredentialFinder
	APIs        *apis.APIs // for tools of types operation and api-set
	Version     string     // of the program, for the User-Agent
	Log         *slog.Logger
}

// NewToolbox returns a Toolbox.
func NewToolbox(o ToolOptions) *Toolbox { return &Toolbox{o} }

// Tools returns the tools of a choice, ready to be called, for Options.Tools.
// Invalid tools, written by SQL, are left out.
func (b *Toolbox) Tools(ctx context.Context, db *store.DB, which Choice) ([]Tool, error) {
	if which.None {
		return nil, nil
	}
	stored, err := db.AllTools(ctx)
	if err != nil {
		return nil, err
	}
	var list []Tool
	for _, t := range stored {
		if !t.Enabled {
			continue
		}
		if len(which.IDs) > 0 &&
			!slices.Contains(which.IDs, t.ID) &&
			!slices.Contains(which.IDs, t.Name) {
			continue
		}
		config, err := t.Validate()
		if err != nil {
			b.options.Log.Warn("skip an invalid tool", "agent", db.ID(), "tool", t.ID, "error", err)
			continue
		}
		if t.Type == agent.ToolFunction && config.Code == "" {
			continue
		}
		offered, err := b.modelTools(ctx, db, t, config)
		if agent.ErrorCode(err) == agent.CodeNotFound {
			b.options.Log.Warn(
				"skip a tool whose operation no longer exists",
				"agent", db.ID(),
				"tool", t.ID,
				"error", err,
			)
			continue
		} else if err != nil {
			return nil, err
		}
		for _, tool := range offered {
			if !slices.ContainsFunc(list, func(other Tool) bool {
				return other.Tool.Name == tool.Tool.Name
			}) {
				list = append(list, tool)
			}
		}
	}
	for _, id := range which.IDs {
		if !slices.ContainsFunc(list, func(t Tool) bool {
			return t.ID == id || t.Name == id
		}) {
			return nil, agent.Invalid("tools", "names a tool that does not exist or is switched off")
		}
	}
	return list, nil
}

// modelTools returns a stored tool as a model gets it: most are one tool.
func (b *Toolbox) modelTools(ctx context.Context, db *store.DB, t agent.Tool, config agent.ToolConfig) ([]Tool, error) {
	switch t.Type {
	case agent.ToolOperation:
		tool, err := b.operationTool(ctx, db, t, config)
		return []Tool{tool}, err
	case agent.ToolAPISet:
		return b.apiSetTools(ctx, db, t, config)
	case agent.ToolWorkflow:
		tool, err := b.workflowTool(db, t, config)
		return []Tool{tool}, err
	}
	if t.Type == agent.ToolMCP {
		if err := b.describeMCP(ctx, db, &t, &config); err != nil {
			return nil, err
		}
	}
	return []Tool{{
		ID: t.ID,
		Tool: llm.Tool{
			Name:        t.Name,
			Description: t.Description,
			Parameters:  parametersOf(config),
		},
		Call: func(ctx context.Context, arguments json.RawMessage) (any, error) {
			return b.run(ctx, db, t, arguments)
		},
	}}, nil
}

// describeMCP adds what a tool of an MCP server does not say itself, its description and
// its parameters, from the server's last list.
func (b *Toolbox) describeMCP(ctx context.Context, db *store.DB, t *agent.Tool, config *agent.ToolConfig) error {
	if t.Description != "" && len(config.Parameters) > 0 {
		return nil
	}
	listed, err := db.MCPListing(ctx, config.ServerID)
	if err != nil {
		return err
	}
	for _, tool := range listed {
		if tool.Name != config.ToolName {
			continue
		}
		t.Description = cmp.Or(t.Description, tool.Description)
		if len(config.Parameters) == 0 {
			config.Parameters = tool.Parameters
		}
	}
	return nil
}

func parametersOf(c agent.ToolConfig) json.RawMessage {
	if len(c.Parameters) == 0 {
		return agent.NoParameters
	}
	return c.Parameters
}

// ToolOutcome is the outcome of a tool call.
type ToolOutcome struct {
	Success  bool       `json:"success"`
	Result   any        `json:"result"`
	Error    *ToolFault `json:"error,omitempty"`
	Duration int64      `json:"duration_ms" example:"12"`
}

// ToolFault is the reason why a tool failed.
type ToolFault struct {
	Code    agent.Code `json:"code" example:"UPSTREAM_ERROR"`
	Message string     `json:"message" example:"the server answered with status 500"`
}

// Execute calls a tool. Arguments that violate its schema are a validation
// error; a failure of the tool is not an error but is reported in ToolOutcome.
func (b *Toolbox) Execute(
	ctx context.Context,
	db *store.DB,
	id string,
	arguments json.RawMessage,
) (ToolOutcome, error) {
	t, err := db.Tool(ctx, id)
	if err != nil {
		return ToolOutcome{}, err
	}
	began := time.Now()
	result, err := b.run(ctx, db, t, arguments)
	return b.outcome(ctx, db, began, result, err)
}

// ExecuteMCP is Execute for a tool of an MCP server that need not be a tool of
// the agent.
func (b *Toolbox) ExecuteMCP(
	ctx context.Context,
	db *store.DB,
	serverID, tool string,
	arguments json.RawMessage,
) (ToolOutcome, error) {
	if _, err := db.MCPServer(ctx, serverID); err != nil {
		return ToolOutcome{}, err
	}
	if tool == "" {
		return ToolOutcome{}, agent.Invalid("tool", "is required")
	}
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	var values map[string]any
	if err := agent.DecodeJSON(arguments, &values); err != nil || values == nil {
		return ToolOutcome{}, agent.Invalid("arguments", "must be a JSON object")
	}
	began := time.Now()
	result, err := b.callMCP(ctx, db, serverID, tool, arguments)
	return b.outcome(ctx, db, began, result, err)
}

// outcome returns the result of a call that began at a given time.
func (b *Toolbox) outcome(
	ctx context.Context,
	db *store.DB,
	began time.Time,
	result any,
	err error,
) (ToolOutcome, error) {
	toolOutcome := ToolOutcome{
		Success:  err == nil,
		Result:   result,
		Duration: time.Since(began).Milliseconds(),
	}
	var known *agent.Error
	switch {
	case err == nil:
		return toolOutcome, nil
	case errors.As(err, &known) && known.Code == agent.CodeValidation && known.Details["field"] == "arguments":
		return toolOutcome, err
	case errors.As(err, &known):
		toolOutcome.Error = &ToolFault{known.Code, known.Message}
	case ctx.Err() != nil:
		toolOutcome.Error = &ToolFault{agent.CodeUpstream, "the tool did not answer in time"}
	default:
		b.options.Log.Error("a tool failed", "agent", db.ID(), "error", err)
		toolOutcome.Error = &ToolFault{agent.CodeExecution, "the tool failed"}
	}
	return toolOutcome, nil
}

// run calls a tool after validating its arguments.
func (b *Toolbox) run(ctx context.Context, db *store.DB, tool agent.Tool, arguments json.RawMessage) (any, error) {
	if !tool.Enabled {
		return nil, agent.Errorf(agent.CodeConflict, "the tool %s is switched off", tool.Name)
	}
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	config, err := db.ToolConfig(ctx, tool)
	if err != nil {
		return nil, err
	}
	switch tool.Type {
	case agent.ToolOperation:
		return b.runOperation(ctx, db, config, arguments)
	case agent.ToolAPISet:
		return b.runAPISet(ctx, db, config, arguments)
	case agent.ToolWorkflow:
		return b.runWorkflow(ctx, db, config, arguments)
	}
	if tool.Type == agent.ToolMCP {
		if err := b.describeMCP(ctx, db, &tool, &config); err != nil {
			return nil, err
		}
	}
	parameters := parametersOf(config)
	// its server checks the others
	if _, err := compiledSchemas.compiled(parameters); err == nil || tool.Type != agent.ToolMCP {
		if err := CheckArguments(parameters, arguments); err != nil {
			return nil, err
		}
	}
	var values map[string]any
	if err := agent.DecodeJSON(arguments, &values); err != nil {
		return nil, agent.Invalid("arguments", "must be a JSON object")
	}
	switch tool.Type {
	case agent.ToolFunction:
		if config.Code == "" {
			return nil, agent.Errorf(agent.CodeExecution, "the tool %s has no code yet", tool.Name)
		}
		result, err := b.options.Scripts.Run(ctx, script.Call{
			Code:      config.Code,
			Variables: map[string]any{"args": values, "idempotencyKey": keyOf(ctx)},
			Owner:     db.ID(),
			Credential: func(ctx context.Context, ref string) (egress.Credential, error) {
				return b.options.Credentials.Find(ctx, db, ref)
			},
		})
		return result.Value, err
	case agent.ToolAPI:
		credential, err := b.options.Credentials.Find(ctx, db, config.Credential)
		if err != nil {
			return nil, err
		}
		return b.request(ctx, config, values, credential)
	}
	return b.callMCP(ctx, db, config.ServerID, config.ToolName, arguments)
}

func (b *Toolbox) callMCP(
	ctx context.Context,
	db *store.DB,
	serverID, tool string,
	arguments json.RawMessage,
) (any, error) {
	if b.options.MCP == nil {
		return nil, agent.Errorf(agent.CodeExecution, "this server does not call MCP servers")
	}
	return b.options.MCP(ctx, db, serverID, tool, arguments)
}
