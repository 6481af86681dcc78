package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/store/search/terms"
)

// Expansion controls what Expand adds.
type Expansion struct {
	Asked []string               // the codes of the languages that the query is in; nil: unknown
	Known func(word string) bool // words that are spelled correctly, although no chunk holds them; nil: none
}

// The shares of what Expand adds.
const (
	nearShare     = 0.5 // words that differ by a letter or two
	compoundShare = 0.6 // words that a word is put together with others to
)

// The bounds of what Expand adds to one word.
const (
	maxForms  = 6
	maxNear   = 3
	leastStem = 3 // characters of the stem of other forms
	leastWord = 4 // characters of a word that may be mistyped, and of the parts of one
	leastPart = 5 // characters of a part of a compound
	maxVocab  = 20_000
)

// Expand adds to plain words the other ways in which chunks write them: ß as ss
// and ü as ue, the other forms of German, Spanish, French, Italian, Portuguese and
// Dutch words, German and Dutch compounds that begin with them, and, of a word that
// no chunk holds, the parts of a compound, or else compounds that end with it, or
// else the most similar words that chunks hold. corrected are the most similar ones, by what was asked for.
func (x *Text) Expand(w Words, e Expansion) (expanded Words, corrected map[string]string, err error) {
	c, err := x.corpus()
	if err != nil || c.chunks == 0 {
		return w, nil, err
	}
	languages, err := x.languages(e.Asked)
	if err != nil {
		return nil, nil, err
	}
	ex := &expander{Text: x, Expansion: e, corpus: c, languages: languages, corrected: map[string]string{}}
	for _, word := range w {
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

// languages returns those that a query may be in: what its function words say, or
// the languages of the chunks.
func (x *Text) languages(asked []string) (list []terms.Language, err error) {
	for _, l := range terms.Languages {
		has := slices.Contains(asked, l.Code)
		if len(asked) == 0 {
			if has, err = x.hasLanguage(l); err != nil {
				return nil, err
			}
		}
		if has {
			list = append(list, l)
		}
	}
	return list, nil
}

// hasLanguage reports whether some chunk is in a language.
func (x *Text) hasLanguage(l terms.Language) (bool, error) {
	pairs := make([]string, len(l.Marks))
	for i, p := range l.Marks {
		pairs[i] = "(" + quoteTerm(p[0]) + " AND " + quoteTerm(p[1]) + ")"
	}
	var found int
	err := x.value(&found, "SELECT 1 FROM _chunk_text WHERE _chunk_text MATCH ? LIMIT 1", strings.Join(pairs, " OR "))
	return found == 1, err
}

func (ex *expander) expand(w Word) (Word, error) {
	text := w.Ways[0].Text
	for _, v := range terms.Variants(text) {
		w.Ways = append(w.Ways, Way{Text: v})
	}
	if err := ex.addForms(&w, text); err != nil {
		return w, err
	}
	for _, way := range w.Ways {
		if has, err := ex.has(way.Text); err != nil || has {
			return w, err
		}
	}
	if split, err := ex.split(text); err != nil || split {
		return w, err
	}
	if tails, err := ex.tails(text); err != nil || len(tails) > 0 {
		w.add(tails, compoundShare)
		return w, err
	}
	if ex.Known != nil && ex.Known(text) {
		return w, nil
	}
	near, err := ex.near(text)
	for _, n := range near {
		w.Ways = append(w.Ways, Way{Text: n, Share: nearShare})
	}
	if len(near) > 0 {
		ex.corrected[text] = near[0]
	}
	return w, err
}

// has reports whether some chunk holds a word.
func (ex *expander) has(word string) (bool, error) {
	n, _, err := ex.ahead(ex.corpus, term{text: word}, 1)
	return n > 0, err
}

// vocabularyWord is a word of the index.
type vocabularyWord struct {
	term   string
	chunks int
}

// vocabulary returns the index's words that begin with a prefix.
func (x *Text) vocabulary(prefix string) (list []vocabularyWord, err error) {
	return x.words("SELECT term, doc FROM _chunk_terms WHERE term >= ? AND term < ? LIMIT ?", prefix, prefix+"\U0010FFFF", maxVocab)
}

// words returns the index's words that a query selects.
func (x *Text) words(query string, args ...any) (list []vocabularyWord, err error) {
	rows, err := x.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var w vocabularyWord
		if err := rows.Scan(&w.term, &w.chunks); err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	return list, rows.Err()
}

// addForms adds the other forms of a word, and compounds that begin with it.
func (ex *expander) addForms(w *Word, text string) error {
	own, forms, compounds := terms.Stemmed(text), map[string]int{}, map[string]int{}
	for _, l := range ex.languages {
		stems := []string{l.Stem(text), l.Stem(terms.Fold(text)), l.Stem(own)}
		prefix := commonPrefix(stems[:2])
		if utf8.RuneCountInString(prefix) < leastStem {
			continue
		}
		list, err := ex.vocabulary(prefix)
		if err != nil {
			return err
		}
		for _, v := range list {
			switch {
			case v.term == own:
			case slices.Contains(stems, l.Stem(v.term)) || slices.Contains(stems, v.term):
				forms[v.term] = v.chunks
			case l.Compounds && utf8.RuneCountInString(prefix) >= leastPart && len(v.term) >= len(prefix)+leastWord:
				compounds[v.term] = v.chunks
			}
		}
	}
	w.add(forms, 1)
	w.add(compounds, compoundShare)
	return nil
}

// add adds the most frequent of some terms as ways to write a word.
func (w *Word) add(found map[string]int, share float64) {
	list := make([]string, 0, len(found))
	for term := range found {
		list = append(list, term)
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(found[b], found[a]), cmp.Compare(a, b)) })
	for _, term := range list[:min(len(list), maxForms)] {
		if text := terms.WordOf(term); text != "" {
			w.Ways = append(w.Ways, Way{Text: text, Share: share})
		}
	}
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

// links are put between the parts of a compound.
var links = []string{"", "s", "n", "en", "es", "er", "e"}

// split adds the parts of a compound that no chunk holds, and reports whether
// it has such parts: two, of which some chunk holds each.
func (ex *expander) split(text string) (bool, error) {
	if !slices.ContainsFunc(ex.languages, func(l terms.Language) bool { return l.Compounds }) {
		return false, nil
	}
	for at := len(text) - leastWord; at >= leastWord; at-- {
		if !utf8.RuneStart(text[at]) {
			continue
		}
		tail := text[at:]
		if has, err := ex.has(tail); err != nil {
			return false, err
		} else if !has {
			continue
		}
		for _, link := range links {
			head, ok := strings.CutSuffix(text[:at], link)
			if !ok || len(head) < leastWord {
				continue
			}
			if has, err := ex.has(head); err != nil {
				return false, err
			} else if has {
				ex.parts = append(ex.parts, Word{Ways: []Way{{Text: head}}, Weight: compoundShare}, Word{Ways: []Way{{Text: tail}}, Weight: compoundShare})
				return true, nil
			}
		}
	}
	return false, nil
}

// tails returns the compounds of the index that end with a word, in any of its
// forms, by how many chunks hold them. It reads the whole vocabulary, so it finds
// none where that is large.
func (ex *expander) tails(text string) (map[string]int, error) {
	found := map[string]int{}
	for _, l := range ex.languages {
		stem := l.Stem(text)
		if !l.Compounds || utf8.RuneCountInString(text) < leastPart || len(stem) < leastWord || ex.corpus.chunks >= largeVocabulary {
			continue
		}
		list, err := ex.words("SELECT term, doc FROM _chunk_terms WHERE instr(term, ?) >= ? LIMIT ?", stem, leastWord, maxVocab)
		if err != nil {
			return nil, err
		}
		for _, v := range list {
			if strings.HasSuffix(l.Stem(v.term), stem) {
				found[v.term] = v.chunks
			}
		}
	}
	return found, nil
}

// largeVocabulary is how many chunks have so many words that near only looks at
// those that agree with a word in two of its first letters.
const largeVocabulary = 30_000

// near returns the index's words that are most similar to a word, at most two
// letters apart.
func (ex *expander) near(text string) ([]string, error) {
	folded, stem := terms.Fold(text), terms.Stemmed(text)
	letters := []rune(folded)
	if len(letters) < leastWord || slices.ContainsFunc(letters, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return nil, nil
	}
	most := 1
	if len(letters) > 6 {
		most = 2
	}
	best, found := most, map[string]int{}
	for _, prefix := range ex.beginnings(letters) {
		list, err := ex.vocabulary(prefix)
		if err != nil {
			return nil, err
		}
		for _, v := range list {
			d := min(terms.Distance(stem, v.term, best), terms.Distance(folded, v.term, best))
			if d > best || utf8.RuneCountInString(v.term) < leastWord-1 {
				continue
			}
			if d < best {
				best = d
				clear(found)
			}
			found[v.term] = v.chunks
		}
	}
	w := Word{}
	w.add(found, nearShare)
	var near []string
	for _, way := range w.Ways[:min(len(w.Ways), maxNear)] {
		near = append(near, way.Text)
	}
	return near, nil
}

// beginnings returns the prefixes of words that letters may be meant for.
func (ex *expander) beginnings(letters []rune) []string {
	first, second, third := string(letters[0]), string(letters[1]), string(letters[2])
	if ex.corpus.chunks < largeVocabulary {
		return []string{first, second}
	}
	list := []string{first + second, second + first, first + third, second + third}
	slices.Sort(list)
	return slices.Compact(list)
}
