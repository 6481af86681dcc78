package vector

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"satchel/agent"
	"satchel/agent/work/worktest"
	"satchel/store"
)

// small cuts lines into one chunk each.
var small = agent.Chunking{Size: 60, Overlap: 0, Method: "sentence"}

// counts checks that a source is ready, and that it has n chunks, without duplicates,
// each with one vector of model.
func counts(t *testing.T, db *store.DB, id, model string, n int) {
	t.Helper()
	ctx := context.Background()
	s := source(t, db, id)
	if s.Status != agent.SourceReady || s.Chunks != n || s.Error != nil || s.EmbeddingModel != model {
		t.Errorf("the source is %+v (error %+v), want ready with %d chunks of %s", s, s.Error, n, model)
	}
	chunks, total, err := db.Chunks(ctx, id, store.Page{Limit: 10_000})
	if err != nil || total != n || len(chunks) != n {
		t.Errorf("%d chunks of %d, want %d; error %v", len(chunks), total, n, err)
	}
	for i, c := range chunks {
		if c.Position != i {
			t.Errorf("chunk %d has position %d", i, c.Position)
		}
	}
	bare, err := db.Unembedded(ctx, id, 1)
	if err != nil || len(bare) != 0 {
		t.Errorf("chunks without a vector: %v, error %v", bare, err)
	}
	vectors, err := store.Read(ctx, db, func(tx *store.Tx) (map[int64]float64, error) {
		k, err := tx.Knowledge(id, model)
		if err != nil {
			return nil, err
		}
		return k.Nearest(make([]float32, 512), store.MaxNearest)
	})
	if err != nil || len(vectors) != n {
		t.Errorf("%d vectors, want %d; error %v", len(vectors), n, err)
	}
}

// events returns the types of the events of an agent's sources.
func events(t *testing.T, db *store.DB) (types []string) {
	t.Helper()
	list, err := db.Events(context.Background(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if strings.HasPrefix(e.Type, "source.") {
			types = append(types, e.Type)
		}
	}
	return types
}

func TestUploadBecomesReady(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	ix := newIndex(t, folder, Local())
	s := upload(t, db, "kiln.md", testdata(t, "kiln.md"), agent.DefaultChunking)
	if s.Status != agent.SourceProcessing {
		t.Fatalf("an upload is %s", s.Status)
	}
	start(t, ix)
	wait(t, ix, db)
	counts(t, db, s.ID, Local().Model(), source(t, db, s.ID).Chunks)
	if got := events(t, db); !slices.Equal(got, []string{agent.EventSourceReady}) {
		t.Errorf("events %v", got)
	}
	found := search(t, ix, db, Query{Text: "the display says E204", Limit: 1})
	if len(found) != 1 || !strings.Contains(found[0].Content, "E204") || found[0].SourceID != s.ID {
		t.Fatalf("found %+v", found)
	}
	if m := found[0].Metadata; m.SourceName != "kiln.md" || m.Page != 0 ||
		!strings.HasPrefix(m.Section, "Service manual for the Torvald K-90 kiln > Controller") {
		t.Errorf("metadata %+v", m)
	}
}

// TestFailures creates sources that cannot be indexed, each of which fails with a
// code and a message for its owner.
func TestFailures(t *testing.T) {
	boom := func(context.Context, string) error { panic("boom") }
	secret := func(context.Context, string) error { return errors.New("secret cause") }
	known := func(context.Context, string) error {
		return agent.Errorf(agent.CodeUpstream, "the provider is unavailable")
	}
	for _, c := range []struct {
		name, file, data string
		chunking         agent.Chunking
		embed            func(context.Context, string) error
		code, message    string
	}{
		{"broken JSON", "a.json", `{"a": [1, 2`, small, nil, "BROKEN_FILE", ""},
		{"invalid chunking", "a.txt", "text", agent.Chunking{Size: 5, Method: "fixed"}, nil, "VALIDATION_ERROR", ""},
		{"embedder fails", "a.txt", "text", small, secret, "INTERNAL_ERROR", "the text could not be embedded"},
		{
			"embedder fails with a reason",
			"a.txt", "text", small, known, "UPSTREAM_ERROR",
			"the provider is unavailable",
		},
		{"embedder panics", "a.txt", "text", small, boom, "INTERNAL_ERROR", "the text could not be embedded"},
		{
			"splitter panics",
			"a.txt",
			"One. Two. Three. Four.",
			agent.Chunking{Size: 60, Method: "semantic"},
			boom,
			"INTERNAL_ERROR",
			"this file could not be read",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := openFolder(t, t.TempDir())
			db := folder.Default()
			ix := newIndex(t, folder, &fake{model: "fake", before: c.embed})
			s := upload(t, db, c.file, []byte(c.data), c.chunking)
			start(t, ix)
			wait(t, ix, db)
			s = source(t, db, s.ID)
			if s.Status != agent.SourceFailed || s.Error == nil || s.Error.Code != c.code || s.Error.Message == "" ||
				c.message != "" && s.Error.Message != c.message {
				t.Errorf("the source is %s with error %+v, want %s %q", s.Status, s.Error, c.code, c.message)
			}
			if got := events(t, db); !slices.Equal(got, []string{agent.EventSourceError}) {
				t.Errorf("events %v", got)
			}
		})
	}
}

// TestReadingCutOff: a file whose reading was interrupted three times is given up,
// until it is restarted.
func TestReadingCutOff(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	ix := newIndex(t, folder, &fake{model: "fake"})
	twice, thrice := upload(t, db, "a.txt", lines("otter", 3), small), upload(t, db, "b.txt", lines("heron", 3), small)
	for range 3 {
		if err := db.BeginReading(context.Background(), thrice.ID); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := db.BeginReading(context.Background(), twice.ID); err != nil {
			t.Fatal(err)
		}
	}
	start(t, ix)
	wait(t, ix, db)
	counts(t, db, twice.ID, "fake", 3)
	if s := source(t, db, thrice.ID); s.Status != agent.SourceFailed || s.Error.Code != string(CodeCutOff) {
		t.Fatalf("the source is %s with error %+v", s.Status, s.Error)
	}
	if _, err := db.RestartSource(context.Background(), thrice.ID, agent.SourceProcessing); err != nil {
		t.Fatal(err)
	}
	wait(t, ix, db)
	counts(t, db, thrice.ID, "fake", 3)
}

// TestReindex indexes a source again, which creates the same chunks, without
// duplicates.
func TestReindex(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	ix := newIndex(t, folder, &fake{model: "fake"})
	s := upload(t, db, "a.txt", lines("otter", 30), small)
	start(t, ix)
	wait(t, ix, db)
	for range 2 {
		if _, err := db.RestartSource(context.Background(), s.ID, agent.SourceUpdating); err != nil {
			t.Fatal(err)
		}
		wait(t, ix, db)
		counts(t, db, s.ID, "fake", 30)
	}
}

// TestAnotherModel changes the model while a source is being embedded.
func TestAnotherModel(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	hold := newGate()
	var once sync.Once
	first := newIndex(t, folder, &fake{model: "one", before: func(ctx context.Context, text string) error {
		var err error
		if strings.Contains(text, "iiiiiii") {
			once.Do(func() { err = hold.pass(ctx, text) })
		}
		return err
	}})
	s := upload(t, db, "a.txt", lines("otter", 40), small)
	start(t, first)
	<-hold.arrived
	first.Stop()
	if got := source(t, db, s.ID); got.Progress == nil || got.Progress.Done == 0 || got.Progress.Done == 40 {
		t.Fatalf("progress %+v, want some of 40", got.Progress)
	}
	second := newIndex(t, folder, &fake{model: "two"})
	start(t, second)
	wait(t, second, db)
	counts(t, db, s.ID, "two", 40)
}

// TestStop stops in the middle of a batch: the finished vectors are kept, and the next
// start continues.
func TestStop(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	embedded := map[string]int{}
	third := newGate()
	ix := newIndex(t, folder, &fake{model: "fake", before: func(ctx context.Context, text string) error {
		embedded[text]++
		if strings.Contains(text, "cedar") {
			return third.pass(ctx, text)
		}
		return nil
	}})
	ix.processors = make(chan struct{}, 1) // so that only one text is embedded at a time
	var text strings.Builder
	for _, word := range strings.Fields("ash beech cedar elm fir hazel larch maple oak pine rowan willow") {
		text.WriteString("a paragraph that is about the " + word + "\n\n")
	}
	s := upload(t, db, "trees.txt", []byte(text.String()), agent.Chunking{Size: 50, Method: "sentence"})
	start(t, ix)
	<-third.arrived
	ix.Stop()
	if p := source(t, db, s.ID).Progress; p == nil || p.Done != 2 || p.Queued != 10 || p.Total != 12 {
		t.Errorf("progress after the stop: %+v, want 2 of 12", p)
	}
	close(third.open)
	start(t, ix)
	wait(t, ix, db)
	counts(t, db, s.ID, "fake", 12)
	if embedded["a paragraph that is about the cedar"] != 2 || len(embedded) != 12 {
		t.Errorf("want only the interrupted text embedded again: %v", embedded)
	}
}

// TestStartStop starts and stops repeatedly while documents arrive.
func TestStartStop(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	ix := newIndex(t, folder, &fake{model: "fake"})
	var sources []string
	worktest.Stress(t, ix, 10, func(i int) {
		sources = append(sources, upload(t, db, fmt.Sprintf("%d.txt", i), lines("otter", 50), small).ID)
	})
	wait(t, ix, db)
	for _, id := range sources {
		counts(t, db, id, "fake", 50)
	}
	ix.Stop()
	ix.Stop()
	stacks := make([]byte, 1<<20)
	if stacks = stacks[:runtime.Stack(stacks, true)]; strings.Contains(string(stacks), "vector.(*Index)") {
		t.Errorf("a goroutine is still running after Stop:\n%s", stacks)
	}
}

// TestContextEndsWork cancels the context of Start.
func TestContextEndsWork(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	hold := newGate()
	ended := make(chan struct{}, 5)
	ix := newIndex(t, folder, &fake{model: "fake", before: func(ctx context.Context, text string) error {
		defer func() { ended <- struct{}{} }()
		return hold.pass(ctx, text)
	}})
	upload(t, db, "a.txt", lines("otter", 5), small)
	ctx, cancel := context.WithCancel(context.Background())
	if err := ix.Start(ctx); err != nil {
		t.Fatal(err)
	}
	<-hold.arrived
	cancel()
	<-ended
	ix.Stop()
}

// TestSemanticChunking splits by meaning with the index's own embedder.
func TestSemanticChunking(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	ix := newIndex(t, folder, Local())
	s := upload(t, db, "handbook.md", testdata(t, "handbook.md"), agent.Chunking{Size: 800, Method: "semantic"})
	start(t, ix)
	wait(t, ix, db)
	if got := source(t, db, s.ID); got.Status != agent.SourceReady || got.Chunks < 9 {
		t.Errorf("the source is %+v (error %+v)", got, got.Error)
	}
}

// TestFormats indexes files of several formats.
func TestFormats(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	ix := newIndex(t, folder, &fake{model: "fake"})
	files := map[string]string{
		"a.txt":  "The otter sleeps by day.",
		"b.md":   "# Otters\n\nThe otter sleeps by day.",
		"c.json": `[{"animal": "otter", "habit": "sleeps by day"}]`,
		"d.csv":  "animal,habit\notter,sleeps by day\n",
		"e.html": "<html><title>Otters</title><nav>Home</nav><p>The otter sleeps by day.</p></html>",
	}
	for name, text := range files {
		upload(t, db, name, []byte(text), agent.DefaultChunking)
	}
	start(t, ix)
	wait(t, ix, db)
	found := search(t, ix, db, Query{Text: "otter sleeps", Mode: Keyword})
	for _, r := range found {
		if !strings.Contains(r.Content, "sleeps by day") || strings.Contains(r.Content, "Home") {
			t.Errorf("%s: %q", r.Metadata.SourceName, r.Content)
		}
		delete(files, r.Metadata.SourceName)
	}
	if len(files) > 0 {
		t.Errorf("nothing was found in %v", files)
	}
}

// TestManyAgents imports into several agents while all of them are searched.
func TestManyAgents(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	ix := newIndex(t, folder, &fake{model: "fake"})
	start(t, ix)
	var group sync.WaitGroup
	for _, name := range []string{"ada", "ben", "cleo", "dora", "emil"} {
		db := newAgent(t, folder, name)
		group.Go(func() {
			for range 3 {
				s := upload(t, db, name+".txt", lines(name, 40), small)
				if _, err := ix.Search(context.Background(), db, Query{Text: name + " number"}); err != nil {
					t.Error(err)
				}
				wait(t, ix, db)
				counts(t, db, s.ID, "fake", 40)
			}
		})
	}
	group.Wait()
}
