package e2e

import (
	"strings"
	"testing"
)

// network can make the console's requests fail, or never be answered.
const network = `{
	const real = window.fetch;
	window.network = "";
	window.fetch = (to, how) => {
		if (!window.network || !/\/api\/(agents\/[^/]+\/|templates)/.test(String(to)) || String(to).includes("/stream")) return real(to, how);
		if (window.network === "slow") return new Promise((_, bad) => how?.signal?.addEventListener("abort", () => bad(new DOMException("", "AbortError"))));
		return Promise.resolve(new Response(JSON.stringify({ error: { code: "INTERNAL_ERROR", message: "The disk is full." } }), { status: 500, headers: { "Content-Type": "application/json", "X-Request-Id": "req-7" } }));
	};
}`

// opened are the parts of the pages of fillBakery that open over them or in their place:
// the page, the buttons that lead there, and an expression that is true once it is open.
var opened = []struct {
	page    string
	buttons []string
	there   string
}{
	{"home", []string{"key:Control+k"}, `document.querySelector("dialog[open] input")`},
	{"contacts", []string{"key:?"}, `document.querySelector("dialog[open] kbd")`},
	{"inbox", []string{".inbox-entries a"}, `document.querySelector(".inbox-composer")`},
	{"workflows", []string{"New workflow"}, `document.querySelector("dialog[open]")`},
	{"workflows", []string{"[aria-haspopup=menu]"}, `document.querySelector("[role=menuitem]")`},
	{"workflows", []string{"[aria-haspopup=menu]", "Execute"}, `document.querySelector("dialog[open]")`},
	{"workflow", []string{"[aria-label=More]"}, `document.querySelector("[role=menuitem]")`},
	{"workflow", []string{"[aria-label=More]", "Name and settings"}, `document.querySelector("dialog[open]")`},
	{"workflow", []string{"[aria-label=More]", "Webhook address"}, `document.querySelector("dialog[open] pre")`},
	{"workflow", []string{"[aria-label=More]", "Keys"}, `document.querySelector("dialog[open] kbd")`},
	{"workflow", []string{"[aria-label='Add a node (Tab)']"}, `document.querySelector("dialog[open] .node-option")`},
	{"workflow?node=start", nil, `document.querySelector(".editor-panel [data-field]")`},
	{"workflow?node=ask", []string{"Input"}, `document.querySelector(".path-tree")`},
	{"workflow?node=check", []string{"Output"}, `document.querySelector(".editor-panel .json")`},
	{"workflow?node=check", []string{"JSON"}, `document.querySelector("textarea.code")`},
	{"workflow?tab=test", nil, `document.querySelector("#test-payload")`},
	{"workflow?tab=versions", nil, `document.querySelector("#main tbody tr")`},
	{"workflow?tab=json", nil, `document.querySelector("#graph-json")`},
	{"workflow?tab=problems", nil, `document.querySelector(".bottom-body")`},
	{"execution?tab=compare", nil, hasText("Nothing to compare with")},
	{"execution?tab=about", nil, `document.querySelector(".facts-list")`},
	{"workflows/templates/welcome", nil, `document.querySelector(".template-form")`},
	{"knowledge", []string{"Site"}, `document.querySelector("dialog[open]")`},
	{"knowledge", []string{"API"}, `document.querySelector("dialog[open]")`},
	{"knowledge", []string{"Table"}, `document.querySelector("dialog[open]")`},
	{"knowledge", []string{"[aria-haspopup=menu]", "Rename"}, `document.querySelector("dialog[open]")`},
	{"knowledge?q=bread", nil, `document.querySelector(".results mark, .results .passage-text")`},
	{"browser", []string{"Open"}, `document.querySelector("dialog[open]")`},
	{"calendar", []string{"New task"}, `document.querySelector("dialog[open]")`},
	{"calendar?view=week", nil, `document.querySelector(".week, .agenda")`},
	{"calendar/schedules", []string{"New schedule"}, `document.querySelector("dialog[open]")`},
	{"contacts", []string{"New contact"}, `document.querySelector("dialog[open]")`},
	{"contacts", []string{"Import"}, `document.querySelector("dialog[open]")`},
	{"contacts", []string{"Columns"}, `document.querySelector("dialog[open]")`},
	{
		"contacts",
		[]string{"[aria-label='Select all on this page']", "Add a tag"},
		`document.querySelector("dialog[open]")`,
	},
	{"tables", []string{"New table"}, `document.querySelector("dialog[open]")`},
	{"tables", []string{"New from CSV"}, `document.querySelector("dialog[open]")`},
	{"tables/leads", []string{"Add row"}, `document.querySelector("dialog[open]")`},
	{"tables/leads", []string{"Filter"}, `document.querySelector(".filter select")`},
	{"tables/leads", []string{"[aria-haspopup=menu]", "Columns and name"}, `document.querySelector("dialog[open]")`},
	{"tables/leads", []string{"[aria-haspopup=menu]", "Import CSV"}, `document.querySelector("dialog[open]")`},
	{"forms", []string{"New form"}, `document.querySelector("dialog[open]")`},
	{"sql?q=SELECT%20*%20FROM%20contacts", nil, `document.querySelector(".grid tbody tr")`},
	{"sql?q=SELECT%20*%20FROM%20contacts", []string{".grid tbody tr"}, `document.querySelector(".sql-row")`},
	{"sql", []string{"History"}, `[...document.querySelectorAll("#main h2")].some((h) => h.textContent === "History")`},
	{
		"simulating",
		[]string{"[aria-haspopup=menu]", "Simulate a message"},
		`document.querySelector("dialog[open] select")`,
	},
	{"channels/new/telegram", nil, hasText("What you need")},
	{"channels/new/discord", nil, hasText("What you need")},
	{"channels/new/webhook", nil, hasText("What you need")},
	{"widget/new", nil, `document.querySelector(".widget-frame")`},
	{"credentials/new/custom", nil, hasText("Another service")},
	{"credentials/new/github", nil, `document.querySelector("#main form")`},
	{"credential", []string{"[aria-haspopup=menu]", "Edit"}, `document.querySelector("#main form")`},
	{"credential", []string{"[aria-haspopup=menu]", "Delete"}, `document.querySelector("dialog[open]")`},
	{"tools/new", nil, hasText("Credentials")},
	{"mcp", []string{"Add server"}, `document.querySelector("dialog[open]")`},
	{"webhooks", []string{"New webhook"}, `document.querySelector("dialog[open]")`},
	{"activity/events", []string{"td button.link"}, `document.querySelector(".drawer")`},
	{"activity/log", []string{"td button.link"}, `document.querySelector(".drawer")`},
	{"settings/copies", nil, hasText("consistent copy")},
}

// press presses a key ("key:"), an element by its selector, or a button by its text.
func (p *consolePage) press(what string) {
	p.t.Helper()
	if key, ok := strings.CutPrefix(what, "key:"); ok {
		p.eval(`document.activeElement?.blur?.()`)
		p.pressKeys(key)
		return
	}
	find := `[...document.querySelectorAll("button")].find((b) => b.textContent.trim() === ` + quoted(what) +
		` && !b.disabled && b.checkVisibility())`
	if strings.ContainsAny(what[:1], "[#.t") {
		find = `[...document.querySelectorAll(` + quoted("#main "+what+", "+what) +
			`)].find((b) => b.checkVisibility() && (b.closest("#main") || b.id))`
	}
	p.appears(`((found) => found && (found.click(), true))(` + find + `)`)
}

// appears waits until an expression is true; if it never is, the test fails and goes on.
func (p *consolePage) appears(expression string) {
	p.t.Helper()
	if _, ok := p.becomes(expression); !ok {
		p.t.Errorf("never true: %s", expression)
	}
}

// TestConsoleDialogsAreAccessible runs axe-core on what opens over the pages.
func TestConsoleDialogsAreAccessible(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	pages := ts.fillBakery(t)
	names := map[string]string{}
	for page := range pages {
		switch {
		case strings.HasPrefix(page, "workflows/workflow-"):
			names["workflow"] = page
		case strings.HasPrefix(page, "workflows/executions/"):
			names["execution"] = page
		case strings.HasPrefix(page, "credentials/credential-"):
			names["credential"] = page
		}
	}
	names["simulating"] = "channels/" +
		at(ts.must(t, 200, "GET", "/api/agents/default/gateways?status=active", ""), "gateways.0.id").(string)
	source := axe(t)
	for _, look := range axeLooks {
		p := ts.openConsole(t, look.width)
		p.colorScheme(look.scheme)
		p.eval(source + `; void 0`)
		for _, o := range opened {
			if look.width < 700 && len(o.buttons) == 1 && o.buttons[0] == "[aria-label='Add a node (Tab)']" {
				continue // on a phone nodes are added in the outline
			}
			name, query, _ := strings.Cut(o.page, "?")
			if full, ok := names[name]; ok {
				name = full
			}
			p.eval(`location.hash = "#/agents/default/elsewhere"`)
			p.waitFor(hasText("Page not found") + ` && !document.querySelector("dialog[open]")`)
			p.eval(`location.hash = ` + quoted(p.base+strings.TrimSuffix(name+"?"+query, "?")))
			if len(o.buttons) == 0 {
				p.appears(o.there)
			}
			if strings.HasPrefix(o.page, "workflow?") || o.page == "workflow" {
				p.appears(countNodes("") + ` === 3`)
			}
			for _, b := range o.buttons {
				p.press(b)
			}
			p.appears(o.there)
			p.checkAccessible(strings.Join(append([]string{o.page}, o.buttons...), " > ") + ", " + look.scheme)
			p.eval(`document.querySelectorAll("dialog[open]").forEach((d) => d.dispatchEvent(new ` +
				`Event("cancel", { cancelable: true })))`)
		}
	}
}

// TestConsoleStatesAreAccessible runs axe-core on pages while they load, and when their
// data cannot be read: each page in both states, each look with half of the pages.
func TestConsoleStatesAreAccessible(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	ts.must(t, 201, "POST", "/api/agents", `{"name":"other"}`)
	source := axe(t)
	for i, look := range axeLooks {
		for j, state := range []struct{ name, there string }{
			{"slow", `document.querySelector("#main .skeleton, #main [role=status], #main h1")`},
			{
				"failing",
				`document.querySelector("#main .card.bad, #main .empty, #main [role=alert], #main .settings-form")`,
			},
		} {
			p := ts.openConsole(t, look.width)
			p.colorScheme(look.scheme)
			p.eval(source + ";" + network + `network = ` + quoted(state.name))
			for k, page := range []string{
				"chat", "chat/conversation-1", "inbox", "inbox/conversation-1", "workflows", "workflows/workflow-1",
				"workflows/executions/execution-1", "knowledge", "knowledge/source-1", "knowledge?q=bread", "browser",
				"browser/session-1", "calendar", "calendar/schedules", "calendar/schedules/schedule-1", "contacts",
				"contacts/contact-1", "sql", "channels", "channels/gateway-1", "workflows/templates",
				"workflows/templates/welcome", "credentials", "credentials/credential-1", "tables", "tables/leads",
				"forms", "forms/workflow-1", "widget", "widget/gateway-1", "tools", "tools/tool-1", "mcp", "mcp/mcp-1",
				"webhooks", "webhooks/webhook-1", "activity", "activity/events", "activity/deliveries", "activity/log",
				"settings", "home",
			} {
				if (i+j+k)%2 > 0 { // the other look has this state of the page
					continue
				}
				p.eval(`location.hash = "#/agents/default/elsewhere"`)
				p.waitFor(hasText("Page not found"))
				base := p.base
				if page == "home" { // that of the first agent is loaded already
					base = "#/agents/other/"
				}
				p.eval(`location.hash = ` + quoted(base+page))
				p.waitFor(`!` + hasText("Page not found") + ` && ` + state.there)
				p.checkAccessible(state.name + " " + page + ", " + look.scheme)
			}
		}
	}
}
