package gateways

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

const shopOrigin = "https://shop.example.com"

// openWidget creates an active widget that pages of the shop may embed.
func (r *hookFixture) openWidget(t *testing.T, change agent.WidgetConfigChange) (*Widget, string) {
	t.Helper()
	if !change.AllowedOrigins.Given {
		change.AllowedOrigins = agent.Some([]string{shopOrigin})
	}
	made, secret, err := r.Create(t.Context(), r.db, "web", agent.GatewayChange{
		Name:   agent.Some("Shop"),
		Config: agent.Some(agent.GatewayConfigChange{WidgetConfigChange: change}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := r.Verify(t.Context(), r.db, made.ID); err != nil || !v.Success {
		t.Fatalf("got %+v, %v", v, err)
	}
	return r.widget(t, made.ID), secret
}

func (r *hookFixture) widget(t *testing.T, id string) *Widget {
	t.Helper()
	w, err := r.Widget(t.Context(), r.db, id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// newVisitor opens the widget as a new visitor.
func newVisitor(t *testing.T, w *Widget, e Entry) (string, Visitor) {
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
	r := newHookFixture(t, nil)
	w, _ := r.openWidget(t, agent.WidgetConfigChange{})
	other, _ := r.openWidget(t, agent.WidgetConfigChange{})
	for _, origin := range []string{
		"",
		"null",
		"https://evil.example",
		"http://shop.example.com",
		shopOrigin + ":8443",
		"https://shop.example.com.evil.example",
		shopOrigin + "/",
	} {
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
	refused("no ticket", w, Entry{Origin: shopOrigin})
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
		t.Errorf("got %+v, %v", got, err)
	}
	for name, bad := range map[string]string{
		"none":         "",
		"a ticket":     ticket(),
		"changed":      token + "A",
		"no signature": strings.Split(token, ".")[0] + ".",
		"long":         strings.Repeat("a", 5000),
	} {
		if _, err := w.Visitor(bad); agent.ErrorCode(err) != agent.CodeUnauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := other.Visitor(token); agent.ErrorCode(err) != agent.CodeUnauthorized {
		t.Errorf("of another widget: %v", err)
	}
	if _, err := r.Update(t.Context(), r.db, w.ID, agent.GatewayChange{
		Config: agent.Some(agent.GatewayConfigChange{
			WidgetConfigChange: agent.WidgetConfigChange{AllowedOrigins: agent.Some([]string{"https://new.example"})},
		}),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Widget(t.Context(), r.db, w.ID); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("before it is verified again: %v", err)
	}
	if _, err := r.Verify(t.Context(), r.db, w.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.widget(t, w.ID).Visitor(token); agent.ErrorCode(err) != agent.CodeUnauthorized {
		t.Errorf("of an origin that is no longer allowed: %v", err)
	}
	_, v = newVisitor(t, other, Entry{})
	token = other.token(v, VisitorLife)
	r.clock.pass(VisitorLife)
	if _, err := other.Visitor(token); agent.ErrorCode(err) != agent.CodeUnauthorized {
		t.Errorf("after half a year: %v", err)
	}
}

// TestUsedTicketsAreForgotten: the number of used tickets in memory is bounded.
func TestUsedTicketsAreForgotten(t *testing.T) {
	vs, now := newVisitors([]byte("k")), time.Now()
	for i := range maxUsedTickets {
		if !vs.markTicketUsed(fmt.Sprint(i), now.Add(TicketLife), now) {
			t.Fatalf("ticket %d is rejected", i)
		}
	}
	if vs.markTicketUsed("one more", now.Add(TicketLife), now) {
		t.Error("more used tickets than the limit")
	}
	if later := now.Add(TicketLife); !vs.markTicketUsed("later", later.Add(TicketLife), later) || len(vs.used) != 1 {
		t.Errorf("%d used tickets are kept after they expired", len(vs.used))
	}
}

// TestVisitorMessages: a message creates a contact and a conversation, a repeat
// creates nothing, and each visitor sees only their own conversation.
func TestVisitorMessages(t *testing.T) {
	r := newHookFixture(t, nil)
	w, _ := r.openWidget(t, agent.WidgetConfigChange{MessagesPerDay: agent.Some(3)})
	_, ada := newVisitor(t, w, Entry{})
	_, bob := newVisitor(t, w, Entry{})
	say := func(v Visitor, m agent.VisitorMessage) bool {
		t.Helper()
		isNew, err := r.widget(t, w.ID).Receive(t.Context(), v, m)
		if err != nil {
			t.Fatal(err)
		}
		return isNew
	}
	hello := agent.VisitorMessage{ID: "1", Text: "Hello"}
	if !say(ada, hello) ||
		say(ada, hello) ||
		!say(bob, hello) ||
		!say(ada, agent.VisitorMessage{ID: "2", Text: "More"}) {
		t.Error("a new message is reported as a repeat, or a repeat as new")
	}
	if _, err := r.widget(t, w.ID).Receive(t.Context(), bob, agent.VisitorMessage{
		ID:   "3",
		Text: "too much",
	}); agent.ErrorCode(err) != agent.CodeRateLimited {
		t.Errorf("over the daily limit: %v", err)
	}
	if say(ada, hello) {
		t.Error("a repeat counts toward the limit")
	}
	for _, tc := range []struct {
		visitor Visitor
		want    string
	}{{ada, "[Hello More]"}, {bob, "[Hello]"}} {
		visit, err := w.Read(t.Context(), tc.visitor, 0, 100)
		var texts []string
		for _, m := range visit.Messages {
			texts = append(texts, m.Content)
		}
		if err != nil || fmt.Sprint(texts) != tc.want {
			t.Errorf("got %v, %v", texts, err)
		}
	}
	for field, m := range map[string]agent.VisitorMessage{
		"id":    {Text: "x"},
		"text":  {ID: "9", Text: " "},
		"email": {ID: "9", Text: "x", Email: "nobody"},
	} {
		if _, err := w.Receive(t.Context(), ada, m); agent.ErrorCode(err) != agent.CodeValidation ||
			!strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	long := agent.VisitorMessage{ID: "9", Text: strings.Repeat("ä", agent.MaxVisitorMessage+1)}
	if err := long.Validate(0); err == nil {
		t.Error("a message that is too long is accepted")
	}
	if long.Text = strings.Repeat("ä", agent.MaxVisitorMessage); long.Validate(0) != nil {
		t.Error("a message of 4,000 characters is rejected")
	}
}

// TestVerifiedVisitors: a visitor whose id the website has signed is the contact
// with that id, in the same conversation on every device; an unsigned claim
// identifies no contact.
func TestVerifiedVisitors(t *testing.T) {
	r := newHookFixture(t, nil)
	w, secret := r.openWidget(t, agent.WidgetConfigChange{})
	known, err := r.db.CreateContact(t.Context(), agent.ContactChange{
		Name:       agent.Some("Ada"),
		ExternalID: agent.Some("customer-42"),
		Email:      agent.Some("ada@example.com"),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, first := newVisitor(t, w, Entry{User: "customer-42", UserHash: hashOf(secret, "customer-42")})
	_, second := newVisitor(t, w, Entry{User: "customer-42", UserHash: "sha256=" + hashOf(secret, "customer-42")})
	_, other := newVisitor(t, w, Entry{User: "customer-43", UserHash: hashOf(secret, "customer-43")})
	if first.ID != second.ID || first.ID == other.ID {
		t.Errorf("got %+v %+v %+v", first, second, other)
	}
	ticket, err := w.Ticket(shopOrigin)
	if err != nil {
		t.Fatal(err)
	}
	for _, hash := range []string{
		"",
		"00",
		hashOf(secret, "customer-43"),
		hashOf("", "customer-42"),
		hashOf("other", "customer-42"),
	} {
		if _, _, err := w.Enter(Entry{
			Ticket:   ticket,
			Origin:   shopOrigin,
			User:     "customer-42",
			UserHash: hash,
		}); agent.ErrorCode(err) != agent.CodeValidation {
			t.Errorf("hash %q: %v", hash, err)
		}
	}
	if _, err := w.Receive(t.Context(), first, agent.VisitorMessage{ID: "1", Text: "It is me"}); err != nil {
		t.Fatal(err)
	}
	_, unverified := newVisitor(t, w, Entry{})
	if _, err := w.Receive(t.Context(), unverified, agent.VisitorMessage{
		ID:    "1",
		Text:  "I am Ada",
		Email: "ada@example.com",
	}); err != nil {
		t.Fatal(err)
	}
	_, fresh := newVisitor(t, w, Entry{})
	if err := w.SetEmail(t.Context(), fresh, "eve@example.com"); agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("before the first message: %v", err)
	}
	if _, err := w.Receive(t.Context(), fresh, agent.VisitorMessage{ID: "1", Text: "Hi"}); err != nil {
		t.Fatal(err)
	}
	if err := w.SetEmail(t.Context(), fresh, "Eve@Example.com"); err != nil {
		t.Fatal(err)
	}
	list, _, err := r.db.Conversations(t.Context(), store.ConversationFilter{}, store.Page{Limit: 10})
	if err != nil || len(list) != 3 {
		t.Fatalf("%d conversations, %v", len(list), err)
	}
	if c := list[2]; c.ContactID != known.ID {
		t.Errorf("the verified visitor is %+v", c.Contact)
	}
	if c := list[1]; c.ContactID == known.ID ||
		c.Contact.Email != "" ||
		!strings.Contains(string(c.Metadata), "ada@example.com") {
		t.Errorf("a visitor who claims a known address is %+v, %s", c.Contact, c.Metadata)
	}
	_, notes, err := r.db.Conversation(t.Context(), list[1].ID, 10)
	if err != nil || len(notes) != 2 || notes[1].Role != agent.MessageNote {
		t.Errorf("got %+v, %v", notes, err)
	}
	if c := list[0]; c.Contact.Email != "eve@example.com" {
		t.Errorf("a visitor with a new address is %+v", c.Contact)
	}
	if visit, err := w.Read(t.Context(), unverified, 0, 10); err != nil ||
		len(visit.Messages) != 1 ||
		visit.Email != "ada@example.com" {
		t.Errorf("the visitor sees %+v, %v", visit, err)
	}
}
