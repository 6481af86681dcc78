package vector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"satchel/agent"
	"satchel/agent/llm"
	"satchel/store"
	"satchel/vector/encoder"
	"satchel/vector/feed"
)

// Provider computes vectors with a model behind an API. Clients see its errors
// if they are *agent.Error.
type Provider interface {
	// Check validates a setting without network access. The error names the
	// field.
	Check(to agent.Embedding) error
	// Embed returns a vector for each text, all of the same length, from 1 to
	// store.MaxVectorLength. It retries temporary failures, within ctx.
	Embed(ctx context.Context, to agent.Embedding, key string, texts []string) ([][]float32, error)
}

// Remote is an Index's access to services over the network.
type Remote struct {
	Provider Provider     // nil: only the built-in model is available
	Feeds    *feed.Client // nil: a client that reaches public addresses
	// Credentials finds the credentials that sources of type api name.
	Credentials store.CredentialFinder
}

// NewRemote returns a Remote that reaches what the environment allows.
func NewRemote(env store.Env) Remote {
	return Remote{
		Provider:    llm.NewEmbeddings(env.Allow),
		Feeds:       feed.NewClient(env.Allow, env.Version),
		Credentials: env.Credentials,
	}
}

// SetRemote sets how an Index uses the network. Call it before Start.
func (ix *Index) SetRemote(o Remote) {
	if o.Feeds == nil {
		o.Feeds = feed.NewClient(nil, "")
	}
	ix.network = o
}

// CheckEmbedding validates an agent's embedding setting.
func (ix *Index) CheckEmbedding(to agent.Embedding) error {
	switch {
	case to.Local():
		return nil
	case to.File():
		return ix.checkFile(to.Model)
	case ix.network.Provider == nil:
		return agent.Invalid("embedding_provider", "must be local: no other provider is available on this server")
	}
	return ix.network.Provider.Check(to)
}

// CheckAPI validates the config of a source of type api.
func (ix *Index) CheckAPI(config *agent.APIConfig) error {
	return ix.network.Feeds.Check(config)
}

// model embeds the texts of one agent.
type model struct {
	name     string
	to       agent.Embedding
	prefixes prefixes // not of the built-in model
}

// isLocal reports whether this machine computes the vectors.
func (m model) isLocal() bool {
	return m.to.Local() || m.to.File()
}

// model returns the model that an agent is configured to use.
func (ix *Index) model(ctx context.Context, db *store.DB) (model, error) {
	to, err := db.Embedding(ctx)
	if err != nil {
		return model{}, err
	}
	switch {
	case to.Local():
		return ix.builtIn(), nil
	case to.File():
		return ix.fromFile(to), nil
	}
	return model{to.Name() + prefixMark(to), to, prefixesOf(to)}, nil
}

// Model returns the name of the model that an agent is configured to use.
// Sources with vectors of another model are stale until they are embedded again.
func (ix *Index) Model(ctx context.Context, db *store.DB) (string, error) {
	m, err := ix.model(ctx, db)
	return m.name, err
}

// embedForCaller embeds texts for a waiting caller.
func (ix *Index) embedForCaller(ctx context.Context, db *store.DB, m model, texts []string) ([][]float32, error) {
	if m.isLocal() {
		return embedAll(ctx, texts, ix.embedBy(m))
	}
	if ix.isUnavailable(db, time.Now()) {
		return nil, errUnavailable
	}
	limited, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	vectors, err := ix.ask(limited, db, m, texts)
	if ctx.Err() == nil {
		ix.noteAvailability(db, err != nil, time.Now())
	}
	return vectors, err
}

// How long a search waits for a provider, and for how long searches do not call
// it after a timeout.
const (
	askTime        = 10 * time.Second
	unavailableFor = 15 * time.Second
)

// errUnavailable means that the provider did not respond recently.
var errUnavailable = agent.Errorf(agent.CodeUpstream, "the embedding provider did not respond recently")

func (ix *Index) isUnavailable(db *store.DB, now time.Time) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return now.Before(ix.unavailableUntil[db])
}

func (ix *Index) noteAvailability(db *store.DB, down bool, now time.Time) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if delete(ix.unavailableUntil, db); down {
		ix.unavailableUntil[db] = now.Add(unavailableFor)
	}
}

// ask embeds texts with an agent's provider.
func (ix *Index) ask(ctx context.Context, db *store.DB, model model, texts []string) (vectors [][]float32, err error) {
	if ix.network.Provider == nil {
		return nil, agent.Errorf(agent.CodeUpstream, "no embedding provider is available on this server")
	}
	key, err := db.SettingsCredential(ctx, "embedding_api_key", model.to.BaseURL)
	if err != nil {
		return nil, err
	}
	defer recoverError(&err)
	if vectors, err = ix.network.Provider.Embed(ctx, model.to, key, texts); err != nil {
		return nil, err
	}
	for _, v := range vectors {
		if len(v) != len(vectors[0]) || len(v) == 0 || len(v) > store.MaxVectorLength {
			return nil, agent.Errorf(agent.CodeUpstream, "the embedding provider returned unusable vectors")
		}
	}
	if len(vectors) != len(texts) {
		return nil, fmt.Errorf("%d vectors for %d texts", len(vectors), len(texts))
	}
	return vectors, nil
}

// askFor is ask for the texts of a source. If the source is deleted or stopped in the
// meantime, the error is NOT_FOUND.
func (ix *Index) askFor(
	ctx context.Context,
	db *store.DB,
	w *store.Work,
	m model,
	texts []string,
) ([][]float32, error) {
	asking, cancel := db.WhileUnfinished(ctx, w.ID)
	defer cancel()
	vectors, err := ix.ask(asking, db, m, texts)
	if err != nil && asking.Err() != nil {
		return nil, context.Cause(asking)
	}
	return vectors, err
}

// embed embeds one text with the built-in model.
func (ix *Index) embed(ctx context.Context, text string) (v []float32, err error) {
	defer recoverError(&err)
	v, err = ix.embedder.Embed(ctx, text)
	if err == nil && len(v) != encoder.Dims {
		err = fmt.Errorf("the vector has %d numbers instead of %d", len(v), encoder.Dims)
	}
	return v, err
}

// isPermanent reports whether a provider's error is about the texts themselves,
// so that a retry would not help.
func isPermanent(err error) bool {
	var known *agent.Error
	if !errors.As(err, &known) {
		return false
	}
	status, _ := known.Details["status"].(int)
	return status == 400 || status == 413 || status == 422
}
