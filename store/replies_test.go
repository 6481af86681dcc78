package store

import (
	"fmt"
	"testing"
	"time"

	"satchel/agent"
)

func TestReplyTokens(t *testing.T) {
	db := openFolder(t).Default()
	c, err := db.CreateConversation(t.Context(), agent.ConversationChange{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(run func(*Tx) error) {
		t.Helper()
		if err := db.Do(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	keep := func(token string, lasts time.Duration) {
		t.Helper()
		write(func(tx *Tx) error {
			return tx.keepReplyToken(c.ID, agent.Inbound{ReplyToken: token, ReplyUntil: agent.At(tx.Now.Add(lasts))})
		})
	}
	take := func() (token string) {
		t.Helper()
		write(func(tx *Tx) (err error) {
			token, err = tx.takeReplyToken(c.ID)
			return err
		})
		return token
	}
	if got := take(); got != "" {
		t.Errorf("a token of an unknown message: %q", got)
	}
	keep("over", -time.Second)
	keep("one", time.Minute)
	keep("", time.Minute)
	keep("two", time.Minute)
	for _, want := range []string{"one", "two", ""} {
		if got := take(); got != want {
			t.Errorf("took %q, want %q", got, want)
		}
	}
	keep("named", time.Minute)
	do(t, db, "UPDATE conversations SET gateway_id = 'g', external_thread_id = 't' WHERE id = ?", c.ID)
	for _, want := range []struct{ gateway, thread, token string }{
		{"g", "u", ""},
		{"h", "t", ""},
		{"g", "", ""},
		{"g", "t", "named"},
		{"g", "t", ""},
	} {
		if got, err := db.TakeReplyToken(t.Context(), want.gateway, want.thread); err != nil || got != want.token {
			t.Errorf("%s/%s: %q, %v", want.gateway, want.thread, got, err)
		}
	}
	for i := range maxReplyTokens + 5 {
		keep(fmt.Sprint("t", i), time.Minute)
	}
	if got := take(); got != "t5" {
		t.Errorf("the oldest kept is %q", got)
	}
	do(t, db, "UPDATE _secrets SET key_id = 'other' WHERE owner = ?", c.ID)
	if got := take(); got != "" {
		t.Errorf("opened with another key: %q", got)
	}
	if err := db.DeleteConversation(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if n := value[int](t, db, "SELECT count(*) FROM _secrets WHERE owner = ?", c.ID); n != 0 {
		t.Errorf("%d tokens of a deleted conversation", n)
	}
}
