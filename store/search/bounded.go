package search

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"satchel/store/search/terms"
)

// fewMatches is how many matching chunks are ranked one by one, some two
// microseconds each.
const fewMatches = 12_000

// FTS5's constants of bm25.
const (
	k1 = 1.2
	b  = 0.75
)

// rankSome works out bm25 for some of the chunks that match: the best by words
// among those that hold a rare term, or two of the others. Where no terms go
// together, the newest chunks are looked at. A chunk that holds one frequent
// term, however often, can be missed. Each step is bounded, however many chunks
// match.
func (x *Text) rankSome(c corpus, list []term, n int) (map[int64]float64, error) {
	candidates, err := x.promising(c, list, n)
	if err != nil {
		return nil, err
	}
	scores, err := x.bm25(c, list, slices.Sorted(maps.Keys(candidates)))
	return Best(scores, n), err
}

// promising are the chunks among which rankSome expects the n best by words, a
// few times as many.
func (x *Text) promising(c corpus, list []term, n int) (map[int64]bool, error) {
	candidates := map[int64]bool{}
	rare := rarest(list, x.few())
	if len(rare) > 0 {
		found, err := x.rankAll(c, rare, 3*n)
		if err != nil {
			return nil, err
		}
		for seq := range found {
			candidates[seq] = true
		}
	}
	if err := x.together(c, rare, list[len(rare):], 3*n, candidates); err != nil || len(candidates) >= n {
		return candidates, err
	}
	recent, err := x.recent(c, list, 3*n)
	for _, seq := range recent {
		candidates[seq] = true
	}
	return candidates, err
}

// entriesOf is how many entries of the terms' lists may be passed over for each
// chunk that may be ranked: one takes about a fortieth of the time.
const entriesOf = 40

// group is chunks that hold some terms, for FTS5, and about how many they are.
type group struct {
	match  string
	chunks float64
}

// together adds to candidates the n best of those chunks that hold a rare term
// and a frequent one, and of those that hold the first of the frequent terms and
// a later one, the second and a later one, and so on. FTS5 finds what lists have
// in common much faster than it ranks. Where more hold two terms than may be
// ranked, those that hold a third as well are.
func (x *Text) together(c corpus, rare, frequent []term, n int, candidates map[int64]bool) error {
	chunks, entries := x.few(), entriesOf*x.few()
	for i := range len(frequent) + 1 {
		first, partners := rare, frequent
		if i > 0 {
			first, partners = frequent[i-1:i], frequent[i:]
		}
		if len(first) == 0 || len(partners) == 0 || chunks <= 0 {
			continue
		}
		entries -= countMatches(first)
		g := group{"(" + anyOf(first) + ")", float64(countMatches(first))}
		for part := partOf(c, partners[0]); len(partners) > 1 && g.chunks*part > float64(chunks); part = partOf(c, partners[0]) {
			g = group{g.match + " AND " + partners[0].match(), g.chunks * part}
			entries -= partners[0].chunks
			partners = partners[1:]
		}
		partners = affordable(c, g, partners, chunks, entries)
		if len(partners) == 0 {
			continue
		}
		ranked, err := x.rankGroup(c, g, partners, chunks, n, candidates)
		if err != nil {
			return err
		}
		chunks -= ranked
		entries -= countMatches(partners)
	}
	return nil
}

// partOf is the part of all chunks that holds a term.
func partOf(c corpus, t term) float64 { return float64(t.chunks) / float64(c.chunks) }

// affordable returns the first of partners that a group may be looked for with:
// as many as no more chunks are to be expected with, if terms occur
// independently, one at least, and no more entries are to be passed over. Those
// left out are the most frequent, which discriminate least.
func affordable(c corpus, g group, partners []term, chunks, entries int) []term {
	without := 1.0 // the part of all chunks that holds none of them
	for i, p := range partners {
		without *= 1 - partOf(c, p)
		entries -= p.chunks
		if entries < 0 || i > 0 && g.chunks*(1-without) > float64(chunks) {
			return partners[:i]
		}
	}
	return partners
}

// rankGroup adds to candidates the n best of those chunks of a group that hold
// one of partners, and returns how many were ranked: the newest limit, should
// there be more.
func (x *Text) rankGroup(c corpus, g group, partners []term, limit, n int, candidates map[int64]bool) (ranked int, err error) {
	where, args := x.scope(c)
	rows, err := x.Query(`SELECT rowid, count(*) OVER () FROM (SELECT rowid, bm25(_chunk_text) AS cost FROM _chunk_text
		WHERE _chunk_text MATCH ?`+where+` ORDER BY rowid DESC LIMIT ?) ORDER BY cost LIMIT ?`,
		slices.Concat([]any{g.match + " AND (" + anyOf(partners) + ")"}, args, []any{limit, n})...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq, &ranked); err != nil {
			return 0, err
		}
		candidates[seq] = true
	}
	return ranked, rows.Err()
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

// recent looks at the newest chunks, so many that some x.few() hold a term,
// and returns the n whose terms weigh most.
func (x *Text) recent(c corpus, list []term, n int) ([]int64, error) {
	span := float64(c.high-c.low+1) * min(float64(x.few())/float64(max(c.inScope(list), 1)), 1)
	where, args := x.scope(c)
	weights := map[int64]float64{}
	for _, t := range list {
		rows, err := x.Query("SELECT rowid FROM _chunk_text WHERE _chunk_text MATCH ? AND rowid >= ?"+where+" ORDER BY rowid DESC LIMIT ?",
			slices.Concat([]any{t.match(), c.high - int64(span)}, args, []any{x.few()})...)
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
func (x *Text) bm25(c corpus, list []term, seqs []int64) (map[int64]float64, error) {
	wanted := make([]terms.Term, len(list))
	for i, t := range list {
		wanted[i] = terms.Term{Text: t.text, Prefix: t.prefix}
	}
	counter, counts := terms.NewCounter(wanted), make([]int, len(list))
	average := float64(c.words) / float64(c.chunks)
	rows, err := x.Query(`SELECT seq, section, content FROM json_each(?1) CROSS JOIN chunks c ON seq = value
		WHERE ?2 IN ('', source_id) AND NOT (?3 AND EXISTS (SELECT 1 FROM _purge p WHERE p.source_id = c.source_id))`, ListJSON(seqs), x.SourceID, x.Mixed)
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
