package subscription

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/signature"
)

func TestDelivery(t *testing.T) {
	h := newFixture(t)
	r := newReceiver(t, nil)
	hook, secret := subscribe(t, h, r.URL, "contact.*")
	if !strings.HasPrefix(secret, "whsec_") || len(secret) != 38 || strings.ContainsAny(secret, "+/=") {
		t.Errorf("secret %q", secret)
	}
	c := contact(t, h.db, "Ada <&>")
	d := r.next(t)
	verify(t, secret, d)
	var body struct {
		agent.Envelope
		Data struct{ Contact agent.Contact } `json:"data"`
	}
	if err := json.Unmarshal(d.body, &body); err != nil {
		t.Fatal(err)
	}
	if body.Type != "contact.created" ||
		body.AgentID != "default" ||
		body.ID != d.header.Get("webhook-id") ||
		body.Data.Contact.ID != c.ID ||
		body.Timestamp.IsZero() {
		t.Errorf("body %s", d.body)
	}
	if d.header.Get("Content-Type") != "application/json" ||
		d.header.Get("User-Agent") != "Satchel/test" ||
		!strings.Contains(string(d.body), "<&>") {
		t.Errorf("headers %v, body %s", d.header, d.body)
	}
	h.try(t)
	got, w := h.delivery(t, hook.ID), h.webhook(t, hook.ID)
	if got.Status != agent.DeliveryDelivered ||
		got.Attempt != 1 ||
		*got.ResponseStatus != 200 ||
		got.DurationMS == nil ||
		got.Error != "" ||
		!got.NextAttemptAt.IsZero() ||
		got.Event != "contact.created" {
		t.Errorf("delivery %+v", got)
	}
	if w.FailureCount != 0 || w.LastStatus == nil || *w.LastStatus != 200 || w.LastDeliveryAt.IsZero() {
		t.Errorf("webhook %+v", w)
	}
}

// TestRetries walks through all attempts of a delivery: their delays, their
// single webhook-id, and the state of the subscription.
func TestRetries(t *testing.T) {
	h := newFixture(t)
	r := newReceiver(t, status(500))
	hook, secret := subscribe(t, h, r.URL, "*")
	contact(t, h.db, "x")
	id := ""
	for i, pause := range append([]time.Duration{0}, retryPauses...) {
		if pause > 0 {
			h.pass(pause - time.Second)
			if h.due(t)+len(r.got) > 0 {
				t.Fatalf("attempt %d came too early", i+1)
			}
			h.pass(pause/10 + 2*time.Second)
		}
		d := r.next(t)
		verifyAt(t, secret, d)
		if i == 0 {
			id = d.header.Get("webhook-id")
		} else if d.header.Get("webhook-id") != id {
			t.Errorf("attempt %d has the id %s, the first %s", i+1, d.header.Get("webhook-id"), id)
		}
		h.try(t)
		got, w := h.delivery(t, hook.ID), h.webhook(t, hook.ID)
		last := i == len(retryPauses)
		if got.Attempt != i+1 ||
			w.FailureCount != i+1 ||
			*w.LastStatus != 500 ||
			got.Error != "the receiver answered 500 Internal Server Error" {
			t.Errorf("after attempt %d: %+v, %+v", i+1, got, w)
		}
		if last != (got.Status == agent.DeliveryFailed) || last != got.NextAttemptAt.IsZero() || last == w.Active {
			t.Errorf("after attempt %d of %d: %+v, active %v", i+1, len(retryPauses)+1, got, w.Active)
		}
	}
}

// verifyAt checks a signature with our own function at the time it states,
// since the library only uses the current time and the fixture's clock may have
// advanced.
func verifyAt(t *testing.T, secret string, d delivered) {
	t.Helper()
	seconds, err := strconv.ParseInt(d.header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := signature.Verify(
		secret,
		d.header.Get("webhook-id"),
		d.header.Get("webhook-timestamp"),
		d.header.Get("webhook-signature"),
		d.body,
		time.Unix(seconds, 0),
	); err != nil {
		t.Error(err)
	}
}

// TestFailures covers the outcome of an attempt for each way in which a target
// can fail.
func TestFailures(t *testing.T) {
	refusing := newReceiver(t, nil)
	refusing.Close()
	other := newReceiver(t, nil)
	for name, c := range map[string]struct {
		url    string
		answer func(int, http.ResponseWriter, *http.Request)
		error  string
		status int
		after  time.Duration // minimum delay until the next attempt; 0: none
		active bool
	}{
		"not listening": {refusing.URL, nil, "the connection was refused", 0, 5 * time.Second, true},
		"private":       {"http://10.1.2.3/", nil, "address not allowed", 0, 5 * time.Second, true},
		"cut": {
			"",
			func(int, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"the connection was closed early",
			0,
			5 * time.Second,
			true,
		},
		"redirect": {
			"",
			func(_ int, w http.ResponseWriter, req *http.Request) {
				http.Redirect(w, req, other.URL, http.StatusFound)
			},
			"redirect", 302, 5 * time.Second, true,
		},
		"bad request":    {"", status(400), "the receiver answered 400 Bad Request", 400, 5 * time.Second, true},
		"410 Gone":       {"", status(410), "the receiver answered 410", 410, 0, false},
		"retry in hours": {"", retryLater(429, "7200"), "429", 429, 2 * time.Hour, true},
		"retry in years": {"", retryLater(503, "99999999"), "503", 503, 24 * time.Hour, true},
		"retry sooner":   {"", retryLater(503, "1"), "503", 503, 5 * time.Second, true},
		"invalid delay":  {"", retryLater(503, "soon"), "503", 503, 5 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			url := c.url
			if url == "" {
				url = newReceiver(t, c.answer).URL
			}
			made, err := h.db.CreateWebhook(
				t.Context(),
				agent.Webhook{URL: url, Events: []string{"*"}, Active: true},
				signature.NewSecret(),
			)
			if err != nil {
				t.Fatal(err)
			}
			contact(t, h.db, "x")
			a := h.try(t)
			d, w := h.delivery(t, made.ID), h.webhook(t, made.ID)
			if !strings.Contains(d.Error, c.error) ||
				a.Status != c.status ||
				w.Active != c.active ||
				w.FailureCount != 1 {
				t.Errorf("%+v\n%+v", d, w)
			}
			wait := d.NextAttemptAt.Sub(h.clock.now())
			if c.after == 0 && !d.NextAttemptAt.IsZero() ||
				c.after > 0 && (wait < c.after || wait > c.after+c.after/10+time.Second) {
				t.Errorf("next attempt in %s, want %s", wait, c.after)
			}
		})
	}
	if len(other.got) > 0 {
		t.Error("a redirect was followed")
	}
}

func retryLater(code int, after string) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(code)
	}
}

// TestSuccessKeepsSubscriptionActive: a delivery that used up its attempts does
// not disable a subscription of which another delivery succeeded since.
func TestSuccessKeepsSubscriptionActive(t *testing.T) {
	h := newFixture(t)
	r := newReceiver(t, func(_ int, w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("webhook-id") == "event-bad" {
			w.WriteHeader(500)
		}
	})
	hook, _ := subscribe(t, h, r.URL, "contact.updated")
	if err := h.db.NoteDelivery(t.Context(), agent.Delivery{
		ID:            "delivery-bad",
		Event:         "contact.updated",
		EventID:       "event-bad",
		WebhookID:     hook.ID,
		Status:        agent.DeliveryPending,
		Attempt:       len(retryPauses),
		NextAttemptAt: agent.At(h.clock.now().Add(time.Hour)),
		CreatedAt:     agent.At(h.clock.now().Add(-time.Hour)),
	}, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	c := contact(t, h.db, "x")
	if _, err := h.db.UpdateContact(t.Context(), c.ID, agent.ContactChange{Name: agent.Some("y")}); err != nil {
		t.Fatal(err)
	}
	h.try(t)
	h.pass(2 * time.Hour)
	if a := h.try(t); a.Status != 500 || !a.Next.IsZero() {
		t.Fatalf("the last attempt: %+v", a)
	}
	if w := h.webhook(t, hook.ID); !w.Active {
		t.Error("disabled although a delivery succeeded")
	}
}

func TestSubscriptionIsDisabled(t *testing.T) {
	h := newFixture(t)
	r := newReceiver(t, status(503))
	hook, _ := subscribe(t, h, r.URL, "contact.created")
	contact(t, h.db, "before")
	h.try(t)
	change := func(active bool) {
		t.Helper()
		if _, err := h.subscriptions.Update(t.Context(), h.db, hook.ID, agent.WebhookChange{
			Active: agent.Some(active),
		}); err != nil {
			t.Fatal(err)
		}
	}
	change(false)
	if d := h.delivery(t, hook.ID); d.Status != agent.DeliveryFailed || !strings.Contains(d.Error, "switched off") {
		t.Errorf("the pending delivery is %+v", d)
	}
	_, err := h.subscriptions.Redeliver(t.Context(), h.db, hook.ID, h.delivery(t, hook.ID).ID)
	if agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("redelivery to a disabled subscription: %v", err)
	}
	contact(t, h.db, "meanwhile")
	r.script(nil)
	change(true)
	if w := h.webhook(t, hook.ID); w.FailureCount != 0 {
		t.Errorf("%d failures after it was enabled", w.FailureCount)
	}
	contact(t, h.db, "after")
	h.try(t)
	first := r.next(t)
	if second := r.next(t); !strings.Contains(string(first.body), "before") ||
		!strings.Contains(string(second.body), "after") ||
		len(r.got) > 0 {
		t.Errorf("delivered %s, %s and %d more", first.body, second.body, len(r.got))
	}
}

func TestRedelivery(t *testing.T) {
	h := newFixture(t)
	r := newReceiver(t, status(410))
	hook, _ := subscribe(t, h, r.URL, "contact.created")
	contact(t, h.db, "x")
	h.try(t)
	first := r.next(t)
	r.script(nil)
	if _, err := h.subscriptions.Update(t.Context(), h.db, hook.ID, agent.WebhookChange{
		Active: agent.Some(true),
	}); err != nil {
		t.Fatal(err)
	}
	failed := h.delivery(t, hook.ID)
	d, err := h.subscriptions.Redeliver(t.Context(), h.db, hook.ID, failed.ID)
	if err != nil || d.Status != agent.DeliveryPending || d.Attempt != 0 {
		t.Fatalf("got %+v, %v", d, err)
	}
	again := r.next(t)
	h.try(t)
	if again.header.Get("webhook-id") != first.header.Get("webhook-id") || string(again.body) != string(first.body) {
		t.Errorf("delivered again as %v %s", again.header, again.body)
	}
	if d := h.delivery(t, hook.ID); d.ID != failed.ID || d.Status != agent.DeliveryDelivered {
		t.Errorf("got %+v", d)
	}
	if _, err := h.subscriptions.Redeliver(
		t.Context(),
		h.db,
		hook.ID,
		"delivery-x",
	); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Error(err)
	}
}

func TestRotation(t *testing.T) {
	h := newFixture(t)
	r := newReceiver(t, nil)
	hook, old := subscribe(t, h, r.URL, "contact.created")
	_, secret, err := h.subscriptions.Rotate(t.Context(), h.db, hook.ID)
	if err != nil || secret == old {
		t.Fatal(secret, err)
	}
	contact(t, h.db, "x")
	d := r.next(t)
	verify(t, old, d)
	verify(t, secret, d)
	h.try(t)
	h.pass(formerSecretLifetime)
	contact(t, h.db, "y")
	if d := r.next(t); strings.Contains(d.header.Get("webhook-signature"), " ") {
		t.Error("the former secret never expires")
	}
	h.try(t)
}

func TestTestDelivery(t *testing.T) {
	h := newFixture(t)
	r := newReceiver(t, status(404))
	hook, secret := subscribe(t, h, r.URL, "contact.created")
	d, err := h.subscriptions.Test(t.Context(), h.db, hook.ID)
	if err != nil ||
		d.Status != agent.DeliveryFailed ||
		d.Event != EventTest ||
		*d.ResponseStatus != 404 ||
		d.Attempt != 1 {
		t.Fatalf("got %+v, %v", d, err)
	}
	verify(t, secret, r.next(t))
	r.script(nil)
	if d, err := h.subscriptions.Test(t.Context(), h.db, hook.ID); err != nil || d.Status != agent.DeliveryDelivered {
		t.Fatalf("got %+v, %v", d, err)
	}
	if w := h.webhook(t, hook.ID); w.FailureCount != 0 || !w.LastDeliveryAt.IsZero() {
		t.Errorf("a test delivery counts as an attempt: %+v", w)
	}
}

func TestBadSubscriptions(t *testing.T) {
	h := newFixture(t)
	for name, c := range map[string]struct {
		url    string
		events []string
		field  string
	}{
		"no url":           {"", []string{"*"}, "url"},
		"file":             {"file:///etc/passwd", []string{"*"}, "url"},
		"private":          {"http://192.168.0.1/", []string{"*"}, "url"},
		"metadata":         {"http://169.254.169.254/latest", []string{"*"}, "url"},
		"odd numbers":      {"http://0xa000001/", []string{"*"}, "url"},
		"password":         {"https://a:b@example.com/", []string{"*"}, "url"},
		"no events":        {"https://example.com/", []string{}, "events"},
		"unknown event":    {"https://example.com/", []string{"contact.created", "contact.sneezed"}, "events[1]"},
		"unknown kind":     {"https://example.com/", []string{"weather.*"}, "events[0]"},
		"glob in the name": {"https://example.com/", []string{"contact.c*"}, "events[0]"},
		"empty name":       {"https://example.com/", []string{""}, "events[0]"},
		"too many":         {"https://example.com/", slices.Repeat([]string{"*"}, 51), "events"},
	} {
		_, _, err := h.subscriptions.Create(t.Context(), h.db, agent.WebhookChange{
			URL:    agent.Some(c.url),
			Events: agent.Some(c.events),
		})
		var e *agent.Error
		if !asAgentError(err, &e) || e.Details["field"] != c.field {
			t.Errorf("%s: %v, want an error about %s", name, err, c.field)
		}
	}
	for range agent.MaxWebhooks {
		subscribe(t, h, "https://example.com/", "*")
	}
	_, _, err := h.subscriptions.Create(t.Context(), h.db, agent.WebhookChange{
		URL:    agent.Some("https://example.com/"),
		Events: agent.Some([]string{"*"}),
	})
	if agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("one subscription too many: %v", err)
	}
}
