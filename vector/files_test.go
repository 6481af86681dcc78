package vector

import (
	"context"
	"math"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
	"satchel/vector/encoder/pretrained/sample"
)

// install adds a small model to the models of an Index.
func install(t *testing.T, ix *Index, variant, name string) {
	t.Helper()
	if _, err := ix.Models().Add(t.Context(), sample.Of(t, variant).Build(t, "F32"), name); err != nil {
		t.Fatal(err)
	}
}

// use sets an agent's model.
func use(t *testing.T, ix *Index, db *store.DB, provider, name string) {
	t.Helper()
	_, err := db.UpdateSettings(t.Context(), agent.SettingsChange{
		EmbeddingProvider: agent.Some(provider),
		EmbeddingModel:    agent.Some(name),
	})
	if err == nil {
		err = ix.Reembed(t.Context(), db)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestModelFromAFile(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := newAgent(t, folder, "files")
	ix := newIndex(t, folder, &fake{model: "local"})
	install(t, ix, "dense", "tiny")
	use(t, ix, db, agent.FileEmbedding, "tiny")
	start(t, ix)
	first := upload(t, db, "a.txt", []byte("w5 w6 w7 w8\n"), small)
	upload(t, db, "b.txt", []byte("w90 w91 w92 w93\n"), small)
	wait(t, ix, db)
	got := source(t, db, first.ID)
	if got.Status != agent.SourceReady || !strings.HasPrefix(got.EmbeddingModel, "tiny@file/") {
		t.Fatalf("after indexing: %+v", got)
	}
	found := search(t, ix, db, Query{Text: "w5 w6 w7 w8", Mode: Vector, Limit: 1})
	if len(found) != 1 || found[0].SourceID != first.ID || found[0].Similarity < 0.9 {
		t.Errorf("found %+v", found)
	}
	vectors, name, err := ix.Embed(t.Context(), db, "w5")
	if err != nil || len(vectors[0]) != 16 || name != got.EmbeddingModel {
		t.Errorf("%d numbers of %q, %v", len(vectors[0]), name, err)
	}
}

// frozen is a chunk that the tests search for with its own text.
const frozen = "The lake behind the house is frozen in the winter."

// After a change of the model, sources are searched by their old vectors, get new
// ones one after the other, and are not read again.
func TestChangeOfModel(t *testing.T) {
	ctx := context.Background()
	folder := openFolder(t, t.TempDir())
	db := newAgent(t, folder, "files")
	ix := newIndex(t, folder, &fake{model: "local"})
	install(t, ix, "mean", "tiny")
	var ids []string
	for range 3 {
		ids = append(ids, upload(t, db, "a.txt", append(lines("otter", 20), frozen...), small).ID)
	}
	start(t, ix)
	wait(t, ix, db)
	chunks, _, err := db.Chunks(ctx, ids[1], store.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	ix.Stop()

	ix = newIndex(
		t,
		folder, // not started yet
		&fake{model: "local"},
	)
	use(t, ix, db, agent.FileEmbedding, "tiny")
	for _, id := range ids {
		if s := source(t, db, id); s.Status != agent.SourceUpdating || s.EmbeddingModel != "local" {
			t.Errorf("while waiting: %+v", s)
		}
	}
	if found := search(t, ix, db, Query{Text: frozen, Mode: Vector, Limit: 1}); len(found) != 1 ||
		found[0].Similarity < 0.9 {
		t.Errorf("by the old vectors: %+v", found)
	}

	fewest := 3 // the smallest number of sources with vectors for all chunks, of either model
	ix.step = func(name string) {
		if name != "put" {
			return
		}
		whole := 0
		for _, id := range ids {
			if n, err := db.Unembedded(ctx, id, 1); err == nil && len(n) == 0 {
				whole++
			}
		}
		fewest = min(fewest, whole)
	}
	start(t, ix)
	wait(t, ix, db)
	for _, id := range ids {
		if s := source(t, db, id); s.Status != agent.SourceReady || !strings.HasPrefix(s.EmbeddingModel, "tiny@file/") {
			t.Errorf("after indexing: %+v", s)
		}
	}
	after, _, err := db.Chunks(ctx, ids[1], store.Page{Limit: 100})
	if err != nil || len(after) != len(chunks) || after[0].ID != chunks[0].ID {
		t.Errorf("the chunks have changed: %v", err)
	}
	if fewest < 2 {
		t.Errorf("%d sources lacked vectors at the same time", 3-fewest)
	}
}

func TestMissingModel(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := newAgent(t, folder, "files")
	ix := newIndex(t, folder, &fake{model: "local"})
	install(t, ix, "mean", "tiny")
	s := upload(t, db, "a.txt", append(lines("otter", 3), frozen...), small)
	start(t, ix)
	wait(t, ix, db)
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{
		EmbeddingProvider: agent.Some(agent.FileEmbedding),
		EmbeddingModel:    agent.Some("tiny"),
	}); err != nil {
		t.Fatal(err)
	}
	if err := ix.Models().Remove("tiny"); err != nil {
		t.Fatal(err)
	}
	answer, err := ix.Ask(t.Context(), db, Query{Text: frozen})
	if err != nil || answer.Notice != noModel || len(answer.Results) == 0 || answer.Results[0].Similarity < 0.9 {
		t.Errorf("got %+v %v", answer, err)
	}
	if _, _, err := ix.Embed(t.Context(), db, "x"); err == nil ||
		!strings.Contains(err.Error(), "the model tiny is not installed") {
		t.Errorf("got %v", err)
	}
	held := make(chan struct{}, 100)
	ix.step = func(name string) {
		if name == "held up" {
			held <- struct{}{}
		}
	}
	if err := ix.Reembed(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	<-held
	wait(t, ix, db)
	if got := source(t, db, s.ID); got.Error == nil || !strings.Contains(got.Error.Message, "is not installed") {
		t.Errorf("without the model: %+v", got)
	}
	answer, err = ix.Ask(t.Context(), db, Query{Text: "otter"})
	if err != nil || answer.Mode != Keyword || len(answer.Results) == 0 {
		t.Errorf("by words: %+v %v", answer, err)
	}
}

func TestCheckOfInstalledModels(t *testing.T) {
	ix := newIndex(t, openFolder(t, t.TempDir()), &fake{model: "local"})
	install(t, ix, "mean", "tiny")
	install(t, ix, "pair", "judge")
	for name, want := range map[string]string{
		"tiny":    "",
		"judge":   "is a reranker",
		"nothing": "is not installed",
		"../tiny": "is not installed",
	} {
		err := ix.CheckEmbedding(agent.Embedding{Provider: agent.FileEmbedding, Model: name})
		if want == "" && err != nil ||
			want != "" && (agent.ErrorCode(err) != agent.CodeValidation || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestScale(t *testing.T) {
	s := scale{0.75, 0.02}
	if got := s.level(0.75); math.Abs(got-builtInScale.mean) > 1e-12 {
		t.Errorf("the mean has the level %v", got)
	}
	if got := s.level(0.79); math.Abs(got-builtInScale.mean-2*builtInScale.spread) > 1e-9 {
		t.Errorf("two spreads above the mean: %v", got)
	}
	if (scale{}).level(0.4) != 0.4 || s.level(1) != 1 {
		t.Error("the limits of the scale are wrong")
	}
}

func TestRerank(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := newAgent(t, folder, "files")
	ix := newIndex(t, folder, &fake{model: "local"})
	start(t, ix)
	for _, text := range []string{"w5 w6 w7", "w5 w90 w91", "w5 w40", "w5 w6 w60 w61 w62"} {
		upload(t, db, "a.txt", []byte(text), small)
	}
	wait(t, ix, db)
	ask := func(q Query) Answer {
		t.Helper()
		q.Text, q.Rerank = "w5 w6", true
		a, err := ix.Ask(t.Context(), db, q)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := ask(Query{}); a.Reranked || a.Notice != noReranker || len(a.Results) != 4 {
		t.Errorf("without a reranker: %+v", a)
	}
	install(t, ix, "pair", "judge")
	m, err := ix.Models().Open("judge")
	if err != nil {
		t.Fatal(err)
	}
	a := ask(Query{})
	if !a.Reranked || a.Notice != "" || len(a.Results) != 4 {
		t.Fatalf("got %+v", a)
	}
	last := 1.0
	for _, r := range a.Results {
		want, err := m.Score(t.Context(), "w5 w6", r.Content)
		if err != nil || r.Score != millionths(want) || r.Score > last {
			t.Errorf("%q has score %v, want %v, %v", r.Content, r.Score, want, err)
		}
		last = r.Score
	}
	if one := ask(Query{Limit: 1, MinScore: a.Results[0].Score}); len(one.Results) != 1 ||
		one.Results[0].ID != a.Results[0].ID {
		t.Errorf("with the best result's score as the minimum: %+v", one)
	}
	if none := ask(Query{MinScore: 0.999}); len(none.Results) != 0 {
		t.Errorf("with a minimum above all scores: %+v", none)
	}
}

func TestRerankWithoutTime(t *testing.T) {
	list := []Result{{ID: "a", Score: 0.9}, {ID: "b", Score: 0.8}, {ID: "c", Score: 0.7}}
	ctx, cancel := context.WithCancel(t.Context())
	scores, _ := estimates(ctx, list, func(r Result) (float64, error) {
		if r.ID == "a" {
			return 0, context.DeadlineExceeded
		}
		cancel()
		return 0.25, nil
	})
	if len(scores) == 0 || len(scores) == 3 {
		t.Fatal(scores)
	}
	reorder(list, map[int]float64{1: 0.25, 2: 0.5})
	if list[0].ID != "c" || list[1].ID != "b" || list[2].ID != "a" || list[2].Score != 0.25 {
		t.Errorf("got %+v", list)
	}
}
