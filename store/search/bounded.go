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

// findSome returns some of the chunks that match: the best by words
// among those that hold a rare term, or two of the others. Where no terms go
// together, the newest chunks are looked at. A chunk that holds one frequent
// term, however often, can be missed. Each step is bounded, however many chunks
// match.
func (x *Text) findSome(c corpus, list []term, n int) ([]int64, error) {
	candidates, err := x.promising(c, list, n)
	return slices.Sorted(maps.Keys(candidates)), err
}

// promising are the chunks among which findSome expects the n best by words, a
// few times as many.
func (x *Text) promising(c corpus, list []term, n int) (map[int64]bool, error) {
	candidates := map[int64]bool{}
	rare := rarest(list, x.few())
	if len(rare) > 0 {
		found, err := x.findAll(c, rare, n)
		if err != nil {
			return nil, err
		}
		for _, seq := range found {
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

// rate reads chunks and works out their bm25 as FTS5 does, see
// https://www.sqlite.org/fts5.html#the_bm25_function, but that all ways to write a
// word are one. Those without any of the terms are left out.
func (x *Text) rate(m *Matches, seqs []int64) error {
	wanted := make([]terms.Term, len(m.terms))
	for i, t := range m.terms {
		wanted[i] = terms.Term{Text: t.text, Prefix: t.prefix}
	}
	counter, counts := terms.NewCounter(wanted), make([]int, len(m.terms))
	average := math.Max(float64(m.corpus.words)/float64(m.corpus.chunks), 1)
	rows, err := x.Query(`SELECT seq, section, content FROM json_each(?1) CROSS JOIN chunks c ON seq = value
		WHERE ?2 IN ('', source_id) AND NOT (?3 AND EXISTS (SELECT 1 FROM _purge p WHERE p.source_id = c.source_id))`, ListJSON(seqs), x.SourceID, x.Mixed)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var section, content string
		if err := rows.Scan(&seq, &section, &content); err != nil {
			return err
		}
		clear(counts)
		length := counter.Count(terms.Separate(section), counts) + counter.Count(terms.Separate(content), counts)
		m.add(seq, counts, k1*(1-b+b*float64(length)/average))
	}
	return rows.Err()
}

// add enters a chunk that holds each term so many times. norm is the part of
// bm25 that depends on the chunk's length.
func (m *Matches) add(seq int64, counts []int, norm float64) {
	score, names, held := 0.0, 0, 0
	for i, r := range m.words {
		part := r.reached(i, m.terms, counts, norm)
		score += r.weight() * r.idf * (k1 + 1) * part
		if r.isRare(m.corpus) {
			if names++; part > 0 {
				held++
			}
		}
	}
	if score == 0 {
		return
	}
	m.Scores[seq] = min(score/m.best, 1)
	if held > 0 {
		m.Names[seq] = float64(held) / float64(names)
	}
}

// reached is the part of its weight that a word reaches in a chunk.
func (r rated) reached(i int, list []term, counts []int, norm float64) (best float64) {
	own := 0.0
	for j, t := range list {
		if t.word != i {
			continue
		}
		if f := float64(counts[j]); t.share == 1 {
			own += f
		} else {
			best = max(best, t.share*f/(f+norm))
		}
	}
	return max(best, own/(own+norm))
}
