package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// waitForCount waits until a list of the agent has n entries, and returns it.
func (p *consolePage) waitForCount(path, list string, n int) {
	p.t.Helper()
	p.waitFor(fmt.Sprintf(
		`fetch(%s).then((r) => r.json()).then((d) => d[%s].length === %d)`,
		quoted("/api/agents/default"+path),
		quoted(list),
		n,
	))
}

// TestConsoleTables creates a table, edits its cells by the keyboard, creates a form from
// it, submits the form on its own page, sees the row arrive, and checks that the row
// started a workflow.
func TestConsoleTables(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	watcher := ts.must(t, 201, "POST", "/api/agents/default/workflows", `{"name":"New leads","status":"active","nodes":[{"id":"t","type":"trigger","data":{"event":"row.created","table":"leads","filter":[{"left":"{{row.email}}","operator":"contains","right":"grace"}]}},
		{"id":"s","type":"set","data":{"values":{"text":"{{row.name}}"}}}],"edges":[{"source":"t","target":"s"}]}`)["id"].(string)
	p := ts.openConsole(t, 1280)
	p.open("tables", hasText("No tables yet"))
	p.click("New table")
	p.waitFor(`document.querySelector("dialog form")`)
	p.fill("Name", "leads")
	p.click("Add a column")
	p.set("Name of column 2", "email")
	p.click("Add a column")
	p.set("Name of column 3", "amount")
	p.set("Type of column 3", "number")
	p.click("Create")
	p.waitFor(hasText("No rows yet") + ` && location.hash.endsWith("tables/leads")`)
	p.checkPage("an empty table")

	p.click("Add row")
	p.waitFor(`document.querySelector("dialog form")`)
	p.fill("name *", "Ada", "amount", "many")
	p.click("Add")
	p.waitFor(`document.querySelector("dialog .issue")?.textContent === "must be a number"`)
	p.fill("amount", "12.5")
	p.click("Add")
	p.waitFor(`!document.querySelector("dialog") && document.querySelector(".rows td.number")?.textContent === "12.5"`)
	p.checkPage("a table")
	p.eval(`void document.querySelector('.rows [data-at="0,0"]').focus()`)
	p.pressKeys("ArrowRight")
	p.waitFor(`document.activeElement.dataset.at === "0,1"`)
	p.pressKeys("Enter")
	p.waitFor(`document.activeElement.getAttribute("aria-label") === "email"`)
	p.typeText("ada@example.com")
	p.pressKeys("Tab")
	p.waitFor(`document.activeElement.dataset.at === "0,2"`)
	p.pressKeys("Enter")
	p.waitFor(`document.activeElement.getAttribute("aria-label") === "amount"`)
	p.typeText("x")
	p.pressKeys("Enter")
	p.waitFor(`document.querySelector(".rows .wrong .issue")?.textContent === "must be a number"`)
	p.checkPage("a wrong cell")
	p.pressKeys("Escape")
	p.waitFor(`document.activeElement.dataset.at === "0,2"`)
	p.pressKeys("Delete")
	p.waitFor(`document.querySelector('.rows [data-at="0,2"]').textContent === ""`)
	// the page does not wait for it
	p.waitFor(`fetch("/api/agents/default/tables/leads/rows").then((r) => r.json()).then(({ rows: ` +
		`[row] }) => row.email === "ada@example.com" && row.amount == null)`)

	p.open("forms", hasText("No forms yet"))
	p.click("New form")
	p.waitFor(`document.querySelector("dialog option[value=leads]")`)
	p.fill("Title", "Ask for an offer", "Submission", "leads")
	p.click("Create")
	p.waitFor(`document.querySelector(".form-preview") && document.querySelector(".address a")`)
	p.checkPage("a form")
	p.set("Label of field 1", "Your name")
	p.waitFor(`document.querySelector(".form-preview").textContent.includes("Your name")`)
	p.click("Save")
	p.waitFor(`document.querySelector(".toasts").textContent.includes("Saved")`)
	address := p.eval(`document.querySelector(".address a").getAttribute("href")`).(string)
	address = ts.url + address[strings.Index(address, "/f/"):]

	visitor := ts.OpenSession(t, 375, 800, address)
	said := ts.must(t, 200, "POST", "/api/agents/default/browser/"+visitor.ID()+"/execute", `{"actions":[
		{"action":"evaluate","script":"document.documentElement.scrollWidth <= innerWidth && document.title"},
		{"action":"type","selector":"[name=name]","text":"Grace <b>"},{"action":"type","selector":"[name=email]","text":"grace"},{"action":"type","selector":"[name=amount]","text":"7"},{"action":"click","selector":"button"},
		{"action":"extract","selector":".note.error"},{"action":"evaluate","script":"document.querySelector('[name=name]').value"},
		{"action":"type","selector":"[name=email]","text":"grace@example.com","clear":true},{"action":"click","selector":"button"},{"action":"wait","selector":"text=Thank you"}]}`)
	for i, want := range map[int]string{0: "Ask for an offer", 5: "must be an e-mail address", 6: "Grace <b>"} {
		if got := at(said["results"].([]any)[i], "result.value"); got != want {
			t.Errorf("step %d: %v, want %s", i, got, want)
		}
	}

	p.open("tables/leads", hasText("Grace <b>")+` && document.querySelectorAll(".rows tbody tr").length === 2`)
	p.waitForCount("/workflows/executions?status=complete&workflow_id="+watcher, "executions", 1)
	ts.must(t, 201, "POST", "/api/agents/default/tables/leads/rows", `{"row":{"name":"Live"}}`)
	p.waitFor(hasText("Live"))
	p.eval(`void document.querySelector('.rows [data-at="2,0"]').focus()`)
	p.waitFor(`document.activeElement.getAttribute("aria-selected") === "true"`)
	p.eval(`(() => {
		const data = new DataTransfer();
		data.setData("text/plain", "Eve\t\"eve@\nexample.com\"\t8\r\nBob\t\t9\r\n");
		document.activeElement.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
	})()`)
	p.waitFor(`document.querySelectorAll(".rows tbody tr").length === 4 && ` +
		`document.querySelector(".toasts").textContent.includes("3 cells changed, 1 row added")`)
	rows := ts.must(t, 200, "GET", "/api/agents/default/tables/leads/rows", "")
	if got, want :=
		fmt.Sprintf("%q %v %v", at(rows, "rows.2.email"), at(rows, "rows.3.name"), at(rows, "rows.3.amount")),
		`"eve@\nexample.com" Bob 9`; got != want {
		t.Errorf("after pasting: %s, want %s", got, want)
	}
	p.clickOn(`[...document.querySelectorAll(".toasts button")].find((b) => b.textContent === "Undo")`)
	p.waitFor(`document.querySelectorAll(".rows tbody tr").length === 3 && ` + hasText("Live"))
	p.clickOn(`document.querySelector('[aria-label="Select row 3"]')`)
	p.click("Delete 1 row")
	p.waitFor(`document.querySelectorAll(".rows tbody tr").length === 2 && ` +
		`document.querySelector(".toasts").textContent.includes("1 row deleted")`)
}
