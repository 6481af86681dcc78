package graph

import (
	"encoding/json"

	"satchel/flow/condition"
)

// Catalog is what an editor needs to know about node types.
type Catalog struct {
	Groups []string `json:"groups" doc:"In the order of the editor's palette."`
	Common Schema   `json:"common" doc:"JSON Schema of the data fields that every node may have."`
	Types  []Entry  `json:"types"`
}

// Entry describes a type of node.
type Entry struct {
	Type          string          `json:"type" example:"wait"`
	Label         string          `json:"label" example:"Wait"`
	Group         string          `json:"group" example:"Flow"`
	Icon          string          `json:"icon" doc:"Name of a Lucide icon." example:"Clock"`
	Summary       string          `json:"summary" example:"Waits for a time, until a moment, or for an event."`
	Synonyms      []string        `json:"synonyms"`
	Handles       []string        `json:"handles" doc:"The handles other than error; empty if there is only one."`
	HandlesFrom   string          `json:"handles_from,omitempty" doc:"The field of data whose entries' ids are also handles." example:"cases"`
	NormalHandle  string          `json:"normal_handle,omitempty" doc:"The handle of edges without a sourceHandle." example:"default"`
	Data          Schema          `json:"data" doc:"JSON Schema of the data, with x- keys for an editor. Any value may also be a string with a template."`
	Example       json.RawMessage `json:"example" doc:"An example of the data."`
	Output        Output          `json:"output"`
	Needs         []string        `json:"needs" doc:"model, browser, or gateway:PLATFORM." example:"gateway:telegram"`
	Documentation string          `json:"docs" doc:"Section of the documentation." example:"workflows.md#nodes"`
}

// Output describes the output of nodes of a type.
type Output struct {
	Schema  Schema          `json:"schema"`
	Example json.RawMessage `json:"example"`
}

// Schema is a JSON Schema 2020-12.
type Schema map[string]any

// MakeCatalog returns the catalog of all node types.
func MakeCatalog() Catalog {
	catalog := Catalog{
		Groups: Groups,
		Common: schemaOf(Common),
		Types:  make([]Entry, len(Types)),
	}
	for index, t := range Types {
		entry := Entry{
			Type:          t.Name,
			Label:         t.Label,
			Group:         t.Group,
			Icon:          t.Icon,
			Summary:       t.Summary,
			Synonyms:      t.Synonyms,
			Handles:       orEmpty(t.Handles),
			NormalHandle:  t.Normal,
			Data:          schemaOf(t.Data),
			Example:       json.RawMessage(t.Example),
			Output:        Output{schemaOf(t.Output), json.RawMessage(t.ExampleOutput)},
			Needs:         orEmpty(t.Needs),
			Documentation: t.Docs,
		}
		if t.Cases {
			entry.HandlesFrom = "cases"
		}
		if t.OneOf != nil {
			var ways []any
			for _, name := range t.OneOf {
				ways = append(ways, Schema{"required": []string{name}})
			}
			entry.Data["oneOf"] = ways
		}
		catalog.Types[index] = entry
	}
	return catalog
}

func orEmpty(list []string) []string {
	return append([]string{}, list...)
}

// schemaOf returns the schema of an object with these fields; x-order keeps
// their order.
func schemaOf(fields []Field) Schema {
	properties, order, required := map[string]any{}, []string{}, []string{}
	for _, f := range fields {
		properties[f.Name] = f.schema()
		order = append(order, f.Name)
		if f.Required {
			required = append(required, f.Name)
		}
	}
	s := Schema{"type": "object"}
	if len(fields) > 0 {
		s["properties"], s["x-order"] = properties, order
	}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

var schemaTypes = map[string]string{
	"text":       "string",
	"number":     "number",
	"bool":       "boolean",
	"list":       "array",
	"object":     "object",
	"conditions": "array",
	"cases":      "array",
	"null":       "null",
}

func (f *Field) schema() Schema {
	s := Schema{}
	if f.Fields != nil {
		s = schemaOf(f.Fields)
	}
	var types []string
	for _, kind := range f.Kinds {
		if name := schemaTypes[kind]; name != "" {
			types = append(types, name)
		}
	}
	switch len(types) {
	case 0:
	case 1:
		s["type"] = types[0]
	default:
		s["type"] = types
	}
	switch f.Kinds[0] {
	case "conditions":
		s["items"] = conditionSchema
	case "cases":
		s["items"] = caseSchema
	}
	if f.Bounds != nil {
		s["minimum"], s["maximum"] = f.Bounds[0], f.Bounds[1]
	}
	if f.Enum != nil {
		s["enum"] = f.Enum
	}
	for key, value := range map[string]string{
		"title":       f.Title,
		"description": f.Description,
		"x-widget":    f.Widget,
		"x-ref":       f.Ref,
		"x-unit":      f.Unit,
	} {
		if value != "" {
			s[key] = value
		}
	}
	if f.Default != nil {
		s["default"] = f.Default
	}
	if f.Advanced {
		s["x-advanced"] = true
	}
	if f.Secret {
		s["writeOnly"] = true
	}
	if f.When != nil {
		s["x-when"] = f.When
	}
	return s
}

var conditionSchema = Schema{
	"type":     "object",
	"required": []string{"operator"},
	"properties": map[string]any{
		"left":     Schema{"title": "Value"},
		"operator": Schema{"type": "string", "title": "Operator", "enum": condition.Operators()},
		"right":    Schema{"title": "Compared with"},
	},
}

var caseSchema = Schema{
	"type":     "object",
	"required": []string{"id"},
	"properties": map[string]any{
		"id":    Schema{"type": "string", "title": "Name"},
		"value": Schema{"title": "Value"},
		"conditions": Schema{
			"type":     "array",
			"title":    "Conditions",
			"x-widget": "conditions",
			"items":    conditionSchema,
		},
		"combinator": Schema{
			"type":    "string",
			"title":   "Combine by",
			"enum":    []string{"and", "or"},
			"default": "and",
		},
	},
}
