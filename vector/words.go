package vector

import (
	"slices"
	"strings"
	"unicode"

	"satchel/store"
)

// maxPhrase bounds the words of one phrase.
const maxPhrase = 8

// wordsOf finds what full text should look for: each word of a query once, and
// words written in one piece with other signs between them ("MX-200", "4.2.1")
// also as a phrase, since their parts alone say little.
//
// Words like "how" and "the" stay: where they are frequent bm25 gives them no
// weight, and where they are not they temper what the others reach.
func wordsOf(query string) store.Words {
	var w store.Words
	for _, field := range strings.Fields(strings.ToLower(query)) {
		parts := slices.DeleteFunc(strings.FieldsFunc(field, separates), isBare)
		for _, part := range parts {
			w.Single = addNew(w.Single, part)
		}
		if len(parts) > 1 && len(parts) <= maxPhrase {
			w.Phrases = addNew(w.Phrases, strings.Join(parts, " "))
		}
	}
	return w
}

// separates tells whether FTS5's tokenizer unicode61 ends a word at r. Marks
// that combine with a letter belong to its word.
func separates(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co)
}

// isBare tells whether a word is made of combining marks alone, as emoji leave
// behind.
func isBare(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return !unicode.Is(unicode.M, r) })
}

func addNew(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
