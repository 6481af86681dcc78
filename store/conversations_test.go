package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

func say(t testing.TB, db *DB, conversationID string, role agent.MessageRole, text string) agent.Message {
	t.Helper()
	m, err := db.AppendMessage(t.Context(), agent.Message{ConversationID: conversationID, Role: role, Content: text})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestConversation(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ada := createContact(t, db, named("Ada"))
	c, err := db.CreateConversation(t.Context(), agent.ConversationChange{ContactID: agent.Some(ada.ID)})
	if err != nil || c.ContactID != ada.ID || string(c.Metadata) != "{}" {
		t.Fatalf("%+v, %v", c, err)
	}
	for field, change := range map[string]agent.ConversationChange{
		"contact_id": {ContactID: agent.Some("contact-unknown")},
		"gateway_id": {GatewayID: agent.Some("gateway-unknown")},
	} {
		_, err := db.CreateConversation(t.Context(), change)
		if e := wantCode(t, err, agent.CodeValidation); e.Details["field"] != field {
			t.Errorf("%+v", e)
		}
		_, err = db.UpdateConversation(t.Context(), c.ID, change)
		wantCode(t, err, agent.CodeValidation)
	}
	updated, err := db.UpdateConversation(t.Context(), c.ID, agent.ConversationChange{Muted: agent.Some(true)})
	if err != nil || !updated.Muted || updated.ContactID != ada.ID {
		t.Errorf("%+v, %v", updated, err)
	}
	if list, total, err := db.Conversations(
		t.Context(),
		ConversationFilter{ContactIDs: []string{ada.ID}},
		Page{Limit: 5},
	); err != nil || total != 1 || list[0].ID != c.ID {
		t.Errorf("%+v, %d, %v", list, total, err)
	}
	if list, total, err := db.Conversations(
		t.Context(),
		ConversationFilter{ContactIDs: []string{"contact-other"}, GatewayIDs: []string{"gateway-1"}},
		Page{Limit: 5},
	); err != nil || total != 0 || list == nil {
		t.Errorf("%+v, %d, %v", list, total, err)
	}
	say(t, db, c.ID, agent.MessageUser, "hi")
	if err := db.DeleteConversation(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	wantCode(t, db.DeleteConversation(t.Context(), c.ID), agent.CodeNotFound)
	_, _, err = db.Conversation(t.Context(), c.ID, 10)
	wantCode(t, err, agent.CodeNotFound)
	_, _, err = db.Messages(t.Context(), c.ID, 0, 10, false)
	wantCode(t, err, agent.CodeNotFound)
	if n := value[int](t, db, "SELECT count(*) FROM messages"); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

func TestMessagesByCursor(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	c, err := db.CreateConversation(t.Context(), agent.ConversationChange{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := db.CreateConversation(t.Context(), agent.ConversationChange{})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for n := range 7 {
		say(t, db, c.ID, agent.MessageUser, fmt.Sprint(n))
		say(t, db, other.ID, agent.MessageUser, "elsewhere")
		want = append(want, fmt.Sprint(n))
	}
	for _, newestFirst := range []bool{false, true} {
		var got []string
		after, pages := int64(0), 0
		for more := true; more; pages++ {
			var page []agent.Message
			if page, more, err = db.Messages(t.Context(), c.ID, after, 3, newestFirst); err != nil {
				t.Fatal(err)
			}
			for _, m := range page {
				if newestFirst {
					got = append([]string{m.Content}, got...)
				} else {
					got = append(got, m.Content)
				}
				after = m.ID
			}
		}
		if strings.Join(got, "") != strings.Join(want, "") || pages != 3 {
			t.Errorf("newest first %v: %q in %d pages", newestFirst, got, pages)
		}
	}
	if page, more, err := db.Messages(t.Context(), c.ID, 1<<40, 3, false); err != nil ||
		more ||
		len(page) != 0 ||
		page == nil {
		t.Errorf("past the end: %v, %v, %v", page, more, err)
	}
	got, newest, err := db.Conversation(t.Context(), c.ID, 2)
	if err != nil ||
		len(newest) != 2 ||
		newest[0].Content != "5" ||
		newest[1].Content != "6" ||
		!got.UpdatedAt.Equal(newest[1].CreatedAt.Time) {
		t.Errorf("the newest: %+v of %+v, %v", newest, got, err)
	}
}

func TestAppendMessage(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	c, err := db.CreateConversation(t.Context(), agent.ConversationChange{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []agent.Message{
		{},
		{Role: "robot", Content: "x"},
		{Role: "user"},
		{Role: "user", Content: "a\x00b"},
	} {
		m.ConversationID = c.ID
		_, err := db.AppendMessage(t.Context(), m)
		wantCode(t, err, agent.CodeValidation)
	}
	_, err = db.AppendMessage(t.Context(), agent.Message{
		ConversationID: "conversation-unknown",
		Role:           "user",
		Content:        "x",
	})
	wantCode(t, err, agent.CodeNotFound)
	first := say(t, db, c.ID, agent.MessageUser, "hi")
	if got, _, _ := db.Conversation(t.Context(), c.ID, 1); got.Muted {
		t.Error("the contact's message muted the conversation")
	}
	second := say(t, db, c.ID, agent.MessageAssistant, "a person answers")
	if got, _, _ := db.Conversation(t.Context(), c.ID, 1); !got.Muted ||
		second.ID <= first.ID ||
		string(second.Metadata) != "{}" {
		t.Errorf("muted %v, ids %d %d", got.Muted, first.ID, second.ID)
	}
}

func TestLogFilters(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	start := time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)
	at := func(minute int) agent.Time { return agent.At(start.Add(time.Duration(minute) * time.Minute)) }
	for n, l := range []struct{ level, source, message string }{
		{"info", "audit", "contact created"},
		{"warn", "store", "100% full"},
		{"error", "flow", "node failed"},
		{"info", "flow", "node_done"},
	} {
		do(
			t,
			db,
			"INSERT INTO logs(level, source, message, data, created_at) VALUES (?,?,?,?,?)",
			l.level,
			l.source,
			l.message,
			fmt.Sprintf(`{"n":%d}`, n),
			at(n),
		)
	}
	for name, c := range map[string]struct {
		filter LogFilter
		page   Page
		want   string
		total  int
	}{
		"all":            {LogFilter{}, Page{Limit: 10}, "node_done|node failed|100% full|contact created", 4},
		"page":           {LogFilter{}, Page{Limit: 1, Offset: 1}, "node failed", 4},
		"from inclusive": {LogFilter{From: at(2)}, Page{Limit: 10}, "node_done|node failed", 2},
		"to exclusive":   {LogFilter{To: at(2)}, Page{Limit: 10}, "100% full|contact created", 2},
		"between":        {LogFilter{From: at(1), To: at(2)}, Page{Limit: 10}, "100% full", 1},
		"level":          {LogFilter{Levels: []string{"info"}}, Page{Limit: 10}, "node_done|contact created", 2},
		"levels, sources": {
			LogFilter{Levels: []string{"info", "warn"}, Sources: []string{"audit", "store"}},
			Page{Limit: 10},
			"100% full|contact created",
			2,
		},
		"search":         {LogFilter{}, Page{Limit: 10, Search: "node_"}, "node_done", 1},
		"search in data": {LogFilter{}, Page{Limit: 10, Search: `"n":2`}, "node failed", 1},
		"oldest first": {
			LogFilter{},
			Page{Limit: 2, Order: []Order{{Field: "created_at"}}},
			"contact created|100% full",
			4,
		},
		"by level": {
			LogFilter{Sources: []string{"flow"}},
			Page{Limit: 2, Order: []Order{{Field: "level", Desc: true}}},
			"node_done|node failed",
			2,
		},
	} {
		logs, total, err := db.Logs(t.Context(), c.filter, c.page)
		var got []string
		for _, l := range logs {
			got = append(got, l.Message)
		}
		if err != nil || strings.Join(got, "|") != c.want || total != c.total {
			t.Errorf("%s: %q of %d, %v; want %q of %d", name, got, total, err, c.want, c.total)
		}
	}
}
