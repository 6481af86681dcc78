package e2e

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"satchel/httpapi/apitest"
)

// TestScreenshots writes pictures of every page, and of the main pages while they are
// empty, loading and failing, into the folder that SATCHEL_SCREENSHOTS names: "task
// screenshots".
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("SATCHEL_SCREENSHOTS")
	if folder == "" {
		t.Skip("takes pictures only if SATCHEL_SCREENSHOTS names a folder")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	ts := newTestServer(t)
	pages := ts.fillBakery(t)
	maps.Copy(pages, ts.fillDay(t))
	for _, width := range []int{1280, 375} {
		p := ts.openConsole(t, width)
		for _, scheme := range []string{"light", "dark"} {
			p.colorScheme(scheme)
			for _, page := range slices.Sorted(maps.Keys(pages)) {
				if page != "home" {
					p.open(page, pages[page])
				}
				p.picture(folder, fmt.Sprintf("%s-%d-%s", page, width, scheme))
				if page != "home" { // a list stays when a record of it is opened
					p.open("home", hasText("What can"))
				}
			}
		}
	}
	ts.must(t, 201, "POST", "/api/agents", `{"name":"empty"}`)
	for _, look := range axeLooks {
		ts.pictureStates(t, folder, look.width, look.scheme)
	}
}

// fillDay adds the records of a busy day to the agent of fillBakery, so that the pictures
// show pages as people have them. It returns further pages.
func (ts *testServer) fillDay(t *testing.T) map[string]string {
	t.Helper()
	const base = "/api/agents/default"
	ts.must(
		t, 200, "PUT", base+"/settings",
		`{"llm_provider":"openai-compatible","llm_model":"small","llm_api_key":"k","llm_base_url":`+
			quoted(apitest.NewFixedModel(
				t,
				"Yes. Bring the loaf back **within two days** with the receipt, and we give your money back [1].\n\n"+
					"This does not cover:\n\n1. cakes made to order\n2. bread that was frozen",
			))+
			`}`,
	)
	for name, text := range map[string]string{
		"allergens.md": "# Allergens\n\nAll bread is baked in a room where nuts, sesame and milk are used.",
		"prices.csv":   "bread,price\nRye,4.20\nSpelt,4.80\n",
	} {
		ts.waitIndexed(t, base+"/sources/"+fmt.Sprint(ts.upload(t, base+"/sources", name, text, nil).JSON["id"]))
	}
	channel := fmt.Sprint(at(ts.must(t, 200, "GET", base+"/gateways", ""), "gateways.0.id"))
	for _, talk := range [][]string{
		{
			"Katherine Johnson",
			"Do you have gluten-free bread?",
			"Yes, on Wednesdays and Saturdays. Shall I put one aside for you?",
			"Yes please, two loaves for Saturday.",
		},
		{"Radia Perlman", "The cake for Saturday: can it still be changed to chocolate?"},
		{
			"Edsger Dijkstra",
			"Can you deliver 40 rolls to our café every day?",
			"Gladly, from next week. Where to?",
			"12 Market Street, before seven please.",
		},
		{"Barbara Liskov", "Is the sourdough vegan?", "Yes, all our sourdough loaves are vegan."},
	} {
		contact := ts.must(
			t, 201, "POST", base+"/contacts",
			`{"name":"`+talk[0]+`","email":"`+strings.ToLower(strings.ReplaceAll(talk[0], " ", "."))+
				`@example.com","tags":["wholesale"]}`,
		)["id"].(string)
		conversation := ts.must(
			t, 201, "POST", base+"/conversations",
			`{"contact_id":"`+contact+`","gateway_id":"`+channel+`"}`,
		)["id"].(string)
		for i, said := range talk[1:] {
			ts.must(
				t,
				201,
				"POST",
				base+"/conversations/"+conversation+"/messages",
				`{"role":"`+[]string{"user", "assistant"}[i%2]+`","content":"`+said+`"}`,
			)
		}
	}
	report := ts.must(t, 201, "POST", base+"/workflows", `{"name":"Morning figures","description":"Counts yesterday's messages.","status":"active","nodes":[
		{"id":"start","type":"trigger","position":{"x":0,"y":0},"data":{"event":"webhook"}},
		{"id":"count","type":"sql","position":{"x":280,"y":0},"data":{"label":"Messages","query":"SELECT count(*) AS n FROM messages WHERE content <> {{trigger.except}}"}}],
		"edges":[{"source":"start","target":"count"}]}`)["id"].(string)
	for _, input := range []string{`{"except":"x"}`, `{"except":"y"}`, `{}`} {
		ts.must(t, 200, "POST", flowBase+"/execute?wait=10", `{"workflow_id":"`+report+`","input":`+input+`}`)
	}
	chat := fmt.Sprint(ts.must(
		t, 200, "POST", base+"/chat",
		`{"message":"May I return a loaf that was too hard?"}`,
	)["conversation_id"])
	session := ts.openLoaded(t, "/").ID()
	return map[string]string{
		"chat/" + chat:                        `document.querySelector("button.cite")`,
		"knowledge?q=can I get my money back": `document.querySelector(".results .best-sentence")`,
		"inbox":                               hasText("Radia Perlman"),
		"browser":                             hasText("active"),
		"browser/" + session:                  `document.querySelector(".session-side")`,
	}
}

// pictureStates takes pictures of the main pages without records, while they load, and
// when they cannot be read.
func (ts *testServer) pictureStates(t *testing.T, folder string, width int, scheme string) {
	for state, there := range map[string]string{
		"": `document.querySelector("#main h1")`,
		"slow": `[...document.querySelectorAll("#main .skeleton")].some((e) => ` +
			`getComputedStyle(e).visibility === "visible")`,
		"failing": `document.querySelector("#main .card.bad, #main [role=alert]")`,
	} {
		p := ts.openConsole(t, width)
		p.colorScheme(scheme)
		p.base = "#/agents/empty/"
		p.eval(network + `network = ` + quoted(state))
		name, list := "empty", []string{"home", "chat", "inbox", "workflows", "knowledge", "browser"}
		if state != "" {
			name, list = state, []string{
				"home", "chat/conversation-1", "inbox", "workflows", "workflows/workflow-1",
				"workflows/executions/execution-1",
				"knowledge",
				"browser",
			}
		}
		for _, page := range list {
			p.open(page, there)
			p.picture(folder, fmt.Sprintf("%s-%s-%d-%s", name, page, width, scheme))
		}
	}
}

// picture writes a picture of the page into a folder. In its name, records are named by
// their kind.
func (p *consolePage) picture(folder, name string) {
	p.t.Helper()
	name = strings.NewReplacer(" ", "-", "?q=", "-").Replace(name)
	picture, err := base64.StdEncoding.DecodeString(fmt.Sprint(p.cdp("Page.captureScreenshot", nil)["data"]))
	if err != nil {
		p.t.Fatal(err)
	}
	file := strings.ReplaceAll(recordID.ReplaceAllString(name, ""), "/", "-") + ".png"
	if err := os.WriteFile(filepath.Join(folder, file), picture, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// recordID is what follows the kind in a record's id.
var recordID = regexp.MustCompile(`-06[0-9a-z]{18}`)
