package encoder

import (
	"math"

	"satchel/vector/encoder/internal/gemm"
)

// fill sets rows, rounded up as MulAdd requires, to copies of the bias.
func fill(c gemm.Rows, rows int, bias []float32) {
	for i := range gemm.PadRows(rows) {
		copy(c.Data[i*c.Stride:][:len(bias)], bias)
	}
}

// average writes the mean of the rows to dst, or zero if there are none.
func average(dst []float32, rows gemm.Rows, count int) {
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

// apply writes the layer norm of each row of src to dst.
func (s *scaling) apply(dst, src gemm.Rows, rows int) {
	for i := range rows {
		s.normalize(dst.Data[i*dst.Stride:], src.Data[i*src.Stride:])
	}
}

func (s *scaling) normalize(dst, src []float32) {
	const epsilon = 1e-6
	size := len(s.scale)
	src, dst, bias := src[:size], dst[:size], s.bias[:size]
	var sum float32
	for _, v := range src {
		sum += v
	}
	mean := sum / float32(size)
	var squares float32
	for _, v := range src {
		squares += (v - mean) * (v - mean)
	}
	inverse := float32(1 / math.Sqrt(float64(squares/float32(size)+epsilon)))
	for i, v := range src {
		dst[i] = (v-mean)*inverse*s.scale[i] + bias[i]
	}
}

// rectify sets negative values to zero, without a branch, which would be
// mispredicted for half of the values.
func rectify(values []float32) {
	for i, v := range values {
		bits := math.Float32bits(v)
		values[i] = math.Float32frombits(bits &^ uint32(int32(bits)>>31))
	}
}

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
