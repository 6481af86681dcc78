package gateways

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// BenchmarkSending counts messages to a platform on loopback, in 64
// conversations of one agent: "bare" posts the same bodies to the same platform
// over as many connections without storing anything; "queue" stores each
// message, marks it, posts it and records the outcome, each in its own commit.
// "of-bare" is the relative throughput.
func BenchmarkSending(b *testing.B) {
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"ok":true,"user_id":"U1","channel":"C1","ts":"1.5"}`)
	}))
	b.Cleanup(platform.Close)
	text := strings.Repeat("x", 350)
	bare := 0.0
	b.Run("bare", func(b *testing.B) {
		folder, err := store.Open(store.Options{Path: b.TempDir(), Log: quiet})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = folder.Close() })
		g := New(Options{Env: store.Env{Folder: folder, Allow: loopback, Log: quiet}})
		config := agent.GatewayConfig{BotToken: "b", APIBaseURL: platform.URL}
		var next atomic.Int64
		var all sync.WaitGroup
		b.ResetTimer()
		for range sendsPerAgent {
			all.Go(func() {
				for next.Add(1) <= int64(b.N) {
					if _, err := (slack{}).send(b.Context(), g, config, Message{To: "C1", Text: text}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		bare = float64(b.N) / b.Elapsed().Seconds()
		b.ReportMetric(bare, "messages/s")
	})
	b.Run("queue", func(b *testing.B) {
		c := &sendFixture{clock: newClock(), path: b.TempDir()}
		c.open(b)
		b.Cleanup(c.close)
		o := &mailFixture{Gateways: c.Gateways, db: c.db}
		c.gate, _ = o.gateway(b, "slack", map[string]any{
			"botToken":      "b",
			"signingSecret": "s",
			"apiBaseUrl":    platform.URL,
		})
		conversations := make([]string, 64)
		for i := range conversations {
			conversations[i] = c.conversation(b, fmt.Sprint("C", i))
		}
		places := make(chan struct{}, store.MaxWaiting/2)
		sent := make(chan struct{}, b.N)
		c.out.onAttempt = func(t attempt) {
			if t.outcome.Problem != "" {
				b.Error(t.outcome.Problem)
			}
			<-places
			sent <- struct{}{}
		}
		var next atomic.Int64
		var writers sync.WaitGroup
		b.ResetTimer()
		for range 16 {
			writers.Go(func() {
				for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
					places <- struct{}{}
					m := agent.Message{
						ConversationID: conversations[int(i)%len(conversations)],
						Role:           agent.MessageAssistant,
						Content:        text,
					}
					if _, err := c.SendMessage(b.Context(), c.db, m); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		writers.Wait()
		for range b.N {
			<-sent
		}
		rate := float64(b.N) / b.Elapsed().Seconds()
		b.ReportMetric(rate, "messages/s")
		b.ReportMetric(rate/bare, "of-bare")
	})
}
