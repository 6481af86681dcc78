package egress

import (
	"bytes"
	"html"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxSpellings   = 8  // of one place
	maxLevels      = 3  // times that a character was encoded
	maxBackslashes = 8  // before an escape, in JSON that contains JSON
	maxEntity      = 12 // bytes of a reference in HTML
)

// notChar is added to a byte that is no character in UTF-8.
const notChar = utf8.MaxRune + 1

// charsOf splits a text into characters. Backslashes in sequence are one, since their
// number differs in escaped texts.
func charsOf(text string) (chars []rune) {
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			r = notChar + rune(text[0])
		}
		chars, text = append(chars, r), text[size:]
	}
	return slices.CompactFunc(chars, func(a, b rune) bool {
		return a == '\\' && b == '\\'
	})
}

// bytesOf returns the bytes of a text.
func bytesOf(text string) []rune {
	all := make([]rune, len(text))
	for i := range all {
		all[i] = rune(text[i])
	}
	return all
}

// special has the bytes that may stand for something else than themselves.
var special = `%\&+` + anyByte[utf8.RuneSelf:]

// plain reports whether a byte stands for itself only.
func plain(b byte) bool {
	return b < utf8.RuneSelf && b != '%' && b != '\\' && b != '&' && b != '+'
}

// spellings are the characters for which the bytes at a place of a text may stand.
type spellings struct {
	text []byte
	list [maxSpellings]struct {
		char rune
		end  int // of its spelling
	}
	n   int
	cut bool // the text ends within one
}

func (s *spellings) add(char rune, end int) {
	if s.n < maxSpellings {
		s.list[s.n].char, s.list[s.n].end = char, end
		s.n++
	}
}

// read returns the spellings at a place.
func read(text []byte, at int) spellings {
	s := spellings{text: text}
	switch text[at] {
	case '%':
		s.percent(at)
	case '\\':
		s.escape(at)
	case '&':
		s.entity(at + 1)
	case '+':
		s.add(' ', at+1)
	}
	if r, size := utf8.DecodeRune(text[at:]); r != utf8.RuneError || size > 1 {
		s.add(r, at+size)
	}
	if b := rune(text[at]); b >= 0x80 { // also a byte of UTF-16, or a character of ISO 8859-1
		s.cut = !utf8.FullRune(text[at:])
		s.add(b, at+1)
		s.add(notChar+b, at+1)
	}
	return s
}

// hex reads a number of n hexadecimal digits.
func (s *spellings) hex(at, n int) (value rune, end int, ok bool) {
	for ; n > 0; n-- {
		if at >= len(s.text) {
			s.cut = true
			return 0, 0, false
		}
		digit := strings.IndexByte("0123456789abcdef", s.text[at]|0x20)
		if digit < 0 {
			return 0, 0, false
		}
		value, at = value<<4|rune(digit), at+1
	}
	return value, at, true
}

// percent adds what a percent-encoding stands for, also if that was encoded again.
func (s *spellings) percent(at int) {
	for _, prefix := range []string{"%", "%25", "%2525"} {
		var char []byte
		for end := at; len(char) == 0 || !utf8.FullRune(char); {
			if rest := string(s.text[end:min(end+len(prefix), len(s.text))]); rest != prefix {
				s.cut = s.cut || strings.HasPrefix(prefix, rest)
				break
			}
			value, to, ok := s.hex(end+len(prefix), 2)
			if !ok {
				break
			}
			end, char = to, append(char, byte(value))
			switch r, size := utf8.DecodeRune(char); {
			case size > 1:
				s.add(r, end)
			case value == '+':
				s.add(' ', end)
			case len(char) == 1 && value >= utf8.RuneSelf:
				s.add(notChar+value, end)
			}
			if len(char) == 1 {
				s.add(value, end)
			}
		}
	}
}

// escape adds what an escape of JSON or JavaScript stands for, also if that was escaped
// again.
func (s *spellings) escape(at int) {
	most := min(at+maxBackslashes, len(s.text))
	for at < most && s.text[at] == '\\' {
		at++
	}
	if at == len(s.text) {
		s.cut = true
		return
	}
	switch octet := s.text[at]; {
	case octet == 'u':
		if char, end, ok := s.unit(at + 1); ok {
			s.add(char, end)
			if char == '&' { // of HTML in JSON
				s.entity(end)
			}
		}
	case octet == 'x':
		if char, end, ok := s.hex(at+1, 2); ok {
			s.add(char, end)
		}
	case strings.IndexByte("nrt", octet) >= 0: // in keys of several lines
		s.add(rune("\n\r\t"[strings.IndexByte("nrt", octet)]), at+1)
	case octet < 0x80 && !isAlphanumeric(octet):
		s.add(rune(octet), at+1)
	}
}

func isAlphanumeric(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'z'
}

// unit reads the digits of one or, of a surrogate pair, two escapes.
func (s *spellings) unit(at int) (char rune, end int, ok bool) {
	char, at, ok = s.hex(at, 4)
	if !ok || !utf16.IsSurrogate(char) {
		return char, at, ok
	}
	for most := min(at+maxBackslashes, len(s.text)); at < most && s.text[at] == '\\'; {
		at++
	}
	if at < len(s.text) && s.text[at] != 'u' {
		return 0, 0, false
	}
	low, end, ok := s.hex(at+1, 4)
	return utf16.DecodeRune(char, low), end, ok
}

// entity adds what a character reference of HTML stands for, whose name begins at a place,
// also if that was escaped again.
func (s *spellings) entity(at int) {
	for level := 0; level < maxLevels && bytes.HasPrefix(s.text[at:], []byte("amp;")); level++ {
		at += len("amp;")
		s.add('&', at)
	}
	end := at
	for end < len(s.text) &&
		end-at < maxEntity &&
		(s.text[end] == '#' || isAlphanumeric(s.text[end])) {
		end++
	}
	if end == len(s.text) {
		s.cut = true
		return
	}
	if s.text[end] != ';' {
		return
	}
	chars := []rune(html.UnescapeString("&" + string(s.text[at:end+1])))
	switch {
	case len(chars) != 1: // there is no character of this name
	case chars[0] == '\u00A0':
		s.add(' ', end+1)
		fallthrough
	default:
		s.add(chars[0], end+1)
	}
}
