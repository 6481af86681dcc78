package browser

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"satchel/agent"
	"satchel/browser/install/installtest"
)

// startRemote starts a Chromium that listens for connections, and returns the address
// of its debugging port.
func startRemote(t *testing.T) (chromium *exec.Cmd, address string) {
	t.Helper()
	p := installtest.Need(t)
	chromium = exec.Command(
		p.Chromium, "--headless", "--no-sandbox", "--disable-gpu",
		"--remote-debugging-port=0",
		"--user-data-dir="+t.TempDir(),
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
		"--webrtc-ip-handling-policy=disable_non_proxied_udp",
	)
	out, err := chromium.StderrPipe()
	if err == nil {
		err = chromium.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = chromium.Process.Kill()
		_ = chromium.Wait() // it was killed
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, socket, ok := strings.Cut(lines.Text(), "DevTools listening on "); ok {
			u, err := url.Parse(socket)
			if err != nil {
				t.Fatal(err)
			}
			return chromium, "http://" + u.Host
		}
	}
	t.Fatal("Chromium did not start")
	return nil, ""
}

// guardedEndpoint forwards connections that have credentials in the user information
// and in the query.
func guardedEndpoint(t *testing.T, to string) string {
	t.Helper()
	e, err := discover(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{
		ErrorLog: log.New(io.Discard, "", 0),
		Rewrite:  func(p *httputil.ProxyRequest) { p.Out.URL, p.Out.Host = e.address, e.host },
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "pool" ||
			password != "user-secret" ||
			r.URL.Query().Get("token") != "query-secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "http://", "ws://pool:user-secret@", 1) + "/devtools?token=query-secret"
}

// newRemoteSite serves a page, a WebSocket, a request for proxy credentials and a download.
func newRemoteSite(t *testing.T) (address string, leaked *atomic.Bool) {
	t.Helper()
	leaked = new(atomic.Bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Proxy-Authorization") != "" {
			leaked.Store(true)
		}
		switch r.URL.Path {
		case "/socket":
			sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
			w.Header().Set("Upgrade", "websocket")
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Sec-WebSocket-Accept", base64.StdEncoding.EncodeToString(sum[:]))
			w.WriteHeader(http.StatusSwitchingProtocols)
		case "/private":
			w.Header().Set("WWW-Authenticate", `Basic realm="satchel"`)
			w.WriteHeader(http.StatusUnauthorized)
		case "/proxy":
			w.WriteHeader(http.StatusProxyAuthRequired)
		case "/file":
			w.Header().Set("Content-Disposition", "attachment; filename=loaf.txt")
			fmt.Fprint(w, "rye")
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!doctype html><title>bakery</title><a href=/file download>rye</a>")
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, leaked
}

// Sessions in a Chromium on another machine are like those on this server: isolated
// from each other, and under the rules of agent/egress.
func TestRemoteBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a Chromium of its own")
	}
	t.Parallel()
	chromium, address := startRemote(t)
	guarded := guardedEndpoint(t, address)
	b, db := newBrowser(t, func(o *Options) { o.Remote = Remote{URL: guarded, ProxyAddr: "127.0.0.1:0"} })
	s, other := openIn(t, b, db, agent.SessionOptions{}), openIn(t, b, db, agent.SessionOptions{})
	site, leaked := newRemoteSite(t)
	secret, hits := newForbiddenServer(t)
	for _, each := range []*Session{s, other} {
		must(t, each, `{"action":"navigate","url":"`+site+`/"}`)
	}
	must(t, s, `{"action":"evaluate","script":"document.cookie = 'login=whale-song'"}`)
	for script, want := range map[string]any{
		`fetch("/proxy").then(r => r.status)`: float64(502), // and its credentials are still used
		`document.title`:                      "bakery",
		`document.cookie`:                     "login=whale-song",
		`new Promise(done => { const s = new WebSocket("` + strings.Replace(site, "http", "ws", 1) +
			`/socket"); s.onopen = () => done(true); s.onerror = () => done(false) })`: true,
		// gets no answer
		`fetch("/private", {signal: AbortSignal.timeout(300)}).then(r => r.status, () => "asks")`:  "asks",
		`fetch("` + secret + `").then(r => true, () => false)`:                                     false,
		`fetch("` + secret + `", {mode: "no-cors"}).then(r => r.status, () => false)`:              float64(0),
		`fetch("` + strings.Replace(site, "http", "https", 1) + `").then(() => true, () => false)`: false,
		`fetch("http://` + b.port.Addr().String() + `/").then(r => r.status, () => "refused")`:     "refused",
		`"RTCPeerConnection" in globalThis`:                                                        false,
	} {
		if got := must(
			t,
			s,
			`{"action":"evaluate","script":`+quoted(script)+`}`,
		); fmt.Sprint(got["value"]) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", script, got["value"], want)
		}
	}
	if got := must(t, other, `{"action":"evaluate","script":"document.cookie"}`); got["value"] != "" {
		t.Errorf("the cookie of another session: %v", got["value"])
	}
	for _, bad := range []string{secret, "file:///etc/passwd", "http://169.254.169.254/"} {
		if _, err := do(
			t,
			s,
			`{"action":"navigate","url":"`+bad+`"}`,
		); agent.ErrorCode(err) != agent.CodeInvalidAction {
			t.Errorf("navigate to %s: %v", bad, err)
		}
	}
	must(t, s, `{"action":"click","selector":"a"}`)
	if _, err := do(t, s, `{"action":"wait","download":true}`); err == nil ||
		!strings.Contains(err.Error(), "does not hand over") {
		t.Errorf("a download: %v", err)
	}
	if page, err := b.Render(t.Context(), site+"/"); err != nil || !strings.Contains(page.HTML, "bakery") {
		t.Errorf("a rendered page: %+v, %v", page, err)
	}
	if hits.Load() != 0 || leaked.Load() {
		t.Errorf(
			"the forbidden server was reached %d times; credentials reached a site: %v",
			hits.Load(),
			leaked.Load(),
		)
	}
	if err := chromium.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	s.end("") // waits for the end in progress
	row, err := b.Describe(t.Context(), db, s.ID())
	if err != nil || row.Status != agent.SessionFailed || row.Error != "the connection to the remote browser was lost" {
		t.Errorf("after the connection was lost: %+v, %v", row, err)
	}
	if _, err := b.Create(t.Context(), db, agent.SessionOptions{}); agent.ErrorCode(err) != agent.CodeBrowser ||
		strings.Contains(fullText(err), "secret") {
		t.Errorf("a session without the browser: %v", fullText(err))
	}
}

// fullText returns the texts of an error and its causes.
func fullText(err error) string {
	var text strings.Builder
	for ; err != nil; err = unwrap(err) {
		fmt.Fprintln(&text, err)
	}
	return text.String()
}

func unwrap(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return nil
}

// Errors about an endpoint do not contain its credentials.
func TestRemoteAddressStaysSecret(t *testing.T) {
	t.Parallel()
	wrong := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(wrong.Close)
	for _, address := range []string{
		"http://u:user-secret@" + strings.TrimPrefix(wrong.URL, "http://") + "/?token=query-secret",
		"http://u:user-secret@127.0.0.1:1/?token=query-secret",
		"http://u:user-secret@nowhere.invalid/?token=query-secret",
	} {
		if _, err := discover(context.Background(), address); err == nil || strings.Contains(fullText(err), "secret") {
			t.Errorf("got error %v", fullText(err))
		}
	}
}
