package condition

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"satchel/agent"
)

func TestEval(t *testing.T) {
	list := []any{"a", 1.0, map[string]any{"k": []any{json.Number("2")}}}
	object := map[string]any{"name": "Ada", "n": 1.0}
	cases := []struct {
		left     any
		operator string
		right    any
		want     bool
	}{
		{"a", "equals", "a", true},
		{"a", "==", "A", false},
		{"a", "!=", "A", true},
		{10.0, "equals", "10", true},
		{"10", "equals", " 10.0 ", true},
		{json.Number("1e1"), "equals", 10, true},
		{int64(10), "equals", 10.0, true},
		{"0x10", "equals", "16", false},
		{"1_0", "equals", "10", false},
		{"inf", "equals", "+Inf", false},
		{"", "equals", "0", false},
		{"9007199254740993", "equals", "9007199254740992", false},
		{json.Number("9007199254740993"), "gt", json.Number("9007199254740992"), true},
		{"9007199254740993", "equals", "9007199254740993", true},
		{1e300, "equals", "1e300", true},
		{true, "equals", "true", true},
		{true, "equals", 1.0, false},
		{nil, "equals", "", true},
		{nil, "equals", nil, true},
		{nil, "equals", 0.0, false},
		{nil, "not_equals", "x", true},
		{list, "equals", []any{"a", "1", map[string]any{"k": []any{2.0}}}, true},
		{list, "equals", []any{"a", 1.0}, false},
		{object, "equals", map[string]any{"name": "Ada", "n": "1.0"}, true},
		{object, "equals", map[string]any{"name": "Ada", "m": 1.0}, false},
		{object, "equals", `{"n":1,"name":"Ada"}`, true},
		{object, "not_equals", list, true},
		{math.NaN(), "equals", math.NaN(), true},

		{"hello", "contains", "ell", true},
		{"hello", "contains", "", true},
		{"hello", "not_contains", "x", true},
		{12345.0, "contains", 34.0, true},
		{list, "contains", "1", true},
		{list, "contains", "b", false},
		{list, "contains", map[string]any{"k": []any{2.0}}, true},
		{object, "contains", "name", true},
		{object, "contains", "constructor", false},
		{nil, "contains", "", false},
		{nil, "not_contains", "a", true},
		{"hello", "starts_with", "he", true},
		{"hello", "starts_with", "lo", false},
		{"hello", "ends_with", "lo", true},
		{nil, "starts_with", "", false},
		{"hello", "matches", "^h.*o$", true},
		{"hello", "matches", "L", false},
		{"hello", "matches", "(?i)L", true},
		{42.0, "matches", `^\d+$`, true},
		{nil, "matches", ".*", false},
		{strings.Repeat("a", 30) + "!", "matches", "^(a+)+$", false},

		{10.0, "gt", 9.0, true},
		{"10", ">", "9", true},
		{"10", "gt", "9a", false},
		{"b", "gt", "a", true},
		{"2026-03-02", "gte", "2026-03-01", true},
		{1.0, "gte", "1", true},
		{1.0, ">=", 2.0, false},
		{1.0, "lt", 2.0, true},
		{"-1", "<", "1", true},
		{2.0, "lte", 2.0, true},
		{3.0, "<=", 2.0, false},
		{nil, "lt", 1.0, false},
		{1.0, "gt", nil, false},
		{nil, "lte", nil, false},

		{"1", "in", list, true},
		{"b", "in", list, false},
		{"b", "not_in", list, true},
		{"de", "in", "at, de ,ch", true},
		{"d", "in", "at,de,ch", false},
		{2.0, "in", "1,2.0,3", true},
		{"x", "in", nil, false},

		{nil, "is_empty", nil, true},
		{"", "is_empty", nil, true},
		{[]any{}, "is_empty", nil, true},
		{map[string]any{}, "is_empty", nil, true},
		{" ", "is_empty", nil, false},
		{0.0, "is_empty", nil, false},
		{false, "is_empty", nil, false},
		{list, "is_not_empty", nil, true},
		{object, "is_empty", nil, false},
		{true, "is_true", nil, true},
		{" True ", "is_true", nil, true},
		{1.0, "is_true", nil, true},
		{"1", "is_true", nil, true},
		{2.0, "is_true", nil, false},
		{"yes", "is_true", nil, false},
		{nil, "is_true", nil, false},
		{[]any{"true"}, "is_true", nil, false},
		{false, "is_false", nil, true},
		{"FALSE", "is_false", nil, true},
		{0.0, "is_false", nil, true},
		{nil, "is_false", nil, false},
		{"", "is_false", nil, false},
		{"", "exists", nil, true},
		{false, "exists", nil, true},
		{nil, "exists", nil, false},
		{nil, "not_exists", nil, true},
	}
	seen := map[string]bool{}
	for _, c := range cases {
		conditions := []Condition{{c.left, c.operator, c.right}}
		if got, err := Eval(And, conditions); err != nil || got != c.want {
			t.Errorf("%v %s %v: %v, %v, want %v", c.left, c.operator, c.right, got, err, c.want)
		}
		if c.right != nil {
			if err := Check("c", And, conditions); err != nil {
				t.Errorf("%v %s %v: %v", c.left, c.operator, c.right, err)
			}
		}
		if canonical, ok := aliases[c.operator]; ok {
			c.operator = canonical
		}
		seen[c.operator] = true
	}
	for _, name := range Operators() {
		if !seen[name] {
			t.Errorf("operator %s has no test case", name)
		}
	}
}

func TestCombinator(t *testing.T) {
	yes, no := Condition{1.0, "==", 1.0}, Condition{1.0, "==", 2.0}
	bad := Condition{1.0, "in", 1.0}
	cases := []struct {
		combinator string
		conditions []Condition
		want       bool
	}{
		{"", nil, true}, {And, nil, true}, {Or, nil, true},
		{"", []Condition{yes, no}, false}, {And, []Condition{yes, yes}, true}, {And, []Condition{no, bad}, false},
		{Or, []Condition{no, yes}, true}, {Or, []Condition{no, no}, false}, {Or, []Condition{yes, bad}, true},
	}
	for i, c := range cases {
		if got, err := Eval(c.combinator, c.conditions); err != nil || got != c.want {
			t.Errorf("case %d: %v, %v", i, got, err)
		}
	}
}

func TestEvalErrors(t *testing.T) {
	cases := []struct {
		condition Condition
		issue     string
	}{
		{Condition{1.0, "like", 1.0}, "operator is unknown"},
		{Condition{1.0, "in", 1.0}, "right must be a list or comma-separated values"},
		{Condition{"a", "matches", "("}, "right is not a regular expression in RE2 syntax: missing closing )"},
		{
			Condition{"a", "matches", `(a)\1`},
			"right is not a regular expression in RE2 syntax: invalid escape sequence",
		},
		{
			Condition{"a", "matches", strings.Repeat("a", 1001)},
			"right must be a regular expression of at most 1000 bytes",
		},
		{
			Condition{strings.Repeat("a", 60_000), "matches", "a{1000}$"},
			"left is too long for a regular expression of this size",
		},
	}
	for _, c := range cases {
		_, err := Eval("", []Condition{{nil, "exists", nil}, c.condition})
		if err != nil {
			t.Errorf("a false condition does not end the evaluation: %v", err)
		}
		_, err = Eval("", []Condition{{1.0, "exists", nil}, c.condition})
		var e *agent.Error
		if !errors.As(err, &e) ||
			e.Code != CodeCondition ||
			e.Message != "condition 2: "+c.issue ||
			e.Details["condition"] != 1 {
			t.Errorf("%.40v: %v", c.condition, err)
		}
	}
}

func TestParse(t *testing.T) {
	cases := []struct{ json, field string }{
		{`null`, ""},
		{`[]`, ""},
		{`[{"left":"{{a}}","operator":"equals","right":1}]`, ""},
		{`[{"left":"{{a}}","operator":"matches","right":"({{a}}"}]`, ""},
		{`[{"left":"{{a}}","operator":"in","right":"{{list}}"}]`, ""},
		{`{}`, "filter"},
		{`"x"`, "filter"},
		{`["x"]`, "filter[0]"},
		{`[{"left":1}]`, "filter[0].operator"},
		{`[{"left":1,"operator":1}]`, "filter[0].operator"},
		{`[{"operator":"exists"},{"left":1,"operator":"constructor"}]`, "filter[1].operator"},
		{`[{"left":1,"operator":"matches","right":"("}]`, "filter[0].right"},
		{`[{"left":1,"operator":"matches","right":1}]`, "filter[0].right"},
		{`[{"left":1,"operator":"matches"}]`, "filter[0].right"},
		{`[{"left":1,"operator":"in","right":{}}]`, "filter[0].right"},
		{`[{"left":1,"operator":"not_in"}]`, "filter[0].right"},
		{`[` + strings.Repeat(`{"operator":"exists"},`, 100) + `{"operator":"exists"}]`, "filter"},
	}
	for _, c := range cases {
		var v any
		if err := json.Unmarshal([]byte(c.json), &v); err != nil {
			t.Fatal(err)
		}
		_, err := Parse("filter", v)
		var e *agent.Error
		switch errors.As(err, &e); {
		case err == nil && c.field == "":
		case e == nil || e.Code != agent.CodeValidation || e.Details["field"] != c.field:
			t.Errorf("%.80s: %v, want %q", c.json, err, c.field)
		}
	}
	for field, want := range map[string]string{
		"conditions":               "combinator",
		"nodes[1].data.conditions": "nodes[1].data.combinator",
	} {
		var e *agent.Error
		if err := Check(field, "xor", nil); !errors.As(err, &e) || e.Details["field"] != want {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func FuzzCondition(f *testing.F) {
	for _, name := range Operators() {
		f.Add(`"10"`, name, `[1,"10",{"a":null}]`)
		f.Add(`{"a":[1,2]}`, name, `"^(a+)+$"`)
	}
	f.Add(`-1e400`, "==", `"+1.e-5"`)
	f.Fuzz(func(t *testing.T, left, name, right string) {
		c := Condition{Operator: name}
		for text, into := range map[string]*any{left: &c.Left, right: &c.Right} {
			dec := json.NewDecoder(strings.NewReader(text))
			dec.UseNumber()
			if dec.Decode(into) != nil {
				*into = text
			}
		}
		checked := Check("f", "", []Condition{c})
		got, err := Eval("", []Condition{c})
		if checked == nil && !hasTemplate(c.Right) && err != nil && !strings.Contains(err.Error(), "too long") {
			t.Fatalf("%#v is valid but fails: %v", c, err)
		}
		if opposite, ok := map[string]string{
			"equals":   "not_equals",
			"contains": "not_contains",
			"in":       "not_in",
			"exists":   "not_exists",
			"is_empty": "is_not_empty",
		}[name]; ok && err == nil {
			if other, err := Eval("", []Condition{{c.Left, opposite, c.Right}}); err != nil || other == got {
				t.Fatalf("%#v: %v, its opposite %v", c, got, other)
			}
		}
	})
}

func BenchmarkEval(b *testing.B) {
	for _, c := range []Condition{
		{36.0, "gt", "18"}, {"Ada", "equals", "Ada"}, {"ada@example.com", "matches", `^[^@]+@example\.com$`},
	} {
		b.Run(c.Operator, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := Eval("", []Condition{c}); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
	for _, n := range []int{100, 10_000} {
		list := make([]any, n)
		for i := range list {
			list[i] = fmt.Sprint("tag", i)
		}
		b.Run(fmt.Sprint("in a list of ", n), func(b *testing.B) {
			for b.Loop() {
				if ok, _ := Eval("", []Condition{{"none", "in", list}}); ok {
					b.Fatal("found")
				}
			}
		})
	}
	// The slowest pattern and text that are accepted.
	pattern := strings.Repeat("(a?){1000}", 2) + "b"
	worst := Condition{strings.Repeat("a", maxSteps/instructions(regexp.MustCompile(pattern))), "matches", pattern}
	b.Run("most expensive match", func(b *testing.B) {
		for b.Loop() {
			if _, err := Eval("", []Condition{worst}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
