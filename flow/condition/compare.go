package condition

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"satchel/agent/template"
)

// withoutError adapts a test that cannot fail.
func withoutError(test func(value, operand any) bool) func(value, operand any) (bool, error) {
	return func(value, operand any) (bool, error) {
		return test(value, operand), nil
	}
}

func texts(test func(value, operand string) bool) func(value, operand any) bool {
	return func(value, operand any) bool {
		return value != nil && test(text(value), text(operand))
	}
}

// text returns a value as compared with text.
func text(v any) string { return template.Text(v) }

// maxNumber is the longest text that is parsed as a number, in bytes.
const maxNumber = 400

// number parses a value as a finite decimal number, and returns the text it
// parsed.
func number(value any) (f float64, digits string, ok bool) {
	switch v := value.(type) {
	case float64:
		return v, text(v), !math.IsNaN(v) && !math.IsInf(v, 0)
	case int, int64:
		digits = text(v)
	case json.Number:
		digits = v.String()
	case string:
		digits = strings.TrimSpace(v)
	}
	// ParseFloat also accepts hexadecimal numbers, underscores, "inf" and
	// "nan".
	if len(digits) == 0 ||
		len(digits) > maxNumber ||
		strings.Trim(digits, "+-0123456789.eE") != "" ||
		strings.ContainsAny(digits[:1], "eE") {
		return 0, "", false
	}
	f, err := strconv.ParseFloat(digits, 64)
	return f, digits, err == nil
}

// compareNumbers returns -1, 0 or 1; ok is false unless both are numbers.
// Integers that float64 cannot distinguish, such as long ids, are compared
// digit by digit.
func compareNumbers(value, operand any) (code int, ok bool) {
	a, aDigits, ok := number(value)
	if !ok {
		return 0, false
	}
	b, bDigits, ok := number(operand)
	switch {
	case !ok:
		return 0, false
	case a < b:
		return -1, true
	case a > b:
		return 1, true
	case math.Abs(a) < 1<<53 || aDigits == bDigits:
		return 0, true
	}
	x, xok := new(big.Int).SetString(aDigits, 10)
	y, yok := new(big.Int).SetString(bDigits, 10)
	if !xok || !yok {
		return 0, true
	}
	return x.Cmp(y), true
}

// maxDepth limits how deep equal compares nested values.
const maxDepth = 200

func equal(value, operand any) bool { return same(value, operand, 0) }

func same(value, operand any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch a := value.(type) {
	case []any:
		if b, ok := operand.([]any); ok {
			return sameLists(a, b, depth)
		}
	case map[string]any:
		if b, ok := operand.(map[string]any); ok {
			return sameObjects(a, b, depth)
		}
	}
	if c, ok := compareNumbers(value, operand); ok {
		return c == 0
	}
	return text(value) == text(operand)
}

func sameLists(a, b []any, depth int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !same(a[i], b[i], depth+1) {
			return false
		}
	}
	return true
}

func sameObjects(a, b map[string]any, depth int) bool {
	if len(a) != len(b) {
		return false
	}
	for key, v := range a {
		w, ok := b[key]
		if !ok || !same(v, w, depth+1) {
			return false
		}
	}
	return true
}

func contains(value, operand any) bool {
	switch l := value.(type) {
	case nil:
		return false
	case []any:
		return within(l, operand)
	case map[string]any:
		_, ok := l[text(operand)]
		return ok
	}
	return strings.Contains(text(value), text(operand))
}

func within(list []any, v any) bool {
	for _, element := range list {
		if equal(element, v) {
			return true
		}
	}
	return false
}

// ordered returns a test of order: of numbers, or else of texts.
func ordered(wanted func(c int) bool) func(value, operand any) (bool, error) {
	return func(value, operand any) (bool, error) {
		if value == nil || operand == nil {
			return false, nil
		}
		c, ok := compareNumbers(value, operand)
		if !ok {
			c = strings.Compare(text(value), text(operand))
		}
		return wanted(c), nil
	}
}

const issueList = "must be a list or comma-separated values"

func checkList(v any) string {
	switch v.(type) {
	case []any, string:
		return ""
	}
	return issueList
}

func isIn(value, operand any) (bool, error) {
	switch r := operand.(type) {
	case []any:
		return within(r, value), nil
	case string:
		for item := range strings.SplitSeq(r, ",") {
			if equal(value, strings.TrimSpace(item)) {
				return true, nil
			}
		}
		return false, nil
	case nil: // a template whose path is missing
		return false, nil
	}
	return false, errors.New("right " + issueList)
}

// maxSteps limits the work of one match, as instructions of the pattern times
// bytes of the text: about a second.
const maxSteps = 50_000_000

// maxProgram is roughly the largest number of instructions of a pattern of
// MaxPattern bytes.
const maxProgram = 200_000

func checkPattern(v any) string {
	pattern, ok := v.(string)
	if !ok {
		return "must be a regular expression in RE2 syntax"
	}
	_, issue := compile(pattern)
	return issue
}

func compile(pattern string) (re *regexp.Regexp, issue string) {
	if len(pattern) > MaxPattern {
		return nil, fmt.Sprintf("must be a regular expression of at most %d bytes", MaxPattern)
	}
	re, err := regexp.Compile(pattern)
	var e *syntax.Error
	if errors.As(err, &e) {
		return nil, "is not a regular expression in RE2 syntax: " + e.Code.String()
	}
	return re, ""
}

func matches(value, operand any) (bool, error) {
	re, issue := compile(text(operand))
	if issue != "" {
		return false, errors.New("right " + issue)
	}
	if value == nil {
		return false, nil
	}
	subject := text(value)
	if len(subject) > maxSteps/maxProgram && len(subject) > maxSteps/instructions(re) {
		return false, errors.New("left is too long for a regular expression of this size")
	}
	return re.MatchString(subject), nil
}

// instructions returns the size of a pattern's program, which bounds the work
// per byte of text.
func instructions(re *regexp.Regexp) int {
	tree, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		return maxProgram
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return maxProgram
	}
	return len(program.Inst)
}

func isEmpty(value, _ any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func isTrue(value, _ any) bool  { return meansBool(value, "true", 1) }
func isFalse(value, _ any) bool { return meansBool(value, "false", 0) }

func meansBool(v any, word string, digit float64) bool {
	if _, ok := v.([]any); ok {
		return false
	}
	f, _, ok := number(v)
	return ok && f == digit || strings.EqualFold(strings.TrimSpace(text(v)), word)
}

func exists(value, _ any) bool { return value != nil }
