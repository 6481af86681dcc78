package live

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/testenv"
	"satchel/browser"
	"satchel/browser/install/installtest"
	"satchel/store"
)

// TestMain is also the entry point of the child processes that start the driver and
// Chromium.
func TestMain(m *testing.M) {
	if browser.RunChild(os.Args) {
		return
	}
	os.Exit(testenv.Run(m))
}

// findBrowser finds the browser.
func findBrowser(context.Context) (browser.Program, error) {
	p, err := installtest.Find()
	return browser.Program{Chromium: p.Chromium, Driver: p.Driver, Environment: os.Environ()}, err
}

// testServer is a server's browser and one site that it may reach.
type testServer struct {
	folder  *store.Folder
	db      *store.DB
	browser *browser.Browser
	live    *Live
	site    *httptest.Server
}

func newTestServer(t testing.TB, pages map[string]string) *testServer {
	t.Helper()
	installtest.Need(t)
	folder, err := store.Open(store.Options{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	ts := &testServer{folder: folder, db: folder.Default()}
	ts.browser = browser.New(browser.Options{
		Env:  store.Env{Folder: folder, Allow: agent.MustAddressRanges("127.0.0.1/32")},
		Find: findBrowser,
	})
	ts.live = New(Options{Browser: ts.browser, PublicURL: "http://satchel.test"})
	for _, w := range []interface {
		Start(context.Context) error
		Stop()
	}{ts.browser, ts.live} {
		if err := w.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	ts.site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if strings.HasSuffix(r.URL.Path, ".png") {
			w.Header().Set("Content-Type", "image/png")
		} else {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(ts.site.Close)
	return ts
}

// openSession opens a session at a page of the site.
func (ts *testServer) openSession(t testing.TB, path string) *browser.Session {
	t.Helper()
	row, err := ts.browser.Create(t.Context(), ts.db, agent.SessionOptions{
		Viewport: &agent.Viewport{Width: 800, Height: 600},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := ts.browser.Session(ts.db, row.ID)
	if err != nil {
		t.Fatal(err)
	}
	changed, end := s.Changes()
	defer end()
	if err := s.ActivePage().Navigate(t.Context(), ts.site.URL+path); err != nil {
		t.Fatal(err)
	}
	for s.ActivePage().Title() == "" {
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal(path, "has no title")
		}
	}
	return s
}

// viewerMessage is a message of any type to a viewer.
type viewerMessage struct {
	Type, PageID, URL, Title, Favicon, Data, Text string
	Tabs                                          []tab
	FirstTabID, ActiveTabID                       string
	Status                                        agent.SessionStatus
	Takeover                                      *takeoverState
}

// waitFor reads messages until wanted returns true for one.
func (v *Viewer) waitFor(t testing.TB, what string, wanted func(viewerMessage) bool) viewerMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var last viewerMessage
	for {
		raw, err := v.Next(ctx)
		if err != nil {
			last.Data = ""
			t.Fatalf("waiting for %s: %v; the last message was %+v", what, err, last)
		}
		last = viewerMessage{}
		if err := json.Unmarshal(raw, &last); err != nil {
			t.Fatalf("%v in %.200s", err, raw)
		}
		if wanted(last) {
			return last
		}
	}
}

// waitEnd reads messages until io.EOF.
func (v *Viewer) waitEnd(t testing.TB) {
	t.Helper()
	for {
		if _, err := v.Next(t.Context()); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func (ts *testServer) newViewer(t testing.TB, s *browser.Session, w Watch) *Viewer {
	t.Helper()
	v, err := ts.live.Watch(s, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// size returns the size of a frame's image.
func (m viewerMessage) size(t testing.TB) image.Point {
	t.Helper()
	c, _, err := image.DecodeConfig(base64.NewDecoder(base64.StdEncoding, strings.NewReader(m.Data)))
	if err != nil {
		t.Fatal(err)
	}
	return image.Pt(c.Width, c.Height)
}

func isFrame(m viewerMessage) bool { return m.Type == "" && m.Data != "" }

// send sends messages as a person's socket does.
func (h *Controller) send(t testing.TB, messages ...string) []byte {
	t.Helper()
	var answer []byte
	for _, m := range messages {
		in, err := ParseInput([]byte(m))
		if err != nil {
			t.Fatalf("%s: %v", m, err)
		}
		if answer, err = h.Do(t.Context(), in); err != nil {
			t.Fatalf("%s: %v", m, err)
		}
	}
	return answer
}
