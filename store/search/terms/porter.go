package terms

// stem reduces a lower-case word to its stem, in place, and returns it. It
// implements M. F. Porter, "An algorithm for suffix stripping" (1980), like FTS5's
// tokenizer porter: words of less than 3 or more than 64 bytes stay unchanged.
func stem(word []byte) []byte {
	if len(word) < 3 || len(word) > 64 {
		return word
	}
	word = plural(word)
	word = past(word)
	if word[len(word)-1] == 'y' && hasVowel(word[:len(word)-1]) {
		word[len(word)-1] = 'i'
	}
	word = replace(word, step2, 1)
	word = replace(word, step3, 1)
	word = replace(word, step4, 2)
	if n := len(word) - 1; word[n] == 'e' && (measure(word[:n]) > 1 || measure(word[:n]) == 1 && !endsShort(word[:n])) {
		word = word[:n]
	}
	if n := len(word) - 1; n > 0 &&
		word[n] == 'l' &&
		word[n-1] == 'l' &&
		measure(word[:n]) > 1 {
		word = word[:n]
	}
	return word
}

// plural removes plural endings: step 1a.
func plural(w []byte) []byte {
	n := len(w)
	switch {
	case w[n-1] != 's' || w[n-2] == 's':
		return w
	case w[n-2] == 'e' && (n > 4 && w[n-4] == 's' && w[n-3] == 's' || n > 3 && w[n-3] == 'i'):
		return w[:n-2]
	}
	return w[:n-1]
}

// past removes -ed and -ing: step 1b.
func past(word []byte) []byte {
	length := len(word)
	switch {
	case ends(word, "eed"):
		if measure(word[:length-3]) > 0 {
			return word[:length-1]
		}
		return word
	case ends(word, "ed") && hasVowel(word[:length-2]):
		word = word[:length-2]
	case ends(word, "ing") && hasVowel(word[:length-3]):
		word = word[:length-3]
	default:
		return word
	}
	length = len(word)
	switch last := word[length-1]; {
	case ends(word, "at"), ends(word, "bl"), ends(word, "iz"):
		return append(word, 'e')
	case length > 1 &&
		last == word[length-2] &&
		!isVowel(last, false) &&
		last != 'l' &&
		last != 's' &&
		last != 'z':
		return word[:length-1]
	case measure(word) == 1 && endsShort(word):
		return append(word, 'e')
	}
	return word
}

type suffix struct{ from, to string }

var (
	step2 = []suffix{
		{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
		{"logi", "log"}, {"bli", "ble"}, {"alli", "al"}, {"entli", "ent"}, {"eli", "e"}, {"ousli", "ous"},
		{"ization", "ize"}, {"ation", "ate"}, {"ator", "ate"}, {"alism", "al"}, {"iveness", "ive"}, {"fulness", "ful"},
		{"ousness", "ous"}, {"aliti", "al"}, {"iviti", "ive"}, {"biliti", "ble"},
	}
	step3 = []suffix{
		{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""}, {"ness", ""},
	}
	step4 = []suffix{
		{"al", ""}, {"ance", ""}, {"ence", ""}, {"er", ""}, {"ic", ""}, {"able", ""}, {"ible", ""},
		{"ant", ""}, {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ion", ""}, {"ou", ""}, {"ism", ""}, {"ate", ""},
		{"iti", ""}, {"ous", ""}, {"ive", ""}, {"ize", ""},
	}
)

// replace replaces the first suffix that w ends with, if the part before it has at
// least the given measure.
func replace(w []byte, list []suffix, least int) []byte {
	for _, s := range list {
		if !ends(w, s.from) {
			continue
		}
		before := w[:len(w)-len(s.from)]
		if measure(before) < least || s.from == "ion" && !ends(before, "s") && !ends(before, "t") {
			return w
		}
		return append(before, s.to...)
	}
	return w
}

// ends reports whether w ends with a suffix and something precedes it.
func ends(w []byte, suffix string) bool {
	return len(w) > len(suffix) && string(w[len(w)-len(suffix):]) == suffix
}

// isVowel reports whether a letter is a vowel; y is one after a consonant.
func isVowel(c byte, y bool) bool {
	switch c {
	case 'a', 'e', 'i', 'o', 'u':
		return true
	}
	return y && c == 'y'
}

// measure counts how often consonants follow vowels.
func measure(w []byte) (m int) {
	vowel := false
	for i, c := range w {
		now := isVowel(c, i > 0 && !vowel)
		if vowel && !now {
			m++
		}
		vowel = now
	}
	return m
}

func hasVowel(w []byte) bool {
	for i, c := range w {
		if isVowel(c, i > 0) {
			return true
		}
	}
	return false
}

// endsShort reports whether w ends with consonant, vowel and a consonant other
// than w, x and y.
func endsShort(w []byte) bool {
	if last := w[len(w)-1]; last == 'w' || last == 'x' || last == 'y' {
		return false
	}
	var a, b, c bool // whether the last three are consonants
	for _, letter := range w {
		a, b, c = b, c, !isVowel(letter, c)
	}
	return len(w) > 2 && a && !b && c
}
