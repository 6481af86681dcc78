package n8n

import (
	"encoding/json"
	"strings"

	"satchel/agent"
)

// piece is a part of a parameter: text, or an expression.
type piece struct {
	text string
	expr bool
}

// expressionOf returns what follows the = that marks an expression.
func expressionOf(v any) (string, bool) {
	s, ok := v.(string)
	if !ok {
		return "", false
	}
	return strings.CutPrefix(s, "=")
}

// split splits "Hello {{ $json.name }}" into text and expressions.
func split(text string) (all []piece) {
	for {
		before, rest, found := strings.Cut(text, "{{")
		if before != "" {
			all = append(all, piece{before, false})
		}
		if !found {
			return all
		}
		end := endOf(rest)
		if end < 0 {
			return append(all, piece{"{{" + rest, false})
		}
		all = append(all, piece{normalizeExpression(rest[:end]), true})
		text = rest[end+2:]
	}
}

// itemOf matches an item of another node by its number, as older versions of n8n
// write it.
var itemOf = agent.Pattern(`\$item\(\s*["']?(\d+)["']?\s*\)\s*\.\s*\$node\[\s*("[^"]*"|'[^']*')\s*\]`)

// normalizeExpression returns an expression without trailing characters that may end it, and with
// items of other nodes in the syntax of newer versions.
func normalizeExpression(source string) string {
	source = strings.TrimRight(strings.TrimSpace(source), "; \t\r\n")
	return itemOf().ReplaceAllStringFunc(source, func(found string) string {
		m := itemOf().FindStringSubmatch(found)
		if strings.Trim(m[1], "0") == "" {
			return "$(" + m[2] + ").first()"
		}
		return "$(" + m[2] + ").all()[" + m[1] + "]"
	})
}

// endOf returns where the }} of an expression is: the first that is neither in
// quotes nor closes a brace, otherwise the first one.
func endOf(text string) int {
	depth := 0
	var mark byte
	for index := 0; index < len(text); index++ {
		switch c := text[index]; {
		case mark != 0:
			if c == '\\' {
				index++
			} else if c == mark {
				mark = 0
			}
		case c == '"' || c == '\'' || c == '`':
			mark = c
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case c == '}' && strings.HasPrefix(text[index:], "}}"):
			return index
		}
	}
	return strings.Index(text, "}}")
}

// chain is a JavaScript expression that only reads: $json.a["b"][0].trim().
type chain struct {
	root  string // $json, $, $node, …, or "" for a literal
	arg   string // of $("name") and $items("name")
	steps []step
	// value is the literal, or what replaces a missing value.
	value    any
	fallback bool
}

// step is a member, an index or a call without arguments or with literal ones.
type step struct {
	name  string
	index int // -1: a name
	call  bool
	args  []any
}

// readChain parses an expression; ok is false for everything else.
func readChain(text string) (c chain, ok bool) {
	reader := &chainReader{s: strings.TrimSpace(text)}
	if v, ok := reader.literal(); ok {
		reader.space()
		return chain{value: v}, reader.done()
	}
	c.root = reader.name()
	if c.root == "" {
		return c, false
	}
	if c.root == "JSON" && reader.take(".stringify(") || c.root == "encodeURIComponent" && reader.take("(") {
		return reader.wrapped(c.root)
	}
	if reader.take("(") {
		arg, isText := reader.literalText()
		if reader.space(); !isText || !reader.take(")") {
			return c, false
		}
		c.arg = arg
	}
	if c.steps, ok = reader.steps(); !ok {
		return c, false
	}
	reader.space()
	if reader.take("??") || reader.take("||") {
		reader.space()
		if c.value, c.fallback = reader.literal(); !c.fallback {
			return c, false
		}
		reader.space()
	}
	return c, reader.done()
}

// wrapped parses the argument of a function that a filter replaces.
func (p *chainReader) wrapped(function string) (chain, bool) {
	if !strings.HasSuffix(p.s, ")") {
		return chain{}, false
	}
	inner, ok := readChain(p.s[p.at : len(p.s)-1])
	if !ok || inner.root == "" || inner.fallback {
		return inner, false
	}
	inner.steps = append(inner.steps, step{
		name:  function,
		index: -1,
		call:  true,
	})
	return inner, true
}

type chainReader struct {
	s  string
	at int
}

func (p *chainReader) done() bool {
	return p.at >= len(p.s)
}

func (p *chainReader) space() {
	for p.at < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.at]) >= 0 {
		p.at++
	}
}

func (p *chainReader) take(s string) bool {
	if !strings.HasPrefix(p.s[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

// name reads an identifier.
func (p *chainReader) name() string {
	start := p.at
	for p.at < len(p.s) {
		c := p.s[p.at]
		if !(c == '_' ||
			c == '$' ||
			'a' <= c && c <= 'z' ||
			'A' <= c && c <= 'Z' ||
			'0' <= c && c <= '9' && p.at > start) {
			break
		}
		p.at++
	}
	return p.s[start:p.at]
}

// steps reads .name, ?.name, ["name"], [0] and calls.
func (p *chainReader) steps() (all []step, ok bool) {
	for len(all) < 60 {
		p.space()
		switch {
		case p.take("?.[") || p.take("["):
			s, ok := p.bracket()
			if !ok {
				return nil, false
			}
			all = append(all, s)
		case p.take("?.") || strings.HasPrefix(p.s[p.at:], ".") && p.take("."):
			name := p.name()
			if name == "" {
				return nil, false
			}
			s := step{name: name, index: -1}
			if p.take("(") {
				s.call = true
				if s.args, ok = p.arguments(); !ok {
					return nil, false
				}
			}
			all = append(all, s)
		default:
			return all, true
		}
	}
	return nil, false
}

func (p *chainReader) bracket() (s step, ok bool) {
	p.space()
	v, ok := p.literal()
	p.space()
	if !ok || !p.take("]") {
		return s, false
	}
	switch v := v.(type) {
	case string:
		return step{name: v, index: -1}, true
	case float64:
		if v >= 0 && v < 1e6 && v == float64(int(v)) {
			return step{index: int(v)}, true
		}
	}
	return s, false
}

func (p *chainReader) arguments() (all []any, ok bool) {
	for {
		p.space()
		if p.take(")") {
			return all, true
		}
		v, ok := p.literal()
		if !ok {
			return nil, false
		}
		all = append(all, v)
		p.space()
		p.take(",")
	}
}

// literalText reads a quoted text.
func (p *chainReader) literalText() (string, bool) {
	p.space()
	v, ok := p.literal()
	text, isText := v.(string)
	return text, ok && isText
}

// literal reads a text in quotes, a number, true, false or null.
func (p *chainReader) literal() (any, bool) {
	rest := p.s[p.at:]
	for word, v := range map[string]any{
		"true":  true,
		"false": false,
		"null":  nil,
	} {
		if strings.HasPrefix(rest, word) && (len(rest) == len(word) || !isWord(rest[len(word)])) {
			p.at += len(word)
			return v, true
		}
	}
	if rest == "" {
		return nil, false
	}
	if c := rest[0]; c == '"' || c == '\'' || c == '`' {
		return p.quoted(c)
	}
	end := 0
	for end < len(rest) && strings.IndexByte("0123456789.", rest[end]) >= 0 || end == 0 && rest[0] == '-' {
		end++
	}
	var f float64
	if end == 0 || json.Unmarshal([]byte(rest[:end]), &f) != nil {
		return nil, false
	}
	p.at += end
	return f, true
}

func isWord(c byte) bool {
	return c == '_' ||
		c == '$' ||
		'a' <= c && c <= 'z' ||
		'A' <= c && c <= 'Z' ||
		'0' <= c && c <= '9'
}

// quoted reads a text in quotes with the usual escapes.
func (p *chainReader) quoted(mark byte) (any, bool) {
	var out strings.Builder
	for index := p.at + 1; index < len(p.s); index++ {
		switch char := p.s[index]; {
		case char == mark:
			p.at = index + 1
			return out.String(), true
		case mark == '`' && char == '$':
			return nil, false
		case char == '\\' && index+1 < len(p.s):
			index++
			escaped, known := map[byte]byte{
				'n':  '\n',
				't':  '\t',
				'r':  '\r',
				'\\': '\\',
				'"':  '"',
				'\'': '\'',
				'`':  '`',
				'/':  '/',
			}[p.s[index]]
			if !known {
				return nil, false
			}
			out.WriteByte(escaped)
		default:
			out.WriteByte(char)
		}
	}
	return nil, false
}
