package main

import (
	"cmp"
	"slices"
)

// maxSide is the number of words of a text that are used.
const maxSide = 24

// pair is two texts with about the same meaning, or that are related. share is
// its relative frequency in training.
type pair struct {
	a, b  []string
	share float64
}

// related are the pointers to related synsets: derived forms, parts and
// wholes, similar adjectives, entailments and causes.
var related = []string{"+", "&", "#p", "%p", "*", ">", "$", "^"}

// pairs returns the training data: a word and its gloss, its hypernym, and
// related words; an example and its gloss; a gloss and that of its hypernym.
func (w *wordnet) pairs() []pair {
	var list []pair
	add := func(a, b []string, share float64) {
		if len(a) > 0 && len(b) > 0 {
			list = append(list, pair{a[:min(len(a), maxSide)], b[:min(len(b), maxSide)], share})
		}
	}
	for _, key := range w.order {
		s := w.synsets[key]
		entry := slices.Concat(s.words...)
		add(entry, s.gloss, 1)
		kinds := w.along(s, "@", "@i")
		var kind []string
		for _, k := range kinds {
			kind = append(kind, slices.Concat(k.words...)...)
		}
		add(entry, kind, 1)
		for _, example := range s.examples {
			rest := slices.DeleteFunc(slices.Clone(example), func(word string) bool {
				return slices.Contains(entry, word)
			})
			if len(example) > 2 && len(s.gloss) > 0 {
				add(example, slices.Concat(s.gloss, entry), 1)
			}
			if len(rest) > 2 {
				add(rest, slices.Concat(entry, s.gloss), 1)
			}
		}
		if len(kinds) > 0 {
			add(s.gloss, slices.Concat(kinds[0].gloss, kind), 0.5)
		}
		near := w.along(s, related...)
		for _, r := range near[:min(len(near), 4)] {
			add(entry, slices.Concat(slices.Concat(r.words...), r.gloss), 0.7)
		}
	}
	return list
}

// along returns the synsets that pointers with these symbols lead to.
func (w *wordnet) along(s *synset, symbols ...string) []*synset {
	var list []*synset
	for _, p := range s.pointers {
		if to := w.synsets[p.to]; to != nil && slices.Contains(symbols, p.symbol) {
			list = append(list, to)
		}
	}
	return list
}

// vocabulary numbers the words of the table.
type vocabulary struct {
	words  []string
	number map[string]int32
	pairs  []int // sides of pairs that contain the word
}

// vocabularyOf returns the common words that are in most texts. Names of
// people, places and genera are left out: there are many, and few texts are
// about them.
func (w *wordnet) vocabularyOf(pairs []pair, size int) *vocabulary {
	counts := map[string]int{}
	for _, p := range pairs {
		for _, text := range [][]string{p.a, p.b} {
			for i, word := range text {
				if w.common[word] && !slices.Contains(text[:i], word) {
					counts[word]++
				}
			}
		}
	}
	v := &vocabulary{number: map[string]int32{}}
	for word := range counts {
		v.words = append(v.words, word)
	}
	slices.SortFunc(v.words, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	v.words = v.words[:min(size, len(v.words))]
	for i, word := range v.words {
		v.number[word] = int32(i)
		v.pairs = append(v.pairs, counts[word])
	}
	return v
}

// numbers returns the numbers of the words in the vocabulary.
func (v *vocabulary) numbers(list []string) []int32 {
	var numbers []int32
	for _, word := range list {
		if n, ok := v.number[word]; ok {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// numberedPair is a pair as numbers of words.
type numberedPair struct {
	a, b  []int32
	share float64
}

func numbered(pairs []pair, v *vocabulary) []numberedPair {
	var list []numberedPair
	for _, p := range pairs {
		if a, b := v.numbers(p.a), v.numbers(p.b); len(a) > 0 && len(b) > 0 {
			list = append(list, numberedPair{a, b, p.share})
		}
	}
	return list
}
