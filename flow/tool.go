package flow

import (
	"context"
	"encoding/json"
	"time"

	"satchel/agent"
	"satchel/agent/chat"
)

// toolTimeout is the default time limit of a tool node.
const toolTimeout = 2 * time.Minute

// ToolKind returns the node type tool, which calls one of the agent's tools.
func ToolKind(toolbox *chat.Toolbox) *Kind {
	return &Kind{Timeout: toolTimeout, Run: func(ctx context.Context, call *Call) (Outcome, error) {
		var arguments json.RawMessage
		if given := call.Data["arguments"]; given != nil {
			var err error
			if arguments, err = json.Marshal(given); err != nil {
				return Outcome{}, agent.Invalid("arguments", "must be a JSON object")
			}
		}
		x, err := toolbox.Execute(
			chat.WithKey(ctx, call.Key),
			call.DB,
			call.Text("tool_id"),
			arguments,
		)
		if err != nil {
			return Outcome{}, err
		}
		if x.Error != nil {
			return Outcome{}, agent.Errorf(x.Error.Code, "%s", x.Error.Message)
		}
		return Outcome{Output: map[string]any{"result": x.Result}}, nil
	}}
}
