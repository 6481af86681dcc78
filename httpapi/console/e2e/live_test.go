package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/browser"
)

// browserPage controls a page of the service in a browser.
type browserPage struct {
	t    *testing.T
	walk *walk // nil when nothing is counted
	send func(method string, params map[string]any) (any, error)
}

// openPage opens an address of the service in a new window.
func (ts *testServer) openPage(t *testing.T, width, height int, address string) *browserPage {
	t.Helper()
	return attach(t, openWindow(t, width, height, strings.Replace(address, "http://localhost", ts.url, 1)).ActivePage())
}

// attach controls a tab until the end of the test.
func attach(t *testing.T, page *browser.Page) *browserPage {
	t.Helper()
	cdp, err := page.CDP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // with it end the scripts that it added to pages
		ctx, cancel := context.WithTimeout(context.Background(), pageTimeout)
		defer cancel()
		_, _ = browser.Within(ctx, func() (any, error) { return nil, cdp.Detach() }) // a closed tab has no session
	})
	return &browserPage{t: t, send: cdp.Send}
}

// pageTimeout is how long a page may take on a busy machine.
const pageTimeout = time.Minute

func (p *browserPage) cdp(method string, params map[string]any) map[string]any {
	p.t.Helper()
	fields, err := p.call(method, params)
	if err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
	return fields
}

func (p *browserPage) call(method string, params map[string]any) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), pageTimeout+30*time.Second)
	defer cancel()
	out, err := browser.Within(ctx, func() (any, error) { return p.send(method, params) })
	fields, _ := out.(map[string]any)
	return fields, err
}

func (p *browserPage) eval(expression string) any {
	p.t.Helper()
	value, err := p.evaluate(expression)
	if err != nil {
		p.t.Fatal(err)
	}
	return value
}

func (p *browserPage) evaluate(expression string) (any, error) {
	p.t.Helper()
	result, err := p.call("Runtime.evaluate", map[string]any{
		"expression":    expression,
		"returnByValue": true,
		"awaitPromise":  true,
	})
	if err != nil {
		return nil, err
	}
	if result["exceptionDetails"] != nil {
		p.t.Fatalf("%s: %v", expression, result["exceptionDetails"])
	}
	return result["result"].(map[string]any)["value"], nil
}

// becomes waits until an expression, or what it promises, is true in the page, and reports
// whether it was; if not, shows is the text of the page.
func (p *browserPage) becomes(expression string) (shows any, ok bool) {
	p.t.Helper()
	script := fmt.Sprintf(`(async () => {
		for (const end = performance.now() + %d; ; await new Promise((next) => setTimeout(next, 20))) {
			try { if (await (%s)) return true; } catch {}
			if (performance.now() > end) return document.body ? document.body.innerText : "no page";
		}
	})()`, pageTimeout.Milliseconds(), expression)
	shows, err := p.evaluate(script)
	// the page was left for another site
	for err != nil && strings.Contains(err.Error(), "Inspected target navigated") {
		shows, err = p.evaluate(script)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return shows, shows == true
}

// waitFor waits until an expression, or what it promises, is true in the page.
func (p *browserPage) waitFor(expression string) {
	p.t.Helper()
	if shows, ok := p.becomes(expression); !ok {
		p.t.Fatalf("never true: %s\nthe page shows: %v", expression, shows)
	}
}

// clickOn clicks the element that an expression evaluates to, once it is there and not
// disabled.
func (p *browserPage) clickOn(expression string) {
	p.t.Helper()
	p.waitFor(`((found) => found && !found.disabled && (found.click(), true))(` + expression + `)`)
	p.walk.clicked()
}

// reload reloads the page and waits for the new document.
func (p *browserPage) reload() {
	p.t.Helper()
	p.eval(`void (window.before = true)`)
	p.cdp("Page.reload", nil)
	p.waitFor(`!window.before && document.readyState === "complete"`)
}

// clickScreen clicks the live view at a point of the session's viewport.
func (p *browserPage) clickScreen(x, y, width, height int) {
	p.t.Helper()
	at := p.eval(fmt.Sprintf(`(() => {
		const box = document.getElementById("screen").getBoundingClientRect(), scale = Math.min(box.width / %[3]d, box.height / %[4]d);
		return [box.left + (box.width - %[3]d * scale) / 2 + %[1]d * scale, box.top + (box.height - %[4]d * scale) / 2 + %[2]d * scale];
	})()`, x, y, width, height)).([]any)
	p.walk.clicked()
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		p.cdp("Input.dispatchMouseEvent", map[string]any{
			"type":       kind,
			"x":          at[0],
			"y":          at[1],
			"button":     "left",
			"clickCount": 1,
		})
	}
}

// TestTakeoverWalk takes over a session as a person does: the agent asks, the person
// opens the link, sees the page, types and clicks in it, and returns control.
func TestTakeoverWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	s := ts.openLoaded(t, "/")
	at := "/api/agents/default/browser/" + s.ID()
	made := ts.must(t, 201, "POST", at+"/takeover", `{"reason":"Please <b>sign in</b>."}`)
	status := func(want string) {
		t.Helper()
		if got := ts.must(t, 200, "GET", at+"/takeover/"+made["takeover_id"].(string), "")["status"]; got != want {
			t.Errorf("the takeover is %v, want %s", got, want)
		}
	}
	// A link preview fetches the page and starts nothing.
	address := strings.Replace(made["takeover_url"].(string), "http://localhost", "", 1)
	preview := ts.send(t, "GET", address, "")
	if preview.StatusCode != 200 ||
		preview.Header.Get("Referrer-Policy") != "no-referrer" ||
		!strings.Contains(preview.Header.Get("Content-Security-Policy"), "script-src 'self'") {
		t.Errorf("%d %v", preview.StatusCode, preview.Header)
	}
	status("pending")
	ts.must(t, 200, "POST", at+"/execute", `{"action":"evaluate","script":"1"}`)

	person := ts.openPage(t, 1000, 800, made["takeover_url"].(string))
	person.waitFor(`document.getElementById("state").textContent === "You are in control" && ` +
		`document.getElementById("screen").dataset.frames > 0`)
	person.waitFor(`document.getElementById("reason").textContent === "Please <b>sign in</b>." && ` +
		`!document.getElementById("takeover").hidden`)
	status("active")
	if s.Status() != agent.SessionTakeover {
		t.Errorf("the session is %s", s.Status())
	}
	if refused := ts.must(
		t, 400, "POST", at+"/execute",
		`{"action":"evaluate","script":"1"}`,
	); refused["error"].(map[string]any)["code"] != "INVALID_ACTION" {
		t.Errorf("%v", refused)
	}
	person.waitFor(`document.getElementById("address").value === ` + fmt.Sprintf("%q", ts.site+"/"))
	person.clickScreen(200, 100, 800, 600)
	for _, letter := range "Ada" {
		person.cdp("Input.dispatchKeyEvent", map[string]any{
			"type": "keyDown",
			"key":  string(letter),
			"text": string(letter),
		})
		person.cdp("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": string(letter)})
	}
	waitTitle(t, s, "name:Ada")
	person.waitFor(`document.querySelector(".tab.active .name").textContent === "name:Ada"`)
	person.clickScreen(400, 450, 800, 600)
	waitTitle(t, s, "clicked")
	// An address without a scheme, of a server that speaks HTTP.
	person.eval(fmt.Sprintf(
		`(() => { document.getElementById("address").value = %q; document.getElementById("bar").requestSubmit(); })()`,
		strings.TrimPrefix(ts.site, "http://")+"/spin",
	))
	waitTitle(t, s, "Spin")

	person.clickOn(`document.getElementById("done")`)
	person.waitFor(`/Thank you/.test(document.getElementById("note").textContent)`)
	status("completed")
	if s.Status() != agent.SessionActive {
		t.Errorf("the session is %s", s.Status())
	}
	ts.must(t, 200, "POST", at+"/execute", `{"action":"evaluate","script":"1"}`)
	late := ts.openPage(t, 400, 700, made["takeover_url"].(string))
	late.waitFor(`/takeover has ended/.test(document.getElementById("note").textContent)`)
}

// TestLiveViewShowsLists chooses from a list, with mouse and keyboard, and sets a date: the
// picture lacks Chromium's own windows for that.
func TestLiveViewShowsLists(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	s := ts.openLoaded(t, "/fields")
	link := ts.must(t, 200, "GET", "/api/agents/default/browser/"+s.ID()+"/live-view", "")
	person := ts.openPage(t, 1000, 800, link["url"].(string))
	person.waitFor(`document.getElementById("screen").dataset.frames > 0`)
	key := func(name, text string) {
		for _, kind := range []string{"keyDown", "keyUp"} {
			person.cdp("Input.dispatchKeyEvent", map[string]any{
				"type":                  kind,
				"key":                   name,
				"code":                  name,
				"text":                  text,
				"windowsVirtualKeyCode": map[string]int{"ArrowDown": 40, "Enter": 13}[name],
			})
			text = ""
		}
	}
	person.clickScreen(200, 120, 800, 600)
	person.waitFor(
		`document.querySelectorAll("#picker option").length === 3 && document.activeElement.localName === "select"`,
	)
	person.clickOn(`document.querySelectorAll("#picker option")[1]`)
	waitTitle(t, s, "chose lemon")
	person.waitFor(`!document.getElementById("picker") && document.activeElement.id === "stage"`)
	key(" ", " ") // opens it again
	person.waitFor(`document.querySelector("#picker select")?.selectedIndex === 1`)
	key("ArrowDown", "")
	key("Enter", "\r")
	waitTitle(t, s, "chose plum")
	person.clickScreen(200, 320, 800, 600)
	person.waitFor(`document.activeElement.type === "date"`)
	person.eval(`void (document.activeElement.value = "2026-05-06")`)
	person.clickOn(`document.querySelector("#picker .primary")`)
	waitTitle(t, s, "2026-05-06")
}

// TestLiveViewShowsTextAsText opens a page that tries to get its script into the view.
func TestLiveViewShowsTextAsText(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	s := ts.openLoaded(t, "/evil")
	link := ts.must(t, 200, "GET", "/api/agents/default/browser/"+s.ID()+"/live-view", "")
	if until, err := time.Parse(time.RFC3339, link["expires_at"].(string)); err != nil ||
		time.Until(until) < 59*time.Minute {
		t.Errorf("%v", link)
	}
	person := ts.openPage(t, 1000, 700, link["url"].(string))
	person.waitFor(`document.querySelector(".tab.active .name").textContent === "<img src=x onerror=document.title=1>"`)
	person.clickOn(`document.getElementById("console")`)
	person.waitFor(`document.getElementById("lines").textContent.includes("<b>bold</b>")`)
	if n := person.eval(`document.querySelectorAll("#lines b, .tab .name img").length`); n != 0.0 {
		t.Errorf("the session's text created %v elements", n)
	}
	person.clickOn(`document.getElementById("new")`)
	person.waitFor(`document.querySelectorAll(".tab").length === 2`)
	person.clickOn(`document.querySelector(".tab .name")`)
	person.waitFor(`document.querySelector(".tab").classList.contains("active")`)
	person.clickOn(`document.querySelectorAll(".tab .shut")[1]`)
	person.waitFor(`document.querySelectorAll(".tab").length === 1`)
	ts.must(t, 200, "DELETE", "/api/agents/default/browser?id="+s.ID(), "")
	person.waitFor(`/session has ended/.test(document.getElementById("note").textContent)`)
}
