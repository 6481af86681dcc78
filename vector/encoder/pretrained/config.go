package pretrained

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// config is config.json.
type config struct {
	ModelType     string            `json:"model_type"`
	Architectures []string          `json:"architectures"`
	Width         int               `json:"hidden_size"`
	Layers        int               `json:"num_hidden_layers"`
	Heads         int               `json:"num_attention_heads"`
	Inner         int               `json:"intermediate_size"`
	Activation    string            `json:"hidden_act"`
	Epsilon       float64           `json:"layer_norm_eps"`
	Positions     int               `json:"max_position_embeddings"`
	Types         int               `json:"type_vocab_size"`
	Vocabulary    int               `json:"vocab_size"`
	Padding       *int              `json:"pad_token_id"`
	PositionType  string            `json:"position_embedding_type"`
	Decoder       bool              `json:"is_decoder"`
	Cross         bool              `json:"add_cross_attention"`
	Labels        map[string]string `json:"id2label"`
	Quantization  json.RawMessage   `json:"quantization_config"`
	Sentence      struct {
		Activation string `json:"activation_fn"`
	} `json:"sentence_transformers"`
	OldActivation string `json:"sbert_ce_default_activation_function"`
}

// Maximum sizes of a network, somewhat above those of the largest BERT and XLM-RoBERTa.
const (
	maxWidth      = 2048
	maxInner      = 8192
	maxLayers     = 48
	maxPositions  = 16_384
	maxVocabulary = 1 << 20
)

// maxTokens is the maximum number of tokens of an input, even if the model accepts
// more: longer texts are read in parts.
const maxTokens = 512

func readConfig(data []byte) (config, error) {
	c := config{Activation: "gelu", Epsilon: 1e-12, PositionType: "absolute"}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("config.json: %w", err)
	}
	if err := c.check(); err != nil {
		return c, fmt.Errorf("config.json: %w", err)
	}
	return c, nil
}

func (c *config) check() error {
	switch {
	case c.ModelType != "bert" && c.ModelType != "xlm-roberta":
		return fmt.Errorf("model_type %.40q cannot be read by this program: bert and xlm-roberta can", c.ModelType)
	case c.Activation != "gelu":
		return fmt.Errorf("hidden_act %.40q cannot be computed by this program", c.Activation)
	case c.PositionType != "absolute":
		return fmt.Errorf("position_embedding_type %.40q cannot be computed by this program", c.PositionType)
	case c.Decoder || c.Cross:
		return errors.New("it is a decoder, not an encoder")
	case len(c.Quantization) > 0 && string(c.Quantization) != "null":
		return errors.New("quantization_config cannot be read by this program")
	case c.ModelType == "xlm-roberta" && (c.Padding == nil || *c.Padding < 0 || *c.Padding > 16):
		return errors.New("pad_token_id is missing or out of range")
	}
	return c.checkSizes()
}

func (c *config) checkSizes() error {
	for _, s := range []struct {
		name        string
		value, most int
	}{
		{"hidden_size", c.Width, maxWidth},
		{"num_hidden_layers", c.Layers, maxLayers},
		{"num_attention_heads", c.Heads, c.Width},
		{"intermediate_size", c.Inner, maxInner},
		{"max_position_embeddings", c.Positions, maxPositions},
		{"type_vocab_size", c.Types, 16},
		{"vocab_size", c.Vocabulary, maxVocabulary},
	} {
		if s.value < 1 || s.value > s.most {
			return fmt.Errorf("%s is %d, must be from 1 to %d", s.name, s.value, s.most)
		}
	}
	switch {
	case c.Width%c.Heads != 0:
		return errors.New("hidden_size is not a multiple of num_attention_heads")
	case !(c.Epsilon > 0 && c.Epsilon < 1):
		return errors.New("layer_norm_eps is out of range")
	case c.Positions <= c.offset():
		return errors.New("max_position_embeddings is too small")
	}
	return nil
}

// offset returns the position of the first token. RoBERTa's positions begin after the
// padding token's id.
func (c *config) offset() int {
	if c.ModelType == "xlm-roberta" {
		return *c.Padding + 1
	}
	return 0
}

// classifies reports whether the model ends in a classifier.
func (c *config) classifies() bool {
	return len(c.Architectures) == 1 && strings.HasSuffix(c.Architectures[0], "ForSequenceClassification")
}

// checkReranker checks that the classifier returns a single number, of which this
// program computes the sigmoid.
func (c *config) checkReranker() error {
	if len(c.Labels) > 1 {
		return errors.New("config.json: a classifier of several labels cannot rank")
	}
	for _, name := range []string{c.Sentence.Activation, c.OldActivation} {
		switch name[strings.LastIndex(name, ".")+1:] {
		case "", "Sigmoid", "Identity": // neither changes the order
		default:
			return fmt.Errorf("config.json: activation %.80q cannot be computed by this program", name)
		}
	}
	return nil
}
