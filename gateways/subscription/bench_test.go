package subscription

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

// BenchmarkDelivery counts deliveries to one subscription on loopback: "bare"
// posts the same body to the same receiver over as many connections without
// storing anything; "due" delivers what is pending in the file, each delivery
// read, signed, posted and recorded durably; "events" starts with the write of
// a contact and goes through outbox and dispatcher.
func BenchmarkDelivery(b *testing.B) {
	var got, target atomic.Int64
	done := make(chan struct{}, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if got.Add(1) == target.Load() {
			done <- struct{}{}
		}
	}))
	b.Cleanup(receiver.Close)
	await := func(n int) { target.Store(got.Load() + int64(n)) }
	report := func(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "posts/s") }
	body := `{"type":"contact.created","data":{"contact":"` + strings.Repeat("x", 350) + `"}}`

	b.Run("bare", func(b *testing.B) {
		h := newFixture(b)
		await(b.N)
		b.ResetTimer()
		var next atomic.Int64
		var posters sync.WaitGroup
		for range attemptsPerTarget {
			posters.Go(func() {
				for next.Add(1) <= int64(b.N) {
					resp, err := h.subscriptions.guard.HTTP().Post(
						receiver.URL,
						"application/json",
						strings.NewReader(body),
					)
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		}
		posters.Wait()
		<-done
		report(b)
	})
	b.Run("due", func(b *testing.B) {
		h := openFixture(b, b.TempDir(), nil)
		h.subscriptions.onAttempt = func(store.Attempt) {}
		subscribe(b, h, receiver.URL, "contact.created")
		await(b.N)
		for from := 0; from < b.N; from += store.MaxPending {
			b.StopTimer()
			h.subscriptions.Stop()
			n := min(store.MaxPending, b.N-from)
			events := make([]agent.Event, n)
			for i := range events {
				events[i] = agent.Event{
					Seq:       int64(1_000_000 + from + i),
					ID:        fmt.Sprint("event-", from+i),
					Type:      "contact.created",
					Data:      []byte(body),
					CreatedAt: agent.Now(),
				}
			}
			if _, err := h.db.EnqueueDeliveries(b.Context(), events, agent.Now()); err != nil {
				b.Fatal(err)
			}
			if from+n < b.N {
				target.Store(got.Load() + int64(n))
			}
			b.StartTimer()
			if err := h.subscriptions.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			<-done
			target.Store(got.Load() + int64(b.N-from-n))
		}
		report(b)
	})
	b.Run("events", func(b *testing.B) {
		h := openFixture(b, b.TempDir(), nil)
		h.subscriptions.onAttempt = func(store.Attempt) {}
		subscribe(b, h, receiver.URL, "contact.created")
		await(b.N)
		b.ResetTimer()
		var next atomic.Int64
		var writers sync.WaitGroup
		for range 16 {
			writers.Go(func() {
				for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
					if _, err := h.db.CreateContact(b.Context(), agent.ContactChange{
						Name: agent.Some(fmt.Sprint("Person ", i)),
					}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		writers.Wait()
		<-done
		report(b)
	})
}
