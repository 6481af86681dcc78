package e2e

import (
	"fmt"
	"testing"
)

// TestConsoleConnectsOverTheCanvas connects the channel that a node needs without leaving
// the editor.
func TestConsoleConnectsOverTheCanvas(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	id := ts.must(
		t, 201, "POST", flowBase,
		`{"name":"Flow","nodes":[{"id":"start","type":"trigger","data":{}},{"id":"tell","type":"email",`+
			`"data":{"to":"a@example.com","body":"Hi"}}],"edges":[{"source":"start","target":"tell"}]}`,
	)["id"].(string)
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

// TestConsoleConnectsForANode has the editor show what a node lacks, and connects it: a
// token that the platform rejects is corrected in the dialog, and the node has the channel.
func TestConsoleConnectsForANode(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	id := ts.must(
		t, 201, "POST", flowBase,
		`{"name":"Flow","nodes":[{"id":"start","type":"trigger","data":{}},{"id":"say","type":"chatbot_a",`+
			`"data":{"to":"42","message":"Hi"}}],"edges":[{"source":"start","target":"say"}]}`,
	)["id"].(string)
	p := ts.openConsole(t, 1280)
	p.eval(`location.hash = ` + quoted(p.base+"workflows/"+id+"?node=say"))
	p.waitFor(hasText("Problems 1") + ` && document.querySelector("[data-field=gateway_id]")?.checkVisibility() && ` +
		hasText("this agent has no Telegram channel"))
	p.clickOn(`[...document.querySelectorAll("[data-field=gateway_id] button")].find((b) => b.textContent === "New…")`)
	p.waitFor(`document.querySelector("dialog[open] form")`)
	p.fill("Bot token", "1:wrong", "Address of the platform's API", fakeTelegram(t))
	p.click("Connect")
	p.waitFor(hasFieldError("Bot token", "bot token (401)"))
	p.fill("Bot token", "1:right")
	p.click("Connect")
	p.waitFor(`!document.querySelector("dialog[open]") && document.querySelector("[data-field=gateway_id] ` +
		`select").selectedOptions[0].textContent.includes("Telegram") && ` + hasText("Problems 0"))
	if list := ts.must(t, 200, "GET", "/api/agents/default/gateways", ""); fmt.Sprint(at(list, "meta.total")) != "1" {
		t.Errorf("channels: %v", list)
	}
	p.checkPage("a node whose channel was connected")
}
