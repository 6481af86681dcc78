package vector

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"satchel/vector/lexicon"
)

// ranking orders the candidates of one search and rates them.
type ranking struct {
	mode       Mode
	trust      float64 // how meaningful the cosine is, 0 to 1
	local      bool    // with the built-in model
	scale      scale   // of the cosines
	leader     int64   // the chunk that leads by words
	lead       float64 // by how much; see findLeader
	below      float64 // the value of the candidate after the one that leads
	background float64 // the value of chunks that have nothing to do with the query; see rate
	unrelated  scale   // of the cosines of such chunks, with the built-in model
}

// rank returns the value by which candidates are sorted.
func (r ranking) rank(c *candidate) float64 {
	value := r.value(c)
	if c.Seq == r.leader {
		value += leadShare * r.lead
	}
	return value
}

// value is rank without the lead by words.
func (r ranking) value(c *candidate) float64 {
	switch r.mode {
	case Vector:
		return c.level()
	case Keyword:
		return c.words + c.names
	}
	return r.trust*(c.level()+relatedShare*c.related) + c.words*math.Pow(
		min(c.words/onceShare, 1),
		r.trust,
	) + nameShare*c.names
}

// leadShare is the weight of the lead that one chunk has by words: the fewer chunks
// contain the words of a query, the more significant they are. It affects the order of
// chunks but not their scores, because a chunk that leads need not be an answer. Tuned
// with the tune halves of the sets of lab/quality.
const leadShare = 0.3

// findLeader notes which candidate of a hybrid search leads by words, and by how
// much it exceeds the second.
func (r *ranking) findLeader(list []candidate) {
	if r.mode != Hybrid {
		return
	}
	first, second := 0.0, 0.0
	for _, c := range list {
		if second = max(second, min(c.words, first)); c.words > first {
			first, r.leader = c.words, c.Seq
		}
	}
	r.lead = first - second
}

// relatedShare is the weight of the lexicon's similarity relative to the
// cosine, tuned with the tune halves of the sets of lab/quality.
const relatedShare = 0.15

// nameShare is the maximum difference of two cosines, so that a chunk with a code, name
// or number that few others have comes first.
const nameShare = 1

// onceShare is the part of the best possible bm25 reached by a chunk of average
// length that contains every word of the query once: idf of idf·(k1+1). A lower
// value means that some of the words are missing, and half of the words of a
// question are less than half of an answer. That is so while the cosine finds
// paraphrases; the less it can be trusted, the more each word that is there counts.
const onceShare = 1 / 2.2

// trustOf returns how meaningful an embedder's cosines to a text are. The
// built-in model is trained on English: there its tokens have about four
// characters, in other languages two, in codes one and a half. Only words
// count, because markup in a question has no language.
func trustOf(e Embedder, text string) float64 {
	tokenizer, ok := e.(interface{ TokenLength(text string) float64 })
	if !ok {
		return 1
	}
	length := tokenizer.TokenLength(strings.Join(strings.FieldsFunc(text, separates), " "))
	known := min(max((length-foreignToken)/(knownToken-foreignToken), 0), 1)
	return max(known*known, minTrust)
}

// The characters per token in text that the model does not know, and in text
// that it knows, and the lowest trust. For text that the model half knows,
// cosines have a quarter of the weight, according to the tune half of
// lab/quality's set of languages.
const (
	foreignToken = 1.2
	knownToken   = 2.8
	minTrust     = 0.2
)

// backgroundRank is the rank of the candidate that represents chunks which have
// nothing to do with the query.
const backgroundRank = 15

// unrelated is the least cosine of the built-in model to text that has nothing to do
// with a query. Measured with the questions of TestThreshold of the package chat.
const unrelated = 0.2

// unrelatedModel is the cosine of any other model to such text, where there are
// too few chunks to tell.
const unrelatedModel = 0.3

// rate determines the background of ordered candidates: the value of the one at
// backgroundRank, but at least that of unrelated text, which all chunks of a small
// source can be.
func (r *ranking) rate(list []candidate) {
	if r.background = 0; len(list) > backgroundRank {
		r.background = r.value(&list[backgroundRank])
	}
	at := slices.IndexFunc(list, func(c candidate) bool {
		return c.Seq == r.leader
	})
	if r.below = 0; at >= 0 && at+1 < len(list) {
		r.below = r.value(&list[at+1])
	}
	switch {
	case r.mode == Hybrid && r.local:
		r.background = max(r.background, r.trust*max(unrelated, r.unrelated.highestOf(max(len(list), 1))))
	case r.mode != Keyword && len(list) <= backgroundRank:
		r.background = unrelatedModel * r.trust
	}
}

// calibrations turn how much a candidate's value is above the background into the
// probability that it answers the query: fitted by logistic regression to the
// first results of the sets of lab/quality and of TestThreshold.
var calibrations = map[Mode]struct{ constant, slope float64 }{
	Hybrid:  {-1.17, 3.98},
	Vector:  {-2.27, 9.28},
	Keyword: {-2.24, 7.5},
}

// score estimates how likely a candidate answers the query, rounded to
// millionths, so that the shown value and the comparison with min_score agree.
func (r ranking) score(c *candidate) float64 {
	by, value := calibrations[r.mode], r.value(c)
	if c.Seq == r.leader {
		value = max(value, r.below) // results come in the order of their scores
	}
	return millionths(1 / (1 + math.Exp(-by.constant-by.slope*(value-r.background))))
}

func millionths(x float64) float64 {
	return math.Round(min(max(x, 0), 1)*1e6) / 1e6
}

// order sorts candidates, best first. Equal ones keep the order in which they
// were stored.
func (r ranking) order(list []candidate) {
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(r.rank(&b), r.rank(&a)), cmp.Compare(a.Seq, b.Seq))
	})
}

// addRelatedness adds the lexicon's similarity to the query to the candidates of a
// hybrid search. It compensates for weaknesses of the built-in model, so it is
// not used with others, whose cosines also have another range.
func addRelatedness(list []candidate, ranking ranking, query Query) error {
	if !ranking.local || ranking.mode != Hybrid {
		return nil
	}
	table, err := lexicon.Load()
	if err != nil {
		return fmt.Errorf("load the lexicon: %w", err)
	}
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = textToEmbed(c.Metadata.Section, c.Content)
	}
	for i, likeness := range table.Similar(query.Text, texts) {
		list[i].related = likeness
	}
	return nil
}

// ranking returns how the candidates of a search are ordered.
func (ix *Index) ranking(m model, q Query) ranking {
	r := ranking{mode: q.Mode, trust: 1}
	if m.to.Local() {
		_, r.local = ix.embedder.(local)
		r.trust = trustOf(ix.embedder, q.Text)
	}
	return r
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
