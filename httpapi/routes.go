package httpapi

import (
	"satchel/agent"
	"satchel/flow/graph"
	"satchel/gateways"
	"satchel/httpapi/rest"
	"satchel/vector/document"
)

// api returns the table of all routes of the REST API.
func (s *Server) api() []*rest.Route {
	return []*rest.Route{
		rest.JSON("GET", "/health", 200, "Check that the server is running", s.health).Role(rest.Anyone).Limit(rest.Unlimited),
		rest.JSON("GET", "/ready", 200, "Check that the server is ready", s.ready).
			Role(rest.Anyone).
			Limit(rest.Unlimited).
			Fails(agent.CodeInternal, agent.CodeUnavailable),
		rest.JSON("GET", "/version", 200, "Read the versions of the program and the API", s.version).Role(rest.Anyone),
		rest.Raw[struct{}]("GET", "/openapi.json", 200, "Read this description", s.openAPIFile).
			Role(rest.Anyone).
			Limit(rest.Unlimited).
			Tagged().
			Returns(map[string]any{}),
		rest.Raw[struct{}]("GET", "/node-types", 200, "List the types of workflow nodes", s.listNodeTypes).Role(rest.Anyone).Tagged().Returns(graph.Catalog{}),
		rest.JSON("GET", "/templates", 200, "List workflow templates", s.listTemplates).Role(rest.Anyone),

		rest.JSON("GET", "/mcp-catalogue", 200, "Search the catalogue of MCP servers", s.mcpCatalogue).Role(rest.Identified).Fails(agent.CodeUpstream),
		rest.JSON("GET", "/credential-presets", 200, "List credential presets", s.listPresets).Role(rest.Anyone),

		rest.JSON("GET", "/console", 200, "Read the initial data of a console page", s.console).Role(rest.Anyone).Fails(agent.CodeUnavailable),

		rest.JSON("GET", "/cluster", 200, "List the servers of the cluster", s.getCluster).
			Role(rest.Identified).
			Fails(agent.CodeNotFound, agent.CodeUnavailable),
		rest.JSON("GET", "/cluster/agents", 200, "List the agents of the cluster with the servers that own them", s.listClusterAgents).
			Role(rest.Identified).Fails(agent.CodeNotFound, agent.CodeUnavailable),
		rest.JSON("POST", "/cluster/agents/{agent}/move", 200, "Move an agent to another server of the cluster", s.moveAgent).
			Role(rest.Identified).Fails(agent.CodeConflict, agent.CodeUnavailable),
		rest.JSON("POST", "/cluster/nodes/{nodeId}/drain", 202, "Move all agents of a server to the others of the cluster", s.drainNode).
			Role(rest.Identified).Fails(agent.CodeUnavailable),

		rest.JSON("GET", "/agents", 200, "List agents", s.listAgents).Role(rest.Anyone).Fails(agent.CodeUnavailable),
		rest.JSON("POST", "/agents", 201, "Create an agent", s.createAgent).Locates(agentLocation).Fails(agent.CodeAgentNameExists),
		rest.Raw[struct{}]("POST", "/agents/import", 201, "Import a backup as a new, paused agent", s.importAgent).Limit(rest.Bulk).
			Takes(rest.Form{File: "file"}).Returns(agent.Agent{}).Fails(agent.CodeInvalidFile, agent.CodeFileTooLarge, agent.CodeUnsupportedFormat),
		rest.JSON("GET", "/auth/agents", 200, "List the agents of the authenticated user with the user's role", s.myAgents).Fails(agent.CodeUnavailable),
		rest.JSON("GET", "/keys", 200, "List API keys", s.listKeys).Fails(agent.CodeUnavailable),
		rest.JSON("POST", "/keys", 201, "Create an API key, which is only shown once", s.createKey).
			Locates(keyLocation).
			Fails(agent.CodeConflict, agent.CodeUnavailable),
		rest.JSON("DELETE", "/keys/{keyId}", 204, "Revoke an API key", s.deleteKey).Fails(agent.CodeUnavailable),
		rest.JSON("GET", "/access", 200, "Read who may use the server", s.getAccess).Fails(agent.CodeUnavailable),
		rest.JSON("PUT", "/access", 200, "Choose what callers without an identity may do with the default agent", s.putAccess).
			Fails(agent.CodeConflict, agent.CodeUnavailable),

		rest.JSON("GET", "/agents/{id}", 200, "Read an agent with its settings and counts", s.getAgent).AllowDisabled(),
		rest.JSON("PUT", "/agents/{id}", 200, "Update an agent", s.updateAgent).AllowDisabled().Fails(agent.CodeAgentNameExists),
		rest.JSON("DELETE", "/agents/{id}", 200, "Delete an agent with all its data", s.deleteAgent).Role(rest.Owner).AllowDisabled().AllowDamaged(),
		rest.Raw[struct{}]("POST", "/agents/{id}/backup", 200, "Download a consistent copy of the agent's file", s.backupAgent).
			Role(rest.OwnAdmin).Limit(rest.Bulk).Attaches("application/vnd.sqlite3"),
		rest.JSON("POST", "/agents/{id}/fork", 201, "Fork an agent under a new name; the copy is paused", s.forkAgent).
			Role(rest.OwnAdmin).Limit(rest.Bulk).Locates(agentLocation).Fails(agent.CodeAgentNameExists),
		rest.JSON("GET", "/agents/{id}/overview", 200, "Read an overview of an agent: setup steps, counts, daily series, failures, next runs", s.overview),
		rest.Raw[struct{}]("GET", streamRoute, 200, "Stream the agent's changes as server-sent events", s.stream).Answers(rest.EventStream),
		rest.JSON("PUT", "/agents/{id}/presence", 204, "Set which record the viewer of a stream has open", s.setPresence).
			Role(rest.Viewer).
			BodyUpTo(maxSmallBody),
		rest.JSON("GET", "/agents/{id}/waiting", 200, "List pending approvals, takeovers and handovers, newest first", s.listWaiting),
		rest.JSON("GET", "/agents/{id}/settings", 200, "Read settings", s.getSettings),
		rest.JSON("PUT", "/agents/{id}/settings", 200, "Update settings and credentials; null removes a field", s.updateSettings),
		rest.JSON("POST", "/agents/{id}/settings/models", 200, "List the models of a provider by settings that are not saved", s.listGivenModels).
			Limit(rest.Chat),
		rest.JSON("POST", "/agents/{id}/settings/test", 200, "Test language model settings with one call, without saving them", s.testSettings).
			Limit(rest.Chat),
		rest.JSON("GET", "/agents/{id}/admins", 200, "List people with a role on the agent", s.listAdmins).Role(rest.OwnViewer),
		rest.JSON("POST", "/agents/{id}/admins", 201, "Give a person a role", s.createAdmin).Role(rest.Owner).Fails(agent.CodeConflict).
			Locates(adminLocation),
		rest.JSON("PUT", "/agents/{id}/admins/{adminId}", 200, "Give a person another role", s.updateAdmin).Role(rest.Owner).Fails(agent.CodeConflict),
		rest.JSON("DELETE", "/agents/{id}/admins/{adminId}", 204, "Remove a person's role", s.deleteAdmin).Role(rest.Owner).Fails(agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/logs", 200, "List the agent's log", s.listLogs),

		rest.JSON("GET", "/agents/{id}/sources", 200, "List sources", s.listSources),
		rest.Raw[createSourceIn]("POST", "/agents/{id}/sources", 201, "Create a source: a document, web pages, a query or an API", s.createSource).
			Takes(sourceForm).Returns(agent.Source{}).Fails(agent.CodeFileTooLarge, agent.CodeUnsupportedFormat),
		rest.Raw[struct{}]("POST", "/agents/{id}/sources/batch", 200, "Upload several documents, each as a source", s.createSources).Limit(rest.Bulk).
			Takes(batchForm).Returns(batchOut{}).Fails(agent.CodeFileTooLarge, agent.CodeUnsupportedFormat),
		rest.JSON("POST", "/agents/{id}/sources/change", 200, "Delete several sources, or read them again", s.changeSources).Limit(rest.Bulk),
		rest.JSON("POST", "/agents/{id}/sources/crawl", 201, "Create a source by crawling a site in the background", s.createCrawl).
			Limit(rest.Bulk).
			Locates(sourceLocation),
		rest.JSON("GET", "/agents/{id}/sources/search", 200, "Search the knowledge by meaning and by words", s.searchSources),
		rest.JSON("POST", "/agents/{id}/sources/search", 200, "Search the knowledge by meaning and by words", s.searchSourcesByBody).
			Role(rest.Viewer).
			BodyUpTo(rest.MaxOpenBody),
		rest.JSON("GET", "/agents/{id}/sources/{sourceId}", 200, "Read a source, with its progress while it is processed", s.getSource),
		rest.JSON("PUT", "/agents/{id}/sources/{sourceId}", 200, "Update a source's name, or its database or API config", s.updateSource).
			Fails(agent.CodeConflict, agent.CodeInvalidQuery, agent.CodeForbiddenOperation),
		rest.JSON("DELETE", "/agents/{id}/sources/{sourceId}", 200, "Delete a source with its chunks", s.deleteSource),
		rest.Raw[sourceIn]("GET", "/agents/{id}/sources/{sourceId}/file", 200, "Download a source's original file", s.sourceFile).
			Attaches(document.MediaTypes()...),
		rest.JSON("GET", "/agents/{id}/sources/{sourceId}/chunks", 200, "List the chunks of a source", s.listChunks),
		rest.JSON("GET", "/agents/{id}/sources/{sourceId}/text", 200, "Read the text of a source around a chunk or from an offset", s.sourceText),
		rest.JSON("POST", "/agents/{id}/sources/{sourceId}/reindex", 200, "Read and embed a source again", s.reindexSource).
			Limit(rest.Bulk).
			Fails(agent.CodeConflict),
		rest.JSON("POST", "/agents/{id}/sources/{sourceId}/refresh", 200, "Process a source again", s.refreshSource).Limit(rest.Bulk).Fails(agent.CodeConflict),
		rest.JSON("POST", "/agents/{id}/sources/{sourceId}/stop", 200, "Stop crawling or processing a source", s.stopSource).Fails(agent.CodeConflict),

		rest.JSON("GET", "/agents/{id}/contacts", 200, "List contacts", s.listContacts),
		rest.JSON("POST", "/agents/{id}/contacts", 201, "Add a contact", s.createContact).Locates(contactLocation).Fails(agent.CodeDuplicateContact),
		rest.JSON("POST", "/agents/{id}/contacts/batch", 200, "Tag or delete several contacts", s.batchContacts),
		rest.JSON("GET", "/agents/{id}/contacts/tags", 200, "List the tags of contacts", s.listContactTags),
		rest.JSON("GET", "/agents/{id}/contacts/resolve", 200, "Find a contact by an identifier", s.resolveContact),
		rest.Raw[importContactsIn]("POST", "/agents/{id}/contacts/import", 200, "Import contacts from a CSV file", s.importContacts).Limit(rest.Bulk).
			Takes(rest.Form{
				File:   "file",
				Fields: map[string]string{"on_duplicate": "update, skip or error", "dry_run": "true: store nothing and return what would be stored"},
			}).Returns(importResult{}).
			Fails(agent.CodeFileTooLarge, agent.CodeUnsupportedFormat),
		rest.Raw[exportContactsIn]("GET", "/agents/{id}/contacts/export", 200, "Export all contacts as CSV or JSON", s.exportContacts).
			Role(rest.OwnViewer).
			Limit(rest.Bulk).
			Attaches("text/csv").
			Returns(contactsExport{}),
		rest.JSON("GET", "/agents/{id}/contacts/{contactId}", 200, "Read a contact", s.getContact),
		rest.JSON("PUT", "/agents/{id}/contacts/{contactId}", 200, "Update a contact", s.updateContact).Fails(agent.CodeDuplicateContact),
		rest.JSON("DELETE", "/agents/{id}/contacts/{contactId}", 204, "Delete a contact", s.deleteContact),

		rest.JSON("GET", "/agents/{id}/conversations", 200, "List conversations", s.listConversations),
		rest.JSON("POST", "/agents/{id}/conversations", 201, "Create a conversation", s.createConversation).Locates(conversationLocation),
		rest.JSON("GET", "/agents/{id}/conversations/counts", 200, "Count conversations for the tabs of an inbox", s.countConversations),
		rest.JSON("POST", "/agents/{id}/conversations/batch", 200, "Make the same change to several conversations", s.batchConversations),
		rest.JSON("GET", "/agents/{id}/conversations/{conversationId}", 200, "Read a conversation with its newest 200 messages", s.getConversation),
		rest.JSON("PUT", "/agents/{id}/conversations/{conversationId}", 200, "Update a conversation", s.updateConversation),
		rest.JSON("DELETE", "/agents/{id}/conversations/{conversationId}", 204, "Delete a conversation with its messages", s.deleteConversation),
		rest.JSON("GET", "/agents/{id}/conversations/{conversationId}/messages", 200, "List messages by cursor", s.listMessages),
		rest.JSON("POST", "/agents/{id}/conversations/{conversationId}/messages", 201, "Add a message", s.appendMessage).Locates(messageLocation),
		rest.Raw[conversationIn](
			"POST",
			"/agents/{id}/conversations/{conversationId}/files",
			201,
			"Send a message with files to the visitor of a website",
			s.sendFiles,
		).Takes(sendFilesForm).Returns(messageOut{}).Fails(agent.CodeFileTooLarge, agent.CodeUnsupportedFormat),
		rest.Raw[attachmentIn]("GET", "/agents/{id}/messages/{messageId}/attachments/{index}", 200, "Get a file that came with a message", s.attachmentFile).
			Attaches("*/*").
			Fails(agent.CodeConflict),
		rest.JSON("PUT", "/agents/{id}/messages/{messageId}/feedback", 200, "Rate an answer; null removes the rating", s.updateFeedback),
		rest.JSON("GET", "/agents/{id}/feedback", 200, "List rated answers, newest first", s.listFeedback),
		rest.JSON("POST", "/agents/{id}/conversations/{conversationId}/messages/{messageId}/resend", 200, "Resend a message that failed", s.resendMessage).
			Fails(agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/conversations/{conversationId}/draft", 200, "Read the caller's draft of an answer", s.getDraft),
		rest.JSON("PUT", "/agents/{id}/conversations/{conversationId}/draft", 200, "Save the caller's draft of an answer", s.putDraft),

		rest.JSON("GET", "/agents/{id}/replies", 200, "List canned replies", s.listReplies),
		rest.JSON("POST", "/agents/{id}/replies", 201, "Create a canned reply", s.createReply).Locates(replyLocation).Fails(agent.CodeConflict),
		rest.JSON("PUT", "/agents/{id}/replies/{replyId}", 200, "Update a canned reply", s.updateReply).Fails(agent.CodeConflict),
		rest.JSON("DELETE", "/agents/{id}/replies/{replyId}", 204, "Delete a canned reply", s.deleteReply),

		rest.JSON("GET", "/agents/{id}/schedules", 200, "List schedules", s.listSchedules),
		rest.JSON("POST", "/agents/{id}/schedules", 201, "Create a schedule", s.createSchedule).Locates(scheduleLocation).Fails(agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/schedules/preview", 200, "Preview the next runs of a schedule", s.previewSchedule),
		rest.JSON("GET", "/agents/{id}/schedules/days", 200, "List past and planned runs of schedules by day", s.scheduleDays),
		rest.JSON("GET", "/agents/{id}/schedules/{scheduleId}", 200, "Read a schedule with its newest runs", s.getSchedule),
		rest.JSON("PUT", "/agents/{id}/schedules/{scheduleId}", 200, "Update a schedule", s.updateSchedule),
		rest.JSON("DELETE", "/agents/{id}/schedules/{scheduleId}", 204, "Delete a schedule with its runs", s.deleteSchedule),
		rest.JSON("POST", "/agents/{id}/schedules/{scheduleId}/run", 200, "Run a schedule now", s.runSchedule).Fails(agent.CodeConflict),

		rest.JSON("GET", "/agents/{id}/calendar", 200, "List tasks, or their occurrences in a range", s.listTasks),
		rest.JSON("POST", "/agents/{id}/calendar", 201, "Create a task", s.createTask).Locates(taskLocation).Fails(agent.CodeConflict),
		rest.Raw[struct{}]("GET", "/agents/{id}/calendar.ics", 200, "Download the calendar as an iCalendar feed", s.calendarFeed).Attaches("text/calendar"),
		rest.JSON("GET", "/agents/{id}/calendar/{taskId}", 200, "Read a task", s.getTask),
		rest.JSON("PUT", "/agents/{id}/calendar/{taskId}", 200, "Update a task", s.updateTask),
		rest.JSON("DELETE", "/agents/{id}/calendar/{taskId}", 204, "Delete a task with its occurrences", s.deleteTask),
		rest.JSON(
			"PUT",
			"/agents/{id}/calendar/{taskId}/occurrences/{start}",
			200,
			"Update one occurrence of a task, or it and all later ones",
			s.updateOccurrence,
		).Fails(agent.CodeConflict),
		rest.JSON(
			"DELETE",
			"/agents/{id}/calendar/{taskId}/occurrences/{start}",
			204,
			"Cancel one occurrence of a task, or it and all later ones",
			s.deleteOccurrence,
		).Fails(agent.CodeConflict),

		rest.JSON("GET", "/agents/{id}/webhooks", 200, "List webhook subscriptions", s.listWebhooks),
		rest.JSON("POST", "/agents/{id}/webhooks", 201, "Create a webhook subscription; its secret is only shown once", s.createWebhook).
			Locates(webhookLocation).
			Fails(agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/webhooks/{webhookId}", 200, "Read a subscription", s.getWebhook),
		rest.JSON("PUT", "/agents/{id}/webhooks/{webhookId}", 200, "Update a subscription", s.updateWebhook),
		rest.JSON("DELETE", "/agents/{id}/webhooks/{webhookId}", 204, "Delete a subscription with its deliveries", s.deleteWebhook),
		rest.JSON(
			"POST",
			"/agents/{id}/webhooks/{webhookId}/rotate",
			200,
			"Rotate a subscription's secret; the old one stays valid for a day",
			s.rotateWebhook,
		),
		rest.JSON("POST", "/agents/{id}/webhooks/{webhookId}/test", 200, "Send a test event and return the result", s.testWebhook),
		rest.JSON("GET", "/agents/{id}/webhooks/{webhookId}/deliveries", 200, "List deliveries, newest first", s.listDeliveries),
		rest.JSON("GET", "/agents/{id}/webhooks/{webhookId}/deliveries/{deliveryId}", 200, "Read a delivery with its body", s.getDelivery),
		rest.JSON("POST", "/agents/{id}/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver", 200, "Redeliver with the same webhook-id", s.redeliver).
			Fails(agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/events", 200, "List events, newest first", s.listEvents),
		rest.JSON("GET", "/agents/{id}/deliveries", 200, "List deliveries to all subscriptions, newest first", s.listAllDeliveries),
		rest.JSON("GET", "/agents/{id}/tools", 200, "List tools", s.listTools),
		rest.JSON("POST", "/agents/{id}/tools", 201, "Create a tool", s.createTool).Locates(toolLocation).Fails(agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/tools/{toolId}", 200, "Read a tool; its secrets are masked", s.getTool),
		rest.JSON("PUT", "/agents/{id}/tools/{toolId}", 200, "Update a tool", s.updateTool).Fails(agent.CodeConflict),
		rest.JSON("DELETE", "/agents/{id}/tools/{toolId}", 204, "Delete a tool", s.deleteTool),
		rest.JSON("POST", "/agents/{id}/tools/{toolId}/execute", 200, "Call a tool; success is false if it fails", s.executeTool),

		rest.JSON("GET", "/agents/{id}/credentials", 200, "List credentials and what uses them", s.listCredentials),
		rest.JSON("POST", "/agents/{id}/credentials", 201, "Create a credential; its secret is never returned", s.createCredential).
			Locates(credentialLocation).
			Fails(agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/credentials/{credentialId}", 200, "Read a credential and what uses it", s.getCredential),
		rest.JSON(
			"PUT",
			"/agents/{id}/credentials/{credentialId}",
			200,
			"Update a credential; another host, endpoint or type needs the secret again",
			s.updateCredential,
		).Fails(agent.CodeConflict),
		rest.JSON("DELETE", "/agents/{id}/credentials/{credentialId}", 204, "Delete a credential that nothing uses", s.deleteCredential).
			Fails(agent.CodeConflict),
		rest.JSON(
			"POST",
			"/agents/{id}/credentials/{credentialId}/test",
			200,
			"Test a credential with its test request; a failure is success false",
			s.testCredential,
		).Fails(agent.CodeConflict),
		rest.JSON("POST", "/agents/{id}/credentials/{credentialId}/confirm", 200, "Confirm a credential that was copied with its agent", s.confirmCredential),
		rest.JSON("POST", "/agents/{id}/credentials/{credentialId}/connect", 200, "Start connecting a credential; a person then signs in", s.connectCredential).
			Fails(agent.CodeConflict, agent.CodeUpstream),
		rest.JSON(
			"POST",
			"/agents/{id}/credentials/{credentialId}/connect/complete",
			200,
			"Complete a sign-in manually, or check whether a device was authorized",
			s.completeConnection,
		).Fails(agent.CodeConflict, agent.CodeUpstream),
		rest.JSON(
			"DELETE",
			"/agents/{id}/credentials/{credentialId}/connection",
			204,
			"Disconnect a credential: its tokens are deleted, and revoked if possible",
			s.deleteConnection,
		),

		rest.JSON("GET", "/agents/{id}/apis", 200, "List APIs and what calls them", s.listAPIs),
		rest.JSON("POST", "/agents/{id}/apis", 201, "Create an API from its description", s.createAPI).
			Limit(rest.Bulk).
			Locates(apiLocation).
			Fails(agent.CodeConflict, agent.CodeInvalidFile, agent.CodeFileTooLarge),
		rest.JSON("GET", "/agents/{id}/apis/{apiId}", 200, "Read an API", s.getAPI),
		rest.JSON("PUT", "/agents/{id}/apis/{apiId}", 200, "Update an API, or read its description again; some changes need a confirmation", s.updateAPI).
			Limit(rest.Bulk).
			Fails(agent.CodeConflict, agent.CodeInvalidFile, agent.CodeFileTooLarge),
		rest.JSON("DELETE", "/agents/{id}/apis/{apiId}", 204, "Delete an API that nothing calls", s.deleteAPI).Fails(agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/apis/{apiId}/operations", 200, "List the operations of an API", s.listOperations),
		rest.JSON("GET", "/agents/{id}/apis/{apiId}/operations/{operation}", 200, "Read an operation with the schema of its arguments", s.getOperation),
		rest.JSON(
			"POST",
			"/agents/{id}/apis/{apiId}/operations/{operation}/execute",
			200,
			"Call an operation; success is false if it fails",
			s.executeOperation,
		),
		rest.JSON("POST", "/agents/{id}/apis/{apiId}/tools", 200, "Create tools from operations of an API", s.createAPITools).Fails(agent.CodeConflict),

		rest.JSON("GET", "/agents/{id}/mcp", 200, "Check and list MCP servers", s.listMCPServers),
		rest.JSON("POST", "/agents/{id}/mcp", 201, "Register and check an MCP server", s.createMCPServer).Locates(mcpServerLocation).Fails(agent.CodeConflict),
		rest.JSON("DELETE", "/agents/{id}/mcp", 204, "Delete an MCP server", s.deleteMCPServer),
		rest.JSON("PUT", "/agents/{id}/mcp/{serverId}", 200, "Update and check an MCP server", s.updateMCPServer).Fails(agent.CodeConflict),
		rest.JSON("POST", "/agents/{id}/mcp/{serverId}/connect", 200, "Start a login to an MCP server; a person then signs in", s.connectMCPServer).
			Fails(agent.CodeConflict, agent.CodeUpstream),
		rest.JSON("POST", "/agents/{id}/mcp/{serverId}/call", 200, "Call a tool of an MCP server; success is false if it fails", s.callMCPTool),
		rest.JSON(
			"GET",
			"/agents/{id}/mcp/{serverId}/tools",
			200,
			"List the tools of an MCP server, or the last known ones if it is unreachable",
			s.listMCPTools,
		).Fails(agent.CodeUpstream, agent.CodeConflict),

		rest.Raw[chatIn]("POST", "/agents/{id}/chat", 200, "Chat with the agent", s.chatTurn).Limit(rest.Chat).
			Answers(rest.EventStream).Returns(chatOut{}).Fails(agent.CodeUpstream, agent.CodeConflict),
		rest.Raw[runIn]("GET", "/agents/{id}/chat/{runId}/events", 200, "Stream a chat turn by its run_id from its start", s.followRun).
			Answers(rest.EventStream),
		rest.JSON("POST", "/agents/{id}/chat/{runId}/stop", 200, "Stop a chat turn by its run_id; its text so far is kept", s.stopRun),
		rest.JSON("GET", "/agents/{id}/models", 200, "List the language models of the provider", s.listModels).Role(rest.Admin).
			Fails(agent.CodeUpstream, agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/embedding-models", 200, "List the search models that are installed on the server", s.listEmbeddingModels).
			Role(rest.Admin),
		rest.Raw[struct{}]("GET", "/agents/{id}/v1/models", 200, "List the agent as a model of the OpenAI API", s.openAIFault(s.openAIModels)).Limit(rest.Chat).
			Returns(openAIModels{}),
		rest.Raw[openAIModelIn]("GET", "/agents/{id}/v1/models/{model}", 200, "Read the agent as a model of the OpenAI API", s.openAIFault(s.openAIModel)).
			Limit(rest.Chat).
			Returns(openAIModel{}),
		rest.Raw[openAIChatIn]("POST", "/agents/{id}/v1/chat/completions", 200, "Create a chat completion, as in the OpenAI API", s.openAIFault(s.openAIChat)).
			Limit(rest.Chat).Answers(rest.EventStream).Returns(openAIChatOut{}).Fails(agent.CodeUpstream, agent.CodeConflict),
		rest.Raw[responseIn]("POST", "/agents/{id}/v1/responses", 200, "Create a response, as in the OpenAI Responses API", s.openAIFault(s.createResponse)).
			Limit(rest.Chat).Answers(rest.EventStream).Returns(response{}).Fails(agent.CodeUpstream, agent.CodeConflict),
		rest.Raw[responseIDIn]("GET", "/agents/{id}/v1/responses/{responseId}", 200, "Read a response that is kept", s.openAIFault(s.getResponse)).
			Limit(rest.Chat).
			Returns(response{}),
		rest.Raw[responseIDIn]("DELETE", "/agents/{id}/v1/responses/{responseId}", 200, "Delete a response that is kept", s.openAIFault(s.deleteResponse)).
			Limit(rest.Chat).
			Returns(deletedResponse{}),
		rest.Raw[openAIEmbeddingsIn]("POST", "/agents/{id}/v1/embeddings", 200, "Create embeddings, as in the OpenAI API", s.openAIFault(s.openAIEmbeddings)).
			Limit(rest.Chat).Returns(openAIEmbeddingsOut{}).Fails(agent.CodeUpstream, agent.CodeConflict),

		rest.JSON("POST", "/agents/{id}/templates/{templateId}", 201, "Create a workflow and the records it needs from a template", s.useTemplate).
			Locates(templateLocation),
		rest.JSON("GET", "/agents/{id}/workflows", 200, "List workflows", s.listWorkflows),
		rest.JSON("POST", "/agents/{id}/workflows", 201, "Create a workflow", s.createWorkflow).Locates(workflowLocation).Tagged(),
		rest.JSON("POST", "/agents/{id}/workflows/execute", 200, "Execute a workflow and optionally wait for its end", s.executeWorkflow).
			Fails(agent.CodeAlreadyRunning, agent.CodeConflict, agent.CodeBudget),
		rest.JSON("POST", "/agents/{id}/workflows/import", 200, "Import workflows from another program as drafts", s.importWorkflows),
		rest.JSON("POST", "/agents/{id}/workflows/validate", 200, "Validate a graph without saving it", s.validateWorkflow),
		rest.JSON("POST", "/agents/{id}/workflows/test", 200, "Test a graph without saving it", s.testWorkflow),
		rest.JSON("GET", "/agents/{id}/workflows/executions", 200, "List executions, newest first", s.listExecutions),
		rest.JSON("GET", "/agents/{id}/workflows/executions/{executionId}", 200, "Read an execution with the results of its nodes", s.getExecution),
		rest.JSON(
			"GET",
			"/agents/{id}/workflows/executions/{executionId}/nodes/{node}",
			200,
			"Read the input, resolved data or output of a node",
			s.getNodePart,
		),
		rest.Raw[executionIn](
			"GET",
			"/agents/{id}/workflows/executions/{executionId}/events",
			200,
			"Stream an execution as server-sent events",
			s.watchExecution,
		).Answers(rest.EventStream),
		rest.JSON("POST", "/agents/{id}/workflows/executions/{executionId}/terminate", 200, "Terminate an execution", s.terminateExecution).
			Fails(agent.CodeConflict),
		rest.JSON(
			"POST",
			"/agents/{id}/workflows/executions/{executionId}/retry",
			200,
			"Retry an execution from a node or from the one that failed",
			s.retryExecution,
		).Fails(agent.CodeAlreadyRunning, agent.CodeConflict, agent.CodeBudget),
		rest.JSON("POST", "/agents/{id}/workflows/executions/{executionId}/resume", 200, "Resume a waiting node, or decide an approval", s.resumeExecution).
			Fails(agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/workflows/{workflowId}", 200, "Read a workflow", s.getWorkflow).Tagged(),
		rest.JSON("PUT", "/agents/{id}/workflows/{workflowId}", 200, "Update a workflow; a changed graph is a new version", s.updateWorkflow).
			Tagged().
			Fails(agent.CodeConflict),
		rest.JSON("DELETE", "/agents/{id}/workflows/{workflowId}", 200, "Delete a workflow with its executions", s.deleteWorkflow),
		rest.JSON("GET", "/agents/{id}/workflows/{workflowId}/versions", 200, "List the versions of a workflow", s.listWorkflowVersions),
		rest.JSON("GET", "/agents/{id}/workflows/{workflowId}/versions/{version}", 200, "Read a workflow with the graph of a version", s.getWorkflowVersion),
		rest.JSON("POST", "/agents/{id}/workflows/{workflowId}/versions/{version}/restore", 200, "Restore an old version as a new one", s.restoreWorkflow).
			Tagged(),
		rest.JSON("POST", "/agents/{id}/workflows/{workflowId}/test-node", 200, "Run one node of a workflow", s.testNode),
		rest.Raw[incomingWebhookIn](
			"POST",
			"/agents/{id}/hooks/{workflowId}",
			200,
			"Start a workflow by webhook; a webhook-response node sets the response",
			s.callIncomingWebhook,
		).OrSecret().
			Limit(rest.Inbound).
			Accepts("application/json", "application/x-www-form-urlencoded", "text/plain").
			BodyUpTo(maxIncomingBody).
			Answers("*/*").
			Returns(hookOut{}).
			Fails(agent.CodeConflict, agent.CodeFileTooLarge, agent.CodeBudget),
		rest.JSON("GET", "/agents/{id}/gateways", 200, "List gateways", s.listGateways),
		rest.JSON("POST", "/agents/{id}/gateways", 201, "Create a gateway to a platform; its webhook secret is only shown once", s.createGateway).
			Locates(gatewayLocation).
			Fails(agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/gateways/{gatewayId}", 200, "Read a gateway", s.getGateway),
		rest.JSON("PUT", "/agents/{id}/gateways/{gatewayId}", 200, "Update a gateway; a changed config must be verified again", s.updateGateway),
		rest.JSON("DELETE", "/agents/{id}/gateways/{gatewayId}", 204, "Delete a gateway; its conversations are kept", s.deleteGateway),
		rest.JSON("GET", "/agents/{id}/gateways/{gatewayId}/widget", 200, "Read a widget's options and its HTML snippet", s.widgetOptions).
			Fails(agent.CodeConflict),
		rest.JSON("POST", "/agents/{id}/gateways/{gatewayId}/verify", 200, "Verify a gateway's config with the platform", s.verifyGateway),
		rest.JSON("POST", "/agents/{id}/gateways/{gatewayId}/test", 200, "Send a test message", s.testGateway).Fails(agent.CodeConflict),
		rest.JSON("POST", "/agents/{id}/gateways/{gatewayId}/webhook/register", 200, "Register the gateway's webhook with the platform", s.registerGateway),
		rest.JSON("POST", "/agents/{id}/gateways/{gatewayId}/simulate", 201, "Simulate an inbound message", s.simulateMessage).
			Locates(simulatedLocation).
			Fails(agent.CodeConflict),
		rest.Raw[gatewayIn]("POST", "/agents/{id}/gateways/{gatewayId}/webhook", 200, "Receive a platform's webhook request", s.receivePost).
			Role(rest.Platform).
			Limit(rest.Inbound).
			Accepts("application/json", "application/x-www-form-urlencoded").
			BodyUpTo(gateways.MaxPost).
			Answers("text/xml", "text/plain").
			Returns(receivedOut{}).
			Fails(agent.CodeFileTooLarge),

		rest.JSON("GET", "/agents/{id}/browser", 200, "List browser sessions, newest first", s.listSessions).Limit(rest.Browser),
		rest.JSON("POST", "/agents/{id}/browser", 201, "Open a browser session", s.createSession).
			Limit(rest.Browser).
			Locates(sessionLocation).
			Fails(agent.CodeBrowser),
		rest.JSON("DELETE", "/agents/{id}/browser", 200, "Close a browser session", s.deleteSession).Limit(rest.Browser),
		rest.JSON("POST", "/agents/{id}/browser/{sessionId}/execute", 200, "Execute one or several actions", s.executeActions).Limit(rest.Browser).
			Fails(agent.CodeInvalidAction, agent.CodeActionTimeout, agent.CodeBrowser),
		rest.JSON("POST", "/agents/{id}/browser/{sessionId}/act", 200, "Carry out an instruction on the page", s.actInSession).
			Limit(rest.Browser).
			Fails(instructionFailures...),
		rest.JSON("POST", "/agents/{id}/browser/{sessionId}/observe", 200, "Find the actions that a page offers for an instruction", s.observeSession).
			Limit(rest.Browser).
			Fails(instructionFailures...),
		rest.JSON("POST", "/agents/{id}/browser/{sessionId}/extract", 200, "Read a value from the page", s.extractFromSession).
			Limit(rest.Browser).
			Fails(instructionFailures...),
		rest.JSON("GET", "/agents/{id}/browser/{sessionId}/browse", 200, "List the goals that were pursued in a session, newest first", s.listBrowses).
			Limit(rest.Browser),
		rest.JSON("POST", "/agents/{id}/browser/{sessionId}/browse", 201, "Pursue a goal in the background and optionally wait for its end", s.startBrowse).
			Limit(rest.Browser).Locates(browseLocation).Fails(agent.CodeConflict),
		rest.JSON(
			"GET",
			"/agents/{id}/browser/{sessionId}/browse/{browseId}",
			200,
			"Read the pursuit of a goal with its steps, and optionally wait for its end",
			s.getBrowse,
		).Limit(rest.Browser),
		rest.JSON("POST", "/agents/{id}/browser/{sessionId}/browse/{browseId}/cancel", 200, "Cancel the pursuit of a goal", s.cancelBrowse).
			Limit(rest.Browser).
			Fails(agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/browser/{sessionId}", 200, "Read a browser session with its tabs", s.getSession).Limit(rest.Browser),
		rest.JSON("POST", "/agents/{id}/browser/{sessionId}/close", 200, "Close a browser session, which stays in the list", s.closeSession).
			Limit(rest.Browser),
		rest.JSON("GET", "/agents/{id}/browser/{sessionId}/actions", 200, "List the actions of a browser session, newest first", s.listSessionActions).
			Limit(rest.Browser),
		rest.Raw[sessionIn](
			"GET",
			"/agents/{id}/browser/{sessionId}/thumbnail",
			200,
			"Read a thumbnail of a session's active tab, or the last one if it has ended",
			s.sessionThumbnail,
		).Limit(rest.Unlimited).Answers("image/jpeg"),
		rest.JSON("GET", "/agents/{id}/browser/{sessionId}/live-view", 200, "Get the URL of a session's live view", s.liveView).Limit(rest.Browser),
		rest.JSON("POST", "/agents/{id}/browser/{sessionId}/takeover", 201, "Request that a person take over a session", s.createTakeover).
			Limit(rest.Browser).
			Locates(takeoverLocation).
			Fails(agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/browser/{sessionId}/takeover/{takeoverId}", 200, "Read a takeover", s.getTakeover).Limit(rest.Browser),
		rest.JSON("DELETE", "/agents/{id}/browser/{sessionId}/takeover/{takeoverId}", 204, "Cancel a takeover", s.cancelTakeover).
			Limit(rest.Browser).
			Fails(agent.CodeConflict),
		rest.JSON("POST", "/agents/{id}/browser/{sessionId}/takeover/{takeoverId}/complete", 200, "Complete a takeover", s.completeTakeover).
			Limit(rest.Browser).
			Fails(agent.CodeConflict),

		rest.JSON("GET", "/agents/{id}/downloads", 200, "List downloads of browser sessions, newest first", s.listDownloads).Limit(rest.Browser),
		rest.Raw[downloadIn]("GET", "/agents/{id}/downloads/{downloadId}", 200, "Get the file of a download", s.downloadFile).
			Limit(rest.Browser).
			Attaches("*/*"),
		rest.JSON("DELETE", "/agents/{id}/downloads/{downloadId}", 204, "Delete a download", s.deleteDownload).Limit(rest.Browser),

		rest.JSON("GET", "/agents/{id}/tables", 200, "List the agent's own tables", s.listTables),
		rest.JSON("POST", "/agents/{id}/tables", 201, "Create a table", s.createTable).Locates(tableLocation).Fails(agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/tables/{table}", 200, "Read the definition of a table", s.getTable),
		rest.JSON("PUT", "/agents/{id}/tables/{table}", 200, "Rename a table, or change its columns with the values in them", s.updateTable).
			Fails(agent.CodeConflict),
		rest.JSON("DELETE", "/agents/{id}/tables/{table}", 204, "Delete a table with its rows", s.deleteTable),
		rest.JSON("GET", "/agents/{id}/tables/{table}/rows", 200, "List rows", s.listRows),
		rest.JSON("POST", "/agents/{id}/tables/{table}/rows", 201, "Add one row or several", s.createRows).Locates(rowLocation).Fails(agent.CodeConflict),
		rest.JSON("POST", "/agents/{id}/tables/{table}/rows/upsert", 200, "Update the row with the same value in a unique column, or add it", s.upsertRow).
			Fails(agent.CodeConflict),
		rest.JSON("POST", "/agents/{id}/tables/{table}/rows/batch", 200, "Change or delete several rows", s.batchRows).Fails(agent.CodeConflict),
		rest.JSON("GET", "/agents/{id}/tables/{table}/rows/{rowId}", 200, "Read a row", s.getRow),
		rest.JSON("PUT", "/agents/{id}/tables/{table}/rows/{rowId}", 200, "Update a row", s.updateRow).Fails(agent.CodeConflict),
		rest.JSON("DELETE", "/agents/{id}/tables/{table}/rows/{rowId}", 204, "Delete a row", s.deleteRow),
		rest.Raw[importRowsIn]("POST", "/agents/{id}/tables/{table}/import", 200, "Import rows from a CSV file", s.importRows).Limit(rest.Bulk).
			Takes(rest.Form{
				File: "file",
				Fields: map[string]string{
					"key":     "the column by which rows are found that are there already",
					"dry_run": "true: nothing is stored; the answer says what would be",
				},
			}).Returns(importResult{}).
			Fails(agent.CodeFileTooLarge, agent.CodeUnsupportedFormat),
		rest.Raw[exportRowsIn]("GET", "/agents/{id}/tables/{table}/export", 200, "Export all rows as CSV or JSON", s.exportRows).
			Role(rest.OwnViewer).
			Limit(rest.Bulk).
			Attaches("text/csv").
			Returns(rowsExport{}),

		rest.JSON("GET", "/agents/{id}/forms", 200, "List the forms that start workflows, with their URLs", s.listForms),

		rest.JSON("GET", "/agents/{id}/sql/schema", 200, "Describe the agent's tables", s.sqlSchema),
		rest.Raw[sqlIn]("POST", "/agents/{id}/sql/execute", 200, "Run one SQL statement on the agent's tables", s.sqlExecute).
			Role(rest.Viewer).
			BodyUpTo(rest.MaxOpenBody).
			Returns(sqlOut{}).
			Fails(agent.CodeInvalidQuery, agent.CodeForbiddenOperation, agent.CodeExecution),
	}
}
