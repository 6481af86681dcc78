package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

func program(context.Context) (Program, error) {
	return Program{Chromium: "/usr/bin/chromium", Driver: os.Getenv("SATCHEL_BROWSER_DRIVER")}, nil
}

func newBrowser(t testing.TB, change func(*Options)) (*Browser, *store.DB) {
	t.Helper()
	folder, err := store.Open(store.Options{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	o := Options{Folder: folder, Find: program, Allow: loopback}
	if change != nil {
		change(&o)
	}
	b := New(o)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	return b, folder.Default()
}

func site(t testing.TB, pages map[string]string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestOpenAndClose(t *testing.T) {
	b, db := newBrowser(t, nil)
	web := site(t, map[string]string{"/": "<title>Hello</title><p>hi"})
	at := time.Now()
	row, err := b.Create(t.Context(), db, agent.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("created", time.Since(at))
	at = time.Now()
	row2, err := b.Create(t.Context(), db, agent.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("second", time.Since(at), row2)
	s, err := b.Session(db, row.ID)
	if err != nil {
		t.Fatal(err)
	}
	p := s.ActivePage()
	_, err = p.page.Goto(web.URL + "/")
	t.Log(err, p.URL())
	_, err = p.page.Goto("http://127.0.0.2:1234/")
	t.Log(err, p.URL())
	changed, _ := s.Changes()
	for p.Title() != "Hello" && false {
		<-changed
	}
	t.Log(p.URL(), p.Title(), s.refused)
	list, n, err := b.List(t.Context(), db, store.Page{Limit: 10})
	t.Log(list, n, err)
	at = time.Now()
	if err := b.Close(t.Context(), db, row.ID); err != nil {
		t.Fatal(err)
	}
	t.Log("closed", time.Since(at))
	at = time.Now()
	b.Stop()
	t.Log("stopped", time.Since(at))
}
