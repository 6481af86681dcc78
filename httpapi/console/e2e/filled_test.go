package e2e

import (
	"fmt"
	"strings"
	"testing"

	"satchel/httpapi/apitest"
)

// TestConsoleFilledPages shows records with long names and many columns: what identifies
// a record stays readable, and what is next to it stays in view.
func TestConsoleFilledPages(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	const base = "/api/agents/default"
	var columns []string
	for i := range 25 {
		columns = append(columns, fmt.Sprintf(`{"name":"measure_%d_of_the_article","type":"number"}`, i))
	}
	ts.must(t, 201, "POST", base+"/tables", `{"name":"articles","columns":[`+strings.Join(columns, ",")+`]}`)
	ts.must(t, 201, "POST", base+"/tables", apitest.LeadsTable)
	ts.must(t, 201, "POST", base+"/tables/leads/rows", `{"row":{"name":"Ada","status":"new"}}`)
	ts.must(
		t, 201, "POST", base+"/tools",
		`{"name":"order_status","description":"Looks an order up","type":"function","config":{"code":"return {}"}}`,
	)
	ts.must(t, 201, "POST", base+"/admins", `{"email":"ada@example.com","role":"viewer"}`)
	flow := createFlow(t, ts.testClient, `[{"id":"t","type":"trigger","data":{}}]`, `[]`, `{}`)
	plan := ts.must(
		t, 201, "POST", base+"/schedules",
		`{"name":"Clean up","type":"cron","cron_expression":"30 2 * * 0",`+
			`"timezone":"Australia/Sydney","callback_id":"`+flow+`"}`,
	)["id"].(string)
	height := func(selector string) string {
		return `document.querySelector(` + quoted(selector) + `).getBoundingClientRect().height`
	}

	p := ts.openConsole(t, 1280)
	p.open("tables", hasText("articles"))
	if fits := p.eval(height(`td.title a`) + ` < 30 && (([cell, frame]) => cell.right <= ` +
		`frame.right)([document.querySelector("td.number"), document.querySelector(".table-frame")].map((e) => ` +
		`e.getBoundingClientRect()))`); fits != true {
		t.Error("a table of many columns breaks its name, or hides how many rows it has")
	}
	p.open("tables/leads", `document.querySelector("td.choice .tag")`)
	if round := p.eval(`getComputedStyle(document.querySelector("td.choice .tag")).borderRadius`); round == "0px" {
		t.Error("a choice has no style before the contacts were opened")
	}
	p.open("settings/agent", hasText("Satchel"))
	if widths := p.eval(
		`new Set([...document.querySelectorAll("#main .card")].map((c) => c.getBoundingClientRect().width)).size`,
	); widths != 1.0 {
		t.Errorf("the cards have %v widths", widths)
	}

	p = ts.openConsole(t, 375)
	for _, tab := range []string{"model", "agent", "access", "copies"} {
		p.open("settings/"+tab, `document.querySelector(".tabs [aria-current]")`)
		if seen := p.eval(`(([tab, row]) => tab.left >= row.left - 1 && tab.right <= row.right + ` +
			`1)([document.querySelector(".tabs [aria-current]"), document.querySelector(".tabs")].map((e) => ` +
			`e.getBoundingClientRect()))`); seen != true {
			t.Errorf("the tab %s is out of view", tab)
		}
	}
	p.open("settings/access", hasText("ada@example.com"))
	if empty := p.eval(`[...document.querySelectorAll("tbody td")].filter((c) => c.checkVisibility() && ` +
		`!c.textContent && !c.querySelector("button, input")).length`); empty != 0.0 {
		t.Errorf("%v labels have no value", empty)
	}
	p.open("tools", hasText("order_status"))
	if h := p.eval(height(".source-row")); h.(float64) > 75 {
		t.Errorf("the row of a tool is %v pixels high", h)
	}
	p.open("calendar/schedules", hasText("Australia/Sydney"))
	if h := p.eval(height(".schedules td small")); h.(float64) > 25 {
		t.Errorf("the time zone is %v pixels high", h)
	}
	p.open("calendar/schedules/"+plan, hasText("Run now"))
	if offset := p.eval(`(([head, menu]) => Math.abs(head.top + head.height / 2 - menu.top - menu.height / ` +
		`2))([document.querySelector("h1"), document.querySelector(".page-head > .menu")].map((e) => ` +
		`e.getBoundingClientRect()))`); offset.(float64) > 12 {
		t.Errorf("the menu is %v pixels below the title", offset)
	}
}

// TestConsoleFindsQueries searches many saved queries by a word of a name and a word of a
// text.
func TestConsoleFindsQueries(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	p := ts.openConsole(t, 375)
	p.eval(`localStorage.setItem("satchel.sql.saved.default", JSON.stringify(Array.from({ length: 40 }, (_, ` +
		`i) => ({ query: "SELECT " + i + " AS n FROM contacts", params: {}, name: "Figures of shop " + i, ` +
		`at: 1700000000000 + i }))))`)
	p.open("sql", hasText("contacts"))
	p.click("History")
	p.waitFor(`document.querySelectorAll(".queries li").length === 40`)
	p.set("Search queries", "shop select 17")
	p.waitFor(
		`[...document.querySelectorAll(".queries li b")].map((b) => b.textContent).join() === "Figures of shop 17"`,
	)
	p.checkPage("queries that were found")
	p.set("Search queries", "nowhere")
	p.waitFor(hasText("No saved query matches."))
	p.set("Search queries", "17")
	p.clickOn(`document.querySelector(".queries .query")`)
	p.waitFor(`!document.querySelector(".data-history")`)
}

// TestConsoleRowsThatAreRefused changes a row of many columns to values that the server
// refuses: the reason is shown next to the button.
func TestConsoleRowsThatAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	var columns []string
	for i := range 30 {
		columns = append(columns, fmt.Sprintf(`{"name":"measure_%d","type":"number"}`, i))
	}
	ts.must(
		t,
		201,
		"POST",
		"/api/agents/default/tables",
		`{"name":"articles","columns":[`+strings.Join(columns, ",")+`]}`,
	)
	ts.must(t, 201, "POST", "/api/agents/default/tables/articles/rows", `{"row":{"measure_0":1}}`)
	p := ts.openConsole(t, 1280)
	p.open("sql?q=SELECT%20*%20FROM%20data_articles", `document.querySelector(".grid tbody tr")`)
	p.clickOn(`document.querySelector(".grid tbody tr button")`)
	p.waitFor(`document.querySelectorAll(".sql-row textarea").length > 30`)
	p.eval(`(() => { const f = [...document.querySelectorAll(".sql-row textarea")].find((f) => ` +
		`f.labels[0].textContent.startsWith("measure_0")); f.value = "many"; f.dispatchEvent(new Event("input", ` +
		`{ bubbles: true })); })()`)
	p.clickOn(`document.querySelector(".record-actions .primary:enabled")`)
	p.waitFor(`((r) => r && r.height > 0 && r.top >= 0 && r.bottom <= innerHeight)(document.querySelector(".sql-row ` +
		`.issue")?.getBoundingClientRect())`)
	p.checkPage("a row that was refused")
}
