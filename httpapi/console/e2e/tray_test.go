package e2e

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestConsoleTray: what runs is counted and listed while it runs, and an execution is
// terminated from there, on a wide page and on a phone.
func TestConsoleTray(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(release)
		slow.Close()
	})
	flow := ts.must(
		t, 201, "POST", flowBase,
		`{"name":"Slow `+"\\u003cb\\u003e"+`","status":"active","nodes":[{"id":"t","type":"trigger",`+
			`"data":{"event":"webhook"}},{"id":"h","type":"http-request","data":{"url":"`+slow.URL+
			`","timeout":"60s"}}],"edges":[{"source":"t","target":"h"}]}`,
	)["id"].(string)
	tray := `document.querySelector(".tray-button")`
	for _, width := range []int{1280, 375} {
		p := ts.openConsole(t, width)
		p.open("contacts", `document.querySelector("#main h1")`)
		if p.eval(tray) != nil {
			t.Fatal("something runs")
		}
		run := ts.must(t, 200, "POST", flowBase+"/execute", `{"workflow_id":"`+flow+`","input":{}}`)["id"].(string)
		p.waitFor(tray + `?.textContent === "1 running now"`)
		if width > 700 {
			p.waitFor(`[...document.querySelectorAll(".rail-foot > *")].every((e) => ` +
				`e.getBoundingClientRect().right <= document.querySelector(".rail").getBoundingClientRect().right) ` +
				`&& document.querySelector(".rail-foot .dot").getBoundingClientRect().top > ` + tray +
				`.getBoundingClientRect().bottom`)
		}
		if width > 700 {
			p.clickOn(tray)
		} else {
			p.waitFor(`document.querySelector("nav.bottom .dot.busy")`)
			p.clickOn(`[...document.querySelectorAll("nav.bottom button")].at(-1)`)
			p.clickOn(`document.querySelector(".more button")`)
		}
		p.waitFor(`document.querySelector(".dialog.tray a[href$='` + run + `']")?.textContent === "Slow <b>"`)
		p.checkPage("what runs")
		p.eval(axe(t) + `; void 0`)
		p.checkAccessible("what runs")
		p.clickOn(`document.querySelector(".dialog.tray [aria-label^=Terminate]")`)
		p.clickOn(`document.querySelector(".dialog .button.danger")`)
		p.waitFor(`document.querySelector(".dialog.tray")?.textContent.includes("Nothing is running.")`)
		p.waitFor(`!document.querySelector(".tray-button")`)
		if status := ts.must(t, 200, "GET", flowBase+"/executions/"+run, "")["status"]; status != "terminated" {
			t.Errorf("the execution is %v", status)
		}
	}
}
