package vector

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/store"
	"satchel/store/search/terms"
)

// maxPhrase limits the words of one phrase.
const maxPhrase = 8

// The weights of the words of a query that count otherwise than prose.
const (
	nameWeight     = 2   // nothing else answers a question about a code
	partWeight     = 0.5 // of a part of a name
	functionWeight = 0.4 // "how", "the", "warum"
)

// wordList collects what full-text search should look for.
type wordList struct {
	words  store.Words
	spoken []string // codes of the query's languages
	seen   map[string]bool
}

// wordsOf returns what full-text search should look for, and the codes of the
// languages that a query may be in.
//
// A code or a name written as one piece ("MX-200", "4.2.1", "readTimeout") is
// looked for in all its spellings: as a phrase, as one word, and split where
// letters meet digits or a capital. Its parts mean little by themselves. Scripts
// without spaces are searched in the pieces used by the index, and a run of pieces
// as a phrase.
func wordsOf(query string) (store.Words, []string) {
	list := &wordList{seen: map[string]bool{}}
	fields := list.addGrams(query)
	list.spoken = terms.LanguagesByWords(strings.FieldsFunc(query, separates))
	before, compounds := "", []string{}
	for _, field := range fields {
		parts := partsOf(field)
		if len(parts) == 0 {
			before = ""
			continue
		}
		list.addField(field, parts)
		one := strings.Join(parts, "")
		switch {
		case !consistsOf(before, unicode.IsLetter):
		case consistsOf(one, unicode.IsDigit):
			list.addPair(before, one)
		case consistsOf(one, unicode.IsLetter) && !terms.IsFunctionWord(before, list.spoken):
			compounds = append(compounds, strings.ToLower(before+one))
		}
		before = one
	}
	list.addCompounds(compounds)
	return list.words, list.spoken
}

// partsOf returns the words of a field, without a letter that an apostrophe ties to
// another word: "doctor's", "l'eau".
func partsOf(field string) []string {
	parts := slices.DeleteFunc(strings.FieldsFunc(field, separates), isOnlyMarks)
	if len(parts) != 2 || !strings.ContainsAny(field, "'’") || strings.ContainsFunc(field, unicode.IsDigit) {
		return parts
	}
	return slices.DeleteFunc(parts, func(part string) bool {
		return utf8.RuneCountInString(part) == 1
	})
}

// maxCompounds limits the pairs of words that are looked for as one.
const maxCompounds = 8

// addCompounds adds words that are written apart and that texts may write as one:
// "back up" and "backup". They come after all others, which they do not displace.
func (l *wordList) addCompounds(list []string) {
	for _, one := range list[:min(len(list), maxCompounds)] {
		if !terms.IsFunctionWord(one, l.spoken) {
			l.add(store.Word{Ways: []store.Way{{Text: one}}, Optional: true})
		}
	}
}

// addField adds a field of a query, whose words are parts.
func (l *wordList) addField(field string, parts []string) {
	if len(parts) == 1 && !isName(field) {
		l.addPlain(parts[0])
		return
	}
	name := store.Word{
		Name:     isCode(field),
		Optional: !isCode(field),
		Weight:   1,
	}
	if name.Name {
		name.Weight = nameWeight
	}
	for _, text := range spellings(parts) {
		name.Ways = append(name.Ways, store.Way{Text: strings.ToLower(text)})
	}
	if len(name.Ways) > 0 {
		l.add(name)
	}
	if len(parts) == 1 && len(name.Ways) > 0 {
		return
	}
	for _, part := range parts {
		if name.Name {
			l.add(store.Word{
				Ways:     []store.Way{{Text: strings.ToLower(part)}},
				Weight:   partWeight,
				Optional: len(name.Ways) > 0,
			})
		} else {
			l.addPlain(part)
		}
	}
}

// addPair adds a code that is written with a space: "E 1042".
func (l *wordList) addPair(letters, digits string) {
	w := store.Word{
		Weight:   nameWeight,
		Name:     true,
		Optional: true,
		Ways:     []store.Way{{Text: strings.ToLower(letters + digits)}},
	}
	if strings.ToUpper(letters) == letters && len(letters) <= 4 {
		w.Ways = append(w.Ways, store.Way{Text: strings.ToLower(letters + " " + digits)})
	}
	l.add(w)
}

func (l *wordList) addPlain(word string) {
	w := store.Word{Ways: []store.Way{{Text: strings.ToLower(word)}}, Plain: consistsOf(word, unicode.IsLetter)}
	if terms.IsFunctionWord(word, l.spoken) {
		w.Weight, w.Plain = functionWeight, false
	}
	l.add(w)
}

// add adds a word unless it has been added before.
func (l *wordList) add(w store.Word) {
	if text := w.Ways[0].Text; !l.seen[text] {
		l.seen[text] = true
		l.words = append(l.words, w)
	}
}

// addGrams adds text in scripts without spaces, and splits the rest of a query at
// its spaces.
func (l *wordList) addGrams(query string) (fields []string) {
	for _, run := range terms.Runs(query) {
		switch {
		case run.Gram == 0:
			fields = append(fields, strings.Fields(run.Text)...)
		case run.Short():
			l.add(store.Word{Ways: []store.Way{{Text: run.Text, Prefix: true}}})
		default:
			grams := run.Grams()
			for _, g := range grams {
				l.add(store.Word{Ways: []store.Way{{Text: g}}})
			}
			if len(grams) > 1 && len(grams) <= maxPhrase {
				l.add(store.Word{Ways: []store.Way{{Text: strings.Join(grams, " ")}}, Optional: true})
			}
		}
	}
	return fields
}

// spellings returns the ways to write a name whose words are parts.
func spellings(parts []string) []string {
	var list []string
	if len(parts) <= maxPhrase {
		list = append(list, strings.Join(parts, " "))
		// Digits without a letter would become a number with another meaning.
		if one := strings.Join(parts, ""); len(parts) > 1 && strings.ContainsFunc(one, unicode.IsLetter) {
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

// isCode reports whether a field of a query identifies chunks on its own: it is
// a name, joins words with signs other than a hyphen, and is not a small
// number.
func isCode(field string) bool {
	bare := strings.TrimFunc(field, separates)
	if consistsOf(bare, unicode.IsDigit) {
		return len(bare) > 2
	}
	return isName(field) || strings.ContainsAny(bare, "._/:()#@$")
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
		if unicode.IsLower(a) && unicode.IsUpper(b) ||
			unicode.IsUpper(a) && unicode.IsUpper(b) && small ||
			unicode.IsLetter(a) && unicode.IsDigit(b) ||
			unicode.IsDigit(a) && unicode.IsLetter(b) {
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

// isOnlyMarks reports whether a word consists only of combining marks, as left over
// from emoji.
func isOnlyMarks(word string) bool { return consistsOf(word, unicode.IsMark) }

// consistsOf reports whether a word consists only of characters of one kind.
func consistsOf(word string, kind func(rune) bool) bool {
	return word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !kind(r) })
}
