package vector

import (
	"context"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// BenchmarkImport imports the handbook, from its bytes to the last vector.
func BenchmarkImport(b *testing.B) {
	folder := openFolder(b, b.TempDir())
	db := folder.Default()
	ix := newIndex(b, folder, Local())
	start(b, ix)
	data := testdata(b, "handbook.md")
	chunks := 0
	for b.Loop() {
		s := upload(b, db, "handbook.md", data, agent.DefaultChunking)
		waitLong(b, ix, db)
		chunks += source(b, db, s.ID).Chunks
	}
	b.ReportMetric(float64(chunks)/b.Elapsed().Seconds(), "chunks/s")
}

// waitLong waits for the agent's work without a time limit.
func waitLong(b *testing.B, ix *Index, db *store.DB) {
	b.Helper()
	if err := ix.Wait(context.Background(), db); err != nil {
		b.Fatal(err)
	}
}
