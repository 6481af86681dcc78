package e2e

import (
	"fmt"
	"testing"
)

// marked returns an expression for the names of the nodes that a dialog's canvas
// marks as added, changed or removed.
func marked(change string) string {
	return `[...document.querySelectorAll("dialog .node.` + change + ` strong")].map((e) => e.textContent).join()`
}

// TestConsoleVersions compares versions of a workflow with the editor and with each
// other, and restores one: at once when nothing is lost, otherwise after a question.
func TestConsoleVersions(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	graph := func(code, more, edges string) string {
		return `{"nodes":[{"id":"start","type":"trigger","position":{"x":0,"y":0}},{"id":"pay","type":"code",` +
			`"position":{"x":300,"y":0},"data":{"label":` + quoted(hostile) + `,"code":` + quoted(code) + `}}` + more +
			`],"edges":[{"source":"start","target":"pay"}` + edges + `],`
	}
	first := ts.must(
		t, 201, "POST", flowBase,
		graph(
			"const rate = 0.19;\nreturn {rate};",
			`,{"id":"old","type":"set","position":{"x":300,"y":150},"data":{"label":"Old way","values":{"a":1}}}`,
			`,{"source":"start","target":"old"}`,
		)+
			`"name":"Refund"}`,
	)
	id := fmt.Sprint(first["id"])
	ts.must(
		t, 200, "PUT", flowBase+"/"+id,
		graph(
			"const rate = 0.07; // food\nreturn {rate};",
			`,{"id":"mail","type":"set","position":{"x":600,"y":0},"data":{"label":"Tell Ada","values":{"a":2}}}`,
			`,{"source":"start","target":"mail"}`,
		)+
			`"note":`+quoted(hostile)+`}`,
	)
	ts.must(
		t, 200, "PUT", flowBase+"/"+id,
		graph(
			"const rate = 0.07; // food\nreturn {rate};",
			`,{"id":"mail","type":"set","position":{"x":600,"y":0},"data":{"label":"Tell Ada","values":{"a":2}}}`,
			`,{"source":"pay","target":"mail"}`,
		)+
			`"status":"active"}`,
	)
	source := axe(t)
	for _, look := range axeLooks {
		p := ts.openConsole(t, look.width)
		p.colorScheme(look.scheme)
		p.eval(source + `; void 0`)
		rows := `document.querySelectorAll(".versions tbody tr")`
		compare := func(version int) {
			p.clickOn(fmt.Sprintf(
				`[...%s].find((r) => parseInt(r.textContent) === %d).querySelector(".actions button")`,
				rows, version,
			))
			p.waitFor(
				`document.querySelector("dialog[open] h2")?.textContent === "Version ` + fmt.Sprint(version) + `"`,
			)
		}
		p.open("workflows/"+id+"?tab=versions", rows+`.length === 3 && `+countNodes("")+` === 3`)
		compare(1)
		p.waitFor(marked("changed") + ` === ` + quoted(hostile) + ` && ` + marked("removed") + ` === "Old way"`)
		if got := p.eval(`[...document.querySelectorAll("dialog .field-diff pre > *")].map((l) => l.localName + " " ` +
			`+ l.textContent).join("\n")`); got != "del const rate = 0.19;\nins const rate = 0.07; "+
			"// food\nspan return {rate};" {
			t.Errorf("the code differs by\n%v", got)
		}
		p.checkPage("version 1 next to the editor")
		p.checkAccessible("version 1 next to the editor, " + look.scheme)
		p.pressKeys("Escape")
		p.waitFor(`!document.querySelector("dialog")`)
		compare(3) // the current one, compared with the one before
		p.waitFor(`document.querySelector("dialog .version-changes")?.textContent.startsWith("2 connections") && ` +
			`document.querySelector("dialog .version-changes").textContent.includes("→ Tell Ada")`)
		p.pressKeys("Escape")
		p.waitFor(`!document.querySelector("dialog")`)
		compare(2)
		p.click("Version 1")
		p.waitFor(marked("added") + ` === "Tell Ada" && ` + marked("changed") + ` === ` + quoted(hostile))
		p.click("Restore") // asks, because the live version changes
		p.waitFor(`[...document.querySelectorAll("dialog h2")].at(-1).textContent === "Restore version 2?"`)
		p.checkPage("the question")
		p.pressKeys("Escape")
		p.waitFor(`document.querySelectorAll("dialog").length === 1`)
		p.pressKeys("Escape")
		p.waitFor(`!document.querySelector("dialog")`)
		if now := ts.must(t, 200, "GET", flowBase+"/"+id, ""); at(now, "edges.1.source") != "pay" {
			t.Errorf("restored without a confirmation: %v", now["edges"])
		}
	}
	ts.must(t, 200, "POST", flowBase+"/execute?wait=20", `{"workflow_id":"`+id+`","input":{}}`)
	p := ts.openConsole(t, 1280)
	p.open("workflows/"+id+"?tab=versions", `document.querySelector("[aria-label='1 execution of version 3']")`)
	p.clickOn(`document.querySelector("[aria-label='1 execution of version 3']")`)
	p.waitFor(`document.querySelectorAll("#main tbody tr").length === 1`)
	p.checkPage("the executions of a version")
	p.click("Version 3")
	p.waitFor(`!location.hash.includes("version") && document.querySelectorAll("#main tbody tr").length === 1`)
	ts.must(t, 200, "PUT", flowBase+"/"+id, `{"status":"draft"}`)
	p.open("workflows/"+id+"?tab=versions", `document.querySelectorAll(".versions tbody tr").length === 3`)
	p.eval(`document.querySelector(".editor-view").focus()`)
	p.pressKeys("n") // not saved
	p.typeText("Ask Ada first")
	p.waitFor(`document.querySelector(".saved-state").textContent === "Unsaved"`)
	p.click("Restore")
	p.waitFor(`document.querySelector("dialog p")?.textContent === "Your unsaved changes are lost."`)
	p.click("Restore")
	p.waitFor(`document.querySelectorAll(".versions tbody tr").length === 4 && ` +
		`document.querySelector(".saved-state").textContent.startsWith("Saved") && ` +
		`!document.querySelector("dialog, .canvas-note")`)
}

// paste dispatches a clipboard event with a text as the browser does, over a point of the
// canvas.
func (p *consolePage) paste(text string, x, y float64) {
	p.t.Helper()
	p.cdp("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": x, "y": y})
	p.eval(`(() => {
		const clipboardData = new DataTransfer();
		clipboardData.setData("text/plain", ` + quoted(text) + `);
		document.querySelector(".editor-view").dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData }));
	})()`)
}

// copied returns what copying puts into the clipboard.
func (p *consolePage) copied() string {
	p.t.Helper()
	return fmt.Sprint(p.eval(`(() => {
		const clipboardData = new DataTransfer();
		document.querySelector(".editor-view").dispatchEvent(new ClipboardEvent("copy", { bubbles: true, cancelable: true, clipboardData }));
		return clipboardData.getData("text/plain");
	})()`))
}

// TestConsolePaste copies nodes and a note, pastes them under the mouse and next to
// themselves, and pastes nodes of n8n; one undo reverts each paste.
func TestConsolePaste(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := createFlow(
		t,
		ts.testClient,
		`[{"id":"start","type":"trigger","position":{"x":0,"y":0},"data":{},"metadata":{"notes":[{"text":"Ask Ada","x":0,"y":150,"width":240,"height":120}]}},
		{"id":"a","type":"set","position":{"x":300,"y":0},"data":{"label":"First","values":{"n":1}}},{"id":"b","type":"set","position":{"x":600,"y":0},"data":{"label":"Second","values":{"n":"{{nodes.a.n}}"}}}]`,
		`[{"source":"start","target":"a"},{"source":"a","target":"b"}]`,
		"",
	)
	p := ts.openConsole(t, 1280)
	notes := `document.querySelectorAll(".canvas-note").length`
	p.open("workflows/"+id, countNodes("")+` === 3 && `+notes+` === 1`)
	p.eval(`document.querySelector(".editor-view").focus()`)
	p.pressKeys("Control+a")
	p.waitFor(countNodes(".selected") + ` === 3 && document.querySelector(".canvas-note.selected")`)
	all := p.copied()
	p.paste(all, 700, 700)
	p.waitFor(countNodes("") + ` === 6 && ` + notes + ` === 2 && ` + countNodes(".selected") + ` === 3`)
	if got := p.eval(`(() => { const b = [...document.querySelectorAll(".node.selected, ` +
		`.canvas-note.selected")].map((e) => e.getBoundingClientRect()); return [Math.min(...b.map((r) => r.left)) ` +
		`< 700, Math.max(...b.map((r) => r.right)) > 700, Math.min(...b.map((r) => r.top)) < 700, ` +
		`Math.max(...b.map((r) => r.bottom)) > 700].join(); })()`); got != "true,true,true,true" {
		t.Errorf("the pasted nodes are not under the mouse: %v", got)
	}
	p.checkPage("a paste")
	p.pressKeys("Control+z")
	p.waitFor(countNodes("") + ` === 3 && ` + notes +
		` === 1 && document.querySelector(".saved-state").textContent.startsWith("Saved")`)

	places := `[...document.querySelectorAll(".react-flow__node")].map((e) => e.style.transform)`
	for range 2 { // never on top of one another
		p.paste(all, 20, 500) // outside of the graph
	}
	p.waitFor(countNodes("") + ` === 9 && new Set(` + places + `).size === 12`)
	p.pressKeys("Control+z", "Control+z", "Control+z") // one more than exists
	p.waitFor(countNodes("") + ` === 3 && document.querySelector(".saved-state").textContent.startsWith("Saved")`)

	p.pressKeys("Control+a", "Delete")
	p.waitFor(countNodes("") + ` === 0 && ` + notes + ` === 0`)
	p.pressKeys("Control+z")
	p.waitFor(countNodes("") + ` === 3 && ` + notes + ` === 1`)

	p.paste(`{"nodes":[{"parameters":{"url":"https://example.com/{{ $json.id }}"},"type":"n8n-nodes-base.httpRequest","typeVersion":4.2,"position":[0,0],"id":"1","name":`+quoted(hostile)+`},
		{"parameters":{},"type":"n8n-nodes-base.noOp","typeVersion":1,"position":[220,0],"id":"2","name":"Nothing"}],"connections":{`+quoted(hostile)+`:{"main":[[{"node":"Nothing","type":"main","index":0}]]}}}`, 700, 600)
	p.waitFor(countNodes("") + ` > 3 && document.querySelector(".toasts").textContent.startsWith("Pasted ")`)
	p.checkPage("nodes of n8n")
	p.pressKeys("Control+z")
	p.waitFor(countNodes("") + ` === 3`)
	p.paste(`{"nodes":[],"connections":{"x":3}`, 700, 600) // not JSON
	p.paste("just text", 700, 600)
	p.paste(`{"satchel":"workflow/1","nodes":[]}`, 700, 600)
	p.checkPage("text that is not a graph")
	if got := p.eval(countNodes("")); got != float64(3) {
		t.Errorf("%v nodes", got)
	}
}

// TestConsoleAddsAtTheEnd adds a node on a phone with nothing selected: it is placed
// after the only end of the graph, where it is executed.
func TestConsoleAddsAtTheEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := createFlow(
		t,
		ts.testClient,
		`[{"id":"start","type":"trigger","data":{}},{"id":"end","type":"set","data":{"values":{"a":1}}}]`,
		`[{"source":"start","target":"end"}]`,
		"",
	)
	p := ts.openConsole(t, 375)
	p.open("workflows/"+id, countNodes("")+` === 2`)
	p.clickOn(`document.querySelector(".canvas-tools button[aria-label^='Add a node']")`)
	p.waitFor(`document.querySelector("dialog .node-option")`)
	p.typeText("search know")
	p.waitFor(`document.querySelector(".node-option[aria-selected=true] strong")?.textContent === "Search knowledge"`)
	p.pressKeys("Enter")
	p.waitFor(`document.querySelector("[data-field=query] textarea")`)
	p.checkPage("a new node")
	p.eval(`document.querySelector("[data-field=query] textarea").focus()`)
	p.typeText("opening hours")
	p.pressKeys("Escape")
	p.click("Save and go live")
	p.waitFor(`document.querySelector(".saved-state").textContent.startsWith("Saved")`)
	if stored := ts.must(t, 200, "GET", flowBase+"/"+id, ""); at(stored, "edges.1.source") != "end" ||
		at(stored, "edges.1.target") != "search" {
		t.Errorf("edges: %v", stored["edges"])
	}
	if got := p.eval(`new Set([...document.querySelectorAll(".editor-bar > *")].filter((e) => ` +
		`e.checkVisibility()).map((e) => Math.round(e.getBoundingClientRect().top / 40))).size`); got.(float64) > 2 {
		t.Errorf("the bar has %v rows", got)
	}
}
