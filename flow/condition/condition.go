package condition

import (
	"fmt"
	"slices"
	"strings"

	"satchel/agent"
)

// CodeCondition is the code of errors from Eval.
const CodeCondition agent.Code = "CONDITION_ERROR"

// Limits of conditions.
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

// operator is one comparison operator.
type operator struct {
	test func(value, operand any) (bool, error)
	// negated inverts the result.
	negated bool
	// right returns an issue if a constant right side is invalid; nil accepts
	// any.
	right func(v any) (issue string)
}

var operators = map[string]operator{
	"equals":       {test: withoutError(equal)},
	"not_equals":   {test: withoutError(equal), negated: true},
	"contains":     {test: withoutError(contains)},
	"not_contains": {test: withoutError(contains), negated: true},
	"starts_with":  {test: withoutError(texts(strings.HasPrefix))},
	"ends_with":    {test: withoutError(texts(strings.HasSuffix))},
	"matches":      {test: matches, right: checkPattern},
	"gt":           {test: ordered(func(c int) bool { return c > 0 })},
	"gte":          {test: ordered(func(c int) bool { return c >= 0 })},
	"lt":           {test: ordered(func(c int) bool { return c < 0 })},
	"lte":          {test: ordered(func(c int) bool { return c <= 0 })},
	"in":           {test: isIn, right: checkList},
	"not_in":       {test: isIn, right: checkList, negated: true},
	"is_empty":     {test: withoutError(isEmpty)},
	"is_not_empty": {test: withoutError(isEmpty), negated: true},
	"is_true":      {test: withoutError(isTrue)},
	"is_false":     {test: withoutError(isFalse)},
	"exists":       {test: withoutError(exists)},
	"not_exists":   {test: withoutError(exists), negated: true},
}

var aliases = map[string]string{
	"==": "equals",
	"!=": "not_equals",
	">":  "gt",
	">=": "gte",
	"<":  "lt",
	"<=": "lte",
}

func lookup(name string) (operator, bool) {
	if canonical, ok := aliases[name]; ok {
		name = canonical
	}
	op, ok := operators[name]
	return op, ok
}

// Operators returns the names of all operators in alphabetical order, without
// their aliases.
func Operators() []string {
	names := make([]string, 0, len(operators))
	for name := range operators {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Parse reads conditions from a node's data: a list of objects {left, operator,
// right}. Nil yields none. It performs the checks of Check. field names the
// list in the error, an *agent.Error with details {field}.
func Parse(field string, value any) ([]Condition, error) {
	if value == nil {
		return nil, nil
	}
	list, ok := value.([]any)
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
		out[i] = Condition{
			Left:     object["left"],
			Operator: name,
			Right:    object["right"],
		}
	}
	return out, Check(field, "", out)
}

// Check validates a combinator (and, or, or empty for and) and conditions. A
// right side with a template is checked by Eval instead, once it is filled.
// field names the list in the error, an *agent.Error with details {field}; an
// invalid combinator is reported under "combinator".
func Check(field, combinator string, conditions []Condition) error {
	if combinator != "" && combinator != And && combinator != Or {
		at := "combinator"
		if i := strings.LastIndexByte(field, '.'); i >= 0 {
			at = field[:i+1] + at
		}
		return agent.Invalid(at, "must be \"and\" or \"or\"")
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

// Eval evaluates conditions whose templates are filled, in order, and stops as
// soon as the result is known. An empty list is true. The error is an
// *agent.Error with CodeCondition and details {condition} (counted from 0), for
// an unknown operator or a right side that is not a pattern or a list.
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
