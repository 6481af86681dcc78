package httpapi

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
		s.goTo("workflows", `document.querySelector("#main .workflow-row a")?.textContent === `+quoted(hostile))
		s.goTo("workflows/"+id, steps("")+` === 4 && document.querySelector("h1").textContent === `+quoted(hostile))
		s.choose("More", "Webhook address")
		s.until(`document.querySelector("dialog .copy code")`)
		if hook := s.value(`document.querySelector("dialog .copy code").textContent`); hook != th.url+"/api/agents/default/hooks/"+id {
			t.Errorf("the hook is at %v", hook)
		}
		s.value(`document.querySelector("dialog [aria-label=Close]").click()`)
		s.until(`!document.querySelector("dialog")`)
		s.choose("More", "Execute")
		s.fill("Input", `{"text":`)
		s.press("Execute")
		s.until(`document.querySelector("dialog .wrong small").textContent.includes("not JSON")`)
		s.fill("Input", `{"text":`+quoted(hostile)+`}`)
		s.press("Execute")
		s.until(steps(".waiting") + ` === 1 && ` + steps(".success") + ` === 2 && ` + says("Approve"))
		s.value(`(() => { const said = document.querySelector("[aria-label=Comment]"); said.value = ` + quoted(hostile) + `; said.dispatchEvent(new Event("input", { bubbles: true })); })()`)
		s.press("Approve") // the rest comes by the stream
		s.until(steps(".error") + ` === 1 && document.querySelector(".editor-bar .badge").textContent === "errored" && document.querySelector(".card.bad").textContent.includes("<img src=x")`)
		for _, tab := range []string{"Input", "Log 1", "Resolved", "Compare", "About"} {
			s.press(tab)
		}
		s.unharmed("the execution")
		s.press("Retry")
		s.until(says("It repeats another execution") + ` && document.querySelector(".editor-bar .badge").textContent === "errored"`)
		s.unharmed("the repeated execution")
	}
}

// steps is an expression: how many nodes the canvas or, on a phone, the
// outline shows that fit a selector.
func steps(selector string) string {
	return `document.querySelectorAll(".react-flow .node` + selector + `, .outline-node` + selector + `").length`
}

// choose takes an entry of a menu.
func (s *stranger) choose(menu, entry string) {
	s.t.Helper()
	s.until(`document.querySelector("#main button[aria-label=` + menu + `]")`)
	s.value(`document.querySelector("#main button[aria-label=` + menu + `]").click()`)
	s.press(entry)
}

// mendsWorkflow makes a workflow, breaks it, is told where, and
// goes back to an old version.
func mendsWorkflow(t *testing.T, _ *theatre, s *stranger) {
	s.goTo("workflows", says("No workflows yet"))
	s.press("New workflow")
	s.fill("Name", "Greeting", "It begins", "manual")
	s.press("Make")
	s.until(steps("") + ` === 2 && ` + says("Say hello"))
	graph := func(code string) string {
		return `{"nodes":[{"id":"start","type":"trigger"},{"id":"greet","type":"code","data":{"label":"Greet","code":` + code + `}}],"edges":[{"source":"start","target":"greet"}]}`
	}
	s.press("JSON")
	s.fill("Nodes and edges", graph(`7}`))
	s.press("Apply")
	s.until(says("is not JSON"))
	s.fill("Nodes and edges", graph(`7`))
	s.press("Apply")
	s.until(`document.querySelector(".outline-node .icon[aria-label='Has a problem']")`) // before it is saved
	s.press("Save")
	s.until(`document.querySelector(".problems button")?.textContent === "Greet: Code must be a string"`)
	s.value(`document.querySelector(".problems button").click()`)
	s.until(`document.activeElement.closest("[data-field]")?.dataset.field === "code" && document.querySelector(".field.wrong .issue").textContent === "must be a string"`)
	s.writeCode("return {}")
	s.press("Save and go live")
	s.until(`document.querySelector(".editor-bar .badge").textContent === "active" && !document.querySelector(".tab-count")`)
	s.press("Versions")
	s.until(`document.querySelectorAll("#main tbody tr").length === 2`)
	s.press("Restore")
	s.until(steps("") + ` === 2 && ` + says("Say hello") + ` && ` + says("3 current"))
	s.press("Pause")
	s.until(`document.querySelector(".editor-bar .badge").textContent === "paused"`)
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
		"workflows/" + id: says("Versions"), "workflows/templates": says("Watch a page"), "workflows/templates/welcome": says("An admin of the agent sets it up"), "calendar/schedules": says("No schedules"), "calendar": `document.querySelector(".month")`,
		"browser": says("Choose a session"), "settings": says("Language model"), "settings/agent": says("About"), "settings/copies": says("consistent copy"), "settings/access": says("You are viewer")}
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		s.goTo(page, pages[page])
		s.offersNothing(page)
	}
}

// TestConsoleGraphs lays graphs out, joins changes of two people, copies nodes,
// and fills the templates of the documentation as the service does.
func TestConsoleGraphs(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	scope, examples := documentedTemplates(t)
	s := newTheatre(t).visit(t, 800)
	wrong := s.value(`(async () => {
		const { copyText, paste, readCopy, readGraph, removeFrom, tidy, writeGraph } = await import("/console/app/editor-editor.js");
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
		for (const [template, want] of ` + examples + `) same(template, fill(template, scope).text, typeof want === "string" ? want : JSON.stringify(want));
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

// documentedTemplates returns the scope and the examples of docs/workflows.md,
// as JSON: pairs of a template and what it comes to.
func documentedTemplates(t *testing.T) (scope, examples string) {
	t.Helper()
	doc, err := os.ReadFile("../docs/workflows.md")
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
