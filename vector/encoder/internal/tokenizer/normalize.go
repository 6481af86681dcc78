package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxNested limits how deeply sequences of parts are nested.
const maxNested = 4

func (t *Tokenizer) readNormalizer(f file) error {
	steps, err := normalizers(f.Normalizer, 0)
	if err != nil {
		return fmt.Errorf("normalizer: %w", err)
	}
	t.normalize = append(
		[]func(string) string{func(s string) string {
			return strings.ToValidUTF8(s, "\uFFFD")
		}},
		steps...,
	)
	return nil
}

// simple are the normalizers without options.
var simple = map[string]func(string) string{
	"NFC":          norm.NFC.String,
	"NFD":          norm.NFD.String,
	"NFKC":         norm.NFKC.String,
	"NFKD":         norm.NFKD.String,
	"Lowercase":    lower,
	"StripAccents": withoutMarks,
}

// normalizers reads a normalizer or a sequence of them.
func normalizers(part json.RawMessage, depth int) ([]func(string) string, error) {
	kind, err := typeOf(part)
	if err != nil || kind == "" {
		return nil, err
	}
	if step := simple[kind]; step != nil {
		return []func(string) string{step}, strict(part, &struct{ Type string }{})
	}
	var step func(string) string
	switch kind {
	case "Sequence":
		return normalizerSequence(part, depth)
	case "BertNormalizer":
		step, err = bertNormalizer(part)
	case "Precompiled":
		step, err = precompiled(part)
	case "Strip":
		step, err = strip(part)
	case "Replace":
		step, err = replace(part)
	default:
		err = unknownPart(kind)
	}
	return []func(string) string{step}, err
}

func normalizerSequence(part json.RawMessage, depth int) ([]func(string) string, error) {
	var s struct {
		Type        string
		Normalizers []json.RawMessage `json:"normalizers"`
	}
	if err := strict(part, &s); err != nil {
		return nil, err
	}
	return sequence(s.Normalizers, depth, normalizers)
}

// sequence reads the parts of a sequence, which may themselves be sequences.
func sequence[T any](parts []json.RawMessage, depth int, read func(json.RawMessage, int) ([]T, error)) ([]T, error) {
	if depth == maxNested || len(parts) > 16 {
		return nil, errors.New("the sequence is too long")
	}
	var list []T
	for _, part := range parts {
		more, err := read(part, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

func strip(part json.RawMessage) (func(string) string, error) {
	var s struct {
		Type  string
		Left  bool `json:"strip_left"`
		Right bool `json:"strip_right"`
	}
	if err := strict(part, &s); err != nil {
		return nil, err
	}
	return func(text string) string {
		if s.Left {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		}
		if s.Right {
			text = strings.TrimRightFunc(text, unicode.IsSpace)
		}
		return text
	}, nil
}

// replace reads the replacement of a text, or of runs of two spaces or more,
// which is the regular expression that SentencePiece's vocabularies come with.
func replace(part json.RawMessage) (func(string) string, error) {
	var s struct {
		Type    string
		Pattern struct {
			String string
			Regex  string
		} `json:"pattern"`
		Content string `json:"content"`
	}
	if err := strict(part, &s); err != nil {
		return nil, err
	}
	switch {
	case s.Pattern.String != "" && s.Pattern.Regex == "":
		return func(text string) string {
			return strings.ReplaceAll(text, s.Pattern.String, s.Content)
		}, nil
	case s.Pattern.Regex == " {2,}" && s.Pattern.String == "":
		return func(text string) string { return replaceSpaces(text, s.Content) }, nil
	}
	return nil, fmt.Errorf("a replacement of %.40q cannot be read by this program", s.Pattern.Regex)
}

// replaceSpaces replaces each run of two spaces or more.
func replaceSpaces(text, by string) string {
	var b strings.Builder
	for {
		at := strings.Index(text, "  ")
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:at])
		b.WriteString(by)
		text = strings.TrimLeft(text[at:], " ")
	}
}

// bertNormalizer reads the normalizer of BERT's original tokenizer.
func bertNormalizer(part json.RawMessage) (func(string) string, error) {
	s := struct {
		Type    string
		Clean   bool  `json:"clean_text"`
		Chinese bool  `json:"handle_chinese_chars"`
		Strip   *bool `json:"strip_accents"`
		Lower   bool  `json:"lowercase"`
	}{Clean: true, Chinese: true, Lower: true}
	if err := strict(part, &s); err != nil {
		return nil, err
	}
	strip := s.Lower
	if s.Strip != nil {
		strip = *s.Strip
	}
	return func(text string) string {
		if s.Clean {
			text = strings.Map(clean, text)
		}
		if s.Chinese {
			text = separateIdeographs(text)
		}
		if strip {
			text = withoutMarks(norm.NFD.String(text))
		}
		if s.Lower {
			text = lower(text)
		}
		return text
	}, nil
}

// clean drops control characters and turns white space into spaces.
func clean(r rune) rune {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return ' '
	case r == 0 || r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
		return -1
	case unicode.IsSpace(r):
		return ' '
	}
	return r
}

// ideographs are the blocks of Chinese characters in BERT's tokenizer.
var ideographs = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x3400, Hi: 0x4DBF, Stride: 1},
		{Lo: 0x4E00, Hi: 0x9FFF, Stride: 1},
		{Lo: 0xF900, Hi: 0xFAFF, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x20000, Hi: 0x2A6DF, Stride: 1},
		{Lo: 0x2A700, Hi: 0x2B73F, Stride: 1},
		{Lo: 0x2B740, Hi: 0x2B81F, Stride: 1},
		{Lo: 0x2B820, Hi: 0x2CEAF, Stride: 1},
		{Lo: 0x2F800, Hi: 0x2FA1F, Stride: 1},
	},
}

// separateIdeographs puts spaces around each Chinese character.
func separateIdeographs(text string) string {
	if strings.IndexFunc(text, func(r rune) bool {
		return unicode.Is(ideographs, r)
	}) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.Is(ideographs, r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// withoutMarks removes combining marks from a text in decomposed form.
func withoutMarks(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, text)
}

// lower is strings.ToLower, except that it converts İ to i and a combining dot above.
func lower(text string) string {
	return strings.ToLower(strings.ReplaceAll(text, "\u0130", "i\u0307"))
}
