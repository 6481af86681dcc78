package e2e

import (
	"testing"

	"satchel/httpapi/apitest"
)

// TestConsoleAddedRows checks that the focus is in the row that was just added, wherever
// rows are added, and that no two buttons near each other have the same name.
func TestConsoleAddedRows(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	ts.must(t, 201, "POST", "/api/agents/default/tables", `{"name":"orders","columns":[{"name":"city","type":"text"}]}`)
	contact := ts.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":"Ada"}`)["id"].(string)
	conditions := `"conditions":[{"left":"a","operator":"equals","right":"b"}]`
	id := createFlow(t, ts.testClient, `[{"id":"start","type":"trigger","data":{}},{"id":"big","type":"if-else","data":{`+conditions+`}},
		{"id":"way","type":"switch","data":{"cases":[{"id":"x",`+conditions+`},{"id":"y",`+conditions+`}]}},{"id":"values","type":"set","data":{"values":{"a":"x"}}},
		{"id":"call","type":"http-request","data":{"url":"https://example.com","headers":{"A":"1"}}}]`, `[{"source":"start","target":"big"}]`, "")
	p := ts.openConsole(t, 1280)
	added := func(title string) {
		t.Helper()
		p.waitFor(`((before, button) => button && (window.before = before, button.click(), true))(new Set(document.querySelectorAll("input, select, textarea")),
			[...document.querySelectorAll("#main button, dialog[open] button")].find((b) => b.firstElementChild && b.textContent.startsWith(` + quoted(title) + `) && b.checkVisibility()))`)
		p.waitFor(`document.activeElement.matches("input, select, textarea") && !before.has(document.activeElement)`)
	}
	unique := func(where, within string) {
		t.Helper()
		if same := p.eval(`Object.entries(Object.groupBy([...document.querySelectorAll(` + quoted(within) + `)].flatMap((e) => [...e.querySelectorAll("button, input, select, textarea")])
			.filter((e) => e.checkVisibility() && !e.closest(".segments")), (e) => e.ariaLabel ?? e.labels[0]?.textContent ?? e.textContent)).filter(([, all]) => all.length > 1).map(([name]) => name).join()`); same != "" {
			t.Errorf("%s: several are called %v", where, same)
		}
	}
	for node, titles := range map[string][]string{"big": {"Add condition"}, "way": {"Add condition", "Add case"}, "values": {"Add"}, "call": {"Add"}} {
		p.openNode(id, node)
		for _, title := range titles {
			added(title)
		}
		unique(node, ".editor-panel :is(.conditions, .key-values):not(:is(.conditions, .key-values) *)")
	}
	p.waitFor(`document.querySelectorAll(".node-add").length >= 5`)
	unique("the canvas", ".react-flow__nodes")
	p.open("tables", hasText("orders"))
	p.click("New table")
	added("Add a column")
	p.clickOn(`document.querySelector("dialog [aria-label=Close]")`)
	p.open("contacts/"+contact, hasText("Custom fields"))
	added("Add a field")

	phone := ts.openConsole(t, 375)
	phone.open("workflows/"+id, `document.querySelector(".outline-add button")`)
	if same := phone.eval(`((names) => names.filter((name, i) => names.indexOf(name) !== i).join())([...document.querySelectorAll(".outline-add button")].map((b) => b.ariaLabel ?? b.textContent))`); same != "" {
		t.Errorf("the outline: several buttons are called %v", same)
	}
}

// TestConsoleKeepsFocus checks that the focus stays where a person at the keyboard left it when a button works, a form
// is read again or a dialog shows its next step, and that it is in the first field with a problem of a refused form.
func TestConsoleKeepsFocus(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	model := apitest.NewFixedModel(t, "Yes.")
	ts.must(t, 200, "PUT", "/api/agents/default/settings", `{"llm_provider":"openai-compatible","llm_base_url":`+quoted(model)+`,"llm_model":"large","llm_api_key":"k"}`)
	p := ts.openConsole(t, 1280)
	labelled := func(label string) string {
		return `document.activeElement.labels?.[0]?.textContent === ` + quoted(label)
	}
	says := func(text string) string { return `document.body.textContent.includes(` + quoted(text) + `)` }
	for _, c := range []struct{ page, ready, at, press, done, focus string }{
		{"settings", hasText("Language model"), labelled("Model"), "x", `document.activeElement.value.endsWith("x")`, labelled("Model")},
		{"", "", labelled("Model"), "Enter", says("Saved"), labelled("Model")},
		{"", "", `it.textContent === "Test"`, "Enter", says("Answered in"), `document.activeElement.textContent === "Test"`},
		{"calendar/schedules", hasText("No schedules yet"), hasName + `"New schedule"`, "Enter", `document.querySelector("dialog[open]")`, labelled("Name")},
		{"", "", labelled("Name"), "d", `document.activeElement.value === "d"`, labelled("Name")},
		{"", "", labelled("Name"), "Enter", says("is required"), labelled("Workflow")},
	} {
		if c.page != "" {
			p.open(c.page, c.ready)
		}
		p.tabTo("Tab", c.at)
		p.pressKeys(c.press)
		p.waitFor(c.done)
		p.waitFor(c.focus)
	}
}
