// Package markup reads HTML as a stream of tags and text.
//
// It produces the same tokens as golang.org/x/net/html, whose tokenizer follows
// the HTML standard (section 13.2.5), except for CDATA, comments and doctypes,
// which it skips. It neither copies the page nor inspects each byte of its
// text, and is therefore several times faster.
package markup

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
)

// Kind is the kind of token that Next found.
type Kind int

// The kinds of tokens.
const (
	End      Kind = iota // end of the page; an unfinished tag is dropped
	Text                 // text between two tags, in one or several tokens
	StartTag             // self-closing or not
	EndTag
)

// Reader reads one page. Results may be slices of the page, which must not
// change in the meantime.
type Reader struct {
	page []byte
	at   int    // where Next continues
	raw  string // name of the enclosing element with text-only content, or ""

	text     []byte
	verbatim bool // the text has no character references
	rawText  bool // the text is the content of a raw element

	name  []byte
	attrs []attr
	next  int // index into attrs
}

type attr struct{ key, value []byte }

// New returns a Reader of a page, which should be UTF-8.
func New(page []byte) *Reader { return &Reader{page: page} }

// Next moves to the next tag or text.
func (r *Reader) Next() Kind {
	if r.raw != "" && r.rawContent() {
		return Text
	}
	for start := r.at; ; {
		at := bytes.IndexByte(r.page[r.at:], '<')
		if at < 0 || r.at+at+1 == len(r.page) {
			r.at = len(r.page)
			return r.textToken(start, r.at)
		}
		at += r.at
		c := r.page[at+1]
		if !isLetter(c) && c != '/' && c != '!' && c != '?' {
			r.at = at + 1
			continue
		}
		if at > start {
			r.at = at
			return r.textToken(start, at)
		}
		if kind, ok := r.markup(at, c); ok {
			return kind
		}
		start = r.at
	}
}

// textToken returns the text between two offsets, or End if there is none.
func (r *Reader) textToken(start, end int) Kind {
	r.text, r.verbatim, r.rawText = r.page[start:end], false, false
	if start == end {
		return End
	}
	return Text
}

// markup reads the token that starts at an offset with "<" and char. It returns
// false if there is nothing to report.
func (r *Reader) markup(at int, char byte) (Kind, bool) {
	r.at = at + 2
	switch {
	case isLetter(char):
		r.at = at + 1
		if !r.tag() {
			r.at = len(r.page)
			return End, true
		}
		r.raw = rawElements[string(r.name)]
		return StartTag, true
	case char != '/':
		r.skipDeclaration(char)
	case r.at == len(r.page):
		return r.textToken(at, r.at), true
	case isLetter(r.page[r.at]):
		if !r.tag() {
			r.at = len(r.page)
			return End, true
		}
		r.attrs = r.attrs[:0]
		return EndTag, true
	default:
		r.skipPast('>')
	}
	return End, false
}

// skipPast moves past the next c.
func (r *Reader) skipPast(c byte) {
	if n := bytes.IndexByte(r.page[r.at:], c); n >= 0 {
		r.at += n + 1
	} else {
		r.at = len(r.page)
	}
}

// skipDeclaration skips a comment, a doctype or similar markup.
func (r *Reader) skipDeclaration(c byte) {
	if c == '!' && bytes.HasPrefix(r.page[r.at:], []byte("--")) {
		r.at += 2
		r.skipComment()
	} else {
		r.skipPast('>')
	}
}

// skipComment skips a comment, which ends with "-->" or "--!>", or right after
// its start with ">" or "->".
func (r *Reader) skipComment() {
	dashes, beginning := 0, true
	for r.at < len(r.page) {
		if dashes == 0 && !beginning {
			if r.skipPast('-'); r.at == len(r.page) {
				return
			}
			r.at--
		}
		char := r.page[r.at]
		r.at++
		switch {
		case char == '-':
			dashes++
			continue
		case char == '>' && (dashes >= 2 || beginning):
			return
		case char == '!' && dashes >= 2 && r.at < len(r.page):
			char = r.page[r.at]
			r.at++
			if char == '>' {
				return
			}
			if char == '-' {
				dashes, beginning = 1, false
				continue
			}
		}
		dashes, beginning = 0, false
	}
}

// Text returns the text with character references resolved and line breaks
// normalized to line feeds.
func (r *Reader) Text() []byte {
	text := r.text
	if bytes.IndexByte(text, '\r') >= 0 {
		text = lineFeeds(text)
	}
	if r.rawText && bytes.IndexByte(text, 0) >= 0 {
		text = bytes.ReplaceAll(text, []byte{0}, []byte("\uFFFD"))
	}
	if !r.verbatim && bytes.IndexByte(text, '&') >= 0 {
		text = []byte(html.UnescapeString(string(text)))
	}
	return text
}

func lineFeeds(text []byte) []byte {
	return bytes.ReplaceAll(
		bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")),
		[]byte("\r"),
		[]byte("\n"),
	)
}

// Name returns the name of the tag in lower case.
func (r *Reader) Name() []byte { return r.name }

// Attr returns the next attribute of a start tag: its name in lower case and
// its value with character references resolved. ok is false if there are no
// more. Each name is returned once, with its first value.
func (r *Reader) Attr() (key, value []byte, ok bool) {
	if r.next >= len(r.attrs) {
		return nil, nil, false
	}
	a := r.attrs[r.next]
	r.next++
	return toLower(a.key), resolveReferences(a.value), true
}

// resolveReferences returns an attribute's value with character references resolved.
// Attributes have their own rules for these, which the html package does not
// export.
func resolveReferences(value []byte) []byte {
	if bytes.IndexByte(value, '&') < 0 &&
		bytes.IndexByte(value, '\r') < 0 &&
		bytes.IndexByte(value, 0) < 0 {
		return value
	}
	quote := `"`
	if bytes.IndexByte(value, '"') >= 0 {
		quote = "'"
		if bytes.IndexByte(value, '\'') >= 0 {
			quote = "" // the value was not quoted
		}
	}
	z := html.NewTokenizer(strings.NewReader("<a b=" + quote + string(value) + quote + ">"))
	z.Next()
	_, value, _ = z.TagAttr()
	return value
}

// toLower returns a name in lower case.
func toLower(name []byte) []byte {
	for _, c := range name {
		if 'A' <= c && c <= 'Z' || c == 0 {
			return bytes.ReplaceAll(lower(name), []byte{0}, []byte("\uFFFD"))
		}
	}
	return name
}

// lower copies a name in lower case, changing only ASCII letters.
func lower(name []byte) []byte {
	low := bytes.Clone(name)
	for i, c := range low {
		if 'A' <= c && c <= 'Z' {
			low[i] = c + 'a' - 'A'
		}
	}
	return low
}

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f'
}
