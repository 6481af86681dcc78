package nn

import "satchel/vector/encoder/internal/gemm"

//go:generate -command kernel go run -C ../../../lab ./kernels/elementwise -pkg nn
//go:generate kernel -out ../encoder/internal/nn/elementwise_amd64.s -stubs ../encoder/internal/nn/elementwise_amd64.go

// Functions computes the most expensive elementwise functions, with the instructions of
// a kernel.
type Functions struct {
	softmax func(values *float32, n int, scale float32)
	gelu    func(values *float32, n int)
}

// group is a multiple of the number of values that each function of Functions processes
// at a time.
const group = 32

// FunctionsOf returns the functions for a kernel.
func FunctionsOf(kernel *gemm.Kernel) Functions { return native[kernel.Name()] }

// GELU applies x·Φ(x) to each value, where Φ is the normal distribution: the
// exact form with the error function, within 2e-6.
func (f Functions) GELU(values []float32) {
	if n := len(values) / group * group; f.gelu != nil && n > 0 {
		f.gelu(&values[0], n)
		values = values[n:]
	}
	gelu(values)
}

// softmaxRow is softmax of the first count values of a row; the others are
// padding, up to a multiple of group, and become about 0.
func (f Functions) softmaxRow(row []float32, count int, scale float32) {
	if f.softmax == nil {
		softmax(row[:count], scale)
		return
	}
	for i := count; i < len(row); i++ {
		row[i] = least
	}
	f.softmax(&row[0], len(row), scale)
}
