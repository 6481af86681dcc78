package store

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"satchel/store/search"
)

// TestBM25EqualsFTS5 compares our BM25 with that of FTS5.
func TestBM25EqualsFTS5(t *testing.T) {
	db := openKnowledge(t)
	texts := []string{
		"relay ERR_SSL_42 relays",
		"foo.Bar() is called by the relay",
		"part AB-12/3, or 12/3 AB",
		"Crème brûlée",
		"東京都の天気 relay",
		"nothing else",
	}
	for i := range 200 {
		texts = append(texts, fmt.Sprintf("filler %d%s", i, strings.Repeat(" and more of it", i%7)))
	}
	_, seqs := learn(t, db, testModel, texts)
	w := wordsOf("relay", "called", "more", "12", "creme", "東京", "ab 12 3", "err ssl 42", "東京 京都")
	w = append(w, Word{Ways: []Way{{Text: "天", Prefix: true}}}, Word{Ways: []Way{{Text: "fill", Prefix: true}}})
	const any = `relay OR called OR more OR 12 OR creme OR 東京 OR "ab 12 3" OR "err ssl 42" OR "東京 京都" OR 天 * OR fill *`
	got := ask(t, db, "", func(k *Knowledge) (map[string]map[int64]float64, error) {
		theirs, err := search.Scores(
			k.tx.query,
			"SELECT rowid, -bm25(_chunk_text) FROM _chunk_text WHERE _chunk_text MATCH ?",
			any,
		)
		if err != nil {
			return nil, err
		}
		ours, err := k.Matching(w, 1)
		if err != nil {
			return nil, err
		}
		for seq, score := range ours.Scores {
			scale := score / theirs[seq] // ours are fractions of the best possible score
			for other := range theirs {
				theirs[other] *= scale
			}
			break
		}
		clear(ours.Scores)
		return map[string]map[int64]float64{"ours": ours.Scores, "theirs": theirs}, k.AddMatches(ours, seqs)
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

// TestBestOfManyMatches searches for the best of many matches, which reads some of the
// chunks, and for all.
func TestBestOfManyMatches(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	db := openKnowledge(t)
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 8, 300)
	text := func() string {
		var words []string
		for range 5 + random.IntN(30) {
			words = append(words, fmt.Sprint("w", zipf.Uint64()))
		}
		return strings.Join(words, " ")
	}
	var sources []string
	for range 4 {
		texts := make([]string, 700)
		for i := range texts {
			texts[i] = text()
		}
		id, _ := learn(t, db, testModel, texts)
		sources = append(sources, id, "")
	}
	if err := db.DeleteSource(t.Context(), sources[0]); err != nil { // the purge has not run yet
		t.Fatal(err)
	}
	for i := range 300 {
		var w Words
		for range 1 + random.IntN(5) {
			word := Word{Weight: []float64{0, 0, 0.4, 2}[random.IntN(4)], Name: random.IntN(3) == 0}
			for j := range 1 + random.IntN(3) {
				way := Way{Text: fmt.Sprint("w", zipf.Uint64()), Share: []float64{0, 0, 0.5}[random.IntN(3)]}
				if random.IntN(6) == 0 {
					way.Text += fmt.Sprint(" w", random.IntN(5))
				}
				if word.Ways = append(word.Ways, way); j == 2 {
					word.Ways[2].Prefix = true
				}
			}
			w = append(w, word)
		}
		source, n := sources[1+random.IntN(len(sources)-1)], 1+random.IntN(60)
		all, got := found(t, db, source, w, 1_000_000), found(t, db, source, w, n)
		if len(got.Scores) != min(n, len(all.Scores)) {
			t.Fatalf("query %d: %d found, want %d of %d", i, len(got.Scores), n, len(all.Scores))
		}
		least := math.Inf(1)
		for seq, score := range got.Scores {
			if least = min(least, score); score != all.Scores[seq] || got.Names[seq] != all.Names[seq] {
				t.Errorf("query %d: chunk %d has %v, want %v", i, seq, score, all.Scores[seq])
			}
		}
		for seq, score := range all.Scores {
			if _, ok := got.Scores[seq]; !ok && score > least {
				t.Errorf(
					"query %d: chunk %d with %v is not among the %d best, which end with %v",
					i, seq, score, n, least,
				)
			}
		}
	}
}

func found(t testing.TB, db *DB, sourceID string, w Words, n int) *Matches {
	return ask(t, db, sourceID, func(k *Knowledge) (*Matches, error) { return k.Matching(w, n) })
}

// TestFrequentWords searches for words that most of many chunks have: they have no
// weight, unless there are no others.
func TestFrequentWords(t *testing.T) {
	db := openKnowledge(t)
	texts := make([]string, 2400)
	for i := range texts {
		if texts[i] = "pump"; i%3 > 0 {
			texts[i] += " valve"
		}
	}
	_, seqs := learn(t, db, testModel, append(texts, "a kestrel", "pump with a kestrel and a valve"))
	if got := ranked(matching(
		t,
		db,
		"",
		wordsOf("pump", "valve", "kestrel"),
		5,
	)); !slices.Equal(got, seqs[2400:2401]) &&
		len(got) != 2 {
		t.Errorf("found %v, want the two with a kestrel", got)
	}
	if got := matching(t, db, "", wordsOf("pump", "valve"), 5000); len(got) != 1601 {
		t.Errorf("%d found, want all that have the rarer word", len(got))
	}
}
