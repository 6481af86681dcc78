package search

import (
	"cmp"
	"math"
	"slices"

	"satchel/store/search/postings"
)

// Words are what full-text search looks for. They are taken literally: there are no
// operators in them.
type Words []Word

// Word is something that a query looks for.
type Word struct {
	Ways     []Way   // how texts may write it; the best one counts
	Weight   float64 // relative to the other words; 0: 1
	Name     bool    // a code, a name or a number: see Matches.Names
	Optional bool    // if no chunk contains it, it does not count
	Plain    bool    // an ordinary word, whose other forms Expand adds
}

// Way is one way of writing a word.
type Way struct {
	Text   string  // a word, or consecutive words
	Prefix bool    // words that begin with it match too
	Share  float64 // of the word's weight; 0: 1
}

func (w Word) weight() float64 {
	return cmp.Or(w.Weight, 1)
}

// Limits on the terms of one search: how many are counted, how many of those are
// used, and the number of chunks from which on a term is ignored as too common.
const (
	maxTerms     = 64
	maxMatched   = 32
	maxTermBytes = 200
	fewChunks    = 1000
)

// term is a way of writing a word, with its frequency.
type term struct {
	text   string
	prefix bool // the way is a prefix of words
	word   int  // index in the query's words
	share  float64
	weight float64 // of the word
	chunks int     // number of chunks that contain it
	idf    float64
	list   postings.List
}

// rated is a word with the weight that its frequency gives it.
type rated struct {
	Word
	chunks int // number of chunks that contain it
	idf    float64
	rare   bool  // a name that few enough chunks contain to identify them
	terms  []int // indexes of its ways in the list of terms
}

// weigh counts the ways of writing each word, picks the terms to look for, and
// returns the best possible bm25 for the query: the sum of idf·(k1+1), with FTS5's
// own idf, see https://www.sqlite.org/fts5.html#the_bm25_function. A word that is in
// no chunk counts too, because no chunk answers that part of the query, unless it is
// optional.
func (x *Text) weigh(corpus corpus, w Words) (words []rated, found []term, best float64, err error) {
	counted := 0
	for index, word := range w {
		r := rated{Word: word}
		for _, way := range word.Ways {
			if len(way.Text) > maxTermBytes || counted == maxTerms || x.rows > maxRows {
				continue
			}
			counted++
			t := term{
				text:   way.Text,
				prefix: way.Prefix,
				word:   index,
				share:  cmp.Or(way.Share, 1),
				weight: word.weight(),
			}
			if t.list, err = x.list(termKey{t.text, t.prefix}, false); err != nil {
				return nil, nil, 0, err
			}
			if t.chunks = len(t.list.Rows); t.chunks > 0 {
				t.idf = idf(corpus.chunks, t.chunks)
				found = append(found, t)
			}
		}
		r.rate(corpus, index, found)
		words = append(words, r)
	}
	found = dropCommon(found)
	for i, t := range found {
		if found[i].list, err = x.list(termKey{t.text, t.prefix}, true); err != nil {
			return nil, nil, 0, err
		}
		words[t.word].terms = append(words[t.word].terms, i)
	}
	for i := range words {
		r := &words[i]
		if r.rare = r.isRare(corpus); r.chunks == 0 && !r.Optional || len(r.terms) > 0 {
			best += r.weight() * r.idf
		}
	}
	return words, found, best * (k1 + 1), nil
}

// rate sets the frequency of a word: that of the ways that are the word itself, or
// of the most frequent other one.
func (r *rated) rate(c corpus, i int, found []term) {
	most := 0
	for _, t := range found {
		if t.word != i {
			continue
		}
		if most = max(most, t.chunks); t.share == 1 {
			r.chunks += t.chunks
		}
	}
	if r.chunks = min(r.chunks, c.chunks); r.chunks == 0 {
		r.chunks = most
	}
	r.idf = idf(c.chunks, r.chunks)
}

// isRare reports whether few enough chunks contain a name for it to identify them.
func (r rated) isRare(c corpus) bool {
	return r.Name &&
		r.chunks > 0 &&
		r.chunks <= max(min(rareChunks, c.chunks/10), c.chunks/rareDivisor, 1)
}

// Limits for isRare: a number of chunks, and the divisor for their share of all chunks.
const (
	rareChunks  = 3
	rareDivisor = 200
)

// minIDF is the idf that FTS5 assigns to what occurs in at least half of the rows.
const minIDF = 1e-6

func idf(total, chunks int) float64 {
	n := float64(chunks)
	return max(math.Log((float64(total)-n+0.5)/(n+0.5)), minIDF)
}

// dropCommon removes terms that are expensive to search for and too common to
// discriminate, unless there are no others, and keeps the rarest.
func dropCommon(terms []term) []term {
	slices.SortStableFunc(terms, func(a, b term) int {
		return cmp.Compare(a.chunks, b.chunks)
	})
	n := min(len(terms), maxMatched)
	for n > 1 && terms[n-1].idf == minIDF && terms[n-1].chunks > fewChunks {
		n--
	}
	return terms[:n]
}

// minWeight is the minimum weight of words that select chunks, unless a query has
// no others.
const minWeight = 0.5
