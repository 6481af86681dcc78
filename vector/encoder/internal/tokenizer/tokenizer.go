// Package tokenizer converts text to the ids of a model's vocabulary, as specified by
// the model's tokenizer.json (the format of Hugging Face's library
// tokenizers). It supports WordPiece and Unigram and the other parts that text
// encoders use. An unknown part or option is an error, so that
// text is never encoded differently than in training.
//
// There are two deliberate differences from the library. The names of special tokens in
// a text are text: a document that says "[SEP]" cannot end a passage. And
// settings for truncation and padding are ignored: callers limit the ids.
package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// MaxText is the number of bytes of a text that are used, before and after
// normalization.
const MaxText = 64 << 10

// maxVocabulary limits the pieces of a vocabulary.
const maxVocabulary = 1 << 20

// Tokenizer is what a tokenizer.json describes. It is safe for concurrent use.
type Tokenizer struct {
	normalize []func(string) string
	split     []splitter
	encode    func(word string) []int32
	size      int
	single    []slot
	pair      []slot
}

// splitter divides the parts of a text further. begins marks the part at the
// start of the text.
type splitter func(part string, begins bool) []string

// file is tokenizer.json. Decoder, truncation and padding have no influence on
// the ids.
type file struct {
	Version       json.RawMessage `json:"version"`
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	Decoder       json.RawMessage `json:"decoder"`
	Added         []added         `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Model         json.RawMessage `json:"model"`
}

type added struct {
	ID      int32  `json:"id"`
	Content string `json:"content"`
	Special bool   `json:"special"`

	SingleWord bool `json:"single_word"`
	Lstrip     bool `json:"lstrip"`
	Rstrip     bool `json:"rstrip"`
	Normalized bool `json:"normalized"`
}

// Parse reads a tokenizer.json.
func Parse(data []byte) (*Tokenizer, error) {
	var f file
	if err := strict(data, &f); err != nil {
		return nil, err
	}
	tokenizer := &Tokenizer{}
	for _, read := range []func(file) error{
		tokenizer.readModel, tokenizer.readNormalizer, tokenizer.readSplit, tokenizer.readTemplates,
	} {
		if err := read(f); err != nil {
			return nil, err
		}
	}
	for _, a := range f.Added {
		if !a.Special {
			return nil, fmt.Errorf("added token %.40q is not a special one, which this program cannot read", a.Content)
		}
		if a.ID < 0 || a.ID >= maxVocabulary {
			return nil, fmt.Errorf("added token %.40q has id %d", a.Content, a.ID)
		}
		tokenizer.size = max(tokenizer.size, int(a.ID)+1)
	}
	return tokenizer, nil
}

// Size returns a number that is larger than every id.
func (t *Tokenizer) Size() int { return t.size }

// strict decodes JSON and rejects unknown fields.
func strict(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more follows after the JSON value")
	}
	return nil
}

// typeOf returns the field type of a part, or "" if the part is null or missing.
func typeOf(part json.RawMessage) (string, error) {
	if len(part) == 0 || string(part) == "null" {
		return "", nil
	}
	var p struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(part, &p); err != nil {
		return "", err
	}
	if p.Type == "" {
		return "", errors.New("a part has no type")
	}
	return p.Type, nil
}

// readModel reads the vocabulary.
func (t *Tokenizer) readModel(file file) error {
	kind, err := typeOf(file.Model)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	special := map[string]bool{}
	for _, a := range file.Added {
		special[a.Content] = true
	}
	switch kind {
	case "WordPiece":
		err = t.readWordPiece(file.Model, special)
	case "Unigram":
		err = t.readUnigram(file.Model, special)
	default:
		err = unknownPart(kind)
	}
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	return nil
}

func unknownPart(kind string) error {
	return fmt.Errorf("%.40q cannot be read by this program", kind)
}

// Encode returns the ids of a text, without those of special tokens.
func (t *Tokenizer) Encode(text string) []int32 {
	text = cut(text)
	for _, step := range t.normalize {
		text = cut(step(text))
	}
	if text == "" {
		return nil
	}
	parts := []string{text}
	for _, split := range t.split {
		var finer []string
		for i, part := range parts {
			finer = append(finer, split(part, i == 0)...)
		}
		parts = finer
	}
	var ids []int32
	for _, part := range parts {
		ids = append(ids, t.encode(part)...)
	}
	return ids
}

// cut cuts the text to MaxText bytes, or a few less so that no character is
// split.
func cut(text string) string {
	if len(text) <= MaxText {
		return text
	}
	end := MaxText
	for back := 1; back < utf8.UTFMax && !utf8.RuneStart(text[end]); back++ {
		end--
	}
	return text[:end]
}
