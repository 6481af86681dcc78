package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"satchel/agent"
	agentchat "satchel/agent/chat"
	"satchel/agent/llm"
	"satchel/httpapi/rest"
)

type openAIChoice struct {
	Index        int        `json:"index"`
	Message      openAISaid `json:"message"`
	FinishReason string     `json:"finish_reason" example:"stop"`
}

type openAISaid struct {
	Role      string       `json:"role" example:"assistant"`
	Content   *string      `json:"content" nullable:"true" doc:"null if there are only tool calls." example:"Bring it back within two days."`
	ToolCalls []openAICall `json:"tool_calls,omitempty"`
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
	Usage   openAIUsage    `json:"usage"`

	PendingSources []agent.PendingSource `json:"pending_sources,omitempty" doc:"Not in OpenAI's API: sources that were still being read, so that the answer may lack what they say."`
}

func (s *Server) openAIChat(call *rest.Call) error {
	in, err := rest.Bind[openAIChatIn](call)
	if err != nil {
		return err
	}
	request, err := in.request()
	if err != nil {
		return err
	}
	if err := s.extendTimeLimits(call); err != nil {
		return err
	}
	out := openAIChatOut{
		ID:      agent.NewID("chatcmpl"),
		Object:  "chat.completion",
		Created: time.Now().Unix(),
		Model:   in.Body.Model,
	}
	if out.Model == "" {
		out.Model = call.DB.Agent().Name
	}
	if in.Body.Stream {
		var options struct {
			IncludeUsage bool `json:"include_usage"`
		}
		_ = json.Unmarshal(in.Body.StreamOptions, &options) // invalid options are ignored
		return s.streamOpenAI(
			call,
			request,
			openAIChunk{
				ID:      out.ID,
				Object:  "chat.completion.chunk",
				Created: out.Created,
				Model:   out.Model,
			},
			options.IncludeUsage,
		)
	}
	answer, err := s.chat.Complete(call, call.DB, request, nil)
	if err != nil {
		return err
	}
	message := openAISaid{Role: "assistant", ToolCalls: openAICalls(answer.ClientCalls, false)}
	if answer.Text != "" || len(answer.ClientCalls) == 0 {
		message.Content = &answer.Text
	}
	out.Choices = []openAIChoice{{Message: message, FinishReason: finish(answer)}}
	out.Usage, out.PendingSources = openAIUsageOf(answer.Usage), answer.Pending
	return rest.WriteJSON(call.HTTP, http.StatusOK, out)
}

func finish(a agentchat.Answer) string {
	switch {
	case len(a.ClientCalls) > 0:
		return "tool_calls"
	case a.Truncated:
		return "length"
	}
	return "stop"
}

func openAICalls(calls []llm.ToolCall, numbered bool) []openAICall {
	var list []openAICall
	for i, call := range calls {
		one := openAICall{
			ID:           call.ID,
			Type:         "function",
			ExtraContent: call.Fields["extra_content"],
		}
		one.Function.Name, one.Function.Arguments = call.Name, call.Arguments
		if numbered {
			one.Index = &i
		}
		list = append(list, one)
	}
	return list
}

func openAIUsageOf(u llm.Usage) openAIUsage {
	return openAIUsage{u.Input, u.Output, u.Input + u.Output}
}
