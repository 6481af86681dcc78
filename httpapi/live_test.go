package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"satchel/browser/live"
)

func (w *contractClient) checkTakeovers(t *testing.T, at string) {
	w.request(t, 200, "GET", at+"/live-view", "")
	w.request(t, 404, "GET", strings.Replace(at, "session-", "session-0", 1)+"/live-view", "")
	w.request(t, 400, "POST", at+"/takeover", `{"timeout":0}`)
	made := w.request(t, 201, "POST", at+"/takeover", `{"reason":"captcha","timeout":60}`).json["takeover_id"].(string)
	w.request(t, 409, "POST", at+"/takeover", `{}`)
	w.request(t, 200, "GET", at+"/takeover/"+made, "")
	w.request(t, 404, "GET", at+"/takeover/takeover-x", "")
	w.request(t, 200, "POST", at+"/takeover/"+made+"/complete", "")
	w.request(t, 409, "POST", at+"/takeover/"+made+"/complete", "")
	made = w.request(t, 201, "POST", at+"/takeover", `{}`).json["takeover_id"].(string)
	w.request(t, 204, "DELETE", at+"/takeover/"+made, "")
	w.request(t, 409, "DELETE", at+"/takeover/"+made, "")
}

// wsClient is the client end of a WebSocket.
type wsClient struct {
	t    testing.TB
	conn *websocket.Conn
}

// dial opens a WebSocket; status is that of the response if it was refused.
func (ts *testServer) dial(tb testing.TB, path string, header http.Header) (ws *wsClient, status int) {
	tb.Helper()
	conn, resp, err := websocket.Dial(
		tb.Context(),
		strings.Replace(ts.url, "http", "ws", 1)+path,
		&websocket.DialOptions{HTTPHeader: header},
	)
	if err != nil {
		if resp == nil {
			tb.Fatal(err)
		}
		return nil, resp.StatusCode
	}
	conn.SetReadLimit(64 << 20)
	tb.Cleanup(func() { _ = conn.CloseNow() })
	return &wsClient{tb, conn}, 101
}

func (ws *wsClient) send(messages ...string) {
	ws.t.Helper()
	for _, m := range messages {
		if err := ws.conn.Write(ws.t.Context(), websocket.MessageText, []byte(m)); err != nil {
			ws.t.Fatal(err)
		}
	}
}

// receive reads messages up to the first that is wanted.
func (ws *wsClient) receive(what string, wanted func(m map[string]any, raw []byte) bool) map[string]any {
	ws.t.Helper()
	ctx, cancel := context.WithTimeout(ws.t.Context(), 20*time.Second)
	defer cancel()
	for {
		_, raw, err := ws.conn.Read(ctx)
		if err != nil {
			ws.t.Fatalf("waiting for %s: %v", what, err)
		}
		var m map[string]any
		if !bytes.HasPrefix(raw, []byte("[")) {
			if err := json.Unmarshal(raw, &m); err != nil {
				ws.t.Fatal(err)
			}
		}
		if wanted(m, raw) {
			return m
		}
	}
}

// closeStatus reads until the server closes the socket.
func (ws *wsClient) closeStatus() websocket.StatusCode {
	ws.t.Helper()
	for {
		if _, _, err := ws.conn.Read(ws.t.Context()); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

func ofType(kind string) func(map[string]any, []byte) bool {
	return func(m map[string]any, _ []byte) bool { return m["type"] == kind }
}

func isFrame(m map[string]any, _ []byte) bool { return m["type"] == nil && m["data"] != nil }

// TestSteelsDialect uses the sockets as Steel's viewer does: a socket for the list of
// tabs, another one for each tab with a second "?" in its address, nested events, Enter
// without text.
func TestSteelsDialect(t *testing.T) {
	ts := newTestServer(t)
	s := ts.openLoaded(t, "/")
	tabs, _ := ts.dial(t, "/v1/sessions/cast?sessionId="+s.ID(), nil)
	list := tabs.receive("tabs", ofType("tabList"))
	first := list["tabs"].([]any)[0].(map[string]any)
	if first["id"] != first["pageId"] ||
		list["firstTabId"] != first["id"] ||
		first["title"] != "Shop" ||
		first["url"] != ts.site+"/" {
		t.Errorf("%v", list)
	}
	frame := tabs.receive("a frame of the active tab", isFrame)
	for _, field := range []string{"pageId", "url", "title", "favicon", "data"} {
		if _, ok := frame[field].(string); !ok {
			t.Errorf("a frame without %s", field)
		}
	}
	page := first["id"].(string)
	cast, status := ts.dial(t, "/v1/sessions/cast?sessionId="+s.ID()+"?pageId="+page, nil)
	if cast == nil {
		t.Fatal(status)
	}
	if got := cast.receive("a frame", isFrame); got["pageId"] != page {
		t.Errorf("%v", got["pageId"])
	}
	active, _ := ts.dial(t, "/v1/sessions/"+s.ID()+"/pageId", nil)
	active.receive("the active tab", func(m map[string]any, _ []byte) bool { return m["pageId"] == page })
	mouse := func(kind string, x, y int) string {
		return fmt.Sprintf(
			`{"type":"mouseEvent","pageId":%q,"event":{"type":%q,"x":%d,"y":%d,"button":"left",`+
				`"modifiers":0,"clickCount":1}}`,
			page, kind, x, y,
		)
	}
	cast.send(
		mouse("mousePressed", 100, 100),
		mouse("mouseReleased", 100, 100),
		`{"type":"keyEvent","pageId":"`+page+
			`","event":{"type":"keyDown","text":"h","code":"KeyH","key":"h","keyCode":72}}`,
		`{"type":"keyEvent","pageId":"`+page+
			`","event":{"type":"keyUp","text":"h","code":"KeyH","key":"h","keyCode":72}}`,
	)
	waitTitle(t, s, "name:h")
	for query, want := range map[string]int{
		"&pageIndex=7":   404,
		"&pageIndex=-1":  400,
		"&pageIndex=x":   400,
		"&pageId=page-x": 404,
	} {
		if _, status := ts.dial(t, "/v1/sessions/cast?sessionId="+s.ID()+query, nil); status != want {
			t.Errorf("%s: %d", query, status)
		}
	}
	single, _ := ts.dial(t, "/v1/sessions/cast?sessionId="+s.ID()+"&pageIndex=0", nil)
	if got := single.receive("a frame", isFrame); got["pageId"] != page {
		t.Errorf("%v", got["pageId"])
	}
	single.send(`{"type":"keyEvent","pageId":"default","event":{"type":"keyDown","text":"i",` +
		`"code":"KeyI","key":"i","keyCode":73}}`)
	waitTitle(t, s, "name:hi")
	cast.send(mouse("mouseMoved", 100, 400), mouse("mousePressed", 100, 400), mouse("mouseReleased", 100, 400))
	waitTitle(t, s, "clicked")
	cast.send(`{"type":"getSelectedText","pageId":"` + page + `"}`)
	if got := cast.receive(
		"the selected text",
		ofType("selectedTextResponse"),
	); got["pageId"] != page || got["text"] != "" {
		t.Errorf("%v", got)
	}
	logs, _ := ts.dial(t, "/v1/sessions/logs?sessionId="+s.ID(), nil)
	cast.send(`{"type":"navigation","pageId":"` + page + `","event":{"url":"` + ts.site + `/evil"}}`)
	logs.receive("the console", func(_ map[string]any, raw []byte) bool {
		var entries []map[string]any
		if err := json.Unmarshal(raw, &entries); err != nil {
			t.Fatal(err)
		}
		at, ok := entries[0]["timestamp"].(float64)
		return ok &&
			at > 1e12 &&
			entries[0]["pageId"] == page &&
			entries[0]["level"] == "log" &&
			entries[0]["text"] == "<b>bold</b>"
	})
	recording, _ := ts.dial(t, "/v1/sessions/recording?sessionId="+s.ID(), nil)
	recording.receive("a snapshot", func(_ map[string]any, raw []byte) bool {
		return bytes.HasPrefix(raw, []byte("[{")) && bytes.Contains(raw, []byte(`"type":2`))
	})
	tabs.send(`{"type":"newTab"}`)
	two := tabs.receive("two tabs", func(m map[string]any, _ []byte) bool {
		return m["type"] == "tabList" && len(m["tabs"].([]any)) == 2
	})
	active.receive("another active tab", func(m map[string]any, _ []byte) bool {
		return m["pageId"] == two["activeTabId"] && m["pageId"] != page
	})
	cast.send(`{"type":"closeTab","pageId":"` + page + `"}`)
	tabs.receive("the closed tab", func(m map[string]any, _ []byte) bool {
		return m["type"] == "tabClosed" && m["pageId"] == page
	})
	if code := cast.closeStatus(); code != websocket.StatusNormalClosure {
		t.Errorf("the closed tab's socket ends with %d", code)
	}
	ts.must(t, 200, "DELETE", "/api/agents/default/browser?id="+s.ID(), "")
	for name, ws := range map[string]*wsClient{"cast": tabs, "logs": logs, "pageId": active, "recording": recording} {
		if code := ws.closeStatus(); code != websocket.StatusNormalClosure {
			t.Errorf("%s ends with %d", name, code)
		}
	}
}

// link returns a link of an open server to a session's live view.
func (ts *testServer) link(session string) string {
	return ts.server.options.Live.Link(
		live.Grant{SessionID: session, Control: true, Maker: "open"},
		time.Now().Add(live.LinkLife),
	).URL
}

// tokenOf returns the token in an address.
func tokenOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("token")
}

func TestSocketsRefuse(t *testing.T) {
	ts := newTestServer(t)
	s, other := ts.openLoaded(t, "/"), ts.openLoaded(t, "/")
	mine := tokenOf(t, ts.link(s.ID()))
	over := ts.must(t, 201, "POST", "/api/agents/default/browser/"+s.ID()+"/takeover", `{}`)
	ts.must(
		t,
		200,
		"POST",
		"/api/agents/default/browser/"+s.ID()+"/takeover/"+over["takeover_id"].(string)+"/complete",
		"",
	)
	stranger := http.Header{"Origin": {"https://evil.example"}}
	cases := []struct {
		name, path string
		header     http.Header
		want       int
	}{
		{"no session id", "/v1/sessions/cast", nil, 400},
		{"unknown session", "/v1/sessions/cast?sessionId=session-x", nil, 404},
		{"unknown stream", "/v1/sessions/video?sessionId=" + s.ID(), nil, 404},
		{"unknown tab", "/v1/sessions/cast?pageId=page-x&sessionId=" + s.ID(), nil, 404},
		{"too fast", "/v1/sessions/cast?fps=1000&sessionId=" + s.ID(), nil, 400},
		{"no quality", "/v1/sessions/cast?quality=0&sessionId=" + s.ID(), nil, 400},
		{"no scale", "/v1/sessions/cast?scale=NaN&sessionId=" + s.ID(), nil, 400},
		{"a page of another site", "/v1/sessions/cast?sessionId=" + s.ID(), stranger, 403},
		{"a page with the origin null", "/v1/sessions/logs?sessionId=" + s.ID(), http.Header{"Origin": {"null"}}, 403},
		{
			"this site's other port",
			"/v1/sessions/logs?sessionId=" + s.ID(),
			http.Header{"Origin": {"http://127.0.0.1:1"}},
			403,
		},
		{"a link from another site", "/v1/sessions/logs?sessionId=" + s.ID() + "&token=" + mine, stranger, 101},
		{"forged link", "/v1/sessions/logs?sessionId=" + s.ID() + "&token=" + mine + "A", nil, 401},
		{"another session's link", "/v1/sessions/logs?sessionId=" + other.ID() + "&token=" + mine, nil, 404},
		{
			"the link of a completed takeover",
			"/v1/sessions/cast?sessionId=" + s.ID() + "&token=" + tokenOf(t, over["takeover_url"].(string)),
			nil,
			409,
		},
	}
	for _, tc := range cases {
		if _, status := ts.dial(t, tc.path, tc.header); status != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, status, tc.want)
		}
	}
	if plain := ts.send(t, "GET", "/v1/sessions/cast?sessionId="+s.ID(), ""); plain.StatusCode != 400 {
		t.Errorf("without an upgrade: %d", plain.StatusCode)
	}
	if forged := ts.send(t, "POST", "/live/"+s.ID()+"/complete?token="+mine, ""); forged.StatusCode != 403 {
		t.Errorf("the button without a takeover: %d", forged.StatusCode)
	}
}

// TestViewersOnlyWatch closes the server and connects with keys of each role.
func TestViewersOnlyWatch(t *testing.T) {
	ts := newOwnServer(t)
	s := ts.openLoaded(t, "/")
	key := func(role, agents string) string {
		t.Helper()
		return ts.must(
			t, 201, "POST", "/api/keys",
			`{"name":"k","role":"`+role+`","agents":`+agents+`}`,
		)["key"].(string)
	}
	elsewhere := ts.must(t, 201, "POST", "/api/agents", `{"name":"elsewhere"}`)["id"].(string)
	admin := key("admin", `["*"]`)
	ts.header.Set("X-API-Key", admin)
	watcher, foreign := key("viewer", `["default"]`), key("admin", `["`+elsewhere+`"]`)
	for name, want := range map[string]int{"": 403, foreign: 403, "satchel_wrong": 401, watcher: 101} {
		if _, status := ts.dial(t, "/v1/sessions/pageId?sessionId="+s.ID()+"&token="+name, nil); status != want {
			t.Errorf("key %.12q: %d, want %d", name, status, want)
		}
	}
	link := (&testClient{
		url:    ts.url,
		folder: ts.folder,
		header: http.Header{"X-Api-Key": {watcher}},
	}).must(t, 200, "GET", "/api/agents/default/browser/"+s.ID()+"/live-view", "")
	for name, token := range map[string]string{"key": watcher, "link": tokenOf(t, link["url"].(string))} {
		ws, status := ts.dial(t, "/v1/sessions/cast?sessionId="+s.ID()+"&token="+token, nil)
		if ws == nil {
			t.Fatalf("%s: %d", name, status)
		}
		ws.receive("a frame", isFrame)
		ws.send(
			`{"type":"newTab"}`,
			`{"type":"mouseEvent","event":"mousePressed","x":100,"y":400}`,
			`{"type":"mouseEvent","event":"mouseReleased","x":100,"y":400}`,
		)
	}
	act, _ := ts.dial(t, "/v1/sessions/cast?sessionId="+s.ID()+"&token="+admin, nil)
	act.send(
		`{"type":"mouseEvent","event":"mousePressed","x":100,"y":100}`,
		`{"type":"mouseEvent","event":"mouseReleased","x":100,"y":100}`,
		`{"type":"keyEvent","event":"keyDown","key":"x"}`,
	)
	waitTitle(t, s, "name:x") // and not "clicked"
	if n := len(s.Pages()); n != 1 {
		t.Errorf("a viewer opened a tab: %d", n)
	}
}

// TestSocketAttacks sends what no client should; other clients are not affected.
func TestSocketAttacks(t *testing.T) {
	ts := newTestServer(t)
	s := ts.openLoaded(t, "/spin")
	cast := "/v1/sessions/cast?sessionId=" + s.ID()
	honest, _ := ts.dial(t, cast, nil)
	honest.receive("a frame", isFrame)

	garbage, _ := ts.dial(t, cast, nil)
	garbage.send(
		"", "null", "[]", `"x"`, "{",
		strings.Repeat("[", 10000),
		`{"type":7}`,
		`{"type":"mouseEvent","event":[],"x":"a"}`,
		`{"type":"mouseEvent","event":"mouseMoved","x":1e400,"y":0}`,
		`{"type":"keyEvent","event":{"type":"keyDown","key":null}}`,
		`{"type":"navigation","url":"file:///etc/passwd"}`,
		`{"type":"navigation","url":"javascript:alert(1)"}`,
		`{"type":"closeTab","pageId":"page-x"}`,
	)
	if err := garbage.conn.Write(t.Context(), websocket.MessageBinary, bytes.Repeat([]byte{0xff}, 1000)); err != nil {
		t.Fatal(err)
	}
	garbage.send(`{"type":"newTab"}`)
	garbage.receive("an answer after garbage", func(m map[string]any, _ []byte) bool {
		return m["type"] == "tabList" && len(m["tabs"].([]any)) == 2
	})
	garbage.send(`{"type":"closeTab"}`)
	if got := s.Pages()[0].URL(); got != ts.site+"/spin" {
		t.Errorf("garbage led to %s", got)
	}

	large, _ := ts.dial(t, cast, nil)
	// may be disconnected while it writes
	_ = large.conn.Write(t.Context(), websocket.MessageText, bytes.Repeat([]byte("x"), maxMessage+1))
	if code := large.closeStatus(); code != websocket.StatusMessageTooBig {
		t.Errorf("a message that is too large ends with %d", code)
	}

	flood, _ := ts.dial(t, cast, nil)
	flooding, stop := context.WithCancel(t.Context())
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		for flooding.Err() == nil {
			if flood.conn.Write(
				flooding,
				websocket.MessageText,
				[]byte(`{"type":"mouseEvent","event":"mouseMoved","x":10,"y":10}`),
			) != nil {
				return
			}
		}
	}()
	for range 10 {
		honest.receive("frames during a flood", isFrame)
	}
	stop()
	<-flooded
}

// TestDeadSockets checks that sockets are closed which do not answer pings or do not
// read.
func TestDeadSockets(t *testing.T) {
	ts := newTestServer(t)
	ts.server.pingEvery = time.Second // also a busy machine answers within it
	s := ts.openLoaded(t, "/")
	// A client of this library answers pings only while it reads.
	dead, _ := ts.dial(t, "/v1/sessions/pageId?sessionId="+s.ID(), nil)
	alive, _ := ts.dial(t, "/v1/sessions/pageId?sessionId="+s.ID(), nil)
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		alive.closeStatus()
	}()
	left := func() int {
		ts.server.sockets.mu.Lock()
		defer ts.server.sockets.mu.Unlock()
		return ts.server.sockets.n
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for left() != 1 {
		select {
		case <-reading:
			t.Fatal("the socket that answers was closed")
		case <-ctx.Done():
			t.Fatalf("%d sockets are open", left())
		case <-time.After(10 * time.Millisecond):
		}
	}
	_ = dead.conn.CloseNow()
	ts.server.Stop()
	<-reading
	if left() != 0 {
		t.Error("a socket outlives the server")
	}
}
