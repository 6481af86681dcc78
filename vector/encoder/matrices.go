package encoder

import (
	"math"

	"satchel/vector/encoder/internal/gemm"
	"satchel/vector/encoder/internal/nn"
	"satchel/vector/internal/modelfile"
)

// matrices reads the parts of the network from a file. After the first error
// its results are useless; the error is checked once, at the end.
type matrices struct {
	file   *modelfile.File
	kernel *gemm.Kernel
	err    error
}

func (r *matrices) matrix(name string, rows, columns int) modelfile.Matrix {
	m, err := r.file.Matrix(name, rows, columns)
	if err != nil && r.err == nil {
		r.err = err
	}
	return m
}

func (r *matrices) vector(name string, size int) []float32 {
	v := make([]float32, size)
	if m := r.matrix(name, 1, size); r.err == nil {
		m.Row(0, v)
	}
	return v
}

// dense packs a layer that the file stores as one row of weights per output.
func (r *matrices) dense(name string, in, out int) nn.Dense {
	m := r.matrix(name+".weights", out, in)
	d := nn.Dense{Bias: r.vector(name+".bias", out)}
	if r.err != nil {
		return d
	}
	d.Weights = gemm.NewMatrix(r.kernel, in, out)
	row := make([]float32, in)
	for i := range out {
		m.Row(i, row)
		d.Weights.SetColumn(i, row)
	}
	return d
}

func (r *matrices) scaling(name string, size int) nn.Norm {
	return nn.Norm{
		Scale:   r.vector(name+".scale", size),
		Bias:    r.vector(name+".bias", size),
		Epsilon: 1e-6,
	}
}

func (r *matrices) layer(name string, in int) layer {
	return layer{
		width:         in,
		attentionNorm: r.scaling(name+".attention.norm", in),
		qkv:           r.dense(name+".attention.qkv", in, 3*in),
		attention:     r.dense(name+".attention.output", in, width),
		forwardNorm:   r.scaling(name+".forward.norm", width),
		inner:         r.dense(name+".forward.inner", width, innerWidth),
		outer:         r.dense(name+".forward.outer", innerWidth, width),
	}
}

// positions returns what is added to a token for its position in the text: the
// sines of position × timescale, then the cosines (Vaswani et al., "Attention
// Is All You Need", 2017).
func positions(timescales []float32) []float32 {
	table := make([]float32, 0, maxTokens*2*len(timescales))
	for place := range maxTokens {
		for _, f := range []func(float64) float64{math.Sin, math.Cos} {
			for _, scale := range timescales {
				table = append(table, float32(f(float64(float32(place)*scale))))
			}
		}
	}
	return table
}
