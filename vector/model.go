package vector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"satchel/agent"
	"satchel/store"
	"satchel/vector/encoder"
	"satchel/vector/feed"
)

// Provider makes vectors with a model behind an API. Its errors are shown to
// clients when they are *agent.Error.
type Provider interface {
	// Check says whether a setting can be carried out, as far as that shows
	// without the network. The error names the field.
	Check(to agent.Embedding) error
	// Embed returns a vector for each text, all of one length of 1 to
	// store.MaxVectorLength. It tries again, within ctx, what may pass.
	Embed(ctx context.Context, to agent.Embedding, key string, texts []string) ([][]float32, error)
}

// Remote is what an Index reaches over the network.
type Remote struct {
	Provider Provider     // nil: the model inside the program is the only one
	Feeds    *feed.Client // nil: reaches public addresses
}

// SetRemote tells an Index how to reach the network. Call it before Start.
func (ix *Index) SetRemote(o Remote) {
	if o.Feeds == nil {
		o.Feeds = feed.NewClient(nil, "")
	}
	ix.network = o
}

// CheckEmbedding says whether an agent may be set to embed in this way.
func (ix *Index) CheckEmbedding(to agent.Embedding) error {
	switch {
	case to.Local():
		return nil
	case ix.network.Provider == nil:
		return agent.Invalid("embedding_provider", "must be local: this server reaches no other")
	}
	return ix.network.Provider.Check(to)
}

// CheckAPI says whether a source of type api can be read.
func (ix *Index) CheckAPI(config *agent.APIConfig) error { return ix.network.Feeds.Check(config) }

// model is what embeds the texts of one agent.
type model struct {
	name string
	to   agent.Embedding
}

// model returns the model that an agent is set to.
func (ix *Index) model(ctx context.Context, db *store.DB) (model, error) {
	to, err := db.Embedding(ctx)
	if err != nil {
		return model{}, err
	}
	if to.Local() {
		return model{ix.embedder.Model(), to}, nil
	}
	return model{to.Name(), to}, nil
}

// Model names the model that an agent is set to. Sources whose vectors are of
// another one are stale: they are found by words only until they are indexed
// again.
func (ix *Index) Model(ctx context.Context, db *store.DB) (string, error) {
	m, err := ix.model(ctx, db)
	return m.name, err
}

// embedNow embeds texts for someone who waits for them.
func (ix *Index) embedNow(ctx context.Context, db *store.DB, m model, texts []string) ([][]float32, error) {
	if m.to.Local() {
		return embedAll(ctx, texts, ix.embed)
	}
	if ix.isDown(db, time.Now()) {
		return nil, errDown
	}
	limited, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	vectors, err := ix.ask(limited, db, m, texts)
	if ctx.Err() == nil {
		ix.noteDown(db, err != nil, time.Now())
	}
	return vectors, err
}

// The patience of a search with a provider: how long it waits for an answer,
// and how long searches do not ask at all after one that did not come.
const (
	askTime = 10 * time.Second
	restFor = 15 * time.Second
)

// errDown says that the provider did not answer a moment ago.
var errDown = agent.Errorf(agent.CodeUpstream, "the embedding provider did not answer a moment ago")

func (ix *Index) isDown(db *store.DB, now time.Time) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return now.Before(ix.down[db])
}

func (ix *Index) noteDown(db *store.DB, down bool, now time.Time) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if delete(ix.down, db); down {
		ix.down[db] = now.Add(restFor)
	}
}

// ask has texts embedded by an agent's provider.
func (ix *Index) ask(ctx context.Context, db *store.DB, m model, texts []string) (vectors [][]float32, err error) {
	if ix.network.Provider == nil {
		return nil, agent.Errorf(agent.CodeUpstream, "this server reaches no embedding provider")
	}
	key, err := db.Credential(ctx, "embedding_api_key", m.to.BaseURL)
	if err != nil {
		return nil, err
	}
	defer recovered(&err)
	if vectors, err = ix.network.Provider.Embed(ctx, m.to, key, texts); err != nil {
		return nil, err
	}
	for _, v := range vectors {
		if len(v) != len(vectors[0]) || len(v) == 0 || len(v) > store.MaxVectorLength {
			return nil, agent.Errorf(agent.CodeUpstream, "the embedding provider answered vectors that cannot be used")
		}
	}
	if len(vectors) != len(texts) {
		return nil, fmt.Errorf("%d vectors for %d texts", len(vectors), len(texts))
	}
	return vectors, nil
}

// embed embeds one text with the model inside the program.
func (ix *Index) embed(ctx context.Context, text string) (v []float32, err error) {
	defer recovered(&err)
	v, err = ix.embedder.Embed(ctx, text)
	if err == nil && len(v) != encoder.Dims {
		err = fmt.Errorf("the vector has %d numbers in place of %d", len(v), encoder.Dims)
	}
	return v, err
}

// isPermanent reports whether a provider's error is about the texts themselves, so
// that asking again would not help.
func isPermanent(err error) bool {
	var known *agent.Error
	if !errors.As(err, &known) {
		return false
	}
	status, _ := known.Details["status"].(int)
	return status == 400 || status == 413 || status == 422
}
