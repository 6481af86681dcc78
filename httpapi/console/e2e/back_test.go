package e2e

import "testing"

// TestConsoleBack checks that Back closes a dialog, a menu and a drawer before it leaves
// their page, that other pages open without them, and that a long tap opens the menu of a
// row and of a node.
func TestConsoleBack(t *testing.T) {
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
	there := `location.hash.endsWith("/workflows")`
	longTap := func(what string) {
		p.eval(`(() => {
			const b = ` + what + `.getBoundingClientRect(), how = { bubbles: true, cancelable: true, pointerType: "touch", isPrimary: true, clientX: b.x + b.width / 2, clientY: b.y + b.height / 2 };
			` + what + `.dispatchEvent(new PointerEvent("pointerdown", how));
		})()`)
	}
	menu := func(entry string) string {
		return `[...document.querySelectorAll("[role=menu] [role=menuitem]")].some((b) => b.textContent === ` +
			quoted(entry) + `)`
	}
	p.open("workflows", `document.querySelector("#main tbody tr, #main ul li [aria-haspopup=menu]")`)
	p.click("New workflow")
	p.waitFor(`document.querySelector("dialog[open]") && history.state?.layer === "open"`)
	p.eval(`history.back()`)
	p.waitFor(`!document.querySelector("dialog") && history.state?.layer !== "open" && ` + there)
	p.click("New workflow")
	p.waitFor(`document.querySelector("dialog[open]") && history.state?.layer === "open"`)
	p.pressKeys("Escape")
	p.waitFor(`!document.querySelector("dialog") && history.state?.layer === "spent" && ` + there)
	p.eval(`history.back()`)
	p.waitFor(`document.querySelector("#main h1")?.textContent === "Home"`)
	p.open("workflows", `document.querySelector("#main [aria-haspopup=menu]")`)
	p.click("New workflow")
	p.waitFor(`document.querySelector("dialog[open]") && history.state?.layer === "open"`)
	p.open("knowledge", `!document.querySelector("dialog")`)
	p.eval(`history.back()`)
	p.waitFor(there + ` && history.state?.layer !== "open" && document.querySelector("#main [aria-haspopup=menu]")`)

	longTap(`document.querySelector("#main [aria-label^='Actions for']").closest("tr, li")`)
	p.waitFor(menu("Export"))
	p.open("workflows/"+id, countNodes("")+` === 2`)
	longTap(`document.querySelectorAll(".react-flow__node")[1]`)
	p.waitFor(menu("Duplicate") + ` && history.state?.layer === "open"`)
	p.checkPage("the menu of a node")
	p.eval(`history.back()`)
	p.waitFor(`!document.querySelector("[role=menu]") && location.hash.endsWith(` + quoted(id) + `)`)
	longTap(`document.querySelectorAll(".react-flow__node")[1]`)
	p.waitFor(menu("Delete"))
	p.clickOn(`[...document.querySelectorAll("[role=menuitem]")].find((b) => b.textContent === "Delete")`)
	p.waitFor(countNodes("") + ` === 1`)
	p.pressKeys("Control+z")
	p.waitFor(countNodes("") + ` === 2`)

	p.open("activity/log", `document.querySelector("#main tbody tr button, #main tbody tr a")`)
	p.clickOn(`document.querySelector("#main tbody tr button, #main tbody tr a")`)
	p.waitFor(`document.querySelector(".drawer") && history.state?.layer === "open"`)
	p.eval(`history.back()`)
	p.waitFor(`!document.querySelector(".drawer") && location.hash.endsWith("/activity/log")`)
}
