package nn

import (
	"math"

	"satchel/vector/encoder/internal/gemm"
)

// Dense is a matrix product plus a bias.
type Dense struct {
	Weights *gemm.Matrix
	Bias    []float32
}

// Apply writes a·weights + bias to c, for rows that are padded as MulAdd
// requires.
func (d *Dense) Apply(c, a gemm.Rows, rows int) {
	Fill(c, rows, d.Bias)
	d.Weights.MulAdd(c, a, rows)
}

// Add adds a·weights + bias to c.
func (d *Dense) Add(c, a gemm.Rows, rows int) {
	for i := range rows {
		row := c.Data[i*c.Stride:][:len(d.Bias)]
		for j, b := range d.Bias {
			row[j] += b
		}
	}
	d.Weights.MulAdd(c, a, rows)
}

// Attention is the working memory of attention heads. It must not be used concurrently.
type Attention struct {
	functions Functions
	scores    []float32
	keys      *gemm.Matrix
	values    *gemm.Matrix
}

// NewAttention returns working memory for heads of a size over rows tokens.
func NewAttention(kernel *gemm.Kernel, size, rows int) *Attention {
	return &Attention{
		functions: FunctionsOf(kernel),
		scores:    make([]float32, gemm.PadRows(rows)*gemm.PadColumns(rows)),
		keys:      gemm.NewMatrix(kernel, size, rows),
		values:    gemm.NewMatrix(kernel, rows, size),
	}
}

// Head writes the output of one attention head for each token to dst: the values
// of all tokens, weighted by how well their keys match its query. queries, keys
// and values have size columns.
func (s *Attention) Head(dst, queries, keys, values gemm.Rows, size, rows int) {
	s.keys.Reset(size, rows)
	s.values.Reset(rows, size)
	for i := range rows {
		s.keys.SetColumn(i, keys.Data[i*keys.Stride:][:size])
		s.values.SetRow(i, values.Data[i*values.Stride:][:size])
	}
	scores := gemm.Rows{Data: s.scores, Stride: gemm.PadColumns(rows)}
	clear(s.scores[:gemm.PadRows(rows)*scores.Stride])
	s.keys.MulAdd(scores, queries, rows)
	scale := float32(1 / math.Sqrt(float64(size)))
	for i := range rows {
		s.functions.softmaxRow(scores.Data[i*scores.Stride:][:scores.Stride], rows, scale)
	}
	for i := range gemm.PadRows(rows) {
		clear(dst.Data[i*dst.Stride:][:size])
	}
	s.values.MulAdd(dst, scores, rows)
}
