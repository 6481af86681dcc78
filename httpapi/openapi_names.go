package httpapi

import "satchel/httpapi/rest"

// irregularIDs are the operation ids that the rule of rest.API would not
// give, or not well.
var irregularIDs = map[string]string{
	"GET /openapi.json":                        "getDescription",
	"GET /auth/agents":                         "listMyAgents",
	"POST /agents/import":                      "importAgent",
	"GET /agents/{id}/settings":                "getSettings",
	"PUT /agents/{id}/settings":                "updateSettings",
	"POST /agents/{id}/sources/batch":          "createSources",
	"POST /agents/{id}/sources/search":         "searchSourcesByBody",
	"GET /agents/{id}/contacts/resolve":        "resolveContact",
	"GET /agents/{id}/calendar":                "listTasks",
	"POST /agents/{id}/calendar":               "createTask",
	"GET /agents/{id}/calendar.ics":            "getCalendarFeed",
	"GET /agents/{id}/calendar/{taskId}":       "getTask",
	"PUT /agents/{id}/calendar/{taskId}":       "updateTask",
	"DELETE /agents/{id}/calendar/{taskId}":    "deleteTask",
	"GET /agents/{id}/sql/schema":              "getSQLSchema",
	"POST /agents/{id}/sql/execute":            "executeSQL",
	"GET /agents/{id}/sources/{sourceId}/file": "getSourceFile",

	"GET /agents/{id}/browser":                      "listSessions",
	"POST /agents/{id}/browser":                     "createSession",
	"DELETE /agents/{id}/browser":                   "deleteSession",
	"POST /agents/{id}/browser/{sessionId}/execute": "executeActions",
	"GET /agents/{id}/browser/{sessionId}":          "getSession",

	"GET /agents/{id}/browser/{sessionId}/live-view":                       "getLiveView",
	"POST /agents/{id}/browser/{sessionId}/takeover":                       "createTakeover",
	"GET /agents/{id}/browser/{sessionId}/takeover/{takeoverId}":           "getTakeover",
	"DELETE /agents/{id}/browser/{sessionId}/takeover/{takeoverId}":        "cancelTakeover",
	"POST /agents/{id}/browser/{sessionId}/takeover/{takeoverId}/complete": "completeTakeover",

	"GET /agents/{id}/mcp":                  "listMCPServers",
	"POST /agents/{id}/mcp":                 "createMCPServer",
	"DELETE /agents/{id}/mcp":               "deleteMCPServer",
	"GET /agents/{id}/mcp/{serverId}/tools": "listMCPTools",

	"POST /agents/{id}/workflows/execute":                                 "executeWorkflow",
	"GET /agents/{id}/workflows/executions/{executionId}/events":          "watchExecution",
	"GET /agents/{id}/workflows/{workflowId}/versions":                    "listWorkflowVersions",
	"GET /agents/{id}/workflows/{workflowId}/versions/{version}":          "getWorkflowVersion",
	"POST /agents/{id}/workflows/{workflowId}/versions/{version}/restore": "restoreWorkflow",
	"POST /agents/{id}/workflows/{workflowId}/test-node":                  "testNode",
	"POST /agents/{id}/hooks/{workflowId}":                                "callHook",
	"POST /agents/{id}/gateways/{gatewayId}/webhook":                      "postToGateway",
	"POST /agents/{id}/gateways/{gatewayId}/webhook/register":             "registerGatewayWebhook",
}

// areasOf sorts the routes by the first word of their path behind the agent.
var areasOf = []rest.Area{
	{Name: "Service", Words: "health ready version openapi.json", About: "The server itself."},
	{Name: "Agents", Words: "agents auth backup fork settings", About: "Agents as a whole: making, changing, copying and deleting them."},
	{Name: "Access", Words: "keys admins", About: "Who may do what: API keys and people's roles."},
	{Name: "Knowledge", Words: "sources", About: "Documents that an agent knows, and the search in them."},
	{Name: "Contacts", Words: "contacts", About: "The people an agent knows."},
	{Name: "Conversations", Words: "conversations", About: "What was said with contacts."},
	{Name: "Chat", Words: "chat", About: "Talking to the agent."},
	{Name: "Tools", Words: "tools", About: "What the agent's model and workflows may call."},
	{Name: "OpenAI", Words: "v1", About: "The agent as a model of OpenAI's interface."},
	{Name: "MCP", Words: "mcp", About: "Servers of the Model Context Protocol, whose tools the agent may call."},
	{Name: "Schedules", Words: "schedules", About: "What the agent does at a time, or again and again."},
	{Name: "Calendar", Words: "calendar calendar.ics", About: "Tasks with a start and an end, which may recur and start workflows."},
	{Name: "Events", Words: "webhooks", About: "Subscriptions: events are posted to an address, signed, until it takes them."},
	{Name: "Workflows", Words: "workflows hooks", About: "Graphs of nodes that an agent executes, and their executions."},
	{Name: "Browser", Words: "browser downloads", About: "Sessions of a browser that agents and people drive."},
	{Name: "Gateways", Words: "gateways", About: "Platforms that an agent speaks through: email and messengers."},
	{Name: "SQL", Words: "sql", About: "The agent's own tables, one statement at a time."},
	{Name: "Logs", Words: "logs", About: "What happened, and who changed what."},
}

// componentNames are the names of types that the rule of rest.API would
// not give, or not well.
var componentNames = map[string]string{
	"rest.ErrorBody":          "Error",
	"rest.Meta":               "PageMeta",
	"agent.Stats":             "AgentStats",
	"agent.Progress":          "SourceProgress",
	"agent.Log":               "LogEntry",
	"vector.Result":           "SearchResult",
	"vector.ResultMetadata":   "SearchMetadata",
	"httpapi.searchIn":        "SearchQuery",
	"httpapi.searchOut":       "SearchAnswer",
	"httpapi.keyOut":          "NewKey",
	"httpapi.settingsOut":     "Settings",
	"httpapi.contactItem":     "ContactSummary",
	"httpapi.resolved":        "ContactMatch",
	"httpapi.rowIssue":        "ImportIssue",
	"httpapi.restarted":       "RestartedSource",
	"httpapi.writtenSchedule": "WrittenSchedule",
	"httpapi.taskItem":        "TaskOrOccurrence",
	"agent.Run":               "ScheduleRun",
	"httpapi.schemaOut":       "SQLSchema",
	"flow.Tested":             "NodeTest",
	"sqlsandbox.Result":       "SQLResult",
	"store.Table":             "SQLTable",
	"store.Column":            "SQLColumn",
	"httpapi.deliveriesOut":   "DeliveryList",
	"httpapi.mcpServersOut":   "MCPServerList",
	"httpapi.mcpToolsOut":     "MCPToolList",
	"httpapi.chunkingIn":      "ChunkingOptions",
}
