package e2e

import "testing"

// TestConsoleNoticesCoverNothing resolves a conversation and checks that the notice about
// it lies on nothing that can be clicked, that the navigation fits a low window, and that
// an unreachable server is reported once.
func TestConsoleNoticesCoverNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	for _, width := range []int{1280, 375} {
		contact := ts.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada"}`)["id"].(string)
		p := ts.openConsole(t, width)
		p.cdp("Emulation.setDeviceMetricsOverride", map[string]any{
			"width":             width,
			"height":            800,
			"deviceScaleFactor": 1,
			"mobile":            false,
		})
		if width == 1280 {
			p.waitFor(`((ul) => ul.scrollHeight <= ul.clientHeight && ` +
				`ul.lastElementChild.getBoundingClientRect().bottom <= ` +
				`document.querySelector(".rail-foot").getBoundingClientRect().top)(document.que` +
				`rySelector(".rail > ul"))`)
		}
		p.open("contacts/"+contact, hasText("Custom fields"))
		p.click("Add a field")
		p.eval(`window.fetch = () => Promise.reject(new TypeError("refused"))`)
		p.set("Name of the field", "x")
		p.clickOn(`document.activeElement.form.querySelector("[type=submit]")`)
		p.waitFor(`document.querySelector(".banner.bad")`)
		if n := p.eval(`document.body.innerText.split("reach the server").length - 1`); n != 1.0 {
			t.Errorf("%d pixels: an unreachable server is reported %v times", width, n)
		}
		p.reload()
		p.waitFor(hasText("Custom fields"))
		p.clickOn(`document.querySelector("#main button[aria-label^='Actions'], #main button[aria-label='More']")`)
		p.clickOn(
			`[...document.querySelectorAll("#main [role=menuitem]")].find((b) => b.textContent.includes("Delete"))`,
		)
		p.waitFor(`document.querySelector(".toast")`)
		if covered := p.eval(`((toast) => [...document.querySelectorAll("#main :is(button, a), nav :is(button, a)")].filter((e) => e.checkVisibility()).map((e) => [e, e.getBoundingClientRect()])
			.filter(([e, box]) => box.bottom > toast.top && box.top < toast.bottom && box.left < toast.right && box.right > toast.left && document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)?.closest(".toasts")).map(([e]) => e.outerHTML).join())(document.querySelector(".toast").getBoundingClientRect())`); covered != "" {
			t.Errorf("%d pixels: the notice covers %v", width, covered)
		}
	}
}
