package document

import (
	"bytes"
	"strconv"
	"strings"
)

// pdfLexer reads the tokens of content streams and CMaps (ISO 32000-1, section
// 7.2). It accepts any input.
type pdfLexer struct {
	data []byte
	pos  int
}

type pdfTokenKind uint8

const (
	pdfEnd pdfTokenKind = iota
	pdfNumber
	pdfString
	pdfName
	pdfWord // an operator
	pdfOpen // of an array or a dictionary
	pdfClose
)

type pdfToken struct {
	kind   pdfTokenKind
	number float64
	text   string // bytes of a string, a name without its slash, a word
	array  []pdfToken
}

func isPDFSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func isPDFDelimiter(c byte) bool { return strings.IndexByte("()<>[]{}/%", c) >= 0 }

func (l *pdfLexer) next() pdfToken {
	l.space()
	if l.pos >= len(l.data) {
		return pdfToken{kind: pdfEnd}
	}
	char := l.data[l.pos]
	switch {
	case char == '(':
		return l.literal()
	case char == '/':
		l.pos++
		return pdfToken{kind: pdfName, text: unescapeName(l.regular())}
	case char == '<' && l.peek(1) == '<', char == '>' && l.peek(1) == '>':
		l.pos += 2
		return bracket(char == '<')
	case char == '<':
		return l.hex()
	case char == '[' || char == '{':
		l.pos++
		return bracket(true)
	case isPDFDelimiter(char):
		l.pos++
		return bracket(false)
	}
	word := l.regular()
	if char == '+' || char == '-' || char == '.' || char >= '0' && char <= '9' {
		return pdfToken{kind: pdfNumber, number: parseNumber(word)}
	}
	return pdfToken{kind: pdfWord, text: word}
}

func bracket(open bool) pdfToken {
	if open {
		return pdfToken{kind: pdfOpen}
	}
	return pdfToken{kind: pdfClose}
}

func (l *pdfLexer) peek(n int) byte {
	if l.pos+n < len(l.data) {
		return l.data[l.pos+n]
	}
	return 0
}

// space skips white space and comments.
func (l *pdfLexer) space() {
	for l.pos < len(l.data) {
		switch c := l.data[l.pos]; {
		case isPDFSpace(c):
			l.pos++
		case c == '%':
			for l.pos < len(l.data) &&
				l.data[l.pos] != '\n' &&
				l.data[l.pos] != '\r' {
				l.pos++
			}
		default:
			return
		}
	}
}

func (l *pdfLexer) regular() string {
	start := l.pos
	for l.pos < len(l.data) &&
		!isPDFSpace(l.data[l.pos]) &&
		!isPDFDelimiter(l.data[l.pos]) {
		l.pos++
	}
	return string(l.data[start:l.pos])
}

// parseNumber parses a number as viewers do: "--5" is -5, "1.2.3" is 1.2.
func parseNumber(text string) float64 {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > -1e9 && n < 1e9 {
		return n
	}
	negative := strings.HasPrefix(text, "-")
	text = strings.TrimLeft(text, "+-")
	end := 0
	for dot := false; end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == '.' && !dot); end++ {
		dot = dot || text[end] == '.'
	}
	n, err := strconv.ParseFloat(text[:end], 64)
	if err != nil || n >= 1e9 {
		return 0
	}
	if negative {
		return -n
	}
	return n
}

func unescapeName(text string) string {
	if strings.IndexByte(text, '#') < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '#' && i+2 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func (l *pdfLexer) hex() pdfToken {
	var out []byte
	high, half := byte(0), false
	for l.pos++; l.pos < len(l.data) && l.data[l.pos] != '>'; l.pos++ {
		digit := hexDigit(l.data[l.pos])
		switch {
		case digit > 15:
		case half:
			out, half = append(out, high|digit), false
		default:
			high, half = digit<<4, true
		}
	}
	l.pos = min(l.pos+1, len(l.data))
	if half {
		out = append(out, high)
	}
	return pdfToken{kind: pdfString, text: string(out)}
}

// hexDigit returns the value of a hex digit, or 255.
func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// literal reads a string in parentheses.
func (l *pdfLexer) literal() pdfToken {
	var out []byte
	depth := 1
	for l.pos++; l.pos < len(l.data); l.pos++ {
		c := l.data[l.pos]
		switch c {
		case '\\':
			l.pos++
			out = l.escape(out)
			continue
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				l.pos++
				return pdfToken{kind: pdfString, text: string(out)}
			}
		}
		out = append(out, c)
	}
	return pdfToken{kind: pdfString, text: string(out)}
}

// escape reads an escape sequence after its backslash.
func (l *pdfLexer) escape(out []byte) []byte {
	char := l.peek(0)
	if i := strings.IndexByte("nrtbf", char); i >= 0 {
		return append(out, "\n\r\t\b\f"[i])
	}
	switch {
	case char == '\r' && l.peek(1) == '\n':
		l.pos++
		return out
	case char == '\r' || char == '\n':
		return out
	case char < '0' || char > '7':
		return append(out, char)
	}
	n := 0
	for digits := 0; digits < 3 && l.peek(0) >= '0' && l.peek(0) <= '7'; digits++ {
		n = n*8 + int(l.peek(0)-'0')
		l.pos++
	}
	l.pos--
	return append(out, byte(n))
}

// image skips the data of an inline image, from its ID operator to its EI.
func (l *pdfLexer) image() {
	for {
		i := bytes.Index(l.data[l.pos:], []byte("EI"))
		if i < 0 {
			l.pos = len(l.data)
			return
		}
		l.pos += i + 2
		before := l.pos < 3 || isPDFSpace(l.data[l.pos-3])
		if before && (l.pos >= len(l.data) || isPDFSpace(l.data[l.pos])) {
			return
		}
	}
}
