package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/httpapi/apitest"
	"satchel/store/cluster"
)

// fakeNode is a server of a fake cluster.
type fakeNode struct {
	*testClient
	*apitest.Node
	server *Server
}

// newCluster starts two servers with a folder each. The second one owns all agents.
func newCluster(t *testing.T) (first, second *fakeNode) {
	t.Helper()
	var nodes []*fakeNode
	inParallel(t)
	one, two := apitest.NewCluster(t, func(parts apitest.Parts) string {
		server := newService(parts)
		ts := httptest.NewServer(server.Handler())
		t.Cleanup(func() {
			server.Stop()
			ts.Close()
		})
		nodes = append(nodes, &fakeNode{
			testClient: &testClient{url: ts.URL, folder: server.folder, header: http.Header{}},
			server:     server,
		})
		return ts.URL
	})
	nodes[0].Node, nodes[1].Node = one, two
	return nodes[0], nodes[1]
}

// Each server answers for every agent, by id or name, and for agents that do not exist,
// and lists all agents.
func TestAnyServerAnswers(t *testing.T) {
	first, second := newCluster(t)
	far, near := second.Own(t, "far"), first.Own(t, "near")
	for _, n := range []*fakeNode{first, second} {
		for _, ref := range []string{far.ID(), "far", near.ID(), "near", agent.DefaultID} {
			if got := n.must(t, 200, "GET", "/api/agents/"+ref, ""); got["role"] != "owner" {
				t.Errorf("%s: %v", ref, got)
			}
		}
		n.must(t, 404, "GET", "/api/agents/agent-none", "")
		if got := n.must(
			t, 200, "GET", "/api/agents?sort=name", "",
		); at(got, "meta.total").(interface{ String() string }).String() != "3" ||
			at(got, "agents.1.name") != "far" {
			t.Errorf("the list: %v", got)
		}
		if got := n.must(t, 200, "GET", "/api/console", ""); at(got, "agents.2.name") != "near" ||
			fmt.Sprint(at(got, "agents.2.waiting")) != map[*fakeNode]string{first: "0", second: "3"}[n] ||
			got["cluster"] != true {
			t.Errorf("the console: %v", got)
		}
	}
	made := first.must(t, 201, "POST", "/api/agents/far/contacts", `{"name":"Ada","email":"ada@example.com"}`)
	if got := second.must(t, 200, "GET", "/api/agents/far/contacts/"+made["id"].(string), ""); got["name"] != "Ada" {
		t.Errorf("a contact created through the other server: %v", got)
	}
	a := first.send(t, "GET", "/f/far/workflow-none", "")
	if a.StatusCode != 404 || len(a.Header.Values("X-Request-Id")) != 1 {
		t.Errorf("a form: %d %v", a.StatusCode, a.Header)
	}
}

// An API key is stored with the owner of the default agent, whichever server creates it.
func TestKeysAreCreatedAtTheOwner(t *testing.T) {
	first, second := newCluster(t)
	first.must(t, 201, "POST", "/api/keys", `{"name":"nightly","role":"viewer","agents":["*"]}`)
	if !second.folder.HasHadKeys() || first.folder.HasHadKeys() {
		t.Error("the key is not with the owner of the default agent")
	}
}

// The owner authenticates the client, with the address and host that the first server
// saw.
func TestOwnerAuthenticatesTheClient(t *testing.T) {
	first, second := newCluster(t)
	second.Own(t, "far")
	seen := make(chan *http.Request, 1)
	second.server.echo.GET("/api/agents/:id/seen", func(c echo.Context) error {
		seen <- c.Request()
		return c.NoContent(204)
	})
	first.server.echo.GET("/api/agents/:id/seen", func(echo.Context) error { return errors.New("not here") })
	a := first.with("X-Forwarded-For", "192.0.2.7").
		with("Host", "satchel.localhost").
		with("X-Satchel-Forwarded", "forged").
		send(t, "GET", "/api/agents/far/seen?a=1;b&c=%2f?d", "")
	r := <-seen
	if host, _, _ := net.SplitHostPort(r.RemoteAddr); a.StatusCode != 204 ||
		host != "127.0.0.1" ||
		r.Host != "satchel.localhost" ||
		r.Header.Get("X-Forwarded-For") != "" ||
		r.URL.RawQuery != "a=1;b&c=%2f?d" {
		t.Errorf("%d, from %s to %s with %v: %s", a.StatusCode, r.RemoteAddr, r.Host, r.Header, r.URL.RawQuery)
	}
	if _, _, err := second.folder.CreateKey(t.Context(), agent.Key{
		Name:   "mine",
		Role:   agent.RoleViewer,
		Agents: []string{"*"},
	}); err != nil {
		t.Fatal(err)
	}
	first.must(t, 403, "GET", "/api/agents/far", "")
	first.with("X-API-Key", "wrong").must(t, 401, "GET", "/api/agents/far", "")
}

// A forwarded request is answered by the owner or refused, and never forwarded again.
func TestForwardedOnce(t *testing.T) {
	first, second := newCluster(t)
	first.Own(t, "near")
	second.Own(t, "far")
	req, err := http.NewRequestWithContext(t.Context(), "GET", second.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	signer := first.Cluster.Signer
	for _, c := range []struct {
		what, client, agent string
		ago                 time.Duration
		want                int
	}{
		{"signed", "192.0.2.7", "near", 0, 421},
		{"changed", "192.0.2.8", "near", 0, 200}, // the signature is not valid, so it is an ordinary request
		{"of the owner's agent", "192.0.2.7", "far", 0, 200},
		{"repeated a minute later", "192.0.2.7", "far", time.Minute, 421},
	} {
		req.URL.Path = "/api/agents/" + c.agent
		req.Header.Set("X-Forwarded-For", "192.0.2.7, 127.0.0.1")
		signer.At(func() time.Time { return time.Now().Add(-c.ago) }).Sign(req)
		req.Header.Set("X-Forwarded-For", c.client+", 127.0.0.1")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", c.what, resp.StatusCode, c.want)
		}
	}
}

// While an agent moves, requests wait for its new owner, with the same body.
func TestRequestsFollowTheAgent(t *testing.T) {
	first, second := newCluster(t)
	near := first.Own(t, "near")
	wrong := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if signed, err := first.Verify(r); !signed || err != nil {
			t.Errorf("a request that is not signed: %v", err)
		}
		w.WriteHeader(http.StatusMisdirectedRequest)
	}))
	t.Cleanup(wrong.Close)
	for what, before := range map[string]*apitest.Node{
		"nobody":                 nil,
		"the wrong server":       {URL: wrong.URL},
		"a server that has gone": {URL: "http://127.0.0.1:1"},
	} {
		first.Cluster.Owners[near.ID()] = before
		first.Cluster.Asked = nil
		if what == "the wrong server" {
			first.Cluster.Asked = func() {
				first.Cluster.Mu.Lock()
				first.Cluster.Owners[near.ID()] = first.Node
				first.Cluster.Mu.Unlock()
			}
		} else { // only a server that no longer has the agent is a reason to look up its owner again
			first.Cluster.Next = map[string]*apitest.Node{near.ID(): first.Node}
		}
		if a := second.send(
			t,
			"POST",
			"/api/agents/near/contacts",
			`{"name":"`+what+`"}`,
		); a.StatusCode != 201 || a.json["name"] != what {
			t.Errorf("%s: %d %s", what, a.StatusCode, a.text)
		}
	}
}

// An owner that stays unreachable leads to 503, and so does a server that cannot read the
// cluster.
func TestOwnerIsUnreachable(t *testing.T) {
	first, second := newCluster(t)
	far := second.Own(t, "far")
	first.server.forwarder.timeout = time.Millisecond
	first.Cluster.Owners[far.ID()] = &apitest.Node{URL: "http://127.0.0.1:1"}
	for range 2 {
		a := first.send(t, "GET", "/api/agents/far", "")
		if a.StatusCode != 503 ||
			a.Header.Get("Retry-After") == "" ||
			at(a.json, "error.code") != "UNAVAILABLE" ||
			a.Header.Get("X-Request-Id") == "" {
			t.Errorf("%d %v %s", a.StatusCode, a.Header, a.text)
		}
		first.Down = cluster.ErrUnavailable
	}
	first.Cluster.Owners[far.ID()] = second.Node // which still responds
	first.must(t, 200, "GET", "/api/agents/far", "")
	near := first.Own(t, "near")
	first.must(t, 503, "GET", "/api/agents/"+near.ID(), "")
	if a := first.send(t, "GET", "/api/ready", ""); a.StatusCode != 503 {
		t.Errorf("ready: %d", a.StatusCode)
	}
	first.must(t, 200, "GET", "/api/health", "")
}

// A request to a suspended server does not wait for it once the others have declared it
// dead: one that only reads goes to the new owner.
func TestOwnerIsSuspended(t *testing.T) {
	first, second := newCluster(t)
	far := second.Own(t, "far")
	for method, want := range map[string]int{"GET": 200, "PUT": 503} {
		asked := make(chan struct{})
		ts := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			close(asked)
			<-r.Context().Done()
		}))
		t.Cleanup(ts.Close)
		suspended := &apitest.Node{URL: ts.URL, Cluster: first.Cluster}
		first.Cluster.Owners[far.ID()] = suspended
		lifetime, end := context.WithCancel(t.Context())
		first.Cluster.Ends = map[string]context.Context{suspended.Session(): lifetime}
		go func() {
			<-asked
			first.Cluster.Mu.Lock()
			first.Cluster.Owners[far.ID()] = second.Node
			first.Cluster.Mu.Unlock()
			end()
		}()
		if a := first.send(t, method, "/api/agents/far", `{"description":"x"}`); a.StatusCode != want ||
			want == 503 && a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", method, a.StatusCode, a.text)
		}
	}
}

// Events arrive as they happen, and end when the server in between stops.
func TestEventsAreForwarded(t *testing.T) {
	first, second := newCluster(t)
	far := second.Own(t, "far")
	req, err := http.NewRequestWithContext(t.Context(), "GET", first.url+"/api/agents/far/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	if resp.StatusCode != 200 || !lines.Scan() {
		t.Fatalf("%d, %v", resp.StatusCode, lines.Err())
	}
	second.must(t, 201, "POST", "/api/agents/"+far.ID()+"/contacts", `{"name":"Ada"}`)
	found := false
	for !found && lines.Scan() {
		found = strings.Contains(lines.Text(), "contact")
	}
	if !found {
		t.Fatal(lines.Err())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, resp.Body)
	}()
	first.server.Stop()
	<-ended
}

// A WebSocket works through the other server.
func TestSocketsAreForwarded(t *testing.T) {
	first, second := newCluster(t)
	second.Own(t, "far")
	first.server.echo.GET("/api/agents/:id/echo", func(echo.Context) error { return errors.New("not here") })
	second.server.echo.GET("/api/agents/:id/echo", func(c echo.Context) error {
		conn, err := websocket.Accept(c.Response(), c.Request(), nil)
		if err != nil {
			return nil // Accept has written the response
		}
		for {
			kind, text, err := conn.Read(c.Request().Context())
			if err != nil || conn.Write(c.Request().Context(), kind, text) != nil {
				return nil
			}
		}
	})
	conn, _, err := websocket.Dial(t.Context(), strings.Replace(first.url, "http", "ws", 1)+"/api/agents/far/echo", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.Read(t.Context()); err != nil || string(got) != text {
			t.Fatalf("%q, %v", got, err)
		}
	}
	first.server.Stop()
	if _, _, err := conn.Read(t.Context()); err == nil {
		t.Error("the socket is still open after its server stopped")
	}
}

// A browser session is found on the server that runs it.
func TestSessionsAreFound(t *testing.T) {
	first, second := newCluster(t)
	second.server.forwarder.hasSession = func(id string) bool { return id == "session-there" }
	asked := make(chan string, 2)
	second.server.echo.GET("/v1/sessions/:session/:stream", func(c echo.Context) error {
		asked <- c.Param("session")
		return c.NoContent(204)
	})
	if a := first.send(t, "GET", "/v1/sessions/session-there/cast", ""); a.StatusCode != 204 ||
		<-asked != "session-there" {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	if a := first.send(t, "GET", "/v1/sessions/cast?sessionId=session-nowhere", ""); a.StatusCode != 404 {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
}

// Requests of a sign-in are forwarded by the agent in their address.
func TestSignInsAreForwarded(t *testing.T) {
	for path, want := range map[string]string{
		"/oauth/start/agent-1.credential-1.x":          "agent-1",
		"/oauth/callback?state=agent-2.credential-1.x": "agent-2",
		"/oauth/callback?state=x":                      "",
		"/api/agents":                                  "",
	} {
		e := echo.New()
		got := "none"
		note := func(c echo.Context) error {
			got = targetOf(c).agent
			return nil
		}
		for _, route := range []string{oauthStart, oauthCallback, "/api/agents"} {
			e.Any(route, note)
		}
		for _, method := range []string{"GET", "POST"} {
			e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
			if got != want {
				t.Errorf("%s %s: %q", method, path, got)
			}
		}
	}
}
