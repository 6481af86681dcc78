package template

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/agent"
)

// Limits of one template.
const (
	maxSegments = 64
	maxFilters  = 16
)

// SyntaxError is a template that cannot be parsed.
type SyntaxError struct {
	Field    string // path of the text in the value, such as data.items[0]; empty for the value itself
	Position int    // character in the text, from 1
	Issue    string
}

func (e *SyntaxError) Error() string {
	text := fmt.Sprintf("template: %s at character %d", e.Issue, e.Position)
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	return text
}

// Template is a parsed text with templates. It is safe for concurrent use.
type Template struct {
	parts []part
	whole bool // the text is a single template
}

// part is literal text, or a template if its expression is set.
type part struct {
	text string
	expr *expression
	end  int // end in the whole text, in bytes
}

// expression is the content of {{ and }}.
type expression struct {
	source  string // as written, for warnings
	literal any    // instead of a path
	path    Path
	filters []call
}

// call is one use of a filter.
type call struct {
	name   string
	filter *filter
	arg    any
	given  bool // an argument was written
}

// Parse parses the templates of a text. The error is a *SyntaxError.
func Parse(text string) (*Template, error) {
	page := &Template{}
	p := parser{text: text, endsName: endsName}
	for p.at < len(text) {
		open := strings.Index(text[p.at:], "{{")
		if open < 0 {
			break
		}
		if open > 0 {
			page.parts = append(page.parts, part{text: text[p.at : p.at+open], end: p.at + open})
		}
		p.at += open
		expr, err := p.template()
		if err != nil {
			return nil, err
		}
		page.parts = append(page.parts, part{expr: expr, end: p.at})
	}
	if p.at < len(text) {
		page.parts = append(page.parts, part{text: text[p.at:], end: len(text)})
	}
	page.whole = len(page.parts) == 1 && page.parts[0].expr != nil
	return page, nil
}

// Spans returns the byte positions of the templates in a text. The error is a
// *SyntaxError.
func Spans(text string) ([][2]int, error) {
	t, err := Parse(text)
	if err != nil {
		return nil, err
	}
	var spans [][2]int
	start := 0
	for _, p := range t.parts {
		if p.expr != nil {
			spans = append(spans, [2]int{start, p.end})
		}
		start = p.end
	}
	return spans, nil
}

// parser parses a text. at is the current position.
type parser struct {
	text     string
	at       int
	endsName func(r rune) bool // reports whether an unquoted name ends before r
}

func (p *parser) errorAt(at int, format string, args ...any) error {
	return &SyntaxError{Position: utf8.RuneCountInString(p.text[:at]) + 1, Issue: fmt.Sprintf(format, args...)}
}

// unexpected returns the error for the text at the current position.
func (p *parser) unexpected(wanted string) error {
	if p.at >= len(p.text) {
		return p.errorAt(p.at, "expected %s, found the end of the text", wanted)
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return p.errorAt(p.at, "expected %s, found %q", wanted, r)
}

func (p *parser) space() {
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		if !unicode.IsSpace(r) {
			return
		}
		p.at += size
	}
}

// take moves past s if it is next.
func (p *parser) take(s string) bool {
	if !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

// template parses from {{ to }}.
func (p *parser) template() (*expression, error) {
	start := p.at
	p.at += len("{{")
	p.space()
	e := &expression{}
	if err := p.head(e); err != nil {
		return nil, err
	}
	for {
		p.space()
		switch {
		case p.take("}}"):
			e.source = agent.Clip(p.text[start:p.at], 100)
			return e, nil
		case p.take("|"):
			c, err := p.filter()
			if err != nil {
				return nil, err
			}
			if e.filters = append(e.filters, c); len(e.filters) > maxFilters {
				return nil, p.errorAt(start, "more than %d filters", maxFilters)
			}
		default:
			return nil, p.unexpected("| or }}")
		}
	}
}

// head parses a path, or a quoted text instead of it.
func (p *parser) head(e *expression) error {
	if p.quote() {
		text, err := p.quoted()
		e.literal = text
		return err
	}
	var err error
	e.path, err = p.path(false)
	return err
}

// path parses a path, which starts with a name unless bracket is set.
func (p *parser) path(bracket bool) (Path, error) {
	start := p.at
	var path Path
	if !bracket {
		name := p.name()
		if name == "" {
			return nil, p.unexpected("a path")
		}
		path = Path{{key: name, index: index(name)}}
	}
	for {
		next, more, err := p.step()
		if err != nil || !more {
			return path, err
		}
		if path = append(path, next); len(path) > maxSegments {
			return nil, p.errorAt(start, "a path of more than %d steps", maxSegments)
		}
	}
}

// step parses .key, [0] or ["key"]. more is false at the end of the path.
func (p *parser) step() (next segment, more bool, err error) {
	if p.take(".") {
		key := p.name()
		if key == "" {
			return next, false, p.unexpected("a key")
		}
		return segment{key, index(key)}, true, nil
	}
	if !p.take("[") {
		return next, false, nil
	}
	next.index = -1
	if p.quote() {
		next.key, err = p.quoted()
	} else {
		start := p.at
		next.key = p.name()
		if next.index = index(next.key); next.index < 0 {
			p.at = start
			err = p.unexpected("an index or a quoted key")
		}
	}
	if err == nil && !p.take("]") {
		err = p.unexpected("]")
	}
	return next, true, err
}

// index returns the number that a key represents, or -1.
func index(key string) int {
	if len(key) == 0 || len(key) > 9 {
		return -1
	}
	n := 0
	for _, c := range []byte(key) {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// notNameCharacters are characters that a key may only contain in brackets and quotes,
// so that an expression such as a+b is rejected rather than looked up.
const notNameCharacters = ".[]{}()|:,;\"'`+*/=<>!?&^~\\"

func endsName(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(notNameCharacters, r)
}

func (p *parser) name() string {
	start := p.at
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		if p.endsName(r) {
			break
		}
		p.at += size
	}
	return p.text[start:p.at]
}

// quote reports whether a quoted text starts here.
func (p *parser) quote() bool {
	return p.at < len(p.text) && (p.text[p.at] == '"' || p.text[p.at] == '\'')
}

// quoted parses a quoted text, with the escapes of JSON.
func (p *parser) quoted() (string, error) {
	start, mark := p.at, p.text[p.at]
	var body strings.Builder // the text as JSON, without its quotes
	for p.at++; p.at < len(p.text); p.at++ {
		switch char := p.text[p.at]; {
		case char == mark:
			p.at++
			var text string
			if json.Unmarshal([]byte(`"`+body.String()+`"`), &text) != nil {
				return "", p.errorAt(start, "a quoted text with an escape that JSON does not have")
			}
			return text, nil
		case char == '\\' && p.at+1 < len(p.text):
			p.at++
			if p.text[p.at] != '\'' {
				body.WriteByte('\\')
			}
			body.WriteByte(p.text[p.at])
		case char == '"':
			body.WriteString(`\"`)
		case char < ' ':
			fmt.Fprintf(&body, `\u%04x`, char)
		default:
			body.WriteByte(char)
		}
	}
	return "", p.errorAt(start, "a quoted text that does not end")
}

// filter parses a filter's name and argument.
func (p *parser) filter() (call, error) {
	p.space()
	start := p.at
	c := call{name: p.name()}
	if c.name == "" {
		return c, p.unexpected("a filter")
	}
	if c.filter = filters[c.name]; c.filter == nil {
		return c, p.errorAt(start, "there is no filter %q", agent.Clip(c.name, 40))
	}
	p.space()
	if !p.take(":") {
		return c, nil
	}
	p.space()
	var err error
	if c.arg, err = p.argument(); err != nil {
		return c, err
	}
	c.given = true
	if !c.filter.takes(c.arg) {
		return c, p.errorAt(start, "%s takes %s", c.name, c.filter.takesWords)
	}
	return c, nil
}

// argument parses a quoted text, a number, true, false, null or an empty list.
func (p *parser) argument() (any, error) {
	if p.quote() {
		return p.quoted()
	}
	start := p.at
	if p.take("[") {
		if p.space(); !p.take("]") {
			return nil, p.unexpected("] of an empty list")
		}
		return []any{}, nil
	}
	word := p.name()
	if p.take(".") {
		word += "." + p.name()
	}
	switch word {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	}
	if f, err := strconv.ParseFloat(word, 64); err == nil && json.Valid([]byte(word)) {
		return f, nil
	}
	p.at = start
	return nil, p.unexpected("an argument in quotes, a number, true, false, null or []")
}
