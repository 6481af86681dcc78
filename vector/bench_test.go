package vector

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// noisy embeds as Local does, but only queries: chunks get noise, so that a
// large collection is made in little time.
type noisy struct {
	Embedder
	query string
}

func (n noisy) Embed(ctx context.Context, text string) ([]float32, error) {
	if text == asked(n.query) {
		return n.Embedder.Embed(ctx, text)
	}
	return (&fake{}).Embed(ctx, text)
}

// BenchmarkSearch goes from a query to its answer over chunks of 150 words
// that are as frequent as words are (Zipf's law).
func BenchmarkSearch(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 4, 30_000)
	const query = "w0 w1 w12 w50 w400 w3000"
	for _, size := range []int{1000, 10_000} {
		var text strings.Builder
		for range size {
			for range 150 {
				fmt.Fprintf(&text, "w%d ", zipf.Uint64())
			}
			text.WriteString("\n\n")
		}
		folder := openFolder(b, b.TempDir())
		db := folder.Default()
		ix := newIndex(b, folder, noisy{Local(), query})
		upload(b, db, "a.txt", []byte(text.String()), agent.Chunking{Size: 1000, Method: "sentence"})
		start(b, ix, db)
		waitLong(b, ix, db)
		for _, mode := range []Mode{Hybrid, Vector, Keyword} {
			b.Run(fmt.Sprintf("%s/%d", mode, size), func(b *testing.B) {
				for b.Loop() {
					search(b, ix, db, Query{Text: query, Mode: mode})
				}
			})
		}
		ix.Stop()
	}
}

// BenchmarkImport makes knowledge of the handbook from its bytes to the last
// vector.
func BenchmarkImport(b *testing.B) {
	folder := openFolder(b, b.TempDir())
	db := folder.Default()
	ix := newIndex(b, folder, Local())
	start(b, ix)
	data := testdata(b, "handbook.md")
	chunks := 0
	for b.Loop() {
		s := upload(b, db, "handbook.md", data, agent.DefaultChunking)
		ix.Kick(db)
		waitLong(b, ix, db)
		chunks += source(b, db, s.ID).Chunks
	}
	b.ReportMetric(float64(chunks)/b.Elapsed().Seconds(), "chunks/s")
}

// waitLong waits as long as the work takes.
func waitLong(b *testing.B, ix *Index, db *store.DB) {
	b.Helper()
	if err := ix.Wait(context.Background(), db); err != nil {
		b.Fatal(err)
	}
}
