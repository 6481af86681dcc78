package httpapi

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
)

// hostilePage tries what a page of another origin can make a browser do to the
// server that its query names.
//
//go:embed testdata/hostile.html
var hostilePage string

// seen is a request of the hostile page as the server answered it.
type seen struct {
	line   string
	status int
}

// victim is a server that notes what the hostile page's requests come to.
type victim struct {
	*theatre
	address string

	mu      sync.Mutex
	seen    []seen
	arrived chan struct{}
}

// statusWriter keeps the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// newVictim serves a theatre's service a second time. change alters requests
// that the browser sends, as an identity proxy would.
func newVictim(t *testing.T, th *theatre, change func(*http.Request)) *victim {
	t.Helper()
	g := &victim{theatre: th, arrived: make(chan struct{}, 1)}
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if change != nil {
			change(r)
		}
		kept := &statusWriter{w, http.StatusOK}
		th.server.Handler().ServeHTTP(kept, r)
		if r.URL.Query().Has("attempt") && r.Method != http.MethodOptions {
			g.note(seen{r.Method + " " + r.URL.String(), kept.status})
		}
	}))
	t.Cleanup(ts.Close)
	g.address = ts.URL
	return g
}

func (g *victim) note(s seen) {
	g.mu.Lock()
	g.seen = append(g.seen, s)
	g.mu.Unlock()
	select {
	case g.arrived <- struct{}{}:
	default:
	}
}

// wait waits for a request whose line contains text.
func (g *victim) wait(t *testing.T, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		g.mu.Lock()
		for _, s := range g.seen {
			if strings.Contains(s.line, text) {
				g.mu.Unlock()
				return
			}
		}
		g.mu.Unlock()
		select {
		case <-g.arrived:
		case <-ctx.Done():
			t.Fatalf("no request with %s came", text)
		}
	}
}

// state is all that an attack could change.
func (g *victim) state(t *testing.T, owner *visitor) string {
	t.Helper()
	var texts []string
	for _, path := range []string{"", "/settings", "/contacts", "/conversations", "/sources", "/workflows", "/tools", "/gateways", "/webhooks", "/schedules", "/admins"} {
		texts = append(texts, owner.send(t, "GET", "/api/agents/default"+path, "").text)
	}
	for _, path := range []string{"/api/agents", "/api/keys"} {
		texts = append(texts, owner.send(t, "GET", path, "").text)
	}
	return strings.Join(texts, "\n")
}

// TestHostilePage opens a hostile page in Chromium beside a server under access
// control, where strangers have the strongest role that they can have on the
// default agent, and where the identity proxy names an owner for every request.
func TestHostilePage(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Query().Has("target") {
			fmt.Fprint(w, hostilePage)
		}
	}))
	t.Cleanup(evil.Close)
	for _, mode := range []struct {
		name  string
		proxy bool
	}{{"an API key was made", false}, {"EDGE_ACCESS_AUD", true}} {
		for origin, address := range map[string]string{
			"another site": strings.Replace(evil.URL, "127.0.0.1", "localhost", 1), "another port": evil.URL,
		} {
			t.Run(mode.name+", "+origin, func(t *testing.T) { attackedBy(t, address, mode.proxy) })
		}
	}
}

func attackedBy(t *testing.T, evil string, proxy bool) {
	th := newTheatre(t)
	th.server.options.DefaultRole = agent.RoleAdmin
	th.server.policy = th.server.options.policy()
	th.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada"}`)
	owner := th.withKey(t, agent.RoleOwner, "*")
	var identify func(*http.Request)
	if proxy {
		identify = behindProxy(t, th)
	}
	g := newVictim(t, th, identify)
	query := url.Values{"target": {g.address}, "session": {th.onStage(t, "/").ID()}}
	before := g.state(t, owner)
	e := th.look(t, 800, 600, th.site+"/")
	e.ask("Page.navigate", map[string]any{"url": evil + "/?" + query.Encode()})
	e.until(`window.attempts && window.attempts.every((a) => a.result !== undefined)`)
	for _, last := range []string{"beacon", "keepalive", "origin+null"} {
		g.wait(t, "attempt="+last)
	}
	var attempts []struct{ Name, Result string }
	if err := json.Unmarshal([]byte(e.value(`JSON.stringify(attempts)`).(string)), &attempts); err != nil {
		t.Fatal(err)
	}
	e.value(`void document.forms.top.submit()`)
	g.wait(t, "attempt=top-form")
	tried, held := len(attempts)+1, 1
	for _, a := range attempts {
		if strings.HasPrefix(a.Result, "through") {
			t.Errorf("%s: %s", a.Name, a.Result)
		} else {
			held++
		}
	}
	g.refusedAll(t)
	if after := g.state(t, owner); after != before {
		t.Errorf("the page changed something:\n%s\nbefore:\n%s", after, before)
	}
	if tried < 40 {
		t.Errorf("only %d attempts were made", tried)
	}
	t.Logf("%d attempts tried, %d held; %d requests reached the server, each was refused", tried, held, len(g.seen))
}

// behindProxy lets an identity proxy give every request the token of an owner
// of the default agent, as a browser's cookie would have it do.
func behindProxy(t *testing.T, th *theatre) func(*http.Request) {
	t.Helper()
	proxy := newIdentityProxy(t)
	th.server.options.Verifier = proxy.verifier
	th.server.policy = th.server.options.policy()
	if _, err := th.folder.Default().CreateAdmin(t.Context(), agent.Admin{Email: "ada@example.com", Role: agent.RoleOwner}); err != nil {
		t.Fatal(err)
	}
	token := proxy.token(t, "ada@example.com")
	return func(r *http.Request) { r.Header.Set("Edge-Access-JWT-Assertion", token) }
}

// refusedAll checks that no request of the page was answered with anything but
// a refusal.
func (g *victim) refusedAll(t *testing.T) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.seen {
		if s.status != http.StatusForbidden && s.status != http.StatusUnauthorized {
			t.Errorf("%s was answered %d", s.line, s.status)
		}
	}
}
