package encoder

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"satchel/vector/encoder/internal/gemm"
)

// goldenCase is a text with the tokens and the vector of TensorFlow.js. The vector is
// absent for the text without tokens.
type goldenCase struct {
	Text   string
	Tokens []int32
	Vector []float32
}

func golden(t testing.TB) []goldenCase {
	t.Helper()
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []goldenCase }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 10 {
		t.Fatalf("only %d golden cases", len(file.Cases))
	}
	return file.Cases
}

func cosine(a, b []float32) float64 {
	var dot float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
	}
	return dot
}

func embed(t testing.TB, m *Model, text string) []float32 {
	t.Helper()
	v, err := m.Embed(context.Background(), text)
	if err != nil {
		t.Fatal(err)
	}
	if len(v) != Dims {
		t.Fatalf("%d numbers, want %d", len(v), Dims)
	}
	return v
}

func shared(t testing.TB) *Model {
	t.Helper()
	m, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTokensMatchTheReference(t *testing.T) {
	m := shared(t)
	for _, c := range golden(t) {
		if got := m.Tokens(c.Text); !slices.Equal(got, c.Tokens) {
			t.Errorf("%q:\n got %v\nwant %v", c.Text, got, c.Tokens)
		}
	}
}

// With float32 weights every golden vector matches to six decimals, which the
// converter checks. The difference from 1 is due to 8-bit weights: at worst .99963
// here, on average .99979.
func TestVectorsMatchTheReference(t *testing.T) {
	const least, leastMean = 0.9996, 0.99975
	m, sum, count := shared(t), 0.0, 0
	for _, c := range golden(t) {
		if c.Vector == nil {
			continue
		}
		got := cosine(embed(t, m, c.Text), c.Vector)
		if got < least {
			t.Errorf("%.40q: cosine %.6f, want %v", c.Text, got, least)
		}
		sum += got
		count++
	}
	if mean := sum / float64(count); mean < leastMean {
		t.Errorf("mean cosine %.6f, want %v", mean, leastMean)
	}
}

func TestKernelsAgree(t *testing.T) {
	kernels := gemm.Kernels()
	want := load(t, kernels[len(kernels)-1])
	for _, kernel := range kernels[:len(kernels)-1] {
		m := load(t, kernel)
		for _, size := range []int{0, 1, 17, 150, 580} {
			checkClose(t, kernel.Name(), embed(t, m, chunk(size)), embed(t, want, chunk(size)))
		}
	}
}

// checkClose allows for differences caused by another order of summation.
func checkClose(t *testing.T, name string, got, want []float32) {
	t.Helper()
	for i := range want {
		if diff := got[i] - want[i]; !(diff < 1e-5 && diff > -1e-5) {
			t.Fatalf("%s: number %d is %v, want %v", name, i, got[i], want[i])
		}
	}
}
