package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"satchel/agent"
)

// dialEvents opens an event stream over a WebSocket as a page does; ws is nil if it is refused.
func (c *testClient) dialEvents(t *testing.T, path, origin string, protocols ...string) (ws *wsClient, status int) {
	t.Helper()
	conn, resp, err := websocket.Dial(
		t.Context(),
		strings.Replace(c.url, "http", "ws", 1)+path,
		&websocket.DialOptions{
			HTTPHeader:   http.Header{"Origin": {origin}},
			Subprotocols: append(protocols, eventProtocol),
		},
	)
	if resp == nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil, resp.StatusCode
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	if chosen := resp.Header.Get("Sec-WebSocket-Protocol"); chosen != eventProtocol {
		t.Errorf("the protocol is %s", chosen)
	}
	return &wsClient{t, conn}, resp.StatusCode
}

// untilText reads messages up to one that contains a text.
func (ws *wsClient) untilText(text string) (got string) {
	ws.t.Helper()
	for !strings.Contains(got, text) {
		_, message, err := ws.conn.Read(ws.t.Context())
		if err != nil {
			ws.t.Fatalf("no %s: %v", text, err)
		}
		got = string(message)
	}
	return got
}

// TestEventSockets reads streams over WebSockets with the credentials of a key and of a
// visitor, continues one, and is refused and closed as streams are.
func TestEventSockets(t *testing.T) {
	g := newGuardedServer(t, agent.RoleNone)
	g.server.guardEvery = 20 * time.Millisecond
	id, keyed := g.key(t, agent.Time{})
	bearer := bearerProtocol + keyed.header.Get("X-API-Key")
	open := newTestClient(t)
	if ws, status := open.dialEvents(t, streamPath, "https://evil.example"); ws != nil || status != 403 {
		t.Errorf("a page of another site: %d", status)
	}
	for name, c := range map[string]struct {
		path, origin string
		protocols    []string
		status       int
	}{
		"without credentials": {streamPath, g.url, nil, 403},
		"an unknown key":      {streamPath, g.url, []string{bearerProtocol + "satchel_x"}, 401},
		"an unknown agent":    {"/api/agents/none/stream", g.url, []string{bearer}, 404},
		"what is no stream":   {"/api/agents/default/contacts", g.url, []string{bearer}, 200},
		"an unknown execution": {
			"/api/agents/default/workflows/executions/execution-x/events",
			g.url,
			[]string{bearer},
			404,
		},
	} {
		if ws, status := g.dialEvents(t, c.path, c.origin, c.protocols...); ws != nil || status != c.status {
			t.Errorf("%s: %d, want %d", name, status, c.status)
		}
	}
	ws, _ := g.dialEvents(t, streamPath, g.url, bearer)
	if hello := ws.untilText("event: hello\n"); !strings.Contains(hello, `"role":"admin"`) {
		t.Errorf("%s", hello)
	}
	keyed.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada"}`)
	_, last, _ := strings.Cut(ws.untilText(`"name":"Ada"`), "id: ")
	last, _, _ = strings.Cut(last, "\n")
	keyed.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Grace"}`)
	ws.untilText(`"name":"Grace"`)
	again, _ := g.dialEvents(t, streamPath, g.url, bearer, afterProtocol+last)
	if missed := again.untilText("event: hello\n"); !strings.Contains(missed, `"name":"Grace"`) ||
		strings.Contains(missed, `"name":"Ada"`) {
		t.Errorf("after %s: %s", last, missed)
	}
	_ = again.conn.Close(websocket.StatusNormalClosure, "")
	if err := g.folder.DeleteKey(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if code := ws.closeStatus(); code != websocket.StatusPolicyViolation {
		t.Errorf("closed with %d", code)
	}

	_, path, _ := g.owner.createWidget(t, shopWidget)
	token := g.owner.asVisitor(t, path).header.Get("Authorization")
	visitor, status := g.dialEvents(t, path+"/stream", g.url, bearerProtocol+strings.TrimPrefix(token, "Bearer "))
	if visitor == nil {
		t.Fatalf("a visitor: %d", status)
	}
	visitor.untilText("event: state\n")
	g.server.Stop() // waits for the socket
	if code := visitor.closeStatus(); code != websocket.StatusGoingAway {
		t.Errorf("the visitor's socket is closed with %d", code)
	}
}
