package graph

var aiTypes = []Type{
	{
		Name: "chat", Label: "Ask the model", Group: "AI", Icon: "Sparkles", Docs: "chat.md", Needs: []string{"model"},
		Summary: "Asks the agent's language model, optionally with its knowledge and tools.", Synonyms: []string{"chat", "llm", "gpt", "claude", "prompt", "ai", "answer", "classify", "extract", "summarise"},
		Data: []Field{
			text("prompt", "Prompt", "What to ask the model.").widget("textarea").required(),
			text("system_prompt", "Instructions", "Replaces the agent's own.").widget("textarea"),
			text("model", "Model", "Replaces the agent's own.").ref("model").advanced(),
			number("temperature", "Temperature", "Randomness of the answer, from 0 to 2.").advanced(),
			list("tools", "Tools", "Ids of the tools it may call; true: all, false: none.").orKind("bool").ref("tool"),
			list("sources", "Sources", "Ids of the sources it may read; true: all, false: none.").orKind("bool").ref("source"),
			text("conversation_id", "Conversation", "Continues this conversation and adds the answer to it.").widget("template").advanced(),
			object("output_schema", "Answer format", "A JSON Schema that json in the output conforms to.").widget("schema").advanced(),
			number("max_steps", "Maximum rounds", "How many rounds of tool calls are allowed.").advanced(),
		},
		Output: []Field{text("text", "Text", "The answer.").required(), anything("json", "JSON", "The answer as JSON, if output_schema is set."),
			list("tool_calls", "Tool calls", "").orKind("null"), list("sources", "Sources", "The passages that were used.").orKind("null"), object("usage", "Usage", "Tokens.").orKind("null")},
		Example:       `{"prompt":"Answer in one sentence: {{message.content}}","sources":true}`,
		ExampleOutput: `{"text":"You can return bread within two days.","json":null,"tool_calls":[],"sources":[],"usage":{"input_tokens":412,"output_tokens":11}}`,
	},
	{
		Name: "search", Label: "Search knowledge", Group: "AI", Icon: "Search", Docs: "knowledge.md",
		Summary: "Finds the passages of the agent's sources that answer a question.", Synonyms: []string{"retrieve", "rag", "knowledge", "vector", "passages", "documents"},
		Data: []Field{
			text("query", "Question", "What to look for.").required(),
			number("limit", "Results", "The maximum number of results.").within(1, 50).defaultsTo(10),
			text("source_id", "Source", "Search only this source.").ref("source").advanced(),
			choice("mode", "Mode", "By meaning, by words, or both.", "hybrid", "vector", "keyword").defaultsTo("hybrid").advanced(),
			number("min_score", "Minimum score", "From 0 to 1.").within(0, 1).advanced(),
		},
		Output:        []Field{list("results", "Results", "Best first.").required()},
		Example:       `{"query":"{{message.content}}","limit":3}`,
		ExampleOutput: `{"results":[{"id":"chunk-06f1q2s3t4v5a6b7c8d9","content":"Bread can be returned within two days with the receipt.","score":0.62,"source_id":"source-06f1q2s3t4v5a6b7c8d9","metadata":{"source_name":"Handbook.pdf","page":4,"section":"Returns"}}]}`,
	},
	{
		Name: "tool", Label: "Tool", Group: "AI", Icon: "Wrench", Docs: "tools.md",
		Summary: "Calls one of the agent's tools: an API, a function or a tool of an MCP server.", Synonyms: []string{"mcp", "function", "api", "call"},
		Data: []Field{
			text("tool_id", "Tool", "The tool to call.").ref("tool").required(),
			object("arguments", "Arguments", "As the tool's schema describes.").widget("keyvalue"),
		},
		Output:  []Field{anything("result", "Result", "The result of the tool.")},
		Example: `{"tool_id":"tool-06f1q2s3t4v5a6b7c8d9","arguments":{"order":"{{message.order}}"}}`, ExampleOutput: `{"result":{"status":"shipped"}}`,
	},
}

var dataTypes = []Type{
	{
		Name: "set", Label: "Set values", Group: "Data", Icon: "Braces", Docs: nodesDocs,
		Summary: "Builds an object from values and templates.", Synonyms: []string{"edit fields", "assign", "variables", "map", "transform", "values"},
		Data:    []Field{object("values", "Values", "The node's output.").widget("keyvalue").required()},
		Example: `{"values":{"text":"Hello {{contact.name}}"}}`, ExampleOutput: `{"text":"Hello Ada"}`,
	},
	{
		Name: "code", Label: "Code", Group: "Data", Icon: "Code", Docs: "workflows.md#code",
		Summary: "Runs JavaScript; what it returns is the output.", Synonyms: []string{"javascript", "js", "function", "script"},
		Data:    []Field{text("code", "Code", "The body of an async function. It sees input, trigger, nodes, item, contact, message, console and fetch.").widget("javascript").required()},
		Example: `{"code":"return { total: input.rows.length }"}`, ExampleOutput: `{"total":2}`,
	},
	{
		Name: "http-request", Label: "HTTP request", Group: "Data", Icon: "Globe", Docs: nodesDocs,
		Summary: "Sends an HTTP request and reads the response.", Synonyms: []string{"api", "rest", "fetch", "curl", "get", "post", "webhook", "url"},
		Data: []Field{
			choice("method", "Method", "", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS").defaultsTo("GET"),
			text("url", "URL", "Including scheme and host.").required(),
			object("headers", "Headers", "Headers whose names contain authorization, key, token, secret or cookie are stored as secrets.").widget("keyvalue"),
			object("query", "Query", "Parameters added to the URL.").widget("keyvalue"),
			anything("body", "Body", "JSON, form fields or text, depending on the body type.").widget("textarea"),
			choice("body_type", "Body type", "", "json", "form", "text").defaultsTo("json"),
			object("auth", "Authorization", "Stored as a secret.",
				choice("type", "Type", "", "none", "bearer", "basic", "header").defaultsTo("none"), text("token", "Token", "Of bearer.").secret(),
				text("username", "User", "Of basic."), text("password", "Password", "Of basic.").secret(), text("name", "Header", "Of header."), text("value", "Value", "Of header.").secret()),
			choice("response_type", "Response type", "auto uses the media type of the response.", "auto", "json", "text", "base64").defaultsTo("auto").advanced(),
			boolean("fail_on_status", "Fail on errors", "A status of 400 or above fails the node.").defaultsTo(true).advanced(),
		},
		Output:  []Field{number("status", "Status", "").required(), object("headers", "Headers", "").required(), anything("body", "Body", "").required(), number("duration_ms", "Duration", "").unit("ms").required()},
		Example: `{"method":"POST","url":"https://api.example.com/orders","body":{"email":"{{contact.email}}"}}`, ExampleOutput: `{"status":200,"headers":{"content-type":"application/json"},"body":{"id":17},"duration_ms":84.2}`,
	},
	{
		Name: "sql", Label: "SQL", Group: "Data", Icon: "Database", Docs: "workflows.md#values-in-sql-and-scripts",
		Summary: "Reads or changes the agent's own tables.", Synonyms: []string{"query", "database", "sqlite", "table", "select", "insert", "update"},
		Data: []Field{
			text("query", "Statement", "One statement. Each template in it becomes a bound parameter.").widget("sql").required(),
			list("params", "Parameters", "Values for ? placeholders, or by name.").orKind("object").advanced(),
		},
		Output: []Field{list("columns", "Columns", "").required(), list("rows", "Rows", "Each row is a list of values.").required(), number("row_count", "Number of rows", "Rows returned, or changed by a statement that returns none.").required(),
			boolean("truncated", "Truncated", "There were more rows than returned."), number("changes", "Changes", "Number of rows changed.")},
		Example: `{"query":"SELECT count(*) AS n FROM contacts WHERE email = {{contact.email}}"}`, ExampleOutput: `{"columns":["n"],"rows":[[1]],"row_count":1,"truncated":false,"changes":0}`,
	},
}
