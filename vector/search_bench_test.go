package vector

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/cputime"
	"satchel/store"
	"satchel/vector/encoder"
)

var keptFolder = flag.String("knowledge", "", "folder in which BenchmarkSearch keeps its knowledge for the next run")

// library is synthetic knowledge. The frequencies of its words follow Zipf's law, and
// each chunk has a theme, from which some of its words and a part of its vector come.
// All vectors have a common part, like those of the model.
type library struct {
	size   int
	common []float32
	themes [][]float32
}

const (
	chunksOfTheme = 200
	wordsOfChunk  = 100
)

func newLibrary(size int) *library {
	random := rand.New(rand.NewPCG(7, uint64(size)))
	l := &library{size: size, common: gaussian(random), themes: make([][]float32, max(size/chunksOfTheme, 1))}
	for i := range l.themes {
		l.themes[i] = gaussian(random)
	}
	return l
}

func gaussian(random *rand.Rand) []float32 {
	v := make([]float32, encoder.Dims)
	for i := range v {
		v[i] = float32(random.NormFloat64())
	}
	return v
}

// syllables have no English endings, so that the stemmer does not change them.
const syllables = "babobudadodufafofugagogukakokulalolumamomunanonupapopuraroruvavovu"

// word spells a number.
func word(n uint64) string {
	var b strings.Builder
	const base = uint64(len(syllables) / 2)
	for b.Len() < 4 || n > 0 {
		b.WriteString(syllables[2*(n%base) : 2*(n%base)+2])
		n /= base
	}
	return b.String()
}

// chunk generates chunk i deterministically.
func (l *library) chunk(i int) (words []string, vector []float32) {
	random := rand.New(rand.NewPCG(uint64(i), 1))
	zipf := rand.NewZipf(random, 1.07, 2.7, 400_000)
	theme := random.IntN(len(l.themes))
	words = make([]string, wordsOfChunk)
	for j := range words {
		if words[j] = word(zipf.Uint64()); random.IntN(8) == 0 {
			words[j] = word(uint64(400_001 + theme*20 + random.IntN(20)))
		}
	}
	vector = gaussian(random)
	for j := range vector {
		vector[j] += l.common[j]*1.6 + l.themes[theme][j]
	}
	return words, vector
}

// question returns a query for a chunk: some of its words, and a vector near its own.
func (l *library) question(i int) (text string, vector []float32) {
	random := rand.New(rand.NewPCG(uint64(i), 2))
	words, vector := l.chunk(random.IntN(l.size))
	random.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	for j := range vector {
		vector[j] += float32(random.NormFloat64())
	}
	return strings.Join(words[:3+random.IntN(6)], " "), vector
}

// fill creates sources of 1,000 chunks.
func (l *library) fill(b *testing.B, db *store.DB, model string) {
	b.Helper()
	ctx := context.Background()
	for from := 0; from < l.size; from += 1000 {
		id := upload(b, db, "a.txt", []byte("x"), agent.DefaultChunking).ID
		chunks, vectors := make([]store.NewChunk, min(1000, l.size-from)), map[int64][]float32{}
		made := make([][]float32, len(chunks))
		for i := range chunks {
			words, vector := l.chunk(from + i)
			chunks[i], made[i] = store.NewChunk{Content: strings.Join(words, " ")}, vector
		}
		must(b, db.AppendChunks(ctx, id, 0, chunks))
		must(b, db.EndChunks(ctx, id, model))
		empty, err := db.Unembedded(ctx, id, len(chunks))
		must(b, err)
		for i, u := range empty {
			vectors[u.Seq] = made[i]
		}
		must(b, db.PutVectors(ctx, vectors))
		must(b, db.FinishSource(ctx, id, nil))
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// answering embeds a text like Local, for a realistic duration, and then returns the
// vector of the question.
type answering struct {
	Embedder
	vectors map[string][]float32
}

func (a answering) Embed(ctx context.Context, text string) ([]float32, error) {
	if _, err := a.Embedder.Embed(ctx, text); err != nil {
		return nil, err
	}
	return a.vectors[text], nil
}

// BenchmarkSearch measures a search from the question to the results. It reports the
// 50th and 99th percentiles of the time, the recall of the ten best results against
// an exhaustive search (by meaning and hybrid), the memory of the index, and the time
// of the first search. A million chunks take minutes to create and 5 GB; run them
// with -bench 'BenchmarkSearch/^1000000$'.
func BenchmarkSearch(b *testing.B) {
	for _, size := range []int{1000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			if size > 10_000 && !strings.Contains(flag.Lookup("test.bench").Value.String(), fmt.Sprint(size)) {
				b.Skip("only runs if its size is named")
			}
			benchmarkSearch(b, newLibrary(size))
		})
	}
}

func benchmarkSearch(b *testing.B, l *library) {
	path := b.TempDir()
	if *keptFolder != "" {
		path = fmt.Sprint(*keptFolder, "/", l.size)
	}
	folder, err := store.Open(store.Options{Path: path, Log: slog.New(slog.DiscardHandler)})
	must(b, err)
	defer folder.Close()
	db, embedder := folder.Default(), answering{Local(), map[string][]float32{}}
	texts := make([]string, 200)
	for i := range texts {
		var vector []float32
		texts[i], vector = l.question(i)
		embedder.vectors[asQuestion(textToEmbed("", texts[i]))] = vector
	}
	if _, n, err := db.Sources(
		context.Background(),
		store.SourceFilter{},
		store.Page{Limit: 1},
	); err != nil || n < (l.size+999)/1000 {
		must(b, err)
		l.fill(b, db, embedder.Model())
	}
	ix := New(folder, embedder, nil)
	_, err = embedder.Embed(context.Background(), "load the model")
	must(b, err)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	search(b, ix, db, Query{Text: texts[0]})
	first := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)

	for _, mode := range []Mode{Hybrid, Vector, Keyword} {
		b.Run(string(mode), func(b *testing.B) {
			var durations []time.Duration
			spent := cpuTime(b)
			for b.Loop() {
				began := time.Now()
				search(b, ix, db, Query{Text: texts[len(durations)%len(texts)], Mode: mode})
				durations = append(durations, time.Since(began))
			}
			b.ReportMetric((cpuTime(b)-spent).Seconds()*1000/float64(b.N), "cpu-ms")
			slices.Sort(durations)
			b.ReportMetric(float64(durations[len(durations)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(durations[len(durations)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(agreement(b, ix, db, texts[:min(len(texts), 2_000_000/l.size+10)], mode), "recall@10")
			b.ReportMetric(float64(first.Microseconds())/1000, "first-ms")
			b.ReportMetric(float64(max(after.HeapAlloc, before.HeapAlloc)-before.HeapAlloc)/(1<<20), "MB")
		})
	}
}

// cpuTime returns the processor time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	used, err := cputime.Used()
	must(b, err)
	return used
}

// agreement returns the share of the ten best results of an exhaustive search that a
// search finds.
func agreement(b *testing.B, ix *Index, db *store.DB, texts []string, mode Mode) float64 {
	found, all := 0, 0
	for _, text := range texts {
		ids := map[string]bool{}
		for _, r := range search(b, ix, db, Query{Text: text, Mode: mode}) {
			ids[r.ID] = true
		}
		for _, r := range search(b, ix, db, Query{Text: text, Mode: mode, whole: true}) {
			if all++; ids[r.ID] {
				found++
			}
		}
	}
	return float64(found) / float64(max(all, 1))
}
