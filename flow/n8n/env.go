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
func (c *converter) each(u *unit) *env {
	s := c.firstInput(u)
	if u.executeOnce && (s.list || s.at != s.at.context()) {
		s = c.firstOf(u, s)
	}
	s = c.eachOf(u, s)
	return &env{
		c:  c,
		u:  u,
		in: s,
		at: s.at,
	}
}

// firstOf returns a stream of the first item of a list.
func (c *converter) firstOf(u *unit, s *stream) *stream {
	at := s.at.context()
	js, from := c.itemsOf(u, s, at)
	id := c.newID(u.id + "_first")
	c.addNode(
		u,
		id,
		"code",
		map[string]any{"code": withSections("return " + js + "[0]"), "label": u.name + ": first item"},
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
func (e *env) emit(kind string, data map[string]any) *stream {
	if e.u.unsupported {
		e.c.keepUnsupported(e.u)
		return e.u.outputs[0]
	}
	from := e.in.from
	if len(e.scripts) > 0 {
		var fields strings.Builder
		for i, s := range e.scripts {
			fmt.Fprintf(&fields, "  v%d: %s,\n", i+1, s)
		}
		code := e.script("return {\n" + fields.String() + "}")
		if e.u.unsupported {
			e.c.keepUnsupported(e.u)
			return e.u.outputs[0]
		}
		e.c.addNode(
			e.u,
			e.id,
			"code",
			map[string]any{"code": code, "label": e.u.name + ": values"},
			from,
			e.at,
		)
		from = []exit{{e.id, "", e.at}}
	}
	e.c.addNode(e.u, e.u.id, kind, data, from, e.at)
	s := &stream{
		from:   []exit{{e.u.id, "", e.at}},
		at:     e.at,
		ref:    nodeRef(e.u.id),
		taken:  nodeRan(e.u.id),
		guards: e.in.guards,
		same:   []*unit{e.u},
	}
	if e.u.onError == "continueErrorOutput" {
		failed := *s
		failed.from = []exit{{e.u.id, "error", e.at}}
		failed.taken, failed.ref = "false", ref{
			path: "",
			js:   "({ " + e.input() + "error: nodes[" + quote(e.u.id) + "]?.error })",
		}
		failed.guards = withGuard(s.guards, e.u.id, "error")
		s.guards = withGuard(s.guards, e.u.id, "")
		e.u.outputs[1] = &failed
	}
	e.u.outputs[0] = s
	return s
}

// input returns JavaScript that spreads the fields of the unit's item, which are part
// of its output after an error too.
func (e *env) input() string {
	if e.in.list || e.in.ref.closed || e.in.ref.js == "" {
		return ""
	}
	return "..." + e.in.ref.js + ", "
}

// emitPassing adds a node whose input flows on unchanged.
func (e *env) emitPassing(kind string, data map[string]any) *stream {
	s := e.emit(kind, data)
	if !e.u.unsupported {
		s.ref, s.same = e.in.ref, append([]*unit{e.u}, e.in.same...)
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
func (e *env) compute(js string) string {
	if e.id == "" {
		e.id = e.c.newID(e.u.id + "_values")
	}
	e.scripts = append(e.scripts, js)
	return fmt.Sprintf("{{nodes.%s.v%d}}", e.id, len(e.scripts))
}

// value translates a parameter: expressions become templates, other text stays as it
// is.
func (e *env) value(v any) any {
	switch v := unlocated(v).(type) {
	case string:
		if e.arguments != nil {
			return e.argument(v)
		}
		return e.text(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = e.value(v[i])
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for key, inner := range v {
			object[key] = e.value(inner)
		}
		return object
	default:
		return v
	}
}

// textOf translates a parameter to a text.
func (e *env) textOf(path string) string {
	switch v := e.value(e.u.p.at(path)).(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		raw, _ := json.Marshal(v) // plain values
		return escapeTemplate(string(raw))
	}
}

func (e *env) text(s string) any {
	source, ok := expressionOf(s)
	if !ok {
		return escapeTemplate(s)
	}
	pieces := split(source)
	if len(pieces) == 1 && pieces[0].expr {
		return e.expression(pieces[0].text, true)
	}
	var out strings.Builder
	for _, p := range pieces {
		if !p.expr {
			out.WriteString(escapeTemplate(p.text))
			continue
		}
		switch v := e.expression(p.text, false).(type) {
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
func (e *env) expression(source string, whole bool) any {
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
		if path, ok := e.path(c, whole); ok {
			if e.nulls && whole && !c.fallback {
				path += optional
			}
			return "{{" + path + "}}"
		}
	}
	return e.compute(orNull(source))
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
func (e *env) js(v any) string {
	switch v := unlocated(v).(type) {
	case string:
		source, ok := expressionOf(v)
		if !ok {
			return quote(v)
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
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = e.js(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := []string{}
		for _, key := range sortedKeys(v) {
			parts = append(parts, "["+quote(key)+"]: "+e.js(v[key]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	default:
		return quote(v)
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
