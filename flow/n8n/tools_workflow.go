package n8n

import (
	"encoding/json"
	"fmt"
	"strings"

	"satchel/agent"
)

var ownWorkflow = agent.Pattern(`^=\{\{\s*\$workflow\.id\s*\}\}$`)

// importedWorkflow returns the id of the workflow that a unit calls, or "" if it is not
// part of the import.
func (converter *converter) importedWorkflow(u *unit) string {
	id := u.p.text("workflowId")
	if ownWorkflow().MatchString(id) {
		return converter.doc.own
	}
	return converter.workflows[id]
}

// workflowTool makes a tool that runs a workflow.
func workflowTool(env *env, unit *unit) (DraftTool, bool) {
	if unit.p.or("source", "database") != "database" {
		unit.fail(
			"WORKFLOW",
			"The workflow is a parameter of the tool: import it as a workflow of its own, "+
				"and make a tool that runs it.",
		)
		return DraftTool{}, false
	}
	id := env.c.importedWorkflow(unit)
	if unit.incomplete = id == ""; unit.incomplete {
		unit.approximate(
			"WORKFLOW",
			fmt.Sprintf(
				"Choose the workflow that the tool runs and switch the tool on: the one in n8n is %q. "+
					"Workflows that are imported together keep their connections.",
				clip(workflowName(unit), 80),
			),
		)
	} else {
		unit.approximate("ACTIVE", "The tool runs its workflow once that is active.")
	}
	parameters, defaults, ok := workflowArguments(unit)
	if !ok {
		unit.fail("SCHEMA", "The schema of the tool's arguments is computed or no JSON.")
		return DraftTool{}, false
	}
	config := map[string]any{"workflow_id": id, "parameters": parameters}
	if len(defaults) > 0 {
		config["defaults"] = defaults
	}
	raw, err := json.Marshal(config)
	return DraftTool{Type: agent.ToolWorkflow, Config: raw}, err == nil
}

// workflowArguments returns the arguments that the model gives a workflow, and the
// inputs with fixed values. From version 2 on both are in one list of inputs; before,
// they were a schema and fields.
func workflowArguments(h *unit) (parameters, defaults map[string]any, ok bool) {
	if inputs := h.p.object("workflowInputs.value"); len(inputs) > 0 {
		parameters, defaults = mappedInputs(h, inputs)
		return parameters, defaults, true
	}
	parameters, ok = textParameter("query", "The input of the workflow."), true
	if h.p.flag("specifyInputSchema") {
		parameters, ok = schemaOf(h)
	}
	defaults = map[string]any{}
	for _, field := range h.p.objects("fields.values") {
		kind := field.or("type", "stringValue")
		setInput(h, defaults, field.text("name"), field[kind])
	}
	return parameters, defaults, ok && parameters["type"] == "object"
}

// mappedInputs reads a list of inputs: those with $fromAI are arguments, all others
// have fixed values.
func mappedInputs(unit *unit, inputs map[string]any) (parameters, defaults map[string]any) {
	kinds := map[string]string{}
	for _, field := range unit.p.objects("workflowInputs.schema") {
		kinds[field.text("id")] = field.text("type")
	}
	arguments := map[string]argument{}
	defaults = map[string]any{}
	for _, name := range sortedKeys(inputs) {
		text, _ := inputs[name].(string)
		m := modelParts(text)
		if m == nil {
			setInput(unit, defaults, name, inputs[name])
			continue
		}
		kind := m[3]
		if kind == "" || kind == "string" {
			kind = kinds[name]
		}
		arguments[name] = argument{kind, strings.TrimSpace(m[2])}
	}
	return argumentSchema(arguments), defaults
}

// modelParts returns the parts of a value that consists only of $fromAI.
func modelParts(text string) []string {
	source, isExpression := expressionOf(text)
	if !isExpression {
		return nil
	}
	source = strings.TrimSpace(aiComment().ReplaceAllString(source, ""))
	source = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(source, "{{"), "}}"))
	m := fromAI().FindStringSubmatch(source)
	if m == nil || m[0] != source {
		return nil
	}
	return m
}

// setInput sets an input, unless it is computed from the items of the agent in n8n.
func setInput(unit *unit, defaults map[string]any, name string, value any) {
	text, isText := value.(string)
	switch {
	case name == "" || value == nil:
	case isText && hasExpression(text):
		unit.approximate(
			"INPUT",
			fmt.Sprintf(
				"The input %q was computed from the item that the agent works on: %s. Have the model give it as an "+
					"argument, or set it in the tool.",
				clip(name, 60),
				clip(text, 80),
			),
		)
	case isText:
		defaults[name] = strings.TrimPrefix(text, "=")
	default:
		defaults[name] = value
	}
}
