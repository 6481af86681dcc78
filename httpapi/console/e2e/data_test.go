package e2e

import (
	"net/url"
	"strings"
	"testing"
)

// typeCode replaces what is in the page's code editor.
func (p *consolePage) typeCode(text string) {
	p.t.Helper()
	p.waitFor(`document.querySelector(".code-editor")?.shadowRoot?.querySelector(".cm-content")`)
	p.eval(`void document.querySelector(".code-editor").shadowRoot.querySelector(".cm-content").focus()`)
	p.cdp("Input.dispatchKeyEvent", map[string]any{
		"type":                  "keyDown",
		"key":                   "a",
		"code":                  "KeyA",
		"windowsVirtualKeyCode": 65,
		"modifiers":             2,
	})
	p.cdp("Input.insertText", map[string]any{"text": text})
}

// showSQL changes the statement in the address of the page.
func (p *consolePage) showSQL(query, expression string) {
	p.t.Helper()
	p.eval(`location.hash = ` + quoted(p.base+"sql?q="+url.QueryEscape(query)))
	p.waitFor(expression)
}

// controlEnter presses Ctrl+Enter.
func (p *consolePage) controlEnter() {
	p.t.Helper()
	p.cdp("Input.dispatchKeyEvent", map[string]any{
		"type":                  "keyDown",
		"key":                   "Enter",
		"code":                  "Enter",
		"windowsVirtualKeyCode": 13,
		"modifiers":             2,
	})
}

// TestConsoleData types SQL, changes a row by its key, saves rows as CSV, and checks that
// a statement in an address does not run on its own.
func TestConsoleData(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := ts.must(
		t,
		201,
		"POST",
		"/api/agents/default/contacts",
		`{"name":`+quoted(hostile)+`,"email":"ada@example.com"}`,
	)["id"].(string)
	for _, width := range []int{1280, 375} {
		p := ts.openConsole(t, width)
		p.open("sql", hasText("Ask your data"))
		p.typeCode("SELECT id, name, email\nFROM contacts WHERE email = :mail")
		p.fill("mail", "ada@example.com")
		p.controlEnter()
		p.waitFor(hasText("ada@example.com") +
			` && document.querySelectorAll(".grid tbody tr").length === 1 && location.hash.includes("q=SELECT")`)
		p.checkPage("rows")
		p.clickOn(`document.querySelector(".grid tbody tr")`)
		p.waitFor(`document.querySelector(".sql-row")`)
		p.eval(`(() => { const field = [...document.querySelectorAll(".sql-row textarea")].at(-1); field.value = ` +
			`"ada@example.com "; field.dispatchEvent(new Event("input", { bubbles: true })); field.value = "ada" + ` +
			`innerWidth + "@example.com"; field.dispatchEvent(new Event("input", { bubbles: true })); })()`)
		p.waitFor(`document.querySelector(".record-actions .primary:not(:disabled)")`)
		p.checkPage("a row")
		p.clickOn(`document.querySelector(".record-actions .primary")`)
		p.waitFor(`document.querySelector(".toasts").textContent.includes("Saved")`)
		if mail := ts.must(t, 200, "GET", "/api/agents/default/contacts/"+id, "")["email"]; mail == "ada@example.com" {
			t.Error("the row was not changed")
		}
		ts.must(t, 200, "PUT", "/api/agents/default/contacts/"+id, `{"email":"ada@example.com"}`)
		deleted := ts.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Gone"}`)["id"].(string)
		p.showSQL(
			"SELECT id, name FROM contacts WHERE name = 'Gone'",
			`document.querySelector(".grid tbody tr")?.textContent.includes("Gone")`,
		)
		p.clickOn(`document.querySelector(".grid tbody tr")`)
		p.waitFor(`[...document.querySelectorAll(".sql-row textarea")].some((f) => f.value === "Gone") && ` +
			`[...document.querySelectorAll(".sql-row > *")].every((part) => part.getBoundingClientRect().left >= ` +
			`document.querySelector(".drawer").getBoundingClientRect().left && part.offsetWidth > 200)`)
		p.click("Delete")
		p.waitFor(`document.querySelector("dialog")?.textContent.includes("` + deleted + `")`)
		p.click("Delete")
		p.waitFor(
			`document.querySelector(".toasts").textContent.includes("Deleted") && !document.querySelector(".drawer")`,
		)
		ts.must(t, 404, "GET", "/api/agents/default/contacts/"+deleted, "")
		p.showSQL(
			"SELECT id, name, email FROM contacts WHERE email = 'ada@example.com'",
			`document.querySelector(".grid tbody tr")?.textContent.includes("ada@example.com")`,
		)
		p.eval(`void document.querySelector(".drawer [aria-label=Close]")?.click()`)
		p.click("Run")
		p.waitFor(`document.querySelectorAll(".grid tbody tr").length === 1 && document.querySelector(".grid tbody ` +
			`tr").textContent.includes("ada@example.com")`)
		p.eval(`(() => { window.saved = []; const make = URL.createObjectURL; URL.createObjectURL = (blob) => { ` +
			`blob.text().then((text) => saved.push(text)); return make.call(URL, blob); }; })()`)
		p.clickOn(`document.querySelector("#main [aria-haspopup=menu]")`)
		p.clickOn(`[...document.querySelectorAll("[role=menuitem]")].find((b) => b.textContent.startsWith("CSV"))`)
		p.waitFor(`saved.length`)
		if csv := p.eval(`saved[0]`).(string); !strings.HasPrefix(csv, "id,name,email\n"+id+",") ||
			!strings.HasSuffix(csv, ",ada@example.com\n") {
			t.Errorf("the CSV is %q", csv)
		}
		p.typeCode("SELECT nosuch FROM contacts")
		p.controlEnter()
		p.waitFor(hasText("no such column: nosuch") + ` && ` + hasText("INVALID_QUERY"))
		p.checkPage("an error")
		p.showSQL("/* SELECT */ DELETE FROM contacts WHERE name = 'nobody'", hasText("This statement changes data"))
		p.click("Run it")
		p.waitFor(hasText("0 rows changed"))
		p.checkPage("a statement of the address")
	}
}

// TestConsoleDataForViewers checks that a viewer can read, and change nothing.
func TestConsoleDataForViewers(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	ts.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada"}`)
	p := ts.openConsole(t, 1280)
	key := ts.must(
		t, 201, "POST", "/api/keys",
		`{"name":"reader","role":"viewer","agents":["default"]}`,
	)["key"].(string)
	p.signIn(key)
	p.open(
		"sql?q="+url.QueryEscape("SELECT * FROM contacts"),
		`document.querySelectorAll(".grid tbody tr").length === 1`,
	)
	p.clickOn(`document.querySelector(".grid tbody tr")`)
	p.waitFor(`document.querySelector(".sql-row")`)
	if n := p.eval(`document.querySelectorAll(".sql-row :is(textarea, input, .danger)").length`); n != 0.0 {
		t.Errorf("a viewer sees %v controls that change a row", n)
	}
	p.showSQL("DELETE FROM contacts", hasText("Viewers can only run SELECT"))
}
