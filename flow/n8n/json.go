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
func (e *env) json(v any) any {
	text, isText := unlocated(v).(string)
	if !isText {
		return e.value(v)
	}
	source, isExpression := expressionOf(text)
	if !isExpression {
		if parsed, ok := jsonOf(text); ok {
			return e.literalJSON(parsed)
		}
		return escapeTemplate(text)
	}
	pieces := split(source)
	if len(pieces) == 1 && pieces[0].expr {
		return e.parsed(pieces[0].text)
	}
	marked, bare := mark(pieces)
	parsed, ok := jsonOf(marked)
	if !ok {
		return e.compute("JSON.parse(" + e.js(text) + ")")
	}
	return e.unmark(parsed, pieces, bare)
}

// literalJSON escapes the texts of a plain value.
func (e *env) literalJSON(v any) any {
	switch v := v.(type) {
	case string:
		return escapeTemplate(v)
	case []any:
		for i := range v {
			v[i] = e.literalJSON(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = e.literalJSON(v[key])
		}
	}
	return v
}

// parsed translates an expression whose value is an object, or JSON as text.
func (e *env) parsed(source string) any {
	if inner, ok := strings.CutPrefix(source, "JSON.stringify("); ok && strings.HasSuffix(inner, ")") {
		if c, ok := readChain(inner[:len(inner)-1]); ok && c.root != "" {
			return e.expression(inner[:len(inner)-1], true)
		}
	}
	if c, ok := readChain(source); ok && c.root != "" {
		return e.expression(source, true)
	}
	return e.compute("$parsed(" + source + ")")
}

const mark0, mark1 = "\ue000", "\ue001" // private use

// mark replaces expressions in JSON with marks, adding quotes to those that stand
// outside a string.
func mark(pieces []piece) (text string, bare map[int]bool) {
	var out strings.Builder
	bare = map[int]bool{}
	quoted := false
	for i, p := range pieces {
		if p.expr {
			m := fmt.Sprintf("%s%d%s", mark0, i, mark1)
			if bare[i] = !quoted; !quoted {
				m = `"` + m + `"`
			}
			out.WriteString(m)
			continue
		}
		for at := 0; at < len(p.text); at++ {
			switch {
			case p.text[at] == '\\' && quoted:
				at++
			case p.text[at] == '"':
				quoted = !quoted
			}
		}
		if quoted {
			// line breaks within texts are common and would be refused
			last := strings.LastIndexByte(p.text, '"')
			out.WriteString(p.text[:last+1] + strings.ReplaceAll(p.text[last+1:], "\n", `\n`))
			continue
		}
		out.WriteString(p.text)
	}
	return out.String(), bare
}

// unmark replaces marks with their expressions.
func (e *env) unmark(v any, pieces []piece, bare map[int]bool) any {
	switch v := v.(type) {
	case string:
		return e.unmarkText(v, pieces, bare)
	case []any:
		for i := range v {
			v[i] = e.unmark(v[i], pieces, bare)
		}
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			out[strings.NewReplacer(mark0, "", mark1, "").Replace(key)] = e.unmark(inner, pieces, bare)
		}
		return out
	}
	return v
}

func (e *env) unmarkText(text string, pieces []piece, bare map[int]bool) any {
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
				return e.parsed(pieces[i].text)
			}
			return e.expression(pieces[i].text, false)
		}
		if s, ok := e.expression(pieces[i].text, false).(string); ok {
			out.WriteString(s)
		}
		text = after
	}
}

// setRaw converts a set node whose fields are given as JSON.
func (c *converter) setRaw(e *env) {
	u := e.u
	others := u.p.flag("includeOtherFields") || u.version < 3.3 && u.p.or("include", "all") != "none"
	values := e.json(u.p.at("jsonOutput"))
	if object, ok := values.(map[string]any); ok && !others {
		e.emit("set", map[string]any{"values": object})
		return
	}
	if text, ok := values.(string); ok &&
		!others &&
		strings.HasPrefix(text, "{{") &&
		len(e.scripts) == 0 {
		e.emit("set", map[string]any{"values": text})
		return
	}
	e.scripts, e.id = nil, ""
	js := "$parsed(" + e.js(u.p.at("jsonOutput")) + ")"
	if others {
		js = "{ ..." + keptFieldsJS(u) + ", ..." + js + " }"
	}
	e.emit("code", map[string]any{"code": e.script("return " + js)})
}
