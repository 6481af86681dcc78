package flow

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"satchel/agent"
	"satchel/gateways"
	"satchel/store"
)

// slackFixture is an engine with a gateway of a Slack that records what it is sent.
type slackFixture struct {
	*Engine
	db       *store.DB
	gateways *gateways.Gateways
	gate     agent.Gateway

	mu   sync.Mutex
	sent []string
}

func newSlackFixture(t *testing.T) *slackFixture {
	t.Helper()
	folder, e := openAt(t, t.TempDir())
	f := &slackFixture{
		Engine:   e,
		db:       folder.Default(),
		gateways: gateways.New(gateways.Options{Env: store.Env{Folder: folder, Allow: loopback}}),
	}
	e.Register(MessageKinds(f.gateways))
	slack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/chat.postMessage" {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.sent = append(f.sent, string(raw))
		}
		_, _ = w.Write([]byte(`{"ok":true,"user_id":"U1","channel":"D1","ts":"1.5"}`))
	}))
	t.Cleanup(slack.Close)
	made, _, err := f.gateways.Create(t.Context(), f.db, "slack", agent.GatewayChange{
		Name: agent.Some("Slack"),
		Config: agent.Some(agent.GatewayConfigChange{
			BotToken:      agent.Some("b"),
			SigningSecret: agent.Some("s"),
			APIBaseURL:    agent.Some(slack.URL),
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := f.gateways.Verify(t.Context(), f.db, made.ID); err != nil || !v.Success {
		t.Fatal(v, err)
	}
	f.gate = made
	return f
}

// answering creates a workflow that sends text to the thread of its payload's
// conversation.
func (f *slackFixture) answering(t *testing.T) agent.Workflow {
	t.Helper()
	return createWorkflow(t, f.db, f.Engine, `t trigger
		m team_chat {"channel":"{{conversation.external_thread_id}}","message":"It is ready"}
		t -> m`)
}

// payload returns what a trigger receives for a message, as events have it.
func (f *slackFixture) payload(t *testing.T, m agent.Message) string {
	t.Helper()
	c, _, err := f.db.Conversation(t.Context(), m.ConversationID, 1)
	if err != nil {
		t.Fatal(err)
	}
	return string(mustJSON(map[string]any{"message": m, "conversation": c}))
}

func (f *slackFixture) simulate(t *testing.T, send bool) agent.Message {
	t.Helper()
	m, err := f.gateways.Simulate(t.Context(), f.db, f.gate.ID, gateways.Simulation{
		From: "D1",
		Text: "Is it ready?",
		Send: send,
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMessageNodeIsStored: what a node sends to a conversation is stored in it, with a
// reference to the execution.
func TestMessageNodeIsStored(t *testing.T) {
	f := newSlackFixture(t)
	m := f.simulate(t, true)
	w := f.answering(t)
	s := execute(t, f.db, f.Engine, w, f.payload(t, m))
	if s.Execution.Error != nil || len(f.sent) != 1 {
		t.Fatalf("%s %+v, sent %q", summarize(s.Results), s.Execution.Error, f.sent)
	}
	c, messages, err := f.db.Conversation(t.Context(), m.ConversationID, 10)
	if err != nil || len(messages) != 2 || c.Unread != 0 || c.Muted {
		t.Fatalf("%+v, %+v, %v", c, messages, err)
	}
	var about struct {
		agent.MessageOrigin
		Delivery struct{ Status string }
	}
	if err := json.Unmarshal(messages[1].Metadata, &about); err != nil {
		t.Fatal(err)
	}
	want := agent.MessageOrigin{
		Author:      agent.AuthorWorkflow,
		WorkflowID:  w.ID,
		ExecutionID: s.Execution.ID,
		NodeID:      "m",
	}
	if about.MessageOrigin != want ||
		about.Delivery.Status != "sent" ||
		messages[1].Content != "It is ready" ||
		messages[1].Role != agent.MessageAssistant {
		t.Errorf("stored %+v %s", messages[1], messages[1].Metadata)
	}
}

// TestMessageNodeSimulated: an execution that results from a simulated message sends
// nothing, whichever way it was started, and says what it would have sent.
func TestMessageNodeSimulated(t *testing.T) {
	f := newSlackFixture(t)
	m := f.simulate(t, false)
	w := f.answering(t)
	c, _, err := f.db.Conversation(t.Context(), m.ConversationID, 1)
	if err != nil {
		t.Fatal(err)
	}
	outer := createWorkflow(t, f.db, f.Engine, `t trigger
		w workflow {"workflow_id":"`+w.ID+`","input":{"conversation":{"external_thread_id":"{{conversation.external_thread_id}}"}}}
		t -> w`)
	for name, x := range map[string]struct {
		workflow agent.Workflow
		input    string
		key      string
	}{
		"by the message":      {workflow: w, input: f.payload(t, m)},
		"by the conversation": {workflow: w, input: string(mustJSON(map[string]any{"conversation": c}))},
		"by the contact": {
			workflow: w,
			input:    string(mustJSON(map[string]any{"contact": map[string]any{"id": c.ContactID}, "thread": "D1"})),
		},
		"by another workflow": {workflow: outer, input: f.payload(t, m)},
		"by a tool": {
			workflow: w,
			input:    `{"conversation":{"external_thread_id":"D1"}}`,
			key:      store.AnswerKey(m.ID) + ":abc:0",
		},
	} {
		if name == "by the contact" {
			x.workflow = createWorkflow(t, f.db, f.Engine, `t trigger
				m team_chat {"channel":"{{thread}}","message":"It is ready"}
				t -> m`)
		}
		before := f.stored(t, m.ConversationID, "simulated")
		s, err := f.Execute(t.Context(), f.db, Request{
			WorkflowID:     x.workflow.ID,
			Input:          json.RawMessage(x.input),
			Trigger:        "manual",
			Wait:           waitForever,
			IdempotencyKey: x.key,
		})
		if err != nil || s.Execution.Error != nil {
			t.Fatalf("%s: %v, %+v", name, err, s.Execution.Error)
		}
		if after := f.stored(t, m.ConversationID, "simulated"); len(f.sent) != 0 || after != before+1 {
			t.Errorf("%s: sent %q; %d simulated messages, before %d", name, f.sent, after, before)
		}
		if warned := strings.Contains(
			string(mustJSON(s.Results)),
			"not sent, because the execution results from a simulated message; to D1: It is ready",
		); !warned && x.workflow.ID != outer.ID {
			t.Errorf("%s: results %s", name, mustJSON(s.Results))
		}
	}
	told := f.simulate(t, true)
	if s := execute(t, f.db, f.Engine, w, f.payload(t, told)); s.Execution.Error != nil || len(f.sent) != 1 {
		t.Errorf("with send: %+v, sent %q", s.Execution.Error, f.sent)
	}
	if s := execute(
		t, f.db, f.Engine, w,
		`{"conversation":{"external_thread_id":"D1"}}`,
	); s.Execution.Error != nil || len(f.sent) != 2 {
		t.Errorf("by hand: %+v, sent %q", s.Execution.Error, f.sent)
	}
}

// TestMessageNodeDoesNotLoop: a workflow answers no program, and one sender only up to a
// bound, whichever way it sends.
func TestMessageNodeDoesNotLoop(t *testing.T) {
	f := newSlackFixture(t)
	w := f.answering(t)
	var m agent.Message
	var s Started
	for range 101 {
		m = f.simulate(t, true)
		s = execute(t, f.db, f.Engine, w, f.payload(t, m))
	}
	if results := string(mustJSON(s.Results)); s.Execution.Error != nil || len(f.sent) != 100 ||
		!strings.Contains(
			results,
			"the message was not answered: the sender has already been answered 100 times within a day",
		) {
		t.Errorf("%d sent, %+v, %s", len(f.sent), s.Execution.Error, results)
	}
	if c, _, err := f.db.Conversation(t.Context(), m.ConversationID, 1); err != nil || !c.NeedsHuman {
		t.Errorf("no person is asked to look: %+v, %v", c, err)
	}
	ctx := store.WithChain(t.Context(), agent.Chain{Depth: 1, Root: s.Execution.ID, Remote: true})
	answer := agent.Message{ConversationID: m.ConversationID, Role: agent.MessageAssistant, Content: "It is ready"}
	if _, err := f.gateways.SendMessage(ctx, f.db, answer); agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("through the API: %v", err)
	}
	if s := execute(
		t, f.db, f.Engine, w,
		`{"conversation":{"external_thread_id":"D1"}}`,
	); s.Execution.Error != nil || len(f.sent) != 101 {
		t.Errorf("what is no answer is not sent: %+v", s.Execution.Error)
	}
}

// stored counts the messages of a conversation with a delivery status.
func (f *slackFixture) stored(t *testing.T, conversation, status string) (n int) {
	t.Helper()
	_, messages, err := f.db.Conversation(t.Context(), conversation, 200)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if strings.Contains(string(m.Metadata), `"status":"`+status+`"`) {
			n++
		}
	}
	return n
}
