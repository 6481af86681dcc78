package graph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"satchel/agent"
)

// isTemplate reports whether a value is only known when its node runs.
func isTemplate(v any) bool {
	s, ok := v.(string)
	return ok && strings.Contains(s, "{{")
}

// checkData checks the data of a node. An executable node must be complete.
func checkData(node *agent.Node, executable bool, complain func(field, issue string)) {
	t, known := Lookup(node.Type)
	checkFields(Common, node.Data, "data.", false, complain)
	if !known {
		if executable {
			complain("type", "is unknown: "+agent.Clip(node.Type, 60))
		}
		return
	}
	checkFields(t.Data, node.Data, "data.", executable, complain)
	if node.Type == agent.NodeTrigger {
		agent.CheckIncomingAuth(node.Data["auth"], executable, complain)
		checkForm(node.Data, executable, complain)
	}
	if node.Type == nodeTable && executable {
		checkTable(node.Data, complain)
	}
	if !executable || t.OneOf == nil {
		return
	}
	given := 0
	for _, name := range t.OneOf {
		if v := node.Data[name]; v != nil && v != "" {
			given++
		}
	}
	if given != 1 {
		complain("data", "needs one of "+strings.Join(t.OneOf, ", "))
	}
}

// checkForm checks the form of a trigger.
func checkForm(data map[string]any, executable bool, complain func(field, issue string)) {
	if data["event"] != agent.TriggerForm {
		return
	}
	raw, err := json.Marshal(data)
	var form agent.Form
	if err != nil || json.Unmarshal(raw, &form) != nil {
		complain("data.fields", "must be a list of {name, label, type, required, options}")
		return
	}
	form.Check(executable, func(field, issue string) {
		complain("data."+field, issue)
	})
}

// nodeTable is the type of nodes that read and change rows.
const nodeTable = "table"

// requiredTableFields are the fields that the operations of a table node require.
var requiredTableFields = map[string][]string{
	"update": {"conditions", "row"},
	"upsert": {"row", "key"},
	"delete": {"conditions"},
}

// checkTable checks that a table node has what its operation requires.
func checkTable(data map[string]any, complain func(field, issue string)) {
	operation, _ := data["operation"].(string)
	for _, name := range requiredTableFields[operation] {
		if v := data[name]; v == nil || v == "" {
			complain("data."+name, "is required to "+operation)
		}
	}
	if operation == "insert" && data["row"] == nil && data["rows"] == nil {
		complain("data.row", "is required to insert")
	}
	conditions, _ := data["conditions"].([]any)
	for i, entry := range conditions {
		object, _ := entry.(map[string]any)
		for _, key := range []string{"column", "operator"} {
			if text, _ := object[key].(string); text == "" {
				complain(fmt.Sprintf("data.conditions[%d].%s", i, key), "is required")
			}
		}
	}
}

// checkFields checks the values of known keys. path is the prefix of the keys.
func checkFields(
	fields []Field,
	data map[string]any,
	path string,
	executable bool,
	complain func(field, issue string),
) {
	for _, field := range fields {
		value := data[field.Name]
		switch {
		case value == nil:
			if field.Required && executable {
				complain(path+field.Name, "is required")
			}
		case value == "" && field.Required && executable:
			complain(path+field.Name, "is required")
		case isTemplate(value):
		default:
			if issue := field.check(value); issue != "" {
				complain(path+field.Name, issue)
			}
			if inner, ok := value.(map[string]any); ok && field.Strict {
				checkFields(field.Fields, inner, path+field.Name+".", false, complain)
			}
		}
	}
}

var kindNames = map[string]string{
	"text":       "a string",
	"number":     "a number",
	"bool":       "true or false",
	"list":       "a list",
	"object":     "an object",
	"conditions": "a list of conditions",
	"cases":      "a list of cases",
}

// check returns what is wrong with a value that is not a template, or "".
func (f *Field) check(item any) string {
	for _, kind := range f.Kinds {
		if !isKind(kind, item) {
			continue
		}
		switch value := item.(type) {
		case string:
			if f.Enum != nil &&
				!slices.Contains(f.Enum, value) &&
				!(f.Name == "method" && slices.Contains(f.Enum, strings.ToUpper(value))) {
				return "must be " + strings.Join(f.Enum, ", ")
			}
		case float64:
			if b := f.Bounds; b != nil && (value < b[0] || value > b[1]) {
				return fmt.Sprintf("must be from %.0f to %.0f", b[0], b[1])
			}
		case []any:
			return checkEntries(kind, value)
		}
		return ""
	}
	words := make([]string, len(f.Kinds))
	for i, kind := range f.Kinds {
		words[i] = kindNames[kind]
	}
	return "must be " + strings.Join(words, " or ")
}

func isKind(kind string, v any) bool {
	ok := kind == "any"
	switch v.(type) {
	case string:
		ok = ok || kind == "text"
	case float64:
		ok = ok || kind == "number"
	case bool:
		ok = ok || kind == "bool"
	case []any:
		ok = ok || kind == "list" || kind == "conditions" || kind == "cases"
	case map[string]any:
		ok = ok || kind == "object"
	}
	return ok
}

// checkEntries checks the entries of a list of conditions or cases.
func checkEntries(kind string, list []any) string {
	if kind != "conditions" && kind != "cases" {
		return ""
	}
	seen := map[string]bool{}
	for index, entry := range list {
		object, ok := entry.(map[string]any)
		if !ok {
			return fmt.Sprintf("must be a list of objects; entry %d is not an object", index)
		}
		if kind == "conditions" {
			if _, ok := object["operator"].(string); !ok {
				return fmt.Sprintf("is missing an operator in entry %d", index)
			}
			continue
		}
		id, ok := object["id"].(string)
		switch {
		case !ok || id == "":
			return fmt.Sprintf("is missing an id in entry %d", index)
		case seen[id] || id == agent.HandleError || id == handleDefault:
			return fmt.Sprintf("has a duplicate id in entry %d", index)
		}
		seen[id] = true
		conditions, given := object["conditions"]
		if list, ok := conditions.([]any); given && !ok {
			return fmt.Sprintf("is missing a list of conditions in entry %d", index)
		} else if issue := checkEntries("conditions", list); issue != "" {
			return issue
		}
	}
	return ""
}
