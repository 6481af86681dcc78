package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// chained returns a schema of n definitions; link makes each from the reference to
// the next.
func chained(n int, link func(next string) string) string {
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d":%s`, i, link(fmt.Sprintf("#/$defs/d%d", i+1))))
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/d0","$defs":{%s,"d%d":{"type":"integer"}}}`, strings.Join(defs, ","), n)
}

// complete returns a schema of n definitions that each combine all others.
func complete(n int) string {
	var defs []string
	for i := range n {
		var others []string
		for k := range n {
			if k != i {
				others = append(others, fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, k))
			}
		}
		defs = append(defs, fmt.Sprintf(`"d%d":{"anyOf":[%s]}`, i, strings.Join(others, ",")))
	}
	return `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `}}`
}

// TestSchemasThatMultiply: a small schema whose subschemas multiply is rejected.
func TestSchemasThatMultiply(t *testing.T) {
	each := func(format string) func(string) string {
		return func(next string) string { return strings.ReplaceAll(format, "NEXT", next) }
	}
	anchored := strings.NewReplacer("$defs/d", "d")
	for name, schema := range map[string]string{
		"allOf":            chained(40, each(`{"allOf":[{"$ref":"NEXT"},{"$ref":"NEXT"}]}`)),
		"anyOf":            chained(40, each(`{"anyOf":[{"$ref":"NEXT"},{"$ref":"NEXT"}]}`)),
		"if":               chained(40, each(`{"if":{"$ref":"NEXT"},"then":{"$ref":"NEXT"},"else":{"$ref":"NEXT"}}`)),
		"dependentSchemas": chained(40, each(`{"dependentSchemas":{"a":{"$ref":"NEXT"},"b":{"$ref":"NEXT"}}}`)),
		"below an item": `{"items":{"$ref":"#/$defs/d0"},` +
			chained(40, each(`{"oneOf":[{"$ref":"NEXT"},{"not":{"$ref":"NEXT"}}]}`))[len(`{"$ref":"#/$defs/d0",`):],
		"dynamic": anchored.Replace(chained(40, func(next string) string {
			return strings.ReplaceAll(
				`{"$dynamicAnchor":"OWN","allOf":[{"$dynamicRef":"NEXT"},{"$dynamicRef":"NEXT"}]}`,
				"NEXT",
				next,
			)
		})),
		"draft-07": `{"$schema":"http://json-schema.org/draft-07/schema#",` +
			chained(40, each(`{"dependencies":{"a":{"$ref":"NEXT"},"b":{"$ref":"NEXT"}}}`))[1:],
		"all others": complete(12),
	} {
		if name == "dynamic" {
			for i := range 40 {
				schema = strings.Replace(schema, "OWN", fmt.Sprintf("d%d", i), 1)
			}
			schema = strings.Replace(schema, `{"type":"integer"}`, `{"$dynamicAnchor":"d40"}`, 1)
			schema = strings.ReplaceAll(schema, `"#/d`, `"#d`)
		}
		if err := CheckSchema("parameters", json.RawMessage(schema)); err == nil {
			t.Errorf("%s is accepted: %s", name, schema)
		}
	}
}

// TestRecursiveSchemas: schemas that refer to themselves for parts of a value, and
// large schemas, are accepted.
func TestRecursiveSchemas(t *testing.T) {
	var kinds []string
	for i := range 1000 {
		kinds = append(kinds, fmt.Sprintf(`{"$ref":"#/$defs/kind","properties":{"kind":{"const":%d}}}`, i))
	}
	for name, tc := range map[string]struct{ schema, right, wrong, problem string }{
		"tree": {
			`{"type":"object","properties":{"left":{"$ref":"#"},"right":{"$ref":"#"},` +
				`"n":{"type":"integer"}},"required":["n"]}`,
			`{"n":1,"left":{"n":2,"right":{"n":3}}}`,
			`{"n":1,"left":{"n":2,"right":{}}}`,
			"left.right: missing property 'n'",
		},
		"extended tree": {`{"$id":"https://example.com/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,
			"$defs":{"tree":{"$id":"https://example.com/tree","$dynamicAnchor":"node","type":"object","properties":{"children":{"type":"array","items":{"$dynamicRef":"#node"}}}}}}`,
			`{"children":[{"children":[]}]}`, `{"children":[{"daat":1}]}`, ""},
		"subtypes that refer to their base": {`{"properties":{"n":{"type":"integer"},"pet":{"$ref":"#/$defs/pet"}},
			"$defs":{"pet":{"oneOf":[{"$ref":"#/$defs/cat"},{"$ref":"#/$defs/dog"}]},"cat":{"allOf":[{"$ref":"#/$defs/pet"}]},"dog":{"allOf":[{"$ref":"#/$defs/pet"}]}}}`,
			`{"n":1}`, `{"n":"1"}`, "n: got string, want integer"},
		"many alternatives": {
			`{"anyOf":[` + strings.Join(kinds, ",") + `],"$defs":{"kind":{"type":"object","required":["kind"]}}}`,
			`{"kind":999}`,
			`{"kind":1000}`,
			"",
		},
	} {
		if err := CheckSchema("parameters", json.RawMessage(tc.schema)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if problem := schemaProblem(json.RawMessage(tc.schema), json.RawMessage(tc.right)); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
		if problem := schemaProblem(json.RawMessage(tc.schema), json.RawMessage(tc.wrong)); problem == "" ||
			tc.problem != "" && problem != tc.problem {
			t.Errorf("%s: an invalid value has the problem %q, want %q", name, problem, tc.problem)
		}
	}
}
