package template

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"satchel/agent"
)

// Value is a compiled JSON value with templates. It is safe for concurrent use.
type Value struct {
	fixed    any // a value without templates, returned unchanged
	template *Template
	list     []*Value
	object   []member // ordered by key
}

type member struct {
	key   string
	value *Value
}

// Compile parses the templates in every string of a JSON value; keys are not
// parsed. The error is a *SyntaxError for the first invalid string, ordered by
// key.
func Compile(v any) (*Value, error) {
	compiled, _, err := compile(v, nil)
	return compiled, err
}

// Check reports whether every template in a JSON value can be parsed. The error
// is that of Compile.
func Check(v any) error {
	_, err := Compile(v)
	return err
}

// Render compiles and renders a value; see Value.Render.
func Render(v any, scope Scope, o Options) (any, []string, error) {
	compiled, err := Compile(v)
	if err != nil {
		return nil, nil, err
	}
	return compiled.Render(scope, o)
}

// Render fills the templates. The result shares parts with the compiled value
// and the scope, so it must not be modified. A warning names the path, the
// template and the problem. The error is an *agent.Error with CodeTemplate and
// details {field}.
func (v *Value) Render(scope Scope, o Options) (any, []string, error) {
	r := &renderer{scope: scope, options: o, limit: o.MaxBytes}
	if r.limit <= 0 {
		r.limit = DefaultMaxBytes
	}
	r.remaining = r.limit
	out, err := r.value(v)
	if err != nil {
		return nil, r.warnings, r.fail(err)
	}
	if r.more > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("and %d more warnings", r.more))
	}
	return out, r.warnings, nil
}

// Fixed reports whether the value has no templates.
func (v *Value) Fixed() bool {
	return v.template == nil && v.list == nil && v.object == nil
}

// compile also reports whether value has a template. path is the path of value.
func compile(value any, path []string) (*Value, bool, error) {
	if len(path) > maxDepth {
		return nil, false, &SyntaxError{
			Field:    formatPath(path),
			Position: 1,
			Issue:    errDepth.Error(),
		}
	}
	switch item := value.(type) {
	case string:
		if !strings.Contains(item, "{{") {
			break
		}
		t, err := Parse(item)
		if syntax, ok := errors.AsType[*SyntaxError](err); ok {
			syntax.Field = formatPath(path)
		}
		if err != nil {
			return nil, false, err
		}
		return &Value{template: t}, true, nil
	case []any:
		return compileList(item, path)
	case map[string]any:
		return compileObject(item, path)
	}
	return &Value{fixed: value}, false, nil
}

func compileList(v []any, path []string) (*Value, bool, error) {
	out, any := &Value{list: make([]*Value, len(v))}, false
	for i, element := range v {
		compiled, has, err := compile(element, append(path, "["+strconv.Itoa(i)+"]"))
		if err != nil {
			return nil, false, err
		}
		out.list[i], any = compiled, any || has
	}
	if !any {
		out = &Value{fixed: v}
	}
	return out, any, nil
}

func compileObject(object map[string]any, path []string) (*Value, bool, error) {
	out, any := &Value{object: make([]member, 0, len(object))}, false
	keys := make([]string, 0, len(object))
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		compiled, has, err := compile(object[key], append(path, "."+key))
		if err != nil {
			return nil, false, err
		}
		out.object, any = append(out.object, member{key, compiled}), any || has
	}
	if !any {
		out = &Value{fixed: object}
	}
	return out, any, nil
}

// formatPath formats the path of a value, as in data.items[0].
func formatPath(path []string) string {
	return agent.Clip(strings.TrimPrefix(strings.Join(path, ""), "."), 200)
}

// value renders one value.
func (r *renderer) value(value *Value) (any, error) {
	switch {
	case value.template != nil:
		return r.template(value.template)
	case value.list != nil:
		out := make([]any, len(value.list))
		for i, element := range value.list {
			rendered, err := r.at("["+strconv.Itoa(i)+"]", element)
			if err != nil {
				return nil, err
			}
			out[i] = rendered
		}
		return out, nil
	case value.object != nil:
		out := make(map[string]any, len(value.object))
		for _, m := range value.object {
			rendered, err := r.at("."+m.key, m.value)
			if err != nil {
				return nil, err
			}
			out[m.key] = rendered
		}
		return out, nil
	}
	return value.fixed, nil
}

// at renders a value one level deeper. After an error the path stays, to name
// the place.
func (r *renderer) at(step string, v *Value) (any, error) {
	if v.Fixed() {
		return v.fixed, nil
	}
	r.path = append(r.path, step)
	out, err := r.value(v)
	if err == nil {
		r.path = r.path[:len(r.path)-1]
	}
	return out, err
}
