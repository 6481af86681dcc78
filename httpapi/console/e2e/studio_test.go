package e2e

import (
	"fmt"
	"strings"
	"testing"

	"satchel/httpapi/apitest"
)

// keyCodes are the codes of keys other than letters.
var keyCodes = map[string]int{
	"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
	"Delete": 46, "F2": 113,
}

// pressKeys presses keys such as "Tab", "Control+s" and "Shift+Tab" in turn.
func (p *consolePage) pressKeys(pressed ...string) {
	p.t.Helper()
	for _, combined := range pressed {
		p.walk.pressed()
		modifiers, key := 0, combined
		for name, bit := range map[string]int{"Alt+": 1, "Control+": 2, "Shift+": 8} {
			if rest, ok := strings.CutPrefix(key, name); ok {
				modifiers, key = modifiers|bit, rest
			}
		}
		event := map[string]any{"key": key, "code": key, "modifiers": modifiers, "windowsVirtualKeyCode": keyCodes[key]}
		if keyCodes[key] == 0 {
			event["code"], event["windowsVirtualKeyCode"] = "Key"+strings.ToUpper(key), int(strings.ToUpper(key)[0])
		}
		switch {
		case modifiers&2 != 0:
		case key == "Enter":
			event["text"] = "\r"
		case keyCodes[key] == 0:
			event["text"] = key
		}
		event["type"] = "keyDown"
		p.cdp("Input.dispatchKeyEvent", event)
		delete(event, "text")
		event["type"] = "keyUp"
		p.cdp("Input.dispatchKeyEvent", event)
	}
}

// typeText types at the cursor.
func (p *consolePage) typeText(text string) {
	p.t.Helper()
	p.cdp("Input.insertText", map[string]any{"text": text})
}

// tabTo presses a key until an expression is true of "it", the focused element.
func (p *consolePage) tabTo(key, expression string) {
	p.t.Helper()
	for range 120 {
		if p.eval(`((it) => Boolean(`+expression+`))(document.activeElement)`) == true {
			return
		}
		p.pressKeys(key)
	}
	p.t.Fatalf(
		"%s never leads to %s; it is at %v",
		key,
		expression,
		p.eval(`document.activeElement.outerHTML.slice(0, 200)`),
	)
}

const hasName = `it.textContent.trim() === `

// writeCode replaces the text of the page's code editor.
func (p *consolePage) writeCode(text string) {
	p.t.Helper()
	p.waitFor(`(window.editing = [...document.querySelectorAll("#main .code-editor, #main .code-editor *")].map((e) ` +
		`=> e.shadowRoot?.querySelector("[contenteditable]")).find(Boolean))`)
	p.eval(`editing.focus()`)
	p.walk.clicked()
	p.pressKeys("Control+a", "Delete")
	p.typeText(text)
	p.waitFor(`editing.textContent.includes(` + quoted(text) + `)`)
}

// TestConsoleTemplateWalk sets up the first template with a token and a document; then a
// message is answered.
func TestConsoleTemplateWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	bot := apitest.NewTelegramBot(t)
	ts.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"openai-compatible","llm_model":"small","llm_api_key":"k","llm_base_url":`+
			quoted(apitest.NewFixedModel(t, `{"known":true,"answer":"Within two days."}`))+`}`,
	)
	for i, width := range []int{1280, 375} {
		p := ts.openConsole(t, width)
		w := p.begin(6, "A template: token, verify, activate, a message answered", 9)
		p.open("workflows", hasText("From template"))
		p.clickOn(link("From template"))
		p.waitFor(`document.querySelectorAll(".template-card").length === 15`)
		p.checkPage("the templates")
		p.clickOn(`document.querySelector(".template-card")`)
		p.waitFor(`document.querySelector(".template-form") && ` + hasText("Upload a file") +
			` && document.querySelector(".preview-node, .preview-list li")`)
		if i == 1 { // existing records are used
			p.waitFor(`document.querySelector(".template-gateway select").value.startsWith("gateway-")`)
			p.checkPage("the form of a template")
			continue
		}
		w.aside(func() { p.click("Set up") })
		p.waitFor(`document.querySelectorAll(".template-form .issue").length === 2 && ` +
			`document.activeElement.type === "password"`)
		p.checkPage("the form of a template")
		// the platform is a fake
		p.eval(`(() => { const real = window.fetch; window.fetch = (to, how) => real(to, ` +
			`String(how?.body).includes("botToken") ? { ...how, body: how.body.replace('"botToken"', ` +
			`'"apiBaseUrl":' + JSON.stringify(` + quoted(bot.URL) + `) + ',"botToken"') } : how); })()`)
		p.fill("Bot token", "77:of-another-bot")
		p.waitFor(`document.querySelectorAll(".template-form .issue").length === 1`)
		p.eval(`(() => { const field = document.querySelector(".template-form input[type=file]"); const files = new ` +
			`DataTransfer(); files.items.add(new File([` + quoted(handbook) +
			`], "handbook.md")); field.files = files.files; field.dispatchEvent(new Event("change", ` +
			`{ bubbles: true })); })()`)
		w.clicked()
		p.waitFor(`document.querySelector(".template-form select").value.startsWith("source-")`)
		p.click("Set up")
		w.aside(func() {
			p.waitFor(`document.querySelector(".last-step .issue") && document.querySelector(".last-step ` +
				`button[type=button]:disabled")?.textContent === "Go live"`)
			p.checkPage("a token that the platform rejects")
			p.fill("Another token", "77:secret-of-the-bot")
			p.click("Verify again")
		})
		p.waitFor(`document.querySelector(".last-step.done")?.textContent.includes("Telegram bot")`)
		p.checkPage("the last steps")
		p.click("Go live")
		p.waitFor(hasText("It is live") + ` && document.querySelectorAll(".last-step.done").length === 2`)
		bot.Receive("May I bring a loaf back?")
		if got := bot.Answer(t); got != "Within two days." {
			t.Errorf("the bot sent %q", got)
		}
		w.end(t)
		p.checkPage("a template that is live")
	}
}

// TestConsoleEditorByKeyboard creates, tests and activates a workflow by keyboard.
func TestConsoleEditorByKeyboard(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	p := ts.openConsole(t, 1280)
	w := p.begin(7, "A workflow by keyboard: nodes, completion, test, live", 0)
	p.pressKeys("Control+k")
	p.waitFor(`document.querySelector("dialog[open] input")`)
	p.typeText("workflows")
	p.waitFor(`document.querySelector("dialog[open] [aria-selected=true]")?.textContent.includes("Workflows")`)
	p.pressKeys("Enter")
	p.waitFor(hasText("No workflows yet") + ` && document.activeElement.id === "main"`)
	p.tabTo("Tab", hasName+`"New workflow"`)
	p.pressKeys("Enter")
	p.waitFor(`document.querySelector("dialog[open]") && document.activeElement.labels?.[0]?.textContent === "Name"`)
	p.typeText("Greeting")
	p.pressKeys("Enter")
	p.waitFor(countNodes("") + ` === 2 && !document.querySelector("dialog")`)
	p.tabTo("Tab", `it.classList.contains("editor-view")`)
	p.pressKeys("ArrowRight", "ArrowRight")
	p.waitFor(`document.querySelector(".node.selected strong")?.textContent === "Say hello"`)
	p.pressKeys("Tab")
	p.waitFor(`document.querySelector("dialog .node-option")`)
	p.typeText("knowledge")
	p.waitFor(`document.querySelector(".node-option[aria-selected=true] strong").textContent === "Search knowledge"`)
	p.pressKeys("Enter")
	p.waitFor(countNodes("") +
		` === 3 && !document.querySelector("dialog") && document.querySelectorAll(".react-flow__edge").length === 2`)
	p.pressKeys("Enter")
	p.waitFor(`document.activeElement.closest(".editor-panel")`)
	p.tabTo("Tab", `it.closest("[data-field=query]")`)
	p.typeText("{{nodes.hel")
	p.waitFor(`document.querySelector(".suggestions [aria-selected=true] code")?.textContent.includes("nodes.hello")`)
	p.pressKeys("Enter")
	p.typeText(".te")
	p.waitFor(
		`document.querySelector(".suggestions [aria-selected=true] code")?.textContent.includes("nodes.hello.text")`,
	)
	p.pressKeys("Enter")
	p.waitFor(`document.activeElement.value === "{{nodes.hello.text}}" && ` +
		`document.querySelector("[data-field=query] .filled").textContent.includes("Hello")`)
	p.pressKeys("Control+Enter")
	p.waitFor(`document.querySelector(".test-results .badge")?.textContent === "complete" && ` +
		countNodes(".success") + ` === 3`)
	p.checkPage("the test")
	p.pressKeys("Control+s")
	p.waitFor(`document.querySelector(".saved-state").textContent.startsWith("Saved")`)
	p.tabTo("Shift+Tab", hasName+`"Go live"`)
	p.pressKeys("Enter")
	p.waitFor(`document.querySelector(".editor-bar .badge").textContent === "active"`)
	w.end(t)
	p.tabTo("Tab", `it.classList.contains("editor-view")`)
	p.pressKeys("p")
	p.waitFor(`document.querySelectorAll(".node-pin").length === 1`)
	p.pressKeys("d")
	p.waitFor(countNodes(".disabled") + ` === 1`)
	p.pressKeys("c")
	p.waitFor(`document.querySelector("dialog h2")?.textContent.startsWith("Connect ")`)
	p.pressKeys("Escape")
	p.waitFor(`!document.querySelector("dialog")`)
	p.eval(`document.querySelector(".editor-view").focus()`)
	p.pressKeys("Delete")
	p.waitFor(countNodes("") + ` === 2`)
	p.pressKeys("Control+z")
	p.waitFor(countNodes("") + ` === 3`)
	p.checkPage("the editor")
}

// TestConsoleShelf drags types of nodes onto the canvas and onto an edge, writes a note
// there, completes a statement of SQL, and has a model draft another graph.
func TestConsoleShelf(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := createFlow(
		t,
		ts.testClient,
		`[{"id":"start","type":"trigger","position":{"x":0,"y":0},"data":{}},{"id":"end","type":"set",`+
			`"position":{"x":400,"y":0},"data":{"values":{"a":1}}}]`,
		`[{"id":"e1","source":"start","target":"end"}]`,
		"",
	)
	p := ts.openConsole(t, 1280)
	ts.must(t, 200, "PUT", flowBase+"/"+id, `{"status":"draft"}`)
	drag := func(label, at string) {
		from := `[...document.querySelectorAll(".shelf-node")].find((b) => b.textContent.trim() === ` +
			quoted(label) + `)`
		p.waitFor(from)
		p.eval(`(() => {
			const data = new DataTransfer();
			const from = ` + from + `;
			const place = ` + at + `;
			const to = document.elementFromPoint(place.x, place.y);
			const how = { bubbles: true, cancelable: true, dataTransfer: data, clientX: place.x, clientY: place.y };
			from.dispatchEvent(new DragEvent("dragstart", how));
			to.dispatchEvent(new DragEvent("dragover", how));
			to.dispatchEvent(new DragEvent("drop", how));
		})()`)
	}
	p.open("workflows/"+id, countNodes("")+` === 2 && document.querySelectorAll(".react-flow__edge").length === 1`)
	drag(
		"If",
		`(() => { const b = document.querySelector(".react-flow__edge path").getBoundingClientRect(); return { x: `+
			`b.x + b.width / 2, y: b.y + b.height / 2 }; })()`,
	)
	p.waitFor(countNodes("") + ` === 3 && document.querySelectorAll(".react-flow__edge").length === 2`)
	p.pressKeys("Escape")
	p.waitFor(`document.querySelector(".node-shelf")?.checkVisibility()`)
	drag(
		"Wait",
		`(() => { const b = document.querySelector(".editor-view").getBoundingClientRect(); return { x: `+
			`b.x + b.width / 2, y: b.bottom - 90 }; })()`,
	)
	p.waitFor(countNodes("") + ` === 4 && document.querySelectorAll(".react-flow__edge").length === 2`)
	p.checkPage("the canvas")
	p.eval(`void document.querySelector(".editor-view").focus()`)
	p.pressKeys("Escape", "n")
	p.waitFor(`document.activeElement.ariaLabel === "Note"`)
	p.typeText("Ask Ada before this changes")
	p.waitFor(`document.querySelector(".canvas-note textarea").value === "Ask Ada before this changes"`)
	p.checkPage("a note")
	p.pressKeys("Escape")
	p.waitFor(`document.querySelector(".canvas-note p")`)
	drag(
		"SQL",
		`(() => { const b = document.querySelector(".editor-view").getBoundingClientRect(); return { x: `+
			`b.x + b.width / 2, y: b.y + 60 }; })()`,
	)
	p.typeCode("SELECT * FROM contacts WHERE id = {{")
	p.typeText("trig")
	p.waitFor(`((first) => first.textContent.startsWith("trigger") && (first.dispatchEvent(new ` +
		`MouseEvent("mousedown", { bubbles: true, cancelable: true })), ` +
		`true))(document.querySelector(".code-editor").shadowRoot.querySelector(".cm-tooltip-autocomplete li"))`)
	p.waitFor(`document.querySelector(".code-editor").shadowRoot.querySelector(".cm-content").textCont` +
		`ent.includes("{{trigger")`)
	p.checkPage("completed")
	p.typeCode("SELECT * FROM contacts WHERE id = {{trigger.id}}")
	p.checkPage("a statement")
	p.clickOn(`[...document.querySelectorAll("button")].find((b) => b.textContent.startsWith("Problems"))`)
	p.waitFor(`["Wait", "SQL"].every((name) => [...document.querySelectorAll(".problems .warning")].some((l) => ` +
		`l.textContent.includes(name + " is not connected to a trigger")))`)
	p.checkPage("nodes that are not connected")
	p.click("Save")
	p.waitFor(`document.querySelector(".saved-state").textContent.startsWith("Saved")`)
	if stored := ts.must(t, 200, "GET", flowBase+"/"+id, ""); at(
		stored,
		"nodes.0.metadata.notes.0.text",
	) != "Ask Ada before this changes" {
		t.Errorf("stored: %v", stored["nodes"])
	}
	walkDraft(t, ts, p, id)
}

// walkDraft has a workflow drafted, without a model and with one, whose first draft has a
// type of node that does not exist.
func walkDraft(t *testing.T, ts *testServer, p *consolePage, id string) {
	m := apitest.NewModelServer(t, func(n int, _ map[string]any) string {
		kind := "approval"
		if n == 1 {
			kind = "person"
		}
		return ` {"name":"Refunds","summary":` + quoted("Asks first "+hostile) +
			`,"nodes":[{"id":"start","type":"trigger","data":{"event":"manual"}},{"id":"ask","type":"` + kind +
			`","data":{"title":"Refund?"}}],"edges":[{"source":"start","target":"ask"}]}`
	})
	p.chooseMenu("More", "Draft with AI")
	p.waitFor(`document.querySelector("dialog").textContent.includes("needs a language model")`)
	p.pressKeys("Escape")
	p.waitFor(`!document.querySelector("dialog")`)
	ts.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"openai-compatible","llm_model":"m-1","llm_base_url":"`+m.URL+`/v1","llm_api_key":"sk-x"}`,
	)
	p.chooseMenu("More", "Draft with AI")
	p.waitFor(`document.querySelector("#draft-sentence")`)
	p.fill("What should change?", "Ask me before money goes back")
	p.click("Draft")
	p.waitFor(`document.querySelector(".draft-offer")?.textContent.includes("It isn't saved yet") && ` +
		countNodes("") + ` === 2 && document.querySelector(".saved-state").textContent === "Unsaved"`)
	p.checkPage("a draft")
	if last := fmt.Sprint(m.Messages(1)); len(m.Requests) != 2 ||
		!strings.Contains(last, "person") ||
		!strings.Contains(last, "Ask me before money goes back") {
		t.Errorf("%d requests, the last with %s", len(m.Requests), last)
	}
	if stored := ts.must(t, 200, "GET", flowBase+"/"+id, ""); len(stored["nodes"].([]any)) < 3 {
		t.Error("a draft was saved without a click")
	}
	p.click("Drop it")
	p.waitFor(countNodes("") + ` === 5 && document.querySelector(".saved-state").textContent.startsWith("Saved")`)
}

// TestConsoleMendsFailure opens a failed execution from Home, corrects the node's field,
// and retries the execution.
func TestConsoleMendsFailure(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := createFlow(
		t,
		ts.testClient,
		`[{"id":"start","type":"trigger","data":{}},{"id":"pay","type":"code","data":{"label":"Pay","code":"throw `+
			`new Error('no such order')"}}]`,
		`[{"source":"start","target":"pay"}]`,
		"",
	)
	ts.must(t, 200, "POST", flowBase+"/execute?wait=30", `{"workflow_id":"`+id+`","input":{"order":7}}`)
	p := ts.openConsole(t, 1280)
	p.waitFor(hasText("no such order"))
	w := p.begin(8, "A failure on Home: its node, the field, retry", 6)
	p.clickOn(`[...document.querySelectorAll("#main a")].find((a) => a.textContent.includes("Pay") || ` +
		`a.textContent.includes("no such order"))`)
	p.waitFor(`document.querySelector(".card.bad")?.textContent.includes("no such order") && ` +
		`document.querySelector(".editor-panel h2").textContent === "Pay"`)
	p.clickOn(`[...document.querySelectorAll(".editor-panel .tabs button")].find((b) => b.textContent === "Input")`)
	p.waitFor(`document.querySelector(".editor-panel").textContent.includes("order: 7")`)
	w.aside(func() {
		p.click("Compare")
		p.waitFor(hasText("Nothing to compare with"))
		p.checkPage("the failure")
	})
	p.pressKeys("e")
	p.waitFor(`document.querySelector(".editor-page:not(.execution-page)") && document.querySelector(".editor-panel ` +
		`h2").textContent === "Pay"`)
	p.writeCode("return {paid: trigger.order}")
	p.click("Save and go live")
	p.waitFor(`document.querySelector(".editor-bar").textContent.includes("v2")`)
	p.eval(`history.back()`)
	w.clicked()
	p.waitFor(`document.querySelector(".execution-page .card.bad")`)
	p.click("Retry")
	p.waitFor(`document.querySelector(".execution-page .editor-bar .badge")?.textContent === "complete" && ` +
		hasText("It repeats"))
	w.end(t)
	p.click("Compare")
	p.waitFor(`document.querySelectorAll(".compare li").length === 1 && ` +
		`document.querySelector(".compare").textContent.includes("status differs")`)
	p.checkPage("the comparison")
}
