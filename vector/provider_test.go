package vector

import (
	"context"
	"sync"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// provider is a Provider with vectors of a given length that fails on demand.
type provider struct {
	length int

	mu       sync.Mutex
	fails    error
	requests []int // number of texts of each request
	keys     []string
}

func (p *provider) Check(to agent.Embedding) error {
	if to.BaseURL == "http://10.0.0.1/v1" {
		return agent.Invalid("embedding_base_url", "is private")
	}
	return nil
}

func (p *provider) Embed(ctx context.Context, to agent.Embedding, key string, texts []string) ([][]float32, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests, p.keys = append(p.requests, len(texts)), append(p.keys, key)
	if p.fails != nil {
		return nil, p.fails
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		v, err := (&fake{model: to.Model}).Embed(ctx, text)
		if err != nil {
			return nil, err
		}
		for len(v) < p.length {
			v = append(v, v...)
		}
		vectors[i] = v[:p.length]
	}
	return vectors, nil
}

func (p *provider) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = err
}

// remote sets an agent's embedding provider.
func remote(t *testing.T, db *store.DB, model string) {
	t.Helper()
	_, err := db.UpdateSettings(context.Background(), agent.SettingsChange{
		EmbeddingProvider: agent.Some("openai-compatible"),
		EmbeddingModel:    agent.Some(model),
		EmbeddingBaseURL:  agent.Some("https://models.example.com/v1"),
		EmbeddingKey:      agent.Some("s3cret"),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestProviderEmbeds(t *testing.T) {
	ctx := context.Background()
	folder := openFolder(t, t.TempDir())
	db := newAgent(t, folder, "remote")
	p := &provider{length: 700}
	ix := newIndex(t, folder, &fake{model: "local"})
	ix.SetRemote(Remote{Provider: p})
	s := upload(t, db, "a.txt", lines("otter", 20), small)
	start(t, ix)
	wait(t, ix, db)
	if got := source(t, db, s.ID); got.Status != agent.SourceReady || got.EmbeddingModel != "local" {
		t.Fatalf("after indexing: %+v", got)
	}
	chunks, _, err := db.Chunks(ctx, s.ID, store.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}

	// Another model is set: existing sources are found by their old vectors.
	remote(t, db, "large")
	if name, err := ix.Model(ctx, db); err != nil || name != "large@models.example.com" {
		t.Errorf("the model is %q, %v", name, err)
	}
	if found := search(t, ix, db, Query{Text: chunks[3].Content + "?", Mode: Vector}); len(found) == 0 {
		t.Error("nothing is found by the vectors of the built-in model")
	}
	if found := search(t, ix, db, Query{Text: "otter", Limit: 2}); len(found) != 2 {
		t.Errorf("%d results by words", len(found))
	}
	if _, err := db.RestartSource(ctx, s.ID, agent.SourceProcessing); err != nil {
		t.Fatal(err)
	}
	wait(t, ix, db)
	if got := source(t, db, s.ID); got.Status != agent.SourceReady ||
		got.EmbeddingModel != "large@models.example.com" ||
		got.Error != nil {
		t.Fatalf("after indexing: %+v", got)
	}
	if found := search(t, ix, db, Query{Text: chunks[3].Content + "?", Limit: 1, Mode: Vector}); len(found) != 1 {
		t.Errorf("found %+v", found)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range p.keys {
		if key != "s3cret" {
			t.Errorf("the provider was called with the key %q", key)
		}
	}
}

// While the provider is down, a source shows the error and is found by words. Once
// the provider responds, the source becomes ready.
func TestProviderDown(t *testing.T) {
	ctx := context.Background()
	folder := openFolder(t, t.TempDir())
	db := newAgent(t, folder, "remote")
	down := agent.Errorf(agent.CodeUpstream, "the provider is down").With("status", 503)
	p := &provider{length: 3, fails: down}
	ix := newIndex(t, folder, &fake{model: "local"})
	ix.SetRemote(Remote{Provider: p})
	remote(t, db, "m")
	held := make(chan struct{}, 100)
	ix.step = func(name string) {
		if name == "held up" {
			held <- struct{}{}
		}
	}
	s := upload(t, db, "a.txt", lines("otter", 20), small)
	start(t, ix)
	<-held
	wait(t, ix, db)
	got := source(t, db, s.ID)
	if got.Status != agent.SourceProcessing ||
		got.Error == nil ||
		got.Error.Message != "the provider is down" ||
		got.Progress == nil ||
		got.Progress.Queued != 20 {
		t.Fatalf("while the provider is down: %+v", got)
	}
	for _, mode := range []Mode{Hybrid, Keyword} {
		answer, err := ix.Ask(ctx, db, Query{Text: "otter", Mode: mode, MinScore: 0.9, Limit: 3})
		if err != nil ||
			answer.Mode != Keyword ||
			answer.Notice == "" ||
			len(answer.Results) != 3 ||
			answer.Results[0].Similarity != 0 {
			t.Errorf("%s while it is down: %+v, %v", mode, answer, err)
		}
	}
	if _, err := ix.Ask(ctx, db, Query{Text: "otter", Mode: Vector}); agent.ErrorCode(err) != agent.CodeUpstream {
		t.Errorf("by meaning while it is down: %v", err)
	}
	p.mu.Lock()
	n := len(p.requests)
	p.mu.Unlock()
	if _, err := ix.Ask(ctx, db, Query{Text: "otter"}); err != nil {
		t.Error(err)
	}
	p.mu.Lock()
	if len(p.requests) != n {
		t.Error("a search called the provider although it has just failed")
	}
	p.mu.Unlock()

	p.fail(nil)
	ix.remote.Retry(db) // as after the wait
	wait(t, ix, db)
	if got = source(t, db, s.ID); got.Status != agent.SourceReady || got.Error != nil {
		t.Errorf("after indexing: %+v", got)
	}
}

// A source fails if the provider rejects its text.
func TestProviderRefuses(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := newAgent(t, folder, "remote")
	ix := newIndex(t, folder, &fake{model: "local"})
	ix.SetRemote(Remote{Provider: &provider{fails: agent.Errorf(agent.CodeUpstream, "too long").With("status", 400)}})
	remote(t, db, "m")
	s := upload(t, db, "a.txt", lines("otter", 3), small)
	start(t, ix)
	wait(t, ix, db)
	if got := source(t, db, s.ID); got.Status != agent.SourceFailed ||
		got.Error == nil ||
		got.Error.Message != "too long" {
		t.Errorf("after indexing: %+v", got)
	}
}

func TestCheckEmbedding(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	ix := newIndex(t, folder, &fake{model: "local"})
	to := agent.Embedding{Provider: "openai-compatible", Model: "m", BaseURL: "http://10.0.0.1/v1"}
	if err := ix.CheckEmbedding(to); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("without a provider: %v", err)
	}
	ix.SetRemote(Remote{Provider: &provider{}})
	if err := ix.CheckEmbedding(to); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("a private address: %v", err)
	}
	if err := ix.CheckEmbedding(agent.DefaultSettings().Embedding()); err != nil {
		t.Error(err)
	}
}
