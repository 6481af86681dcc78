package apitest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"satchel/agent"
	"satchel/browser"
	"satchel/browser/install/installtest"
	"satchel/store"
)

// Chromium finds Chromium and its driver.
func Chromium(context.Context) (browser.Program, error) {
	p, err := installtest.Find()
	return browser.Program{
		Chromium:    p.Chromium,
		Driver:      p.Driver,
		Environment: os.Environ(),
	}, err
}

// sitePages are the pages of the site, by path.
var sitePages = map[string]string{
	"/": `<title>Shop</title><body style="margin:0"><input autofocus id=name style="position:absolute;left:0;top:0;width:400px;height:200px;font-size:60px" oninput="document.title='name:'+value">
<div onclick="document.title='clicked'" style="position:absolute;left:0;top:300px;width:800px;height:300px;background:#36c"></div>`,
	"/evil": `<title><img src=x onerror=document.title=1></title><body style="background:#c00">` +
		`<script>console.log('<b>bold</b>')</script>`,
	"/fields": `<title>Fields</title><select style="position:absolute;left:100px;top:100px;width:200px;height:40px" ` +
		`onchange="document.title = 'chose ' + this.value"><option>apple<option>lemon<option>plum</select>` +
		`<input type=date style="position:absolute;left:100px;top:300px;width:200px;height:40px" ` +
		`onchange="document.title = this.value">`,
	"/spin": `<title>Spin</title><style>@keyframes s{to{transform:rotate(1turn)}}div{width:300px;height:300px;` +
		`background:linear-gradient(red,blue);animation:s 1s linear infinite}</style><div></div>`,
}

// NewSite serves a small shop whose pages sessions may visit, and returns its address: /
// has a field and an area that set the title, /evil has markup in its texts, and /spin
// never stops changing.
func NewSite(tb testing.TB) string {
	tb.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, sitePages[r.URL.Path])
	}))
	tb.Cleanup(site.Close)
	return site.URL
}

// OpenSession opens a session of the default agent at an address.
func (p Parts) OpenSession(tb testing.TB, width, height int, address string) *browser.Session {
	tb.Helper()
	return p.OpenSessionOf(tb, p.Folder.Default(), width, height, address)
}

// OpenSessionOf opens a session of an agent at an address, and ends it with the test.
func (p Parts) OpenSessionOf(tb testing.TB, db *store.DB, width, height int, address string) *browser.Session {
	tb.Helper()
	session := p.StartSession(tb, db, width, height)
	tb.Cleanup(func() {
		_, _ = p.Browser.Close(context.Background(), db, session.ID())
	})
	if err := session.ActivePage().Navigate(tb.Context(), address); err != nil {
		tb.Fatal(err)
	}
	return session
}

// StartSession starts a session of an agent that the caller ends.
func (p Parts) StartSession(tb testing.TB, db *store.DB, width, height int) *browser.Session {
	tb.Helper()
	installtest.Need(tb)
	row, err := p.Browser.Create(tb.Context(), db, agent.SessionOptions{
		Viewport: &agent.Viewport{Width: width, Height: height},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return p.Browser.Find(row.ID)
}

// OpenLoaded opens a session of the default agent at an address and waits until its page
// has a title.
func (p Parts) OpenLoaded(tb testing.TB, address string) *browser.Session {
	tb.Helper()
	return p.OpenLoadedOf(tb, p.Folder.Default(), address)
}

// OpenLoadedOf is OpenLoaded for any agent.
func (p Parts) OpenLoadedOf(tb testing.TB, db *store.DB, address string) *browser.Session {
	tb.Helper()
	s := p.OpenSessionOf(tb, db, 800, 600, address)
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

// WaitTitle waits until the session's page has a title.
func WaitTitle(t *testing.T, session *browser.Session, title string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changed, end := session.Changes()
	defer end()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for session.ActivePage().Title() != title {
		select {
		case <-changed:
		case <-ticker.C:
			session.ActivePage().RefreshTitle()
		case <-ctx.Done():
			t.Fatalf("the title is %q, want %q", session.ActivePage().Title(), title)
		}
	}
}
