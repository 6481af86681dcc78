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
