package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// largeGraph returns the nodes and edges of a workflow of count nodes.
func largeGraph(count int) (nodes, edges string) {
	kinds := []string{
		`"type":"set","data":{"values":{"a":"{{trigger.amount}}"}}`,
		`"type":"if-else","data":{"conditions":[{"left":"{{trigger.x}}","operator":"equals","right":1}]}`,
		`"type":"http-request","data":{"url":"https://example.com/{{trigger.id}}"}`,
		`"type":"code","data":{"code":"return {}"}`,
	}
	n, e := []string{`{"id":"n0","type":"trigger","position":{"x":0,"y":0},"data":{}}`}, []string{}
	for i := 1; i < count; i++ {
		n = append(n, fmt.Sprintf(`{"id":"n%d","position":{"x":%d,"y":%d},%s}`, i, i%20*300, i/20*140, kinds[i%4]))
		handle := ""
		if i%4 == 2 { // after an if-else
			handle = `,"sourceHandle":"true"`
		}
		e = append(e, fmt.Sprintf(`{"id":"e%d","source":"n%d","target":"n%d"%s}`, i, i-1, i, handle))
	}
	return "[" + strings.Join(n, ",") + "]", "[" + strings.Join(e, ",") + "]"
}

// metric returns one of the page's metrics, such as TaskDuration, in seconds.
func (p *browserPage) metric(name string) float64 {
	p.t.Helper()
	for _, m := range p.cdp("Performance.getMetrics", nil)["metrics"].([]any) {
		if at(m, "name") == name {
			return at(m, "value").(float64)
		}
	}
	p.t.Fatalf("there is no metric %s", name)
	return 0
}

// measured reports how long steps take: the time in the page's thread for each, and the
// frames drawn meanwhile. Steps are numbered from 0.
func (p *browserPage) measured(what string, steps int, step func(i int)) {
	p.t.Helper()
	p.eval(`(() => {
		const frames = window.frames = [];
		let last = performance.now();
		const note = (now) => { frames.push(now - last); last = now; if (window.frames === frames) requestAnimationFrame(note); };
		requestAnimationFrame(note);
	})()`)
	before := p.metric("TaskDuration")
	for i := range steps {
		step(i)
	}
	spent := 1000 * (p.metric("TaskDuration") - before) / float64(steps)
	frames := p.eval(`(() => { const f = frames.sort((a, b) => a - b); window.frames = null; return [f.length, ` +
		`f[Math.floor(f.length * .5)] ?? 0, f[Math.floor(f.length * .95)] ?? 0]; })()`).([]any)
	p.t.Logf(
		"%-5s %3d steps: %5.1f ms each in the page's thread; %3.0f frames, p50 %5.1f ms, p95 %5.1f ms",
		what,
		steps,
		spent,
		frames[0],
		frames[1],
		frames[2],
	)
}

// afterFrame is an expression that waits until what has changed is shown.
const afterFrame = `new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)))`

// shapesOf is the beginning of a function in the page, with the canvas's shapes of the
// workflow in the address, and of the same with one more node and edge.
const shapesOf = `(async () => {
	const canvas = await import(performance.getEntriesByType("resource").map((r) => r.name).find((n) => n.includes("editor-canvas.js")));
	const doc = await (await fetch(location.hash.replace("#", "/api").replace(/(agents.[^/]+.workflows.[^?]+).*/, "$1"))).json();
	const editor = { doc: { value: doc }, names: { value: new Map() }, selected: { value: new Set() }, marks: { value: new Map() }, selectedEdge: { value: "" } };
	const [nodes, edges] = [canvas.nodeShapes(editor, []), canvas.edgeShapes(editor, [])];
	const again = [canvas.nodeShapes(editor, nodes), canvas.edgeShapes(editor, edges)];
	editor.doc.value = { ...doc, nodes: [...doc.nodes, { id: "more", type: "code", data: {} }], edges: [...doc.edges, { id: "more", source: doc.nodes[0].id, target: "more" }] };
	const [moreNodes, moreEdges] = [canvas.nodeShapes(editor, nodes), canvas.edgeShapes(editor, edges)];
`

// sizesKnown is an expression for the nodes whose size or handles differ from what the
// canvas expects without measuring them.
const sizesKnown = shapesOf + `
	const scale = new DOMMatrixReadOnly(getComputedStyle(document.querySelector(".react-flow__viewport")).transform).m22;
	return nodes.map((n) => {
		const box = document.querySelector(".react-flow__node[data-id=" + n.id + "]"), outer = box.getBoundingClientRect();
		const drawn = [box.offsetWidth, box.offsetHeight, ...[...box.querySelectorAll(".react-flow__handle")].map((h) => {
			const b = h.getBoundingClientRect();
			return [h.dataset.handleid, Math.round((b.x - outer.x) / scale), Math.round((b.y - outer.y) / scale), h.offsetWidth];
		})];
		const known = [n.measured?.width, n.measured?.height, ...(n.handles ?? []).map((h) => [h.id, h.x, h.y, h.width])];
		return JSON.stringify(drawn) === JSON.stringify(known) ? "" : n.id + ": " + JSON.stringify(known) + " is " + JSON.stringify(drawn);
	}).filter(Boolean).slice(0, 3).join("\n");
})()`

// sameShapes is an expression for the shapes that the canvas creates again although they
// are the same: the library draws those again.
const sameShapes = shapesOf + `
	const fresh = (now, before) => before.filter((v, i) => now[i] !== v).map((v) => v.id);
	return [again[0] === nodes ? "" : "the list of nodes", again[1] === edges ? "" : "the list of edges", ...fresh(moreNodes, nodes), ...fresh(moreEdges, edges)].filter(Boolean).join();
})()`

// TestConsoleLargeGraph shows 200 nodes, drags one of them, pans, zooms, adds
// nodes and undoes that, and reports how long it took.
func TestConsoleLargeGraph(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	nodes, edges := largeGraph(200)
	id := createFlow(t, ts.testClient, nodes, edges, "")
	p := ts.openConsole(t, 1280)
	// CPU time, whatever else runs on this machine
	p.cdp("Performance.enable", map[string]any{"timeDomain": "threadTicks"})
	p.open("workflows", hasText("From template"))
	p.eval(`(() => {
		window.redrawn = new Set();
		new MutationObserver((list) => { for (const m of list) if (m.target.matches(".react-flow__node")) redrawn.add(m.target.dataset.id); }).observe(document.body, { subtree: true, attributes: true });
	})()`)
	before := p.metric("TaskDuration")
	p.eval(`window.asked = performance.now(); location.hash = ` + quoted(p.base+"workflows/"+id))
	p.waitFor(countNodes("") + ` === 200 && document.querySelectorAll(".react-flow__edge").length === 199`)
	shown := p.eval(afterFrame + `.then(() => performance.now() - asked)`).(float64)
	t.Logf(
		"200 nodes shown in %.0f ms; %.0f ms of CPU time in the page's thread",
		shown,
		1000*(p.metric("TaskDuration")-before),
	)
	if got := p.eval(`redrawn.size`).(float64); got > 0 {
		t.Errorf("%v nodes are drawn again while the graph is shown", got)
	}
	if got := p.eval(sizesKnown).(string); got != "" {
		t.Errorf("nodes have other sizes or positions of handles than the canvas expects: %s", got)
	}

	if got := p.eval(`["n2", "n6"].map((id) => document.querySelector(".react-flow__node[data-id=" + id + "] ` +
		`.node-text").innerText).join(", ")`); got != "HTTP request\nGET example.com/{{trigger.id}}, HTTP request "+
		"2\nGET example.com/{{trigger.id}}" {
		t.Errorf("two nodes of one type without labels show %q", got)
	}
	if got := p.eval(sameShapes).(string); got != "" {
		t.Errorf("created again after adding a node and an edge to the first node: %s", got)
	}

	place := p.eval(`(() => { window.dragged = document.querySelector(".react-flow__node[data-id=n90]"); ` +
		`const b = dragged.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2, ` +
		`dragged.style.transform]; })()`).([]any)
	x, y := place[0].(float64), place[1].(float64)
	mouse := func(kind string, x, y float64) {
		p.cdp("Input.dispatchMouseEvent", map[string]any{
			"type":       kind,
			"x":          x,
			"y":          y,
			"button":     "left",
			"buttons":    1,
			"clickCount": 1,
		})
	}
	mouse("mousePressed", x, y)
	mouse("mouseMoved", x+5, y+5)
	p.eval(`(() => {
		window.changed = new Set();
		window.watch = new MutationObserver((list) => { for (const m of list) { const node = m.target.closest(".react-flow__node"); if (node) changed.add(node.dataset.id); } });
		watch.observe(document.querySelector(".react-flow"), { subtree: true, attributes: true, childList: true, characterData: true });
	})()`)
	const mapped = `document.querySelector(".map-nodes").getAttribute("d")`
	p.eval(`(() => { window.mapped = ` + mapped + `; })()`)
	p.measured("drag", 100, func(i int) { mouse("mouseMoved", x+5+float64(i), y+5+float64(i%30)) })
	if p.eval(mapped+` !== mapped`) == true {
		t.Error("the map is drawn again while a node is dragged")
	}
	if got := p.eval(`[...changed].join()`); got != "n90" {
		t.Errorf("dragging n90 changes %v", got)
	}
	mouse("mouseReleased", x+105, y+5)
	p.waitFor(`dragged.style.transform !== ` + quoted(place[2].(string)) +
		` && !dragged.classList.contains("dragging") && ` +
		`document.querySelector(".saved-state").textContent === "Unsaved" && ` +
		mapped + ` !== mapped`)

	if p.eval(`Boolean(document.querySelector(".editor-panel"))`) == true {
		t.Error("dragging a node opens its panel, which moves the graph under the pointer")
	}
	p.clickOn(`dragged.querySelector(".node-head")`)
	p.waitFor(`document.querySelector(".editor-panel h2")`)

	p.eval(afterFrame + `.then(() => { changed.clear(); })`) // the changes of the drop are drawn by then
	view := `document.querySelector(".react-flow__viewport").style.transform`
	for what, control := range map[string]int{"pan": 0, "zoom": 2} {
		was := p.eval(view).(string)
		p.measured(what, 60, func(i int) {
			p.cdp("Input.dispatchMouseEvent", map[string]any{
				"type":      "mouseWheel",
				"x":         x,
				"y":         y,
				"deltaX":    0,
				"deltaY":    3 * float64(1+i%2),
				"modifiers": control,
			})
		})
		p.waitFor(view + ` !== ` + quoted(was))
	}
	if got := p.eval(`[...changed].join()`); got != "" {
		t.Errorf("panning and zooming change %v", got)
	}
	p.eval(`watch.disconnect(), 0`)

	count := func(want int) {
		p.waitFor(fmt.Sprintf(`%s === %d`, countNodes(""), want))
		p.eval(afterFrame + `.then(() => 0)`)
	}
	p.eval(`document.querySelector(".editor-view").focus(), 0`)
	const copies = 10
	p.measured("add", copies, func(i int) {
		p.pressKeys("Control+d")
		count(201 + i)
	})
	p.measured("undo", copies, func(i int) {
		p.pressKeys("Control+z")
		count(199 + copies - i)
	})
	p.checkPage("200 nodes")
}
