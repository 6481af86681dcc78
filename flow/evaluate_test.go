package flow

import (
	"encoding/json"
	"strings"
	"testing"

	"satchel/agent"
)

// TestEvaluateTemplatesAreArguments: text inserted by templates is data for a
// script in a page, never part of its code.
func TestEvaluateTemplatesAreArguments(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and does not test concurrency")
	}
	db, e, _ := openWithBrowser(t)
	shop := startShop(t)
	// evaluate runs a script once for each text, in one page, and returns the
	// results and then the page's title.
	evaluate := func(t *testing.T, data map[string]any, texts []string) (values []any, title any) {
		t.Helper()
		w := createWorkflow(t, db, e, `t trigger
			n navigate {"url":"{{shop}}"}
			l loop {"items":"{{texts}}","item_variable":"text"}
			v evaluate `+string(mustJSON(data))+`
			r evaluate {"script":"[args, document.title]","args":"{{nodes.l.results}}"}
			t -> n
			n -> l
			l:loop -> v
			v -> l
			l:done -> r`)
		x := execute(
			t, db, e, w,
			string(mustJSON(map[string]any{"shop": shop, "texts": texts, "n": 5, "o": map[string]any{"a": []any{1}}})),
		)
		var out struct {
			Value []any
		}
		if err := json.Unmarshal(x.Execution.Output, &out); err != nil || len(out.Value) != 2 {
			t.Fatalf("got %+v %v", x.Execution.Error, err)
		}
		for _, result := range out.Value[0].([]any) {
			values = append(values, result.(map[string]any)["value"])
		}
		return values, out.Value[1]
	}
	attacks := []string{
		`document.title = "owned"`,
		`"; document.title = "owned"; "`,
		`'; document.title = 'owned'; '`,
		"`; document.title = 'owned'; `",
		"${document.title = 'owned'}",
		`); document.title = "owned"; (`,
		"\n document.title = 'owned' //",
		"*/ document.title = 'owned' /*",
		`\"; document.title = "owned" //`,
		"\u2028document.title='owned'",
		"</script>", "{{shop}}", "args[0]", "%s", `\`,
	}
	scripts := map[string]map[string]any{
		"bare":         {"script": `{{text}}`},
		"quoted":       {"script": `'{{text}}'`},
		"double":       {"script": `return "{{text}}"`},
		"in a literal": {"script": "`${ {{text}} }`"},
		"concatenated": {"script": `const x = "" + {{text}} /* {{text}} */; return x // {{text}}`},
		"with object":  {"script": `args.a === 1 && {{text}}`, "args": map[string]any{"a": 1}},
		"with list":    {"script": `args[0] === 1 && "{{text}}"`, "args": []any{1}},
		"own args":     {"script": `args`, "args": "{{text}}"},
	}
	for name, data := range scripts {
		t.Run(name, func(t *testing.T) {
			values, title := evaluate(t, data, attacks)
			if title != "Shop" {
				t.Errorf("the text was executed as code: the title is %q", title)
			}
			for i, text := range attacks {
				if values[i] != text {
					t.Errorf("%q became %v", text, values[i])
				}
			}
		})
	}
	t.Run("values keep their types", func(t *testing.T) {
		values, _ := evaluate(
			t,
			map[string]any{
				"script": `JSON.stringify([{{n}} + 1, "{{n}}" + 1, {{o}}.a[0], "{{o}}", ` +
					`/"{/.test("a{"), 6 / {{n}} / 2])`,
			},
			[]string{""},
		)
		if want := `[6,"51",1,"{\"a\":[1]}",false,0.6]`; values[0] != want {
			t.Errorf("%s, want %s", values[0], want)
		}
	})
}

func TestScriptPlaces(t *testing.T) {
	for script, want := range map[string]string{
		`{{a}}`:                            "value",
		`f({{a}}, {{b}})`:                  "value value",
		`"{{a}}"`:                          "quoted",
		`'{{a}}' + '{{b}}'`:                "quoted quoted",
		`"hi {{a}}"`:                       "within",
		`"{{a}} hi"`:                       "within",
		`"{{a}}{{b}}"`:                     "within within",
		`"\"{{a}}"`:                        "within",
		"`{{a}}`":                          "within",
		"`x${ {{a}} }y {{b}}` + {{c}}":     "value within value",
		"`${ {b: {{a}}} } {{b}}`":          "value within",
		"`${`${ {{a}} }{{b}}`}{{c}}`":      "value within within",
		`/{{a}}/.test(x)`:                  "within",
		`x = /[/{{a}}]/`:                   "within",
		`return /{{a}}/`:                   "within",
		`a / {{a}} / b`:                    "value",
		`(a) / {{a}}`:                      "value",
		`x[0] / {{a}} /2`:                  "value",
		"// it's {{a}}\n{{b}}":             "value value",
		"/* \" {{a}} */ '{{b}}'":           "value quoted",
		`x.{{a}}`:                          "name",
		`x. {{a}}`:                         "name",
		`x{{a}}`:                           "name",
		`{{a}}x`:                           "name",
		`#{{a}}`:                           "name",
		`[...{{a}}]`:                       "value",
		`x["{{a}}"]`:                       "quoted",
		`x[{{a}}]`:                         "value",
		`"unfinished {{a}}`:                "within",
		`'{{a | default:"it's"}}' + {{b}}`: "quoted value",
	} {
		spans, err := codeSpans(script)
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		var got []string
		for _, p := range scriptPlaces(script, spans) {
			got = append(got, []string{"value", "quoted", "within", "name"}[p])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
}

func TestEvaluateTemplateRefused(t *testing.T) {
	_, e, _ := openWithBrowser(t)
	for script, issue := range map[string]string{
		`"Hello {{x}}"`:  "inside quotes",
		"`Hello {{x}}`":  "inside quotes",
		`/{{x}}/`:        "inside quotes",
		`document.{{x}}`: "in place of a name",
		`{{x`:            "cannot be read",
	} {
		w := agent.Workflow{Name: "Test", Status: agent.WorkflowDraft, Settings: agent.DefaultWorkflowSettings()}
		w.Nodes, w.Edges = parseGraph("v evaluate " + string(mustJSON(map[string]any{"script": script})))
		if err := e.Check(w); agent.ErrorCode(err) != agent.CodeValidation || !strings.Contains(err.Error(), issue) {
			t.Errorf("%s: %v", script, err)
		}
	}
	w := agent.Workflow{Name: "Test", Status: agent.WorkflowDraft, Settings: agent.DefaultWorkflowSettings()}
	w.Nodes, w.Edges = parseGraph(`v evaluate {"script":"{{x}}","args":"{{y}}"}`)
	if err := e.Check(w); agent.ErrorCode(err) != agent.CodeValidation || !strings.Contains(err.Error(), "args") {
		t.Error(err)
	}
}
