package nn

import (
	"math"
	"testing"

	"satchel/vector/encoder/internal/gemm"
)

func TestExp(t *testing.T) {
	worst := 0.0
	for x := float32(0); x > -86.9; x -= 0.00137 {
		want := math.Exp(float64(x))
		worst = max(worst, math.Abs(float64(exp(x))-want)/want)
	}
	if worst > 3*0x1p-23 {
		t.Errorf("off by %.3g of the value", worst)
	}
	if exp(0) != 1 || exp(-100) != 0 || exp(float32(math.Inf(-1))) != 0 {
		t.Errorf("exp of 0, -100 and -Inf: %v %v %v", exp(0), exp(-100), exp(float32(math.Inf(-1))))
	}
}

func TestSoftmax(t *testing.T) {
	cases := []struct {
		scores []float32
		scale  float32
		want   []float32
	}{
		{[]float32{7}, 1, []float32{1}},
		{[]float32{3, 3}, 0.5, []float32{0.5, 0.5}},
		{[]float32{0, float32(math.Log(3))}, 1, []float32{0.25, 0.75}},
		{[]float32{0, float32(2 * math.Log(3))}, 0.5, []float32{0.25, 0.75}},
		{[]float32{-1e30, 1e30}, 1, []float32{0, 1}},
		{[]float32{1000, 999}, 1, []float32{0.7310586, 0.26894143}},
	}
	for _, c := range cases {
		got := append([]float32(nil), c.scores...)
		softmax(got, c.scale)
		checkClose(t, "softmax", got, c.want)
	}
}

func TestRectify(t *testing.T) {
	got := []float32{-1, 2, 0, float32(math.Copysign(0, -1)), -1e-40, 1e-40, -math.MaxFloat32}
	want := []float32{0, 2, 0, 0, 0, 1e-40, 0}
	Rectify(got)
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("number %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func TestNormalize(t *testing.T) {
	s := Norm{Scale: []float32{1, 2, 1, 1}, Bias: []float32{0, 10, 0, 0}, Epsilon: 1e-6}
	got := make([]float32, 4)
	s.normalize(got, []float32{1, 3, 1, 3})
	checkClose(t, "norm", got, []float32{-1, 12, -1, 1})
	s.normalize(got, []float32{5, 5, 5, 5})
	checkClose(t, "norm of equal numbers", got, []float32{0, 10, 0, 0})
}

func TestAverage(t *testing.T) {
	rows := gemm.Rows{Data: []float32{1, 2, 99, 3, 4, 99}, Stride: 3}
	got := make([]float32, 2)
	Average(got, rows, 2)
	checkClose(t, "two rows", got, []float32{2, 3})
	Average(got, rows, 0)
	checkClose(t, "no rows", got, []float32{0, 0})
}

func BenchmarkSoftmax(b *testing.B) {
	scores := make([]float32, 128)
	for b.Loop() {
		softmax(scores, 0.125)
	}
}

func TestGELU(t *testing.T) {
	worst := 0.0
	for x := float32(-12); x < 12; x += 0.00173 {
		got := []float32{x}
		GELU(got)
		worst = max(worst, math.Abs(float64(got[0])-0.5*float64(x)*math.Erfc(-float64(x)/math.Sqrt2)))
	}
	if worst > 2e-6 {
		t.Errorf("off by %.3g", worst)
	}
}

func checkClose(t *testing.T, name string, got, want []float32) {
	t.Helper()
	for i, w := range want {
		if math.Abs(float64(got[i]-w)) > 1e-5 {
			t.Errorf("%s: %v, want %v", name, got, want)
			return
		}
	}
}

func BenchmarkGELU(b *testing.B) {
	values := make([]float32, 1536)
	for b.Loop() {
		for i := range values {
			values[i] = float32(i%97)/16 - 3
		}
		GELU(values)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(values)), "ns/value")
}
