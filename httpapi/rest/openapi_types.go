package rest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"satchel/agent"
)

// Lists in this service's responses are never null.
func init() { huma.DefaultArrayNullable = false }

// types converts Go types to the schemas of the description.
type types struct {
	api      *API
	registry huma.Registry
	prepared map[reflect.Type]bool
}

const schemaPrefix = "#/components/schemas/"

func newTypes(a *API) *types {
	t := &types{api: a, prepared: map[reflect.Type]bool{}}
	t.registry = huma.NewMapRegistry(schemaPrefix, a.componentName)
	t.registry.RegisterTypeAlias(reflect.TypeFor[agent.Time](), reflect.TypeFor[time.Time]())
	t.registry.RegisterTypeAlias(reflect.TypeFor[agent.RawNode](), reflect.TypeFor[agent.Node]())
	t.registry.RegisterTypeAlias(reflect.TypeFor[agent.RawEdge](), reflect.TypeFor[agent.Edge]())
	t.registry.RegisterTypeAlias(reflect.TypeFor[agent.Bound](), reflect.TypeFor[string]())
	t.registry.RegisterTypeAlias(reflect.TypeFor[json.RawMessage](), reflect.TypeFor[map[string]any]())
	for of, as := range a.Aliases {
		t.registry.RegisterTypeAlias(of, as)
	}
	return t
}

// componentName returns the name of a schema: agentsOut is AgentList, agentOut
// AgentDetails. Types without a name get the hint, their operation or field, as their
// name.
func (a *API) componentName(typ reflect.Type, hint string) string {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	name := typ.Name()
	if typ.Kind() != reflect.Struct {
		return name
	}
	if name == "" {
		name = strings.TrimSuffix(strings.Replace(hint, "Out", "", 1), "Struct")
	}
	if clean, ok := a.Components[typ.String()]; ok {
		return clean
	}
	if list, ok := strings.CutSuffix(name, "sOut"); ok {
		return title(list) + "List"
	}
	if details, ok := strings.CutSuffix(name, "Out"); ok {
		return title(details) + "Details"
	}
	return title(name)
}

// schema returns the schema of a type, which is a reference for structs.
func (t *types) schema(of reflect.Type, hint string) *huma.Schema {
	t.prepare(of)
	return t.registry.Schema(of, true, hint)
}

// field returns the schema of a parameter, including its tags.
func (t *types) field(f reflect.StructField) *huma.Schema {
	t.prepare(f.Type)
	return huma.SchemaFromField(t.registry, f, f.Name)
}

// prepare makes every Optional within a type be described as a pointer to its value,
// which supports examples and enumerations.
func (t *types) prepare(of reflect.Type) {
	if t.prepared[of] {
		return
	}
	t.prepared[of] = true
	if value, ok := optionalValue(of); ok {
		t.registry.RegisterTypeAlias(of, reflect.PointerTo(value))
		t.prepare(value)
		return
	}
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		t.prepare(of.Elem())
	case reflect.Struct:
		for f := range of.Fields() {
			t.prepare(f.Type)
		}
	}
}

// optionalValue returns the type inside an agent.Optional.
func optionalValue(of reflect.Type) (reflect.Type, bool) {
	if of.PkgPath() != reflect.TypeFor[agent.Agent]().PkgPath() || !strings.HasPrefix(of.Name(), "Optional[") {
		return nil, false
	}
	f, ok := of.FieldByName("Value")
	return f.Type, ok
}

// resolve follows a reference.
func (t *types) resolve(s *huma.Schema) *huma.Schema {
	if s.Ref != "" {
		return t.registry.SchemaFromRef(s.Ref)
	}
	return s
}

// openTypes are the types whose unknown fields are stored and returned.
var openTypes = []reflect.Type{reflect.TypeFor[agent.Node](), reflect.TypeFor[agent.Edge]()}

// complete completes the schemas once all exist: objects may have additional fields,
// because requests may contain any and responses gain new ones; optional fields of any
// type may be null; a field with a types tag has one of these types, and one with a
// sample tag, which is JSON, has that as its example.
func (t *types) complete() {
	for name, schema := range t.registry.Map() {
		of := t.registry.TypeFromRef(schemaPrefix + name)
		if schema.AdditionalProperties = nil; slices.Contains(openTypes, of) {
			schema.AdditionalProperties = true
		}
		for _, field := range reflect.VisibleFields(of) {
			jsonName, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			property := schema.Properties[jsonName]
			if property == nil {
				continue
			}
			if _, optional := optionalValue(field.Type); optional {
				if property.Nullable = false; !slices.Contains(schema.Required, jsonName) {
					allowNull(property)
				}
			}
			if words := field.Tag.Get("types"); words != "" {
				describeTypes(property, words)
			}
			if sample := field.Tag.Get("sample"); sample != "" {
				property.Examples = []any{json.RawMessage(sample)}
			}
		}
	}
}

// describeTypes makes a schema one of several types: "any", or JSON's type names
// separated by commas, with [] before those of a list's items. "null" alone makes the
// schema nullable. An enumeration applies to the strings.
func describeTypes(schema *huma.Schema, words string) {
	if words == "null" {
		allowNull(schema)
		return
	}
	schema.Type, schema.Format, schema.Items, schema.AdditionalProperties, schema.Nullable = "", "", nil, nil, false
	if words == "any" {
		return
	}
	if !strings.ContainsAny(words, ",[") {
		schema.Type = words
		return
	}
	for word := range strings.SplitSeq(words, ",") {
		one := &huma.Schema{Type: word}
		if item, ok := strings.CutPrefix(word, "[]"); ok {
			one = &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: item}}
		}
		if word == huma.TypeString {
			one.Enum, schema.Enum = schema.Enum, nil
		}
		schema.AnyOf = append(schema.AnyOf, one)
	}
}

func allowNull(s *huma.Schema) {
	if s.Ref != "" {
		s.AnyOf = []*huma.Schema{{Ref: s.Ref}, {Type: "null"}}
		s.Ref = ""
		return
	}
	s.Nullable = true
	if len(s.Enum) > 0 {
		s.Enum = append(s.Enum, nil)
	}
}

// example builds an example value for a schema from the examples of its fields. An object
// has the fields that are required or have an example; ok is false if there are none.
func (t *types) example(schema *huma.Schema) (value any, ok bool) {
	schema = t.resolve(schema)
	switch {
	case len(schema.Examples) > 0:
		return schema.Examples[0], true
	case len(schema.Enum) > 0:
		return schema.Enum[0], true
	case schema.Type == huma.TypeObject && len(schema.Properties) > 0:
		object := map[string]any{}
		for name, property := range schema.Properties {
			if value, ok := t.example(property); ok || slices.Contains(schema.Required, name) {
				object[name] = value
			}
		}
		return object, len(object) > 0
	case schema.Type == huma.TypeArray:
		if item, ok := t.example(schema.Items); ok {
			return []any{item}, true
		}
		return []any{}, false
	}
	return simplestValue(schema), false
}

// simplestValue returns the simplest value for a schema that has no example.
func simplestValue(schema *huma.Schema) any {
	switch {
	case !schema.Nullable && len(schema.AnyOf) > 0:
		return simplestValue(schema.AnyOf[0])
	case schema.Nullable || schema.Type == "":
		return nil
	case schema.Type == huma.TypeString && schema.Format == "date-time":
		return "2026-01-31T09:00:00.000Z"
	case schema.Type == huma.TypeString:
		return ""
	case schema.Type == huma.TypeBoolean:
		return false
	case schema.Type == huma.TypeObject:
		return map[string]any{}
	}
	return 0
}
