package nn

import (
	"math"
	"math/rand/v2"
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
		t.Errorf("relative error of %.3g", worst)
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

// sets returns the functions that this CPU can run, by name.
func sets() map[string]Functions {
	list := map[string]Functions{}
	for _, kernel := range gemm.Kernels() {
		list[kernel.Name()] = FunctionsOf(kernel)
	}
	return list
}

func TestGELU(t *testing.T) {
	for name, f := range sets() {
		var values []float32
		for x := float32(-12); x < 12; x += 0.00173 {
			values = append(values, x)
		}
		got := append([]float32(nil), values...)
		f.GELU(got)
		worst := 0.0
		for i, x := range values {
			worst = max(worst, math.Abs(float64(got[i])-0.5*float64(x)*math.Erfc(-float64(x)/math.Sqrt2)))
		}
		if worst > 2e-6 {
			t.Errorf("%s: error of %.3g", name, worst)
		}
		odd := []float32{float32(math.NaN()), float32(math.Inf(1)), -30, 1}
		odd = append(odd, make([]float32, group)...)
		f.GELU(odd)
		if !math.IsNaN(float64(odd[0])) ||
			odd[1] != float32(math.Inf(1)) ||
			math.Abs(float64(odd[2])) > 1e-6 ||
			odd[4] != 0 {
			t.Errorf("%s: %v", name, odd[:5])
		}
	}
}

func TestSoftmaxOfRows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, f := range sets() {
		for count := 1; count < 140; count += 7 {
			row := make([]float32, gemm.PadColumns(count))
			for i := range row {
				row[i] = random.Float32()*40 - 20
			}
			want := append([]float32(nil), row[:count]...)
			softmax(want, 0.7)
			f.softmaxRow(row, count, 0.7)
			for i, w := range want {
				if math.Abs(float64(row[i]-w)) > 3e-7 {
					t.Fatalf("%s: weight %d of %d is %v, want %v", name, i, count, row[i], w)
				}
			}
		}
		row := make([]float32, group)
		row[1] = float32(math.NaN())
		if f.softmaxRow(row, 2, 1); !math.IsNaN(float64(row[0])) {
			t.Errorf("%s: a NaN was lost: %v", name, row[:2])
		}
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

func BenchmarkFunctions(b *testing.B) {
	for name, f := range sets() {
		for what, call := range map[string]func([]float32){
			"gelu":    f.GELU,
			"softmax": func(row []float32) { f.softmaxRow(row, len(row), 0.2) },
		} {
			b.Run(name+"/"+what, func(b *testing.B) {
				values := make([]float32, 512)
				for b.Loop() {
					call(values)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(values)), "ns/value")
			})
		}
	}
}
