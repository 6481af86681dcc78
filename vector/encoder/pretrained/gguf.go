package pretrained

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"satchel/vector/encoder/internal/gguf"
	"satchel/vector/encoder/internal/tokenizer"
)

// GGUF is the name of a file that contains a whole model.
const GGUF = "model.gguf"

// readGGUF reads an embedder from a GGUF file, as llama.cpp's converter writes them
// for BERT and XLM-RoBERTa.
func readGGUF(folder *folder) (source source, err error) {
	source.file = GGUF
	err = folder.mapped(GGUF, func(data []byte) error {
		file, err := gguf.Parse(data)
		if err != nil {
			return err
		}
		if source.config, err = ggufConfig(file); err != nil {
			return err
		}
		if source.head.pooling, err = ggufPooling(file); err != nil {
			return err
		}
		text, err := ggufTokenizer(file)
		if err != nil {
			return err
		}
		if source.tokenizer, err = tokenizer.Parse(text); err != nil {
			return fmt.Errorf("tokenizer: %w", err)
		}
		source.tokens = min(source.config.Positions, maxTokens)
		source.weights = newWeights(file.Tensors, nil)
		source.weights.rename = ggufNames.Replace
		return nil
	})
	return source, err
}

// ggufNames replaces parts of tensor names by those used in GGUF files.
var ggufNames = strings.NewReplacer(
	"embeddings.word_embeddings", "token_embd", "embeddings.token_type_embeddings", "token_types",
	"embeddings.position_embeddings", "position_embd", "embeddings.LayerNorm", "token_embd_norm",
	"encoder.layer.", "blk.", "attention.self.query", "attn_q", "attention.self.key", "attn_k",
	"attention.self.value", "attn_v", "attention.output.dense", "attn_output",
	"attention.output.LayerNorm", "attn_output_norm", "intermediate.dense", "ffn_up", "output.dense", "ffn_down",
	"output.LayerNorm", "layer_output_norm",
)

// ggufConfig returns the sizes of the network. Positions begin with that of the
// first token, for XLM-RoBERTa too.
func ggufConfig(file *gguf.File) (config, error) {
	if kind := file.Text("general.architecture"); kind != "bert" {
		return config{}, fmt.Errorf("general.architecture %.40q cannot be computed by this program: bert can", kind)
	}
	size := func(key string) int {
		return int(min(file.Number(key, 0), maxVocabulary))
	}
	rows := func(name string) int {
		if t := file.Tensors[name]; t != nil && len(t.Shape) > 0 {
			return t.Shape[0]
		}
		return 0
	}
	c := config{
		ModelType:    "bert",
		Activation:   "gelu",
		PositionType: "absolute",
		Width:        size("bert.embedding_length"),
		Layers:       size("bert.block_count"),
		Heads:        size("bert.attention.head_count"),
		Inner:        size("bert.feed_forward_length"),
		Positions:    size("bert.context_length"),
		Epsilon:      file.Float("bert.attention.layer_norm_epsilon"),
		Types:        rows("token_types.weight"),
		Vocabulary:   rows("token_embd.weight"),
		Decoder:      file.Bool("bert.attention.causal", false),
	}
	return c, c.check()
}

// ggufPooling returns how the vectors of tokens are combined into one.
func ggufPooling(g *gguf.File) (pooling, error) {
	switch kind := g.Number("bert.pooling_type", 0); kind {
	case 1:
		return poolMean, nil
	case 2:
		return poolFirst, nil
	case 4:
		return "", errors.New("it is a reranker, which this program reads from model.safetensors only")
	default:
		return "", fmt.Errorf(
			"bert.pooling_type is %d: only pooling by the mean (1) or by the first token (2) can "+
				"be computed by this program",
			kind,
		)
	}
}

// The types of tokens that may occur in the vocabularies of these encoders.
const (
	tokenNormal  = 1
	tokenUnknown = 2
	tokenControl = 3
	tokenUnused  = 5
)

// vocabulary is the list of tokens of a GGUF file.
type vocabulary struct {
	file   *gguf.File
	tokens []string
	types  []int32
}

// specialToken is an entry of added_tokens in a tokenizer.json.
type specialToken struct {
	ID      int    `json:"id"`
	Content string `json:"content"`
	Special bool   `json:"special"`
}

// ggufTokenizer returns a file's tokenizer in the form of a tokenizer.json.
func ggufTokenizer(file *gguf.File) ([]byte, error) {
	v := vocabulary{file: file}
	var err error
	if v.tokens, err = file.Texts("tokenizer.ggml.tokens", maxVocabulary); err != nil {
		return nil, err
	}
	if v.types, err = file.Integers("tokenizer.ggml.token_type", len(v.tokens)); err != nil {
		return nil, err
	}
	special := []specialToken{}
	for id, kind := range v.types {
		switch kind {
		case tokenNormal:
		case tokenUnknown, tokenControl, tokenUnused:
			special = append(special, specialToken{id, v.tokens[id], true})
		default:
			return nil, fmt.Errorf("token %d has type %d, which this program cannot read", id, kind)
		}
	}
	parts := map[string]any{"added_tokens": special}
	switch kind := file.Text("tokenizer.ggml.model"); kind {
	case "bert":
		err = v.wordPiece(parts)
	case "t5":
		err = v.unigram(parts)
	default:
		err = fmt.Errorf("tokenizer.ggml.model %.40q cannot be read by this program: bert and t5 can", kind)
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(parts)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return text, nil
}

// mark stands before the pieces that begin a word.
const mark = "\u2581"

// wordPiece adds the parts of BERT's tokenizer. Its vocabulary marks the pieces at
// the start of a word instead of those further on.
func (v vocabulary) wordPiece(parts map[string]any) error {
	pieces, upper := make(map[string]int, len(v.tokens)), 0
	for id, token := range v.tokens {
		if v.types[id] != tokenNormal {
			pieces[token] = id
			continue
		}
		if start, ok := strings.CutPrefix(token, mark); ok {
			token = start
		} else {
			token = "##" + token
		}
		if pieces[token] = id; strings.ToLower(token) != token && !strings.HasPrefix(token, "[") {
			upper++
		}
	}
	first, err := v.special("[CLS]")
	if err != nil {
		return err
	}
	last, err := v.special("[SEP]")
	if err != nil {
		return err
	}
	unknown, err := v.special("[UNK]")
	if err != nil {
		return err
	}
	// Older files do not say whether case counts. It does not where hardly a piece
	// has a capital letter.
	lower := v.file.Bool("tokenizer.ggml.normalizer.lowercase", upper*100 < len(v.tokens))
	accents := v.file.Bool("tokenizer.ggml.normalizer.strip_accents", lower)
	parts["normalizer"] = map[string]any{
		"type":                 "BertNormalizer",
		"clean_text":           true,
		"handle_chinese_chars": true,
		"strip_accents":        accents,
		"lowercase":            lower,
	}
	parts["pre_tokenizer"] = map[string]any{"type": "BertPreTokenizer"}
	parts["post_processor"] = map[string]any{
		"type": "BertProcessing",
		"cls":  first,
		"sep":  last,
	}
	parts["model"] = map[string]any{
		"type":      "WordPiece",
		"unk_token": unknown[0],
		"vocab":     pieces,
	}
	return nil
}

// unigram adds the parts of XLM-RoBERTa's tokenizer.
func (v vocabulary) unigram(parts map[string]any) error {
	scores, err := v.file.Floats("tokenizer.ggml.scores", len(v.tokens))
	if err != nil {
		return err
	}
	if !v.file.Bool("tokenizer.ggml.add_space_prefix", true) {
		return errors.New("tokenizer.ggml.add_space_prefix is false, which this program cannot read")
	}
	pieces := make([][2]any, len(v.tokens))
	for id, token := range v.tokens {
		pieces[id] = [2]any{token, scores[id]}
	}
	first, err := v.special("<s>")
	if err != nil {
		return err
	}
	last, err := v.special("</s>")
	if err != nil {
		return err
	}
	unknown, err := v.special("<unk>")
	if err != nil {
		return err
	}
	parts["normalizer"] = map[string]any{
		"type":                 "Precompiled",
		"precompiled_charsmap": v.file.Bytes("tokenizer.ggml.precompiled_charsmap"),
	}
	parts["pre_tokenizer"] = map[string]any{
		"type": "Sequence",
		"pretokenizers": []any{
			map[string]any{"type": "WhitespaceSplit"},
			map[string]any{"type": "Metaspace", "replacement": mark, "prepend_scheme": "always"},
		},
	}
	parts["post_processor"] = map[string]any{
		"type": "RobertaProcessing",
		"cls":  first,
		"sep":  last,
	}
	parts["model"] = map[string]any{
		"type":   "Unigram",
		"unk_id": unknown[1],
		"vocab":  pieces,
	}
	return nil
}

// special returns a special token: its text and its id. If the file uses a different
// text for it, the tokenizer is not the one that the file declares.
func (v vocabulary) special(name string) (pair [2]any, err error) {
	for id, token := range v.tokens {
		if token == name && v.types[id] != tokenNormal {
			return [2]any{token, id}, nil
		}
	}
	return pair, fmt.Errorf("the vocabulary has no token %s", name)
}
