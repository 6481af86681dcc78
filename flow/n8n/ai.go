package n8n

import (
	"fmt"
	"strings"
)

// chatDefault returns the expression that a prompt has when none is set, which
// depends on the version of the node.
func chatDefault(u *unit) string {
	switch {
	case shortKind(u.kind) == "chainLlm" && u.version < 1.1, shortKind(u.kind) == "agent" && u.version < 1.1:
		return "={{ $json.input }}"
	case u.version < 1.2 || shortKind(u.kind) == "chainLlm" && u.version < 1.3:
		return "={{ $json.chat_input }}"
	}
	return "={{ $json.chatInput }}"
}

// convertAgent converts an agent or a chain, with its helpers, to a chat node.
func convertAgent(converter *converter, unit *unit) {
	env := converter.each(unit)
	kind := shortKind(unit.kind)
	if a := unit.p.text("agent"); a == "sqlAgent" || a == "planAndExecuteAgent" {
		unit.fail("AGENT", "The agent type "+a+" has no counterpart.")
	}
	prompt := unit.p.at("text")
	switch {
	case prompt == nil && unit.p.has("prompt"):
		prompt = unit.p.at("prompt")
	case prompt == nil && unit.p.has("query"):
		prompt = unit.p.at("query")
	case prompt == nil || unit.p.text("promptType") == "auto":
		prompt = chatDefault(unit)
	}
	data := map[string]any{"prompt": env.value(prompt)}
	env.instructions(data)
	env.helpers(data)
	if n := unit.p.number("options.maxIterations", 0); n >= 1 {
		data["max_steps"] = n
	}
	if kind == "chainSummarization" {
		data["prompt"] = "Summarize this text:\n\n" + fmt.Sprint(env.wholeItem())
		unit.approximate(
			"SUMMARY",
			"The text is summarized at once, and not in parts; put the field to summarize into the prompt.",
		)
	}
	if kind == "chainRetrievalQa" {
		data["sources"] = true
		unit.approximate("KNOWLEDGE", "It answers from the agent's sources: add what the vector store held.")
	}
	stream := env.emit("chat", data)
	if unit.unsupported {
		return
	}
	id := unit.id
	text, object := "nodes."+id+".text", "nodes."+id+".json"
	js := fmt.Sprintf("nodes[%q]", id)
	switch {
	case data["output_schema"] != nil:
		stream.ref = ref{
			fields: map[string]string{"output": object},
			closed: true,
			js:     fmt.Sprintf("({ output: %s?.json })", js),
		}
	case kind == "agent":
		stream.ref = ref{
			fields: map[string]string{"output": text},
			closed: true,
			js:     fmt.Sprintf("({ output: %s?.text })", js),
		}
	default:
		stream.ref = ref{
			fields: map[string]string{
				"text":          text,
				"response":      text,
				"response.text": text,
				"output.text":   text,
				"output":        text,
			},
			closed: true,
			js:     fmt.Sprintf("({ text: %s?.text, response: %s?.text })", js, js),
		}
	}
}

// instructions sets the system prompt.
func (env *env) instructions(data map[string]any) {
	params := env.u.p
	if params.has("options.systemMessage") {
		data["system_prompt"] = env.value(params.at("options.systemMessage"))
	}
	for _, m := range params.objects("messages.messageValues") {
		text := fmt.Sprint(env.value(m["message"]))
		if m["message"] == nil {
			continue
		}
		switch m.or("type", "SystemMessagePromptTemplate") {
		case "SystemMessagePromptTemplate":
			appendParagraph(data, "system_prompt", text)
		default:
			env.u.approximate("MESSAGES", "Further messages of the prompt become parts of its text.")
			data["prompt"] = text + "\n\n" + fmt.Sprint(data["prompt"])
		}
	}
}

// appendParagraph adds a paragraph to a text.
func appendParagraph(data map[string]any, key, text string) {
	if before, ok := data[key].(string); ok && before != "" {
		text = before + "\n\n" + text
	}
	data[key] = text
}

// helpers reads models, memories, tools and parsers.
func (env *env) helpers(data map[string]any) {
	unit := env.u
	for _, kind := range sortedKeys(unit.helpers) {
		for _, h := range unit.helpers[kind] {
			switch kind {
			case "ai_languageModel":
				env.model(h, data)
			case "ai_memory":
				env.memory(h, data)
			case "ai_outputParser":
				env.parser(h, data)
			case "ai_tool":
				env.tool(h, data)
			case "ai_retriever", "ai_vectorStore", "ai_document", "ai_textSplitter":
				if kind == "ai_document" || kind == "ai_textSplitter" {
					h.approximate("KNOWLEDGE", "Texts are not split for the model here.")
					h.nodeID = unit.id
					continue
				}
				data["sources"] = true
				h.approximate("KNOWLEDGE", "Answers come from the agent's sources: add what the vector store held.")
				h.nodeID = unit.id
				h.markHelpers(unit.id)
			}
		}
	}
}

func (env *env) model(h *unit, data map[string]any) {
	name := h.p.or("model", h.p.or("modelName", h.p.text("modelId")))
	message := "The agent's own model answers."
	if name != "" && !strings.HasPrefix(name, "=") {
		message = fmt.Sprintf(
			"The agent's own model answers; it was %s in n8n. Set model in the node to use another.",
			clip(name, 80),
		)
	}
	if t := h.p.number("options.temperature", -1); t >= 0 && t <= 2 {
		data["temperature"] = t
	}
	h.approximate("MODEL", message)
	h.nodeID = env.u.id
}

// memory continues the conversation that started the workflow.
func (env *env) memory(h *unit, data map[string]any) {
	h.nodeID = env.u.id
	for _, other := range env.c.byName {
		if _, ok := messageTriggers[shortKind(other.kind)]; ok {
			data["conversation_id"] = "{{conversation.id}}"
			h.approximate("MEMORY", "The conversation is the memory: all of it, as far as the model can read.")
			return
		}
	}
	h.approximate(
		"MEMORY",
		"There is no conversation to continue, so each call starts a new one. Set conversation_id to continue one.",
	)
}

// parser sets the schema to which answers conform.
func (env *env) parser(unit *unit, data map[string]any) {
	unit.nodeID = env.u.id
	if shortKind(unit.kind) == "outputParserAutofixing" {
		for _, inner := range unit.helpers["ai_outputParser"] {
			env.parser(inner, data)
		}
		for _, model := range unit.helpers["ai_languageModel"] {
			model.nodeID = env.u.id
			model.approximate("MODEL", "The agent's own model answers.")
		}
		return
	}
	schema, ok := schemaOf(unit)
	if shortKind(unit.kind) == "outputParserItemList" {
		schema, ok = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}, true
	}
	if !ok {
		unit.fail("SCHEMA", "The schema of the answer cannot be read.")
		return
	}
	data["output_schema"] = schema
}

// schemaOf reads the schema of a parser, an extractor or a tool.
func schemaOf(unit *unit) (map[string]any, bool) {
	text := unit.p.or("inputSchema", unit.p.text("jsonSchema"))
	if text == "" && !unit.p.has("jsonSchemaExample") { // the example that n8n begins with
		return exampleSchema(map[string]any{"state": "", "cities": []any{""}}, 0), true
	}
	kind := unit.p.text("schemaType")
	if kind == "fromJson" || kind == "" && text == "" {
		example, ok := jsonOf(strings.TrimPrefix(unit.p.text("jsonSchemaExample"), "="))
		if !ok {
			return nil, false
		}
		return exampleSchema(example, 0), true
	}
	schema, ok := jsonOf(strings.TrimPrefix(text, "="))
	object, isObject := schema.(map[string]any)
	if !ok || !isObject || strings.Contains(text, "{{") {
		return nil, false
	}
	return object, true
}

// exampleSchema returns the schema of an example.
func exampleSchema(value any, depth int) map[string]any {
	switch item := value.(type) {
	case string:
		return map[string]any{"type": "string"}
	case float64:
		return map[string]any{"type": "number"}
	case bool:
		return map[string]any{"type": "boolean"}
	case []any:
		s := map[string]any{"type": "array"}
		if len(item) > 0 && depth < 10 {
			s["items"] = exampleSchema(item[0], depth+1)
		}
		return s
	case map[string]any:
		properties, required := map[string]any{}, []any{}
		for _, key := range sortedKeys(item) {
			if depth < 10 {
				properties[key] = exampleSchema(item[key], depth+1)
				required = append(required, key)
			}
		}
		return map[string]any{"type": "object", "properties": properties, "required": required}
	}
	return map[string]any{}
}

// convertServer converts an MCP server of n8n and the tools that it offers.
func convertServer(c *converter, u *unit) {
	e := &env{
		c:  c,
		u:  u,
		in: &stream{ref: payload},
	}
	data := map[string]any{}
	e.helpers(data)
	u.approximate("MCP", "The agent's own MCP server offers its tools; this trigger only keeps its place.")
	c.trigger(u, map[string]any{"event": "manual"}, payload)
}

// promptPart is where a node of one provider keeps its messages, and what its
// answer looks like in n8n.
type promptPart struct {
	messages, answer string
	js               string // T is replaced by the text
}

// promptParts are the nodes of single providers.
var promptParts = map[string]promptPart{
	"openAi": {
		"messages.values",
		"message.content",
		"({ message: { role: \"assistant\", content: T }, text: T })",
	},
	"anthropic": {"messages.values", "content.0.text", "({ content: [{ type: \"text\", text: T }] })"},
	"googleGemini": {
		"messages.values",
		"content.parts.0.text",
		"({ content: { parts: [{ text: T }], role: \"model\" } })",
	},
	"ollama": {"messages.values", "content", "({ content: T })"},
}

// providerPart returns the part of a unit by its version, and fails the unit if it
// does not answer with text. complete reports that it has a prompt rather than
// messages.
func providerPart(unit *unit) (part promptPart, complete bool) {
	part = promptParts[shortKind(unit.kind)]
	resource, operation := unit.p.or("resource", "text"), unit.p.or("operation", "message")
	switch {
	case strings.HasPrefix(unit.kind, "n8n-nodes-base."):
		part = promptPart{"prompt.messages", "message.content", "({ message: { content: T }, text: T })"}
		if complete = resource == "text"; complete {
			part.answer = "text"
		} else if resource == "chat" {
			resource = "text"
		}
		if v, ok := unit.p.at("simplifyOutput").(bool); ok && !v {
			part.answer = "choices.0." + part.answer
			part.js = "({ choices: [" + part.js + "] })"
		}
		if operation == "complete" || operation == "edit" && complete {
			operation = "message"
		}
	case unit.version >= 2 && shortKind(unit.kind) == "openAi":
		part = promptPart{"responses.values", "output.0.content.0.text", "({ output: [{ content: [{ text: T }] }] })"}
		if operation == "response" {
			operation = "message"
		}
	}
	if resource == "assistant" && operation == "message" && strings.HasPrefix(unit.kind, "@n8n/") {
		unit.approximate(
			"ASSISTANT",
			"The agent's own model answers, and not the assistant of OpenAI: put its instructions into system_prompt.",
		)
		return promptPart{"messages.values", "output", "({ output: T })"}, true
	}
	if resource != "text" || operation != "message" {
		unit.fail(
			"OPERATION",
			fmt.Sprintf(
				"The operation %s of %s has no counterpart; an http-request node can call the provider.",
				clip(operation, 40),
				clip(resource, 40),
			),
		)
	}
	return part, complete
}

// hasService reports whether services.json has the request for the operation of a
// provider's node.
func hasService(u *unit) bool {
	kind, known := services()[serviceName(u)]
	if !known {
		return false
	}
	resource := u.p.or("resource", kind.Resource)
	_, known = kind.Operations[resource+"."+u.p.or("operation", kind.Defaults[resource])]
	return known
}

// convertProvider converts a provider's node to a chat node.
func convertProvider(converter *converter, unit *unit) {
	if hasService(unit) {
		convertService(converter, unit)
		return
	}
	env := converter.each(unit)
	part, complete := providerPart(unit)
	data := map[string]any{"prompt": ""}
	if complete {
		prompt := unit.p.at("prompt")
		if unit.p.text("operation") == "edit" {
			prompt = unit.p.at("input")
			appendParagraph(data, "system_prompt", env.textOf("instruction"))
		} else if unit.p.has("text") {
			prompt = unit.p.at("text")
		} else if unit.p.text("resource") == "assistant" && prompt == nil {
			prompt = "={{ $json.chatInput }}"
		}
		data["prompt"] = env.value(prompt)
	}
	messages := unit.p.objects(part.messages)
	for i, m := range messages {
		if m["content"] == nil {
			continue
		}
		key := "prompt"
		if m.text("role") == "system" || m.text("role") == "assistant" && i < len(messages)-1 {
			key = "system_prompt"
		}
		appendParagraph(data, key, fmt.Sprint(env.value(m["content"])))
	}
	if unit.p.has("options.instructions") {
		appendParagraph(data, "system_prompt", fmt.Sprint(env.value(unit.p.at("options.instructions"))))
	}
	env.model(unit, data)
	unit.nodeID = ""
	env.helpers(data)
	stream := env.emit("chat", data)
	if unit.unsupported {
		return
	}
	field := "nodes." + unit.id + ".text"
	content := fmt.Sprintf("nodes[%q]?.text", unit.id)
	if unit.p.flag("jsonOutput") || unit.p.text("options.textFormat.textOptions.type") == "json_object" {
		content = "$parsed(" + content + ")" // n8n parses it too
		stream.ref = ref{js: strings.ReplaceAll(part.js, "T", content)}
		return
	}
	stream.ref = ref{
		fields: map[string]string{part.answer: field, "text": field},
		closed: true,
		js:     strings.ReplaceAll(part.js, "T", content),
	}
}
