package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

func subscribed(t *testing.T, db *DB, events ...string) agent.Webhook {
	t.Helper()
	w, err := db.CreateWebhook(
		t.Context(),
		agent.Webhook{URL: "https://example.com/", Events: events, Active: true},
		"whsec_x",
	)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func enqueued(t *testing.T, db *DB, events []agent.Event) int {
	t.Helper()
	n, err := db.EnqueueDeliveries(t.Context(), events, agent.Now())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestEnqueue checks that an event is delivered to the webhooks that had subscribed
// before it happened.
func TestEnqueue(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	createContact(t, db, named("before"))
	subscribed(t, db, "contact.created")
	off := subscribed(t, db, "*")
	both := subscribed(t, db, "contact.*", "source.ready")
	subscribed(t, db, "source.ready")
	if _, err := db.UpdateWebhook(t.Context(), off.ID, agent.WebhookChange{Active: agent.Some(false)}); err != nil {
		t.Fatal(err)
	}
	createContact(t, db, named("after"))
	do(t, db, "UPDATE contacts SET name = 'changed' WHERE name = 'after'")
	events := eventsAfter(t, db, 0)
	if n := enqueued(t, db, events); n != 3 {
		t.Errorf("%d deliveries, want 3", n)
	}
	if n := enqueued(t, db, events); n != 0 {
		t.Errorf("%d deliveries of events that had been delivered", n)
	}
	if _, err := db.UpdateWebhook(t.Context(), off.ID, agent.WebhookChange{Active: agent.Some(true)}); err != nil {
		t.Fatal(err)
	}
	if n := enqueued(t, db, events); n != 0 {
		t.Errorf("%d deliveries of events from while the webhook was off", n)
	}
	do(t, db, `UPDATE webhooks SET events = '[1,{"a":2}]' WHERE id = ?`, both.ID) // as SQL may
	createContact(t, db, named("later"))
	if n := enqueued(t, db, eventsAfter(t, db, events[len(events)-1].Seq)); n != 2 {
		t.Errorf("%d deliveries next to a subscription that SQL broke, want 2", n)
	}
}

// TestFullQueue checks that deliveries beyond the bound fail at once, and can be repeated
// by hand.
func TestFullQueue(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	w := subscribed(t, db, "contact.created")
	do(t, db, `WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM k WHERE i < ?)
		INSERT INTO _deliveries(id, webhook_id, event_id, event, body, status, next_attempt_at, created_at)
		SELECT 'd' || i, ?, 'e' || i, 'contact.created', '{}', 'pending', ?3, ?3 FROM k`, MaxPending-1, w.ID, agent.Now())
	var events []agent.Event
	for i := range 3 {
		events = append(events, agent.Event{
			Seq:       int64(i + 1000),
			ID:        fmt.Sprint("event-", i),
			Type:      "contact.created",
			Data:      []byte("{}"),
			CreatedAt: agent.Now(),
		})
	}
	if n := enqueued(t, db, events); n != 1 {
		t.Errorf("%d of 3 fit where one has room", n)
	}
	failed, n, err := db.Deliveries(t.Context(), w.ID, []string{"failed"}, Page{Limit: 10})
	if err != nil ||
		n != 2 ||
		!strings.Contains(failed[0].Error, "10000 deliveries were waiting") ||
		!failed[0].NextAttemptAt.IsZero() {
		t.Fatalf("%d failed: %+v, %v", n, failed, err)
	}
	if d, err := db.Redeliver(t.Context(), w.ID, failed[0].ID, agent.Now()); err != nil ||
		d.Status != agent.DeliveryPending {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestDue checks that due deliveries come in order, up to a bound for each subscription,
// one for a subscription that fails, and that the next due time is returned.
func TestDue(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	one, two := subscribed(t, db, "*"), subscribed(t, db, "*")
	now := agent.At(time.Now())
	at := func(d time.Duration) agent.Time { return agent.At(now.Add(d)) }
	for i, d := range []struct {
		webhook, id string
		at          agent.Time
		status      string
	}{
		{one.ID, "late", at(-time.Minute), "pending"},
		{one.ID, "later", at(0), "pending"},
		{one.ID, "third", at(0), "pending"},
		{one.ID, "done", agent.Time{}, "delivered"},
		{two.ID, "soon", at(time.Second), "pending"},
		{two.ID, "far", at(time.Hour), "pending"},
	} {
		do(
			t,
			db,
			`INSERT INTO _deliveries(id, webhook_id, event_id, event, body, status, next_attempt_at, created_at) `+
				`VALUES (?,?,?,'x','{}',?,?,?)`,
			d.id,
			d.webhook,
			fmt.Sprint("e", i),
			d.status,
			d.at,
			now,
		)
	}
	due, next, err := db.DueDeliveries(t.Context(), now, 2)
	if err != nil ||
		len(due) != 1 ||
		due[0].WebhookID != one.ID ||
		fmt.Sprint(due[0].IDs) != "[late later]" ||
		next != at(time.Second) {
		t.Errorf("%+v, next %s, %v", due, next, err)
	}
	do(t, db, "UPDATE webhooks SET failure_count = 1 WHERE id = ?", one.ID)
	if due, _, err := db.DueDeliveries(t.Context(), now, 2); err != nil ||
		len(due) != 1 ||
		fmt.Sprint(due[0].IDs) != "[late]" {
		t.Errorf("for a subscription that fails: %+v, %v", due, err)
	}
	for id, want := range map[string]bool{"late": true, "done": false, "soon": false, "gone": false} {
		if o, err := db.Outgoing(t.Context(), id, now); err != nil || (o != nil) != want {
			t.Errorf("%s is sent: %v, %v", id, o != nil, err)
		}
	}
	if err := db.DeleteWebhook(t.Context(), two.ID); err != nil {
		t.Fatal(err)
	}
	if n := value[int](
		t,
		db,
		"SELECT (SELECT count(*) FROM _deliveries WHERE webhook_id = ?) + (SELECT count(*) "+
			"FROM _secrets WHERE owner = ?)",
		two.ID,
		two.ID,
	); n != 0 {
		t.Errorf("a deleted subscription left %d rows", n)
	}
}

// TestLockedWebhook checks that a webhook cannot sign under another master key, and that
// rotating its secret repairs it.
func TestLockedWebhook(t *testing.T) {
	path := t.TempDir()
	f := openAt(t, path, fixtureKey)
	w := subscribed(t, f.Default(), "*")
	closeFolder(t, f)
	db := openAt(t, path, []byte("another key of thirty-two bytes!")).Default()
	if secrets, err := db.WebhookSecrets(t.Context(), w.ID, agent.Now()); err == nil {
		t.Errorf("opened %v", secrets)
	}
	if _, err := db.RotateWebhookSecret(
		t.Context(),
		w.ID,
		"whsec_new",
		agent.At(time.Now().Add(time.Hour)),
	); err != nil {
		t.Fatal(err)
	}
	if secrets, err := db.WebhookSecrets(t.Context(), w.ID, agent.Now()); err != nil ||
		len(secrets) != 1 ||
		secrets[0] != "whsec_new" {
		t.Errorf("after a rotation %v, %v", secrets, err)
	}
}
