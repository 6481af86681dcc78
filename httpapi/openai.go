package httpapi

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	"satchel/agent"
	agentchat "satchel/agent/chat"
	"satchel/agent/llm"
)

// An agent as a model of OpenAI's interface, so that any client of it can talk
// to one: https://platform.openai.com/docs/api-reference.

// openAIFault answers errors in OpenAI's shape.
func openAIFault(handle func(*Call) error) func(*Call) error {
	return func(c *Call) error {
		err := handle(c)
		if err == nil || c.echo.Response().Committed {
			return err
		}
		c.server.note(c, err)
		e := asError(err)
		return writeJSON(c.echo, statusOf(e.Code), openAIErrorOf(e))
	}
}

// openAIError has what OpenAI's clients look for beside what ours do.
type openAIError struct {
	Error struct {
		ErrorContent
		Type  string  `json:"type"`
		Param *string `json:"param"`
	} `json:"error"`
}

func openAIErrorOf(e *agent.Error) openAIError {
	var out openAIError
	out.Error.ErrorContent, out.Error.Type = errorBody(e).Error, "invalid_request_error"
	if statusOf(e.Code) >= 500 {
		out.Error.Type = "server_error"
	}
	if field, ok := e.Details["field"].(string); ok {
		out.Error.Param = &field
	}
	return out
}

type openAIModel struct {
	ID      string `json:"id" example:"support"`
	Object  string `json:"object" example:"model"`
	Created int64  `json:"created" example:"1767225600"`
	OwnedBy string `json:"owned_by" example:"satchel"`
}

type openAIModels struct {
	Object string        `json:"object" example:"list"`
	Data   []openAIModel `json:"data"`
}

func (s *Server) openAIModels(c *Call) error {
	a := c.DB.Agent()
	return writeJSON(c.echo, http.StatusOK, openAIModels{"list", []openAIModel{{a.Name, "model", a.CreatedAt.Unix(), "satchel"}}})
}

// text is a message's content: a text, or parts of which the texts count.
type text string

// UnmarshalJSON reads both forms; null is no text.
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
	for _, p := range parts {
		if p.Type != "text" {
			return fmt.Errorf("only parts of type text are read")
		}
		*t += text(p.Text)
	}
	return nil
}

type openAICall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id"`
	Type     string `json:"type" example:"function"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type openAIMessage struct {
	Role       string       `json:"role" example:"user"`
	Content    text         `json:"content" example:"How do I get my money back?"`
	ToolCalls  []openAICall `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
}

type openAITool struct {
	Type     string `json:"type" example:"function"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type openAIChatIn struct {
	Body struct {
		Model          string          `json:"model" doc:"Any name; the agent's own settings say which model answers." example:"support"`
		Messages       []openAIMessage `json:"messages" required:"true"`
		Stream         bool            `json:"stream,omitempty"`
		StreamOptions  json.RawMessage `json:"stream_options,omitempty" doc:"{include_usage}"`
		Temperature    *float64        `json:"temperature,omitempty" doc:"0 to 2."`
		MaxTokens      int             `json:"max_tokens,omitempty"`
		MaxCompletion  int             `json:"max_completion_tokens,omitempty"`
		Tools          []openAITool    `json:"tools,omitempty" doc:"Tools that the caller runs itself; with them the agent's own rest."`
		ToolChoice     json.RawMessage `json:"tool_choice,omitempty" doc:"none keeps the agent's own tools away too."`
		ResponseFormat json.RawMessage `json:"response_format,omitempty" doc:"{type: json_schema, json_schema: {schema}}"`
	}
}

type openAIChoice struct {
	Index        int            `json:"index"`
	Message      *openAIMessage `json:"message,omitempty"`
	Delta        map[string]any `json:"delta,omitempty"`
	FinishReason *string        `json:"finish_reason"`
}

type openAIUsage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
}

type openAIChatOut struct {
	ID      string         `json:"id" example:"chatcmpl-06f1q2s3t4v5a6b7c8d9"`
	Object  string         `json:"object" example:"chat.completion"`
	Created int64          `json:"created" example:"1767225600"`
	Model   string         `json:"model" example:"support"`
	Choices []openAIChoice `json:"choices"`
	Usage   *openAIUsage   `json:"usage,omitempty"`
}

// exchange reads a request of OpenAI's shape.
func (in *openAIChatIn) exchange() (agentchat.Exchange, error) {
	var x agentchat.Exchange
	var is agent.Issues
	b := in.Body
	is.Check(len(b.Messages) > 0, "messages", "must not be empty")
	for i, m := range b.Messages {
		one := llm.Message{Role: agent.MessageRole(m.Role), Content: string(m.Content), CallID: m.ToolCallID}
		if m.Role == "developer" {
			one.Role = agent.MessageSystem
		}
		for _, call := range m.ToolCalls {
			one.ToolCalls = append(one.ToolCalls, llm.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
		}
		switch one.Role {
		case agent.MessageUser, agent.MessageAssistant, agent.MessageSystem, agent.MessageTool:
		default:
			is.Add(fmt.Sprintf("messages[%d].role", i), "must be system, developer, user, assistant or tool")
		}
		x.Messages = append(x.Messages, one)
	}
	for i, t := range b.Tools {
		is.Check(t.Type == "function" && t.Function.Name != "", fmt.Sprintf("tools[%d]", i), "must be a function with a name")
		if len(t.Function.Parameters) == 0 {
			t.Function.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		x.Foreign = append(x.Foreign, llm.Tool{Name: t.Function.Name, Description: t.Function.Description, Parameters: t.Function.Parameters})
	}
	is.Check(b.Temperature == nil || *b.Temperature >= 0 && *b.Temperature <= 2, "temperature", "must be from 0 to 2")
	x.Temperature, x.MaxTokens = b.Temperature, max(b.MaxTokens, b.MaxCompletion)
	var tool string
	if json.Unmarshal(b.ToolChoice, &tool) == nil && tool == "none" {
		x.Foreign, x.Tools.None = nil, true
	}
	var format struct {
		Type   string `json:"type"`
		Schema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if len(b.ResponseFormat) > 0 && json.Unmarshal(b.ResponseFormat, &format) != nil {
		is.Add("response_format", "must be an object with a type")
	}
	switch format.Type {
	case "json_schema":
		x.Schema = format.Schema.Schema
	case "json_object":
		x.Schema = json.RawMessage(`{"type":"object"}`)
	}
	if err := is.Err(); err != nil || x.Schema == nil {
		return x, err
	}
	return x, agentchat.CheckSchema("response_format.json_schema.schema", x.Schema)
}

func (s *Server) openAIChat(c *Call) error {
	in, err := bindIn[openAIChatIn](c)
	if err != nil {
		return err
	}
	x, err := in.exchange()
	if err != nil {
		return err
	}
	if err := s.allowTime(c); err != nil {
		return err
	}
	out := openAIChatOut{ID: agent.NewID("chatcmpl"), Object: "chat.completion", Created: time.Now().Unix(), Model: in.Body.Model}
	if out.Model == "" {
		out.Model = c.DB.Agent().Name
	}
	if in.Body.Stream {
		var options struct {
			IncludeUsage bool `json:"include_usage"`
		}
		_ = json.Unmarshal(in.Body.StreamOptions, &options) // what is no object asks for nothing
		return s.streamOpenAI(c, x, out, options.IncludeUsage)
	}
	answer, err := s.chat.Complete(c, c.DB, x, nil)
	if err != nil {
		return err
	}
	message := &openAIMessage{Role: "assistant", Content: text(answer.Text), ToolCalls: openAICalls(answer.Foreign, false)}
	reason := finish(answer)
	out.Choices = []openAIChoice{{Message: message, FinishReason: &reason}}
	out.Usage = openAIUsageOf(answer.Usage)
	return writeJSON(c.echo, http.StatusOK, out)
}

func finish(a agentchat.Answer) string {
	switch {
	case len(a.Foreign) > 0:
		return "tool_calls"
	case a.Truncated:
		return "length"
	}
	return "stop"
}

func openAICalls(calls []llm.ToolCall, numbered bool) []openAICall {
	var list []openAICall
	for i, call := range calls {
		one := openAICall{ID: call.ID, Type: "function"}
		one.Function.Name, one.Function.Arguments = call.Name, call.Arguments
		if numbered {
			one.Index = &i
		}
		list = append(list, one)
	}
	return list
}

func openAIUsageOf(u llm.Usage) *openAIUsage {
	return &openAIUsage{u.Input, u.Output, u.Input + u.Output}
}

// streamOpenAI answers in chunks. Tools that the agent runs itself happen
// unseen, as they would inside a model.
func (s *Server) streamOpenAI(c *Call, x agentchat.Exchange, out openAIChatOut, usage bool) error {
	out.Object = "chat.completion.chunk"
	var to *eventWriter
	stop := func() {}
	defer func() { stop() }()
	send := func(delta map[string]any, reason *string) error {
		if to == nil {
			to = newEventWriter(c)
			stop = to.beat()
			delta["role"] = "assistant"
		}
		chunk := out
		chunk.Choices = []openAIChoice{{Delta: delta, FinishReason: reason}}
		return to.event("", chunk)
	}
	answer, err := s.chat.Complete(c, c.DB, x, func(e agentchat.Event) error {
		if e.Delta == "" {
			return nil
		}
		return send(map[string]any{"content": e.Delta}, nil)
	})
	if err != nil && to == nil {
		return err
	}
	if err != nil {
		s.note(c, err)
		return to.event("", openAIErrorOf(asError(err)))
	}
	if len(answer.Foreign) > 0 {
		if err := send(map[string]any{"tool_calls": openAICalls(answer.Foreign, true)}, nil); err != nil {
			return err
		}
	}
	reason := finish(answer)
	if err := send(map[string]any{}, &reason); err != nil {
		return err
	}
	if usage {
		chunk := out
		chunk.Choices, chunk.Usage = []openAIChoice{}, openAIUsageOf(answer.Usage)
		if err := to.event("", chunk); err != nil {
			return err
		}
	}
	return to.write("data: [DONE]\n\n")
}

// maxEmbedded bounds the texts of one embeddings request.
const maxEmbedded = 256

// texts is one text or several.
type texts []string

// UnmarshalJSON reads both forms.
func (t *texts) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = texts{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

type openAIEmbeddingsIn struct {
	Body struct {
		Model      string `json:"model" example:"support"`
		Input      texts  `json:"input" required:"true" doc:"A text or a list of up to 256."`
		Format     string `json:"encoding_format,omitempty" doc:"float (the default) or base64."`
		Dimensions int    `json:"dimensions,omitempty" doc:"The model's own length, or nothing."`
	}
}

type openAIEmbedding struct {
	Object    string `json:"object" example:"embedding"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding" doc:"Numbers, or their little-endian float32 bytes in base64."`
}

type openAIEmbeddingsOut struct {
	Object string            `json:"object" example:"list"`
	Model  string            `json:"model"`
	Data   []openAIEmbedding `json:"data"`
	Usage  openAIUsage       `json:"usage"`
}

func (s *Server) openAIEmbeddings(c *Call) error {
	in, err := bindIn[openAIEmbeddingsIn](c)
	if err != nil {
		return err
	}
	b := in.Body
	var is agent.Issues
	is.Check(len(b.Input) > 0 && len(b.Input) <= maxEmbedded, "input", "must be 1 to 256 texts")
	is.Check(b.Format == "" || b.Format == "float" || b.Format == "base64", "encoding_format", "must be float or base64")
	for _, one := range b.Input {
		is.Check(one != "" && len(one) <= agent.MaxMessageLength, "input", "must be texts of 1 to 100000 bytes")
	}
	if err := is.Err(); err != nil {
		return err
	}
	out := openAIEmbeddingsOut{Object: "list", Data: make([]openAIEmbedding, len(b.Input))}
	for i, one := range b.Input {
		vector, model, err := s.index.Embed(c, c.DB, one)
		if err != nil {
			return err
		}
		if b.Dimensions != 0 && b.Dimensions != len(vector) {
			return agent.Invalid("dimensions", fmt.Sprintf("must be %d or left out", len(vector)))
		}
		out.Model = model
		out.Data[i] = openAIEmbedding{"embedding", i, vector}
		if b.Format == "base64" {
			out.Data[i].Embedding = littleEndian(vector)
		}
		out.Usage.PromptTokens += int64(len(one)+3) / 4
	}
	out.Usage.TotalTokens = out.Usage.PromptTokens
	return writeJSON(c.echo, http.StatusOK, out)
}

func littleEndian(vector []float32) string {
	raw := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(raw)
}
