package bitcode

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func random(r *rand.Rand, dims int) []float32 {
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// TestEstimates compares with the exact cosine: for vectors of independent numbers the
// error of one bit per dimension is about 0.75/√dims.
func TestEstimates(t *testing.T) {
	for _, dims := range []int{1, 63, 64, 65, 384, 449, 512, 1000, 1536} {
		r := rand.New(rand.NewPCG(1, uint64(dims)))
		query := random(r, dims)
		q, l := NewQuery(query), NewList(dims, 200)
		var want []float64
		for i := range 200 {
			v := random(r, dims)
			for j := range v {
				v[j] += query[j] * float32(i) / 100
			}
			want = append(want, cosine(query, v))
			code := Append(nil, v)
			if len(code) != Size(dims) {
				t.Fatalf("%d dimensions: a code of %d bytes, Size returns %d", dims, len(code), Size(dims))
			}
			l.Add(code)
		}
		sums := make([]int32, l.Len())
		q.Sums(l, 0, sums)
		var square float64
		for i, sum := range sums {
			diff := float64(q.Estimate(l, i, sum)) - want[i]
			square += diff * diff
		}
		if e := math.Sqrt(square / 200); dims > 1 && e > 1.2/math.Sqrt(float64(dims)) {
			t.Errorf("%d dimensions: the mean error is %.3f", dims, e)
		}
	}
}

// TestSums compares with the definition, starting at any code, with assembly and without.
func TestSums(t *testing.T) {
	defer func(was bool) { native = was }(native)
	for _, native = range []bool{false, native} {
		for _, dims := range []int{3, 64, 130, 512} {
			r := rand.New(rand.NewPCG(2, uint64(dims)))
			compareSums(t, r, random(r, dims))
		}
		negative := make([]float32, 512)
		for i := range negative {
			negative[i] = -1
		}
		compareSums(t, rand.New(rand.NewPCG(3, 4)), negative)
	}
}

func compareSums(t *testing.T, r *rand.Rand, v []float32) {
	t.Helper()
	q, l := NewQuery(v), NewList(len(v), 50)
	var signs [][]float32
	for i := range 50 {
		s := random(r, len(v))
		for j := range s {
			if i == 7 {
				s[j] = 1
			}
		}
		signs = append(signs, s)
		l.Add(Append(nil, s))
	}
	most := 0.0
	for _, x := range v {
		most = max(most, math.Abs(float64(x)))
	}
	for _, from := range []int{0, 1, 49, 50} {
		out := make([]int32, 50-from)
		q.Sums(l, from, out)
		for i, got := range out {
			var want int32
			for j, x := range signs[from+i] {
				if x > 0 {
					want += int32(math.Round(float64(v[j]) / (most / 7)))
				}
			}
			if got != want {
				t.Fatalf(
					"%d dimensions, assembly %v, from %d: sum %d is %d, want %d",
					len(v),
					native, from, i, got, want,
				)
			}
		}
	}
}

func TestZeroVectors(t *testing.T) {
	zero, some := make([]float32, 512), random(rand.New(rand.NewPCG(3, 4)), 512)
	l := NewList(512, 2)
	l.Add(Append(nil, zero))
	l.Add(Append(nil, some))
	for _, v := range [][]float32{zero, some} {
		q, sums := NewQuery(v), make([]int32, 2)
		q.Sums(l, 0, sums)
		for i, sum := range sums {
			if e := q.Estimate(l, i, sum); e != e || i == 0 && e != 0 {
				t.Errorf("code %d: estimate %v", i, e)
			}
		}
	}
}

// BenchmarkSums compares a query with codes, and reports the time relative to reading
// only the codes.
func BenchmarkSums(b *testing.B) {
	for _, n := range []int{4096, 1_000_000} {
		r := rand.New(rand.NewPCG(1, 2))
		q, l := NewQuery(random(r, 512)), NewList(512, n)
		for range n {
			for range l.words {
				l.signs = append(l.signs, r.Uint64())
			}
			l.factors = append(l.factors, 1)
		}
		out := make([]int32, 256)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(l.Bytes()))
			for b.Loop() {
				for from := 0; from+256 <= n; from += 256 {
					q.Sums(l, from, out)
				}
			}
		})
	}
}
