package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"satchel/agent"
	"satchel/browser"
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

// testServer is a service with a browser, and a site that its sessions may visit.
type testServer struct {
	*testClient
	server *Server
	site   string
}

// sitePages are the pages of the site by path.
var sitePages = map[string]string{
	"/": `<title>Shop</title><body style="margin:0"><input autofocus id=name style="position:absolute;left:0;top:0;width:400px;height:200px;font-size:60px" oninput="document.title='name:'+value">
<div onclick="document.title='clicked'" style="position:absolute;left:0;top:300px;width:800px;height:300px;background:#36c"></div>`,
	"/evil": `<title><img src=x onerror=document.title=1></title><body style="background:#c00"><script>console.log('<b>bold</b>')</script>`,
	"/spin": `<title>Spin</title><style>@keyframes s{to{transform:rotate(1turn)}}div{width:300px;height:300px;background:linear-gradient(red,blue);animation:s 1s linear infinite}</style><div></div>`,
}

func newTestServer(tb testing.TB) *testServer {
	tb.Helper()
	_, server := openService(tb)
	ts := httptest.NewServer(server.Handler())
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, sitePages[r.URL.Path])
	}))
	tb.Cleanup(func() {
		server.Stop() // sockets end with it
		ts.Close()
		site.Close()
	})
	return &testServer{testClient: &testClient{url: ts.URL, folder: server.folder, header: http.Header{}}, server: server, site: site.URL}
}

// openSession opens a session at an address.
func (ts *testServer) openSession(tb testing.TB, width, height int, address string) *browser.Session {
	tb.Helper()
	row, err := ts.server.options.Browser.Create(tb.Context(), ts.folder.Default(), agent.SessionOptions{Viewport: &agent.Viewport{Width: width, Height: height}})
	if err != nil {
		tb.Fatal(err)
	}
	s := ts.server.options.Browser.Find(row.ID)
	if err := s.ActivePage().Navigate(tb.Context(), address); err != nil {
		tb.Fatal(err)
	}
	return s
}

// openLoaded opens a session at a page of the site and waits until it has loaded.
func (ts *testServer) openLoaded(tb testing.TB, path string) *browser.Session {
	tb.Helper()
	s := ts.openSession(tb, 800, 600, ts.site+path)
	changed, end := s.Changes()
	defer end()
	for s.ActivePage().Title() == "" {
		select {
		case <-changed:
		case <-tb.Context().Done():
			tb.Fatal("the page has no title")
		}
	}
	return s
}

// waitTitle waits until the session's page has a title.
func waitTitle(t *testing.T, s *browser.Session, title string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	changed, end := s.Changes()
	defer end()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for s.ActivePage().Title() != title {
		select {
		case <-changed:
		case <-ticker.C:
			s.ActivePage().RefreshTitle()
		case <-ctx.Done():
			t.Fatalf("the title is %q, want %q", s.ActivePage().Title(), title)
		}
	}
}

// browserPage controls a page of the service in a browser.
type browserPage struct {
	t    *testing.T
	walk *walk // nil while nothing is counted
	send func(method string, params map[string]any) (any, error)
}

// openPage opens an address of the service in a new browser session.
func (ts *testServer) openPage(t *testing.T, width, height int, address string) *browserPage {
	t.Helper()
	s := ts.openSession(t, width, height, strings.Replace(address, "http://localhost", ts.url, 1))
	cdp, err := s.ActivePage().CDP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &browserPage{t: t, send: cdp.Send}
}

func (p *browserPage) cdp(method string, params map[string]any) map[string]any {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	out, err := browser.Within(ctx, func() (any, error) { return p.send(method, params) })
	if err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
	fields, _ := out.(map[string]any)
	return fields
}

func (p *browserPage) eval(expression string) any {
	p.t.Helper()
	result := p.cdp("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
	if result["exceptionDetails"] != nil {
		p.t.Fatalf("%s: %v", expression, result["exceptionDetails"])
	}
	return result["result"].(map[string]any)["value"]
}

// waitFor waits until an expression is true in the page.
func (p *browserPage) waitFor(expression string) {
	p.t.Helper()
	said := p.eval(`new Promise((done) => {
		const end = performance.now() + 15000;
		const look = () => {
			try { if (` + expression + `) return done(""); } catch {}
			if (performance.now() > end) return done(document.body ? document.body.innerText : "no page");
			setTimeout(look, 20);
		};
		look();
	})`)
	if said != "" {
		p.t.Fatalf("never true: %s\nthe page says: %v", expression, said)
	}
}

// clickScreen clicks the live view where it shows a point of the session's
// viewport.
func (p *browserPage) clickScreen(x, y, width, height int) {
	p.t.Helper()
	at := p.eval(fmt.Sprintf(`(() => {
		const box = document.getElementById("screen").getBoundingClientRect(), scale = Math.min(box.width / %[3]d, box.height / %[4]d);
		return [box.left + (box.width - %[3]d * scale) / 2 + %[1]d * scale, box.top + (box.height - %[4]d * scale) / 2 + %[2]d * scale];
	})()`, x, y, width, height)).([]any)
	p.walk.clicked()
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		p.cdp("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1})
	}
}

// TestTakeoverWalk is a person's way: the agent asks, the person opens the
// link, sees the page, types and clicks in it, and gives control back.
func TestTakeoverWalk(t *testing.T) {
	ts := newTestServer(t)
	s := ts.openLoaded(t, "/")
	at := "/api/agents/default/browser/" + s.ID()
	made := ts.must(t, 201, "POST", at+"/takeover", `{"reason":"Please <b>sign in</b>."}`)
	status := func(want string) {
		t.Helper()
		if got := ts.must(t, 200, "GET", at+"/takeover/"+made["takeover_id"].(string), "")["status"]; got != want {
			t.Errorf("the takeover is %v, want %s", got, want)
		}
	}
	// A link preview fetches the page and starts nothing.
	address := strings.Replace(made["takeover_url"].(string), "http://localhost", "", 1)
	preview := ts.send(t, "GET", address, "")
	if preview.StatusCode != 200 || preview.Header.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(preview.Header.Get("Content-Security-Policy"), "script-src 'self'") {
		t.Errorf("%d %v", preview.StatusCode, preview.Header)
	}
	status("pending")
	ts.must(t, 200, "POST", at+"/execute", `{"action":"evaluate","script":"1"}`)

	person := ts.openPage(t, 1000, 800, made["takeover_url"].(string))
	person.waitFor(`document.getElementById("state").textContent === "You are in control" && document.getElementById("screen").dataset.frames > 0`)
	person.waitFor(`document.getElementById("reason").textContent === "Please <b>sign in</b>." && !document.getElementById("takeover").hidden`)
	status("active")
	if s.Status() != agent.SessionTakeover {
		t.Errorf("the session is %s", s.Status())
	}
	if refused := ts.must(t, 400, "POST", at+"/execute", `{"action":"evaluate","script":"1"}`); refused["error"].(map[string]any)["code"] != "INVALID_ACTION" {
		t.Errorf("%v", refused)
	}
	person.waitFor(`document.getElementById("address").value === ` + fmt.Sprintf("%q", ts.site+"/"))
	person.clickScreen(200, 100, 800, 600)
	for _, letter := range "Ada" {
		person.cdp("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": string(letter), "text": string(letter)})
		person.cdp("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": string(letter)})
	}
	waitTitle(t, s, "name:Ada")
	person.waitFor(`document.querySelector(".tab.active .name").textContent === "name:Ada"`)
	person.clickScreen(400, 450, 800, 600)
	waitTitle(t, s, "clicked")
	// An address without a scheme, of a server that speaks http.
	person.eval(fmt.Sprintf(`(() => { document.getElementById("address").value = %q; document.getElementById("bar").requestSubmit(); })()`,
		strings.TrimPrefix(ts.site, "http://")+"/spin"))
	waitTitle(t, s, "Spin")

	person.eval(`document.getElementById("done").click()`)
	person.waitFor(`/Thank you/.test(document.getElementById("note").textContent)`)
	status("completed")
	if s.Status() != agent.SessionActive {
		t.Errorf("the session is %s", s.Status())
	}
	ts.must(t, 200, "POST", at+"/execute", `{"action":"evaluate","script":"1"}`)
	late := ts.openPage(t, 400, 700, made["takeover_url"].(string))
	late.waitFor(`/takeover has ended/.test(document.getElementById("note").textContent)`)
}

// TestLiveViewShowsTextAsText has a page try to get its script into the view.
func TestLiveViewShowsTextAsText(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	s := ts.openLoaded(t, "/evil")
	link := ts.must(t, 200, "GET", "/api/agents/default/browser/"+s.ID()+"/live-view", "")
	if until, err := time.Parse(time.RFC3339, link["expires_at"].(string)); err != nil || time.Until(until) < 59*time.Minute {
		t.Errorf("%v", link)
	}
	person := ts.openPage(t, 1000, 700, link["url"].(string))
	person.waitFor(`document.querySelector(".tab.active .name").textContent === "<img src=x onerror=document.title=1>"`)
	person.eval(`document.getElementById("console").click()`)
	person.waitFor(`document.getElementById("lines").textContent.includes("<b>bold</b>")`)
	if n := person.eval(`document.querySelectorAll("#lines b, .tab .name img").length`); n != 0.0 {
		t.Errorf("%v elements came out of the session's text", n)
	}
	person.eval(`document.getElementById("new").click()`)
	person.waitFor(`document.querySelectorAll(".tab").length === 2`)
	person.eval(`document.querySelector(".tab .name").click()`)
	person.waitFor(`document.querySelector(".tab").classList.contains("active")`)
	person.eval(`document.querySelectorAll(".tab .shut")[1].click()`)
	person.waitFor(`document.querySelectorAll(".tab").length === 1`)
	ts.must(t, 200, "DELETE", "/api/agents/default/browser?id="+s.ID(), "")
	person.waitFor(`/session has ended/.test(document.getElementById("note").textContent)`)
}

// wsClient is the client's end of a WebSocket.
type wsClient struct {
	t    testing.TB
	conn *websocket.Conn
}

// dial opens a WebSocket; status is that of the response if it was refused.
func (ts *testServer) dial(tb testing.TB, path string, header http.Header) (ws *wsClient, status int) {
	tb.Helper()
	conn, resp, err := websocket.Dial(tb.Context(), strings.Replace(ts.url, "http", "ws", 1)+path, &websocket.DialOptions{HTTPHeader: header})
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

// receive reads messages until one that is wanted.
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

// TestSteelsDialect speaks to the sockets as Steel's viewer does: a socket that
// tells of tabs, one more for each tab with a second "?" in its address, nested
// events, Enter without text.
func TestSteelsDialect(t *testing.T) {
	ts := newTestServer(t)
	s := ts.openLoaded(t, "/")
	tabs, _ := ts.dial(t, "/v1/sessions/cast?sessionId="+s.ID(), nil)
	list := tabs.receive("tabs", ofType("tabList"))
	first := list["tabs"].([]any)[0].(map[string]any)
	if first["id"] != first["pageId"] || list["firstTabId"] != first["id"] || first["title"] != "Shop" || first["url"] != ts.site+"/" {
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
		return fmt.Sprintf(`{"type":"mouseEvent","pageId":%q,"event":{"type":%q,"x":%d,"y":%d,"button":"left","modifiers":0,"clickCount":1}}`, page, kind, x, y)
	}
	cast.send(mouse("mousePressed", 100, 100), mouse("mouseReleased", 100, 100),
		`{"type":"keyEvent","pageId":"`+page+`","event":{"type":"keyDown","text":"h","code":"KeyH","key":"h","keyCode":72}}`,
		`{"type":"keyEvent","pageId":"`+page+`","event":{"type":"keyUp","text":"h","code":"KeyH","key":"h","keyCode":72}}`)
	waitTitle(t, s, "name:h")
	for query, want := range map[string]int{"&pageIndex=7": 404, "&pageIndex=-1": 400, "&pageIndex=x": 400, "&pageId=page-x": 404} {
		if _, status := ts.dial(t, "/v1/sessions/cast?sessionId="+s.ID()+query, nil); status != want {
			t.Errorf("%s: %d", query, status)
		}
	}
	single, _ := ts.dial(t, "/v1/sessions/cast?sessionId="+s.ID()+"&pageIndex=0", nil)
	if got := single.receive("a frame", isFrame); got["pageId"] != page {
		t.Errorf("%v", got["pageId"])
	}
	single.send(`{"type":"keyEvent","pageId":"default","event":{"type":"keyDown","text":"i","code":"KeyI","key":"i","keyCode":73}}`)
	waitTitle(t, s, "name:hi")
	cast.send(mouse("mouseMoved", 100, 400), mouse("mousePressed", 100, 400), mouse("mouseReleased", 100, 400))
	waitTitle(t, s, "clicked")
	cast.send(`{"type":"getSelectedText","pageId":"` + page + `"}`)
	if got := cast.receive("the selected text", ofType("selectedTextResponse")); got["pageId"] != page || got["text"] != "" {
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
		return ok && at > 1e12 && entries[0]["pageId"] == page && entries[0]["level"] == "log" && entries[0]["text"] == "<b>bold</b>"
	})
	recording, _ := ts.dial(t, "/v1/sessions/recording?sessionId="+s.ID(), nil)
	recording.receive("a snapshot", func(_ map[string]any, raw []byte) bool {
		return bytes.HasPrefix(raw, []byte("[{")) && bytes.Contains(raw, []byte(`"type":2`))
	})
	tabs.send(`{"type":"newTab"}`)
	two := tabs.receive("two tabs", func(m map[string]any, _ []byte) bool { return m["type"] == "tabList" && len(m["tabs"].([]any)) == 2 })
	active.receive("another active tab", func(m map[string]any, _ []byte) bool { return m["pageId"] == two["activeTabId"] && m["pageId"] != page })
	cast.send(`{"type":"closeTab","pageId":"` + page + `"}`)
	tabs.receive("the closed tab", func(m map[string]any, _ []byte) bool { return m["type"] == "tabClosed" && m["pageId"] == page })
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

func TestSocketsRefuse(t *testing.T) {
	ts := newTestServer(t)
	s, other := ts.openLoaded(t, "/"), ts.openLoaded(t, "/")
	token := func(address string) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("token")
	}
	mine := token(ts.server.options.Live.Link(s.ID(), true).URL)
	over := ts.must(t, 201, "POST", "/api/agents/default/browser/"+s.ID()+"/takeover", `{}`)
	ts.must(t, 200, "POST", "/api/agents/default/browser/"+s.ID()+"/takeover/"+over["takeover_id"].(string)+"/complete", "")
	stranger := http.Header{"Origin": {"https://evil.example"}}
	cases := []struct {
		name, path string
		header     http.Header
		want       int
	}{
		{"no session", "/v1/sessions/cast", nil, 400},
		{"unknown session", "/v1/sessions/cast?sessionId=session-x", nil, 404},
		{"unknown stream", "/v1/sessions/video?sessionId=" + s.ID(), nil, 404},
		{"unknown tab", "/v1/sessions/cast?pageId=page-x&sessionId=" + s.ID(), nil, 404},
		{"too fast", "/v1/sessions/cast?fps=1000&sessionId=" + s.ID(), nil, 400},
		{"no quality", "/v1/sessions/cast?quality=0&sessionId=" + s.ID(), nil, 400},
		{"no scale", "/v1/sessions/cast?scale=NaN&sessionId=" + s.ID(), nil, 400},
		{"a page of another site", "/v1/sessions/cast?sessionId=" + s.ID(), stranger, 403},
		{"a page of nowhere", "/v1/sessions/logs?sessionId=" + s.ID(), http.Header{"Origin": {"null"}}, 403},
		{"this site's other port", "/v1/sessions/logs?sessionId=" + s.ID(), http.Header{"Origin": {"http://127.0.0.1:1"}}, 403},
		{"a link from another site", "/v1/sessions/logs?sessionId=" + s.ID() + "&token=" + mine, stranger, 101},
		{"forged link", "/v1/sessions/logs?sessionId=" + s.ID() + "&token=" + mine + "A", nil, 401},
		{"another session's link", "/v1/sessions/logs?sessionId=" + other.ID() + "&token=" + mine, nil, 404},
		{"a takeover's that is over", "/v1/sessions/cast?sessionId=" + s.ID() + "&token=" + token(over["takeover_url"].(string)), nil, 409},
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

// TestViewersOnlyWatch closes the server and comes with keys of each role.
func TestViewersOnlyWatch(t *testing.T) {
	ts := newTestServer(t)
	s := ts.openLoaded(t, "/")
	key := func(role, agents string) string {
		t.Helper()
		return ts.must(t, 201, "POST", "/api/keys", `{"name":"k","role":"`+role+`","agents":`+agents+`}`)["key"].(string)
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
	link := (&testClient{url: ts.url, folder: ts.folder, header: http.Header{"X-Api-Key": {watcher}}}).must(t, 200, "GET", "/api/agents/default/browser/"+s.ID()+"/live-view", "")
	u, err := url.Parse(link["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{"key": watcher, "link": u.Query().Get("token")} {
		ws, status := ts.dial(t, "/v1/sessions/cast?sessionId="+s.ID()+"&token="+token, nil)
		if ws == nil {
			t.Fatalf("%s: %d", name, status)
		}
		ws.receive("a frame", isFrame)
		ws.send(`{"type":"newTab"}`, `{"type":"mouseEvent","event":"mousePressed","x":100,"y":400}`, `{"type":"mouseEvent","event":"mouseReleased","x":100,"y":400}`)
	}
	act, _ := ts.dial(t, "/v1/sessions/cast?sessionId="+s.ID()+"&token="+admin, nil)
	act.send(`{"type":"mouseEvent","event":"mousePressed","x":100,"y":100}`, `{"type":"mouseEvent","event":"mouseReleased","x":100,"y":100}`, `{"type":"keyEvent","event":"keyDown","key":"x"}`)
	waitTitle(t, s, "name:x") // and not "clicked"
	if n := len(s.Pages()); n != 1 {
		t.Errorf("a viewer opened a tab: %d", n)
	}
}

// TestSocketAttacks sends what no client should; honest ones do not notice.
func TestSocketAttacks(t *testing.T) {
	ts := newTestServer(t)
	s := ts.openLoaded(t, "/spin")
	cast := "/v1/sessions/cast?sessionId=" + s.ID()
	honest, _ := ts.dial(t, cast, nil)
	honest.receive("a frame", isFrame)

	garbage, _ := ts.dial(t, cast, nil)
	garbage.send("", "null", "[]", `"x"`, "{", strings.Repeat("[", 10000), `{"type":7}`, `{"type":"mouseEvent","event":[],"x":"a"}`, `{"type":"mouseEvent","event":"mouseMoved","x":1e400,"y":0}`,
		`{"type":"keyEvent","event":{"type":"keyDown","key":null}}`, `{"type":"navigation","url":"file:///etc/passwd"}`, `{"type":"navigation","url":"javascript:alert(1)"}`, `{"type":"closeTab","pageId":"page-x"}`)
	if err := garbage.conn.Write(t.Context(), websocket.MessageBinary, bytes.Repeat([]byte{0xff}, 1000)); err != nil {
		t.Fatal(err)
	}
	garbage.send(`{"type":"newTab"}`)
	garbage.receive("an answer after garbage", func(m map[string]any, _ []byte) bool { return m["type"] == "tabList" && len(m["tabs"].([]any)) == 2 })
	garbage.send(`{"type":"closeTab"}`)
	if got := s.Pages()[0].URL(); got != ts.site+"/spin" {
		t.Errorf("garbage led to %s", got)
	}

	large, _ := ts.dial(t, cast, nil)
	_ = large.conn.Write(t.Context(), websocket.MessageText, bytes.Repeat([]byte("x"), maxMessage+1)) // it may be cut off while it writes
	if code := large.closeStatus(); code != websocket.StatusMessageTooBig {
		t.Errorf("too large a message ends with %d", code)
	}

	flood, _ := ts.dial(t, cast, nil)
	flooding, stop := context.WithCancel(t.Context())
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		for flooding.Err() == nil {
			if flood.conn.Write(flooding, websocket.MessageText, []byte(`{"type":"mouseEvent","event":"mouseMoved","x":10,"y":10}`)) != nil {
				return
			}
		}
	}()
	for range 10 {
		honest.receive("frames beside a flood", isFrame)
	}
	stop()
	<-flooded
}

// TestDeadSockets are dropped: those that answer no ping, and those that do
// not read.
func TestDeadSockets(t *testing.T) {
	ts := newTestServer(t)
	ts.server.pingEvery = 50 * time.Millisecond
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
			t.Fatal("the one that answers was dropped")
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
