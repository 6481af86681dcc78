package terms

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Terms returns the words of a text as they are indexed, in order.
func Terms(text string) (list []string) {
	eachWord(text, func(from, to int) {
		if word := fold([]byte(text[from:to])); len(word) > 0 {
			list = append(list, string(stem(word)))
		}
	})
	return list
}

// wordChar returns the length of the character at the beginning of text, or 0 if it
// cannot be in a word.
func wordChar(text string) int {
	if c := text[0]; c < utf8.RuneSelf {
		if '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' {
			return 1
		}
		return 0
	}
	r, size := utf8.DecodeRuneInString(text)
	if unicode.In(r, unicode.L, unicode.N, unicode.Mn, unicode.Mc, unicode.Co) {
		return size
	}
	return 0
}

// fold converts letters to lower case and removes the accents of Latin ones, like
// FTS5's tokenizer (remove_diacritics 2), in place if possible.
func fold(word []byte) []byte {
	for i, b := range word {
		if b >= utf8.RuneSelf {
			return []byte(strings.Map(foldRune, string(word)))
		}
		word[i] = lowerASCII(b)
	}
	return word
}

func foldRune(r rune) rune {
	if isDroppedMark(r) {
		return -1
	}
	r = foldCase(r)
	if !unicode.Is(unicode.Latin, r) {
		return r // letters of other scripts keep their marks, and Korean syllables are one letter
	}
	plain := norm.NFD.String(string(r))
	if letter := rune(plain[0]); letter < utf8.RuneSelf {
		return letter
	}
	return r
}

// isDroppedMark reports whether FTS5 drops a combining mark: from U+0300 on, a bit for each.
func isDroppedMark(r rune) bool {
	const marks = 0x361F8<<32 | 0x8029FDF
	return r >= 0x300 && r < 0x300+64 && uint64(marks)>>(r-0x300)&1 == 1
}

// foldCase returns a letter's case folding, by way of its capital, which letters have
// in common that differ only in form, such as µ and μ, or ς and σ.
func foldCase(r rune) rune {
	if r == 'ı' { // its capital belongs to another letter
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

func lowerASCII(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
