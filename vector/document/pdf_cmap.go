package document

import (
	"strings"
	"unicode/utf16"
)

// pdfCMap is a font's mapping of codes to text (ISO 32000-1, section 9.10.3).
type pdfCMap struct {
	text   map[string]string // by the bytes of a code
	spaces []pdfCodeSpace
	steps  int // entries that were read, repeated ones included
}

// pdfCodeSpace is a range of codes of one length.
type pdfCodeSpace struct{ low, high string }

// Limits on one CMap: its entries, and the bytes of text of each.
const (
	maxCMap   = 1 << 17
	maxMapped = 64
)

// lookup returns the text of a code. A nil CMap has none.
func (m *pdfCMap) lookup(code string) (string, bool) {
	if m == nil {
		return "", false
	}
	text, ok := m.text[code]
	return text, ok
}

// length returns the length of the first code in raw.
func (m *pdfCMap) length(raw string) int {
	for n := 1; n <= min(4, len(raw)); n++ {
		for _, s := range m.spaces {
			if len(s.low) == n && within(raw[:n], s) {
				return n
			}
		}
	}
	return min(2, len(raw))
}

// within reports whether each byte of a code is in its range.
func within(code string, s pdfCodeSpace) bool {
	for i := range len(code) {
		if code[i] < s.low[i] || code[i] > s.high[i] {
			return false
		}
	}
	return true
}

// readCMap parses a CMap, and returns nil if it is empty.
func readCMap(data []byte) *pdfCMap {
	m := &pdfCMap{text: map[string]string{}}
	lexer := &pdfLexer{data: data}
	var operands []pdfToken
	for t := lexer.next(); t.kind != pdfEnd; t = lexer.next() {
		switch t.kind {
		case pdfWord:
			m.section(t.text, operands)
			operands = operands[:0]
			continue
		case pdfOpen:
			t.array = lexer.array()
		case pdfClose:
			continue
		}
		if len(operands) < maxCMap {
			operands = append(operands, t)
		}
	}
	if len(m.text) == 0 {
		return nil
	}
	return m
}

// section applies the operands before an operator that ends a section of the
// CMap.
func (m *pdfCMap) section(word string, operands []pdfToken) {
	switch word {
	case "endcodespacerange":
		for i := 0; i+1 < len(operands) && len(m.spaces) < 100; i += 2 {
			low, high := operands[i].text, operands[i+1].text
			if len(low) == len(high) && len(low) > 0 && len(low) <= 4 {
				m.spaces = append(m.spaces, pdfCodeSpace{low, high})
			}
		}
	case "endbfchar":
		for i := 0; i+1 < len(operands); i += 2 {
			m.set(operands[i].text, operands[i+1].text)
		}
	case "endbfrange":
		for i := 0; i+2 < len(operands); i += 3 {
			m.setRange(operands[i].text, operands[i+1].text, operands[i+2])
		}
	}
}

func (m *pdfCMap) set(code, text string) {
	if m.steps++; m.steps <= maxCMap && code != "" {
		m.text[code] = decodeUTF16(text[:min(len(text), maxMapped)])
	}
}

// setRange maps the codes from low to high, which may differ in their last two
// bytes, to consecutive texts or to those of an array.
func (m *pdfCMap) setRange(low, high string, to pdfToken) {
	if len(low) != len(high) || low == "" {
		return
	}
	first, last := lastTwo(low), lastTwo(high)
	for i := 0; first+i <= last && m.steps < maxCMap; i++ {
		code := withLastTwo(low, first+i)
		switch {
		case to.kind == pdfString && to.text != "":
			m.set(code, withLastTwo(to.text, lastTwo(to.text)+i))
		case i < len(to.array):
			m.set(code, to.array[i].text)
		default:
			return
		}
	}
}

func lastTwo(s string) int {
	n := int(s[len(s)-1])
	if len(s) > 1 {
		n |= int(s[len(s)-2]) << 8
	}
	return n
}

func withLastTwo(s string, n int) string {
	b := []byte(s)
	b[len(b)-1] = byte(n)
	if len(b) > 1 {
		b[len(b)-2] = byte(n >> 8)
	}
	return string(b)
}

// decodeUTF16 decodes big-endian UTF-16; a single byte is a character.
func decodeUTF16(s string) string {
	if len(s) == 1 {
		return string(rune(s[0]))
	}
	units := make([]uint16, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return strings.ReplaceAll(string(utf16.Decode(units)), "\x00", "")
}
