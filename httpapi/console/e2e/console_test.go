package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recordFaults records errors and policy violations in a page.
const recordFaults = `window.faults = [];
	addEventListener("securitypolicyviolation", (e) => faults.push("policy: " + e.violatedDirective + " " + e.blockedURI));
	addEventListener("error", (e) => { // but not that a size changes twice in one frame, as nodes of React Flow do
		if (!e.message.startsWith("ResizeObserver loop")) faults.push("error: " + e.message);
	});
	addEventListener("unhandledrejection", (e) => faults.push("rejected: " + e.reason));`

// consolePage is the console in a browser.
type consolePage struct {
	*browserPage
	base string // the agent's part of the address
}

// isLive is an expression that is true once changes of records reach the page.
const isLive = `document.querySelector(".rail-foot .dot.open")`

// openConsole opens the console and records faults in it.
func (ts *testServer) openConsole(t *testing.T, width int) *consolePage {
	t.Helper()
	p := ts.openPage(t, width, 900, emptySite())
	p.cdp("Page.enable", nil)
	p.colorScheme("light") // transitions take as long as what is tested
	p.cdp("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": recordFaults})
	p.cdp("Page.navigate", map[string]any{"url": ts.url + "/"})
	p.waitFor(`window.faults && location.hash === "#/agents/default" && document.querySelector("#main ` +
		`h1")?.textContent === "Home" && ` + isLive)
	return &consolePage{p, "#/agents/default/"}
}

// open goes to another page, waits until an expression is true, and checks it.
func (p *consolePage) open(page, expression string) {
	p.t.Helper()
	p.walk.clicked()
	p.waitFor(`((shown) => shown && (shown.id = "left", location.hash = ` + quoted(p.base+page) +
		`))(document.querySelector("#main .page"))`)
	p.waitFor(`!document.getElementById("left") && (` + expression + `)`)
	p.checkPage(page)
}

// checkPage fails if the page ran a script of a record, had an error, is wider
// than the window, has a field without a label, or shows an undefined value.
func (p *consolePage) checkPage(page string) {
	p.t.Helper()
	harm := p.eval(`JSON.stringify([...faults.splice(0), ...(window.hit ? ["a script ran"] : []),
		...[...document.querySelectorAll("#main :is(img:not([src^='data:image/'], [src^='blob:']), script, iframe, svg[onload])")].map((e) => "markup: " + e.outerHTML),
		...[document.documentElement, document.getElementById("main")].filter((e) => e.scrollWidth > e.clientWidth).map((e) => "wider than the window: " + e.scrollWidth),
		...[...document.querySelectorAll("#main :is(input, select, textarea):not([type=file])")].filter((e) => !e.labels.length && !e.ariaLabel).map((e) => "without label: " + e.outerHTML),
		...(/undefined|\[object|NaN|Invalid Date/.test(document.getElementById("main").innerText) ? ["says undefined: " + document.getElementById("main").innerText] : [])])`)
	if harm != "[]" {
		p.t.Errorf("%s: %v", page, harm)
	}
}

// click clicks the button with a text, in the open dialog if there is one.
func (p *consolePage) click(name string) {
	p.t.Helper()
	p.clickOn(`[...(document.querySelector("dialog[open]") ?? ` +
		`document.getElementById("main")).querySelectorAll("button")].find((b) => b.textContent.trim() === ` +
		quoted(name) + ` && !b.disabled && b.checkVisibility())`)
}

// fill sets fields by their labels, which may be hidden.
func (p *consolePage) fill(labelled ...string) {
	p.t.Helper()
	for i := 0; i < len(labelled); i += 2 {
		p.walk.clicked()
		p.waitFor(`(() => {
			const near = document.querySelector("dialog[open]") ?? document.getElementById("main");
			const field = [...near.querySelectorAll("input, select, textarea")].find((f) => (f.labels[0]?.textContent ?? f.ariaLabel) === ` + quoted(labelled[i]) + ` && !f.disabled);
			field.value = ` + quoted(labelled[i+1]) + `;
			for (const event of ["input", "change"]) field.dispatchEvent(new Event(event, { bubbles: true }));
			return field.value === ` + quoted(labelled[i+1]) + `;
		})()`)
	}
}

// hasText returns an expression that is true if the page contains a text.
func hasText(text string) string {
	return `document.getElementById("main").textContent.includes(` + quoted(text) + `)`
}

// hostileFlow is a workflow whose texts are all hostile: it asks for an approval and then
// fails.
func hostileFlow() string {
	name, _ := json.Marshal(hostile)
	return fmt.Sprintf(`{"name":%[1]s,"description":%[1]s,"status":"active","nodes":[
		{"id":"start","type":"trigger","data":{"label":%[1]s,"event":"webhook"}},
		{"id":%[1]s,"type":"set","data":{"label":%[1]s,"values":{"out":%[1]s}}},
		{"id":"ask","type":"approval","data":{"label":"Ask","title":%[1]s,"message":%[1]s}},
		{"id":"fail","type":"code","data":{"label":%[1]s,"code":"console.log(trigger.text); throw new Error(trigger.text)"}}],
		"edges":[{"source":"start","target":%[1]s,"sourceHandle":%[1]s},{"source":%[1]s,"target":"ask"},{"source":"ask","target":"fail","sourceHandle":"approved"}]}`, name)
}

// TestConsoleWorkflowWalk executes a workflow, approves it, and retries the
// execution.
func TestConsoleWorkflowWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := ts.must(t, 201, "POST", flowBase, hostileFlow())["id"].(string)
	for _, width := range []int{1280, 375} {
		p := ts.openConsole(t, width)
		p.open("workflows", `document.querySelector("#main .workflow-row a")?.textContent === `+quoted(hostile))
		p.open(
			"workflows/"+id,
			countNodes("")+` === 4 && document.querySelector("h1").textContent === `+quoted(hostile),
		)
		p.chooseMenu("More", "Webhook address")
		p.waitFor(`document.querySelector("dialog .copy code")`)
		if hook := p.eval(
			`document.querySelector("dialog .copy code").textContent`,
		); hook != ts.url+"/api/agents/default/hooks/"+id {
			t.Errorf("the hook is at %v", hook)
		}
		p.clickOn(`document.querySelector("dialog [aria-label=Close]")`)
		p.waitFor(`!document.querySelector("dialog")`)
		p.chooseMenu("More", "Execute")
		p.fill("Input", `{"text":`)
		p.click("Execute")
		p.waitFor(`document.querySelector("dialog .wrong small").textContent.includes("not valid JSON")`)
		p.fill("Input", `{"text":`+quoted(hostile)+`}`)
		p.click("Execute")
		p.waitFor(countNodes(".waiting") + ` === 1 && ` + countNodes(".success") + ` === 2 && ` + hasText("Approve"))
		p.set("Comment", hostile)
		p.click("Approve") // the rest arrives through the stream
		p.waitFor(countNodes(".error") + ` === 1 && document.querySelector(".editor-bar .badge").textContent === ` +
			`"errored" && document.querySelector(".card.bad").textContent.includes("<img src=x")`)
		for _, tab := range []string{"Input", "Log 1", "Resolved", "Compare", "About"} {
			p.click(tab)
		}
		p.checkPage("the execution")
		p.click("Retry")
		p.waitFor(hasText("It repeats another execution") +
			` && document.querySelector(".editor-bar .badge").textContent === "errored"`)
		p.checkPage("the repeated execution")
	}
}

// countNodes returns an expression for the number of nodes that match a selector
// on the canvas or, on a phone, in the outline.
func countNodes(selector string) string {
	return `document.querySelectorAll(".react-flow .node` + selector + `, .outline-node` + selector + `").length`
}

// chooseMenu chooses an entry of a menu.
func (p *consolePage) chooseMenu(menu, entry string) {
	p.t.Helper()
	p.clickOn(`document.querySelector("#main button[aria-label=` + menu + `]")`)
	p.clickOn(`[...document.querySelectorAll("#main [role=menuitem]")].find((b) => b.textContent.trim() === ` +
		quoted(entry) + `)`)
}

// walkWorkflowForms creates a workflow, makes it invalid, checks where the error
// is shown, and restores an old version.
func walkWorkflowForms(t *testing.T, _ *testServer, p *consolePage) {
	p.open("workflows", hasText("No workflows yet"))
	p.click("New workflow")
	p.fill("Name", "Greeting", "It begins", "manual")
	p.click("Create")
	p.waitFor(countNodes("") + ` === 2 && ` + hasText("Say hello"))
	graph := func(code string) string {
		return `{"nodes":[{"id":"start","type":"trigger"},{"id":"greet","type":"code","data":{"label":"Greet","code":` +
			code + `}}],"edges":[{"source":"start","target":"greet"}]}`
	}
	p.click("JSON")
	p.fill("Nodes and edges", graph(`7}`))
	p.click("Apply")
	p.waitFor(hasText("Not valid JSON"))
	p.fill("Nodes and edges", graph(`7`))
	p.click("Apply")
	p.waitFor(`document.querySelector(".outline-node .icon[aria-label='Has a problem']")`) // before it is saved
	p.click("Save")
	p.waitFor(`document.querySelector(".problems button")?.textContent === "Greet: Code must be a string"`)
	p.clickOn(`document.querySelector(".problems button")`)
	p.waitFor(`document.activeElement.closest("[data-field]")?.dataset.field === "code" && ` +
		`document.querySelector(".field.wrong .issue").textContent === "must be a string"`)
	p.writeCode("return {}")
	p.click("Save and go live")
	p.waitFor(`document.querySelector(".editor-bar .badge").textContent === "active" && ` +
		`!document.querySelector(".tab-count")`)
	p.click("Versions")
	p.waitFor(`document.querySelectorAll("#main tbody tr").length === 2`)
	if by := p.eval(
		`[...new Set([...document.querySelectorAll(".versions td[data-label=By]")].map((e) => e.textContent))].join()`,
	); by != "Anyone (no login)" {
		t.Errorf("the versions are by %v", by)
	}
	p.click("Restore")
	p.click("Restore and go live")
	p.waitFor(`((toast) => toast && toast.top > ` +
		`document.querySelector(".editor-bar").getBoundingClientRect().bottom && ` +
		`toast.bottom < document.querySelector("nav.bottom").getBoundingClientRect().top)(document.querySelector(".t` +
		`oast")?.getBoundingClientRect())`)
	p.waitFor(countNodes("") + ` === 2 && ` + hasText("Say hello") + ` && ` + hasText("3 current"))
	p.click("Pause")
	p.waitFor(`document.querySelector(".editor-bar .badge").textContent === "paused"`)
	p.checkPage("the workflow")
}

// TestConsoleForViewers checks that a viewer sees everything, and no controls that change
// it.
func TestConsoleForViewers(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := ts.must(t, 201, "POST", flowBase, hostileFlow())["id"].(string)
	ts.openLoaded(t, "/")
	p := ts.openConsole(t, 1280)
	key := ts.must(
		t, 201, "POST", "/api/keys",
		`{"name":"reader","role":"viewer","agents":["default"]}`,
	)["key"].(string)
	p.signIn(key)
	pages := map[string]string{
		"home":                        hasText("What can"),
		"chat":                        hasText("Ask"),
		"knowledge":                   hasText("No knowledge yet"),
		"contacts":                    hasText("No contacts"),
		"workflows":                   hasText("Executions"),
		"workflows/" + id:             hasText("Versions"),
		"workflows/templates":         hasText("Watch a page"),
		"workflows/templates/welcome": hasText("needs the admin role"),
		"calendar/schedules":          hasText("No schedules"),
		"calendar":                    `document.querySelector(".month")`,
		"browser":                     hasText("Choose a session"),
		"settings":                    hasText("Language model"),
		"settings/agent":              hasText("About"),
		"settings/copies":             hasText("consistent copy"),
		"settings/access":             hasText("Your role: viewer"),
	}
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		p.open(page, pages[page])
		p.checkReadOnly(page)
	}
}

// TestConsoleGraphs lays graphs out, merges changes of two people, copies nodes, and
// fills the templates of the documentation as the service does.
func TestConsoleGraphs(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	scope, examples := documentedTemplates(t)
	p := newTestServer(t).openConsole(t, 800)
	wrong := p.eval(`(async () => {
		const { copyText, namesOf, readCopy, readGraph, removeFrom, tidy, writeGraph } = await import("/console/app/editor-editor.js");
		const { paste } = await import("/console/app/editor-pasting.js");
		const { merge } = await import("/console/app/editor-conflict.js");
		const { fill, suggest } = await import("/console/app/editor-panel.js");
		const faults = [];
		const same = (what, got, want) => { if (JSON.stringify(got) !== JSON.stringify(want)) faults.push(what + ": " + JSON.stringify(got) + ", want " + JSON.stringify(want)); };
		let seed = 7;
		const random = (n) => { seed = seed * 16807 % 2147483647; return seed % n; };
		for (const [count, more] of [[0, 0], [1, 1], [2, 3], [9, 4], [50, 0], [50, 40], [250, 100]]) {
			const edges = Array.from({ length: Math.max(0, count - 1) }, (_, i) => ({ source: "n" + random(i + 1), target: "n" + (i + 1) }));
			for (let i = 0; i < more; i++) edges.push({ source: "n" + random(count), target: "n" + random(count) });
			const made = await tidy(readGraph({ nodes: Array.from({ length: count }, (_, i) => ({ id: "n" + i, type: i ? "set" : "trigger" })), edges }));
			const at = new Map(made.nodes.map((n) => [n.id, n.position]));
			const all = [...at.values()];
			if (all.length !== count || made.edges.length !== edges.length) faults.push(count + " nodes: " + all.length + " placed");
			if (all.some((p) => !Number.isFinite(p.x) || !Number.isFinite(p.y))) faults.push(count + " nodes: one has no place");
			if (all.some((a) => all.some((b) => a !== b && Math.abs(a.x - b.x) < 220 && Math.abs(a.y - b.y) < 50))) faults.push(count + " nodes: two cover each other");
			if (!more && edges.some((e) => at.get(e.source).x >= at.get(e.target).x)) faults.push(count + " nodes: an edge leads back");
		}

		const scope = ` + scope + `;
		for (const [template, want] of ` + examples + `) same(template, fill(template, scope).value, want);
		same("missing", fill("{{contact.none}} {{contact.none | default:\"x\"}}", scope).missing, ["contact.none"]);
		same("suggestions", suggest("a {{contact.na", 14, scope, String).list.map((x) => x.insert), ["contact.name", 'contact["First name"]']);
		same("outside", suggest("a {{b}} c", 9, scope, String), null);

		const graph = readGraph({ nodes: [{ id: "a", type: "set", mine: 1 }, { id: "b", type: "set", data: { values: { x: "{{nodes.a.x}} nodes.a" } } }, { id: "c", type: "set" }], edges: [{ source: "a", target: "b" }, { source: "b", target: "c", own: true }] });
		same("unknown members", writeGraph(graph).edges, [{ source: "a", target: "b" }, { source: "b", target: "c", own: true }]);
		const { graph: pasted } = paste(graph, readCopy(copyText(graph, new Set(["a", "b"]))), 0, 0);
		same("pasted", pasted.nodes.slice(3).map((n) => [n.id, n.mine, n.data?.values?.x]), [["a2", 1, undefined], ["b2", undefined, "{{nodes.a2.x}} nodes.a"]]);
		same("pasted edges", pasted.edges.slice(2).map((e) => [e.source, e.target]), [["a2", "b2"]]);
		same("removed", removeFrom(graph, new Set(["b"]), new Set()).edges.map((e) => [e.source, e.target]), [["a", "c"]]);
		for (const none of ["", "7", "null", "[]", '{"satchel":"other","nodes":[]}', '{"nodes":[]}']) same("copy of " + none, readCopy(none), null);

		const noted = readGraph({ nodes: [{ id: "a", type: "set", metadata: { pin: 1, notes: [{ text: "Why", x: 5, y: 6, width: 300, height: 90, color: "blue" }, { text: "Broken", width: "x" }, 7] } }, { id: "b", type: "set", metadata: { notes: [] } }], edges: [] });
		same("notes", noted.notes, [{ id: "note", text: "Why", x: 5, y: 6, width: 300, height: 90, color: "blue" }, { id: "note2", text: "Broken", x: 0, y: 0, width: 240, height: 120 }]);
		same("nodes with notes", noted.nodes, [{ id: "a", type: "set", metadata: { pin: 1 } }, { id: "b", type: "set" }]);
		same("notes after a node went", writeGraph(removeFrom(noted, new Set(["a"]), new Set())).nodes, [{ id: "b", type: "set", metadata: { notes: [{ text: "Why", x: 5, y: 6, width: 300, height: 90, color: "blue" }, { text: "Broken", x: 0, y: 0, width: 240, height: 120 }] } }]);

		same("names", [...namesOf([{ id: "n1", type: "set" }, { id: "n2", type: "set" }, { id: "n3", type: "set", data: { label: " set 3 " } }, { id: "n4", type: "set", data: { label: "" } }, { id: "n5", type: "code" }])], [["n3", "set 3"], ["n1", "set"], ["n2", "set 2"], ["n4", "set 4"], ["n5", "code"]]);

		const { detailOf } = await import("/console/app/editor-canvas.js");
		const kind = { data: { properties: { method: { enum: ["GET", "POST"], default: "GET" }, token: { writeOnly: true }, code: { "x-widget": "javascript" }, conditions: { "x-widget": "conditions" }, url: {} } } };
		for (const [data, want] of [[{}, ""], [{ url: "https://a.b/c" }, "GET a.b/c"], [{ method: "POST" }, "POST"], [{ token: "t", code: "c", url: "u" }, "GET u"], [{ conditions: [{ left: "{{a.b}}", operator: "gte", right: 3 }, {}] }, "GET a.b ≥ 3, …"], [{ label: "Mine", url: "u" }, "set"]]) same("detail of " + JSON.stringify(data), detailOf({ id: "a", type: "set", data }, kind), want);

		const change = (g, id, data) => ({ ...g, nodes: g.nodes.map((n) => (n.id === id ? { ...n, data } : n)) });
		const joined = merge(graph, change(change(graph, "a", { x: 1 }), "c", { x: 1 }), change(change({ nodes: [...graph.nodes, { id: "d", type: "set" }], edges: graph.edges.slice(1) }, "b", { y: 1 }), "c", { y: 1 }));
		same("joined", joined.nodes.map((n) => [n.id, n.data]), [["a", { x: 1 }], ["b", { y: 1 }], ["c", { x: 1 }], ["d", undefined]]);
		same("changed by both", joined.both.map((b) => b.id), ["c"]);
		same("joined edges", joined.edges.map((e) => e.target), ["c"]);
		return faults.join("\n");
	})()`)
	if wrong != "" {
		t.Error(wrong)
	}
}

// documentedTemplates returns the scope and the examples of docs/workflows.md, as JSON:
// pairs of a template and its result.
func documentedTemplates(t *testing.T) (scope, examples string) {
	t.Helper()
	doc, err := os.ReadFile("../../../docs/workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "\n## Templates\n")
	found := regexp.MustCompile("With `(\\{.*\\})`:").FindStringSubmatch(section)
	_, section, _ = strings.Cut(section, "```text\n")
	section, _, _ = strings.Cut(section, "```")
	var pairs []string
	for _, m := range regexp.MustCompile(`(?m)^(.*?\S) {3,}(\S.*)$`).FindAllStringSubmatch(section, -1) {
		pairs = append(pairs, "["+quoted(m[1])+","+m[2]+"]")
	}
	if found == nil || len(pairs) < 10 {
		t.Fatal("the documentation has no examples")
	}
	return found[1], "[" + strings.Join(pairs, ",") + "]"
}
