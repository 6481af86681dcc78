package store

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"satchel/store/search"
)

// whole is what Matching finds when it looks at everything.
func whole(t testing.TB, db *DB, sourceID string, w Words, n int, also ...int64) map[int64]float64 {
	return ask(t, db, sourceID, func(k *Knowledge) (map[int64]float64, error) {
		k.Whole()
		return scored(k, w, n, also)
	})
}

// TestBM25IsThatOfFTS5 works bm25 out in both ways.
func TestBM25IsThatOfFTS5(t *testing.T) {
	db := openKnowledge(t)
	texts := []string{"relay ERR_SSL_42 relays", "foo.Bar() is called by the relay", "part AB-12/3, or 12/3 AB", "Crème brûlée", "東京都の天気 relay", "nothing else"}
	for i := range 200 {
		texts = append(texts, fmt.Sprintf("filler %d%s", i, strings.Repeat(" and more of it", i%7)))
	}
	_, seqs := learn(t, db, testModel, texts)
	w := wordsOf("relay", "called", "more", "12", "creme", "東京", "ab 12 3", "err ssl 42", "東京 京都")
	w = append(w, Word{Ways: []Way{{Text: "天", Prefix: true}}}, Word{Ways: []Way{{Text: "fill", Prefix: true}}})
	const any = `relay OR called OR more OR 12 OR creme OR 東京 OR "ab 12 3" OR "err ssl 42" OR "東京 京都" OR 天 * OR fill *`
	got := ask(t, db, "", func(k *Knowledge) (map[string]map[int64]float64, error) {
		k.Whole()
		theirs, err := search.Scores(k.tx.query, "SELECT rowid, -bm25(_chunk_text) FROM _chunk_text WHERE _chunk_text MATCH ?", any)
		if err != nil {
			return nil, err
		}
		ours, err := k.Matching(w, 1)
		if err != nil {
			return nil, err
		}
		for seq, score := range ours.Scores {
			scale := score / theirs[seq] // ours are parts of the best possible
			for other := range theirs {
				theirs[other] *= scale
			}
			break
		}
		clear(ours.Scores)
		return map[string]map[int64]float64{"ours": ours.Scores, "theirs": theirs}, k.Also(ours, seqs)
	})
	if len(got["theirs"]) < 200 || len(got["ours"]) != len(got["theirs"]) {
		t.Fatalf("%d chunks match, %d by FTS5", len(got["ours"]), len(got["theirs"]))
	}
	for seq, want := range got["theirs"] {
		if math.Abs(got["ours"][seq]-want) > 1e-9 {
			t.Errorf("chunk %d: %v, FTS5 has %v", seq, got["ours"][seq], want)
		}
	}
}

// fewOf is how many matches are ranked one by one in these tests.
const fewOf = 400

// bounded is what Matching finds when more than fewOf match.
func bounded(t testing.TB, db *DB, sourceID string, w Words, n int, also ...int64) map[int64]float64 {
	return ask(t, db, sourceID, func(k *Knowledge) (map[int64]float64, error) {
		k.text.Few = fewOf
		return scored(k, w, n, also)
	})
}

// TestManyMatches asks for words that more chunks hold than are looked at.
func TestManyMatches(t *testing.T) {
	db := openKnowledge(t)
	texts := make([]string, 4*fewOf)
	for i := range texts {
		texts[i] = "pump"
		for j, word := range []string{"valve", "motor", "gauge"} {
			if i%(2+j) == 0 {
				texts[i] += " " + word
			}
		}
	}
	learn(t, db, testModel, texts)
	checkFrequencies(t, db, map[string]int{"pump": len(texts), "valve": len(texts) / 2, "motor": len(texts) / 3, "kestrel": 0})
	rare, some := learn(t, db, testModel, []string{"pump with a kestrel and a valve", "a kestrel", "motor gauge kestrel", "nothing"})
	for _, c := range []struct {
		what string
		w    Words
		n    int
	}{
		{"a rare word", wordsOf("valve", "motor", "kestrel"), 3},
		{"none", wordsOf("motor", "gauge"), 1},
	} {
		got, want := bounded(t, db, "", c.w, c.n), whole(t, db, "", c.w, c.n)
		best := slices.Max(slices.Collect(maps.Values(want)))
		if len(got) != c.n || math.Abs(slices.Max(slices.Collect(maps.Values(got)))-best) > 0.02 {
			t.Errorf("%s: found %v, of all %v", c.what, got, want)
		}
	}
	w := wordsOf("valve", "motor", "kestrel")
	if got, want := ranked(bounded(t, db, "", w, 3)), ranked(whole(t, db, "", w, 3)); !slices.Equal(got, want) || !slices.Contains(got, some[1]) {
		t.Errorf("found %v, of all %v", got, want)
	}
	if got := bounded(t, db, "", w, 1, 1, 2, some[3]); len(got) != 2 || got[1] == 0 {
		t.Errorf("besides the best, chunk 1 matches and others do not: %v", got)
	}
	if got := bounded(t, db, rare, wordsOf("valve", "pump"), 10); len(got) != 1 || got[some[0]] == 0 {
		t.Errorf("in a small source: %v, want chunk %d", got, some[0])
	}
	if err := db.DeleteSource(context.Background(), rare); err != nil {
		t.Fatal(err)
	}
	for seq := range bounded(t, db, "", w, 50) {
		if slices.Contains(some, seq) {
			t.Errorf("chunk %d of a deleted source is found", seq)
		}
	}
}

// checkFrequencies compares the estimates of how many chunks hold a word.
func checkFrequencies(t *testing.T, db *DB, want map[string]int) {
	t.Helper()
	for word, want := range want {
		got := ask(t, db, "", func(k *Knowledge) (int, error) {
			k.text.Few = fewOf
			return k.text.Frequency(word)
		})
		if math.Abs(float64(got-want)) > float64(want)/50 {
			t.Errorf("%s is in %d chunks, the estimate is %d", word, want, got)
		}
	}
}

// TestFrequentWordsTogether asks for words each of which more chunks hold than
// are ranked, and expects the chunks that hold several of them.
func TestFrequentWordsTogether(t *testing.T) {
	db := openKnowledge(t)
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 8, 60)
	texts := make([]string, 10*fewOf)
	for i := range texts {
		for range 10 + random.IntN(10) {
			texts[i] += fmt.Sprintf("w%d ", zipf.Uint64())
		}
	}
	learn(t, db, testModel, texts)
	const n = 10
	best, all := 0, 0
	for i := range 20 {
		var list []string
		for len(list) < 2+i%3 {
			if word := fmt.Sprintf("w%d", random.IntN(25)); !slices.Contains(list, word) {
				list = append(list, word)
			}
		}
		w := wordsOf(list...)
		want := slices.Sorted(maps.Values(whole(t, db, "", w, n)))
		for _, score := range bounded(t, db, "", w, n) {
			if all++; score > want[0]-1e-9 {
				best++
			}
		}
	}
	if all != 20*n || best < all*94/100 {
		t.Errorf("%d of %d are among the best", best, all)
	}
}
