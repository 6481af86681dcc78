package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"satchel/store/search"
)

// themed returns vectors in clusters, like those of texts about the same topics.
func themed(random *rand.Rand, n int) [][]float32 {
	themes := make([][]float32, max(n/50, 1))
	for i := range themes {
		themes[i] = noise(random)
	}
	list := make([][]float32, n)
	for i := range list {
		list[i] = near(random, themes[random.IntN(len(themes))])
	}
	return list
}

// near returns a vector whose cosine to v is about 0.7.
func near(random *rand.Rand, v []float32) []float32 {
	w := noise(random)
	for i := range w {
		w[i] += v[i]
	}
	return w
}

// recallOf returns which part of the exact ten nearest is among the ten that Nearest
// finds.
func recallOf(t testing.TB, db *DB, sourceID string, queries [][]float32) float64 {
	t.Helper()
	return recallAgainst(t, db, sourceID, queries, exactly(t, db, sourceID, queries))
}

// exactly finds the ten nearest of each query exactly, from the vectors themselves.
func exactly(t testing.TB, db *DB, sourceID string, queries [][]float32) []map[int64]float64 {
	t.Helper()
	lists := make([]map[int64]float64, len(queries))
	for i, q := range queries {
		lists[i] = ask(t, db, sourceID, func(k *Knowledge) (map[int64]float64, error) {
			return k.nearestByVectors(q, 10)
		})
	}
	return lists
}

func recallAgainst(t testing.TB, db *DB, sourceID string, queries [][]float32, exact []map[int64]float64) float64 {
	t.Helper()
	found, wanted := 0, 0
	for i, q := range queries {
		got := ask(t, db, sourceID, func(k *Knowledge) (map[int64]float64, error) { return k.Nearest(q, 10) })
		for seq, want := range exact[i] {
			wanted++
			if score, ok := got[seq]; ok {
				found++
				if math.Abs(score-want) > 1e-6 {
					t.Fatalf("chunk %d: cosine %v, want %v", seq, score, want)
				}
			}
		}
	}
	return float64(found) / float64(wanted)
}

func someNear(random *rand.Rand, vectors [][]float32, n int) [][]float32 {
	list := make([][]float32, n)
	for i := range list {
		list[i] = near(random, vectors[random.IntN(len(vectors))])
	}
	return list
}

// checkSegments compares the segments with the chunks that have a vector: each chunk has
// one record, and the number of other records equals gone.
func checkSegments(t testing.TB, db *DB, gone int) {
	t.Helper()
	parts, err := Read(context.Background(), db, func(tx *Tx) (map[int64]int, error) {
		seen := map[int64]int{}
		heads, err := tx.segmentHeads(512, 0, math.MaxInt)
		for _, h := range heads {
			data, e := tx.segment(h)
			if err = cmp.Or(err, e); err != nil {
				return nil, err
			}
			if len(data) != h.Records*search.RecordSize(512) {
				return nil, fmt.Errorf("a segment of %d records holds %d bytes", h.Records, len(data))
			}
			for record := range slices.Chunk(data, search.RecordSize(512)) {
				seen[search.Seq(record)]++
			}
		}
		return seen, err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range valuesOf[int64](t, db, "SELECT seq FROM chunks WHERE embedded = 1") {
		if parts[seq] != 1 {
			t.Fatalf("chunk %d has %d records", seq, parts[seq])
		}
		delete(parts, seq)
	}
	if counted := value[int](
		t,
		db,
		"SELECT n FROM _counts WHERE name = 'vectors_gone'",
	); len(parts) != gone || counted != gone {
		t.Errorf("%d records are of deleted chunks, %d are counted, want %d", len(parts), counted, gone)
	}
}

func valuesOf[T any](t testing.TB, db *DB, query string) []T {
	t.Helper()
	list, err := Read(context.Background(), db, func(tx *Tx) ([]T, error) {
		rows, err := tx.query(query)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var list []T
		for rows.Next() {
			var v T
			if err := rows.Scan(&v); err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestSegmentsStayFew stores vectors in commits of different sizes.
func TestSegmentsStayFew(t *testing.T) {
	db := openKnowledge(t)
	random := rand.New(rand.NewPCG(1, 2))
	for left := 6000; left > 0; {
		n := min(left, 1+random.IntN(40))
		if random.IntN(40) == 0 {
			n = min(left, 700)
		}
		vectors := make([][]float32, n)
		for i := range vectors {
			vectors[i] = noise(random)
		}
		learn(t, db, testModel, numbered("x", n), vectors...)
		left -= n
		if got := value[int](t, db, "SELECT count(*) FROM _vector_segments"); got > 2*mergeSegments {
			t.Fatalf("%d segments", got)
		}
	}
	if full := value[int](t, db, "SELECT max(n) FROM _vector_segments"); full < fullSegment {
		t.Errorf("the largest segment holds %d records", full)
	}
	checkSegments(t, db, 0)
}

// TestManyDeletedVectors deletes everything near the query, before any sweep.
func TestManyDeletedVectors(t *testing.T) {
	db := openKnowledge(t)
	random := rand.New(rand.NewPCG(1, 2))
	crowd := make([][]float32, 1500)
	for i := range crowd {
		crowd[i] = direction(float64(i) / 1000)
	}
	_, orphans := learn(t, db, testModel, numbered("crowd", len(crowd)), crowd...)
	rest := make([][]float32, minIndexedVectors)
	for i := range rest {
		rest[i] = noise(random)
	}
	learn(t, db, testModel, numbered("rest", len(rest)), rest...)
	_, kept := learn(t, db, testModel, numbered("kept", 2), direction(40), direction(45))
	do(t, db, "DELETE FROM chunks WHERE seq <= ?", orphans[len(orphans)-1])
	checkSegments(t, db, len(crowd))
	if got := nearest(t, db, "", direction(0), 2); !slices.Equal(got, kept) {
		t.Errorf("nearest are %v, want %v", got, kept)
	}
}

// TestSearchWhileChanging adds, deletes, sweeps and searches concurrently. A search finds
// the chunks that were committed before it began, and none that were deleted before.
func TestSearchWhileChanging(t *testing.T) {
	db := openKnowledge(t)
	random := rand.New(rand.NewPCG(1, 2))
	base := make([][]float32, minIndexedVectors+500)
	for i := range base {
		base[i] = noise(random)
	}
	learn(t, db, testModel, numbered("base", len(base)), base...)
	var running sync.WaitGroup
	for w := range 3 {
		running.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(w)))
			for range 12 {
				v := noise(random)
				id, seqs := learn(t, db, testModel, numbered("new", 3), v, noise(random), noise(random))
				if got := nearest(t, db, "", v, 1); !slices.Equal(got, seqs[:1]) {
					t.Errorf("a new chunk is not found: %v, want %v", got, seqs[0])
				}
				if err := db.DeleteSource(context.Background(), id); err != nil {
					t.Error(err)
				}
				for more := true; more; {
					var err error
					if more, err = db.Purge(context.Background()); err != nil {
						t.Error(err)
						return
					}
				}
				if got := nearest(t, db, "", v, 1); slices.Equal(got, seqs[:1]) {
					t.Errorf("a deleted chunk is found: %v", got)
				}
			}
		})
	}
	running.Go(func() {
		for i := range 30 {
			do(t, db, "UPDATE _counts SET n = n + ? WHERE name = 'vectors_gone'", 5000) // a sweep is due
			if err := db.SweepVectors(context.Background()); err != nil {
				t.Error(err)
			}
			do(t, db, "UPDATE _counts SET n = n - ? WHERE name = 'vectors_gone'", 5000)
			if got := nearest(t, db, "", base[i], 1); len(got) != 1 || got[0] != int64(i+1) {
				t.Errorf("base chunk %d: found %v", i+1, got)
			}
		}
	})
	running.Wait()
}

// TestForkHasItsOwnIndex changes a fork and its original, which share segments.
func TestForkHasItsOwnIndex(t *testing.T) {
	db := openKnowledge(t)
	random := rand.New(rand.NewPCG(1, 2))
	base := make([][]float32, minIndexedVectors+100)
	for i := range base {
		base[i] = noise(random)
	}
	learn(t, db, testModel, numbered("base", len(base)), base...)
	nearest(t, db, "", base[0], 1)
	fork, err := db.folder.Fork(context.Background(), db, "Fork", "")
	if err != nil {
		t.Fatal(err)
	}
	v := noise(random)
	_, here := learn(t, db, testModel, []string{"here"}, v)
	do(t, fork, "DELETE FROM chunks WHERE seq = 1")
	for _, c := range []struct {
		db     *DB
		vector []float32
		seq    int64
		found  bool
	}{
		{db, v, here[0], true},
		{fork, v, here[0], false},
		{db, base[0], 1, true},
		{fork, base[0], 1, false},
		{fork, base[1], 2, true},
	} {
		if got := nearest(t, c.db, "", c.vector, 1); slices.Contains(got, c.seq) != c.found {
			t.Errorf("agent %s, chunk %d: found %v", c.db.id, c.seq, got)
		}
	}
	checkSegments(t, db, 0)
	checkSegments(t, fork, 1)
}

// TestCodesAreLoadedOnce checks that a second search reads no segments, and that a search
// after a commit reads only the new ones.
func TestCodesAreLoadedOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	db := openKnowledge(t)
	random := rand.New(rand.NewPCG(1, 2))
	vectors := themed(random, 2*fullSegment)
	learn(t, db, testModel, numbered("x", len(vectors)), vectors...)
	loads := func() []int {
		t.Helper()
		list, err := Read(context.Background(), db, func(tx *Tx) (loaded []int, err error) {
			heads, err := tx.segmentHeads(512, 1, math.MaxInt)
			if err != nil {
				return nil, err
			}
			_, err = db.folder.vectors.Nearest(db, direction(0), heads, nil, 1, func(h search.Head) ([]byte, error) {
				loaded = append(loaded, h.Records)
				return tx.segment(h)
			})
			return loaded, err
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got := loads(); !slices.Equal(got, []int{fullSegment, fullSegment}) {
		t.Errorf("first, segments of %v are read", got)
	}
	if got := loads(); len(got) != 0 {
		t.Errorf("again, segments of %v are read", got)
	}
	learn(t, db, testModel, numbered("y", 3), noise(random), noise(random), noise(random))
	if got := loads(); !slices.Equal(got, []int{3}) {
		t.Errorf("after a commit, segments of %v are read", got)
	}
	held := db.folder.vectors.Bytes()
	for range 3 * mergeSegments { // merged repeatedly
		learn(t, db, testModel, []string{"z"}, noise(random))
		loads()
	}
	for range 20 {
		loads()
	}
	if grown := db.folder.vectors.Bytes() - held; grown > 20_000 {
		t.Errorf("%d bytes of deleted segments are held", grown)
	}
}

// FuzzSegment reads arbitrary bytes as a segment.
func FuzzSegment(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3})
	f.Add(search.Record(1, 1, direction(10)))
	f.Add(binary.LittleEndian.AppendUint64(search.Record(1, 1, direction(10)), 7))
	db := openKnowledge(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		do(t, db, "DELETE FROM _vector_segments")
		do(
			t,
			db,
			"INSERT INTO _vector_segments(id, dims, n, data) VALUES (1, 512, 5000, cast(? AS BLOB))",
			string(data),
		)
		db.folder.vectors.Drop(db)
		_, err := Read(context.Background(), db, func(tx *Tx) (map[int64]float64, error) {
			k, err := tx.Knowledge("", testModel)
			if err != nil {
				return nil, err
			}
			return k.Nearest(direction(0), 5)
		})
		_ = err // any answer will do
	})
}
