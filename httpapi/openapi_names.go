package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// irregularIDs are the operation ids that the rule of operationID would not
// give, or not well.
var irregularIDs = map[string]string{
	"GET /openapi.json":                        "getDescription",
	"GET /auth/agents":                         "listMyAgents",
	"POST /agents/import":                      "importAgent",
	"GET /agents/{id}/settings":                "getSettings",
	"PUT /agents/{id}/settings":                "updateSettings",
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

// operationID names a route for programs. It comes from method and path, which
// never change, and not from names in the code: listContacts, getContact,
// createContact, reindexSource, exportContacts.
func operationID(r *Route) string {
	if id, ok := irregularIDs[r.Method+" "+r.Path]; ok {
		return id
	}
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	last := parts[len(parts)-1]
	before := func(n int) string { return parts[max(len(parts)-1-n, 0)] }
	verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete"}[r.Method]
	switch {
	case isParam(last):
		return verb + title(singular(before(1)))
	case strings.HasSuffix(last, "s") && r.Method == http.MethodGet:
		return "list" + title(last)
	case strings.HasSuffix(last, "s"):
		return verb + title(singular(last))
	case r.Method != http.MethodPost && !slices.Contains([]string{"search", "export"}, last):
		return verb + title(last)
	case isParam(before(1)):
		return last + title(singular(before(2)))
	}
	return last + title(before(1))
}

func isParam(part string) bool { return strings.HasPrefix(part, "{") }

func singular(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(noun, "s")
}

func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// areasOf sorts the routes by the first word of their path behind the agent.
var areasOf = []struct{ name, words, about string }{
	{"Service", "health ready version openapi.json", "The server itself."},
	{"Agents", "agents auth backup fork settings", "Agents as a whole: making, changing, copying and deleting them."},
	{"Access", "keys admins", "Who may do what: API keys and people's roles."},
	{"Knowledge", "sources", "Documents that an agent knows, and the search in them."},
	{"Contacts", "contacts", "The people an agent knows."},
	{"Conversations", "conversations", "What was said with contacts."},
	{"Chat", "chat", "Talking to the agent."},
	{"Tools", "tools", "What the agent's model and workflows may call."},
	{"OpenAI", "v1", "The agent as a model of OpenAI's interface."},
	{"MCP", "mcp", "Servers of the Model Context Protocol, whose tools the agent may call."},
	{"Schedules", "schedules", "What the agent does at a time, or again and again."},
	{"Calendar", "calendar calendar.ics", "Tasks with a start and an end, which may recur and start workflows."},
	{"Events", "webhooks", "Subscriptions: events are posted to an address, signed, until it takes them."},
	{"Workflows", "workflows hooks", "Graphs of nodes that an agent executes, and their executions."},
	{"Browser", "browser downloads", "Sessions of a browser that agents and people drive."},
	{"Gateways", "gateways", "Platforms that an agent speaks through: email and messengers."},
	{"SQL", "sql", "The agent's own tables, one statement at a time."},
	{"Logs", "logs", "What happened, and who changed what."},
}

// area is the tag of a route.
func area(r *Route) string {
	word, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.Path, "/agents/{id}/"), "/"), "/")
	for _, a := range areasOf {
		if slices.Contains(strings.Fields(a.words), word) {
			return a.name
		}
	}
	return title(word)
}

// tags describes the areas that have routes, in the order of areasOf.
func (d *description) tags() []*huma.Tag {
	var tags []*huma.Tag
	for _, a := range areasOf {
		if slices.Contains(d.areas, a.name) {
			tags = append(tags, &huma.Tag{Name: a.name, Description: a.about})
		}
	}
	return tags
}

// rules says in words what a route asks of its caller.
func rules(r *Route) string {
	var said []string
	switch r.access {
	case anyone:
		said = append(said, "Needs no identity.")
	case platform:
		said = append(said, "Needs no identity: the platform's signature is checked.")
	case identified:
		said = append(said, "Needs an identity, unless the server is open.")
	case viewer, admin, owner:
		said = append(said, "Needs the role "+string(needed[r.access])+" on the agent.")
	case ownViewer, ownAdmin:
		said = append(said, "Needs the role "+string(needed[r.access])+" of one's own on the agent; the role that everyone has on the default agent does not count.")
	}
	if r.class != unlimited {
		said = append(said, "Counts against the rate limit "+string(r.class)+".")
	}
	if r.whenDisabled {
		said = append(said, "Works on a disabled agent too.")
	}
	return strings.Join(said, " ")
}
