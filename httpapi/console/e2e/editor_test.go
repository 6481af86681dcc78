package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// openNode shows a node in the editor of a workflow with all its fields.
func (p *consolePage) openNode(workflow, node string) {
	p.t.Helper()
	p.eval(`location.hash = ` + quoted(p.base+"workflows/"+workflow+"?node="+node))
	p.waitFor(`document.querySelector(".editor-panel h2 + p code")?.textContent === ` + quoted(node) +
		` && document.querySelector(".editor-panel .field")`)
	p.eval(`document.querySelectorAll(".editor-panel details").forEach((d) => { d.open = true; })`)
}

// typeInto types into the field that an expression evaluates to, one key at a time.
func (p *consolePage) typeInto(field, text string) {
	p.t.Helper()
	p.waitFor(`(window.field = ` + field + `)`)
	p.eval(`field.focus(), field.select()`)
	for _, key := range text {
		p.cdp("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": string(key), "text": string(key)})
		p.cdp("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": string(key)})
	}
}

// TestConsoleKeepsWhatIsTyped types decimals, which are other numbers while they are
// typed, and templates faster than the page is drawn.
func TestConsoleKeepsWhatIsTyped(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := createFlow(
		t,
		ts.testClient,
		`[{"id":"start","type":"trigger","data":{}},{"id":"find","type":"search","data":{"query":"bread"}},{"id":"values","type":"set","data":{"values":{"a":"x"}}},
		{"id":"big","type":"if-else","data":{"conditions":[{"left":"{{trigger.x}}","operator":"gt","right":1}]}},{"id":"each","type":"loop","data":{"items":"x"}}]`,
		`[{"source":"start","target":"find"},{"source":"find","target":"values"},{"source":"values","target":"big"},`+
			`{"source":"big","target":"each","sourceHandle":"true"}]`,
		"",
	)
	ts.must(t, 200, "PUT", flowBase+"/"+id, `{"status":"draft"}`)
	p := ts.openConsole(t, 1280)
	for _, c := range []struct{ node, field, text, saved string }{
		{"find", `document.querySelector("[data-field=min_score] textarea")`, "0.305", "nodes.1.data.min_score=0.305"},
		{"values", `document.querySelector(".key-value textarea")`, "1.05", "nodes.2.data.values.a=1.05"},
		{
			"big",
			`[...document.querySelectorAll(".condition textarea")].at(-1)`,
			"0.05",
			"nodes.3.data.conditions.0.right=0.05",
		},
		{
			"each",
			`document.querySelector("[data-field=items] textarea")`,
			"{{nodes.find.results",
			"nodes.4.data.items={{nodes.find.results}}",
		},
		{
			"find",
			`document.querySelector("[data-field=query] textarea")`,
			"{{trigger.x}} or {{trigger.y}}",
			"nodes.1.data.query={{trigger.x}} or {{trigger.y}}",
		},
	} {
		p.openNode(id, c.node)
		p.typeInto(c.field, c.text)
		want := c.text
		if strings.HasPrefix(want, "{{") && !strings.HasSuffix(want, "}}") {
			want += "}}" // the editor closes templates, and what is typed over that is not doubled
		}
		if got := p.eval(`new Promise((done) => setTimeout(() => done(field.value), 100))`); got != want {
			t.Errorf("%s: typed %s, and the field has %v", c.node, c.text, got)
		}
		p.waitFor(`document.querySelector(".saved-state").textContent === "Unsaved"`)
		p.pressKeys("Control+s")
		p.waitFor(`document.querySelector(".saved-state").textContent.startsWith("Saved")`)
		path, value, _ := strings.Cut(c.saved, "=")
		if got := at(ts.must(t, 200, "GET", flowBase+"/"+id, ""), path); fmt.Sprint(got) != value {
			t.Errorf("%s: stored %v, want %s", c.node, got, value)
		}
	}
}

// boxesApart is an expression for the nodes that overlap.
const boxesApart = `(() => {
	const boxes = [...document.querySelectorAll(".react-flow__node")].map((e) => [e.dataset.id, e.getBoundingClientRect()]);
	return boxes.flatMap(([a, x], i) => boxes.slice(i + 1).filter(([, y]) => x.left < y.right && y.left < x.right && x.top < y.bottom && y.top < x.bottom).map(([b]) => a + " and " + b)).join();
})()`

// TestConsoleBuildsWorkflow builds a workflow with the buttons after its nodes: no nodes
// overlap, and each has its button in view. Undo steps and problems are still known after
// saving.
func TestConsoleBuildsWorkflow(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := createFlow(t, ts.testClient, `[{"id":"start","type":"trigger","position":{"x":0,"y":0},"data":{}}]`, `[]`, "")
	ts.must(t, 200, "PUT", flowBase+"/"+id, `{"status":"draft"}`)
	p := ts.openConsole(t, 1280)
	p.open("workflows/"+id, countNodes("")+` === 1`)
	for i, step := range []struct{ after, way, kind string }{
		{"start", "", "if"},
		{"if_else", "true", "approval"},
		{"if_else", "false", "loop"},
		{"approval", "approved", "set values"},
		{"approval", "rejected", "wait"},
		{"loop", "loop", "code"},
		{"loop", "done", "sql"},
	} {
		p.eval(`document.querySelector(".react-flow__node[data-id=` + step.after +
			`] .node").closest(".react-flow__node").querySelector(".node-head").dispatchEvent(new ` +
			`MouseEvent("click", { bubbles: true }))`)
		p.clickOn(`(() => { // the button, once it is in sight
			const more = [...document.querySelectorAll(".react-flow__node[data-id=` + step.after + `] .node-add")].find((b) => ` + quoted(step.way) + ` === "" || b.closest(".node-way").textContent === ` + quoted(step.way) + `);
			const box = more.getBoundingClientRect();
			return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2) === more && more;
		})()`)
		p.waitFor(`document.querySelector("dialog .node-option")`)
		p.typeText(step.kind)
		p.pressKeys("Enter")
		p.waitFor(fmt.Sprintf(`%s === %d && !document.querySelector("dialog")`, countNodes(""), i+2))
	}
	if got := p.eval(boxesApart); got != "" {
		t.Errorf("overlapping nodes: %v", got)
	}
	places := `[...document.querySelectorAll(".react-flow__node")].map((n) => n.style.transform).join()`
	untidy := p.eval(places)
	p.chooseMenu("More", "Tidy the graph")
	p.waitFor(places + ` !== ` + quoted(untidy.(string)))
	middle := func(id string) string {
		return `(() => { const b = document.querySelector(".react-flow__node[data-id=` + id +
			`]").getBoundingClientRect(); return b.y + b.height / 2; })()`
	}
	// in the order of their outputs
	p.waitFor(middle("approval") + ` < ` + middle("loop") + ` && ` + middle("set") + ` < ` + middle("wait") + ` && ` +
		middle("code") + ` < ` + middle("sql"))
	if got := p.eval(boxesApart); got != "" {
		t.Errorf("overlapping nodes after tidying: %v", got)
	}
	problems := `[...document.querySelectorAll(".editor-bottom button")].find((b) => ` +
		`b.textContent.startsWith("Problems")).textContent`
	p.waitFor(problems + ` !== "Problems 0"`)
	before := p.eval(problems)
	p.click("Save")
	p.waitFor(`document.querySelector(".saved-state").textContent.startsWith("Saved") && ` +
		`document.querySelector(".editor-bar").textContent.includes("v2")`)
	ts.must(t, 200, "PUT", flowBase+"/"+id, `{"status":"archived"}`) // its event comes after that of the save
	p.waitFor(`document.querySelector(".editor-bar .badge").textContent === "archived"`)
	if got := p.eval(problems); got != before {
		t.Errorf("%v once it is saved, %v before", got, before)
	}
	p.eval(`document.querySelector(".editor-view").focus()`)
	p.pressKeys("Control+z", "Control+z")
	p.waitFor(countNodes("") + ` === 7 && document.querySelector(".saved-state").textContent === "Unsaved"`)
	p.pressKeys("Control+y", "Control+y")
	p.waitFor(countNodes("") + ` === 8 && document.querySelector(".saved-state").textContent.startsWith("Saved")`)
	p.checkPage("a workflow of eight nodes")
}

// TestConsoleTestsApproval tests a workflow whose loop asks a person: the test can be
// approved and stopped, and the input of the loop's body is the item.
func TestConsoleTestsApproval(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := createFlow(
		t,
		ts.testClient,
		`[{"id":"start","type":"trigger","data":{}},{"id":"each","type":"loop","data":{"items":[{"name":"Ada"},{"name":"Bob"}]}},
		{"id":"ask","type":"approval","data":{"label":"Ask the owner","title":"Refund {{item.name}}?","message":"It was {{input.name}} who asked"}},{"id":"done","type":"set","data":{"values":{"a":1}}}]`,
		`[{"source":"start","target":"each"},{"source":"each","target":"ask","sourceHandle":"loop"},`+
			`{"source":"each","target":"done","sourceHandle":"done"}]`,
		"",
	)
	p := ts.openConsole(t, 1280)
	p.open(
		"workflows/"+id+"?node=ask",
		`document.querySelector("[data-field=message] .filled")?.textContent === "= It was Ada who asked"`,
	)
	p.pressKeys("Escape", "Control+Enter")
	for _, name := range []string{"Ada", "Bob"} {
		p.waitFor(`document.querySelector(".test-decision")?.textContent.startsWith("Refund ` + name +
			`?") && document.querySelector(".test-results .badge").textContent === "waiting"`)
		p.checkPage("a test that waits")
		if got := p.eval(`(() => { const node = document.querySelector(".node.waiting").getBoundingClientRect(); ` +
			`return [...document.querySelectorAll(".node.waiting :is(.node-text, .node-way > span)")].filter((e) => ` +
			`e.getBoundingClientRect().right > node.right).map((e) => e.textContent).join(); })()`); got != "" {
			t.Errorf("outside of the waiting node: %v", got)
		}
		if name == "Ada" {
			p.click("Approve")
		}
	}
	if got := p.eval(
		`[...document.querySelectorAll(".test-results summary .grow")].map((e) => e.textContent.trim()).join()`,
	); got != "Trigger,Loop,Ask the owner 1,Ask the owner 2" {
		t.Errorf("the results are listed as %v", got)
	}
	p.click("Stop")
	p.waitFor(`document.querySelector(".test-results .badge").textContent === "terminated" && ` +
		`!document.querySelector(".test-decision") && [...document.querySelectorAll("button")].some((b) => ` +
		`b.textContent === "Run the test" && !b.disabled)`)
}

// TestConsoleLongExecution selects a late iteration in the steps of a long execution, and
// shows the beginning of a long text.
func TestConsoleLongExecution(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := createFlow(
		t,
		ts.testClient,
		`[{"id":"start","type":"trigger","data":{"event":"schedule"}},{"id":"make","type":"code","data":{"code":"return {rows: Array.from({length: 400}, (_, i) => i), text: 'bread '.repeat(2000)}"}},
		{"id":"each","type":"loop","data":{"items":"{{nodes.make.rows}}"}},{"id":"greet","type":"set","data":{"label":"Greet","values":{"n":"{{item}}"}}}]`,
		`[{"source":"start","target":"make"},{"source":"make","target":"each"},{"source":"each",`+
			`"target":"greet","sourceHandle":"loop"}]`,
		"",
	)
	execution := ts.must(
		t,
		200,
		"POST",
		flowBase+"/execute?wait=60",
		`{"workflow_id":"`+id+`"}`,
	)["execution_id"].(string)
	ts.must(
		t,
		201,
		"POST",
		"/api/agents/default/schedules",
		`{"name":"Yearly","type":"cron","cron_expression":"0 0 1 1 *","callback_type":"workflow","callback_id":"`+
			id+`"}`,
	)
	p := ts.openConsole(t, 1280)
	p.open("workflows", `document.querySelector(".workflow-row").textContent.includes("next run ")`)
	p.open(
		"workflows/executions/"+execution,
		`document.querySelectorAll(".waterfall li").length > 20 && `+countNodes("")+` === 4`,
	)
	p.eval(`document.querySelector(".waterfall").scrollTop = 30 * 380`)
	p.clickOn(`[...document.querySelectorAll(".waterfall button")].find((b) => ` +
		`b.querySelector(".fall-name").textContent.trim() === "Greet 390")`)
	p.waitFor(`document.querySelector(".editor-panel").textContent.includes("n: 389") && ` +
		`location.hash.endsWith("?node=greet&at=389") && document.querySelectorAll(".waterfall ` +
		`[aria-current]").length === 1`)
	p.checkPage("an iteration")
	p.clickOn(`document.querySelector(".react-flow__node[data-id=make] .node-head")`)
	p.waitFor(`document.querySelector(".editor-panel h2").textContent === "Code" && ` +
		`document.querySelector(".editor-panel").textContent.includes("10,000 more characters") && ` +
		`!location.hash.includes("at=")`)
	p.click("10,000 more characters")
	p.waitFor(`document.querySelector(".editor-panel .json-string").textContent.length > 12000`)
	p.checkPage("a long text")
}

// TestConsoleRenamesNodes changes a node's id, and pastes nodes next to themselves:
// templates and scripts refer to the right node.
func TestConsoleRenamesNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := createFlow(
		t,
		ts.testClient,
		`[{"id":"start","type":"trigger","position":{"x":0,"y":0},"data":{}},{"id":"make","type":"code","position":{"x":300,"y":0},"data":{"code":"return {n: 1}"}},
		{"id":"use","type":"code","position":{"x":600,"y":0},"data":{"code":"return {n: nodes.make.n + nodes['make'].n + trigger.nodes.make + nodes.makeup}"}},
		{"id":"say","type":"set","position":{"x":900,"y":0},"data":{"values":{"n":"{{nodes.make.n}} nodes.make"}}}]`,
		`[{"source":"start","target":"make"},{"source":"make","target":"use"},{"source":"use","target":"say"}]`,
		"",
	)
	ts.must(t, 200, "PUT", flowBase+"/"+id, `{"status":"draft"}`)
	p := ts.openConsole(t, 1280)
	p.open("workflows/"+id, countNodes("")+` === 4`)
	p.openNode(id, "make")
	p.typeInto(`document.querySelector("[aria-label=ID]")`, "first-one")
	p.pressKeys("Enter")
	p.waitFor(`document.querySelector(".editor-panel h2 + p code").textContent === "first-one"`)
	p.eval(`document.querySelector(".editor-view").focus()`)
	const height = `document.getElementById("main").clientHeight`
	before := p.eval(height)
	p.pressKeys("c")
	p.waitFor(`document.querySelector("dialog h2")?.textContent === "Connect Code" && ` +
		`document.activeElement.labels?.[0]?.textContent === "From"`)
	if got := p.eval(height); got != before {
		t.Errorf("the page is %v high below a dialog, %v without", got, before)
	}
	p.pressKeys("Escape")
	p.waitFor(`!document.querySelector("dialog")`)
	p.eval(`document.querySelector(".editor-view").focus()`)
	p.pressKeys("Control+a")
	p.waitFor(countNodes(".selected") + ` === 4`)
	p.paste(p.copied(), 700, 700)
	p.waitFor(countNodes("") + ` === 8`)
	p.pressKeys("Control+s")
	p.waitFor(`document.querySelector(".saved-state").textContent.startsWith("Saved")`)
	stored := ts.must(t, 200, "GET", flowBase+"/"+id, "")
	for i := range 2 { // the nodes, then the pasted ones
		id := at(stored, fmt.Sprintf("nodes.%d.id", 4*i+1))
		inTemplate := fmt.Sprint("nodes.", id)
		first := fmt.Sprintf(`nodes[%q]`, id)
		if i == 1 { // its id needs no brackets
			first = "nodes.first_one"
		}
		if got, want :=
			at(stored, fmt.Sprintf("nodes.%d.data.code", 4*i+2)),
			`return {n: `+first+`.n + `+first+`.n + trigger.nodes.make + nodes.makeup}`; got != want {
			t.Errorf("the script is %v, want %s", got, want)
		}
		if got, want :=
			at(stored, fmt.Sprintf("nodes.%d.data.values.n", 4*i+3)), `{{`+inTemplate+`.n}} nodes.make`; got != want {
			t.Errorf("the template is %v, want %s", got, want)
		}
	}
}
