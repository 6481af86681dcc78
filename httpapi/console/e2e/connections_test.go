package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"satchel/httpapi/apitest"
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
			fmt.Fprintf(
				w,
				`{"ok":true,"result":{"id":1,"is_bot":true,"username":"bakery_bot","first_name":%s}}`,
				quoted(hostile),
			)
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

// follow clicks the link whose address ends with end.
func (p *consolePage) follow(end string) {
	p.t.Helper()
	p.clickOn(`document.querySelector("#main a[href$='" + ` + quoted(end) + ` + "']")`)
}

// set sets the field with an accessible name, or checks it.
func (p *consolePage) set(label, value string) {
	p.t.Helper()
	p.waitFor(`(() => {
		const near = document.querySelector("dialog[open]") ?? document.getElementById("main");
		const field = [...near.querySelectorAll("input, select, textarea")].find((f) => f.ariaLabel === ` + quoted(label) + ` && !f.disabled);
		if (field.type === "checkbox") { field.click(); return true; }
		field.value = ` + quoted(value) + `;
		for (const event of ["input", "change"]) field.dispatchEvent(new Event(event, { bubbles: true }));
		return field.value === ` + quoted(value) + `;
	})()`)
}

// hasFieldError returns an expression that is true if a field shows an error.
func hasFieldError(label, why string) string {
	return `[...document.querySelectorAll(".field.wrong")].some((f) => f.querySelector("label, legend, ` +
		`.label").textContent === ` + quoted(label) + ` && f.querySelector(".issue").textContent.includes(` +
		quoted(why) + `))`
}

// hasBadge returns an expression that is true if the page's head has a badge.
func hasBadge(text string) string {
	return `[...document.querySelectorAll("#main .page-head .badge")].some((b) => b.textContent === ` +
		quoted(text) + `)`
}

// hasSecret returns an expression that is true if the page contains a secret.
func hasSecret(secret string) string {
	return `(document.documentElement.outerHTML.includes(` + quoted(secret) +
		`) || [...document.querySelectorAll("input, textarea")].some((i) => i.value.includes(` + quoted(secret) + `)))`
}

// walkChannels creates a channel with a wrong address and token, corrects them,
// sends a test message, and deletes it.
func walkChannels(t *testing.T, ts *testServer, p *consolePage) {
	far := fakeTelegram(t)
	p.open("channels", hasText("No channels yet"))
	p.follow("channels/new/telegram")
	p.fill("Name", "Bot", "Bot token", "1:wrong-token", "Address of the platform's API", "ftp:x")
	p.click("Connect")
	p.waitFor(hasFieldError("Address of the platform's API", "must be"))
	if kind := p.eval(
		`[...document.querySelectorAll("#main label")].find((l) => l.textContent === "Bot token").control.type`,
	); kind != "password" {
		t.Errorf("the token is typed into a field of type %v", kind)
	}
	p.fill("Address of the platform's API", far)
	p.click("Connect")
	p.waitFor(hasFieldError("Bot token", "bot token (401)"))
	p.checkPage("a refused token")
	p.fill("Bot token", "1:right")
	p.click("Connect")
	p.waitFor(`location.hash.includes("channels/gateway-") && ` + hasBadge("active") + ` && ` + hasText("long polling"))
	if made := ts.must(t, 200, "GET", "/api/agents/default/gateways", "")["gateways"].([]any); len(made) != 1 {
		t.Errorf("%d channels were created", len(made))
	}
	p.fill("To", "43")
	p.click("Send")
	p.waitFor(hasText("Telegram has no such chat"))
	p.fill("To", "42")
	p.click("Send")
	p.waitFor(hasText("Sent in"))
	p.chooseMenu("More", "Make default")
	p.waitFor(hasBadge("default"))
	p.click("Verify")
	p.waitFor(hasText("bakery_bot") + ` && ` + hasText(hostile))
	p.click("Replace")
	p.fill("Bot token", "1:stale-token")
	p.click("Save")
	p.waitFor(hasFieldError("Bot token", "bot token (401)") + ` && ` + hasBadge("error"))
	p.checkPage("a channel")
	p.open("home", hasText("What can"))
	p.open("channels", hasText("bot token (401)"))
	if shown := p.eval(hasSecret("1:right") + " || " + hasSecret("1:stale")); shown != false {
		t.Error("a token is shown again")
	}
	p.clickOn(`document.querySelector("#main .source-row a")`)
	p.chooseMenu("More", "Delete")
	p.click("Delete")
	p.waitFor(hasText("No channels yet"))
}

// walkWebhooks creates a webhook whose target fails, and redelivers once it works.
func walkWebhooks(t *testing.T, _ *testServer, p *consolePage) {
	var works atomic.Bool
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !works.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(ts.Close)
	p.open("webhooks", hasText("No webhooks yet"))
	p.click("New webhook")
	p.fill("Address", "nowhere")
	p.click("Add")
	p.waitFor(`document.querySelector("dialog .issue").textContent === "Choose at least one event."`)
	p.set("All of Workflows", "")
	p.click("Add")
	p.waitFor(hasFieldError("Address", "must be"))
	p.fill("Address", ts.URL)
	p.click("Add")
	p.waitFor(`document.querySelector("dialog .copy-field input").value.startsWith("whsec_")`)
	// Escape does not lose it
	p.eval(`document.querySelector("dialog[open]").dispatchEvent(new Event("cancel", { cancelable: true }))`)
	p.click("Done")
	p.waitFor(`location.hash.includes("webhooks/webhook-") && ` + hasBadge("active") + ` && ` + hasText("workflow.*"))
	p.click("Send a test")
	p.waitFor(hasText("Not delivered") + ` && document.querySelector("td .badge.bad")`)
	works.Store(true)
	p.click("Redeliver")
	p.waitFor(`document.querySelector("td .badge.good")`) // by the stream
	p.clickOn(`document.querySelector("td button.link")`)
	p.waitFor(`document.querySelector(".drawer") && ` + hasText("Payload") +
		` && document.querySelector(".drawer .json")?.textContent.includes("webhook.test")`)
	p.checkPage("a delivery")
	p.clickOn(`document.querySelector(".drawer [aria-label=Close]")`)
	p.click("Edit")
	p.set("All of Contacts", "")
	p.click("Save")
	p.waitFor(hasText("workflow.*, contact.*"))
	p.chooseMenu("More", "New secret")
	p.click("Create")
	p.waitFor(`document.querySelector("dialog .copy-field input")?.value.startsWith("whsec_")`)
	p.click("Done")
	p.chooseMenu("More", "Switch off")
	p.waitFor(hasBadge("off") + ` && ` + hasText("events are not delivered"))
	if shown := p.eval(hasSecret("whsec_")); shown != false {
		t.Error("the secret is shown again")
	}
	p.checkPage("a webhook")
}

// walkTools creates a tool in its form, calls it, and disables it.
func walkTools(t *testing.T, _ *testServer, p *consolePage) {
	p.open("tools", hasText("No tools yet"))
	p.follow("tools/new?type=function")
	p.click("Add argument")
	p.set("Name of argument 1", "a")
	p.set("Type of argument 1", "number")
	p.click("Add argument")
	p.set("Name of argument 2", "b")
	p.set("Type of argument 2", "number")
	p.fill("Name", "a b", "Description", hostile)
	p.click("Create")
	p.waitFor(hasFieldError("Name", "must be 1 to 64 letters"))
	p.fill("Name", "add")
	p.click("Create")
	p.waitFor(`location.hash.includes("tools/tool-") && location.hash.includes("try=1")`)
	p.fill("a", "40", "b", "2")
	p.click("Call it")
	p.waitFor(hasText("Answered in") + ` && document.querySelector(".outcome .json").textContent.includes("sum: 42")`)
	p.checkPage("a tool that was tried")
	p.click("As JSON")
	p.fill("Arguments", `{"a":"x"}`)
	p.click("Call it")
	p.waitFor(hasFieldError("Arguments", "arguments"))
	p.clickOn(`document.querySelector("#main .page-head [role=switch]")`)
	p.waitFor(hasBadge("off") +
		` && [...document.querySelectorAll("#main button")].find((b) => b.textContent === "Call it").disabled`)
	p.click("Definition")
	p.click("As JSON Schema")
	p.waitFor(`document.querySelector("#main .code-editor")`)
	p.checkPage("a tool")
	p.open("tools", hasText("add"))
	p.checkPage("tools")
}

// walkMCPServers adds an MCP server with a wrong token, corrects it, calls one of
// its tools and enables it for the agent.
func walkMCPServers(t *testing.T, ts *testServer, p *consolePage) {
	server := apitest.NewMCPServer(t, "sesame-7")
	p.open("mcp", hasText("No MCP servers yet")+" && "+hasText("This agent is an MCP server too"))
	p.click("Add server")
	p.fill("Name", "Tickets", "Address", server.URL, "Credentials", "bearer")
	p.fill("Token", "wrong-8")
	p.click("Add")
	p.waitFor(`location.hash.includes("mcp/mcp-") && ` + hasBadge("error") + ` && ` + hasText("(HTTP 401)"))
	p.checkPage("a server that fails")
	p.click("Edit")
	p.click("Replace")
	p.fill("Credentials", "bearer", "Token", "sesame-7")
	p.click("Save")
	p.waitFor(hasBadge("connected") + ` && ` + hasText("Opens a ticket"))
	p.click("Try")
	p.fill("title", hostile)
	p.click("Call it")
	p.waitFor(hasText("Answered in"))
	p.click("Let the agent call it")
	p.waitFor(hasText("The agent may call it"))
	p.click("Reconnect")
	p.waitFor(`document.querySelector(".toasts").textContent.includes("It answers")`)
	if shown := p.eval(hasSecret("sesame-7")); shown != false {
		t.Error("the token is shown again")
	}
	p.checkPage("a server")
	login := apitest.NewMCPLogin(t)
	p.open("mcp", hasText("Tickets"))
	p.click("Add server")
	p.fill("Name", "Desk", "Address", login.URL+"/mcp", "Credentials", "login")
	p.click("Add")
	p.waitFor(hasBadge("needs login") + ` && document.querySelector("dialog a.primary")`)
	p.checkPage("a login")
	start := ts.send(
		t,
		"POST",
		fmt.Sprint(p.eval(`document.querySelector("dialog a.primary").getAttribute("href")`)),
		"",
	)
	cookie := start.Cookies()[0]
	ts.with("Cookie", cookie.Name+"="+cookie.Value).send(
		t,
		"GET",
		"/oauth/callback?"+login.Agree(t, start.Header.Get("Location")).Encode(),
		"",
	)
	p.waitFor(`!document.querySelector("dialog") && ` +
		`document.querySelector(".toasts").textContent.includes("Desk is connected")`)
	p.click("Reconnect")
	p.waitFor(hasBadge("connected") + ` && ` + hasText("Opens a ticket"))
	if tools := ts.must(
		t,
		200,
		"GET",
		"/api/agents/default/tools?search=open",
		"",
	)["tools"].([]any); len(tools) != 1 || at(tools[0], "type") != "mcp" {
		t.Errorf("the agent has %v", tools)
	}
}

// showsRedirect is an expression that is true once a form shows the address to register
// with a provider.
const showsRedirect = `[...document.querySelectorAll("form input[readonly]")].some((e) => ` +
	`e.value.endsWith("/oauth/callback"))`

// walkCredentials adds a key from the gallery and a sign-in by hand, which a
// person completes by pasting the address that did not open.
func walkCredentials(t *testing.T, ts *testServer, p *consolePage) {
	provider := apitest.NewOAuthProvider(t)
	p.open("credentials", hasText("No credentials yet"))
	p.checkPage("no credentials")
	p.open("credentials/new", hasText("GitHub"))
	p.checkPage("the gallery")
	p.clickOn(`document.querySelector("a[href$='credentials/new/github']")`)
	p.waitFor(hasText("Personal access token"))
	p.fill("Name", "Code host", "Personal access token", "ghp_sesame-4711-open")
	p.click("Save")
	p.waitFor(`location.hash.includes("credentials/credential-") && ` + hasText("api.github.com") +
		` && ` + hasBadge("ready"))
	p.open("credentials/new/custom", hasText("Sent to these hosts only"))
	p.fill("Name", hostile, "Type", "oauth2")
	p.waitFor(showsRedirect)
	p.click("Save")
	p.waitFor(hasText("must be 1 to 64 letters"))
	p.fill(
		"Name", "Sheets", "Sent to these hosts only", provider.URL, "Authorization address", provider.URL+"/auth",
		"Token address", provider.URL+"/token", "Client ID", "client", "Client secret", "client-secret-4711",
		"Test address", provider.URL+"/api/me",
	)
	p.click("Save")
	p.waitFor(`document.querySelector("dialog a.primary")`)
	start := ts.send(
		t,
		"POST",
		fmt.Sprint(p.eval(`document.querySelector("dialog a.primary").getAttribute("href")`)),
		"",
	)
	pasted := "http://localhost/oauth/callback?" + provider.Authorize(t, start.Header.Get("Location")).Encode()
	p.clickOn(`document.querySelector("dialog summary")`)
	p.fill("Its address", pasted)
	p.click("Complete")
	p.waitFor(`!document.querySelector("dialog") && ` + hasBadge("ready"))
	p.click("Test")
	p.waitFor(`document.querySelector(".toasts").textContent.includes("It works")`)
	p.checkPage("a credential")
	for _, secret := range []string{"ghp_sesame", "client-secret-4711", "access-token-number"} {
		if p.eval(hasSecret(secret)) != false {
			t.Errorf("the page shows %s", secret)
		}
	}
	p.open("tools/new?type=api", hasText("Credentials"))
	p.fill("Name", "me", "Address", provider.URL+"/api/me", "Credentials", "stored")
	p.waitFor(`[...document.querySelectorAll("#main option")].some((o) => o.textContent === "Sheets")`)
	p.fill("Credential", fmt.Sprint(ts.must(t, 200, "GET", "/api/agents/default/credentials/Sheets", "")["id"]))
	p.click("Create")
	p.waitFor(`location.hash.includes("tools/tool-")`)
	p.open("credentials", hasText("used in 1 place"))
	p.checkPage("credentials")
	if a := ts.send(t, "DELETE", "/api/agents/default/credentials/Sheets", ""); a.StatusCode != 409 {
		t.Errorf("deleted while in use: %d", a.StatusCode)
	}
}

// walkEvents waits for events, opens one, and exports all of them.
func walkEvents(t *testing.T, ts *testServer, p *consolePage) {
	made := func(name string) {
		t.Helper()
		ts.must(t, 201, "POST", "/api/agents/default/contacts", `{"name":`+quoted(name)+`}`)
	}
	made("Before")
	p.open("activity/events?type=contact.*", `document.querySelector("tbody tr")?.textContent.includes("Before")`)
	made(hostile)
	p.waitFor(`document.querySelector("tbody tr").textContent.includes(` + quoted(hostile) + `)`)
	p.clickOn(`document.querySelector("td button.link")`)
	p.waitFor(`document.querySelector(".drawer h2").textContent === "contact.created" && ` +
		`[...document.querySelectorAll(".drawer a")].some((a) => a.hash.includes("contacts/contact-"))`)
	p.checkPage("an event")
	p.reload() // the event has its own address
	p.waitFor(`document.querySelector(".drawer h2")?.textContent === "contact.created" && ` +
		`location.hash.includes("type=contact")`)
	p.clickOn(`document.querySelector(".drawer [aria-label=Close]")`)
	p.eval(`(() => { HTMLAnchorElement.prototype.click = function () {}; const real = URL.createObjectURL; ` +
		`URL.createObjectURL = (blob) => { void blob.text().then((text) => { window.saved = text; }); ` +
		`return real.call(URL, blob); }; })()`)
	p.chooseMenu("Export", "As CSV")
	p.waitFor(`window.saved?.startsWith("seq,id,type,data,created_at") && saved.includes("contact.created") ` +
		`&& saved.includes("Before")`)
	p.chooseMenu("Export", "As JSON")
	p.waitFor(`saved.startsWith("[") && JSON.parse(saved).every((e) => e.type.startsWith("contact."))`)
	p.click("Following")
	p.waitFor(`location.hash.includes("follow=no")`)
	p.open("activity/log?level=info", `document.querySelector("tbody tr")?.textContent.includes("contact created")`)
	made("Logged")
	p.clickOn(`document.querySelector("td button.link")`)
	p.waitFor(`document.querySelector(".drawer .json")`)
	if text := fmt.Sprint(p.eval(
		`document.getElementById("main").textContent`,
	)); !strings.Contains(text, "Anyone (no login)") ||
		strings.Contains(text, "open mode") {
		t.Errorf("the log has %s", text)
	}
	p.checkPage("a log entry")
	p.eval(`void (location.hash = "#/agents/default/logs")`) // an old address
	p.waitFor(`location.hash === "#/agents/default/activity/log"`)
	p.eval(`void (location.hash = "#/agents/default/gateways")`)
	p.waitFor(`location.hash === "#/agents/default/channels"`)
}

// TestConsoleConnections uses the pages of connections and activity on a phone.
func TestConsoleConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	p := ts.openConsole(t, 375)
	for _, walk := range []struct {
		name string
		walk func(*testing.T, *testServer, *consolePage)
	}{
		{"channel", walkChannels},
		{"webhook", walkWebhooks},
		{"tool", walkTools},
		{"credential", walkCredentials},
		{"api", walkAPIs},
		{"mcp", walkMCPServers},
		{"events", walkEvents},
	} {
		t.Run(walk.name, func(t *testing.T) {
			p.t = t
			walk.walk(t, ts, p)
		})
	}
	p.t = t
}

// TestConsoleConnectionsForViewers opens connections with credentials as a viewer: no
// credential is shown, and nothing can be changed.
func TestConsoleConnectionsForViewers(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts, far := newTestServer(t), fakeTelegram(t)
	made := func(path, body string) map[string]any {
		t.Helper()
		return ts.must(t, 201, "POST", "/api/agents/default"+path, body)
	}
	secrets := []string{"secret-token", "sesame-7"}
	bot := made(
		"/gateways",
		`{"type":"telegram","name":"Bot","config":{"botToken":"1:secret-token","apiBaseUrl":"`+far+`"}}`,
	)["id"].(string)
	hook := made("/webhooks", `{"url":"`+far+`","events":["*"]}`)
	secrets = append(secrets, hook["secret"].(string))
	tool := made(
		"/tools",
		`{"name":"orders","type":"api","config":{"url":"`+far+
			`/orders","auth":{"type":"bearer","token":"secret-token"},"headers":{"X-Api-Key":"secret-token"}}}`,
	)["id"].(string)
	made("/contacts", `{"name":"Ada"}`)
	server := made(
		"/mcp",
		`{"name":"Tickets","url":"`+apitest.NewMCPServer(t, "sesame-7").URL+
			`","auth":{"type":"bearer","token":"sesame-7"}}`,
	)["id"].(string)
	secret := made(
		"/credentials",
		`{"name":"Warehouse","type":"header","hosts":["warehouse.example.com"],"secret":{"X-Api-Key":"secret-token"}}`,
	)["id"].(string)
	api := made(
		"/apis",
		`{"name":"Depot","document":"{\"swagger\":\"2.0\",\"info\":{\"title\":\"Depot\"},`+
			`\"host\":\"depot.example.com\",\"paths\":{\"/stock\":{\"get\":{\"operationId\":\"stock\"}}}}"}`,
	)["id"].(string)
	ts.must(t, 201, "POST", "/api/agents/default/tables", apitest.LeadsTable)
	ts.must(t, 201, "POST", "/api/agents/default/tables/leads/rows", `{"row":{"name":"Ada"}}`)
	form := made(
		"/workflows",
		`{"name":"Ask","status":"active","nodes":[{"id":"t","type":"trigger","data":{"event":"form",`+
			`"fields":[{"name":"email","type":"email"}]}}]}`,
	)["id"].(string)
	ts.must(t, 200, "POST", "/api/agents/default/webhooks/"+hook["id"].(string)+"/test", "")
	p := ts.openConsole(t, 1280)
	key := ts.must(
		t, 201, "POST", "/api/keys",
		`{"name":"reader","role":"viewer","agents":["default"]}`,
	)["key"].(string)
	p.signIn(key)
	for _, view := range [][2]string{
		{"channels", hasText("Bot")},
		{"channels/" + bot, hasText("Webhook address")},
		{"webhooks", hasText("All events")},
		{"webhooks/" + hook["id"].(string), `document.querySelector("td .badge")`},
		{"tools/" + tool, hasText("Arguments")},
		{"tools", hasText("orders")},
		{"tools/" + tool + "?try=1", hasText("needs the admin role")},
		{"credentials", hasText("Warehouse")},
		{"credentials/" + secret, hasText("warehouse.example.com")},
		{"credentials/new", hasText("Read-only access")},
		{"apis", hasText("Depot")},
		{"apis/" + api, hasText("/stock")},
		{"apis/" + api + "/stock", hasText("Read-only access")},
		{"tables", hasText("leads")},
		{"tables/leads", hasText("Ada")},
		{"forms", hasText("Ask")},
		{"forms/" + form, hasText("Preview") + ` || document.querySelector(".form-preview")`},
		{"workflows/templates", hasText("Refund")},
		{"mcp", hasText("Tickets")},
		{"mcp/" + server, hasText("Opens a ticket")},
		{"activity", hasText("No executions yet")},
		{"activity/events", `document.querySelector("td")`},
		{"activity/deliveries", `document.querySelector("td")`},
		{"activity/log", `document.querySelector("td")`},
	} {
		p.open(view[0], view[1])
		p.checkReadOnly(view[0])
		if slices.ContainsFunc(secrets, func(secret string) bool { return p.eval(hasSecret(secret)) != false }) {
			t.Errorf("%s shows a secret", view[0])
		}
	}
}

// checkReadOnly fails if the page offers a viewer an action.
func (p *consolePage) checkReadOnly(page string) {
	p.t.Helper()
	offered := p.eval(`[...document.querySelectorAll("#main button:not(:disabled, .sort, [inert] *)")].map((b) => ` +
		`b.textContent).filter((name) => name && !/^(Filter|Search|Refresh|Back|Next|Show|Export.*|Columns|Today|` +
		`Month|Week|List|Tools|Sources|Conversations|Workflows|Executions|Problems 0|Versions|JSON|Copy|Following|` +
		`Follow|Reconnect|Definition|Try|As JSON Schema|As rows|[▾▸].*|[a-z]+\.[a-z.]+|.* ` +
		`(created|added|tested|registered|rotated|updated))$/.test(name)).join()`)
	typed := p.eval(`[...document.querySelectorAll("#main form:not([role=search]) :is(input, select, textarea), ` +
		`#main [role=switch]")].filter((f) => !f.disabled && !f.readOnly && f.checkVisibility()).length`)
	if offered != "" || typed != 0.0 {
		p.t.Errorf("%s offers a viewer %v and %v fields", page, offered, typed)
	}
}
