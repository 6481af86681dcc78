package gateways

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"satchel/agent/egress"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/work/worktest"
	"satchel/store"
)

// sendFixture is a folder with a running queue, a fake clock, and a gateway of
// one platform.
type sendFixture struct {
	*Gateways
	folder *store.Folder
	db     *store.DB
	clock  *fakeClock
	tries  chan store.Ended
	vendor *fakePlatform
	gate   agent.Gateway
	path   string
}

// newSendFixture returns a fixture with a verified gateway of an account whose
// platform responds as scripted, and a running queue.
func newSendFixture(tb testing.TB, account string, answers map[string][]string) *sendFixture {
	tb.Helper()
	c := &sendFixture{clock: newClock(), path: tb.TempDir()}
	c.open(tb)
	o := &mailFixture{Gateways: c.Gateways, db: c.db}
	c.vendor, c.gate, _ = accounts[account].open(tb, o, answers)
	tb.Cleanup(c.close)
	return c
}

func (c *sendFixture) open(tb testing.TB) {
	tb.Helper()
	folder, err := store.Open(store.Options{Path: c.path, Log: quiet})
	if err != nil {
		tb.Fatal(err)
	}
	c.folder, c.db, c.tries = folder, folder.Default(), make(chan store.Ended, 10_000)
	c.Gateways = New(Options{Env: store.Env{Folder: folder, Allow: loopback, Version: "test", Log: quiet}})
	c.now = c.clock.now
	c.wait = func(context.Context, time.Duration) error { return context.Canceled } // one call per attempt
	c.out.onAttempt = func(t attempt) {
		if !t.sending.Interrupted {
			c.tries <- t.outcome
		}
	}
	if err := c.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// pass advances the clock and notifies the queue, which would notice it later.
func (c *sendFixture) pass(d time.Duration) {
	c.clock.pass(d)
	c.out.queue.agents.Enqueue(c.db)
}

func (c *sendFixture) close() {
	c.Stop()
	_ = c.folder.Close()
}

// restart stops the queue, closes the folder and opens both again.
func (c *sendFixture) restart(tb testing.TB) {
	tb.Helper()
	c.close()
	c.open(tb)
}

// conversation creates one in a thread of the gateway.
func (c *sendFixture) conversation(tb testing.TB, thread string) string {
	tb.Helper()
	made, err := c.db.CreateConversation(tb.Context(), agent.ConversationChange{GatewayID: agent.Some(c.gate.ID)})
	if err != nil {
		tb.Fatal(err)
	}
	c.sql(tb, "UPDATE conversations SET external_thread_id = ? WHERE id = ?", thread, made.ID)
	return made.ID
}

// sql changes rows like the SQL endpoint.
func (c *sendFixture) sql(tb testing.TB, query string, args ...any) {
	tb.Helper()
	if _, err := c.db.SQL(tb.Context(), query, store.Params{List: args}, store.Access{Write: true}); err != nil {
		tb.Fatal(err)
	}
}

func (c *sendFixture) createMessage(tb testing.TB, conversation, text string) agent.Message {
	tb.Helper()
	m, err := c.SendMessage(tb.Context(), c.db, agent.Message{
		ConversationID: conversation,
		Role:           agent.MessageAssistant,
		Content:        text,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// waitAttempt waits for the end of an attempt.
func (c *sendFixture) waitAttempt(tb testing.TB) store.Ended {
	tb.Helper()
	return <-c.tries
}

// delivery is the delivery in a message's metadata.
type delivery struct {
	ExternalID  string     `json:"external_id"`
	DeliveredAt agent.Time `json:"delivered_at"`
	Delivery    struct{ Status, Error string }
}

func (c *sendFixture) delivery(tb testing.TB, m agent.Message) delivery {
	tb.Helper()
	_, messages, err := c.db.Conversation(tb.Context(), m.ConversationID, 200)
	if err != nil {
		tb.Fatal(err)
	}
	for _, found := range messages {
		if found.ID == m.ID {
			var d delivery
			if err := json.Unmarshal(found.Metadata, &d); err != nil {
				tb.Fatal(err)
			}
			return d
		}
	}
	tb.Fatal("the message does not exist")
	return delivery{}
}

// sentEvents counts the message.sent events.
func (c *sendFixture) sentEvents(tb testing.TB) int {
	tb.Helper()
	events, err := c.db.Events(tb.Context(), 0, 1000)
	if err != nil {
		tb.Fatal(err)
	}
	n := 0
	for _, e := range events {
		if e.Type == agent.EventMessageSent {
			n++
		}
	}
	return n
}

const slackOK = `200 {"ok":true,"channel":"C1","ts":"1.5"}`

// TestSendMessage: a message is stored as pending and sent, and then emits an
// event.
func TestSendMessage(t *testing.T) {
	c := newSendFixture(t, "slack", map[string][]string{slackMessages: {slackOK}})
	conversation := c.conversation(t, "C1:1.2")
	m := c.createMessage(t, conversation, "hello")
	if !strings.Contains(string(m.Metadata), `"delivery":{"status":"pending"}`) {
		t.Errorf("metadata %s", m.Metadata)
	}
	if e := c.waitAttempt(t); e.Problem != "" || e.ExternalID != "1.5" || e.Parts != 1 {
		t.Errorf("attempt %+v", e)
	}
	if d := c.delivery(t, m); d.Delivery.Status != "sent" ||
		d.Delivery.Error != "" ||
		d.ExternalID != "1.5" ||
		d.DeliveredAt.IsZero() ||
		c.sentEvents(t) != 1 {
		t.Errorf("%+v, %d sent events", d, c.sentEvents(t))
	}
	calls := c.vendor.calls()
	if body := calls[len(calls)-1].body; !strings.Contains(body, `"channel":"C1","text":"hello","thread_ts":"1.2"`) {
		t.Error(body)
	}
	if made, _, err := c.db.Conversation(t.Context(), conversation, 1); err != nil || !made.Muted {
		t.Errorf("a person's message does not mute the conversation: %+v, %v", made, err)
	}
}

// TestReply: a reply is not sent once a person has taken over, and does not
// count as a person's.
func TestReply(t *testing.T) {
	c := newSendFixture(t, "slack", map[string][]string{slackMessages: {slackOK}})
	reply := agent.Message{ConversationID: c.conversation(t, "D1"), Role: agent.MessageAssistant, Content: "hi"}
	if _, err := c.Reply(t.Context(), c.db, reply); err != nil {
		t.Fatal(err)
	}
	c.waitAttempt(t)
	if made, _, _ := c.db.Conversation(t.Context(), reply.ConversationID, 1); made.Muted {
		t.Error("an automatic answer mutes the conversation")
	}
	c.createMessage(t, reply.ConversationID, "a person")
	c.waitAttempt(t)
	if _, err := c.Reply(t.Context(), c.db, reply); agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("a muted conversation: %v", err)
	}
	if n := len(c.vendor.calls()); n != 1+2 {
		t.Errorf("%d calls", n)
	}
}

// TestSendRetries: a message that certainly did not arrive is retried, at the
// time the platform requests or with growing delays, until it is given up; one
// that may have arrived is not retried.
func TestSendRetries(t *testing.T) {
	for name, s := range map[string]struct {
		account, call string
		answers       []string
		tries         int
		problem       string
	}{
		"busy, then sent": {"slack", slackMessages, []string{"429 {}", "503 {}", slackOK}, 3, ""},
		"always busy":     {"slack", slackMessages, []string{"429 {}"}, 7, "rate limiting"},
		"refused": {
			"slack",
			slackMessages,
			[]string{`200 {"ok":false,"error":"channel_not_found"}`},
			1,
			"(channel_not_found)",
		},
		"token refused":  {"slack", slackMessages, []string{`401 {}`}, 1, "refused the bot token"},
		"broken":         {"slack", slackMessages, []string{"500 {}"}, 1, "it is unknown whether"},
		"not understood": {"slack", slackMessages, []string{"200 <html>"}, 1, "it is unknown whether"},
		"broken, idempotent": {
			"discord",
			"POST /channels/645/messages",
			[]string{"500 {}", `200 {"id":"9","channel_id":"645"}`},
			2,
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSendFixture(t, s.account, map[string][]string{s.call: s.answers})
			thread := map[string]string{"slack": "C1", "discord": "645:1"}[s.account]
			m := c.createMessage(t, c.conversation(t, thread), "hello")
			var e store.Ended
			for i := range s.tries {
				e = c.waitAttempt(t)
				if i == s.tries-1 {
					break
				}
				if d := c.delivery(t, m); d.Delivery.Status != "pending" || c.sentEvents(t) != 0 {
					t.Fatalf("after try %d: %+v", i+1, d)
				}
				pause := e.Next.Sub(c.clock.now())
				if want := sendPauses[i]; pause < want || pause > want+want/10+time.Millisecond {
					t.Errorf("pause %d is %v, want %v", i+1, pause, want)
				}
				c.pass(pause + time.Second)
			}
			d := c.delivery(t, m)
			if s.problem == "" {
				if e.Problem != "" || d.Delivery.Status != "sent" || c.sentEvents(t) != 1 {
					t.Errorf("got %+v, %+v", e, d)
				}
				return
			}
			g, err := c.db.Gateway(t.Context(), c.gate.ID)
			if err != nil || !strings.Contains(e.Problem, s.problem) || !e.Next.IsZero() ||
				d.Delivery.Status != "failed" || d.Delivery.Error != e.Problem ||
				!strings.Contains(g.LastError, e.Problem) || g.Status != agent.GatewayActive || c.sentEvents(t) != 0 ||
				!d.DeliveredAt.IsZero() {
				t.Errorf("%+v, %+v, gateway %+v, %v", e, d, g, err)
			}
		})
	}
}

func TestRetryAfterIsUsed(t *testing.T) {
	g := &Gateways{}
	s := &store.Sending{Attempt: 1, FirstAt: agent.At(time.Unix(1000, 0))}
	now := time.Unix(1000, 0)
	for retryAfter, want := range map[time.Duration]time.Duration{
		0:                2 * time.Second,
		90 * time.Second: 90 * time.Second,
		48 * time.Hour:   maxRetryAfter,
	} {
		_, next := g.classify(
			refusal(&statusError{platform: "X", status: http.StatusTooManyRequests, retryAfter: retryAfter}, "X", "y"),
			s,
			now,
		)
		if pause := next.Sub(now); pause < want || pause > want+want/10+time.Millisecond {
			t.Errorf("Retry-After %v: paused %v", retryAfter, pause)
		}
	}
}

// TestLongMessageIsResumed: no part of a message in parts is sent twice.
func TestLongMessageIsResumed(t *testing.T) {
	c := newSendFixture(t, "sms", map[string][]string{
		twilioMessages: {`201 {"sid":"SM1"}`, "429 {}", `201 {"sid":"SM2"}`},
	})
	m := c.createMessage(
		t,
		c.conversation(t, "+15551234567"),
		strings.Repeat("a", twilioLimit)+" "+strings.Repeat("b", twilioLimit),
	)
	if e := c.waitAttempt(t); e.Parts != 1 || e.ExternalID != "SM1" || e.Next.IsZero() {
		t.Fatalf("attempt %+v", e)
	}
	c.pass(5 * time.Second)
	if e := c.waitAttempt(t); e.Parts != 2 || e.ExternalID != "SM1" || e.Problem != "" {
		t.Errorf("attempt %+v", e)
	}
	calls := c.vendor.calls()
	first, last := calls[1].received(t), calls[3].received(t)
	if len(calls) != 4 ||
		!strings.Contains(first, "Body=aaa") ||
		!strings.Contains(last, "Body=bbb") ||
		c.delivery(t, m).ExternalID != "SM1" {
		t.Errorf("%d calls", len(calls))
	}
}

// TestOrder: messages of a conversation are sent one after another, even if one
// waits for a retry; other conversations do not wait.
func TestOrder(t *testing.T) {
	c := newSendFixture(t, "slack", map[string][]string{slackMessages: {"429 {}", slackOK}})
	slow, other := c.conversation(t, "C1"), c.conversation(t, "C2")
	c.createMessage(t, slow, "1")
	c.waitAttempt(t)
	for i := 2; i <= 5; i++ {
		c.createMessage(t, slow, fmt.Sprint(i))
	}
	c.createMessage(t, other, "other")
	c.waitAttempt(t)
	c.pass(5 * time.Second)
	for range 5 {
		c.waitAttempt(t)
	}
	var texts []string
	for _, call := range c.vendor.calls()[1:] {
		var sent struct{ Text string }
		if err := json.Unmarshal([]byte(call.body), &sent); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, sent.Text)
	}
	if !slices.Equal(texts, []string{"1", "other", "1", "2", "3", "4", "5"}) {
		t.Errorf("got %q", texts)
	}
}

// TestFailedMessageDoesNotBlock: after a message that failed or was deleted, the next one
// is sent.
func TestFailedMessageDoesNotBlock(t *testing.T) {
	c := newSendFixture(t, "slack", map[string][]string{slackMessages: {"500 {}", "429 {}", slackOK}})
	conversation := c.conversation(t, "C1")
	c.createMessage(t, conversation, "fails")
	late := c.createMessage(t, conversation, "is deleted")
	last := c.createMessage(t, conversation, "is sent")
	c.waitAttempt(t)
	if e := c.waitAttempt(t); e.Next.IsZero() {
		t.Fatalf("attempt %+v", e)
	}
	c.sql(t, "DELETE FROM messages WHERE id = ?", late.ID)
	c.pass(5 * time.Second)
	c.waitAttempt(t)
	if d := c.delivery(t, last); d.Delivery.Status != "sent" {
		t.Errorf("delivery %+v", d)
	}
}

// TestKilledWhileSending: a message that was being sent when the program was
// killed is sent again only if the platform recognizes repeats.
func TestKilledWhileSending(t *testing.T) {
	for name, s := range map[string]struct {
		account, call, thread, answer string
		after                         time.Duration
		sent                          bool
	}{
		"Slack": {"slack", slackMessages, "C1", slackOK, 0, false},
		"Discord": {
			"discord",
			"POST /channels/645/messages",
			"645:1",
			`200 {"id":"9","channel_id":"645"}`,
			0,
			true,
		},
		"Discord, late": {
			"discord",
			"POST /channels/645/messages",
			"645:1",
			`200 {"id":"9","channel_id":"645"}`,
			3 * time.Minute,
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSendFixture(t, s.account, map[string][]string{s.call: {s.answer}})
			conversation := c.conversation(t, s.thread)
			c.Stop()
			m := c.createMessage(t, conversation, "hello")
			// The state after a kill: the message is marked as being sent, and nothing else.
			if sending, err := c.db.BeginSending(
				t.Context(),
				conversation,
				agent.At(time.Now().Add(time.Hour)),
			); err != nil || sending == nil {
				t.Fatal(sending, err)
			}
			next := c.createMessage(t, conversation, "next")
			c.clock.pass(time.Hour + s.after)
			c.restart(t)
			if s.sent {
				c.waitAttempt(t)
			}
			c.waitAttempt(t)
			want := "failed"
			if s.sent {
				want = "sent"
			}
			if d := c.delivery(t, m); d.Delivery.Status != want ||
				!s.sent && !strings.Contains(d.Delivery.Error, "it is unknown whether") {
				t.Errorf("delivery %+v", d)
			}
			if d := c.delivery(t, next); d.Delivery.Status != "sent" {
				t.Errorf("next message: %+v", d)
			}
		})
	}
}

// TestPendingAfterRestart: pending messages are sent after the next start, from
// what is stored.
func TestPendingAfterRestart(t *testing.T) {
	c := newSendFixture(t, "slack", map[string][]string{slackMessages: {slackOK}})
	conversation := c.conversation(t, "C1")
	c.Stop()
	m := c.createMessage(t, conversation, "hello")
	c.clock.pass(time.Minute)
	c.restart(t)
	c.waitAttempt(t)
	if d := c.delivery(t, m); d.Delivery.Status != "sent" {
		t.Errorf("delivery %+v", d)
	}
}

// TestOutcomeIsRecordedLater: an outcome that could not be written is written by the
// next step, and the message is not sent again.
func TestOutcomeIsRecordedLater(t *testing.T) {
	c := newSendFixture(t, "slack", map[string][]string{slackMessages: {slackOK}})
	id := c.conversation(t, "C1")
	c.Stop()
	m := c.createMessage(t, id, "hello")
	key := conversation{c.db, id}
	s, err := c.db.BeginSending(t.Context(), id, agent.At(c.clock.now()))
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	c.out.putUnrecorded(key, &attempt{s, store.Ended{Parts: 1, ExternalID: "1.5"}})
	if err := c.sendNext(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if d := c.delivery(t, m); d.Delivery.Status != "sent" || d.ExternalID != "1.5" || len(c.vendor.calls()) != 1 {
		t.Errorf("%+v, %d calls", d, len(c.vendor.calls()))
	}
}

// TestStopDrains: Stop lets a send in progress finish, and nothing is sent
// twice.
func TestStopDrains(t *testing.T) {
	c := newSendFixture(t, "slack", nil)
	called, answer := make(chan struct{}), make(chan struct{})
	c.vendor.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		called <- struct{}{}
		<-answer
		_, _ = w.Write([]byte(slackOK[4:]))
	})
	m := c.createMessage(t, c.conversation(t, "C1"), "hello")
	<-called
	stopped := make(chan struct{})
	go func() {
		c.Stop()
		close(stopped)
	}()
	answer <- struct{}{}
	<-stopped
	if d := c.delivery(t, m); d.Delivery.Status != "sent" {
		t.Errorf("delivery %+v", d)
	}
}

// TestStopInterrupts: a send that does not finish is cancelled, and its outcome
// counts as unknown.
func TestStopInterrupts(t *testing.T) {
	c := newSendFixture(t, "slack", nil)
	called, release := make(chan struct{}), make(chan struct{})
	c.vendor.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		called <- struct{}{}
		<-release
	})
	conversation := c.conversation(t, "C1")
	m := c.createMessage(t, conversation, "hello")
	<-called
	c.out.drain = 0
	c.Stop()
	close(release)
	if d := c.delivery(t, m); d.Delivery.Status != "pending" {
		t.Errorf("delivery %+v", d)
	}
	c.vendor.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(slackOK[4:]))
	})
	next := c.createMessage(t, conversation, "next")
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.waitAttempt(t)
	if d := c.delivery(t, m); d.Delivery.Status != "failed" ||
		!strings.Contains(d.Delivery.Error, "it is unknown whether") {
		t.Errorf("delivery %+v", d)
	}
	if d := c.delivery(t, next); d.Delivery.Status != "sent" {
		t.Errorf("delivery %+v", d)
	}
}

// TestDisabledAgentSendsNothing: the messages of a disabled agent wait until it is
// enabled.
func TestDisabledAgentSendsNothing(t *testing.T) {
	c := newSendFixture(t, "slack", map[string][]string{slackMessages: {slackOK}})
	conversation := c.conversation(t, "C1")
	c.Stop()
	m := c.createMessage(t, conversation, "hello")
	set := func(status agent.Status) {
		t.Helper()
		if _, err := c.folder.UpdateAgent(t.Context(), c.db, agent.AgentChange{
			Status: agent.Some(status),
		}); err != nil {
			t.Fatal(err)
		}
	}
	set(agent.StatusDisabled)
	c.restart(t)
	c.pass(time.Hour)
	if d := c.delivery(t, m); d.Delivery.Status != "pending" {
		t.Errorf("delivery %+v", d)
	}
	set(agent.StatusActive)
	c.waitAttempt(t)
	if d := c.delivery(t, m); d.Delivery.Status != "sent" {
		t.Errorf("delivery %+v", d)
	}
}

// TestNotSendable: a message that cannot be sent is rejected immediately, and
// nothing is stored.
func TestNotSendable(t *testing.T) {
	c := newSendFixture(t, "slack", nil)
	bare, err := c.db.CreateConversation(t.Context(), agent.ConversationChange{})
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := c.db.CreateConversation(t.Context(), agent.ConversationChange{GatewayID: agent.Some(c.gate.ID)})
	if err != nil {
		t.Fatal(err)
	}
	inactive := c.conversation(t, "C1")
	for name, m := range map[string]agent.Message{
		"no gateway": {ConversationID: bare.ID, Role: agent.MessageAssistant, Content: "x"},
		"no contact": {ConversationID: unknown.ID, Role: agent.MessageAssistant, Content: "x"},
		"user role":  {ConversationID: inactive, Role: agent.MessageUser, Content: "x"},
		"no text":    {ConversationID: inactive, Role: agent.MessageAssistant},
		"unknown id": {ConversationID: "conversation-x", Role: agent.MessageAssistant, Content: "x"},
	} {
		_, err := c.SendMessage(t.Context(), c.db, m)
		if code := agent.ErrorCode(err); code != agent.CodeValidation &&
			(name != "unknown id" || code != agent.CodeNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Update(t.Context(), c.db, c.gate.ID, agent.GatewayChange{
		Config: agent.Some(config(t, map[string]any{"botToken": "new"})),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SendMessage(t.Context(), c.db, agent.Message{
		ConversationID: inactive,
		Role:           agent.MessageAssistant,
		Content:        "x",
	}); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("an inactive gateway: %v", err)
	}
	for _, id := range []string{bare.ID, unknown.ID, inactive} {
		if _, messages, _ := c.db.Conversation(t.Context(), id, 10); len(messages) != 0 {
			t.Errorf("%d messages stored", len(messages))
		}
	}
}

// TestMailReply: the answer to an email is sent as a reply in its thread.
func TestMailReply(t *testing.T) {
	v := newFakePlatform(t, map[string][]string{
		"GET /domains": {`200 {"data":[]}`},
		"POST /emails": {`200 {"id":"mail-1"}`},
	})
	c := newSendFixture(t, "slack", nil)
	o := &mailFixture{Gateways: c.Gateways, db: c.db}
	c.gate, _ = o.gateway(t, "resend", map[string]any{
		"apiKey":      "k",
		"fromAddress": "shop@example.com",
		"apiBaseUrl":  v.URL,
	})
	ada, err := c.db.CreateContact(t.Context(), agent.ContactChange{
		Name:  agent.Some("Ada"),
		Email: agent.Some("ada@example.com"),
	})
	if err != nil {
		t.Fatal(err)
	}
	conversation := c.conversation(t, "<1@x>")
	c.sql(t, "UPDATE conversations SET contact_id = ? WHERE id = ?", ada.ID, conversation)
	question := agent.Message{
		ConversationID: conversation,
		Role:           agent.MessageUser,
		Content:        "Where?",
		Metadata:       json.RawMessage(`{"subject":"My\r\n order","message_id":"<2@x>","references":"<1@x>"}`),
	}
	if _, err := c.db.AppendMessage(t.Context(), question); err != nil {
		t.Fatal(err)
	}
	said := agent.Message{ConversationID: conversation, Role: agent.MessageAssistant, Content: "Here."}
	if _, err := c.Reply(t.Context(), c.db, said); err != nil {
		t.Fatal(err)
	}
	c.waitAttempt(t)
	calls := v.calls()
	if body := calls[len(calls)-1].body; !strings.Contains(body, `"Auto-Submitted":"auto-replied"`) {
		t.Errorf("an automatic answer does not say so: %s", body)
	}
	said.Content, said.Metadata = "There.", json.RawMessage(`{"author":"human"}`)
	m, err := c.SendMessage(t.Context(), c.db, said)
	if err != nil {
		t.Fatal(err)
	}
	if e := c.waitAttempt(t); e.Problem != "" || e.ExternalID != "mail-1" {
		t.Errorf("attempt %+v", e)
	}
	calls = v.calls()
	body := calls[len(calls)-1].body
	for _, want := range []string{
		`"subject":"Re: My order"`,
		`"In-Reply-To":"\u003c2@x\u003e"`,
		`"References":"\u003c1@x\u003e \u003c2@x\u003e"`,
		`"to":["ada@example.com"]`,
		`"text":"There."`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is not in %s", want, body)
		}
	}
	if strings.Contains(body, "Auto-Submitted") {
		t.Errorf("a person's answer says that it is automatic: %s", body)
	}
	if got := calls[len(calls)-1].header.Get("Idempotency-Key"); got != fmt.Sprintf("%s:message:%d", c.db.ID(), m.ID) {
		t.Errorf("key %s", got)
	}
}

// TestNewConversationByPhone: a conversation started by the agent gets its
// thread, so that the contact's answer finds it.
func TestNewConversationByPhone(t *testing.T) {
	c := newSendFixture(t, "sms", map[string][]string{twilioMessages: {`201 {"sid":"SM1"}`}})
	ada, err := c.db.CreateContact(t.Context(), agent.ContactChange{
		Name:  agent.Some("Ada"),
		Phone: agent.Some("+1 (555) 123-4567"),
	})
	if err != nil {
		t.Fatal(err)
	}
	made, err := c.db.CreateConversation(t.Context(), agent.ConversationChange{
		GatewayID: agent.Some(c.gate.ID),
		ContactID: agent.Some(ada.ID),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.createMessage(t, made.ID, "hello")
	c.waitAttempt(t)
	made, _, err = c.db.Conversation(t.Context(), made.ID, 1)
	if err != nil || made.ExternalThreadID != "+15551234567" {
		t.Errorf("got %+v, %v", made, err)
	}
	if calls := c.vendor.calls(); !strings.Contains(calls[len(calls)-1].received(t), "To=+15551234567") {
		t.Errorf("got %s", calls[len(calls)-1].body)
	}
}

// TestManyAtOnce: many conversations with concurrent senders, each message sent
// once.
func TestManyAtOnce(t *testing.T) {
	c := newSendFixture(t, "slack", map[string][]string{slackMessages: {slackOK}})
	const conversations, each = 40, 5
	var all sync.WaitGroup
	for i := range conversations {
		id := c.conversation(t, fmt.Sprint("C", i))
		all.Go(func() {
			for n := range each {
				m := agent.Message{ConversationID: id, Role: agent.MessageAssistant, Content: fmt.Sprint(i, "/", n)}
				if _, err := c.SendMessage(t.Context(), c.db, m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for range conversations * each {
		if e := c.waitAttempt(t); e.Problem != "" {
			t.Fatalf("attempt %+v", e)
		}
	}
	next := map[string]int{}
	for _, call := range c.vendor.calls()[1:] {
		var sent struct{ Channel, Text string }
		if err := json.Unmarshal([]byte(call.body), &sent); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint(sent.Channel[1:], "/", next[sent.Channel]); sent.Text != want {
			t.Errorf("%s got %s, want %s", sent.Channel, sent.Text, want)
		}
		next[sent.Channel]++
	}
	if c.sentEvents(t) != conversations*each {
		t.Errorf("%d sent events", c.sentEvents(t))
	}
	c.Stop()
	if s := c.out.queue.steps.Stats(); s.Ready+s.Waiting > 0 {
		t.Errorf("conversations remain in the queue: %+v", s)
	}
}

// TestOutboundStartStop starts and stops repeatedly while messages are written: each is
// sent once.
func TestOutboundStartStop(t *testing.T) {
	c := newSendFixture(t, "slack", map[string][]string{slackMessages: {slackOK}})
	conversation := c.conversation(t, "C1")
	worktest.Stress(t, c, 20, func(i int) { c.createMessage(t, conversation, fmt.Sprint(i)) })
	for range 20 {
		if e := c.waitAttempt(t); e.Problem != "" {
			t.Errorf("attempt %+v", e)
		}
	}
	c.Stop()
	c.Stop()
	if n := len(c.vendor.calls()); n != 21 {
		t.Errorf("%d calls", n)
	}
}

// TestTemporary: an invalid certificate is a temporary failure, a blocked address
// is not.
func TestTemporary(t *testing.T) {
	for err, want := range map[error]bool{
		&tls.CertificateVerificationError{Err: errors.New("expired")}: true,
		egress.ErrBlocked: false,
	} {
		if isTemporary(err) != want || !isUnsent(err) {
			t.Errorf("%v: temporary %v, not sent %v", err, !want, isUnsent(err))
		}
	}
}
