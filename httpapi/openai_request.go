package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"satchel/agent"
	agentchat "satchel/agent/chat"
	"satchel/agent/llm"
)

// text is a message's content: a text, or parts of which only the texts are
// used.
type text string

// UnmarshalJSON accepts both forms; null is empty.
func (t *text) UnmarshalJSON(data []byte) error {
	var plain *string
	if json.Unmarshal(data, &plain) == nil {
		if plain != nil {
			*t = text(*plain)
		}
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	var all strings.Builder
	for _, p := range parts {
		if p.Type != "text" {
			return fmt.Errorf("only parts of type text are read")
		}
		all.WriteString(p.Text)
	}
	*t = text(all.String())
	return nil
}

type openAICall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id" example:"call_1"`
	Type     string `json:"type" example:"function"`
	Function struct {
		Name      string `json:"name" example:"get_order"`
		Arguments string `json:"arguments" example:"{\"id\":17}"`
	} `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content,omitempty" types:"any" doc:"What Gemini requires back with the call's result."`
}

type openAIMessage struct {
	Role       string       `json:"role" example:"user"`
	Content    text         `json:"content,omitempty" types:"string,[]object,null" doc:"A text, or parts {type: text, text}." example:"\"How do I get my money back?\""`
	ToolCalls  []openAICall `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
}

type openAITool struct {
	Type     string `json:"type" example:"function"`
	Function struct {
		Name        string          `json:"name" example:"get_order"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	} `json:"function"`
}

type openAIChatIn struct {
	Body struct {
		Model          string          `json:"model,omitempty" doc:"Any name; the model is determined by the agent's settings." example:"support"`
		Messages       []openAIMessage `json:"messages" required:"true"`
		Stream         bool            `json:"stream,omitempty" nullable:"true"`
		StreamOptions  json.RawMessage `json:"stream_options,omitempty" types:"object,null" doc:"{include_usage}"`
		Temperature    *float64        `json:"temperature,omitempty" nullable:"true" doc:"0 to 2."`
		MaxTokens      int             `json:"max_tokens,omitempty" nullable:"true"`
		MaxCompletion  int             `json:"max_completion_tokens,omitempty" nullable:"true"`
		Stop           texts           `json:"stop,omitempty" types:"string,[]string,null" doc:"Up to 4 texts at which the answer ends."`
		N              *int            `json:"n,omitempty" nullable:"true" doc:"Must be 1 if set: there is one answer."`
		Logprobs       bool            `json:"logprobs,omitempty" nullable:"true" doc:"Must be false if set."`
		Modalities     []string        `json:"modalities,omitempty" nullable:"true" doc:"Must be [text] if set."`
		Tools          []openAITool    `json:"tools,omitempty" nullable:"true" doc:"Tools run by the caller. If set, the agent's own tools are not used."`
		ToolChoice     json.RawMessage `json:"tool_choice,omitempty" types:"string,object,null" doc:"auto, required, or one of the caller's functions; none also disables the agent's own tools."`
		Functions      json.RawMessage `json:"functions,omitempty" types:"any" deprecated:"true" doc:"Not supported; use tools."`
		ResponseFormat json.RawMessage `json:"response_format,omitempty" types:"object,null" doc:"{type: text, json_object or json_schema, json_schema: {schema}}"`
	}
}

// request converts a request of OpenAI's API. Unsupported fields are
// rejected; those that only tune an answer, such as seed, are ignored.
func (in *openAIChatIn) request() (agentchat.Request, error) {
	var x agentchat.Request
	var is agent.Issues
	body := in.Body
	x.Messages = readMessages(&is, body.Messages)
	for i, t := range body.Tools {
		is.Check(
			t.Type == "function" && t.Function.Name != "",
			fmt.Sprintf("tools[%d]", i),
			"must be a function with a name",
		)
		if len(t.Function.Parameters) == 0 {
			t.Function.Parameters = agent.NoParameters
		}
		x.ClientTools = append(x.ClientTools, llm.Tool{
			Name:        t.Function.Name,
			Description: t.Function.Description,
			Parameters:  t.Function.Parameters,
		})
	}
	is.Check(
		body.Temperature == nil || *body.Temperature >= 0 && *body.Temperature <= 2,
		"temperature",
		"must be from 0 to 2",
	)
	is.Check(body.MaxTokens >= 0, "max_tokens", "must be at least 1")
	is.Check(body.MaxCompletion >= 0, "max_completion_tokens", "must be at least 1")
	is.Check(body.N == nil || *body.N == 1, "n", "must be 1: an agent gives one answer")
	is.Check(!body.Logprobs, "logprobs", "must be false: an agent's answer has none")
	is.Check(
		!slices.ContainsFunc(body.Modalities, func(m string) bool { return m != "text" }),
		"modalities",
		"must be text alone",
	)
	is.Check(
		body.Functions == nil || string(body.Functions) == "null",
		"functions",
		"are the older form of tools: give tools",
	)
	is.Check(len(body.Stop) <= maxStops, "stop", "must be a text or up to 4")
	is.Check(!slices.Contains(body.Stop, ""), "stop", "must not be empty")
	x.Temperature, x.MaxTokens, x.Stop = body.Temperature, max(body.MaxTokens, body.MaxCompletion), body.Stop
	readToolChoice(&is, body.ToolChoice, &x)
	readFormat(&is, body.ResponseFormat, &x)
	if err := is.Err(); err != nil || x.Schema == nil {
		return x, err
	}
	return x, agentchat.CheckSchema("response_format.json_schema.schema", x.Schema)
}

// maxStops limits the stop sequences.
const maxStops = 4

func readMessages(is *agent.Issues, messages []openAIMessage) []llm.Message {
	is.Check(len(messages) > 0, "messages", "must not be empty")
	read := make([]llm.Message, 0, len(messages))
	for index, message := range messages {
		one := llm.Message{
			Role:    agent.MessageRole(message.Role),
			Content: string(message.Content),
			CallID:  message.ToolCallID,
		}
		if message.Role == "developer" {
			one.Role = agent.MessageSystem
		}
		for _, call := range message.ToolCalls {
			made := llm.ToolCall{
				ID:        call.ID,
				Name:      call.Function.Name,
				Arguments: call.Function.Arguments,
			}
			if call.ExtraContent != nil {
				made.Fields = map[string]json.RawMessage{"extra_content": call.ExtraContent}
			}
			one.ToolCalls = append(one.ToolCalls, made)
		}
		switch one.Role {
		case agent.MessageUser, agent.MessageAssistant, agent.MessageSystem, agent.MessageTool:
		default:
			is.Add(fmt.Sprintf("messages[%d].role", index), "must be system, developer, user, assistant or tool")
		}
		is.Check(
			one.Role != agent.MessageTool || one.CallID != "",
			fmt.Sprintf("messages[%d].tool_call_id", index),
			"must name the call that the message answers",
		)
		read = append(read, one)
	}
	return read
}

// readToolChoice parses none, auto, required, or one function of the tools.
func readToolChoice(is *agent.Issues, raw json.RawMessage, request *agentchat.Request) {
	var word string
	var one struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	switch {
	case len(raw) == 0 || string(raw) == "null":
	case json.Unmarshal(raw, &word) == nil && word == "none":
		request.ClientTools, request.Tools.None = nil, true
	case word == "auto":
	case word == "required" && len(request.ClientTools) > 0:
		request.ClientToolChoice = llm.AnyTool
	case word == "" && json.Unmarshal(raw, &one) == nil && one.Type == "function" &&
		slices.ContainsFunc(request.ClientTools, func(t llm.Tool) bool {
			return t.Name == one.Function.Name
		}):
		request.ClientToolChoice = one.Function.Name
	default:
		is.Add("tool_choice", "must be none or auto or, with tools, required or one of their functions")
	}
}

// readFormat parses the response format.
func readFormat(is *agent.Issues, raw json.RawMessage, request *agentchat.Request) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	var format struct {
		Type   string `json:"type"`
		Schema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	err := json.Unmarshal(raw, &format)
	switch {
	case err == nil && format.Type == "text":
	case err == nil && format.Type == "json_object":
		request.Schema = json.RawMessage(`{"type":"object"}`)
	case err == nil && format.Type == "json_schema":
		request.Schema = format.Schema.Schema
		is.Check(request.Schema != nil, "response_format.json_schema.schema", "is required")
	default:
		is.Add("response_format", "must be an object of type text, json_object or json_schema")
	}
}
