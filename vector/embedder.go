package vector

import (
	"context"
	"strings"
	"sync"

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
	return m.ID
}

func (l local) Embed(ctx context.Context, text string) ([]float32, error) {
	m, err := l.load()
	if err != nil {
		return nil, err
	}
	return m.Embed(ctx, text)
}

// embeddable is the text that is embedded for a chunk: its section in front of
// its content. White space is folded, since the model knows none but spaces.
func embeddable(section, content string) string {
	return strings.Join(append(strings.Fields(section), strings.Fields(content)...), " ")
}
