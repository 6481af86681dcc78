package graph

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"satchel/agent"
)

var update = flag.Bool("update", false, "write the tables of docs/workflows.md")

// compiled compiles a schema to validate values with.
func compiled(t *testing.T, s Schema) *jsonschema.Schema {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return schema
}

func decoded(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return v
}

var widgets = []string{
	"", "textarea", "javascript", "sql", "selector", "cron", "duration", "template", "conditions", "cases", "schema",
	"keyvalue", "chips", "rowconditions", "formfields", "arguments",
}
var refs = []string{
	"", "gateway", "source", "tool", "workflow", "session", "event", "model", "table", "credential", "api", "operation",
}

// TestCatalog checks that each type is fully described and that its examples
// match.
func TestCatalog(t *testing.T) {
	seen := map[string]bool{}
	compiled(t, MakeCatalog().Common)
	for i, e := range MakeCatalog().Types {
		if seen[e.Type] ||
			seen[e.Label] ||
			e.Label == "" ||
			!slices.Contains(Groups, e.Group) ||
			e.Icon == "" ||
			e.Documentation == "" ||
			len(e.Synonyms) == 0 {
			t.Errorf("%s is not fully described: %+v", e.Type, e)
		}
		seen[e.Type], seen[e.Label] = true, true
		if !strings.HasSuffix(e.Summary, ".") || strings.Contains(strings.TrimSuffix(e.Summary, "."), ". ") {
			t.Errorf("%s: the summary is not one sentence: %s", e.Type, e.Summary)
		}
		for _, f := range Types[i].Data {
			if f.Title == "" || !slices.Contains(widgets, f.Widget) || !slices.Contains(refs, f.Ref) {
				t.Errorf("%s: the field %s: %+v", e.Type, f.Name, f)
			}
		}
		compiled(t, e.Data)
		if err := compiled(t, e.Output.Schema).Validate(decoded(t, e.Output.Example)); err != nil {
			t.Errorf("%s: the example output does not match the schema: %v", e.Type, err)
		}
		nodes := []agent.RawNode{agent.RawNode(fmt.Sprintf(`{"id":"n","type":%q,"data":%s}`, e.Type, e.Example))}
		if e.Type != agent.NodeTrigger {
			nodes = append(nodes, agent.RawNode(`{"id":"t","type":"trigger"}`))
		}
		if _, err := Parse(nodes, nil, true); err != nil {
			t.Errorf("%s: the example data: %v", e.Type, err)
		}
		wrong := e.Data["properties"].(map[string]any)
		for name := range decoded(t, e.Example).(map[string]any) {
			if wrong[name] == nil {
				t.Errorf("%s: the example has the unknown field %s", e.Type, name)
			}
		}
	}
}

// TestDocs checks the tables of node types in docs/workflows.md. With -update
// it writes them.
func TestDocs(t *testing.T) {
	const path = "../../docs/workflows.md"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)(<!-- node types: ([A-Za-z, ]+) -->\n).*?(<!-- end -->)`)
	var groups []string
	want := table.ReplaceAllStringFunc(string(raw), func(found string) string {
		m := table.FindStringSubmatch(found)
		named := strings.Split(m[2], ", ")
		groups = append(groups, named...)
		return m[1] + tableOf(named) + m[3]
	})
	slices.Sort(groups)
	if all := slices.Sorted(slices.Values(Groups)); !slices.Equal(groups, all) {
		t.Errorf("the tables have the groups %v", groups)
	}
	if want == string(raw) {
		return
	}
	if !*update {
		t.Fatal("the tables differ from the catalog; run this test with -update")
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tableOf renders the types of groups as Markdown.
func tableOf(groups []string) string {
	var b strings.Builder
	b.WriteString("| type | what it does | data | output |\n|---|---|---|---|\n")
	for _, t := range Types {
		if !slices.Contains(groups, t.Group) {
			continue
		}
		var data, output []string
		for _, f := range t.Data {
			data = append(data, f.described())
		}
		for _, f := range t.Output {
			output = append(output, f.Name)
		}
		result := "`{" + strings.Join(output, ", ") + "}`"
		if output == nil {
			result = "an object"
		}
		if ways := slices.Clone(t.Handles); ways != nil {
			if t.Cases {
				ways = append(ways, "a case's id")
			}
			result += "; leaves by `" + strings.Join(ways, "`, `") + "`"
		}
		fmt.Fprintf(
			&b,
			"| `%s`: %s | %s | %s | %s |\n",
			t.Name,
			t.Label,
			t.Summary,
			strings.Join(data, "; "),
			strings.ReplaceAll(result, "`a case's id`", "a case's id"),
		)
	}
	return b.String()
}

// described renders a field with its allowed values.
func (f *Field) described() string {
	var notes []string
	if f.Required {
		notes = append(notes, "required")
	}
	if f.Enum != nil {
		notes = append(notes, "`"+strings.Join(f.Enum, "`, `")+"`")
	}
	if f.Unit != "" {
		notes = append(notes, "in "+f.Unit)
	}
	if f.Default != nil && f.Default != false {
		notes = append(notes, fmt.Sprintf("default %v", f.Default))
	}
	text := "`" + f.Name + "`"
	if notes != nil {
		text += " (" + strings.Join(notes, "; ") + ")"
	}
	if f.Description != "" {
		text += " " +
			strings.NewReplacer("{{", "`{{", "}}", "}}`", "|", `\|`).Replace(strings.TrimSuffix(f.Description, "."))
	}
	return text
}

// TestFieldsOfChoices checks that a field whose description says that it belongs to a value of a choice beside it, as
// the password of basic does, is shown with that value only.
func TestFieldsOfChoices(t *testing.T) {
	var check func(path string, fields []Field)
	check = func(path string, fields []Field) {
		for _, choice := range fields {
			for _, f := range fields {
				words := strings.FieldsFunc(f.Description, func(r rune) bool {
					return r != '-' && !unicode.IsLetter(r)
				})
				if len(words) < 2 || words[0] != "Of" && words[0] != "For" || !slices.Contains(choice.Enum, words[1]) {
					continue
				}
				if !slices.Contains(f.When[choice.Name], words[1]) {
					t.Errorf("%s.%s is shown whatever %s is", path, f.Name, choice.Name)
				}
			}
		}
		for _, f := range fields {
			check(path+"."+f.Name, f.Fields)
		}
	}
	for _, n := range Types {
		check(n.Name, n.Data)
	}
}
