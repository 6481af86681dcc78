package pretrained

import (
	"context"
	"encoding/json"
	"math"
	"testing"

	"satchel/vector/encoder/internal/gemm"
	"satchel/vector/encoder/pretrained/sample"
)

// tolerance is the permitted difference from what PyTorch computes in float64.
const tolerance = 1e-5

func TestModelsMatchTheReference(t *testing.T) {
	for _, kernel := range gemm.Kernels() {
		for _, v := range sample.Variants(t) {
			for kind := range sample.Encodings {
				if kind != "F32" && v.Name != "dense" {
					continue
				}
				t.Run(kernel.Name()+"/"+v.Name+"/"+kind, func(t *testing.T) {
					m, err := openWith(v.Build(t, kind), kernel)
					if err != nil {
						t.Fatal(err)
					}
					checkGolden(t, m, v)
				})
			}
		}
	}
}

func checkGolden(t *testing.T, m *Model, v sample.Variant) {
	t.Helper()
	for _, c := range v.Cases {
		var texts [2]string
		var want []float64
		_ = json.Unmarshal(c[0], &texts[0])
		if m.Kind == Embedder {
			_ = json.Unmarshal(c[1], &want)
		} else {
			want = make([]float64, 1)
			_, _ = json.Unmarshal(c[1], &texts[1]), json.Unmarshal(c[2], &want[0])
		}
		got := computed(t, m, texts)
		if len(got) != len(want) || len(want) == 0 {
			t.Fatalf("%q: %d numbers, want %d", texts, len(got), len(want))
		}
		for i := range want {
			if !(math.Abs(got[i]-want[i]) < tolerance) {
				t.Fatalf("%.40q: number %d is %v, want %v", texts, i, got[i], want[i])
			}
		}
	}
}

func computed(t *testing.T, m *Model, texts [2]string) []float64 {
	t.Helper()
	if m.Kind == Reranker {
		score, err := m.Score(context.Background(), texts[0], texts[1])
		if err != nil {
			t.Fatal(err)
		}
		return []float64{score}
	}
	v, err := m.Embed(context.Background(), texts[0])
	if err != nil || len(v) != m.Dims {
		t.Fatal(len(v), err)
	}
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}
