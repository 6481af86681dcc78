// Package sample writes small models for tests, with the results that PyTorch
// computes for them. Their words are w4 to w119. make.py generates golden.json.
package sample

import (
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

//go:embed golden.json
var golden []byte

// Variant is a model, and what it computes.
type Variant struct {
	Name       string
	Tensors    map[string][]int
	Pooling    string
	Dense      int
	Types      int
	Type       string
	Classifier string
	Cases      [][]json.RawMessage
}

// Variants returns all models: embedders, and two rerankers, whose Classifier is
// set.
func Variants(t testing.TB) (list []Variant) {
	t.Helper()
	if err := json.Unmarshal(golden, &list); err != nil || len(list) != 6 {
		t.Fatal(len(list), err)
	}
	return list
}

// Of returns the model of a name: mean, cls, dense, xlm-roberta, pair or
// xlm-roberta pair.
func Of(t testing.TB, name string) Variant {
	t.Helper()
	list := Variants(t)
	at := slices.IndexFunc(list, func(v Variant) bool {
		return v.Name == name
	})
	if at < 0 {
		t.Fatalf("no model %q", name)
	}
	return list[at]
}

// values are a tensor's numbers: the same as those of make.py.
func values(name string, shape []int) []float32 {
	state := uint64(0xCBF29CE484222325)
	for _, b := range []byte(name) {
		state = (state ^ uint64(b)) * 0x100000001B3
	}
	n := 1
	for _, size := range shape {
		n *= size
	}
	norm := strings.Contains(name, "LayerNorm") &&
		(strings.HasSuffix(name, "weight") || strings.HasSuffix(name, "gamma"))
	out := make([]float32, n)
	for i := range out {
		state = state*6364136223846793005 + 1442695040888963407
		k := int(state>>33%255) - 127
		if out[i] = float32(k) / 512; norm {
			out[i] = 1 + float32(math.Floor(float64(k)/4))/128
		}
	}
	return out
}

// Encodings write a number in each type; those of the models lose nothing.
var Encodings = map[string]func([]byte, float32) []byte{
	"F32": func(b []byte, v float32) []byte {
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	},
	"BF16": func(b []byte, v float32) []byte {
		return binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(v)>>16))
	},
	"F16": func(b []byte, v float32) []byte {
		bits := math.Float32bits(v)
		if v == 0 {
			return append(b, 0, 0)
		}
		return binary.LittleEndian.AppendUint16(b, uint16(bits>>31<<15|(bits>>23&255-112)<<10|bits>>13&1023))
	},
}

// Weights returns a safetensors file of tensors.
func Weights(kind string, tensors map[string][]int) []byte {
	header, data := map[string]any{"__metadata__": map[string]string{"format": "pt"}}, []byte(nil)
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		from := len(data)
		for _, v := range values(name, tensors[name]) {
			data = Encodings[kind](data, v)
		}
		header[name] = map[string]any{
			"dtype":        kind,
			"shape":        tensors[name],
			"data_offsets": []int{from, len(data)},
		}
	}
	text, _ := json.Marshal(header)
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), data...)
}

// Build writes the folder of a model, with weights of a type: F32, F16 or BF16.
func (v Variant) Build(t testing.TB, kind string) string {
	t.Helper()
	folder := t.TempDir()
	write := func(name string, content any) {
		t.Helper()
		data, ok := content.([]byte)
		if !ok {
			data, _ = json.Marshal(content)
		}
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	config := map[string]any{
		"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
		"intermediate_size": 64, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "max_position_embeddings": 48,
		"type_vocab_size": 2, "vocab_size": 120, "pad_token_id": 0,
	}
	if v.Types > 0 {
		config["type_vocab_size"] = v.Types
	}
	if v.Type != "" {
		config["model_type"], config["pad_token_id"] = v.Type, 1
	}
	write("tokenizer.json", []byte(tokenizerOf(v.Type)))
	write("model.safetensors", Weights(kind, v.Tensors))
	write("sentence_bert_config.json", map[string]any{"max_seq_length": 40, "do_lower_case": false})
	if v.Classifier != "" {
		config["architectures"], config["id2label"] = []string{v.Classifier}, map[string]string{"0": "LABEL_0"}
		write("config.json", config)
		return folder
	}
	write("config.json", config)
	modules := []map[string]any{
		{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
		{"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
	}
	write("1_Pooling/config.json", map[string]any{
		"word_embedding_dimension": 32,
		"pooling_mode_cls_token":   v.Pooling == "cls",
		"pooling_mode_mean_tokens": v.Pooling == "mean",
		"pooling_mode_max_tokens":  false,
	})
	if v.Dense > 0 {
		modules = append(modules, map[string]any{
			"idx":  2,
			"path": "2_Dense",
			"type": "sentence_transformers.models.Dense",
		})
		write("2_Dense/config.json", map[string]any{
			"in_features":         32,
			"out_features":        v.Dense,
			"bias":                true,
			"activation_function": "torch.nn.modules.activation.Tanh",
		})
		write(
			"2_Dense/model.safetensors",
			Weights(kind, map[string][]int{"linear.weight": {v.Dense, 32}, "linear.bias": {v.Dense}}),
		)
	}
	write(
		"modules.json",
		append(modules, map[string]any{
			"idx":  len(modules),
			"path": "3_Normalize",
			"type": "sentence_transformers.models.Normalize",
		}),
	)
	return folder
}

// tokenizerOf returns a tokenizer.json whose vocabulary is w4 to w119.
func tokenizerOf(kind string) string {
	const template = `{"version":"1.0","normalizer":null,"decoder":null,"added_tokens":[],%s}`
	if kind != "" {
		var pieces []string
		for i := range 120 {
			pieces = append(pieces, fmt.Sprintf(`["▁w%d",-1]`, i))
		}
		return fmt.Sprintf(
			template,
			`"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"},`+
				`"post_processor":{"type":"RobertaProcessing","cls":["<s>",2],"sep":["</s>",3]},`+
				`"model":{"type":"Unigram","unk_id":1,"vocab":[`+strings.Join(pieces, ",")+`]}`,
		)
	}
	pieces := []string{`"[UNK]":1`}
	for i := 4; i < 120; i++ {
		pieces = append(pieces, fmt.Sprintf(`"w%d":%d`, i, i))
	}
	return fmt.Sprintf(
		template,
		`"pre_tokenizer":{"type":"BertPreTokenizer"},`+
			`"post_processor":{"type":"BertProcessing","cls":["[CLS]",2],"sep":["[SEP]",3]},`+
			`"model":{"type":"WordPiece","unk_token":"[UNK]","vocab":{`+strings.Join(pieces, ",")+`}}`,
	)
}
