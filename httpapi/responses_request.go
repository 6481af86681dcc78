package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"satchel/agent"
	agentchat "satchel/agent/chat"
	"satchel/agent/llm"
	"satchel/httpapi/rest"
)

type responseTool struct {
	Type        string          `json:"type" example:"function"`
	Name        string          `json:"name" example:"get_order"`
	Description *string         `json:"description" required:"false" nullable:"true"`
	Parameters  json.RawMessage `json:"parameters" required:"false" types:"object,null"`
	Strict      *bool           `json:"strict" required:"false" nullable:"true"`
}

type responseText struct {
	Format json.RawMessage `json:"format,omitempty" types:"object,null" doc:"{type: text, json_object or json_schema, schema}"`
}

type responseIn struct {
	Body struct {
		Model           string            `json:"model,omitempty" doc:"Any name; the model is determined by the agent's settings." example:"support"`
		Input           json.RawMessage   `json:"input" required:"true" types:"string,[]object" doc:"A text, or items: message, function_call, function_call_output, item_reference; reasoning is ignored." sample:"\"How do I get my money back?\""`
		Instructions    *string           `json:"instructions,omitempty" nullable:"true" doc:"A system message before the input. Those of earlier responses do not count."`
		Tools           []responseTool    `json:"tools,omitempty" nullable:"true" doc:"Functions run by the caller. If set, the agent's own tools are not used."`
		ToolChoice      json.RawMessage   `json:"tool_choice,omitempty" types:"string,object,null" doc:"auto, required, or one of the functions; none also disables the agent's own tools."`
		Text            responseText      `json:"text,omitzero"`
		Temperature     *float64          `json:"temperature,omitempty" nullable:"true" doc:"0 to 2."`
		MaxOutputTokens *int              `json:"max_output_tokens,omitempty" nullable:"true"`
		Stream          bool              `json:"stream,omitempty" nullable:"true"`
		Store           *bool             `json:"store,omitempty" nullable:"true" doc:"Default: true. A response is kept for 7 days, to be continued, read and referred to."`
		PreviousID      string            `json:"previous_response_id,omitempty" nullable:"true" doc:"A kept response that this one continues."`
		Metadata        map[string]string `json:"metadata,omitempty" nullable:"true" doc:"Up to 16 texts of 512 characters."`
		Background      bool              `json:"background,omitempty" nullable:"true" doc:"Must be false if set."`
		Conversation    json.RawMessage   `json:"conversation,omitempty" types:"any" doc:"Not supported."`
		Prompt          json.RawMessage   `json:"prompt,omitempty" types:"any" doc:"Not supported."`
	}
}

func (in *responseIn) stores() bool {
	return in.Body.Store == nil || *in.Body.Store
}

// chatRequest converts a request to an exchange, and returns the items of its
// input with references resolved.
func (s *Server) chatRequest(call *rest.Call, in *responseIn) (agentchat.Request, []json.RawMessage, error) {
	request, err := in.request()
	if err != nil {
		return request, nil, err
	}
	r := responseReader{server: s, call: call}
	if in.Body.PreviousID != "" {
		if err := r.readChain(in.Body.PreviousID); err != nil {
			return request, nil, err
		}
	}
	input, err := r.readInput(in.Body.Input)
	if err != nil {
		return request, nil, err
	}
	if text := in.Body.Instructions; text != nil && *text != "" {
		request.Messages = append(request.Messages, llm.Message{Role: agent.MessageSystem, Content: *text})
	}
	request.Messages = append(request.Messages, r.messages...)
	return request, input, nil
}

// request converts everything except the input.
func (in *responseIn) request() (agentchat.Request, error) {
	var x agentchat.Request
	var is agent.Issues
	body := in.Body
	for i, t := range body.Tools {
		is.Check(t.Type == "function" && t.Name != "", fmt.Sprintf("tools[%d]", i), "must be a function with a name")
		tool := llm.Tool{Name: t.Name, Parameters: t.Parameters}
		if t.Description != nil {
			tool.Description = *t.Description
		}
		if len(tool.Parameters) == 0 || string(tool.Parameters) == "null" {
			tool.Parameters = agent.NoParameters
		}
		x.ClientTools = append(x.ClientTools, tool)
	}
	isNull := func(raw json.RawMessage) bool {
		return len(raw) == 0 || string(raw) == "null"
	}
	is.Check(!body.Background, "background", "must be false: a response is answered at once")
	is.Check(isNull(body.Conversation), "conversation", "is not supported: use previous_response_id")
	is.Check(isNull(body.Prompt), "prompt", "is not supported: prompts belong to the agent")
	is.Check(
		body.Temperature == nil || *body.Temperature >= 0 && *body.Temperature <= 2,
		"temperature",
		"must be from 0 to 2",
	)
	is.Check(body.MaxOutputTokens == nil || *body.MaxOutputTokens >= 1, "max_output_tokens", "must be at least 1")
	is.Check(len(body.Metadata) <= 16, "metadata", "must have at most 16 items")
	for name, value := range body.Metadata {
		is.Check(
			utf8.RuneCountInString(name) <= 64 && utf8.RuneCountInString(value) <= 512,
			"metadata."+agent.Clip(name, 64),
			"must be a text of at most 512 characters, with a name of at most 64",
		)
	}
	x.Temperature = body.Temperature
	if body.MaxOutputTokens != nil {
		x.MaxTokens = *body.MaxOutputTokens
	}
	readToolChoice(&is, nestedChoice(body.ToolChoice), &x)
	readTextFormat(&is, body.Text.Format, &x)
	if err := is.Err(); err != nil || x.Schema == nil {
		return x, err
	}
	return x, agentchat.CheckSchema("text.format.schema", x.Schema)
}

// nestedChoice converts the choice of a function to the form that chat completions use.
func nestedChoice(raw json.RawMessage) json.RawMessage {
	var one struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	if json.Unmarshal(raw, &one) != nil || one.Type != "function" {
		return raw
	}
	// strings can always be encoded
	nested, _ := json.Marshal(map[string]any{"type": one.Type, "function": map[string]string{"name": one.Name}})
	return nested
}

// readTextFormat parses the format of the answer.
func readTextFormat(is *agent.Issues, raw json.RawMessage, request *agentchat.Request) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	var format struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"`
	}
	err := json.Unmarshal(raw, &format)
	switch {
	case err == nil && format.Type == "text":
	case err == nil && format.Type == "json_object":
		request.Schema = json.RawMessage(`{"type":"object"}`)
	case err == nil && format.Type == "json_schema":
		request.Schema = format.Schema
		is.Check(request.Schema != nil, "text.format.schema", "is required")
	default:
		is.Add("text.format", "must be an object of type text, json_object or json_schema")
	}
}

// responseReader converts items to messages for a model.
type responseReader struct {
	server   *Server
	call     *rest.Call
	messages []llm.Message
}

// inputItem is an item of an input or an output.
type inputItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// readChain reads the response that the request continues, and those before it.
func (r *responseReader) readChain(id string) error {
	chain, whole, err := r.call.DB.ResponseChain(r.call, id)
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return agent.Invalid("previous_response_id", "names a response that is not kept")
	}
	if err != nil {
		return err
	}
	for _, kept := range chain {
		var output struct {
			Output []json.RawMessage `json:"output"`
		}
		var input []json.RawMessage
		if json.Unmarshal(kept.Input, &input) != nil || json.Unmarshal(kept.Body, &output) != nil {
			continue
		}
		for i, raw := range append(input, output.Output...) {
			if _, err := r.readItem(i, raw); err != nil {
				return err
			}
		}
	}
	if !whole { // the first messages may be outputs of missing calls
		first := slices.IndexFunc(r.messages, func(m llm.Message) bool {
			return m.Role == agent.MessageUser
		})
		r.messages = r.messages[max(first, 0):]
	}
	return nil
}

// readInput reads the input of a request.
func (r *responseReader) readInput(raw json.RawMessage) ([]json.RawMessage, error) {
	var plain string
	if json.Unmarshal(raw, &plain) == nil {
		item, err := json.Marshal(map[string]any{
			"type":    "message",
			"role":    "user",
			"content": plain,
		})
		if err != nil {
			return nil, err
		}
		r.messages = append(r.messages, llm.Message{Role: agent.MessageUser, Content: plain})
		return []json.RawMessage{item}, nil
	}
	var items, read []json.RawMessage
	if json.Unmarshal(raw, &items) != nil || len(items) == 0 {
		return nil, agent.Invalid("input", "must be a text or a list of items")
	}
	for i, item := range items {
		resolved, err := r.readItem(i, item)
		if err != nil {
			return nil, err
		}
		if resolved != nil {
			read = append(read, resolved)
		}
	}
	return append([]json.RawMessage{}, read...), r.checkCalls()
}

// checkCalls refuses an output whose call is missing.
func (r *responseReader) checkCalls() error {
	calls := map[string]bool{}
	for _, m := range r.messages {
		for _, call := range m.ToolCalls {
			calls[call.ID] = true
		}
		if m.Role == agent.MessageTool && !calls[m.CallID] {
			return agent.Invalid(
				"input",
				fmt.Sprintf("has an output for the call %q, which is nowhere", agent.Clip(m.CallID, 100)),
			)
		}
	}
	return nil
}

// readItem reads an item and returns it in the form in which it is kept, or nil
// for one that is ignored.
func (r *responseReader) readItem(index int, raw json.RawMessage) (json.RawMessage, error) {
	at := fmt.Sprintf("input[%d]", index)
	var item inputItem
	if json.Unmarshal(raw, &item) != nil {
		return nil, agent.Invalid(at, "must be an item")
	}
	switch {
	case item.Type == "message" || item.Type == "" && item.Role != "":
		return raw, r.readMessage(at, item)
	case item.Type == "function_call":
		r.addCall(llm.ToolCall{
			ID:        item.CallID,
			Name:      item.Name,
			Arguments: item.Arguments,
		})
		return raw, required(at, map[string]string{"call_id": item.CallID, "name": item.Name})
	case item.Type == "function_call_output":
		var output responseInputText
		if len(item.Output) == 0 || json.Unmarshal(item.Output, &output) != nil {
			return nil, agent.Invalid(at+".output", "must be a text or parts of type input_text")
		}
		r.messages = append(r.messages, llm.Message{
			Role:    agent.MessageTool,
			CallID:  item.CallID,
			Content: string(output),
		})
		return raw, required(at, map[string]string{"call_id": item.CallID})
	case item.Type == "item_reference" || item.Type == "" && item.ID != "":
		referred, err := r.referred(at, item.ID)
		if err != nil {
			return nil, err
		}
		return r.readItem(index, referred)
	case item.Type == "reasoning":
		return nil, nil
	}
	return nil, agent.Invalid(
		at+".type",
		"must be message, function_call, function_call_output, item_reference or reasoning",
	)
}

func required(at string, fields map[string]string) error {
	var is agent.Issues
	for name, value := range fields {
		is.Check(value != "", at+"."+name, "is required")
	}
	return is.Err()
}

func (r *responseReader) readMessage(at string, item inputItem) error {
	var content responseInputText
	if json.Unmarshal(item.Content, &content) != nil {
		return agent.Invalid(at+".content", "must be a text or parts of type input_text, output_text or refusal")
	}
	role := agent.MessageRole(item.Role)
	if role == "developer" {
		role = agent.MessageSystem
	}
	if role != agent.MessageUser && role != agent.MessageAssistant && role != agent.MessageSystem {
		return agent.Invalid(at+".role", "must be user, assistant, system or developer")
	}
	r.messages = append(r.messages, llm.Message{Role: role, Content: string(content)})
	return nil
}

// addCall adds a call to the assistant's message, starting one if needed.
func (r *responseReader) addCall(call llm.ToolCall) {
	if n := len(r.messages); n > 0 && r.messages[n-1].Role == agent.MessageAssistant {
		r.messages[n-1].ToolCalls = append(r.messages[n-1].ToolCalls, call)
		return
	}
	r.messages = append(r.messages, llm.Message{Role: agent.MessageAssistant, ToolCalls: []llm.ToolCall{call}})
}

// referred returns an item of a stored response, whose id is part of the item's.
func (r *responseReader) referred(at, id string) (json.RawMessage, error) {
	unknown := agent.Invalid(at+".id", "names no item of a response that is kept; send the item itself")
	token, ok := strings.CutPrefix(id, messagePrefix)
	if !ok {
		token, ok = strings.CutPrefix(id, callPrefix)
		token, _, _ = strings.Cut(token, "_")
	}
	if !ok || token == "" {
		return nil, unknown
	}
	kept, err := r.call.DB.Response(r.call, responsePrefix+token)
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return nil, unknown
	}
	var body struct {
		Output []json.RawMessage `json:"output"`
	}
	if err != nil || json.Unmarshal(kept.Body, &body) != nil {
		return nil, err
	}
	for _, raw := range body.Output {
		var item inputItem
		if json.Unmarshal(raw, &item) == nil && item.ID == id {
			return raw, nil
		}
	}
	return nil, unknown
}

// responseInputText is a string, or a list of parts that are all text.
type responseInputText string

// UnmarshalJSON accepts both forms.
func (t *responseInputText) UnmarshalJSON(data []byte) error {
	var plain string
	if json.Unmarshal(data, &plain) == nil {
		*t = responseInputText(plain)
		return nil
	}
	var parts []struct{ Type, Text, Refusal string }
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	var all strings.Builder
	for _, p := range parts {
		if !slices.Contains([]string{"input_text", "output_text", "text", "refusal"}, p.Type) {
			return fmt.Errorf("only texts are read")
		}
		all.WriteString(p.Text + p.Refusal)
	}
	*t = responseInputText(all.String())
	return nil
}
