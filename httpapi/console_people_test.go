package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// edit writes into a cell that is called so, as somebody at the keyboard does.
func (s *stranger) edit(label, text string) {
	s.t.Helper()
	s.until(`(window.cell = [...document.querySelectorAll("#main button.cell")].find((b) => (b.ariaLabel ?? b.textContent).startsWith(` + quoted(label+":") + `)))`)
	s.value(`void cell.click()`)
	s.until(`(window.field = [...document.querySelectorAll("#main .cell-frame :is(input, textarea)")].find((f) => f.getAttribute("aria-label") === ` + quoted(label) + `))`)
	s.value(`(() => { field.value = ` + quoted(text) + `; field.dispatchEvent(new Event("input", { bubbles: true })); })()`)
	s.value(`void field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true }))`)
}

// choice presses the button of the dialog that is labelled so.
func (s *stranger) choice(label string) {
	s.t.Helper()
	s.until(`(window.pressed = document.querySelector("dialog [aria-label=` + label + `]"))`)
	s.value(`void pressed.click()`)
}

// TestConsoleContacts edits contacts in their table, tags and deletes several,
// imports a file whose columns are named otherwise, and opens one.
func TestConsoleContacts(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	const base = "/api/agents/default"
	th.must(t, 201, "POST", base+"/contacts", `{"name":"Bob","email":"bob@example.com"}`)
	ada := th.must(t, 201, "POST", base+"/contacts", `{"name":"Ada","tags":["vip"],"metadata":{"plan":"pro"}}`)["id"].(string)
	talk := th.must(t, 201, "POST", base+"/conversations", `{"contact_id":"`+ada+`"}`)["id"].(string)
	th.must(t, 201, "POST", base+"/conversations/"+talk+"/messages", `{"role":"user","content":"Where is my order?"}`)
	s := th.visit(t, 1280)
	s.goTo("contacts", `document.querySelectorAll("#main tbody tr").length === 2`)

	s.edit("Email of Ada", "bob@example.com")
	s.until(`document.querySelector("#main .cell-frame.wrong .issue").textContent.length > 5`)
	s.value(`(() => { field.value = "ada@example.com"; field.dispatchEvent(new Event("input", { bubbles: true })); field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true })); })()`)
	s.until(`!document.querySelector("#main .cell-frame input") && ` + says("ada@example.com"))
	s.edit("Phone of Bob", "call me")
	s.until(`document.querySelector("#main .cell-frame.wrong .issue").textContent === "must contain a digit"`)
	s.value(`void field.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }))`)
	s.until(`!document.querySelector("#main .cell-frame input")`)
	if c := th.must(t, 200, "GET", base+"/contacts/"+ada, ""); at(c, "email") != "ada@example.com" || at(c, "metadata.plan") != "pro" {
		t.Errorf("stored %v", c)
	}
	s.press("Columns")
	s.until(`document.querySelector("dialog h3")?.textContent === "Custom fields"`)
	s.value(`void [...document.querySelectorAll("dialog .pick")].find((l) => l.textContent.trim() === "plan").click()`)
	s.press("Done")
	s.until(`!document.querySelector("dialog")`)
	s.edit("plan of Ada", "team")
	s.until(`[...document.querySelectorAll("#main th")].some((h) => h.textContent === "plan") && ` + says("team"))
	s.unharmed("the table")

	s.press("Name") // sorts
	s.until(`document.querySelector("#main tbody a").textContent === "Ada" && location.hash.includes("sort=name")`)
	s.value(`void document.querySelector("[aria-label='Select all on this page']").click()`)
	s.press("Add a tag")
	s.fill("Tag", "berlin")
	s.press("Tag")
	s.until(`document.querySelectorAll("#main tbody .tag").length === 3`)
	s.value(`void [...document.querySelectorAll(".toasts button")].find((b) => b.textContent === "Undo").click()`)
	s.until(`document.querySelectorAll("#main tbody .tag").length === 1`)
	s.value(`(() => { const tags = document.querySelector("[aria-label='Only with a tag']"); tags.value = "vip"; tags.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	s.until(`document.querySelectorAll("#main tbody tr").length === 1 && location.hash.includes("tag=vip")`)
	s.press("Save this filter")
	s.fill("Name", hostile)
	s.press("Save")
	s.until(`document.querySelector(".view[aria-current] bdi")?.textContent === ` + quoted(hostile))
	s.press("Everybody")
	s.until(`document.querySelectorAll("#main tbody tr").length === 2`)
	s.press(hostile)
	s.until(`document.querySelectorAll("#main tbody tr").length === 1`)
	s.press("Everybody")
	s.unharmed("a saved filter")

	s.press("Import")
	s.until(`document.querySelector("dialog input[type=file]")`)
	csv := "Full name;E-Mail;Plan;Internal\r\nAda;ADA@example.com;free;x\r\nClara;clara@example.com;pro;y\r\nWrong;nobody;;\r\nShort;row\r\n"
	s.value(`(() => { const data = new DataTransfer(); data.items.add(new File([` + quoted(csv) + `], "people.csv")); const input = document.querySelector("dialog input[type=file]"); input.files = data.files; input.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	s.until(`document.querySelectorAll("dialog tbody tr").length === 4`)
	s.value(`(() => { const choice = document.querySelector("[aria-label='What Internal becomes']"); choice.value = ""; choice.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	s.press("Check")
	s.until(`[...document.querySelectorAll("dialog .counts b")].map((b) => b.textContent).join() === "1,1,0,2" && document.querySelectorAll("dialog tbody tr").length === 2`)
	if total := at(th.must(t, 200, "GET", base+"/contacts", ""), "meta.total"); fmt.Sprint(total) != "2" {
		t.Errorf("trying an import made %v contacts", total)
	}
	rejected := s.value(`(async () => {
		let text = "";
		const real = URL.createObjectURL;
		URL.createObjectURL = (blob) => { text = blob.text(); return "#"; };
		[...document.querySelectorAll("dialog button")].find((b) => b.textContent === "Download rejected rows").click();
		URL.createObjectURL = real;
		return await text;
	})()`)
	if want := "Full name,E-Mail,Plan,Internal,Row,Problem\r\nWrong,nobody,,,4,email must be an email address\r\nShort,row,,,5,row has 2 cells where the header row has 4"; strings.TrimPrefix(fmt.Sprint(rejected), "\ufeff") != want {
		t.Errorf("rejected rows:\n%v\nwant\n%s", rejected, want)
	}
	s.press("Import 2 contacts")
	s.until(`document.querySelector("dialog").textContent.includes("The import is done")`)
	s.press("Close")
	s.until(`document.querySelectorAll("#main tbody tr").length === 3`)
	if c := th.must(t, 200, "GET", base+"/contacts/"+ada, ""); fmt.Sprint(at(c, "metadata")) != "map[Plan:free plan:team]" {
		t.Errorf("imported %v", at(c, "metadata"))
	}

	s.goTo("contacts/"+ada, says("Where is my order?"))
	s.edit("WhatsApp", "+49 30 1234")
	s.until(says("+49 30 1234"))
	s.press("Add a field")
	s.until(`document.querySelector("[aria-label='Name of the field']")`)
	s.value(`(() => { for (const [label, text] of [["Name of the field", "city"], ["Value of the field", "Berlin"]]) { const f = document.querySelector("[aria-label='" + label + "']"); f.value = text; f.dispatchEvent(new Event("input", { bubbles: true })); } })()`)
	s.press("Add")
	s.until(says("Berlin"))
	s.unharmed("a contact")
	if c := th.must(t, 200, "GET", base+"/contacts/"+ada, ""); at(c, "metadata.city") != "Berlin" || at(c, "chatbot_b") != "+49 30 1234" {
		t.Errorf("stored %v", c)
	}
	s.value(`void document.querySelector("#main .talks a").click()`)
	s.until(`location.hash.includes("/chat/` + talk + `")`)
	s.goTo("contacts", `document.querySelectorAll("#main tbody tr").length === 3`)
	s.value(`void document.querySelector("[aria-label='Select Bob']").click()`)
	s.press("Delete")
	s.until(`document.querySelectorAll("#main tbody tr").length === 2`)
	s.value(`void [...document.querySelectorAll(".toasts button")].find((b) => b.textContent === "Undo").click()`)
	s.until(`document.querySelectorAll("#main tbody tr").length === 3`)
}

// TestConsoleCalendar drags a task to another day and back, and goes through
// the views by their keys.
func TestConsoleCalendar(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	const base = "/api/agents/default"
	th.must(t, 200, "PUT", base+"/settings", `{"timezone":"Asia/Tokyo"}`)
	zone := time.FixedZone("", 9*3600)
	tenth := time.Now().In(zone).AddDate(0, 0, 10-time.Now().In(zone).Day())
	day := func(n int) string { return tenth.AddDate(0, 0, n).Format(time.DateOnly) }
	task := th.must(t, 201, "POST", base+"/calendar", `{"title":`+quoted(hostile)+`,"start_time":"`+day(0)+`T08:30:00+09:00","end_time":"`+day(0)+`T10:00:00+09:00"}`)["id"].(string)
	th.must(t, 201, "POST", base+"/schedules", `{"name":"Nightly","type":"cron","cron_expression":"0 3 * * *","callback_type":"agent","payload":{"prompt":"x"}}`)
	s := th.visit(t, 1280)
	chip := func(date string) string {
		return `document.querySelector("[data-date='` + date + `'] [data-task='` + task + `']")`
	}
	starts := func(want string) { // waits for what is stored
		t.Helper()
		s.value(`(async () => { while (!(await (await fetch("` + base + `/calendar/` + task + `")).json()).start_time.startsWith(` + quoted(want) + `)) await new Promise(requestAnimationFrame); })()`)
	}
	drag := func(from, to string, y int) {
		t.Helper()
		s.value(fmt.Sprintf(`(() => {
			const dataTransfer = new DataTransfer();
			const chip = %s, target = document.querySelector("[data-date='%s']");
			const fire = (el, type, clientY = 0) => el.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer, clientY }));
			fire(chip, "dragstart", chip.getBoundingClientRect().top);
			fire(target, "dragover");
			fire(target, "drop", target.getBoundingClientRect().top + %d);
		})()`, chip(from), to, y))
	}
	s.goTo("calendar", chip(day(0))+` && document.querySelector(".chip.run") && `+says("Asia/Tokyo"))
	s.unharmed("the month")
	drag(day(0), day(2), 0)
	s.until(chip(day(2)) + ` && !` + chip(day(0)) + ` && document.querySelector(".toasts").textContent.includes("is on")`)
	starts(tenth.AddDate(0, 0, 1).Format(time.DateOnly) + "T23:30")
	s.value(`void [...document.querySelectorAll(".toasts button")].find((b) => b.textContent === "Undo").click()`)
	s.until(chip(day(0)))
	starts(tenth.AddDate(0, 0, -1).Format(time.DateOnly) + "T23:30")

	s.value(`void document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "w", bubbles: true }))`)
	s.until(`document.querySelector(".week")`)
	s.value(`location.hash += "&date=` + day(0) + `"`)
	s.until(chip(day(0)))
	drag(day(0), day(0), 44*14) // two in the afternoon
	starts(day(0) + "T05:00")
	s.unharmed("the week")
	s.value(`void ` + chip(day(0)) + `.click()`)
	s.until(`document.querySelector(".drawer h2")?.textContent === ` + quoted(hostile) + ` && location.hash.includes("/calendar/tasks/` + task + `") && document.querySelector(".week")`)
	s.unharmed("a task")
	s.press("Edit")
	s.fill("Title", "Review", "Begins", day(1)+"T09:15", "Repeats", "weekly")
	s.choice("Monday")
	s.choice("Thursday")
	s.press("Save")
	s.until(`!document.querySelector("dialog") && document.querySelector(".drawer")?.textContent.includes("Every Monday and Thursday")`)
	stored := th.must(t, 200, "GET", base+"/calendar/"+task, "")
	if fmt.Sprint(at(stored, "recurrence_days")) != "[1 4]" || at(stored, "start_time") != day(1)+"T00:15:00.000Z" {
		t.Errorf("stored %v", stored)
	}
	s.press("Delete all of them")
	s.until(`!document.querySelector(".drawer") && !document.querySelector("[data-task]") && location.hash.includes("view=week")`)
	s.value(`void document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "m", bubbles: true }))`)
	s.until(`document.querySelector(".month")`)
	s.value(`void document.querySelector("[data-date='` + day(3) + `']").click()`)
	s.until(`[...document.querySelectorAll("dialog input")].some((i) => i.labels[0]?.textContent === "Begins" && i.value === "` + day(3) + `T09:00")`)
}

// plans makes a schedule with its next runs shown while it is typed,
// and a task, and is told what is wrong with them at the field.
func plans(t *testing.T, th *theatre, s *stranger) {
	flow := saved(t, th.visitor, `[{"id":"start","type":"trigger","data":{"event":"schedule"}}]`, `[]`, "")
	s.goTo("schedules", says("No schedules yet")) // an address of before
	if hash := s.value(`location.hash`); hash != "#/agents/default/calendar/schedules" {
		t.Errorf("the schedules are at %v", hash)
	}
	s.press("New schedule")
	s.fill("Name", "Report", "Runs", "cron")
	s.fill("Cron expression", "61 * * * *", "Workflow", flow)
	s.until(`document.querySelector("dialog .preview.issue")?.textContent.includes("bad minute")`)
	s.press("Make")
	s.until(`document.querySelector("dialog .wrong label").textContent === "Cron expression"`)
	s.fill("Cron expression", "*/15 8-17 * * MON-FRI")
	s.until(`document.querySelector("dialog .preview b")?.textContent === "Every 15 minutes from 08:00 to 17:45, Monday to Friday" && document.querySelectorAll("dialog .preview li").length === 5`)
	s.press("Add a value")
	for _, typed := range [][2]string{{"Goes along: name 1", "report"}, {"Goes along: value of report", "sales"}} {
		s.until(`(() => { const f = document.querySelector("dialog [aria-label='` + typed[0] + `']"); f.value = ` + quoted(typed[1]) + `; f.dispatchEvent(new Event("input", { bubbles: true })); return true; })()`)
	}
	s.press("Make")
	s.until(`!document.querySelector("dialog") && document.querySelector("h1").textContent.startsWith("Report") && ` + says("*/15 8-17 * * MON-FRI") + ` && ` + says("It has not run yet"))
	s.press("Run now")
	s.until(`document.querySelector("tbody td") && ` + says("success"))
	s.press("Pause")
	s.until(`document.querySelector("h1 .badge").textContent === "paused" && ` + says("It is paused"))
	s.unharmed("a schedule")
	s.value(`void document.querySelector("td.actions a").click()`)
	s.until(`document.querySelector(".editor-bar .badge")?.textContent === "complete" && ` + steps(".success") + ` === 1`)
	s.goTo("calendar/schedules", `document.querySelector("#main [role=switch]")?.checked === false && `+says("success"))
	s.value(`void document.querySelector("#main [role=switch]").click()`)
	s.until(`document.querySelector("#main [role=switch]").checked`)
	s.unharmed("the schedules")
	made := th.must(t, 200, "GET", "/api/agents/default/schedules", "")
	if at(made, "schedules.0.payload.report") != "sales" || at(made, "schedules.0.status") != "active" {
		t.Errorf("made %v", made)
	}

	s.goTo("calendar", `document.querySelector(".agenda, .empty")`)
	s.press("New task")
	s.fill("Title", "Review", "Repeats", "weekly", "Until", "2001-01-01")
	s.press("Make")
	s.until(`document.querySelector("dialog .wrong label").textContent === "Until"`)
	s.fill("Until", "")
	s.choice("Monday")
	s.choice("Thursday")
	s.press("Make")
	s.until(`document.querySelectorAll(".agenda li.task").length >= 8 && ` + says("Every Monday and Thursday"))
	s.unharmed("the calendar")
	tasks := th.must(t, 200, "GET", "/api/agents/default/calendar", "")["tasks"].([]any)
	if len(tasks) != 1 || fmt.Sprint(at(tasks[0], "recurrence_days")) != "[1 4]" {
		t.Errorf("the calendar holds %v", tasks)
	}
}
