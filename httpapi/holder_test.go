package httpapi

import (
	"bytes"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/browser"
	"satchel/browser/live"
	"satchel/httpapi/apitest"
	"satchel/httpapi/rest"
)

// guardedServer is a service with a browser behind an identity proxy, and a session at
// the shop. The owner of its agent is a person.
type guardedServer struct {
	*testServer
	proxy   *apitest.IdentityProxy
	owner   *testClient
	session *browser.Session
	typed   string // into the page's field
}

const ownerEmail = "owner@example.com"

func newGuardedServer(t *testing.T, defaultRole agent.Role) *guardedServer {
	t.Helper()
	proxy := newIdentityProxy(t)
	server := New(Options{
		Parts:       sharedServer(t).options.Parts,
		Verifier:    proxy.Verifier,
		DefaultRole: defaultRole,
		PublicURL:   "http://localhost",
		Log:         slog.New(slog.DiscardHandler),
	})
	client := newSharedClient(t, server)
	t.Cleanup(server.Stop)
	g := &guardedServer{
		testServer: &testServer{testClient: client, server: server, site: apitest.NewSite(t)},
		proxy:      proxy,
	}
	g.addAdmin(t, ownerEmail, agent.RoleOwner)
	g.owner = g.as(t, ownerEmail)
	g.session = g.openLoaded(t, "/")
	ws := g.mustDial(t, g.path("cast"), g.owner.header)
	ws.send(
		`{"type":"mouseEvent","event":"mousePressed","x":100,"y":100}`,
		`{"type":"mouseEvent","event":"mouseReleased","x":100,"y":100}`,
	)
	g.wantOnly(t) // the field has the focus
	return g
}

func (g *guardedServer) as(t *testing.T, email string) *testClient {
	t.Helper()
	return g.with("Edge-Access-JWT-Assertion", g.proxy.Token(t, email))
}

func (g *guardedServer) addAdmin(t *testing.T, email string, role agent.Role) (id string) {
	t.Helper()
	made, err := g.db().CreateAdmin(t.Context(), agent.Admin{Email: email, Role: role})
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// key creates a key, which may expire, and returns its id and a client that uses it.
func (g *guardedServer) key(t *testing.T, expires agent.Time) (id string, c *testClient) {
	t.Helper()
	k, secret, err := g.folder.CreateKey(t.Context(), agent.Key{
		Name:      "k",
		Role:      agent.RoleAdmin,
		Agents:    []string{g.db().ID()},
		ExpiresAt: expires,
	})
	if err != nil {
		t.Fatal(err)
	}
	return k.ID, g.with("X-API-Key", secret)
}

func (g *guardedServer) path(stream string) string {
	return "/v1/sessions/" + g.session.ID() + "/" + stream
}

// viewToken returns the token of a live view's link that a client makes.
func (g *guardedServer) viewToken(t *testing.T, c *testClient) string {
	t.Helper()
	made := c.must(t, 200, "GET", "/api/agents/default/browser/"+g.session.ID()+"/live-view", "")
	return tokenOf(t, made["url"].(string))
}

func (g *guardedServer) setStatus(t *testing.T, status string) {
	t.Helper()
	g.owner.must(t, 200, "PUT", "/api/agents/default", `{"status":"`+status+`"}`)
}

const (
	typeX = `{"type":"keyEvent","event":"keyDown","key":"x"}`
	typeY = `{"type":"keyEvent","event":"keyDown","key":"y"}`
)

// wantOnly types y as the owner and checks that this is all that was typed since.
func (g *guardedServer) wantOnly(t *testing.T) {
	t.Helper()
	ws := g.mustDial(t, g.path("cast"), g.owner.header)
	ws.send(typeY)
	g.typed += "y"
	waitTitle(t, g.session, "name:"+g.typed)
	_ = ws.conn.CloseNow()
}

func (g *guardedServer) mustDial(t *testing.T, path string, header http.Header) *wsClient {
	t.Helper()
	ws, status := g.dial(t, path, header)
	if ws == nil {
		t.Fatalf("%s: %d", path, status)
	}
	return ws
}

// access is a way to use the session, and how it ends.
type access struct {
	name   string
	header http.Header
	token  string
	end    func()
	again  int    // the status of a new socket afterwards
	undo   func() // nil if there is nothing to undo
}

func (a *access) path(g *guardedServer, stream string) string {
	if a.token == "" {
		return g.path(stream)
	}
	return g.path(stream) + "?token=" + a.token
}

// accesses returns ways to use the session that end at once when this server is asked to.
func (g *guardedServer) accesses(t *testing.T) []access {
	t.Helper()
	key := func(link bool) access {
		id, c := g.key(t, agent.Time{})
		a := access{name: "a revoked key", header: c.header, again: http.StatusUnauthorized}
		if link {
			a = access{name: "the link of a revoked key", token: g.viewToken(t, c), again: http.StatusUnauthorized}
		}
		a.end = func() {
			if err := g.folder.DeleteKey(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		return a
	}
	admin := func(email string, link bool) access {
		id, c := g.addAdmin(t, email, agent.RoleAdmin), g.as(t, email)
		a := access{name: "a removed admin", header: c.header, again: http.StatusForbidden}
		if link {
			a = access{name: "the link of a removed admin", token: g.viewToken(t, c), again: http.StatusForbidden}
		}
		a.end = func() { g.owner.must(t, 204, "DELETE", "/api/agents/default/admins/"+id, "") }
		return a
	}
	disabled := func(name string, header http.Header, token string) access {
		return access{
			name + " on a disabled agent",
			header,
			token,
			func() { g.setStatus(t, "disabled") },
			http.StatusForbidden,
			func() { g.setStatus(t, "active") },
		}
	}
	all := []access{key(false), key(true), admin("ada@example.com", false), admin("bob@example.com", true),
		disabled("an admin", g.owner.header, ""), disabled("a link", nil, g.viewToken(t, g.owner))}
	takeover := g.owner.must(t, 201, "POST", "/api/agents/default/browser/"+g.session.ID()+"/takeover", `{}`)
	return append(all, disabled("a takeover", nil, tokenOf(t, takeover["takeover_url"].(string))))
}

// TestInputNeedsAccess ends the access of a client that is typing: the next key that it
// presses has no effect, and its socket is closed.
func TestInputNeedsAccess(t *testing.T) {
	g := newGuardedServer(t, agent.RoleNone)
	g.server.guardEvery = time.Hour // only the input is checked
	for _, a := range g.accesses(t) {
		ws := g.mustDial(t, a.path(g, "cast"), a.header)
		ws.send(typeX)
		g.typed += "x"
		waitTitle(t, g.session, "name:"+g.typed)
		a.end()
		ws.send(typeX)
		if code := ws.closeStatus(); code != websocket.StatusPolicyViolation {
			t.Errorf("%s: closed with %d", a.name, code)
		}
		if _, status := g.dial(t, a.path(g, "cast"), a.header); status != a.again {
			t.Errorf("%s: a new socket gets %d, want %d", a.name, status, a.again)
		}
		if a.token != "" {
			if page := g.send(
				t,
				"GET",
				"/live/"+g.session.ID()+"/state?token="+a.token,
				"",
			); page.StatusCode != a.again {
				t.Errorf("%s: its page gets %d, want %d", a.name, page.StatusCode, a.again)
			}
		}
		if a.undo != nil {
			a.undo()
		}
		if !strings.HasPrefix(a.name, "a takeover") {
			g.wantOnly(t)
		}
	}
	waitTitle(t, g.session, "name:"+g.typed)
}

// TestIdleSocketsEnd ends the access of clients that only watch.
func TestIdleSocketsEnd(t *testing.T) {
	g := newGuardedServer(t, agent.RoleNone)
	if g.server.guardEvery > 2*time.Second {
		t.Errorf("checked every %s", g.server.guardEvery)
	}
	g.server.guardEvery = 20 * time.Millisecond
	for _, a := range g.accesses(t) {
		var open []*wsClient
		for _, stream := range []string{"cast", "logs", "pageId", "recording"} {
			open = append(open, g.mustDial(t, a.path(g, stream), a.header))
		}
		a.end()
		for i, ws := range open {
			if code := ws.closeStatus(); code != websocket.StatusPolicyViolation {
				t.Errorf("%s: socket %d is closed with %d", a.name, i, code)
			}
		}
		if a.undo != nil {
			a.undo()
		}
	}
}

// TestAccessExpires connects with a key, a token and links that expire meanwhile.
func TestAccessExpires(t *testing.T) {
	g := newGuardedServer(t, agent.RoleNone)
	g.server.guardEvery = 20 * time.Millisecond
	soon := agent.Now().Add(8 * time.Second) // a busy machine takes seconds for the first sockets
	_, keyed := g.key(t, agent.At(soon))
	// clocks may differ by a minute
	tokened := g.with("Edge-Access-JWT-Assertion", g.proxy.TokenUntil(t, ownerEmail, soon.Add(-time.Minute)))
	own := live.Grant{
		SessionID: g.session.ID(),
		Control:   true,
		Maker:     g.server.policy.MakerOf(agent.Identity{Email: ownerEmail}),
	}
	for _, a := range []access{
		{name: "a key", header: keyed.header},
		{name: "a token", header: tokened.header},
		{name: "the link of a key", token: g.viewToken(t, keyed)},
		{name: "the link of a token", token: g.viewToken(t, tokened)},
		{name: "a link", token: tokenOf(t, g.server.options.Live.Link(own, soon).URL)},
	} {
		ws, status := g.dial(t, a.path(g, "logs"), a.header)
		if ws == nil {
			t.Fatalf("%s: %d", a.name, status)
		}
		defer func() {
			if code := ws.closeStatus(); code != websocket.StatusPolicyViolation {
				t.Errorf("%s: closed with %d", a.name, code)
			}
			if _, status := g.dial(t, a.path(g, "logs"), a.header); status != http.StatusUnauthorized {
				t.Errorf("%s: a new socket gets %d", a.name, status)
			}
		}()
	}
	for _, c := range []*testClient{keyed, tokened} {
		s := openEvents(t, c, streamPath, "")
		s.until(named("hello"))
		defer func() {
			if _, err := io.Copy(io.Discard, s.resp.Body); err != nil {
				t.Error(err)
			}
		}()
	}
}

// TestDemotedAdmin demotes an admin to viewer: sockets stay open, but input has no effect
// any more, and clients of the DevTools protocol are disconnected.
func TestDemotedAdmin(t *testing.T) {
	g := newGuardedServer(t, agent.RoleNone)
	g.server.guardEvery = 20 * time.Millisecond
	id := g.addAdmin(t, "ada@example.com", agent.RoleAdmin)
	ada := g.as(t, "ada@example.com")
	var open []*wsClient
	for _, a := range []access{{header: ada.header}, {token: g.viewToken(t, ada)}} {
		ws := g.mustDial(t, a.path(g, "cast"), a.header)
		ws.send(typeX)
		g.typed += "x"
		waitTitle(t, g.session, "name:"+g.typed)
		open = append(open, ws)
	}
	shared := ada.must(t, 201, "POST", "/api/agents/default/browser", `{"cdp":true}`)
	client := g.mustDial(t, strings.TrimPrefix(shared["cdp_url"].(string), "ws://localhost"), nil)
	g.owner.must(t, 200, "PUT", "/api/agents/default/admins/"+id, `{"role":"viewer"}`)
	if code := client.closeStatus(); code != websocket.StatusPolicyViolation {
		t.Errorf("the client of the DevTools protocol: closed with %d", code)
	}
	for _, ws := range open {
		ws.send(typeX, `{"type":"newTab"}`)
	}
	g.wantOnly(t)
	g.owner.must(
		t,
		200,
		"POST",
		"/api/agents/default/browser/"+g.session.ID()+"/execute",
		`{"action":"evaluate","script":"console.log('still here')"}`,
	)
	logs := g.mustDial(t, g.path("logs"), ada.header)
	logs.receive("the console", func(_ map[string]any, raw []byte) bool {
		return strings.Contains(string(raw), "still here")
	})
	for _, ws := range open {
		ws.receive("a frame", isFrame)
	}
	if n := len(g.session.Pages()); n != 1 {
		t.Errorf("a viewer opened a tab: %d", n)
	}
	if state := g.send(
		t,
		"GET",
		"/live/"+g.session.ID()+"/state?token="+g.viewToken(t, ada),
		"",
	); state.json["control"] != false {
		t.Errorf("the page says %s", state.text)
	}
}

// TestCDPNeedsAccess ends the access of clients of the DevTools protocol.
func TestCDPNeedsAccess(t *testing.T) {
	g := newGuardedServer(t, agent.RoleNone)
	g.server.guardEvery = time.Hour // only the input is checked
	keyID, keyed := g.key(t, agent.Time{})
	adminID := g.addAdmin(t, "ada@example.com", agent.RoleAdmin)
	ada := g.as(t, "ada@example.com")
	disable, activate := func() { g.setStatus(t, "disabled") }, func() { g.setStatus(t, "active") }
	for _, tc := range []struct {
		name      string
		client    *testClient
		direct    bool // with the client's credentials; otherwise by the address that it gets
		end, undo func()
		again     int
	}{
		{"a key's address", keyed, false, func() {
			if err := g.folder.DeleteKey(t.Context(), keyID); err != nil {
				t.Fatal(err)
			}
		}, nil, 401},
		{
			"an admin's address",
			ada,
			false,
			func() { g.owner.must(t, 204, "DELETE", "/api/agents/default/admins/"+adminID, "") },
			nil,
			403,
		},
		{"the owner's address", g.owner, false, disable, activate, 403},
		{"the owner", g.owner, true, disable, activate, 403},
	} {
		id := g.owner.must(t, 201, "POST", "/api/agents/default/browser", `{"cdp":true}`)["id"].(string)
		path, header := "/v1/sessions/"+id+"/cdp", tc.client.header
		if !tc.direct {
			shown := tc.client.must(t, 200, "GET", "/api/agents/default/browser/"+id, "")
			path, header = strings.TrimPrefix(shown["cdp_url"].(string), "ws://localhost"), nil
		}
		ws := g.mustDial(t, path, header)
		ws.send(`{"id":1,"method":"Target.getTargets"}`)
		ws.receive("targets", func(m map[string]any, _ []byte) bool { return m["id"] == 1.0 })
		tc.end()
		ws.send(`{"id":2,"method":"Target.getTargets"}`)
		for {
			_, raw, err := ws.conn.Read(t.Context())
			if err == nil && strings.Contains(string(raw), `"id":2`) {
				t.Errorf("%s: %s", tc.name, raw)
			}
			if err != nil {
				if code := websocket.CloseStatus(err); code != websocket.StatusPolicyViolation {
					t.Errorf("%s: closed with %d", tc.name, code)
				}
				break
			}
		}
		if _, status := g.dial(t, path, header); status != tc.again {
			t.Errorf("%s: a new socket gets %d, want %d", tc.name, status, tc.again)
		}
		if tc.undo != nil {
			tc.undo()
		}
		g.owner.must(t, 200, "DELETE", "/api/agents/default/browser?id="+id, "")
	}
}

// TestTakeoverSocketsEnd ends takeovers in each way while a person is connected.
func TestTakeoverSocketsEnd(t *testing.T) {
	g := newGuardedServer(t, agent.RoleNone)
	g.server.guardEvery = time.Hour
	at := "/api/agents/default/browser/" + g.session.ID()
	for name, end := range map[string]func(id string){
		"completed": func(id string) { g.owner.must(t, 200, "POST", at+"/takeover/"+id+"/complete", "") },
		"cancelled": func(id string) { g.owner.must(t, 204, "DELETE", at+"/takeover/"+id, "") },
		"expired":   func(string) {},
	} {
		options := `{"timeout":60}`
		if name == "expired" {
			options = `{"timeout":1}`
		}
		made := g.owner.must(t, 201, "POST", at+"/takeover", options)
		token := tokenOf(t, made["takeover_url"].(string))
		ws := g.mustDial(t, g.path("cast")+"?token="+token, nil)
		end(made["takeover_id"].(string))
		if code := ws.closeStatus(); code != websocket.StatusNormalClosure {
			t.Errorf("%s: closed with %d", name, code)
		}
		if _, status := g.dial(t, g.path("cast")+"?token="+token, nil); status != http.StatusConflict {
			t.Errorf("%s: a new socket gets %d", name, status)
		}
	}
	ws := g.mustDial(t, g.path("cast"), g.owner.header)
	g.owner.must(t, 200, "DELETE", "/api/agents/default/browser?id="+g.session.ID(), "")
	if code := ws.closeStatus(); code != websocket.StatusNormalClosure {
		t.Errorf("the session's end: closed with %d", code)
	}
}

// TestSocketsOfDeletedAgents deletes an agent whose session is being watched.
func TestSocketsOfDeletedAgents(t *testing.T) {
	g := newGuardedServer(t, agent.RoleNone)
	g.server.guardEvery = 20 * time.Millisecond
	g.owner.must(t, 201, "POST", "/api/agents", `{"name":"short"}`)
	made := g.owner.must(t, 201, "POST", "/api/agents/short/browser", `{}`)
	path := "/v1/sessions/" + made["id"].(string) + "/logs"
	open := []*wsClient{
		g.mustDial(t, path, g.owner.header),
		g.mustDial(t, path+"?token="+tokenOf(t, made["live_view_url"].(string)), nil),
	}
	g.owner.must(t, 200, "DELETE", "/api/agents/short", "")
	for _, ws := range open {
		if code := ws.closeStatus(); code != websocket.StatusPolicyViolation && code != websocket.StatusNormalClosure {
			t.Errorf("closed with %d", code)
		}
	}
}

// TestSocketsWhenAccessIsClosed makes the first key of an open server: whoever watched
// without an identity has lost access.
func TestSocketsWhenAccessIsClosed(t *testing.T) {
	ts := newOwnServer(t)
	ts.server.guardEvery = 20 * time.Millisecond
	s := ts.openLoaded(t, "/")
	path := "/v1/sessions/" + s.ID() + "/logs"
	open := map[string]*wsClient{}
	for name, query := range map[string]string{
		"without an identity": "",
		"with a link":         "?token=" + tokenOf(t, ts.link(s.ID())),
	} {
		if open[name], _ = ts.dial(t, path+query, nil); open[name] == nil {
			t.Fatal(name)
		}
	}
	ts.must(t, 201, "POST", "/api/keys", `{"name":"k","role":"admin","agents":["*"]}`)
	for name, ws := range open {
		if code := ws.closeStatus(); code != websocket.StatusPolicyViolation {
			t.Errorf("%s: closed with %d", name, code)
		}
	}
}

// TestHolderFollowsDefaultRole checks that a client without an identity loses access with
// the default role.
func TestHolderFollowsDefaultRole(t *testing.T) {
	c, server := openWith(t, func(o *Options) { o.DefaultRole = agent.RoleViewer })
	if _, _, err := c.folder.CreateKey(t.Context(), agent.Key{
		Name:   "k",
		Role:   agent.RoleAdmin,
		Agents: []string{"default"},
	}); err != nil {
		t.Fatal(err)
	}
	h := holder{policy: server.policy, db: c.db()}
	if role, err := h.role(); role != agent.RoleViewer || err != nil {
		t.Errorf("by default: %q, %v", role, err)
	}
	closed := server.options
	closed.DefaultRole = agent.RoleNone
	h.policy = closed.policy()
	if role, err := h.role(); role != agent.RoleNone || agent.ErrorCode(err) != agent.CodeForbidden {
		t.Errorf("with no default role: %q, %v", role, err)
	}
}

// TestIdleStreamsEnd revokes the key of clients whose event streams have nothing to send.
func TestIdleStreamsEnd(t *testing.T) {
	c, server := openWith(t, func(o *Options) { o.DefaultRole = agent.RoleNone })
	server.guardEvery = 20 * time.Millisecond
	k, secret, err := c.folder.CreateKey(t.Context(), agent.Key{
		Name:   "k",
		Role:   agent.RoleAdmin,
		Agents: []string{"default"},
	})
	if err != nil {
		t.Fatal(err)
	}
	keyed := c.with("X-API-Key", secret)
	changes := openEvents(t, keyed, streamPath, "")
	changes.until(named("hello"))
	if err := c.folder.DeleteKey(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, changes.resp.Body); err != nil {
		t.Error(err)
	}
}

// TestWaitingRequestsEnd revokes the key of a client that waits for the end of an
// execution: it does not learn how that ended.
func TestWaitingRequestsEnd(t *testing.T) {
	_, server := openService(t)
	server.guardEvery = 20 * time.Millisecond
	ts := httptest.NewServer(server.Handler())
	t.Cleanup(ts.Close)
	c := &testClient{url: ts.URL, folder: server.folder, header: http.Header{}}
	arrived, over := make(chan struct{}), make(chan struct{})
	stalled := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-over
	}))
	t.Cleanup(stalled.Close)
	t.Cleanup(func() { close(over) })
	k, secret, err := c.folder.CreateKey(t.Context(), agent.Key{
		Name:   "k",
		Role:   agent.RoleAdmin,
		Agents: []string{"default"},
	})
	if err != nil {
		t.Fatal(err)
	}
	keyed := c.with("X-API-Key", secret)
	workflow := createFlow(
		t,
		keyed,
		`[{"id":"t","type":"trigger"},{"id":"h","type":"http-request","data":{"url":"`+stalled.URL+`"}}]`,
		`[{"source":"t","target":"h"}]`,
		"",
	)
	answers := make(chan answer, 1)
	go func() {
		answers <- keyed.send(
			t,
			"POST",
			"/api/agents/default/workflows/execute?wait=300",
			`{"workflow_id":"`+workflow+`"}`,
		)
	}()
	<-arrived
	if err := c.folder.DeleteKey(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	if a := <-answers; a.StatusCode != http.StatusUnauthorized || strings.Contains(a.text, "execution") {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
}

// TestWidgetStreamsEnd deletes the widget of a visitor whose stream has nothing to send.
func TestWidgetStreamsEnd(t *testing.T) {
	_, server := openService(t)
	server.guardEvery = 20 * time.Millisecond
	ts := httptest.NewServer(server.Handler())
	t.Cleanup(ts.Close)
	c := &testClient{url: ts.URL, folder: server.folder, header: http.Header{}}
	id, path, _ := c.createWidget(t, shopWidget)
	s := openEvents(t, c.asVisitor(t, path), path+"/stream", "")
	s.until(named("state"))
	c.must(t, 204, "DELETE", "/api/agents/default/gateways/"+id, "")
	for {
		if _, ok := s.next(); !ok {
			return
		}
	}
}

// TestStreamsHaveGuards keeps sockets and event streams without a guard out of the
// program.
func TestStreamsHaveGuards(t *testing.T) {
	allowed := map[string]string{
		"websocket.Accept(":  "httpapi/sockets.go httpapi/event_socket.go", // which guard it
		".Hijack()":          "httpapi/forwarder.go",                       // the server that has the agent guards it
		`"text/event-stream`: "httpapi/rest/sse.go httpapi/forwarder.go",
	}
	err := fs.WalkDir(os.DirFS(".."), "httpapi", func(name string, _ fs.DirEntry, err error) error {
		if err != nil ||
			!strings.HasSuffix(name, ".go") ||
			strings.HasSuffix(name, "_test.go") ||
			strings.HasPrefix(name, "httpapi/apitest/") {
			return err
		}
		text, err := os.ReadFile("../" + name)
		for use, files := range allowed {
			if bytes.Contains(text, []byte(use)) && !slices.Contains(strings.Fields(files), name) {
				t.Errorf("%s uses %s: does its client have a guard?", name, use)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, server := openWith(t, func(*Options) {})
	for _, r := range server.table {
		if r.Streams() && !r.Guarded() {
			t.Errorf("%s %s streams to clients that a guard cannot check", r.Method, r.Path)
		}
	}
	recorder := httptest.NewRecorder()
	c := &rest.Call{
		Context: t.Context(),
		HTTP:    echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), recorder),
	}
	if err := rest.NewEventWriter(c).Event("x", "y"); err == nil || recorder.Body.Len() > 0 {
		t.Errorf("without a guard: %v, %q", err, recorder.Body)
	}
}

// BenchmarkHolder measures the check before each message of a client.
func BenchmarkHolder(b *testing.B) {
	folder, server := openService(b)
	_, secret, err := folder.CreateKey(b.Context(), agent.Key{
		Name:   "k",
		Role:   agent.RoleAdmin,
		Agents: []string{"default"},
	})
	if err != nil {
		b.Fatal(err)
	}
	key := folder.Key(agent.HashKey(secret))
	h := holder{policy: server.policy, db: folder.Default(), caller: agent.Identity{Key: key}}
	for b.Loop() {
		if _, err := h.role(); err != nil {
			b.Fatal(err)
		}
	}
}
