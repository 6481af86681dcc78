package httpapi

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"satchel/browser/install/installtest"
	"satchel/httpapi/apitest"
)

// TestMCPInstructions has a model sign in, look, read and browse in one session through
// an agent's tools; no response contains what is typed.
func TestMCPInstructions(t *testing.T) {
	installtest.Need(t)
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	ts := newTestServer(t)
	m := newModelServer(t, func(_ int, asked map[string]any) string {
		return `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":` +
			quoted(apitest.SayOfShop(fmt.Sprint(asked["messages"]))) + `}}]}`
	})
	tools := ts.mcpSession(t, "default", "2026-07-28")
	text, failed := callTool(t, tools, "browser_open", `{"url":"`+ts.site+`/"}`)
	id := regexp.MustCompile(`session-\w+`).FindString(text)
	if failed || id == "" {
		t.Fatal(text)
	}
	call := func(tool, arguments, has string, fails bool) string {
		t.Helper()
		text, failed := callTool(t, tools, "browser_"+tool, `{"session_id":"`+id+`"`+arguments+`}`)
		if failed != fails || !strings.Contains(text, has) || strings.Contains(text, "hunter22") {
			t.Errorf("%s %s: failed %t, %s", tool, arguments, failed, text)
		}
		return text
	}
	call("act", `,"instruction":"Write the name."`, "VALIDATION_ERROR: llm_provider", true)
	ts.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"ollama","llm_model":"m","llm_base_url":"`+m.URL+`/v1"}`,
	)
	call("observe", `,"instruction":"Where is the name?"`, `"selector":"input[id=\"name\"]"`, false)
	call("act", `,"instruction":"Write the name.","variables":{"name":"hunter22"}`, `"title":"name:%name%"`, false)
	call("act", `,"instruction":" "`, "VALIDATION_ERROR: instruction", true)
	call(
		"act",
		`,"instruction":"Buy a boat."`,
		"INVALID_ACTION: instruction cannot be carried out on this page: There is no boat.",
		true,
	)
	call(
		"extract",
		`,"instruction":"What is the name?","schema":{"type":"object",`+
			`"properties":{"name":{"type":"string"}},"required":["name"]}`,
		`"value":{"name":"it is hidden"}`,
		false,
	)
	call("extract", `,"instruction":"What is the name?","schema":{"type":"boat"}`, "VALIDATION_ERROR: schema", true)
	call("extract", `,"selector":"div","attribute":"onclick"`, `"value":"document.title='clicked'"`, false)
	call("browse", ``, "VALIDATION_ERROR: goal", true)
	browsed := call("browse", `,"goal":"See the shop.","max_steps":3`, `"status":"done"`, false)
	call(
		"browse",
		`,"browse_id":"`+regexp.MustCompile(`browse-\w+`).FindString(browsed)+`"`,
		`"result":"It is a shop."`,
		false,
	)
	call("browse", `,"browse_id":"browse-x"`, "NOT_FOUND: ", true)
	for _, tool := range []string{"act", "observe", "extract"} {
		if text, failed := callTool(
			t,
			tools,
			"browser_"+tool,
			`{"session_id":"session-x","instruction":"x"}`,
		); !failed || !strings.HasPrefix(text, "NOT_FOUND: ") {
			t.Errorf("%s without a session: %s", tool, text)
		}
	}
	for _, asked := range m.Requests {
		if strings.Contains(fmt.Sprint(asked), "hunter22") {
			t.Errorf("the model received the value: %v", asked)
		}
	}
	call("close", "", "", false)
}
