package graph

var aiTypes = []Type{
	{
		Name: "chat", Label: "Ask the model", Group: "AI", Icon: "Sparkles", Docs: "chat.md", Needs: []string{"model"},
		Summary: "Asks the agent's language model, with its knowledge and tools when they are wanted.", Synonyms: []string{"chat", "llm", "gpt", "claude", "prompt", "ai", "answer", "classify", "extract", "summarise"},
		Data: []Field{
			text("prompt", "Prompt", "What the model is asked.").as("textarea").must(),
			text("system_prompt", "Instructions", "In place of the agent's own.").as("textarea"),
			text("model", "Model", "In place of the agent's own.").naming("model").more(),
			number("temperature", "Temperature", "How freely it answers, from 0 to 2.").more(),
			list("tools", "Tools", "Ids of tools that it may call; true: all, false: none.").also("bool").naming("tool"),
			list("sources", "Sources", "Ids of sources that it may read; true: all, false: none.").also("bool").naming("source"),
			text("conversation_id", "Conversation", "Continue this conversation, and add the answer to it.").as("template").more(),
			object("output_schema", "Shape of the answer", "A JSON Schema; json of the output then fits it.").as("schema").more(),
			number("max_steps", "Most rounds", "How many rounds of tool calls it may take.").more(),
		},
		Output: []Field{text("text", "Text", "The answer.").must(), anything("json", "JSON", "The answer, by output_schema."),
			list("tool_calls", "Tool calls", "").also("null"), list("sources", "Sources", "The passages that it read.").also("null"), object("usage", "Usage", "Tokens.").also("null")},
		Example:       `{"prompt":"Answer in one sentence: {{message.content}}","sources":true}`,
		ExampleOutput: `{"text":"You can return bread within two days.","json":null,"tool_calls":[],"sources":[],"usage":{"input_tokens":412,"output_tokens":11}}`,
	},
	{
		Name: "search", Label: "Search knowledge", Group: "AI", Icon: "Search", Docs: "knowledge.md",
		Summary: "Finds the passages of the agent's sources that answer a question.", Synonyms: []string{"retrieve", "rag", "knowledge", "vector", "passages", "documents"},
		Data: []Field{
			text("query", "Question", "What to look for.").must(),
			number("limit", "Results", "How many at most.").within(1, 50).or(10),
			text("source_id", "Source", "Only this source.").naming("source").more(),
			choice("mode", "Mode", "By meaning, by words, or both.", "hybrid", "vector", "keyword").or("hybrid").more(),
			number("min_score", "Least score", "From 0 to 1.").within(0, 1).more(),
		},
		Output:        []Field{list("results", "Results", "The best first.").must()},
		Example:       `{"query":"{{message.content}}","limit":3}`,
		ExampleOutput: `{"results":[{"id":"chunk-06f1q2s3t4v5a6b7c8d9","content":"Bread can be returned within two days with the receipt.","score":0.62,"source_id":"source-06f1q2s3t4v5a6b7c8d9","metadata":{"source_name":"Handbook.pdf","page":4,"section":"Returns"}}]}`,
	},
	{
		Name: "tool", Label: "Tool", Group: "AI", Icon: "Wrench", Docs: "tools.md",
		Summary: "Calls one of the agent's tools: an API, a function or a tool of an MCP server.", Synonyms: []string{"mcp", "function", "api", "call"},
		Data: []Field{
			text("tool_id", "Tool", "The tool to call.").naming("tool").must(),
			object("arguments", "Arguments", "By the tool's own schema.").as("keyvalue"),
		},
		Output:  []Field{anything("result", "Result", "What the tool answered.")},
		Example: `{"tool_id":"tool-06f1q2s3t4v5a6b7c8d9","arguments":{"order":"{{message.order}}"}}`, ExampleOutput: `{"result":{"status":"shipped"}}`,
	},
}

var dataTypes = []Type{
	{
		Name: "set", Label: "Set values", Group: "Data", Icon: "Braces", Docs: nodesDocs,
		Summary: "Makes an object out of values and templates.", Synonyms: []string{"edit fields", "assign", "variables", "map", "transform", "values"},
		Data:    []Field{object("values", "Values", "They are the node's output.").as("keyvalue").must()},
		Example: `{"values":{"text":"Hello {{contact.name}}"}}`, ExampleOutput: `{"text":"Hello Ada"}`,
	},
	{
		Name: "code", Label: "Code", Group: "Data", Icon: "Code", Docs: "workflows.md#code",
		Summary: "Runs JavaScript; what it returns is the output.", Synonyms: []string{"javascript", "js", "function", "script"},
		Data:    []Field{text("code", "Code", "The body of an async function. It sees input, trigger, nodes, item, contact, message, console and fetch.").as("javascript").must()},
		Example: `{"code":"return { total: input.rows.length }"}`, ExampleOutput: `{"total":2}`,
	},
	{
		Name: "http-request", Label: "HTTP request", Group: "Data", Icon: "Globe", Docs: nodesDocs,
		Summary: "Calls an address on the web and reads the answer.", Synonyms: []string{"api", "rest", "fetch", "curl", "get", "post", "webhook", "url"},
		Data: []Field{
			choice("method", "Method", "", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS").or("GET"),
			text("url", "URL", "With scheme and host.").must(),
			object("headers", "Headers", "Those whose names hold authorization, key, token, secret or cookie are kept as secrets.").as("keyvalue"),
			object("query", "Query", "Parameters that are added to the URL.").as("keyvalue"),
			anything("body", "Body", "By the body's type: JSON, fields of a form, or text.").as("textarea"),
			choice("body_type", "Type of the body", "", "json", "form", "text").or("json"),
			object("auth", "Authorization", "Kept as a secret.",
				choice("type", "Type", "", "none", "bearer", "basic", "header").or("none"), text("token", "Token", "Of bearer.").secret(),
				text("username", "User", "Of basic."), text("password", "Password", "Of basic.").secret(), text("name", "Header", "Of header."), text("value", "Value", "Of header.").secret()),
			choice("response_type", "Read the answer as", "auto goes by its media type.", "auto", "json", "text", "base64").or("auto").more(),
			truth("fail_on_status", "Fail on errors", "A status from 400 on is an error of the node.").or(true).more(),
		},
		Output:  []Field{number("status", "Status", "").must(), object("headers", "Headers", "").must(), anything("body", "Body", "").must(), number("duration_ms", "Duration", "").in("ms").must()},
		Example: `{"method":"POST","url":"https://api.example.com/orders","body":{"email":"{{contact.email}}"}}`, ExampleOutput: `{"status":200,"headers":{"content-type":"application/json"},"body":{"id":17},"duration_ms":84.2}`,
	},
	{
		Name: "sql", Label: "SQL", Group: "Data", Icon: "Database", Docs: "workflows.md#values-in-sql-and-scripts",
		Summary: "Reads or changes the agent's own tables.", Synonyms: []string{"query", "database", "sqlite", "table", "select", "insert", "update"},
		Data: []Field{
			text("query", "Statement", "One statement. Each template in it becomes a bound parameter.").as("sql").must(),
			list("params", "Parameters", "Values of ?, or by name.").also("object").more(),
		},
		Output: []Field{list("columns", "Columns", "").must(), list("rows", "Rows", "Each a list of values.").must(), number("row_count", "Number of rows", "Read, or changed by a statement that returns none.").must(),
			truth("truncated", "Truncated", "There were more rows."), number("changes", "Changes", "Rows that were changed.")},
		Example: `{"query":"SELECT count(*) AS n FROM contacts WHERE email = {{contact.email}}"}`, ExampleOutput: `{"columns":["n"],"rows":[[1]],"row_count":1,"truncated":false,"changes":0}`,
	},
}
