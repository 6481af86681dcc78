package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
)

// trickster is a platform, and an address that is told of events, whose every
// answer is hostile.
func trickster(t *testing.T) string {
	t.Helper()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/getMe") {
			fmt.Fprintf(w, `{"ok":true,"result":{"id":7,"is_bot":true,"username":%[1]s,"first_name":%[1]s}}`, quoted(hostile))
			return
		}
		fmt.Fprintf(w, `{"ok":true,"result":true,"description":%s}`, quoted(hostile))
	}))
	t.Cleanup(ts.Close)
	return ts.URL
}

// TestConsoleShowsTextAsText walks through every page of the console, each
// record of which has a hostile name, at the width of a desk and of a phone.
func TestConsoleShowsTextAsText(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th, far := newTheatre(t), trickster(t)
	const base = "/api/agents/default"
	evil := quoted(hostile)
	made := func(path, body string) string {
		t.Helper()
		return th.must(t, 201, "POST", base+path, body)["id"].(string)
	}
	th.must(t, 200, "PUT", base, `{"description":`+evil+`}`)
	contact := made("/contacts", `{"name":`+evil+`,"tags":[`+evil+`],"notes":`+evil+`,"metadata":{"x":`+evil+`}}`)
	talk := made("/conversations", `{"contact_id":"`+contact+`"}`)
	th.must(t, 201, "POST", base+"/conversations/"+talk+"/messages", `{"role":"user","content":`+evil+`}`)
	flow := made("/workflows", hostileFlow())
	run := th.must(t, 200, "POST", flowBase+"/execute", `{"workflow_id":"`+flow+`","input":{"text":`+evil+`}}`)["id"].(string)
	plan := made("/schedules", `{"name":`+evil+`,"type":"delayed","delay_seconds":9999,"callback_id":"`+flow+`","payload":{"x":`+evil+`}}`)
	task := made("/calendar", `{"title":`+evil+`,"description":`+evil+`,"start_time":"2027-01-04T09:00:00Z","recurrence":"weekly"}`)
	bot := made("/gateways", `{"type":"telegram","name":`+evil+`,"config":{"botToken":"1:a","apiBaseUrl":"`+far+`"}}`)
	shop := made("/gateways", `{"type":"web","name":`+evil+`,"config":{"title":`+evil+`,"greeting":`+evil+`,"allowedOrigins":["https://shop.example.com"]}}`)
	told := made("/webhooks", `{"url":"`+far+`/`+strings.NewReplacer(`"`, "", ` `, "", "\u202e", "", "{", "", "}", "").Replace(hostile)+`","events":["*"]}`)
	th.must(t, 200, "POST", base+"/webhooks/"+told+"/test", "")
	tool := made("/tools", `{"name":"evil","description":`+evil+`,"type":"function","config":{"code":"return args.text","parameters":{"type":"object","properties":{"text":{"type":"string","default":`+evil+`}}}}}`)
	server := made("/mcp", `{"name":`+evil+`,"url":"`+th.url+`/mcp/default"}`)
	made("/admins", `{"email":"ada@example.com","role":"viewer"}`)
	session := th.onStage(t, "/evil")
	row := `document.querySelector("#main td") && `
	pages := map[string]string{
		"home": says("What can"), "chat": says("Conversation"), "contacts": row + says(hostile), "contacts/" + contact: says(hostile) + ` && document.querySelector(".talks a")`, "inbox/" + talk: says(hostile),
		"knowledge": says("knows nothing yet"), "workflows": says(hostile), "workflows/" + flow: steps("") + ` === 4`,
		"workflows/executions/" + run: says("Approve"), "calendar/schedules": row + says(hostile), "calendar/schedules/" + plan: says(hostile) + " && " + says("It has not run yet"),
		"channels": says(hostile), "widget": row + says(hostile), "widget/" + shop: `document.querySelector(".widget-snippet") && ` + says(hostile), "channels/" + bot: says(hostile) + " && " + says("Receiving"), "channels/new/webhook": says("What you need"), "webhooks": says("<img"), "webhooks/" + told: says("<img") + " && " + says("Tries"),
		"browser": says("<img src=x onerror=document.title=1>"), "browser/" + session.ID(): `document.getElementById("screen")?.dataset.frames > 0 && ` + says("<img src=x onerror=document.title=1>"),
		"tools": says(hostile), "tools/" + tool: says("Arguments"), "tools/new": says("Credentials"), "mcp": says("connected") + " && " + says(hostile), "mcp/" + server: says("search_knowledge"), "settings/access": row + says("ada@example.com"), "settings": says("Language model"), "settings/agent": says("About"), "sql": says("contacts"), "activity": row + says(hostile),
		"activity/events": row + says(hostile), "activity/deliveries": row + says("webhook.test"), "activity/log": row + says("audit"),
	}
	for _, width := range []int{1280, 375} {
		s := th.visit(t, width)
		for _, page := range slices.Sorted(maps.Keys(pages)) {
			if strings.HasPrefix(page, "browser/") {
				s.goTo("home", pages["home"]) // the list of sessions stays beside a session
			}
			s.goTo(page, pages[page])
		}
		s.goTo("calendar?date=2027-01-04", says(hostile))
		for _, view := range []string{"week", "list"} {
			s.value(`location.hash = "#/agents/default/calendar?date=2027-01-04&view=` + view + `"`)
			s.until(`document.querySelector(".` + strings.Replace(view, "list", "agenda", 1) + `, .agenda") && ` + says(hostile))
			s.unharmed("the " + view)
		}
		s.goTo("contacts", row+says(hostile))
		s.goTo("calendar/tasks/"+task, `document.querySelector(".drawer h2")?.textContent === `+quoted(hostile))
		s.goTo("channels/"+bot, says(hostile))
		s.press("Verify")
		s.until(badge("active") + ` && ` + says("username"))
		s.unharmed("a verified channel")
		s.goTo("tools/"+tool+"?try=1", says("Call it"))
		s.press("Call it")
		s.until(`document.querySelector(".outcome pre").textContent.includes("<script>")`)
		s.unharmed("a tool that was tried")
	}
}

// TestConsoleForms goes through the forms of the console on a phone.
func TestConsoleForms(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	s := th.visit(t, 375)
	for _, walk := range []struct {
		name string
		walk func(*testing.T, *theatre, *stranger)
	}{{"workflow", mendsWorkflow}, {"plans", plans}, {"browser", browses}} {
		t.Run(walk.name, func(t *testing.T) {
			s.t = t
			walk.walk(t, th, s)
		})
	}
	s.t = t
}

// browses opens a session whose page has a hostile title, and closes it; the
// session that shows the console is listed too.
func browses(t *testing.T, th *theatre, s *stranger) {
	s.goTo("browser", `document.querySelectorAll("#main .session-entries li").length === 1`)
	s.press("Open")
	s.until(`document.querySelector("dialog form")`)
	s.fill("Address", th.site+"/evil", "Size", "own")
	s.fill("Width", "99")
	s.value(`document.querySelector("dialog form").noValidate = true`)
	s.press("Open")
	s.until(`document.querySelector("dialog .wrong label").textContent === "Width"`)
	s.fill("Width", "500")
	s.press("Open")
	s.until(`document.getElementById("screen") && location.hash.includes("browser/session-") && ` + says("<img src=x onerror=document.title=1>"))
	s.unharmed("a session")
}

// TestConsoleKeys makes the first key, which closes the server, and goes on
// working in the same tab.
func TestConsoleKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	th.server.options.DefaultRole = agent.RoleViewer
	th.server.policy = th.server.options.policy()
	s := th.visit(t, 375)
	s.at = "#/"
	s.goTo("keys", says("closes this server at once and for good"))
	s.until(says("may read and search the default agent") + ` && ` + says("SATCHEL_DEFAULT_ROLE"))
	s.press("Make the first key")
	s.until(`document.querySelector("dialog").textContent.includes("may read and search the default agent")`)
	s.fill("Name", hostile)
	s.value(`document.querySelector("dialog form").requestSubmit()`)
	if made := len(th.must(t, 200, "GET", "/api/keys", "")["keys"].([]any)); made != 0 {
		t.Fatal("a key was made before the box was ticked")
	}
	s.value(`void document.querySelector("dialog [type=checkbox]").click()`)
	s.press("Close the server and make the key")
	s.until(`document.querySelector("dialog .copy-field input").value.startsWith("satchel_")`)
	s.press("I have it")
	s.until(`!document.querySelector(".rail-foot .badge") && ` + says(hostile))
	s.unharmed("keys")
	if a := th.do(t, "GET", "/api/keys", http.NoBody, ""); a.StatusCode != 401 {
		t.Errorf("without a key: %d", a.StatusCode)
	}
	s.until(says("may read and search the default agent") + ` && ` + says("SATCHEL_DEFAULT_ROLE"))
	s.value(`void document.getElementById("key").click()`)
	s.until(`/may read and search the default agent.*SATCHEL_DEFAULT_ROLE/.test(document.querySelector("dialog[open]").textContent)`)
	s.press("Cancel")
	s.press("New key")
	s.fill("Name", "reader")
	s.press("Make the key")
	s.until(`document.querySelector("dialog .copy-field input").value.startsWith("satchel_")`)
	s.press("I have it")
	s.until(says("reader"))
	s.press("Revoke")
	s.until(`document.querySelector("dialog input")`)
	s.value(`(() => { const typed = document.querySelector("dialog input"); typed.value = /Type (.*) to confirm/.exec(document.querySelector("dialog label").textContent)[1]; typed.dispatchEvent(new Event("input", { bubbles: true })); })()`)
	s.press("Revoke")
	s.until(`document.querySelectorAll("tbody tr").length === 1 || ` + says("API key"))
}
