package e2e

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestConsoleKnowledgeList filters the sources, checks that the filter stays in the
// address while other pages are visited, and reads several sources at once.
func TestConsoleKnowledgeList(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	const base = "/api/agents/default/sources"
	var ids []string
	for _, name := range []string{"bread.md", "bread prices.md", "opening.md"} {
		id := fmt.Sprint(ts.upload(t, base, name, "# Text\n\nBread is sold at seven.\n", nil).JSON["id"])
		ts.waitIndexed(t, base+"/"+id)
		ids = append(ids, id)
	}
	names := func(want string) string {
		return `[...document.querySelectorAll(".source-row a")].map((a) => a.textContent).join() === ` + quoted(want)
	}
	for _, width := range []int{1280, 375} {
		p := ts.openConsole(t, width)
		p.eval(axe(t))
		p.open("knowledge", `document.querySelectorAll(".source-row").length === 3`)
		p.set("Filter by name", "bread")
		p.waitFor(`document.querySelectorAll(".source-row").length === 2 && location.hash.endsWith("?name=bread")`)
		p.set("Order", "name asc")
		p.waitFor(names("bread prices.md,bread.md"))
		p.checkPage("filtered sources")
		kept := p.eval(`location.hash`)
		p.open("contacts", hasText("No contacts yet"))
		p.eval(`history.back()`)
		p.waitFor(names("bread prices.md,bread.md"))
		p.open("home", hasText("What can"))
		p.clickOn(`[...document.querySelectorAll(".rail a")].find((a) => a.textContent === "Knowledge")`)
		p.waitFor(names("bread prices.md,bread.md") + ` && location.hash === ` + quoted(fmt.Sprint(kept)))
		p.clickOn(`document.querySelector(".source-row a")`)
		p.waitFor(`document.querySelector("#main .crumb")`)
		p.clickOn(`document.querySelector("#main .crumb a")`)
		p.waitFor(names("bread prices.md,bread.md"))
		p.clickOn(`document.querySelector(".source-row input")`)
		p.waitFor(hasText("1 of 2 selected"))
		p.clickOn(`document.querySelector(".bulk input")`)
		p.waitFor(hasText("2 of 2 selected"))
		p.checkPage("selected sources")
		p.checkAccessible("selected sources")
		var before []any
		for _, id := range ids {
			before = append(before, ts.must(t, 200, "GET", base+"/"+id, "")["updated_at"])
		}
		p.click("Read again")
		p.waitFor(`!document.querySelector(".bulk")`)
		for i, id := range ids {
			if again := ts.waitIndexed(t, base+"/"+id)["updated_at"] != before[i]; again != (i < 2) {
				t.Errorf("source %d is read again: %v", i, again)
			}
		}
	}
}

// TestConsoleSourcesAreDeleted deletes several sources of a filtered list: Undo restores
// them, and otherwise they are deleted when the time to undo has passed.
func TestConsoleSourcesAreDeleted(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	const base = "/api/agents/default/sources"
	for _, name := range []string{"bread.md", "bread prices.md", "opening.md"} {
		ts.waitIndexed(t, base+"/"+fmt.Sprint(ts.upload(t, base, name, "Bread is sold at seven.\n", nil).JSON["id"]))
	}
	p := ts.openConsole(t, 1280)
	p.eval(`{ const real = window.setTimeout; window.late = []; window.setTimeout = (run, ms, ...more) => (ms === ` +
		`8000 ? late.push(run) : real(run, ms, ...more)); }`)
	p.open("knowledge?name=bread", `document.querySelectorAll(".source-row").length === 2`)
	both := func() {
		p.clickOn(`document.querySelector(".source-row input")`)
		p.waitFor(hasText("1 of 2 selected"))
		p.clickOn(`document.querySelector(".bulk input")`)
		p.waitFor(hasText("2 of 2 selected"))
		p.click("Delete")
		p.waitFor(`document.querySelectorAll(".source-row").length === 0 && !document.querySelector(".bulk") && ` +
			hasText("No sources match"))
	}
	both()
	p.waitFor(`document.querySelector(".toasts").textContent.includes("2 sources deleted")`)
	if left := ts.must(t, 200, "GET", base, "")["sources"].([]any); len(left) != 3 {
		t.Fatalf("before the time to undo has passed %d sources are left", len(left))
	}
	p.clickOn(`[...document.querySelectorAll(".toasts button")].find((b) => b.textContent === "Undo")`)
	p.waitFor(`document.querySelectorAll(".source-row").length === 2 && !document.querySelector(".toast")`)
	p.eval(`for (const run of late.splice(0)) run()`) // the timer of the deletion that was undone
	both()
	p.checkPage("deleted sources")
	p.eval(`for (const run of late.splice(0)) run()`)
	p.waitForCount("/sources", "sources", 1)
	p.eval(`location.hash = ` + quoted(p.base+"knowledge"))
	p.waitFor(`document.querySelectorAll(".source-row").length === 1 && document.querySelector(".source-row ` +
		`a").textContent === "opening.md"`)
}

// TestConsoleCodeIsCopied shows code in an answer, which on a phone scrolls in its own
// frame, and copies it.
func TestConsoleCodeIsCopied(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	const base = "/api/agents/default/conversations"
	talk := ts.must(t, 201, "POST", base, `{"metadata":{"title":"Code"}}`)["id"].(string)
	ts.must(t, 201, "POST", base+"/"+talk+"/messages", `{"role":"user","content":"How is it sent?"}`)
	line := "curl " + strings.Repeat("x", 400)
	ts.must(
		t,
		201,
		"POST",
		base+"/"+talk+"/messages",
		`{"role":"assistant","content":`+quoted("Like this:\n\n```sh\n"+line+"\n```")+`}`,
	)
	p := ts.openConsole(t, 375)
	p.eval(axe(t) + `; Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { ` +
		`window.copied = text; } } })`)
	p.open("chat/"+talk, `document.querySelector("#main .code-block")`)
	p.waitFor(
		`document.querySelector(".code-block pre").scrollWidth > document.querySelector(".code-block pre").clientWidth`,
	)
	p.clickOn(`document.querySelector(".code-block button")`)
	p.waitFor(`window.copied === ` + quoted(line))
	p.checkAccessible("code in an answer")
}

// TestConsoleAttachments shows the files of a message, whose names are hostile,
// to people who may answer and to those who may only read.
func TestConsoleAttachments(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 40, 30))); err != nil {
		t.Fatal(err)
	}
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/picture" {
			_, _ = w.Write(picture.Bytes())
			return
		}
		fmt.Fprint(w, "<script>hit=1</script>")
	}))
	t.Cleanup(files.Close)
	ts := newTestServer(t)
	const base = "/api/agents/default"
	gateway := base + "/gateways/" +
		ts.must(
			t, 201, "POST", base+"/gateways",
			`{"type":"webhook","name":"Shop","config":{"secret":"0123456789abcdef"}}`,
		)["id"].(string)
	ts.must(t, 200, "POST", gateway+"/verify", "")
	long := strings.Repeat("n", 196) + ".png"
	list := ""
	for _, f := range [][2]string{
		{"/picture", hostile + ".png"},
		{"/picture", "\u202egnp.exe"},
		{"/picture", long},
		{"/page", hostile + ".html"},
	} {
		list += `,{"url":` + quoted(files.URL+f[0]) + `,"name":` + quoted(f[1]) + `}`
	}
	ts.with("X-Webhook-Secret", "0123456789abcdef").must(
		t, 200, "POST", gateway+"/webhook",
		`{"id":"1","from":"ada","text":"See these","attachments":[`+list[1:]+`]}`,
	)
	talk := at(ts.must(t, 200, "GET", base+"/conversations", ""), "conversations.0.id").(string)
	messages := base + "/conversations/" + talk
	ts.until(t, messages, "the files are stored", func() bool {
		return strings.Count(fmt.Sprint(ts.must(t, 200, "GET", messages, "")), "status:stored") == 4
	})
	walk := func(p *consolePage, width int, scheme string) {
		t.Helper()
		p.colorScheme(scheme)
		p.eval(axe(t))
		p.open("inbox/"+talk, `document.querySelectorAll(".inbox-files button").length === 4`)
		p.waitFor(`document.querySelectorAll(".inbox-media").length === 3 && ` +
			`[...document.querySelectorAll(".inbox-media")].every((m) => { m.scrollIntoView(); ` +
			`return m.querySelector("img")?.naturalWidth === 40; })`)
		if wide := p.eval(`[...document.querySelectorAll(".inbox-files button")].filter((b) => ` +
			`b.getBoundingClientRect().right > innerWidth).length`); wide != 0.0 {
			t.Errorf("%v file names are wider than %d pixels", wide, width)
		}
		p.checkPage("attachments")
		p.checkAccessible("attachments, " + scheme)
	}
	readers := map[int]*consolePage{}
	for _, look := range axeLooks {
		walk(ts.openConsole(t, look.width), look.width, look.scheme)
		readers[look.width] = ts.openConsole(t, look.width)
	}
	ts.header.Set(
		"X-API-Key",
		ts.must(t, 201, "POST", "/api/keys", `{"name":"owner","role":"owner","agents":["*"]}`)["key"].(string),
	)
	key := ts.must(
		t, 201, "POST", "/api/keys",
		`{"name":"reader","role":"viewer","agents":["default"]}`,
	)["key"].(string)
	for _, look := range axeLooks {
		p := readers[look.width]
		p.signIn(key)
		walk(p, look.width, look.scheme)
	}
}
