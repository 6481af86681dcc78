package subscription

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/work/worktest"
)

// TestOrderOfDeliveries queues many events for one target: their first attempts
// start in the order of the events, as many at the same time as a target
// allows.
func TestOrderOfDeliveries(t *testing.T) {
	h := newFixture(t)
	const groups = 6
	var mu sync.Mutex
	var received []string
	full := make([]chan struct{}, groups)
	for i := range full {
		full[i] = make(chan struct{})
	}
	r := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		var body struct {
			Data struct{ Contact agent.Contact } `json:"data"`
		}
		if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		mu.Lock()
		received = append(received, body.Data.Contact.Name)
		n := len(received)
		if n%attemptsPerTarget == 0 {
			close(full[n/attemptsPerTarget-1])
		}
		mu.Unlock()
		select {
		case <-full[(n-1)/attemptsPerTarget]:
		case <-req.Context().Done():
		}
	}))
	t.Cleanup(r.Close)
	subscribe(t, h, r.URL, "contact.created")
	var want []string
	for i := range groups * attemptsPerTarget {
		want = append(want, fmt.Sprintf("%03d", i))
		contact(t, h.db, want[i])
	}
	for range want {
		h.try(t)
	}
	mu.Lock()
	defer mu.Unlock()
	for at := 0; at < len(want); at += attemptsPerTarget {
		group := slices.Sorted(slices.Values(received[at : at+attemptsPerTarget]))
		if !slices.Equal(group, want[at:at+attemptsPerTarget]) {
			t.Errorf("received %v, want %v", group, want[at:at+attemptsPerTarget])
		}
	}
}

// TestDisabledAgent: deliveries pause while their agent is disabled.
func TestDisabledAgent(t *testing.T) {
	h := newFixture(t)
	r := newReceiver(t, nil)
	subscribe(t, h, r.URL, "agent.updated")
	status := func(s agent.Status) {
		t.Helper()
		if _, err := h.folder.UpdateAgent(t.Context(), h.db, agent.AgentChange{Status: agent.Some(s)}); err != nil {
			t.Fatal(err)
		}
	}
	status(agent.StatusPaused)
	r.next(t)
	h.try(t)
	status(agent.StatusDisabled)
	status(agent.StatusActive)
	statuses := []string{}
	for range 2 {
		var body struct{ Data struct{ Agent agent.Agent } }
		if err := json.Unmarshal(r.next(t).body, &body); err != nil {
			t.Fatal(err)
		}
		statuses = append(statuses, string(body.Data.Agent.Status))
	}
	if slices.Sort(statuses); !slices.Equal(statuses, []string{"active", "disabled"}) {
		t.Errorf("delivered %v", statuses)
	}
}

// TestRestart: pending deliveries are made by the next process, at their time.
func TestRestart(t *testing.T) {
	path, at := t.TempDir(), newClock()
	h := openFixture(t, path, at)
	r := newReceiver(t, status(500))
	subscribe(t, h, r.URL, "contact.created")
	contact(t, h.db, "x")
	r.next(t)
	h.try(t)
	h.stop()
	r.script(nil)
	h = openFixture(t, path, at)
	h.pass(2 * time.Second)
	if h.due(t)+len(r.got) > 0 {
		t.Error("retried too early")
	}
	h.pass(6 * time.Second)
	if r.next(t); h.try(t).Error != "" {
		t.Error("the second attempt failed")
	}
}

// TestStopInterruptsAttempts: an attempt interrupted by Stop does not count.
func TestStopInterruptsAttempts(t *testing.T) {
	h := newFixture(t)
	started, release := make(chan struct{}), make(chan struct{})
	r := newReceiver(t, func(n int, _ http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			close(started)
			<-release
		}
	})
	hook, _ := subscribe(t, h, r.URL, "contact.created")
	contact(t, h.db, "x")
	<-started
	h.subscriptions.Stop()
	close(release)
	if d := h.delivery(t, hook.ID); d.Attempt != 0 || d.Status != agent.DeliveryPending {
		t.Errorf("after the interruption: %+v", d)
	}
	if err := h.subscriptions.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := h.try(t); a.Error != "" {
		t.Error(a.Error)
	}
}

// TestHangingTargets: hanging targets do not delay others, and a failing target
// gets one attempt at a time.
func TestHangingTargets(t *testing.T) {
	h := newFixture(t)
	release := make(chan struct{})
	hanging := newReceiver(t, func(int, http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	for range 3 {
		subscribe(t, h, hanging.URL, "contact.created")
	}
	healthy := newReceiver(t, nil)
	subscribe(t, h, healthy.URL, "contact.created")
	const events = 100
	for i := range events {
		contact(t, h.db, fmt.Sprint(i))
	}
	for range events {
		healthy.next(t)
	}
	hanging.mu.Lock()
	defer hanging.mu.Unlock()
	if hanging.n > attemptsPerTarget {
		t.Errorf("%d concurrent attempts at one target", hanging.n)
	}
}

// TestStartStop starts and stops repeatedly while events arrive.
func TestStartStop(t *testing.T) {
	h := newFixture(t)
	r := newReceiver(t, nil)
	subscribe(t, h, r.URL, "contact.created")
	const events = 100
	worktest.Stress(t, h.subscriptions, events, func(int) {
		if _, err := h.db.CreateContact(t.Context(), agent.ContactChange{Name: agent.Some("x")}); err != nil {
			t.Error(err)
		}
	})
	for range events {
		if a := h.try(t); a.Error != "" {
			t.Fatal(a.Error)
		}
	}
	h.subscriptions.Stop()
	if n := len(h.subscriptions.attempts); n > 0 {
		t.Errorf("%d subscriptions still have attempts in memory", n)
	}
}

// TestRetryTime: a delivery that becomes due is attempted without any other
// trigger, whatever stored it.
func TestRetryTime(t *testing.T) {
	h := openFixture(t, t.TempDir(), nil)
	r := newReceiver(t, nil)
	hook, _ := subscribe(t, h, r.URL, "contact.created")
	now := time.Now()
	if err := h.db.NoteDelivery(t.Context(), agent.Delivery{
		ID:            "delivery-later",
		Event:         "contact.created",
		EventID:       "event-later",
		WebhookID:     hook.ID,
		Status:        agent.DeliveryPending,
		NextAttemptAt: agent.At(now.Add(50 * time.Millisecond)),
		CreatedAt:     agent.At(now),
	}, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if a := h.try(t); a.DeliveryID != "delivery-later" || a.Error != "" {
		t.Errorf("got %+v", a)
	}
}

// TestFailingSubscription: after a failure a subscription has one attempt at a
// time, another subscription with the same target is not delayed, and after a
// success the rest is delivered.
func TestFailingSubscription(t *testing.T) {
	h := newFixture(t)
	var mu sync.Mutex
	requests, running, most := 0, 0, 0
	release := make(chan struct{})
	healthy := make(chan struct{}, 100)
	r := newReceiver(t, func(_ int, w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/well" {
			healthy <- struct{}{}
			return
		}
		mu.Lock()
		requests++
		running++
		most = max(most, running)
		first := requests == 1
		mu.Unlock()
		if first {
			w.WriteHeader(500)
		} else {
			<-release
		}
		mu.Lock()
		running--
		mu.Unlock()
	})
	failing, _ := subscribe(t, h, r.URL+"/failing", "contact.*")
	contact(t, h.db, "first")
	if a := h.try(t); a.Status != 500 {
		t.Fatalf("got %+v", a)
	}
	subscribe(t, h, r.URL+"/well", "contact.created")
	const events = 60
	for i := range events {
		contact(t, h.db, fmt.Sprint(i))
	}
	for range events {
		<-healthy
		h.try(t)
	}
	mu.Lock()
	if most != 1 {
		t.Errorf("%d concurrent attempts for a failing subscription", most)
	}
	mu.Unlock()
	close(release)
	for range events {
		if a := h.try(t); a.WebhookID != failing.ID || a.Error != "" {
			t.Errorf("got %+v", a)
		}
	}
}

// TestSubscriptionStartsToFail: after the first failure, no delivery enqueued
// earlier starts while others are being attempted.
func TestSubscriptionStartsToFail(t *testing.T) {
	h := newFixture(t)
	started, fail, release := make(chan bool, 100), make(chan bool), make(chan bool)
	r := newReceiver(t, func(_ int, w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/well" {
			return
		}
		started <- true
		select {
		case <-fail:
			w.WriteHeader(500)
		case <-release:
		}
	})
	defer close(release)
	subscribe(t, h, r.URL+"/failing", "contact.created")
	for i := range 2 * attemptsPerTarget {
		contact(t, h.db, fmt.Sprint(i))
	}
	for range attemptsPerTarget {
		<-started
	}
	subscribe(t, h, r.URL+"/well", "contact.created")
	contact(t, h.db, "last")
	fail <- true
	if a := h.try(t); a.Status != 500 {
		t.Fatalf("got %+v", a)
	}
	if a := h.try(t); a.Error != "" {
		t.Fatalf("got %+v", a)
	}
	if n := len(started); n > 0 {
		t.Errorf("%d attempts too many", n)
	}
}

// TestTargetChanges: due deliveries go to the new URL of a subscription, but a
// delivery being attempted at the old URL has no concurrent second attempt.
func TestTargetChanges(t *testing.T) {
	h := newFixture(t)
	started, release := make(chan struct{}), make(chan struct{})
	former := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-release
		w.WriteHeader(500)
	})
	hook, _ := subscribe(t, h, former.URL, "contact.created")
	contact(t, h.db, "before")
	<-started
	current := newReceiver(t, nil)
	if _, err := h.subscriptions.Update(t.Context(), h.db, hook.ID, agent.WebhookChange{
		URL: agent.Some(current.URL),
	}); err != nil {
		t.Fatal(err)
	}
	contact(t, h.db, "after")
	if d := current.next(t); !strings.Contains(string(d.body), "after") {
		t.Errorf("delivered %s", d.body)
	}
	h.try(t)
	close(release)
	if a := h.try(t); a.Status != 500 {
		t.Errorf("got %+v", a)
	}
	h.pass(10 * time.Second)
	if d := current.next(t); !strings.Contains(string(d.body), "before") {
		t.Errorf("delivered %s", d.body)
	}
	h.try(t)
}
