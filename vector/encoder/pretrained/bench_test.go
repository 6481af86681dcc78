package pretrained

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"satchel/agent/cputime"
	"satchel/vector/encoder/internal/gemm"
	"satchel/vector/encoder/pretrained/sample"
)

// shaped writes a BERT with the sizes of all-MiniLM-L6-v2 and 3000 words.
func shaped(t testing.TB) string {
	t.Helper()
	v := sample.Of(t, "mean")
	folder := v.Build(t, "F32")
	const width, inner, words = 384, 1536, 3000
	tensors := map[string][]int{
		"embeddings.word_embeddings.weight":       {words, width},
		"embeddings.position_embeddings.weight":   {512, width},
		"embeddings.token_type_embeddings.weight": {2, width},
		"embeddings.LayerNorm.weight":             {width},
		"embeddings.LayerNorm.bias":               {width},
	}
	for i := range 6 {
		at := fmt.Sprintf("encoder.layer.%d.", i)
		for _, n := range []string{
			"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
		} {
			tensors[at+n+".weight"], tensors[at+n+".bias"] = []int{width, width}, []int{width}
		}
		tensors[at+"intermediate.dense.weight"], tensors[at+"intermediate.dense.bias"] =
			[]int{inner, width}, []int{inner}
		tensors[at+"output.dense.weight"], tensors[at+"output.dense.bias"] = []int{width, inner}, []int{width}
		for _, n := range []string{"attention.output.LayerNorm", "output.LayerNorm"} {
			tensors[at+n+".weight"], tensors[at+n+".bias"] = []int{width}, []int{width}
		}
	}
	if err := os.WriteFile(
		filepath.Join(folder, "model.safetensors"),
		sample.Weights("F32", tensors),
		0o644,
	); err != nil {
		t.Fatal(err)
	}
	edit(t, folder, "config.json", `"hidden_size":32`, `"hidden_size":384`)
	edit(t, folder, "config.json", `"intermediate_size":64`, `"intermediate_size":1536`)
	edit(t, folder, "config.json", `"num_attention_heads":2`, `"num_attention_heads":12`)
	edit(t, folder, "config.json", `"num_hidden_layers":2`, `"num_hidden_layers":6`)
	edit(t, folder, "config.json", `"max_position_embeddings":48`, `"max_position_embeddings":512`)
	edit(t, folder, "config.json", `"vocab_size":120`, `"vocab_size":3000`)
	edit(t, folder, "sentence_bert_config.json", "40", "256")
	edit(t, folder, "1_Pooling/config.json", `"word_embedding_dimension":32`, `"word_embedding_dimension":384`)
	return folder
}

func used(b *testing.B) time.Duration {
	b.Helper()
	t, err := cputime.Used()
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// BenchmarkMiniLM measures the processor time to embed a chunk of 256 tokens and a
// question, on one core.
func BenchmarkMiniLM(b *testing.B) {
	folder := shaped(b)
	for _, kernel := range gemm.Kernels() {
		m, err := openWith(folder, kernel)
		if err != nil {
			b.Fatal(err)
		}
		for _, tokens := range []int{256, 10} {
			b.Run(fmt.Sprintf("%s/%d", kernel.Name(), tokens), func(b *testing.B) {
				text := strings.Repeat("w7 ", tokens-2)
				before := used(b)
				for b.Loop() {
					if _, err := m.Embed(context.Background(), text); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)/(used(b)-before).Seconds(), "texts/cpu-s")
			})
		}
	}
}

// BenchmarkOpen reports the heap that a model uses, and the size of its file.
func BenchmarkOpen(b *testing.B) {
	folder := shaped(b)
	info, err := os.Stat(filepath.Join(folder, "model.safetensors"))
	if err != nil {
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		m := open(b, folder)
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(m)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "heap-MB")
	b.ReportMetric(float64(info.Size())/1e6, "file-MB")
}
