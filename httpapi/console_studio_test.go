package httpapi

import (
	"fmt"
	"strings"
	"testing"
)

// keyCodes are the keys that are more than a letter.
var keyCodes = map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Delete": 46, "F2": 113}

// keys presses keys such as "Tab", "Control+s" and "Shift+Tab", one after another.
func (s *stranger) keys(pressed ...string) {
	s.t.Helper()
	for _, combined := range pressed {
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
		s.ask("Input.dispatchKeyEvent", event)
		delete(event, "text")
		event["type"] = "keyUp"
		s.ask("Input.dispatchKeyEvent", event)
	}
}

// types writes a text where the cursor is.
func (s *stranger) types(text string) {
	s.t.Helper()
	s.ask("Input.insertText", map[string]any{"text": text})
}

// tabTo presses a key until what has the focus fulfils an expression over "it".
func (s *stranger) tabTo(key, expression string) {
	s.t.Helper()
	for range 120 {
		if s.value(`((it) => Boolean(`+expression+`))(document.activeElement)`) == true {
			return
		}
		s.keys(key)
	}
	s.t.Fatalf("%s never leads to %s; it is at %v", key, expression, s.value(`document.activeElement.outerHTML.slice(0, 200)`))
}

const reading = `it.textContent.trim() === `

// writeCode replaces what the code editor of the page holds.
func (s *stranger) writeCode(text string) {
	s.t.Helper()
	s.until(`(window.editing = [...document.querySelectorAll("#main .code-editor, #main .code-editor *")].map((e) => e.shadowRoot?.querySelector("[contenteditable]")).find(Boolean))`)
	s.value(`editing.focus()`)
	s.keys("Control+a", "Delete")
	s.types(text)
	s.until(`editing.textContent.includes(` + quoted(text) + `)`)
}

// TestConsoleTemplateWalk sets the first template up: a token, a handbook, and
// a message is answered.
func TestConsoleTemplateWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	bot := newTelegramBot(t)
	th.must(t, 200, "PUT", "/api/agents/default/settings", `{"llm_provider":"openai-compatible","llm_model":"small","llm_api_key":"k","llm_base_url":`+quoted(fakeModel(t, `{"known":true,"answer":"Within two days."}`))+`}`)
	for i, width := range []int{1280, 375} {
		s := th.visit(t, width)
		s.goTo("workflows", says("From template"))
		s.value(`void [...document.querySelectorAll("#main a")].find((a) => a.textContent.trim() === "From template").click()`)
		s.until(`document.querySelectorAll(".template-card").length === 15`)
		s.unharmed("the templates")
		s.value(`void document.querySelector(".template-card").click()`)
		s.until(`document.querySelector(".template-form") && ` + says("Upload a file") + ` && document.querySelector(".preview-node, .preview-list li")`)
		if i == 1 { // what is there is used
			s.until(`document.querySelector(".template-gateway select").value.startsWith("gateway-")`)
			s.unharmed("the form of a template")
			continue
		}
		s.press("Set up")
		s.until(`document.querySelectorAll(".template-form .issue").length === 2 && document.activeElement.type === "password"`)
		s.unharmed("the form of a template")
		// the platform is a stand-in
		s.value(`(() => { const real = window.fetch; window.fetch = (to, how) => real(to, String(how?.body).includes("botToken") ? { ...how, body: how.body.replace('"botToken"', '"apiBaseUrl":' + JSON.stringify(` + quoted(bot.URL) + `) + ',"botToken"') } : how); })()`)
		s.fill("Bot token", "77:secret-of-the-bot")
		s.value(`(() => { const field = document.querySelector(".template-form input[type=file]"); const files = new DataTransfer(); files.items.add(new File([` + quoted(handbook) + `], "handbook.md")); field.files = files.files; field.dispatchEvent(new Event("change", { bubbles: true })); })()`)
		s.until(`document.querySelector(".template-form select").value.startsWith("source-")`)
		s.press("Set up")
		s.until(`document.querySelector(".last-step.done")?.textContent.includes("Telegram bot")`)
		s.unharmed("the last steps")
		s.press("Go live")
		s.until(says("It is live") + ` && document.querySelectorAll(".last-step.done").length === 2`)
		bot.write("May I bring a loaf back?")
		if got := bot.answer(t); got != "Within two days." {
			t.Errorf("the bot says %q", got)
		}
		s.unharmed("a template that is live")
	}
}

// TestConsoleEditorByKeyboard makes, tests and activates a workflow without a
// mouse.
func TestConsoleEditorByKeyboard(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	s := th.visit(t, 1280)
	s.goTo("workflows", says("No workflows yet"))
	s.tabTo("Tab", reading+`"New workflow"`)
	s.keys("Enter")
	s.until(`document.querySelector("dialog[open]") && document.activeElement.labels?.[0]?.textContent === "Name"`)
	s.types("Greeting")
	s.keys("Enter")
	s.until(steps("") + ` === 2 && !document.querySelector("dialog")`)
	s.tabTo("Tab", `it.classList.contains("editor-view")`)
	s.keys("ArrowRight", "ArrowRight")
	s.until(`document.querySelector(".node.selected strong")?.textContent === "Say hello"`)
	s.keys("Tab")
	s.until(`document.querySelector("dialog .node-option")`)
	s.types("knowledge")
	s.until(`document.querySelector(".node-option[aria-selected=true] strong").textContent === "Search knowledge"`)
	s.keys("Enter")
	s.until(steps("") + ` === 3 && !document.querySelector("dialog") && document.querySelectorAll(".react-flow__edge").length === 2`)
	s.keys("Enter")
	s.until(`document.activeElement.closest(".editor-panel")`)
	s.tabTo("Tab", `it.closest("[data-field=query]")`)
	s.types("{{nodes.hel")
	s.until(`document.querySelector(".suggestions [aria-selected=true] code")?.textContent.includes("nodes.hello")`)
	s.keys("Enter")
	s.types(".te")
	s.until(`document.querySelector(".suggestions [aria-selected=true] code")?.textContent.includes("nodes.hello.text")`)
	s.keys("Enter")
	s.until(`document.activeElement.value === "{{nodes.hello.text}}" && document.querySelector("[data-field=query] .filled").textContent.includes("Hello")`)
	s.keys("Control+Enter")
	s.until(`document.querySelector(".test-results .badge")?.textContent === "complete" && ` + steps(".success") + ` === 3`)
	s.unharmed("the test")
	s.keys("Control+s")
	s.until(`document.querySelector(".saved-state").textContent.startsWith("Saved")`)
	s.tabTo("Shift+Tab", reading+`"Go live"`)
	s.keys("Enter")
	s.until(`document.querySelector(".editor-bar .badge").textContent === "active"`)
	s.tabTo("Tab", `it.classList.contains("editor-view")`)
	s.keys("p")
	s.until(`document.querySelectorAll(".node-pin").length === 1`)
	s.keys("d")
	s.until(steps(".disabled") + ` === 1`)
	s.keys("c")
	s.until(`document.querySelector("dialog h2")?.textContent.startsWith("Connect ")`)
	s.keys("Escape")
	s.until(`!document.querySelector("dialog")`)
	s.value(`document.querySelector(".editor-view").focus()`)
	s.keys("Delete")
	s.until(steps("") + ` === 2`)
	s.keys("Control+z")
	s.until(steps("") + ` === 3`)
	s.unharmed("the editor")
}

// TestConsoleShelf drags types of nodes onto the canvas and onto an edge.
func TestConsoleShelf(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	id := saved(t, th.visitor, `[{"id":"start","type":"trigger","position":{"x":0,"y":0},"data":{}},{"id":"end","type":"set","position":{"x":400,"y":0},"data":{"values":{"a":1}}}]`, `[{"id":"e1","source":"start","target":"end"}]`, "")
	s := th.visit(t, 1280)
	drag := func(label, at string) {
		s.value(`(() => {
			const data = new DataTransfer();
			const from = [...document.querySelectorAll(".shelf-node")].find((b) => b.textContent.trim() === ` + quoted(label) + `);
			const place = ` + at + `;
			const to = document.elementFromPoint(place.x, place.y);
			const how = { bubbles: true, cancelable: true, dataTransfer: data, clientX: place.x, clientY: place.y };
			from.dispatchEvent(new DragEvent("dragstart", how));
			to.dispatchEvent(new DragEvent("dragover", how));
			to.dispatchEvent(new DragEvent("drop", how));
		})()`)
	}
	s.goTo("workflows/"+id, steps("")+` === 2 && document.querySelectorAll(".react-flow__edge").length === 1`)
	drag("If", `(() => { const b = document.querySelector(".react-flow__edge path").getBoundingClientRect(); return { x: b.x + b.width / 2, y: b.y + b.height / 2 }; })()`)
	s.until(steps("") + ` === 3 && document.querySelectorAll(".react-flow__edge").length === 2`)
	s.keys("Escape")
	s.until(`document.querySelector(".node-shelf")?.checkVisibility()`)
	drag("Wait", `(() => { const b = document.querySelector(".editor-view").getBoundingClientRect(); return { x: b.x + b.width / 2, y: b.bottom - 90 }; })()`)
	s.until(steps("") + ` === 4 && document.querySelectorAll(".react-flow__edge").length === 2`)
	s.unharmed("the canvas")
}

// TestConsoleMendsFailure goes from a failure on Home to the node, mends its
// field, and repeats the execution.
func TestConsoleMendsFailure(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	id := saved(t, th.visitor, `[{"id":"start","type":"trigger","data":{}},{"id":"pay","type":"code","data":{"label":"Pay","code":"throw new Error('no such order')"}}]`, `[{"source":"start","target":"pay"}]`, "")
	th.must(t, 200, "POST", flowBase+"/execute?wait=30", `{"workflow_id":"`+id+`","input":{"order":7}}`)
	s := th.visit(t, 1280)
	s.until(says("no such order"))
	s.value(`void [...document.querySelectorAll("#main a")].find((a) => a.textContent.includes("Pay") || a.textContent.includes("no such order")).click()`)
	s.until(`document.querySelector(".card.bad")?.textContent.includes("no such order") && document.querySelector(".editor-panel h2").textContent === "Pay"`)
	s.value(`void [...document.querySelectorAll(".editor-panel .tabs button")].find((b) => b.textContent === "Input").click()`)
	s.until(`document.querySelector(".editor-panel").textContent.includes("order: 7")`)
	s.press("Compare")
	s.until(says("Nothing to compare with"))
	s.unharmed("the failure")
	s.keys("e")
	s.until(`document.querySelector(".editor-page:not(.execution-page)") && document.querySelector(".editor-panel h2").textContent === "Pay"`)
	s.writeCode("return {paid: trigger.order}")
	s.press("Save and go live")
	s.until(`document.querySelector(".editor-bar").textContent.includes("v2")`)
	s.value(`history.back()`)
	s.until(`document.querySelector(".execution-page .card.bad")`)
	s.press("Retry")
	s.until(`document.querySelector(".execution-page .editor-bar .badge")?.textContent === "complete" && ` + says("It repeats"))
	s.press("Compare")
	s.until(`document.querySelectorAll(".compare li").length === 1 && document.querySelector(".compare").textContent.includes("status differs")`)
	s.unharmed("the comparison")
}

// TestConsoleTwoEditors has two people save one workflow: what each changed is
// joined. What was not saved is offered again.
func TestConsoleTwoEditors(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	id := saved(t, th.visitor, `[{"id":"start","type":"trigger","position":{"x":0,"y":0},"data":{}},{"id":"a","type":"set","position":{"x":300,"y":0},"data":{"values":{"v":1}}},{"id":"b","type":"set","position":{"x":600,"y":0},"data":{"values":{"v":2}}}]`, `[{"source":"start","target":"a"},{"source":"a","target":"b"}]`, "")
	ada, bob := th.visit(t, 1280), th.visit(t, 1280)
	for _, s := range []*stranger{ada, bob} {
		s.goTo("workflows/"+id, steps("")+` === 3`)
	}
	ada.until(`document.querySelector(".others")?.textContent.includes("Another tab")`)
	label := func(s *stranger, node, name string) {
		s.value(`location.hash = ` + quoted(s.at+"workflows/"+id+"?node="+node))
		s.until(`document.querySelector(".editor-panel code")?.textContent === ` + quoted(node))
		s.fill("Name", name)
		s.until(`document.querySelector(".saved-state").textContent === "Unsaved"`)
	}
	labels := func() string {
		w := th.must(t, 200, "GET", flowBase+"/"+id, "")
		return fmt.Sprint(at(w, "nodes.1.data.label"), " ", at(w, "nodes.2.data.label"), " ", at(w, "version"))
	}
	label(ada, "a", "Ada's")
	label(bob, "b", "Bob's")
	bob.until(`document.querySelector(".others")?.textContent.includes("changes it")`)
	bob.press("Save and go live")
	bob.until(`document.querySelector(".saved-state").textContent.startsWith("Saved")`)
	ada.press("Save and go live")
	ada.until(`document.querySelector("dialog")?.textContent.includes("Version 2 was saved")`)
	ada.press("Join and save")
	ada.until(`!document.querySelector("dialog") && document.querySelector(".saved-state").textContent.startsWith("Saved")`)
	if got := labels(); got != "Ada's Bob's 3" {
		t.Errorf("joined: %s", got)
	}
	bob.until(`[...document.querySelectorAll(".node strong")].some((n) => n.textContent === "Ada's")`) // by the stream
	label(ada, "a", "Ada again")
	label(bob, "a", "Bob again")
	bob.press("Save and go live")
	bob.until(`document.querySelector(".saved-state").textContent.startsWith("Saved")`)
	ada.press("Save and go live")
	ada.until(`document.querySelector("dialog")?.textContent.includes("Changed by both")`)
	ada.unharmed("a conflict")
	ada.press("Save mine as a copy")
	ada.until(`document.querySelector("h1").textContent.endsWith("(copy)") && [...document.querySelectorAll(".node strong")].some((n) => n.textContent === "Ada again")`)
	if got := labels(); got != "Bob again Bob's 4" {
		t.Errorf("beside the copy: %s", got)
	}
	label(bob, "b", "Never saved")
	bob.value(`new Promise((done) => { const open = indexedDB.open("satchel.workflows"); open.onsuccess = function look() {
		const all = open.result.transaction("drafts").objectStore("drafts").getAll();
		all.onsuccess = () => (JSON.stringify(all.result).includes("Never saved") ? done() : setTimeout(look, 20));
	}; })`)
	bob.goTo("workflows", says("From template"))
	bob.goTo("workflows/"+id, `document.querySelector(".draft-offer")?.textContent.includes("were not saved")`)
	bob.press("Take them up")
	bob.until(`[...document.querySelectorAll(".node strong")].some((n) => n.textContent === "Never saved") && document.querySelector(".saved-state").textContent === "Unsaved"`)
	bob.unharmed("a draft")
}
