package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// fakeTelegram knows one bot, with the token 1:right, and one chat, 42.
func fakeTelegram(t *testing.T) string {
	t.Helper()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !strings.HasPrefix(r.URL.Path, "/bot1:right/"):
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"ok":false,"description":"Unauthorized"}`)
		case strings.HasSuffix(r.URL.Path, "/getMe"):
			fmt.Fprintf(w, `{"ok":true,"result":{"id":1,"is_bot":true,"username":"bakery_bot","first_name":%s}}`, quoted(hostile))
		case strings.HasSuffix(r.URL.Path, "/sendMessage") && strings.Contains(string(body), `"chat_id":42`):
			fmt.Fprint(w, `{"ok":true,"result":{"message_id":7,"chat":{"id":42}}}`)
		default:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"ok":false,"description":"Bad Request: chat not found"}`)
		}
	}))
	t.Cleanup(ts.Close)
	return ts.URL
}

// open follows a link of the page whose address ends so.
func (s *stranger) open(end string) {
	s.t.Helper()
	s.until(`(window.link = document.querySelector("#main a[href$='" + ` + quoted(end) + ` + "']"))`)
	s.value(`void link.click()`)
}

// set writes into the field that is called so for screen readers, or ticks it.
func (s *stranger) set(label, value string) {
	s.t.Helper()
	s.until(`(() => {
		const near = document.querySelector("dialog[open]") ?? document.getElementById("main");
		const field = [...near.querySelectorAll("input, select, textarea")].find((f) => f.ariaLabel === ` + quoted(label) + ` && !f.disabled);
		if (field.type === "checkbox") { field.click(); return true; }
		field.value = ` + quoted(value) + `;
		for (const event of ["input", "change"]) field.dispatchEvent(new Event(event, { bubbles: true }));
		return field.value === ` + quoted(value) + `;
	})()`)
}

// wrong is an expression: a field is marked, and says why.
func wrong(label, why string) string {
	return `[...document.querySelectorAll(".field.wrong")].some((f) => f.querySelector("label, legend, .label").textContent === ` + quoted(label) + ` && f.querySelector(".issue").textContent.includes(` + quoted(why) + `))`
}

// badge is an expression: the head of the page has a badge.
func badge(text string) string {
	return `[...document.querySelectorAll("#main .page-head .badge")].some((b) => b.textContent === ` + quoted(text) + `)`
}

// secretShown is an expression: a secret is in the page.
func secretShown(secret string) string {
	return `(document.documentElement.outerHTML.includes(` + quoted(secret) + `) || [...document.querySelectorAll("input, textarea")].some((i) => i.value.includes(` + quoted(secret) + `)))`
}

// connects makes a channel whose address and token are wrong at first, sends a
// test message over it, and deletes it.
func connects(t *testing.T, th *theatre, s *stranger) {
	far := fakeTelegram(t)
	s.goTo("channels", says("No channels yet"))
	s.open("channels/new/telegram")
	s.fill("Name", "Bot", "Bot token", "1:wrong-token", "Address of the platform's API", "ftp:x")
	s.press("Connect")
	s.until(wrong("Address of the platform's API", "must be"))
	if kind := s.value(`[...document.querySelectorAll("#main label")].find((l) => l.textContent === "Bot token").control.type`); kind != "password" {
		t.Errorf("the token is typed into a field of type %v", kind)
	}
	s.fill("Address of the platform's API", far)
	s.press("Connect")
	s.until(wrong("Bot token", "bot token (401)"))
	s.unharmed("a refused token")
	s.fill("Bot token", "1:right")
	s.press("Connect")
	s.until(`location.hash.includes("channels/gateway-") && ` + badge("active") + ` && ` + says("long polling"))
	if made := th.must(t, 200, "GET", "/api/agents/default/gateways", "")["gateways"].([]any); len(made) != 1 {
		t.Errorf("%d channels were made", len(made))
	}
	s.fill("To", "43")
	s.press("Send")
	s.until(says("Telegram has no such chat"))
	s.fill("To", "42")
	s.press("Send")
	s.until(says("Sent in"))
	s.choose("More", "Make it the default")
	s.until(badge("default"))
	s.press("Verify")
	s.until(says("bakery_bot") + ` && ` + says(hostile))
	s.press("Replace")
	s.fill("Bot token", "1:stale-token")
	s.press("Save")
	s.until(wrong("Bot token", "bot token (401)") + ` && ` + badge("error"))
	s.unharmed("a channel")
	s.goTo("home", says("What can"))
	s.goTo("channels", says("bot token (401)"))
	if shown := s.value(secretShown("1:")); shown != false {
		t.Error("a token is shown again")
	}
	s.value(`void document.querySelector("#main .source-row a").click()`)
	s.choose("More", "Delete")
	s.press("Delete")
	s.until(says("No channels yet"))
}

// subscribes makes a webhook whose target fails, and delivers again when it
// works.
func subscribes(t *testing.T, _ *theatre, s *stranger) {
	var works atomic.Bool
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !works.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(ts.Close)
	s.goTo("webhooks", says("No webhooks yet"))
	s.press("New webhook")
	s.fill("Address", "nowhere")
	s.press("Add")
	s.until(`document.querySelector("dialog .issue").textContent === "Choose at least one event."`)
	s.set("All of Workflows", "")
	s.press("Add")
	s.until(wrong("Address", "must be"))
	s.fill("Address", ts.URL)
	s.press("Add")
	s.until(`document.querySelector("dialog .copy-field input").value.startsWith("whsec_")`)
	s.value(`document.querySelector("dialog[open]").dispatchEvent(new Event("cancel", { cancelable: true }))`) // Escape does not lose it
	s.press("I have it")
	s.until(`location.hash.includes("webhooks/webhook-") && ` + badge("active") + ` && ` + says("workflow.*"))
	s.press("Send a test")
	s.until(says("It was not delivered") + ` && document.querySelector("td .badge.bad")`)
	works.Store(true)
	s.press("Deliver again")
	s.until(`document.querySelector("td .badge.good")`) // by the stream
	s.value(`void document.querySelector("td button.link").click()`)
	s.until(`document.querySelector(".drawer") && ` + says("What is posted") + ` && document.querySelector(".drawer .json")?.textContent.includes("webhook.test")`)
	s.unharmed("a delivery")
	s.value(`void document.querySelector(".drawer [aria-label=Close]").click()`)
	s.press("Edit")
	s.set("All of Contacts", "")
	s.press("Save")
	s.until(says("workflow.*, contact.*"))
	s.choose("More", "New secret")
	s.press("Make it")
	s.until(`document.querySelector("dialog .copy-field input")?.value.startsWith("whsec_")`)
	s.press("I have it")
	s.choose("More", "Switch off")
	s.until(badge("off") + ` && ` + says("nothing is delivered"))
	if shown := s.value(secretShown("whsec_")); shown != false {
		t.Error("the secret is shown again")
	}
	s.unharmed("a webhook")
}

// triesTools makes a tool by its form, tries it, and switches it off.
func triesTools(t *testing.T, _ *theatre, s *stranger) {
	s.goTo("tools", says("No tools yet"))
	s.open("tools/new?type=function")
	s.press("Add an argument")
	s.set("Name of argument 1", "a")
	s.set("Type of argument 1", "number")
	s.press("Add an argument")
	s.set("Name of argument 2", "b")
	s.set("Type of argument 2", "number")
	s.fill("Name", "a b", "Description", hostile)
	s.press("Make it")
	s.until(wrong("Name", "must be 1 to 64 letters"))
	s.fill("Name", "add")
	s.press("Make it")
	s.until(`location.hash.includes("tools/tool-") && location.hash.includes("try=1")`)
	s.fill("a", "40", "b", "2")
	s.press("Call it")
	s.until(says("It answered in") + ` && document.querySelector(".outcome .json").textContent.includes("sum: 42")`)
	s.unharmed("a tool that was tried")
	s.press("As JSON")
	s.fill("Arguments", `{"a":"x"}`)
	s.press("Call it")
	s.until(wrong("Arguments", "arguments"))
	s.value(`void document.querySelector("#main .page-head [role=switch]").click()`)
	s.until(badge("off") + ` && [...document.querySelectorAll("#main button")].find((b) => b.textContent === "Call it").disabled`)
	s.press("Definition")
	s.press("As JSON Schema")
	s.until(`document.querySelector("#main .code-editor")`)
	s.unharmed("a tool")
	s.goTo("tools", says("add"))
	s.unharmed("tools")
}

// registers adds an MCP server with a wrong token, mends it, tries one of its
// tools and gives it to the agent.
func registers(t *testing.T, th *theatre, s *stranger) {
	server := peer(t, "sesame-7")
	s.goTo("mcp", says("No MCP servers yet")+" && "+says("This agent is a server too"))
	s.press("Add a server")
	s.fill("Name", "Tickets", "Address", server.URL, "Credentials", "bearer")
	s.fill("Token", "wrong-8")
	s.press("Add")
	s.until(`location.hash.includes("mcp/mcp-") && ` + badge("error") + ` && ` + says("(HTTP 401)"))
	s.unharmed("a server that fails")
	s.press("Edit")
	s.press("Replace")
	s.fill("Credentials", "bearer", "Token", "sesame-7")
	s.press("Save")
	s.until(badge("connected") + ` && ` + says("Opens a ticket"))
	s.press("Try")
	s.fill("title", hostile)
	s.press("Call it")
	s.until(says("It answered in"))
	s.press("Let the agent call it")
	s.until(says("The agent may call it"))
	s.press("Reconnect")
	s.until(`document.querySelector(".toasts").textContent.includes("It answers")`)
	if shown := s.value(secretShown("sesame-7")); shown != false {
		t.Error("the token is shown again")
	}
	s.unharmed("a server")
	if tools := th.must(t, 200, "GET", "/api/agents/default/tools?search=open", "")["tools"].([]any); len(tools) != 1 || at(tools[0], "type") != "mcp" {
		t.Errorf("the agent has %v", tools)
	}
}

// follows watches events come in, opens one, and saves all of them.
func follows(t *testing.T, th *theatre, s *stranger) {
	made := func(name string) {
		t.Helper()
		th.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":`+quoted(name)+`}`)
	}
	made("Before")
	s.goTo("activity/events?type=contact.*", `document.querySelector("tbody tr")?.textContent.includes("Before")`)
	made(hostile)
	s.until(`document.querySelector("tbody tr").textContent.includes(` + quoted(hostile) + `)`)
	s.value(`void document.querySelector("td button.link").click()`)
	s.until(`document.querySelector(".drawer h2").textContent === "contact.created" && [...document.querySelectorAll(".drawer a")].some((a) => a.hash.includes("contacts/contact-"))`)
	s.unharmed("an event")
	s.ask("Page.reload", nil) // it has an address
	s.until(`window.faults && document.querySelector(".drawer h2")?.textContent === "contact.created" && location.hash.includes("type=contact")`)
	s.value(`void document.querySelector(".drawer [aria-label=Close]").click()`)
	s.value(`(() => { HTMLAnchorElement.prototype.click = function () {}; const real = URL.createObjectURL; URL.createObjectURL = (blob) => { void blob.text().then((text) => { window.saved = text; }); return real.call(URL, blob); }; })()`)
	s.choose("Export", "As CSV")
	s.until(`window.saved?.startsWith("seq,id,type,data,created_at") && saved.includes("contact.created") && saved.includes("Before")`)
	s.choose("Export", "As JSON")
	s.until(`saved.startsWith("[") && JSON.parse(saved).every((e) => e.type.startsWith("contact."))`)
	s.press("Following")
	s.until(`location.hash.includes("follow=no")`)
	s.goTo("activity/log?level=info", `document.querySelector("tbody tr")?.textContent.includes("contact created")`)
	made("Logged")
	s.value(`void document.querySelector("td button.link").click()`)
	s.until(`document.querySelector(".drawer .json")`)
	s.unharmed("a log entry")
	s.value(`void (location.hash = "#/agents/default/logs")`) // an address of before
	s.until(`location.hash === "#/agents/default/activity/log"`)
	s.value(`void (location.hash = "#/agents/default/gateways")`)
	s.until(`location.hash === "#/agents/default/channels"`)
}

// TestConsoleConnections goes through the pages of connections and activity on
// a phone.
func TestConsoleConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th := newTheatre(t)
	s := th.visit(t, 375)
	for _, walk := range []struct {
		name string
		walk func(*testing.T, *theatre, *stranger)
	}{{"channel", connects}, {"webhook", subscribes}, {"tool", triesTools}, {"mcp", registers}, {"events", follows}} {
		t.Run(walk.name, func(t *testing.T) {
			s.t = t
			walk.walk(t, th, s)
		})
	}
	s.t = t
}

// TestConsoleConnectionsForViewers shows a viewer connections with credentials:
// none of them is shown, and nothing can be changed.
func TestConsoleConnectionsForViewers(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	th, far := newTheatre(t), fakeTelegram(t)
	made := func(path, body string) map[string]any {
		t.Helper()
		return th.must(t, 201, "POST", "/api/agents/default"+path, body)
	}
	secrets := []string{"secret-token", "sesame-7"}
	bot := made("/gateways", `{"type":"telegram","name":"Bot","config":{"botToken":"1:secret-token","apiBaseUrl":"`+far+`"}}`)["id"].(string)
	hook := made("/webhooks", `{"url":"`+far+`","events":["*"]}`)
	secrets = append(secrets, hook["secret"].(string))
	tool := made("/tools", `{"name":"orders","type":"api","config":{"url":"`+far+`/orders","auth":{"type":"bearer","token":"secret-token"},"headers":{"X-Api-Key":"secret-token"}}}`)["id"].(string)
	made("/contacts", `{"name":"Ada"}`)
	server := made("/mcp", `{"name":"Tickets","url":"`+peer(t, "sesame-7").URL+`","auth":{"type":"bearer","token":"sesame-7"}}`)["id"].(string)
	th.must(t, 200, "POST", "/api/agents/default/webhooks/"+hook["id"].(string)+"/test", "")
	s := th.visit(t, 1280)
	key := th.must(t, 201, "POST", "/api/keys", `{"name":"reader","role":"viewer","agents":["default"]}`)["key"].(string)
	s.value(`sessionStorage.setItem("satchel.key", ` + quoted(key) + `)`)
	s.ask("Page.reload", nil)
	s.until(`window.faults && document.querySelector("#main h1")?.textContent === "Home" && !document.querySelector(".rail-foot .badge")`)
	for _, p := range [][2]string{
		{"channels", says("Bot")}, {"channels/" + bot, says("Webhook address")}, {"webhooks", says("Every event")}, {"webhooks/" + hook["id"].(string), `document.querySelector("td .badge")`},
		{"tools/" + tool, says("Arguments")}, {"tools", says("orders")}, {"tools/" + tool + "?try=1", says("needs the role admin")}, {"mcp", says("Tickets")}, {"mcp/" + server, says("Opens a ticket")},
		{"activity", says("Nothing was executed yet")}, {"activity/events", `document.querySelector("td")`}, {"activity/deliveries", `document.querySelector("td")`}, {"activity/log", `document.querySelector("td")`},
	} {
		s.goTo(p[0], p[1])
		s.offersNothing(p[0])
		if slices.ContainsFunc(secrets, func(secret string) bool { return s.value(secretShown(secret)) != false }) {
			t.Errorf("%s shows a secret", p[0])
		}
	}
}

// offersNothing holds a page against what a viewer must not find there.
func (s *stranger) offersNothing(page string) {
	s.t.Helper()
	offered := s.value(`[...document.querySelectorAll("#main button:not(:disabled)")].map((b) => b.textContent).filter((name) => name && !/^(Search|Refresh|Back|Next|Show|Export.*|Columns|Today|Month|Week|List|Tools|Sources|Conversations|Workflows|Executions|Problems 0|Versions|JSON|Copy|Following|Follow|Reconnect|Definition|Try|As JSON Schema|As rows|[▾▸].*|[a-z]+\.[a-z.]+|.* (created|tested|registered|rotated|updated))$/.test(name)).join()`)
	typed := s.value(`[...document.querySelectorAll("#main form:not([role=search]) :is(input, select, textarea), #main [role=switch]")].filter((f) => !f.disabled && !f.readOnly && f.checkVisibility()).length`)
	if offered != "" || typed != 0.0 {
		s.t.Errorf("%s offers a viewer %v and %v fields", page, offered, typed)
	}
}
