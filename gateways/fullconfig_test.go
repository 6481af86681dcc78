package gateways

import (
	"testing"

	"satchel/agent"
)

// newFullConfigFixture returns a fixture with an active gateway that lacks its own secret.
func newFullConfigFixture(t *testing.T, kind string, config agent.GatewayConfigChange) (*sendFixture, string) {
	t.Helper()
	c := &sendFixture{clock: newClock(), path: t.TempDir()}
	c.open(t)
	t.Cleanup(c.close)
	r := &hookFixture{c.Gateways, c.db, c.clock}
	g, secret := r.connect(t, kind, config)
	c.gate = g
	return c, secret
}

// TestAnswersUseTheFullConfig: the fallbacks for secrets missing in a gateway's
// config also apply to answers, not only to verifying and receiving.
func TestAnswersUseTheFullConfig(t *testing.T) {
	t.Run("a custom webhook signs with webhook_secret", func(t *testing.T) {
		target := newTarget(t, nil)
		c, secret := newFullConfigFixture(t, "webhook", agent.GatewayConfigChange{URL: agent.Some(target.URL)})
		c.createMessage(t, c.conversation(t, "ada"), "hello")
		if e := c.waitAttempt(t); e.Problem != "" {
			t.Fatalf("not sent: %s", e.Problem)
		}
		verify(t, secret, target.next(t))
	})
	t.Run("Telegram answers with the settings' token", func(t *testing.T) {
		b := newBotServer(t)
		c, _ := newFullConfigFixture(t, "telegram", agent.GatewayConfigChange{APIBaseURL: agent.Some(b.URL)})
		if _, err := c.db.UpdateSettings(t.Context(), agent.SettingsChange{
			ChatbotAToken: agent.Some(telegramToken),
		}); err != nil {
			t.Fatal(err)
		}
		c.createMessage(t, c.conversation(t, "77"), "hello")
		if e := c.waitAttempt(t); e.Problem != "" {
			t.Fatalf("not sent: %s", e.Problem)
		}
		if _, sent, _, _ := b.state(); len(sent) != 1 || sent[0]["text"] != "hello" {
			t.Errorf("sent %v", sent)
		}
	})
}
