package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// hostile is a name that becomes a script wherever text becomes markup.
const hostile = `"><img src=x onerror="hit=1"><script>hit=1</script><svg onload=hit=1>'&lt;` + "\u202e{{x}}"

// watchman notes in a page what must never happen there.
const watchman = `window.faults = [];
	addEventListener("securitypolicyviolation", (e) => faults.push("policy: " + e.violatedDirective + " " + e.blockedURI));
	addEventListener("error", (e) => faults.push("error: " + e.message));
	addEventListener("unhandledrejection", (e) => faults.push("rejected: " + e.reason));`

// stranger is somebody at the console.
type stranger struct {
	*eyes
	at string // of the agent within the console
}

// visit opens the console with a watchman.
func (th *theatre) visit(t *testing.T, width int) *stranger {
	t.Helper()
	e := th.look(t, width, 900, th.url+"/")
	e.ask("Page.enable", nil)
	e.ask("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": watchman})
	e.ask("Page.reload", nil)
	e.until(`window.faults && location.hash === "#/agents/default" && document.querySelector("#main h1")?.textContent === "Home"`)
	return &stranger{e, "#/agents/default/"}
}

// goTo goes to another page and waits until it says what it should.
func (s *stranger) goTo(page, expression string) {
	s.t.Helper()
	s.value(`document.querySelector("#main .page").id = "left"; location.hash = ` + quoted(s.at+page))
	s.until(`!document.getElementById("left") && (` + expression + `)`)
	s.unharmed(page)
}

// unharmed holds the page against what must never happen.
func (s *stranger) unharmed(page string) {
	s.t.Helper()
	harm := s.value(`JSON.stringify([...faults.splice(0), ...(window.hit ? ["a script ran"] : []),
		...[...document.querySelectorAll("#main :is(img:not([src^='data:image/']), script, iframe, svg[onload])")].map((e) => "markup: " + e.outerHTML),
		...[document.documentElement, document.getElementById("main")].filter((e) => e.scrollWidth > e.clientWidth).map((e) => "wider than the window: " + e.scrollWidth),
		...[...document.querySelectorAll("#main :is(input, select, textarea):not([type=file])")].filter((e) => !e.labels.length && !e.ariaLabel).map((e) => "without label: " + e.outerHTML),
		...(/undefined|\[object|NaN|Invalid Date/.test(document.getElementById("main").innerText) ? ["says undefined: " + document.getElementById("main").innerText] : [])])`)
	if harm != "[]" {
		s.t.Errorf("%s: %v", page, harm)
	}
}

// press clicks the button that is called so, in the open dialog if there is one.
func (s *stranger) press(name string) {
	s.t.Helper()
	s.until(`(window.pressed = [...(document.querySelector("dialog[open]") ?? document.getElementById("main")).querySelectorAll("button")].find((b) => b.textContent.trim() === ` + quoted(name) + ` && !b.disabled && b.checkVisibility()))`)
	s.value(`void pressed.click()`)
}

// fill writes into the fields that are labelled so.
func (s *stranger) fill(labelled ...string) {
	s.t.Helper()
	for i := 0; i < len(labelled); i += 2 {
		s.until(`(() => {
			const near = document.querySelector("dialog[open]") ?? document.getElementById("main");
			const field = [...near.querySelectorAll("input, select, textarea")].find((f) => f.labels[0]?.textContent === ` + quoted(labelled[i]) + ` && !f.disabled);
			field.value = ` + quoted(labelled[i+1]) + `;
			for (const event of ["input", "change"]) field.dispatchEvent(new Event(event, { bubbles: true }));
			return field.value === ` + quoted(labelled[i+1]) + `;
		})()`)
	}
}

func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// says is an expression: the page holds a text.
func says(text string) string {
	return `document.getElementById("main").textContent.includes(` + quoted(text) + `)`
}

// hostileFlow is a workflow whose every text is hostile: it asks a person, and
// fails behind that.
func hostileFlow() string {
	name, _ := json.Marshal(hostile)
	return fmt.Sprintf(`{"name":%[1]s,"description":%[1]s,"status":"active","nodes":[
		{"id":"start","type":"trigger","data":{"label":%[1]s,"event":"webhook"}},
		{"id":%[1]s,"type":"set","data":{"label":%[1]s,"values":{"out":%[1]s}}},
		{"id":"ask","type":"approval","data":{"label":"Ask","title":%[1]s,"message":%[1]s}},
		{"id":"fail","type":"code","data":{"label":%[1]s,"code":"console.log(trigger.text); throw new Error(trigger.text)"}}],
		"edges":[{"source":"start","target":%[1]s,"sourceHandle":%[1]s},{"source":%[1]s,"target":"ask"},{"source":"ask","target":"fail","sourceHandle":"approved"}]}`, name)
}

// TestConsoleWorkflowWalk is a person's way through workflows: an execution
// that is watched, decided and repeated, and a graph that is mended.
func TestConsoleWorkflowWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	id := th.must(t, 201, "POST", flowBase, hostileFlow())["id"].(string)
	for _, width := range []int{1280, 375} {
		s := th.visit(t, width)
		s.goTo("workflows", `document.querySelector("#main td a").textContent === `+quoted(hostile))
		s.goTo("workflows/"+id, `document.querySelectorAll(".graph .node").length === 4 && document.querySelector("h1").textContent.startsWith(`+quoted(hostile)+`)`)
		if hook := s.value(`document.querySelector(".copy code").textContent`); hook != th.url+"/api/agents/default/hooks/"+id {
			t.Errorf("the hook is at %v", hook)
		}
		s.press("Execute")
		s.fill("Input", `{"text":`)
		s.press("Execute")
		s.until(`document.querySelector("dialog .wrong small").textContent.includes("not JSON")`)
		s.fill("Input", `{"text":`+quoted(hostile)+`}`)
		s.press("Execute")
		s.until(`document.querySelector(".node.waiting") && document.querySelectorAll(".node.success").length === 2 && ` + says("Approve"))
		s.value(`document.querySelector("[aria-label=Comment]").value = ` + quoted(hostile))
		s.press("Approve") // the rest comes by the stream
		s.until(`document.querySelector(".node.error") && document.querySelector("h1 .errored") && document.querySelector(".card.bad").textContent.includes("<img src=x")`)
		s.value(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`)
		s.unharmed("the execution")
		s.press("Retry")
		s.until(says("another execution") + ` && document.querySelector("h1 .errored")`)
		s.unharmed("the repeated execution")
	}
}

// mendsWorkflow makes a workflow, breaks it, is told where, and
// goes back to an old version.
func mendsWorkflow(t *testing.T, _ *theatre, s *stranger) {
	s.goTo("workflows", says("No workflows yet"))
	s.press("New workflow")
	s.fill("Name", "Greeting", "It begins", "manual")
	s.press("Make")
	s.until(`document.querySelectorAll(".node").length === 2 && ` + says("Back") + ` === false`)
	graph := func(nodes string) string {
		return `{"nodes":[{"id":"start","type":"trigger"},` + nodes + `],"edges":[{"source":"start","target":"greet"}]}`
	}
	s.fill("Nodes and edges", graph(`{"id":"greet","type":"code","data":{"label":"Greet","code":7}}`))
	s.press("Save")
	s.until(`document.querySelector(".node.wrong title").textContent.startsWith("Greet") && document.querySelector(".faults").textContent.includes("Greet: data.code")`)
	if at := s.value(`(() => { const a = document.activeElement; return a.value.slice(a.selectionStart, a.selectionEnd); })()`); at != "7" {
		t.Errorf("the cursor is on %v", at)
	}
	s.fill("Nodes and edges", graph(`{"id":"greet","type":"code","data":{"code":"return {}"}}}`))
	s.press("Save")
	s.until(says("is not JSON"))
	s.fill("Nodes and edges", graph(`{"id":"greet","type":"code","data":{"code":"return {}"}}`))
	s.press("Activate")
	s.until(`document.querySelector("h1 .active") && !document.querySelector(".faults").textContent && document.querySelectorAll("#main tbody tr").length >= 2`)
	s.press("Restore")
	s.until(`document.querySelectorAll(".node").length === 2 && document.querySelector("textarea.code").value.includes("Say hello") && ` + says("3 current"))
	s.press("Pause")
	s.until(`document.querySelector("h1 .paused")`)
	s.unharmed("the workflow")
}

// TestConsoleForViewers shows a viewer what there is, and nothing to change it with.
func TestConsoleForViewers(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	id := th.must(t, 201, "POST", flowBase, hostileFlow())["id"].(string)
	s := th.visit(t, 1280)
	key := th.must(t, 201, "POST", "/api/keys", `{"name":"reader","role":"viewer","agents":["default"]}`)["key"].(string)
	s.value(`sessionStorage.setItem("satchel.key", ` + quoted(key) + `)`)
	s.ask("Page.reload", nil)
	s.until(`window.faults && document.querySelector("#main h1")?.textContent === "Home" && !document.querySelector(".rail-foot .badge")`)
	pages := map[string]string{"home": says("What can"), "chat": says("Ask"), "knowledge": says("knows nothing yet"), "contacts": says("No contacts"), "workflows": says("Executions"),
		"workflows/" + id: says("Versions"), "schedules": says("No schedules"), "calendar": says("Nothing is planned"), "gateways": says("No gateways"), "webhooks": says("Nobody"),
		"browser": says("1280 × 900"), "tools": says("No MCP servers"), "settings": says("Language model"), "settings/agent": says("About"), "settings/copies": says("consistent copy"), "settings/access": says("You are viewer")}
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		s.goTo(page, pages[page])
		offered := s.value(`[...document.querySelectorAll("#main button")].map((b) => b.textContent).filter((name) => !name && !/^(Search|Refresh|Back|Next|Show|Export.*|Tools|Sources)$/.test(name)).join()`)
		typed := s.value(`[...document.querySelectorAll("#main form:not([role=search]) :is(input, select, textarea)")].filter((f) => !f.disabled && !f.readOnly && f.checkVisibility()).length`)
		if offered != "" && offered != "Copy" || typed != 0.0 {
			t.Errorf("%s offers a viewer %v and %v fields", page, offered, typed)
		}
	}
}

// TestConsoleDrawsAnyGraph draws graphs of all shapes: no two nodes cover each
// other, each lies below those that lead to it, and what is no graph does no
// harm. Then it looks for values in JSON as it was typed.
func TestConsoleDrawsAnyGraph(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	s := newTheatre(t).visit(t, 800)
	wrong := s.value(`(async () => {
		const [{ box, layout }, { picture }, { locate }] = await Promise.all([1, 2, 3].map(() => import("/console/app/old.js")));
		const faults = [];
		let seed = 7;
		const random = (n) => { seed = seed * 16807 % 2147483647; return seed % n; };
		for (const [count, more] of [[0, 0], [1, 1], [2, 3], [9, 4], [50, 0], [50, 40], [250, 100]]) {
			const nodes = Array.from({ length: count }, (_, i) => ({ id: "n" + i, type: i ? "set" : "trigger" }));
			const edges = nodes.slice(1).map((n, i) => ({ source: "n" + random(i + 1), target: n.id }));
			for (let i = 0; i < more; i++) edges.push({ source: "n" + random(count), target: "n" + random(count) });
			const plan = layout(nodes, edges);
			const placed = [...plan.nodes.values()];
			if (placed.length !== count || plan.edges.length !== edges.length) faults.push(count + " nodes: " + placed.length + " placed");
			if (placed.some((c) => !(c.x >= box.width / 2 && c.x <= plan.width - box.width / 2 && c.y < plan.height))) faults.push(count + " nodes: one lies outside");
			if (placed.some((a) => placed.some((b) => a !== b && a.y === b.y && Math.abs(a.x - b.x) < box.width))) faults.push(count + " nodes: two cover each other");
			if (plan.edges.some((e) => !e.back && e.points.some((p, i) => i && p.y <= e.points[i - 1].y))) faults.push(count + " nodes: an edge leads up");
			if (!more && plan.edges.some((e) => e.back)) faults.push(count + " nodes: a tree has no way back");
			const shown = picture({ nodes, edges }).querySelectorAll(".node").length;
			if (shown !== count) faults.push(count + " nodes: " + shown + " drawn");
		}
		for (const odd of [null, 7, {}, { nodes: 1, edges: {} }, { nodes: [null, 1, { id: {} }, { id: "a" }, { id: "a", data: "x" }, { id: 5, data: { label: {} } }], edges: [null, { source: "a" }, { source: "a", target: "b" }, { source: 5, target: "a", sourceHandle: {} }] }]) picture(odd);
		if (picture({ nodes: Array.from({ length: 1000 }, (_, i) => ({ id: "n" + i })) }).textContent !== "The graph has 1,000 nodes; up to 250 are drawn.") faults.push("1000 nodes");

		const value = { nodes: [{ id: 'a"]}', data: { x: [1, { "y": 2 }, "]"], "é\n": 0 } }, { id: "b", data: { url: "u", n: -1500, t: true, e: {}, l: [] } }], edges: [] };
		for (const indent of [0, 2]) {
			const text = JSON.stringify(value, null, indent);
			for (const [path, want] of [["nodes[1].data.url", "u"], ["nodes[1].data.n", -1500], ["nodes[1].data.l", []], ["nodes[0].data.x[2]", "]"], ["nodes[0].data.x[1].y", 2], ["nodes[0]", value.nodes[0]],
				["edges", []], ["nodes[1].data.none", value.nodes[1].data], ["nodes[9].id", value.nodes], ["none", value], ["", value]]) {
				const [start, end] = locate(text, path);
				if (JSON.stringify(JSON.parse(text.slice(start, end))) !== JSON.stringify(want)) faults.push(path + " is at " + text.slice(start, end));
			}
		}
		return faults.join("\n");
	})()`)
	if wrong != "" {
		t.Error(wrong)
	}
}
