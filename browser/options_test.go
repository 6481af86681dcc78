package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"satchel/agent"
)

func TestOptionsReachThePage(t *testing.T) {
	t.Parallel()
	window := false
	s := open(t, agent.SessionOptions{
		Headless:  &window,
		Viewport:  &agent.Viewport{Width: 700, Height: 500},
		UserAgent: "Loaf/1.0",
		Locale:    "de-DE",
		Timezone:  "Asia/Tokyo",
	})
	url := serveSite(t, map[string]string{"/": "<title>x</title>"})
	must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
	got := must(
		t,
		s,
		`{"action":"evaluate","script":"[innerWidth, innerHeight, navigator.userAgent, navigator.language, `+
			`Intl.DateTimeFormat().resolvedOptions().timeZone].join()"}`,
	)
	if got["value"] != "700,500,Loaf/1.0,de-DE,Asia/Tokyo" || s.chromium.headless {
		t.Errorf("the page sees %v", got["value"])
	}
	if _, err := do(t, s, `{"action":"pdf"}`); agent.ErrorCode(err) != agent.CodeInvalidAction {
		t.Errorf("a PDF of a session with windows: %v", err)
	}
	if got := must(t, s, `{"action":"screenshot"}`); !strings.HasPrefix(fmt.Sprint(got["image"]), "data:image/png") {
		t.Error("no screenshot of a session with windows")
	}
}

// The references in a snapshot can be used as selectors.
func TestSnapshotNamesElements(t *testing.T) {
	t.Parallel()
	s := open(t, agent.SessionOptions{})
	url := serveSite(t, map[string]string{"/": `<button onclick="document.title = 'pressed'">Press me</button>`})
	must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
	text := fmt.Sprint(must(t, s, `{"action":"snapshot"}`)["text"])
	_, rest, found := strings.Cut(text, `button "Press me" [ref=`)
	ref, _, _ := strings.Cut(rest, "]")
	if !found {
		t.Fatalf("the snapshot: %s", text)
	}
	if got := must(t, s, `{"action":"click","selector":"aria-ref=`+ref+`"}`); got["title"] != "pressed" {
		t.Errorf("a click by reference: %v", got)
	}
}

func TestSessionsOwnProxy(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, password, ok := proxyUser(r); !ok || name != "ada" || password != "secret" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		requests.Add(1)
		fmt.Fprint(w, "<title>by proxy to "+r.URL.Host+"</title>")
	}))
	t.Cleanup(proxy.Close)
	s := open(t, agent.SessionOptions{
		Proxy: &agent.SessionProxy{Server: proxy.URL, Username: "ada", Password: "secret"},
	})
	if got := must(
		t,
		s,
		`{"action":"navigate","url":"http://shop.example/"}`,
	); got["title"] != "by proxy to shop.example" ||
		requests.Load() == 0 {
		t.Errorf("by the session's proxy: %v", got)
	}
	b, db := ownAgent(t, "proxied")
	for _, server := range []string{
		"", "http://10.0.0.1:3128", "socks5://127.0.0.1:1", "https://127.0.0.1:1", "http://a:b@127.0.0.1:1",
	} {
		if _, err := b.Create(t.Context(), db, agent.SessionOptions{
			Proxy: &agent.SessionProxy{Server: server},
		}); agent.ErrorCode(err) != agent.CodeValidation {
			t.Errorf("the proxy %q: %v", server, err)
		}
	}
}

// proxyUser reads the proxy credentials of a request.
func proxyUser(r *http.Request) (name, password string, ok bool) {
	as := &http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	return as.BasicAuth()
}
