package sample

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// GGUF builds a GGUF file.
type GGUF struct {
	Version               uint32 // 0: 3
	keys, tensors         bytes.Buffer
	data                  []byte
	nKeys, nTensors       uint64
	SaysKeys, SaysTensors uint64 // written instead of the correct number; 0: the correct one
}

// put writes numbers, texts and lists of them.
func put(buffer *bytes.Buffer, list ...any) {
	for _, value := range list {
		switch item := value.(type) {
		case string:
			put(buffer, uint64(len(item)))
			buffer.WriteString(item)
		case []string:
			put(buffer, uint64(len(item)))
			for _, s := range item {
				put(buffer, s)
			}
		case []int32:
			put(buffer, uint64(len(item)))
			_ = binary.Write(buffer, binary.LittleEndian, item)
		case []float32:
			put(buffer, uint64(len(item)))
			_ = binary.Write(buffer, binary.LittleEndian, item)
		case []byte:
			put(buffer, uint64(len(item)))
			buffer.Write(item)
		default:
			_ = binary.Write(buffer, binary.LittleEndian, item)
		}
	}
}

// Key adds a key with its value. A value of an unknown type is written as it is.
func (g *GGUF) Key(name string, value any) {
	g.nKeys++
	put(&g.keys, name)
	switch value := value.(type) {
	case uint32:
		put(&g.keys, uint32(4), value)
	case float32:
		put(&g.keys, uint32(6), value)
	case bool:
		put(&g.keys, uint32(7), value)
	case string:
		put(&g.keys, uint32(8), value)
	case []byte:
		put(&g.keys, uint32(9), uint32(0), value)
	case []int32:
		put(&g.keys, uint32(9), uint32(5), value)
	case []float32:
		put(&g.keys, uint32(9), uint32(6), value)
	case []string:
		put(&g.keys, uint32(9), uint32(8), value)
	case Raw:
		g.keys.Write(value)
	}
}

// Raw is encoded: the type and value of a key, or the entry of a tensor.
type Raw []byte

// RawOf encodes numbers and texts one after another.
func RawOf(list ...any) Raw {
	var b bytes.Buffer
	put(&b, list...)
	return b.Bytes()
}

// The types of tensors.
var ggufTypes = map[string]uint32{
	"F32":  0,
	"F16":  1,
	"Q8_0": 8,
	"BF16": 30,
}

// Tensor adds a tensor of numbers, encoded as a type.
func (g *GGUF) Tensor(name, kind string, shape []int, numbers []float32) {
	put(&g.tensors, name, uint32(len(shape)))
	for _, n := range slices.Backward(shape) {
		put(&g.tensors, uint64(n))
	}
	g.align()
	put(&g.tensors, ggufTypes[kind], uint64(len(g.data)))
	g.nTensors++
	if kind == "Q8_0" {
		for block := range slices.Chunk(numbers, 32) {
			g.data = appendQ80(g.data, block)
		}
		return
	}
	for _, v := range numbers {
		g.data = Encodings[kind](g.data, v)
	}
}

// Entry adds an encoded entry of a tensor.
func (g *GGUF) Entry(r Raw) {
	g.nTensors++
	g.tensors.Write(r)
}

func (g *GGUF) align() {
	for len(g.data)%32 != 0 {
		g.data = append(g.data, 0)
	}
}

// appendQ80 appends a block of Q8_0: a scale, and each number as a multiple of it.
func appendQ80(data []byte, block []float32) []byte {
	most := 0.0
	for _, v := range block {
		most = max(most, math.Abs(float64(v)))
	}
	data = Encodings["F16"](data, float32(most/127))
	for _, v := range block {
		data = append(data, byte(int8(math.Round(float64(v)*127/max(most, 1e-9)))))
	}
	return data
}

// Bytes returns the file.
func (g *GGUF) Bytes() []byte {
	var buffer bytes.Buffer
	buffer.WriteString("GGUF")
	version, tensors, keys := g.Version, g.SaysTensors, g.SaysKeys
	if version == 0 {
		version = 3
	}
	if tensors == 0 {
		tensors = g.nTensors
	}
	if keys == 0 {
		keys = g.nKeys
	}
	put(&buffer, version, tensors, keys)
	buffer.Write(g.keys.Bytes())
	buffer.Write(g.tensors.Bytes())
	for buffer.Len()%32 != 0 {
		buffer.WriteByte(0)
	}
	g.align()
	buffer.Write(g.data)
	return buffer.Bytes()
}

// The names that llama.cpp's converter gives to tensors, by those of the models.
var ggufNames = map[string]string{
	"embeddings.word_embeddings":       "token_embd",
	"embeddings.position_embeddings":   "position_embd",
	"embeddings.token_type_embeddings": "token_types",
	"embeddings.LayerNorm":             "token_embd_norm",
}

var ggufLayerNames = map[string]string{
	"attention.self.query":       "attn_q",
	"attention.self.key":         "attn_k",
	"attention.self.value":       "attn_v",
	"attention.output.dense":     "attn_output",
	"attention.output.LayerNorm": "attn_output_norm",
	"intermediate.dense":         "ffn_up",
	"output.dense":               "ffn_down",
	"output.LayerNorm":           "layer_output_norm",
}

// ggufName returns the name of a tensor in a GGUF file.
func ggufName(name string) string {
	name = strings.Replace(strings.Replace(name, ".gamma", ".weight", 1), ".beta", ".bias", 1)
	at := strings.LastIndex(name, ".")
	part, end := name[:at], name[at:]
	if rest, ok := strings.CutPrefix(part, "encoder.layer."); ok {
		layer, inner, _ := strings.Cut(rest, ".")
		return "blk." + layer + "." + ggufLayerNames[inner] + end
	}
	return ggufNames[part] + end
}

// GGUF returns the model as a GGUF file with matrices of a type: F32, F16 or Q8_0.
// The positions are only those that the longest input has.
func (v Variant) GGUF(kind string) *GGUF {
	const tokens = 40
	gguf := &GGUF{}
	pooling := map[string]uint32{"mean": 1, "cls": 2}[v.Pooling]
	for _, k := range []struct {
		name  string
		value any
	}{
		{"general.architecture", "bert"},
		{"general.name", v.Name},
		{"bert.block_count", uint32(2)},
		{"bert.context_length", uint32(tokens)},
		{"bert.embedding_length", uint32(32)},
		{"bert.feed_forward_length", uint32(64)},
		{"bert.attention.head_count", uint32(2)},
		{"bert.attention.layer_norm_epsilon", float32(1e-12)},
		{"bert.attention.causal", false},
		{"bert.pooling_type", pooling},
	} {
		gguf.Key(k.name, k.value)
	}
	v.ggufTokens(gguf)
	for _, name := range slices.Sorted(maps.Keys(v.Tensors)) {
		shape, numbers, stored := v.Tensors[name], values(name, v.Tensors[name]), kind
		if strings.HasPrefix(name, "embeddings.position") {
			offset := 0
			if v.Type != "" {
				offset = 2
			}
			shape, numbers = []int{tokens, 32}, numbers[offset*32:(offset+tokens)*32]
		}
		if len(shape) == 1 {
			stored = "F32"
		}
		gguf.Tensor(ggufName(name), stored, shape, numbers)
	}
	return gguf
}

// ggufTokens writes the vocabulary of tokenizerOf.
func (v Variant) ggufTokens(gguf *GGUF) {
	names, kind := []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]"}, "bert"
	if v.Type != "" {
		names, kind = []string{"<pad>", "<unk>", "<s>", "</s>"}, "t5"
	}
	types, scores := []int32{3, 2, 3, 3}, make([]float32, 4)
	for i := 4; i < 120; i++ {
		names, types, scores = append(names, fmt.Sprintf("▁w%d", i)), append(types, 1), append(scores, -1)
	}
	gguf.Key("tokenizer.ggml.model", kind)
	gguf.Key("tokenizer.ggml.tokens", names)
	gguf.Key("tokenizer.ggml.token_type", types)
	if kind == "t5" {
		gguf.Key("tokenizer.ggml.scores", scores)
	}
	gguf.Key("tokenizer.ggml.bos_token_id", uint32(2))
	gguf.Key("tokenizer.ggml.eos_token_id", uint32(3))
	gguf.Key("tokenizer.ggml.seperator_token_id", uint32(3))
	gguf.Key("tokenizer.ggml.unknown_token_id", uint32(1))
}

// BuildGGUF writes the file of a model and returns its folder.
func (v Variant) BuildGGUF(t testing.TB, kind string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(
		filepath.Join(folder, "model.gguf"),
		v.GGUF(kind).Bytes(),
		0o644,
	); err != nil {
		t.Fatal(err)
	}
	return folder
}
