package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/apis"
	"satchel/agent/llm"
	"satchel/store"
)

// operationTool returns a tool of type operation for a model, which does not see
// the arguments that have defaults.
func (b *Toolbox) operationTool(
	ctx context.Context,
	db *store.DB,
	tool agent.Tool,
	config agent.ToolConfig,
) (Tool, error) {
	_, definition, err := db.Operation(ctx, config.APIID, config.Operation)
	if err != nil {
		return Tool{}, err
	}
	visible, err := withoutDefaults(definition.Parameters, config.Defaults)
	if err != nil {
		return Tool{}, err
	}
	return Tool{
		ID: tool.ID,
		Tool: llm.Tool{
			Name:        tool.Name,
			Description: tool.Description,
			Parameters:  visible,
		},
		Call: func(ctx context.Context, arguments json.RawMessage) (any, error) {
			return b.run(ctx, db, tool, arguments)
		},
	}, nil
}

// withDefaults returns the arguments of a call, a JSON object, with the defaults of
// its tool, which take precedence.
func withDefaults(arguments json.RawMessage, defaults map[string]any) (json.RawMessage, error) {
	given := map[string]json.RawMessage{}
	if err := json.Unmarshal(arguments, &given); err != nil || given == nil {
		return nil, agent.Invalid("arguments", "must be a JSON object")
	}
	for name, v := range defaults {
		var err error
		if given[name], err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	return json.Marshal(given)
}

// withinLimit returns a context with the time limit of a tool, or usual if it has
// none.
func withinLimit(ctx context.Context, c agent.ToolConfig, usual time.Duration) (context.Context, context.CancelFunc) {
	if c.TimeoutMS > 0 {
		usual = time.Duration(c.TimeoutMS) * time.Millisecond
	}
	return context.WithTimeout(ctx, usual)
}

// withoutDefaults leaves the arguments that have defaults out of a schema.
func withoutDefaults(schema json.RawMessage, defaults map[string]any) (json.RawMessage, error) {
	if len(defaults) == 0 {
		return schema, nil
	}
	var object map[string]any
	if err := json.Unmarshal(schema, &object); err != nil {
		return nil, err
	}
	properties, _ := object["properties"].(map[string]any)
	for name := range defaults {
		delete(properties, name)
	}
	if required, ok := object["required"].([]any); ok {
		object["required"] = slices.DeleteFunc(required, func(name any) bool {
			text, _ := name.(string)
			_, given := defaults[text]
			return given
		})
	}
	return json.Marshal(object)
}

// apiSetTools returns the two tools with which a model uses an API of any size: one
// finds operations, the other calls them.
func (b *Toolbox) apiSetTools(
	ctx context.Context,
	db *store.DB,
	tool agent.Tool,
	config agent.ToolConfig,
) ([]Tool, error) {
	api, err := db.API(ctx, config.APIID)
	if err != nil {
		return nil, err
	}
	call := func(ctx context.Context, arguments json.RawMessage) (any, error) {
		return b.run(ctx, db, tool, arguments)
	}
	about := strings.TrimSpace(tool.Description + fmt.Sprintf("\nThe API is %s.", agent.Clip(api.Title, 100)))
	return []Tool{
		{
			ID: tool.ID,
			Tool: llm.Tool{
				Name: tool.Name + "_find",
				Description: "Finds operations of an API by words, with the JSON Schema of their " +
					"arguments. Call it before " +
					tool.Name + "_call. " + about,
				Parameters: findSchema,
			},
			Call: call,
		},
		{
			ID: tool.ID,
			Tool: llm.Tool{
				Name:        tool.Name + "_call",
				Description: "Calls an operation that " + tool.Name + "_find found. " + about,
				Parameters:  callSchema,
			},
			Call: call,
		},
	}, nil
}

var (
	findSchema = json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"A few ` +
		`words, such as: create order. Or the id of an operation."}},"required":["query"],` +
		`"additionalProperties":false}`)
	callSchema = json.RawMessage(`{"type":"object","properties":{"operation":{"type":"string","description":"The id ` +
		`of the operation."},"arguments":{"type":"object","description":"As the schema of the operation describes ` +
		`them."}},"required":["operation"],"additionalProperties":false}`)
	// apiSetSchema is for calls of a tool of type api-set as such: one of both.
	apiSetSchema = json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},` +
		`"operation":{"type":"string"},"arguments":{"type":"object"}},"oneOf":[{"required":["query"]},` +
		`{"required":["operation"]}],"additionalProperties":false}`)
)

// runOperation calls the operation of a tool.
func (b *Toolbox) runOperation(
	ctx context.Context,
	db *store.DB,
	c agent.ToolConfig,
	arguments json.RawMessage,
) (any, error) {
	api, o, err := db.Operation(ctx, c.APIID, c.Operation)
	if err != nil {
		return nil, err
	}
	all, err := withDefaults(arguments, c.Defaults)
	if err != nil {
		return nil, err
	}
	return b.callOperation(ctx, db, &api, &o, c, all)
}

// callOperation calls an operation after checking its arguments.
func (b *Toolbox) callOperation(
	ctx context.Context,
	db *store.DB,
	api *agent.API,
	definition *agent.OperationDefinition,
	config agent.ToolConfig,
	arguments json.RawMessage,
) (any, error) {
	var decoded map[string]any
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.UseNumber()
	if err := dec.Decode(&decoded); err != nil || decoded == nil {
		return nil, agent.Invalid("arguments", "must be a JSON object")
	}
	if err := CheckObject(definition.Parameters, decoded); err != nil {
		return nil, err
	}
	ctx, cancel := withinLimit(ctx, config, apiTimeout)
	defer cancel()
	req, err := b.options.APIs.Request(ctx, db, api, definition, apis.Call{
		Arguments:  decoded,
		Credential: config.Credential,
		Key:        keyOf(ctx),
	})
	if err != nil {
		return nil, err
	}
	return b.send(ctx, req, config.ResponsePath)
}

// ExecuteOperation calls an operation of an API that need not be a tool. As with
// Execute, a failure of the call is reported in ToolOutcome.
func (b *Toolbox) ExecuteOperation(
	ctx context.Context,
	db *store.DB,
	apiRef, operation, credential string,
	arguments json.RawMessage,
) (ToolOutcome, error) {
	api, o, err := db.Operation(ctx, apiRef, operation)
	if err != nil {
		return ToolOutcome{}, err
	}
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	began := time.Now()
	result, err := b.callOperation(ctx, db, &api, &o, agent.ToolConfig{Credential: credential}, arguments)
	return b.outcome(ctx, db, began, result, err)
}

// runAPISet finds operations by {query}, or calls one by {operation, arguments}.
func (b *Toolbox) runAPISet(
	ctx context.Context,
	db *store.DB,
	config agent.ToolConfig,
	arguments json.RawMessage,
) (any, error) {
	if err := CheckArguments(apiSetSchema, arguments); err != nil {
		return nil, err
	}
	var selection struct {
		Query     string          `json:"query"`
		Operation string          `json:"operation"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(arguments, &selection); err != nil {
		return nil, agent.Invalid("arguments", "must be a JSON object")
	}
	if selection.Operation == "" {
		found, err := b.options.APIs.Find(ctx, db, config.APIID, selection.Query, config.Allow)
		return map[string]any{"operations": found}, err
	}
	api, o, err := db.Operation(ctx, config.APIID, selection.Operation)
	if agent.ErrorCode(err) == agent.CodeNotFound ||
		err == nil && config.Allow != nil && !config.Allow.Fits(&o.Operation) {
		return nil, agent.Invalid("arguments", "operation: names none that this tool may call")
	}
	if err != nil {
		return nil, err
	}
	if len(selection.Arguments) == 0 {
		selection.Arguments = json.RawMessage("{}")
	}
	return b.callOperation(ctx, db, &api, &o, config, selection.Arguments)
}
