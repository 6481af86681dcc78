package n8n

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"satchel/agent"
)

// tool converts a helper to a tool that a chat node may call, or keeps it under its own
// type.
func (env *env) tool(unit *unit, data map[string]any) {
	build, known := toolKinds[shortKind(unit.kind)]
	if !known && serviceOf(unit) != "" {
		build, known = serviceTool, true
	}
	switch {
	case strings.HasPrefix(shortKind(unit.kind), "vectorStore"), shortKind(unit.kind) == "toolVectorStore":
		data["sources"] = true
		unit.nodeID = env.u.id
		unit.markHelpers(env.u.id)
		unit.approximate("KNOWLEDGE", "The agent's sources take the place of the vector store: add what it held.")
		return
	case shortKind(unit.kind) == "mcpClientTool", unit.kind == "n8n-nodes-mcp.mcpClientTool":
		data["tools"] = true
		unit.nodeID = env.u.id
		where := "the MCP server"
		if address := cmp.Or(unit.p.text("endpointUrl"), unit.p.text("sseEndpoint")); address != "" &&
			!strings.HasPrefix(address, "=") {
			where += " " + clip(address, 200)
		}
		unit.approximate(
			"MCP",
			"Connect "+where+
				" to the agent. The node may then call all tools of the agent; choose those that it is to have.",
		)
		return
	case !known:
		unit.fail(
			"TOOL",
			"This tool has no counterpart. Make a tool that does the same, and choose it in the chat node.",
		)
		return
	}
	if unit.nodeID == "" && !unit.unsupported {
		unit.nodeID = env.u.id
		if t, ok := build(env, unit); ok {
			unit.toolID = agent.NewID(agent.KindTool)
			t.ID, t.Name, t.Description, t.Enabled =
				unit.toolID, toolName(unit), clip(toolDescription(unit), 3900), !unit.incomplete
			env.c.out.Tools = append(env.c.out.Tools, t)
		} else if !unit.unsupported {
			unit.fail("TOOL", "This tool cannot be made of its parameters.")
		}
		if unit.unsupported {
			unit.nodeID = ""
		}
	}
	if unit.toolID != "" && data["tools"] != true {
		list, _ := data["tools"].([]any)
		data["tools"] = append(list, unit.toolID)
	}
}

func toolDescription(h *unit) string {
	text := h.p.or("description", h.p.or("toolDescription", h.name))
	return strings.TrimPrefix(text, "=")
}

var notInToolName = agent.Pattern(`[^A-Za-z0-9_-]+`)

func toolName(h *unit) string {
	name := strings.Trim(notInToolName().ReplaceAllString(h.p.or("name", h.name), "_"), "_")
	if len(name) > 60 {
		name = name[:60]
	}
	if name == "" {
		name = "tool"
	}
	return name
}

// toolKinds are the converters of helpers to tools.
var toolKinds = map[string]func(*env, *unit) (DraftTool, bool){
	"toolCode":        codeTool,
	"toolHttpRequest": requestTool,
	"httpRequestTool": requestTool,
	"toolCalculator":  calculatorTool,
	"toolThink":       thinkTool,
	"toolWikipedia":   wikipediaTool,
	"toolWorkflow":    workflowTool,
	"toolSerpApi":     serpTool,
}

func function(code string, parameters map[string]any) (DraftTool, bool) {
	config, err := json.Marshal(map[string]any{"code": code, "parameters": parameters})
	return DraftTool{Type: agent.ToolFunction, Config: config}, err == nil
}

func textParameter(name, description string) map[string]any {
	return map[string]any{
		"type":       "object",
		"properties": map[string]any{name: map[string]any{"type": "string", "description": description}},
		"required":   []any{name},
	}
}

func codeTool(environment *env, unit *unit) (DraftTool, bool) {
	code := unit.p.text("jsCode")
	if unit.p.or("language", "javaScript") != "javaScript" {
		unit.fail("PYTHON", "The code is in Python; only JavaScript runs here.")
		return DraftTool{}, false
	}
	inner := &env{
		c:  environment.c,
		u:  unit,
		in: &stream{ref: ref{js: "args"}},
		at: nil,
	}
	if len(references(code)) > 0 {
		unit.fail("REFERENCE", "The code of the tool reads nodes of the workflow.")
		return DraftTool{}, false
	}
	parameters, ok := textParameter("query", "The input of the tool."), true
	read := "const query = args.query\n"
	if unit.p.flag("specifyInputSchema") {
		if parameters, ok = schemaOf(unit); !ok {
			return DraftTool{}, false
		}
		read = "const query = args\n"
	}
	code = inner.script(read + code)
	if unit.unsupported {
		return DraftTool{}, false
	}
	return function(code, parameters)
}

func calculatorTool(*env, *unit) (DraftTool, bool) {
	return function(
		"const text = String(args.expression).replaceAll(\"^\", \"**\")\nif (!/^[-+*/%(). \\d]*$/.test(text)) throw "+
			"new Error(\"only numbers and + - * / % ^ ( ) can be computed\")\nreturn { result: "+
			"Function(`return (${text})`)() }",
		textParameter("expression", "An arithmetic expression, such as (2 + 3) * 4."),
	)
}

func thinkTool(*env, *unit) (DraftTool, bool) {
	return function("return { thought: args.thought }", textParameter("thought", "What to think about."))
}

// argument is a parameter that the model fills.
type argument struct{ kind, description string }

// requestTool converts an HTTP request, parts of which the model may fill, to an api
// tool. These parts are {placeholders} and, in the newer node, $fromAI.
func requestTool(environment *env, unit *unit) (DraftTool, bool) {
	arguments := map[string]argument{}
	for _, p := range unit.p.objects("placeholderDefinitions.values") {
		arguments[p.text("name")] = argument{p.or("type", "string"), p.text("description")}
	}
	fill := func(v any) any { return fillArguments(unit, v, arguments) }
	address, _ := fill(unit.p.at("url")).(string)
	config := map[string]any{"method": strings.ToUpper(unit.p.or("method", "GET")), "url": address}
	for target, paths := range toolParts {
		if values := toolValues(unit, target, paths, arguments); len(values) > 0 {
			config[target] = values
		}
	}
	if unit.p.text("specifyBody") == "json" {
		body, ok := jsonOf(fmt.Sprint(fill(unit.p.at("jsonBody"))))
		if !ok {
			unit.fail("BODY", "The body of the request is computed.")
			return DraftTool{}, false
		}
		config["body"] = body
	}
	for name := range arguments {
		if !simpleKey().MatchString(name) {
			unit.fail("PARAMETER", "The parameter "+clip(name, 40)+" has a name that a tool cannot have.")
		}
	}
	switch kind := unit.p.text("contentType"); {
	case kind == "form-urlencoded":
		config["body_type"] = "form"
	case kind == "multipart-form-data":
		config["body_type"] = "multipart"
		if slices.ContainsFunc(unit.p.objects("bodyParameters.parameters"), func(p params) bool {
			return p.text("parameterType") == "formBinaryData"
		}) {
			unit.fail("FILE", "A model has no files to send.")
		}
	}
	(&env{c: environment.c, u: unit}).toolAuth(config)
	config["parameters"] = argumentSchema(arguments)
	raw, err := json.Marshal(config)
	t := agent.Tool{Name: "x", Type: agent.ToolAPI, Config: raw}
	if _, invalid := t.Validate(); err != nil || invalid != nil || unit.unsupported {
		return DraftTool{}, false
	}
	return DraftTool{Type: agent.ToolAPI, Config: raw}, true
}

// toolParts are the parameters in which the two nodes keep the parts of a request.
var toolParts = map[string][]string{
	"query":   {"parametersQuery.values", "queryParameters.parameters"},
	"headers": {"parametersHeaders.values", "headerParameters.parameters"},
	"body":    {"parametersBody.values", "bodyParameters.parameters"},
}

// toolValues reads names and values of a part of a request.
func toolValues(unit *unit, target string, paths []string, arguments map[string]argument) map[string]any {
	values := map[string]any{}
	for _, path := range paths {
		for _, params := range unit.p.objects(path) {
			name := params.text("name")
			text, isText := params["value"].(string)
			switch {
			case isText &&
				target != "body" &&
				secretName().MatchString(name) &&
				!hasExpression(text) &&
				text != "":
				unit.approximate(
					"SECRET",
					"The value of "+clip(name, 60)+" was a secret; it is not imported. Give the tool a credential.",
				)
			case params.text("valueProvider") == "modelRequired" || params.text("valueProvider") == "modelOptional":
				arguments[name] = argument{"string", ""}
				values[name] = "{{" + name + "}}"
			default:
				values[name] = fillArguments(unit, params["value"], arguments)
			}
		}
	}
	return values
}

// argumentSchema returns the JSON Schema of arguments.
func argumentSchema(arguments map[string]argument) map[string]any {
	properties, required := map[string]any{}, []any{}
	for _, name := range sortedKeys(arguments) {
		kind := arguments[name].kind
		if kind != "number" && kind != "boolean" {
			kind = "string"
		}
		properties[name] = map[string]any{"type": kind, "description": arguments[name].description}
		required = append(required, name)
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// toolAuth names the credential of a tool.
func (env *env) toolAuth(config map[string]any) {
	kind := env.u.p.or("authentication", "none")
	switch kind {
	case "none":
		return
	case "predefinedCredentialType":
		kind = env.u.p.text("nodeCredentialType")
	case "genericCredentialType":
		kind = env.u.p.text("genericAuthType")
	}
	env.attach(config, kind)
}

var (
	placeholders = agent.Pattern(`\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	fromAI       = agent.Pattern(`\$fromAI\(\s*['"` + "`]([A-Za-z0-9_ -]+)['\"`]" + `(?:\s*,\s*['"` +
		"`]([^'\"`]*)['\"`])?" + `(?:\s*,\s*['"` + "`]([a-z]+)['\"`])?[^)]*\\)")
	aiComment = agent.Pattern(`/\*n8n-auto-generated-fromAI-override\*/`)
)

// fillArguments replaces what the model fills with templates.
func fillArguments(unit *unit, value any, arguments map[string]argument) any {
	text, isText := value.(string)
	if !isText {
		return value
	}
	source, isExpression := expressionOf(text)
	if !isExpression {
		return placeholders().ReplaceAllStringFunc(escapeTemplate(text), func(m string) string {
			name := m[1 : len(m)-1]
			if _, ok := arguments[name]; !ok {
				arguments[name] = argument{"string", ""}
			}
			return "{{" + name + "}}"
		})
	}
	var out strings.Builder
	for _, p := range split(aiComment().ReplaceAllString(source, "")) {
		if !p.expr {
			out.WriteString(escapeTemplate(p.text))
			continue
		}
		m := fromAI().FindStringSubmatch(p.text)
		if m == nil || strings.TrimSpace(fromAI().ReplaceAllString(p.text, "")) != "" {
			unit.fail("EXPRESSION", "A tool reads only what the model gives it; this one reads "+clip(p.text, 80)+".")
			return ""
		}
		name := strings.NewReplacer(" ", "_", "-", "_").Replace(m[1])
		arguments[name] = argument{m[3], m[2]}
		out.WriteString("{{" + name + "}}")
	}
	return out.String()
}
