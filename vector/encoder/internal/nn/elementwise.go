// Package nn has the parts that the networks of text encoders share: layers, attention
// and elementwise functions, in float32.
package nn

import (
	"math"

	"satchel/vector/encoder/internal/gemm"
)

// Fill sets rows, rounded up as MulAdd requires, to copies of the bias.
func Fill(c gemm.Rows, rows int, bias []float32) {
	for i := range gemm.PadRows(rows) {
		copy(c.Data[i*c.Stride:][:len(bias)], bias)
	}
}

// Average writes the mean of the rows to dst, or zero if there are none.
func Average(dst []float32, rows gemm.Rows, count int) {
	clear(dst)
	for i := range count {
		for j, v := range rows.Data[i*rows.Stride:][:len(dst)] {
			dst[j] += v
		}
	}
	scale := 1 / float32(max(1, count))
	for j := range dst {
		dst[j] *= scale
	}
}

// Norm is a layer norm: each row less its mean, over its standard deviation,
// times Scale, plus Bias. Epsilon is added to the variance.
type Norm struct {
	Scale, Bias []float32
	Epsilon     float32
}

// Apply writes the layer norm of each row of src to dst, which may be src.
func (n *Norm) Apply(dst, src gemm.Rows, rows int) {
	for i := range rows {
		n.normalize(dst.Data[i*dst.Stride:], src.Data[i*src.Stride:])
	}
}

func (n *Norm) normalize(dst, src []float32) {
	size := len(n.Scale)
	src, dst, scale, bias := src[:size], dst[:size], n.Scale[:size], n.Bias[:size]
	var sum float32
	for _, v := range src {
		sum += v
	}
	mean := sum / float32(size)
	var squares float32
	for _, v := range src {
		squares += (v - mean) * (v - mean)
	}
	inverse := float32(1 / math.Sqrt(float64(squares/float32(size)+n.Epsilon)))
	for i, v := range src {
		dst[i] = (v-mean)*inverse*scale[i] + bias[i]
	}
}

// Rectify sets negative values to zero, without a branch, which would be
// mispredicted for half of the values.
func Rectify(values []float32) {
	for i, v := range values {
		bits := math.Float32bits(v)
		values[i] = math.Float32frombits(bits &^ uint32(int32(bits)>>31))
	}
}

// least is so small that its exponential is 0.
const least = -math.MaxFloat32

// softmax multiplies scores by scale and converts them to weights with a sum
// of 1.
func softmax(scores []float32, scale float32) {
	largest := scores[0]
	for _, v := range scores {
		largest = max(largest, v)
	}
	var sum float32
	for i, v := range scores {
		e := exp((v - largest) * scale)
		scores[i] = e
		sum += e
	}
	inverse := 1 / sum
	for i := range scores {
		scores[i] *= inverse
	}
}

// gelu is Functions.GELU in plain Go.
func gelu(values []float32) {
	const half = 0.70710678118654752
	for i, x := range values {
		h := 0.5 * x
		values[i] = h + h*erf(x*half)
	}
}

// erf returns the error function within 5e-7, by the quotient of polynomials that
// Eigen uses for float32 (generic_fast_erf_float).
func erf(x float32) float32 {
	x = min(max(x, -4), 4)
	s := x * x
	p := float32(-2.72614225801306e-10)
	p = p*s + 2.77068142495902e-08
	p = p*s - 2.10102402082508e-06
	p = p*s - 5.69250639462346e-05
	p = p*s - 7.34990630326855e-04
	p = p*s - 2.95459980854025e-03
	p = p*s - 1.60960333262415e-02
	q := float32(-1.45660718464996e-05)
	q = q*s - 2.13374055278905e-04
	q = q*s - 1.68282697438203e-03
	q = q*s - 7.37332916720468e-03
	q = q*s - 1.42647390514189e-02
	return x * p / q
}

// exp returns e to the x for x <= 0, within three units in the last place: x
// is split into a multiple of ln 2 and a remainder, whose power is a
// polynomial (with the coefficients of Cephes' expf). Below -87 it is 0.
func exp(x float32) float32 {
	const (
		log2e  = 1.44269504088896341
		ln2Hi  = 0.693359375
		ln2Low = -2.12194440e-4
		round  = 3 << 22 // adding it rounds to an integer
	)
	if !(x > -87) {
		return 0
	}
	shifted := x*log2e + round
	n := shifted - round
	r := x - n*ln2Hi - n*ln2Low
	p := float32(1.9875691500e-4)
	p = p*r + 1.3981999507e-3
	p = p*r + 8.3334519073e-3
	p = p*r + 4.1665795894e-2
	p = p*r + 1.6666665459e-1
	p = p*r + 5.0000001201e-1
	power := math.Float32frombits(uint32(int32(n)+127) << 23)
	return (p*r*r + r + 1) * power
}
