package gateways

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// storedMessage is a message as the inbox shows it.
type storedMessage struct {
	Role, Text, Delivery, Error string
	Author, Execution, External string
}

// stored lists the messages of a conversation, oldest first.
func stored(tb testing.TB, db *store.DB, conversation string) (list []storedMessage) {
	tb.Helper()
	_, messages, err := db.Conversation(tb.Context(), conversation, 200)
	if err != nil {
		tb.Fatal(err)
	}
	deliveries, err := db.MessageDeliveries(tb.Context(), messages)
	if err != nil {
		tb.Fatal(err)
	}
	for i, m := range messages {
		var about struct {
			agent.MessageOrigin
			ExternalID string `json:"external_id"`
		}
		if err := json.Unmarshal(m.Metadata, &about); err != nil {
			tb.Fatal(err)
		}
		s := storedMessage{
			Role:      string(m.Role),
			Text:      m.Content,
			Author:    about.Author,
			Execution: about.ExecutionID,
			External:  about.ExternalID,
		}
		if d := deliveries[i]; d != nil {
			s.Delivery, s.Error = d.Status, d.Error
		}
		list = append(list, s)
	}
	return list
}

// ask stores a message of a contact, and returns its conversation.
func ask(tb testing.TB, g *Gateways, db *store.DB, gateway, from string) string {
	tb.Helper()
	m, err := g.Simulate(tb.Context(), db, gateway, Simulation{From: from, Text: "Is the order ready?", Send: true})
	if err != nil {
		tb.Fatal(err)
	}
	return m.ConversationID
}

var byWorkflow = agent.MessageOrigin{
	Author:      agent.AuthorWorkflow,
	WorkflowID:  "workflow-1",
	ExecutionID: "execution-1",
	NodeID:      "m",
}

// TestSendIsStored: what is sent immediately to an address that has a conversation is in
// it, once for each key, with its author and delivery, and the question is answered.
func TestSendIsStored(t *testing.T) {
	ok := `200 {"ok":true,"channel":"D1","ts":"1.5","sid":"SM1","id":"9","channel_id":"D1"}`
	sms := "POST /2010-04-01/Accounts/" + twilioSID + "/Messages.json"
	for name, c := range map[string]struct{ account, call, from, thread, to, within string }{
		"Slack, a thread": {
			account: "slack",
			call:    slackMessages,
			from:    "U1",
			thread:  "C1:1.2",
			to:      "C1:1.2",
		},
		"Slack, a thread by ts": {
			account: "slack",
			call:    slackMessages,
			from:    "U1",
			thread:  "C1:1.2",
			to:      "C1",
			within:  "1.2",
		},
		"Slack, a person":            {account: "slack", call: slackMessages, from: "U1", thread: "D7", to: "U1"},
		"Slack, named by its answer": {account: "slack", call: slackMessages, from: "U1", thread: "D1", to: "U2"},
		"Discord": {
			account: "discord",
			call:    "POST /channels/C1/messages",
			from:    "U1",
			thread:  "C1",
			to:      "C1",
		},
		"SMS":      {account: "sms", call: sms, from: "+15550100", to: "+1 (555) 0100"},
		"WhatsApp": {account: "whatsapp", call: sms, from: "+15550100", to: "whatsapp:+1 555 0100"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSendFixture(t, c.account, map[string][]string{c.call: {ok}})
			conversation := ask(t, f.Gateways, f.db, f.gate.ID, c.from)
			if c.thread != "" {
				f.sql(t, "UPDATE conversations SET external_thread_id = ? WHERE id = ?", c.thread, conversation)
			}
			r := SendRequest{
				Type:      f.gate.Type,
				GatewayID: f.gate.ID,
				To:        c.to,
				Thread:    c.within,
				Text:      "It is ready",
				Origin:    byWorkflow,
				Key:       "execution-1:m:0",
			}
			first, err := f.Send(t.Context(), f.db, r)
			if err != nil {
				t.Fatal(err)
			}
			again, err := f.Send(t.Context(), f.db, r)
			if err != nil || again.ID != first.ID || again.Channel != first.Channel {
				t.Errorf("the same key again: %+v, %v; at first %+v", again, err, first)
			}
			got := stored(t, f.db, conversation)
			want := storedMessage{"assistant", "It is ready", "sent", "", agent.AuthorWorkflow, "execution-1", first.ID}
			if len(got) != 2 || got[1] != want {
				t.Errorf("stored %+v, want %+v", got, want)
			}
			if s, err := f.db.ConversationSummary(t.Context(), conversation); err != nil ||
				s.Unread != 0 ||
				s.Muted ||
				s.LastMessage.Content != "It is ready" {
				t.Errorf("conversation %+v, %v", s, err)
			}
			if n := f.sentEvents(t); n != 1 {
				t.Errorf("%d message.sent events", n)
			}
			if r.Key = "execution-2:m:0"; len(stored(t, f.db, conversation)) == 2 {
				_, _ = f.Send(t.Context(), f.db, r)
			}
			if n := len(stored(t, f.db, conversation)); n != 3 {
				t.Errorf("after another execution there are %d messages", n)
			}
		})
	}
}

// TestSendFails: a message that was not sent is stored as failed, the next attempt
// updates it, and one that was cut off by a kill is failed once it cannot run any more.
func TestSendFails(t *testing.T) {
	f := newSendFixture(t, "slack", map[string][]string{
		slackMessages: {`200 {"ok":false,"error":"not_in_channel"}`, slackOK},
	})
	conversation := ask(t, f.Gateways, f.db, f.gate.ID, "C1")
	r := SendRequest{Type: f.gate.Type, To: "C1", Text: "It is ready", Origin: byWorkflow, Key: "execution-1:m:0"}
	if _, err := f.Send(t.Context(), f.db, r); err == nil {
		t.Fatal("no error")
	}
	if got := stored(t, f.db, conversation); len(got) != 2 ||
		got[1].Delivery != "failed" ||
		!strings.Contains(got[1].Error, "not_in_channel") {
		t.Errorf("failed: %+v", got)
	}
	if _, err := f.Send(t.Context(), f.db, r); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, f.db, conversation); len(got) != 2 || got[1].Delivery != "sent" || got[1].Error != "" {
		t.Errorf("sent by the second attempt: %+v", got)
	}

	cut := store.Immediate{
		GatewayID: f.gate.ID,
		Type:      f.gate.Type,
		Threads:   []string{"C1"},
		Text:      "And paid",
		Origin:    byWorkflow,
		Key:       "execution-1:n:0",
	}
	if _, err := f.db.BeginImmediate(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	f.restart(t)
	if got := stored(t, f.db, conversation); len(got) != 3 || got[2].Delivery != "pending" {
		t.Errorf("cut off: %+v", got)
	}
	f.sql(
		t,
		"UPDATE messages SET metadata = json_set(metadata, '$.delivery.started_at', '2020-01-01T00:00:00.000Z') "+
			"WHERE content = 'And paid'",
	)
	if got := stored(t, f.db, conversation); got[2].Delivery != "failed" ||
		!strings.Contains(got[2].Error, "unknown whether") {
		t.Errorf("long after it was cut off: %+v", got)
	}
	r.Text, r.Key = "And paid", cut.Key
	if _, err := f.Send(t.Context(), f.db, r); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, f.db, conversation); len(got) != 3 || got[2].Delivery != "sent" {
		t.Errorf("sent after the restart: %+v", got)
	}
}

// TestResendKeepsReferences: sending a workflow's message again from the inbox keeps its
// markup, and references to takeovers in a stranger's text.
func TestResendKeepsReferences(t *testing.T) {
	f := newSendFixture(t, "slack", map[string][]string{
		slackMessages: {`200 {"ok":false,"error":"not_in_channel"}`, slackOK},
	})
	conversation := ask(t, f.Gateways, f.db, f.gate.ID, "C1")
	r := SendRequest{
		Type:           f.gate.Type,
		To:             "C1",
		Text:           "<!here> *ready* satchel-link:takeover-1",
		Format:         formatMrkdwn,
		Origin:         byWorkflow,
		Key:            "k",
		KeepReferences: true,
	}
	if _, err := f.Send(t.Context(), f.db, r); err == nil {
		t.Fatal("no error")
	}
	_, messages, err := f.db.Conversation(t.Context(), conversation, 1)
	if err != nil || !strings.Contains(string(messages[0].Metadata), `"keep_references":true`) {
		t.Fatalf("%+v, %v", messages, err)
	}
	if _, err := f.db.ResendMessage(t.Context(), conversation, messages[0].ID); err != nil {
		t.Fatal(err)
	}
	if e := f.waitAttempt(t); e.Problem != "" {
		t.Error(e.Problem)
	}
	calls := f.vendor.calls()
	if body := calls[len(calls)-1].body; !strings.Contains(body, "satchel-link:takeover-1") ||
		!strings.Contains(body, "<!here>") && !strings.Contains(body, `\u003c!here\u003e`) {
		t.Error(body)
	}
	if got := stored(t, f.db, conversation); len(got) != 2 || got[1].Delivery != "sent" {
		t.Errorf("stored %+v", got)
	}
}

// TestSendAdoptsAnswer: an answer that the same execution has stored in the conversation
// is not stored again as it is sent.
func TestSendAdoptsAnswer(t *testing.T) {
	f := newSendFixture(t, "slack", map[string][]string{slackMessages: {slackOK}})
	conversation := ask(t, f.Gateways, f.db, f.gate.ID, "C1")
	answer := agent.Message{
		ConversationID: conversation,
		Role:           agent.MessageAssistant,
		Content:        "It is ready",
		Metadata:       json.RawMessage(`{"key":"execution-1:chat:0","model":"m"}`),
	}
	if _, err := f.db.AppendReply(t.Context(), answer); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := f.Send(t.Context(), f.db, SendRequest{
			Type:   f.gate.Type,
			To:     "C1",
			Text:   "It is ready",
			Origin: byWorkflow,
			Key:    "execution-1:m:0",
		}); err != nil {
			t.Fatal(err)
		}
	}
	if got := stored(t, f.db, conversation); len(got) != 2 ||
		got[1].Delivery != "sent" ||
		got[1].Author != agent.AuthorWorkflow {
		t.Errorf("stored %+v", got)
	}
	if _, err := f.Send(t.Context(), f.db, SendRequest{
		Type:   f.gate.Type,
		To:     "C1",
		Text:   "It is ready",
		Origin: byWorkflow,
		Key:    "execution-1:n:0",
	}); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, f.db, conversation); len(got) != 3 {
		t.Errorf("another node said the same, stored %+v", got)
	}
}

// TestEmailIsStored: an email is stored in the conversation of each recipient: in the one
// that the execution is about, or else in the newest.
func TestEmailIsStored(t *testing.T) {
	o := newMailFixture(t)
	v := newFakePlatform(t, map[string][]string{
		"GET /domains": {`200 {"data":[]}`},
		"POST /emails": {`200 {"id":"mail-1"}`},
	})
	g, verified := o.gateway(t, "resend", map[string]any{
		"apiKey":      "k",
		"fromAddress": "a@shop.example",
		"apiBaseUrl":  v.URL,
	})
	if !verified.Success {
		t.Fatal(verified)
	}
	old := ask(t, o.Gateways, o.db, g.ID, "ada@example.com")
	newest := ask(t, o.Gateways, o.db, g.ID, "ada@example.com")
	other := ask(t, o.Gateways, o.db, g.ID, "bob@example.com")
	e := &Email{
		To:             []string{"Ada <ADA@example.com>", "bob@example.com", "eve@example.com"},
		Subject:        "Order",
		HTML:           "<p>It is <b>ready</b></p>",
		Origin:         byWorkflow,
		IdempotencyKey: "k1",
	}
	for range 2 {
		if _, _, err := o.SendEmail(t.Context(), o.db, g.ID, e); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]int{old: 1, newest: 2, other: 2} {
		if got := stored(t, o.db, id); len(got) != want ||
			want == 2 && (got[1].Text != "It is ready" || got[1].Delivery != "sent") {
			t.Errorf("stored %+v, want %d", got, want)
		}
	}
	if n := strings.Count(fmt.Sprint(v.calls()), "POST /emails"); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

// TestSimulateSendsNothing: the answer to a simulated message is stored and not sent,
// unless the simulation says so; a real message is answered as ever.
func TestSimulateSendsNothing(t *testing.T) {
	f := newSendFixture(t, "slack", map[string][]string{slackMessages: {slackOK}})
	m, err := f.Simulate(t.Context(), f.db, f.gate.ID, Simulation{From: "D1", Text: "Hello?"})
	if err != nil {
		t.Fatal(err)
	}
	reply := agent.Message{ConversationID: m.ConversationID, Role: agent.MessageAssistant, Content: "Good day"}
	if _, err := f.Reply(t.Context(), f.db, reply); err != nil {
		t.Fatal(err)
	}
	got := stored(t, f.db, m.ConversationID)
	if len(got) != 2 || got[1].Delivery != "simulated" || f.sentEvents(t) != 0 {
		t.Errorf("stored %+v, %d sent events", got, f.sentEvents(t))
	}
	if due, _, err := f.db.DueMessages(t.Context(), agent.Now(), 10); err != nil || len(due) != 0 {
		t.Errorf("queued %v, %v", due, err)
	}
	for _, real := range []func() error{
		func() error {
			_, err := f.Simulate(t.Context(), f.db, f.gate.ID, Simulation{From: "D1", Text: "Hello?", Send: true})
			return err
		},
		func() error {
			_, err := f.db.ReceiveInbound(
				t.Context(),
				f.gate.ID,
				[]store.Receipt{{
					Messages: []agent.Inbound{{
						ID:       "1",
						Thread:   "D1",
						Text:     "Hello?",
						Metadata: json.RawMessage(`{"simulated":true}`),
					}},
				}},
				0,
			)
			return err
		},
	} {
		if err := real(); err != nil {
			t.Fatal(err)
		}
		_, err := f.Reply(t.Context(), f.db, reply)
		if e := f.waitAttempt(t); err != nil || e.Problem != "" {
			t.Errorf("%+v, %v", e, err)
		}
	}
	if got := stored(t, f.db, m.ConversationID); len(got) != 6 ||
		got[3].Delivery != "sent" ||
		got[5].Delivery != "sent" ||
		got[1].Delivery != "simulated" {
		t.Errorf("stored %+v", got)
	}
}
