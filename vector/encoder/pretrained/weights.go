package pretrained

import (
	"fmt"
	"math"
	"strings"

	"satchel/vector/encoder/internal/gemm"
	"satchel/vector/encoder/internal/nn"
	"satchel/vector/encoder/internal/tensor"
)

// weights reads the parts of a network from a file. After the first error its
// results are useless; the error is checked once, at the end.
type weights struct {
	file   tensor.Set
	prefix string                   // of the names of the encoder's tensors
	rename func(name string) string // to the names in the file; nil: they are the same
	kernel *gemm.Kernel
	used   map[string]bool
	err    error
}

func newWeights(file tensor.Set, kernel *gemm.Kernel) *weights {
	w := &weights{
		file:   file,
		kernel: kernel,
		used:   map[string]bool{},
	}
	for _, prefix := range []string{"bert.", "roberta."} {
		if file.Has(prefix + "embeddings.word_embeddings.weight") {
			w.prefix = prefix
		}
	}
	return w
}

// tensor returns a tensor. If it is missing or has another shape, tensor records the
// error and returns nil.
func (w *weights) tensor(name string, shape ...int) *tensor.Tensor {
	if w.rename != nil {
		name = w.rename(name)
	}
	w.used[name] = true
	t, err := w.file.Tensor(name, shape...)
	if err != nil && w.err == nil {
		w.err = err
	}
	return t
}

// table reads a whole matrix.
func (w *weights) table(name string, rows, columns int) []float32 {
	t := w.tensor(name, rows, columns)
	if t == nil {
		return nil
	}
	values := make([]float32, rows*columns)
	for i := range rows {
		t.Row(i, values[i*columns:][:columns])
	}
	return values
}

func (w *weights) vector(name string, size int) []float32 {
	v := make([]float32, size)
	if t := w.tensor(name, size); t != nil {
		t.Row(0, v)
	}
	return v
}

// norm reads a layer norm, whose tensors older files call gamma and beta.
func (w *weights) norm(name string, size int, epsilon float64) nn.Norm {
	scale, bias := name+".weight", name+".bias"
	if w.file.Has(name + ".gamma") {
		scale, bias = name+".gamma", name+".beta"
	}
	return nn.Norm{
		Scale:   w.vector(scale, size),
		Bias:    w.vector(bias, size),
		Epsilon: float32(epsilon),
	}
}

// dense packs layers with the same input side by side.
func (w *weights) dense(in, out int, names ...string) nn.Dense {
	d := w.unbiased(in, out, names...)
	d.Bias = d.Bias[:0]
	for _, name := range names {
		d.Bias = append(d.Bias, w.vector(name+".bias", out)...)
	}
	return d
}

// unbiased is dense with a bias of zeros. A layer is stored as one row of weights
// per output.
func (w *weights) unbiased(in, out int, names ...string) nn.Dense {
	dense := nn.Dense{Bias: make([]float32, out*len(names))}
	tensors := make([]*tensor.Tensor, len(names))
	for i, name := range names {
		tensors[i] = w.tensor(name+".weight", out, in)
	}
	if w.err != nil {
		return dense
	}
	dense.Weights = gemm.NewMatrix(w.kernel, in, out*len(names))
	row := make([]float32, in)
	for i, t := range tensors {
		for j := range out {
			t.Row(j, row)
			dense.Weights.SetColumn(i*out+j, row)
		}
	}
	return dense
}

// ignored are tensors that training leaves in files and that are not used here.
var ignored = []string{"pooler.", "embeddings.position_ids", "cls.", "lm_head."}

// unused returns an error if the file has a tensor that nothing has read, because then
// the network differs from what was assumed.
func (w *weights) unused() error {
	for _, name := range w.file.Names() {
		known := w.used[name]
		for _, prefix := range ignored {
			known = known || strings.HasPrefix(strings.TrimPrefix(name, w.prefix), prefix)
		}
		if !known {
			return fmt.Errorf("tensor %.100q belongs to an unsupported part", name)
		}
	}
	return nil
}

// finite reports whether values has neither infinities nor NaN.
func finite(values []float32) bool {
	for _, v := range values {
		if d := float64(v) - float64(v); d != 0 || math.IsNaN(d) {
			return false
		}
	}
	return true
}
