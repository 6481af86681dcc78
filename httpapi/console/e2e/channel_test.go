package e2e

import "testing"

// TestConsoleConnectsOverTheCanvas connects the channel that a node needs without leaving
// the editor.
func TestConsoleConnectsOverTheCanvas(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	id := ts.must(t, 201, "POST", flowBase, `{"name":"Flow","nodes":[{"id":"start","type":"trigger","data":{}},{"id":"tell","type":"email","data":{"to":"a@example.com","body":"Hi"}}],"edges":[{"source":"start","target":"tell"}]}`)["id"].(string)
	p := ts.openConsole(t, 1280)
	p.eval(axe(t))
	p.openNode(id, "tell")
	p.waitFor(hasText("Problems 1"))
	before := p.eval(`location.hash`)
	p.clickOn(`[...document.querySelectorAll("[data-field=gateway_id] button")].find((b) => b.textContent === "New…")`)
	p.waitFor(`document.querySelector("dialog[open] form")`)
	p.show("canvas", "connect")
	p.fill("Name", "Post", "API key", "re_wrong", "From: address", "shop@example.com")
	if p.eval(`location.hash`) != before {
		t.Error("the editor was left")
	}
}
