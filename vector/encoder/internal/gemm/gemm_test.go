package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// random fills a slice with values like those of a layer: around zero, below one.
func random(r *rand.Rand, n int) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = r.Float32()*2 - 1
	}
	return values
}

// product is a straightforward float64 implementation of c + a·b with b row-major.
func product(c, a Rows, b []float32, rows, depth, columns int) [][]float64 {
	out := make([][]float64, rows)
	for i := range out {
		out[i] = make([]float64, columns)
		for j := range out[i] {
			sum := float64(c.Data[i*c.Stride+j])
			for k := range depth {
				sum += float64(a.Data[i*a.Stride+k]) * float64(b[k*columns+j])
			}
			out[i][j] = sum
		}
	}
	return out
}

func TestMulAddMatchesTheDefinition(t *testing.T) {
	sizes := []struct{ rows, depth, columns int }{
		{1, 1, 1}, {1, 3, 5}, {2, 7, 4}, {6, 16, 16}, {12, 64, 32}, {13, 65, 33},
		{7, 255, 96}, {25, 256, 31}, {24, 257, 128}, {11, 600, 47}, {128, 128, 128},
	}
	for _, kernel := range Kernels() {
		for _, s := range sizes {
			t.Run(fmt.Sprintf("%s/%dx%dx%d", kernel.Name(), s.rows, s.depth, s.columns), func(t *testing.T) {
				checkProduct(t, kernel, s.rows, s.depth, s.columns)
			})
		}
	}
}

// checkProduct multiplies once with the matrix packed by columns and once by rows,
// inside larger buffers, and also checks that nothing around the result changes.
func checkProduct(t *testing.T, kernel *Kernel, rows, depth, columns int) {
	r := rand.New(rand.NewPCG(1, uint64(rows*depth*columns)))
	b := random(r, depth*columns)
	a := Rows{random(r, PadRows(rows)*(depth+3)), depth + 3}
	stride := PadColumns(columns) + 5
	before := random(r, PadRows(rows)*stride)
	want := product(Rows{before, stride}, a, b, rows, depth, columns)
	for name, m := range map[string]*Matrix{
		"columns": packColumns(kernel, b, depth, columns),
		"rows":    packRows(kernel, b, depth, columns),
	} {
		c := Rows{append([]float32(nil), before...), stride}
		m.MulAdd(c, a, rows)
		for i := range want {
			for j, w := range want[i] {
				if got := float64(c.Data[i*stride+j]); math.Abs(got-w) > 1e-4 {
					t.Fatalf("packed by %s: c[%d,%d] = %v, want %v", name, i, j, got, w)
				}
			}
			for j := columns; j < stride; j++ {
				if c.Data[i*stride+j] != before[i*stride+j] {
					t.Fatalf("packed by %s: c[%d,%d], outside the result, changed", name, i, j)
				}
			}
		}
	}
}

func packColumns(kernel *Kernel, b []float32, depth, columns int) *Matrix {
	m := NewMatrix(kernel, depth, columns)
	column := make([]float32, depth)
	for j := range columns {
		for k := range column {
			column[k] = b[k*columns+j]
		}
		m.SetColumn(j, column)
	}
	return m
}

func packRows(kernel *Kernel, b []float32, depth, columns int) *Matrix {
	m := NewMatrix(kernel, depth, columns)
	for k := range depth {
		m.SetRow(k, b[k*columns:(k+1)*columns])
	}
	return m
}

func TestRowsPastTheEndDoNotLeak(t *testing.T) {
	nan := float32(math.NaN())
	for _, kernel := range Kernels() {
		m := packRows(kernel, []float32{2, 3}, 2, 1)
		a := Rows{make([]float32, PadRows(1)*2), 2}
		for i := range a.Data {
			a.Data[i] = nan
		}
		a.Data[0], a.Data[1] = 5, 7
		c := Rows{make([]float32, PadRows(1)*widest), widest}
		m.MulAdd(c, a, 1)
		if c.Data[0] != 31 {
			t.Errorf("%s: got %v, want 31: a row past the end was mixed in", kernel.Name(), c.Data[0])
		}
	}
}

func TestResetForgetsTheOldValues(t *testing.T) {
	for _, kernel := range Kernels() {
		m := packRows(kernel, []float32{1, 2, 3, 4, 5, 6}, 3, 2)
		held := m.Bytes()
		m.Reset(2, 1)
		m.SetColumn(0, []float32{10, 20})
		c := Rows{make([]float32, PadRows(1)*widest), widest}
		a := Rows{make([]float32, PadRows(1)*2), 2}
		a.Data[0], a.Data[1] = 1, 1
		m.MulAdd(c, a, 1)
		if c.Data[0] != 30 || c.Data[1] != 0 {
			t.Errorf("%s: got %v and %v, want 30 and 0", kernel.Name(), c.Data[0], c.Data[1])
		}
		if m.Bytes() != held {
			t.Errorf("%s: a smaller size allocated: %d bytes, had %d", kernel.Name(), m.Bytes(), held)
		}
	}
}

func TestMulAddRefusesShortBuffers(t *testing.T) {
	for _, kernel := range Kernels() {
		m := packRows(kernel, make([]float32, 4*8), 4, 8)
		whole := Rows{make([]float32, tallest*widest), widest}
		short := Rows{make([]float32, (tallest-1)*widest), widest}
		for name, call := range map[string]func(){
			"left":   func() { m.MulAdd(whole, short, 1) },
			"result": func() { m.MulAdd(short, whole, 1) },
		} {
			if !panics(call) {
				t.Errorf("%s: a short %s matrix was accepted", kernel.Name(), name)
			}
		}
	}
}

func panics(call func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	call()
	return false
}

func TestPortableKernelIsLast(t *testing.T) {
	list := Kernels()
	if last := list[len(list)-1]; last.Name() != "go" {
		t.Errorf("the last kernel is %q, want the plain Go one", last.Name())
	}
	for _, k := range list {
		if tallest%k.rows != 0 || widest%k.columns != 0 {
			t.Errorf("%s: a tile of %d×%d does not divide %d×%d", k.Name(), k.rows, k.columns, tallest, widest)
		}
	}
}

// BenchmarkTile is the raw limit: one tile over operands that stay in the
// first-level cache.
func BenchmarkTile(b *testing.B) {
	const depth = 128
	for _, kernel := range Kernels() {
		b.Run(kernel.Name(), func(b *testing.B) {
			left, panel := make([]float32, tallest*depth), make([]float32, depth*widest)
			c := make([]float32, tallest*widest)
			for b.Loop() {
				kernel.tile(depth, &left[0], depth, &panel[0], &c[0], widest)
			}
			reportRate(b, kernel.rows*kernel.columns*depth)
		})
	}
}

// BenchmarkMulAdd runs the shapes of the model's layers.
func BenchmarkMulAdd(b *testing.B) {
	for _, kernel := range Kernels() {
		for _, s := range []struct{ rows, depth, columns int }{
			{8, 512, 1536}, {120, 256, 768}, {120, 512, 1536}, {120, 1536, 512}, {120, 120, 64}, {120, 128, 120},
		} {
			b.Run(fmt.Sprintf("%s/%dx%dx%d", kernel.Name(), s.rows, s.depth, s.columns), func(b *testing.B) {
				m := NewMatrix(kernel, s.depth, s.columns)
				a := Rows{make([]float32, PadRows(s.rows)*s.depth), s.depth}
				c := Rows{make([]float32, PadRows(s.rows)*PadColumns(s.columns)), PadColumns(s.columns)}
				for b.Loop() {
					m.MulAdd(c, a, s.rows)
				}
				reportRate(b, s.rows*s.depth*s.columns)
			})
		}
	}
}

// reportRate turns multiply-adds per iteration into GFLOP/s.
func reportRate(b *testing.B, multiplyAdds int) {
	perSecond := 2 * float64(multiplyAdds) * float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(perSecond/1e9, "GFLOP/s")
}
