package gateways

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"satchel/agent"
)

var loopback = agent.MustAddressRanges("127.0.0.0/8")

var quiet = slog.New(slog.DiscardHandler)

// fakeClock is a clock set by tests.
type fakeClock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *fakeClock { return &fakeClock{at: time.Now().Truncate(time.Second)} }

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// pass advances the clock.
func (c *fakeClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// target is a webhook target that responds as scripted and records requests.
type target struct {
	*httptest.Server
	got chan delivered

	mu     sync.Mutex
	answer func(n int, w http.ResponseWriter, r *http.Request)
	n      int
}

type delivered struct {
	header http.Header
	body   []byte
}

func newTarget(tb testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *target {
	tb.Helper()
	r := &target{got: make(chan delivered, 10_000), answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.n++
		n, answer := r.n, r.answer
		r.mu.Unlock()
		if answer != nil {
			answer(n, w, req)
		}
		r.got <- delivered{req.Header.Clone(), body}
	}))
	tb.Cleanup(r.Close)
	return r
}

func (r *target) script(answer func(n int, w http.ResponseWriter, req *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// next waits for a delivery.
func (r *target) next(tb testing.TB) delivered {
	tb.Helper()
	return <-r.got
}

func status(code int) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// verify checks a delivery with the Standard Webhooks library.
func verify(tb testing.TB, secret string, d delivered) {
	tb.Helper()
	oracle, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		tb.Fatal(err)
	}
	if err := oracle.Verify(d.body, d.header); err != nil {
		tb.Errorf("the library rejects the signature: %v\n%v\n%s", err, d.header, d.body)
	}
}
