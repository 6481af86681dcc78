package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestConsoleStopsCrawls stops a crawl from its page on a wide page, and from the list of
// what runs on a phone. It shows who stopped it, and what was read; a viewer gets no button.
func TestConsoleStopsCrawls(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write(
			[]byte(`<title>Harbour</title><main><p>A bakery at the harbour, with bread of many kinds for ` +
				`everybody who comes by.</p></main>`),
		)
		for i := range 40 { // each of which takes until its timeout
			_, _ = fmt.Fprintf(w, `<a href="/slow/%d"></a>`, i)
		}
	}))
	t.Cleanup(site.Close)
	button := func(text string) string {
		return `[...document.querySelectorAll("#main button")].find((b) => b.textContent === "` + text + `")`
	}
	for _, width := range []int{1280, 375} {
		p := ts.openConsole(t, width)
		made := ts.must(
			t,
			201,
			"POST",
			"/api/agents/default/sources/crawl",
			`{"url":"`+site.URL+`/","name":"Harbour \u003cb\u003e","ignoreRobots":true}`,
		)
		id := made["id"].(string)
		p.open("knowledge/"+id, `document.querySelector("#main h1")`)
		p.waitFor(button("Stop"))
		p.waitFor(`document.querySelector("#main progress")`)
		p.checkPage("a crawl")
		if width > 700 {
			p.clickOn(button("Stop"))
		} else {
			p.clickOn(`[...document.querySelectorAll("nav.bottom button")].at(-1)`)
			p.clickOn(`document.querySelector(".more button")`)
			p.clickOn(`document.querySelector(".dialog.tray [aria-label='Stop Harbour <b>']")`)
		}
		p.waitFor(`document.querySelector(".dialog h2, .dialog h1")`)
		p.eval(axe(t) + `; void 0`)
		p.checkAccessible("the confirmation of Stop")
		p.clickOn(`document.querySelector(".dialog .button.danger")`)
		if width <= 700 {
			p.waitFor(`document.querySelector(".dialog.tray")?.textContent.includes("Nothing is running.")`)
			p.pressKeys("Escape")
		}
		p.waitFor(`document.querySelector("#main .badge")?.textContent === "stopped"`)
		p.waitFor(`document.querySelector("#main .card")?.textContent.includes("Stopped")`)
		p.waitFor(button("Crawl again"))
		p.waitFor(`document.querySelector("#main article")?.textContent.includes("A bakery at the harbour")`)
		if p.eval(button("Stop")) != nil {
			t.Error("a stopped source can be stopped")
		}
		p.checkPage("a stopped crawl")
		p.checkAccessible("a stopped crawl")
		p.open("knowledge", `document.querySelector(".source-row")`)
		p.waitFor(`document.querySelector(".source-row .badge")?.textContent === "stopped"`)
		p.checkPage("a list with a stopped crawl")
		ts.must(t, 200, "DELETE", "/api/agents/default/sources/"+id, "")
	}
}
