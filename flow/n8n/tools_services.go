package n8n

import (
	"encoding/json"
	"fmt"
	"strings"

	"satchel/agent"
)

// serviceOf returns the service that a tool of n8n calls, such as gmail for
// gmailTool, or "".
func serviceOf(h *unit) string {
	service, ok := strings.CutSuffix(shortKind(h.kind), "Tool")
	if _, known := services()[service]; !ok || !known {
		return ""
	}
	return service
}

// serviceTool converts a node for a service, whose parameters the model may fill, to an
// api tool.
func serviceTool(environment *env, unit *unit) (DraftTool, bool) {
	t := &env{
		c:         environment.c,
		u:         unit,
		in:        &stream{ref: ref{js: "args"}},
		arguments: map[string]argument{},
	}
	kind := services()[serviceOf(unit)]
	resource := unit.p.or("resource", kind.Resource)
	name := unit.p.or("operation", kind.Defaults[resource])
	if serviceOf(unit) == "gmail" && resource == "message" && name == "send" {
		return mailTool(t, unit)
	}
	op, known := kind.Operations[resource+"."+name]
	if !known || len(op.Note) > 0 && op.BodyType != "" {
		unit.fail(
			"OPERATION",
			fmt.Sprintf(
				"The operation %s of %s is not known here. Make a tool that does the same, "+
					"and choose it in the chat node.",
				clip(name, 40),
				clip(resource, 40),
			),
		)
		return DraftTool{}, false
	}
	config := map[string]any{}
	t.request(config, kind, op)
	delete(config, "response_type")
	if len(t.scripts) > 0 {
		unit.fail("EXPRESSION", "A value of the tool is computed.")
	}
	unit.approximate("RESPONSE", "The model reads the answer of the service as it is, without n8n's simplification.")
	config["parameters"] = argumentSchema(t.arguments)
	raw, err := json.Marshal(config)
	checked := agent.Tool{Name: "x", Type: agent.ToolAPI, Config: raw}
	if _, invalid := checked.Validate(); err != nil || invalid != nil || unit.unsupported {
		return DraftTool{}, false
	}
	return DraftTool{Type: agent.ToolAPI, Config: raw}, true
}

// argument translates a parameter of a tool.
func (env *env) argument(text string) any {
	if _, isExpression := expressionOf(text); !isExpression {
		return escapeTemplate(text)
	}
	return fillArguments(env.u, text, env.arguments)
}

var argumentName = strings.NewReplacer("{{", "", "}}", "")

// mailTool makes a function tool that sends an email through Gmail.
func mailTool(env *env, unit *unit) (DraftTool, bool) {
	fields := []string{}
	for _, pair := range [][2]string{
		{"to", "sendTo"},
		{"subject", "subject"},
		{"text", "message"},
		{"cc", "options.ccList"},
		{"bcc", "options.bccList"},
	} {
		value := fmt.Sprint(env.value(unit.p.or(pair[1], "")))
		switch {
		case value == "":
		case strings.HasPrefix(value, "{{") && strings.HasSuffix(value, "}}") && strings.Count(value, "{{") == 1:
			fields = append(fields, pair[0]+": args["+quote(argumentName.Replace(value))+"]")
		case strings.Contains(value, "{{"):
			unit.fail("EXPRESSION", "A value of the tool is computed.")
		default:
			fields = append(fields, pair[0]+": "+quote(value))
		}
	}
	config := map[string]any{}
	for _, kind := range sortedKeys(unit.credentials) {
		env.attach(config, kind)
	}
	credential, _ := config["credential"].(string)
	code := withSections(fmt.Sprintf(`const answer = await fetch("https://gmail.googleapis.com/gmail/v1/users/me/messages/send", { method: "POST", credential: %s, headers: { "Content-Type": "application/json", ...(idempotencyKey && { "Idempotency-Key": idempotencyKey }) }, body: JSON.stringify({ raw: $mime({ html: %t, %s }) }) })
if (!answer.ok) throw new Error("Gmail answers " + answer.status)
return answer.json()`, quote(credential), unit.p.or("emailType", "html") == "html", strings.Join(fields, ", ")))
	if unit.unsupported {
		return DraftTool{}, false
	}
	return function(code, argumentSchema(env.arguments))
}

func wikipediaTool(*env, *unit) (DraftTool, bool) {
	return function(`const answer = await fetch("https://en.wikipedia.org/w/api.php?action=query&format=json&generator=search&gsrlimit=3&prop=extracts&exintro=1&explaintext=1&exlimit=max&gsrsearch=" + encodeURIComponent(args.query))
if (!answer.ok) throw new Error("Wikipedia answers " + answer.status)
return Object.values((await answer.json()).query?.pages ?? {}).map((page) => ({ title: page.title, summary: page.extract }))`, textParameter("query", "What to look up in Wikipedia."))
}

func serpTool(e *env, h *unit) (DraftTool, bool) {
	config := map[string]any{
		"method":     "GET",
		"url":        "https://serpapi.com/search.json",
		"query":      map[string]any{"engine": "google", "q": "{{query}}"},
		"parameters": textParameter("query", "What to search the web for."),
	}
	(&env{c: e.c, u: h}).attach(config, "serpApi")
	raw, err := json.Marshal(config)
	return DraftTool{Type: agent.ToolAPI, Config: raw}, err == nil
}

// markHelpers marks the helpers of a unit, and theirs, as done by a node.
func (u *unit) markHelpers(node string) {
	for _, kind := range sortedKeys(u.helpers) {
		for _, h := range u.helpers[kind] {
			if h.nodeID == "" {
				h.nodeID = node
				h.approximate("KNOWLEDGE", absorbed(kind))
			}
			h.markHelpers(node)
		}
	}
}

func absorbed(kind string) string {
	switch kind {
	case "ai_languageModel":
		return "The agent's own model answers."
	case "ai_document", "ai_textSplitter":
		return "Sources split their texts themselves."
	case "ai_embedding":
		return "Sources have their own embeddings."
	}
	return "The agent's sources take its place."
}
