package n8n

import (
	"encoding/json"
	"fmt"
	"strings"
)

// jsonOf parses a text as JSON.
func jsonOf(text string) (any, bool) {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return nil, false
	}
	return v, true
}

// json translates a parameter that holds JSON as text, possibly with
// expressions in it.
func (env *env) json(value any) any {
	text, isText := unlocated(value).(string)
	if !isText {
		return env.value(value)
	}
	source, isExpression := expressionOf(text)
	if !isExpression {
		if parsed, ok := jsonOf(text); ok {
			return env.literalJSON(parsed)
		}
		return escapeTemplate(text)
	}
	pieces := split(source)
	if len(pieces) == 1 && pieces[0].expr {
		return env.parsed(pieces[0].text)
	}
	marked, bare := mark(pieces)
	parsed, ok := jsonOf(marked)
	if !ok {
		return env.compute("JSON.parse(" + env.js(text) + ")")
	}
	return env.unmark(parsed, pieces, bare)
}

// literalJSON escapes the texts of a plain value.
func (env *env) literalJSON(v any) any {
	switch v := v.(type) {
	case string:
		return escapeTemplate(v)
	case []any:
		for i := range v {
			v[i] = env.literalJSON(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = env.literalJSON(v[key])
		}
	}
	return v
}

// parsed translates an expression whose value is an object, or JSON as text.
func (env *env) parsed(source string) any {
	if inner, ok := strings.CutPrefix(source, "JSON.stringify("); ok && strings.HasSuffix(inner, ")") {
		if c, ok := readChain(inner[:len(inner)-1]); ok && c.root != "" {
			return env.expression(inner[:len(inner)-1], true)
		}
	}
	if c, ok := readChain(source); ok && c.root != "" {
		return env.expression(source, true)
	}
	return env.compute("$parsed(" + source + ")")
}

const mark0, mark1 = "\ue000", "\ue001" // private use

// mark replaces expressions in JSON with marks, adding quotes to those that stand
// outside a string.
func mark(pieces []piece) (text string, bare map[int]bool) {
	var out strings.Builder
	bare = map[int]bool{}
	quoted := false
	for index, piece := range pieces {
		if piece.expr {
			m := fmt.Sprintf("%s%d%s", mark0, index, mark1)
			if bare[index] = !quoted; !quoted {
				m = `"` + m + `"`
			}
			out.WriteString(m)
			continue
		}
		for at := 0; at < len(piece.text); at++ {
			switch {
			case piece.text[at] == '\\' && quoted:
				at++
			case piece.text[at] == '"':
				quoted = !quoted
			}
		}
		if quoted {
			// line breaks within texts are common and would be refused
			last := strings.LastIndexByte(piece.text, '"')
			out.WriteString(piece.text[:last+1] + strings.ReplaceAll(piece.text[last+1:], "\n", `\n`))
			continue
		}
		out.WriteString(piece.text)
	}
	return out.String(), bare
}

// unmark replaces marks with their expressions.
func (env *env) unmark(value any, pieces []piece, bare map[int]bool) any {
	switch v := value.(type) {
	case string:
		return env.unmarkText(v, pieces, bare)
	case []any:
		for i := range v {
			v[i] = env.unmark(v[i], pieces, bare)
		}
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			out[strings.NewReplacer(mark0, "", mark1, "").Replace(key)] = env.unmark(inner, pieces, bare)
		}
		return out
	}
	return value
}

func (env *env) unmarkText(text string, pieces []piece, bare map[int]bool) any {
	var out strings.Builder
	for first := true; ; first = false {
		before, rest, found := strings.Cut(text, mark0)
		out.WriteString(escapeTemplate(before))
		if !found {
			return out.String()
		}
		number, after, _ := strings.Cut(rest, mark1)
		var i int
		if _, err := fmt.Sscan(number, &i); err != nil || i >= len(pieces) || i < 0 {
			return out.String()
		}
		if first && before == "" && after == "" {
			if bare[i] {
				return env.parsed(pieces[i].text)
			}
			return env.expression(pieces[i].text, false)
		}
		if s, ok := env.expression(pieces[i].text, false).(string); ok {
			out.WriteString(s)
		}
		text = after
	}
}

// setRaw converts a set node whose fields are given as JSON.
func (converter *converter) setRaw(env *env) {
	unit := env.u
	others := unit.p.flag("includeOtherFields") || unit.version < 3.3 && unit.p.or("include", "all") != "none"
	values := env.json(unit.p.at("jsonOutput"))
	if object, ok := values.(map[string]any); ok && !others {
		env.emit("set", map[string]any{"values": object})
		return
	}
	if text, ok := values.(string); ok &&
		!others &&
		strings.HasPrefix(text, "{{") &&
		len(env.scripts) == 0 {
		env.emit("set", map[string]any{"values": text})
		return
	}
	env.scripts, env.id = nil, ""
	js := "$parsed(" + env.js(unit.p.at("jsonOutput")) + ")"
	if others {
		js = "{ ..." + keptFieldsJS(unit) + ", ..." + js + " }"
	}
	env.emit("code", map[string]any{"code": env.script("return " + js)})
}
