package mcp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// readable returns a server's message as the SDK can decode it. The SDK refuses a whole
// list for one tool, and a whole result for one block, that it does not know or whose
// fields have other types, and it rounds the numbers of structured content. Therefore
// tools that cannot be used are left out, only the fields that are read are kept,
// unknown blocks become text, and structured content becomes a string with its JSON.
// Other messages are returned unchanged.
func readable(message []byte) []byte {
	isRead := func(field string) bool {
		return bytes.Contains(message, []byte(`"`+field+`"`))
	}
	if !isRead("tools") &&
		!isRead("content") &&
		!isRead("structuredContent") &&
		!isRead("capabilities") {
		return message
	}
	var fields, result map[string]json.RawMessage
	if json.Unmarshal(message, &fields) != nil || json.Unmarshal(fields["result"], &result) != nil {
		return message
	}
	if meta := result["_meta"]; meta != nil && (objectOf(meta) == nil || isEmptyList(meta)) {
		delete(result, "_meta")
	}
	var tools []json.RawMessage
	switch {
	case result["capabilities"] != nil:
		capabilities := objectOf(result["capabilities"])
		for name, capability := range capabilities {
			if isEmptyList(capability) {
				capabilities[name] = json.RawMessage("{}")
			}
		}
		result["capabilities"] = encode(capabilities)
	case json.Unmarshal(result["tools"], &tools) == nil:
		result["tools"] = encode(readableTools(tools))
	case result["content"] != nil || result["structuredContent"] != nil:
		result["content"] = encode(readableContent(result["content"]))
		if structured := result["structuredContent"]; structured != nil && string(structured) != "null" {
			result["structuredContent"] = encode(string(structured))
		}
		if failed := result["isError"]; failed != nil {
			result["isError"] = encode(slices.Contains(
				[]string{"true", "1"},
				strings.ToLower(strings.Trim(string(failed), `"`)),
			))
		}
	default:
		return message
	}
	fields["result"] = encode(result)
	return encode(fields)
}

// objectOf returns the fields of an object. An empty list is one without fields, since PHP
// does not distinguish them; of anything else it returns nil.
func objectOf(raw json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil && isEmptyList(raw) {
		fields = map[string]json.RawMessage{}
	}
	return fields
}

func isEmptyList(raw json.RawMessage) bool {
	var list []json.RawMessage
	return json.Unmarshal(raw, &list) == nil && list != nil && len(list) == 0
}

// encode encodes a value that was decoded from JSON.
func encode(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// wireTool holds the fields of a tool that are read.
type wireTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// readableTools leaves out the tools without a name, those whose arguments are not an
// object, and those that only run as tasks, which this client does not support.
func readableTools(listed []json.RawMessage) []wireTool {
	tools := []wireTool{}
	for _, raw := range listed {
		var fields map[string]json.RawMessage
		var tool wireTool
		if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(fields["name"], &tool.Name) != nil {
			continue
		}
		_ = json.Unmarshal(fields["description"], &tool.Description) // a tool without one can be used
		var execution struct {
			TaskSupport string `json:"taskSupport"`
		}
		if json.Unmarshal(fields["execution"], &execution) == nil && execution.TaskSupport == "required" {
			continue
		}
		tool.InputSchema = fields["inputSchema"]
		if tool.InputSchema == nil {
			tool.InputSchema = fields["input_schema"]
		}
		if len(tool.InputSchema) == 0 || string(tool.InputSchema) == "null" {
			tool.InputSchema = json.RawMessage(`{"type":"object"}`)
		}
		if schema := objectOf(tool.InputSchema); schema != nil {
			tool.InputSchema = readableSchema(tool.InputSchema, schema)
			tools = append(tools, tool)
		}
	}
	return tools
}

// readableSchema returns a schema, changed only if it has the empty lists of PHP, or its
// type in a list.
func readableSchema(raw json.RawMessage, schema map[string]json.RawMessage) json.RawMessage {
	changed := schema["type"] == nil && isEmptyList(raw)
	change := func(name, value string) {
		schema[name], changed = json.RawMessage(value), true
	}
	if isEmptyList(schema["properties"]) {
		change("properties", "{}")
	}
	if required := bytes.TrimSpace(schema["required"]); len(required) > 0 && required[0] != '[' {
		change("required", "[]")
	}
	var types []string
	if json.Unmarshal(schema["type"], &types) == nil && slices.Contains(types, "object") {
		change("type", `"object"`)
	}
	if changed {
		return encode(schema)
	}
	return raw
}

// readableContent returns the blocks of a result. A single block need not be a list.
func readableContent(content json.RawMessage) []json.RawMessage {
	var blocks []json.RawMessage
	if json.Unmarshal(content, &blocks) != nil && len(content) > 0 {
		blocks = []json.RawMessage{content}
	}
	known := []json.RawMessage{}
	for _, block := range blocks {
		var one sdk.CallToolResult
		if json.Unmarshal(encode(map[string]any{"content": []json.RawMessage{block}}), &one) != nil {
			text := string(block)
			_ = json.Unmarshal(block, &text) // a text without a block around it
			block = encode(map[string]string{"type": "text", "text": text})
		}
		known = append(known, block)
	}
	return known
}
