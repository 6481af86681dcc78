package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// editCell edits the cell with an accessible name by keyboard.
func (p *consolePage) editCell(label, text string) {
	p.t.Helper()
	p.clickOn(`[...document.querySelectorAll("#main button.cell")].find((b) => (b.ariaLabel ?? ` +
		`b.textContent).startsWith(` +
		quoted(label+":") + `))`)
	p.waitFor(`(window.field = [...document.querySelectorAll("#main .cell-frame :is(input, textarea)")].find((f) => ` +
		`f.getAttribute("aria-label") === ` + quoted(label) + `))`)
	p.eval(
		`(() => { field.value = ` + quoted(text) + `; field.dispatchEvent(new Event("input", { bubbles: true })); })()`,
	)
	p.eval(`void field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true }))`)
}

// chooseOption clicks the dialog's button with a label.
func (p *consolePage) chooseOption(label string) {
	p.t.Helper()
	p.clickOn(`document.querySelector("dialog [aria-label=` + label + `]")`)
}

// TestConsoleContacts edits contacts in their table, tags and deletes several, imports a
// file whose columns have other names, and opens one.
func TestConsoleContacts(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	const base = "/api/agents/default"
	ts.must(t, 201, "POST", base+"/contacts", `{"name":"Bob","email":"bob@example.com"}`)
	ada := ts.must(
		t, 201, "POST", base+"/contacts",
		`{"name":"Ada","tags":["vip"],"metadata":{"plan":"pro"}}`,
	)["id"].(string)
	talk := ts.must(t, 201, "POST", base+"/conversations", `{"contact_id":"`+ada+`"}`)["id"].(string)
	ts.must(t, 201, "POST", base+"/conversations/"+talk+"/messages", `{"role":"user","content":"Where is my order?"}`)
	flow := createFlow(
		t,
		ts.testClient,
		`[{"id":"t","type":"trigger","data":{}},{"id":"s","type":"set","data":{"values":{"a":1}}}]`,
		`[{"source":"t","target":"s"}]`,
		`{"concurrency":9}`,
	)
	for _, input := range []string{
		`{"contact_id":"` + ada + `"}`,
		`{"contact":{"id":"` + ada + `"}}`,
		`{"contact":"` + ada + `"}`,
	} {
		ts.must(t, 200, "POST", flowBase+"/execute", `{"workflow_id":"`+flow+`","input":`+input+`}`)
	}
	if found := ts.must(
		t,
		200,
		"GET",
		flowBase+"/executions?contact_id="+ada,
		"",
	); fmt.Sprint(at(found, "meta.total")) != "2" ||
		at(found, "executions.0.workflow_id") != flow {
		t.Errorf("executions of a contact: %v", found)
	}
	p := ts.openConsole(t, 1280)
	p.open("contacts", `document.querySelectorAll("#main tbody tr").length === 2`)

	p.editCell("Email of Ada", "bob@example.com")
	p.waitFor(`document.querySelector("#main .cell-frame.wrong .issue").textContent.length > 5`)
	p.eval(`(() => { field.value = "ada@example.com"; field.dispatchEvent(new Event("input", { bubbles: true })); ` +
		`field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true })); })()`)
	p.waitFor(`!document.querySelector("#main .cell-frame input") && ` + hasText("ada@example.com"))
	p.editCell("Phone of Bob", "call me")
	p.waitFor(`document.querySelector("#main .cell-frame.wrong .issue").textContent === "must contain a digit"`)
	p.eval(`void field.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }))`)
	p.waitFor(`!document.querySelector("#main .cell-frame input")`)
	if c := ts.must(t, 200, "GET", base+"/contacts/"+ada, ""); at(c, "email") != "ada@example.com" ||
		at(c, "metadata.plan") != "pro" {
		t.Errorf("stored %v", c)
	}
	p.click("Columns")
	p.waitFor(`document.querySelector("dialog h3")?.textContent === "Custom fields"`)
	p.clickOn(`[...document.querySelectorAll("dialog .pick")].find((l) => l.textContent.trim() === "plan")`)
	p.click("Done")
	p.waitFor(`!document.querySelector("dialog")`)
	p.editCell("plan of Ada", "team")
	p.waitFor(`[...document.querySelectorAll("#main th")].some((h) => h.textContent === "plan") && ` + hasText("team"))
	p.checkPage("the table")

	p.click("Name") // sorts
	p.waitFor(`document.querySelector("#main tbody a").textContent === "Ada" && location.hash.includes("sort=name")`)
	p.clickOn(`document.querySelector("[aria-label='Select all on this page']")`)
	p.click("Add a tag")
	p.fill("Tag", "berlin")
	p.click("Tag")
	p.waitFor(`document.querySelectorAll("#main tbody .tag").length === 3`)
	p.clickOn(`[...document.querySelectorAll(".toasts button")].find((b) => b.textContent === "Undo")`)
	p.waitFor(`document.querySelectorAll("#main tbody .tag").length === 1`)
	p.eval(`(() => { const tags = document.querySelector("[aria-label='Filter by tag']"); tags.value = "vip"; ` +
		`tags.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	p.waitFor(`document.querySelectorAll("#main tbody tr").length === 1 && location.hash.includes("tag=vip")`)
	p.click("Save filter")
	p.fill("Name", hostile)
	p.click("Save")
	p.waitFor(`document.querySelector(".view[aria-current] bdi")?.textContent === ` + quoted(hostile))
	p.click("Everybody")
	p.waitFor(`document.querySelectorAll("#main tbody tr").length === 2`)
	p.click(hostile)
	p.waitFor(`document.querySelectorAll("#main tbody tr").length === 1`)
	p.click("Everybody")
	p.checkPage("a saved filter")

	p.click("Import")
	p.waitFor(`document.querySelector("dialog input[type=file]")`)
	csv := "Nombre;E-Mail;Plan;Internal\r\nAda;ADA@example.com;free;x\r\nClara;clara@example.com;pro;y\r\n" +
		"Wrong;nobody;;\r\nShort;row\r\n"
	p.eval(`(() => { const data = new DataTransfer(); data.items.add(new File([` + quoted(csv) +
		`], "people.csv")); const input = document.querySelector("dialog input[type=file]"); input.files = ` +
		`data.files; input.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	p.waitFor(`document.querySelectorAll("dialog tbody tr").length === 4`)
	p.eval(`(() => { const choice = document.querySelector("[aria-label='What Internal becomes']"); choice.value = ` +
		`""; choice.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	p.click("Check")
	p.waitFor(`[...document.querySelectorAll("dialog .counts b")].map((b) => b.textContent).join() === "1,1,0,2" && ` +
		`document.querySelectorAll("dialog tbody tr").length === 2`)
	if total := at(ts.must(t, 200, "GET", base+"/contacts", ""), "meta.total"); fmt.Sprint(total) != "2" {
		t.Errorf("a dry run of an import created %v contacts", total)
	}
	rejected := p.eval(`(async () => {
		let text = "";
		const real = URL.createObjectURL;
		URL.createObjectURL = (blob) => { text = blob.text(); return "#"; };
		[...document.querySelectorAll("dialog button")].find((b) => b.textContent === "Download rejected rows").click();
		URL.createObjectURL = real;
		return await text;
	})()`)
	if want := "Nombre,E-Mail,Plan,Internal,Row,Problem\r\nWrong,nobody,,,4,email must be an email address\r\n" +
		"Short,row,,,5,row has 2 cells where the header row has 4"; strings.TrimPrefix(
		fmt.Sprint(rejected),
		"\ufeff",
	) != want {
		t.Errorf("rejected rows:\n%v\nwant\n%s", rejected, want)
	}
	p.click("Import 2 contacts")
	p.waitFor(`document.querySelector("dialog").textContent.includes("The import is done")`)
	p.click("Close")
	p.waitFor(`document.querySelectorAll("#main tbody tr").length === 3`)
	if c := ts.must(
		t, 200, "GET", base+"/contacts/"+ada, "",
	); fmt.Sprint(at(c, "metadata")) != "map[Plan:free plan:team]" {
		t.Errorf("imported %v", at(c, "metadata"))
	}

	p.open("contacts/"+ada, hasText("Where is my order?"))
	p.editCell("WhatsApp", "+49 30 1234")
	p.waitFor(hasText("+49 30 1234"))
	p.click("Add a field")
	p.waitFor(`document.querySelector("[aria-label='Name of the field']")`)
	p.eval(`(() => { for (const [label, text] of [["Name of the field", "city"], ["Value of the field", "Berlin"]]) ` +
		`{ const f = document.querySelector("[aria-label='" + label + "']"); f.value = text; f.dispatchEvent(new ` +
		`Event("input", { bubbles: true })); } })()`)
	p.click("Add")
	p.waitFor(hasText("Berlin"))
	p.checkPage("a contact")
	if c := ts.must(t, 200, "GET", base+"/contacts/"+ada, ""); at(c, "metadata.city") != "Berlin" ||
		at(c, "chatbot_b") != "+49 30 1234" {
		t.Errorf("stored %v", c)
	}
	p.clickOn(`document.querySelector("#main .talks a")`)
	p.waitFor(`location.hash.includes("/chat/` + talk + `")`)
	p.open("contacts", `document.querySelectorAll("#main tbody tr").length === 3`)
	p.clickOn(`document.querySelector("[aria-label='Select Bob']")`)
	p.click("Delete")
	p.waitFor(`document.querySelectorAll("#main tbody tr").length === 2`)
	p.clickOn(`[...document.querySelectorAll(".toasts button")].find((b) => b.textContent === "Undo")`)
	p.waitFor(`document.querySelectorAll("#main tbody tr").length === 3`)
}

// TestConsoleCalendar drags a task to another day and back, and switches between the
// views by their keys.
func TestConsoleCalendar(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	const base = "/api/agents/default"
	ts.must(t, 200, "PUT", base+"/settings", `{"timezone":"Asia/Tokyo"}`)
	zone := time.FixedZone("", 9*3600)
	tenth := time.Now().In(zone).AddDate(0, 0, 10-time.Now().In(zone).Day())
	day := func(n int) string { return tenth.AddDate(0, 0, n).Format(time.DateOnly) }
	task := ts.must(
		t, 201, "POST", base+"/calendar",
		`{"title":`+quoted(hostile)+`,"start_time":"`+day(0)+`T08:30:00+09:00","end_time":"`+day(0)+`T10:00:00+09:00"}`,
	)["id"].(string)
	ts.must(
		t, 201, "POST", base+"/schedules",
		`{"name":"Nightly","type":"cron","cron_expression":"0 3 * * *","callback_type":"agent",`+
			`"payload":{"prompt":"x"}}`,
	)
	p := ts.openConsole(t, 1280)
	chip := func(date string) string {
		return `document.querySelector("[data-date='` + date + `'] [data-task='` + task + `']")`
	}
	starts := func(want string) { // waits until it is stored
		t.Helper()
		p.eval(`(async () => { while (!(await (await fetch("` + base + `/calendar/` + task +
			`")).json()).start_time.startsWith(` + quoted(want) + `)) await new Promise(requestAnimationFrame); })()`)
	}
	drag := func(from, to string, y int) {
		t.Helper()
		p.eval(fmt.Sprintf(`(() => {
			const dataTransfer = new DataTransfer();
			const chip = %s, target = document.querySelector("[data-date='%s']");
			const fire = (el, type, clientY = 0) => el.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer, clientY }));
			fire(chip, "dragstart", chip.getBoundingClientRect().top);
			fire(target, "dragover");
			fire(target, "drop", target.getBoundingClientRect().top + %d);
		})()`, chip(from), to, y))
	}
	p.open("calendar", chip(day(0))+` && document.querySelector(".chip.run") && `+hasText("Asia/Tokyo"))
	p.checkPage("the month")
	drag(day(0), day(2), 0)
	p.waitFor(chip(day(2)) + ` && !` + chip(day(0)) +
		` && document.querySelector(".toasts").textContent.includes("moved to")`)
	starts(tenth.AddDate(0, 0, 1).Format(time.DateOnly) + "T23:30")
	p.clickOn(`[...document.querySelectorAll(".toasts button")].find((b) => b.textContent === "Undo")`)
	p.waitFor(chip(day(0)))
	starts(tenth.AddDate(0, 0, -1).Format(time.DateOnly) + "T23:30")
	p.eval(`(() => { const chip = ` + chip(day(0)) + `; chip.focus(); chip.dispatchEvent(new ` +
		`KeyboardEvent("keydown", { key: "ArrowRight", altKey: true, bubbles: true, cancelable: true })); })()`)
	starts(tenth.Format(time.DateOnly) + "T23:30")
	p.waitFor(chip(day(1)) + ` && document.activeElement === ` + chip(day(1)))
	p.eval(`void ` + chip(day(1)) + `.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", altKey: true, ` +
		`bubbles: true, cancelable: true }))`)
	starts(tenth.AddDate(0, 0, -1).Format(time.DateOnly) + "T23:30")
	p.waitFor(chip(day(0)))

	p.eval(`void document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "w", bubbles: true }))`)
	p.waitFor(`document.querySelector(".week")`)
	p.eval(`location.hash += "&date=` + day(0) + `"`)
	p.waitFor(chip(day(0)))
	drag(day(0), day(0), 44*14) // two in the afternoon
	starts(day(0) + "T05:00")
	p.checkPage("the week")
	p.clickOn(chip(day(0)))
	p.waitFor(`document.querySelector(".drawer h2")?.textContent === ` + quoted(hostile) +
		` && location.hash.includes("/calendar/tasks/` + task + `") && document.querySelector(".week")`)
	p.checkPage("a task")
	p.click("Edit")
	p.fill("Title", "Review", "Begins", day(1), "Begins: time", "0915", "Repeats", "weekly")
	p.chooseOption("Monday")
	p.chooseOption("Thursday")
	p.click("Save")
	p.waitFor(`!document.querySelector("dialog") && ` +
		`document.querySelector(".drawer")?.textContent.includes("Every Monday and Thursday")`)
	stored := ts.must(t, 200, "GET", base+"/calendar/"+task, "")
	if fmt.Sprint(at(stored, "recurrence_days")) != "[1 4]" || at(stored, "start_time") != day(1)+"T00:15:00.000Z" {
		t.Errorf("stored %v", stored)
	}
	walkOccurrences(t, ts, p, task)
	p.eval(`location.hash = "#/agents/default/calendar/tasks/` + task + `?view=week&date=` + day(0) + `"`)
	p.waitFor(`document.querySelector(".drawer")?.textContent.includes("Every Monday and Thursday")`)
	p.click("Delete all")
	p.waitFor(`!document.querySelector(".drawer") && !document.querySelector("[data-task='` + task +
		`']") && location.hash.includes("view=week")`)
	p.eval(`void document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "m", bubbles: true }))`)
	p.waitFor(`document.querySelector(".month")`)
	p.clickOn(`document.querySelector("[data-date='` + day(3) + `']")`)
	p.waitFor(`[...document.querySelectorAll("dialog input")].some((i) => i.labels[0]?.textContent === ` +
		`"Begins" && i.value === "` + day(3) +
		`") && document.querySelector("[aria-label='Begins: time']").value === "09:00"`)
}

// walkOccurrences drags, edits and deletes single occurrences of a task, and all
// occurrences from one on.
func walkOccurrences(t *testing.T, ts *testServer, p *consolePage, task string) {
	t.Helper()
	const monday, tuesday = "2033-01-03", "2033-01-04" // the task is on Mondays and Thursdays at 09:15 in Tokyo
	of := "/api/agents/default/calendar/" + task
	chip := func(date string) string {
		return `document.querySelector("[data-date='` + date + `'] .chip[data-task]")`
	}
	exceptions := func(want string) { // waits until it is stored
		t.Helper()
		p.eval(`(async () => { while (JSON.stringify((await (await fetch("` + of +
			`")).json()).exceptions.map((e) => [e.original_start, e.cancelled ?? e.start_time ?? e.title])) !== ` +
			quoted(want) + `) await new Promise(requestAnimationFrame); })()`)
	}
	answer := func(scope, action string) {
		t.Helper()
		p.waitFor(`document.querySelector("dialog .scopes")`)
		p.checkPage("the question about occurrences")
		p.clickOn(`[...document.querySelectorAll("dialog .scopes label")].find((l) => l.textContent.trim() === ` +
			quoted(scope) + `)`)
		p.clickOn(`[...document.querySelectorAll("dialog .scopes ~ .row button")].find((b) => b.textContent === ` +
			quoted(action) + `)`)
		p.waitFor(`!document.querySelector("dialog")`)
	}
	p.eval(`location.hash = "#/agents/default/calendar?date=` + monday + `"`)
	p.waitFor(chip(monday))
	drag := func(from, to string) {
		t.Helper()
		p.eval(`(() => {
			const dataTransfer = new DataTransfer();
			const fire = (el, type) => el.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }));
			fire(` + chip(from) + `, "dragstart");
			fire(document.querySelector("[data-date='` + to + `']"), "dragover");
			fire(document.querySelector("[data-date='` + to + `']"), "drop");
		})()`)
	}
	drag(monday, tuesday)
	answer("This event", "Move")
	p.waitFor(chip(tuesday) + ` && !` + chip(monday))
	exceptions(`[["2033-01-03T00:15:00.000Z","2033-01-04T00:15:00.000Z"]]`)
	// not the notice of an earlier move
	p.waitFor(`document.querySelector(".toasts").textContent.includes("Review moved to")`)
	p.clickOn(`[...document.querySelectorAll(".toasts button")].findLast((b) => b.textContent === "Undo")`)
	p.waitFor(chip(monday) + ` && !` + chip(tuesday))
	exceptions(`[]`)

	p.clickOn(chip(monday))
	p.waitFor(`document.querySelector(".drawer h2")`)
	p.click("Edit")
	p.fill("Title", "With the auditor")
	p.click("Save")
	answer("This event", "Save")
	p.waitFor(`document.querySelector(".drawer h2").textContent === "With the auditor" && ` + chip(monday) +
		`.textContent.includes("With the auditor")`)
	exceptions(`[["2033-01-03T00:15:00.000Z","With the auditor"]]`)
	p.click("Delete")
	answer("This event", "Delete")
	p.waitFor(`!document.querySelector(".drawer") && !` + chip(monday))
	p.eval(`void dispatchEvent(new Event("pagehide"))`) // deletes at once
	exceptions(`[["2033-01-03T00:15:00.000Z",true]]`)

	p.clickOn(`document.querySelector("[data-date='2033-01-06'] .chip[data-task]")`)
	p.waitFor(`document.querySelector(".drawer h2")`)
	p.click("Edit")
	p.fill("Title", "From now on", "Begins", "2033-01-07", "Begins: time", "10:00")
	p.click("Save")
	answer("This and following events", "Save")
	p.waitFor(`!document.querySelector(".drawer") && ` + chip("2033-01-07") + ` && !` + chip("2033-01-06") + ` && ` +
		chip("2033-01-10") + `.textContent.includes("10:00")`)
	for _, r := range ts.must(t, 200, "GET", "/api/agents/default/calendar?sort=created_at", "")["tasks"].([]any) {
		if at(r, "title") == "From now on" && fmt.Sprint(at(r, "recurrence_days")) != "[1 5]" {
			t.Errorf("the later ones are %v", r)
		}
	}
}

// walkSchedules creates a schedule, whose next runs are shown while it is typed, and a
// task, and checks that errors are shown at their fields.
func walkSchedules(t *testing.T, ts *testServer, p *consolePage) {
	flow := createFlow(t, ts.testClient, `[{"id":"start","type":"trigger","data":{"event":"schedule"}}]`, `[]`, "")
	p.open("schedules", hasText("No schedules yet")) // an old address
	if hash := p.eval(`location.hash`); hash != "#/agents/default/calendar/schedules" {
		t.Errorf("the schedules are at %v", hash)
	}
	p.click("New schedule")
	p.fill("Name", "Report", "Runs", "cron")
	p.fill("Cron expression", "61 * * * *", "Workflow", flow)
	p.waitFor(`document.querySelector("dialog .preview.issue")?.textContent.includes("bad minute")`)
	p.click("Create")
	p.waitFor(`document.querySelector("dialog .wrong label").textContent === "Cron expression"`)
	p.fill("Cron expression", "*/15 8-17 * * MON-FRI")
	p.waitFor(`document.querySelector("dialog .preview b")?.textContent === "Every 15 minutes from 08:00 to 17:45, ` +
		`Monday to Friday" && document.querySelectorAll("dialog .preview li").length === 5`)
	p.click("Add a value")
	for _, typed := range [][2]string{{"Payload: name 1", "report"}, {"Payload: value of report", "sales"}} {
		p.waitFor(`(() => { const f = document.querySelector("dialog [aria-label='` + typed[0] + `']"); f.value = ` +
			quoted(typed[1]) + `; f.dispatchEvent(new Event("input", { bubbles: true })); return true; })()`)
	}
	p.click("Create")
	p.waitFor(`!document.querySelector("dialog") && document.querySelector("h1").textContent.startsWith("Report") && ` +
		hasText("*/15 8-17 * * MON-FRI") + ` && ` + hasText("Not run yet"))
	p.click("Run now")
	p.waitFor(`document.querySelector("tbody td") && ` + hasText("success"))
	p.click("Pause")
	p.waitFor(`document.querySelector("h1 .badge").textContent === "paused" && ` + hasText("It is paused"))
	p.checkPage("a schedule")
	p.clickOn(`document.querySelector("td.actions a")`)
	p.waitFor(`document.querySelector(".editor-bar .badge")?.textContent === "complete" && ` +
		countNodes(".success") + ` === 1`)
	p.open(
		"calendar/schedules",
		`document.querySelector("#main [role=switch]")?.checked === false && `+hasText("success"),
	)
	p.clickOn(`document.querySelector("#main [role=switch]")`)
	p.waitForCount("/schedules?status=active", "schedules", 1)
	p.waitFor(`document.querySelector("#main [role=switch]").checked`)
	p.checkPage("the schedules")
	made := ts.must(t, 200, "GET", "/api/agents/default/schedules", "")
	if at(made, "schedules.0.payload.report") != "sales" || at(made, "schedules.0.status") != "active" {
		t.Errorf("created %v", made)
	}

	p.open("calendar", `document.querySelector(".agenda, .empty")`)
	p.click("New task")
	p.fill("Title", "Review", "Repeats", "weekly", "Until", "2001-01-01")
	p.click("Create")
	p.waitFor(`document.querySelector("dialog .wrong label").textContent === "Until"`)
	p.fill("Until", "")
	p.chooseOption("Monday")
	p.chooseOption("Thursday")
	p.click("Create")
	p.waitFor(`document.querySelectorAll(".agenda li.task").length >= 8 && ` + hasText("Every Monday and Thursday"))
	p.checkPage("the calendar")
	tasks := ts.must(t, 200, "GET", "/api/agents/default/calendar", "")["tasks"].([]any)
	if len(tasks) != 1 || fmt.Sprint(at(tasks[0], "recurrence_days")) != "[1 4]" {
		t.Errorf("the calendar has %v", tasks)
	}
}
