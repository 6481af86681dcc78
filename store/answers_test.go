package store

import (
	"testing"

	"satchel/agent"
)

// TestAnswersAcrossFiles: a start knows which agents have messages to answer,
// and gateways to ask for, without opening their files; a copy answers nothing,
// and neither does a wait of over a day.
func TestAnswersAcrossFiles(t *testing.T) {
	f := openFolder(t)
	left, none := createAgent(t, f, "left"), createAgent(t, f, "none")
	if _, err := left.UpdateSettings(t.Context(), agent.SettingsChange{AutoReply: agent.Some(true), LLMProvider: agent.Some("ollama")}); err != nil {
		t.Fatal(err)
	}
	id := inboundGateway(t, left, agent.GatewayChatbotA, agent.GatewayActive)
	receiveOne(t, left, id, said("1", "t", "telegram:1", "Hello"), said("2", "u", "telegram:2", "Hello"))
	for range 2 {
		events, err := left.Events(t.Context(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := left.EnqueueAnswers(t.Context(), events); err != nil {
			t.Fatal(err)
		}
	}
	fork, err := f.Fork(t.Context(), left, "copy", "")
	if err != nil {
		t.Fatal(err)
	}
	if due, err := fork.Unanswered(t.Context(), 10); err != nil || len(due) != 0 {
		t.Errorf("a copy has %v to answer, %v", due, err)
	}
	f = restart(t, f)
	left, none = byName(t, f, "left"), byName(t, f, "none")
	if !left.MayAnswer() || !left.MayPoll() || none.MayAnswer() || none.MayPoll() {
		t.Errorf("left: %v %v, none: %v %v", left.MayAnswer(), left.MayPoll(), none.MayAnswer(), none.MayPoll())
	}
	due, err := left.Unanswered(t.Context(), 10)
	if err != nil || len(due) != 2 {
		t.Fatalf("%v to answer, %v", due, err)
	}
	do(t, left, "UPDATE _answers SET created_at = '2020-01-01T00:00:00.000Z' WHERE message_id = ?", due[0].ID)
	for n, want := range []bool{false, true} {
		m, err := left.BeginAnswer(t.Context(), due[n].ID)
		if err != nil || (m != nil) != want {
			t.Errorf("message %d: %v, %v", n, m, err)
		}
	}
	if n := value[int](t, left, "SELECT count(*) FROM logs WHERE source = 'chat' AND data LIKE '%over a day%'"); n != 1 {
		t.Errorf("%d rows of the log tell of the one that was too late", n)
	}
	if err := left.DeleteConversation(t.Context(), due[1].ConversationID); err != nil {
		t.Fatal(err)
	}
	if m, err := left.BeginAnswer(t.Context(), due[1].ID); err != nil || m != nil {
		t.Errorf("of a conversation that is gone: %v, %v", m, err)
	}
	if value[int](t, left, "SELECT count(*) FROM _answers") != 0 {
		t.Error("rows are left")
	}
}

// TestMachinesGetNoAnswer: two machines do not write each other emails for ever.
func TestMachinesGetNoAnswer(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{AutoReply: agent.Some(true), LLMProvider: agent.Some("ollama")}); err != nil {
		t.Fatal(err)
	}
	id := inboundGateway(t, db, agent.GatewayEmail, agent.GatewayActive)
	away := said("1", "t", "", "I am away until Monday.")
	away.Metadata = []byte(`{"auto_submitted":"auto-replied"}`)
	receiveOne(t, db, id, away, said("2", "u", "", "Hello"))
	events, err := db.Events(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := db.EnqueueAnswers(t.Context(), events); err != nil || n != 1 {
		t.Errorf("%d to answer, %v", n, err)
	}
}

// TestNoAnswerWithoutAddress: what nobody can be sent is not asked of a model.
func TestNoAnswerWithoutAddress(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{AutoReply: agent.Some(true), LLMProvider: agent.Some("ollama")}); err != nil {
		t.Fatal(err)
	}
	for _, config := range []agent.GatewayConfig{{Secret: "s"}, {Secret: "s", URL: "https://example.com"}} {
		g, err := db.CreateGateway(t.Context(), agent.Gateway{Type: agent.GatewayWebhook, Name: "In"}, config, "whsec_x")
		if err != nil {
			t.Fatal(err)
		}
		do(t, db, "UPDATE gateways SET status = 'active' WHERE id = ?", g.ID)
		last := value[int64](t, db, "SELECT coalesce(max(seq), 0) FROM _events")
		receiveOne(t, db, g.ID, said("1", "t", "ada", "Hello"))
		events, err := db.Events(t.Context(), last, 100)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if config.URL != "" {
			want = 1
		}
		if n, err := db.EnqueueAnswers(t.Context(), events); err != nil || n != want {
			t.Errorf("with the address %q: %d to answer, %v", config.URL, n, err)
		}
	}
}
