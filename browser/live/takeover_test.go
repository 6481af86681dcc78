package live

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

func ptr[T any](v T) *T { return &v }

func grantOf(t *testing.T, l *Live, address string) Grant {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	g, err := l.Grant(u.Query().Get("token"))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestTakeover(t *testing.T) {
	ts := newTestServer(t, pages)
	s := ts.openSession(t, "/")
	v := ts.newViewer(t, s, Watch{Status: true})
	v.waitFor(t, "the state", func(m viewerMessage) bool {
		return m.Type == "status" && m.Status == agent.SessionActive && m.Takeover == nil
	})
	made, err := ts.live.RequestTakeover(t.Context(), s, agent.TakeoverOptions{Reason: "captcha"})
	if err != nil {
		t.Fatal(err)
	}
	if made.Status != agent.TakeoverPending || made.ExpiresAt.Sub(made.CreatedAt.Time) != 300*time.Second {
		t.Errorf("got %+v", made)
	}
	if g := grantOf(t, ts.live, made.TakeoverURL); g.Takeover != made.ID || !g.Control || g.SessionID != s.ID() {
		t.Errorf("got %+v", g)
	}
	if s.Status() != agent.SessionActive {
		t.Error("scripted actions are rejected before the takeover started")
	}
	if _, err := ts.live.RequestTakeover(
		t.Context(),
		s,
		agent.TakeoverOptions{},
	); agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("a second takeover: %v", err)
	}
	v.waitFor(t, "the request", func(m viewerMessage) bool {
		return m.Takeover != nil && m.Takeover.Status == agent.TakeoverPending && m.Takeover.Reason == "captcha"
	})
	for range 2 { // reloading the page starts it twice
		if active, err := ts.live.MoveTakeover(t.Context(), s, made.ID, agent.TakeoverActive); err != nil ||
			active.Status != agent.TakeoverActive ||
			active.StartedAt.IsZero() {
			t.Errorf("got %+v, %v", active, err)
		}
	}
	v.waitFor(t, "control", func(m viewerMessage) bool {
		return m.Status == agent.SessionTakeover && m.Takeover.Status == agent.TakeoverActive
	})
	done, err := ts.live.MoveTakeover(t.Context(), s, made.ID, agent.TakeoverCompleted)
	if err != nil || done.Status != agent.TakeoverCompleted || done.EndedAt.IsZero() || done.TakeoverURL != "" {
		t.Errorf("got %+v, %v", done, err)
	}
	v.waitFor(t, "the end", func(m viewerMessage) bool { return m.Status == agent.SessionActive && m.Takeover == nil })
	if _, err := ts.live.MoveTakeover(
		t.Context(),
		s,
		made.ID,
		agent.TakeoverCancelled,
	); agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("an ended takeover is ended again: %v", err)
	}
	if _, err := ts.live.MoveTakeover(
		t.Context(),
		s,
		"takeover-none",
		agent.TakeoverCancelled,
	); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("an unknown takeover: %v", err)
	}

	short, err := ts.live.RequestTakeover(t.Context(), s, agent.TakeoverOptions{Timeout: ptr(1)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ts.live.MoveTakeover(t.Context(), s, short.ID, agent.TakeoverActive); err != nil {
		t.Fatal(err)
	}
	v.waitFor(t, "its start", func(m viewerMessage) bool { return m.Status == agent.SessionTakeover })
	v.waitFor(t, "its expiry", func(m viewerMessage) bool {
		return m.Status == agent.SessionActive && m.Takeover == nil
	})
	if got, err := ts.live.Takeover(t.Context(), s, short.ID); err != nil || got.Status != agent.TakeoverExpired {
		t.Errorf("got %+v, %v", got, err)
	}

	pending, err := ts.live.RequestTakeover(t.Context(), s, agent.TakeoverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ts.db.EndLostSessions(t.Context(), func(string) bool { return false }, "killed"); err != nil {
		t.Fatal(err)
	}
	if got, err := ts.db.Takeover(t.Context(), s.ID(), pending.ID); err != nil ||
		got.Status != agent.TakeoverCancelled ||
		got.EndedAt.IsZero() {
		t.Errorf("after a kill: %+v, %v", got, err)
	}
	wantEvents(t, ts.db, made, "requested", "completed", "requested", "expired", "requested")
}

// wantEvents compares the outbox's events about takeovers. The first one has a reference
// to the takeover's link, which can be filled in.
func wantEvents(t *testing.T, db *store.DB, made agent.Takeover, want ...string) {
	t.Helper()
	events, err := db.Events(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		if kind, ok := strings.CutPrefix(e.Type, "browser.takeover."); ok {
			var data struct{ Takeover agent.Takeover }
			if err := json.Unmarshal(e.Data, &data); err != nil || data.Takeover.ID == "" {
				t.Errorf("%s: %s", e.Type, e.Data)
			}
			if reference := data.Takeover.TakeoverURL; len(got) == 0 {
				if filled, err := db.FillLinks(t.Context(), reference); err != nil ||
					reference != "satchel-link:"+made.ID ||
					filled != made.TakeoverURL {
					t.Errorf("the request has the URL %q, filled %q, %v", reference, filled, err)
				}
			}
			got = append(got, kind)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("events %v, want %v", got, want)
	}
}

func TestTakeoverOptions(t *testing.T) {
	for _, seconds := range []int{0, -1, 3601} {
		if err := (&agent.TakeoverOptions{Timeout: &seconds}).Validate(); agent.ErrorCode(err) != agent.CodeValidation {
			t.Errorf("%d seconds: %v", seconds, err)
		}
	}
	for _, seconds := range []int{1, 3600} {
		if err := (&agent.TakeoverOptions{Timeout: &seconds}).Validate(); err != nil {
			t.Errorf("%d seconds: %v", seconds, err)
		}
	}
}

func TestLinks(t *testing.T) {
	l, other := New(Options{PublicURL: "http://satchel.test"}), New(Options{})
	watch, until := Grant{SessionID: "session-1", Maker: "open"}, time.Now().Add(LinkLife)
	link := l.Link(watch, until)
	token := strings.SplitN(link.URL, "token=", 2)[1]
	if g := grantOf(t, l, link.URL); g.SessionID != "session-1" || g.Control || g.Takeover != "" || g.Maker != "open" {
		t.Errorf("got %+v", g)
	}
	if link.ExpiresAt.Unix() != until.Unix() {
		t.Errorf("expires at %s", link.ExpiresAt)
	}
	if again := l.Link(watch, until); again.URL == link.URL {
		t.Error("two links are the same")
	}
	payload, signature, _ := strings.Cut(token, ".")
	expired := l.Link(Grant{SessionID: "session-1"}, time.Now().Add(-time.Second)).URL
	for name, invalid := range map[string]string{
		"empty":             "",
		"no signature":      payload,
		"empty signature":   payload + ".",
		"another payload":   payload + "AA." + signature,
		"another signature": payload + "." + signature[:len(signature)-2] + "AA",
		"not base64":        "!." + signature,
		"long":              strings.Repeat("a", 2000) + "." + signature,
		"expired":           strings.SplitN(expired, "token=", 2)[1],
	} {
		if _, err := l.Grant(invalid); agent.ErrorCode(err) != agent.CodeUnauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := other.Grant(token); agent.ErrorCode(err) != agent.CodeUnauthorized {
		t.Errorf("another server's token: %v", err)
	}
}
