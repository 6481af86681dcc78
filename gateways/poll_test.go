package gateways

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// pollFixture is a hookFixture on a machine that cannot be reached from
// outside, with a poller and a fake Telegram.
type pollFixture struct {
	*hookFixture
	bot    *botServer
	poller *Poller
	rounds chan struct{} // receives a token for each stored response
	waits  chan time.Duration
}

func newPollFixture(t testing.TB) *pollFixture {
	t.Helper()
	r := newHookFixture(t, func(o *Options) { o.Public, o.Address = false, "http://127.0.0.1:8787" })
	p := &pollFixture{
		hookFixture: r,
		bot:         newBotServer(t),
		rounds:      make(chan struct{}, 10_000),
		waits:       make(chan time.Duration, 10_000),
	}
	p.start(t)
	return p
}

// start starts a poller, like a program that has just started.
func (p *pollFixture) start(t testing.TB) {
	t.Helper()
	p.poller = newPoller(p.Gateways, func(failures int, err error) time.Duration {
		p.waits <- pollBackoff(failures, err)
		return 0
	})
	p.poller.stored = func() { p.rounds <- struct{}{} }
	for range 2 {
		if err := p.poller.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(p.poller.Stop)
}

// verified connects the gateway through Verify, as a user does.
func (p *pollFixture) verified(t testing.TB) agent.Gateway {
	t.Helper()
	g, _ := p.connect(t, "telegram", telegramConfig(p.bot))
	if v, err := p.Verify(t.Context(), p.db, g.ID); err != nil || !v.Success {
		t.Fatalf("verified %+v, %v", v, err)
	}
	return g
}

// waitUntil waits for rounds of the poller until a condition holds.
func (p *pollFixture) waitUntil(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !holds() {
		select {
		case <-p.rounds:
		case <-p.waits:
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

func (p *pollFixture) texts(t testing.TB) (texts []string) {
	t.Helper()
	for _, m := range p.messages(t) {
		texts = append(texts, m.Content)
	}
	return texts
}

func TestPollFetches(t *testing.T) {
	p := newPollFixture(t)
	p.bot.receive(42, "before the gateway")
	g := p.verified(t)
	p.bot.receive(42, "one")
	p.bot.push(`"callback_query":{"id":"1"}`)
	p.bot.receive(42, "two")
	p.waitUntil(t, "the messages", func() bool { return len(p.texts(t)) == 3 })
	if got := p.texts(t); !slices.Equal(got, []string{"before the gateway", "one", "two"}) {
		t.Errorf("stored %v", got)
	}
	if g := p.gateway(t, g.ID); g.EventCount != 4 || g.LastError != "" {
		t.Errorf("the gateway %+v", g)
	}
	calls, _, _, _ := p.bot.state()
	if at := slices.Index(calls, "deleteWebhook"); at < 0 || at > slices.Index(calls, "getUpdates") {
		t.Errorf("called %v", calls)
	}
	for range 3 {
		p.poller.Stop()
	}
}

// After a stop or a kill the poller resumes where it was. Updates that were
// stored but not confirmed are delivered again and change nothing.
func TestPollAfterRestart(t *testing.T) {
	p := newPollFixture(t)
	g := p.verified(t)
	want := []string{}
	for n := range 250 {
		want = append(want, fmt.Sprint("message ", n))
		p.bot.receive(42, want[n])
		if n%50 == 49 {
			p.waitUntil(t, "some messages", func() bool { return len(p.texts(t)) > n/2 })
			p.poller.Stop()
			p.start(t)
		}
	}
	p.waitUntil(t, "all messages", func() bool {
		return len(p.messages(t)) == 200 && p.gateway(t, g.ID).EventCount == 250
	})
	_, next, ok, err := p.db.PollFrom(t.Context(), g.ID)
	if err != nil || !ok || next != 9251 {
		t.Errorf("resumes from %d, %v, %v", next, ok, err)
	}
	// A kill between the commit and the confirmation: Telegram delivers the
	// updates again.
	p.poller.Stop()
	p.bot.mu.Lock()
	p.bot.last -= 100
	p.bot.mu.Unlock()
	for n := 150; n < 250; n++ {
		p.bot.receive(42, want[n])
	}
	p.start(t)
	p.bot.receive(42, "the last")
	p.waitUntil(t, "the last message", func() bool { return slices.Contains(p.texts(t), "the last") })
	if n := p.gateway(t, g.ID).EventCount; n != 251 {
		t.Errorf("%d events after a repeat of 100", n)
	}
}

// Once all updates are confirmed, update ids may restart lower, as Telegram's do
// after a week without updates.
func TestPollAfterIDsRestart(t *testing.T) {
	p := newPollFixture(t)
	p.bot.hold = time.Millisecond
	p.verified(t)
	p.bot.receive(42, "first")
	p.waitUntil(t, "a request without an offset", func() bool {
		_, _, _, offsets := p.bot.state()
		return len(p.texts(t)) == 1 && slices.Contains(offsets, 9002) && offsets[len(offsets)-1] == 0
	})
	p.bot.mu.Lock()
	p.bot.last = 100
	p.bot.mu.Unlock()
	p.bot.receive(42, "anew")
	p.waitUntil(t, "the message with a low number", func() bool { return len(p.texts(t)) == 2 })
}

// A gateway is polled exactly while it and its agent are active and it has no
// webhook.
func TestPollFollowsGateways(t *testing.T) {
	p := newPollFixture(t)
	g := p.verified(t)
	polling := func() bool { return len(p.poller.polls.Keys(p.db)) == 1 }
	idle := func() bool { return len(p.poller.polls.Keys(p.db)) == 0 }
	eventually := func(what string, holds func() bool) {
		t.Helper()
		if err := p.poller.agents.Wait(t.Context(), p.db); err != nil {
			t.Fatal(err)
		}
		p.waitUntil(t, what, holds) // a cancelled call may still be running
	}
	eventually("polling after verify", polling)
	steps := []struct {
		what string
		do   func() error
		then func() bool
	}{
		{"a new config", func() error {
			_, err := p.Update(t.Context(), p.db, g.ID, agent.GatewayChange{
				Config: agent.Some(agent.GatewayConfigChange{APIBaseURL: agent.Some(p.bot.URL)}),
			})
			return err
		}, idle},
		{"verify", func() error {
			_, err := p.Verify(t.Context(), p.db, g.ID)
			return err
		}, polling},
		{"a webhook", func() error {
			_, err := p.Register(t.Context(), p.db, g.ID, "https://tunnel.example")
			return err
		}, idle},
		{"webhook removed", func() error {
			_, err := p.Register(t.Context(), p.db, g.ID, "")
			return err
		}, func() bool {
			p.bot.mu.Lock()
			defer p.bot.mu.Unlock()
			return p.bot.webhook == ""
		}},
		{"polling again", func() error { return nil }, polling},
		{"the agent paused", func() error {
			_, err := p.folder.UpdateAgent(t.Context(), p.db, agent.AgentChange{Status: agent.Some(agent.StatusPaused)})
			return err
		}, idle},
		{"the agent active", func() error {
			_, err := p.folder.UpdateAgent(t.Context(), p.db, agent.AgentChange{Status: agent.Some(agent.StatusActive)})
			return err
		}, polling},
		{"the gateway deleted", func() error { return p.Delete(t.Context(), p.db, g.ID) }, idle},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Fatalf("%s: %v", s.what, err)
		}
		eventually(s.what, s.then)
	}
}

// Errors are retried with growing delays and shown on the gateway. A rejected
// token ends polling.
func TestPollErrors(t *testing.T) {
	p := newPollFixture(t)
	p.bot.failNext(
		"getUpdates", `502 <html>`, `502 <html>`, `409 {"ok":false,"description":"Conflict"}`,
		`429 {"ok":false,"parameters":{"retry_after":90}}`, `200 <html>`, "pass",
		`200 {"ok":true,"result":[{"no":"update"}]}`, "pass",
	)
	g := p.verified(t)
	var waits []time.Duration
	for len(waits) < 5 {
		waits = append(waits, <-p.waits)
	}
	for n, least := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 90 * time.Second} {
		if waits[n] < least || waits[n] > least*5/4 {
			t.Errorf("pause %d is %s", n, waits[n])
		}
	}
	p.bot.receive(42, "at last")
	p.waitUntil(t, "the message after the errors", func() bool { return len(p.texts(t)) == 1 })
	if after := p.gateway(t, g.ID); after.LastError == "" || after.Status != agent.GatewayActive {
		t.Errorf("the gateway %+v", after)
	}
	p.bot.failNext("getUpdates", `401 {"ok":false}`)
	p.bot.receive(42, "not fetched")
	p.waitUntil(t, "polling to end", func() bool { return p.gateway(t, g.ID).Status == agent.GatewayFailed })
	if after := p.gateway(t, g.ID); !strings.Contains(after.LastError, "refused the bot token") || after.Verified {
		t.Errorf("the gateway %+v", after)
	}
}
