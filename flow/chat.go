package flow

import (
	"context"
	"encoding/json"
	"time"

	"satchel/agent"
	"satchel/agent/chat"
	"satchel/agent/llm"
)

// chatTimeout is the default time limit of a chat node.
const chatTimeout = 5 * time.Minute

// ChatKind returns the node type chat, which asks the agent's language model. In a
// conversation the model sees the history, and its answer is appended exactly
// once, however often the node is attempted.
func ChatKind(c *chat.Chat) *Kind {
	return &Kind{
		Timeout: chatTimeout,
		Check:   checkChat,
		Run: func(ctx context.Context, call *Call) (Outcome, error) {
			x, err := chatRequest(call)
			if err != nil {
				return Outcome{}, err
			}
			answer, err := c.Step(ctx, call.DB, call.Text("conversation_id"), call.Key, x)
			if err != nil {
				return Outcome{}, err
			}
			return Outcome{Output: map[string]any{
				"text":       answer.Text,
				"json":       answer.JSON,
				"tool_calls": answer.ToolCalls,
				"sources":    answer.Sources,
				"usage":      answer.Usage,
			}}, nil
		},
	}
}

func checkChat(data map[string]any) (field, issue string) {
	schema, ok := data["output_schema"].(map[string]any)
	if !ok {
		return "", ""
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return "data.output_schema", "must be a valid JSON Schema"
	}
	return issueOf(chat.CheckSchema("data.output_schema", raw))
}

// chatRequest builds the request to the model from a chat node's data.
func chatRequest(call *Call) (request chat.Request, err error) {
	request = chat.Request{
		System:    call.Text("system_prompt"),
		Model:     call.Text("model"),
		MaxRounds: int(call.Number("max_steps", 0)),
		Messages:  []llm.Message{{Role: agent.MessageUser, Content: call.Text("prompt")}},
	}
	if t, ok := number(call.Data["temperature"]); ok {
		if t < 0 || t > 2 {
			return request, agent.Invalid("temperature", "must be from 0 to 2")
		}
		request.Temperature = &t
	}
	for key, choice := range map[string]*chat.Choice{"tools": &request.Tools, "sources": &request.Sources} {
		if v := call.Data[key]; v != nil {
			if raw, err := json.Marshal(v); err != nil || json.Unmarshal(raw, choice) != nil {
				return request, agent.Invalid(key, "must be a list of ids, true, or false")
			}
		}
	}
	if schema := call.Data["output_schema"]; schema != nil {
		if request.Schema, err = json.Marshal(schema); err != nil {
			return request, agent.Invalid("output_schema", "must be a valid JSON Schema")
		}
		return request, chat.CheckSchema("output_schema", request.Schema)
	}
	return request, nil
}
