package store

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"satchel/store/terms"
)

// fewMatches is how many matching chunks are ranked one by one, some two
// microseconds each.
const fewMatches = 12_000

// FTS5's constants of bm25.
const (
	k1 = 1.2
	b  = 0.75
)

// rankSome works out bm25 for some of the chunks that match: those of also, the
// best by the terms that are rare, and, among the newest chunks, the best by
// which of all the terms they hold. Where no term is rare, a chunk that is
// neither near in meaning nor new can be missed. Each step is bounded, however
// many chunks match.
func (k *Knowledge) rankSome(c corpus, list []term, n int, also []int64) (map[int64]float64, error) {
	candidates := map[int64]bool{}
	for _, seq := range also {
		candidates[seq] = true
	}
	rare := rarest(list, k.few)
	if len(rare) > 0 {
		found, err := k.rankAll(c, rare, 3*n, nil)
		if err != nil {
			return nil, err
		}
		for seq := range found {
			candidates[seq] = true
		}
	}
	recent, err := k.recent(c, list, 3*n)
	if err != nil {
		return nil, err
	}
	for _, seq := range recent {
		candidates[seq] = true
	}
	scores, err := k.bm25(c, list, slices.Sorted(maps.Keys(candidates)))
	if err != nil {
		return nil, err
	}
	kept := map[int64]float64{}
	for _, seq := range also {
		if score, ok := scores[seq]; ok {
			kept[seq] = score
			delete(scores, seq)
		}
	}
	maps.Copy(kept, best(scores, n))
	return kept, nil
}

// rarest returns the terms, of a list that begins with the rarest, that are in
// no more than limit chunks together.
func rarest(list []term, limit int) []term {
	for i := range list {
		if countMatches(list[:i+1]) > limit {
			return list[:i]
		}
	}
	return list
}

// recent looks at the newest chunks, so many that some fewMatches hold a term,
// and returns the n whose terms weigh most.
func (k *Knowledge) recent(c corpus, list []term, n int) ([]int64, error) {
	span := float64(c.high-c.low+1) * min(float64(k.few)/float64(max(c.inScope(list), 1)), 1)
	where, args := k.scope(c)
	weights := map[int64]float64{}
	for _, t := range list {
		rows, err := k.tx.query("SELECT rowid FROM _chunk_text WHERE _chunk_text MATCH ? AND rowid >= ?"+where+" ORDER BY rowid DESC LIMIT ?",
			slices.Concat([]any{t.match(), c.high - int64(span)}, args, []any{k.few})...)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var seq int64
			if err := rows.Scan(&seq); err != nil {
				rows.Close()
				return nil, err
			}
			weights[seq] += t.idf
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	seqs := slices.Collect(maps.Keys(weights))
	slices.SortFunc(seqs, func(a, b int64) int { return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(b, a)) })
	return seqs[:min(n, len(seqs))], nil
}

// bm25 reads chunks and works out what FTS5 would of them, see
// https://www.sqlite.org/fts5.html#the_bm25_function. Those without any of the
// terms are left out.
func (k *Knowledge) bm25(c corpus, list []term, seqs []int64) (map[int64]float64, error) {
	wanted := make([]terms.Term, len(list))
	for i, t := range list {
		wanted[i] = terms.Term{Text: t.text, Prefix: t.prefix}
	}
	counter, counts := terms.NewCounter(wanted), make([]int, len(list))
	average := float64(c.words) / float64(c.chunks)
	rows, err := k.tx.query("SELECT seq, section, content FROM json_each(?) CROSS JOIN chunks ON seq = value", listJSON(seqs))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	scores := map[int64]float64{}
	for rows.Next() {
		var seq int64
		var section, content string
		if err := rows.Scan(&seq, &section, &content); err != nil {
			return nil, err
		}
		clear(counts)
		length := counter.Count(terms.Separate(section), counts) + counter.Count(terms.Separate(content), counts)
		score := 0.0
		for i, n := range counts {
			f := float64(n)
			score += list[i].idf * f * (k1 + 1) / (f + k1*(1-b+b*float64(length)/math.Max(average, 1)))
		}
		if score > 0 {
			scores[seq] = score
		}
	}
	return scores, rows.Err()
}
