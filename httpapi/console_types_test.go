package httpapi

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var updateTypes = flag.Bool("update", false, "write the console's types of the API")

// jsonSchema is a schema of the OpenAPI document, as far as types need it.
type jsonSchema struct {
	Ref        string                 `json:"$ref"`
	Type       any                    `json:"type"`
	Enum       []any                  `json:"enum"`
	AnyOf      []*jsonSchema          `json:"anyOf"`
	Items      *jsonSchema            `json:"items"`
	Properties map[string]*jsonSchema `json:"properties"`
	Required   []string               `json:"required"`
	Additional any                    `json:"additionalProperties"`
}

// typescript returns the type of the values of a schema; unknown where the schema does
// not say.
func (s *jsonSchema) typescript() string {
	switch {
	case s == nil:
		return "unknown"
	case s.Ref != "":
		return s.Ref[strings.LastIndex(s.Ref, "/")+1:]
	case len(s.AnyOf) > 0:
		return union(s.AnyOf, (*jsonSchema).typescript)
	case len(s.Enum) > 0:
		return union(s.Enum, func(v any) string {
			raw, _ := json.Marshal(v)
			return string(raw)
		})
	}
	if types, ok := s.Type.([]any); ok {
		return union(types, func(v any) string {
			one := *s
			one.Type = v
			return one.typescript()
		})
	}
	switch s.Type {
	case "string", "boolean", "null":
		return s.Type.(string)
	case "integer", "number":
		return "number"
	case "array":
		return "(" + s.Items.typescript() + ")[]"
	case "object":
		return s.object()
	}
	return "unknown"
}

func (s *jsonSchema) object() string {
	if len(s.Properties) == 0 {
		var values *jsonSchema
		if of, ok := s.Additional.(map[string]any); ok {
			raw, _ := json.Marshal(of)
			_ = json.Unmarshal(raw, &values)
		}
		return "Record<string, " + values.typescript() + ">"
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		mark := "?"
		if slices.Contains(s.Required, name) {
			mark = ""
		}
		fmt.Fprintf(&text, " %s%s: %s;", name, mark, s.Properties[name].typescript())
	}
	return "{" + text.String() + " }"
}

func union[T any](list []T, write func(T) string) string {
	var parts []string
	for _, v := range list {
		if text := write(v); !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " | ")
}

// describedRoute is a route of the OpenAPI document, as far as types need it.
type describedRoute struct {
	Responses map[string]struct {
		Content map[string]struct{ Schema *jsonSchema }
	}
}

var pathParameter = regexp.MustCompile(`\{[^}]+\}`)

// answersOf returns the types of the responses of an address by method; null where there
// is none.
func answersOf(routes map[string]describedRoute) string {
	text := ""
	for _, method := range slices.Sorted(maps.Keys(routes)) {
		answer := "null"
		for status, response := range routes[method].Responses {
			if content, ok := response.Content["application/json"]; ok && strings.HasPrefix(status, "2") {
				answer = content.Schema.typescript()
			}
		}
		text += " " + strings.ToUpper(method) + ": " + answer + ";"
	}
	return text
}

// TestConsoleTypes checks that the console's types of the API are those of the API's
// description; with -update it writes them.
func TestConsoleTypes(t *testing.T) {
	document, err := Describe("test")
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		Components struct{ Schemas map[string]*jsonSchema }
		Paths      map[string]map[string]describedRoute
	}
	if err := json.Unmarshal(document, &described); err != nil {
		t.Fatal(err)
	}
	want := "// The types of the API, from its OpenAPI description: go test ./httpapi -run TestConsoleTypes -update\n"
	for _, name := range slices.Sorted(maps.Keys(described.Components.Schemas)) {
		want += "export type " + name + " = " + described.Components.Schemas[name].typescript() + ";\n"
	}
	want += "/** What the routes answer, by address and method; * is any part of an address. " +
		"*/\nexport type Routes = {\n"
	for _, at := range slices.Sorted(maps.Keys(described.Paths)) {
		if below, ok := strings.CutPrefix(at, "/"); ok {
			want += "  " + strconv.Quote(pathParameter.ReplaceAllString(below, "*")) + ": {" +
				answersOf(described.Paths[at]) + " };\n"
		}
	}
	want += "};\n"
	const file = "console/src/data/types.ts"
	if *updateTypes {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf(
			"%s differs from the API's description (%v): run go test ./httpapi -run TestConsoleTypes -update",
			file, err,
		)
	}
}
