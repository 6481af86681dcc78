// Package bitcode encodes vectors as one bit per dimension and estimates from the codes
// how similar the vectors are to a query. It finds candidates, which must then be
// compared by their full vectors.
//
// A code consists of the signs of a vector's components and a factor, as in RaBitQ (Gao
// and Long, "RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error
// Bound", 2024) without its rotation. The query keeps several bits per dimension, so a
// comparison consists of AND and population counts.
package bitcode

//go:generate -command kernel go run -C ../../../vector/lab ./kernels/bitcode -pkg bitcode
//go:generate kernel -out ../../store/search/bitcode/sums_amd64.s -stubs ../../store/search/bitcode/sums_amd64.go

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Words returns the number of 64-bit words that hold the signs of a vector.
func Words(dims int) int { return (dims + 63) / 64 }

// Size returns the number of bytes that Append adds for a vector.
func Size(dims int) int { return 4 + 8*Words(dims) }

// Append appends the code of vector to data: its factor as a little-endian float32, then its
// signs as little-endian 64-bit words. The magnitude of vector does not matter.
func Append(data []byte, vector []float32) []byte {
	var square, sum float64
	for _, x := range vector {
		square += float64(x) * float64(x)
		sum += math.Abs(float64(x))
	}
	factor := 0.0
	if sum > 0 {
		factor = math.Sqrt(square) / sum
	}
	data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(factor)))
	for ; len(vector) > 0; vector = vector[min(64, len(vector)):] {
		var word uint64
		for i, x := range vector[:min(64, len(vector))] {
			if x > 0 {
				word |= 1 << i
			}
		}
		data = binary.LittleEndian.AppendUint64(data, word)
	}
	return data
}

// List holds the codes of vectors with the same number of dimensions.
type List struct {
	words   int
	factors []float32
	signs   []uint64
}

// NewList returns a List with capacity for n codes.
func NewList(dims, n int) *List {
	return &List{
		words:   Words(dims),
		factors: make([]float32, 0, n),
		signs:   make([]uint64, 0, n*Words(dims)),
	}
}

// Add adds a code in the form written by Append.
func (l *List) Add(code []byte) {
	l.factors = append(l.factors, math.Float32frombits(binary.LittleEndian.Uint32(code)))
	for code = code[4:]; len(code) >= 8; code = code[8:] {
		l.signs = append(l.signs, binary.LittleEndian.Uint64(code))
	}
}

// Len returns the number of codes.
func (l *List) Len() int { return len(l.factors) }

// Bytes returns the amount of memory that the List uses.
func (l *List) Bytes() int {
	return 4*cap(l.factors) + 8*cap(l.signs)
}

// queryBits is the number of bits to which each component of a query is quantized, in
// two's complement.
const queryBits = 4

// Query is a vector to compare codes with.
type Query struct {
	planes [queryBits][]uint64 // plane b holds bit b of each quantized component
	step   float32             // the factor that restores the scale of a quantized component
	sum    float32             // of all quantized components, scaled
}

// NewQuery returns a Query for a vector, whose magnitude does not matter.
func NewQuery(vector []float32) *Query {
	var most, square float64
	for _, x := range vector {
		most = max(most, math.Abs(float64(x)))
		square += float64(x) * float64(x)
	}
	query := &Query{}
	for b := range query.planes {
		query.planes[b] = make([]uint64, Words(len(vector)))
	}
	if most == 0 {
		return query
	}
	const largest = 1<<(queryBits-1) - 1
	step := most / largest
	total := 0
	for i, x := range vector {
		n := int(math.Round(float64(x) / step))
		total += n
		for b := range query.planes {
			query.planes[b][i/64] |= uint64(n>>b&1) << (i % 64)
		}
	}
	query.step = float32(step / math.Sqrt(square))
	query.sum = query.step * float32(total)
	return query
}

// Estimate returns the estimated cosine similarity between the query and the vector of
// code i. sum is the result of Sums for that code.
func (q *Query) Estimate(l *List, i int, sum int32) float32 {
	return l.factors[i] * (2*q.step*float32(sum) - q.sum)
}

// Sums fills out for consecutive codes, beginning with code from: each result is the
// sum of the query's quantized components in the dimensions where the code's sign is
// positive.
func (q *Query) Sums(list *List, from int, out []int32) {
	signs := list.signs[from*list.words : (from+len(out))*list.words]
	if list.words == 8 {
		sums8(&q.planes, signs, out)
		return
	}
	for i := range out {
		code := signs[i*list.words : (i+1)*list.words]
		out[i] = 0
		for b, plane := range q.planes {
			n := 0
			for w, word := range code {
				n += bits.OnesCount64(word & plane[w])
			}
			out[i] += weigh(n, b)
		}
	}
}

// weigh returns n times the weight of bit b in two's complement.
func weigh(n, b int) int32 {
	if b == queryBits-1 {
		return -int32(n) << b
	}
	return int32(n) << b
}

// sums8 is Sums for vectors of 449 to 512 dimensions.
func sums8(planes *[queryBits][]uint64, signs []uint64, out []int32) {
	var numbers [8 * queryBits]uint64
	for b := range planes {
		copy(numbers[8*b:], planes[b])
	}
	if native && len(out) > 0 {
		sums512(&numbers, &signs[0], &out[0], len(out))
		return
	}
	for i := range out {
		c := (*[8]uint64)(signs[8*i:])
		n0, n1, n2, n3 := 0, 0, 0, 0
		for w, word := range c {
			n0 += bits.OnesCount64(word & numbers[w])
			n1 += bits.OnesCount64(word & numbers[8+w])
			n2 += bits.OnesCount64(word & numbers[16+w])
			n3 += bits.OnesCount64(word & numbers[24+w])
		}
		out[i] = int32(n0 + n1<<1 + n2<<2 - n3<<3)
	}
}
