package httpapi

import (
	"net/http"
	"regexp"
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
		Message        string `json:"message,omitempty" doc:"What the person says; at most 100000 characters. Needed but with retry_of." example:"How do I get my money back?"`
		ConversationID string `json:"conversation_id,omitempty" doc:"Goes on with this conversation; a new one without it."`
		ContactID      string `json:"contact_id,omitempty" doc:"Of a new conversation."`
		Stream         bool   `json:"stream,omitempty" doc:"Answer as server-sent events: delta, tool_call, tool_result, sources, done, error."`
		Tools          choice `json:"tools,omitempty" types:"boolean,[]string" doc:"Ids of the tools that may be called; true for all (the default), false for none."`
		Sources        choice `json:"sources,omitempty" types:"boolean,[]string" doc:"Ids of the sources to look in; true for all (the default), false for none."`
		Model          string `json:"model,omitempty" doc:"In place of llm_model, for this turn; sent to the provider as it is." example:"gpt-5-mini"`
		Fallback       string `json:"fallback,omitempty" enum:"passages" doc:"passages: without a language model, answer with what the knowledge says; else that is a 400." example:"passages"`
		RetryOf        int64  `json:"retry_of,omitempty" doc:"Id of an answer: the same message is answered once more, and message is not read. Both answers are kept." example:"18"`
		RunID          string `json:"run_id,omitempty" doc:"An id of the client's own, 8 to 64 letters, digits and hyphens: with it the turn goes on when the connection ends." pattern:"^[A-Za-z0-9-]{8,64}$" example:"7f3a2c1e-0b5d"`
	}
}

// runIDs are the ids that a client may give a turn.
var runIDs = regexp.MustCompile(`^[A-Za-z0-9-]{8,64}$`)

// turn is what is asked for, checked.
func (in *chatIn) turn() (agentchat.Turn, error) {
	b := &in.Body
	var is agent.Issues
	is.Check(b.Fallback == "" || b.Fallback == string(agentchat.ModePassages), "fallback", "must be passages")
	is.Check(len(b.Model) <= 200, "model", "must have at most 200 bytes")
	is.Check(b.RetryOf >= 0, "retry_of", "must be the id of an answer")
	is.Check(b.RunID == "" || runIDs.MatchString(b.RunID), "run_id", "must have 8 to 64 letters, digits and hyphens")
	return agentchat.Turn{ConversationID: b.ConversationID, ContactID: b.ContactID, Message: b.Message, RetryOf: b.RetryOf,
		Model: b.Model, Fallback: agentchat.Mode(b.Fallback), Tools: b.Tools, Sources: b.Sources}, is.Err()
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
	Mode           agentchat.Mode       `json:"mode,omitempty" enum:"passages" doc:"passages: no language model is set up, and sources are the answer." example:"passages"`
	Partial        bool                 `json:"partial,omitempty" doc:"The turn was stopped, and this is what it had said." example:"true"`
}

// chatTurn answers a message, as one JSON answer or as a stream.
func (s *Server) chatTurn(c *rest.Call) error {
	in, err := rest.Bind[chatIn](c)
	if err != nil {
		return err
	}
	turn, err := in.turn()
	if err != nil {
		return err
	}
	if err := s.allowTime(c); err != nil {
		return err
	}
	stream := in.Body.Stream || strings.Contains(c.HTTP.Request().Header.Get(echo.HeaderAccept), rest.EventStream)
	switch {
	case in.Body.RunID != "":
		return s.runTurn(c, turn, in.Body.RunID, stream)
	case stream:
		return s.streamTurn(c, turn)
	}
	message, answer, err := s.chat.Reply(c, c.DB, turn, nil)
	if err != nil {
		return err
	}
	return rest.WriteJSON(c.HTTP, http.StatusOK, chatOutOf(message, answer))
}

func chatOutOf(m agent.Message, a agentchat.Answer) chatOut {
	return chatOut{ConversationID: m.ConversationID, Message: chatMessage{m.ID, m.Role, m.Content, m.CreatedAt},
		ToolCalls: a.ToolCalls, Sources: a.Sources, Usage: a.Usage, Mode: a.Mode}
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

// The events of a turn's stream.
const (
	eventDelta      = "delta"
	eventToolCall   = "tool_call"
	eventToolResult = "tool_result"
	eventSources    = "sources"
	eventDone       = "done"
	eventError      = "error"
)

// streamed is what happens in a turn as an event of its stream.
func streamed(e agentchat.Event) (name string, data any) {
	switch {
	case e.ToolCall != nil:
		return eventToolCall, e.ToolCall
	case e.ToolResult != nil:
		return eventToolResult, e.ToolResult
	case e.Sources != nil:
		return eventSources, map[string]any{"sources": e.Sources}
	}
	return eventDelta, map[string]any{"text": e.Delta}
}

// lateStream is a stream that begins with its first event, so that what fails
// before it has a plain error.
type lateStream struct {
	call *rest.Call
	out  *rest.EventWriter
	stop func()
}

func (l *lateStream) send(name string, data any) error {
	if l.out == nil {
		l.out = rest.NewEventWriter(l.call)
		l.stop = l.out.Beat()
	}
	return l.out.Event(name, data)
}

func (l *lateStream) close() {
	if l.stop != nil {
		l.stop()
	}
}

// streamTurn tells what happens as it happens.
func (s *Server) streamTurn(c *rest.Call, turn agentchat.Turn) error {
	out := &lateStream{call: c}
	defer out.close()
	message, answer, err := s.chat.Reply(c, c.DB, turn, func(e agentchat.Event) error { return out.send(streamed(e)) })
	if err != nil && out.out == nil {
		return err
	}
	if err != nil {
		s.note(c, err)
		return out.send(eventError, rest.BodyOf(rest.AsError(err)))
	}
	return out.send(eventDone, chatOutOf(message, answer))
}
