package template

import (
	"errors"
	"fmt"
	"html"
	"strings"
	"time"

	"satchel/agent"
)

// CodeTemplate is the code of every error of Render.
const CodeTemplate agent.Code = "TEMPLATE_ERROR"

// DefaultMaxBytes is the default of Options.MaxBytes.
const DefaultMaxBytes = 10 << 20

const (
	maxDepth    = 200 // of a value, in levels
	maxWarnings = 50
)

// Scope knows the names that a path can begin with. Values are those of
// encoding/json: map[string]any, []any, string, float64 or json.Number, bool
// and nil; int and int64 are numbers too. Anything else has no keys and is
// written as its JSON.
type Scope interface {
	Lookup(name string) (value any, ok bool)
}

// Map is a Scope of one level.
type Map map[string]any

// Lookup gives the value of a key.
func (m Map) Lookup(name string) (any, bool) {
	v, ok := m[name]
	return v, ok
}

// Options say how templates are filled.
type Options struct {
	// Strict makes what would be a warning an error.
	Strict bool
	// HTML escapes what is inserted, for a text that is HTML. A template then
	// always gives text, also when it is alone.
	HTML bool
	// NullMissing makes a lone template whose path leads nowhere null, without
	// a warning and also when Strict, so that a condition can ask whether
	// something exists.
	NullMissing bool
	// Zone finds the time zone of the filter date when that is used; nil means
	// UTC, and so does a Zone that returns nil.
	Zone func() *time.Location
	// MaxBytes bounds the size of the result, as JSON; 0 means DefaultMaxBytes.
	MaxBytes int
}

// Render fills the templates of a text. The result is a string, or any plain
// value when the text is one template alone. The warnings and the error are
// those of Value.Render.
func (t *Template) Render(scope Scope, o Options) (any, []string, error) {
	return (&Value{template: t}).Render(scope, o)
}

// renderer is one rendering.
type renderer struct {
	scope    Scope
	options  Options
	limit    int // bytes
	left     int // bytes until the limit
	path     []string
	warnings []string
	more     int // warnings that were not kept
}

// fail is err as an error about the place that is being rendered.
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
	return agent.Errorf(CodeTemplate, "%s", r.here(fmt.Sprintf(format, args...))).With("field", place(r.path))
}

// here puts the place that is being rendered before a text.
func (r *renderer) here(text string) string {
	if len(r.path) == 0 {
		return text
	}
	return place(r.path) + ": " + text
}

// warn notes that an expression gave nothing, or fails when that is an error.
func (r *renderer) warn(e *expression, why string) error {
	if r.options.Strict {
		return r.errorf("%s %s", e.source, why)
	}
	if len(r.warnings) < maxWarnings {
		r.warnings = append(r.warnings, r.here(e.source+" "+why))
	} else {
		r.more++
	}
	return nil
}

// template renders one text.
func (r *renderer) template(t *Template) (any, error) {
	if t.whole && !r.options.HTML {
		v, err := r.expression(t.parts[0].expr, r.options.NullMissing)
		if err == nil {
			err = weigh(v, len(r.path), &r.left)
		}
		return v, err
	}
	var out strings.Builder
	for _, p := range t.parts {
		text := p.text
		if p.expr != nil {
			v, err := r.expression(p.expr, false)
			if err != nil {
				return nil, err
			}
			if text, err = r.text(v); err != nil {
				return nil, err
			}
			if r.options.HTML {
				text = html.EscapeString(text)
			}
		}
		if r.left -= len(text); r.left < 0 {
			return nil, errSize
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

// text is Text of a value that has room in the result.
func (r *renderer) text(v any) (string, error) {
	room := r.left
	if err := weigh(v, 0, &room); err != nil {
		return "", err
	}
	return Text(v), nil
}

// expression gives the value of one template. What is missing is empty text
// and a warning, or nil alone when null is set.
func (r *renderer) expression(e *expression, null bool) (any, error) {
	in := operand{value: e.literal}
	if e.path != nil {
		in = r.walk(e.path)
	}
	for _, c := range e.filters {
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
	return in.value, r.warn(e, in.missing)
}

// operand is a value on its way through filters.
type operand struct {
	value   any
	missing string // why there is no value, or ""; value is then what stands in for it
}

func missing(why string) operand { return operand{value: "", missing: why} }

// walk follows a path from what the scope gives for its first name.
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
