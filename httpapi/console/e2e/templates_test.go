package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"satchel/agent/template"
)

// TestTemplatePreview fills the table of templates that agent/template is tested with, and
// every value with every pair of filters and every argument, which the service fills too.
func TestTemplatePreview(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	file, err := os.ReadFile("../../../agent/template/testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Scope map[string]any
		Zone  string
		Cases [][]any
	}
	if err := json.Unmarshal(file, &table); err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation(table.Zone)
	if err != nil {
		t.Fatal(err)
	}
	options := template.Options{Zone: func() *time.Location { return zone }}
	add := func(text string) {
		got, warnings, err := template.Render(text, template.Map(table.Scope), options)
		var syntax *template.SyntaxError
		kind := ""
		switch {
		case errors.As(err, &syntax):
			got, kind = fmt.Sprintf("%s at character %d", syntax.Issue, syntax.Position), "error"
		case err != nil:
			t.Error(err)
		case len(warnings) > 0:
			kind = "missing"
		}
		table.Cases = append(table.Cases, []any{text, got, kind})
	}
	filters := []string{
		"default", "optional", "text", "upper", "lower", "trim", "url", "json", "length", "first", "last", "join",
		"date", "none",
	}
	arguments := []string{
		"", `:"x"`, ":'HH:mm'", ":7", ":1.5e-3", ":007", ":true", ":null", ":[]", ":[1]", ":{}", ":x", ":", ":'",
		`:"\u00e9\n"`, `:"\x"`,
	}
	heads := []string{"lines", "'quoted'", "tags[0]", "tags.3", "object.a", "a b", ""}
	for name := range table.Scope {
		heads = append(heads, fmt.Sprintf("object[%q]", name))
		if name != "First name" {
			heads = append(heads, name)
		}
	}
	for _, head := range heads {
		add("{{" + head + "}} and {{" + head + "}}")
		for _, filter := range filters {
			for _, argument := range arguments {
				add("{{" + head + " | " + filter + argument + " }}")
			}
			for _, next := range filters {
				add("{{" + head + "|" + filter + "|" + next + "}}")
			}
		}
	}
	cases, err := json.Marshal(table.Cases)
	if err != nil {
		t.Fatal(err)
	}
	scope, err := json.Marshal(table.Scope)
	if err != nil {
		t.Fatal(err)
	}
	p := newTestServer(t).openConsole(t, 800)
	wrong := p.eval(`(async () => {
		const { fill } = await import("/console/app/editor-panel.js");
		const faults = [];
		for (const [text, want, kind = ""] of ` + string(cases) + `) {
			const { value, missing, problem } = fill(text, ` + string(scope) + `, ` + quoted(table.Zone) + `);
			const got = [problem ?? value, problem ? "error" : missing.length ? "missing" : ""];
			if (JSON.stringify(got) !== JSON.stringify([want, kind])) faults.push(text + ": " + JSON.stringify(got) + ", want " + JSON.stringify([want, kind]));
		}
		return faults.slice(0, 30).join("\n");
	})()`)
	if wrong != "" {
		t.Error(wrong)
	}
}

// TestRenamedNodeInTemplates gives a node another id: what refers to it follows by the
// grammar of templates, and what only looks like it stays.
func TestRenamedNodeInTemplates(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	cases := [][2]string{
		{"{{nodes.a.text}} and {{ nodes[\"a\"].text }}", "{{nodes.b-2.text}} and {{ nodes.b-2.text }}"},
		{"{{nodes['a'][0]['x y'] | upper}}", `{{nodes.b-2[0]["x y"] | upper}}`},
		{`{{nodes.a.text | default:"{ nodes.a }"}}`, `{{nodes.b-2.text | default:"{ nodes.a }"}}`},
		{
			`{{"nodes.a" | upper}} nodes.a {{nodes.ab.x}} {{input.nodes.a}}`,
			`{{"nodes.a" | upper}} nodes.a {{nodes.ab.x}} {{input.nodes.a}}`,
		},
	}
	fields := map[string]string{}
	for i, c := range cases {
		fields[fmt.Sprint("f", i)] = c[0]
	}
	values, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	id := ts.must(
		t, 201, "POST", flowBase,
		`{"name":"Flow","nodes":[{"id":"start","type":"trigger","data":{}},{"id":"a","type":"code",`+
			`"data":{"code":"return {}"}},{"id":"last","type":"set","data":{"values":`+string(values)+
			`}}],"edges":[{"source":"start","target":"a"},{"source":"a","target":"last"}]}`,
	)["id"].(string)
	p := ts.openConsole(t, 1280)
	p.openNode(id, "a")
	p.typeInto(`document.querySelector("[aria-label=ID]")`, "b-2")
	p.eval(`void document.querySelector("[aria-label=ID]").dispatchEvent(new KeyboardEvent("keydown", { key: ` +
		`"Enter", bubbles: true }))`)
	p.click("Save")
	p.waitFor(hasText("v2"))
	stored := ts.must(t, 200, "GET", flowBase+"/"+id, "")
	if at(stored, "nodes.1.id") != "b-2" {
		t.Fatalf("the nodes are %v", stored["nodes"])
	}
	for i, c := range cases {
		if got := at(stored, fmt.Sprint("nodes.2.data.values.f", i)); got != c[1] {
			t.Errorf("%s became %v, want %s", c[0], got, c[1])
		}
	}
}
