package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"satchel/browser"
)

// TestConsoleCrawlWalk adds a site, watches its pages arrive, searches them, and opens
// the text that was found.
func TestConsoleCrawlWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	seen := make(chan struct{})
	var gone atomic.Bool
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			panic(http.ErrAbortHandler) // closes the connection
		}
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		if r.URL.Path == "/page-3" {
			select { // until the page has shown the progress
			case <-seen:
			case <-r.Context().Done():
			}
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<html lang="en"><title>Page %[1]s %[2]s</title><main><h1>About %[1]s</h1><p>Sourdough number %[1]s rests for eighteen hours before it is baked, and is sold on Saturdays.</p>
			<a href="/page-1">one</a> <a href="/page-2">two</a> <a href="/page-3">three</a></main>`, strings.TrimPrefix(r.URL.Path, "/"), strings.ReplaceAll(hostile, "<", "&lt;"))
	}))
	t.Cleanup(site.Close)
	p := ts.openConsole(t, 1280)
	w := p.begin(4, "Crawl a site: pages tick, search, open the text", 6)
	p.open("knowledge", hasText("No knowledge yet"))
	p.click("Site")
	p.waitFor(`document.activeElement.labels?.[0]?.textContent === "Address"`)
	p.typeText(strings.TrimPrefix(site.URL, "http://"))
	p.pressKeys("Enter")
	p.waitFor(`!document.querySelector("dialog") && document.querySelector(".source-row progress")?.value >= 2`)
	p.checkPage("a crawl")
	close(seen)
	p.waitFor(`document.querySelector(".source-row .badge").textContent === "ready" && ` + hasText("4 pages"))
	p.eval(`document.querySelector("[aria-label='Search for']").focus()`)
	w.clicked()
	p.typeText("how long does sourdough rest")
	p.pressKeys("Enter")
	p.waitFor(`document.querySelector(".results mark") && ` + hasText("eighteen hours"))
	p.checkPage("what was found")
	p.clickOn(`document.querySelector(".results .card a")`)
	p.waitFor(`document.querySelector("#main article mark")?.textContent.includes("eighteen hours")`)
	w.end(t)
	p.checkPage("the text of a page")
	gone.Store(true)
	ts.must(t, 201, "POST", "/api/agents/default/sources/crawl", `{"name":"Gone","url":"`+site.URL+`"}`)
	p.open(
		"knowledge",
		`[...document.querySelectorAll(".source-row")].some((r) => r.textContent.includes("Gone") && `+
			`r.querySelector(".badge").textContent === "error")`,
	)
	p.click("Retry")
	p.waitFor(`[...document.querySelectorAll(".source-row")].some((r) => r.textContent.includes("Gone") && ` +
		`r.querySelector(".badge").textContent === "error" && !r.querySelector("[aria-busy=true]"))`)
	p.checkPage("a site that cannot be reached")
}

// turning lets a test set whether a tab is in front.
const turning = `{
	let away = false;
	Object.defineProperty(Document.prototype, "hidden", { get: () => away });
	Object.defineProperty(Document.prototype, "visibilityState", { get: () => (away ? "hidden" : "visible") });
	window.turn = (hidden) => { away = hidden; document.dispatchEvent(new Event("visibilitychange")); };
}`

// windows opens a page of the console in several windows of one browser, one after another,
// all of which are visible. The others get the key of the first. opened is called with all
// before each, and may be nil.
func (ts *testServer) windows(
	t *testing.T,
	count int,
	key, page, expression string,
	opened func([]*browserPage),
) (windows []*browserPage, closing []func()) {
	t.Helper()
	session := openWindow(t, 1280, 900, ts.url+"/")
	for i := range count {
		inBrowser := session.ActivePage()
		if i > 0 {
			if opened != nil {
				opened(windows)
			}
			var err error
			if inBrowser, err = session.OpenPage(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		tab := ts.tab(t, inBrowser)
		tab.cdp("Page.navigate", map[string]any{"url": ts.url + "/"})
		tab.waitFor(`window.turn && document.querySelector("#main")`)
		if i == 0 {
			tab.eval(`sessionStorage.setItem("satchel.key", ` + quoted(key) + `)`)
			tab.reload()
		}
		tab.waitFor(`document.querySelector("#main h1")?.textContent === "Home" && ` + isLive)
		tab.eval(`location.hash = ` + quoted("#/agents/default/"+page))
		tab.waitFor(expression)
		windows = append(windows, tab)
		closing = append(closing, func() {
			if err := inBrowser.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	return windows, closing
}

// turnAll hides windows, as tabs that are not in front.
func turnAll(windows []*browserPage) {
	for _, w := range windows {
		w.eval(`turn(true)`)
	}
}

func (ts *testServer) tab(t *testing.T, opened *browser.Page) *browserPage {
	t.Helper()
	p := attach(t, opened)
	p.cdp("Page.enable", nil)
	p.cdp("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": recordFaults + turning})
	return p
}

// TestConsoleViewerWalk has a viewer open every section from the menu and change nothing;
// then eight tabs of one browser each receive a change when they are in front.
func TestConsoleViewerWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	ts.fillBakery(t)
	p := ts.openConsole(t, 1280)
	ts.header.Set(
		"X-API-Key",
		ts.must(t, 201, "POST", "/api/keys", `{"name":"owner","role":"owner","agents":["*"]}`)["key"].(string),
	)
	key := ts.must(
		t, 201, "POST", "/api/keys",
		`{"name":"reader","role":"viewer","agents":["default"]}`,
	)["key"].(string)
	p.signIn(key)
	newest := func() string {
		t.Helper()
		events := ts.must(t, 200, "GET", "/api/agents/default/events?limit=1", "")
		return fmt.Sprint(at(events, "events.0.id"), at(events, "meta.total"))
	}
	before := newest()
	w := p.begin(12, "A viewer walks all sections; eight tabs live", 20)
	for _, section := range []string{
		"chat", "inbox", "workflows", "knowledge", "browser", "calendar", "contacts", "tables", "forms", "sql",
		"channels", "widget", "tools", "credentials", "mcp", "webhooks", "activity", "settings", "home",
	} {
		p.eval(`document.querySelector("#main .page").id = "left"`)
		p.clickOn(`document.querySelector("nav a[href='#/agents/default/` + section + `']")`)
		p.waitFor(`!document.getElementById("left") && document.querySelector("#main h1") && ` +
			`!document.querySelector("#main .skeleton")`)
		p.checkPage(section)
	}
	if after := newest(); after != before {
		t.Errorf("the newest event before a viewer's walk was %s, after it %s", before, after)
	}
	tabs, _ := ts.windows(t, 8, key, "contacts", `document.querySelectorAll("#main tbody tr").length >= 3`, turnAll)
	for i := range tabs {
		turnAll(tabs)
		tabs[i].eval(`turn(false)`)
		name := fmt.Sprintf("Contact of tab %d", i)
		ts.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":`+quoted(name)+`}`)
		tabs[i].waitFor(hasText(name))
	}
	w.end(t)
}

// TestConsoleWindows has nine visible windows of one browser, more than it opens connections
// to a host: each loads, receives a change and shows who else is there; windows that are
// closed are no longer there.
func TestConsoleWindows(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	flow := createFlow(t, ts.testClient, `[{"id":"t","type":"trigger","data":{"event":"manual"}}]`, `[]`, "")
	others := func(shown bool) string {
		return fmt.Sprintf(`Boolean(document.querySelector(".others")) === %t`, shown)
	}
	windows, closing := ts.windows(t, 9, "", "workflows/"+flow, `document.querySelector(".react-flow__node")`, nil)
	for i, w := range windows {
		w.waitFor(others(true))
		if i%2 == 0 {
			w.eval(`location.hash = "#/agents/default/contacts"`)
			w.waitFor(`document.querySelector("#main h1")?.textContent === "Contacts" && ` + isLive)
		}
	}
	ts.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada"}`)
	for i, w := range windows {
		if i%2 == 0 {
			w.waitFor(hasText("Ada"))
		}
	}
	for _, i := range []int{3, 5, 7} {
		windows[1].waitFor(others(true))
		closing[i]()
	}
	windows[1].waitFor(others(false))
}
