package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/httpapi"
	"satchel/httpapi/apitest"
)

// hostileAPI is a messaging platform and webhook target whose responses are all hostile.
// It returns its URL.
func hostileAPI(t *testing.T) string {
	t.Helper()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/getMe") {
			fmt.Fprintf(
				w,
				`{"ok":true,"result":{"id":7,"is_bot":true,"username":%[1]s,"first_name":%[1]s}}`,
				quoted(hostile),
			)
			return
		}
		fmt.Fprintf(w, `{"ok":true,"result":true,"description":%s}`, quoted(hostile))
	}))
	t.Cleanup(ts.Close)
	return ts.URL
}

// TestConsoleShowsTextAsText opens every page of the console, with hostile names
// in all records, at 1280 and 375 pixels.
func TestConsoleShowsTextAsText(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts, far := newTestServer(t), hostileAPI(t)
	const base = "/api/agents/default"
	evil := quoted(hostile)
	made := func(path, body string) string {
		t.Helper()
		return ts.must(t, 201, "POST", base+path, body)["id"].(string)
	}
	ts.must(t, 200, "PUT", base, `{"description":`+evil+`}`)
	contact := made("/contacts", `{"name":`+evil+`,"tags":[`+evil+`],"notes":`+evil+`,"metadata":{"x":`+evil+`}}`)
	talk := made("/conversations", `{"contact_id":"`+contact+`"}`)
	ts.must(t, 201, "POST", base+"/conversations/"+talk+"/messages", `{"role":"user","content":`+evil+`}`)
	ts.must(
		t, 200, "POST", base+"/sql/execute",
		`{"query":"INSERT INTO messages(conversation_id, role, content) VALUES (?, 'assistant', ?)","params":["`+talk+
			`",`+quoted("**Bold** [link](javascript:document.title=1) "+hostile)+`]}`,
	)
	flow := made("/workflows", hostileFlow())
	run := ts.must(
		t, 200, "POST", flowBase+"/execute",
		`{"workflow_id":"`+flow+`","input":{"text":`+evil+`}}`,
	)["id"].(string)
	plan := made(
		"/schedules",
		`{"name":`+evil+`,"type":"delayed","delay_seconds":9999,"callback_id":"`+flow+`","payload":{"x":`+evil+`}}`,
	)
	task := made(
		"/calendar",
		`{"title":`+evil+`,"description":`+evil+`,"start_time":"2027-01-04T09:00:00Z","recurrence":"weekly"}`,
	)
	bot := made("/gateways", `{"type":"telegram","name":`+evil+`,"config":{"botToken":"1:a","apiBaseUrl":"`+far+`"}}`)
	shop := made(
		"/gateways",
		`{"type":"web","name":`+evil+`,"config":{"title":`+evil+`,"greeting":`+evil+
			`,"allowedOrigins":["https://shop.example.com"]}}`,
	)
	webhook := made(
		"/webhooks",
		`{"url":"`+far+`/`+
			strings.NewReplacer(`"`, "", ` `, "", "\u202e", "", "{", "", "}", "").Replace(hostile)+`","events":["*"]}`,
	)
	ts.must(t, 200, "POST", base+"/webhooks/"+webhook+"/test", "")
	tool := made(
		"/tools",
		`{"name":"evil","description":`+evil+`,"type":"function","config":{"code":"return args.text",`+
			`"parameters":{"type":"object","properties":{"text":{"type":"string","default":`+evil+`}}}}}`,
	)
	server := made("/mcp", `{"name":`+evil+`,"url":"`+ts.url+`/mcp/default"}`)
	made("/admins", `{"email":"ada@example.com","role":"viewer"}`)
	ts.must(
		t, 201, "POST", base+"/tables",
		`{"name":"evil","columns":[{"name":"name","type":"text"},{"name":"kind","type":"choice","options":[`+evil+
			`]},{"name":"extra","type":"json"}]}`,
	)
	ts.must(t, 201, "POST", base+"/tables/evil/rows", `{"row":{"name":`+evil+`,"kind":`+evil+`,"extra":{`+evil+`:1}}}`)
	form := made("/workflows", `{"name":`+evil+`,"status":"active","nodes":[{"id":"t","type":"trigger","data":{"event":"form","title":`+evil+`,"description":`+evil+`,"success":`+evil+`,
		"fields":[{"name":"a","label":`+evil+`,"help":`+evil+`,"type":"choice","options":[`+evil+`]},{"name":"b","label":`+evil+`,"type":"choices","options":[`+evil+`]}]}}]}`)
	secret := made(
		"/credentials",
		`{"name":"Warehouse","type":"oauth2","hosts":["example.com"],"config":{"grant":"client_credentials",`+
			`"token_url":"https://example.com/token","client_id":"satchel","scope":`+evil+
			`},"secret":{"client_secret":"secret-token"}}`,
	)
	session := ts.openLoaded(t, "/evil")
	ts.addGoal(t, session.ID(), hostile)
	row := `document.querySelector("#main td") && `
	pages := map[string]string{
		"home":                hasText("What can"),
		"chat":                hasText("Conversation"),
		"contacts":            row + hasText(hostile),
		"contacts/" + contact: hasText(hostile) + ` && document.querySelector(".talks a")`,
		"inbox/" + talk: hasText(hostile) +
			` && document.querySelector(".inbox-said.assistant strong") && !document.querySelector(".inbox-said a")`,
		"knowledge":                   hasText("No knowledge yet"),
		"workflows":                   hasText(hostile),
		"workflows/" + flow:           countNodes("") + ` === 4`,
		"workflows/executions/" + run: hasText("Approve"),
		"calendar/schedules":          row + hasText(hostile),
		"calendar/schedules/" + plan:  hasText(hostile) + " && " + hasText("Not run yet"),
		"channels":                    hasText(hostile),
		"widget":                      row + hasText(hostile),
		"widget/" + shop:              `document.querySelector(".widget-snippet") && ` + hasText(hostile),
		"channels/" + bot:             hasText(hostile) + " && " + hasText("Receiving"),
		"channels/new/webhook":        hasText("What you need"),
		"webhooks":                    hasText("<img"),
		"webhooks/" + webhook:         hasText("<img") + " && " + hasText("Attempts"),
		"browser":                     hasText("<img src=x onerror=document.title=1>"),
		"browser/" + session.ID(): `document.getElementById("screen")?.dataset.frames > 0 && ` +
			hasText("<img src=x onerror=document.title=1>"),
		"credentials":           hasText("example.com"),
		"credentials/" + secret: hasText(hostile),
		"workflows/templates":   hasText("Refund"),
		"workflows/import":      hasText("Or paste it"),
		"tools":                 hasText(hostile),
		"tools/" + tool:         hasText("Arguments"),
		"tools/new":             hasText("Credentials"),
		"mcp":                   hasText("connected") + " && " + hasText(hostile),
		"mcp/" + server:         hasText("search_knowledge"),
		"settings/access":       row + hasText("ada@example.com"),
		"settings":              hasText("Language model"),
		"settings/agent":        hasText("About"),
		"sql":                   hasText("contacts"),
		"tables":                row + hasText("evil"),
		"tables/evil":           row + hasText(hostile),
		"forms":                 row + hasText(hostile),
		"forms/" + form:         hasText(hostile) + ` && document.querySelector(".form-preview")`,
		"activity":              row + hasText(hostile),
		"activity/events":       row + hasText(hostile),
		"activity/deliveries":   row + hasText("webhook.test"),
		"activity/log":          row + hasText("audit"),
	}
	for _, width := range []int{1280, 375} {
		p := ts.openConsole(t, width)
		for _, page := range slices.Sorted(maps.Keys(pages)) {
			if strings.HasPrefix(page, "browser/") {
				p.open("home", pages["home"]) // the list of sessions stays next to a session
			}
			p.open(page, pages[page])
			if strings.HasPrefix(page, "browser/") {
				p.openGoal(hostile)
			}
		}
		p.open("calendar?date=2027-01-04", hasText(hostile))
		for _, view := range []string{"week", "list"} {
			p.eval(`location.hash = "#/agents/default/calendar?date=2027-01-04&view=` + view + `"`)
			p.waitFor(`document.querySelector(".` + strings.Replace(view, "list", "agenda", 1) +
				`, .agenda") && ` + hasText(hostile))
			p.checkPage("the " + view)
		}
		p.open("contacts", row+hasText(hostile))
		p.open("calendar/tasks/"+task, `document.querySelector(".drawer h2")?.textContent === `+quoted(hostile))
		p.open("channels/"+bot, hasText(hostile))
		p.click("Verify")
		p.waitFor(hasBadge("active") + ` && ` + hasText("Username"))
		p.checkPage("a verified channel")
		p.open("tools/"+tool+"?try=1", hasText("Call it"))
		p.click("Call it")
		p.waitFor(`document.querySelector(".outcome pre").textContent.includes("<script>")`)
		p.checkPage("a tool that was tried")
	}
}

// TestConsoleForms fills in the forms of the console on a phone.
func TestConsoleForms(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	p := ts.openConsole(t, 375)
	for _, walk := range []struct {
		name string
		walk func(*testing.T, *testServer, *consolePage)
	}{{"workflow", walkWorkflowForms}, {"plans", walkSchedules}, {"browser", walkBrowser}} {
		t.Run(walk.name, func(t *testing.T) {
			p.t = t
			walk.walk(t, ts, p)
		})
	}
	p.t = t
}

// walkBrowser opens a session whose page has a hostile title, and closes it. The
// session that shows the console is listed too.
func walkBrowser(t *testing.T, ts *testServer, p *consolePage) {
	ts.openLoaded(t, "/")
	p.open("browser", `document.querySelectorAll("#main .session-entries li").length === 1`)
	p.click("Open")
	p.waitFor(`document.querySelector("dialog form")`)
	p.fill("Address", ts.site+"/evil", "Size", "own")
	p.fill("Width", "99")
	p.eval(`document.querySelector("dialog form").noValidate = true`)
	p.click("Open")
	p.waitFor(`document.querySelector("dialog .wrong label").textContent === "Width"`)
	p.fill("Width", "500")
	p.click("Open")
	p.waitFor(`document.getElementById("screen") && location.hash.includes("browser/session-") && ` +
		hasText("<img src=x onerror=document.title=1>"))
	p.checkPage("a session")
	walkGoals(t, ts, p)
}

// walkGoals has a model pursue goals in the session that is shown: one that waits for a
// person is stopped, another is reached, and the first is opened again.
func walkGoals(t *testing.T, ts *testServer, p *consolePage) {
	t.Helper()
	m := apitest.NewModelServer(t, func(_ int, asked map[string]any) string {
		text := fmt.Sprint(asked["messages"])
		switch {
		case strings.Contains(text, "Ask somebody."):
			return ` {"note":"","action":"ask_person","ref":"","text":` + quoted(hostile) +
				`,"description":"A person is needed."}`
		case strings.Contains(text, "Went to the end"):
			return ` {"note":"","action":"done","ref":"","text":` + quoted(hostile) + `,"description":""}`
		}
		return ` {"note":"","action":"press","ref":"","text":"End","description":"Went to the end"}`
	})
	ts.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"ollama","llm_model":"m","llm_base_url":"`+m.URL+`/v1"}`,
	)
	p.click("Goal")
	p.click("Set a goal")
	p.waitFor(`document.querySelector("dialog form")`)
	p.click("Start")
	p.waitFor(`document.querySelector("dialog .wrong label")?.textContent.startsWith("Goal")`)
	p.checkPage("the form of a goal")
	p.fill("Goal", "Ask somebody.")
	p.click("Start")
	p.waitFor(`!document.querySelector("dialog") && document.querySelector(".session-goals ` +
		`.badge")?.textContent === "Waits for a person"`)
	p.checkPage("a goal that waits")
	p.click("Stop")
	p.waitFor(`document.querySelector(".session-goals .badge")?.textContent === "Cancelled"`)
	p.click("New goal")
	p.fill("Goal", "Go to the end.")
	p.click("Start")
	p.waitFor(`!document.querySelector("dialog") && document.querySelector(".session-goals .badge")?.textContent ` +
		`=== "Done" && document.querySelector(".session-goals .steps").textContent.includes("Went to the end") && ` +
		`document.querySelector(".session-goals .result p").textContent === ` + quoted(hostile))
	p.checkPage("a goal that was reached")
	p.eval(`(() => { const all = document.querySelector(".session-goals select"); all.selectedIndex = 1; ` +
		`all.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	p.waitFor(`document.querySelector(".session-goals .goal").textContent === "Ask somebody." && ` +
		`document.querySelector(".session-goals .badge").textContent === "Cancelled"`)
}

// TestConsoleKeys creates the first key, which closes the server, and continues working
// in the same tab.
func TestConsoleKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t, func(o *httpapi.Options) { o.DefaultRole = agent.RoleViewer })
	p := ts.openConsole(t, 375)
	p.base = "#/"
	p.open("keys", hasText("closes this server for good"))
	p.click("Create the first key")
	p.waitFor(
		`document.querySelector("dialog").textContent.includes("May callers without a key read the agent default?")`,
	)
	p.fill("Name", hostile)
	p.eval(`document.querySelector("dialog form").requestSubmit()`)
	if made := len(ts.must(t, 200, "GET", "/api/keys", "")["keys"].([]any)); made != 0 {
		t.Fatal("a key was created before the box was ticked")
	}
	p.clickOn(`document.querySelector("dialog [type=checkbox]")`)
	p.eval(`document.querySelector("dialog form").requestSubmit()`)
	if made := len(ts.must(t, 200, "GET", "/api/keys", "")["keys"].([]any)); made != 0 {
		t.Fatal("a key was created before it was decided what strangers may do")
	}
	p.waitFor(`document.querySelector("dialog").textContent.includes("Choose what callers without a key may do.")`)
	p.fill("May callers without a key read the agent default?", "viewer")
	p.click("Close the server and create the key")
	p.waitFor(`document.querySelector("dialog .copy-field input").value.startsWith("satchel_")`)
	p.click("Done")
	p.waitFor(`!document.querySelector(".rail-foot .badge") && ` + hasText(hostile))
	p.checkPage("keys")
	if a := ts.send(t, "GET", "/api/keys", ""); a.StatusCode != 401 {
		t.Errorf("without a key: %d", a.StatusCode)
	}
	p.waitFor(hasText("may read and search the default agent") + ` && ` + hasText("SATCHEL_DEFAULT_ROLE"))
	p.clickOn(`document.getElementById("key")`)
	p.waitFor(`/may read and search the default ` +
		`agent.*SATCHEL_DEFAULT_ROLE/.test(document.querySelector("dialog[open]").textContent)`)
	p.click("Cancel")
	p.click("New key")
	p.fill("Name", "reader")
	p.click("Create key")
	p.waitFor(`document.querySelector("dialog .copy-field input").value.startsWith("satchel_")`)
	p.click("Done")
	p.waitFor(hasText("reader"))
	// the key of this tab
	p.waitFor(`[...document.querySelectorAll("tbody button:disabled")].map((b) => b.textContent).join() === "Replace"`)
	p.click("Replace")
	p.click("Create the new key")
	p.waitFor(`document.querySelector("dialog .copy-field input")?.value.startsWith("satchel_")`)
	p.click("Done")
	p.waitFor(`document.querySelectorAll("tbody tr").length === 3`)
	p.click("Revoke")
	p.waitFor(`document.querySelector("dialog input")`)
	p.eval(`(() => { const typed = document.querySelector("dialog input"); typed.value = /Type (.*) to ` +
		`confirm/.exec(document.querySelector("dialog label").textContent)[1]; typed.dispatchEvent(new ` +
		`Event("input", { bubbles: true })); })()`)
	p.click("Revoke")
	p.waitFor(`document.querySelectorAll("tbody tr").length === 2`)
}
