package sqlsandbox

import "strings"

// tokenKind is a kind of SQL token, as far as the sandbox distinguishes them.
type tokenKind uint8

const (
	tokenWord   tokenKind = iota // a bare name or keyword
	tokenName                    // a name in "", `` or []
	tokenString                  // a string in ''
	tokenParam                   // ?, ?1, :a, @a, $a
	tokenOther                   // a number, blob or operator
	tokenBad                     // not valid in SQLite either
)

// token is an SQL token and its place in the text.
type token struct {
	kind       tokenKind
	start, end int
}

// tokenizer splits SQL into tokens as SQLite's own tokenizer does, see
// https://www.sqlite.org/src/file/src/tokenize.c: comments do not nest and may be
// unterminated; a string or name without its closing quote is not a token.
type tokenizer struct {
	text string
	at   int
}

// next returns the next token; ok is false at the end of the text.
func (t *tokenizer) next() (tok token, ok bool) {
	t.skip()
	if t.at >= len(t.text) {
		return token{}, false
	}
	start := t.at
	kind := t.scan()
	return token{kind, start, t.at}, true
}

// peek returns the byte i places ahead, or 0 past the end.
func (t *tokenizer) peek(i int) byte {
	if t.at+i < len(t.text) {
		return t.text[t.at+i]
	}
	return 0
}

// byteOrderMark counts as a space wherever a token may begin.
const byteOrderMark = "\ufeff"

// skip moves past spaces and comments.
func (t *tokenizer) skip() {
	for t.at < len(t.text) {
		rest := t.text[t.at:]
		switch {
		case isSpace(rest[0]):
			t.at++
		case strings.HasPrefix(rest, byteOrderMark):
			t.at += len(byteOrderMark)
		case strings.HasPrefix(rest, "--"):
			t.advance(strings.IndexByte(rest, '\n'), 1)
		case strings.HasPrefix(rest, "/*") && len(rest) > 2:
			end := strings.Index(rest[2:], "*/")
			if end >= 0 {
				end += 2
			}
			t.advance(end, 2)
		default:
			return
		}
	}
}

// advance moves n bytes ahead and past a mark of the given size; n < 0 means that the mark is
// missing, and moves to the end.
func (t *tokenizer) advance(n, size int) {
	if n < 0 {
		t.at = len(t.text)
		return
	}
	t.at += n + size
}

// scan moves past one token.
func (t *tokenizer) scan() tokenKind {
	char := t.text[t.at]
	switch {
	case char == '\'':
		return t.quoted('\'', tokenString)
	case char == '"' || char == '`':
		return t.quoted(char, tokenName)
	case char == '[':
		return t.bracketed()
	case (char == 'x' || char == 'X') && t.peek(1) == '\'':
		t.at++
		return t.quoted('\'', tokenOther)
	case isDigit(char) || char == '.' && isDigit(t.peek(1)):
		return t.number()
	case char == '?':
		t.at++
		t.while(isDigit)
		return tokenParam
	case char == '$' || char == '@' || char == ':' || char == '#':
		return t.param()
	case isNameByte(char):
		t.while(isNameByte)
		return tokenWord
	case strings.IndexByte("-(),;+*/=<>|&~.!%", char) >= 0:
		return t.operator()
	}
	t.at++
	return tokenBad
}

func (t *tokenizer) while(in func(byte) bool) {
	for t.at < len(t.text) && in(t.text[t.at]) {
		t.at++
	}
}

// quoted moves past a quoted token, in which a doubled quote stands for one.
func (t *tokenizer) quoted(quote byte, kind tokenKind) tokenKind {
	for t.at++; t.at < len(t.text); t.at++ {
		if t.text[t.at] != quote {
			continue
		}
		if t.peek(1) != quote {
			t.at++
			return kind
		}
		t.at++
	}
	return tokenBad
}

func (t *tokenizer) bracketed() tokenKind {
	end := strings.IndexByte(t.text[t.at:], ']')
	t.advance(end, 1)
	if end < 0 {
		return tokenBad
	}
	return tokenName
}

// number moves past a number, including digit separators. It accepts a little more than
// SQLite, which then rejects the number.
func (t *tokenizer) number() tokenKind {
	hex := t.text[t.at] == '0' && (t.peek(1) == 'x' || t.peek(1) == 'X')
	for t.at < len(t.text) {
		c := t.text[t.at]
		sign := (c == '+' || c == '-') &&
			!hex &&
			(t.text[t.at-1] == 'e' || t.text[t.at-1] == 'E') &&
			isDigit(t.peek(1))
		if !isNameByte(c) && c != '.' && !sign {
			break
		}
		t.at++
	}
	return tokenOther
}

// param moves past a named parameter, such as :name or Tcl's $a::b(char).
func (t *tokenizer) param() tokenKind {
	letters := 0
	for t.at++; t.at < len(t.text); t.at++ {
		switch char := t.text[t.at]; {
		case isNameByte(char):
			letters++
		case char == '(' && letters > 0:
			t.while(func(c byte) bool {
				return !isSpace(c) && c != ')'
			})
			if t.peek(0) != ')' {
				return tokenBad
			}
			t.at++
			return tokenParam
		case char == ':' && t.peek(1) == ':':
			t.at++
		case letters == 0:
			return tokenBad
		default:
			return tokenParam
		}
	}
	if letters == 0 {
		return tokenBad
	}
	return tokenParam
}

func (t *tokenizer) operator() tokenKind {
	for _, op := range [...]string{"->>", "->", "||", "<=", "<>", "<<", ">=", ">>", "==", "!="} {
		if strings.HasPrefix(t.text[t.at:], op) {
			t.at += len(op)
			return tokenOther
		}
	}
	t.at++
	return tokenOther
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isNameByte reports whether c may be part of a name, as may every byte of a non-ASCII
// character.
func isNameByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// unquote returns what a token names: a word as it is, a quoted name or string
// without its quotes, in lower case, which is how SQLite compares names.
func unquote(text string) string {
	if text == "" {
		return ""
	}
	switch q := text[0]; q {
	case '[':
		text = text[1 : len(text)-1]
	case '\'', '"', '`':
		text = strings.ReplaceAll(
			text[1:len(text)-1],
			string([]byte{q, q}),
			string(rune(q)),
		)
	}
	return lowerASCII(text)
}

// lowerASCII lowers only A to Z, as SQLite does when it compares names.
func lowerASCII(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= 'A' && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
