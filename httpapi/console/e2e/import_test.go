package e2e

import "testing"

// TestConsoleImportsWorkflows reads a file of n8n, shows its report next to the graph,
// and creates the draft.
func TestConsoleImportsWorkflows(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	document := `{"name":` + quoted(hostile) + `,"nodes":[{"name":"Start","type":"n8n-nodes-base.manualTrigger","typeVersion":1,"position":[0,0],"parameters":{}},
		{"name":` + quoted(hostile) + `,"type":"n8n-nodes-base.httpRequest","typeVersion":4.2,"position":[220,0],"parameters":{"url":"https://example.com","authentication":"predefinedCredentialType","nodeCredentialType":"githubApi"},"credentials":{"githubApi":{"id":"1","name":"GitHub of Ada"}}},
		{"name":"Odd","type":"n8n-nodes-base.teleport","typeVersion":1,"position":[440,0],"parameters":{}}],
		"connections":{"Start":{"main":[[{"node":` + quoted(hostile) + `,"type":"main","index":0}]]},` + quoted(hostile) + `:{"main":[[{"node":"Odd","type":"main","index":0}]]}}}`
	for _, width := range []int{1280, 375} {
		p := ts.openConsole(t, width)
		p.open("workflows/import", hasText("Or paste it"))
		p.drop(".import-drop", map[string]string{"bad.json": "not JSON"})
		p.waitFor(hasText("Not valid JSON"))
		p.drop(".import-drop", map[string]string{"flow.json": document})
		p.waitFor(hasText("1 unsupported") + " && " + hasText("2 exact") + " && " + hasText("GitHub of Ada") +
			" && " + hasText(hostile))
		p.click("Create draft")
		p.waitFor(hasText("Created: 1 workflow"))
		p.checkPage("workflows/import")
	}
	if n := len(ts.must(t, 200, "GET", flowBase, "")["workflows"].([]any)); n != 2 {
		t.Errorf("%d workflows were created", n)
	}
}
