package store

import (
	"strconv"
	"testing"

	"satchel/agent"
)

// TestAnswersAcrossFiles checks that a start knows which agents have messages to answer
// and gateways to poll without opening their files, that a copy answers nothing, and that
// messages which waited for over a day are not answered.
func TestAnswersAcrossFiles(t *testing.T) {
	f := openFolder(t)
	left := createAgent(t, f, "left")
	createAgent(t, f, "none")
	if _, err := left.UpdateSettings(t.Context(), agent.SettingsChange{
		AutoReply:   agent.Some(true),
		LLMProvider: agent.Some("ollama"),
	}); err != nil {
		t.Fatal(err)
	}
	id := inboundGateway(t, left, agent.GatewayTelegram, agent.GatewayActive)
	receiveOne(t, left, id, inboundText("1", "t", "telegram:1", "Hello"), inboundText("2", "u", "telegram:2", "Hello"))
	fork, err := f.Fork(t.Context(), left, "copy", "")
	if err != nil {
		t.Fatal(err)
	}
	if due, err := fork.DueAnswers(t.Context(), 10); err != nil || len(due) != 0 {
		t.Errorf("a copy has %v to answer, %v", due, err)
	}
	f = restart(t, f)
	left = byName(t, f, "left")
	p, q := left.Pending(), byName(t, f, "none").Pending()
	if p.Answers.IsZero() || p.Gateways.IsZero() || !q.Answers.IsZero() || !q.Gateways.IsZero() {
		t.Errorf("left: %+v, none: %+v", p, q)
	}
	due, err := left.DueAnswers(t.Context(), 10)
	if err != nil || len(due) != 2 {
		t.Fatalf("%v to answer, %v", due, err)
	}
	do(t, left, "UPDATE _answers SET created_at = '2020-01-01T00:00:00.000Z' WHERE conversation_id = ?", due[0])
	for n, want := range []bool{false, true} {
		m, err := left.BeginAnswer(t.Context(), due[n])
		if err != nil || (m != nil) != want {
			t.Errorf("message %d: %v, %v", n, m, err)
		}
	}
	if n := value[int](
		t,
		left,
		"SELECT count(*) FROM logs WHERE source = 'chat' AND data LIKE '%over a day%'",
	); n != 1 {
		t.Errorf("%d log rows about the message that waited too long", n)
	}
	if err := left.DeleteConversation(t.Context(), due[1]); err != nil {
		t.Fatal(err)
	}
	if m, err := left.BeginAnswer(t.Context(), due[1]); err != nil || m != nil {
		t.Errorf("an answer in a deleted conversation: %v, %v", m, err)
	}
	if value[int](t, left, "SELECT count(*) FROM _answers") != 0 {
		t.Error("rows are left")
	}
}

// TestMachinesGetNoAnswer checks that two machines do not answer each other's emails
// forever.
func TestMachinesGetNoAnswer(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{
		AutoReply:   agent.Some(true),
		LLMProvider: agent.Some("ollama"),
	}); err != nil {
		t.Fatal(err)
	}
	id := inboundGateway(t, db, agent.GatewayEmail, agent.GatewayActive)
	away := inboundText("1", "t", "", "I am away until Monday.")
	away.Metadata = []byte(`{"auto_submitted":"auto-replied"}`)
	receiveOne(t, db, id, away, inboundText("2", "u", "", "Hello"))
	if n := value[int](t, db, "SELECT count(*) FROM _answers"); n != 1 {
		t.Errorf("%d to answer", n)
	}
}

// TestNoAnswerWithoutAddress checks that the model is not asked for an answer that cannot
// be sent.
func TestNoAnswerWithoutAddress(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{
		AutoReply:   agent.Some(true),
		LLMProvider: agent.Some("ollama"),
	}); err != nil {
		t.Fatal(err)
	}
	for _, config := range []agent.GatewayConfig{{Secret: "s"}, {Secret: "s", URL: "https://example.com"}} {
		g, err := db.CreateGateway(
			t.Context(),
			agent.Gateway{Type: agent.GatewayWebhook, Name: "In"},
			config,
			"whsec_x",
		)
		if err != nil {
			t.Fatal(err)
		}
		do(t, db, "UPDATE gateways SET status = 'active' WHERE id = ?", g.ID)
		receiveOne(t, db, g.ID, inboundText("1", "t", "ada", "Hello"))
		want := 0
		if config.URL != "" {
			want = 1
		}
		if n := value[int](t, db, "SELECT count(*) FROM _answers"); n != want {
			t.Errorf("with the address %q: %d to answer", config.URL, n)
		}
	}
}

// TestChainsOfAnswersEnd checks that a message which too long a chain of executions led
// to is not answered.
func TestChainsOfAnswersEnd(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{
		AutoReply:   agent.Some(true),
		LLMProvider: agent.Some("ollama"),
	}); err != nil {
		t.Fatal(err)
	}
	id := inboundGateway(t, db, agent.GatewayEmail, agent.GatewayActive)
	for n, depth := range []int{agent.MaxEventDepth - 1, agent.MaxEventDepth} {
		ctx := WithChain(t.Context(), agent.Chain{Depth: depth, Root: "execution-1", Remote: true})
		if _, err := db.ReceiveInbound(
			ctx,
			id,
			[]Receipt{{Messages: []agent.Inbound{inboundText(strconv.Itoa(n), "t", "", "Hello")}}},
			0,
		); err != nil {
			t.Fatal(err)
		}
	}
	if n := value[int](t, db, "SELECT count(*) FROM _answers"); n != 1 {
		t.Errorf("%d to answer", n)
	}
}
