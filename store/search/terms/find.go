package terms

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// commonWords are English words that say nothing about the subject of a text.
var commonWords = words(`a an and any are as at be by can could do does for from has have how i if in into is it its
	me my no not of on or our so than that the their then there they this to was we were what when where which who why will with would you your`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// Finder finds the words of a query in texts, in any form that full-text search
// treats as the same. It is safe for concurrent use.
type Finder struct {
	stems map[string]bool
	grams []string // of scripts without spaces
}

// NewFinder returns a Finder of a query's words. Common words are ignored unless the
// query has no others.
func NewFinder(query string) *Finder {
	finder := &Finder{stems: map[string]bool{}}
	idle := map[string]bool{}
	for _, run := range Runs(query) {
		if run.Gram > 0 {
			finder.grams = append(finder.grams, run.Grams()...)
			continue
		}
		eachWord(run.Text, func(from, to int) {
			word := fold([]byte(run.Text[from:to]))
			if len(word) == 0 {
				return
			}
			kind := finder.stems
			if commonWords[string(word)] {
				kind = idle
			}
			kind[string(stem(word))] = true
		})
	}
	if len(finder.stems) == 0 && len(finder.grams) == 0 {
		finder.stems = idle
	}
	return finder
}

// Find returns where the words occur in a text, as byte offsets, in order and
// without overlaps.
func (f *Finder) Find(text string) [][2]int {
	var found [][2]int
	at := 0
	for _, run := range Runs(text) {
		if run.Gram > 0 {
			found = append(found, f.findGrams(run.Text, at)...)
		} else {
			eachWord(run.Text, func(from, to int) {
				if word := fold([]byte(run.Text[from:to])); len(word) > 0 && f.stems[string(stem(word))] {
					found = append(found, [2]int{at + from, at + to})
				}
			})
		}
		at += len(run.Text)
	}
	return found
}

// findGrams finds the query's n-grams in a run without spaces that begins at an
// offset of the text.
func (f *Finder) findGrams(run string, at int) [][2]int {
	var found [][2]int
	for index := range run {
		longest := 0
		for _, g := range f.grams {
			if len(g) > longest && strings.HasPrefix(run[index:], g) {
				longest = len(g)
			}
		}
		if longest == 0 {
			continue
		}
		from, to := at+index, at+index+longest
		if last := len(found) - 1; last >= 0 && found[last][1] >= from {
			found[last][1] = max(found[last][1], to)
			continue
		}
		found = append(found, [2]int{from, to})
	}
	return slices.Clip(found)
}

// eachWord calls fn with the beginning and end of each word of a text.
func eachWord(text string, fn func(from, to int)) {
	for i := 0; i < len(text); {
		start := i
		for i < len(text) {
			size := wordChar(text[i:])
			if size == 0 {
				break
			}
			i += size
		}
		if i > start {
			fn(start, i)
			continue
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
	}
}
