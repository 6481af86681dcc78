package e2e

import (
	"fmt"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/httpapi/apitest"
)

// takeoverFlow opens a page, asks a person for help with it, and downloads a file.
func takeoverFlow(site string) string {
	return fmt.Sprintf(`{"name":"Invoices","status":"active","nodes":[
		{"id":"start","type":"trigger","data":{"event":"manual"}},
		{"id":"open","type":"navigate","data":{"url":%q}},
		{"id":"ask","type":"approval","data":{"title":"Please <b>sign in</b>","session_id":"{{nodes.open.session_id}}"}},
		{"id":"file","type":"evaluate","data":{"session_id":"{{nodes.open.session_id}}","script":"const a = document.createElement('a'); a.href = 'data:text/plain,hello'; a.download = 'invoice.txt'; document.body.append(a); a.click(); await new Promise((r) => setTimeout(r, 500)); return document.title"}}],
		"edges":[{"source":"start","target":"open"},{"source":"open","target":"ask"},{"source":"ask","target":"file","sourceHandle":"approved"}]}`, site+"/")
}

// TestConsoleTakeover takes over a session that a workflow asks for, from Home, types
// into its page, and returns control with a note; the workflow continues, and its file is
// there.
func TestConsoleTakeover(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	flow := ts.must(t, 201, "POST", flowBase, takeoverFlow(ts.site))["id"].(string)
	for i, width := range []int{1280, 375} {
		execution := ts.must(
			t, 200, "POST", flowBase+"/execute",
			`{"workflow_id":`+quoted(flow)+`}`,
		)["execution_id"].(string)
		p := ts.openConsole(t, width)
		p.waitFor(hasText("Please <b>sign in</b>"))
		w := p.begin(11, "Takeover from Home, hand back, the file is there", 6)
		p.eval(`document.querySelector("#main .page").id = "left"`)
		p.clickOn(`[...document.querySelectorAll(".waiting-row a")].find((a) => a.textContent === "Take over")`)
		p.waitFor(`!document.getElementById("left") && ` + hasText("Waiting for a person.") +
			` && document.querySelector("button[title^='A takeover is already pending']:disabled")`)
		p.click("Take control")
		p.waitFor(hasText("You are in control.") + ` && document.getElementById("screen")?.dataset.frames > 0`)
		p.checkPage("a takeover")
		p.clickScreen(100, 100, 1280, 720)
		for _, kind := range []string{"keyDown", "keyUp"} {
			p.cdp("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "x", "code": "KeyX", "text": "x"})
		}
		p.waitFor(`document.querySelector(".tab.active .name").textContent === "name:x"`)
		p.set("A note for the agent", "Signed in as Ada")
		w.clicked()
		p.click("Hand back")
		p.waitFor(`document.querySelector(".session-head .badge")?.textContent === "closed"`)
		// which ends after its session has closed
		p.waitForCount("/workflows/executions?status=complete&workflow_id="+flow, "executions", i+1)
		answers := ts.must(t, 200, "GET", flowBase+"/executions/"+execution+"/nodes/ask?part=output", "")
		if got := fmt.Sprint(answers); !strings.Contains(got, "Signed in as Ada") {
			t.Errorf("the note is not in %s", got)
		}
		p.click("Files")
		p.waitFor(hasText("invoice.txt"))
		w.end(t)
		p.click("Actions")
		p.waitFor(hasText("navigate") + ` && ` + hasText("evaluate"))
		p.checkPage("a session that has ended")
	}
}

// TestConsoleBrowserForViewers checks that a viewer sees the picture, and no controls.
func TestConsoleBrowserForViewers(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	page := ts.openLoaded(t, "/evil")
	ts.addGoal(t, page.ID(), hostile)
	p := ts.openConsole(t, 1280)
	key := ts.must(
		t, 201, "POST", "/api/keys",
		`{"name":"reader","role":"viewer","agents":["default"]}`,
	)["key"].(string)
	p.signIn(key)
	p.open(
		"browser/"+page.ID(),
		`document.getElementById("screen")?.dataset.frames > 0 && document.querySelector(".tab.active `+
			`.name")?.textContent.startsWith("<img")`,
	)
	if offered := p.eval(`[...document.querySelectorAll("#new, #back, #refresh, .shut, .session-head ` +
		`.button:not(.only), #address:not([readonly])")].length`); offered != 0.0 {
		t.Errorf("a viewer sees %v controls", offered)
	}
	p.click("Console")
	p.waitFor(hasText("<b>bold</b>"))
	p.checkPage("the console of a session")
	p.openGoal(hostile)
	if offered := p.eval(`[...document.querySelectorAll(".session-goals .button")].length`); offered != 0.0 {
		t.Errorf("a viewer sees %v controls of a goal", offered)
	}
}

// TestConsoleInstructions has a model find, do and read things on the page that a person
// watches.
func TestConsoleInstructions(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	m := apitest.NewModelServer(t, func(_ int, asked map[string]any) string {
		return `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":` +
			quoted(apitest.SayOfShop(fmt.Sprint(asked["messages"]))) + `}}]}`
	})
	page := ts.openLoaded(t, "/")
	p := ts.openConsole(t, 375)
	p.open("browser/"+page.ID(), `document.getElementById("screen")?.dataset.frames > 0`)
	p.click("Instruct")
	ask := func(kind, text string) {
		p.clickOn(`[...document.querySelectorAll(".session-instruct .segments ` +
			`button")].find((b) => b.textContent === "` +
			kind + `")`)
		p.set("Instruction", text)
		p.clickOn(`document.querySelector(".session-instruct [type=submit]:enabled")`)
	}
	ask("Act", "Write the name.")
	p.waitFor(hasText("none is set"))
	p.checkPage("instructions without a model")
	ts.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"ollama","llm_model":"m","llm_base_url":"`+m.URL+`/v1"}`,
	)
	p.clickOn(
		`[...document.querySelectorAll(".session-instruct .segments button")].find((b) => b.textContent === "Act")`,
	)
	p.typeInto(`document.querySelector("[aria-label=Instruction]")`, "Buy a boat.")
	p.pressKeys("Enter")
	p.waitFor(hasText("There is no boat"))
	ask("Observe", "Where is the name?")
	p.waitFor(`document.querySelectorAll(".session-instruct .steps .button").length > 0`)
	p.checkPage("what a page offers")
	p.clickOn(
		`[...document.querySelectorAll(".session-instruct .segments button")].find((b) => b.textContent === "Extract")`,
	)
	p.waitFor(`document.querySelector(".session-instruct details")?.textContent.includes("Schema")`)
	p.clickOn(`document.querySelector(".session-instruct summary")`)
	p.fill("Schema", `{"type":"object","properties":{"name":{"type":"string"}}}`)
	ask("Extract", "What is the name?")
	p.waitFor(`document.querySelector(".session-instruct .result")`)
	p.checkPage("what was read from a page")
	p.click("Actions")
	p.waitFor(`!document.querySelector(".session-instruct")`)
	p.click("Instruct")
	p.waitFor(`document.querySelector(".session-instruct .result")`)
}

// addGoal stores a goal that a model pursues in a session, with a step that succeeded and
// one that failed, and text everywhere.
func (ts *testServer) addGoal(t *testing.T, session, text string) {
	t.Helper()
	db := ts.Folder.Default()
	b := agent.Browse{
		ID:        agent.NewID(agent.KindBrowse),
		SessionID: session,
		Status:    agent.BrowseRunning,
		Goal:      text,
		Hosts:     []string{"shop.example"},
		Variables: []string{"password"},
		MaxSteps:  agent.DefaultBrowseSteps,
		MaxTokens: agent.DefaultBrowseTokens,
		CreatedAt: agent.Now(),
	}
	if err := db.CreateBrowse(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	b.StepCount = 2
	if err := db.UpdateBrowse(
		t.Context(),
		b,
		agent.BrowseStep{
			Step:        1,
			Action:      "type",
			Selector:    text,
			Text:        text,
			Description: text,
			URL:         "https://shop.example/" + text,
			CreatedAt:   agent.Now(),
		},
		agent.BrowseStep{
			Step:        2,
			Action:      "click",
			Selector:    text,
			Description: text,
			Error:       text,
			URL:         "https://shop.example/",
			CreatedAt:   agent.Now(),
		},
	); err != nil {
		t.Fatal(err)
	}
	b.Status, b.Reason, b.Result, b.EndedAt = agent.BrowseStuck, text, map[string]any{text: text}, agent.Now()
	if err := db.UpdateBrowse(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// openGoal opens the goals of the session that is shown, and waits for one.
func (p *consolePage) openGoal(goal string) {
	p.t.Helper()
	p.click("Goal")
	p.waitFor(`document.querySelector(".session-goals .goal")?.textContent === ` + quoted(goal) +
		` && document.querySelectorAll(".session-goals .steps li").length === 2 && ` +
		`document.querySelector(".session-goals .result")`)
	p.checkPage("the goal of a session")
}

// TestConsoleShowsTheAddressForScripts checks that admins see the address for scripts,
// and viewers do not.
func TestConsoleShowsTheAddressForScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	made := ts.must(t, 201, "POST", "/api/agents/default/browser", `{"cdp":true}`)
	id, address := made["id"].(string), made["cdp_url"].(string)
	p := ts.openConsole(t, 375)
	p.open("browser/"+id, `document.querySelector(".session-side .tabs")`)
	p.click("Code")
	p.waitFor(`document.querySelector(".session-connect input").value === ` + quoted(address) + ` && ` +
		hasText("connectOverCDP"))
	p.click("Puppeteer")
	p.waitFor(hasText("browserWSEndpoint"))
	p.checkPage("the address for scripts")
	key := ts.must(
		t, 201, "POST", "/api/keys",
		`{"name":"reader","role":"viewer","agents":["default"]}`,
	)["key"].(string)
	p.eval(`sessionStorage.setItem("satchel.key", ` + quoted(key) + `)`)
	p.reload()
	p.waitFor(`document.querySelector(".session-side .tabs")?.textContent.includes("About")`)
	if shown := p.eval(`document.querySelector(".session-side").textContent.includes("Code") || ` +
		`document.body.innerHTML.includes(` +
		quoted(address[len(address)-26:]) + `)`); shown != false {
		t.Error("a viewer sees the address for scripts")
	}
}

// TestConsolePageNotLoaded checks that the reason why a page could not be loaded is said in
// words, and that no address of Chromium's own page is shown.
func TestConsolePageNotLoaded(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	p := ts.openConsole(t, 1280)
	p.open("browser", `document.querySelector("#main h1")`)
	p.click("Open session")
	p.fill("Address", "https://127.0.0.1:1/")
	p.click("Open")
	p.waitFor(`document.querySelector(".toasts").textContent.includes("The page could not be loaded: ` +
		`browsers don't open this port.")`)
	p.waitFor(`document.getElementById("screen")?.dataset.frames > 0 && document.querySelector("#main .tab .name") ` +
		`&& document.getElementById("address").value === "" && !document.body.innerHTML.includes("chrome-error")`)
	p.checkPage("a page that could not be loaded")
}
