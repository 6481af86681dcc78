package encoder

import (
	"math"
	"strconv"

	"satchel/vector/encoder/internal/gemm"
	"satchel/vector/encoder/internal/modelfile"
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
	residual  dense     // converts the input of layer 0 to the width of its output
	layers    [2]layer
	output    dense
}

// layer is self-attention and a feed-forward network, each after a norm and
// each added to its input.
type layer struct {
	width         int // of the input tokens, and of queries, keys and values
	attentionNorm scaling
	qkv           dense
	attention     dense
	forwardNorm   scaling
	inner         dense
	outer         dense
}

// dense is a matrix product plus a bias.
type dense struct {
	weights *gemm.Matrix
	bias    []float32
}

// scaling is what a layer norm applies to normalized values.
type scaling struct {
	scale, bias []float32
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
func (n *network) run(s *scratch, ids []int32, out []float32) {
	rows := len(ids)
	n.embed(s.input, ids)
	fill(s.tokens, rows, n.residual.bias)
	n.residual.weights.MulAdd(s.tokens, s.input, rows)
	n.layers[0].run(s, s.input, rows)
	n.layers[1].run(s, s.tokens, rows)

	mean := s.normed.At(0, 0)
	mean.Stride = width
	average(mean.Data[:width], s.tokens, rows)
	answer := gemm.Rows{Data: s.wide, Stride: Dims}
	n.output.apply(answer, mean, 1)
	for i, v := range answer.Data[:Dims] {
		out[i] = float32(math.Tanh(float64(v)))
	}
	unit(out[:Dims])
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
func (l *layer) run(s *scratch, in gemm.Rows, rows int) {
	normed := gemm.Rows{Data: s.normed.Data, Stride: l.width}
	l.attentionNorm.apply(normed, in, rows)
	qkv := gemm.Rows{Data: s.wide, Stride: 3 * l.width}
	l.qkv.apply(qkv, normed, rows)
	attended := gemm.Rows{Data: s.attended, Stride: l.width}
	for head := range heads {
		attend(s, attended, qkv, l.width, head, rows)
	}
	l.attention.add(s.tokens, attended, rows)

	normed.Stride = width
	l.forwardNorm.apply(normed, s.tokens, rows)
	inner := gemm.Rows{Data: s.wide, Stride: innerWidth}
	l.inner.apply(inner, normed, rows)
	rectify(inner.Data[:rows*innerWidth])
	l.outer.add(s.tokens, inner, rows)
}

// apply writes a·weights + bias to c.
func (d *dense) apply(c, a gemm.Rows, rows int) {
	fill(c, rows, d.bias)
	d.weights.MulAdd(c, a, rows)
}

// add adds a·weights + bias to c.
func (d *dense) add(c, a gemm.Rows, rows int) {
	for i := range rows {
		row := c.Data[i*c.Stride:][:len(d.bias)]
		for j, b := range d.bias {
			row[j] += b
		}
	}
	d.weights.MulAdd(c, a, rows)
}

// attend writes the output of one attention head for each token: the values of
// all tokens, weighted by how well their keys match its query.
func attend(s *scratch, dst, qkv gemm.Rows, width, head, rows int) {
	size := width / heads
	queries, keys, values := qkv.At(0, head*size), qkv.At(0, width+head*size), qkv.At(0, 2*width+head*size)

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
		softmax(scores.Data[i*scores.Stride:][:rows], scale)
	}
	out := dst.At(0, head*size)
	for i := range gemm.PadRows(rows) {
		clear(out.Data[i*out.Stride:][:size])
	}
	s.values.MulAdd(out, scores, rows)
}

// scratch is the working memory of one run.
type scratch struct {
	input    gemm.Rows // embedded tokens
	tokens   gemm.Rows // the residual stream
	normed   gemm.Rows
	wide     []float32 // queries, keys and values, or the inner layer
	attended []float32
	scores   []float32
	keys     *gemm.Matrix
	values   *gemm.Matrix
}

func newScratch(kernel *gemm.Kernel) *scratch {
	rows := gemm.PadRows(maxTokens)
	matrix := func(columns int) gemm.Rows {
		return gemm.Rows{Data: make([]float32, rows*columns), Stride: columns}
	}
	return &scratch{
		input:    matrix(inputWidth),
		tokens:   matrix(width),
		normed:   matrix(width),
		wide:     matrix(innerWidth).Data,
		attended: matrix(width).Data,
		scores:   matrix(gemm.PadColumns(maxTokens)).Data,
		keys:     gemm.NewMatrix(kernel, width/heads, maxTokens),
		values:   gemm.NewMatrix(kernel, maxTokens, width/heads),
	}
}
