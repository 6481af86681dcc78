package browser

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"satchel/agent"
)

// newForbiddenServer starts a server on an address that pages must not reach.
func newForbiddenServer(t *testing.T) (url string, hits *atomic.Int64) {
	t.Helper()
	hits = new(atomic.Int64)
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{
		Listener: listener,
		Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			hits.Add(1)
			w.Header().Set("Access-Control-Allow-Origin", "*")
			fmt.Fprint(w, "secret")
		})},
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, hits
}

// TestWhatPagesCannotReach requests forbidden addresses in every possible way.
func TestWhatPagesCannotReach(t *testing.T) {
	t.Parallel()
	secret, hits := newForbiddenServer(t)
	s := open(t, agent.SessionOptions{})
	udp, packets := udpServer(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, secret, http.StatusFound)
		case "/refresh":
			fmt.Fprintf(w, `<meta http-equiv="refresh" content="0;url=%s">`, secret)
		case "/frames":
			fmt.Fprintf(
				w,
				`<iframe src="%s"></iframe><iframe src="file:///etc/passwd"></iframe><img src="%[1]s">`+
					`<script src="%[1]s"></script><link rel=preconnect href="%[1]s"><link rel=prefetch href="%[1]s">`,
				secret,
			)
		default:
			fmt.Fprint(w, "<title>here</title>")
		}
	}))
	t.Cleanup(web.Close)
	for _, url := range []string{
		secret, "file:///etc/passwd", "chrome://version", "view-source:" + web.URL,
		"devtools://devtools/bundled/inspector.html", "chrome-extension://x/y", "javascript:alert(1)",
		"data:text/html,x", "ftp://127.0.0.1/", "http://169.254.169.254/", "http://2130706433/",
		"http://[::ffff:127.0.0.2]/", "http://user:pass@127.0.0.1/", "http:///", " ", web.URL + "/redirect",
	} {
		if _, err := do(
			t,
			s,
			`{"action":"navigate","url":"`+url+`"}`,
		); agent.ErrorCode(err) != agent.CodeInvalidAction {
			t.Errorf("navigate to %s: %v", url, err)
		}
	}
	if err := s.ActivePage().Navigate(
		t.Context(),
		"file:///etc/passwd",
	); agent.ErrorCode(err) != agent.CodeInvalidAction {
		t.Errorf("a person navigates to a file: %v", err)
	}
	for _, path := range []string{"/refresh", "/frames"} {
		must(t, s, `{"action":"navigate","url":"`+web.URL+path+`","wait_until":"networkidle"}`)
	}
	if text := must(
		t,
		s,
		`{"action":"evaluate","script":"return [...document.querySelectorAll('iframe')].map(f => { try { return `+
			`f.contentDocument?.body.innerText } catch (e) { return '' } }).join()"}`,
	); strings.Contains(fmt.Sprint(text["value"]), "root:") {
		t.Errorf("a frame shows a file: %v", text)
	}
	must(t, s, `{"action":"navigate","url":"`+web.URL+`/"}`)
	for name, script := range map[string]string{
		"fetch": `fetch("` + secret + `").then(r => r.ok)`,
		"beacon": `(navigator.sendBeacon("` + secret + `"), fetch("` + secret +
			`", {mode: "no-cors", keepalive: true})).then(() => false)`,
		"file": `fetch("file:///etc/passwd").then(() => true)`,
		"socket": `new Promise(done => { const s = new WebSocket("` + strings.Replace(secret, "http", "ws", 1) +
			`"); s.onopen = () => done(true); s.onerror = () => done(false) })`,
		"events": `new Promise(done => { const s = new EventSource("` + secret +
			`"); s.onopen = () => done(true); s.onerror = () => done(false) })`,
		"worker": `new Promise(done => { const w = new Worker(URL.createObjectURL(new Blob(["fetch('` + secret +
			`').then(r => postMessage(r.ok), () => postMessage(false))"]))); w.onmessage = e => done(e.data) })`,
		"WebRTC": `"RTCPeerConnection" in globalThis`,
		"frame RTC": `(() => { const f = document.createElement("iframe"); document.body.append(f); ` +
			`return "RTCPeerConnection" in f.contentWindow })()`,
		"window": `(open("file:///etc/passwd"), open("chrome://version"), open("view-source:` +
			web.URL + `"), false)`,
		"STUN": `(() => { try { const c = new webkitRTCPeerConnection({iceServers: [{urls: "stun:` + udp +
			`"}]}); c.createDataChannel("x"); return c.createOffer().then(o => c.setLocalDescription(o)).then(() => ` +
			`new Promise(done => setTimeout(() => done(false), 300))) } catch { return false } })()`,
	} {
		result, err := do(t, s, `{"action":"evaluate","script":`+quoted(script)+`,"timeout":20000}`)
		if err == nil && result["value"] != false {
			t.Errorf("%s: %v", name, result["value"])
		} else if err != nil && agent.ErrorCode(err) != agent.CodeInvalidAction {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, p := range s.Pages() {
		if strings.HasPrefix(p.URL(), "file:") ||
			strings.HasPrefix(p.URL(), "chrome:") ||
			strings.HasPrefix(p.URL(), "view-source:") {
			t.Errorf("a tab is at %s", p.URL())
		}
	}
	if hits.Load() != 0 || packets.Load() != 0 {
		t.Errorf("the forbidden server was reached %d times, the UDP server %d times", hits.Load(), packets.Load())
	}
}

func quoted(script string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(script) + `"`
}

func udpServer(t *testing.T) (addr string, packets *atomic.Int64) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	packets = new(atomic.Int64)
	go func() {
		buf := make([]byte, 2000)
		for {
			if _, _, err := conn.ReadFrom(buf); err != nil {
				return
			}
			packets.Add(1)
		}
	}()
	return conn.LocalAddr().String(), packets
}

// A page that opens tabs endlessly does not affect other sessions.
func TestManyTabs(t *testing.T) {
	t.Parallel()
	s := open(t, agent.SessionOptions{})
	url := serveSite(t, map[string]string{
		"/": `<title>storm</title><a id=a onclick="for (let i = 0; i < 60; i++) open('/x' + i)">go</a>`,
	})
	must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
	page := s.ActivePage()
	if _, err := do(t, s, `{"action":"evaluate","script":"for (let i = 0; i < 40; i++) open('/x' + i)"}`); err != nil {
		t.Fatal(err)
	}
	s.waitFor(t, "many tabs", func() bool { return len(s.Pages()) == MaxPages })
	for len(s.context.Pages()) > MaxPages { // ends with the test's timeout at the latest
		if err := s.chromium.sendHeartbeat(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := must(
		t,
		s,
		`{"action":"evaluate","script":"document.title","page_id":"`+page.ID()+`"}`,
	); got["value"] != "storm" {
		t.Errorf("afterwards: %v", got)
	}
}

func TestDialogsAreAnswered(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{"accept": "true,,undefined", "dismiss": "false,null,undefined"} {
		s := open(t, agent.SessionOptions{Dialogs: answer})
		if got := must(
			t,
			s,
			`{"action":"evaluate","script":"[confirm('sure?'), prompt('name?'), alert('hey')].map(v => v === null ? `+
				`'null' : String(v)).join()"}`,
		); got["value"] != want {
			t.Errorf("%s: %v, want %s", answer, got["value"], want)
		}
		logs := s.Logs(0)
		if len(logs) != 3 ||
			logs[0].Text != "confirm: sure?" ||
			logs[0].PageID != s.ActivePage().ID() ||
			logs[0].Level != "info" {
			t.Errorf("the console: %+v", logs)
		}
	}
}

func TestConsoleIsKeptAndBounded(t *testing.T) {
	t.Parallel()
	s := open(t, agent.SessionOptions{})
	added := s.LogAdded()
	must(
		t,
		s,
		`{"action":"evaluate","script":"console.warn('careful', {a: 1}); setTimeout(() => { `+
			`throw new Error('lost') })"}`,
	)
	<-added
	for len(s.Logs(0)) < 2 {
		<-s.LogAdded()
	}
	logs := s.Logs(0)
	if logs[0].Level != "warn" ||
		!strings.HasPrefix(logs[0].Text, "careful") ||
		logs[1].Level != "error" ||
		!strings.Contains(logs[1].Text, "lost") {
		t.Errorf("the console: %+v", logs)
	}
	for range 3 * maxLogEntries {
		s.console.add("p", "log", strings.Repeat("x", 2*maxLogText))
	}
	logs = s.Logs(0)
	if len(logs) > maxLogEntries ||
		len(logs[0].Text) > maxLogText+len("…") ||
		logs[len(logs)-1].Seq != 3*maxLogEntries+2 ||
		len(s.Logs(logs[0].Seq)) != len(logs)-1 {
		t.Errorf("%d lines, the first has %d bytes", len(logs), len(logs[0].Text))
	}
}
