package pretrained

import (
	"fmt"

	"satchel/vector/encoder/internal/gemm"
	"satchel/vector/encoder/internal/nn"
	"satchel/vector/encoder/internal/tensor"
	"satchel/vector/encoder/internal/tokenizer"
)

// network is the encoder: layers over the sum of the embeddings of each token, its
// position and its type.
type network struct {
	width, heads, inner int
	functions           nn.Functions

	words     *tensor.Tensor // a row for each token, read in place
	positions []float32      // from the first token's on
	types     []float32
	norm      nn.Norm
	layers    []layer
}

// layer is self-attention and a feed-forward network, each added to its input
// and then normalized.
type layer struct {
	qkv           nn.Dense
	attention     nn.Dense
	attentionNorm nn.Norm
	inner         nn.Dense
	outer         nn.Dense
	outerNorm     nn.Norm
}

func newNetwork(weights *weights, config *config) *network {
	in := weights.prefix + "embeddings."
	n := &network{
		width:     config.Width,
		heads:     config.Heads,
		inner:     config.Inner,
		functions: nn.FunctionsOf(weights.kernel),
		words:     weights.tensor(in+"word_embeddings.weight", config.Vocabulary, config.Width),
		types:     weights.table(in+"token_type_embeddings.weight", config.Types, config.Width),
		norm:      weights.norm(in+"LayerNorm", config.Width, config.Epsilon),
	}
	if table := weights.table(in+"position_embeddings.weight", config.Positions, config.Width); table != nil {
		n.positions = table[config.offset()*config.Width:]
	}
	for i := range config.Layers {
		if weights.err != nil {
			break
		}
		n.layers = append(n.layers, newLayer(weights, config, fmt.Sprintf("%sencoder.layer.%d.", weights.prefix, i)))
	}
	return n
}

func newLayer(w *weights, c *config, at string) layer {
	self := at + "attention.self."
	return layer{
		qkv:           w.dense(c.Width, c.Width, self+"query", self+"key", self+"value"),
		attention:     w.dense(c.Width, c.Width, at+"attention.output.dense"),
		attentionNorm: w.norm(at+"attention.output.LayerNorm", c.Width, c.Epsilon),
		inner:         w.dense(c.Width, c.Inner, at+"intermediate.dense"),
		outer:         w.dense(c.Inner, c.Width, at+"output.dense"),
		outerNorm:     w.norm(at+"output.LayerNorm", c.Width, c.Epsilon),
	}
}

// run turns the embedded tokens in s.tokens into their vectors.
func (n *network) run(s *scratch, rows int) {
	for i := range n.layers {
		n.layers[i].run(s, n, rows)
	}
}

// embed writes the sum of token, position and type to s.tokens, normalized.
func (n *network) embed(s *scratch, in tokenizer.Input) {
	for i, id := range in.IDs {
		row := s.tokens.Data[i*n.width:][:n.width]
		n.words.Row(int(id), row)
		position, kind := n.positions[i*n.width:][:n.width], n.types[int(in.Types[i])*n.width:][:n.width]
		for j := range row {
			row[j] += position[j] + kind[j]
		}
	}
	n.norm.Apply(s.tokens, s.tokens, len(in.IDs))
}

func (l *layer) run(scratch *scratch, network *network, rows int) {
	size := network.width / network.heads
	qkv := gemm.Rows{Data: scratch.wide, Stride: gemm.PadColumns(3 * network.width)}
	l.qkv.Apply(qkv, scratch.tokens, rows)
	for head := range network.heads {
		at := head * size
		scratch.attention.Head(
			scratch.attended.At(0, at),
			qkv.At(0, at),
			qkv.At(0, network.width+at),
			qkv.At(0, 2*network.width+at),
			size,
			rows,
		)
	}
	l.attention.Add(scratch.tokens, scratch.attended, rows)
	l.attentionNorm.Apply(scratch.tokens, scratch.tokens, rows)

	inner := gemm.Rows{Data: scratch.wide, Stride: gemm.PadColumns(network.inner)}
	l.inner.Apply(inner, scratch.tokens, rows)
	for i := range rows {
		network.functions.GELU(inner.Data[i*inner.Stride:][:network.inner])
	}
	l.outer.Add(scratch.tokens, inner, rows)
	l.outerNorm.Apply(scratch.tokens, scratch.tokens, rows)
}

// scratch is the working memory of one run.
type scratch struct {
	tokens    gemm.Rows // the vectors of the tokens
	attended  gemm.Rows
	wide      []float32 // queries, keys and values, or the inner layer
	attention *nn.Attention
}

// newScratch returns working memory for inputs of a number of tokens.
func (n *network) newScratch(kernel *gemm.Kernel, tokens int) *scratch {
	rows := gemm.PadRows(tokens)
	matrix := func(columns int) gemm.Rows {
		columns = gemm.PadColumns(columns)
		return gemm.Rows{Data: make([]float32, rows*columns), Stride: columns}
	}
	return &scratch{
		tokens:    matrix(n.width),
		attended:  matrix(n.width + gemm.PadColumns(1)), // the last head's panel may reach past its columns
		wide:      matrix(max(3*n.width, n.inner)).Data,
		attention: nn.NewAttention(kernel, n.width/n.heads, tokens),
	}
}
