package vector

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"satchel/vector/lexicon"
)

// rank is what candidates are ordered by.
func (c *candidate) rank(m Mode) float64 {
	switch m {
	case Vector:
		return c.cosine
	case Keyword:
		return c.words
	}
	return c.cosine + c.words*min(c.words/eachOnce, 1) + relatedShare*c.related
}

// relatedShare is how much the lexicon's likeness counts beside the cosine,
// found with the tune halves of the command eval.
const relatedShare = 0.15

// eachOnce is the part of the best possible bm25 that a chunk of usual length
// reaches which holds every word of the query once: idf of idf·(k1+1). What
// reaches less lacks some of the words, and half of the words of a question are
// less than half of an answer.
const eachOnce = 1 / 2.2

// score is the cosine as clients see it, in millionths, so that what is shown
// and what min_score compares are the same.
func (c *candidate) score() float64 {
	return math.Round(min(max(c.cosine, 0), 1)*1e6) / 1e6
}

// order sorts candidates, best first; equals in the order they were stored.
func order(list []candidate, m Mode) {
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.rank(m), a.rank(m)), cmp.Compare(a.Seq, b.Seq))
	})
}

// relate adds to the candidates of a hybrid search how alike they are to the
// query by the meaning of single words. It mends weaknesses of the model inside
// the binary, so it is left out with others, whose cosines have another range
// too.
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

// cosine returns the cosine similarity of two vectors of one length, 0 when
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
