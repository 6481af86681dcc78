package vector

import (
	"slices"
	"strings"
	"unicode"

	"satchel/store"
	"satchel/store/search/terms"
)

// maxPhrase bounds the words of one phrase.
const maxPhrase = 8

// wordsOf finds what full text should look for: each word of a query once, and
// beside them what counts in addition where it occurs. That is, for a name
// that is written in one piece ("MX-200", "4.2.1", "readTimeout"), the piece as
// a phrase, since its parts alone say little, and in the other ways to write
// it: as one word, and cut where letters meet digits or a capital. A single
// word that looks like a name ("E1042", "--verify") counts twice, because a
// question for a name is answered by nothing else.
//
// Scripts without spaces are looked for in the pieces that the index has them in,
// and a run of pieces as a phrase.
//
// Words like "how" and "the" stay: where they are frequent bm25 gives them no
// weight, and where they are not they temper what the others reach.
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

// fieldsOf cuts a query at its spaces. What is in a script without spaces goes
// to w.
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

// spellings lists what counts in addition for a field of a query, whose words
// are parts.
func spellings(field string, parts []string) []string {
	var list []string
	switch {
	case len(parts) == 0:
		return nil
	case len(parts) == 1 && isName(field):
		list = append(list, parts[0])
	case len(parts) > 1 && len(parts) <= maxPhrase:
		list = append(list, strings.Join(parts, " "))
		// Digits without a letter become a number that means something else.
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

// isName reports whether a single word is more likely a name than prose: there is
// a digit in it, a capital after a small letter, or a sign in front.
func isName(field string) bool {
	if strings.ContainsFunc(field, unicode.IsDigit) || strings.ContainsAny(field[:1], "-./#$@_") {
		return true
	}
	return len(cutName(field)) > 1
}

// cutName cuts a word where a capital follows a small letter, where the last
// of several capitals begins a word, and where letters and digits meet:
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

// separates reports whether FTS5's tokenizer unicode61 ends a word at r. Marks
// that combine with a letter belong to its word.
func separates(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co)
}

// isBare reports whether a word is made of combining marks alone, as emoji leave
// behind.
func isBare(word string) bool { return isAll(word, unicode.IsMark) }

// isAll reports whether a word is made of characters of one kind alone.
func isAll(word string, kind func(rune) bool) bool {
	return word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !kind(r) })
}

func addNew(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
