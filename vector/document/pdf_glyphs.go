package document

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ledongthuc/pdf"
)

// pdfGlyphNames are the texts of glyph names that were looked up.
type pdfGlyphNames map[string]string

// text returns the text of a glyph's name by the rules of the Adobe Glyph List:
// "f_f_i.alt" is "ffi". It is "" if the name is unknown.
func (n pdfGlyphNames) text(name string) string {
	text, ok := n[name]
	if !ok {
		base, _, _ := strings.Cut(name, ".")
		for part := range strings.SplitSeq(base, "_") {
			text += textOfComponent(part)
		}
		n[name] = text
	}
	return text
}

// textOfComponent returns the text of a part of a glyph's name: a listed name, or
// one with numbers, such as uni20AC, uni00660069 or u1F600.
func textOfComponent(name string) string {
	if r := listedGlyph(name); r != 0 && !isPrivate(r) {
		return string(r)
	}
	if digits, ok := strings.CutPrefix(name, "uni"); ok && len(digits) >= 4 && len(digits)%4 == 0 {
		text := ""
		for ; digits != ""; digits = digits[4:] {
			text += runeOfHex(digits[:4])
		}
		return text
	}
	if digits, ok := strings.CutPrefix(name, "u"); ok && len(digits) >= 4 && len(digits) <= 6 {
		return runeOfHex(digits)
	}
	for _, variant := range []string{"oldstyle", "small", "inferior", "superior", "fitted"} {
		if base, ok := strings.CutSuffix(name, variant); ok && base != "" {
			return textOfComponent(base)
		}
	}
	return ""
}

// isPrivate reports whether a character is in the area that the list uses for
// variants of others.
func isPrivate(r rune) bool { return r >= 0xE000 && r <= 0xF8FF }

func runeOfHex(digits string) string {
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || n == 0 || !utf8.ValidRune(rune(n)) {
		return ""
	}
	return string(rune(n))
}

// listedGlyph returns the character of a name in the Adobe Glyph List, or 0.
// Package pdf has the list, but only reads it for a font.
func listedGlyph(name string) (char rune) {
	defer func() {
		if recover() != nil {
			char = 0
		}
	}()
	if name == "" || len(name) > 64 {
		return 0
	}
	file := pdfObjects{data: []byte(pdfHeader + strings.Repeat(" ", 100))}
	font, err := file.reader(fmt.Sprintf("/Encoding<</Differences[0/%s]>>", escapedName(name)))
	if err != nil {
		return 0
	}
	text := (&pdf.Font{V: font.Trailer()}).Encoder().Decode("\x00")
	char, _ = utf8.DecodeRuneInString(text)
	return char
}

// escapedName writes a name as in a PDF file, each byte as a number.
func escapedName(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		fmt.Fprintf(&b, "#%02x", c)
	}
	return b.String()
}
