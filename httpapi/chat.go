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

// chatTimeout limits a whole turn, including its tool calls.
const chatTimeout = 10 * time.Minute

// choice is a list of ids, or true for all and false for none.
type choice = agentchat.Choice

type chatIn struct {
	Body struct {
		Message        string   `json:"message,omitempty" doc:"The user's message, at most 100000 characters. Required unless retry_of is set." example:"How do I get my money back?"`
		ConversationID string   `json:"conversation_id,omitempty" doc:"The conversation to continue. Default: a new one."`
		ContactID      string   `json:"contact_id,omitempty" doc:"Contact of a new conversation."`
		Stream         bool     `json:"stream,omitempty" doc:"Answer as server-sent events: waiting, delta, tool_call, tool_result, sources, done, error."`
		Tools          choice   `json:"tools,omitempty" types:"boolean,[]string" doc:"Ids of the tools that may be called, true for all, or false for none. Default: true."`
		Sources        choice   `json:"sources,omitempty" types:"boolean,[]string" doc:"Ids of the sources to search, true for all, or false for none. Default: true."`
		WaitFor        []string `json:"wait_for,omitempty" doc:"Ids of sources, at most 100, that are read before the search if that takes no longer than 60 seconds. Ids of sources that do not exist are ignored."`
		Model          string   `json:"model,omitempty" doc:"Replaces llm_model for this turn; passed to the provider unchanged." example:"gpt-5-mini"`
		Fallback       string   `json:"fallback,omitempty" enum:"passages" doc:"passages: without a language model, answer with passages of the knowledge. Otherwise that is an error 400." example:"passages"`
		RetryOf        int64    `json:"retry_of,omitempty" doc:"Id of an answer to generate again. message is ignored. Both answers are kept." example:"18"`
		RunID          string   `json:"run_id,omitempty" doc:"An id chosen by the client: 8 to 64 letters, digits and hyphens. With it the turn continues if the connection is lost." pattern:"^[A-Za-z0-9-]{8,64}$" example:"7f3a2c1e-0b5d"`
	}
}

// runIDs matches the ids that clients may give a turn.
var runIDs = regexp.MustCompile(`^[A-Za-z0-9-]{8,64}$`)

// turn validates and converts the request.
func (in *chatIn) turn() (agentchat.Turn, error) {
	body := &in.Body
	var is agent.Issues
	is.Check(body.Fallback == "" || body.Fallback == string(agentchat.ModePassages), "fallback", "must be passages")
	is.Check(len(body.WaitFor) <= 100, "wait_for", "must have at most 100 ids")
	is.Check(len(body.Model) <= 200, "model", "must have at most 200 bytes")
	is.Check(body.RetryOf >= 0, "retry_of", "must be the id of an answer")
	is.Check(
		body.RunID == "" || runIDs.MatchString(body.RunID),
		"run_id",
		"must have 8 to 64 letters, digits and hyphens",
	)
	return agentchat.Turn{
		ConversationID: body.ConversationID,
		ContactID:      body.ContactID,
		Message:        body.Message,
		RetryOf:        body.RetryOf,
		Model:          body.Model,
		Fallback:       agentchat.Mode(body.Fallback),
		Tools:          body.Tools,
		Sources:        body.Sources,
		WaitFor:        body.WaitFor,
	}, is.Err()
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
	Sources        []agentchat.Citation `json:"sources" doc:"The passages passed to the model, with the numbers that it cites."`
	Queries        []string             `json:"queries,omitempty" doc:"What was searched for, if the model turned the conversation into queries." example:"[\"opening hours on Sundays\"]"`
	Usage          llm.Usage            `json:"usage"`
	Mode           agentchat.Mode       `json:"mode,omitempty" enum:"passages" doc:"passages: there is no language model, and sources are the answer." example:"passages"`
	Partial        bool                 `json:"partial,omitempty" doc:"The turn was stopped; this is its text so far." example:"true"`

	PendingSources []agent.PendingSource `json:"pending_sources,omitempty" doc:"Sources that were still being read, so that the answer may lack what they say: up to 20, newest first."`
}

// chatTurn answers a message with JSON or a stream.
func (s *Server) chatTurn(call *rest.Call) error {
	in, err := rest.Bind[chatIn](call)
	if err != nil {
		return err
	}
	turn, err := in.turn()
	if err != nil {
		return err
	}
	if err := s.extendTimeLimits(call); err != nil {
		return err
	}
	stream := in.Body.Stream || strings.Contains(call.HTTP.Request().Header.Get(echo.HeaderAccept), rest.EventStream)
	switch {
	case in.Body.RunID != "":
		return s.runTurn(call, turn, in.Body.RunID, stream)
	case stream:
		return s.streamTurn(call, turn)
	}
	message, answer, err := s.chat.Reply(call, call.DB, turn, nil)
	if err != nil {
		return err
	}
	return rest.WriteJSON(call.HTTP, http.StatusOK, chatOutOf(message, answer))
}

func chatOutOf(message agent.Message, answer agentchat.Answer) chatOut {
	return chatOut{
		ConversationID: message.ConversationID,
		Message: chatMessage{
			ID:        message.ID,
			Role:      message.Role,
			Content:   message.Content,
			CreatedAt: message.CreatedAt,
		},
		ToolCalls:      answer.ToolCalls,
		Sources:        answer.Sources,
		Queries:        answer.Queries,
		Usage:          answer.Usage,
		Mode:           answer.Mode,
		PendingSources: answer.Pending,
	}
}

// extendTimeLimits extends the time limits of a request to those of a turn. The body is
// decoded by then, and its memory is not held during the turn.
func (s *Server) extendTimeLimits(c *rest.Call) error {
	c.Body.Release()
	control := http.NewResponseController(c.HTTP.Response())
	until := time.Now().Add(chatTimeout + rest.WriteTimeout)
	if err := control.SetWriteDeadline(until); err != nil {
		return err
	}
	return control.SetReadDeadline(until)
}

// The events of a turn's stream.
const (
	eventWaiting    = "waiting"
	eventDelta      = "delta"
	eventToolCall   = "tool_call"
	eventToolResult = "tool_result"
	eventSources    = "sources"
	eventDone       = "done"
	eventError      = "error"
)

// sourcesEvent is the data of the event sources.
type sourcesEvent struct {
	Sources []agentchat.Citation `json:"sources"`
	Queries []string             `json:"queries,omitempty"`
}

// streamEvent returns the name and data of a turn's event in the stream.
func streamEvent(e agentchat.Event) (name string, data any) {
	switch {
	case e.Pending != nil:
		return eventWaiting, map[string]any{"pending_sources": e.Pending}
	case e.ToolCall != nil:
		return eventToolCall, e.ToolCall
	case e.ToolResult != nil:
		return eventToolResult, e.ToolResult
	case e.Sources != nil:
		return eventSources, sourcesEvent{e.Sources, e.Queries}
	}
	return eventDelta, map[string]any{"text": e.Delta}
}

// lazyStream is a stream that starts with its first event, so that earlier errors are
// ordinary error responses.
type lazyStream struct {
	call *rest.Call
	out  *rest.EventWriter
	stop func()
}

func (l *lazyStream) send(name string, data any) error {
	if l.out == nil {
		l.out = rest.NewEventWriter(l.call)
		l.stop = l.out.Heartbeat()
	}
	return l.out.Event(name, data)
}

func (l *lazyStream) close() {
	if l.stop != nil {
		l.stop()
	}
}

// streamTurn streams the events of a turn.
func (s *Server) streamTurn(c *rest.Call, turn agentchat.Turn) error {
	out := &lazyStream{call: c}
	defer out.close()
	message, answer, err := s.chat.Reply(c, c.DB, turn, func(e agentchat.Event) error {
		return out.send(streamEvent(e))
	})
	if err != nil && out.out == nil {
		return err
	}
	if err != nil {
		s.logError(c, err)
		return out.send(eventError, rest.BodyOf(rest.AsError(rest.Reason(c, err))))
	}
	return out.send(eventDone, chatOutOf(message, answer))
}
