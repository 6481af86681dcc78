package pretrained

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"satchel/vector/encoder/internal/gemm"
	"satchel/vector/encoder/internal/nn"
	"satchel/vector/encoder/internal/tokenizer"
)

// Kind is what a model computes.
type Kind string

// The kinds of models.
const (
	Embedder Kind = "embedder"
	Reranker Kind = "reranker"
)

// Model is a model that was read from a folder, safe for concurrent use. Its
// memory, and the mapping of its files, are freed when nothing refers to it any
// longer.
type Model struct {
	Kind    Kind
	Dims    int     // the length of vectors; 0 for a reranker
	Tokens  int     // the longest input, in tokens
	Prompts Prompts // of an embedder
	Files   []string

	lower     bool
	tokenizer *tokenizer.Tokenizer
	network   *network
	pooling   pooling
	dense     []finish // after pooling; of a reranker, up to its one number
	kernel    *gemm.Kernel
	scratch   sync.Pool // of *scratch
}

// finish is a layer on a single vector.
type finish struct {
	layer nn.Dense
	tanh  bool
}

// Open reads the model of a folder. Its error names the file and what is wrong
// with it.
func Open(path string) (*Model, error) {
	return openWith(path, gemm.Kernels()[0])
}

func openWith(path string, kernel *gemm.Kernel) (model *Model, err error) {
	folder, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	err = guard(func() (err error) {
		model, err = read(folder, kernel)
		return err
	})
	if err != nil {
		folder.keep.close()
		return nil, err
	}
	model.Files = folder.names
	folder.keep.release()
	runtime.AddCleanup(model, (*mapping).close, folder.keep)
	return model, nil
}

// source holds the parts of a model, regardless of which files they were read from.
type source struct {
	config    config
	tokenizer *tokenizer.Tokenizer
	head      head // of an embedder
	prompts   Prompts
	tokens    int // of the longest input
	lower     bool
	weights   *weights
	file      string // that has the weights
}

func read(folder *folder, kernel *gemm.Kernel) (*Model, error) {
	source, err := readSource(folder)
	if missing := (*Missing)(nil); errors.As(err, &missing) &&
		missing.Name == "config.json" &&
		folder.has(GGUF) {
		source, err = readGGUF(folder)
	}
	if err != nil {
		return nil, err
	}
	source.weights.kernel = kernel
	model := &Model{
		Kind:      Embedder,
		kernel:    kernel,
		tokenizer: source.tokenizer,
		Tokens:    source.tokens,
		lower:     source.lower,
		Prompts:   source.prompts,
	}
	if source.config.classifies() {
		model.Kind = Reranker
	}
	if err := model.build(source); err != nil {
		return nil, err
	}
	model.scratch.New = func() any {
		return model.network.newScratch(kernel, model.Tokens)
	}
	return model, model.fits(&source.config)
}

// readSource reads the files of a folder with config.json.
func readSource(folder *folder) (source source, err error) {
	data, err := folder.read("config.json", maxJSON)
	if err != nil {
		return source, err
	}
	if source.config, err = readConfig(data); err != nil {
		return source, err
	}
	if data, err = folder.read("tokenizer.json", maxTokenizer); err != nil {
		return source, err
	}
	if source.tokenizer, err = tokenizer.Parse(data); err != nil {
		return source, fmt.Errorf("tokenizer.json: %w", err)
	}
	if source.tokens, source.lower, err = readLength(folder, &source.config); err != nil {
		return source, err
	}
	if source.config.classifies() {
		err = source.config.checkReranker()
	} else if source.head, err = readHead(folder, source.config.Width); err == nil {
		source.prompts, err = readPrompts(folder)
	}
	if err != nil {
		return source, err
	}
	source.file = "model.safetensors"
	set, err := folder.tensors(source.file)
	source.weights = newWeights(set, nil)
	return source, err
}

// build reads the weights.
func (m *Model) build(source source) (err error) {
	weights := source.weights
	m.network = newNetwork(weights, &source.config)
	if m.Kind == Reranker {
		m.pooling = poolFirst
		m.dense = classifier(weights, &source.config)
	}
	if weights.err == nil {
		weights.err = weights.unused()
	}
	if weights.err != nil {
		return fmt.Errorf("%s: %w", source.file, weights.err)
	}
	if m.Kind == Reranker {
		return nil
	}
	m.pooling = source.head.pooling
	m.Dims, m.dense, err = projections(source.head.dense, source.config.Width, m.kernel)
	return err
}

// classifier reads the layers that turn the first token's vector into a number.
func classifier(w *weights, c *config) []finish {
	if c.ModelType == "xlm-roberta" {
		return []finish{
			{w.dense(c.Width, c.Width, "classifier.dense"), true},
			{w.dense(c.Width, 1, "classifier.out_proj"), false},
		}
	}
	return []finish{
		{w.dense(c.Width, c.Width, w.prefix+"pooler.dense"), true},
		{w.dense(c.Width, 1, "classifier"), false},
	}
}

// projections reads the layers after pooling and returns the length of vectors.
func projections(list []projection, width int, kernel *gemm.Kernel) (int, []finish, error) {
	var out []finish
	for _, p := range list {
		w := newWeights(p.weights, kernel)
		var layer nn.Dense
		if p.bias {
			layer = w.dense(p.in, p.out, "linear")
		} else {
			layer = w.unbiased(p.in, p.out, "linear")
		}
		if w.err == nil {
			w.err = w.unused()
		}
		if w.err != nil {
			return 0, nil, fmt.Errorf("a dense layer after pooling: %w", w.err)
		}
		out, width = append(out, finish{layer, p.tanh}), p.out
	}
	return width, out, nil
}

// fits checks that tokenizer, network and limits match.
func (m *Model) fits(c *config) error {
	switch {
	case m.tokenizer.Size() > c.Vocabulary:
		return fmt.Errorf("tokenizer.json has ids up to %d, the network knows %d", m.tokenizer.Size()-1, c.Vocabulary)
	case int(m.tokenizer.MaxType(m.Kind == Reranker)) >= c.Types:
		return errors.New("tokenizer.json has more types of tokens than the network")
	case m.Tokens <= m.tokenizer.Special():
		return fmt.Errorf("max_seq_length is %d, too few for a text", m.Tokens)
	case m.Kind == Reranker && !m.tokenizer.CanPair(m.Tokens):
		return errors.New("tokenizer.json does not say how two texts become one input")
	}
	return nil
}

// Embed returns the vector of a text, of length 1, so that a dot product is a
// cosine. A text with more tokens than an input may have is read in the fewest
// parts of about equal length, whose vectors are averaged and scaled to length 1
// again; at most the first tokenizer.MaxText bytes of it are used. ctx is checked
// before each part.
func (m *Model) Embed(ctx context.Context, text string) ([]float32, error) {
	if m.Kind != Embedder {
		return nil, errors.New("the model is a reranker and has no vectors")
	}
	s := m.scratch.Get().(*scratch)
	defer m.scratch.Put(s)
	sum := make([]float32, m.Dims)
	for _, part := range parts(m.ids(text), m.Tokens-m.tokenizer.Special()) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v, err := m.compute(s, m.tokenizer.Single(part, m.Tokens))
		if err != nil {
			return nil, err
		}
		unit(v)
		for i, x := range v {
			sum[i] += x
		}
	}
	unit(sum)
	return sum, nil
}

// Score returns the model's estimate of the probability that a passage answers a query:
// the sigmoid of the classifier's output. If both do not fit into one input, the longer
// one is truncated.
func (m *Model) Score(ctx context.Context, query, passage string) (float64, error) {
	if m.Kind != Reranker {
		return 0, errors.New("the model is not a reranker")
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s := m.scratch.Get().(*scratch)
	defer m.scratch.Put(s)
	v, err := m.compute(s, m.tokenizer.Pair(m.ids(query), m.ids(passage), m.Tokens))
	if err != nil {
		return 0, err
	}
	return 1 / (1 + math.Exp(-float64(v[0]))), nil
}

// ids returns the tokens of a text.
func (m *Model) ids(text string) []int32 {
	if m.lower {
		text = strings.ToLower(text)
	}
	return m.tokenizer.Encode(text)
}

// parts splits ids into the fewest parts of at most size whose lengths differ by
// at most one. No ids yield one empty part.
func parts(ids []int32, size int) [][]int32 {
	count := max(1, (len(ids)+size-1)/size)
	list := make([][]int32, count)
	for i := range list {
		list[i] = ids[len(ids)*i/count : len(ids)*(i+1)/count]
	}
	return list
}

// compute runs the network and what follows it.
func (m *Model) compute(scratch *scratch, in tokenizer.Input) ([]float32, error) {
	if err := guard(func() error {
		m.network.embed(scratch, in)
		return nil
	}); err != nil {
		return nil, err
	}
	m.network.run(scratch, len(in.IDs))
	v := make([]float32, m.network.width)
	if m.pooling == poolFirst {
		copy(v, scratch.tokens.Data)
	} else {
		nn.Average(v, scratch.tokens, len(in.IDs))
	}
	for i := range m.dense {
		v = m.dense[i].apply(v)
	}
	if !finite(v) {
		return nil, errors.New("the model computes numbers that are not finite")
	}
	return v, nil
}

// apply returns the layer's output for one vector.
func (f *finish) apply(v []float32) []float32 {
	rows := gemm.PadRows(1)
	in := gemm.Rows{Data: make([]float32, rows*len(v)), Stride: len(v)}
	copy(in.Data, v)
	columns := gemm.PadColumns(len(f.layer.Bias))
	out := gemm.Rows{Data: make([]float32, rows*columns), Stride: columns}
	f.layer.Apply(out, in, 1)
	result := out.Data[:len(f.layer.Bias)]
	for i, x := range result {
		if f.tanh {
			result[i] = float32(math.Tanh(float64(x)))
		}
	}
	return result
}

// unit scales v to length 1. A vector shorter than 1e-12 is scaled as if it had
// that length.
func unit(v []float32) {
	var squares float64
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	scale := float32(1 / max(math.Sqrt(squares), 1e-12))
	for i := range v {
		v[i] *= scale
	}
}

// errFault means that a mapped file was truncated after it was opened, or that its disk
// cannot be read.
var errFault = errors.New("the model's file can no longer be read")

// guard runs fn and converts failed reads of mapped files to errFault: a file that is
// truncated while in use must not crash the program.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if caught := recover(); caught != nil {
			if _, ok := caught.(interface{ Addr() uintptr }); !ok {
				panic(caught)
			}
			err = errFault
		}
	}()
	return fn()
}
