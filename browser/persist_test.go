package browser

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
	"satchel/store"
)

func TestLoginsAreKeptSealed(t *testing.T) {
	t.Parallel()
	b, db := ownAgent(t, "logins")
	url := serveSite(t, map[string]string{"/": `<title>x</title>`})
	s := openIn(t, b, db, agent.SessionOptions{Persist: true})
	must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
	must(
		t,
		s,
		`{"action":"evaluate","script":"document.cookie = 'login=whale-song; max-age=1000'; `+
			`localStorage.cart = 'three-loaves'"}`,
	)
	s.end("")
	look := `{"action":"evaluate","script":"document.cookie + localStorage.cart"}`
	for _, persist := range []bool{true, false} {
		s := openIn(t, b, db, agent.SessionOptions{Persist: persist})
		must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
		if got := must(t, s, look)["value"]; (got == "login=whale-songthree-loaves") != persist {
			t.Errorf("persist %v: the session starts with %v", persist, got)
		}
		s.end("")
	}
	files, err := filepath.Glob(filepath.Join(b.options.Folder.Path(), "agents", db.ID()+"*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "whale-song") || strings.Contains(string(raw), "three-loaves") {
			t.Errorf("%s contains encrypted values in clear text", name)
		}
	}
}

// The data that sites stored in a persistent session survives a kill of the server.
func TestLoginsOutliveAKilledServer(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and tests a child process")
	}
	t.Parallel()
	url := serveSite(t, map[string]string{"/": `<title>x</title>`, "/login": `<title>x</title>`})
	path := t.TempDir()
	child, _ := startServer(t, path, url)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	folder, err := store.Open(store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	b, _ := newBrowser(t, func(o *Options) { o.Folder = folder })
	s := openIn(t, b, folder.Default(), agent.SessionOptions{Persist: true})
	must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
	if got := must(
		t,
		s,
		`{"action":"evaluate","script":"document.cookie + localStorage.cart"}`,
	)["value"]; got != "login=whale-songthree-loaves" {
		t.Errorf("the session starts with %v", got)
	}
}

// While a persistent session is open, the file has the latest state of each site,
// and is written only when that state has changed.
func TestStateIsKeptWhileOpen(t *testing.T) {
	t.Parallel()
	b, db := ownAgent(t, "keeping")
	one, two :=
		serveSite(t, map[string]string{"/": `<title>x</title>`}),
		serveSite(t, map[string]string{"/": `<title>x</title>`})
	s := openIn(t, b, db, agent.SessionOptions{})
	s.options.Persist = true // only now, so that the session does not store its state in the background
	writes := 0
	save := func() (state playwright.OptionalStorageState) {
		before := s.persisted.stored
		s.saveState(t.Context(), s.readState)
		if s.persisted.stored != before {
			writes++
		}
		text, _, err := db.BrowserState(t.Context())
		if err != nil || json.Unmarshal([]byte(text), &state) != nil {
			t.Fatal(text, err)
		}
		return state
	}
	visit := func(url, script string) {
		must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
		must(t, s, `{"action":"evaluate","script":"`+script+`"}`)
	}
	visit(one, "localStorage.a = 1; localStorage.b = 2; document.cookie = 'c=3'")
	for range 3 {
		save()
	}
	visit(two, "localStorage.d = 4")
	if got := save(); writes != 2 || len(got.Origins) != 2 || len(got.Cookies) != 1 {
		t.Errorf("%d writes, %+v", writes, got)
	}
	visit(one, "localStorage.clear()")
	if got := save(); writes != 3 ||
		len(got.Origins) != 1 ||
		got.Origins[0].Origin != two ||
		got.Origins[0].LocalStorage[0] != (playwright.NameValue{Name: "d", Value: "4"}) {
		t.Errorf("%d writes, %+v", writes, got)
	}
	// A busy page does not delay the others.
	must(t, s, `{"action":"evaluate","script":"void setTimeout(() => { for (;;); })"}`)
	if got := save(); len(got.Cookies) != 1 {
		t.Errorf("got %+v", got)
	}
	for _, p := range s.Pages() {
		if _, ok := p.localStorage(t.Context(), originOf(p.URL())); ok || !p.readingStorage.Load() {
			t.Error("a busy tab is queried twice")
		}
	}
}

func TestOriginOf(t *testing.T) {
	for address, want := range map[string]string{
		"https://a.test/b?c":            "https://a.test",
		"http://a.test:8080":            "http://a.test:8080",
		"about:blank":                   "",
		"data:text/html,x":              "",
		"chrome-error://chromewebdata/": "",
		"":                              "",
		"http:":                         "",
		"http://[":                      "",
	} {
		if got := originOf(address); got != want {
			t.Errorf("%q: %q", address, got)
		}
	}
}
