// Package markup reads HTML as a stream of tags and texts.
//
// It finds the same ones as the tokenizer of golang.org/x/net/html, which is
// that of the HTML standard (section 13.2.5), but for CDATA, comments and
// doctypes, which it passes over. It neither copies the page nor looks at each
// byte of its text, and so takes a fraction of the time.
package markup

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
)

// Kind is the kind of what Next found.
type Kind int

// The kinds.
const (
	End      Kind = iota // of the page; a tag that it cuts is left out
	Text                 // what is between two tags, in one piece or several
	StartTag             // self-closing or not
	EndTag
)

// Reader reads one page. What it returns may be pieces of the page, which must
// not change meanwhile.
type Reader struct {
	page []byte
	at   int    // where Next begins
	raw  string // name of the element whose content is text only, "" outside of one

	text     []byte
	verbatim bool // text has no character references
	rawText  bool // text is what a raw element holds

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
			return r.found(start, r.at)
		}
		at += r.at
		c := r.page[at+1]
		if !letter(c) && c != '/' && c != '!' && c != '?' {
			r.at = at + 1
			continue
		}
		if at > start {
			r.at = at
			return r.found(start, at)
		}
		if kind, ok := r.markup(at, c); ok {
			return kind
		}
		start = r.at
	}
}

// found is a text between two places; without one the page has ended.
func (r *Reader) found(start, end int) Kind {
	r.text, r.verbatim, r.rawText = r.page[start:end], false, false
	if start == end {
		return End
	}
	return Text
}

// markup reads what begins at a place with "<" and c. It is false when that is
// nothing to report.
func (r *Reader) markup(at int, c byte) (Kind, bool) {
	r.at = at + 2
	switch {
	case letter(c):
		r.at = at + 1
		if !r.tag() {
			r.at = len(r.page)
			return End, true
		}
		r.raw = rawElements[string(r.name)]
		return StartTag, true
	case c != '/':
		r.skipDeclaration(c)
	case r.at == len(r.page):
		return r.found(at, r.at), true
	case letter(r.page[r.at]):
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

// skipPast moves behind the next c.
func (r *Reader) skipPast(c byte) {
	if n := bytes.IndexByte(r.page[r.at:], c); n >= 0 {
		r.at += n + 1
	} else {
		r.at = len(r.page)
	}
}

// skipDeclaration passes over a comment, a doctype and the like.
func (r *Reader) skipDeclaration(c byte) {
	if c == '!' && bytes.HasPrefix(r.page[r.at:], []byte("--")) {
		r.at += 2
		r.skipComment()
	} else {
		r.skipPast('>')
	}
}

// skipComment passes over a comment, which ends with "-->" or "--!>", or right
// where it began, with ">" or "->".
func (r *Reader) skipComment() {
	dashes, beginning := 0, true
	for r.at < len(r.page) {
		if dashes == 0 && !beginning {
			if r.skipPast('-'); r.at == len(r.page) {
				return
			}
			r.at--
		}
		c := r.page[r.at]
		r.at++
		switch {
		case c == '-':
			dashes++
			continue
		case c == '>' && (dashes >= 2 || beginning):
			return
		case c == '!' && dashes >= 2 && r.at < len(r.page):
			c = r.page[r.at]
			r.at++
			if c == '>' {
				return
			}
			if c == '-' {
				dashes, beginning = 1, false
				continue
			}
		}
		dashes, beginning = 0, false
	}
}

// Text is the text with its character references resolved and its line breaks
// made line feeds.
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
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
}

// Name is the name of the tag in lower case.
func (r *Reader) Name() []byte { return r.name }

// Attr returns the next attribute of a start tag: its name in lower case and
// its value with character references resolved. ok is false when there are no
// more. Each name comes once, with its first value.
func (r *Reader) Attr() (key, value []byte, ok bool) {
	if r.next >= len(r.attrs) {
		return nil, nil, false
	}
	a := r.attrs[r.next]
	r.next++
	return lowered(a.key), resolved(a.value), true
}

// resolved is a value of an attribute without character references. Those in
// attributes follow rules of their own, which the html package keeps to itself.
func resolved(value []byte) []byte {
	if bytes.IndexByte(value, '&') < 0 && bytes.IndexByte(value, '\r') < 0 && bytes.IndexByte(value, 0) < 0 {
		return value
	}
	quote := `"`
	if bytes.IndexByte(value, '"') >= 0 {
		quote = "'"
		if bytes.IndexByte(value, '\'') >= 0 {
			quote = "" // it stood without
		}
	}
	z := html.NewTokenizer(strings.NewReader("<a b=" + quote + string(value) + quote + ">"))
	z.Next()
	_, value, _ = z.TagAttr()
	return value
}

// lowered is a name in lower case.
func lowered(name []byte) []byte {
	for _, c := range name {
		if 'A' <= c && c <= 'Z' || c == 0 {
			return bytes.ReplaceAll(lower(name), []byte{0}, []byte("\uFFFD"))
		}
	}
	return name
}

// lower copies a name in lower case: only letters of ASCII have another.
func lower(name []byte) []byte {
	low := bytes.Clone(name)
	for i, c := range low {
		if 'A' <= c && c <= 'Z' {
			low[i] = c + 'a' - 'A'
		}
	}
	return low
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' }
