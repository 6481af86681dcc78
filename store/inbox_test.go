package store

import (
	"fmt"
	"testing"

	"satchel/agent"
)

// TestConversationStates checks the columns of a conversation that the triggers of
// messages maintain.
func TestConversationStates(t *testing.T) {
	t.Parallel()
	db := createAgent(t, openFolder(t), "a")
	c, err := db.CreateConversation(t.Context(), agent.ConversationChange{
		ContactID: agent.Some(createContact(t, db, named("Ada")).ID),
	})
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, want string) {
		t.Helper()
		s, err := db.ConversationSummary(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		if s.LastMessage != nil {
			last = s.LastMessage.Author + " " + s.LastMessage.Content
		}
		if got := fmt.Sprint(s.Status, " ", s.Unread, " ", last); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
		for status, n := range map[agent.ConversationStatus]int{
			agent.ConversationOpen:     0,
			agent.ConversationSnoozed:  0,
			agent.ConversationResolved: 0,
		} {
			if status == s.Status {
				n = 1
			}
			if _, total, err := db.Conversations(
				t.Context(),
				ConversationFilter{Status: status},
				Page{Limit: 1},
			); err != nil || total != n {
				t.Errorf("%s: %d are %s, %v; want %d", when, total, status, err, n)
			}
		}
	}
	set := func(change agent.InboxChange) {
		t.Helper()
		if _, err := db.UpdateConversation(
			t.Context(),
			c.ID,
			agent.ConversationChange{InboxChange: change},
		); err != nil {
			t.Fatal(err)
		}
	}
	check("new", "open 0 ")
	say(t, db, c.ID, agent.MessageUser, "hi")
	second := say(t, db, c.ID, agent.MessageUser, "you there?")
	check("asked twice", "open 2 contact you there?")
	set(agent.InboxChange{Status: agent.Some(agent.ConversationResolved)})
	check("resolved", "resolved 0 contact you there?")
	say(t, db, c.ID, agent.MessageNote, "between us")
	check("a note", "resolved 0 contact you there?")
	third := say(t, db, c.ID, agent.MessageUser, "again")
	check("asked again", "open 1 contact again")
	do(t, db, "DELETE FROM messages WHERE id = ?", third.ID)
	check("question deleted", "open 1 contact you there?")
	say(t, db, c.ID, agent.MessageAssistant, "yes")
	check("answered", "open 0 bot yes")
	set(agent.InboxChange{Read: agent.Some(false), Status: agent.Some(agent.ConversationSnoozed)})
	check("marked unread", "snoozed 1 bot yes")
	if err := db.DeleteConversation(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if n := value[int](
		t,
		db,
		"SELECT count(*) FROM _filter_counts WHERE list LIKE 'conversations%'",
	); n != 0 || second.ID == 0 {
		t.Errorf("%d conversations are counted after the last was deleted", n)
	}
}

// BenchmarkInbox lists a page of the inbox, and counts its tabs, among many
// conversations.
func BenchmarkInbox(b *testing.B) {
	for _, n := range []int{1_000, 150_000} {
		db := createAgent(b, openFolder(b), "a")
		do(b, db, `WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < ?)
			INSERT INTO conversations(id, contact_id) SELECT printf('conversation-%07d', i), printf('contact-%07d', i) FROM k`, n)
		do(
			b,
			db,
			"INSERT INTO messages(conversation_id, role, content) SELECT id, 'user', 'Where is my order "+
				"' || id FROM conversations",
		)
		do(b, db, "UPDATE conversations SET unread = 0 WHERE last_message_id % 100 <> 0")
		do(b, db, "UPDATE conversations SET status = 'resolved' WHERE last_message_id % 3 = 0")
		do(b, db, "UPDATE conversations SET assignee = 'ada@example.com' WHERE last_message_id % 50 = 0")
		newest := Page{Limit: 50, Order: []Order{{Field: "last_message_at", Desc: true}}}
		for name, f := range map[string]ConversationFilter{
			"open":   {Status: "open"},
			"all":    {},
			"unread": {Unread: true},
			"mine":   {Status: "open", Assignee: agent.Some("ada@example.com")},
			"chat":   {Status: "open", Chat: true},
		} {
			b.Run(fmt.Sprintf("list/%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					if _, _, err := db.Conversations(b.Context(), f, newest); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("counts/%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := db.InboxCounts(b.Context(), "ada@example.com"); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("search/%d", n), func(b *testing.B) {
			p := newest
			p.Search = "order conversation-0000777"
			for b.Loop() {
				if _, total, err := db.Conversations(b.Context(), ConversationFilter{}, p); err != nil || total != 1 {
					b.Fatal(total, err)
				}
			}
		})
	}
}
