package httpapi

import (
	"fmt"
	"strings"
	"testing"
)

// largeGraph returns the nodes and edges of a workflow of count nodes.
func largeGraph(count int) (nodes, edges string) {
	kinds := []string{`"type":"set","data":{"values":{"a":"{{trigger.amount}}"}}`, `"type":"if-else","data":{"conditions":[{"left":"{{trigger.x}}","operator":"equals","right":1}]}`,
		`"type":"http-request","data":{"url":"https://example.com/{{trigger.id}}"}`, `"type":"code","data":{"code":"return {}"}`}
	n, e := []string{`{"id":"n0","type":"trigger","position":{"x":0,"y":0},"data":{}}`}, []string{}
	for i := 1; i < count; i++ {
		n = append(n, fmt.Sprintf(`{"id":"n%d","position":{"x":%d,"y":%d},%s}`, i, i%20*300, i/20*140, kinds[i%4]))
		handle := ""
		if i%4 == 2 { // behind an if-else
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

// TestConsoleLargeGraph shows 200 nodes, drags one of them, and reports how
// long that took: the frames, and the time of the page's thread for each move.
func TestConsoleLargeGraph(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	ts := newTestServer(t)
	nodes, edges := largeGraph(200)
	id := createFlow(t, ts.testClient, nodes, edges, "")
	p := ts.openConsole(t, 1280)
	p.cdp("Performance.enable", nil)
	p.open("workflows", hasText("From template"))
	before := p.metric("TaskDuration")
	p.eval(`window.asked = performance.now(); location.hash = ` + quoted(p.base+"workflows/"+id))
	p.waitFor(`document.querySelectorAll(".react-flow__node").length === 200 && document.querySelectorAll(".react-flow__edge").length === 199`)
	shown := p.eval(`new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(performance.now() - asked))))`).(float64)
	t.Logf("200 nodes shown in %.0f ms, %.0f ms of them in the page's thread", shown, 1000*(p.metric("TaskDuration")-before))

	place := p.eval(`(() => { window.dragged = document.querySelector(".react-flow__node[data-id=n90]"); const b = dragged.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2, dragged.style.transform]; })()`).([]any)
	x, y := place[0].(float64), place[1].(float64)
	mouse := func(kind string, x, y float64) {
		p.cdp("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1})
	}
	mouse("mousePressed", x, y)
	mouse("mouseMoved", x+5, y+5)
	p.eval(`(() => {
		window.frames = []; window.changed = new Set();
		let last = performance.now();
		const note = (now) => { frames.push(now - last); last = now; requestAnimationFrame(note); };
		requestAnimationFrame(note);
		new MutationObserver((list) => { for (const m of list) { const node = m.target.closest(".react-flow__node"); if (node) changed.add(node.dataset.id); } }).observe(document.querySelector(".react-flow"), { subtree: true, attributes: true, childList: true, characterData: true });
	})()`)
	const moves = 100
	before = p.metric("TaskDuration")
	for i := range moves {
		mouse("mouseMoved", x+5+float64(i), y+5+float64(i%30))
	}
	spent := 1000 * (p.metric("TaskDuration") - before) / moves
	frames := p.eval(`(() => { frames.sort((a, b) => a - b); return [frames.length, frames[Math.floor(frames.length * .5)], frames[Math.floor(frames.length * .95)]]; })()`).([]any)
	t.Logf("%d moves: %.1f ms each in the page's thread; %.0f frames, p50 %.1f ms, p95 %.1f ms", moves, spent, frames[0], frames[1], frames[2])
	mouse("mouseReleased", x+5+moves, y+5)
	if got := p.eval(`[...changed].join()`); got != "n90" {
		t.Errorf("dragging n90 changes %v", got)
	}
	p.waitFor(`dragged.style.transform !== ` + quoted(place[2].(string)) + ` && document.querySelector(".saved-state").textContent === "Unsaved"`)
	p.checkPage("200 nodes")
}
