package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// inboundGateway creates a gateway with a status.
func inboundGateway(t testing.TB, db *DB, kind agent.GatewayType, status agent.GatewayStatus) string {
	t.Helper()
	g, err := db.CreateGateway(t.Context(), agent.Gateway{Type: kind, Name: "In"}, agent.GatewayConfig{}, "whsec_x")
	if err != nil {
		t.Fatal(err)
	}
	do(t, db, "UPDATE gateways SET status = ? WHERE id = ?", status, g.ID)
	return g.ID
}

func inboundText(id, thread, account, text string) agent.Inbound {
	return agent.Inbound{
		ID:     id,
		Thread: thread,
		Text:   text,
		From:   agent.ContactChange{ExternalID: agent.Some(account), Name: agent.Some("Name of " + account)},
	}
}

func receiveOne(t testing.TB, db *DB, gateway string, in ...agent.Inbound) Received {
	t.Helper()
	r, err := db.ReceiveInbound(t.Context(), gateway, []Receipt{{EventID: "event of " + in[0].ID, Messages: in}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// eventTypes lists the types of an agent's events after a sequence number.
func eventTypes(t testing.TB, db *DB, after int64) (types []string, last agent.Event) {
	t.Helper()
	events, err := db.Events(t.Context(), after, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		types, last = append(types, e.Type), e
	}
	return types, last
}

// One message writes a contact, a conversation, a message, the counts and the events, and
// its repeat writes nothing.
func TestReceiveMessage(t *testing.T) {
	db := openFolder(t).Default()
	id := inboundGateway(t, db, agent.GatewayTelegram, agent.GatewayActive)
	_, before := eventTypes(t, db, 0)
	in := inboundText("m1", "t1", "telegram:7", "Hello")
	in.From.Telegram = agent.Some("@ada")
	in.Metadata = json.RawMessage(`{"attachments":[{"type":"photo"}],"external_id":"forged"}`)
	in.ReplyToken, in.ReplyUntil = "sesame", agent.At(time.Now().Add(time.Hour))
	r := receiveOne(t, db, id, in)
	if r.New != 1 || len(r.Messages) != 1 || !r.Active {
		t.Fatalf("received %+v", r)
	}
	types, last := eventTypes(t, db, before.Seq)
	if !slices.Equal(types, []string{
		agent.EventContactCreated,
		agent.EventConversationCreated,
		agent.EventMessageReceived,
	}) {
		t.Errorf("events %v", types)
	}
	var data struct {
		Message      agent.Message
		Conversation agent.Conversation
		Contact      agent.Contact
		Gateway      agent.Gateway
	}
	if err := json.Unmarshal(last.Data, &data); err != nil {
		t.Fatal(err)
	}
	if data.Message.Content != "Hello" ||
		data.Conversation.ExternalThreadID != "t1" ||
		data.Conversation.GatewayID != id ||
		data.Conversation.ContactID != data.Contact.ID ||
		data.Contact.Telegram != "@ada" ||
		data.Contact.Name != "Name of telegram:7" ||
		data.Gateway.ID != id ||
		data.Gateway.Status != agent.GatewayActive {
		t.Errorf("event %s", last.Data)
	}
	if got := string(data.Message.Metadata); got != `{"attachments":[{"type":"photo"}],"external_id":"m1"}` {
		t.Errorf("metadata %s", got)
	}
	if n := value[int](
		t,
		db,
		"SELECT count(*) FROM _secrets WHERE owner = ? AND field = 'reply'",
		data.Conversation.ID,
	); n != 1 {
		t.Error("the reply token was not kept")
	}
	for range 3 {
		if again := receiveOne(t, db, id, in); again.New != 0 || len(again.Messages) != 0 {
			t.Errorf("a repeat changed %+v", again)
		}
	}
	if more, _ := eventTypes(t, db, last.Seq); len(more) != 0 {
		t.Errorf("events of a repeat %v", more)
	}
	receiveOne(t, db, id, inboundText("m2", "t1", "telegram:7", "And again"))
	g, err := db.Gateway(t.Context(), id)
	if err != nil || g.EventCount != 2 || g.EventsToday != 2 || g.LastEventAt.IsZero() {
		t.Errorf("counts %+v, %v", g, err)
	}
	for table, want := range map[string]int{"contacts": 1, "conversations": 1, "messages": 2} {
		if n := value[int](t, db, "SELECT count(*) FROM "+table); n != want {
			t.Errorf("%d %s, want %d", n, table, want)
		}
	}
	do(t, db, "UPDATE gateways SET events_day = '2020-01-01', events_today = 900")
	receiveOne(t, db, id, inboundText("m3", "t1", "telegram:7", "Tomorrow"))
	if g, _ := db.Gateway(t.Context(), id); g.EventsToday != 1 || g.EventCount != 3 {
		t.Errorf("on another day %d of %d", g.EventsToday, g.EventCount)
	}
}

// A message that reaches an inactive gateway is counted once and not stored, and is
// accepted when it is sent again.
func TestReceiveWhileInactive(t *testing.T) {
	db := openFolder(t).Default()
	for _, status := range []agent.GatewayStatus{agent.GatewayInactive, agent.GatewayPending, agent.GatewayFailed} {
		id := inboundGateway(t, db, agent.GatewaySMS, status)
		for range 2 {
			if r := receiveOne(t, db, id, inboundText("m1", "t", "a", "Hello")); r.Active || len(r.Messages) != 0 {
				t.Errorf("%s: %+v", status, r)
			}
		}
		if g, _ := db.Gateway(t.Context(), id); g.EventCount != 1 {
			t.Errorf("%s: counted %d", status, g.EventCount)
		}
		if n := value[int](t, db, "SELECT count(*) FROM messages"); n != 0 {
			t.Errorf("%s: %d messages", status, n)
		}
		do(t, db, "UPDATE gateways SET status = 'active' WHERE id = ?", id)
		if r := receiveOne(t, db, id, inboundText("m1", "t", "a", "Hello")); len(r.Messages) != 1 {
			t.Errorf("%s: sent again once active: %+v", status, r)
		}
		do(t, db, "DELETE FROM conversations")
	}
	if _, err := db.ReceiveInbound(
		t.Context(),
		"gateway-none",
		[]Receipt{{EventID: "x"}},
		0,
	); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("of no gateway: %v", err)
	}
}

// Anything other than a message becomes an event of its own, once.
func TestReceiveOther(t *testing.T) {
	db := openFolder(t).Default()
	id := inboundGateway(t, db, agent.GatewayWebhook, agent.GatewayActive)
	long := `"` + strings.Repeat("x", maxEventValue) + `"`
	for n, tc := range []struct{ payload, want string }{
		{`{"reaction":"👍"}`, `{"reaction":"👍"}`},
		{``, `null`},
		{`{broken`, `null`},
		{long, `null`},
		{`"a < b"`, `"a \u003c b"`},
	} {
		_, before := eventTypes(t, db, 0)
		r := Receipt{EventID: fmt.Sprint("e", n), Payload: json.RawMessage(tc.payload)}
		for range 2 {
			if _, err := db.ReceiveInbound(t.Context(), id, []Receipt{r}, 0); err != nil {
				t.Fatal(err)
			}
		}
		types, last := eventTypes(t, db, before.Seq)
		var data struct {
			Gateway agent.Gateway
			Payload json.RawMessage
		}
		if err := json.Unmarshal(last.Data, &data); err != nil ||
			!slices.Equal(types, []string{agent.EventGatewayEvent}) ||
			data.Gateway.ID != id ||
			string(data.Payload) != tc.want {
			t.Errorf("%.20s: events %v, %.200s, %v", tc.payload, types, last.Data, err)
		}
	}
	for range 2 { // without an id a repeat cannot be recognized
		if r, err := db.ReceiveInbound(t.Context(), id, []Receipt{{}}, 0); err != nil || r.New != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// A sender is recognized by identifiers, and permanently by the account on the platform.
func TestSenders(t *testing.T) {
	db := openFolder(t).Default()
	telegram := inboundGateway(t, db, agent.GatewayTelegram, agent.GatewayActive)
	hook := inboundGateway(t, db, agent.GatewayWebhook, agent.GatewayActive)
	ada, err := db.CreateContact(t.Context(), agent.ContactChange{
		Name:       agent.Some("Ada"),
		Telegram:   agent.Some("ada"),
		Email:      agent.Some("ada@example.com"),
		ExternalID: agent.Some("crm-1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	serial := 0
	from := func(gateway, account, handle, email string) string {
		t.Helper()
		serial++
		in := inboundText(fmt.Sprint(serial), "thread of "+account, account, "Hi")
		in.From.Telegram, in.From.Email = agent.Some(handle), agent.Some(email)
		r := receiveOne(t, db, gateway, in)
		return value[string](t, db, "SELECT contact_id FROM conversations WHERE id = ?", r.Messages[0].ConversationID)
	}
	if got := from(telegram, "telegram:1", "@Ada", ""); got != ada.ID {
		t.Error("the contact was not found by the handle")
	}
	if got := from(telegram, "telegram:1", "@lovelace", ""); got != ada.ID {
		t.Error("a new handle of the same account made another contact")
	}
	mallory := from(telegram, "telegram:2", "@ada", "")
	if mallory == ada.ID {
		t.Error("the account that took over the handle was taken for the contact")
	}
	if c, _ := db.Contact(t.Context(), mallory); c.Telegram != "" || c.ExternalID != "telegram:2" {
		t.Errorf("the newcomer is %+v", c)
	}
	if got := from(hook, "crm-1", "", ""); got != ada.ID {
		t.Error("the contact was not found by its external id")
	}
	if got := from(hook, "crm-2", "", "Ada@Example.com"); got != ada.ID {
		t.Error("the contact was not found by the email")
	}
	if err := db.DeleteContact(t.Context(), ada.ID); err != nil {
		t.Fatal(err)
	}
	again := from(telegram, "telegram:1", "@lovelace", "")
	if c, err := db.Contact(t.Context(), again); err != nil || c.Name != "Name of telegram:1" {
		t.Errorf("after the contact was deleted: %+v, %v", c, err)
	}
	do(t, db, "UPDATE contacts SET id = 'contact-renamed' WHERE id = ?", again)
	if got := from(telegram, "telegram:1", "", ""); got == again {
		t.Error("the account refers to a deleted contact")
	}
}

// In a group thread the message names its author.
func TestReceiveInGroup(t *testing.T) {
	db := openFolder(t).Default()
	id := inboundGateway(t, db, agent.GatewayTelegram, agent.GatewayActive)
	receiveOne(t, db, id, inboundText("1", "group", "telegram:1", "I am first"))
	receiveOne(
		t,
		db,
		id,
		inboundText("2", "group", "telegram:2", "And I second"),
		inboundText("3", "group", "telegram:1", "Well"),
	)
	events, err := db.Events(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range events {
		var data struct{ Contact agent.Contact }
		if e.Type == agent.EventMessageReceived && json.Unmarshal(e.Data, &data) == nil {
			names = append(names, data.Contact.ExternalID)
		}
	}
	if !slices.Equal(names, []string{"telegram:1", "telegram:2", "telegram:1"}) {
		t.Errorf("events name %v", names)
	}
	if n := value[int](t, db, "SELECT count(*) FROM conversations"); n != 1 {
		t.Errorf("%d conversations", n)
	}
}

// No message that a platform sends, however odd, may fail the write.
func TestReceiveOddities(t *testing.T) {
	db := openFolder(t).Default()
	id := inboundGateway(t, db, agent.GatewayTelegram, agent.GatewayActive)
	long := strings.Repeat("é", 300_000)
	for name, in := range map[string]agent.Inbound{
		"nothing": {},
		"all too long": {
			ID:       long,
			Thread:   long,
			Text:     long,
			Metadata: json.RawMessage(`{"a":"` + long + `"}`),
			From: agent.ContactChange{
				Name:       agent.Some(long),
				Email:      agent.Some(long),
				Phone:      agent.Some(long),
				Telegram:   agent.Some(long),
				ExternalID: agent.Some(long),
				Notes:      agent.Some(long),
			},
		},
		"NUL": {
			ID:     "a\x00b",
			Thread: "c\x00d",
			Text:   "e\x00f",
			From:   agent.ContactChange{Name: agent.Some("\x00"), Telegram: agent.Some("@x\x00")},
		},
		"no UTF-8": {
			ID:     "\xff",
			Thread: "\xfe",
			Text:   "\xff\xfe",
			From:   agent.ContactChange{Name: agent.Some("\xff"), WhatsApp: agent.Some("\xff")},
		},
		"bad fields": {
			ID:       "b",
			Thread:   "b",
			Text:     " ",
			Metadata: json.RawMessage(`[1]`),
			From: agent.ContactChange{
				Email:    agent.Some("not an email"),
				Phone:    agent.Some("call me"),
				Tags:     agent.Some([]string{long}),
				Metadata: agent.Some(json.RawMessage(`7`)),
			},
		},
		"deep": {
			ID:       "d",
			Thread:   "d",
			Text:     "x",
			Metadata: json.RawMessage(`{"a":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`),
		},
	} {
		r, err := db.ReceiveInbound(t.Context(), id, []Receipt{{EventID: name, Messages: []agent.Inbound{in}}}, 0)
		if err != nil || len(r.Messages) != 1 {
			t.Errorf("%s: %+v, %v", name, r, err)
			continue
		}
		if err := r.Messages[0].Validate(); err != nil {
			t.Errorf("%s: the message is not valid: %v", name, err)
		}
	}
	contacts, _, err := db.Contacts(t.Context(), nil, Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range contacts {
		if err := c.Validate(); err != nil {
			t.Errorf("the contact %s is not valid: %v", c.Name, err)
		}
	}
}

func TestNoteGatewayError(t *testing.T) {
	db := openFolder(t).Default()
	id := inboundGateway(t, db, agent.GatewayWebhook, agent.GatewayActive)
	past := agent.At(time.Now().Add(-time.Hour))
	for range 2 {
		if err := db.noteGatewayError(t.Context(), id, "bad signature", past); err != nil {
			t.Fatal(err)
		}
	}
	first, _ := db.Gateway(t.Context(), id)
	if first.LastError != "bad signature" ||
		first.LastErrorAt.IsZero() ||
		first.Status != agent.GatewayActive ||
		first.EventCount != 0 {
		t.Errorf("noted %+v", first)
	}
	if err := db.noteGatewayError(t.Context(), id, "another", past); err != nil {
		t.Fatal(err)
	}
	do(t, db, "UPDATE gateways SET last_error_at = ?", past.String())
	if err := db.NoteGatewayError(t.Context(), id, "another"); err != nil {
		t.Fatal(err)
	}
	if g, _ := db.Gateway(t.Context(), id); g.LastError != "another" || !g.LastErrorAt.After(past.Time) {
		t.Errorf("noted %+v", g)
	}
}

// A content hash is recognized for five minutes, an id as long as it is kept, and a
// delivery's id as well.
func TestReceiveHashed(t *testing.T) {
	db := openFolder(t).Default()
	id := inboundGateway(t, db, agent.GatewayWebhook, agent.GatewayActive)
	receive := func(r Receipt) int {
		t.Helper()
		got, err := db.ReceiveInbound(t.Context(), id, []Receipt{r}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return got.New
	}
	later := func(minutes int) {
		t.Helper()
		do(
			t,
			db,
			"UPDATE _inbound SET created_at = strftime('%Y-%m-%dT%H:%M:%fZ', created_at, ?)",
			fmt.Sprintf("-%d minutes", minutes),
		)
	}
	yes := func(hashed bool) Receipt {
		in := inboundText("hash", "t", "ada", "yes")
		in.Hashed = hashed
		return Receipt{EventID: in.ID, Messages: []agent.Inbound{in}}
	}
	push := func(hash, delivery string) Receipt {
		return Receipt{EventID: hash, Hashed: true, Delivery: delivery, Payload: json.RawMessage(`{}`)}
	}
	for _, step := range []struct {
		name    string
		minutes int
		receipt Receipt
		want    int
	}{
		{"a message", 0, yes(true), 1},
		{"its replay", 4, yes(true), 0},
		{"the same content later", 2, yes(true), 1},
		{"and replayed", 4, yes(true), 0},
		{"the same content as an id", 60, yes(false), 0},
		{"a push", 0, push("h1", "g1"), 1},
		{"its replay with another id", 4, push("h1", "g2"), 0},
		{"redelivered", 60, push("h1", "g1"), 0},
		{"the same body, sent intentionally again", 6, push("h1", "g3"), 1},
		{"another body", 0, push("h2", "g4"), 1},
		{"with a known id", 0, push("h3", "g4"), 0},
		{"without an id", 0, push("h4", ""), 1},
		{"and repeated", 0, push("h4", ""), 0},
	} {
		later(step.minutes)
		if n := receive(step.receipt); n != step.want {
			t.Errorf("%s: %d new, want %d", step.name, n, step.want)
		}
	}
	if n := value[int](t, db, "SELECT count(*) FROM messages"); n != 2 {
		t.Errorf("%d messages", n)
	}
}

// The remembered ids are bounded by age and by number.
func TestInboundIsTrimmed(t *testing.T) {
	db := openFolder(t).Default()
	id := inboundGateway(t, db, agent.GatewayWebhook, agent.GatewayActive)
	do(
		t,
		db,
		`INSERT INTO _inbound SELECT ?, 'm:' || value, '2020-01-01T00:00:00.000Z' FROM json_each('[1,2,3,4,5]')`,
		id,
	)
	receiveOne(t, db, id, inboundText("new", "t", "a", "x"))
	if _, err := Write(t.Context(), db, func(tx *Tx) (bool, error) { return trim(tx) }); err != nil {
		t.Fatal(err)
	}
	if n := value[int](t, db, "SELECT count(*) FROM _inbound"); n != 1 {
		t.Errorf("%d ids are left", n)
	}
}
