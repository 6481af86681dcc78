package condition

import (
	"fmt"
	"slices"
	"strings"

	"satchel/agent"
)

// CodeCondition is the code of the errors of Eval.
const CodeCondition agent.Code = "CONDITION_ERROR"

// Bounds of conditions.
const (
	MaxConditions = 100
	MaxPattern    = 1000 // bytes of an RE2 pattern
)

// Condition is one comparison.
type Condition struct {
	Left     any    `json:"left"`
	Operator string `json:"operator"`
	Right    any    `json:"right"`
}

// How the results of several conditions are combined.
const (
	And = "and"
	Or  = "or"
)

// operator is one way of comparing.
type operator struct {
	test func(left, right any) (bool, error)
	// negated turns the result around.
	negated bool
	// right complains about a constant right side; nil takes any.
	right func(v any) (issue string)
}

var operators = map[string]operator{
	"equals":       {test: sure(equal)},
	"not_equals":   {test: sure(equal), negated: true},
	"contains":     {test: sure(contains)},
	"not_contains": {test: sure(contains), negated: true},
	"starts_with":  {test: sure(texts(strings.HasPrefix))},
	"ends_with":    {test: sure(texts(strings.HasSuffix))},
	"matches":      {test: matches, right: checkPattern},
	"gt":           {test: ordered(func(c int) bool { return c > 0 })},
	"gte":          {test: ordered(func(c int) bool { return c >= 0 })},
	"lt":           {test: ordered(func(c int) bool { return c < 0 })},
	"lte":          {test: ordered(func(c int) bool { return c <= 0 })},
	"in":           {test: isIn, right: checkList},
	"not_in":       {test: isIn, right: checkList, negated: true},
	"is_empty":     {test: sure(isEmpty)},
	"is_not_empty": {test: sure(isEmpty), negated: true},
	"is_true":      {test: sure(isTrue)},
	"is_false":     {test: sure(isFalse)},
	"exists":       {test: sure(exists)},
	"not_exists":   {test: sure(exists), negated: true},
}

var aliases = map[string]string{
	"==": "equals", "!=": "not_equals", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte",
}

func lookup(name string) (operator, bool) {
	if canonical, ok := aliases[name]; ok {
		name = canonical
	}
	op, ok := operators[name]
	return op, ok
}

// Operators are the names of all operators in alphabetical order, without
// their aliases.
func Operators() []string {
	names := make([]string, 0, len(operators))
	for name := range operators {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Parse reads conditions from a node's data, a list of objects {left,
// operator, right}; nil gives none. It makes the checks of Check. field names
// the list in the error, an *agent.Error with details {field}.
func Parse(field string, v any) ([]Condition, error) {
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, agent.Invalid(field, "must be a list of conditions")
	}
	if len(list) > MaxConditions {
		return nil, agent.Invalid(field, fmt.Sprintf("must have at most %d conditions", MaxConditions))
	}
	out := make([]Condition, len(list))
	for i, element := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		object, ok := element.(map[string]any)
		if !ok {
			return nil, agent.Invalid(at, "must be an object with left, operator and right")
		}
		name, ok := object["operator"].(string)
		if !ok {
			return nil, agent.Invalid(at+".operator", "must be one of "+strings.Join(Operators(), ", "))
		}
		out[i] = Condition{Left: object["left"], Operator: name, Right: object["right"]}
	}
	return out, Check(field, "", out)
}

// Check reports whether a combinator (and, or, or empty for and) and conditions
// can be evaluated. A right side that holds a template is not looked at: what
// it becomes, Eval sees. field names the list in the error, an *agent.Error
// with details {field}; a bad combinator is named by "combinator" in its place.
func Check(field, combinator string, conditions []Condition) error {
	if combinator != "" && combinator != And && combinator != Or {
		at := "combinator"
		if i := strings.LastIndexByte(field, '.'); i >= 0 {
			at = field[:i+1] + at
		}
		return agent.Invalid(at, "must be and or or")
	}
	if len(conditions) > MaxConditions {
		return agent.Invalid(field, fmt.Sprintf("must have at most %d conditions", MaxConditions))
	}
	for i, c := range conditions {
		at := fmt.Sprintf("%s[%d]", field, i)
		op, ok := lookup(c.Operator)
		if !ok {
			return agent.Invalid(at+".operator", "must be one of "+strings.Join(Operators(), ", "))
		}
		if op.right == nil || hasTemplate(c.Right) {
			continue
		}
		if issue := op.right(c.Right); issue != "" {
			return agent.Invalid(at+".right", issue)
		}
	}
	return nil
}

func hasTemplate(v any) bool {
	s, ok := v.(string)
	return ok && strings.Contains(s, "{{")
}

// Eval evaluates conditions whose templates were filled, in their order and no
// further than needed. No conditions at all are true. The error, an
// *agent.Error with CodeCondition and details {condition} (counted from 0),
// comes from an unknown operator and from a right side that is no pattern or
// no list.
func Eval(combinator string, conditions []Condition) (bool, error) {
	or := combinator == Or
	for i, c := range conditions {
		op, ok := lookup(c.Operator)
		if !ok {
			return false, failure(i, "operator is unknown")
		}
		result, err := op.test(c.Left, c.Right)
		if err != nil {
			return false, failure(i, err.Error())
		}
		if (result != op.negated) == or {
			return or, nil
		}
	}
	return !or || len(conditions) == 0, nil
}

func failure(i int, issue string) error {
	return agent.Errorf(CodeCondition, "condition %d: %s", i+1, issue).With("condition", i)
}
