package e2e

import "testing"

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
