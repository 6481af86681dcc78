package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"satchel/httpapi/apitest"
)

// newShopSite starts a site of another origin whose pages have the widget's snippet.
func newShopSite(t *testing.T) (site *httptest.Server, paste func(snippet string)) {
	t.Helper()
	snippet := ""
	site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(
			w,
			`<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Shop</title>`+
				`<h1>Shop</h1><script>console.warn = (text) => { document.title = text; }</script>%s`,
			snippet,
		)
	}))
	t.Cleanup(site.Close)
	return site, func(s string) { snippet = s }
}

// noteFaults records on the document what must never happen there.
const noteFaults = `{
	const note = (text) => { document.documentElement.dataset.faults = (document.documentElement.dataset.faults ?? "") + text + "\n"; };
	addEventListener("securitypolicyviolation", (e) => note("policy: " + e.violatedDirective + " " + e.blockedURI));
	addEventListener("error", (e) => note("error: " + e.message));
	addEventListener("unhandledrejection", (e) => note("rejected: " + e.reason));
}`

// shopPage is a page of a website, with the frame of its widget.
type shopPage struct {
	*browserPage
	frame *browserPage
}

// openShop opens a page of a website and its widget.
func (ts *testServer) openShop(t *testing.T, width int, address string) *shopPage {
	t.Helper()
	s := &shopPage{browserPage: ts.openPage(t, width, 760, address)}
	s.cdp("Page.enable", nil)
	s.cdp("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": noteFaults})
	s.reopen()
	return s
}

// reopen loads the page again and clicks the widget's button.
func (s *shopPage) reopen() {
	s.t.Helper()
	s.reload()
	s.walk.clicked()
	s.waitFor(`document.documentElement.dataset.faults === undefined && ` +
		`document.querySelector("satchel-widget")?.shadowRoot.querySelector("button")`)
	s.eval(`new Promise((loaded) => {
		const shadow = document.querySelector("satchel-widget").shadowRoot;
		shadow.querySelector("button").click();
		shadow.querySelector("iframe").addEventListener("load", () => loaded());
	})`)
	tree := s.cdp("Page.getFrameTree", nil)["frameTree"].(map[string]any)
	frame, ok := at(tree, "childFrames.0.frame").(map[string]any)
	if !ok || !strings.Contains(fmt.Sprint(frame["url"]), "/widget/") {
		s.t.Fatalf("the widget has no frame: %v", tree)
	}
	world := s.cdp("Page.createIsolatedWorld", map[string]any{"frameId": frame["id"]})["executionContextId"]
	s.frame = &browserPage{t: s.t, walk: s.walk, send: func(method string, params map[string]any) (any, error) {
		params["contextId"] = world
		return s.send(method, params)
	}}
	s.frame.waitFor(`document.querySelector(".sw textarea")`)
}

// sendMessage types a message and sends it.
func (s *shopPage) sendMessage(text string) {
	s.t.Helper()
	s.frame.eval(`(() => { const field = document.querySelector(".sw textarea"); field.value = ` + quoted(text) +
		`; field.dispatchEvent(new Event("input", { bubbles: true })); })()`)
	s.frame.waitFor(`!document.querySelector(".sw-send").disabled`)
	s.frame.eval(`void document.querySelector(".sw-composer").requestSubmit()`)
	s.walk.clicked() // focus the field; Enter sends
	s.walk.pressed()
}

// click clicks the frame's button with a text.
func (s *shopPage) click(name string) {
	s.t.Helper()
	s.frame.clickOn(`[...document.querySelectorAll("button")].find((b) => (b.ariaLabel ?? b.textContent).trim() === ` +
		quoted(name) + ` && !b.disabled)`)
}

// waitMessage waits until the newest message of an author contains a text.
func (s *shopPage) waitMessage(from, text string) {
	s.t.Helper()
	s.frame.waitFor(
		`[...document.querySelectorAll(".sw-said.` + from + `")].at(-1)?.textContent.includes(` + quoted(text) + `)`,
	)
}

// checkPage checks the frame and the page as consolePage.checkPage does.
func (s *shopPage) checkPage(when string) {
	s.t.Helper()
	for name, p := range map[string]*browserPage{"the page": s.browserPage, "the frame": s.frame} {
		harm := p.eval(`JSON.stringify([document.documentElement.dataset.faults ?? "",
			...[...document.querySelectorAll("#app :is(img:not([src^='blob:']), script, iframe, [onload], [onerror], a[href^='javascript:'])")].map((e) => "markup: " + e.outerHTML),
			...[document.documentElement].filter((e) => e.scrollWidth > e.clientWidth).map((e) => "wider than the window: " + e.scrollWidth),
			...[...document.querySelectorAll(":is(input, textarea)")].filter((e) => !e.labels.length && !e.ariaLabel).map((e) => "without label: " + e.outerHTML),
			...[...document.querySelectorAll("button")].filter((b) => !b.textContent.trim() && !b.ariaLabel).map((e) => "without name: " + e.outerHTML),
			...(/undefined|\[object|NaN|Invalid Date/.test(document.body.innerText) ? ["says undefined: " + document.body.innerText] : [])].filter(Boolean))`)
		if harm != "[]" {
			s.t.Errorf("%s: %s: %v", when, name, harm)
		}
	}
}

// checkAccessible runs axe-core on the frame, light and dark.
func (s *shopPage) checkAccessible(when string) {
	s.t.Helper()
	s.frame.eval(axe(s.t) + `; void 0`)
	for _, scheme := range []string{"light", "dark"} {
		s.colorScheme(scheme)
		found := s.frame.eval(`axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.map((v) ` +
			`=> v.id + ": " + v.nodes.map((n) => n.html.slice(0, 160)).join(" | ")).join("\n"))`)
		if found != "" {
			s.t.Errorf("%s, %s:\n%v", when, scheme, found)
		}
	}
}

// TestWidgetWalk creates a widget in its form; a visitor asks the model, then
// asks for a person, who answers on a phone. Every text is hostile.
func TestWidgetWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	model := apitest.NewFixedModel(
		t,
		"Within **two days** [1]. "+hostile+" [x](javascript:hit=1) ![y](https://evil.example/y.png) [9]",
	)
	ts.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"openai-compatible","llm_base_url":"`+model+
			`","llm_api_key":"k","llm_model":"small","auto_reply":true}`,
	)
	source := ts.upload(t, "/api/agents/default/sources", "handbook.md", handbook, nil)
	ts.waitIndexed(t, "/api/agents/default/sources/"+source.JSON["id"].(string))
	site, paste := newShopSite(t)
	other, pasteToo := newShopSite(t)

	person := ts.openConsole(t, 375)
	person.open("widget", hasText("No widget yet"))
	person.open("widget/new", `document.querySelector(".widget-frame .sw")`)
	person.fill("Name", hostile, "Websites", "nowhere")
	person.click("Create widget")
	person.waitFor(`document.querySelector("#main .field.wrong label")?.textContent === "Websites"`)
	person.fill("Websites", site.URL, "Title", hostile, "Greeting", hostile, "Offline message", hostile)
	person.waitFor(`document.querySelector(".widget-frame h1").textContent === ` + quoted(hostile))
	person.click("Create widget")
	person.waitFor(`document.querySelector("dialog code").textContent.startsWith("whsec_")`)
	person.click("Done")
	person.waitFor(`document.querySelector("#main .widget-snippet") && document.querySelector("h1 ` +
		`.badge").textContent === "active" && ` + hasText("This server has no login"))
	person.checkPage("the widget's page")
	snippet := strings.Replace(
		person.eval(`document.querySelector(".widget-snippet").textContent`).(string),
		"http://localhost",
		ts.url,
		1,
	)
	paste(snippet)
	pasteToo(snippet)

	for _, width := range []int{1280, 375} {
		visitor := ts.openShop(t, width, site.URL)
		w := person.begin(10, "Widget: ask, ask for a person, answered from the Inbox", 9)
		visitor.walk, visitor.frame.walk = w, w
		w.clicked() // the button of the widget
		visitor.sendMessage("How long may I return bread? " + hostile)
		visitor.waitMessage("bot", "two days")
		visitor.frame.waitFor(`document.querySelector(".sw-said.bot strong")?.textContent === "two days" && ` +
			`document.querySelector(".sw-said.bot sup").title === "handbook.md" && ` +
			`document.querySelector(".sw-sources").textContent.includes("handbook.md")`)
		visitor.checkPage("an answer")
		visitor.checkAccessible("an answer")
		visitor.click("A person, please")
		visitor.waitMessage("visitor", "A person, please")
		visitor.frame.waitFor(`document.querySelector(".sw-line")?.textContent.includes("asked a person")`)

		person.open("home", `document.querySelector("#main a[href*='/inbox/']")`)
		person.open(
			"inbox",
			`[...document.querySelectorAll(".inbox-entries a")].some((a) => a.textContent.includes("Website") && `+
				`a.textContent.includes("A person, please"))`,
		)
		person.clickOn(`[...document.querySelectorAll(".inbox-entries a")].find((a) => a.textContent.includes("A ` +
			`person, please") && a.closest("li").textContent.includes("asks for a person"))`)
		person.waitFor(`document.querySelector(".inbox-composer textarea") && ` + hasText("Bot muted"))
		person.eval(`(() => { const field = document.querySelector(".inbox-composer textarea"); field.value = ` +
			quoted("Here I am "+hostile) + `; field.dispatchEvent(new Event("input", { bubbles: true })); })()`)
		w.clicked() // focus the field
		person.click("Send")
		visitor.waitMessage("person", "Here I am "+hostile)
		w.end(t)
		visitor.frame.waitFor(`document.querySelector(".sw-head p").textContent === "A person answers you here"`)
		visitor.checkPage("a person's answer")
		person.checkPage("the inbox")

		visitor.reopen() // again: the conversation is still there
		visitor.waitMessage("person", "Here I am")
		visitor.frame.waitFor(`document.querySelectorAll(".sw-said").length === 5`)
		visitor.sendMessage("Thank you")
		visitor.waitMessage("visitor", "Thank you")
		visitor.checkPage("after a reload")
		visitor.frame.eval(`document.querySelector(".sw textarea").dispatchEvent(new KeyboardEvent("keydown", ` +
			`{ key: "Escape", bubbles: true }))`)
		visitor.waitFor(`document.querySelector("satchel-widget").shadowRoot.querySelector("iframe").hidden && ` +
			`document.querySelector("satchel-widget").shadowRoot.activeElement?.ariaExpanded === "false"`)
	}

	stranger := ts.openPage(t, 800, 600, other.URL)
	stranger.waitFor(
		`document.title.startsWith("Satchel widget: it is not shown") && !document.querySelector("satchel-widget")`,
	)
}

// TestWidgetLanguages checks that the widget uses the language of the visitor's browser.
func TestWidgetLanguages(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	site, paste := newShopSite(t)
	id := ts.must(
		t,
		201,
		"POST",
		"/api/agents/default/gateways",
		`{"type":"web","name":"Shop","config":{"allowedOrigins":["`+site.URL+`"]}}`,
	)["id"].(string)
	ts.must(t, 200, "POST", "/api/agents/default/gateways/"+id+"/verify", "")
	paste(`<script src="` + ts.url + `/widget.js" data-widget="default/` + id + `" async></script>`)
	for accepted, want := range map[string][2]string{
		"de-DE,de": {"de", "Nachricht schreiben"},
		"sv,nl":    {"nl", "Schrijf een bericht"},
		"sv":       {"en", "Write a message"},
	} {
		s := &shopPage{browserPage: ts.openPage(t, 375, 760, site.URL)}
		s.cdp("Page.enable", nil)
		s.cdp("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": noteFaults})
		s.cdp("Emulation.setUserAgentOverride", map[string]any{
			"userAgent":      "Mozilla/5.0 Chrome/140.0",
			"acceptLanguage": accepted,
		})
		s.reopen()
		s.frame.waitFor(`document.querySelector(".sw textarea").placeholder === ` + quoted(want[1]) +
			` && document.documentElement.lang === ` + quoted(want[0]))
		s.checkPage("in " + want[0])
	}
}

// TestWidgetAway checks that when nobody can answer, the visitor is asked for an email
// address, and the conversation is kept.
func TestWidgetAway(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	failing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(failing.Close)
	ts.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"openai-compatible","llm_base_url":"`+failing.URL+
			`","llm_api_key":"k","llm_model":"small","auto_reply":true}`,
	)
	site, paste := newShopSite(t)
	id, path := ts.createWidget(t, `{"allowedOrigins":["`+site.URL+`"],"offlineMessage":"We are out for bread."}`)
	paste(`<script src="` + ts.url + `/widget.js" data-widget="default/` + id + `" async></script>`)
	visitor := ts.openShop(t, 375, site.URL)
	visitor.sendMessage("Hello?")
	visitor.frame.waitFor(`document.querySelector(".sw-line")?.textContent.includes("We are out for bread.") && ` +
		`document.querySelector(".sw-mail")`)
	mail := func(address string) {
		visitor.frame.eval(`(() => { const field = document.querySelector(".sw-mail input"); field.value = ` +
			quoted(address) + `; field.dispatchEvent(new Event("input", { bubbles: true })); })()`)
		visitor.frame.waitFor(`!document.querySelector(".sw-issue")`)
		visitor.frame.eval(
			`new Promise(requestAnimationFrame).then(() => document.querySelector(".sw-mail").requestSubmit())`,
		)
	}
	mail("nobody")
	visitor.frame.waitFor(`document.querySelector(".sw-issue")?.textContent.includes("email address")`)
	mail("ada@example.com")
	visitor.frame.waitFor(
		`!document.querySelector(".sw-mail") && document.querySelector(".sw").textContent.includes("ada@example.com")`,
	)
	visitor.checkPage("away")
	visitor.checkAccessible("away")
	list := ts.must(t, 200, "GET", "/api/agents/default/conversations?needs_human=true", "")
	if at(list, "conversations.0.contact.email") != "ada@example.com" ||
		!strings.Contains(path, fmt.Sprint(at(list, "conversations.0.gateway_id"))) {
		t.Errorf("%v", list)
	}
}

// TestWidgetCallsBeforeItIsDrawn calls the widget's functions before the script is loaded,
// and before its button is drawn. The calls happen once it is, and none of them fails.
func TestWidgetCallsBeforeItIsDrawn(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	site, paste := newShopSite(t)
	id := ts.must(
		t,
		201,
		"POST",
		"/api/agents/default/gateways",
		`{"type":"web","name":"Shop","config":{"allowedOrigins":["`+site.URL+`"]}}`,
	)["id"].(string)
	ts.must(t, 200, "POST", "/api/agents/default/gateways/"+id+"/verify", "")
	script := `<script src="` + ts.url + `/widget.js" data-widget="default/` + id + `"`
	const shown = `document.querySelector("satchel-widget")?.shadowRoot.querySelector("iframe")?.hidden === false`
	for name, tc := range map[string]struct{ page, want string }{
		"queued": {
			`<script>(window.Satchel ||= []).push(["identify", "u", "h"], ["open"])</script>` +
				script + ` async></script>`,
			shown,
		},
		"at once": {script + `></script><script>Satchel.open()</script>`, shown},
		"changed": {
			script + `></script><script>Satchel.open(); Satchel.close(); Satchel.toggle(); Satchel.identify("u", ` +
				`"h"); Satchel.push(["toggle"], ["toggle"])</script>`,
			shown,
		},
		"closed": {
			script + `></script><script>Satchel.open(); Satchel.close()</script>`,
			`document.querySelector("satchel-widget")?.shadowRoot.querySelector("button") && ` +
				`!document.querySelector("satchel-widget").shadowRoot.querySelector("iframe")`,
		},
		"unknown": {
			`<script>window.Satchel = [["toString"], "constructor", [], "open"]</script>` + script + ` async></script>`,
			shown,
		},
		"refused": {
			strings.Replace(script, "default/"+id, "default/gateway-unknown", 1) +
				`></script><script>Satchel.open(); Satchel.toggle(); Satchel.close()</script>`,
			`document.title.startsWith("Satchel widget: it is not shown")`,
		},
	} {
		t.Log(name)
		paste(tc.page)
		p := ts.openPage(t, 800, 600, "about:blank")
		p.cdp("Page.enable", nil)
		p.cdp("Page.addScriptToEvaluateOnNewDocument", map[string]any{
			"source": noteFaults + `console.warn = (text) => { document.title = text; };`,
		})
		p.cdp("Page.navigate", map[string]any{"url": site.URL})
		p.waitFor(`document.readyState === "complete" && (` + tc.want + `)`)
		if faults := p.eval(`document.documentElement.dataset.faults ?? ""`); faults != "" {
			t.Errorf("%s: %v", name, faults)
		}
	}
}
