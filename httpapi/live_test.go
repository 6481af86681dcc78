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

func (w *witness) askOfTakeovers(t *testing.T, at string) {
	w.ask(t, 200, "GET", at+"/live-view", "")
	w.ask(t, 404, "GET", strings.Replace(at, "session-", "session-0", 1)+"/live-view", "")
	w.ask(t, 400, "POST", at+"/takeover", `{"timeout":0}`)
	made := w.ask(t, 201, "POST", at+"/takeover", `{"reason":"captcha","timeout":60}`).json["takeover_id"].(string)
	w.ask(t, 409, "POST", at+"/takeover", `{}`)
	w.ask(t, 200, "GET", at+"/takeover/"+made, "")
	w.ask(t, 404, "GET", at+"/takeover/takeover-x", "")
	w.ask(t, 200, "POST", at+"/takeover/"+made+"/complete", "")
	w.ask(t, 409, "POST", at+"/takeover/"+made+"/complete", "")
	made = w.ask(t, 201, "POST", at+"/takeover", `{}`).json["takeover_id"].(string)
	w.ask(t, 204, "DELETE", at+"/takeover/"+made, "")
	w.ask(t, 409, "DELETE", at+"/takeover/"+made, "")
}

// theatre is a service with a browser and a site that sessions may see.
type theatre struct {
	*visitor
	server *Server
	site   string
}

// playbill are the pages of the site.
var playbill = map[string]string{
	"/": `<title>Shop</title><body style="margin:0"><input autofocus id=name style="position:absolute;left:0;top:0;width:400px;height:200px;font-size:60px" oninput="document.title='name:'+value">
<div onclick="document.title='clicked'" style="position:absolute;left:0;top:300px;width:800px;height:300px;background:#36c"></div>`,
	"/evil": `<title><img src=x onerror=document.title=1></title><body style="background:#c00"><script>console.log('<b>bold</b>')</script>`,
	"/spin": `<title>Spin</title><style>@keyframes s{to{transform:rotate(1turn)}}div{width:300px;height:300px;background:linear-gradient(red,blue);animation:s 1s linear infinite}</style><div></div>`,
}

func newTheatre(tb testing.TB) *theatre {
	tb.Helper()
	_, server := openService(tb)
	ts := httptest.NewServer(server.Handler())
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, playbill[r.URL.Path])
	}))
	tb.Cleanup(func() {
		server.Stop() // sockets end with it
		ts.Close()
		site.Close()
	})
	return &theatre{visitor: &visitor{url: ts.URL, folder: server.folder, header: http.Header{}}, server: server, site: site.URL}
}

// open opens a session at a page of the site.
func (th *theatre) open(tb testing.TB, width, height int, address string) *browser.Session {
	tb.Helper()
	row, err := th.server.options.Browser.Create(tb.Context(), th.folder.Default(), agent.SessionOptions{Viewport: &agent.Viewport{Width: width, Height: height}})
	if err != nil {
		tb.Fatal(err)
	}
	s := th.server.options.Browser.Find(row.ID)
	if err := s.ActivePage().Navigate(tb.Context(), address); err != nil {
		tb.Fatal(err)
	}
	return s
}

// onStage opens a session and waits until its page is there.
func (th *theatre) onStage(tb testing.TB, path string) *browser.Session {
	tb.Helper()
	s := th.open(tb, 800, 600, th.site+path)
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

// eyes look at a page of ours as a person's browser shows it.
type eyes struct {
	t    *testing.T
	send func(method string, params map[string]any) (any, error)
}

// look opens an address of the service in a browser of its own.
func (th *theatre) look(t *testing.T, width, height int, address string) *eyes {
	t.Helper()
	s := th.open(t, width, height, strings.Replace(address, "http://localhost", th.url, 1))
	cdp, err := s.ActivePage().CDP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &eyes{t, cdp.Send}
}

func (e *eyes) ask(method string, params map[string]any) map[string]any {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 20*time.Second)
	defer cancel()
	out, err := browser.Within(ctx, func() (any, error) { return e.send(method, params) })
	if err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
	fields, _ := out.(map[string]any)
	return fields
}

func (e *eyes) value(expression string) any {
	e.t.Helper()
	result := e.ask("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
	if result["exceptionDetails"] != nil {
		e.t.Fatalf("%s: %v", expression, result["exceptionDetails"])
	}
	return result["result"].(map[string]any)["value"]
}

// until waits in the page until an expression is true; every frame it looks
// again.
func (e *eyes) until(expression string) {
	e.t.Helper()
	said := e.value(`new Promise((done) => {
		const end = performance.now() + 15000;
		const look = () => {
			try { if (` + expression + `) return done(""); } catch {}
			if (performance.now() > end) return done(document.body ? document.body.innerText : "no page");
			setTimeout(look, 20);
		};
		look();
	})`)
	if said != "" {
		e.t.Fatalf("never true: %s\nthe page says: %v", expression, said)
	}
}

// clickPicture clicks at a place of the session's viewport, where the picture
// shows it.
func (e *eyes) clickPicture(x, y, width, height int) {
	e.t.Helper()
	at := e.value(fmt.Sprintf(`(() => {
		const box = document.getElementById("screen").getBoundingClientRect(), scale = Math.min(box.width / %[3]d, box.height / %[4]d);
		return [box.left + (box.width - %[3]d * scale) / 2 + %[1]d * scale, box.top + (box.height - %[4]d * scale) / 2 + %[2]d * scale];
	})()`, x, y, width, height)).([]any)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		e.ask("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1})
	}
}

// TestTakeoverWalk is a person's way: the agent asks, the person opens the
// link, sees the page, types and clicks in it, and gives control back.
func TestTakeoverWalk(t *testing.T) {
	th := newTheatre(t)
	s := th.onStage(t, "/")
	at := "/api/agents/default/browser/" + s.ID()
	made := th.must(t, 201, "POST", at+"/takeover", `{"reason":"Please <b>sign in</b>."}`)
	status := func(want string) {
		t.Helper()
		if got := th.must(t, 200, "GET", at+"/takeover/"+made["takeover_id"].(string), "")["status"]; got != want {
			t.Errorf("the takeover is %v, want %s", got, want)
		}
	}
	// A link preview fetches the page and starts nothing.
	address := strings.Replace(made["takeover_url"].(string), "http://localhost", "", 1)
	preview := th.send(t, "GET", address, "")
	if preview.StatusCode != 200 || preview.Header.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(preview.Header.Get("Content-Security-Policy"), "script-src 'self'") {
		t.Errorf("%d %v", preview.StatusCode, preview.Header)
	}
	status("pending")
	th.must(t, 200, "POST", at+"/execute", `{"action":"evaluate","script":"1"}`)

	person := th.look(t, 1000, 800, made["takeover_url"].(string))
	person.until(`document.getElementById("state").textContent === "You are in control" && document.getElementById("screen").dataset.frames > 0`)
	person.until(`document.getElementById("reason").textContent === "Please <b>sign in</b>." && !document.getElementById("takeover").hidden`)
	status("active")
	if s.Status() != agent.SessionTakeover {
		t.Errorf("the session is %s", s.Status())
	}
	if refused := th.must(t, 400, "POST", at+"/execute", `{"action":"evaluate","script":"1"}`); refused["error"].(map[string]any)["code"] != "INVALID_ACTION" {
		t.Errorf("%v", refused)
	}
	person.until(`document.getElementById("address").value === ` + fmt.Sprintf("%q", th.site+"/"))
	person.clickPicture(200, 100, 800, 600)
	for _, letter := range "Ada" {
		person.ask("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": string(letter), "text": string(letter)})
		person.ask("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": string(letter)})
	}
	waitTitle(t, s, "name:Ada")
	person.until(`document.querySelector(".tab.active .name").textContent === "name:Ada"`)
	person.clickPicture(400, 450, 800, 600)
	waitTitle(t, s, "clicked")
	// An address without a scheme, of a server that speaks http.
	person.value(fmt.Sprintf(`(() => { document.getElementById("address").value = %q; document.getElementById("bar").requestSubmit(); })()`,
		strings.TrimPrefix(th.site, "http://")+"/spin"))
	waitTitle(t, s, "Spin")

	person.value(`document.getElementById("done").click()`)
	person.until(`/Thank you/.test(document.getElementById("note").textContent)`)
	status("completed")
	if s.Status() != agent.SessionActive {
		t.Errorf("the session is %s", s.Status())
	}
	th.must(t, 200, "POST", at+"/execute", `{"action":"evaluate","script":"1"}`)
	late := th.look(t, 400, 700, made["takeover_url"].(string))
	late.until(`/takeover is over/.test(document.getElementById("note").textContent)`)
}

// TestLiveViewShowsTextAsText has a page try to get its script into the view.
func TestLiveViewShowsTextAsText(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	s := th.onStage(t, "/evil")
	link := th.must(t, 200, "GET", "/api/agents/default/browser/"+s.ID()+"/live-view", "")
	if until, err := time.Parse(time.RFC3339, link["expires_at"].(string)); err != nil || time.Until(until) < 59*time.Minute {
		t.Errorf("%v", link)
	}
	person := th.look(t, 1000, 700, link["url"].(string))
	person.until(`document.querySelector(".tab.active .name").textContent === "<img src=x onerror=document.title=1>"`)
	person.value(`document.getElementById("console").click()`)
	person.until(`document.getElementById("lines").textContent.includes("<b>bold</b>")`)
	if n := person.value(`document.querySelectorAll("#lines b, .tab .name img").length`); n != 0.0 {
		t.Errorf("%v elements came out of the session's text", n)
	}
	person.value(`document.getElementById("new").click()`)
	person.until(`document.querySelectorAll(".tab").length === 2`)
	person.value(`document.querySelector(".tab .name").click()`)
	person.until(`document.querySelector(".tab").classList.contains("active")`)
	person.value(`document.querySelectorAll(".tab .shut")[1].click()`)
	person.until(`document.querySelectorAll(".tab").length === 1`)
	th.must(t, 200, "DELETE", "/api/agents/default/browser?id="+s.ID(), "")
	person.until(`/session has ended/.test(document.getElementById("note").textContent)`)
}

// ear is a client's end of a socket.
type ear struct {
	t    testing.TB
	conn *websocket.Conn
}

// listen opens a socket; status is what it was answered with when it was refused.
func (th *theatre) listen(tb testing.TB, path string, header http.Header) (e *ear, status int) {
	tb.Helper()
	conn, resp, err := websocket.Dial(tb.Context(), strings.Replace(th.url, "http", "ws", 1)+path, &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		if resp == nil {
			tb.Fatal(err)
		}
		return nil, resp.StatusCode
	}
	conn.SetReadLimit(64 << 20)
	tb.Cleanup(func() { _ = conn.CloseNow() })
	return &ear{tb, conn}, 101
}

func (e *ear) say(messages ...string) {
	e.t.Helper()
	for _, m := range messages {
		if err := e.conn.Write(e.t.Context(), websocket.MessageText, []byte(m)); err != nil {
			e.t.Fatal(err)
		}
	}
}

// hear reads messages until one is as wanted.
func (e *ear) hear(what string, wanted func(m map[string]any, raw []byte) bool) map[string]any {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 20*time.Second)
	defer cancel()
	for {
		_, raw, err := e.conn.Read(ctx)
		if err != nil {
			e.t.Fatalf("waiting for %s: %v", what, err)
		}
		var m map[string]any
		if !bytes.HasPrefix(raw, []byte("[")) {
			if err := json.Unmarshal(raw, &m); err != nil {
				e.t.Fatal(err)
			}
		}
		if wanted(m, raw) {
			return m
		}
	}
}

// closed reads until the server ends the socket.
func (e *ear) closed() websocket.StatusCode {
	e.t.Helper()
	for {
		if _, _, err := e.conn.Read(e.t.Context()); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

func ofType(kind string) func(map[string]any, []byte) bool {
	return func(m map[string]any, _ []byte) bool { return m["type"] == kind }
}

func picture(m map[string]any, _ []byte) bool { return m["type"] == nil && m["data"] != nil }

// TestSteelsDialect speaks to the sockets as Steel's viewer does: a socket that
// tells of tabs, one more for each tab with a second "?" in its address, nested
// events, Enter without text.
func TestSteelsDialect(t *testing.T) {
	th := newTheatre(t)
	s := th.onStage(t, "/")
	tabs, _ := th.listen(t, "/v1/sessions/cast?sessionId="+s.ID(), nil)
	list := tabs.hear("tabs", ofType("tabList"))
	first := list["tabs"].([]any)[0].(map[string]any)
	if first["id"] != first["pageId"] || list["firstTabId"] != first["id"] || first["title"] != "Shop" || first["url"] != th.site+"/" {
		t.Errorf("%v", list)
	}
	frame := tabs.hear("a frame of the active tab", picture)
	for _, field := range []string{"pageId", "url", "title", "favicon", "data"} {
		if _, ok := frame[field].(string); !ok {
			t.Errorf("a frame without %s", field)
		}
	}
	page := first["id"].(string)
	cast, status := th.listen(t, "/v1/sessions/cast?sessionId="+s.ID()+"?pageId="+page, nil)
	if cast == nil {
		t.Fatal(status)
	}
	if got := cast.hear("a frame", picture); got["pageId"] != page {
		t.Errorf("%v", got["pageId"])
	}
	active, _ := th.listen(t, "/v1/sessions/"+s.ID()+"/pageId", nil)
	active.hear("the active tab", func(m map[string]any, _ []byte) bool { return m["pageId"] == page })
	mouse := func(kind string, x, y int) string {
		return fmt.Sprintf(`{"type":"mouseEvent","pageId":%q,"event":{"type":%q,"x":%d,"y":%d,"button":"left","modifiers":0,"clickCount":1}}`, page, kind, x, y)
	}
	cast.say(mouse("mousePressed", 100, 100), mouse("mouseReleased", 100, 100),
		`{"type":"keyEvent","pageId":"`+page+`","event":{"type":"keyDown","text":"h","code":"KeyH","key":"h","keyCode":72}}`,
		`{"type":"keyEvent","pageId":"`+page+`","event":{"type":"keyUp","text":"h","code":"KeyH","key":"h","keyCode":72}}`)
	waitTitle(t, s, "name:h")
	for query, want := range map[string]int{"&pageIndex=7": 404, "&pageIndex=-1": 400, "&pageIndex=x": 400, "&pageId=page-x": 404} {
		if _, status := th.listen(t, "/v1/sessions/cast?sessionId="+s.ID()+query, nil); status != want {
			t.Errorf("%s: %d", query, status)
		}
	}
	single, _ := th.listen(t, "/v1/sessions/cast?sessionId="+s.ID()+"&pageIndex=0", nil)
	if got := single.hear("a frame", picture); got["pageId"] != page {
		t.Errorf("%v", got["pageId"])
	}
	single.say(`{"type":"keyEvent","pageId":"default","event":{"type":"keyDown","text":"i","code":"KeyI","key":"i","keyCode":73}}`)
	waitTitle(t, s, "name:hi")
	cast.say(mouse("mouseMoved", 100, 400), mouse("mousePressed", 100, 400), mouse("mouseReleased", 100, 400))
	waitTitle(t, s, "clicked")
	cast.say(`{"type":"getSelectedText","pageId":"` + page + `"}`)
	if got := cast.hear("the selected text", ofType("selectedTextResponse")); got["pageId"] != page || got["text"] != "" {
		t.Errorf("%v", got)
	}
	logs, _ := th.listen(t, "/v1/sessions/logs?sessionId="+s.ID(), nil)
	cast.say(`{"type":"navigation","pageId":"` + page + `","event":{"url":"` + th.site + `/evil"}}`)
	logs.hear("the console", func(_ map[string]any, raw []byte) bool {
		var entries []map[string]any
		if err := json.Unmarshal(raw, &entries); err != nil {
			t.Fatal(err)
		}
		at, ok := entries[0]["timestamp"].(float64)
		return ok && at > 1e12 && entries[0]["pageId"] == page && entries[0]["level"] == "log" && entries[0]["text"] == "<b>bold</b>"
	})
	recording, _ := th.listen(t, "/v1/sessions/recording?sessionId="+s.ID(), nil)
	recording.hear("a snapshot", func(_ map[string]any, raw []byte) bool {
		return bytes.HasPrefix(raw, []byte("[{")) && bytes.Contains(raw, []byte(`"type":2`))
	})
	tabs.say(`{"type":"newTab"}`)
	two := tabs.hear("two tabs", func(m map[string]any, _ []byte) bool { return m["type"] == "tabList" && len(m["tabs"].([]any)) == 2 })
	active.hear("another active tab", func(m map[string]any, _ []byte) bool { return m["pageId"] == two["activeTabId"] && m["pageId"] != page })
	cast.say(`{"type":"closeTab","pageId":"` + page + `"}`)
	tabs.hear("the closed tab", func(m map[string]any, _ []byte) bool { return m["type"] == "tabClosed" && m["pageId"] == page })
	if code := cast.closed(); code != websocket.StatusNormalClosure {
		t.Errorf("the closed tab's socket ends with %d", code)
	}
	th.must(t, 200, "DELETE", "/api/agents/default/browser?id="+s.ID(), "")
	for name, e := range map[string]*ear{"cast": tabs, "logs": logs, "pageId": active, "recording": recording} {
		if code := e.closed(); code != websocket.StatusNormalClosure {
			t.Errorf("%s ends with %d", name, code)
		}
	}
}

func TestSocketsRefuse(t *testing.T) {
	th := newTheatre(t)
	s, other := th.onStage(t, "/"), th.onStage(t, "/")
	token := func(address string) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("token")
	}
	mine := token(th.server.options.Live.Link(s.ID(), true).URL)
	over := th.must(t, 201, "POST", "/api/agents/default/browser/"+s.ID()+"/takeover", `{}`)
	th.must(t, 200, "POST", "/api/agents/default/browser/"+s.ID()+"/takeover/"+over["takeover_id"].(string)+"/complete", "")
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
		if _, status := th.listen(t, tc.path, tc.header); status != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, status, tc.want)
		}
	}
	if plain := th.send(t, "GET", "/v1/sessions/cast?sessionId="+s.ID(), ""); plain.StatusCode != 400 {
		t.Errorf("without an upgrade: %d", plain.StatusCode)
	}
	if forged := th.send(t, "POST", "/live/"+s.ID()+"/complete?token="+mine, ""); forged.StatusCode != 403 {
		t.Errorf("the button without a takeover: %d", forged.StatusCode)
	}
}

// TestViewersOnlyWatch closes the server and comes with keys of each role.
func TestViewersOnlyWatch(t *testing.T) {
	th := newTheatre(t)
	s := th.onStage(t, "/")
	key := func(role, agents string) string {
		t.Helper()
		return th.must(t, 201, "POST", "/api/keys", `{"name":"k","role":"`+role+`","agents":`+agents+`}`)["key"].(string)
	}
	elsewhere := th.must(t, 201, "POST", "/api/agents", `{"name":"elsewhere"}`)["id"].(string)
	admin := key("admin", `["*"]`)
	th.header.Set("X-API-Key", admin)
	watcher, foreign := key("viewer", `["default"]`), key("admin", `["`+elsewhere+`"]`)
	for name, want := range map[string]int{"": 403, foreign: 403, "satchel_wrong": 401, watcher: 101} {
		if _, status := th.listen(t, "/v1/sessions/pageId?sessionId="+s.ID()+"&token="+name, nil); status != want {
			t.Errorf("key %.12q: %d, want %d", name, status, want)
		}
	}
	link := (&visitor{url: th.url, folder: th.folder, header: http.Header{"X-Api-Key": {watcher}}}).must(t, 200, "GET", "/api/agents/default/browser/"+s.ID()+"/live-view", "")
	u, err := url.Parse(link["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{"key": watcher, "link": u.Query().Get("token")} {
		e, status := th.listen(t, "/v1/sessions/cast?sessionId="+s.ID()+"&token="+token, nil)
		if e == nil {
			t.Fatalf("%s: %d", name, status)
		}
		e.hear("a frame", picture)
		e.say(`{"type":"newTab"}`, `{"type":"mouseEvent","event":"mousePressed","x":100,"y":400}`, `{"type":"mouseEvent","event":"mouseReleased","x":100,"y":400}`)
	}
	act, _ := th.listen(t, "/v1/sessions/cast?sessionId="+s.ID()+"&token="+admin, nil)
	act.say(`{"type":"mouseEvent","event":"mousePressed","x":100,"y":100}`, `{"type":"mouseEvent","event":"mouseReleased","x":100,"y":100}`, `{"type":"keyEvent","event":"keyDown","key":"x"}`)
	waitTitle(t, s, "name:x") // and not "clicked"
	if n := len(s.Pages()); n != 1 {
		t.Errorf("a viewer opened a tab: %d", n)
	}
}

// TestSocketAttacks sends what no client should; honest ones do not notice.
func TestSocketAttacks(t *testing.T) {
	th := newTheatre(t)
	s := th.onStage(t, "/spin")
	cast := "/v1/sessions/cast?sessionId=" + s.ID()
	honest, _ := th.listen(t, cast, nil)
	honest.hear("a frame", picture)

	garbage, _ := th.listen(t, cast, nil)
	garbage.say("", "null", "[]", `"x"`, "{", strings.Repeat("[", 10000), `{"type":7}`, `{"type":"mouseEvent","event":[],"x":"a"}`, `{"type":"mouseEvent","event":"mouseMoved","x":1e400,"y":0}`,
		`{"type":"keyEvent","event":{"type":"keyDown","key":null}}`, `{"type":"navigation","url":"file:///etc/passwd"}`, `{"type":"navigation","url":"javascript:alert(1)"}`, `{"type":"closeTab","pageId":"page-x"}`)
	if err := garbage.conn.Write(t.Context(), websocket.MessageBinary, bytes.Repeat([]byte{0xff}, 1000)); err != nil {
		t.Fatal(err)
	}
	garbage.say(`{"type":"newTab"}`)
	garbage.hear("an answer after garbage", func(m map[string]any, _ []byte) bool { return m["type"] == "tabList" && len(m["tabs"].([]any)) == 2 })
	garbage.say(`{"type":"closeTab"}`)
	if got := s.Pages()[0].URL(); got != th.site+"/spin" {
		t.Errorf("garbage led to %s", got)
	}

	large, _ := th.listen(t, cast, nil)
	_ = large.conn.Write(t.Context(), websocket.MessageText, bytes.Repeat([]byte("x"), maxMessage+1)) // it may be cut off while it writes
	if code := large.closed(); code != websocket.StatusMessageTooBig {
		t.Errorf("too large a message ends with %d", code)
	}

	flood, _ := th.listen(t, cast, nil)
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
		honest.hear("frames beside a flood", picture)
	}
	stop()
	<-flooded
}

// TestDeadSockets are dropped: those that answer no ping, and those that do
// not read.
func TestDeadSockets(t *testing.T) {
	th := newTheatre(t)
	th.server.pingEvery = 50 * time.Millisecond
	s := th.onStage(t, "/")
	// A client of this library answers pings only while it reads.
	dead, _ := th.listen(t, "/v1/sessions/pageId?sessionId="+s.ID(), nil)
	alive, _ := th.listen(t, "/v1/sessions/pageId?sessionId="+s.ID(), nil)
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		alive.closed()
	}()
	left := func() int {
		th.server.sockets.mu.Lock()
		defer th.server.sockets.mu.Unlock()
		return th.server.sockets.n
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
	th.server.Stop()
	<-reading
	if left() != 0 {
		t.Error("a socket outlives the server")
	}
}
