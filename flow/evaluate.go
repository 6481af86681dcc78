package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/agent/template"
	"satchel/store/sqlsandbox"
)

// checkEvaluate rejects templates that cannot be arguments of a script.
func checkEvaluate(data map[string]any, text string, templates []sqlsandbox.Span) error {
	switch data["args"].(type) {
	case nil, []any, map[string]any:
	default:
		return agent.Errorf(
			agent.CodeValidation,
			"has templates, so args must be a list or an object that can take their values",
		)
	}
	for index, place := range scriptPlaces(text, templates) {
		if place == inQuotes {
			return agent.Errorf(
				agent.CodeValidation,
				"has the template %s inside quotes or a regular expression, where it cannot be an argument; "+
					"write \"Hello \" + {{x}} instead of \"Hello {{x}}\"",
				agent.Clip(text[templates[index].Start:templates[index].End], 100),
			)
		}
		if place == inName {
			return agent.Errorf(
				agent.CodeValidation,
				"has the template %s in place of a name; templates in scripts can only be values",
				agent.Clip(text[templates[index].Start:templates[index].End], 100),
			)
		}
	}
	return nil
}

// bindTemplates returns a script in which each template is replaced by an argument,
// and the arguments: those of the node plus the values of the templates.
func bindTemplates(text string, nodeArgs any, values []any) (script string, args any, err error) {
	spans, err := codeSpans(text)
	if err != nil {
		return "", nil, err
	}
	list, _ := nodeArgs.([]any)
	object, named := nodeArgs.(map[string]any)
	if named {
		object = maps.Clone(object)
	}
	prefix := "template"
	for strings.Contains(text, prefix) {
		prefix += "_"
	}
	var out strings.Builder
	last := 0
	for i, place := range scriptPlaces(text, spans) {
		start, end, value := spans[i].Start, spans[i].End, values[i]
		if place == isQuoted {
			start, end, value = start-1, end+1, template.Text(value)
		}
		out.WriteString(text[last:start])
		last = end
		if named {
			name := fmt.Sprintf("%s%d", prefix, i+1)
			object[name] = value
			fmt.Fprintf(&out, " args.%s ", name)
			continue
		}
		fmt.Fprintf(&out, " args[%d] ", len(list))
		list = append(slices.Clip(list), value)
	}
	out.WriteString(text[last:])
	if named {
		return out.String(), object, nil
	}
	return out.String(), list, nil
}

// scriptPlace describes where in a script a template stands.
type scriptPlace int

const (
	isValue  scriptPlace = iota // in code or in a comment
	isQuoted                    // a complete string literal
	inQuotes                    // inside a string, template literal or regular expression
	inName                      // part of an identifier, or after a dot
)

// scriptScanner finds where spans stand in JavaScript. It need not parse every
// program correctly: anything it takes for code is replaced by an argument,
// never by a value.
type scriptScanner struct {
	text  string
	spans []sqlsandbox.Span
	at    int
	next  int // the first span not reached yet
	found []scriptPlace
	last  byte   // the last character of code, 0 at the start
	word  string // the word that last belongs to, if any
	depth []int  // brace depth in each open ${ of a template literal
}

func scriptPlaces(text string, spans []sqlsandbox.Span) []scriptPlace {
	s := &scriptScanner{text: text, spans: spans}
	s.code()
	return s.found
}

// span reports whether a span starts here, and returns its end.
func (s *scriptScanner) span() (end int, ok bool) {
	if s.next < len(s.spans) && s.spans[s.next].Start == s.at {
		return s.spans[s.next].End, true
	}
	return 0, false
}

// pass moves past the span that starts here.
func (s *scriptScanner) pass(place scriptPlace) {
	s.at = s.spans[s.next].End
	s.found = append(s.found, place)
	s.next++
}

// code scans to the end of the text.
func (s *scriptScanner) code() {
	for s.at < len(s.text) {
		if end, ok := s.span(); ok {
			s.pass(s.placeInCode(end))
			s.last, s.word = ')', ""
			continue
		}
		char := s.text[s.at]
		switch {
		case strings.HasPrefix(s.text[s.at:], "//"):
			s.skipTo("\n", isValue)
		case strings.HasPrefix(s.text[s.at:], "/*"):
			s.at += 2
			s.skipTo("*/", isValue)
		case char == '"' || char == '\'':
			s.quoted(char)
		case char == '`' || char == '}' && len(s.depth) > 0 && s.depth[len(s.depth)-1] == 0:
			s.literal(char)
		case char == '/' && s.startsRegexp():
			s.pattern()
		default:
			s.plain(char)
		}
	}
}

// plain moves past one character of code.
func (s *scriptScanner) plain(char byte) {
	s.at++
	if n := len(s.depth); n > 0 && char == '{' {
		s.depth[n-1]++
	} else if n > 0 && char == '}' {
		s.depth[n-1]--
	}
	if char == ' ' || char == '\n' || char == '\t' || char == '\r' {
		return
	}
	if !isNameByte(char) {
		s.word = ""
	} else if s.at > 1 && isNameByte(s.text[s.at-2]) {
		s.word += string(rune(char))
	} else {
		s.word = string(rune(char))
	}
	s.last = char
}

func isNameByte(c byte) bool {
	return c == '_' ||
		c == '$' ||
		c == '#' ||
		c >= 0x80 ||
		c >= '0' && c <= '9' ||
		c >= 'a' && c <= 'z' ||
		c >= 'A' && c <= 'Z'
}

// placeInCode classifies a span in code by the characters next to it.
func (s *scriptScanner) placeInCode(end int) scriptPlace {
	before := s.at > 0 && isNameByte(s.text[s.at-1])
	behind := end < len(s.text) && isNameByte(s.text[end])
	dotted := s.last == '.' && !strings.HasSuffix(strings.TrimRight(s.text[:s.at], " \t\r\n"), "...")
	if before || behind || dotted {
		return inName
	}
	return isValue
}

// skipTo moves past the next occurrence of mark. Spans before it are at place.
func (s *scriptScanner) skipTo(mark string, place scriptPlace) {
	for s.at < len(s.text) {
		if _, ok := s.span(); ok {
			s.pass(place)
			continue
		}
		if strings.HasPrefix(s.text[s.at:], mark) {
			s.at += len(mark)
			return
		}
		s.at++
	}
}

// quoted moves past a string literal.
func (s *scriptScanner) quoted(quote byte) {
	s.at++
	if end, ok := s.span(); ok && end < len(s.text) && s.text[end] == quote {
		s.pass(isQuoted)
		s.at++
	} else {
		s.escaped(func(c byte) bool { return c == quote || c == '\n' })
	}
	s.last, s.word = quote, ""
}

// escaped moves past the next character for which ends returns true, skipping
// escaped ones.
func (s *scriptScanner) escaped(ends func(c byte) bool) {
	for s.at < len(s.text) {
		if _, ok := s.span(); ok {
			s.pass(inQuotes)
			continue
		}
		c := s.text[s.at]
		s.at++
		if c == '\\' && s.at < len(s.text) {
			if _, ok := s.span(); !ok {
				s.at++
			}
		} else if ends(c) {
			return
		}
	}
}

// literal moves past a template literal, or to the code in its next ${.
func (s *scriptScanner) literal(begin byte) {
	s.at++
	if begin == '}' {
		s.depth = s.depth[:len(s.depth)-1]
	}
	code := false
	s.escaped(func(c byte) bool {
		code = c == '{' && s.at > 1 && s.text[s.at-2] == '$'
		return code || c == '`'
	})
	s.last, s.word = '`', ""
	if code {
		s.depth = append(s.depth, 0)
		s.last = '{'
	}
}

// startsRegexp reports whether a slash here starts a regular expression rather
// than a division.
func (s *scriptScanner) startsRegexp() bool {
	switch s.word {
	case "return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "do", "await", "yield":
		return true
	}
	return s.word == "" && !strings.ContainsRune(")]}\"'`", rune(s.last))
}

func (s *scriptScanner) pattern() {
	s.at++
	class := false
	s.escaped(func(c byte) bool {
		switch c {
		case '[':
			class = true
		case ']':
			class = false
		}
		return c == '\n' || c == '/' && !class
	})
	s.last, s.word = ')', ""
}
