package gateways

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// answerFixture is a hookFixture whose agent answers a bot's messages with a
// function that the test sets.
type answerFixture struct {
	*hookFixture
	bot      *botServer
	gateway  agent.Gateway
	secret   string
	answerer *Answerer
	done     chan agent.Message

	mu     sync.Mutex
	answer func(ctx context.Context, msg agent.Message) (string, error)
	n      int
}

func newAnswerFixture(t *testing.T) *answerFixture {
	t.Helper()
	r := &answerFixture{hookFixture: newHookFixture(t, nil), bot: newBotServer(t), done: make(chan agent.Message, 1000)}
	r.answer = func(_ context.Context, msg agent.Message) (string, error) { return "You said: " + msg.Content, nil }
	r.gateway, r.secret = r.connect(t, "telegram", telegramConfig(r.bot))
	if _, err := r.db.UpdateSettings(t.Context(), agent.SettingsChange{
		AutoReply:   agent.Some(true),
		LLMProvider: agent.Some("ollama"),
	}); err != nil {
		t.Fatal(err)
	}
	r.start(t)
	return r
}

// start starts everything that sends and answers, as the program does.
func (r *answerFixture) start(t *testing.T) {
	t.Helper()
	r.answerer = NewAnswerer(
		r.Gateways,
		func(
			ctx context.Context,
			_ *store.DB,
			msg agent.Message,
			_ agent.AnswerOptions,
			keep func(agent.Message) error,
		) error {
			r.mu.Lock()
			answer := r.answer
			r.mu.Unlock()
			text, err := answer(ctx, msg)
			if err != nil {
				return err
			}
			return keep(agent.Message{
				ConversationID: msg.ConversationID,
				Role:           agent.MessageAssistant,
				Content:        text,
				Metadata:       json.RawMessage(`{}`),
			})
		},
	)
	r.answerer.ended = func(m agent.Message) { r.done <- m }
	for range 2 {
		if err := errors.Join(r.Start(t.Context()), r.answerer.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		r.answerer.Stop()
		r.Stop()
	})
}

func (r *answerFixture) answerWith(answer func(ctx context.Context, msg agent.Message) (string, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// receiveMessage posts a message of a chat as Telegram does.
func (r *answerFixture) receiveMessage(t *testing.T, chat int, text string) {
	t.Helper()
	r.mu.Lock()
	r.n++
	n := r.n
	r.mu.Unlock()
	quoted, _ := json.Marshal(text)
	body := fmt.Sprintf(
		`{"update_id":%d,"message":{"message_id":%d,"chat":{"id":%d,"type":"private"},"from":{"id":%d,`+
			`"first_name":"Ada"},"text":%s}}`,
		n, n, chat, chat, quoted,
	)
	if _, err := r.post(t, r.gateway.ID, headers("X-Telegram-Bot-Api-Secret-Token", r.secret), body); err != nil {
		t.Fatal(err)
	}
}

// waitFinished waits until n messages are finished.
func (r *answerFixture) waitFinished(t *testing.T, n int) {
	t.Helper()
	for range n {
		<-r.done
	}
}

// waitSent waits until Telegram has received n messages, and returns them by chat.
func (r *answerFixture) waitSent(t *testing.T, n int) map[int][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sent := r.bot.waitSent(ctx, n)
	byChat := map[int][]string{}
	for _, m := range sent {
		chat := int(m["chat_id"].(float64))
		byChat[chat] = append(byChat[chat], m["text"].(string))
	}
	if len(sent) != n {
		t.Fatalf("%d messages were sent, want %d: %v", len(sent), n, byChat)
	}
	return byChat
}

func (r *answerFixture) unanswered(t *testing.T) int {
	t.Helper()
	due, err := r.db.DueAnswers(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	return len(due)
}

// Messages are answered in the order of their conversations, once each.
func TestAnswers(t *testing.T) {
	r := newAnswerFixture(t)
	const chats, each = 6, 5
	for n := range each {
		for chat := range chats {
			r.receiveMessage(t, chat+1, fmt.Sprint("message ", n))
		}
	}
	r.waitFinished(t, chats*each)
	for chat, texts := range r.waitSent(t, chats*each) {
		for n, text := range texts {
			if text != fmt.Sprint("You said: message ", n) {
				t.Errorf("chat %d received %v", chat, texts)
				break
			}
		}
	}
	if n := r.unanswered(t); n != 0 {
		t.Errorf("%d messages are still unanswered", n)
	}
}

// TestAnswersOff: a message that arrives while automatic answers are off is not
// answered, not even later.
func TestAnswersOff(t *testing.T) {
	r := newAnswerFixture(t)
	r.receiveMessage(t, 1, "first")
	r.waitFinished(t, 1)
	list, _, err := r.db.Conversations(t.Context(), store.ConversationFilter{}, store.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	conversation := list[0].ID
	settings := func(c agent.SettingsChange) func() error {
		return func() error {
			_, err := r.db.UpdateSettings(t.Context(), c)
			return err
		}
	}
	workflow := func(event, gateway string) func() error {
		return func() error {
			graph := `[{"id":"t","type":"trigger","position":{"x":0,"y":0},"data":{"event":"` + event +
				`","gateway_id":"` + gateway + `"}}]`
			_, err := r.db.SQL(
				t.Context(),
				"INSERT INTO workflows(id, name, nodes, status) VALUES ('w','w',?,'active')",
				store.Params{List: []any{graph}},
				store.Access{Write: true},
			)
			return err
		}
	}
	noWorkflow := func() error {
		_, err := r.db.SQL(t.Context(), "DELETE FROM workflows", store.Params{}, store.Access{Write: true})
		return err
	}
	muted := func(on bool) func() error {
		return func() error {
			_, err := r.db.UpdateConversation(
				t.Context(),
				conversation,
				agent.ConversationChange{Muted: agent.Some(on)},
			)
			return err
		}
	}
	status := func(s agent.Status) func() error {
		return func() error {
			_, err := r.folder.UpdateAgent(t.Context(), r.db, agent.AgentChange{Status: agent.Some(s)})
			return err
		}
	}
	answers := 1
	for _, tc := range []struct {
		name     string
		do, undo func() error
		answered bool
	}{
		{
			"auto_reply off",
			settings(agent.SettingsChange{AutoReply: agent.Some(false)}),
			settings(agent.SettingsChange{AutoReply: agent.Some(true)}),
			false,
		},
		{
			"no provider",
			settings(agent.SettingsChange{LLMProvider: agent.Some("")}),
			settings(agent.SettingsChange{LLMProvider: agent.Some("ollama")}),
			false,
		},
		{"muted", muted(true), muted(false), false},
		{"a person answers", func() error {
			_, err := r.db.AppendMessage(t.Context(), agent.Message{
				ConversationID: conversation,
				Role:           agent.MessageAssistant,
				Content:        "I am a person",
			})
			return err
		}, muted(false), false},
		{"the agent paused", status(agent.StatusPaused), status(agent.StatusActive), false},
		{"a workflow listens", workflow("message.received", ""), noWorkflow, false},
		{"a workflow listens to messages", workflow("message.*", ""), noWorkflow, false},
		{"a workflow listens to this gateway", workflow("message.received", r.gateway.ID), noWorkflow, false},
		{"a workflow listens to another gateway", workflow("message.received", "gateway-x"), noWorkflow, true},
		{"a workflow listens to all events there are", workflow("*", ""), noWorkflow, true},
		{"a workflow listens to something else", workflow("contact.created", ""), noWorkflow, true},
		{"after all", func() error { return nil }, func() error { return nil }, true},
	} {
		if err := tc.do(); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		r.receiveMessage(t, 1, tc.name)
		if err := tc.undo(); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if tc.answered {
			answers++
			r.waitFinished(t, 1)
		}
	}
	r.answerWith(func(context.Context, agent.Message) (string, error) {
		return "", errors.New("the model must not be called")
	})
	if _, err := r.db.AppendMessage(t.Context(), agent.Message{
		ConversationID: conversation,
		Role:           agent.MessageUser,
		Content:        "by the API",
	}); err != nil {
		t.Fatal(err)
	}
	if n := r.unanswered(t); n != 0 {
		t.Errorf("%d messages are due for an answer", n)
	}
	sent := r.waitSent(t, answers)[1]
	if !slices.Equal(sent[1:], []string{
		"You said: a workflow listens to another gateway",
		"You said: a workflow listens to all events there are",
		"You said: a workflow listens to something else",
		"You said: after all",
	}) {
		t.Errorf("sent %v", sent)
	}
}

// If a person takes over while the model is generating, no automatic answer is
// sent.
func TestAnswerTakenOver(t *testing.T) {
	r := newAnswerFixture(t)
	r.answerWith(func(_ context.Context, msg agent.Message) (string, error) {
		_, err := r.db.AppendMessage(t.Context(), agent.Message{
			ConversationID: msg.ConversationID,
			Role:           agent.MessageAssistant,
			Content:        "Leave that to me",
		})
		return "too late", err
	})
	r.receiveMessage(t, 1, "Hello")
	r.waitFinished(t, 1)
	r.waitSent(t, 0)
	if logs, _, err := r.db.Logs(
		t.Context(),
		store.LogFilter{Sources: []string{"chat"}},
		store.Page{Limit: 10},
	); err != nil || len(logs) != 0 {
		t.Errorf("logged %v, %v", logs, err)
	}
}

// A failed turn is logged and not retried. An error of the gateway is shown on
// the gateway.
func TestAnswerFails(t *testing.T) {
	r := newAnswerFixture(t)
	r.answerWith(func(_ context.Context, msg agent.Message) (string, error) {
		switch msg.Content {
		case "model unavailable":
			return "half an answer", agent.Errorf(
				agent.CodeUpstream,
				"the model gave no answer",
			).Because(errors.New("sk-secret"))
		case "unexpected error":
			return "", errors.New("an inner text")
		case "locked":
			return "", agent.Errorf(agent.CodeConflict, "openai_api_key is locked")
		}
		_, err := r.db.UpdateGateway(
			t.Context(),
			r.gateway.ID,
			agent.GatewayChange{Config: agent.Some(agent.GatewayConfigChange{})},
			func(agent.GatewayType, *agent.GatewayConfig) error { return nil },
		)
		return "no active gateway", err
	})
	for _, text := range []string{"model unavailable", "unexpected error", "locked", "gateway inactive"} {
		r.receiveMessage(t, 1, text)
		r.waitFinished(t, 1)
	}
	r.waitSent(t, 0)
	logs, _, err := r.db.Logs(t.Context(), store.LogFilter{Sources: []string{"chat"}}, store.Page{Limit: 10})
	if err != nil || len(logs) != 4 {
		t.Fatalf("logged %v, %v", logs, err)
	}
	all := fmt.Sprintf("%s %s %s %s", logs[3].Data, logs[2].Data, logs[1].Data, logs[0].Data)
	for _, want := range []string{
		"the model gave no answer",
		"internal error",
		"is locked",
		"requires an active gateway",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the log lacks %q: %s", want, all)
		}
	}
	if strings.Contains(all, "sk-secret") || strings.Contains(all, "inner text") {
		t.Errorf("the log contains internal texts: %s", all)
	}
	if g := r.hookFixture.gateway(t, r.gateway.ID); !strings.Contains(g.LastError, "an answer could not be sent") {
		t.Errorf("the gateway %+v", g)
	}
}

// An answer is sent once, however often the program is stopped or killed while
// it is generated. An answer that kills the program every time is given up.
func TestAnswerAfterInterruptions(t *testing.T) {
	r := newAnswerFixture(t)
	started := make(chan struct{}, 100)
	r.answerWith(func(ctx context.Context, _ agent.Message) (string, error) {
		started <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	})
	r.receiveMessage(t, 1, "Hello")
	for range 5 { // graceful stops do not count as attempts
		<-started
		r.answerer.Stop()
		if err := r.answerer.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	<-started
	r.answerer.Stop()
	r.answerWith(func(_ context.Context, msg agent.Message) (string, error) { return "You said: " + msg.Content, nil })
	due, err := r.db.DueAnswers(t.Context(), 1)
	if err != nil || len(due) != 1 {
		t.Fatalf("due %v, %v", due, err)
	}
	m, err := r.db.BeginAnswer(t.Context(), due[0]) // then a kill after the answer was stored
	if err != nil || m == nil {
		t.Fatalf("got %v, %v", m, err)
	}
	answer := agent.Message{ConversationID: m.ConversationID, Role: agent.MessageAssistant, Content: "the one answer"}
	for n := range 2 {
		if _, err := r.db.SendAnswer(t.Context(), answer, m.ID, false); (err == nil) != (n == 0) {
			t.Fatalf("answer %d: %v", n, err)
		}
	}
	if err := r.answerer.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.receiveMessage(t, 1, "Still there?")
	r.waitFinished(t, 1)
	if sent := r.waitSent(t, 2)[1]; !slices.Equal(sent, []string{"the one answer", "You said: Still there?"}) {
		t.Errorf("sent %v", sent)
	}
	r.answerer.Stop()
	r.receiveMessage(t, 1, "deadly")
	for n := range 4 {
		m, err := r.db.BeginAnswer(t.Context(), due[0])
		if err != nil || (m == nil) != (n == 3) {
			t.Errorf("begin %d: %v, %v", n, m, err)
		}
	}
	if n := r.unanswered(t); n != 0 {
		t.Errorf("%d messages are still unanswered", n)
	}
}

// A slow model of one agent does not delay other agents.
func TestAgentsAnswerIndependently(t *testing.T) {
	r := newAnswerFixture(t)
	release := make(chan struct{})
	r.answerWith(func(ctx context.Context, msg agent.Message) (string, error) {
		if msg.Content != "quick" {
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return "You said: " + msg.Content, nil
	})
	for chat := range 3 * answersPerAgent {
		r.receiveMessage(t, chat+1, "slow")
	}
	other, err := r.folder.CreateAgent(t.Context(), agent.Agent{Name: "other"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.UpdateSettings(t.Context(), agent.SettingsChange{
		AutoReply:   agent.Some(true),
		LLMProvider: agent.Some("ollama"),
	}); err != nil {
		t.Fatal(err)
	}
	first := r.db
	r.db = other
	r.gateway, r.secret = r.connect(t, "telegram", telegramConfig(r.bot))
	r.receiveMessage(t, 99, "quick")
	r.waitFinished(t, 1)
	if sent := r.waitSent(t, 1); !slices.Equal(sent[99], []string{"You said: quick"}) {
		t.Errorf("sent %v", sent)
	}
	r.db = first
	close(release)
	r.waitFinished(t, 3*answersPerAgent)
	r.waitSent(t, 1+3*answersPerAgent)
}
