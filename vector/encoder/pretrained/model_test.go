package pretrained

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"satchel/vector/encoder/pretrained/sample"
)

func open(t testing.TB, folder string) *Model {
	t.Helper()
	m, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// edit replaces a text in a file of a folder; an empty from replaces the whole file.
func edit(t testing.TB, folder, name, from, to string) {
	t.Helper()
	path := filepath.Join(folder, name)
	data, err := os.ReadFile(path)
	if err != nil && from != "" {
		t.Fatal(err)
	}
	text := to
	if from != "" {
		if text = strings.Replace(string(data), from, to, 1); text == string(data) {
			t.Fatalf("%s has no %q", name, from)
		}
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestInvalidFoldersAreRejected(t *testing.T) {
	for _, c := range []struct{ variant, file, from, to, want string }{
		{"mean", "config.json", "", "{", "config.json: unexpected end"},
		{"mean", "config.json", `"bert"`, `"nomic_bert"`, `model_type "nomic_bert"`},
		{"mean", "config.json", `"gelu"`, `"gelu_new"`, `hidden_act "gelu_new"`},
		{"mean", "config.json", `{`, `{"position_embedding_type":"relative_key",`, "position_embedding_type"},
		{"mean", "config.json", `{`, `{"is_decoder":true,`, "decoder"},
		{"mean", "config.json", `{`, `{"quantization_config":{},`, "quantization_config"},
		{"mean", "config.json", `"hidden_size":32`, `"hidden_size":1000000000`, "hidden_size is 1000000000"},
		{"mean", "config.json", `"num_hidden_layers":2`, `"num_hidden_layers":-1`, "num_hidden_layers is -1"},
		{"mean", "config.json", `"num_attention_heads":2`, `"num_attention_heads":3`, "not a multiple"},
		{"mean", "config.json", `"layer_norm_eps":1e-12`, `"layer_norm_eps":-1`, "layer_norm_eps"},
		{"mean", "config.json", `"num_hidden_layers":2`, `"num_hidden_layers":1`, "encoder.layer.1"},
		{
			"mean", "config.json", `"num_hidden_layers":2`, `"num_hidden_layers":3`,
			`"encoder.layer.2.attention.self.query.weight" is missing`,
		},
		{"mean", "config.json", `"intermediate_size":64`, `"intermediate_size":32`, "has shape [64 32], want [32 32]"},
		{"mean", "config.json", `"vocab_size":120`, `"vocab_size":119`, "has shape"},
		{"xlm-roberta", "config.json", `"pad_token_id":1`, `"pad_token_id":-1`, "pad_token_id"},
		{"mean", "tokenizer.json", `"w119":119`, `"w119":120`, "ids up to 120"},
		{"mean", "tokenizer.json", `WordPiece`, `BPE`, `tokenizer.json: model: "BPE"`},
		{"pair", "config.json", `"type_vocab_size":2`, `"type_vocab_size":1`, "has shape"},
		{"pair", "config.json", `"0":"LABEL_0"`, `"0":"a","1":"b"`, "several labels"},
		{
			"pair",
			"config.json",
			`{`,
			`{"sbert_ce_default_activation_function":"torch.nn.modules.activation.Softmax",`,
			"activation",
		},
		{"mean", "sentence_bert_config.json", "40", "2", "max_seq_length is 2"},
		{"mean", "sentence_bert_config.json", "40", "-5", "max_seq_length is -5"},
		{"mean", "modules.json", "models.Normalize", "models.WeightedLayerPooling", "modules.json: module 2"},
		{"mean", "modules.json", "1_Pooling", "../1_Pooling", "escapes"},
		{"mean", "modules.json", "", "[]", "have to be the first"},
		{
			"mean",
			"1_Pooling/config.json",
			`"pooling_mode_max_tokens":false`,
			`"pooling_mode_max_tokens":true`,
			"only pooling",
		},
		{
			"mean",
			"1_Pooling/config.json",
			`"word_embedding_dimension":32`,
			`"word_embedding_dimension":64`,
			"word_embedding_dimension",
		},
		{"mean", "1_Pooling/config.json", `{`, `{"include_prompt":false,`, "without the prompt"},
		{"dense", "2_Dense/config.json", "Tanh", "GELU", "activation"},
		{"dense", "2_Dense/config.json", `"in_features":32`, `"in_features":31`, "layer of 31"},
		{"dense", "2_Dense/model.safetensors", "", "short", "cut off"},
		{
			"mean",
			"model.safetensors",
			`encoder.layer.0.output.dense.bias`,
			`encoder.layer.0.output.adapt.bias`,
			"is missing",
		},
		{
			"mean",
			"model.safetensors",
			"",
			string(binary.LittleEndian.AppendUint64(nil, 4<<30)),
			"the header has 4294967296 bytes",
		},
		{"mean", "config_sentence_transformers.json", "", `{"similarity_fn_name":"euclidean"}`, "euclidean"},
		{
			"mean",
			"config_sentence_transformers.json",
			"",
			`{"prompts":{"query":"` + strings.Repeat("x", 2000) + `"}}`,
			"prompt has more",
		},
	} {
		folder := sample.Of(t, c.variant).Build(t, "F32")
		edit(t, folder, c.file, c.from, c.to)
		if _, err := Open(folder); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %.60q for %q: %v, want an error with %q", c.file, c.to, c.from, err, c.want)
		}
	}
}

func TestMissingFilesAreNamed(t *testing.T) {
	for _, name := range []string{
		"config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json", "model.safetensors",
	} {
		folder := sample.Of(t, "mean").Build(t, "F32")
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
		_, err := Open(folder)
		if missing := (*Missing)(nil); !errors.As(err, &missing) || missing.Name != name {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestTruncatedFilesAreRejected(t *testing.T) {
	folder := sample.Of(t, "mean").Build(t, "F16")
	path := filepath.Join(folder, "model.safetensors")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := info.Size() - 1; size >= 0; size -= 97 {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(folder); err == nil {
			t.Fatalf("a file truncated to %d bytes was opened, the complete one has %d", size, info.Size())
		}
	}
}

// A call fails if the file is truncated while it is in use, and the program does not
// crash.
func TestFileTruncatedInUse(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are read, not mapped")
	}
	folder := sample.Of(t, "mean").Build(t, "F32")
	m := open(t, folder)
	if err := os.Truncate(filepath.Join(folder, "model.safetensors"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Embed(context.Background(), "w5 w6"); !errors.Is(err, errFault) {
		t.Errorf("got %v", err)
	}
}

func TestNumbersThatAreNotFinite(t *testing.T) {
	folder := sample.Of(t, "mean").Build(t, "F32")
	path := filepath.Join(folder, "model.safetensors")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(data) - 4*32; i < len(data); i += 4 { // the last tensor by name
		binary.LittleEndian.PutUint32(data[i:], math.Float32bits(float32(math.NaN())))
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, folder).Embed(context.Background(), "w5"); err == nil ||
		!strings.Contains(err.Error(), "not finite") {
		t.Errorf("got %v", err)
	}
}

func TestModelKinds(t *testing.T) {
	folder := sample.Of(t, "dense").Build(t, "F32")
	edit(t, folder, "config_sentence_transformers.json", "", `{"prompts":{"query":"query: ","document":"passage: "}}`)
	m := open(t, folder)
	if m.Kind != Embedder ||
		m.Dims != 16 ||
		m.Tokens != 40 ||
		m.Prompts != (Prompts{"query: ", "passage: ", true}) ||
		len(m.Files) != 9 {
		t.Errorf("got %+v", m)
	}
	if _, err := m.Score(context.Background(), "w5", "w6"); err == nil {
		t.Error("an embedder scored")
	}
	r := open(t, sample.Of(t, "pair").Build(t, "F32"))
	if r.Kind != Reranker || r.Dims != 0 || r.Prompts.Known {
		t.Errorf("got %+v", r)
	}
	if _, err := r.Embed(context.Background(), "w5"); err == nil {
		t.Error("a reranker embedded")
	}
}

func TestConcurrentCallsAndCancellation(t *testing.T) {
	m := open(t, sample.Of(t, "mean").Build(t, "F32"))
	want := computed(t, m, [2]string{"w5 w6 w7"})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i, x := range computed(t, m, [2]string{"w5 w6 w7"}) {
				if x != want[i] {
					t.Error("concurrent calls differ")
				}
			}
		})
	}
	group.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.Embed(ctx, "w5"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func FuzzConfig(f *testing.F) {
	folder := sample.Of(f, "mean").Build(f, "F32")
	data, err := os.ReadFile(filepath.Join(folder, "config.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := readConfig(data); err == nil &&
			(c.offset() >= c.Positions || c.Width%c.Heads != 0 || c.Width > maxWidth) {
			t.Fatalf("got %+v", c)
		}
	})
}
