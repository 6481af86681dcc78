package e2e

import (
	"fmt"
	"testing"

	"satchel/browser"
)

// TestConsoleDraftsOfTabs checks that tabs of one browser keep their unsaved changes
// apart. Those of a closed tab are offered to the next one, and those of an open tab are
// not.
func TestConsoleDraftsOfTabs(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := createFlow(
		t,
		ts.testClient,
		`[{"id":"start","type":"trigger","position":{"x":0,"y":0},"data":{}},{"id":"a","type":"set",`+
			`"position":{"x":300,"y":0},"data":{"values":{"v":1}}}]`,
		`[{"source":"start","target":"a"}]`,
		"",
	)
	session := openWindow(t, 1280, 900, ts.url+"/")
	open := func(p *browser.Page) *consolePage {
		c := &consolePage{ts.tab(t, p), "#/agents/default/"}
		c.cdp("Page.navigate", map[string]any{"url": ts.url + "/"})
		c.waitFor(`window.turn && document.querySelector("#main h1")?.textContent === "Home"`)
		c.eval(`location.hash = ` + quoted(c.base+"workflows/"+id+"?node=a"))
		c.waitFor(`document.querySelector(".editor-panel code")?.textContent === "a"`)
		return c
	}
	next := func() *consolePage {
		t.Helper()
		p, err := session.OpenPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return open(p)
	}
	leave := func(p *consolePage) { // a killed tab does not ask before it closes
		p.eval(`void addEventListener("beforeunload", (e) => e.stopImmediatePropagation(), true)`)
		p.cdp("Page.navigate", map[string]any{"url": "about:blank"})
		p.waitFor(`location.href === "about:blank"`)
	}
	ada := open(session.ActivePage())
	ada.fill("Name", "Ada's")
	ada.kept("Ada's")
	bob := next()
	if bob.eval(`Boolean(document.querySelector(".draft-offer"))`) != false {
		t.Error("the changes of a tab that is open are offered to another")
	}
	bob.fill("Name", "Bob's")
	bob.kept("Bob's")
	leave(ada)
	eve := next()
	eve.waitFor(`document.querySelector(".draft-offer")?.textContent.includes("were not saved")`)
	eve.click("Restore")
	eve.waitFor(`[...document.querySelectorAll(".node strong")].some((n) => n.textContent === "Ada's")`)
	eve.fill("Name", "Left at once")
	eve.open("workflows", hasText("From template"))
	eve.kept("Left at once")
	bob.kept("Bob's")
}

// kept waits until a draft with a text is in the browser.
func (p *consolePage) kept(text string) {
	p.t.Helper()
	p.eval(`new Promise((done) => { const open = indexedDB.open("satchel.workflows"); open.onsuccess = function look() {
		const all = open.result.transaction("drafts").objectStore("drafts").getAll();
		all.onsuccess = () => (JSON.stringify(all.result).includes(` + quoted(text) + `) ? done() : setTimeout(look, 20));
	}; })`)
}

// TestConsoleTwoEditors has two people save one workflow: their changes are
// merged. Unsaved changes are offered again.
func TestConsoleTwoEditors(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := createFlow(
		t,
		ts.testClient,
		`[{"id":"start","type":"trigger","position":{"x":0,"y":0},"data":{}},{"id":"a","type":"set",`+
			`"position":{"x":300,"y":0},"data":{"values":{"v":1}}},{"id":"b","type":"set","position":{"x":600,`+
			`"y":0},"data":{"values":{"v":2}}}]`,
		`[{"source":"start","target":"a"},{"source":"a","target":"b"}]`,
		"",
	)
	ada, bob := ts.openConsole(t, 1280), ts.openConsole(t, 1280)
	for _, p := range []*consolePage{ada, bob} {
		p.open("workflows/"+id, countNodes("")+` === 3`)
	}
	ada.waitFor(`document.querySelector(".others")?.textContent.includes("Another tab")`)
	label := func(p *consolePage, node, name string) {
		p.walk.clicked()
		p.eval(`location.hash = ` + quoted(p.base+"workflows/"+id+"?node="+node))
		p.waitFor(`document.querySelector(".editor-panel code")?.textContent === ` + quoted(node))
		p.fill("Name", name)
		p.waitFor(`document.querySelector(".saved-state").textContent === "Unsaved"`)
	}
	labels := func() string {
		w := ts.must(t, 200, "GET", flowBase+"/"+id, "")
		return fmt.Sprint(at(w, "nodes.1.data.label"), " ", at(w, "nodes.2.data.label"), " ", at(w, "version"))
	}
	w := ada.begin(9, "Two tabs edit, one is killed: draft, 409, join", 8)
	bob.walk = w
	label(ada, "a", "Ada's")
	ada.kept("Ada's")
	label(bob, "b", "Bob's")
	bob.waitFor(`document.querySelector(".others")?.textContent.includes("is editing")`)
	// a killed browser does not ask before it closes
	ada.eval(`void addEventListener("beforeunload", (e) => e.stopImmediatePropagation(), true)`)
	ada.cdp("Page.navigate", map[string]any{"url": "about:blank"})
	ada.waitFor(`location.href === "about:blank"`)
	ada.cdp("Page.navigate", map[string]any{"url": ts.url + "/" + ada.base + "workflows/" + id})
	ada.waitFor(`window.faults && document.querySelector(".draft-offer")?.textContent.includes("were not saved")`)
	ada.click("Restore")
	ada.waitFor(`document.querySelector(".saved-state").textContent === "Unsaved"`)
	bob.click("Save and go live")
	bob.waitFor(`document.querySelector(".saved-state").textContent.startsWith("Saved")`)
	ada.click("Save and go live")
	ada.waitFor(`document.querySelector("dialog")?.textContent.includes("Version 2 was saved")`)
	ada.click("Merge and save")
	ada.waitFor(
		`!document.querySelector("dialog") && document.querySelector(".saved-state").textContent.startsWith("Saved")`,
	)
	w.end(t)
	if got := labels(); got != "Ada's Bob's 3" {
		t.Errorf("merged: %s", got)
	}
	// through the stream
	bob.waitFor(`[...document.querySelectorAll(".node strong")].some((n) => n.textContent === "Ada's")`)
	label(ada, "a", "Ada again")
	label(bob, "a", "Bob again")
	bob.click("Save and go live")
	bob.waitFor(`document.querySelector(".saved-state").textContent.startsWith("Saved")`)
	ada.click("Save and go live")
	ada.waitFor(`document.querySelector("dialog")?.textContent.includes("Changed in both")`)
	ada.checkPage("a conflict")
	ada.click("Save mine as a copy")
	ada.waitFor(`document.querySelector("h1").textContent.endsWith("(copy)") && ` +
		`[...document.querySelectorAll(".node strong")].some((n) => n.textContent === "Ada again")`)
	if got := labels(); got != "Bob again Bob's 4" {
		t.Errorf("the workflow that was copied: %s", got)
	}
	label(bob, "b", "Never saved")
	bob.kept("Never saved")
	bob.open("workflows", hasText("From template"))
	bob.open("workflows/"+id, `document.querySelector(".draft-offer")?.textContent.includes("were not saved")`)
	bob.click("Restore")
	bob.waitFor(`[...document.querySelectorAll(".node strong")].some((n) => n.textContent === "Never saved") && ` +
		`document.querySelector(".saved-state").textContent === "Unsaved"`)
	bob.checkPage("a draft")

	phone := ts.openConsole(t, 375)
	phone.open("workflows/"+id, `document.querySelector(".outline")`)
	label(phone, "b", "On a phone")
	phone.waitFor(`(() => { const save = [...document.querySelectorAll(".editor-bar button")].find((b) => ` +
		`b.textContent.trim() === "Save and go live"), at = save.getBoundingClientRect(); ` +
		`return save.contains(document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2)); })()`)
	phone.kept("On a phone")
	phone.open("workflows", hasText("From template"))
	phone.open("workflows/"+id, `document.querySelector(".draft-offer")`)
	if overlap := phone.eval(`(() => { const said = document.createRange(); ` +
		`said.selectNodeContents(document.querySelector(".draft-offer .grow")); ` +
		`const a = said.getBoundingClientRect(); return [...document.querySelectorAll(".draft-offer ` +
		`button")].some((e) => { const b = e.getBoundingClientRect(); return b.left < a.right && ` +
		`a.left < b.right && b.top < a.bottom && a.top < b.bottom; }); })()`); overlap != false {
		t.Error("on a phone, buttons cover the text about a draft")
	}
	phone.checkPage("a draft on a phone")
}
