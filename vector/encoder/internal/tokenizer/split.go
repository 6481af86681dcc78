package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

func (t *Tokenizer) readSplit(f file) (err error) {
	if t.split, err = splitters(f.PreTokenizer, 0); err != nil {
		return fmt.Errorf("pre_tokenizer: %w", err)
	}
	return nil
}

// splitters reads a pre-tokenizer or a sequence of them.
func splitters(part json.RawMessage, depth int) ([]splitter, error) {
	kind, err := typeOf(part)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "":
		return nil, nil
	case "Sequence":
		return splitterSequence(part, depth)
	case "BertPreTokenizer":
		return []splitter{bertSplit}, strict(part, &struct{ Type string }{})
	case "WhitespaceSplit":
		return []splitter{func(part string, _ bool) []string {
				return strings.Fields(part)
			}}, strict(
				part,
				&struct{ Type string }{},
			)
	case "Metaspace":
		split, err := metaspace(part)
		return []splitter{split}, err
	}
	return nil, unknownPart(kind)
}

func splitterSequence(part json.RawMessage, depth int) ([]splitter, error) {
	var s struct {
		Type string
		List []json.RawMessage `json:"pretokenizers"`
	}
	if err := strict(part, &s); err != nil {
		return nil, err
	}
	return sequence(s.List, depth, splitters)
}

// bertSplit splits at white space, and before and after each punctuation
// character.
func bertSplit(part string, _ bool) []string {
	var words []string
	for _, field := range strings.Fields(part) {
		from := 0
		for at, r := range field {
			if !isPunctuation(r) {
				continue
			}
			if from < at {
				words = append(words, field[from:at])
			}
			from = at + utf8.RuneLen(r)
			words = append(words, field[at:from])
		}
		if from < len(field) {
			words = append(words, field[from:])
		}
	}
	return words
}

// isPunctuation reports whether BERT's tokenizer treats a character as punctuation,
// which includes all ASCII characters other than letters, digits and spaces.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' &&
			r < 0x7f &&
			!('0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z')
	}
	return unicode.IsPunct(r)
}

// metaspace reads the pre-tokenizer of SentencePiece: it replaces spaces by a visible
// character and, depending on its options, also puts that in front of the text and
// splits the text before it.
func metaspace(part json.RawMessage) (splitter, error) {
	s := struct {
		Type        string
		Replacement string `json:"replacement"`
		Prefix      *bool  `json:"add_prefix_space"`
		Scheme      string `json:"prepend_scheme"`
		Split       *bool  `json:"split"`
		Str         string `json:"str_rep"`
	}{}
	if err := strict(part, &s); err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(s.Replacement) != 1 {
		return nil, errors.New("the replacement of Metaspace is not one character")
	}
	scheme := s.Scheme
	if scheme == "" {
		scheme = "always"
	}
	if s.Prefix != nil && !*s.Prefix {
		scheme = "never"
	}
	if scheme != "always" && scheme != "first" && scheme != "never" {
		return nil, unknownPart(scheme)
	}
	whole := s.Split != nil && !*s.Split
	return func(part string, begins bool) []string {
		part = strings.ReplaceAll(part, " ", s.Replacement)
		if (scheme == "always" || scheme == "first" && begins) && !strings.HasPrefix(part, s.Replacement) {
			part = s.Replacement + part
		}
		if whole {
			return []string{part}
		}
		return splitBefore(part, s.Replacement)
	}, nil
}

// splitBefore splits a text before each mark.
func splitBefore(text, mark string) []string {
	var parts []string
	for text != "" {
		end := strings.Index(text[1:], mark) + 1
		if end == 0 {
			end = len(text)
		}
		parts = append(parts, text[:end])
		text = text[end:]
	}
	return parts
}
