package n8n

import (
	"encoding/json"
	"fmt"
	"strings"
)

// env translates the parameters of a unit at its place in the graph.
type env struct {
	c        *converter
	u        *unit
	in       *stream // what $json is; of a list: its first item
	at       *region
	scripts  []string // expressions that only JavaScript can compute
	id       string   // of the node that computes them
	nulls    bool     // a path that finds nothing gives null, not empty text
	converts bool     // what is computed for a field gets the type of the field

	arguments map[string]argument // of a tool: what the model fills
}

// each returns the environment of a unit that runs once for each item.
func (converter *converter) each(u *unit) *env {
	s := converter.firstInput(u)
	if u.executeOnce && (s.list || s.at != s.at.context()) {
		s = converter.firstOf(u, s)
	}
	s = converter.eachOf(u, s)
	return &env{
		c:  converter,
		u:  u,
		in: s,
		at: s.at,
	}
}

// firstOf returns a stream of the first item of a list.
func (converter *converter) firstOf(unit *unit, s *stream) *stream {
	at := s.at.context()
	js, from := converter.itemsOf(unit, s, at)
	id := converter.newID(unit.id + "_first")
	converter.addNode(
		unit,
		id,
		"code",
		map[string]any{"code": withSections("return " + js + "[0]"), "label": unit.name + ": first item"},
		from,
		at,
	)
	return &stream{
		from:   []exit{{id, "", at}},
		at:     at,
		ref:    nodeRef(id),
		taken:  nodeRan(id),
		guards: map[string]string{},
	}
}

// emit adds the unit's node and, before it, a node for what templates cannot
// compute. It returns the node's output.
func (env *env) emit(kind string, data map[string]any) *stream {
	if env.u.unsupported {
		env.c.keepUnsupported(env.u)
		return env.u.outputs[0]
	}
	from := env.in.from
	if len(env.scripts) > 0 {
		var fields strings.Builder
		for i, s := range env.scripts {
			fmt.Fprintf(&fields, "  v%d: %s,\n", i+1, s)
		}
		code := env.script("return {\n" + fields.String() + "}")
		if env.u.unsupported {
			env.c.keepUnsupported(env.u)
			return env.u.outputs[0]
		}
		env.c.addNode(
			env.u,
			env.id,
			"code",
			map[string]any{"code": code, "label": env.u.name + ": values"},
			from,
			env.at,
		)
		from = []exit{{env.id, "", env.at}}
	}
	env.c.addNode(env.u, env.u.id, kind, data, from, env.at)
	s := &stream{
		from:   []exit{{env.u.id, "", env.at}},
		at:     env.at,
		ref:    nodeRef(env.u.id),
		taken:  nodeRan(env.u.id),
		guards: env.in.guards,
		same:   []*unit{env.u},
	}
	if env.u.onError == "continueErrorOutput" {
		failed := *s
		failed.from = []exit{{env.u.id, "error", env.at}}
		failed.taken, failed.ref = "false", ref{
			path: "",
			js:   "({ " + env.input() + "error: nodes[" + quote(env.u.id) + "]?.error })",
		}
		failed.guards = withGuard(s.guards, env.u.id, "error")
		s.guards = withGuard(s.guards, env.u.id, "")
		env.u.outputs[1] = &failed
	}
	env.u.outputs[0] = s
	return s
}

// input returns JavaScript that spreads the fields of the unit's item, which are part
// of its output after an error too.
func (env *env) input() string {
	if env.in.list || env.in.ref.closed || env.in.ref.js == "" {
		return ""
	}
	return "..." + env.in.ref.js + ", "
}

// emitPassing adds a node whose input flows on unchanged.
func (env *env) emitPassing(kind string, data map[string]any) *stream {
	s := env.emit(kind, data)
	if !env.u.unsupported {
		s.ref, s.same = env.in.ref, append([]*unit{env.u}, env.in.same...)
	}
	return s
}

func withGuard(guards map[string]string, branch, handle string) map[string]string {
	all := map[string]string{branch: handle}
	for k, v := range guards {
		all[k] = v
	}
	return all
}

// compute returns the template of a JavaScript expression.
func (env *env) compute(js string) string {
	if env.id == "" {
		env.id = env.c.newID(env.u.id + "_values")
	}
	env.scripts = append(env.scripts, js)
	return fmt.Sprintf("{{nodes.%s.v%d}}", env.id, len(env.scripts))
}

// value translates a parameter: expressions become templates, other text stays as it
// is.
func (env *env) value(value any) any {
	switch item := unlocated(value).(type) {
	case string:
		if env.arguments != nil {
			return env.argument(item)
		}
		return env.text(item)
	case []any:
		list := make([]any, len(item))
		for i := range item {
			list[i] = env.value(item[i])
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for key, inner := range item {
			object[key] = env.value(inner)
		}
		return object
	default:
		return item
	}
}

// textOf translates a parameter to a text.
func (env *env) textOf(path string) string {
	switch v := env.value(env.u.p.at(path)).(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		raw, _ := json.Marshal(v) // plain values
		return escapeTemplate(string(raw))
	}
}

func (env *env) text(text string) any {
	source, ok := expressionOf(text)
	if !ok {
		return escapeTemplate(text)
	}
	pieces := split(source)
	if len(pieces) == 1 && pieces[0].expr {
		return env.expression(pieces[0].text, true)
	}
	var out strings.Builder
	for _, p := range pieces {
		if !p.expr {
			out.WriteString(escapeTemplate(p.text))
			continue
		}
		switch v := env.expression(p.text, false).(type) {
		case string:
			out.WriteString(v)
		case nil:
		default:
			raw, _ := json.Marshal(v)
			out.WriteString(escapeTemplate(string(raw)))
		}
	}
	return out.String()
}

// escapeTemplate escapes a text that would be parsed as a template.
func escapeTemplate(s string) string { return strings.ReplaceAll(s, "{{", `{{"{{"}}`) }

// expression translates one expression. whole reports that it makes up a whole text,
// so that its value keeps its type.
func (env *env) expression(source string, whole bool) any {
	if source == "" {
		return ""
	}
	if c, ok := readChain(source); ok {
		if c.root == "" {
			if text, isText := c.value.(string); isText {
				return escapeTemplate(text)
			}
			return c.value
		}
		if path, ok := env.path(c, whole); ok {
			if env.nulls && whole && !c.fallback {
				path += optional
			}
			return "{{" + path + "}}"
		}
	}
	return env.compute(orNull(source))
}

// optional is the filter for paths that yield null if the value is missing.
const optional = " | optional"

// orNull returns an expression as n8n evaluates it: if it fails, the value is null.
func orNull(source string) string {
	if c, ok := readChain(source); ok && c.root == "" {
		return quote(c.value)
	}
	return "$try(() => (" + source + "))"
}

// js translates a parameter to a JavaScript expression.
func (env *env) js(value any) string {
	switch item := unlocated(value).(type) {
	case string:
		source, ok := expressionOf(item)
		if !ok {
			return quote(item)
		}
		pieces := split(source)
		if len(pieces) == 1 && pieces[0].expr {
			if pieces[0].text == "" {
				return "undefined"
			}
			return orNull(pieces[0].text)
		}
		parts := []string{}
		for _, p := range pieces {
			if p.expr {
				parts = append(parts, "$text("+orNull(p.text)+")")
			} else {
				parts = append(parts, quote(p.text))
			}
		}
		if len(parts) == 0 {
			return `""`
		}
		return "[" + strings.Join(parts, ", ") + `].join("")`
	case []any:
		parts := make([]string, len(item))
		for i := range item {
			parts[i] = env.js(item[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := []string{}
		for _, key := range sortedKeys(item) {
			parts = append(parts, "["+quote(key)+"]: "+env.js(item[key]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	default:
		return quote(item)
	}
}

// quote returns a plain value as JavaScript.
func quote(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // there are only plain values
	}
	return string(raw)
}

const datesInUTC = "Dates are computed in UTC, with the common part of Luxon."
