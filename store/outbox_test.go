package store

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"satchel/agent"
)

// eventsAfter lists the events behind a number.
func eventsAfter(t testing.TB, db *DB, seq int64) []agent.Event {
	t.Helper()
	events, err := db.Events(t.Context(), seq, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func types(events []agent.Event) []string {
	names := []string{}
	for _, e := range events {
		names = append(names, e.Type)
	}
	return names
}

// sameJSON tells whether two values are the same as JSON.
func sameJSON(t testing.TB, a, b any) bool {
	t.Helper()
	var decoded [2]any
	for i, v := range []any{a, b} {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &decoded[i]); err != nil {
			t.Fatal(err)
		}
	}
	return reflect.DeepEqual(decoded[0], decoded[1])
}

// TestEventsHoldTheirRecords: what triggers write has the shape of the API,
// whether the API or SQL made the record.
func TestEventsHoldTheirRecords(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	do(t, db, "INSERT INTO gateways(id, type, name) VALUES ('gateway-1', 'webhook', 'Shop')")
	person := createContact(t, db, agent.ContactChange{Name: agent.Some("Ada"), Tags: agent.Some([]string{"vip", "é\"\n"}), Email: agent.Some("ada@example.com")})
	conversation, err := db.CreateConversation(t.Context(), agent.ConversationChange{ContactID: agent.Some(person.ID),
		GatewayID: agent.Some("gateway-1"), Muted: agent.Some(true), Metadata: agent.Some(json.RawMessage(`{"a":[1]}`))})
	if err != nil {
		t.Fatal(err)
	}
	message := say(t, db, conversation.ID, agent.MessageUser, "hello \"you\"")
	askDoor(t, db, "INSERT INTO messages(conversation_id, role, content) VALUES (?, 'assistant', 'by SQL'), (?, 'system', 'not told')", conversation.ID, conversation.ID)
	askDoor(t, db, "INSERT INTO conversations(id) VALUES ('conversation-sql')")
	events := eventsAfter(t, db, 0)
	want := []string{"contact.created", "conversation.created", "message.received", "message.sent", "conversation.created"}
	if got := types(events); !slices.Equal(got, want) {
		t.Fatalf("events %v, want %v", got, want)
	}
	data := func(i int) map[string]any {
		var d map[string]any
		if err := json.Unmarshal(events[i].Data, &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	stored, _, err := db.Conversation(t.Context(), conversation.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	stored.UpdatedAt = conversation.UpdatedAt // of before the messages
	for _, c := range []struct {
		event int
		noun  string
		want  any
	}{
		{0, "contact", person}, {1, "conversation", conversation}, {1, "contact", person},
		{2, "message", message}, {2, "contact", person}, {2, "conversation", stored}, {4, "contact", nil}, {4, "gateway", nil},
	} {
		if got := data(c.event)[c.noun]; !sameJSON(t, got, c.want) {
			t.Errorf("%s of event %d is %v, want %+v", c.noun, c.event, got, c.want)
		}
	}
	if g, _ := data(3)["gateway"].(map[string]any); g["id"] != "gateway-1" || g["is_default"] != false {
		t.Errorf("gateway of the message: %v", g)
	}
}

func TestGatewayEvents(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	do(t, db, "INSERT INTO gateways(id, type, name) VALUES ('gateway-1', 'webhook', 'Shop')")
	for _, status := range []string{"active", "active", "inactive", "error", "active"} {
		askDoor(t, db, "UPDATE gateways SET status = ? WHERE id = 'gateway-1'", status)
	}
	if got := types(eventsAfter(t, db, 0)); !slices.Equal(got, []string{"gateway.active", "gateway.error", "gateway.active"}) {
		t.Errorf("events %v", got)
	}
}

// TestDepth: what an execution writes, by the API's ways or by SQL, is as deep
// as the execution, and other writes of the same commit are not.
func TestDepth(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	createContact(t, db, named("shallow"))
	deep := WithDepth(t.Context(), 3)
	if _, err := db.CreateContact(deep, named("deep")); err != nil {
		t.Fatal(err)
	}
	if _, err := db.SQL(WithDepth(t.Context(), 4), "INSERT INTO contacts(name) VALUES ('deeper'), ('as deep')", Params{}, Access{Write: true}); err != nil {
		t.Fatal(err)
	}
	createContact(t, db, named("shallow again"))
	var depths []int
	for _, e := range eventsAfter(t, db, 0) {
		depths = append(depths, e.Depth)
	}
	if !slices.Equal(depths, []int{0, 3, 4, 4, 0}) {
		t.Errorf("depths %v", depths)
	}
}

// TestOwnMessages: what an execution writes as the user was received from
// nobody, and must not start what starts on messages.
func TestOwnMessages(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	c, err := db.CreateConversation(t.Context(), agent.ConversationChange{})
	if err != nil {
		t.Fatal(err)
	}
	deep := WithDepth(t.Context(), 1)
	for _, role := range []agent.MessageRole{agent.MessageUser, agent.MessageAssistant} {
		if _, err := db.AppendMessage(deep, agent.Message{ConversationID: c.ID, Role: role, Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.SQL(deep, "INSERT INTO messages(conversation_id, role, content) VALUES (?, 'user', 'x')", Params{List: []any{c.ID}}, Access{Write: true}); err != nil {
		t.Fatal(err)
	}
	if got := types(eventsAfter(t, db, 0)); !slices.Equal(got, []string{"conversation.created", "message.sent"}) {
		t.Errorf("events %v", got)
	}
}

func TestUndelivered(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	for i := range 5 {
		createContact(t, db, named(fmt.Sprint("c", i)))
	}
	events := eventsAfter(t, db, 0)
	check := func(consumer string, want []agent.Event) {
		t.Helper()
		got, _, err := db.Undelivered(t.Context(), consumer, 3)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v, want %v", consumer, got, err, want)
		}
	}
	check(ConsumerWebhooks, events[:3])
	for _, seq := range []int64{events[3].Seq, events[1].Seq} { // a cursor never goes back
		if err := db.PassEvents(t.Context(), ConsumerWebhooks, seq); err != nil {
			t.Fatal(err)
		}
	}
	check(ConsumerWebhooks, events[4:])
	check(ConsumerWorkflows, events[:3])
	check("newcomer", events[:3])
}

// TestUndeliveredStatus: an event that tells of a change of status is read with
// the status of after it, even before UpdateAgent has returned.
func TestUndeliveredStatus(t *testing.T) {
	f := openFolder(t)
	db := createAgent(t, f, "a")
	var seen []agent.Status
	f.OnEvents(func(db *DB) {
		_, standing, err := db.Undelivered(context.Background(), ConsumerWorkflows, 1)
		if err != nil {
			t.Error(err)
		}
		seen = append(seen, standing.Status)
	})
	want := []agent.Status{agent.StatusPaused, agent.StatusActive, agent.StatusDisabled}
	for _, status := range want {
		if _, err := f.UpdateAgent(t.Context(), db, agent.AgentChange{Status: agent.Some(status)}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(seen, want) {
		t.Errorf("read %v, want %v", seen, want)
	}
}

// TestOutboxTells: each commit that wrote events tells of it, others do not.
func TestOutboxTells(t *testing.T) {
	f := openFolder(t)
	db := createAgent(t, f, "a")
	var told []*DB
	f.OnEvents(func(db *DB) { told = append(told, db) })
	createContact(t, db, named("x"))
	askDoor(t, db, "INSERT INTO contacts(name) VALUES ('y')")
	if len(told) != 2 || told[0] != db || told[1] != db {
		t.Fatalf("told %d times", len(told))
	}
	do(t, db, "UPDATE _agent SET settings_at = settings_at")
	askDoor(t, db, "SELECT 1")
	if _, err := db.closeIdle(); err != nil {
		t.Fatal(err)
	}
	if err := try(db, "INSERT INTO contacts(name) VALUES (NULL)"); err == nil {
		t.Fatal("a contact without a name")
	}
	if len(told) != 2 {
		t.Errorf("told %d times of 2 writes with events", len(told))
	}
	createContact(t, db, named("z"))
	if len(told) != 3 {
		t.Error("not told after the file was opened again")
	}
}

// TestTrimWaitsForConsumers: age alone deletes nothing that a consumer has
// not passed.
func TestTrimWaitsForConsumers(t *testing.T) {
	f := openFolder(t)
	db := createAgent(t, f, "a")
	for range 4 {
		createContact(t, db, named("x"))
	}
	do(t, db, "UPDATE _events SET created_at = '2020-01-01T00:00:00.000Z'")
	events := eventsAfter(t, db, 0)
	for consumer, i := range map[string]int{ConsumerWebhooks: 2, ConsumerAnswers: 3, ConsumerWorkflows: 1} {
		if err := db.PassEvents(t.Context(), consumer, events[i].Seq); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.tend(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := eventsAfter(t, db, 0); len(got) != 2 || got[0].Seq != events[2].Seq {
		t.Errorf("%d events are left, want the 2 that one consumer has not passed", len(got))
	}
}

// TestStartFindsUndelivered: a start knows which agents have events left
// without opening their files, and a copy delivers none of them.
func TestStartFindsUndelivered(t *testing.T) {
	f := openFolder(t)
	left, done := createAgent(t, f, "left"), createAgent(t, f, "done")
	for _, db := range []*DB{left, done} {
		createContact(t, db, named("x"))
	}
	for _, consumer := range []string{ConsumerWebhooks, ConsumerAnswers, ConsumerWorkflows} {
		if err := done.PassEvents(t.Context(), consumer, 100); err != nil {
			t.Fatal(err)
		}
	}
	do(t, left, `INSERT INTO webhooks(id, url, events, created_at, updated_at) VALUES ('w','u','["*"]','2026-01-31T09:00:00.000Z','2026-01-31T09:00:00.000Z')`)
	do(t, left, `INSERT INTO _deliveries(id, webhook_id, event_id, event, body, status, next_attempt_at, created_at) VALUES ('d','w','e','x','{}','pending','2026-02-01T00:00:00.000Z','x')`)
	fork, err := f.Fork(t.Context(), left, "copy", "")
	if err != nil {
		t.Fatal(err)
	}
	if fork.Behind() || !fork.NextDelivery().IsZero() {
		t.Error("a copy has events to deliver")
	}
	if rest, _, err := fork.Undelivered(t.Context(), ConsumerWorkflows, 10); err != nil || len(rest) != 0 {
		t.Errorf("a copy has %d events to deliver, %v", len(rest), err)
	}
	f = restart(t, f)
	left, done = byName(t, f, "left"), byName(t, f, "done")
	if _, ok := f.recall.find(left.id, left.path, f.path); !ok {
		t.Error("the file was not remembered")
	}
	if !left.Behind() || left.NextDelivery().String() != "2026-02-01T00:00:00.000Z" || done.Behind() || !done.NextDelivery().IsZero() {
		t.Errorf("left: %v %s, done: %v %s", left.Behind(), left.NextDelivery(), done.Behind(), done.NextDelivery())
	}
}
