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

// eventsAfter lists the events after a number.
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

// sameJSON reports whether two values are the same as JSON.
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

// TestEventsHoldTheirRecords checks that the records in events have the shape of the
// API's, whether the API or SQL created them.
func TestEventsHoldTheirRecords(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	do(t, db, "INSERT INTO gateways(id, type, name) VALUES ('gateway-1', 'webhook', 'Shop')")
	person := createContact(t, db, agent.ContactChange{
		Name:  agent.Some("Ada"),
		Tags:  agent.Some([]string{"vip", "é\"\n"}),
		Email: agent.Some("ada@example.com"),
	})
	conversation, err := db.CreateConversation(t.Context(), agent.ConversationChange{
		ContactID: agent.Some(person.ID),
		GatewayID: agent.Some("gateway-1"),
		Muted:     agent.Some(true),
		Metadata:  agent.Some(json.RawMessage(`{"a":[1]}`)),
	})
	if err != nil {
		t.Fatal(err)
	}
	message := say(t, db, conversation.ID, agent.MessageUser, "hello \"you\"")
	askSQL(
		t,
		db,
		"INSERT INTO messages(conversation_id, role, content) VALUES (?, 'assistant', 'by SQL'), "+
			"(?, 'system', 'not told')",
		conversation.ID,
		conversation.ID,
	)
	askSQL(t, db, "INSERT INTO conversations(id) VALUES ('conversation-sql')")
	events := eventsAfter(t, db, 0)
	want := []string{
		"contact.created", "conversation.created", "message.received", "message.sent", "conversation.created",
	}
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
	stored.UpdatedAt, stored.Unread = conversation.UpdatedAt, 1 // before and after the first message
	for _, c := range []struct {
		event int
		noun  string
		want  any
	}{
		{0, "contact", person},
		{1, "conversation", conversation},
		{1, "contact", person},
		{2, "message", message},
		{2, "contact", person},
		{2, "conversation", stored},
		{4, "contact", nil},
		{4, "gateway", nil},
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
		askSQL(t, db, "UPDATE gateways SET status = ? WHERE id = 'gateway-1'", status)
	}
	if got := types(eventsAfter(t, db, 0)); !slices.Equal(got, []string{
		"gateway.active",
		"gateway.error",
		"gateway.active",
	}) {
		t.Errorf("events %v", got)
	}
}

// TestDepth checks that what an execution writes, through the API's methods or by SQL,
// has the execution's depth, and that other writes of the same commit do not.
func TestDepth(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	createContact(t, db, named("shallow"))
	deep := WithChain(t.Context(), agent.Chain{Depth: 3})
	if _, err := db.CreateContact(deep, named("deep")); err != nil {
		t.Fatal(err)
	}
	if _, err := db.SQL(
		WithChain(t.Context(), agent.Chain{Depth: 4}),
		"INSERT INTO contacts(name) VALUES ('deeper'), ('as deep')",
		Params{},
		Access{Write: true},
	); err != nil {
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

// TestOwnMessages checks that a message which an execution writes as the user counts as
// received from nobody, and starts nothing that starts on messages.
func TestOwnMessages(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	c, err := db.CreateConversation(t.Context(), agent.ConversationChange{})
	if err != nil {
		t.Fatal(err)
	}
	deep := WithChain(t.Context(), agent.Chain{Depth: 1})
	for _, role := range []agent.MessageRole{agent.MessageUser, agent.MessageAssistant} {
		if _, err := db.AppendMessage(deep, agent.Message{ConversationID: c.ID, Role: role, Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.SQL(
		deep,
		"INSERT INTO messages(conversation_id, role, content) VALUES (?, 'user', 'x')",
		Params{List: []any{c.ID}},
		Access{Write: true},
	); err != nil {
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
		got, err := db.Undelivered(t.Context(), consumer, 3)
		if err != nil || !reflect.DeepEqual(got.Events, want) {
			t.Errorf("%s: %v, %v, want %v", consumer, got.Events, err, want)
		}
	}
	do(
		t,
		db,
		`INSERT INTO webhooks(id, url, events, created_at, updated_at) `+
			`VALUES ('w','u','["*"]','2026-01-31T09:00:00.000Z','2026-01-31T09:00:00.000Z')`,
	)
	listen(t, db, "*")
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

// listen creates an active workflow whose trigger names an event.
func listen(tb testing.TB, db *DB, event string) agent.Workflow {
	tb.Helper()
	w, err := db.CreateWorkflow(context.Background(), agent.Workflow{
		Name:   event,
		Status: agent.WorkflowActive,
		Nodes:  []agent.RawNode{agent.RawNode(`{"id":"t","type":"trigger","data":{"event":"` + event + `"}}`)},
		Edges:  []agent.RawEdge{},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// TestSubscribedEvents checks that a consumer receives the events that have subscribers,
// and moves past the others without reading them.
func TestSubscribedEvents(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	write := func() (first int64) {
		t.Helper()
		for i, e := range eventsAfter(t, db, 0) {
			if first = e.Seq; i < 0 {
				break
			}
		}
		createContact(t, db, numberedContact(int(first)))
		do(t, db, `INSERT INTO _events(type, data) VALUES ('source.ready','{}')`)
		return first
	}
	for _, c := range []struct {
		name, consumer, begin, end string
		want                       []string
	}{
		{"no subscription", ConsumerWebhooks, "SELECT 1", "SELECT 1", nil},
		{"a subscription", ConsumerWebhooks, `INSERT INTO webhooks(id, url, events, created_at, updated_at)
			VALUES ('w','u','["contact.*"]','2026-01-31T09:00:00.000Z','2026-01-31T09:00:00.000Z')`, "UPDATE webhooks SET active = 0", []string{"contact.created"}},
		{"one that is off", ConsumerWebhooks, "SELECT 1", "SELECT 1", nil},
		{"no trigger", ConsumerWorkflows, "SELECT 1", "SELECT 1", nil},
		{
			"a trigger",
			ConsumerWorkflows,
			`INSERT INTO workflows(id, name, status, nodes) VALUES ('w','n','active','[{"id":"t","type":"trigger",` +
				`"data":{"event":"source.*"}}]')`,
			"UPDATE workflows SET status = 'paused'",
			[]string{"source.ready"},
		},
		{"a paused workflow", ConsumerWorkflows, "SELECT 1", "SELECT 1", nil},
		{"another", "newcomer", "SELECT 1", "SELECT 1", []string{"contact.created", "source.ready"}},
	} {
		do(t, db, c.begin)
		before := write()
		if err := db.PassEvents(t.Context(), c.consumer, before); err != nil {
			t.Fatal(err)
		}
		u, err := db.Undelivered(t.Context(), c.consumer, 10)
		if err != nil ||
			!slices.Equal(types(u.Events), c.want) ||
			u.NoSubscribers != (c.want == nil) ||
			u.After != before ||
			u.Last != before+2 ||
			u.More {
			t.Errorf("%s: %v %+v %v", c.name, types(u.Events), u, err)
		}
		if c.want == nil {
			do(t, db, c.end)
			continue
		}
		if u, err = db.Undelivered(t.Context(), c.consumer, 1); err != nil ||
			len(u.Events) != 1 ||
			!u.More ||
			u.Last != u.Events[0].Seq {
			t.Errorf("%s, one at a time: %+v %v", c.name, u, err)
		}
		do(t, db, c.end)
	}
}

// TestSubscribersStatus checks that an event about a change of status is read with the
// new status, even before UpdateAgent has returned.
func TestSubscribersStatus(t *testing.T) {
	f := openFolder(t)
	db := createAgent(t, f, "a")
	var seen []agent.Status
	f.OnPending(func(db *DB, p Pending) {
		if p.Events.IsZero() {
			return
		}
		u, err := db.Subscribers(context.Background(), []string{agent.EventAgentUpdated})
		if err != nil {
			t.Error(err)
		}
		seen = append(seen, u.Status)
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

// TestOutboxNotifies checks that each commit that wrote events is announced, and no
// other.
func TestOutboxNotifies(t *testing.T) {
	f := openFolder(t)
	db := createAgent(t, f, "a")
	var notified []*DB
	f.OnPending(func(db *DB, p Pending) {
		if !p.Events.IsZero() {
			notified = append(notified, db)
		}
	})
	createContact(t, db, named("x"))
	askSQL(t, db, "INSERT INTO contacts(name) VALUES ('y')")
	if len(notified) != 2 || notified[0] != db || notified[1] != db {
		t.Fatalf("notified %d times", len(notified))
	}
	do(t, db, "UPDATE _agent SET settings_at = settings_at")
	askSQL(t, db, "SELECT 1")
	if _, err := db.closeIdle(); err != nil {
		t.Fatal(err)
	}
	if err := try(db, "INSERT INTO contacts(name) VALUES (NULL)"); err == nil {
		t.Fatal("a contact without a name")
	}
	if len(notified) != 2 {
		t.Errorf("notified %d times of 2 writes with events", len(notified))
	}
	createContact(t, db, named("z"))
	if len(notified) != 3 {
		t.Error("not notified after the file was opened again")
	}
}

// TestTrimWaitsForConsumers checks that an event is not deleted, however old, before all
// consumers have passed it.
func TestTrimWaitsForConsumers(t *testing.T) {
	f := openFolder(t)
	db := createAgent(t, f, "a")
	for range 4 {
		createContact(t, db, named("x"))
	}
	do(t, db, "UPDATE _events SET created_at = '2020-01-01T00:00:00.000Z'")
	events := eventsAfter(t, db, 0)
	for consumer, i := range map[string]int{ConsumerWebhooks: 2, ConsumerWorkflows: 1} {
		if err := db.PassEvents(t.Context(), consumer, events[i].Seq); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.maintain(t.Context(), time.Now(), oneRetention()); err != nil {
		t.Fatal(err)
	}
	if got := eventsAfter(t, db, 0); len(got) != 2 || got[0].Seq != events[2].Seq {
		t.Errorf("%d events are left, want the 2 that one consumer has not passed", len(got))
	}
}

// TestStartFindsUndelivered checks that a start knows which agents have undelivered
// events without opening their files, and that a copy delivers none of them.
func TestStartFindsUndelivered(t *testing.T) {
	f := openFolder(t)
	left, done := createAgent(t, f, "left"), createAgent(t, f, "done")
	for _, db := range []*DB{left, done} {
		createContact(t, db, named("x"))
	}
	for _, consumer := range []string{ConsumerWebhooks, ConsumerWorkflows} {
		if err := done.PassEvents(t.Context(), consumer, 100); err != nil {
			t.Fatal(err)
		}
	}
	do(
		t,
		left,
		`INSERT INTO webhooks(id, url, events, created_at, updated_at) `+
			`VALUES ('w','u','["*"]','2026-01-31T09:00:00.000Z','2026-01-31T09:00:00.000Z')`,
	)
	do(
		t,
		left,
		`INSERT INTO _deliveries(id, webhook_id, event_id, event, body, status, next_attempt_at, created_at) `+
			`VALUES ('d','w','e','x','{}','pending','2026-02-01T00:00:00.000Z','x')`,
	)
	fork, err := f.Fork(t.Context(), left, "copy", "")
	if err != nil {
		t.Fatal(err)
	}
	if !fork.Pending().Events.IsZero() || !fork.Pending().Deliveries.IsZero() {
		t.Error("a copy has events to deliver")
	}
	if rest, err := fork.Undelivered(t.Context(), "workflows", 10); err != nil || rest.Last != rest.After {
		t.Errorf("a copy has events to deliver: %+v, %v", rest, err)
	}
	f = restart(t, f)
	left, done = byName(t, f, "left"), byName(t, f, "done")
	if _, ok := f.cache.find(left.id, left.path, f.path); !ok {
		t.Error("the file was not cached")
	}
	if left.Pending().Events.IsZero() ||
		left.Pending().Deliveries.String() != "2026-02-01T00:00:00.000Z" ||
		!done.Pending().Events.IsZero() ||
		!done.Pending().Deliveries.IsZero() {
		t.Errorf("left: %+v, done: %+v", left.Pending(), done.Pending())
	}
}

// TestListenersSince checks that a trigger is subscribed from when its workflow became active,
// whatever is edited meanwhile.
func TestListenersSince(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	w := listen(t, db, "contact.created")
	since := func() int64 {
		t.Helper()
		subscribers, err := db.Subscribers(t.Context(), []string{"contact.created", "contact.deleted"})
		if err != nil || len(subscribers.Listeners) != 1 {
			t.Fatalf("%+v %v", subscribers, err)
		}
		return subscribers.Listeners[0].Since
	}
	newest := func() int64 { return value[int64](t, db, lastEvent) }
	made := since()
	createContact(t, db, named("one"))
	do(
		t,
		db,
		`UPDATE workflows SET nodes = '[{"id":"t","type":"trigger","data":{"event":"contact.created","x":1}},`+
			`{"id":"n","type":"set"}]' WHERE id = ?`,
		w.ID,
	)
	if made >= newest() || since() != made {
		t.Errorf("an edited trigger is subscribed from %d, before from %d of %d", since(), made, newest())
	}
	do(
		t,
		db,
		`UPDATE workflows SET nodes = '[{"id":"t","type":"trigger","data":{"event":"contact.deleted"}}]' WHERE id = ?`,
		w.ID,
	)
	if since() != newest() {
		t.Errorf("a trigger of another event is subscribed from %d, not %d", since(), newest())
	}
	do(t, db, `UPDATE workflows SET status = 'paused' WHERE id = ?`, w.ID)
	createContact(t, db, named("two"))
	do(t, db, `UPDATE workflows SET status = 'active' WHERE id = ?`, w.ID)
	if since() != newest() {
		t.Errorf("a workflow that is active again is subscribed from %d, not %d", since(), newest())
	}
}
