package chunk

import (
	"context"
	"fmt"
	"math"

	"satchel/vector/document"
)

const (
	embedBatch   = 32   // texts per call of Embed
	maxEmbedText = 1000 // characters of a sentence that are embedded
	minDrift     = 0.1  // minimum depth of a similarity dip that counts as a change of topic
)

// topics returns the offsets where the topic changes. It is TextTiling (Hearst
// 1997) over embeddings: for each gap between two sentences, it takes the
// cosine of the two sentences before and the two after it; the depth of a gap
// is how far the cosine is below the peaks on both sides; gaps deeper than the
// mean plus one standard deviation separate topics.
func (splitter *splitter) topics(ctx context.Context) ([]int, error) {
	starts := splitter.sentences()
	cosines, err := splitter.cosines(ctx, starts)
	if err != nil {
		return nil, err
	}
	depth := dipDepths(cosines)
	mean, deviation := meanAndDeviation(depth)
	limit := max(mean+deviation, minDrift)
	var breaks []int
	last := 0
	for i, d := range depth {
		at := starts[i+1]
		peak := (i == 0 || depth[i-1] <= d) && (i == len(depth)-1 || depth[i+1] < d)
		if d >= limit && peak && at-last >= splitter.Size/5 {
			breaks = append(breaks, at)
			last = at
		}
	}
	return breaks, nil
}

// sentences returns where sentences start. A heading belongs to what follows
// it; a table, a code fence and a record are one sentence each.
func (splitter *splitter) sentences() []int {
	var starts []int
	for index, block := range splitter.doc.Blocks {
		if index == 0 || splitter.doc.Blocks[index-1].Kind != document.KindHeading {
			starts = append(starts, int(block.Start))
		}
		if block.Kind != document.KindParagraph && block.Kind != document.KindList {
			continue
		}
		splitter.within(
			block,
			int(block.Start)+1,
			int(block.End),
			func(at int, l level) bool {
				if l <= atSentence {
					starts = append(starts, at)
				}
				return true
			},
		)
	}
	return starts
}

// cosines returns the similarity across each gap between two sentences.
func (splitter *splitter) cosines(ctx context.Context, starts []int) ([]float64, error) {
	var (
		out  []float64
		near [][]float32 // at most the last four vectors
	)
	push := func(v []float32) {
		if near = append(near, v); len(near) > 4 {
			near = near[1:]
		}
		switch n := len(near); n {
		case 3:
			out = append(out, cosine(near[:1], near[1:]))
		case 4:
			out = append(out, cosine(near[:2], near[2:]))
		}
	}
	for from := 0; from < len(starts); from += embedBatch {
		texts := make([]string, 0, embedBatch)
		for i := from; i < min(from+embedBatch, len(starts)); i++ {
			texts = append(texts, splitter.sentence(starts, i))
		}
		vectors, err := splitter.Embed(ctx, texts)
		if err != nil {
			return nil, err
		}
		if len(vectors) != len(texts) {
			return nil, fmt.Errorf("chunk: Embed returned %d vectors for %d texts", len(vectors), len(texts))
		}
		for _, v := range vectors {
			push(v)
		}
	}
	if n := len(near); n > 1 {
		out = append(out, cosine(near[max(0, n-3):n-1], near[n-1:]))
	}
	return out, nil
}

// sentence returns the part of sentence i that is embedded.
func (splitter *splitter) sentence(starts []int, i int) string {
	end := len(splitter.text)
	if i+1 < len(starts) {
		end = starts[i+1]
	}
	end = min(end, advance(splitter.text, starts[i], end, maxEmbedText))
	return splitter.text[starts[i]:end]
}

// cosine compares the sums of two groups of vectors of equal length; 0 if one
// of the sums is zero.
func cosine(a, b [][]float32) float64 {
	var dot, aa, bb float64
	for i := range a[0] {
		x, y := sum(a, i), sum(b, i)
		dot += x * y
		aa += x * x
		bb += y * y
	}
	if c := dot / math.Sqrt(aa*bb); !math.IsNaN(c) {
		return c
	}
	return 0
}

func sum(vectors [][]float32, i int) float64 {
	total := 0.0
	for _, v := range vectors {
		if i < len(v) {
			total += float64(v[i])
		}
	}
	return total
}

// dipDepths returns how far each value is below the peaks to its left and right.
func dipDepths(values []float64) []float64 {
	length := len(values)
	out := make([]float64, length)
	peak := 0.0
	for i, v := range values {
		if i == 0 || values[i-1] < v {
			peak = v
		}
		out[i] = peak - v
	}
	for i := length - 1; i >= 0; i-- {
		v := values[i]
		if i == length-1 || values[i+1] < v {
			peak = v
		}
		out[i] += peak - v
	}
	return out
}

// meanAndDeviation returns the mean and the standard deviation.
func meanAndDeviation(values []float64) (mean, deviation float64) {
	if len(values) == 0 {
		return 0, 0
	}
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	for _, v := range values {
		deviation += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(values)))
}
