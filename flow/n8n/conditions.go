package n8n

import (
	"regexp"
	"strconv"
	"strings"

	"satchel/agent"
)

// tests are the conditions of a node.
type tests struct {
	list  []test
	any   bool
	loose bool
}

// test is one condition.
type test struct {
	kind, operation string
	left, right     any
	sensitive       bool // to case
}

// conditionsOf reads conditions of both forms: {conditions, combinator} and,
// before version 2, lists by type.
func conditionsOf(params params) tests {
	if list := params.objects("conditions.conditions"); list != nil || params.has("conditions.combinator") {
		t := tests{
			any:   params.text("conditions.combinator") == "or",
			loose: params.flag("options.looseTypeValidation") || params.flag("looseTypeValidation"),
		}
		sensitive := true
		if v, ok := params.at("conditions.options.caseSensitive").(bool); ok {
			sensitive = v
		}
		if v, ok := params.at("options.ignoreCase").(bool); ok {
			sensitive = !v
		}
		for _, one := range list {
			t.list = append(t.list, test{
				kind:      one.or("operator.type", "string"),
				operation: one.or("operator.operation", "equals"),
				left:      one["leftValue"],
				right:     one["rightValue"],
				sensitive: sensitive,
			})
		}
		return t
	}
	combine := params.or("combineOperation", params.text("combineConditions"))
	t := tests{any: combine == "any" || combine == "OR"}
	for _, kind := range []string{"boolean", "dateTime", "number", "string"} {
		for _, one := range params.objects("conditions." + kind) {
			t.list = append(t.list, test{
				kind:      kind,
				operation: one.or("operation", defaultOperation(kind)),
				left:      operand(kind, one["value1"]),
				right:     operand(kind, one["value2"]),
				sensitive: true,
			})
		}
	}
	return t
}

// operand returns an operand of a condition in one of the older nodes, in which a
// missing operand means 0, false or an empty text.
func operand(kind string, v any) any {
	if v != nil {
		return v
	}
	switch kind {
	case "number":
		return 0.0
	case "boolean":
		return false
	}
	return ""
}

func defaultOperation(kind string) string {
	switch kind {
	case "number":
		return "smaller"
	case "dateTime":
		return "after"
	}
	return "equal"
}

// operators maps n8n's operators to those that exist here. Those without an operand
// are in unary.
var operators = map[string]string{
	"equals": "equals", "equal": "equals", "notEquals": "not_equals", "notEqual": "not_equals", "contains": "contains",
	"notContains": "not_contains", "startsWith": "starts_with", "endsWith": "ends_with", "gt": "gt", "larger": "gt",
	"gte": "gte", "largerEqual": "gte", "lt": "lt", "smaller": "lt", "lte": "lte", "smallerEqual": "lte",
	"exists": "exists", "notExists": "not_exists", "empty": "is_empty", "isEmpty": "is_empty",
	"notEmpty": "is_not_empty", "isNotEmpty": "is_not_empty", "true": "is_true",
	"false": "is_false", "regex": "matches",
}

var unary = map[string]bool{
	"exists":       true,
	"not_exists":   true,
	"is_empty":     true,
	"is_not_empty": true,
	"is_true":      true,
	"is_false":     true,
}

// simple translates a condition to one of an if-else node.
func (env *env) simple(test test) (condition map[string]any, ok bool) {
	operator, known := operators[test.operation]
	isText := test.kind == "string" || test.kind == "array"
	switch {
	case !known, test.kind == "dateTime", test.kind == "object" && !unary[operator],
		!test.sensitive && isText && !unary[operator]:
		return nil, false
	case operator == "matches":
		pattern, literal := test.right.(string)
		if !literal || strings.HasPrefix(pattern, "=") || flaggedPattern().MatchString(pattern) {
			return nil, false
		}
		if pattern = trimSlashes(pattern); pattern == "" || !usablePattern(pattern) {
			return nil, false
		}
		test.right = pattern
	case operator == "exists" || operator == "not_exists":
		if source, isExpression := expressionOf(test.left); isExpression {
			pieces := split(source)
			if len(pieces) != 1 || !pieces[0].expr {
				return nil, false
			}
		}
	}
	// Text that looks like a number is compared as a number here.
	if text, literal := test.right.(string); test.kind == "string" &&
		literal &&
		operator != "equals" &&
		operator != "not_equals" &&
		strings.HasPrefix(operator, "g") &&
		text != "" {
		return nil, false
	}
	condition = map[string]any{"left": env.value(test.left), "operator": operator}
	if unary[operator] {
		return condition, true
	}
	right := env.value(test.right)
	if text, isText := right.(string); isText && !strings.Contains(text, "{{") && test.kind != "string" {
		if v, ok := literalOf(test.kind, text); ok {
			right = v
		}
	}
	if test.kind == "boolean" && test.right == nil {
		right = true
	}
	condition["right"] = right
	return condition, true
}

// flaggedPattern matches /pattern/i, which only JavaScript reads.
var flaggedPattern = agent.Pattern(`(?s)^/.*/[a-z]+$`)

// trimSlashes returns /pattern/ without its slashes.
func trimSlashes(pattern string) string {
	if len(pattern) > 2 && pattern[0] == '/' && pattern[len(pattern)-1] == '/' {
		return pattern[1 : len(pattern)-1]
	}
	return pattern
}

func usablePattern(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil && len(pattern) <= 1000 && !strings.Contains(pattern, "{{")
}

// test translates the conditions of an if node.
func (env *env) test(t tests) map[string]any {
	if list, ok := env.list(t); ok {
		data := map[string]any{"conditions": list}
		if t.any {
			data["combinator"] = "or"
		}
		return data
	}
	code := env.script("return " + env.testJS(t))
	return map[string]any{"condition": "(() => {\n" + code + "\n})()"}
}

// list translates conditions. It returns false unless all of them can be translated.
func (env *env) list(t tests) ([]any, bool) {
	scripts, id := len(env.scripts), env.id
	list := []any{}
	for _, one := range t.list {
		condition, ok := env.simple(one)
		if !ok || len(env.scripts) > scripts { // one script is better than two nodes
			env.scripts, env.id = env.scripts[:scripts], id
			return nil, false
		}
		list = append(list, condition)
	}
	return list, len(list) > 0
}

// caseTest translates the conditions of a case of a switch node.
func (env *env) caseTest(tests tests) map[string]any {
	list := []any{}
	for _, one := range tests.list {
		condition, ok := env.simple(one)
		if !ok {
			list = []any{map[string]any{"left": env.compute("(" + env.testJS(tests) + ")"), "operator": "is_true"}}
			break
		}
		list = append(list, condition)
	}
	v := map[string]any{"conditions": list}
	if len(list) == 0 { // no rule: never
		v["conditions"] = []any{map[string]any{"left": false, "operator": "is_true"}}
	}
	if tests.any && len(list) > 1 {
		v["combinator"] = "or"
	}
	return v
}

// testJS returns conditions as JavaScript.
func (env *env) testJS(t tests) string {
	parts := make([]string, len(t.list))
	for i, one := range t.list {
		parts[i] = env.singleTestJS(one)
	}
	if len(parts) == 0 {
		return "true"
	}
	if t.any {
		return strings.Join(parts, " || ")
	}
	return strings.Join(parts, " && ")
}

func (env *env) singleTestJS(t test) string {
	left, right := env.operand(t.left, t.kind), env.operand(t.right, t.kind)
	if t.kind == "dateTime" {
		left, right = "$date("+left+")", "$date("+right+")"
	}
	if !t.sensitive && (t.kind == "string" || t.kind == "array") {
		left, right = "$fold("+left+")", "$fold("+right+")"
	}
	js, known := comparisons[t.operation]
	if !known {
		env.u.fail("CONDITION", "The comparison "+clip(t.operation, 40)+" is not known.")
		return "false"
	}
	return strings.NewReplacer("L", left, "R", right).Replace(js)
}

func (env *env) operand(v any, kind string) string {
	if text, ok := v.(string); ok && !strings.HasPrefix(text, "=") && kind != "string" {
		if literal, ok := literalOf(kind, text); ok {
			return quote(literal)
		}
	}
	if v == nil {
		return "undefined"
	}
	return env.js(v)
}

// comparisons are comparisons in JavaScript. L and R are the operands; no name
// in them has these letters.
var comparisons = map[string]string{
	"equals":          "$same(L, R)",
	"equal":           "$same(L, R)",
	"notEquals":       "!$same(L, R)",
	"notEqual":        "!$same(L, R)",
	"contains":        "$has(L, R)",
	"notContains":     "!$has(L, R)",
	"startsWith":      "$text(L).startsWith($text(R))",
	"notStartsWith":   "!$text(L).startsWith($text(R))",
	"endsWith":        "$text(L).endsWith($text(R))",
	"notEndsWith":     "!$text(L).endsWith($text(R))",
	"regex":           "$pattern(R).test($text(L))",
	"notRegex":        "!$pattern(R).test($text(L))",
	"gt":              "(L > R)",
	"larger":          "(L > R)",
	"gte":             "(L >= R)",
	"largerEqual":     "(L >= R)",
	"lt":              "(L < R)",
	"smaller":         "(L < R)",
	"lte":             "(L <= R)",
	"smallerEqual":    "(L <= R)",
	"after":           "(+L > +R)",
	"before":          "(+L < +R)",
	"afterOrEquals":   "(+L >= +R)",
	"beforeOrEquals":  "(+L <= +R)",
	"exists":          "((L) !== undefined && (L) !== null)",
	"notExists":       "((L) === undefined || (L) === null)",
	"empty":           "$blank(L)",
	"isEmpty":         "$blank(L)",
	"notEmpty":        "!$blank(L)",
	"isNotEmpty":      "!$blank(L)",
	"true":            "((L) === true || (L) === \"true\")",
	"false":           "((L) === false || (L) === \"false\")",
	"lengthEquals":    "((L)?.length === R)",
	"lengthNotEquals": "((L)?.length !== R)",
	"lengthGt":        "((L)?.length > R)",
	"lengthLt":        "((L)?.length < R)",
	"lengthGte":       "((L)?.length >= R)",
	"lengthLte":       "((L)?.length <= R)",
}

// literalOf parses a text as a value of a type.
func literalOf(kind, text string) (any, bool) {
	switch kind {
	case "number":
		if f, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
			return f, true
		}
	case "boolean":
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "true", "1":
			return true, true
		case "false", "0":
			return false, true
		}
	case "array", "object":
		return jsonOf(text)
	}
	return nil, false
}
