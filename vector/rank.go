package vector

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"satchel/vector/lexicon"
)

// rank returns the value by which candidates are sorted.
func (c *candidate) rank(m Mode) float64 {
	switch m {
	case Vector:
		return c.cosine
	case Keyword:
		return c.words
	}
	return c.cosine + c.words*min(c.words/eachOnce, 1) + relatedShare*c.related
}

// relatedShare is the weight of the lexicon's similarity relative to the
// cosine, tuned with the tune halves of the command eval.
const relatedShare = 0.15

// eachOnce is the part of the best possible bm25 reached by a chunk of average
// length that contains every word of the query once: idf of idf·(k1+1). A lower
// value means that some of the words are missing, and half of the words of a
// question are less than half of an answer.
const eachOnce = 1 / 2.2

// score returns the cosine as clients see it, rounded to millionths, so that
// the shown value and the comparison with min_score agree.
func (c *candidate) score() float64 {
	return math.Round(min(max(c.cosine, 0), 1)*1e6) / 1e6
}

// order sorts candidates, best first. Equal ones keep the order in which they
// were stored.
func order(list []candidate, m Mode) {
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.rank(m), a.rank(m)), cmp.Compare(a.Seq, b.Seq))
	})
}

// relate adds the lexicon's similarity to the query to the candidates of a
// hybrid search. It compensates for weaknesses of the built-in model, so it is
// not used with others, whose cosines also have another range.
func (ix *Index) relate(list []candidate, m model, q Query) error {
	if _, ok := ix.embedder.(local); !ok || !m.to.Local() || q.Mode != Hybrid {
		return nil
	}
	table, err := lexicon.Load()
	if err != nil {
		return fmt.Errorf("load the lexicon: %w", err)
	}
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = embeddable(c.Metadata.Section, c.Content)
	}
	for i, likeness := range table.Similar(q.Text, texts) {
		list[i].related = likeness
	}
	return nil
}

// cosine returns the cosine similarity of two vectors of equal length, or 0 if
// one of them is zero.
func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i, x := range a {
		y := b[i]
		dot += float64(x) * float64(y)
		aa += float64(x) * float64(x)
		bb += float64(y) * float64(y)
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}
