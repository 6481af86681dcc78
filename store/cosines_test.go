package store

import (
	"math"
	"math/rand/v2"
	"testing"

	"satchel/store/search"
)

// TestCosinesEqualSQLiteVec compares with the results of sqlite-vec, for vectors of
// several blocks, some of which reuse the space of deleted ones.
func TestCosinesEqualSQLiteVec(t *testing.T) {
	db := openKnowledge(t)
	random := rand.New(rand.NewPCG(3, 4))
	many := func(n int) [][]float32 {
		list := make([][]float32, n)
		for i := range list {
			list[i] = noise(random)
		}
		return list
	}
	first := many(600)
	first[5] = make([]float32, 512) // the zero vector
	_, seqs := learn(t, db, testModel, numbered("a", 600), first...)
	do(t, db, "DELETE FROM chunks WHERE seq % 3 = 0 OR seq BETWEEN 100 AND 400")
	_, more := learn(t, db, testModel, numbered("b", 300), many(300)...)
	seqs = append(seqs, more...)

	query := noise(random)
	got := ask(t, db, "", func(k *Knowledge) (map[int64]float64, error) { return k.Cosines(query, seqs) })
	want := ask(t, db, "", func(k *Knowledge) (map[int64]float64, error) {
		return search.Scores(
			k.tx.query,
			"SELECT rowid, coalesce(1 - vec_distance_cosine(embedding, ?), 0) FROM _chunk_vectors",
			packVector(query),
		)
	})
	if len(want) < 300 || len(got) != len(want) {
		t.Fatalf("%d cosines, want %d", len(got), len(want))
	}
	for seq, cosine := range want {
		if math.Abs(got[seq]-cosine) > 1e-6 {
			t.Fatalf("chunk %d: cosine %v, want %v", seq, got[seq], cosine)
		}
	}
	none := ask(t, db, "", func(k *Knowledge) (map[int64]float64, error) {
		return k.Cosines(query, []int64{seqs[len(seqs)-1] + 1})
	})
	if len(none) != 0 {
		t.Errorf("of no chunk: %v", none)
	}
}
