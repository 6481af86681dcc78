package httpapi

import (
	"satchel/agent"
	"satchel/vector/document"
)

// api is the table of every route of the REST interface.
func (s *Server) api() []*Route {
	return []*Route{
		route("GET", "/health", 200, "Tell that the process answers", s.health).role(anyone).limit(unlimited),
		route("GET", "/ready", 200, "Tell whether the service can work", s.ready).role(anyone).limit(unlimited).fails(agent.CodeInternal),
		route("GET", "/version", 200, "Tell the program's and the interface's version", s.version).role(anyone),
		raw[struct{}]("GET", "/openapi.json", 200, "This description", s.openAPIFile).role(anyone).limit(unlimited).returns(map[string]any{}),

		route("GET", "/agents", 200, "List agents", s.listAgents).role(anyone),
		route("POST", "/agents", 201, "Make an agent", s.createAgent).locates(agentLocation).fails(agent.CodeAgentNameExists),
		raw[struct{}]("POST", "/agents/import", 201, "Bring back a backup as a new, paused agent", s.importAgent).limit(bulk).
			takes(form{file: "file"}).returns(agent.Agent{}).fails(agent.CodeInvalidFile, agent.CodeFileTooLarge, agent.CodeUnsupportedFormat),
		route("GET", "/auth/agents", 200, "List the agents of the authenticated user with the user's role", s.myAgents),
		route("GET", "/keys", 200, "List API keys", s.listKeys),
		route("POST", "/keys", 201, "Make an API key; the key itself is shown only now", s.createKey).locates(keyLocation),
		route("DELETE", "/keys/{keyId}", 204, "Revoke an API key", s.deleteKey),

		route("GET", "/agents/{id}", 200, "Read an agent with its settings and counts", s.getAgent).disabledToo(),
		route("PUT", "/agents/{id}", 200, "Change an agent", s.updateAgent).disabledToo().fails(agent.CodeAgentNameExists),
		route("DELETE", "/agents/{id}", 200, "Delete an agent with all its data", s.deleteAgent).role(owner).disabledToo(),
		raw[struct{}]("POST", "/agents/{id}/backup", 200, "Download a consistent copy of the agent's file", s.backupAgent).
			role(ownAdmin).limit(bulk).attaches("application/vnd.sqlite3"),
		route("POST", "/agents/{id}/fork", 201, "Copy an agent under a new name; the copy is paused", s.forkAgent).
			role(ownAdmin).limit(bulk).locates(agentLocation).fails(agent.CodeAgentNameExists),
		route("GET", "/agents/{id}/settings", 200, "Read settings", s.getSettings),
		route("PUT", "/agents/{id}/settings", 200, "Change settings and credentials; null removes", s.updateSettings),
		route("GET", "/agents/{id}/admins", 200, "List who has a role", s.listAdmins).role(ownViewer),
		route("POST", "/agents/{id}/admins", 201, "Give a person a role", s.createAdmin).role(owner).fails(agent.CodeConflict).
			locates(adminLocation),
		route("DELETE", "/agents/{id}/admins/{adminId}", 204, "Take a person's role away", s.deleteAdmin).role(owner).fails(agent.CodeConflict),
		route("GET", "/agents/{id}/logs", 200, "List the agent's log", s.listLogs),

		route("GET", "/agents/{id}/sources", 200, "List sources", s.listSources),
		raw[createSourceIn]("POST", "/agents/{id}/sources", 201, "Upload a document, or name a page, a query or an API, as a source", s.createSource).
			takes(sourceForm).returns(agent.Source{}).fails(agent.CodeFileTooLarge, agent.CodeUnsupportedFormat),
		route("POST", "/agents/{id}/sources/crawl", 201, "Crawl a site as a source; the answer does not wait for it", s.createCrawl).limit(bulk).locates(sourceLocation),
		route("GET", "/agents/{id}/sources/search", 200, "Search knowledge by meaning and by words", s.searchSources),
		route("POST", "/agents/{id}/sources/search", 200, "Search knowledge by meaning and by words", s.searchSourcesByBody).role(viewer),
		route("GET", "/agents/{id}/sources/{sourceId}", 200, "Read a source; while it is worked on, with its progress", s.getSource),
		route("PUT", "/agents/{id}/sources/{sourceId}", 200, "Change a source's name, or how a database or an API is read", s.updateSource).
			fails(agent.CodeConflict, agent.CodeInvalidQuery, agent.CodeForbiddenOperation),
		route("DELETE", "/agents/{id}/sources/{sourceId}", 200, "Delete a source with its chunks", s.deleteSource),
		raw[sourceIn]("GET", "/agents/{id}/sources/{sourceId}/file", 200, "Download the original", s.sourceFile).attaches(document.MediaTypes()...),
		route("GET", "/agents/{id}/sources/{sourceId}/chunks", 200, "List the chunks of a source", s.listChunks),
		route("POST", "/agents/{id}/sources/{sourceId}/reindex", 200, "Read and embed a source again", s.reindexSource).limit(bulk).fails(agent.CodeConflict),
		route("POST", "/agents/{id}/sources/{sourceId}/refresh", 200, "Process a source again", s.refreshSource).limit(bulk).fails(agent.CodeConflict),

		route("GET", "/agents/{id}/contacts", 200, "List contacts", s.listContacts),
		route("POST", "/agents/{id}/contacts", 201, "Add a contact", s.createContact).locates(contactLocation).fails(agent.CodeDuplicateContact),
		route("GET", "/agents/{id}/contacts/resolve", 200, "Find the contact that has an identifier", s.resolveContact),
		raw[importContactsIn]("POST", "/agents/{id}/contacts/import", 200, "Import contacts from a CSV file", s.importContacts).limit(bulk).
			takes(form{file: "file", fields: map[string]string{"on_duplicate": "update, skip or error"}}).returns(importResult{}).
			fails(agent.CodeFileTooLarge, agent.CodeUnsupportedFormat),
		raw[exportContactsIn]("GET", "/agents/{id}/contacts/export", 200, "Export all contacts as CSV or JSON", s.exportContacts).role(ownViewer).limit(bulk).attaches("text/csv").returns(contactsExport{}),
		route("GET", "/agents/{id}/contacts/{contactId}", 200, "Read a contact", s.getContact),
		route("PUT", "/agents/{id}/contacts/{contactId}", 200, "Change a contact", s.updateContact).fails(agent.CodeDuplicateContact),
		route("DELETE", "/agents/{id}/contacts/{contactId}", 204, "Delete a contact", s.deleteContact),

		route("GET", "/agents/{id}/conversations", 200, "List conversations", s.listConversations),
		route("POST", "/agents/{id}/conversations", 201, "Open a conversation", s.createConversation).locates(conversationLocation),
		route("GET", "/agents/{id}/conversations/{conversationId}", 200, "Read a conversation with its newest 200 messages", s.getConversation),
		route("PUT", "/agents/{id}/conversations/{conversationId}", 200, "Change a conversation", s.updateConversation),
		route("DELETE", "/agents/{id}/conversations/{conversationId}", 204, "Delete a conversation with its messages", s.deleteConversation),
		route("GET", "/agents/{id}/conversations/{conversationId}/messages", 200, "List messages by cursor", s.listMessages),
		route("POST", "/agents/{id}/conversations/{conversationId}/messages", 201, "Add a message", s.appendMessage).locates(messageLocation),

		route("GET", "/agents/{id}/schedules", 200, "List schedules", s.listSchedules),
		route("POST", "/agents/{id}/schedules", 201, "Make a schedule", s.createSchedule).locates(scheduleLocation).fails(agent.CodeConflict),
		route("GET", "/agents/{id}/schedules/{scheduleId}", 200, "Read a schedule with its newest runs", s.getSchedule),
		route("PUT", "/agents/{id}/schedules/{scheduleId}", 200, "Change a schedule", s.updateSchedule),
		route("DELETE", "/agents/{id}/schedules/{scheduleId}", 204, "Delete a schedule with its runs", s.deleteSchedule),
		route("POST", "/agents/{id}/schedules/{scheduleId}/run", 200, "Run a schedule now", s.runSchedule).fails(agent.CodeConflict),

		route("GET", "/agents/{id}/calendar", 200, "List tasks; with start or end, their occurrences in that range", s.listTasks),
		route("POST", "/agents/{id}/calendar", 201, "Make a task", s.createTask).locates(taskLocation).fails(agent.CodeConflict),
		raw[struct{}]("GET", "/agents/{id}/calendar.ics", 200, "The calendar as an iCalendar feed", s.calendarFeed).attaches("text/calendar"),
		route("GET", "/agents/{id}/calendar/{taskId}", 200, "Read a task", s.getTask),
		route("PUT", "/agents/{id}/calendar/{taskId}", 200, "Change a task", s.updateTask),
		route("DELETE", "/agents/{id}/calendar/{taskId}", 204, "Delete a task with its occurrences", s.deleteTask),

		route("GET", "/agents/{id}/webhooks", 200, "List webhook subscriptions", s.listWebhooks),
		route("POST", "/agents/{id}/webhooks", 201, "Subscribe to events; the secret is shown only now", s.createWebhook).locates(webhookLocation).fails(agent.CodeConflict),
		route("GET", "/agents/{id}/webhooks/{webhookId}", 200, "Read a subscription", s.getWebhook),
		route("PUT", "/agents/{id}/webhooks/{webhookId}", 200, "Change a subscription, or switch it off and on", s.updateWebhook),
		route("DELETE", "/agents/{id}/webhooks/{webhookId}", 204, "Delete a subscription with its deliveries", s.deleteWebhook),
		route("POST", "/agents/{id}/webhooks/{webhookId}/rotate", 200, "Give a subscription a new secret; the one before signs along for a day", s.rotateWebhook),
		route("POST", "/agents/{id}/webhooks/{webhookId}/test", 200, "Send a test event at once and tell what came of it", s.testWebhook),
		route("GET", "/agents/{id}/webhooks/{webhookId}/deliveries", 200, "List deliveries, newest first", s.listDeliveries),
		route("POST", "/agents/{id}/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver", 200, "Deliver again under the same webhook-id", s.redeliver).fails(agent.CodeConflict),
		route("GET", "/agents/{id}/tools", 200, "List tools", s.listTools),
		route("POST", "/agents/{id}/tools", 201, "Make a tool", s.createTool).locates(toolLocation).fails(agent.CodeConflict),
		route("GET", "/agents/{id}/tools/{toolId}", 200, "Read a tool, its secrets masked", s.getTool),
		route("PUT", "/agents/{id}/tools/{toolId}", 200, "Change a tool", s.updateTool).fails(agent.CodeConflict),
		route("DELETE", "/agents/{id}/tools/{toolId}", 204, "Delete a tool", s.deleteTool),
		route("POST", "/agents/{id}/tools/{toolId}/execute", 200, "Call a tool; one that fails answers success false", s.executeTool),

		route("GET", "/agents/{id}/mcp", 200, "List MCP servers with their states, after a look at each", s.listMCPServers),
		route("POST", "/agents/{id}/mcp", 201, "Register an MCP server and tell whether it answers", s.createMCPServer).locates(mcpServerLocation).fails(agent.CodeConflict),
		route("DELETE", "/agents/{id}/mcp", 200, "Delete an MCP server", s.deleteMCPServer),
		route("GET", "/agents/{id}/mcp/{serverId}/tools", 200, "List the tools of an MCP server; the last known ones when it is away", s.listMCPTools).
			fails(agent.CodeUpstream, agent.CodeConflict),

		raw[chatIn]("POST", "/agents/{id}/chat", 200, "Say something to the agent and get its answer", s.chatTurn).limit(chat).
			answers(eventStream).returns(chatOut{}).fails(agent.CodeUpstream, agent.CodeConflict),
		raw[struct{}]("GET", "/agents/{id}/v1/models", 200, "The agent as a model of OpenAI's interface", openAIFault(s.openAIModels)).limit(chat).
			returns(openAIModels{}),
		raw[openAIModelIn]("GET", "/agents/{id}/v1/models/{model}", 200, "The agent as one model of OpenAI's interface", openAIFault(s.openAIModel)).limit(chat).
			returns(openAIModel{}),
		raw[openAIChatIn]("POST", "/agents/{id}/v1/chat/completions", 200, "Talk to the agent as to a model of OpenAI's interface", openAIFault(s.openAIChat)).
			limit(chat).answers(eventStream).returns(openAIChatOut{}).fails(agent.CodeUpstream, agent.CodeConflict),
		raw[openAIEmbeddingsIn]("POST", "/agents/{id}/v1/embeddings", 200, "Embed texts as OpenAI's interface does", openAIFault(s.openAIEmbeddings)).
			limit(chat).returns(openAIEmbeddingsOut{}).fails(agent.CodeUpstream, agent.CodeConflict),

		route("GET", "/agents/{id}/workflows", 200, "List workflows", s.listWorkflows),
		route("POST", "/agents/{id}/workflows", 201, "Make a workflow", s.createWorkflow).locates(workflowLocation),
		route("POST", "/agents/{id}/workflows/execute", 200, "Execute a workflow; with wait, answer at its end", s.executeWorkflow).
			fails(agent.CodeAlreadyRunning, agent.CodeConflict, agent.CodeBudget),
		route("GET", "/agents/{id}/workflows/executions", 200, "List executions, newest first", s.listExecutions),
		route("GET", "/agents/{id}/workflows/executions/{executionId}", 200, "Read an execution with what became of its nodes", s.getExecution),
		raw[executionIn]("GET", "/agents/{id}/workflows/executions/{executionId}/events", 200, "Watch an execution live, as server-sent events", s.watchExecution).
			answers(eventStream),
		route("POST", "/agents/{id}/workflows/executions/{executionId}/terminate", 200, "End an execution at once", s.terminateExecution).fails(agent.CodeConflict),
		route("POST", "/agents/{id}/workflows/executions/{executionId}/retry", 200, "Repeat an execution from a node, or from the one that failed", s.retryExecution).
			fails(agent.CodeAlreadyRunning, agent.CodeConflict, agent.CodeBudget),
		route("POST", "/agents/{id}/workflows/executions/{executionId}/resume", 200, "End a node's wait, or decide an approval", s.resumeExecution).fails(agent.CodeConflict),
		route("GET", "/agents/{id}/workflows/{workflowId}", 200, "Read a workflow", s.getWorkflow),
		route("PUT", "/agents/{id}/workflows/{workflowId}", 200, "Change a workflow; a changed graph is a new version", s.updateWorkflow),
		route("DELETE", "/agents/{id}/workflows/{workflowId}", 200, "Delete a workflow with its executions", s.deleteWorkflow),
		route("GET", "/agents/{id}/workflows/{workflowId}/versions", 200, "List the versions of a workflow", s.listWorkflowVersions),
		route("GET", "/agents/{id}/workflows/{workflowId}/versions/{version}", 200, "Read a workflow with the graph of a version", s.getWorkflowVersion),
		route("POST", "/agents/{id}/workflows/{workflowId}/versions/{version}/restore", 200, "Make an old version the newest", s.restoreWorkflow),
		route("POST", "/agents/{id}/workflows/{workflowId}/test-node", 200, "Run one node alone, for real", s.testNode),
		raw[hookIn]("POST", "/agents/{id}/hooks/{workflowId}", 200, "Start a workflow whose trigger is webhook; a webhook-response node makes the answer", s.callHook).
			orSecret().limit(inbound).accepts("application/json", "application/x-www-form-urlencoded", "text/plain").answers("*/*").returns(hookOut{}).fails(agent.CodeConflict, agent.CodeFileTooLarge, agent.CodeBudget),
		route("GET", "/agents/{id}/gateways", 200, "List gateways", s.listGateways),
		route("POST", "/agents/{id}/gateways", 201, "Connect a platform; the webhook secret is shown only now", s.createGateway).locates(gatewayLocation).fails(agent.CodeConflict),
		route("GET", "/agents/{id}/gateways/{gatewayId}", 200, "Read a gateway", s.getGateway),
		route("PUT", "/agents/{id}/gateways/{gatewayId}", 200, "Change a gateway; a new config is to be verified again", s.updateGateway),
		route("DELETE", "/agents/{id}/gateways/{gatewayId}", 204, "Delete a gateway; its conversations stay", s.deleteGateway),
		route("POST", "/agents/{id}/gateways/{gatewayId}/verify", 200, "Ask the platform whether the config is good", s.verifyGateway),
		route("POST", "/agents/{id}/gateways/{gatewayId}/webhook/register", 200, "Tell the platform to post to the gateway's webhook", s.registerGateway),
		raw[gatewayIn]("POST", "/agents/{id}/gateways/{gatewayId}/webhook", 200, "Take in what the platform posts; other platforms than a custom webhook hear what they want to hear", s.takePost).
			role(platform).limit(inbound).accepts("application/json", "application/x-www-form-urlencoded").answers("text/xml", "text/plain").returns(receivedOut{}).fails(agent.CodeFileTooLarge),

		route("GET", "/agents/{id}/browser", 200, "List browser sessions, newest first", s.listSessions).limit(browser),
		route("POST", "/agents/{id}/browser", 201, "Open a browser session", s.createSession).limit(browser).locates(sessionLocation).fails(agent.CodeBrowser),
		route("DELETE", "/agents/{id}/browser", 200, "Close a browser session", s.deleteSession).limit(browser),
		route("POST", "/agents/{id}/browser/{sessionId}/execute", 200, "Do one action, or several in their order", s.executeActions).limit(browser).
			fails(agent.CodeInvalidAction, agent.CodeActionTimeout, agent.CodeBrowser),
		route("GET", "/agents/{id}/browser/{sessionId}", 200, "Read a browser session with its tabs", s.getSession).limit(browser),
		route("GET", "/agents/{id}/browser/{sessionId}/live-view", 200, "Get the address of a page that shows the session", s.liveView).limit(browser),
		route("POST", "/agents/{id}/browser/{sessionId}/takeover", 201, "Ask for a person to control the session", s.createTakeover).limit(browser).locates(takeoverLocation).fails(agent.CodeConflict),
		route("GET", "/agents/{id}/browser/{sessionId}/takeover/{takeoverId}", 200, "Read a takeover", s.getTakeover).limit(browser),
		route("DELETE", "/agents/{id}/browser/{sessionId}/takeover/{takeoverId}", 204, "Call a takeover off", s.cancelTakeover).limit(browser).fails(agent.CodeConflict),
		route("POST", "/agents/{id}/browser/{sessionId}/takeover/{takeoverId}/complete", 200, "End a takeover: the person is done", s.completeTakeover).limit(browser).fails(agent.CodeConflict),

		route("GET", "/agents/{id}/downloads", 200, "List what pages gave out to browser sessions, newest first", s.listDownloads).limit(browser),
		raw[downloadIn]("GET", "/agents/{id}/downloads/{downloadId}", 200, "Fetch a download", s.downloadFile).limit(browser).attaches("*/*"),
		route("DELETE", "/agents/{id}/downloads/{downloadId}", 204, "Delete a download", s.deleteDownload).limit(browser),

		route("GET", "/agents/{id}/sql/schema", 200, "Describe the agent's tables", s.sqlSchema),
		route("POST", "/agents/{id}/sql/execute", 200, "Run one SQL statement on the agent's tables", s.sqlExecute).role(viewer).
			fails(agent.CodeInvalidQuery, agent.CodeForbiddenOperation, agent.CodeExecution),
	}
}
