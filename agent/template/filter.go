package template

import (
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// filter describes one filter.
type filter struct {
	takes      func(arg any) bool
	takesWords string // what takes accepts, in words
	// apply transforms a value. why is set if it cannot.
	apply func(r *renderer, v any, c call) (out any, why string, err error)
}

func takesNothing(any) bool  { return false }
func takesAnything(any) bool { return true }
func takesText(arg any) bool {
	_, ok := arg.(string)
	return ok
}
func takesFormat(arg any) bool {
	s, ok := arg.(string)
	return ok && len(s) <= maxFormat
}
func isBlank(v any) bool { return v == nil || v == "" }
func first(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}
func last(s string) int {
	_, n := utf8.DecodeLastRuneInString(s)
	return n
}
func query(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

const (
	noArgument   = "no argument"
	textArgument = "a text in quotes"

	maxFormat      = 200 // bytes
	formatArgument = "a format in quotes of at most 200 bytes"
)

// filters maps names to filters.
var filters = map[string]*filter{
	"default":  {takesAnything, "", applyDefault},
	"optional": {takesNothing, noArgument, applyOptional},
	"text":     {takesNothing, noArgument, applyText},
	"upper":    {takesNothing, noArgument, onText(strings.ToUpper)},
	"lower":    {takesNothing, noArgument, onText(strings.ToLower)},
	"trim":     {takesNothing, noArgument, onText(strings.TrimSpace)},
	"url":      {takesNothing, noArgument, onText(query)},
	"json":     {takesNothing, noArgument, applyJSON},
	"length":   {takesNothing, noArgument, applyLength},
	"first":    {takesNothing, noArgument, applyFirst},
	"last":     {takesNothing, noArgument, applyLast},
	"join":     {takesText, textArgument, applyJoin},
	"date":     {takesFormat, formatArgument, applyDate},
}

// use applies a filter. A missing value is passed through, except by default,
// which replaces it, optional, which makes it null, and json, which writes null.
func (f *filter) use(renderer *renderer, in operand, call call) (operand, error) {
	if in.missing != "" {
		switch call.name {
		case "default":
			in = operand{value: fallback(call)}
		case "optional":
			in = operand{}
		case "json":
			in.value = "null"
		}
		return in, nil
	}
	out, why, err := f.apply(renderer, in.value, call)
	if why != "" {
		return missing(why), err
	}
	return operand{value: out}, err
}

func fallback(c call) any {
	if !c.given {
		return ""
	}
	return c.arg
}

func applyDefault(_ *renderer, v any, c call) (any, string, error) {
	if isBlank(v) {
		return fallback(c), "", nil
	}
	return v, "", nil
}

// applyOptional returns a value unchanged: use replaces a missing value with null.
func applyOptional(_ *renderer, v any, _ call) (any, string, error) {
	return v, "", nil
}

// onText returns a filter that applies a function to text.
func onText(change func(string) string) func(*renderer, any, call) (any, string, error) {
	return func(r *renderer, v any, _ call) (any, string, error) {
		text, err := r.text(v)
		if err != nil {
			return nil, "", err
		}
		return change(text), "", nil
	}
}

// applyText makes a value text, except null.
func applyText(r *renderer, v any, _ call) (any, string, error) {
	if v == nil {
		return nil, "", nil
	}
	text, err := r.text(v)
	return text, "", err
}

func applyJSON(r *renderer, v any, _ call) (any, string, error) {
	if _, err := r.text(v); err != nil {
		return nil, "", err
	}
	return jsonText(v), "", nil
}

func applyLength(_ *renderer, v any, c call) (any, string, error) {
	n := 0
	switch v := v.(type) {
	case nil:
	case []any:
		n = len(v)
	case map[string]any:
		n = len(v)
	case string:
		n = utf8.RuneCountInString(v)
	default:
		n = len(Text(v))
	}
	return float64(n), "", nil
}

func applyFirst(_ *renderer, v any, _ call) (any, string, error) {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			return v[0], "", nil
		}
	case string:
		return v[:first(v)], "", nil
	}
	return nil, "has no first element", nil
}

func applyLast(_ *renderer, v any, _ call) (any, string, error) {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			return v[len(v)-1], "", nil
		}
	case string:
		return v[len(v)-last(v):], "", nil
	}
	return nil, "has no last element", nil
}

// applyJoin writes each element like Text. A value that is not a list becomes
// its own text.
func applyJoin(renderer *renderer, value any, call call) (any, string, error) {
	list, ok := value.([]any)
	if !ok {
		text, err := renderer.text(value)
		return text, "", err
	}
	between := ", "
	if call.given {
		between = call.arg.(string)
	}
	if room := renderer.remaining; subtractSize(list, 0, &room) != nil || len(list)*len(between) > room {
		return nil, "", errSize
	}
	var out strings.Builder
	for i, element := range list {
		if i > 0 {
			out.WriteString(between)
		}
		out.WriteString(Text(element))
	}
	return out.String(), "", nil
}

func applyDate(r *renderer, v any, c call) (any, string, error) {
	var zone *time.Location
	if r.options.Zone != nil {
		zone = r.options.Zone()
	}
	t, ok := readTime(v, zone)
	if !ok {
		return nil, "is not a date", nil
	}
	format := "YYYY-MM-DD"
	if c.given {
		format = c.arg.(string)
	}
	return FormatTime(t, format), "", nil
}
