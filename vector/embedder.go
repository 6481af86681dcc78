package vector

import (
	"context"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"satchel/vector/encoder"
)

// Embedder turns text into vectors of store's length, encoder.Dims. It is safe
// for concurrent use.
type Embedder interface {
	// Model names the model and its version. Vectors of different models
	// cannot be compared.
	Model() string
	// Embed returns the vector of a text's meaning. Its errors are shown to
	// clients when they are *agent.Error, and only logged otherwise.
	Embed(ctx context.Context, text string) ([]float32, error)
}

// Local is the model inside the binary. It is loaded on first use.
func Local() Embedder { return local{sync.OnceValues(encoder.Load)} }

type local struct {
	load func() (*encoder.Model, error)
}

// Model is empty when the binary holds a damaged model; Embed then says so.
func (l local) Model() string {
	m, err := l.load()
	if err != nil {
		return ""
	}
	return m.ID + preparation
}

// preparation stands in a model's name for what is done to its texts, since
// vectors of texts that were prepared in another way cannot be compared either.
const preparation = "/sentence-case"

func (l local) Embed(ctx context.Context, text string) ([]float32, error) {
	m, err := l.load()
	if err != nil {
		return nil, err
	}
	return m.Embed(ctx, sentenceCase(text))
}

// sentenceCase makes the capital small that a word has only because a sentence
// or a heading begins with it. The model has other tokens for "Wool" than for
// "wool", and the rarer ones say less; what is written in a question seldom
// begins a sentence.
func sentenceCase(text string) string {
	words := strings.Split(text, " ")
	begins := true
	for i, word := range words {
		if begins {
			words[i] = smallStart(word)
		}
		begins = word != "" && strings.ContainsAny(word[len(word)-1:], ".!?:>")
	}
	return strings.Join(words, " ")
}

// smallStart leaves words alone that have a capital for another reason, such as
// "I", "DNA" and "McAdam".
func smallStart(word string) string {
	first, size := utf8.DecodeRuneInString(word)
	second, _ := utf8.DecodeRuneInString(word[size:])
	if !unicode.IsUpper(first) || strings.ContainsFunc(word[size:], unicode.IsUpper) || !unicode.IsLower(second) && word != "A" {
		return word
	}
	return string(unicode.ToLower(first)) + word[size:]
}

// embeddable is the text that is embedded for a chunk: its section in front of
// its content. White space is folded, since the model knows none but spaces.
func embeddable(section, content string) string {
	return strings.Join(append(strings.Fields(section), strings.Fields(content)...), " ")
}
