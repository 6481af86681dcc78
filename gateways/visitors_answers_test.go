package gateways

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// TestAskForPerson: the conversation waits for a person, the bot is muted, and
// what the person says reaches the visitor's streams.
func TestAskForPerson(t *testing.T) {
	r := newAnswerFixture(t)
	w, _ := r.openWidget(t, agent.WidgetConfigChange{})
	_, v := newVisitor(t, w, Entry{})
	updates, stop, err := w.Follow(v)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := w.Receive(t.Context(), v, agent.VisitorMessage{
		ID:     "1",
		Text:   "A person, please",
		Person: true,
	}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, updates)
	visit, err := w.Read(t.Context(), v, 0, 10)
	if err != nil || !visit.NeedsHuman || !visit.Muted || visit.Answering {
		t.Errorf("got %+v, %v", visit, err)
	}
	if waiting, err := r.db.Waiting(t.Context()); err != nil ||
		len(waiting) != 1 ||
		waiting[0].ConversationID != visit.ConversationID {
		t.Errorf("got %+v, %v", waiting, err)
	}
	if _, err := r.SendMessage(t.Context(), r.db, agent.Message{
		ConversationID: visit.ConversationID,
		Role:           agent.MessageAssistant,
		Content:        "Here I am",
		Metadata:       []byte(`{"author":"human"}`),
	}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, updates)
	after := visit.Messages[0].ID
	if visit, err = w.Read(t.Context(), v, after, 10); err != nil ||
		len(visit.Messages) != 1 ||
		visit.Messages[0].Content != "Here I am" ||
		visit.NeedsHuman ||
		!visit.Muted {
		t.Errorf("got %+v, %v", visit, err)
	}
}

// waitFor waits for a notification on a visitor's stream.
func waitFor(t *testing.T, updates <-chan struct{}) {
	t.Helper()
	select {
	case <-updates:
	case <-time.After(time.Minute):
		t.Fatal("no notification")
	}
}

// visitorAnswers returns an agent's widget with a visitor, and the channel that
// receives each message that answer has answered.
func visitorAnswers(t *testing.T, answer AnswerFunc) (*hookFixture, *Widget, Visitor, chan agent.Message) {
	t.Helper()
	r, done := newHookFixture(t, nil), make(chan agent.Message, 10)
	if _, err := r.db.UpdateSettings(t.Context(), agent.SettingsChange{
		AutoReply:   agent.Some(true),
		LLMProvider: agent.Some("ollama"),
	}); err != nil {
		t.Fatal(err)
	}
	a := NewAnswerer(r.Gateways, answer)
	a.ended = func(m agent.Message) { done <- m }
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.Stop()
		r.Stop()
	})
	w, _ := r.openWidget(t, agent.WidgetConfigChange{})
	_, v := newVisitor(t, w, Entry{})
	return r, w, v, done
}

// TestModelHandsOver: when the model hands over, its answer is sent and the
// conversation waits for a person; a failure requests a person too.
func TestModelHandsOver(t *testing.T) {
	var mu sync.Mutex
	calls := 0
	r, w, v, done := visitorAnswers(
		t,
		func(
			_ context.Context,
			_ *store.DB,
			msg agent.Message,
			how agent.AnswerOptions,
			keep func(agent.Message) error,
		) error {
			mu.Lock()
			calls++
			n := calls
			mu.Unlock()
			if !how.Public {
				t.Error("a visitor of a website gets the agent's tools")
			}
			if n == 1 {
				return agent.Errorf(agent.CodeUpstream, "the model is unavailable")
			}
			how.OnText("Half")
			how.Handover()
			return keep(agent.Message{ConversationID: msg.ConversationID, Role: agent.MessageAssistant})
		},
	)
	say := func(id string) store.Visit {
		t.Helper()
		if _, err := w.Receive(t.Context(), v, agent.VisitorMessage{ID: id, Text: "Help " + id}); err != nil {
			t.Fatal(err)
		}
		<-done
		visit, err := w.Read(t.Context(), v, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		return visit
	}
	if visit := say("1"); !visit.NeedsHuman || visit.Muted || visit.Answering || len(visit.Messages) != 1 {
		t.Errorf("after a failure: %+v", visit)
	}
	if visit := say("2"); !visit.NeedsHuman ||
		!visit.Muted ||
		len(visit.Messages) != 3 ||
		visit.Messages[2].Content != handoverText {
		t.Errorf("after the handover: %+v", visit)
	}
	if text := w.Partial(v); text != "" {
		t.Errorf("the answer is still in progress: %q", text)
	}
	if due, err := r.db.DueAnswers(t.Context(), 10); err != nil || len(due) != 0 {
		t.Errorf("got %v, %v", due, err)
	}
}

// TestVisitorStreamsAreBounded: the streams of one visitor are limited, and closed
// streams do not count.
func TestVisitorStreamsAreBounded(t *testing.T) {
	r := newHookFixture(t, nil)
	w, _ := r.openWidget(t, agent.WidgetConfigChange{})
	_, v := newVisitor(t, w, Entry{})
	var stops []func()
	for range maxVisitorStreams {
		_, stop, err := w.Follow(v)
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, stop)
	}
	if _, _, err := w.Follow(v); agent.ErrorCode(err) != agent.CodeRateLimited {
		t.Errorf("one stream too many: %v", err)
	}
	for _, stop := range stops {
		stop()
	}
	if len(r.visitors.streams)+len(r.visitors.open) != 0 {
		t.Errorf("%d streams are still registered", len(r.visitors.streams))
	}
}

// TestWidgetHours checks that the hours apply in the agent's time zone.
func TestWidgetHours(t *testing.T) {
	r := newHookFixture(t, nil)
	if _, err := r.db.UpdateSettings(t.Context(), agent.SettingsChange{
		Timezone: agent.Some("Europe/Berlin"),
	}); err != nil {
		t.Fatal(err)
	}
	w, _ := r.openWidget(t, agent.WidgetConfigChange{Hours: agent.Some("Mon-Fri 09:00-17:00, Sat 10:00-14:00")})
	for at, next := range map[string]string{
		"2026-11-23T08:00:00Z": "",
		"2026-11-23T07:59:59Z": "2026-11-23T08:00:00Z",
		"2026-11-23T16:00:00Z": "2026-11-24T08:00:00Z",
		"2026-11-28T12:00:00Z": "",
		"2026-11-28T13:00:00Z": "2026-11-30T08:00:00Z",
	} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		r.now = func() time.Time { return now }
		open, opens := w.Hours(t.Context())
		got := ""
		if !opens.IsZero() {
			got = opens.UTC().Format(time.RFC3339)
		}
		if open != (next == "") || got != next {
			t.Errorf("at %s: open %v, opens at %s, want %s", at, open, got, next)
		}
	}
}

// TestAnswerAfterKill: an answer that was stored when the server was killed
// reaches the visitor after the next start, once.
func TestAnswerAfterKill(t *testing.T) {
	c := &sendFixture{clock: newClock(), path: t.TempDir()}
	c.open(t)
	r := &hookFixture{c.Gateways, c.db, c.clock}
	w, _ := r.openWidget(t, agent.WidgetConfigChange{})
	_, v := newVisitor(t, w, Entry{})
	if _, err := w.Receive(t.Context(), v, agent.VisitorMessage{ID: "1", Text: "Hello"}); err != nil {
		t.Fatal(err)
	}
	visit, err := w.Read(t.Context(), v, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	c.Stop() // the test takes the place of the queue
	if _, err := c.db.SendMessage(
		t.Context(),
		agent.Message{ConversationID: visit.ConversationID, Role: agent.MessageAssistant, Content: "Hello, too"},
		true,
	); err != nil {
		t.Fatal(err)
	}
	if s, err := c.db.BeginSending(t.Context(), visit.ConversationID, agent.At(c.clock.now())); err != nil || s == nil {
		t.Fatalf("got %v, %v", s, err)
	}
	c.close() // as a kill during the send
	c.open(t)
	t.Cleanup(c.close)
	if e := c.waitAttempt(t); e.Problem != "" {
		t.Fatalf("sending after the restart: %+v", e)
	}
	w = (&hookFixture{c.Gateways, c.db, c.clock}).widget(t, w.ID)
	if visit, err = w.Read(t.Context(), v, 0, 10); err != nil ||
		len(visit.Messages) != 2 ||
		!strings.Contains(string(visit.Messages[1].Metadata), `"status":"sent"`) {
		t.Errorf("got %+v, %v", visit, err)
	}
}
