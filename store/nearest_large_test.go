//go:build !race

package store

// These tests of one goroutine search so many vectors that they would take minutes under
// the race detector, which has nothing to find in them.

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"satchel/store/search"

	"satchel/agent"
)

// TestRecallOfNearest searches an agent that is large enough for the index in memory: all
// of it, a small source, after deletions, and for the newest chunks.
func TestRecallOfNearest(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	db := openKnowledge(t)
	random := rand.New(rand.NewPCG(1, 2))
	const size = 25_000
	vectors := themed(random, size)
	learn(t, db, testModel, numbered("a", size-100), vectors[:size-100]...)
	small, _ := learn(t, db, testModel, numbered("b", 100), vectors[size-100:]...)
	queries := someNear(random, vectors, 12)
	check := func(what, source string, least float64) {
		t.Helper()
		if got := recallOf(t, db, source, queries); got < least {
			t.Errorf("%s: recall@10 is %.3f", what, got)
		}
	}
	check("all", "", 0.99)
	check("a small source", small, 1)
	if held := db.folder.vectors.Bytes(); held < size*80 || held > size*100 {
		t.Errorf("the index of %d chunks holds %d bytes", size, held)
	}

	do(t, db, "DELETE FROM chunks WHERE seq % 3 = 0") // too few to cause a sweep
	check("after deletions", "", 0.99)
	_, fresh := learn(t, db, testModel, []string{"fresh"}, queries[0])
	if got := nearest(t, db, "", queries[0], 1); !slices.Equal(got, fresh) {
		t.Errorf("the newest chunk is not found: %v, want %v", got, fresh)
	}
	do(t, db, "DELETE FROM chunks WHERE seq = ?", fresh[0])
	if got := nearest(t, db, "", queries[0], 1); slices.Equal(got, fresh) {
		t.Error("the chunk that was deleted last is found")
	}

	if err := db.SweepVectors(context.Background()); err != nil {
		t.Fatal(err)
	}
	checkSegments(t, db, 0)
	check("after the sweep", "", 0.99)
	check("a small source after the sweep", small, 1)
}

// TestMemoryOfCodesIsBounded searches several agents with memory for less than one and
// for about one.
func TestMemoryOfCodesIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	first := openKnowledge(t)
	second, err := first.folder.CreateAgent(context.Background(), agent.Agent{Name: "second"}, "")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	queries, exact := map[*DB][][]float32{}, map[*DB][]map[int64]float64{}
	for _, db := range []*DB{first, second} {
		vectors := themed(random, 2*fullSegment)
		learn(t, db, testModel, numbered("x", len(vectors)), vectors...)
		queries[db] = someNear(random, vectors, 2)
		exact[db] = exactly(t, db, "", queries[db])
	}
	codes := &first.folder.vectors
	whole := 2 * int64(fullSegment*search.RecordSize(512)+256)
	for _, limit := range []int64{1, whole / 2, whole, whole * 3 / 2, 2 * whole} {
		codes.Limit = limit
		for range 2 {
			for db, list := range queries {
				if got := recallAgainst(t, db, "", list, exact[db]); got < 0.99 {
					t.Errorf("with a limit of %d bytes: recall@10 is %.3f", limit, got)
				}
				if held := codes.Bytes(); held > limit {
					t.Errorf("%d bytes are held, the limit is %d", held, limit)
				}
			}
		}
		codes.Drop(first)
		codes.Drop(second)
	}
	if held := codes.Bytes(); held != 0 {
		t.Errorf("%d bytes are held at the end", held)
	}
	recallOf(t, second, "", queries[second])
	if err := first.folder.DeleteAgent(second); err != nil {
		t.Fatal(err)
	}
	if held := codes.Bytes(); held != 0 {
		t.Errorf("a deleted agent holds %d bytes", held)
	}
}
