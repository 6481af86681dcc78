package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Input is the input of a network: token ids, and the type of each token: 0 or, in the
// second text of a pair, the one that the tokenizer specifies.
type Input struct {
	IDs   []int32
	Types []int32
}

// slot is a part of an input: a special token, or the tokens of a text.
type slot struct {
	text int // 1 or 2: the text; 0: the token id
	id   int32
	kind int32
}

// maxSlots limits the parts of a template.
const maxSlots = 16

// Single returns the input for one text, whose ids are cut so that it has at
// most limit tokens.
func (t *Tokenizer) Single(ids []int32, limit int) Input {
	return fill(t.single, ids[:min(len(ids), limit-t.Special())], nil)
}

// Special returns the number of special tokens that Single adds.
func (t *Tokenizer) Special() int { return specials(t.single) }

// CanPair reports whether two texts can be combined into one input of at most limit
// tokens, with space for part of each.
func (t *Tokenizer) CanPair(limit int) bool {
	return t.pair != nil && limit >= specials(t.pair)+2
}

// Pair returns the input for two texts, with at most limit tokens. The longer
// one is cut until both fit.
func (t *Tokenizer) Pair(a, b []int32, limit int) Input {
	room := limit - specials(t.pair)
	if excess := len(a) + len(b) - room; excess > 0 {
		half := room / 2
		switch {
		case len(a) <= half:
			b = b[:room-len(a)]
		case len(b) <= half:
			a = a[:room-len(b)]
		default:
			a, b = a[:half], b[:room-half]
		}
	}
	return fill(t.pair, a, b)
}

func specials(template []slot) (n int) {
	for _, s := range template {
		if s.text == 0 {
			n++
		}
	}
	return n
}

func fill(template []slot, numbers, b []int32) Input {
	var in Input
	for _, s := range template {
		ids := []int32{s.id}
		switch s.text {
		case 1:
			ids = numbers
		case 2:
			ids = b
		}
		in.IDs = append(in.IDs, ids...)
		for range ids {
			in.Types = append(in.Types, s.kind)
		}
	}
	return in
}

// readTemplates reads how special tokens are added.
func (t *Tokenizer) readTemplates(file file) error {
	kind, err := typeOf(file.PostProcessor)
	if err == nil {
		switch kind {
		case "TemplateProcessing":
			err = t.readTemplate(file.PostProcessor)
		case "BertProcessing", "RobertaProcessing":
			err = t.readClassic(file.PostProcessor, kind)
		default:
			err = unknownPart(kind)
		}
	}
	if err == nil {
		err = t.checkTemplates()
	}
	if err != nil {
		return fmt.Errorf("post_processor: %w", err)
	}
	return nil
}

// checkTemplates checks that each text occurs once, and the ids.
func (t *Tokenizer) checkTemplates() error {
	for i, template := range [][]slot{t.single, t.pair} {
		var texts [3]int
		for _, s := range template {
			texts[s.text]++
			if s.id < 0 || s.id >= maxVocabulary || s.kind < 0 {
				return fmt.Errorf("special token %d of type %d", s.id, s.kind)
			}
			t.size = max(t.size, int(s.id)+1)
		}
		if i == 1 && template == nil {
			continue
		}
		if texts[1] != 1 || texts[2] != i || len(template) > maxSlots {
			return errors.New("a template does not have each text once")
		}
	}
	return nil
}

// MaxType returns the largest type of a token, in pairs too if there are any.
func (t *Tokenizer) MaxType(pairs bool) int32 {
	var most int32
	for _, s := range t.single {
		most = max(most, s.kind)
	}
	for _, s := range t.pair {
		if pairs {
			most = max(most, s.kind)
		}
	}
	return most
}

// readClassic reads the fixed templates of BERT and RoBERTa.
func (t *Tokenizer) readClassic(part json.RawMessage, kind string) error {
	var s struct {
		Type   string
		Sep    named `json:"sep"`
		Cls    named `json:"cls"`
		Trim   bool  `json:"trim_offsets"`
		Prefix bool  `json:"add_prefix_space"`
	}
	if err := strict(part, &s); err != nil {
		return err
	}
	cls, sep := slot{id: s.Cls.id}, slot{id: s.Sep.id}
	t.single = []slot{cls, {text: 1}, sep}
	t.pair = []slot{cls, {text: 1}, sep, {text: 2, kind: 1}, {id: sep.id, kind: 1}}
	if kind == "RobertaProcessing" {
		t.pair = []slot{cls, {text: 1}, sep, sep, {text: 2}, sep}
	}
	return nil
}

// named is a token as a pair of its text and its id.
type named struct{ id int32 }

func (n *named) UnmarshalJSON(data []byte) error {
	var pair [2]any
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	id, ok := pair[1].(float64)
	if _, text := pair[0].(string); !ok || !text || id < 0 || id >= maxVocabulary {
		return errors.New("a special token is not a text and an id")
	}
	n.id = int32(id)
	return nil
}

// piece is a part of a template in the file.
type piece struct {
	Special *struct {
		ID   string `json:"id"`
		Kind int32  `json:"type_id"`
	} `json:"SpecialToken"`
	Sequence *struct {
		ID   string `json:"id"`
		Kind int32  `json:"type_id"`
	} `json:"Sequence"`
}

func (t *Tokenizer) readTemplate(part json.RawMessage) (err error) {
	var s struct {
		Type    string
		Single  []piece `json:"single"`
		Pair    []piece `json:"pair"`
		Special map[string]struct {
			ID     string   `json:"id"`
			IDs    []int32  `json:"ids"`
			Tokens []string `json:"tokens"`
		} `json:"special_tokens"`
	}
	if err := strict(part, &s); err != nil {
		return err
	}
	ids := map[string]int32{}
	for name, token := range s.Special {
		if len(token.IDs) != 1 {
			return fmt.Errorf("special token %.40q has not one id", name)
		}
		ids[name] = token.IDs[0]
	}
	if t.single, err = slots(s.Single, ids); err != nil {
		return err
	}
	t.pair, err = slots(s.Pair, ids)
	return err
}

func slots(pieces []piece, ids map[string]int32) ([]slot, error) {
	var list []slot
	for _, p := range pieces {
		switch {
		case p.Special != nil && p.Sequence == nil:
			id, ok := ids[p.Special.ID]
			if !ok {
				return nil, fmt.Errorf("special token %.40q is not described", p.Special.ID)
			}
			list = append(list, slot{id: id, kind: p.Special.Kind})
		case p.Sequence != nil &&
			p.Special == nil &&
			(p.Sequence.ID == "A" || p.Sequence.ID == "B"):
			list = append(list, slot{text: int(p.Sequence.ID[0]-'A') + 1, kind: p.Sequence.Kind})
		default:
			return nil, errors.New("a part of a template is neither a special token nor a text")
		}
	}
	return list, nil
}
