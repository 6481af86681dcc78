package browser

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/browser/install/installtest"
)

// TestRender reads pages that are built by scripts.
func TestRender(t *testing.T) {
	t.Parallel()
	installtest.Need(t)
	b, err := sharedBrowser()
	if err != nil {
		t.Fatal(err)
	}
	home := serveSite(t, map[string]string{
		"/late": `<body><script>fetch("/data").then(r => r.text()).then(t => { document.body.append("fetched ` +
			`" + t.length) })</script>`,
		"/data": "12345",
		"/big":  `<body><script>document.body.append("x".repeat(11 << 20))</script>`,
		"/loud": `<body><script>alert("one"); confirm("two"); document.body.append("after the questions")</script>`,
		"/rtc":  `<body><script>document.body.append(typeof RTCPeerConnection)</script>`,
	})
	page, err := b.Render(t.Context(), home+"/late")
	if err != nil || page.Status != 200 || page.Final != home+"/late" || !strings.Contains(page.HTML, "fetched 20") {
		t.Errorf("got %+v, %v", page, err)
	}
	if page, err := b.Render(t.Context(), home+"/loud"); err != nil ||
		!strings.Contains(page.HTML, "after the questions") {
		t.Errorf("got %+v, %v", page, err)
	}
	if page, err := b.Render(t.Context(), home+"/rtc"); err != nil || !strings.Contains(page.HTML, "undefined") {
		t.Errorf("got %+v, %v", page, err)
	}
	if page, err := b.Render(t.Context(), home+"/none"); err != nil || page.Status != 404 {
		t.Errorf("got %+v, %v", page, err)
	}
	if _, err := b.Render(t.Context(), home+"/big"); agent.ErrorCode(err) != agent.CodeFileTooLarge {
		t.Errorf("11 MB of HTML: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Render(ctx, home+"/late"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before it started: %v", err)
	}
}

// TestRenderBlocksPrivateAddresses: neither the URL nor what it redirects to or loads
// may be a private address.
func TestRenderBlocksPrivateAddresses(t *testing.T) {
	t.Parallel()
	installtest.Need(t)
	b, err := sharedBrowser()
	if err != nil {
		t.Fatal(err)
	}
	inward := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	}))
	defer inward.Close()
	for _, address := range []string{
		"http://10.0.0.1/",
		"http://[::1]/",
		inward.URL + "/?to=http://169.254.169.254/",
		inward.URL + "/?to=http://[fd00::1]/",
	} {
		var refused *egress.Error
		if page, err := b.Render(t.Context(), address); !errors.As(err, &refused) ||
			refused.Code != egress.CodeBlocked {
			t.Errorf("%s: %+v, %v", address, page, err)
		}
	}
	for _, address := range []string{
		"file:///etc/passwd",
		"chrome://version",
		"view-source:" + inward.URL,
		"about:blank",
	} {
		if page, err := b.Render(t.Context(), address); err == nil {
			t.Errorf("%s was opened: %.100s", address, page.HTML)
		}
	}
	page := `<body><iframe src="file:///etc/passwd"></iframe><iframe src="http://127.0.0.2:1/"></iframe>
		<script>fetch("http://10.0.0.1/").catch(() => document.body.append("kept out"))</script>`
	if got, err := b.Render(t.Context(), serveSite(t, map[string]string{"/": page})+"/"); err != nil ||
		!strings.Contains(got.HTML, "</script>kept out") {
		t.Errorf("got %+v, %v", got, err)
	}
}
