package pretrained

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"satchel/vector/encoder/internal/tensor"
)

// module is an entry of modules.json.
type module struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

// head is what follows an encoder in an embedder.
type head struct {
	pooling pooling
	dense   []projection
}

// pooling is how the vectors of tokens are combined into one.
type pooling string

const (
	poolFirst pooling = "cls"
	poolMean  pooling = "mean"
)

// projection is a dense layer after pooling.
type projection struct {
	in, out int
	bias    bool
	tanh    bool
	weights tensor.Set
}

// readHead reads modules.json and the files of the modules.
func readHead(folder *folder, width int) (head head, err error) {
	var list []module
	if err := folder.json("modules.json", &list); err != nil {
		return head, err
	}
	if len(list) < 2 ||
		len(list) > 8 ||
		list[0].kind() != "Transformer" ||
		list[0].Path != "" ||
		list[1].kind() != "Pooling" {
		return head, errors.New("modules.json: an encoder and a pooling have to be the first modules")
	}
	if head.pooling, err = readPooling(folder, list[1].Path, width); err != nil {
		return head, err
	}
	for i, m := range list[2:] {
		switch kind := m.kind(); {
		case kind == "Dense":
			p, err := readProjection(folder, m.Path, width)
			if err != nil {
				return head, err
			}
			head.dense, width = append(head.dense, p), p.out
		case kind == "Normalize" && i == len(list)-3: // every vector is normalized
		default:
			return head, fmt.Errorf("modules.json: module %d of type %.80q cannot be read by this program", i+2, m.Type)
		}
	}
	return head, nil
}

// kind returns the name of the module's class.
func (m module) kind() string {
	name, ok := strings.CutPrefix(m.Type, "sentence_transformers.")
	if !ok {
		return ""
	}
	return name[strings.LastIndex(name, ".")+1:]
}

func readPooling(folder *folder, at string, width int) (pooling, error) {
	name := path.Join(at, "config.json")
	fields := map[string]any{}
	if err := folder.json(name, &fields); err != nil {
		return "", err
	}
	if n, ok := fields["word_embedding_dimension"].(float64); ok && int(n) != width {
		return "", fmt.Errorf("%s: word_embedding_dimension is %v, the encoder has %d", name, n, width)
	}
	if prompt, ok := fields["include_prompt"].(bool); ok && !prompt {
		return "", fmt.Errorf("%s: pooling without the prompt cannot be computed by this program", name)
	}
	var modes []string
	for key, value := range fields {
		if on, _ := value.(bool); on && strings.HasPrefix(key, "pooling_mode_") {
			modes = append(modes, key)
		}
	}
	switch mode, _ := fields["pooling_mode"].(string); {
	case slices.Equal(modes, []string{"pooling_mode_cls_token"}) || len(modes) == 0 && mode == "cls":
		return poolFirst, nil
	case slices.Equal(modes, []string{"pooling_mode_mean_tokens"}) || len(modes) == 0 && mode == "mean":
		return poolMean, nil
	}
	return "", fmt.Errorf("%s: only pooling by the mean or by the first token can be computed by this program", name)
}

func readProjection(folder *folder, at string, width int) (p projection, err error) {
	name := path.Join(at, "config.json")
	var c struct {
		In         int    `json:"in_features"`
		Out        int    `json:"out_features"`
		Bias       *bool  `json:"bias"`
		Activation string `json:"activation_function"`
	}
	if err := folder.json(name, &c); err != nil {
		return p, err
	}
	if c.In != width || c.Out < 1 || c.Out > maxInner {
		return p, fmt.Errorf("%s: a layer of %d to %d after a vector of %d", name, c.In, c.Out, width)
	}
	p = projection{
		in:   c.In,
		out:  c.Out,
		bias: c.Bias == nil || *c.Bias,
	}
	switch c.Activation {
	case "torch.nn.modules.activation.Tanh":
		p.tanh = true
	case "torch.nn.modules.linear.Identity":
	default:
		return p, fmt.Errorf("%s: activation %.80q cannot be computed by this program", name, c.Activation)
	}
	p.weights, err = folder.tensors(path.Join(at, "model.safetensors"))
	return p, err
}

// Prompts are prepended to texts. Known is false if the files do not specify any: many
// models were trained with prompts that only their descriptions mention.
type Prompts struct {
	Query, Passage string
	Known          bool
}

// readPrompts reads config_sentence_transformers.json, which may be missing.
func readPrompts(folder *folder) (prompts Prompts, err error) {
	var c struct {
		Prompts    map[string]string `json:"prompts"`
		Default    string            `json:"default_prompt_name"`
		Similarity string            `json:"similarity_fn_name"`
	}
	if err := folder.optional("config_sentence_transformers.json", &c); err != nil {
		return prompts, err
	}
	switch c.Similarity {
	case "", "cosine", "dot", "dot_product":
	default:
		return prompts, fmt.Errorf(
			"config_sentence_transformers.json: similarity %.40q cannot be computed by this program",
			c.Similarity,
		)
	}
	other := c.Prompts[c.Default]
	first := func(names ...string) string {
		for _, name := range names {
			if text, ok := c.Prompts[name]; ok {
				return text
			}
		}
		return other
	}
	prompts = Prompts{Query: first("query"), Passage: first("passage", "document", "corpus")}
	prompts.Known = prompts.Query != "" || prompts.Passage != ""
	if len(prompts.Query) > maxPrompt || len(prompts.Passage) > maxPrompt {
		return prompts, fmt.Errorf("config_sentence_transformers.json: a prompt has more than %d bytes", maxPrompt)
	}
	return prompts, nil
}

// maxPrompt limits prompts, in bytes.
const maxPrompt = 1024

// readLength returns the maximum number of tokens of an input: the minimum of the
// number of positions, the model's own limit and maxTokens. lower reports whether texts
// are converted to lower case.
func readLength(f *folder, c *config) (tokens int, lower bool, err error) {
	s := struct {
		Tokens *int `json:"max_seq_length"`
		Lower  bool `json:"do_lower_case"`
	}{}
	if err := f.optional("sentence_bert_config.json", &s); err != nil {
		return 0, false, err
	}
	tokens = min(c.Positions-c.offset(), maxTokens)
	if s.Tokens != nil {
		tokens = min(tokens, *s.Tokens)
	}
	return tokens, s.Lower, nil
}

// decodeJSON decodes the untrusted JSON of a named file.
func decodeJSON(name string, data []byte, to any) error {
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
