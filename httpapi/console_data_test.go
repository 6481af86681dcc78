package httpapi

import (
	"net/url"
	"strings"
	"testing"
)

// typeCode replaces what is in the page's code editor.
func (s *stranger) typeCode(text string) {
	s.t.Helper()
	s.until(`document.querySelector(".code-editor")?.shadowRoot?.querySelector(".cm-content")`)
	s.value(`void document.querySelector(".code-editor").shadowRoot.querySelector(".cm-content").focus()`)
	s.ask("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": "a", "code": "KeyA", "windowsVirtualKeyCode": 65, "modifiers": 2})
	s.ask("Input.insertText", map[string]any{"text": text})
}

// showSQL changes the statement in the address of the page.
func (s *stranger) showSQL(query, expression string) {
	s.t.Helper()
	s.value(`location.hash = ` + quoted(s.at+"sql?q="+url.QueryEscape(query)))
	s.until(expression)
}

// controlEnter presses Ctrl+Enter.
func (s *stranger) controlEnter() {
	s.t.Helper()
	s.ask("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "modifiers": 2})
}

// TestConsoleData types SQL, changes a row by its key, saves rows as CSV, and
// finds that a statement in an address changes nothing by itself.
func TestConsoleData(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	id := th.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":`+quoted(hostile)+`,"email":"ada@example.com"}`)["id"].(string)
	for _, width := range []int{1280, 375} {
		s := th.visit(t, width)
		s.goTo("sql", says("Ask your data"))
		s.typeCode("SELECT id, name, email\nFROM contacts WHERE email = :mail")
		s.fill("mail", "ada@example.com")
		s.controlEnter()
		s.until(says("ada@example.com") + ` && document.querySelectorAll(".grid tbody tr").length === 1 && location.hash.includes("q=SELECT")`)
		s.unharmed("rows")
		s.value(`void document.querySelector(".grid tbody tr").click()`)
		s.until(`document.querySelector(".record")`)
		s.value(`(() => { const field = [...document.querySelectorAll(".record textarea")].at(-1); field.value = "ada@example.com "; field.dispatchEvent(new Event("input", { bubbles: true })); field.value = "ada" + innerWidth + "@example.com"; field.dispatchEvent(new Event("input", { bubbles: true })); })()`)
		s.until(`document.querySelector(".record-actions .primary:not(:disabled)")`)
		s.unharmed("a row")
		s.value(`void document.querySelector(".record-actions .primary").click()`)
		s.until(`document.querySelector(".toasts").textContent.includes("Saved")`)
		if mail := th.must(t, 200, "GET", "/api/agents/default/contacts/"+id, "")["email"]; mail == "ada@example.com" {
			t.Error("the row was not changed")
		}
		th.must(t, 200, "PUT", "/api/agents/default/contacts/"+id, `{"email":"ada@example.com"}`)
		s.value(`void document.querySelector(".drawer [aria-label=Close]")?.click()`)
		s.press("Run")
		s.until(`document.querySelectorAll(".grid tbody tr").length === 1`)
		s.value(`(() => { window.saved = []; const make = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then((text) => saved.push(text)); return make.call(URL, blob); }; })()`)
		s.value(`void document.querySelector("#main [aria-haspopup=menu]").click()`)
		s.value(`void [...document.querySelectorAll("[role=menuitem]")].find((b) => b.textContent.startsWith("CSV")).click()`)
		s.until(`saved.length`)
		if csv := s.value(`saved[0]`).(string); !strings.HasPrefix(csv, "id,name,email\n"+id+",") || !strings.HasSuffix(csv, ",ada@example.com\n") {
			t.Errorf("the CSV is %q", csv)
		}
		s.typeCode("SELECT nosuch FROM contacts")
		s.controlEnter()
		s.until(says("no such column: nosuch") + ` && ` + says("INVALID_QUERY"))
		s.unharmed("an error")
		s.showSQL("/* SELECT */ DELETE FROM contacts WHERE name = 'nobody'", says("This statement changes data"))
		s.press("Run it")
		s.until(says("0 rows changed"))
		s.unharmed("a statement of the address")
	}
}

// TestConsoleDataForViewers lets a viewer read, and change nothing.
func TestConsoleDataForViewers(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	th.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada"}`)
	s := th.visit(t, 1280)
	key := th.must(t, 201, "POST", "/api/keys", `{"name":"reader","role":"viewer","agents":["default"]}`)["key"].(string)
	s.value(`sessionStorage.setItem("satchel.key", ` + quoted(key) + `)`)
	s.ask("Page.reload", nil)
	s.until(`window.faults && document.querySelector("#main h1")?.textContent === "Home" && !document.querySelector(".rail-foot .badge")`)
	s.goTo("sql?q="+url.QueryEscape("SELECT * FROM contacts"), `document.querySelectorAll(".grid tbody tr").length === 1`)
	s.value(`void document.querySelector(".grid tbody tr").click()`)
	s.until(`document.querySelector(".record")`)
	if n := s.value(`document.querySelectorAll(".record :is(textarea, input, .danger)").length`); n != 0.0 {
		t.Errorf("a viewer is offered %v things to change a row with", n)
	}
	s.showSQL("DELETE FROM contacts", says("You are viewer: you may only read"))
}
