package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// sendingAgent creates an agent with an active gateway and a conversation on it.
func sendingAgent(t testing.TB, f *Folder) (*DB, agent.Message) {
	t.Helper()
	db := createAgent(t, f, "a")
	g, err := db.CreateGateway(
		t.Context(),
		agent.Gateway{Type: agent.GatewaySlack, Name: "g"},
		agent.GatewayConfig{BotToken: "b"},
		"s",
	)
	if err != nil {
		t.Fatal(err)
	}
	do(t, db, "UPDATE gateways SET status = 'active'")
	c, err := db.CreateConversation(t.Context(), agent.ConversationChange{GatewayID: agent.Some(g.ID)})
	if err != nil {
		t.Fatal(err)
	}
	do(t, db, "UPDATE conversations SET external_thread_id = 'C1'")
	return db, agent.Message{ConversationID: c.ID, Role: agent.MessageAssistant, Content: "hello"}
}

func queued(t testing.TB, db *DB, m agent.Message) agent.Message {
	t.Helper()
	m, err := db.SendMessage(t.Context(), m, false)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const statusOf = "SELECT metadata ->> '$.delivery.status' FROM messages WHERE id = ?"

// TestOneMessagePerConversation checks that only the first message of a conversation is due, and
// the next one once that has ended.
func TestOneMessagePerConversation(t *testing.T) {
	db, m := sendingAgent(t, openFolder(t))
	first, second := queued(t, db, m), queued(t, db, m)
	now := agent.At(time.Now())
	due := func(want ...DueMessage) {
		t.Helper()
		if found, _, err := db.DueMessages(t.Context(), now, 10); err != nil || !slices.Equal(found, want) {
			t.Fatalf("%v are due, want %v: %v", found, want, err)
		}
	}
	waits, sending := DueMessage{m.ConversationID, false}, DueMessage{m.ConversationID, true}
	due(waits)
	s, err := db.BeginSending(t.Context(), m.ConversationID, now)
	if err != nil ||
		s == nil ||
		s.Text != "hello" ||
		s.Attempt != 1 ||
		s.Gateway.Config.BotToken != "b" ||
		s.Conversation.ExternalThreadID != "C1" {
		t.Fatalf("%+v, %v", s, err)
	}
	if again, err := db.BeginSending(t.Context(), m.ConversationID, now); err != nil ||
		again == nil ||
		!again.Interrupted ||
		again.MessageID != first.ID ||
		again.Attempt != 1 {
		t.Errorf("begun twice: %+v, %v", again, err)
	}
	due(sending)
	later := agent.At(now.Add(time.Minute))
	if err := db.EndSending(t.Context(), s, Ended{Problem: "busy", Next: later}); err != nil {
		t.Fatal(err)
	}
	due()
	if _, next, err := db.DueMessages(t.Context(), now, 10); err != nil || next != later {
		t.Errorf("next at %v, %v", next, err)
	}
	if s, err = db.BeginSending(t.Context(), m.ConversationID, later); err != nil ||
		s.Attempt != 2 ||
		s.FirstAt != now {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := db.EndSending(t.Context(), s, Ended{ExternalID: "1.5", Parts: 1}); err != nil {
		t.Fatal(err)
	}
	if err := db.EndSending(t.Context(), s, Ended{Problem: "late"}); err != nil {
		t.Fatal(err)
	}
	if got := value[string](t, db, statusOf, first.ID); got != "sent" {
		t.Errorf("%s", got)
	}
	due(waits)
	do(t, db, "DELETE FROM messages WHERE id = ?", second.ID)
	due()
}

// TestQueueIsBounded checks that an agent's outgoing queue has a bound.
func TestQueueIsBounded(t *testing.T) {
	db, m := sendingAgent(t, openFolder(t))
	queued(t, db, m)
	do(t, db, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO messages(id, conversation_id, role, content) SELECT i + 1000, ?, 'tool', '' FROM n`, MaxWaiting-1, m.ConversationID)
	do(
		t,
		db,
		"INSERT INTO _outgoing(message_id, conversation_id, gateway_id, status, created_at) SELECT id, 'x', 'x', "+
			"'pending', created_at FROM messages WHERE id > 1000",
	)
	if _, err := db.SendMessage(t.Context(), m, false); agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("%v", err)
	}
	do(t, db, "UPDATE _outgoing SET status = 'failed', created_at = '2020-01-01T00:00:00.000Z' WHERE message_id > 1000")
	queued(t, db, m)
	if err := db.maintain(t.Context(), time.Now(), oneRetention()); err != nil {
		t.Fatal(err)
	}
	if n := value[int](t, db, "SELECT count(*) FROM _outgoing"); n != 2 {
		t.Errorf("%d rows are left", n)
	}
}

// TestCopySendsNothing checks that a copy does not send what its original was about to
// send, and that a start knows of pending messages without opening the file.
func TestCopySendsNothing(t *testing.T) {
	f := openFolder(t)
	db, m := sendingAgent(t, f)
	first, second := queued(t, db, m), queued(t, db, m)
	if _, err := db.BeginSending(t.Context(), m.ConversationID, agent.At(time.Now())); err != nil {
		t.Fatal(err)
	}
	fork, err := f.Fork(t.Context(), db, "copy", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []int64{first.ID, second.ID} {
		if got := value[string](t, fork, statusOf, id); got != "failed" {
			t.Errorf("message %d of the copy: %s", id, got)
		}
	}
	if due, _, err := fork.DueMessages(t.Context(), agent.At(time.Now()), 10); err != nil || len(due) != 0 {
		t.Errorf("the copy has messages to send: %v, %v", due, err)
	}
	if why := value[string](
		t,
		fork,
		"SELECT metadata ->> '$.delivery.error' FROM messages WHERE id = ?",
		first.ID,
	); !strings.Contains(why, "copied from") {
		t.Error(why)
	}
	f = restart(t, f)
	db = byName(t, f, "a")
	if db.Pending().Messages.IsZero() {
		t.Error("a start does not know of the pending message")
	}
	if s, err := db.BeginSending(t.Context(), m.ConversationID, agent.At(time.Now())); err != nil ||
		s == nil ||
		!s.Interrupted ||
		s.MessageID != first.ID {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestReplyTokenOfAMessage checks that the token that came with an inbound message is sent
// with its answer, and with no other message.
func TestReplyTokenOfAMessage(t *testing.T) {
	db, m := sendingAgent(t, openFolder(t))
	keep := func(tx *Tx) error {
		return tx.keepReplyToken(m.ConversationID, agent.Inbound{
			ReplyToken: "tok",
			ReplyUntil: agent.At(tx.Now.Add(time.Minute)),
		})
	}
	if err := db.Do(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	first, second := queued(t, db, m), queued(t, db, m)
	for n, want := range []string{"tok", ""} {
		s, err := db.BeginSending(t.Context(), m.ConversationID, agent.At(time.Now()))
		if err != nil || s.Token != want || s.MessageID != []int64{first.ID, second.ID}[n] {
			t.Fatalf("%+v, %v", s, err)
		}
		if err := db.EndSending(t.Context(), s, Ended{Parts: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if n := value[int](t, db, "SELECT count(*) FROM _secrets WHERE field LIKE 'reply%'"); n != 0 {
		t.Errorf("%d tokens are left", n)
	}
}
