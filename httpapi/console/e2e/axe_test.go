package e2e

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"satchel/httpapi/apitest"
)

// axeSource is axe-core 4.14.1 (MPL-2.0, https://github.com/dequelabs/axe-core),
// which finds what keeps people with disabilities out of a page.
//
//go:embed testdata/axe.min.js.gz
var axeSource []byte

func axe(t *testing.T) string {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(axeSource))
	if err != nil {
		t.Fatal(err)
	}
	source, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// fillBakery fills the default agent with realistic records. It returns the
// console's pages, each with an expression that is true once it is rendered.
func (ts *testServer) fillBakery(t *testing.T) map[string]string {
	t.Helper()
	const base = "/api/agents/default"
	made := func(path, body string) string {
		t.Helper()
		return ts.must(t, 201, "POST", base+path, body)["id"].(string)
	}
	ts.must(t, 200, "PUT", base, `{"name":"Bakery","description":"Answers customers of the bakery in Market Street."}`)
	source := ts.upload(
		t,
		base+"/sources",
		"handbook.md",
		"# Returns\n\nBread can be returned within two days with the receipt. We give your money back.\n\n"+
			"# Opening hours\n\nWe open at six from Monday to Saturday.\n",
		nil,
	)
	ts.waitIndexed(t, base+"/sources/"+fmt.Sprint(source.JSON["id"]))
	var ada string
	for i, name := range []string{"Grace Hopper", "Alan Turing", "Ada Lovelace"} {
		ada = made(
			"/contacts",
			fmt.Sprintf(
				`{"name":%q,"email":"person%d@example.com","phone":"+49 30 123450%d","tags":["vip","berlin"],`+
					`"notes":"Orders on Fridays."}`,
				name,
				i,
				i,
			),
		)
	}
	bot := made(
		"/gateways",
		`{"type":"telegram","name":"Shop bot","config":{"botToken":"1:a","apiBaseUrl":"`+hostileAPI(t)+`"}}`,
	)
	hooked := made("/gateways", `{"type":"webhook","name":"Website form","config":{"secret":"geheim-1234567890"}}`)
	ts.must(t, 200, "POST", base+"/gateways/"+hooked+"/verify", "")
	key := made(
		"/credentials",
		`{"name":"Warehouse","type":"header","hosts":["warehouse.example.com"],"secret":{"X-Api-Key":"secret-token"}}`,
	)
	talk := made("/conversations", `{"contact_id":"`+ada+`","gateway_id":"`+bot+`"}`)
	for _, m := range []string{
		`{"role":"user","content":"Where is my order?"}`,
		`{"role":"assistant","content":"It left on Tuesday and arrives tomorrow."}`,
	} {
		ts.must(t, 201, "POST", base+"/conversations/"+talk+"/messages", m)
	}
	chat := made("/conversations", `{"metadata":{"title":"Sourdough"}}`)
	ts.must(
		t,
		201,
		"POST",
		base+"/conversations/"+chat+"/messages",
		`{"role":"user","content":"Is the sourdough vegan?"}`,
	)
	answer := ts.must(
		t,
		201,
		"POST",
		base+"/conversations/"+chat+"/messages",
		`{"role":"assistant","content":"All **sourdough** loaves are vegan."}`,
	)["id"]
	ts.must(
		t,
		200,
		"PUT",
		fmt.Sprint(base, "/messages/", answer, "/feedback"),
		`{"rating":-1,"comment":"It should name the spelt loaf, which has honey."}`,
	)
	flow := made("/workflows", `{"name":"Refund","description":"Asks before money goes back.","status":"active","nodes":[
		{"id":"start","type":"trigger","data":{"event":"webhook"}},
		{"id":"ask","type":"approval","data":{"title":"Refund {{trigger.amount}} euros?","message":"Order {{trigger.order}}"}},
		{"id":"check","type":"code","data":{"code":"if (!trigger.order) throw new Error('no order'); return {ok: true}"}}],
		"edges":[{"source":"start","target":"ask"},{"source":"ask","target":"check","sourceHandle":"approved"}]}`)
	run := ts.must(
		t, 200, "POST", flowBase+"/execute",
		`{"workflow_id":"`+flow+`","input":{"amount":12,"order":"A-7"}}`,
	)["id"].(string)
	plan := made(
		"/schedules",
		`{"name":"Morning report","type":"cron","cron_expression":"`+
			fmt.Sprintf("0 %d * * 1-5", (time.Now().UTC().Hour()+6)%24)+`","callback_id":"`+flow+
			`","payload":{"amount":0}}`,
	)
	made(
		"/calendar",
		`{"title":"Call the mill","description":"About rye flour","start_time":"`+
			time.Now().Add(26*time.Hour).UTC().Format(time.RFC3339)+`","recurrence":"daily"}`,
	)
	hook := made("/webhooks", `{"url":"https://example.com/events","events":["contact.created","message.received"]}`)
	made(
		"/tools",
		`{"name":"order_status","description":"Looks an order up","type":"function","config":{"code":"return `+
			`{status: 'sent'}","parameters":{"type":"object",`+
			`"properties":{"order":{"type":"string"}},"required":["order"]}}}`,
	)
	ts.must(t, 201, "POST", base+"/admins", `{"email":"ada@example.com","role":"viewer"}`)
	ts.must(t, 201, "POST", base+"/tables", apitest.LeadsTable)
	ts.must(
		t,
		201,
		"POST",
		base+"/tables/leads/rows",
		`{"rows":[{"name":"Ada","amount":12,"vip":true,"status":"new"},{"name":"Bob"}]}`,
	)
	form := made(
		"/workflows",
		`{"name":"Ask for an offer","status":"active","nodes":[{"id":"t","type":"trigger","data":{"event":"form",`+
			`"auth":{"type":"none"},"fields":[{"name":"email","label":"E-mail","type":"email","required":true,`+
			`"help":"For our answer"},{"name":"kind","type":"choices","options":["Bread"]}]}}]}`,
	)
	api := made(
		"/apis",
		`{"name":"shop","document":"{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Shop\",\"version\":\"2\"},`+
			`\"servers\":[{\"url\":\"https://shop.example.com\"}],`+
			`\"paths\":{\"/orders\":{\"get\":{\"operationId\":\"listOrders\",\"summary\":\"List `+
			`orders\",\"tags\":[\"orders\"],\"parameters\":[{\"name\":\"status\",\"in\":\"query\",`+
			`\"schema\":{\"enum\":[\"open\",\"sent\"]}}]}}}}"}`,
	)
	return map[string]string{
		"apis":                        hasText("shop.example.com"),
		"apis/" + api:                 hasText("List orders"),
		"apis/" + api + "/listOrders": hasText("Try it"),
		"home":                        hasText("What can"),
		"chat":                        hasText("Conversation"),
		"inbox/" + talk:               hasText("Where is my order?"),
		"workflows":                   hasText("Refund"),
		"workflows/" + flow:           countNodes("") + ` === 3`,
		"workflows/executions/" + run: hasText("Approve"),
		"knowledge":                   hasText("handbook.md"),
		"schedules":                   hasText("Morning report"),
		"schedules/" + plan:           hasText("Morning report"),
		"calendar":                    hasText("Call the mill"),
		"contacts":                    hasText("Ada Lovelace"),
		"contacts/" + ada:             hasText("Ada Lovelace"),
		"tables":                      hasText("leads"),
		"tables/leads":                hasText("Ada"),
		"forms":                       hasText("offer"),
		"forms/" + form:               hasText("Preview") + ` || document.querySelector(".form-preview")`,
		"sql":                         hasText("contacts"),
		"widget":                      `document.querySelector("#main :is(.empty, .card, table)")`,
		"workflows/templates":         hasText("Refund"),
		"workflows/import":            hasText("Or paste it"),
		"credentials":                 hasText("Warehouse"),
		"credentials/" + key:          hasText("warehouse.example.com"),
		"credentials/new":             hasText("Anthropic"),
		"channels":                    hasText("Shop bot"),
		"channels/" + bot:             hasText("Shop bot"),
		"mcp":                         hasText("MCP"),
		"webhooks":                    hasText("example.com"),
		"webhooks/" + hook:            hasText("example.com"),
		"tools":                       hasText("order_status"),
		"activity":                    hasText("Refund"),
		"activity/events":             hasText("contact.created"),
		"activity/log":                hasText("audit"),
		"activity/feedback":           hasText("honey"),
		"settings":                    hasText("Language model"),
		"settings/agent":              hasText("About"),
		"settings/access":             hasText("ada@example.com"),
		"browser":                     `document.querySelector("#main .session-none .empty")`,
	}
}

// colorScheme sets the page to light or dark, without transitions.
func (p *browserPage) colorScheme(name string) {
	p.t.Helper()
	p.cdp("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"},
	}})
}

// axeLooks are the widths and color schemes that axe-core runs on pages in.
var axeLooks = []struct {
	width  int
	scheme string
}{{1280, "light"}, {375, "dark"}}

// TestConsoleIsAccessible runs axe-core on every page, with and without records,
// light at 1280 pixels and dark at 375.
func TestConsoleIsAccessible(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	pages := ts.fillBakery(t)
	const goal = "Find the latest invoice and report its total."
	session := ts.openLoaded(t, "/").ID()
	ts.addGoal(t, session, goal)
	ts.must(t, 201, "POST", "/api/agents", `{"name":"empty"}`)
	source := axe(t)
	for _, look := range axeLooks {
		p := ts.openConsole(t, look.width)
		p.colorScheme(look.scheme)
		p.eval(source + `; void axe.configure({ disableOtherRules: false })`)
		for _, page := range slices.Sorted(maps.Keys(pages)) {
			p.open(page, pages[page])
			p.checkAccessible(page + ", " + look.scheme)
		}
		p.open("browser/"+session, `document.querySelector(".session-side")`)
		p.openGoal(goal)
		p.checkAccessible("the goal of a session, " + look.scheme)
		p.base = "#/agents/empty/"
		for _, page := range []string{
			"home", "chat", "inbox", "workflows", "knowledge", "schedules", "contacts", "channels", "tools", "apis",
			"mcp", "webhooks", "credentials", "browser", "tables", "tables/nobody", "forms", "sql", "activity",
			"workflows/workflow-unknown",
		} {
			p.open(page, `document.querySelector("#main h1, #main .card, #main .empty")`)
			p.checkAccessible("empty " + page + ", " + look.scheme)
		}
	}
}

// checkAccessible runs axe-core's rules on the page, or on the dialog outside of which
// nothing can be reached.
func (p *consolePage) checkAccessible(page string) {
	p.t.Helper()
	// colors that are changing have any contrast
	p.eval(`document.getAnimations().forEach((a) => a.effect?.getComputedTiming().endTime < Infinity && a.finish())`)
	found := p.eval(`axe.run(document.querySelector("dialog:modal") ?? document, { resultTypes: ["violations"], ` +
		`preload: false }).then((r) => r.violations.map((v) => v.id + " (" + v.impact + "): " + v.nodes.slice(0, ` +
		`3).map((n) => n.target.join(" ") + " " + n.html.slice(0, 160)).join(" | ")).join("\n"))`)
	if found != "" {
		p.t.Errorf("%s:\n%v", page, found)
	}
}
