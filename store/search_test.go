package store

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
)

// openKnowledge opens the default agent of a new folder.
func openKnowledge(t testing.TB) *DB {
	t.Helper()
	folder, err := Open(Options{Path: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	return folder.Default()
}

const testModel = "model-1"

// learn creates a source of chunks; those with a vector are embedded. It returns the
// source's id and the chunks' seqs.
func learn(t testing.TB, db *DB, model string, texts []string, vectors ...[]float32) (string, []int64) {
	t.Helper()
	ctx := context.Background()
	u, err := db.ReceiveFile(ctx, "notes.txt", "", strings.NewReader("x"), 10)
	if err != nil {
		t.Fatal(err)
	}
	s, err := db.CreateFileSource(ctx, "Notes", agent.DefaultChunking, u)
	if err != nil {
		t.Fatal(err)
	}
	chunks := make([]NewChunk, len(texts))
	for i, text := range texts {
		chunks[i] = NewChunk{Content: text, Page: i + 1}
	}
	if err := db.AppendChunks(ctx, s.ID, 0, chunks); err != nil {
		t.Fatal(err)
	}
	if err := db.EndChunks(ctx, s.ID, model); err != nil {
		t.Fatal(err)
	}
	empty, err := db.Unembedded(ctx, s.ID, len(texts))
	if err != nil {
		t.Fatal(err)
	}
	seqs := make([]int64, len(empty))
	made := map[int64][]float32{}
	for i, u := range empty {
		if seqs[i] = u.Seq; i < len(vectors) {
			made[u.Seq] = vectors[i]
		}
	}
	if err := db.PutVectors(ctx, made); err != nil {
		t.Fatal(err)
	}
	return s.ID, seqs
}

// ask runs fn on the knowledge of an agent.
func ask[T any](t testing.TB, db *DB, sourceID string, fn func(*Knowledge) (T, error)) T {
	t.Helper()
	result, err := Read(context.Background(), db, func(tx *Tx) (T, error) {
		k, err := tx.Knowledge(sourceID, testModel)
		if err != nil {
			var zero T
			return zero, err
		}
		return fn(k)
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func nearest(t testing.TB, db *DB, sourceID string, vector []float32, n int) []int64 {
	return ranked(ask(t, db, sourceID, func(k *Knowledge) (map[int64]float64, error) { return k.Nearest(vector, n) }))
}

// wordsOf returns words to search for.
func wordsOf(list ...string) (w Words) {
	for _, text := range list {
		w = append(w, oneOf(text))
	}
	return w
}

// oneOf returns a word with several spellings.
func oneOf(list ...string) (w Word) {
	for _, text := range list {
		w.Ways = append(w.Ways, Way{Text: text})
	}
	return w
}

func matching(t testing.TB, db *DB, sourceID string, w Words, n int, also ...int64) map[int64]float64 {
	return ask(t, db, sourceID, func(k *Knowledge) (map[int64]float64, error) { return scored(k, w, n, also) })
}

func scored(k *Knowledge, w Words, n int, also []int64) (map[int64]float64, error) {
	m, err := k.Matching(w, n)
	if err != nil {
		return nil, err
	}
	return m.Scores, k.AddMatches(m, also)
}

// ranked lists seqs, best first.
func ranked(found map[int64]float64) []int64 {
	return slices.SortedFunc(maps.Keys(found), func(a, b int64) int { return cmp.Compare(found[b], found[a]) })
}

// direction returns a unit vector at an angle from the first axis.
func direction(degrees float64) []float32 {
	v := make([]float32, 512)
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	v[0], v[1] = float32(cos), float32(sin)
	return v
}

func numbered(prefix string, n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("%s %d", prefix, i)
	}
	return texts
}

func TestNearestAndCosines(t *testing.T) {
	db := openKnowledge(t)
	first, a := learn(t, db, testModel, numbered("a", 4), direction(0), direction(60), direction(120))
	second, b := learn(t, db, testModel, numbered("b", 2), direction(30), direction(90))
	query := direction(0)

	found := ask(t, db, "", func(k *Knowledge) (map[int64]float64, error) { return k.Nearest(query, 10) })
	want := map[int64]float64{a[0]: 1, b[0]: math.Sqrt(3) / 2, a[1]: 0.5, b[1]: 0, a[2]: -0.5}
	if len(found) != len(want) {
		t.Fatalf("found %v, want %v", found, want)
	}
	for seq, cosine := range want {
		if math.Abs(found[seq]-cosine) > 1e-6 {
			t.Errorf("chunk %d: cosine %v, want %v", seq, found[seq], cosine)
		}
	}
	if got := nearest(t, db, "", query, 2); !slices.Equal(got, []int64{a[0], b[0]}) {
		t.Errorf("the nearest two are %v", got)
	}
	if got := nearest(t, db, first, query, 10); !slices.Equal(got, a[:3]) {
		t.Errorf("in the first source: %v, want %v", got, a[:3])
	}
	if got := nearest(t, db, second, query, 10); !slices.Equal(got, b) {
		t.Errorf("in the second source: %v, want %v", got, b)
	}
	exact := ask(t, db, "", func(k *Knowledge) (map[int64]float64, error) {
		return k.Cosines(query, []int64{a[1], a[3], b[1], 9999})
	})
	if len(exact) != 2 || math.Abs(exact[a[1]]-0.5) > 1e-6 || math.Abs(exact[b[1]]) > 1e-6 {
		t.Errorf("cosines %v, want 0.5 and 0 for chunks %d and %d", exact, a[1], b[1])
	}
}

func TestKnowledgeOfUnknownSource(t *testing.T) {
	db := openKnowledge(t)
	_, err := Read(context.Background(), db, func(tx *Tx) (*Knowledge, error) {
		return tx.Knowledge("source-x", testModel)
	})
	if agent.ErrorCode(err) != agent.CodeNotFound {
		t.Fatalf("the error is %v", err)
	}
}

// TestDeletedSourcesAreNotFound deletes a source whose chunks fill the whole
// neighbourhood of the query, and searches before they are purged.
func TestDeletedSourcesAreNotFound(t *testing.T) {
	db := openKnowledge(t)
	crowd := make([][]float32, 300)
	for i := range crowd {
		crowd[i] = direction(float64(i) / 1000)
	}
	deleted, orphans := learn(t, db, testModel, numbered("heron", len(crowd)), crowd...)
	_, kept := learn(t, db, testModel, numbered("heron kept", 2), direction(80), direction(85))
	if err := db.DeleteSource(context.Background(), deleted); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		if got := nearest(t, db, "", direction(0), 5); !slices.Equal(got, kept) {
			t.Errorf("%s: nearest are %v, want %v", when, got, kept)
		}
		found := matching(t, db, "", wordsOf("heron"), 5, orphans[0])
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, kept) {
			t.Errorf("%s: full text finds %v, want %v", when, got, kept)
		}
		chunks := ask(t, db, "", func(k *Knowledge) ([]FoundChunk, error) {
			return k.Chunks([]int64{orphans[0], kept[0]})
		})
		if len(chunks) != 1 || chunks[0].Seq != kept[0] {
			t.Errorf("%s: chunks %v", when, chunks)
		}
	}
	check("before the purge")
	for more := true; more; {
		var err error
		if more, err = db.Purge(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	check("after the purge")
}

// TestVectorsOfAnotherModel checks that vectors that cannot be compared are left out,
// while full text finds their chunks.
func TestVectorsOfAnotherModel(t *testing.T) {
	db := openKnowledge(t)
	stale, old := learn(t, db, "model-0", []string{"old otter"}, direction(0))
	_, fresh := learn(t, db, testModel, []string{"new otter"}, direction(45))
	if got := nearest(t, db, "", direction(0), 5); !slices.Equal(got, fresh) {
		t.Errorf("nearest are %v, want %v", got, fresh)
	}
	if got := nearest(t, db, stale, direction(0), 5); len(got) != 0 {
		t.Errorf("in the stale source: %v, want none", got)
	}
	both := slices.Concat(old, fresh)
	if got := ask(t, db, "", func(k *Knowledge) (map[int64]float64, error) {
		return k.Cosines(direction(0), both)
	}); len(got) != 1 {
		t.Errorf("cosines %v, want one", got)
	}
	if got := matching(t, db, "", wordsOf("otter"), 5); len(got) != 2 {
		t.Errorf("full text finds %v, want two", got)
	}
}

// TestBestBM25 compares with BM25 computed by hand: all chunks are equally long, so a
// word found once scores idf·2.2/2.2 of a best possible idf·2.2.
func TestBestBM25(t *testing.T) {
	db := openKnowledge(t)
	_, seqs := learn(t, db, testModel, []string{
		"heron otter salmon", "heron beaver badger", "pike perch trout", "newt toad frog", "lynx stoat vole",
		"finch robin wren", "oak elm ash", "moss fern reed", "mint sage thyme", "clay loam peat",
	})
	idfOf := func(n float64) float64 { return math.Log((10 - n + 0.5) / (n + 0.5)) }
	heron, otter, absent := idfOf(2), idfOf(1), idfOf(0)
	for _, c := range []struct {
		words []string
		want  map[int64]float64
	}{
		{[]string{"heron"}, map[int64]float64{seqs[0]: 1 / 2.2, seqs[1]: 1 / 2.2}},
		{[]string{"herons"}, map[int64]float64{seqs[0]: 1 / 2.2, seqs[1]: 1 / 2.2}}, // stemmed
		{[]string{"heron", "otter"}, map[int64]float64{seqs[0]: 1 / 2.2, seqs[1]: heron / (heron + otter) / 2.2}},
		{
			[]string{"heron", "zebra"},
			map[int64]float64{seqs[0]: heron / (heron + absent) / 2.2, seqs[1]: heron / (heron + absent) / 2.2},
		},
		{[]string{"zebra"}, nil},
		{nil, nil},
	} {
		got := matching(t, db, "", wordsOf(c.words...), 10)
		if len(got) != len(c.want) {
			t.Errorf("%v: found %v, want %v", c.words, got, c.want)
		}
		for seq, want := range c.want {
			if math.Abs(got[seq]-want) > 1e-9 {
				t.Errorf("%v: chunk %d has %v, want %v", c.words, seq, got[seq], want)
			}
		}
	}
}

// TestSpellingsOfAWord checks that a chunk which has one spelling of a word is not scored
// lower for lacking the others. All chunks are equally long, as in TestBestBM25.
func TestSpellingsOfAWord(t *testing.T) {
	db := openKnowledge(t)
	_, seqs := learn(t, db, testModel, []string{
		"code e1042 door", "e 2051 belt", "pike perch trout", "newt toad frog", "lynx stoat vole", "oak elm ash",
	})
	found, absent := math.Log((6-1+0.5)/1.5), math.Log((6+0.5)/0.5)
	whole, part := 1/2.2, found/(found+absent)/2.2
	for _, c := range []struct {
		words Words
		seq   int64
		want  float64
	}{
		{Words{oneOf("e 1042", "e1042")}, seqs[0], whole},
		{Words{oneOf("e2051", "e 2051")}, seqs[1], whole},
		{Words{oneOf("q"), oneOf("e1042", "1042")}, seqs[0], part},
		{Words{oneOf("e1042"), {Ways: oneOf("1042").Ways, Optional: true}}, seqs[0], whole},
		{wordsOf("1042", "e1042"), seqs[0], part}, // the query has both
	} {
		if got := matching(t, db, "", c.words, 10)[c.seq]; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %v, want %v", c.words, got, c.want)
		}
	}
}

func TestMatchingCountsPhrases(t *testing.T) {
	db := openKnowledge(t)
	_, seqs := learn(t, db, testModel, []string{
		"release 3 2 4 of the pump",
		"release 4 3 2 of the pump",
		"release 4 2 3 of the pump",
		"release 2 4 3 of the pump",
	})
	w := append(wordsOf("4", "2", "3"), oneOf("4 2 3", "9 9 9"))
	if got := ranked(matching(t, db, "", w, 10)); len(got) != 4 || got[0] != seqs[2] {
		t.Errorf("ranked %v, want %d first", got, seqs[2])
	}
}

// TestMatchingAlso searches for chunks in addition to the best, in all sources and in
// one.
func TestMatchingAlso(t *testing.T) {
	db := openKnowledge(t)
	learn(t, db, testModel, numbered("filler", 20))
	strong, a := learn(t, db, testModel, []string{
		"otter otter otter",
		"otter otter fish",
		"otter fish fish",
		"otter fish fish and a stone",
	})
	weak, b := learn(t, db, testModel, []string{"an otter in a long text about entirely other matters", "nothing"})
	w := wordsOf("otter")
	for _, c := range []struct {
		source string
		also   []int64
		want   []int64
	}{
		{"", nil, a[:1]},
		{"", b, []int64{a[0], b[0]}},
		{"", a, a},
		{strong, nil, a[:1]},
		{weak, a[:1], b[:1]},
	} {
		if got := ranked(matching(t, db, c.source, w, 1, c.also...)); !slices.Equal(got, c.want) {
			t.Errorf("source %q, also %v: %v, want %v", c.source, c.also, got, c.want)
		}
	}
}

func TestChunksOfSearch(t *testing.T) {
	db := openKnowledge(t)
	source, seqs := learn(t, db, testModel, numbered("chunk", 3))
	got := ask(t, db, "", func(k *Knowledge) ([]FoundChunk, error) { return k.Chunks([]int64{seqs[2], 777, seqs[0]}) })
	if len(got) != 2 || got[0].Seq != seqs[2] || got[1].Seq != seqs[0] {
		t.Fatalf("chunks %v, want %d and %d", got, seqs[2], seqs[0])
	}
	c := got[0]
	if !strings.HasPrefix(c.ID, "chunk-") || c.SourceID != source || c.Position != 2 || c.Content != "chunk 2" ||
		c.Metadata.SourceName != "Notes" || c.Metadata.Page != 3 {
		t.Errorf("the chunk is %+v", c)
	}
}

// FuzzMatching searches for arbitrary input: it is text to find, never syntax.
func FuzzMatching(f *testing.F) {
	for _, seed := range []string{
		"otter", `"`, `""`, `a" OR "b`, "NEAR(a b)", "AND", "NOT otter", "otter*", "section:otter", "{a b}:c",
		"^otter", "a + b", "\x00", "otter\x00zebra", "\xff\xfe", "🦦", "❤️", "", " ", "'; DROP TABLE chunks; --",
		"(((((", "-", strings.Repeat("x", 5000),
	} {
		f.Add(seed)
	}
	db := openKnowledge(f)
	learn(f, db, testModel, []string{"an otter swims", "🦦 is an otter", "zebra"})
	f.Fuzz(func(t *testing.T, text string) {
		found := matching(t, db, "", Words{oneOf(text), oneOf("otter", text)}, 5, 1)
		if len(found) < 2 {
			t.Errorf("%q together with otter finds only %v", text, found)
		}
		for seq, score := range found {
			if !(score > 0 && score <= 1) {
				t.Errorf("%q: chunk %d scores %v", text, seq, score)
			}
		}
	})
}

// BenchmarkKnowledge does the reads of one hybrid search over chunks of 150 words whose
// frequencies follow Zipf's law.
func BenchmarkKnowledge(b *testing.B) {
	for _, size := range []int{1000, 10_000} {
		db := openKnowledge(b)
		random := rand.New(rand.NewPCG(1, 2))
		zipf := rand.NewZipf(random, 1.1, 4, 30_000)
		texts, vectors := make([]string, size), make([][]float32, size)
		for i := range size {
			var text strings.Builder
			for range 150 {
				fmt.Fprintf(&text, "w%d ", zipf.Uint64())
			}
			texts[i], vectors[i] = text.String(), noise(random)
		}
		learn(b, db, testModel, texts, vectors...)
		query := noise(random)
		words := wordsOf("w0", "w1", "w12", "w50", "w400", "w3000")
		b.Run(fmt.Sprintf("nearest/%d", size), func(b *testing.B) {
			for b.Loop() {
				nearest(b, db, "", query, 50)
			}
		})
		b.Run(fmt.Sprintf("matching/%d", size), func(b *testing.B) {
			for b.Loop() {
				matching(b, db, "", words, 50)
			}
		})
		b.Run(fmt.Sprintf("cosines/%d", size), func(b *testing.B) {
			seqs := ranked(matching(b, db, "", words, 50))
			for b.Loop() {
				ask(b, db, "", func(k *Knowledge) (map[int64]float64, error) { return k.Cosines(query, seqs) })
			}
		})
	}
}

func noise(random *rand.Rand) []float32 {
	v := make([]float32, 512)
	for i := range v {
		v[i] = float32(random.NormFloat64())
	}
	return v
}
