package httpapi

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/gateways"
	"satchel/httpapi/rest"
	"satchel/store"
)

// maxVisitorMessages is the number of messages at the start of a visitor's stream.
const maxVisitorMessages = 100

// visitorHello is the first event of a visitor's stream.
type visitorHello struct {
	Title          string        `json:"title"`
	Greeting       string        `json:"greeting"`
	Color          string        `json:"color"`
	AskEmail       string        `json:"ask_email"`
	OfflineMessage string        `json:"offline_message"`
	Files          *filesAllowed `json:"files"` // null: visitors may send none
}

// visitorState is the state of a conversation.
type visitorState struct {
	Open       bool   `json:"open"`     // within opening hours
	OpensAt    string `json:"opens_at"` // next opening; empty: open now, or never
	Bot        bool   `json:"bot"`      // the agent answers automatically
	Answering  bool   `json:"answering"`
	NeedsHuman bool   `json:"needs_human"`
	Person     bool   `json:"person"` // a person answers instead of the agent
	Email      string `json:"email"`
}

// visitorMessage is a message as a visitor sees it.
type visitorMessage struct {
	ID        int64         `json:"id"`
	From      string        `json:"from"` // visitor, bot or person
	Text      string        `json:"text"`
	ClientID  string        `json:"client_id,omitempty"` // the visitor's own id of the message
	Sources   []sourceName  `json:"sources,omitempty"`
	Files     []visitorFile `json:"files,omitempty"`
	CreatedAt agent.Time    `json:"created_at"`

	PendingSources []string `json:"pending_sources,omitempty"` // the names of sources that were not read when it was written
}

// visitorPartial is a piece of the answer being generated.
type visitorPartial struct {
	Text   string `json:"text"`
	Append bool   `json:"goes_on"` // append to earlier pieces; otherwise replace them
}

// sourceName is the part of a source that visitors see.
type sourceName struct {
	Number int    `json:"n"`
	Name   string `json:"name"`
}

// newVisitorMessage returns the part of a message that its visitor may see.
func newVisitorMessage(m *agent.Message, visitorID string) visitorMessage {
	var about struct {
		Author     string `json:"author"`
		ExternalID string `json:"external_id"`
		Sources    []struct {
			Number int    `json:"n"`
			Name   string `json:"source_name"`
			Cited  bool   `json:"cited"`
		} `json:"sources"`
		Attachments []agent.Attachment    `json:"attachments"`
		Pending     []agent.PendingSource `json:"pending_sources"`
	}
	_ = json.Unmarshal(m.Metadata, &about) // metadata changed by SQL may be invalid
	message := visitorMessage{
		ID:        m.ID,
		From:      "bot",
		Text:      m.Content,
		Files:     visitorFiles(about.Attachments),
		CreatedAt: m.CreatedAt,
	}
	if len(message.Files) > 0 && m.Content == agent.FilesText(about.Attachments) {
		message.Text = ""
	}
	switch {
	case m.Role == agent.MessageUser:
		message.From = "visitor"
		message.ClientID, _ = strings.CutPrefix(about.ExternalID, visitorID+":")
		return message
	case about.Author == "human":
		message.From = "person"
	}
	for _, s := range about.Pending {
		message.PendingSources = append(message.PendingSources, s.Name)
	}
	for _, s := range about.Sources {
		if s.Cited {
			message.Sources = append(message.Sources, sourceName{s.Number, s.Name})
		}
	}
	return message
}

// visitorFeed writes the stream of one visitor.
type visitorFeed struct {
	widget  *gateways.Widget
	visitor gateways.Visitor
	out     *rest.EventWriter
	after   int64 // the newest message that was sent
	state   visitorState
	started bool
	partial string
}

// visitorStream sends a visitor their conversation as server-sent events,
// until they disconnect or may no longer read it.
func (s *Server) visitorStream(c echo.Context) error {
	widget, visitor, err := s.admitVisitor(c)
	if err != nil {
		return err
	}
	call := &rest.Call{HTTP: c, DB: widget.DB()}
	call.Guard = rest.NewGuard(c.Request().Context(), s.guardEvery, &visitorHolder{
		s.options.Gateways,
		widget,
		visitorToken(c.Request()),
	})
	call.Context = call.Guard
	defer call.Guard.Stop()
	release, err := s.feeds.countStream(call, widgetPath)
	if err != nil {
		return err
	}
	defer release()
	news, stop, err := widget.Follow(visitor)
	if err != nil {
		return err
	}
	defer stop()
	feed := &visitorFeed{widget: widget, visitor: visitor}
	feed.after, _ = strconv.ParseInt(c.Request().Header.Get("Last-Event-ID"), 10, 64)
	visit, err := widget.Read(call, visitor, feed.after, maxVisitorMessages)
	if err != nil {
		return err
	}
	feed.out = rest.NewEventWriter(call)
	hello := visitorHello{
		Title:          widget.Title,
		Greeting:       widget.Greeting,
		Color:          widget.Color,
		AskEmail:       widget.AskEmail,
		OfflineMessage: widget.OfflineMessage,
		Files:          visitorFilesAllowed(widget),
	}
	if feed.out.Event("hello", hello) != nil || feed.write(call, visit) != nil {
		return nil //nolint:nilerr // the client disconnected
	}
	return s.serveVisitor(call, feed, news)
}

// visitorHolder is the holder of a visitor's stream.
type visitorHolder struct {
	gateways *gateways.Gateways
	widget   *gateways.Widget
	token    string
}

// Check implements rest.Holder.
func (h *visitorHolder) Check() error {
	if h.widget.DB().Suspended() {
		return agent.NotFound("widget", h.widget.ID)
	}
	return nil
}

// Identify implements rest.Holder.
func (h *visitorHolder) Identify(ctx context.Context) error {
	now, err := h.gateways.Widget(
		store.Background(ctx),
		h.widget.DB(),
		h.widget.ID,
	)
	if err == nil {
		_, err = now.Visitor(h.token)
	}
	return err
}

func (s *Server) serveVisitor(call *rest.Call, feed *visitorFeed, news <-chan struct{}) error {
	beat := time.NewTicker(streamHeartbeat)
	defer beat.Stop()
	lifetime := time.NewTimer(streamLife)
	defer lifetime.Stop()
	for {
		select {
		case <-call.Done():
			return nil
		case <-s.streams.Done():
			return nil
		case <-lifetime.C:
			return nil
		case <-beat.C:
			if feed.out.Write(": still here\n\n") != nil {
				return nil
			}
		case <-news:
		}
		var err error
		if feed.widget, feed.visitor, err = s.admitVisitor(call.HTTP); err != nil {
			return nil //nolint:nilerr // the visitor may no longer read
		}
		visit, err := feed.widget.Read(call, feed.visitor, feed.after, maxVisitorMessages)
		if err != nil || feed.write(call, visit) != nil {
			return nil //nolint:nilerr // the client disconnected, or reconnects
		}
	}
}

// write sends new messages and state.
func (f *visitorFeed) write(call *rest.Call, visit store.Visit) (err error) {
	partial := f.widget.Partial(f.visitor)
	for i := range visit.Messages {
		m := &visit.Messages[i]
		if m.Content, err = call.DB.TextToSend(call, m.Content, m.Metadata); err != nil {
			return err
		}
		if err := f.out.Write(frame(
			"message",
			formatNumber(uint64(m.ID)),
			newVisitorMessage(m, f.visitor.ID),
		)); err != nil {
			return err
		}
		if f.after = m.ID; m.Role == agent.MessageAssistant {
			partial = ""
		}
	}
	if partial != f.partial {
		piece, goesOn := strings.CutPrefix(partial, f.partial)
		f.partial = partial
		if err := f.out.Event("partial", visitorPartial{piece, goesOn && partial != ""}); err != nil {
			return err
		}
	}
	open, next := f.widget.Hours(call)
	state := visitorState{
		Open:       open,
		Bot:        visit.Bot,
		Answering:  visit.Answering,
		NeedsHuman: visit.NeedsHuman,
		Person:     visit.Muted,
		Email:      visit.Email,
	}
	if !next.IsZero() {
		state.OpensAt = next.UTC().Format(time.RFC3339)
	}
	if f.started && state == f.state {
		return nil
	}
	f.started, f.state = true, state
	return f.out.Event("state", state)
}
