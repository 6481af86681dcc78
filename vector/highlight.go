package vector

import "unicode/utf8"

// maxHighlights limits the highlighted words in one text.
const maxHighlights = 200

// toUTF16Offsets converts offsets in bytes, in their order, to UTF-16 code units.
func toUTF16Offsets(text string, found [][2]int) [][]int {
	out := make([][]int, 0, min(len(found), maxHighlights))
	bytes, units := 0, 0
	to := func(at int) int {
		units += utf16Len(text[bytes:at])
		bytes = at
		return units
	}
	for _, f := range found[:min(len(found), maxHighlights)] {
		from := to(f[0])
		out = append(out, []int{from, to(f[1])})
	}
	return out
}

// utf16Len returns the length of a text in UTF-16 code units.
func utf16Len(text string) int {
	n := 0
	for _, r := range text {
		n += utf16Units(r)
	}
	return n
}

func utf16Units(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// trimUTF16 removes a number of UTF-16 code units from the beginning of a text,
// including all of a character that would be split.
func trimUTF16(text string, n int) string {
	for n > 0 && text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if n -= utf16Units(r); n < 0 {
			break
		}
		text = text[size:]
	}
	return text
}
