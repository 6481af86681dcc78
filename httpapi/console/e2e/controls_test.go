package e2e

import (
	"fmt"
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
	for node, titles := range map[string][]string{
		"big":    {"Add condition"},
		"way":    {"Add condition", "Add case"},
		"values": {"Add"},
		"call":   {"Add"},
	} {
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
	if same := phone.eval(`((names) => names.filter((name, i) => names.indexOf(name) !== ` +
		`i).join())([...document.querySelectorAll(".outline-add button")].map((b) => ` +
		`b.ariaLabel ?? b.textContent))`); same != "" {
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
	ts.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"openai-compatible","llm_base_url":`+quoted(model)+`,"llm_model":"large","llm_api_key":"k"}`,
	)
	p := ts.openConsole(t, 1280)
	labelled := func(label string) string {
		return `document.activeElement.labels?.[0]?.textContent === ` + quoted(label)
	}
	says := func(text string) string { return `document.body.textContent.includes(` + quoted(text) + `)` }
	for _, c := range []struct{ page, ready, at, press, done, focus string }{
		{
			"settings",
			hasText("Language model"),
			labelled("Model"),
			"x",
			`document.activeElement.value.endsWith("x")`,
			labelled("Model"),
		},
		{"", "", labelled("Model"), "Enter", says("Saved"), labelled("Model")},
		{
			"",
			"",
			`it.textContent === "Test"`,
			"Enter",
			says("Answered in"),
			`document.activeElement.textContent === "Test"`,
		},
		{
			"calendar/schedules",
			hasText("No schedules yet"),
			hasName + `"New schedule"`,
			"Enter",
			`document.querySelector("dialog[open]")`,
			labelled("Name"),
		},
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

// TestConsoleKeepsForms checks that what was typed into a form and not saved is neither lost when another form of the
// page is saved, nor when the page is left, nor by a click beside a dialog, and that a form is sent once.
func TestConsoleKeepsForms(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	p := ts.openConsole(t, 1280)
	prompt := `[...document.querySelectorAll("textarea")].find((f) => f.labels[0].textContent === "System prompt")`
	stored := func() any { return ts.must(t, 200, "GET", "/api/agents/default/settings", "")["system_prompt"] }
	p.open("settings", `Boolean(`+prompt+`)`)
	p.fill(
		"System prompt", "Be brief.", "Embedding", "openai-compatible", "Address", "https://example.com/v1", "Model",
		"large",
	)
	p.clickOn(`[...document.querySelectorAll("#main button")].filter((b) => b.textContent === "Save").at(-1)`)
	p.waitFor(`document.body.textContent.includes("Saved") && ` + prompt +
		`.value === "Be brief." && ` + hasText("Not saved"))
	if got := stored(); got != "" {
		t.Errorf("stored %v before it was saved", got)
	}
	p.open("home", "true")
	p.open("settings", prompt+`.value === "Be brief."`)
	p.click("Discard")
	p.waitFor(prompt + `.value === "" && !` + hasText("Not saved"))
	p.fill("System prompt", "Be kind.")
	p.clickOn(prompt + `.form.querySelector("[type=submit]")`)
	p.waitFor(prompt + `.value === "Be kind." && !` + hasText("Not saved"))
	if got := stored(); got != "Be kind." {
		t.Errorf("saved Be kind., stored %v", got)
	}
	p.open("calendar/schedules", hasText("No schedules yet"))
	beside := `document.querySelector("dialog[open]").dispatchEvent(new MouseEvent("mousedown", { bubbles: true }))`
	p.click("New schedule")
	p.eval(beside)
	p.waitFor(`!document.querySelector("dialog[open]")`)
	p.click("New schedule")
	p.fill("Name", "Daily")
	p.eval(beside)
	p.waitFor(`document.querySelector("dialog[open] input").value === "Daily"`)
	p.clickOn(`document.querySelector("dialog [aria-label=Close]")`)

	p.eval(`window.sent = [], window.send = fetch, window.fetch = (to, init) => (init?.method === "POST" && ` +
		`sent.push(String(to)), send(to, init)), location.hash = "#/agents"`)
	p.waitFor(hasText("New agent"))
	p.click("New agent")
	p.fill("Name", "bakery")
	p.eval(`(() => { const { form } = document.querySelector("dialog[open] input"); form.requestSubmit(); ` +
		`setTimeout(() => form.requestSubmit(), 30) })()`)
	p.waitFor(`location.hash.includes("agent-") && ` + hasText("What can bakery do for you?"))
	if posts := p.eval(`sent.filter((to) => to.endsWith("/agents")).length`); posts != 1.0 {
		t.Errorf("an agent was created by %v requests", posts)
	}
}

// TestConsoleSaysInWords checks that problems name fields as the console does, that a new tool asks for the arguments
// in its address, that Home says of a paused agent that it is paused and resumes it, and that a workflow which begins
// with a form can go live as it is.
func TestConsoleSaysInWords(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	id := createFlow(
		t,
		ts.testClient,
		`[{"id":"start","type":"trigger","data":{}},{"id":"big","type":"if-else","data":{"condition":"true"}}]`,
		`[{"source":"start","target":"big"}]`,
		"",
	)
	ts.must(
		t, 200, "PUT", flowBase+"/"+id,
		`{"status":"draft","nodes":[{"id":"start","type":"trigger","data":{}},{"id":"big",`+
			`"type":"if-else","data":{}}]}`,
	)
	p := ts.openConsole(t, 1280)
	p.openNode(id, "big")
	p.waitFor(`document.querySelector(".editor-panel .issue")?.textContent === "needs Conditions or Expression"`)
	p.open("apis", hasText("No APIs yet"))
	p.click("Import API")
	p.fill("Name", "shop")
	p.click("Import")
	p.waitFor(`document.activeElement.labels?.[0].textContent === "Description address" && ` +
		`document.querySelector("dialog .issue").textContent === "is required"`)
	p.clickOn(`document.querySelector("dialog [aria-label=Close]")`)

	p.open("tools/new?type=api", hasText("Address"))
	p.fill("Name", "order", "Address", "https://api.example.com/orders/{{id}}")
	p.click("Create")
	p.waitFor(hasText("Call it") + ` && document.querySelector("#main form label").textContent.startsWith("id")`)

	p.open("workflows", hasText("New workflow"))
	p.click("New workflow")
	p.fill("Name", "Ask us", "It begins", "form")
	p.click("Create")
	p.waitFor(hasText("Go live"))
	p.click("Go live")
	p.waitFor(`document.querySelector(".editor-bar .badge").textContent === "active"`)

	ts.must(t, 200, "PUT", "/api/agents/default", `{"status":"paused"}`)
	p.open("home", "true")
	p.reloadPage()
	p.waitFor(hasText("is paused"))
	p.click("Resume")
	p.waitFor(`!` + hasText("is paused"))
	if got := ts.must(t, 200, "GET", "/api/agents/default", "")["status"]; got != "active" {
		t.Errorf("resumed, and the agent is %v", got)
	}
}

// TestConsoleSettingsOfTwo: a form shows what another person saves, keeps what is typed and
// says so, and saves only what was typed.
func TestConsoleSettingsOfTwo(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	const base, settings = "/api/agents/default", "/api/agents/default/settings"
	p := ts.openConsole(t, 1280)
	value := func(label, want string) string {
		return `[...document.querySelectorAll("#main :is(input, textarea)")].find((f) => ` +
			`f.labels[0]?.textContent === ` +
			quoted(label) + `)?.value === ` + quoted(want)
	}
	save := func(form string) {
		p.clickOn(`[...document.querySelectorAll("#main form")].find((f) => f.querySelector("h2")?.textContent === ` +
			quoted(form) + `).querySelector("[type=submit]")`)
	}
	meanwhile := hasText("Other values were saved meanwhile by Anyone (no login).")
	p.open("settings", isLive+` && `+value("System prompt", ""))
	ts.must(t, 200, "PUT", settings, `{"system_prompt":"By Ada.","llm_max_tokens":10}`)
	p.waitFor(value("System prompt", "By Ada.") + ` && !` + hasText("meanwhile") + ` && !` + hasText("Not saved"))
	p.fill("System prompt", "By Bob.")
	p.waitFor(hasText("Not saved"))
	ts.must(t, 200, "PUT", settings, `{"system_prompt":"By Eve.","llm_max_tokens":20}`)
	p.waitFor(value("Maximum answer length, in tokens", "20") + ` && ` + value("System prompt", "By Bob.") + ` && ` +
		meanwhile)
	p.checkPage("settings that changed meanwhile")
	p.click("Discard")
	p.waitFor(value("System prompt", "By Eve.") + ` && !` + hasText("meanwhile"))
	p.fill("System prompt", "By Bob.")
	ts.must(t, 200, "PUT", settings, `{"llm_max_tokens":30}`)
	p.waitFor(meanwhile)
	save("Answers")
	p.waitFor(value("System prompt", "By Bob.") + ` && !` + hasText("meanwhile") + ` && !` + hasText("Not saved"))
	if s := ts.must(t, 200, "GET", settings, ""); s["system_prompt"] != "By Bob." ||
		fmt.Sprint(s["llm_max_tokens"]) != "30" {
		t.Errorf("stored %v and %v", s["system_prompt"], s["llm_max_tokens"])
	}

	p.open("settings/agent", isLive+` && `+value("Description", ""))
	p.fill("Name", "bakery")
	ts.must(t, 200, "PUT", base, `{"description":"Bread."}`)
	p.waitFor(value("Description", "Bread.") + ` && ` + meanwhile)
	save("About")
	p.waitFor(`!` + hasText("meanwhile"))
	if a := ts.must(t, 200, "GET", base, ""); a["name"] != "bakery" || a["description"] != "Bread." {
		t.Errorf("stored %v and %v", a["name"], a["description"])
	}

	tool := ts.must(t, 201, "POST", base+"/tools", `{"name":"greet","type":"function","config":{"code":"return 1"}}`)
	p.open("tools/"+tool["id"].(string), isLive+` && `+value("Name", "greet"))
	p.fill("Description", "Greets.")
	ts.must(t, 200, "PUT", base+"/tools/"+tool["id"].(string), `{"name":"hail"}`)
	p.waitFor(value("Name", "hail") + ` && ` + value("Description", "Greets.") + ` && ` +
		hasText("Other values were saved meanwhile."))
}
