package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"satchel/vector/encoder/internal/unigram"
)

// wordPiece cuts a word from its start into the longest pieces of a vocabulary.
type wordPiece struct {
	ids     map[string]int32 // of pieces at the start of a word
	inside  map[string]int32 // of pieces within a word, without their prefix
	longest int              // bytes of the longest piece
	unknown int32
	maxRune int // words with more characters are unknown
}

func (t *Tokenizer) readWordPiece(part json.RawMessage, special map[string]bool) error {
	s := struct {
		Type    string
		Unknown string           `json:"unk_token"`
		Prefix  string           `json:"continuing_subword_prefix"`
		MaxRune int              `json:"max_input_chars_per_word"`
		Vocab   map[string]int32 `json:"vocab"`
	}{Prefix: "##", MaxRune: 100}
	if err := strict(part, &s); err != nil {
		return err
	}
	piece := &wordPiece{
		ids:     s.Vocab,
		inside:  map[string]int32{},
		maxRune: s.MaxRune,
	}
	var known bool
	if piece.unknown, known = s.Vocab[s.Unknown]; !known {
		return fmt.Errorf("the unknown token %.40q is not in the vocabulary", s.Unknown)
	}
	for text, id := range s.Vocab {
		if id < 0 || id >= maxVocabulary {
			return fmt.Errorf("piece %.40q has id %d", text, id)
		}
		t.size = max(t.size, int(id)+1)
		if special[text] {
			delete(s.Vocab, text)
			continue
		}
		piece.longest = max(piece.longest, len(text))
		if rest := text[min(len(s.Prefix), len(text)):]; len(rest) > 0 && text[:len(text)-len(rest)] == s.Prefix {
			piece.inside[rest] = id
		}
	}
	if s.MaxRune < 1 || s.MaxRune > 10_000 {
		return errors.New("max_input_chars_per_word is out of range")
	}
	t.encode = piece.encode
	return nil
}

// encode returns the ids of a word's pieces, or the unknown id if pieces do not cover
// the whole word.
func (w *wordPiece) encode(word string) []int32 {
	if utf8.RuneCountInString(word) > w.maxRune {
		return []int32{w.unknown}
	}
	var ids []int32
	pieces := w.ids
	for word != "" {
		end := min(len(word), w.longest)
		for ; end > 0; end-- {
			if end < len(word) && !utf8.RuneStart(word[end]) {
				continue
			}
			if id, ok := pieces[word[:end]]; ok {
				ids = append(ids, id)
				break
			}
		}
		if end == 0 {
			return []int32{w.unknown}
		}
		word, pieces = word[end:], w.inside
	}
	return ids
}

// scored is a piece of a Unigram vocabulary: a text and its score.
type scored unigram.Piece

func (p *scored) UnmarshalJSON(data []byte) error {
	pair := [2]any{}
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	var text, score bool
	p.Text, text = pair[0].(string)
	p.Score, score = pair[1].(float64)
	if !text || !score || math.IsInf(p.Score, 0) {
		return errors.New("a piece of the vocabulary is not a text and a score")
	}
	return nil
}

func (t *Tokenizer) readUnigram(part json.RawMessage, special map[string]bool) error {
	var s struct {
		Type     string
		Unknown  *int32   `json:"unk_id"`
		Fallback bool     `json:"byte_fallback"`
		Vocab    []scored `json:"vocab"`
	}
	if err := strict(part, &s); err != nil {
		return err
	}
	switch {
	case s.Fallback:
		return errors.New("byte_fallback cannot be read by this program")
	case len(s.Vocab) > maxVocabulary:
		return errors.New("the vocabulary is too large")
	case s.Unknown == nil || *s.Unknown < 0 || int(*s.Unknown) >= len(s.Vocab):
		return errors.New("unk_id is missing or not in the vocabulary")
	}
	pieces := make([]unigram.Piece, len(s.Vocab))
	for i, p := range s.Vocab {
		if !special[p.Text] && int32(i) != *s.Unknown {
			pieces[i] = unigram.Piece(p)
		}
	}
	t.size = len(pieces)
	t.encode = unigram.New(pieces, *s.Unknown).Tokens
	return nil
}
