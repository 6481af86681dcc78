package subscription

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"satchel/agent"
	"satchel/flow/dispatch"
	"satchel/store"
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

// fixture is a folder with an agent, its subscriptions and a dispatcher.
type fixture struct {
	folder        *store.Folder
	db            *store.DB
	clock         *fakeClock
	subscriptions *Subscriptions
	dispatcher    *dispatch.Dispatcher
	tries         chan store.Attempt
}

func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	return openFixture(tb, tb.TempDir(), newClock())
}

func openFixture(tb testing.TB, path string, c *fakeClock) *fixture {
	tb.Helper()
	folder, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		tb.Fatal(err)
	}
	h := &fixture{folder: folder, db: folder.Default(), clock: c, tries: make(chan store.Attempt, 10_000)}
	now := time.Now
	if c != nil {
		now = c.now
	}
	h.subscriptions = newSubscriptions(store.Env{Folder: folder, Allow: loopback, Version: "test", Log: quiet}, now)
	h.subscriptions.onAttempt = func(a store.Attempt) { h.tries <- a }
	h.dispatcher = dispatch.New(folder, quiet, dispatch.Consumer{
		Name:   store.ConsumerWebhooks,
		Handle: h.subscriptions.Handle,
	})
	h.start(tb)
	tb.Cleanup(h.stop)
	return h
}

func (h *fixture) start(tb testing.TB) {
	tb.Helper()
	if err := h.subscriptions.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	if err := h.dispatcher.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

func (h *fixture) stop() {
	h.dispatcher.Stop()
	h.subscriptions.Stop()
	_ = h.folder.Close()
}

// pass advances the clock and notifies the deliveries, whose queue would notice
// it later.
func (h *fixture) pass(d time.Duration) {
	h.clock.pass(d)
	h.subscriptions.agents.Enqueue(h.db)
}

// due returns how many deliveries are due.
func (h *fixture) due(tb testing.TB) (n int) {
	tb.Helper()
	due, _, err := h.db.DueDeliveries(tb.Context(), agent.At(h.clock.now()), 100)
	if err != nil {
		tb.Fatal(err)
	}
	for _, d := range due {
		n += len(d.IDs)
	}
	return n
}

// receiver is a webhook target that responds as scripted and records requests.
type receiver struct {
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

func newReceiver(tb testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	tb.Helper()
	r := &receiver{got: make(chan delivered, 10_000), answer: answer}
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

func (r *receiver) script(answer func(n int, w http.ResponseWriter, req *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// next waits for a delivery.
func (r *receiver) next(tb testing.TB) delivered {
	tb.Helper()
	return <-r.got
}

func status(code int) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func subscribe(tb testing.TB, h *fixture, url string, events ...string) (agent.Webhook, string) {
	tb.Helper()
	made, secret, err := h.subscriptions.Create(tb.Context(), h.db, agent.WebhookChange{
		URL:    agent.Some(url),
		Events: agent.Some(events),
	})
	if err != nil {
		tb.Fatal(err)
	}
	return made, secret
}

func contact(tb testing.TB, db *store.DB, name string) agent.Contact {
	tb.Helper()
	c, err := db.CreateContact(tb.Context(), agent.ContactChange{Name: agent.Some(name)})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// try waits for the end of an attempt.
func (h *fixture) try(tb testing.TB) store.Attempt {
	tb.Helper()
	return <-h.tries
}

// delivery returns the newest delivery of a subscription.
func (h *fixture) delivery(tb testing.TB, hook string) agent.Delivery {
	tb.Helper()
	list, _, err := h.db.Deliveries(tb.Context(), hook, nil, store.Page{Limit: 1})
	if err != nil || len(list) != 1 {
		tb.Fatalf("deliveries: %v, %v", list, err)
	}
	return list[0]
}

func (h *fixture) webhook(tb testing.TB, id string) agent.Webhook {
	tb.Helper()
	w, err := h.db.Webhook(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	return w
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

func asAgentError(err error, e **agent.Error) bool { return errors.As(err, e) }
