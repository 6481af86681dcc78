package encoder

import (
	"context"
	"math"
)

// MaxText is the number of bytes of a text that are used. The rest is dropped,
// also of what Unicode normalization expands beyond that size. Prose of that
// size has about 15,000 tokens, far more than one vector can represent.
const MaxText = 64 << 10

// Tokens returns the vocabulary ids of the first MaxText bytes of the text. Id
// 0 is a run of characters that are not in the vocabulary, including tabs and
// newlines, so callers may want to replace these with spaces first. Invalid
// UTF-8 also counts as unknown.
func (m *Model) Tokens(text string) []int32 {
	return m.vocabulary.Tokens(normalize(text))
}

// Embed returns the embedding of the text, Dims numbers of length 1, so that a
// dot product is a cosine. The network reads 128 tokens at a time: a longer
// text is split into the fewest windows of that size, all of the same length,
// and their vectors are averaged and scaled to length 1 again. Only the first
// MaxText bytes are used. An empty text has the vector that the network
// computes for no tokens; it is meaningless, and callers that rank by
// similarity should skip such texts.
//
// The only error is the context's, which is checked before each window.
func (m *Model) Embed(ctx context.Context, text string) ([]float32, error) {
	ids := m.Tokens(text)
	s := m.scratch.Get().(*scratch)
	defer m.scratch.Put(s)
	sum, window := make([]float32, Dims), make([]float32, Dims)
	for _, part := range windows(ids) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.network.run(s, part, window)
		for i, v := range window {
			sum[i] += v
		}
	}
	normalizeLength(sum)
	return sum, nil
}

// windows splits ids into the fewest parts of at most maxTokens whose lengths
// differ by at most one. No ids yield one empty window.
func windows(ids []int32) [][]int32 {
	count := max(1, (len(ids)+maxTokens-1)/maxTokens)
	parts := make([][]int32, count)
	for i := range parts {
		parts[i] = ids[len(ids)*i/count : len(ids)*(i+1)/count]
	}
	return parts
}

// normalizeLength scales v to length 1. Like the network's last step it scales a vector
// shorter than 1e-6 as if it had that length.
func normalizeLength(v []float32) {
	var squares float64
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	scale := float32(1 / math.Sqrt(max(squares, 1e-12)))
	for i := range v {
		v[i] *= scale
	}
}
