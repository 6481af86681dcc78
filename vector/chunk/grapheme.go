package chunk

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxGrapheme is how many characters graphemeBefore looks back. Longer
// sequences of combining marks are split.
const maxGrapheme = 64

// maxFlags is how many consecutive halves of flags are counted to distinguish
// the first half of one from the second.
const maxFlags = 512

// graphemeBefore returns the last offset up to p at which a user-perceived
// character ends, so that no mark is separated from its letter, or p if there
// is none nearby. It follows the rules of Unicode Standard Annex 29 for marks,
// joined emoji, flags, Hangul and Indic conjuncts.
func graphemeBefore(text string, p int) int {
	at := p
	for range maxGrapheme {
		if at <= 0 {
			break
		}
		before, size := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at:])
		if at == len(text) || !joined(text[:at], before, after) {
			return at
		}
		at -= size
	}
	return p
}

const zeroWidthJoiner = '\u200D'

// joined reports whether after belongs to the same grapheme as before, the last
// character of text.
func joined(text string, before, after rune) bool {
	if before < 0x300 && after < 0x300 {
		return false
	}
	switch {
	case unicode.In(after, unicode.M), after == zeroWidthJoiner, after == '\u200C':
		return true
	case after >= 0x1F3FB && after <= 0x1F3FF, after >= 0xE0020 && after <= 0xE007F:
		return true // an emoji's skin tone, a flag's tag
	case before == zeroWidthJoiner:
		return true
	case isRegional(before) && isRegional(after):
		return isHalfFlag(text)
	case isConjoiner(before):
		return unicode.IsLetter(after)
	}
	return joinedHangul(before, after)
}

func isRegional(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

// isHalfFlag reports whether text ends with the first half of a flag.
func isHalfFlag(text string) bool {
	n := 0
	for n < maxFlags {
		r, size := utf8.DecodeLastRuneInString(text)
		if !isRegional(r) {
			break
		}
		text = text[:len(text)-size]
		n++
	}
	return n%2 == 1
}

// isConjoiner reports whether r is a virama that joins two consonants.
func isConjoiner(r rune) bool {
	return r >= 0x94D && strings.ContainsRune("\u094D\u09CD\u0ACD\u0B4D\u0C4D\u0D4D", r)
}

// joinedHangul applies the rules GB6 to GB8.
func joinedHangul(before, after rune) bool {
	vowel := after >= 0x1160 && after <= 0x11A7
	tail := after >= 0x11A8 && after <= 0x11FF
	syllable := after >= 0xAC00 && after <= 0xD7A3
	switch {
	case before >= 0x1100 && before <= 0x115F:
		return vowel || syllable || after >= 0x1100 && after <= 0x115F
	case before >= 0x1160 && before <= 0x11A7:
		return vowel || tail
	case before >= 0x11A8 && before <= 0x11FF:
		return tail
	case before >= 0xAC00 && before <= 0xD7A3:
		return tail || vowel && (before-0xAC00)%28 == 0
	}
	return false
}
