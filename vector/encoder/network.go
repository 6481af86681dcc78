package encoder

import (
	"math"
	"strconv"

	"satchel/vector/encoder/internal/gemm"
	"satchel/vector/encoder/internal/nn"
	"satchel/vector/internal/modelfile"
)

// The sizes of the network.
const (
	vocabularyRows = 8002
	maxTokens      = 128
	inputWidth     = 256 // of an embedded token and of layer 0's attention
	width          = Dims
	innerWidth     = 1536
	heads          = 4
)

// network is the transformer: pre-norm layers over embedded tokens, the mean
// over the tokens, one dense layer with tanh.
type network struct {
	embedding modelfile.Matrix
	positions []float32 // maxTokens × inputWidth
	residual  nn.Dense  // converts the input of layer 0 to the width of its output
	layers    [2]layer
	output    nn.Dense
}

// layer is self-attention and a feed-forward network, each after a norm and
// each added to its input.
type layer struct {
	width         int // of the input tokens, and of queries, keys and values
	attentionNorm nn.Norm
	qkv           nn.Dense
	attention     nn.Dense
	forwardNorm   nn.Norm
	inner         nn.Dense
	outer         nn.Dense
}

func newNetwork(file *modelfile.File, kernel *gemm.Kernel) (*network, error) {
	r := &matrices{file: file, kernel: kernel}
	n := &network{
		embedding: r.matrix("embedding", vocabularyRows, inputWidth),
		positions: positions(r.vector("timescales", inputWidth/2)),
		residual:  r.dense("layer0.residual", inputWidth, width),
		output:    r.dense("output", width, Dims),
	}
	for i, w := range []int{inputWidth, width} {
		n.layers[i] = r.layer("layer"+strconv.Itoa(i), w)
	}
	return n, r.err
}

// run writes the unit vector of at most maxTokens ids to out.
func (n *network) run(scratch *scratch, ids []int32, out []float32) {
	rows := len(ids)
	n.embed(scratch.input, ids)
	nn.Fill(scratch.tokens, rows, n.residual.Bias)
	n.residual.Weights.MulAdd(scratch.tokens, scratch.input, rows)
	n.layers[0].run(scratch, scratch.input, rows)
	n.layers[1].run(scratch, scratch.tokens, rows)

	mean := scratch.normed.At(0, 0)
	mean.Stride = width
	nn.Average(mean.Data[:width], scratch.tokens, rows)
	answer := gemm.Rows{Data: scratch.wide, Stride: Dims}
	n.output.Apply(answer, mean, 1)
	for i, v := range answer.Data[:Dims] {
		out[i] = float32(math.Tanh(float64(v)))
	}
	normalizeLength(out[:Dims])
}

// embed looks up the tokens. Like the published graph it adds the sum of row
// and position to the row again.
func (n *network) embed(dst gemm.Rows, ids []int32) {
	for i, id := range ids {
		row := dst.Data[i*dst.Stride:][:inputWidth]
		n.embedding.Row(int(id), row)
		for j, p := range n.positions[i*inputWidth:][:inputWidth] {
			row[j] = 2*row[j] + p
		}
	}
}

// run reads the layer's input from in and adds its output to s.tokens, which
// already contains the input at full width.
func (l *layer) run(scratch *scratch, in gemm.Rows, rows int) {
	normed := gemm.Rows{Data: scratch.normed.Data, Stride: l.width}
	l.attentionNorm.Apply(normed, in, rows)
	qkv := gemm.Rows{Data: scratch.wide, Stride: 3 * l.width}
	l.qkv.Apply(qkv, normed, rows)
	attended := gemm.Rows{Data: scratch.attended, Stride: l.width}
	for head := range heads {
		attend(scratch, attended, qkv, l.width, head, rows)
	}
	l.attention.Add(scratch.tokens, attended, rows)

	normed.Stride = width
	l.forwardNorm.Apply(normed, scratch.tokens, rows)
	inner := gemm.Rows{Data: scratch.wide, Stride: innerWidth}
	l.inner.Apply(inner, normed, rows)
	nn.Rectify(inner.Data[:rows*innerWidth])
	l.outer.Add(scratch.tokens, inner, rows)
}

// attend writes the output of one attention head for each token.
func attend(s *scratch, dst, qkv gemm.Rows, width, head, rows int) {
	size := width / heads
	at := head * size
	s.attention.Head(dst.At(0, at), qkv.At(0, at), qkv.At(0, width+at), qkv.At(0, 2*width+at), size, rows)
}

// scratch is the working memory of one run.
type scratch struct {
	input     gemm.Rows // embedded tokens
	tokens    gemm.Rows // the residual stream
	normed    gemm.Rows
	wide      []float32 // queries, keys and values, or the inner layer
	attended  []float32
	attention *nn.Attention
}

func newScratch(kernel *gemm.Kernel) *scratch {
	rows := gemm.PadRows(maxTokens)
	matrix := func(columns int) gemm.Rows {
		return gemm.Rows{Data: make([]float32, rows*columns), Stride: columns}
	}
	return &scratch{
		input:     matrix(inputWidth),
		tokens:    matrix(width),
		normed:    matrix(width),
		wide:      matrix(innerWidth).Data,
		attended:  matrix(width).Data,
		attention: nn.NewAttention(kernel, width/heads, maxTokens),
	}
}
