package e2e

import (
	"fmt"
	"testing"
	"time"
)

// TestConsoleFullDay: a day with many tasks says how many more there are, and opens.
func TestConsoleFullDay(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	ts.must(t, 200, "PUT", "/api/agents/default/settings", `{"timezone":"UTC"}`)
	noon := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	for i := range 9 {
		ts.must(
			t,
			201,
			"POST",
			"/api/agents/default/calendar",
			fmt.Sprintf(
				`{"title":%s,"start_time":%q}`,
				quoted(fmt.Sprint("Task ", i, " ", hostile)),
				noon.Add(time.Duration(i)*time.Minute).Format(time.RFC3339),
			),
		)
	}
	p := ts.openConsole(t, 1280)
	p.open("calendar", `document.querySelector(".day-more")?.textContent === "5 more"`)
	p.clickOn(`document.querySelector(".day-more")`)
	p.waitFor(`document.querySelectorAll("dialog .agenda li").length === 9`)
	p.checkPage("a full day")
	p.eval(axe(t) + `; void 0`)
	p.checkAccessible("a full day")
	p.pressKeys("Escape")
	p.waitFor(`!document.querySelector("dialog")`)
	p.clickOn(`document.querySelector(".day-more")`)
	p.clickOn(`[...document.querySelectorAll("dialog .agenda a")].find((a) => a.textContent.includes("Task 8"))`)
	p.waitFor(`!document.querySelector("dialog") && document.querySelector(".drawer")?.textContent.includes("Task 8")`)
}

// TestConsoleChangesRoles: an owner changes the role of a person in the list, and the last owner keeps it.
func TestConsoleChangesRoles(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	for email, role := range map[string]string{"ada@example.com": "viewer", "own@example.com": "owner"} {
		ts.must(t, 201, "POST", "/api/agents/default/admins", `{"email":"`+email+`","role":"`+role+`"}`)
	}
	roleOf := func(email string) string {
		return `document.querySelector("select[aria-label='Role of ` + email + `']")`
	}
	p := ts.openConsole(t, 375)
	p.open("settings/access", roleOf("ada@example.com")+`?.value === "viewer"`)
	choose := func(email, role string) {
		p.eval(`(() => { const s = ` + roleOf(email) + `; s.value = "` + role +
			`"; s.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	}
	choose("ada@example.com", "admin")
	p.waitFor(roleOf("ada@example.com") + `.value === "admin" && document.querySelector(".toasts").textContent.inclu` +
		`des("ada@example.com is now an admin")`)
	p.checkPage("people")
	choose("own@example.com", "viewer")
	p.waitFor(`document.querySelector(".toasts").textContent.includes("the last owner must stay an owner") && ` +
		roleOf("own@example.com") + `.value === "owner"`)
}

// TestConsoleTimeFields: a time of day can be typed in the ways people write it, is shown
// with 24 hours, and one that is none is said at the field and not sent.
func TestConsoleTimeFields(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	ts.must(t, 200, "PUT", "/api/agents/default/settings", `{"timezone":"Asia/Tokyo"}`)
	flow := createFlow(t, ts.testClient, `[{"id":"start","type":"trigger","data":{"event":"schedule"}}]`, `[]`, "")
	p := ts.openConsole(t, 1280)
	p.open("calendar/schedules", hasText("No schedules yet"))
	p.click("New schedule")
	p.fill("Name", "Report", "Runs", "once", "Workflow", flow, "At", "2033-01-04")
	const clock, issue = `document.querySelector("[aria-label='At: time']")`, `document.querySelector("dialog .issue")`
	p.waitFor(clock + `.value === "09:00"`) // of a date alone
	for typed, want := range map[string]string{
		"9": "09:00", "0900": "09:00", "930": "09:30", "9:00": "09:00", "9.05": "09:05", "9:00 pm": "21:00",
		"12 am": "00:00", "12:30 PM": "12:30", "23:59": "23:59", "0": "00:00",
		"": "", "24:00": "", "9:75": "", "13 pm": "", "0 am": "", "noon": "", "12345": "",
	} {
		p.eval(clock + `.focus()`)
		p.eval(clock + `.select()`)
		p.pressKeys("Delete")
		p.typeText(typed)
		p.pressKeys("Tab")
		if want == "" {
			p.waitFor(
				clock + `.value === ` + quoted(typed) + ` && ` + issue + `?.textContent.startsWith("Enter a time")`,
			)
			p.click("Create")
			p.waitFor(issue + ` && document.querySelector("dialog .preview").textContent.includes("appear here")`)
		} else {
			p.waitFor(clock + `.value === ` + quoted(want) + ` && !` + issue)
		}
	}
	if made := ts.must(t, 200, "GET", "/api/agents/default/schedules", "")["schedules"]; len(made.([]any)) != 0 {
		t.Fatalf("created %v", made)
	}
	p.eval(axe(t) + `; void 0`)
	p.checkAccessible("a time that is none")
	p.fill("At: time", "9:15 pm")
	p.click("Create")
	p.waitFor(`!document.querySelector("dialog")`)
	p.click("Edit")
	p.waitFor(clock + `?.value === "21:15"`)
	p.fill("Runs", "every", "Time", "25")
	p.click("Save")
	p.waitFor(issue + `?.textContent.startsWith("Enter a time")`)
	p.fill("Time", "7 pm")
	p.click("Save")
	p.waitFor(`!document.querySelector("dialog") && ` + hasText("0 19 * * *"))

	p.open("activity/log?from=2027-01-04T20:05:00Z", hasText("Following"))
	p.waitFor(`new Date(document.querySelector("[aria-label='From: time']").value + " 2027-01-04").getMinutes() === 5`)
	p.fill("From: time", "8 pm")
	p.waitFor(`new Date(new URLSearchParams(location.hash.split("?")[1]).get("from")).getHours() === 20`)
	p.fill("From: time", "8 xm")
	p.eval(`void document.activeElement.blur()`)
	p.fill("Until", "2027-02-01")
	p.waitFor(`document.querySelector("[aria-label='Until: time']").value === "23:59" && ` + hasText("Follow"))
}
