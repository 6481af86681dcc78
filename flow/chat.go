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
func chatRequest(c *Call) (x chat.Request, err error) {
	x = chat.Request{
		System:    c.Text("system_prompt"),
		Model:     c.Text("model"),
		MaxRounds: int(c.Number("max_steps", 0)),
		Messages:  []llm.Message{{Role: agent.MessageUser, Content: c.Text("prompt")}},
	}
	if t, ok := number(c.Data["temperature"]); ok {
		if t < 0 || t > 2 {
			return x, agent.Invalid("temperature", "must be from 0 to 2")
		}
		x.Temperature = &t
	}
	for key, choice := range map[string]*chat.Choice{"tools": &x.Tools, "sources": &x.Sources} {
		if v := c.Data[key]; v != nil {
			if raw, err := json.Marshal(v); err != nil || json.Unmarshal(raw, choice) != nil {
				return x, agent.Invalid(key, "must be a list of ids, true, or false")
			}
		}
	}
	if schema := c.Data["output_schema"]; schema != nil {
		if x.Schema, err = json.Marshal(schema); err != nil {
			return x, agent.Invalid("output_schema", "must be a valid JSON Schema")
		}
		return x, chat.CheckSchema("output_schema", x.Schema)
	}
	return x, nil
}
