package e2e

import (
	"fmt"
	"strings"
	"testing"

	"satchel/httpapi/apitest"
)

// talkIn creates a conversation with a contact who has sent a message.
func (ts *testServer) talkIn(t *testing.T, gateway, name, said string) string {
	t.Helper()
	return ts.must(
		t, 201, "POST", gateway+"/simulate",
		`{"from":`+quoted(name)+`,"name":`+quoted(name)+`,"text":`+quoted(said)+`}`,
	)["conversation_id"].(string)
}

// webhookChannel creates a verified channel, and returns its address.
func (ts *testServer) webhookChannel(t *testing.T) string {
	t.Helper()
	const base = "/api/agents/default"
	gateway := base + "/gateways/" +
		ts.must(
			t, 201, "POST", base+"/gateways",
			`{"type":"webhook","name":"Shop","config":{"secret":"0123456789abcdef"}}`,
		)["id"].(string)
	ts.must(t, 200, "POST", gateway+"/verify", "")
	ts.must(t, 200, "PUT", base+"/settings", `{"auto_reply":false}`)
	return gateway
}

// slowMessages holds back requests that send a message until held() is called, and can
// make them fail.
const slowMessages = `{
	const real = window.fetch;
	const waiting = [];
	window.held = () => waiting.splice(0).forEach((go) => go());
	window.sent = [];
	window.cut = false;
	window.fetch = async (to, how) => {
		if (how?.method !== "POST" || !/\/messages$/.test(String(to).split("?")[0])) return real(to, how);
		sent.push(JSON.parse(how.body).content);
		await new Promise((go) => waiting.push(go));
		if (cut) throw new TypeError("Failed to fetch");
		return real(to, how);
	};
}`

// TestConsoleAnswersInARow answers conversations by the keyboard faster than the server
// accepts them: later keys go to the right conversation, nothing is sent twice or lost,
// and notices do not pile up over the conversation.
func TestConsoleAnswersInARow(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	gateway := ts.webhookChannel(t)
	talks := map[string]string{}
	for _, name := range []string{"Ada", "Bob", "Eve"} {
		talks[name] = ts.talkIn(t, gateway, name, "Hello from "+name)
	}
	p := ts.openConsole(t, 1280)
	p.eval(slowMessages)
	shows := func(name string) string {
		return `document.querySelector(".inbox-thread h2 bdi")?.textContent === ` + quoted(name) +
			` && document.querySelector(".inbox-composer textarea")`
	}
	const field = `document.querySelector(".inbox-composer textarea")`
	p.open("inbox/"+talks["Eve"], shows("Eve"))
	for i, name := range []string{"Eve", "Bob"} {
		p.pressKeys("r")
		p.waitFor(`document.activeElement === ` + field)
		p.typeText("To " + name)
		p.pressKeys("Control+Enter", "Control+Enter")
		p.waitFor(`sent.length === ` + fmt.Sprint(i+1) + ` && ` + field + `.value === ""`)
		p.pressKeys("Escape", "e")
		p.waitFor(shows([]string{"Bob", "Ada"}[i]))
		p.eval(`held()`)
		p.waitFor(`document.querySelector(".toasts").textContent.includes("Conversation with ` + name + ` resolved")`)
		p.waitForCount("/conversations/"+talks[name]+"/messages", "messages", 2)
		if got := p.eval(`document.activeElement === ` + field + ` || ` + field + `.value`); got != "" {
			t.Errorf("after answering %s the field has %v", name, got)
		}
	}
	if n := p.eval(`document.querySelectorAll(".toast").length`).(float64); n > 1 { // it passes after a while
		t.Errorf("%v notices are shown", n)
	}
	p.pressKeys("r")
	p.waitFor(`document.activeElement === ` + field)
	p.typeText("First")
	p.pressKeys("Control+Enter")
	p.typeText("Second")
	p.pressKeys("Control+Enter")
	p.typeText("Third")
	p.eval(`held()`)
	p.waitFor(`sent.length === 4`)
	p.eval(`held()`)
	p.waitFor(`[...document.querySelectorAll(".inbox-said.assistant .inbox-text")].map((e) => ` +
		`e.textContent).join() === "First,Second" && ` + field + `.value === "Third"`)
	p.pressKeys("Control+Enter")
	p.waitFor(`sent.length === 5`)
	p.typeText("Fourth")
	p.eval(`cut = true; held()`)
	p.waitFor(field + `.value === "Third\n\nFourth"`)
}

// TestConsoleDraftsAnswers has the model draft an answer in the inbox: it receives
// neither notes nor tools, and nothing is sent before a person does so.
func TestConsoleDraftsAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	const base = "/api/agents/default"
	model := apitest.NewModelServer(t, func(int, map[string]any) string {
		return "**Gladly**:\n- within two days [1]\n- with the `receipt`"
	})
	talk := ts.talkIn(t, ts.webhookChannel(t), "Ada", "May I return bread?")
	ts.must(t, 201, "POST", base+"/conversations/"+talk+"/messages", `{"role":"note","content":"a secret note"}`)
	ts.must(
		t, 201, "POST", base+"/tools",
		`{"name":"order_status","description":"Looks an order up","type":"function","config":{"code":"return {}"}}`,
	)
	p := ts.openConsole(t, 375)
	const field = `document.querySelector(".inbox-composer textarea")`
	p.open("inbox/"+talk, field)
	p.click("AI draft")
	p.waitFor(`document.querySelector(".toast.bad")?.textContent.includes("llm_provider") || ` +
		`document.querySelector(".toast.bad")?.textContent.includes("model")`)
	ts.must(
		t, 200, "PUT", base+"/settings",
		`{"llm_provider":"ollama","llm_model":"m","llm_base_url":"`+model.URL+`/v1"}`,
	)
	p.eval(
		`{ const f = ` + field + `; f.value = "Hello Ada,"; f.dispatchEvent(new Event("input", { bubbles: true })); }`,
	)
	p.click("AI draft")
	p.waitFor(field +
		`.value === "Hello Ada,\n\nGladly:\n- within two days\n- with the receipt" && document.activeElement === ` +
		field)
	asked := fmt.Sprint(model.Requests)
	if !strings.Contains(asked, "May I return bread?") ||
		strings.Contains(asked, "a secret note") ||
		strings.Contains(asked, "order_status") {
		t.Errorf("the model received %s", asked)
	}
	p.waitForCount("/conversations/"+talk+"/messages", "messages", 2)
	p.checkPage("a drafted answer")
}

// TestConsoleMenusStayInTheirPane opens menus with long entries near the left and the
// right edge of their panes.
func TestConsoleMenusStayInTheirPane(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	ts.must(
		t,
		201,
		"POST",
		"/api/agents/default/admins",
		`{"email":"grete.wachowiak-brandenburger@bakery-in-market-street.example.com","role":"admin"}`,
	)
	talk := ts.talkIn(t, ts.webhookChannel(t), "Ada", "Hello")
	for _, width := range []int{1280, 375} {
		p := ts.openConsole(t, width)
		for _, menu := range []struct{ page, there, button, frame string }{
			{
				"inbox/" + talk,
				`document.querySelector(".inbox-composer")`,
				".inbox-thread .menu > button",
				".inbox-thread",
			},
			{"inbox", `document.querySelector(".inbox-entries input")`, ".inbox-bulk .menu > button", ".inbox-list"},
		} {
			p.open(menu.page, menu.there)
			if menu.page == "inbox" {
				p.clickOn(`document.querySelector(".inbox-entries input")`)
			}
			p.clickOn(`document.querySelector(` + quoted(menu.button) + `)`)
			p.waitFor(`[...document.querySelectorAll("[role=menuitem]")].some((b) => b.textContent.includes("grete"))`)
			outside := p.eval(`(() => {
				const list = document.querySelector(".menu-list"), [at, frame] = [list, list.closest(` + quoted(menu.frame) + `)].map((e) => e.getBoundingClientRect());
				return [at.left < frame.left, at.right > frame.right, list.scrollWidth > list.clientWidth].join();
			})()`)
			if outside != "false,false,false" {
				t.Errorf("%s at %d: the menu is outside of its pane: %v", menu.page, width, outside)
			}
			p.open("home", hasText("What can")) // the list stays when a record is opened
		}
	}
}

// TestConsoleInboxZero opens the inbox when everything is resolved, which looks different
// from an inbox that never had a conversation.
func TestConsoleInboxZero(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	talk := ts.talkIn(t, ts.webhookChannel(t), "Ada", "Hello")
	ts.must(t, 200, "PUT", "/api/agents/default/conversations/"+talk, `{"status":"resolved"}`)
	p := ts.openConsole(t, 375)
	p.open("inbox", hasText("No open conversations")+` && !`+hasText("Connect a channel"))
	p.click("All 1")
	p.waitFor(hasText("Ada"))
}

// TestConsoleInboxPresence checks that a person who types in a conversation is shown to
// those who have it open, until the text is removed.
func TestConsoleInboxPresence(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	talk := ts.talkIn(t, ts.webhookChannel(t), "Ada", "Hello")
	ada, bob := ts.openConsole(t, 1280), ts.openConsole(t, 1280)
	const field = `document.querySelector(".inbox-composer textarea")`
	ada.open("inbox/"+talk, field)
	bob.open("inbox/"+talk, field)
	shown := func(text string) string {
		return `(document.querySelector(".inbox-composer .others")?.textContent ?? "").trim() === ` + quoted(text)
	}
	ada.waitFor(shown("Another tab has it open"))
	write := func(text string) {
		bob.eval(`{ const f = ` + field + `; f.value = ` + quoted(text) +
			`; f.dispatchEvent(new Event("input", { bubbles: true })); }`)
	}
	write("Good morning")
	ada.waitFor(shown("Another tab is writing"))
	ada.checkPage("a conversation in which another person types")
	write("")
	ada.waitFor(shown("Another tab has it open"))
	bob.eval(`location.hash = "#/agents/default/inbox"`)
	ada.waitFor(shown(""))
}
