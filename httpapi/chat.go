package httpapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	agentchat "satchel/agent/chat"
	"satchel/agent/llm"
	"satchel/httpapi/rest"
)

// chatTimeout bounds a whole turn, its tools and rounds included.
const chatTimeout = 10 * time.Minute

// choice is a list of ids, or true for all and false for none.
type choice = agentchat.Choice

type chatIn struct {
	Body struct {
		Message        string `json:"message" required:"true" doc:"What the person says; at most 100000 characters." example:"How do I get my money back?"`
		ConversationID string `json:"conversation_id,omitempty" doc:"Goes on with this conversation; a new one without it."`
		ContactID      string `json:"contact_id,omitempty" doc:"Of a new conversation."`
		Stream         bool   `json:"stream,omitempty" doc:"Answer as server-sent events: delta, tool_call, tool_result, sources, done, error."`
		Tools          choice `json:"tools,omitempty" types:"boolean,[]string" doc:"Ids of the tools that may be called; true for all (the default), false for none."`
		Sources        choice `json:"sources,omitempty" types:"boolean,[]string" doc:"Ids of the sources to look in; true for all (the default), false for none."`
	}
}

type chatMessage struct {
	ID        int64             `json:"id" example:"18"`
	Role      agent.MessageRole `json:"role" example:"assistant"`
	Content   string            `json:"content" example:"Send it back within 30 days [1]."`
	CreatedAt agent.Time        `json:"created_at" format:"date-time"`
}

type chatOut struct {
	ConversationID string               `json:"conversation_id" example:"conversation-06f1q2s3t4v5a6b7c8d9"`
	Message        chatMessage          `json:"message"`
	ToolCalls      []agentchat.ToolCall `json:"tool_calls"`
	Sources        []agentchat.Citation `json:"sources" doc:"The passages that the model was given, by the number that it cites."`
	Usage          llm.Usage            `json:"usage"`
}

// chatTurn answers a message, as one JSON answer or as a stream.
func (s *Server) chatTurn(c *rest.Call) error {
	in, err := rest.Bind[chatIn](c)
	if err != nil {
		return err
	}
	turn := agentchat.Turn{ConversationID: in.Body.ConversationID, ContactID: in.Body.ContactID, Message: in.Body.Message,
		Tools: in.Body.Tools, Sources: in.Body.Sources}
	if err := s.allowTime(c); err != nil {
		return err
	}
	if in.Body.Stream || strings.Contains(c.HTTP.Request().Header.Get(echo.HeaderAccept), rest.EventStream) {
		return s.streamTurn(c, turn)
	}
	message, answer, err := s.chat.Reply(c, c.DB, turn, nil)
	if err != nil {
		return err
	}
	return rest.WriteJSON(c.HTTP, http.StatusOK, chatOutOf(message, answer))
}

func chatOutOf(m agent.Message, a agentchat.Answer) chatOut {
	return chatOut{m.ConversationID, chatMessage{m.ID, m.Role, m.Content, m.CreatedAt}, a.ToolCalls, a.Sources, a.Usage}
}

// allowTime lets a turn take longer than other requests.
func (s *Server) allowTime(c *rest.Call) error {
	control := http.NewResponseController(c.HTTP.Response())
	until := time.Now().Add(chatTimeout + rest.WriteTimeout)
	if err := control.SetWriteDeadline(until); err != nil {
		return err
	}
	return control.SetReadDeadline(until)
}

// streamTurn tells what happens as it happens. The stream begins with the
// first event, so that a turn that fails before it has a plain error.
func (s *Server) streamTurn(c *rest.Call, turn agentchat.Turn) error {
	var out *rest.EventWriter
	stop := func() {}
	defer func() { stop() }()
	send := func(name string, data any) error {
		if out == nil {
			out = rest.NewEventWriter(c)
			stop = out.Beat()
		}
		return out.Event(name, data)
	}
	message, answer, err := s.chat.Reply(c, c.DB, turn, func(e agentchat.Event) error {
		switch {
		case e.ToolCall != nil:
			return send("tool_call", e.ToolCall)
		case e.ToolResult != nil:
			return send("tool_result", e.ToolResult)
		case e.Sources != nil:
			return send("sources", map[string]any{"sources": e.Sources})
		}
		return send("delta", map[string]any{"text": e.Delta})
	})
	if err != nil && out == nil {
		return err
	}
	if err != nil {
		s.note(c, err)
		return send("error", rest.BodyOf(rest.AsError(err)))
	}
	return send("done", chatOutOf(message, answer))
}
