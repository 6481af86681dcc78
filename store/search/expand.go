package search

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/store/search/postings"
	"satchel/store/search/terms"
)

// Expansion controls what Expand adds.
type Expansion struct {
	Languages []string // codes of the query's languages; nil: unknown
	// reports words that are spelled correctly although no chunk contains them; nil: none
	IsSpelled func(word string) bool
}

// The shares of what Expand adds.
const (
	similarShare  = 0.5 // words that differ by a letter or two
	compoundShare = 0.6 // compounds that contain a word
)

// Limits on what Expand adds to a word.
const (
	maxForms      = 6
	maxNear       = 3
	minStem       = 3 // minimum characters of the stem of other forms
	minWord       = 4 // of a word that may be mistyped, and of its parts
	minPart       = 5 // of a part of a compound
	maxVocab      = 20_000
	maxVocabRead  = 1_000_000
	maxCandidates = 300    // candidates whose chunks are counted
	maxCounted    = 10_000 // chunks
)

// Expand adds to plain words the other forms in which chunks contain them: ß as ss
// and ü as ue; inflected forms of German, Spanish, French, Italian, Portuguese and
// Dutch words; German and Dutch compounds that begin with them. For a word that no
// chunk contains it adds the parts of a compound, otherwise compounds that end with
// the word, otherwise the most similar words that chunks contain. corrected holds
// the most similar ones by the word of the query.
func (x *Text) Expand(words Words, expansion Expansion) (expanded Words, corrected map[string]string, err error) {
	corpus, err := x.open()
	if err != nil || corpus.chunks == 0 {
		return words, nil, err
	}
	languages, err := x.languages(corpus, expansion.Languages)
	if err != nil {
		return nil, nil, err
	}
	ex := &expander{
		Text:      x,
		Expansion: expansion,
		corpus:    corpus,
		languages: languages,
		corrected: map[string]string{},
	}
	for _, word := range words {
		if word.Plain && len(word.Ways) == 1 && len(word.Ways[0].Text) <= maxTermBytes {
			if word, err = ex.expand(word); err != nil {
				return nil, nil, err
			}
		}
		expanded = append(expanded, word)
	}
	return append(expanded, ex.parts...), ex.corrected, nil
}

// expander expands the words of one query.
type expander struct {
	*Text
	Expansion
	corpus    corpus
	languages []terms.Language
	parts     Words
	corrected map[string]string
}

// languages returns the possible languages of a query: those of its function words,
// otherwise those of the chunks.
func (x *Text) languages(c corpus, codes []string) ([]terms.Language, error) {
	if len(codes) == 0 {
		return x.Memory.languagesOf(c, x.textLanguages)
	}
	return slices.DeleteFunc(slices.Clone(terms.Languages), func(l terms.Language) bool {
		return !slices.Contains(codes, l.Code)
	}), nil
}

// textLanguages returns the languages of the chunks.
func (x *Text) textLanguages() (list []terms.Language, err error) {
	defer func(rows int) { x.rows = rows }(x.rows) // the rows read here do not count
	for _, l := range terms.Languages {
		for _, pair := range l.Marks {
			both, err := x.occurTogether(pair)
			if err != nil {
				return nil, err
			}
			if both {
				list = append(list, l)
				break
			}
		}
	}
	return list, nil
}

// occurTogether reports whether some chunk contains all of some words.
func (x *Text) occurTogether(words []string) (bool, error) {
	var lists []postings.List
	for _, word := range words {
		l, err := x.list(termKey{text: word}, false)
		if err != nil {
			return false, err
		}
		lists = append(lists, l)
	}
	return postings.Overlap(lists[0], lists[1]), nil
}

func (ex *expander) expand(word Word) (Word, error) {
	text := word.Ways[0].Text
	for _, v := range terms.Variants(text) {
		word.Ways = append(word.Ways, Way{Text: v})
	}
	if err := ex.addForms(&word, text); err != nil {
		return word, err
	}
	for _, way := range word.Ways {
		if has, err := ex.occurs(way.Text); err != nil || has {
			return word, err
		}
	}
	if split, err := ex.split(text); err != nil || split {
		return word, err
	}
	if tails, err := ex.compoundsEnding(text); err != nil {
		return word, err
	} else if len(tails) > 0 {
		return word, ex.add(&word, tails, compoundShare)
	}
	if ex.IsSpelled != nil && ex.IsSpelled(text) {
		return word, nil
	}
	near, err := ex.similarWords(text)
	for _, n := range near {
		word.Ways = append(word.Ways, Way{Text: n, Share: similarShare})
	}
	if len(near) > 0 {
		ex.corrected[text] = near[0]
	}
	return word, err
}

// occurs reports whether some chunk contains a word. It does not read all of them,
// since the search by meaning waits for the corrections of the query.
func (ex *expander) occurs(word string) (bool, error) {
	if list := terms.Terms(word); len(list) == 1 {
		return ex.index.Contains(list[0])
	}
	n, err := ex.count(word)
	return n > 0, err
}

// countTerms returns how many chunks contain each of some terms, for those that
// occur in any.
func (x *Text) countTerms(list []string) (map[string]int, error) {
	found := map[string]int{}
	for _, term := range list[:min(len(list), maxCandidates)] {
		l, err := x.index.Term(term, false, maxCounted)
		if err != nil {
			return nil, err
		}
		if len(l.Rows) > 0 {
			found[term] = len(l.Rows)
		}
	}
	return found, nil
}

// addForms adds the other forms of a word, and compounds that begin with it.
func (ex *expander) addForms(word *Word, text string) error {
	own := terms.Stemmed(text)
	var forms, compounds []string
	for _, language := range ex.languages {
		stems := []string{language.Stem(text), language.Stem(terms.Fold(text)), language.Stem(own)}
		prefix := commonPrefix(stems[:2])
		if utf8.RuneCountInString(prefix) < minStem {
			continue
		}
		list, err := ex.index.Terms(prefix, maxVocab)
		if err != nil {
			return err
		}
		for _, term := range list {
			switch {
			case term == own:
			case slices.Contains(stems, language.Stem(term)) || slices.Contains(stems, term):
				forms = append(forms, term)
			case language.Compounds && utf8.RuneCountInString(prefix) >= minPart && len(term) >= len(prefix)+minWord:
				compounds = append(compounds, term)
			}
		}
	}
	if err := ex.add(word, forms, 1); err != nil {
		return err
	}
	return ex.add(word, compounds, compoundShare)
}

// add adds the most frequent of some terms as ways to write a word.
func (ex *expander) add(w *Word, list []string, share float64) error {
	found, err := ex.countTerms(list)
	if err != nil {
		return err
	}
	list = slices.Collect(maps.Keys(found))
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(found[b], found[a]), cmp.Compare(a, b))
	})
	for _, term := range list[:min(len(list), maxForms)] {
		if text := terms.WordOf(term); text != "" {
			w.Ways = append(w.Ways, Way{Text: text, Share: share})
		}
	}
	return nil
}

func commonPrefix(list []string) string {
	prefix := list[0]
	for _, s := range list[1:] {
		for !strings.HasPrefix(s, prefix) {
			_, size := utf8.DecodeLastRuneInString(prefix)
			prefix = prefix[:len(prefix)-size]
		}
	}
	return prefix
}

// links can connect the parts of a compound.
var links = []string{"", "s", "n", "en", "es", "er", "e"}

// split adds the parts of a compound that no chunk contains, and reports whether it
// found any: two parts, each of which some chunk contains.
func (ex *expander) split(text string) (bool, error) {
	if !slices.ContainsFunc(ex.languages, func(l terms.Language) bool { return l.Compounds }) {
		return false, nil
	}
	for at := len(text) - minWord; at >= minWord; at-- {
		if !utf8.RuneStart(text[at]) {
			continue
		}
		tail := text[at:]
		if has, err := ex.occurs(tail); err != nil {
			return false, err
		} else if !has {
			continue
		}
		for _, link := range links {
			head, ok := strings.CutSuffix(text[:at], link)
			if !ok || len(head) < minWord {
				continue
			}
			if has, err := ex.occurs(head); err != nil {
				return false, err
			} else if has {
				ex.parts = append(
					ex.parts,
					Word{Ways: []Way{{Text: head}}, Weight: compoundShare},
					Word{
						Ways:   []Way{{Text: tail}},
						Weight: compoundShare,
					},
				)
				return true, nil
			}
		}
	}
	return false, nil
}

// compoundsEnding returns the indexed compounds that end with a word, in any of its forms. It
// reads the whole vocabulary, so it finds none if that is large.
func (ex *expander) compoundsEnding(text string) (found []string, err error) {
	for _, language := range ex.languages {
		stem := language.Stem(text)
		if !language.Compounds ||
			utf8.RuneCountInString(text) < minPart ||
			len(stem) < minWord ||
			ex.corpus.chunks >= largeVocabulary {
			continue
		}
		list, err := ex.index.Terms("", maxVocabRead)
		if err != nil {
			return nil, err
		}
		for _, term := range list {
			if strings.Index(term, stem) >= minWord-1 && strings.HasSuffix(language.Stem(term), stem) {
				found = append(found, term)
			}
		}
	}
	return found, nil
}

// largeVocabulary is the number of different words from which on near only considers
// those that agree with a word in two of its first letters.
const largeVocabulary = 30_000

// similarWords returns the indexed words that are most similar to a word, at most two
// letters apart.
func (ex *expander) similarWords(text string) ([]string, error) {
	folded, stem := terms.Fold(text), terms.Stemmed(text)
	letters := []rune(folded)
	if len(letters) < minWord || slices.ContainsFunc(letters, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return nil, nil
	}
	most := 1
	if len(letters) > 6 {
		most = 2
	}
	best := most
	var found []string
	for _, prefix := range ex.misspelledPrefixes(letters) {
		list, err := ex.index.Terms(prefix, maxVocab)
		if err != nil {
			return nil, err
		}
		for _, term := range list {
			d := min(
				terms.Distance(stem, term, best),
				terms.Distance(folded, term, best),
				terms.FormDistance(folded, term, best),
			)
			if d > best || utf8.RuneCountInString(term) < minWord-1 {
				continue
			}
			if d < best {
				best = d
				found = found[:0]
			}
			found = append(found, term)
		}
	}
	w := Word{}
	if err := ex.add(&w, found, similarShare); err != nil {
		return nil, err
	}
	var near []string
	for _, way := range w.Ways[:min(len(w.Ways), maxNear)] {
		near = append(near, way.Text)
	}
	return near, nil
}

// misspelledPrefixes returns the prefixes of words for which letters may be a misspelling.
func (ex *expander) misspelledPrefixes(letters []rune) []string {
	first, second, third := string(letters[0]), string(letters[1]), string(letters[2])
	if ex.corpus.chunks < largeVocabulary {
		return []string{first, second}
	}
	list := []string{first + second, second + first, first + third, second + third}
	slices.Sort(list)
	return slices.Compact(list)
}
