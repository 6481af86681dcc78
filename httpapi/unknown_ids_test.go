package httpapi

import (
	"strconv"
	"testing"
)

// An id in a body that is stored, or used for what is stored, must be that of a record of
// the agent: anything else is an error that names the field, not a record that does nothing.
func TestUnknownIDsAreRefused(t *testing.T) {
	c := newOwnClient(t)
	const at = "/api/agents/default"
	const document = `{"openapi":"3.0.0","info":{"title":"a","version":"1"},"servers":[{"url":"https://x.example"}],` +
		`"paths":{"/a":{"get":{"operationId":"a","responses":{"200":{"description":"ok"}}}}}}`
	c.must(t, 201, "POST", "/api/agents", `{"name":"other"}`)
	foreign := c.must(t, 201, "POST", "/api/agents/other/contacts", `{"name":"x"}`)["id"].(string)
	node := func(status, node string) string {
		return `{"name":"w` + status + `","status":"` + status +
			`","nodes":[{"id":"t","type":"trigger","data":{"event":"manual"}},` + node +
			`],"edges":[{"id":"e","source":"t","target":"n"}]}`
	}
	c.must(
		t, 200, "PUT", at+"/settings",
		`{"llm_provider":"ollama","llm_model":"m","llm_base_url":"https://x.example"}`,
	)
	for _, tc := range []apiCase{
		{"key", "POST", "/api/keys", `{"name":"k","role":"viewer","agents":["nosuch"]}`, 400, invalid("agents")},
		{
			"schedule of a workflow",
			"POST",
			at + "/schedules",
			`{"name":"s","type":"cron","cron_expression":"0 9 * * *","callback_type":"workflow",` +
				`"callback_id":"workflow-x"}`,
			400,
			invalid("callback_id"),
		},
		{
			"schedule of a source",
			"POST",
			at + "/schedules",
			`{"name":"s","type":"cron","cron_expression":"0 9 * * *","callback_type":"source",` +
				`"callback_id":"source-x"}`,
			400,
			invalid("callback_id"),
		},
		{
			"schedule of a tool",
			"POST",
			at + "/schedules",
			`{"name":"s","type":"cron","cron_expression":"0 9 * * *","callback_type":"tool","callback_id":"tool-x"}`,
			400,
			invalid("callback_id"),
		},
		{
			"schedule with a conversation",
			"POST",
			at + "/schedules",
			`{"name":"s","type":"cron","cron_expression":"0 9 * * *","callback_type":"agent",` +
				`"payload":{"prompt":"x","conversation_id":"conversation-x"}}`,
			400,
			invalid("payload.conversation_id"),
		},
		{
			"task",
			"POST",
			at + "/calendar",
			`{"title":"t","start_time":"2030-01-01T00:00:00Z","workflow_id":"workflow-x"}`,
			400,
			invalid("workflow_id"),
		},
		{
			"conversation with a contact",
			"POST",
			at + "/conversations",
			`{"contact_id":"` + foreign + `"}`,
			400,
			invalid("contact_id"),
		},
		{
			"conversation with a gateway",
			"POST",
			at + "/conversations",
			`{"gateway_id":"gateway-x"}`,
			400,
			invalid("gateway_id"),
		},
		{
			"tool of a server",
			"POST",
			at + "/tools",
			`{"name":"a","type":"mcp","config":{"server_id":"mcp-x","tool_name":"t"}}`,
			400,
			invalid("config.server_id"),
		},
		{
			"tool of a workflow",
			"POST",
			at + "/tools",
			`{"name":"a","type":"workflow","config":{"workflow_id":"workflow-x"}}`,
			400,
			invalid("config.workflow_id"),
		},
		{
			"tool of an API",
			"POST",
			at + "/tools",
			`{"name":"a","type":"operation","config":{"api_id":"api-x","operation":"o"}}`,
			400,
			invalid("config.api_id"),
		},
		{
			"tools of an API",
			"POST",
			at + "/tools",
			`{"name":"a","type":"api-set","config":{"api_id":"api-x"}}`,
			400,
			invalid("config.api_id"),
		},
		{
			"tool with a credential",
			"POST",
			at + "/tools",
			`{"name":"a","type":"api","config":{"url":"https://x.example","credential":"nosuch"}}`,
			400,
			invalid("config.credential"),
		},
		{
			"source with a credential",
			"POST",
			at + "/sources",
			`{"name":"a","type":"api","config":{"url":"https://x.example","credential":"nosuch"}}`,
			400,
			invalid("config.credential"),
		},
		{
			"server with a credential",
			"POST",
			at + "/mcp",
			`{"name":"a","url":"https://x.example/mcp","auth":{"type":"none"},"credential":"nosuch"}`,
			400,
			invalid("credential"),
		},
		{
			"API with a credential",
			"POST",
			at + "/apis",
			`{"name":"a","document":` + strconv.Quote(document) + `,"credential":"nosuch"}`,
			400,
			invalid("credential"),
		},
		{
			"active: search",
			"POST",
			at + "/workflows",
			node("active", `{"id":"n","type":"search","data":{"query":"x","source_id":"source-x"}}`),
			400,
			nil,
		},
		{
			"active: tool",
			"POST",
			at + "/workflows",
			node("active", `{"id":"n","type":"tool","data":{"tool_id":"tool-x"}}`),
			400,
			nil,
		},
		{
			"active: workflow",
			"POST",
			at + "/workflows",
			node("active", `{"id":"n","type":"workflow","data":{"workflow_id":"workflow-x"}}`),
			400,
			nil,
		},
		{
			"active: gateway",
			"POST",
			at + "/workflows",
			node(
				"active",
				`{"id":"n","type":"email","data":{"to":"a@b.c","subject":"s","body":"b","gateway_id":"gateway-x"}}`,
			),
			400,
			nil,
		},
		{
			"active: tools of chat",
			"POST",
			at + "/workflows",
			node("active", `{"id":"n","type":"chat","data":{"prompt":"x","tools":["tool-x"]}}`),
			400,
			nil,
		},
		{
			"active: sources of chat",
			"POST",
			at + "/workflows",
			node("active", `{"id":"n","type":"chat","data":{"prompt":"x","sources":["source-x"]}}`),
			400,
			nil,
		},
		{
			"active: conversation of chat",
			"POST",
			at + "/workflows",
			node("active", `{"id":"n","type":"chat","data":{"prompt":"x","conversation_id":"conversation-x"}}`),
			400,
			nil,
		},
		{
			"active: credential",
			"POST",
			at + "/workflows",
			node("active", `{"id":"n","type":"http-request","data":{"url":"https://x.example","credential":"nosuch"}}`),
			400,
			nil,
		},
		{
			"active: operation",
			"POST",
			at + "/workflows",
			node("active", `{"id":"n","type":"operation","data":{"api":"nosuch","operation":"o"}}`),
			400,
			nil,
		},
		{
			"draft: tool",
			"POST",
			at + "/workflows",
			node("draft", `{"id":"n","type":"tool","data":{"tool_id":"tool-x"}}`),
			201,
			nil,
		},
		{"chat with tools", "POST", at + "/chat", `{"message":"x","tools":["tool-x"]}`, 400, invalid("tools")},
		{"chat with sources", "POST", at + "/chat", `{"message":"x","sources":["source-x"]}`, 400, invalid("sources")},
		{
			"chat of a contact",
			"POST",
			at + "/chat",
			`{"message":"x","contact_id":"contact-x"}`,
			400,
			invalid("contact_id"),
		},
		{
			"webhook for an event",
			"POST",
			at + "/webhooks",
			`{"url":"https://x.example","events":["nosuch.event"]}`,
			400,
			invalid("events[0]"),
		},
	} {
		tc.run(t, c)
	}
	c.must(
		t, 201, "POST", at+"/credentials",
		`{"name":"shop","type":"header","hosts":["x.example"],"secret":{"X-Key":"k"}}`,
	)
	tool := at + "/tools/" +
		c.must(
			t, 201, "POST", at+"/tools",
			`{"name":"b","type":"api","config":{"url":"https://x.example","credential":"shop"}}`,
		)["id"].(string)
	draft := at + "/workflows/" +
		c.must(
			t, 201, "POST", at+"/workflows",
			node("draft", `{"id":"n","type":"tool","data":{"tool_id":"tool-x"}}`),
		)["id"].(string)
	api := at + "/apis/" +
		c.must(t, 201, "POST", at+"/apis", `{"name":"a","document":`+strconv.Quote(document)+`}`)["id"].(string)
	schedule := at + "/schedules/" +
		c.must(
			t, 201, "POST", at+"/schedules",
			`{"name":"s","type":"cron","cron_expression":"0 9 * * *","callback_type":"agent","payload":{"prompt":"x"}}`,
		)["id"].(string)
	task := at + "/calendar/" +
		c.must(
			t, 201, "POST", at+"/calendar",
			`{"title":"t","start_time":"2030-01-01T00:00:00Z","recurrence":"daily"}`,
		)["id"].(string)
	conversation := at + "/conversations/" + c.must(t, 201, "POST", at+"/conversations", `{}`)["id"].(string)
	for _, tc := range []apiCase{
		{"API gets another credential", "PUT", api, `{"credential":"nosuch"}`, 400, invalid("credential")},
		{
			"schedule calls another",
			"PUT",
			schedule,
			`{"callback_type":"workflow","callback_id":"workflow-x"}`,
			400,
			invalid("callback_id"),
		},
		{
			"schedule gets a conversation",
			"PUT",
			schedule,
			`{"payload":{"prompt":"x","conversation_id":"conversation-x"}}`,
			400,
			invalid("payload.conversation_id"),
		},
		{"task gets a workflow", "PUT", task, `{"workflow_id":"workflow-x"}`, 400, invalid("workflow_id")},
		{
			"occurrence gets a workflow",
			"PUT",
			task + "/occurrences/2030-01-02T00:00:00Z",
			`{"workflow_id":"workflow-x"}`,
			400,
			invalid("workflow_id"),
		},
		{
			"conversation gets a contact",
			"PUT",
			conversation,
			`{"contact_id":"` + foreign + `"}`,
			400,
			invalid("contact_id"),
		},
		{"conversation gets a gateway", "PUT", conversation, `{"gateway_id":"gateway-x"}`, 400, invalid("gateway_id")},
		{
			"tool gets another credential",
			"PUT",
			tool,
			`{"config":{"url":"https://x.example","credential":"nosuch"}}`,
			400,
			invalid("config.credential"),
		},
		{
			"draft becomes active", "PUT", draft, `{"status":"active"}`, 400,
			map[string]any{"error.details.field": "nodes[1].data.tool_id", "error.details.node_id": "n"},
		},
		{"draft is renamed", "PUT", draft, `{"name":"renamed"}`, 200, nil},
		{
			"a draft is checked for the editor",
			"POST",
			at + "/workflows/validate",
			node("draft", `{"id":"n","type":"tool","data":{"tool_id":"tool-x"}}`),
			200,
			map[string]any{"issues.0.field": "nodes[1].data.tool_id", "issues.0.severity": "warning"},
		},
		{
			"a credential by name",
			"POST",
			at + "/workflows",
			node("active", `{"id":"n","type":"http-request","data":{"url":"https://x.example","credential":"shop"}}`),
			201,
			nil,
		},
		{
			"an id of a template",
			"POST",
			at + "/workflows",
			node("active", `{"id":"n","type":"tool","data":{"tool_id":"{{input.tool}}"}}`),
			201,
			nil,
		},
		{
			"a disabled node",
			"POST",
			at + "/workflows",
			node("active", `{"id":"n","type":"tool","data":{"tool_id":"tool-x","disabled":true}}`),
			201,
			nil,
		},
	} {
		tc.run(t, c)
	}
}
