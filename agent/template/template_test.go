package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"reflect"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// plain decodes JSON.
func plain(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

const scopeJSON = `{
	"contact": {"name": "Ada", "email": null, "age": 36, "vip": true, "tags": ["a", "b", 3], "First name": "A. B.", "note": " x ", "html": "<b>&\"'</b>"},
	"nodes": {"fetch-1": {"rows": [{"id": 1}, {"id": 2}]}, "x": {"text": "{{contact.name}}", "empty": "", "list": [], "object": {"k": [1]}}},
	"when": "2026-03-29T00:30:00Z", "day": "2026-03-29", "ms": 1774744200000, "big": 1e21, "small": 0.000001, "zero": 0, "no": false, "numbers": {"0": "nought"},
	"grüße": "Grüße & mehr"
}`

func TestRender(t *testing.T) {
	scope := Map(plain(t, scopeJSON).(map[string]any))
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	berlin := func() *time.Location { return zone }
	cases := []struct {
		text    string
		want    any
		warning string
		options Options
	}{
		{text: "", want: ""},
		{text: "plain }} text {", want: "plain }} text {"},
		{text: "Hi {{contact.name}}!", want: "Hi Ada!"},
		{text: "{{ contact.name }}{{contact.age}}", want: "Ada36"},
		{text: "{\"a\":{\"b\":{{contact.age}}}}", want: `{"a":{"b":36}}`},
		{text: `{{"{{"}}x{{'}}'}}`, want: "{{x}}"},

		// a single template keeps its type
		{text: "{{contact.age}}", want: 36.0},
		{text: "{{contact.vip}}", want: true},
		{text: "{{contact.email}}", want: nil},
		{text: "{{contact.tags}}", want: []any{"a", "b", 3.0}},
		{text: "{{contact.tags[2]}}", want: 3.0},
		{text: "{{nodes.x.object}}", want: map[string]any{"k": []any{1.0}}},
		{text: " {{contact.age}}", want: " 36"},
		{text: "{{contact.age}} ", want: "36 "},

		// paths
		{text: "{{nodes.fetch-1.rows[1].id}}", want: 2.0},
		{text: "{{nodes.fetch-1.rows.1.id}}", want: 2.0},
		{text: `{{contact["First name"]}}`, want: "A. B."},
		{text: `{{contact['First name']}}`, want: "A. B."},
		{text: "{{numbers[0]}}{{numbers.0}}", want: "noughtnought"},
		{text: "{{grüße}}", want: "Grüße & mehr"},
		{text: "{{\n contact.name\n| upper }}", want: "ADA"},
		{text: "{{contact.nothing | optional | text}}", want: nil},

		// values within text
		{text: "<{{contact.email}}>", want: "<>"},
		{text: "{{contact.vip}} {{no}} {{zero}} {{big}} {{small}}", want: "true false 0 1e+21 0.000001"},
		{text: "{{contact.tags}} {{nodes.x.object}}", want: `["a","b",3] {"k":[1]}`},

		// one pass
		{text: "{{nodes.x.text}}", want: "{{contact.name}}"},
		{text: "{{nodes.x.text}}!", want: "{{contact.name}}!"},
		{text: "{{nodes.x.text | upper}}", want: "{{CONTACT.NAME}}"},

		// missing
		{text: "[{{contact.phone}}]", want: "[]", warning: "{{contact.phone}} has no value"},
		{text: "{{contact.phone}}", want: "", warning: "{{contact.phone}} has no value"},
		{text: "{{nothing.at.all}}", want: "", warning: "has no value"},
		{text: "{{contact.email.x}}", want: "", warning: "has no value"},
		{text: "{{contact.tags[3]}}", want: "", warning: "has no value"},
		{text: "{{contact.tags.name}}", want: "", warning: "has no value"},
		{text: "{{contact.name.length}}", want: "", warning: "has no value"},
		{
			text:    "{{constructor}}{{contact.constructor.name}}{{contact.__proto__}}{{__proto__.x}}",
			want:    "",
			warning: "{{constructor}} has no value",
		},
		{text: "{{contact.phone}}", want: nil, options: Options{NullMissing: true}},
		{text: "{{contact.phone}}", want: nil, options: Options{NullMissing: true, Strict: true}},
		{text: "a{{contact.phone}}", want: "a", warning: "has no value", options: Options{NullMissing: true}},

		// filters
		{text: `{{contact.phone | default:"none"}}`, want: "none"},
		{text: `{{contact.phone|default:0}}`, want: 0.0},
		{text: `{{contact.phone|default:-1.5}}`, want: -1.5},
		{text: `{{contact.phone|default:null}}`, want: nil},
		{text: `{{contact.phone|default:true}}`, want: true},
		{text: `{{contact.phone|default}}`, want: ""},
		{text: `{{contact.email|default:"-"}}`, want: "-"},
		{text: `{{nodes.x.empty|default:"-"}}`, want: "-"},
		{text: `{{zero|default:"-"}}{{no|default:"-"}}`, want: "0false"},
		{text: `{{contact.phone|upper|default:"a\"b\u00e9\n"}}`, want: "a\"bé\n"},
		{text: `{{contact.phone|default:'it\'s "so"'}}`, want: `it's "so"`},
		{text: `{{contact.phone|default:"}}|"}}`, want: `}}|`},
		{text: "{{contact.name|upper}}{{contact.name|lower}}[{{contact.note|trim}}]", want: "ADAada[x]"},
		{
			text: "{{contact.name|json}} {{contact.tags|json}} {{contact.html|json}} {{contact.email|json}}",
			want: `"Ada" ["a","b",3] "<b>&\"'</b>" null`,
		},
		{text: `{"phone":{{contact.phone|json}}}`, want: `{"phone":null}`, warning: "has no value"},
		{text: "{{contact.age|json}}", want: "36"},
		{text: "{{contact.name|length}}", want: 3.0},
		{text: "{{grüße|length}}", want: 12.0},
		{text: "{{contact.tags|length}}{{nodes.x.object|length}}{{contact.email|length}}", want: "310"},
		{text: "{{contact.tags|first}}{{contact.tags|last}}{{grüße|first}}{{grüße|last}}", want: "a3Gr"},
		{text: "{{nodes.fetch-1.rows|first}}", want: map[string]any{"id": 1.0}},
		{text: "{{nodes.x.list|first}}", want: "", warning: "has no first element"},
		{text: "{{nodes.x.list|last|default:1}}", want: 1.0},
		{text: `{{contact.tags|join}} {{contact.tags|join:"-"}} {{contact.name|join:"-"}}`, want: "a, b, 3 a-b-3 Ada"},
		{text: "{{grüße|url}}", want: "Gr%C3%BC%C3%9Fe%20%26%20mehr"},
		{text: `{{"a+b/c?d=e~f"|url}}`, want: "a%2Bb%2Fc%3Fd%3De~f"},
		{text: `{{contact.phone | default:"x" | upper | json}}`, want: `"X"`},

		// dates
		{text: "{{when|date}}", want: "2026-03-29"},
		{text: `{{when|date:"YYYY-MM-DD HH:mm"}}`, want: "2026-03-29 00:30"},
		{text: `{{when|date:"YYYY-MM-DD HH:mm Z"}}`, want: "2026-03-29 01:30 +01:00", options: Options{Zone: berlin}},
		{text: `{{day|date:"DD.MM.YYYY HH:mm Z"}}`, want: "29.03.2026 00:00 +01:00", options: Options{Zone: berlin}},
		{text: `{{ms|date:"YYYY-MM-DD[T]HH:mm:ss.SSS"}}`, want: "2026-03-29T00:30:00.000"},
		{
			text: `{{"2026-01-05 07:08:09"|date:"dddd, ddd D MMMM MMM M YY h:m:s hh A a d X [x"}}`,
			want: "Monday, Mon 5 January Jan 1 26 7:8:9 07 AM am 1 1767596889 [1767596889000",
		},
		{text: `{{contact.name|date}}`, want: "", warning: "is not a date"},
		{text: `{{contact.vip|date|default:"?"}}`, want: "?"},
		{text: "{{big|date}}", want: "", warning: "is not a date"},

		// HTML
		{
			text:    "<p>{{contact.html}}</p>",
			want:    "<p>&lt;b&gt;&amp;&#34;&#39;&lt;/b&gt;</p>",
			options: Options{Escape: html.EscapeString},
		},
		{
			text:    "{{contact.html}}",
			want:    "&lt;b&gt;&amp;&#34;&#39;&lt;/b&gt;",
			options: Options{Escape: html.EscapeString},
		},
		{text: "{{contact.age}}", want: "36", options: Options{Escape: html.EscapeString}},
	}
	for _, c := range cases {
		tmpl, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got, warnings, err := tmpl.Render(scope, c.options)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %#v, %v, want %#v", c.text, got, err, c.want)
		}
		if all := strings.Join(warnings, "\n"); !strings.Contains(all, c.warning) || c.warning == "" && all != "" {
			t.Errorf("%s: warnings %q, want %q", c.text, all, c.warning)
		}
		c.options.Strict = true
		_, _, err = tmpl.Render(scope, c.options)
		if (err != nil) != (c.warning != "") {
			t.Errorf("%s: strict returns %v", c.text, err)
		}
		if err != nil && agent.ErrorCode(err) != CodeTemplate {
			t.Errorf("%s: strict returns code %s", c.text, agent.ErrorCode(err))
		}
	}
}

func TestSyntax(t *testing.T) {
	long := "{{a" + strings.Repeat(".b", maxSegments) + "}}"
	chain := "{{a" + strings.Repeat("|trim", maxFilters+1) + "}}"
	cases := []struct {
		text     string
		position int
		issue    string
	}{
		{"{{", 3, "expected a path"},
		{"{{}}", 3, "expected a path"},
		{"é {{a", 6, "expected | or }}, found the end"},
		{"{{a}", 4, "expected | or }}"},
		{"{{a b}}", 5, `found 'b'`},
		{"{{a+b}}", 4, `found '+'`},
		{"{{a()}}", 4, `found '('`},
		{"{{a..b}}", 5, "expected a key"},
		{"{{a.}}", 5, "expected a key"},
		{"{{.a}}", 3, "expected a path"},
		{"{{a[x]}}", 5, "expected an index or a quoted key"},
		{"{{a[-1]}}", 5, "expected an index or a quoted key"},
		{"{{a[1}}", 6, "expected ]"},
		{"{{a[99999999999]}}", 5, "expected an index"},
		{`{{a["x}}`, 5, "a quoted text that does not end"},
		{`{{a|default:"\q"}}`, 13, "escape that JSON does not have"},
		{"{{a|}}", 5, "expected a filter"},
		{"{{a|shout}}", 5, `there is no filter "shout"`},
		{"{{a|constructor}}", 5, `there is no filter "constructor"`},
		{"{{a|upper:1}}", 5, "upper takes no argument"},
		{"{{a|join:1}}", 5, "join takes a text in quotes"},
		{"{{a|default:}}", 13, "an argument in quotes, a number"},
		{"{{a|default:x}}", 13, "an argument in quotes, a number"},
		{"{{a|default:0x1}}", 13, "an argument in quotes, a number"},
		{"{{a|date:\"" + strings.Repeat("[", 201) + "\"}}", 5, "date takes a format"},
		{"{{{a}}}", 3, `found '{'`},
		{long, 3, "a path of more than"},
		{chain, 1, "more than 16 filters"},
	}
	for _, c := range cases {
		_, err := Parse(c.text)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Position != c.position || !strings.Contains(syntax.Issue, c.issue) {
			t.Errorf("%s: %v, want %q at %d", c.text, err, c.issue, c.position)
		}
	}
}

func TestRenderValue(t *testing.T) {
	in := plain(
		t,
		`{"to":"{{contact.email}}","n":[1,"{{contact.age}}",{"deep":"a {{x}}",`+
			`"fixed":{"{{contact.name}}":true}}],"z":null}`,
	)
	got, warnings, err := Render(
		in,
		Map{"contact": map[string]any{"email": "a@example.com", "age": json.Number("36")}},
		Options{},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := plain(
		t,
		`{"to":"a@example.com","n":[1,null,{"deep":"a ","fixed":{"{{contact.name}}":true}}],"z":null}`,
	).(map[string]any)
	want["n"].([]any)[1] = json.Number("36")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v", got)
	}
	if len(warnings) != 1 || warnings[0] != "n[2].deep: {{x}} has no value" {
		t.Errorf("warnings %q", warnings)
	}
	_, _, err = Render(in, Map{}, Options{Strict: true})
	var e *agent.Error
	if !errors.As(err, &e) || e.Details["field"] != "n[1]" && e.Details["field"] != "to" {
		t.Errorf("strict returns %v", err)
	}
	if err := Check(plain(t, `{"a":["x",{"b":"{{"}]}`)); err == nil ||
		!strings.HasPrefix(err.Error(), "a[1].b: template: ") {
		t.Errorf("Check returns %v", err)
	}
	if err := Check(in); err != nil {
		t.Error(err)
	}
	if err := Check("{{"); err == nil ||
		err.Error() != "template: expected a path, found the end of the text at character 3" {
		t.Errorf("Check returns %v", err)
	}
}

func TestWarningsAreBounded(t *testing.T) {
	_, warnings, err := Render(strings.Repeat("{{x}}", 80), Map{}, Options{})
	if err != nil || len(warnings) != maxWarnings+1 || warnings[maxWarnings] != "and 30 more warnings" {
		t.Errorf("%d warnings, %v", len(warnings), err)
	}
}

// Small templates must not produce huge values.
func TestBounds(t *testing.T) {
	deep := any("x")
	for range maxDepth + 5 {
		deep = []any{deep}
	}
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	elements := make([]any, 10_000)
	scope := Map{
		"kb":     strings.Repeat("x", 1024),
		"quote":  strings.Repeat(`"`, 1024),
		"list":   elements,
		"deep":   deep,
		"cyclic": cyclic,
	}
	many := make([]any, 2000)
	for i := range many {
		many[i] = "{{kb}}"
	}
	cases := map[string]any{
		"text":    strings.Repeat("{{kb}}", 2000),
		"whole":   many,
		"json":    "{{quote" + strings.Repeat("|json", maxFilters) + "}}",
		"join":    `{{list|join:"` + strings.Repeat("-", 1000) + `"}}`,
		"depth":   "{{deep}}",
		"in text": "a {{deep}}",
		"cyclic":  "{{cyclic|json}}",
		"nested":  map[string]any{"a": "{{cyclic}}"},
	}
	for name, v := range cases {
		_, _, err := Render(v, scope, Options{MaxBytes: 1 << 20})
		if agent.ErrorCode(err) != CodeTemplate ||
			!strings.Contains(err.Error(), "larger than 1048576 bytes") &&
				!strings.Contains(err.Error(), "deeper than 200 levels") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, _, err := Render("{{list|length}}", scope, Options{MaxBytes: 100}); err != nil || got != 10_000.0 {
		t.Errorf("length of a large list: %v, %v", got, err)
	}
	if err := Check(deep); err == nil || !strings.Contains(err.Error(), "nested too deep") {
		t.Errorf("a deep value: %v", err)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		`{{contact.name | default:"x" | join:", " | date:"YYYY-MM-DD HH:mm"}}`,
		`{{a["b\u0000"].c[0]}}`,
		"{{",
		"}}{{a|json|json}}",
		"{{day|date:\"[Z]ZZ A\"}}",
		`{{"\ud800"|url}}`,
		"{{\xff}}",
		"{{contact|first|last|length}}",
		"{{ms|date:''}}",
	} {
		f.Add(seed)
	}
	scope := Map(plain(f, scopeJSON).(map[string]any))
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := Parse(text)
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Position < 1 || syntax.Position > len(text)+1 {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		for _, o := range []Options{{MaxBytes: 1 << 16}, {MaxBytes: 1 << 16, Escape: html.EscapeString}} {
			got, _, err := tmpl.Render(scope, o)
			if err != nil {
				if agent.ErrorCode(err) != CodeTemplate {
					t.Fatalf("%q: %v", text, err)
				}
				continue
			}
			if s, ok := got.(string); ok && len(s) > 1<<16 {
				t.Fatalf("%q grows to %d bytes", text, len(s))
			}
		}
	})
}

// BenchmarkRender renders a value that was compiled once, and one that is
// compiled each time.
func BenchmarkRender(b *testing.B) {
	scope := Map(plain(b, scopeJSON).(map[string]any))
	for name, text := range map[string]string{
		"path": `{"id":"{{nodes.fetch-1.rows[1].id}}"}`,
		"email": `{"to":"{{contact.email|default:'x@example.com'}}","subject":"Hello {{contact.name}}","body":"Dear ` +
			`{{contact.name}}, you are {{contact.age}} and it is {{when|date:'DD.MM.YYYY HH:mm'}}.","html":false}`,
		"fixed": `{"a":[1,2,3],"b":{"c":"no templates here"}}`,
	} {
		v := plain(b, text)
		compiled, err := Compile(v)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/compiled", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := compiled.Render(scope, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/parsed each time", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Render(v, scope, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRenderList(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		list := make([]any, n)
		for i := range list {
			list[i] = float64(i)
		}
		compiled, err := Compile(`{{list|join:","}}`)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := compiled.Render(Map{"list": list}, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
