package vector

import (
	"context"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"satchel/vector/encoder"
)

// Embedder converts text to vectors of length encoder.Dims. It is safe for
// concurrent use.
type Embedder interface {
	// Model returns the model's name and version. Vectors of different models
	// cannot be compared.
	Model() string
	// Embed returns the embedding of a text. Clients see its errors if they are
	// *agent.Error; others are only logged.
	Embed(ctx context.Context, text string) ([]float32, error)
}

// Local returns the model inside the binary. It is loaded on first use.
func Local() Embedder { return local{sync.OnceValues(encoder.Load)} }

type local struct {
	load func() (*encoder.Model, error)
}

// Model is empty if the binary contains a damaged model; Embed then returns an
// error.
func (l local) Model() string {
	m, err := l.load()
	if err != nil {
		return ""
	}
	return m.ID + preparation
}

// TokenLength returns how many characters a token of a text has on average.
func (l local) TokenLength(text string) float64 {
	m, err := l.load()
	if err != nil {
		return 0
	}
	return float64(utf8.RuneCountInString(text)) / float64(max(len(m.Tokens(text)), 1))
}

// preparation is a part of the model's name that identifies how texts are
// preprocessed, since vectors of differently preprocessed texts cannot be
// compared.
const preparation = "/sentence-case"

func (l local) Embed(ctx context.Context, text string) ([]float32, error) {
	m, err := l.load()
	if err != nil {
		return nil, err
	}
	return m.Embed(ctx, sentenceCase(text))
}

// sentenceCase lower-cases a capital that a word only has because it starts a
// sentence or a heading. The model has different tokens for "Wool" and "wool",
// and the rarer ones carry less meaning; the words of a question rarely start a
// sentence.
func sentenceCase(text string) string {
	words := strings.Split(text, " ")
	begins := true
	for i, word := range words {
		if begins {
			words[i] = keepsCapital(word)
		}
		begins = word != "" && strings.ContainsAny(word[len(word)-1:], ".!?:>")
	}
	return strings.Join(words, " ")
}

// keepsCapital leaves words unchanged that are capitalized for another reason,
// such as "I", "DNA" and "McAdam".
func keepsCapital(word string) string {
	first, size := utf8.DecodeRuneInString(word)
	second, _ := utf8.DecodeRuneInString(word[size:])
	if !unicode.IsUpper(first) ||
		strings.ContainsFunc(word[size:], unicode.IsUpper) ||
		!unicode.IsLower(second) && word != "A" {
		return word
	}
	return string(unicode.ToLower(first)) + word[size:]
}

// textToEmbed returns the text to embed for a chunk: its section followed by its
// content. White space is collapsed, since the model only knows single spaces.
func textToEmbed(section, content string) string {
	return strings.Join(append(strings.Fields(section), strings.Fields(content)...), " ")
}
