package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"satchel/agent"
	"satchel/agent/llm"
	"satchel/store"
)

// Equal calls have the same keys in any order, and each call of an answer has a
// different key.
func TestCallKeys(t *testing.T) {
	calls := [][2]string{
		{"pay", `{"to":"Ada","sum":1.50}`},
		{"pay", `{"sum":1.50,"to":"Ada"}`},
		{"pay", `{"to":"Bob","sum":1.50}`},
		{"refund", `{"to":"Ada","sum":1.50}`},
		{"pay", ``},
	}
	keys := func(answer string, order ...int) []string {
		k := callKeys{answer: answer}
		var list []string
		for _, i := range order {
			list = append(list, k.next(calls[i][0], json.RawMessage(calls[i][1])))
		}
		slices.Sort(list)
		return list
	}
	first := keys("run-1", 0, 1, 2, 3, 4)
	if again := keys("run-1", 4, 3, 2, 1, 0); !slices.Equal(first, again) {
		t.Errorf("%q, then %q", first, again)
	}
	if n := len(slices.Compact(slices.Clone(first))); n != len(calls) {
		t.Errorf("%d keys for %d calls: %q", n, len(calls), first)
	}
	if other := keys("run-2", 0); slices.Contains(first, other[0]) || !strings.HasPrefix(other[0], "run-2:") {
		t.Errorf("another answer's call has the key %q", other)
	}
	if none := keys("", 0); none[0] != "" {
		t.Errorf("an answer without a key has %q", none)
	}
}

// Tools receive the key of an answer that may be retried, and no key in a turn that a
// person started.
func TestToolsSeeKeys(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	note := tool("note", func(ctx context.Context, _ json.RawMessage) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		seen[keyOf(ctx)]++
		return "noted", nil
	})
	s := newChatFixture(t, []Tool{note}, func(_ int, request map[string]any) string {
		messages := request["messages"].([]any)
		if messages[len(messages)-1].(map[string]any)["role"] == "tool" {
			return textAnswer("Done.")
		}
		return toolCallsAnswer("note", "{}", "note", "{}")
	})
	hello := Request{Messages: []llm.Message{{Role: agent.MessageUser, Content: "Hello"}}}
	message, _, err := s.chat.Reply(t.Context(), s.db, Turn{Message: "Hello"}, nil)
	if err != nil || !maps.Equal(seen, map[string]int{"": 2}) {
		t.Fatalf("got %v, %v", seen, err)
	}
	for _, c := range []struct {
		prefix string
		answer func() error
	}{
		{"run-1", func() error {
			_, err := s.chat.Ask(t.Context(), s.db, "", "run-1", "Hello", json.RawMessage("{}"))
			return err
		}},
		{"x:n:0", func() error {
			_, err := s.chat.Step(t.Context(), s.db, "", "x:n:0", hello)
			return err
		}},
		{"x:m:", func() error {
			_, err := s.chat.Step(t.Context(), s.db, message.ConversationID, "x:m:", hello)
			return err
		}},
		{fmt.Sprintf("%s:answer:%d", s.db.ID(), message.ID), func() error {
			return s.chat.Answer(
				t.Context(),
				s.db,
				message,
				agent.AnswerOptions{},
				func(agent.Message) error { return nil },
			)
		}},
	} {
		clear(seen)
		if err := c.answer(); err != nil || len(seen) != 2 {
			t.Fatalf("%s: %v, %v", c.prefix, seen, err)
		}
		for key := range seen {
			if !strings.HasPrefix(key, c.prefix+":") {
				t.Errorf("%s: a tool received the key %q", c.prefix, key)
			}
		}
	}
}

// An answer is found however many messages follow it.
func TestAnswerFarBack(t *testing.T) {
	s := newChatFixture(t, nil, func(n int, _ map[string]any) string { return textAnswer(fmt.Sprint("Answer ", n)) })
	if _, err := s.chat.Ask(t.Context(), s.db, "", "run-1", "Hello", json.RawMessage("{}")); err != nil {
		t.Fatal(err)
	}
	list, _, err := s.db.Conversations(t.Context(), store.ConversationFilter{}, store.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range maxHistory + 1 {
		if _, err := s.db.AppendReply(t.Context(), agent.Message{
			ConversationID: list[0].ID,
			Role:           agent.MessageUser,
			Content:        "And?",
			Metadata:       json.RawMessage("{}"),
		}); err != nil {
			t.Fatal(err)
		}
	}
	a, err := s.chat.Ask(t.Context(), s.db, list[0].ID, "run-1", "Hello", json.RawMessage("{}"))
	if err != nil || a.Text != "Answer 1" || len(s.seen) != 1 {
		t.Errorf("%q after %d requests, %v", a.Text, len(s.seen), err)
	}
	if _, messages, err := s.db.Conversation(t.Context(), list[0].ID, 2*maxHistory); err != nil ||
		len(messages) != maxHistory+3 {
		t.Errorf("%d messages, %v", len(messages), err)
	}
}
