package gateways

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

const shopOrigin = "https://shop.example.com"

// openWidget makes an active widget that pages of the shop may show.
func (r *rig) openWidget(t *testing.T, change agent.WidgetConfigChange) (*Widget, string) {
	t.Helper()
	if !change.AllowedOrigins.Given {
		change.AllowedOrigins = agent.Some([]string{shopOrigin})
	}
	made, secret, err := r.Create(t.Context(), r.db, "web", agent.GatewayChange{Name: agent.Some("Shop"), Config: agent.Some(agent.GatewayConfigChange{WidgetConfigChange: change})})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := r.Verify(t.Context(), r.db, made.ID); err != nil || !v.Success {
		t.Fatalf("%+v, %v", v, err)
	}
	return r.widget(t, made.ID), secret
}

func (r *rig) widget(t *testing.T, id string) *Widget {
	t.Helper()
	w, err := r.Widget(t.Context(), r.db, id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// enter is a new visitor.
func enter(t *testing.T, w *Widget, e Entry) (string, Visitor) {
	t.Helper()
	ticket, err := w.Ticket(shopOrigin)
	if err != nil {
		t.Fatal(err)
	}
	e.Ticket, e.Origin = ticket, shopOrigin
	token, v, err := w.Enter(e)
	if err != nil {
		t.Fatal(err)
	}
	return token, v
}

func hashOf(secret, user string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(user))
	return hex.EncodeToString(mac.Sum(nil))
}

// TestTickets: a ticket works once, within its minute, for its origin and its
// widget; a token for its widget, as long as its origin is allowed.
func TestTickets(t *testing.T) {
	r := newRig(t, nil)
	w, _ := r.openWidget(t, agent.WidgetConfigChange{})
	other, _ := r.openWidget(t, agent.WidgetConfigChange{})
	for _, origin := range []string{"", "null", "https://evil.example", "http://shop.example.com", shopOrigin + ":8443", "https://shop.example.com.evil.example", shopOrigin + "/"} {
		if _, err := w.Ticket(origin); agent.ErrorCode(err) != agent.CodeForbidden {
			t.Errorf("%q gets a ticket: %v", origin, err)
		}
	}
	ticket := func() string {
		t.Helper()
		text, err := w.Ticket(shopOrigin)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	refused := func(name string, w *Widget, e Entry) {
		t.Helper()
		if _, _, err := w.Enter(e); agent.ErrorCode(err) != agent.CodeUnauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused("nothing", w, Entry{Origin: shopOrigin})
	refused("of another page", w, Entry{Ticket: ticket(), Origin: "https://evil.example"})
	refused("of another widget", other, Entry{Ticket: ticket(), Origin: shopOrigin})
	changed := ticket()
	refused("changed", w, Entry{Ticket: "x" + changed, Origin: shopOrigin})
	late := ticket()
	r.clock.pass(TicketLife)
	refused("too late", w, Entry{Ticket: late, Origin: shopOrigin})
	once := ticket()
	token, v, err := w.Enter(Entry{Ticket: once, Origin: shopOrigin})
	if err != nil {
		t.Fatal(err)
	}
	refused("twice", w, Entry{Ticket: once, Origin: shopOrigin})
	refused("a token", w, Entry{Ticket: token, Origin: shopOrigin})

	if got, err := w.Visitor(token); err != nil || got.ID != v.ID {
		t.Errorf("%+v, %v", got, err)
	}
	for name, bad := range map[string]string{"none": "", "a ticket": ticket(), "changed": token + "A", "no signature": strings.Split(token, ".")[0] + ".", "long": strings.Repeat("a", 5000)} {
		if _, err := w.Visitor(bad); agent.ErrorCode(err) != agent.CodeUnauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := other.Visitor(token); agent.ErrorCode(err) != agent.CodeUnauthorized {
		t.Errorf("of another widget: %v", err)
	}
	if _, err := r.Update(t.Context(), r.db, w.ID, agent.GatewayChange{Config: agent.Some(agent.GatewayConfigChange{WidgetConfigChange: agent.WidgetConfigChange{AllowedOrigins: agent.Some([]string{"https://new.example"})}})}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Widget(t.Context(), r.db, w.ID); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("before it is verified again: %v", err)
	}
	if _, err := r.Verify(t.Context(), r.db, w.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.widget(t, w.ID).Visitor(token); agent.ErrorCode(err) != agent.CodeUnauthorized {
		t.Errorf("of a page that is not allowed any more: %v", err)
	}
	_, v = enter(t, other, Entry{})
	token = other.token(v, VisitorLife)
	r.clock.pass(VisitorLife)
	if _, err := other.Visitor(token); agent.ErrorCode(err) != agent.CodeUnauthorized {
		t.Errorf("after half a year: %v", err)
	}
}

// TestUsedTicketsAreForgotten: what used tickets cost is bounded.
func TestUsedTicketsAreForgotten(t *testing.T) {
	vs, now := newVisitors([]byte("k")), time.Now()
	for i := range maxUsedTickets {
		if !vs.use(fmt.Sprint(i), now.Add(TicketLife), now) {
			t.Fatalf("ticket %d is refused", i)
		}
	}
	if vs.use("one more", now.Add(TicketLife), now) {
		t.Error("more tickets than there is room for")
	}
	if later := now.Add(TicketLife); !vs.use("later", later.Add(TicketLife), later) || len(vs.used) != 1 {
		t.Errorf("%d tickets are remembered after their minute", len(vs.used))
	}
}

// TestVisitorsSay: a message makes contact and conversation, a repeat nothing,
// and each visitor sees their own conversation alone.
func TestVisitorsSay(t *testing.T) {
	r := newRig(t, nil)
	w, _ := r.openWidget(t, agent.WidgetConfigChange{MessagesPerDay: agent.Some(3)})
	_, ada := enter(t, w, Entry{})
	_, bob := enter(t, w, Entry{})
	say := func(v Visitor, m agent.VisitorMessage) bool {
		t.Helper()
		isNew, err := r.widget(t, w.ID).Say(t.Context(), v, m)
		if err != nil {
			t.Fatal(err)
		}
		return isNew
	}
	hello := agent.VisitorMessage{ID: "1", Text: "Hello"}
	if !say(ada, hello) || say(ada, hello) || !say(bob, hello) || !say(ada, agent.VisitorMessage{ID: "2", Text: "More"}) {
		t.Error("what is new is said to be a repeat, or the other way round")
	}
	if _, err := r.widget(t, w.ID).Say(t.Context(), bob, agent.VisitorMessage{ID: "3", Text: "too much"}); agent.ErrorCode(err) != agent.CodeRateLimited {
		t.Errorf("over the limit of the day: %v", err)
	}
	if say(ada, hello) {
		t.Error("a repeat counts")
	}
	for _, tc := range []struct {
		visitor Visitor
		want    string
	}{{ada, "[Hello More]"}, {bob, "[Hello]"}} {
		visit, err := w.Read(t.Context(), tc.visitor, 0, 100)
		var said []string
		for _, m := range visit.Messages {
			said = append(said, m.Content)
		}
		if err != nil || fmt.Sprint(said) != tc.want {
			t.Errorf("%v, %v", said, err)
		}
	}
	for field, m := range map[string]agent.VisitorMessage{"id": {Text: "x"}, "text": {ID: "9", Text: " "}, "email": {ID: "9", Text: "x", Email: "nobody"}} {
		if _, err := w.Say(t.Context(), ada, m); agent.ErrorCode(err) != agent.CodeValidation || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	long := agent.VisitorMessage{ID: "9", Text: strings.Repeat("ä", agent.MaxVisitorMessage+1)}
	if err := long.Validate(); err == nil {
		t.Error("a message may have any length")
	}
	if long.Text = strings.Repeat("ä", agent.MaxVisitorMessage); long.Validate() != nil {
		t.Error("a message of 4,000 characters is refused")
	}
}

// TestVouchedVisitors: whom the website vouches for is the contact with that id,
// on every device in the same conversation; what anybody claims finds nobody.
func TestVouchedVisitors(t *testing.T) {
	r := newRig(t, nil)
	w, secret := r.openWidget(t, agent.WidgetConfigChange{})
	known, err := r.db.CreateContact(t.Context(), agent.ContactChange{Name: agent.Some("Ada"), ExternalID: agent.Some("customer-42"), Email: agent.Some("ada@example.com")})
	if err != nil {
		t.Fatal(err)
	}
	_, first := enter(t, w, Entry{User: "customer-42", UserHash: hashOf(secret, "customer-42")})
	_, second := enter(t, w, Entry{User: "customer-42", UserHash: "sha256=" + hashOf(secret, "customer-42")})
	_, other := enter(t, w, Entry{User: "customer-43", UserHash: hashOf(secret, "customer-43")})
	if first.ID != second.ID || first.ID == other.ID {
		t.Errorf("%+v %+v %+v", first, second, other)
	}
	ticket, err := w.Ticket(shopOrigin)
	if err != nil {
		t.Fatal(err)
	}
	for _, hash := range []string{"", "00", hashOf(secret, "customer-43"), hashOf("", "customer-42"), hashOf("other", "customer-42")} {
		if _, _, err := w.Enter(Entry{Ticket: ticket, Origin: shopOrigin, User: "customer-42", UserHash: hash}); agent.ErrorCode(err) != agent.CodeValidation {
			t.Errorf("by %q: %v", hash, err)
		}
	}
	if _, err := w.Say(t.Context(), first, agent.VisitorMessage{ID: "1", Text: "It is me"}); err != nil {
		t.Fatal(err)
	}
	_, anybody := enter(t, w, Entry{})
	if _, err := w.Say(t.Context(), anybody, agent.VisitorMessage{ID: "1", Text: "I am Ada", Email: "ada@example.com"}); err != nil {
		t.Fatal(err)
	}
	_, fresh := enter(t, w, Entry{})
	if err := w.GiveEmail(t.Context(), fresh, "eve@example.com"); agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("before a word is said: %v", err)
	}
	if _, err := w.Say(t.Context(), fresh, agent.VisitorMessage{ID: "1", Text: "Hi"}); err != nil {
		t.Fatal(err)
	}
	if err := w.GiveEmail(t.Context(), fresh, "Eve@Example.com"); err != nil {
		t.Fatal(err)
	}
	list, _, err := r.db.Conversations(t.Context(), store.ConversationFilter{}, store.Page{Limit: 10})
	if err != nil || len(list) != 3 {
		t.Fatalf("%d conversations, %v", len(list), err)
	}
	if c := list[2]; c.ContactID != known.ID {
		t.Errorf("the vouched visitor is %+v", c.Contact)
	}
	if c := list[1]; c.ContactID == known.ID || c.Contact.Email != "" || !strings.Contains(string(c.Metadata), "ada@example.com") {
		t.Errorf("who claims an address is %+v, %s", c.Contact, c.Metadata)
	}
	_, notes, err := r.db.Conversation(t.Context(), list[1].ID, 10)
	if err != nil || len(notes) != 2 || notes[1].Role != agent.MessageNote {
		t.Errorf("%+v, %v", notes, err)
	}
	if c := list[0]; c.Contact.Email != "eve@example.com" {
		t.Errorf("who gives a new address is %+v", c.Contact)
	}
	if visit, err := w.Read(t.Context(), anybody, 0, 10); err != nil || len(visit.Messages) != 1 || visit.Email != "ada@example.com" {
		t.Errorf("the visitor sees %+v, %v", visit, err)
	}
}

// TestAskForPerson: the conversation waits for a person, the bot is muted, and
// what the person says reaches the visitor's streams.
func TestAskForPerson(t *testing.T) {
	r := newAnswerRig(t)
	w, _ := r.openWidget(t, agent.WidgetConfigChange{})
	_, v := enter(t, w, Entry{})
	news, stop, err := w.Follow(v)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := w.Say(t.Context(), v, agent.VisitorMessage{ID: "1", Text: "A person, please", Person: true}); err != nil {
		t.Fatal(err)
	}
	<-news
	visit, err := w.Read(t.Context(), v, 0, 10)
	if err != nil || !visit.NeedsHuman || !visit.Muted || visit.Answering {
		t.Errorf("%+v, %v", visit, err)
	}
	if waiting, err := r.db.Waiting(t.Context()); err != nil || len(waiting) != 1 || waiting[0].ConversationID != visit.ConversationID {
		t.Errorf("%+v, %v", waiting, err)
	}
	if _, err := r.SendMessage(t.Context(), r.db, agent.Message{ConversationID: visit.ConversationID, Role: agent.MessageAssistant, Content: "Here I am", Metadata: []byte(`{"author":"human"}`)}); err != nil {
		t.Fatal(err)
	}
	<-news
	after := visit.Messages[0].ID
	if visit, err = w.Read(t.Context(), v, after, 10); err != nil || len(visit.Messages) != 1 || visit.Messages[0].Content != "Here I am" || visit.NeedsHuman || !visit.Muted {
		t.Errorf("%+v, %v", visit, err)
	}
}

// visitorAnswers is an agent that answers visitors by a func of the test's.
func visitorAnswers(t *testing.T, answer AnswerFunc) (*rig, *Widget, Visitor, chan agent.Message) {
	t.Helper()
	r, done := newRig(t, nil), make(chan agent.Message, 10)
	if _, err := r.db.UpdateSettings(t.Context(), agent.SettingsChange{AutoReply: agent.Some(true), LLMProvider: agent.Some("ollama")}); err != nil {
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
	t.Cleanup(func() { a.Stop(); r.Stop() })
	w, _ := r.openWidget(t, agent.WidgetConfigChange{})
	_, v := enter(t, w, Entry{})
	return r, w, v, done
}

// TestModelHandsOver: the answer with which the model hands over is sent, and
// the conversation waits for a person from then on; a failure asks for one too.
func TestModelHandsOver(t *testing.T) {
	var mu sync.Mutex
	calls := 0
	r, w, v, done := visitorAnswers(t, func(_ context.Context, _ *store.DB, said agent.Message, how agent.Answering, keep func(agent.Message) error) error {
		mu.Lock()
		calls++
		n := calls
		mu.Unlock()
		if !how.Public {
			t.Error("a visitor of a website gets the agent's tools")
		}
		if n == 1 {
			return agent.Errorf(agent.CodeUpstream, "the model is away")
		}
		how.OnText("Half")
		how.Handover()
		return keep(agent.Message{ConversationID: said.ConversationID, Role: agent.MessageAssistant})
	})
	say := func(id string) store.Visit {
		t.Helper()
		if _, err := w.Say(t.Context(), v, agent.VisitorMessage{ID: id, Text: "Help " + id}); err != nil {
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
	if visit := say("2"); !visit.NeedsHuman || !visit.Muted || len(visit.Messages) != 3 || visit.Messages[2].Content != handoverText {
		t.Errorf("after the handover: %+v", visit)
	}
	if text := w.Partial(v); text != "" {
		t.Errorf("the answer is still being made: %q", text)
	}
	if due, err := r.db.DueAnswers(t.Context(), 10); err != nil || len(due) != 0 {
		t.Errorf("%v, %v", due, err)
	}
}

// TestVisitorStreamsAreBounded: of one visitor, and what ended counts no more.
func TestVisitorStreamsAreBounded(t *testing.T) {
	r := newRig(t, nil)
	w, _ := r.openWidget(t, agent.WidgetConfigChange{})
	_, v := enter(t, w, Entry{})
	var stops []func()
	for range maxVisitorStreams {
		_, stop, err := w.Follow(v)
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, stop)
	}
	if _, _, err := w.Follow(v); agent.ErrorCode(err) != agent.CodeRateLimited {
		t.Errorf("one more: %v", err)
	}
	for _, stop := range stops {
		stop()
	}
	if len(r.visitors.streams)+len(r.visitors.open) != 0 {
		t.Errorf("%d streams are left", len(r.visitors.streams))
	}
}

// TestWidgetHours are in the agent's time zone.
func TestWidgetHours(t *testing.T) {
	r := newRig(t, nil)
	if _, err := r.db.UpdateSettings(t.Context(), agent.SettingsChange{Timezone: agent.Some("Europe/Berlin")}); err != nil {
		t.Fatal(err)
	}
	w, _ := r.openWidget(t, agent.WidgetConfigChange{Hours: agent.Some("Mon-Fri 09:00-17:00, Sat 10:00-14:00")})
	for at, next := range map[string]string{
		"2026-11-23T08:00:00Z": "", "2026-11-23T07:59:59Z": "2026-11-23T08:00:00Z", "2026-11-23T16:00:00Z": "2026-11-24T08:00:00Z",
		"2026-11-28T12:00:00Z": "", "2026-11-28T13:00:00Z": "2026-11-30T08:00:00Z",
	} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		r.now = func() time.Time { return now }
		open, begins := w.Hours(t.Context())
		got := ""
		if !begins.IsZero() {
			got = begins.UTC().Format(time.RFC3339)
		}
		if open != (next == "") || got != next {
			t.Errorf("at %s: %v, again at %s, want %s", at, open, got, next)
		}
	}
}

// TestAnswerAfterKill: an answer that was stored when the server was killed
// reaches the visitor after the next start, once.
func TestAnswerAfterKill(t *testing.T) {
	c := &counter{clock: newClock(), path: t.TempDir()}
	c.open(t)
	r := &rig{c.Gateways, c.db, c.clock}
	w, _ := r.openWidget(t, agent.WidgetConfigChange{})
	_, v := enter(t, w, Entry{})
	if _, err := w.Say(t.Context(), v, agent.VisitorMessage{ID: "1", Text: "Hello"}); err != nil {
		t.Fatal(err)
	}
	visit, err := w.Read(t.Context(), v, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	c.Stop() // so that the test is the queue
	if _, err := c.db.SendMessage(t.Context(), agent.Message{ConversationID: visit.ConversationID, Role: agent.MessageAssistant, Content: "Hello, too"}, true); err != nil {
		t.Fatal(err)
	}
	if s, err := c.db.BeginSending(t.Context(), visit.ConversationID, agent.At(c.clock.now())); err != nil || s == nil {
		t.Fatalf("%v, %v", s, err)
	}
	c.close() // in the middle of it
	c.open(t)
	t.Cleanup(c.close)
	if e := c.try(t); e.Problem != "" {
		t.Fatalf("again: %+v", e)
	}
	w = (&rig{c.Gateways, c.db, c.clock}).widget(t, w.ID)
	if visit, err = w.Read(t.Context(), v, 0, 10); err != nil || len(visit.Messages) != 2 || !strings.Contains(string(visit.Messages[1].Metadata), `"status":"sent"`) {
		t.Errorf("%+v, %v", visit, err)
	}
}
