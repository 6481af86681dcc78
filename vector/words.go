package vector

import (
	"slices"
	"strings"
	"unicode"

	"satchel/store"
	"satchel/store/search/terms"
)

// maxPhrase limits the words of one phrase.
const maxPhrase = 8

// wordsOf returns what full-text search should look for: each word of a query
// once, and extra terms that count in addition. For a name written as one piece
// ("MX-200", "4.2.1", "readTimeout"), these are the piece as a phrase, since
// its parts alone mean little, and its other spellings: as one word, and split
// where letters meet digits or a capital. A single word that looks like a name
// ("E1042", "--verify") counts twice, because nothing else answers a question
// about a name.
//
// Scripts without spaces are searched in the pieces used by the index, and a
// run of pieces as a phrase.
//
// Words like "how" and "the" are kept: where they are frequent bm25 gives them
// no weight, and where they are not they moderate the score of the others.
func wordsOf(query string) store.Words {
	var w store.Words
	before := ""
	for _, field := range fieldsOf(query, &w) {
		parts := slices.DeleteFunc(strings.FieldsFunc(field, separates), isBare)
		for _, part := range parts {
			w.Single = addNew(w.Single, strings.ToLower(part))
		}
		for _, also := range spellings(field, parts) {
			w.Phrases = addNew(w.Phrases, strings.ToLower(also))
		}
		one := strings.Join(parts, "")
		if isAll(before, unicode.IsLetter) && isAll(one, unicode.IsDigit) {
			w.Phrases = addNew(w.Phrases, strings.ToLower(before+one)) // "E 1042"
		}
		before = one
	}
	return w
}

// fieldsOf splits a query at its spaces. Text in scripts without spaces is
// added to w.
func fieldsOf(query string, w *store.Words) (fields []string) {
	for _, run := range terms.Runs(query) {
		switch {
		case run.Gram == 0:
			fields = append(fields, strings.Fields(run.Text)...)
		case run.Short():
			w.Prefixes = addNew(w.Prefixes, run.Text)
		default:
			grams := run.Grams()
			for _, g := range grams {
				w.Single = addNew(w.Single, g)
			}
			if len(grams) > 1 && len(grams) <= maxPhrase {
				w.Phrases = addNew(w.Phrases, strings.Join(grams, " "))
			}
		}
	}
	return fields
}

// spellings returns the extra terms for a field of a query, whose words are
// parts.
func spellings(field string, parts []string) []string {
	var list []string
	switch {
	case len(parts) == 0:
		return nil
	case len(parts) == 1 && isName(field):
		list = append(list, parts[0])
	case len(parts) > 1 && len(parts) <= maxPhrase:
		list = append(list, strings.Join(parts, " "))
		// Digits without a letter would become a number with another meaning.
		if one := strings.Join(parts, ""); strings.ContainsFunc(one, unicode.IsLetter) {
			list = append(list, one)
		}
	}
	var pieces []string
	for _, part := range parts {
		pieces = append(pieces, cutName(part)...)
	}
	if len(pieces) > len(parts) && len(pieces) <= maxPhrase {
		list = append(list, strings.Join(pieces, " "))
	}
	return list
}

// isName reports whether a single word is more likely a name than prose: it
// contains a digit, a capital after a lower-case letter, or a leading sign.
func isName(field string) bool {
	if strings.ContainsFunc(field, unicode.IsDigit) || strings.ContainsAny(field[:1], "-./#$@_") {
		return true
	}
	return len(cutName(field)) > 1
}

// cutName splits a word where a capital follows a lower-case letter, where the
// last of several capitals starts a word, and where letters and digits meet:
// "newHTTPServer2" has four pieces.
func cutName(word string) []string {
	var pieces []string
	runes := []rune(word)
	start := 0
	for i := 1; i < len(runes); i++ {
		a, b := runes[i-1], runes[i]
		small := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if unicode.IsLower(a) && unicode.IsUpper(b) || unicode.IsUpper(a) && unicode.IsUpper(b) && small ||
			unicode.IsLetter(a) && unicode.IsDigit(b) || unicode.IsDigit(a) && unicode.IsLetter(b) {
			pieces = append(pieces, string(runes[start:i]))
			start = i
		}
	}
	return append(pieces, string(runes[start:]))
}

// separates reports whether FTS5's tokenizer unicode61 ends a word at r.
// Combining marks belong to their word.
func separates(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co)
}

// isBare reports whether a word consists only of combining marks, as left over
// from emoji.
func isBare(word string) bool { return isAll(word, unicode.IsMark) }

// isAll reports whether a word consists only of characters of one kind.
func isAll(word string, kind func(rune) bool) bool {
	return word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !kind(r) })
}

func addNew(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
