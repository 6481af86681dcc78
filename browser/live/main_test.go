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
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/browser"
	"satchel/browser/install"
	"satchel/store"
)

// TestMain is also the driver and Chromium's first breath.
func TestMain(m *testing.M) {
	if browser.RunChild(os.Args) {
		return
	}
	os.Exit(m.Run())
}

// findBrowser gets the browser where there is none.
func findBrowser(ctx context.Context) (browser.Program, error) {
	p, err := install.Ready(ctx, install.Options{Getenv: os.Getenv})
	return browser.Program{Chromium: p.Chromium, Driver: p.Driver, Environment: os.Environ()}, err
}

// stage is a server's browser with one site that it may reach.
type stage struct {
	folder  *store.Folder
	db      *store.DB
	browser *browser.Browser
	live    *Live
	site    *httptest.Server
}

func newStage(t testing.TB, pages map[string]string) *stage {
	t.Helper()
	folder, err := store.Open(store.Options{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	st := &stage{folder: folder, db: folder.Default()}
	st.browser = browser.New(browser.Options{Env: store.Env{Folder: folder, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, Find: findBrowser})
	st.live = New(Options{Browser: st.browser, PublicURL: "http://satchel.test"})
	for _, w := range []interface {
		Start(context.Context) error
		Stop()
	}{st.browser, st.live} {
		if err := w.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	st.site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	t.Cleanup(st.site.Close)
	return st
}

// session opens a session at a page of the site.
func (st *stage) session(t testing.TB, path string) *browser.Session {
	t.Helper()
	row, err := st.browser.Create(t.Context(), st.db, agent.SessionOptions{Viewport: &agent.Viewport{Width: 800, Height: 600}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.browser.Session(st.db, row.ID)
	if err != nil {
		t.Fatal(err)
	}
	changed, end := s.Changes()
	defer end()
	if err := s.ActivePage().Navigate(t.Context(), st.site.URL+path); err != nil {
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

// seen is a message to a viewer, of whatever type.
type seen struct {
	Type, PageID, URL, Title, Favicon, Data, Text string
	Tabs                                          []tab
	FirstTabID, ActiveTabID                       string
	Status                                        agent.SessionStatus
	Takeover                                      *takeoverState
}

// until reads messages until one is as wanted.
func (v *Viewer) until(t testing.TB, what string, wanted func(seen) bool) seen {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var last seen
	for {
		raw, err := v.Next(ctx)
		if err != nil {
			last.Data = ""
			t.Fatalf("waiting for %s: %v; the last message was %+v", what, err, last)
		}
		last = seen{}
		if err := json.Unmarshal(raw, &last); err != nil {
			t.Fatalf("%v in %.200s", err, raw)
		}
		if wanted(last) {
			return last
		}
	}
}

// ends reads until there is nothing more to see.
func (v *Viewer) ends(t testing.TB) {
	t.Helper()
	for {
		if _, err := v.Next(t.Context()); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func (st *stage) watch(t testing.TB, s *browser.Session, w Watch) *Viewer {
	t.Helper()
	v, err := st.live.Watch(s, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// size is that of a frame's picture.
func (m seen) size(t testing.TB) image.Point {
	t.Helper()
	c, _, err := image.DecodeConfig(base64.NewDecoder(base64.StdEncoding, strings.NewReader(m.Data)))
	if err != nil {
		t.Fatal(err)
	}
	return image.Pt(c.Width, c.Height)
}

func isFrame(m seen) bool { return m.Type == "" && m.Data != "" }

// do sends messages as a person's socket does.
func (h *Controller) do(t testing.TB, messages ...string) []byte {
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
