package openapi

import (
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"satchel/agent"
)

// detail is how much of schemas is kept.
type detail struct {
	texts bool // descriptions and examples
	depth int  // of nested schemas
}

// details are tried in turn until a schema is small enough.
var details = []detail{
	{true, 100}, {false, 100}, {false, 10}, {false, 7}, {false, 5}, {false, 4}, {false, 3}, {false, 2}, {false, 1},
}

var errSchemaSize = errors.New("the schema is too large")

// schemas converts the schemas of one operation, or of one definition, to JSON
// Schema 2020-12.
type schemas struct {
	r         *reader
	detail    detail
	refs      []*definition // that they refer to, each once
	remaining int           // rough count of bytes; below 0: too large
	cut       bool          // something was nested too deep
}

// convert converts a schema.
func (s *schemas) convert(value any, depth int) any {
	if allowed, ok := value.(bool); ok {
		return allowed
	}
	m := object(value)
	if s.remaining -= 20; s.remaining < 0 || m == nil || depth > s.detail.depth {
		s.cut = s.cut || depth > s.detail.depth
		return map[string]any{}
	}
	if ref, ok := m["$ref"].(string); ok {
		return s.reference(ref, m, depth)
	}
	out := map[string]any{}
	s.scalars(m, out)
	s.types(m, out)
	s.subschemas(m, out, depth)
	return nullable(m, out)
}

// reference converts a reference to one into $defs. Keywords beside $ref are kept
// for OpenAPI 3.1 only.
func (s *schemas) reference(ref string, values map[string]any, depth int) any {
	definition := s.r.definition(ref)
	if definition == nil {
		return map[string]any{}
	}
	if !slices.Contains(s.refs, definition) {
		s.refs = append(s.refs, definition)
	}
	s.remaining -= len(definition.name) + 20
	out := map[string]any{"$ref": "#/$defs/" + definition.name}
	if s.r.format == agent.FormatOpenAPI31 {
		siblings := maps.Clone(values)
		delete(siblings, "$ref")
		if converted := object(s.convert(siblings, depth)); len(converted) > 0 {
			maps.Copy(converted, out)
			out = converted
		}
	}
	return nullable(values, out)
}

// Keywords by the kind of their values.
var (
	numberKeywords = []string{"minimum", "maximum", "multipleOf"}
	countKeywords  = []string{
		"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
		"minContains", "maxContains",
	}
	schemaKeywords = []string{
		"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else",
		"unevaluatedProperties",
	}
	schemaListKeywords = []string{"allOf", "anyOf", "prefixItems"}
)

// scalars copies keywords whose values contain no schemas.
func (s *schemas) scalars(object, out map[string]any) {
	for _, key := range numberKeywords {
		if n, ok := object[key].(json.Number); ok && (key != "multipleOf" || positive(n)) {
			out[key] = n
		}
	}
	for _, key := range countKeywords {
		if n, ok := object[key].(json.Number); ok && isCount(n) {
			out[key] = n
		}
	}
	for bound, plain := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		switch v := object[bound].(type) {
		case json.Number:
			out[bound] = v
		case bool: // JSON Schema draft 4
			if n, ok := out[plain]; ok && v {
				out[bound] = n
				delete(out, plain)
			}
		}
	}
	if pattern := text(object["pattern"]); pattern != "" && isPattern(pattern) {
		out["pattern"] = pattern
	}
	if format := text(object["format"]); format != "" && len(format) < 40 {
		out["format"] = format
	}
	if object["uniqueItems"] == true {
		out["uniqueItems"] = true
	}
	for _, key := range []string{"default", "const"} {
		if v, given := object[key]; given && s.fits(v) {
			out[key] = v
		}
	}
	if values := list(object["enum"]); len(values) > 0 && s.fits(values) {
		out["enum"] = distinct(values)
	}
	s.texts(object, out)
}

// texts copies descriptive keywords, if they fit.
func (s *schemas) texts(values, out map[string]any) {
	if !s.detail.texts {
		return
	}
	if d := agent.Clip(strings.TrimSpace(text(values["description"])), maxText); d != "" {
		out["description"] = d
		s.remaining -= len(d)
	}
	if values["deprecated"] == true {
		out["deprecated"] = true
	}
	if e, given := values["example"]; given &&
		object(e) == nil &&
		list(e) == nil &&
		len(text(e)) < maxLine &&
		e != nil {
		out["examples"] = []any{e}
	}
}

// fits counts the bytes of a value, and reports whether it is small enough to be
// kept.
func (s *schemas) fits(v any) bool {
	raw, err := json.Marshal(v)
	s.remaining -= len(raw)
	return err == nil
}

// distinct removes duplicates from a list, as JSON Schema requires for an enum.
func distinct(values []any) []any {
	seen, out := map[string]bool{}, []any{}
	for _, v := range values {
		raw, _ := json.Marshal(v) // it was decoded from JSON or YAML
		if !seen[string(raw)] {
			seen[string(raw)] = true
			out = append(out, v)
		}
	}
	return out
}

// knownTypes maps the names of types in use to those of JSON Schema.
var knownTypes = map[string]string{
	"string": "string", "number": "number", "integer": "integer", "boolean": "boolean", "array": "array",
	"object": "object", "null": "null", "int": "integer", "long": "integer", "float": "number", "double": "number",
	"bool": "boolean", "text": "string", "date": "string", "file": "string",
}

func (s *schemas) types(m, out map[string]any) {
	var found []any
	for _, t := range append(list(m["type"]), m["type"]) {
		if known := knownTypes[text(t)]; known != "" && !slices.Contains(found, any(known)) {
			found = append(found, known)
		}
	}
	switch len(found) {
	case 0:
	case 1:
		out["type"] = found[0]
	default:
		out["type"] = found
	}
}

// subschemas converts the schemas in a schema.
func (s *schemas) subschemas(values, out map[string]any, depth int) {
	for _, key := range schemaKeywords {
		if entries := list(values[key]); key == "items" && entries != nil { // a tuple, of draft 4
			out["prefixItems"] = s.schemaList(entries, depth)
		} else if v, given := values[key]; given && v != nil {
			out[key] = s.convert(v, depth+1)
		}
	}
	for _, key := range schemaListKeywords {
		if entries := list(values[key]); len(entries) > 0 {
			out[key] = s.schemaList(entries, depth)
		}
	}
	// Alternatives in descriptions often overlap, which oneOf would refuse.
	if entries := list(values["oneOf"]); len(entries) > 0 && out["anyOf"] == nil {
		out["anyOf"] = s.schemaList(entries, depth)
	}
	if entries := object(values["patternProperties"]); len(entries) > 0 {
		kept := map[string]any{}
		for pattern, v := range entries {
			if isPattern(pattern) {
				kept[pattern] = s.convert(v, depth+1)
			}
		}
		out["patternProperties"] = kept
	}
	s.properties(values, out, depth)
}

func (s *schemas) schemaList(entries []any, depth int) []any {
	out := make([]any, 0, len(entries))
	for _, v := range entries {
		out = append(out, s.convert(v, depth+1))
	}
	return out
}

// properties converts properties. Those that requests must not contain are left out.
func (s *schemas) properties(object, out map[string]any, depth int) {
	hidden := map[string]bool{}
	if entries, ok := object["properties"].(map[string]any); ok {
		kept := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			if hidden[name] = s.readOnly(entries[name]); hidden[name] || s.remaining < 0 {
				continue
			}
			s.remaining -= len(name)
			kept[name] = s.convert(entries[name], depth+1)
		}
		out["properties"] = kept
	}
	var required []any
	for _, name := range list(object["required"]) {
		if n, ok := name.(string); ok && !hidden[n] && !slices.Contains(required, name) {
			required = append(required, n)
			s.remaining -= len(n)
		}
	}
	if len(required) > 0 {
		out["required"] = required
	}
}

// readOnly reports whether a property occurs in responses only.
func (s *schemas) readOnly(v any) bool {
	return object(v)["readOnly"] == true || object(v)["$ref"] != nil && s.r.resolve(v)["readOnly"] == true
}

// nullable adds null to a schema of OpenAPI 3.0 that allows it.
func nullable(object, out map[string]any) any {
	if object["nullable"] != true && object["x-nullable"] != true {
		return out
	}
	t, plain := out["type"].(string)
	if !plain || out["$ref"] != nil {
		if len(out) == 0 {
			return out
		}
		return map[string]any{"anyOf": []any{out, map[string]any{"type": "null"}}}
	}
	out["type"] = []any{t, "null"}
	if values, ok := out["enum"].([]any); ok && !slices.Contains(values, nil) {
		out["enum"] = append(values, nil)
	}
	return out
}

func isCount(n json.Number) bool {
	i, err := n.Int64()
	return err == nil && i >= 0
}

func positive(n json.Number) bool {
	f, err := n.Float64()
	return err == nil && f > 0
}

// isPattern reports whether a pattern can be used here. ECMAScript's patterns have
// features that Go's regular expressions lack.
func isPattern(pattern string) bool {
	if len(pattern) > maxText {
		return false
	}
	_, err := regexp.Compile(pattern)
	return err == nil
}
