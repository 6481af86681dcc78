package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// website is a site of another origin, whose pages hold a snippet.
func website(t *testing.T) (site *httptest.Server, paste func(snippet string)) {
	t.Helper()
	snippet := ""
	site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Shop</title><h1>Shop</h1><script>console.warn = (text) => { document.title = text; }</script>%s`, snippet)
	}))
	t.Cleanup(site.Close)
	return site, func(s string) { snippet = s }
}

// noteFaults notes on the document what must never happen there.
const noteFaults = `{
	const note = (text) => { document.documentElement.dataset.faults = (document.documentElement.dataset.faults ?? "") + text + "\n"; };
	addEventListener("securitypolicyviolation", (e) => note("policy: " + e.violatedDirective + " " + e.blockedURI));
	addEventListener("error", (e) => note("error: " + e.message));
	addEventListener("unhandledrejection", (e) => note("rejected: " + e.reason));
}`

// shopper is somebody on a website, who looks into the widget's frame.
type shopper struct {
	*eyes
	frame *eyes
}

// shop opens a page of a website, and on it the widget.
func (th *theatre) shop(t *testing.T, width int, address string) *shopper {
	t.Helper()
	s := &shopper{eyes: th.look(t, width, 760, address)}
	s.ask("Page.enable", nil)
	s.ask("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": noteFaults})
	s.open()
	return s
}

// open loads the page again and presses the widget's button.
func (s *shopper) open() {
	s.t.Helper()
	s.ask("Page.reload", nil)
	s.until(`document.readyState === "complete" && document.documentElement.dataset.faults === undefined && document.querySelector("satchel-widget")?.shadowRoot.querySelector("button")`)
	s.value(`new Promise((loaded) => {
		const shadow = document.querySelector("satchel-widget").shadowRoot;
		shadow.querySelector("button").click();
		shadow.querySelector("iframe").addEventListener("load", () => loaded());
	})`)
	tree := s.ask("Page.getFrameTree", nil)["frameTree"].(map[string]any)
	frame, ok := at(tree, "childFrames.0.frame").(map[string]any)
	if !ok || !strings.Contains(fmt.Sprint(frame["url"]), "/widget/") {
		s.t.Fatalf("the widget has no frame: %v", tree)
	}
	world := s.ask("Page.createIsolatedWorld", map[string]any{"frameId": frame["id"]})["executionContextId"]
	s.frame = &eyes{s.t, func(method string, params map[string]any) (any, error) {
		params["contextId"] = world
		return s.send(method, params)
	}}
	s.frame.until(`document.querySelector(".sw textarea")`)
}

// say writes a message and sends it.
func (s *shopper) say(text string) {
	s.t.Helper()
	s.frame.value(`(() => { const field = document.querySelector(".sw textarea"); field.value = ` + quoted(text) + `; field.dispatchEvent(new Event("input", { bubbles: true })); })()`)
	s.frame.until(`!document.querySelector(".sw-send").disabled`)
	s.frame.value(`void document.querySelector(".sw-composer").requestSubmit()`)
}

// press presses the button of the frame that is called so.
func (s *shopper) press(name string) {
	s.t.Helper()
	s.frame.until(`(window.pressed = [...document.querySelectorAll("button")].find((b) => (b.ariaLabel ?? b.textContent).trim() === ` + quoted(name) + ` && !b.disabled))`)
	s.frame.value(`void pressed.click()`)
}

// hears waits until the newest words of somebody hold a text.
func (s *shopper) hears(from, text string) {
	s.t.Helper()
	s.frame.until(`[...document.querySelectorAll(".sw-said.` + from + `")].at(-1)?.textContent.includes(` + quoted(text) + `)`)
}

// unharmed holds frame and page against what must never happen.
func (s *shopper) unharmed(when string) {
	s.t.Helper()
	for name, e := range map[string]*eyes{"the page": s.eyes, "the frame": s.frame} {
		harm := e.value(`JSON.stringify([document.documentElement.dataset.faults ?? "",
			...[...document.querySelectorAll("#app :is(img, script, iframe, [onload], [onerror], a[href^='javascript:'])")].map((e) => "markup: " + e.outerHTML),
			...[document.documentElement].filter((e) => e.scrollWidth > e.clientWidth).map((e) => "wider than the window: " + e.scrollWidth),
			...[...document.querySelectorAll(":is(input, textarea)")].filter((e) => !e.labels.length && !e.ariaLabel).map((e) => "without label: " + e.outerHTML),
			...[...document.querySelectorAll("button")].filter((b) => !b.textContent.trim() && !b.ariaLabel).map((e) => "without name: " + e.outerHTML),
			...(/undefined|\[object|NaN|Invalid Date/.test(document.body.innerText) ? ["says undefined: " + document.body.innerText] : [])].filter(Boolean))`)
		if harm != "[]" {
			s.t.Errorf("%s: %s: %v", when, name, harm)
		}
	}
}

// TestWidgetWalk is the way of a visitor of a website and of who answers them on
// a phone: the widget is made by its form, asks the model, asks for a person,
// and hears from them. Every text is hostile.
func TestWidgetWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	model := fakeModel(t, "Within **two days** [1]. "+hostile+" [x](javascript:hit=1) ![y](https://evil.example/y.png) [9]")
	th.must(t, 200, "PUT", "/api/agents/default/settings", `{"llm_provider":"openai-compatible","llm_base_url":"`+model+`","llm_api_key":"k","llm_model":"small","auto_reply":true}`)
	source := th.upload(t, "/api/agents/default/sources", "handbook.md", handbook, nil)
	th.settled(t, "/api/agents/default/sources/"+source.json["id"].(string))
	site, paste := website(t)
	other, pasteToo := website(t)

	person := th.visit(t, 375)
	person.goTo("widget", says("No widget yet"))
	person.goTo("widget/new", `document.querySelector(".widget-frame .sw")`)
	person.fill("Name", hostile, "Websites", "nowhere")
	person.press("Create widget")
	person.until(`document.querySelector("#main .field.wrong label")?.textContent === "Websites"`)
	person.fill("Websites", site.URL, "Title", hostile, "Greeting", hostile, "Offline message", hostile)
	person.until(`document.querySelector(".widget-frame h1").textContent === ` + quoted(hostile))
	person.press("Create widget")
	person.until(`document.querySelector("dialog code").textContent.startsWith("whsec_")`)
	person.press("Done")
	person.until(`document.querySelector("#main .widget-snippet") && document.querySelector("h1 .badge").textContent === "active" && ` + says("This server has no login"))
	person.unharmed("the widget's page")
	snippet := strings.Replace(person.value(`document.querySelector(".widget-snippet").textContent`).(string), "http://localhost", th.url, 1)
	paste(snippet)
	pasteToo(snippet)

	for _, width := range []int{1280, 375} {
		visitor := th.shop(t, width, site.URL)
		visitor.say("How long may I return bread? " + hostile)
		visitor.hears("bot", "two days")
		visitor.frame.until(`document.querySelector(".sw-said.bot strong")?.textContent === "two days" && document.querySelector(".sw-said.bot sup").title === "handbook.md" && document.querySelector(".sw-sources").textContent.includes("handbook.md")`)
		visitor.unharmed("an answer")
		visitor.press("A person, please")
		visitor.hears("visitor", "A person, please")
		visitor.frame.until(`document.querySelector(".sw-line")?.textContent.includes("asked a person")`)

		person.goTo("home", `document.querySelector("#main a[href*='/inbox/']")`)
		person.goTo("inbox", `[...document.querySelectorAll(".inbox-entries a")].some((a) => a.textContent.includes("Website") && a.textContent.includes("A person, please"))`)
		person.value(`[...document.querySelectorAll(".inbox-entries a")].find((a) => a.textContent.includes("A person, please") && a.closest("li").textContent.includes("asks for a person")).click()`)
		person.until(`document.querySelector(".inbox-composer textarea") && ` + says("Bot muted"))
		person.value(`(() => { const field = document.querySelector(".inbox-composer textarea"); field.value = ` + quoted("Here I am "+hostile) + `; field.dispatchEvent(new Event("input", { bubbles: true })); })()`)
		person.press("Send")
		visitor.hears("person", "Here I am "+hostile)
		visitor.frame.until(`document.querySelector(".sw-head p").textContent === "A person answers you here"`)
		visitor.unharmed("a person's answer")
		person.unharmed("the inbox")

		visitor.open() // again: the conversation is still there
		visitor.hears("person", "Here I am")
		visitor.frame.until(`document.querySelectorAll(".sw-said").length === 5`)
		visitor.say("Thank you")
		visitor.hears("visitor", "Thank you")
		visitor.unharmed("after a reload")
		visitor.frame.value(`document.querySelector(".sw textarea").dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }))`)
		visitor.until(`document.querySelector("satchel-widget").shadowRoot.querySelector("iframe").hidden && document.querySelector("satchel-widget").shadowRoot.activeElement?.ariaExpanded === "false"`)
	}

	stranger := th.look(t, 800, 600, other.URL)
	stranger.until(`document.title.startsWith("Satchel widget: it is not shown") && !document.querySelector("satchel-widget")`)
}

// TestWidgetAway: when nobody can answer, the visitor is told, leaves an email
// address, and the conversation is kept.
func TestWidgetAway(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	failing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(failing.Close)
	th.must(t, 200, "PUT", "/api/agents/default/settings", `{"llm_provider":"openai-compatible","llm_base_url":"`+failing.URL+`","llm_api_key":"k","llm_model":"small","auto_reply":true}`)
	site, paste := website(t)
	id, path, _ := th.widgetAt(t, `{"allowedOrigins":["`+site.URL+`"],"offlineMessage":"We are out for bread."}`)
	paste(`<script src="` + th.url + `/widget.js" data-widget="default/` + id + `" async></script>`)
	visitor := th.shop(t, 375, site.URL)
	visitor.say("Hello?")
	visitor.frame.until(`document.querySelector(".sw-line")?.textContent.includes("We are out for bread.") && document.querySelector(".sw-mail")`)
	mail := func(address string) {
		visitor.frame.value(`(() => { const field = document.querySelector(".sw-mail input"); field.value = ` + quoted(address) + `; field.dispatchEvent(new Event("input", { bubbles: true })); })()`)
		visitor.frame.until(`!document.querySelector(".sw-issue")`)
		visitor.frame.value(`new Promise(requestAnimationFrame).then(() => document.querySelector(".sw-mail").requestSubmit())`)
	}
	mail("nobody")
	visitor.frame.until(`document.querySelector(".sw-issue")?.textContent.includes("email address")`)
	mail("ada@example.com")
	visitor.frame.until(`!document.querySelector(".sw-mail") && document.querySelector(".sw").textContent.includes("ada@example.com")`)
	visitor.unharmed("away")
	list := th.must(t, 200, "GET", "/api/agents/default/conversations?needs_human=true", "")
	if at(list, "conversations.0.contact.email") != "ada@example.com" || !strings.Contains(path, fmt.Sprint(at(list, "conversations.0.gateway_id"))) {
		t.Errorf("%v", list)
	}
}
