package httpapi

import (
	"satchel/agent"
	agentchat "satchel/agent/chat"
	"satchel/httpapi/rest"
)

// openAIChunk is a chunk of a streamed answer.
type openAIChunk struct {
	ID      string        `json:"id"`
	Object  string        `json:"object"`
	Created int64         `json:"created"`
	Model   string        `json:"model"`
	Choices []openAIPiece `json:"choices"`
	Usage   *openAIUsage  `json:"usage,omitempty"`

	PendingSources []agent.PendingSource `json:"pending_sources,omitempty"` // with the reason for the end
}

type openAIPiece struct {
	Index        int         `json:"index"`
	Delta        openAIDelta `json:"delta"`
	FinishReason *string     `json:"finish_reason"`
}

type openAIDelta struct {
	Role      string       `json:"role,omitempty"`
	Content   string       `json:"content,omitempty"`
	ToolCalls []openAICall `json:"tool_calls,omitempty"`
}

// streamOpenAI streams chunks based on request. The agent's own tool calls are not
// shown.
func (s *Server) streamOpenAI(call *rest.Call, request agentchat.Request, chunk openAIChunk, usage bool) error {
	var to *rest.EventWriter
	stop := func() {}
	defer func() { stop() }()
	send := func(delta openAIDelta, reason *string) error {
		if to == nil {
			to = rest.NewEventWriter(call)
			stop = to.Heartbeat()
			delta.Role = "assistant"
		}
		chunk.Choices = []openAIPiece{{Delta: delta, FinishReason: reason}}
		return to.Event("", chunk)
	}
	answer, err := s.chat.Complete(call, call.DB, request, func(e agentchat.Event) error {
		if e.Delta == "" {
			return nil
		}
		return send(openAIDelta{Content: e.Delta}, nil)
	})
	if err != nil && to == nil {
		return err
	}
	if err != nil {
		s.logError(call, err)
		return to.Event("", openAIErrorOf(rest.AsError(rest.Reason(call, err))))
	}
	if len(answer.ClientCalls) > 0 {
		if err := send(openAIDelta{ToolCalls: openAICalls(answer.ClientCalls, true)}, nil); err != nil {
			return err
		}
	}
	reason := finish(answer)
	chunk.PendingSources = answer.Pending
	if err := send(openAIDelta{}, &reason); err != nil {
		return err
	}
	if usage {
		spent := openAIUsageOf(answer.Usage)
		chunk.Choices, chunk.Usage = []openAIPiece{}, &spent
		if err := to.Event("", chunk); err != nil {
			return err
		}
	}
	return to.Write("data: [DONE]\n\n")
}
