package store

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"satchel/agent"
)

func eventsOf(t testing.TB, db *DB) []agent.Event {
	t.Helper()
	events, err := db.Events(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestContactEventsHaveTheWholeContact(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	change := numberedContact(1)
	change.Metadata = agent.Some(json.RawMessage(`{"k":{"deep":[1,"ü"]}}`))
	made := createContact(t, db, change)
	updated, err := db.UpdateContact(t.Context(), made.ID, agent.ContactChange{Notes: agent.Some("x")})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.DeleteContact(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	events := eventsOf(t, db)
	if len(events) != 3 {
		t.Fatalf("%d events", len(events))
	}
	last := int64(0)
	ids := map[string]bool{}
	for n, want := range []struct {
		event   string
		contact agent.Contact
	}{{agent.EventContactCreated, made}, {agent.EventContactUpdated, updated}, {agent.EventContactDeleted, updated}} {
		e := events[n]
		body, err := json.Marshal(map[string]any{"contact": want.contact})
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != want.event || string(e.Data) != string(body) {
			t.Errorf("event %d: %s %s\nwant %s %s", n, e.Type, e.Data, want.event, body)
		}
		if e.Seq <= last || ids[e.ID] || !strings.HasPrefix(e.ID, "event-") || e.CreatedAt.IsZero() || e.Depth != 0 {
			t.Errorf("event %d: %+v", n, e)
		}
		last, ids[e.ID] = e.Seq, true
	}
	if rest, err := db.Events(t.Context(), events[1].Seq, 10); err != nil || len(rest) != 1 {
		t.Errorf("after the second: %d, %v", len(rest), err)
	}
	if first, err := db.Events(t.Context(), 0, 1); err != nil || len(first) != 1 || first[0].Seq != events[0].Seq {
		t.Errorf("the first: %+v, %v", first, err)
	}
}

// A write that is rolled back leaves no event, no audit row and no count.
func TestEventsRollBackWithTheirWrite(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ctx := WithActor(t.Context(), "ada@x.y")
	failure := errors.New("failure")
	err := db.Do(ctx, func(tx *Tx) error {
		c := agent.Contact{Name: "x", Tags: []string{"vip"}, Metadata: json.RawMessage("{}")}
		return errors.Join(
			tx.insertContact(&c),
			tx.emit("message.sent", map[string]any{}),
			tx.audit("x", nil),
			failure,
		)
	})
	if !errors.Is(err, failure) {
		t.Fatal(err)
	}
	for _, table := range []string{"contacts", "_events", "logs", "_contact_tags"} {
		if n := value[int](t, db, "SELECT count(*) FROM "+table); n != 0 {
			t.Errorf("%d rows in %s", n, table)
		}
	}
	if n := value[int](t, db, "SELECT sum(n) FROM _counts"); n != 0 {
		t.Errorf("the counts are %d", n)
	}
}

func TestEverySingleChangeByAPersonIsAudited(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "a"}, "own@x.y")
	if err != nil {
		t.Fatal(err)
	}
	ctx := WithActor(t.Context(), "ada@x.y")
	const secret = "sk-secret"
	var contact agent.Contact
	var conversation agent.Conversation
	var admin agent.Admin
	for message, act := range map[string]func() error{
		"agent updated": func() error {
			_, err := f.UpdateAgent(ctx, db, agent.AgentChange{Name: agent.Some("b")})
			return err
		},
		"settings updated": func() error {
			_, err := db.UpdateSettings(ctx, agent.SettingsChange{LLMKey: agent.Some(secret)})
			return err
		},
		"backup made": func() error {
			b, err := db.Backup(ctx)
			return errors.Join(err, b.Close())
		},
	} {
		audited(t, db, ctx, message, act)
	}
	audited(t, db, ctx, "contact created", func() (err error) {
		contact, err = db.CreateContact(ctx, named("x"))
		return err
	})
	audited(t, db, ctx, "contact updated", func() error {
		_, err := db.UpdateContact(ctx, contact.ID, named("y"))
		return err
	})
	audited(t, db, ctx, "conversation created", func() (err error) {
		conversation, err = db.CreateConversation(ctx, agent.ConversationChange{})
		return err
	})
	audited(t, db, ctx, "conversation updated", func() error {
		_, err := db.UpdateConversation(ctx, conversation.ID, agent.ConversationChange{})
		return err
	})
	audited(t, db, ctx, "message added", func() error {
		_, err := db.AppendMessage(ctx, agent.Message{ConversationID: conversation.ID, Role: "user", Content: secret})
		return err
	})
	audited(t, db, ctx, "conversation deleted", func() error { return db.DeleteConversation(ctx, conversation.ID) })
	audited(t, db, ctx, "contact deleted", func() error { return db.DeleteContact(ctx, contact.ID) })
	audited(t, db, ctx, "admin added", func() (err error) {
		admin, err = db.CreateAdmin(ctx, agent.Admin{Email: "n@x.y", Role: agent.RoleViewer})
		return err
	})
	audited(t, db, ctx, "admin changed", func() error {
		_, err := db.UpdateAdmin(ctx, admin.ID, agent.RoleAdmin)
		return err
	})
	audited(t, db, ctx, "admin removed", func() error { return db.DeleteAdmin(ctx, admin.ID) })

	before := value[int](t, db, "SELECT count(*) FROM logs")
	createContact(t, db, named("by the program itself"))
	if n := value[int](t, db, "SELECT count(*) FROM logs"); n != before {
		t.Error("the program's own changes were audited")
	}
	if n := value[int](
		t,
		db,
		"SELECT count(*) FROM logs WHERE data LIKE '%"+secret+"%' OR message LIKE '%"+secret+"%'",
	); n != 0 {
		t.Error("the audit log shows a secret")
	}
}

func audited(t *testing.T, db *DB, ctx context.Context, message string, act func() error) {
	t.Helper()
	before := value[int](t, db, "SELECT count(*) FROM logs")
	if err := act(); err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	logs, total, err := db.Logs(ctx, LogFilter{Sources: []string{agent.SourceAudit}}, Page{Limit: 1})
	if err != nil ||
		total != before+1 ||
		logs[0].Message != message ||
		!strings.Contains(string(logs[0].Data), `"by":"ada@x.y"`) {
		t.Errorf("%s: %+v of %d after %d, %v", message, logs, total, before, err)
	}
}
