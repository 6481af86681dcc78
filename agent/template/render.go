package template

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"satchel/agent"
)

// CodeTemplate is the code of every error from Render.
const CodeTemplate agent.Code = "TEMPLATE_ERROR"

// DefaultMaxBytes is the default of Options.MaxBytes.
const DefaultMaxBytes = 10 << 20

const (
	maxDepth    = 200 // levels of nesting in a value
	maxWarnings = 50
)

// Scope provides the names with which a path can start. Values are those of
// encoding/json: map[string]any, []any, string, float64 or json.Number, bool
// and nil; int and int64 are also numbers. Any other value has no keys and is
// written as its JSON.
type Scope interface {
	Lookup(name string) (value any, ok bool)
}

// Map is a Scope backed by a map.
type Map map[string]any

// Lookup returns the value of a key.
func (m Map) Lookup(name string) (any, bool) {
	v, ok := m[name]
	return v, ok
}

// Options control how templates are filled.
type Options struct {
	// Strict turns warnings into errors.
	Strict bool
	// Escape escapes inserted values for the markup of the text; nil: none. With it a
	// template always yields text, even on its own.
	Escape func(string) string
	// NullMissing makes a lone template whose path is missing null, without a
	// warning and even if Strict, so that a condition can test whether
	// something exists.
	NullMissing bool
	// Zone returns the time zone for the date filter when it is needed. If Zone
	// or its result is nil, the zone is UTC.
	Zone func() *time.Location
	// MaxBytes limits the size of the result, as JSON; 0 means DefaultMaxBytes.
	MaxBytes int
}

// Render fills the templates of a text. The result is a string, or any plain
// value if the text is a single template. Warnings and errors are those of
// Value.Render.
func (t *Template) Render(scope Scope, o Options) (any, []string, error) {
	return (&Value{template: t}).Render(scope, o)
}

// renderer is the state of one Render call.
type renderer struct {
	scope     Scope
	options   Options
	limit     int // in bytes
	remaining int // bytes left until the limit
	path      []string
	warnings  []string
	more      int // warnings beyond the limit
}

// fail returns err as an error that names the path being rendered.
func (r *renderer) fail(err error) error {
	var known *agent.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, errSize):
		return r.errorf("the result is larger than %d bytes", r.limit)
	case errors.Is(err, errDepth):
		return r.errorf("a value is nested deeper than %d levels", maxDepth)
	}
	return r.errorf("the template cannot be filled")
}

func (r *renderer) errorf(format string, args ...any) error {
	return agent.Errorf(
		CodeTemplate,
		"%s",
		r.withPath(fmt.Sprintf(format, args...)),
	).With("field", formatPath(r.path))
}

// withPath prefixes a text with the path being rendered.
func (r *renderer) withPath(text string) string {
	if len(r.path) == 0 {
		return text
	}
	return formatPath(r.path) + ": " + text
}

// warn adds a warning about an expression, or returns an error if warnings are
// errors.
func (r *renderer) warn(e *expression, why string) error {
	if r.options.Strict {
		return r.errorf("%s %s", e.source, why)
	}
	if len(r.warnings) < maxWarnings {
		r.warnings = append(r.warnings, r.withPath(e.source+" "+why))
	} else {
		r.more++
	}
	return nil
}

// template renders one text.
func (r *renderer) template(page *Template) (any, error) {
	if page.whole && r.options.Escape == nil {
		v, err := r.expression(page.parts[0].expr, r.options.NullMissing)
		if err == nil {
			err = subtractSize(v, len(r.path), &r.remaining)
		}
		return v, err
	}
	var out strings.Builder
	for _, part := range page.parts {
		text := part.text
		if part.expr != nil {
			v, err := r.expression(part.expr, false)
			if err != nil {
				return nil, err
			}
			if text, err = r.text(v); err != nil {
				return nil, err
			}
			if r.options.Escape != nil {
				text = r.options.Escape(text)
			}
		}
		if r.remaining -= len(text); r.remaining < 0 {
			return nil, errSize
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

// text returns Text of a value, within the size limit.
func (r *renderer) text(v any) (string, error) {
	room := r.remaining
	if err := subtractSize(v, 0, &room); err != nil {
		return "", err
	}
	return Text(v), nil
}

// expression returns the value of one template. A missing value is empty text
// with a warning, or nil without one if null is set.
func (r *renderer) expression(expression *expression, null bool) (any, error) {
	in := operand{value: expression.literal}
	if expression.path != nil {
		in = r.walk(expression.path)
	}
	for _, c := range expression.filters {
		var err error
		if in, err = c.filter.use(r, in, c); err != nil {
			return nil, err
		}
	}
	switch {
	case in.missing == "":
		return in.value, nil
	case null:
		return nil, nil
	}
	return in.value, r.warn(expression, in.missing)
}

// operand is a value passing through filters.
type operand struct {
	value   any
	missing string // why there is no value, or ""; value is then its replacement
}

func missing(why string) operand { return operand{value: "", missing: why} }

// walk follows a path from the scope's value for its first name.
func (r *renderer) walk(path Path) operand {
	v, ok := r.scope.Lookup(path[0].key)
	if ok {
		v, ok = path[1:].Walk(v)
	}
	if !ok {
		return missing("has no value")
	}
	return operand{value: v}
}
