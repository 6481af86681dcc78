package pretrained

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/vector/encoder/internal/gguf"
	"satchel/vector/encoder/internal/tokenizer"
	"satchel/vector/encoder/pretrained/sample"
)

// Models in GGUF compute the same as PyTorch; with 8-bit weights, nearly the same.
func TestGGUFMatchesTheReference(t *testing.T) {
	for _, name := range []string{"mean", "cls", "xlm-roberta"} {
		v := sample.Of(t, name)
		for _, kind := range []string{"F32", "F16", "BF16"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				m := open(t, v.BuildGGUF(t, kind))
				if m.Kind != Embedder ||
					m.Dims != 32 ||
					m.Tokens != 40 ||
					!slices.Equal(m.Files, []string{"model.gguf"}) {
					t.Errorf("got %+v", m)
				}
				checkGolden(t, m, v)
			})
		}
		whole, rounded := open(t, v.BuildGGUF(t, "F32")), open(t, v.BuildGGUF(t, "Q8_0"))
		for _, text := range []string{"w5", "w9 w8 w7 w100 w6", "w20 w40 w60 w80 w100 w119"} {
			var cosine float64
			a, b := computed(t, whole, [2]string{text}), computed(t, rounded, [2]string{text})
			for i := range a {
				cosine += a[i] * b[i]
			}
			if cosine < 0.9995 || slices.Equal(a, b) {
				t.Errorf("%s, %q: the cosine of the vectors with weights in 32 and in 8 bits is %v", name, text, cosine)
			}
		}
	}
}

// tokenizerFile writes a tokenizer.json as llama.cpp's converter does.
func tokenizerFile(t *testing.T, path string) *gguf.File {
	t.Helper()
	var from struct {
		Added []struct {
			ID int `json:"id"`
		} `json:"added_tokens"`
		Normalizer struct {
			Map []byte `json:"precompiled_charsmap"`
		} `json:"normalizer"`
		Model struct {
			Type  string          `json:"type"`
			Vocab json.RawMessage `json:"vocab"`
		} `json:"model"`
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &from); err != nil {
		t.Fatal(err)
	}
	ids, scored, g := map[string]int{}, [][2]any{}, &sample.GGUF{}
	if from.Model.Type == "Unigram" {
		err = json.Unmarshal(from.Model.Vocab, &scored)
	} else {
		err = json.Unmarshal(from.Model.Vocab, &ids)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := max(len(ids), len(scored))
	tokens, types, scores := make([]string, n), make([]int32, n), make([]float32, n)
	for i := range types {
		types[i] = 1
	}
	for _, a := range from.Added {
		types[a.ID] = 3
	}
	for token, id := range ids {
		if tokens[id] = token; types[id] == 1 {
			if rest, inside := strings.CutPrefix(token, "##"); inside {
				tokens[id] = rest
			} else {
				tokens[id] = "▁" + token
			}
		}
	}
	for id, pair := range scored {
		tokens[id], scores[id] = pair[0].(string), float32(pair[1].(float64))
	}
	kind := "bert"
	if len(scored) > 0 {
		kind = "t5"
		g.Key("tokenizer.ggml.scores", scores)
		g.Key("tokenizer.ggml.precompiled_charsmap", from.Normalizer.Map)
	}
	g.Key("tokenizer.ggml.model", kind)
	g.Key("tokenizer.ggml.tokens", tokens)
	g.Key("tokenizer.ggml.token_type", types)
	parsed, err := gguf.Parse(g.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// The tokenizers of GGUF files return the same ids as the libraries with which the
// models were trained.
func TestGGUFTokenizers(t *testing.T) {
	const folder = "../internal/tokenizer/testdata/"
	for _, name := range []string{"wordpiece", "unigram"} {
		text, err := ggufTokenizer(tokenizerFile(t, folder+name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var rows [][]json.RawMessage
		data, err := os.ReadFile(folder + name + ".golden.json")
		if err != nil || json.Unmarshal(data, &rows) != nil || len(rows) < 30 {
			t.Fatal(len(rows), err)
		}
		for _, row := range rows {
			var line string
			var want []int32
			if json.Unmarshal(row[0], &line) != nil || json.Unmarshal(row[1], &want) != nil {
				t.Fatal(string(row[0]))
			}
			got := tok.Encode(line)
			if name == "wordpiece" {
				got = tok.Single(got, 1<<20).IDs
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %q: %v, want %v", name, line, got, want)
			}
		}
	}
}

// A model is case-sensitive if the file says so, or else if the vocabulary has capitals.
func TestGGUFCase(t *testing.T) {
	for _, c := range []struct {
		pieces []string
		key    any
		want   bool
	}{
		{[]string{"▁the", "ing"}, nil, true},
		{[]string{"▁the", "▁The"}, nil, false},
		{[]string{"▁the", "▁[unused1]", "▁[MASK]"}, nil, true},
		{[]string{"▁the", "▁The"}, true, true},
		{[]string{"▁the", "ing"}, false, false},
	} {
		g := &sample.GGUF{}
		g.Key("tokenizer.ggml.model", "bert")
		g.Key("tokenizer.ggml.tokens", append([]string{"[UNK]", "[CLS]", "[SEP]"}, c.pieces...))
		g.Key("tokenizer.ggml.token_type", append([]int32{3, 3, 3}, slices.Repeat([]int32{1}, len(c.pieces))...))
		if c.key != nil {
			g.Key("tokenizer.ggml.normalizer.lowercase", c.key)
		}
		f, err := gguf.Parse(g.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		text, err := ggufTokenizer(f)
		if err != nil || strings.Contains(string(text), `"lowercase":true`) != c.want {
			t.Errorf("%q, %v: %s, %v", c.pieces, c.key, text, err)
		}
	}
}

func TestInvalidGGUFFilesAreRejected(t *testing.T) {
	for _, c := range []struct{ variant, from, to, want string }{
		{"mean", "bert.pooling_type", "bert.pooling_tipe", "bert.pooling_type is 0"},
		{"mean", "bert.block_count", "bert.block_kount", "num_hidden_layers is 0"},
		{"mean", "bert.attention.layer_norm_epsilon", "bert.attention.layer_norm_epsilom", "layer_norm_eps"},
		{"mean", "tokenizer.ggml.tokens", "tokenizer.ggml.token_", "tokenizer.ggml.tokens is not a list"},
		{
			"mean",
			"tokenizer.ggml.token_type",
			"tokenizer.ggml.token_tipe",
			"tokenizer.ggml.token_type is not a list of 120",
		},
		{"xlm-roberta", "tokenizer.ggml.scores", "tokenizer.ggml.skores", "tokenizer.ggml.scores is not a list"},
		{"mean", "blk.1.ffn_up.weight", "blk.1.ffn_ap.weight", `"blk.1.ffn_up.weight" is missing`},
		{"mean", "token_embd.weight", "token_emb_.weight", "vocab_size is 0"},
		{
			"mean",
			"\x04\x00\x00\x00\x00\x00\x00\x00bert",
			"\x04\x00\x00\x00\x00\x00\x00\x00jina",
			`general.architecture "jina"`,
		},
		{"mean", "[CLS]", "[CLX]", "no token [CLS]"},
		{"mean", "▁w119", "▁w\xff19", "not UTF-8"},
	} {
		folder := sample.Of(t, c.variant).BuildGGUF(t, "F16")
		edit(t, folder, "model.gguf", c.from, c.to)
		if _, err := Open(folder); err == nil ||
			!strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "model.gguf: ") {
			t.Errorf("%q for %q: %v, want an error with %q", c.to, c.from, err, c.want)
		}
	}
	for want, change := range map[string]func(g *sample.GGUF){
		`"rope_freqs.weight" belongs to an unsupported part`: func(g *sample.GGUF) {
			g.Tensor("rope_freqs.weight", "F32", []int{2}, []float32{1, 1})
		},
		"occurs twice": func(g *sample.GGUF) { g.Key("bert.pooling_type", uint32(4)) },
	} {
		g := sample.Of(t, "mean").GGUF("F32")
		change(g)
		folder := t.TempDir()
		edit(t, folder, "model.gguf", "", string(g.Bytes()))
		if _, err := Open(folder); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestTruncatedGGUFFilesAreRejected(t *testing.T) {
	folder := sample.Of(t, "mean").BuildGGUF(t, "Q8_0")
	path := filepath.Join(folder, "model.gguf")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := info.Size() - 40; size >= 0; size -= 97 {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(folder); err == nil {
			t.Fatalf("a file truncated to %d bytes was opened, the complete one has %d", size, info.Size())
		}
	}
}

// FuzzGGUF checks that any file is either opened and usable, or rejected.
func FuzzGGUF(f *testing.F) {
	for _, name := range []string{"mean", "xlm-roberta"} {
		f.Add(sample.Of(f, name).GGUF("Q8_0").Bytes())
	}
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(folder, "model.gguf"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if m, err := Open(folder); err == nil {
			if v, err := m.Embed(context.Background(), "w5 w6"); err == nil && len(v) != m.Dims {
				t.Fatal(len(v), m.Dims)
			}
		}
	})
}
