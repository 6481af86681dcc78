package httpapi

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// importBody is the body of an import of one of the fixtures of flow/n8n.
func importBody(t *testing.T, fixture string, dry bool) string {
	t.Helper()
	raw, err := os.ReadFile("../flow/n8n/testdata/" + fixture + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct{ Document json.RawMessage }
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"format": "n8n", "document": f.Document, "dry_run": dry})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestImportWorkflows(t *testing.T) {
	c := newTestClient(t)
	count := func() int {
		return len(c.must(t, 200, "GET", flowBase, "")["workflows"].([]any)) + len(
			c.must(t, 200, "GET", "/api/agents/default/schedules", "")["schedules"].([]any),
		)
	}
	dry := c.must(t, 200, "POST", flowBase+"/import", importBody(t, "schedule", true))
	if len(dry["workflows"].([]any)) != 1 || len(dry["schedules"].([]any)) != 2 || count() != 0 {
		t.Fatalf("a dry run: %v, and %d records", dry, count())
	}
	c.must(t, 200, "POST", flowBase+"/import", importBody(t, "schedule", false))
	w := c.must(t, 200, "GET", flowBase, "")["workflows"].([]any)[0].(map[string]any)
	if w["status"] != "draft" || count() != 3 {
		t.Errorf("the workflow is %v, of %d records", w["status"], count())
	}
	for _, s := range c.must(t, 200, "GET", "/api/agents/default/schedules", "")["schedules"].([]any) {
		if s := s.(map[string]any); s["status"] != "paused" || s["callback_id"] != w["id"] {
			t.Errorf("a schedule: %v", s)
		}
	}
	made := c.must(
		t, 200, "POST", flowBase+"/import",
		importBody(t, "unsupported-node", false),
	)["workflows"].([]any)[0].(map[string]any)
	apiCase{
		"activate it",
		"PUT",
		flowBase + "/" + made["id"].(string),
		`{"status":"active"}`,
		400,
		map[string]any{"error.details.node_id": "odd"},
	}.run(t, c)
	for _, tc := range []apiCase{
		{"another format", "POST", flowBase + "/import", `{"format":"make","document":{}}`, 400, invalid("format")},
		{"no document", "POST", flowBase + "/import", `{"format":"n8n"}`, 400, invalid("document")},
		{"a text", "POST", flowBase + "/import", `{"format":"n8n","document":"{}"}`, 400, invalid("document")},
		{
			"no nodes",
			"POST",
			flowBase + "/import",
			`{"format":"n8n","document":{"connections":{}}}`,
			400,
			invalid("document.nodes"),
		},
		{
			"a node without a type",
			"POST",
			flowBase + "/import",
			`{"format":"n8n","document":[{"nodes":[{"name":"a"}]}]}`,
			400,
			invalid("document[0].nodes[0].type"),
		},
	} {
		tc.run(t, c)
	}
}

// TestImportHasNoSecrets checks that no secret and no pinned data of a document is stored
// or returned.
func TestImportHasNoSecrets(t *testing.T) {
	c := newTestClient(t)
	out := c.must(t, 200, "POST", flowBase+"/import", importBody(t, "secrets", false))
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(c.must(
		t,
		200,
		"GET",
		flowBase+"/"+out["workflows"].([]any)[0].(map[string]any)["id"].(string),
		"",
	))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"verysecret", "abcdefghijklmnopqrstuvwxyz", "private@example.com"} {
		if strings.Contains(string(raw), secret) || strings.Contains(string(stored), secret) {
			t.Errorf("%s was imported", secret)
		}
	}
	if len(out["credentials"].([]any)) == 0 {
		t.Error("no credential is requested")
	}
}

// An imported tool names a credential that the user creates afterwards.
func TestImportedToolNamesCredentialToCreate(t *testing.T) {
	c := newTestClient(t)
	const document = `{"name":"w","nodes":[
		{"name":"Chat","type":"@n8n/n8n-nodes-langchain.chatTrigger","parameters":{}},
		{"name":"Agent","type":"@n8n/n8n-nodes-langchain.agent","parameters":{}},
		{"name":"Order","type":"n8n-nodes-base.httpRequestTool","parameters":{"url":"https://x.example/o",
			"authentication":"genericCredentialType","genericAuthType":"httpHeaderAuth"},
			"credentials":{"httpHeaderAuth":{"id":"1","name":"Shop"}}}],
		"connections":{"Chat":{"main":[[{"node":"Agent","type":"main","index":0}]]},
			"Order":{"ai_tool":[[{"node":"Agent","type":"ai_tool","index":0}]]}}}`
	made := c.must(t, 200, "POST", flowBase+"/import", `{"format":"n8n","document":`+document+`}`)
	tool, _ := at(made, "tools.0.id").(string)
	stored := c.must(t, 200, "GET", "/api/agents/default/tools/"+tool, "")
	if name, _ := at(stored, "config.credential").(string); name == "" {
		t.Errorf("the tool names no credential: %v", made)
	}
}
