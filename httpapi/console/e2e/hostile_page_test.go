package e2e

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

	"satchel/agent"
	"satchel/httpapi"
	"satchel/httpapi/apitest"
)

// hostilePage tries what a page of another origin can make a browser do to the
// server that its query names.
//
//go:embed testdata/hostile.html
var hostilePage string

// recordedRequest is a request of the hostile page and the status of its response.
type recordedRequest struct {
	line   string
	status int
}

// recordingServer is a server that records the requests of the hostile page.
type recordingServer struct {
	*testServer
	address string

	mu       sync.Mutex
	requests []recordedRequest
	changed  chan struct{}
}

// statusWriter keeps the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// newRecordingServer serves ts at a second address. change alters requests of
// the browser, as an identity proxy would.
func newRecordingServer(t *testing.T, ts *testServer, change func(*http.Request)) *recordingServer {
	t.Helper()
	g := &recordingServer{testServer: ts, changed: make(chan struct{}, 1)}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if change != nil {
			change(r)
		}
		kept := &statusWriter{w, http.StatusOK}
		ts.handler.ServeHTTP(kept, r)
		if r.URL.Query().Has("attempt") && r.Method != http.MethodOptions {
			g.record(recordedRequest{r.Method + " " + r.URL.String(), kept.status})
		}
	}))
	t.Cleanup(front.Close)
	g.address = front.URL
	return g
}

func (g *recordingServer) record(s recordedRequest) {
	g.mu.Lock()
	g.requests = append(g.requests, s)
	g.mu.Unlock()
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// wait waits for a request whose line contains text.
func (g *recordingServer) wait(t *testing.T, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
	defer cancel()
	for {
		g.mu.Lock()
		for _, s := range g.requests {
			if strings.Contains(s.line, text) {
				g.mu.Unlock()
				return
			}
		}
		g.mu.Unlock()
		select {
		case <-g.changed:
		case <-ctx.Done():
			t.Fatalf("no request with %s arrived", text)
		}
	}
}

// state returns everything that an attack could change.
func (g *recordingServer) state(t *testing.T, owner *testClient) string {
	t.Helper()
	var texts []string
	for _, path := range []string{
		"", "/settings", "/contacts", "/conversations", "/sources", "/workflows", "/tools", "/gateways", "/webhooks",
		"/schedules", "/admins",
	} {
		texts = append(texts, owner.send(t, "GET", "/api/agents/default"+path, "").Text)
	}
	for _, path := range []string{"/api/agents", "/api/keys"} {
		texts = append(texts, owner.send(t, "GET", path, "").Text)
	}
	return strings.Join(texts, "\n")
}

// TestHostilePage opens a hostile page in Chromium, which attacks a server with access
// control: one whose default role is the highest, and one whose identity proxy sends an
// owner's token with every request.
func TestHostilePage(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
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
		var identify func(*http.Request)
		ts := newTestServer(t, func(o *httpapi.Options) {
			o.DefaultRole = agent.RoleAdmin
			if mode.proxy {
				identify = behindProxy(t, o)
			}
		})
		ts.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada"}`)
		owner, session := ts.withKey(t, agent.RoleOwner, "*"), ts.openLoaded(t, "/").ID()
		for origin, address := range map[string]string{
			"another site": strings.Replace(evil.URL, "127.0.0.1", "localhost", 1),
			"another port": evil.URL,
		} {
			t.Run(mode.name+", "+origin, func(t *testing.T) {
				newRecordingServer(t, ts, identify).attack(t, owner, address, session)
			})
		}
	}
}

// attack opens the hostile page at an address.
func (g *recordingServer) attack(t *testing.T, owner *testClient, evil, session string) {
	query := url.Values{"target": {g.address}, "session": {session}}
	before := g.state(t, owner)
	p := g.openPage(t, 800, 600, g.site+"/")
	p.cdp("Page.navigate", map[string]any{"url": evil + "/?" + query.Encode()})
	p.waitFor(`window.attempts && window.attempts.every((a) => a.result !== undefined)`)
	for _, last := range []string{"beacon", "keepalive", "origin+null"} {
		g.wait(t, "attempt="+last)
	}
	var attempts []struct{ Name, Result string }
	if err := json.Unmarshal([]byte(p.eval(`JSON.stringify(attempts)`).(string)), &attempts); err != nil {
		t.Fatal(err)
	}
	p.eval(`void document.forms.top.submit()`)
	g.wait(t, "attempt=top-form")
	tried, held := len(attempts)+1, 1
	for _, a := range attempts {
		if strings.HasPrefix(a.Result, "through") {
			t.Errorf("%s: %s", a.Name, a.Result)
		} else {
			held++
		}
	}
	requests := g.checkAllRefused(t)
	if after := g.state(t, owner); after != before {
		t.Errorf("the page changed something:\n%s\nbefore:\n%s", after, before)
	}
	if tried < 40 {
		t.Errorf("only %d attempts were made", tried)
	}
	t.Logf("%d attempts, %d blocked; %d requests reached the server, all refused", tried, held, requests)
}

// behindProxy returns a change that adds the token of an owner of the default
// agent, as an identity proxy does for a browser's cookie.
func behindProxy(t *testing.T, o *httpapi.Options) func(*http.Request) {
	t.Helper()
	proxy := apitest.NewIdentityProxy(t)
	o.Verifier = proxy.Verifier
	if _, err := o.Folder.Default().CreateAdmin(t.Context(), agent.Admin{
		Email: "ada@example.com",
		Name:  "Someone",
		Role:  agent.RoleOwner,
	}); err != nil {
		t.Fatal(err)
	}
	token := proxy.Token(t, "ada@example.com")
	return func(r *http.Request) { r.Header.Set("Edge-Access-JWT-Assertion", token) }
}

// checkAllRefused checks that every request of the page was refused, and counts them.
func (g *recordingServer) checkAllRefused(t *testing.T) int {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.requests {
		if s.status != http.StatusForbidden && s.status != http.StatusUnauthorized {
			t.Errorf("%s was answered %d", s.line, s.status)
		}
	}
	return len(g.requests)
}
