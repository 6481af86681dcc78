package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestConsoleTriesRequests sends the request of a node that is not saved, sees the first
// item of the response and copies the template of a value; and finds the command that
// calls the webhook at its trigger.
func TestConsoleTriesRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	var sent atomic.Int32
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/orders" {
			http.NotFound(w, r)
			return
		}
		sent.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(
			w,
			`{"total":2,"orders":[{"id":17,"customer":{"name":%s}},{"id":18,"note":"%s"}]}`,
			quoted(hostile),
			strings.Repeat("long ", 10_000),
		)
	}))
	t.Cleanup(shop.Close)
	pets := newDescribedAPI(t)
	api := fmt.Sprint(ts.must(
		t,
		201,
		"POST",
		"/api/agents/default/apis",
		`{"name":"pets","url":`+quoted(pets.URL+"/openapi.json")+`}`,
	)["id"])
	id := createFlow(t, ts.testClient, `[{"id":"start","type":"trigger","data":{"event":"webhook"}},{"id":"fetch","type":"http-request","data":{"method":"GET","url":`+quoted(shop.URL+"/nothing")+`}},
		{"id":"call","type":"operation","data":{"api":`+quoted(api)+`,"operation":"listPets","arguments":{"kind":"cat"}}}]`, `[{"source":"start","target":"fetch"},{"source":"fetch","target":"call"}]`, "")
	source := axe(t)
	for i, look := range axeLooks {
		p := ts.openConsole(t, look.width)
		p.eval(source)
		p.eval(`navigator.clipboard.writeText = async (text) => { window.copied = text; }`)
		name := []string{"wide", "narrow"}[i]
		w := p.begin(14, "Try a request before it is saved, copy a value", 5)
		p.open("workflows/"+id+"?node=fetch", `document.querySelector(".try-node button")`)
		p.click("Try")
		p.waitFor(`document.querySelector(".try-node .issue, .try-node .badge")?.textContent.length > 2 && ` +
			`document.querySelector(".try-node").textContent.includes("404")`)
		w.aside(func() { p.showEnd(name, "failed", ".try-node") })
		p.typeInto(`document.querySelector("[data-field=url] :is(textarea, input)")`, shop.URL+"/orders")
		p.click("Try")
		p.waitFor(`document.querySelector(".try-node .badge.good")?.textContent === "200" && ` +
			`document.querySelector(".try-node h3").textContent === "First of 2"`)
		w.aside(func() { p.showEnd(name, "tried", ".try-node") })
		p.clickOn(
			`[...document.querySelectorAll(".try-node .path-leaf button")].find((b) => b.textContent === "id: 17")`,
		)
		p.waitFor(`window.copied === "{{nodes.fetch.body.orders[0].id}}"`)
		w.end(t)
		if n := int(sent.Load()); n != i+1 {
			t.Errorf("%d requests were sent by %d clicks", n, i+1)
		}
		if saved := p.eval(`document.querySelector(".saved-state").textContent`); saved != "Unsaved" {
			t.Errorf("the workflow is %v", saved)
		}
		p.clickOn(`[...document.querySelectorAll(".editor-panel header button")].find((b) => b.ariaLabel === "Close")`)
		p.waitFor(`!document.querySelector(".editor-panel") && !location.hash.includes("node=")`)
		for _, e := range []struct{ node, on string }{
			{"call", `document.querySelector(".try-node button")`},
			{
				"start",
				`[...document.querySelectorAll(".editor-panel summary")].find((s) => ` +
					`s.textContent === "Call it with curl")`,
			},
		} {
			p.eval(`location.hash = ` + quoted(p.base+"workflows/"+id+"?node="+e.node))
			p.clickOn(e.on)
			if e.node == "call" {
				p.waitFor(`document.querySelector(".try-node .badge.good")?.textContent === "200" && ` +
					`document.querySelector(".try-node").textContent.includes("cat")`)
			}
		}
		p.waitFor(`document.querySelector(".editor-panel pre")?.textContent.startsWith("curl -X POST") && ` +
			`document.querySelector(".editor-panel pre").textContent.includes("/hooks/` + id + `")`)
		p.showEnd(name, "curl", ".editor-panel pre")
		command := p.eval(`document.querySelector(".editor-panel pre").textContent`)
		p.chooseMenu("More", "Webhook address")
		p.waitFor(`document.querySelector("dialog[open] pre")?.textContent === ` + quoted(fmt.Sprint(command)))
		p.pressKeys("Escape")
	}
	if stored := fmt.Sprint(ts.must(
		t, 200, "GET", flowBase+"/"+id, "",
	)["nodes"]); !strings.Contains(stored, "/nothing") {
		t.Errorf("trying a request stored it: %s", stored)
	}
}

// showEnd shows the end of an element of the panel, which must be no wider than the panel.
func (p *consolePage) showEnd(name, state, selector string) {
	p.t.Helper()
	p.eval(`document.querySelector(` + quoted(selector) + `).scrollIntoView({ block: "end" })`)
	if wide := p.eval(`[...document.querySelectorAll(".panel-body, .panel-body pre")].filter((e) => e.scrollWidth > ` +
		`e.clientWidth).map((e) => e.className).join()`); wide != "" {
		p.t.Errorf("%s: wider than the panel: %v", state, wide)
	}
	p.show(name, state)
}
