package egress

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unit is one character of a pattern, or one byte that is not valid UTF-8.
type unit struct {
	text string // its bytes
	char rune   // -1 for a byte that is no character
}

// unitsOf splits a text into units. Backslashes in sequence are one, since their number
// differs in escaped texts.
func unitsOf(text string) (units []unit) {
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			r = -1
		}
		if r != '\\' || len(units) == 0 || units[len(units)-1].char != '\\' {
			units = append(units, unit{text[:size], r})
		}
		text = text[size:]
	}
	return units
}

// bytesOf splits a text into units of one byte.
func bytesOf(text string) []unit {
	units := make([]unit, len(text))
	for i := range len(text) {
		units[i] = unit{text[i : i+1], -1}
	}
	return units
}

// isLatin1 reports whether a unit has more than one byte in UTF-8 and one in ISO 8859-1.
func (u unit) isLatin1() bool { return 0x80 <= u.char && u.char < 0x100 }

// firsts returns the bytes with which the unit may begin.
func (u unit) firsts() []byte {
	all := []byte{u.text[0], '%', '\\', '&'}
	if u.char == ' ' {
		all = append(all, '+')
	}
	if u.isLatin1() {
		all = append(all, byte(u.char))
	}
	return all
}

// spellings adds where the unit ends in a text, for each way of writing it that stands at
// a place. cut reports that the text ends within one.
func (u unit) spellings(text []byte, at int, ends *places) (cut bool) {
	rest := text[at:]
	if u.char == '\\' {
		return addBackslashes(text, at, ends)
	}
	add := func(size int, unfinished bool) {
		cut = cut || unfinished
		if size > 0 {
			ends.add(at + size)
		}
	}
	switch rest[0] {
	case '%':
		add(u.percent(rest))
	case '\\':
		add(u.backslash(rest))
	case '&':
		add(u.entity(rest, 1))
	}
	switch {
	case bytes.HasPrefix(rest, []byte(u.text)):
		add(len(u.text), false)
	case len(rest) < len(u.text) && string(rest) == u.text[:len(rest)]:
		cut = true
	case rest[0] == '+' && u.char == ' ', u.isLatin1() && rest[0] == byte(u.char):
		add(1, false)
	}
	return cut
}

// addBackslashes adds where backslashes in any spelling end. The last may belong to an
// escape that follows.
func addBackslashes(text []byte, at int, ends *places) (cut bool) {
	one := unit{"\\", '\\'}
	end := at
	for count := 0; end < len(text) && count < maxRun; count++ {
		size, unfinished := 0, false
		switch text[end] {
		case '%':
			size, unfinished = one.percent(text[end:])
		case '&':
			size, unfinished = one.entity(text[end:], 1)
		case '\\':
			if size, unfinished = one.unicodeEscape(text, end+2); size > 0 && text[end+1] == 'u' {
				size -= end
			} else {
				size = 1
			}
		}
		if unfinished {
			cut = true
		}
		if size == 0 {
			break
		}
		end += size
	}
	if end == at {
		return cut
	}
	ends.add(end)
	if text[end-1] == '\\' && end-1 > at {
		ends.add(end - 1)
	}
	return cut || end == len(text)
}

// percent returns the length of the unit in percent-encoding, also if that was encoded
// again; 0 if it does not stand there.
func (u unit) percent(rest []byte) (size int, cut bool) {
	for i := range len(u.text) {
		if size == len(rest) {
			return 0, true
		}
		if rest[size] != '%' {
			return 0, false
		}
		size++
		for range 2 {
			if u.text[i] != '%' && bytes.HasPrefix(rest[size:], []byte("25")) {
				size += 2
			}
		}
		if u.text[i] == '%' {
			if bytes.HasPrefix(rest[size:], []byte("2525")) {
				size += 2
			}
			cut = cut || strings.HasPrefix("252", string(rest[size:]))
		}
		value, unfinished, ok := digits(rest[size:], 2)
		if !ok || value != rune(u.text[i]) && !(u.char == ' ' && value == '+') {
			return 0, unfinished
		}
		size += 2
	}
	return size, cut
}

// digits reads a number of n hexadecimal digits.
func digits(text []byte, n int) (value rune, cut, ok bool) {
	for i := range n {
		if i == len(text) {
			return 0, true, false
		}
		digit := strings.IndexByte("0123456789abcdef", text[i]|0x20)
		if digit < 0 {
			return 0, false, false
		}
		value = value<<4 | rune(digit)
	}
	return value, false, true
}

const (
	maxBackslashes = 8  // before an escape, in JSON that contains JSON
	maxEntity      = 12 // bytes of a reference in HTML
)

// backslash returns the length of the unit as escaped in JSON or JavaScript, also if
// that was escaped again; 0 if it does not stand there.
func (u unit) backslash(rest []byte) (size int, cut bool) {
	for size < len(rest) && rest[size] == '\\' && size < maxBackslashes {
		size++
	}
	if size == len(rest) {
		return 0, true
	}
	escaped := rest[size]
	switch {
	case escaped == 'u' && bytes.HasPrefix(rest[size+1:], []byte("0026")): // of HTML in JSON
		if length, unfinished := u.entity(rest, size+5); length > 0 || unfinished {
			return length, unfinished
		}
		return u.unicodeEscape(rest, size+1)
	case escaped == 'u':
		return u.unicodeEscape(rest, size+1)
	case escaped == 'x' && u.char >= 0:
		value, unfinished, ok := digits(rest[size+1:], 2)
		if ok && value == u.char {
			return size + 3, false
		}
		return 0, unfinished
	case rune(escaped) == u.char && !isAlphanumeric(escaped):
		return size + 1, false
	}
	return 0, false
}

func isAlphanumeric(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'z'
}

// unicodeEscape reads the digits of one or, of a surrogate pair, two escapes.
func (u unit) unicodeEscape(rest []byte, at int) (size int, cut bool) {
	if u.char < 0 || at > len(rest) {
		return 0, false
	}
	for i, half := range utf16.Encode([]rune{u.char}) {
		if i > 0 {
			for most := at + maxBackslashes; at < min(most, len(rest)) && rest[at] == '\\'; {
				at++
			}
			if at == len(rest) {
				return 0, true
			}
			if rest[at] != 'u' {
				return 0, false
			}
			at++
		}
		value, unfinished, ok := digits(rest[at:], 4)
		if !ok || value != rune(half) {
			return 0, unfinished
		}
		at += 4
	}
	return at, false
}

// entities are the names of characters in HTML that are not letters.
var entities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\'', "plus": '+', "sol": '/', "bsol": '\\',
	"equals": '=', "colon": ':', "semi": ';', "comma": ',', "period": '.', "lowbar": '_', "num": '#', "dollar": '$', "percnt": '%',
	"excl": '!', "quest": '?', "commat": '@', "ast": '*', "lpar": '(', "rpar": ')', "lsqb": '[', "rsqb": ']', "lcub": '{', "rcub": '}',
	"vert": '|', "grave": '`', "Hat": '^', "nbsp": ' '}

// entity returns the length of the unit as a character reference of HTML, whose name
// begins at start, also if that was escaped again; 0 if it does not stand there.
func (u unit) entity(rest []byte, start int) (size int, cut bool) {
	size = start
	for bytes.HasPrefix(rest[size:], []byte("amp;")) && size < start+3*4 {
		size += 4
	}
	end := 0
	for size+end < len(rest) && end < maxEntity && (rest[size+end] == '#' || isAlphanumeric(rest[size+end])) {
		end++
	}
	if size+end == len(rest) {
		return 0, true
	}
	if rest[size+end] != ';' {
		end = 0
	}
	name := string(rest[size : size+end])
	value, known := entities[name]
	if number, ok := bytes.CutPrefix([]byte(name), []byte("#")); ok {
		base := 10
		if len(number) > 1 && number[0]|0x20 == 'x' {
			number, base = number[1:], 16
		}
		v, err := strconv.ParseInt(string(number), base, 32)
		value, known = rune(v), err == nil
	}
	switch {
	case known && value == u.char:
		return size + end + 1, false
	case u.char == '&' && size > start:
		return size, false
	}
	return 0, false
}
