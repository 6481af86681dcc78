package search

import (
	"math"
	"slices"

	"satchel/store/search/postings"
)

// FTS5's constants of bm25.
const (
	k1 = 1.2
	b  = 0.75
)

// ranker computes bm25 as FTS5 does, see
// https://www.sqlite.org/fts5.html#the_bm25_function, except that all ways to write
// a word count as one.
type ranker struct {
	*Matches
	lengths *lengthReader
	average float64 // words of a chunk
	counts  []int32 // how often the current chunk contains each term
	cursors []cursor
}

// cursor iterates over the chunks that contain a term.
type cursor struct {
	postings.List
	term     int
	at       int
	maxScore float64 // maximum that the term adds to a score
}

// row returns the chunk at the cursor, or the highest number at the end.
func (c *cursor) row() int64 {
	if c.at < len(c.Rows) {
		return c.Rows[c.at]
	}
	return math.MaxInt64
}

// seek moves to a chunk, or to the next one after it.
func (c *cursor) seek(seq int64) {
	if c.row() < seq {
		c.at = c.At(seq, c.at)
	}
}

// newRanker returns a ranker whose cursors are at the beginning: first those of
// terms that do not select chunks, then the others, by how much they add.
func (x *Text) newRanker(m *Matches) *ranker {
	r := &ranker{
		Matches: m,
		lengths: x.lengths(),
		counts:  make([]int32, len(m.terms)),
		average: math.Max(float64(m.corpus.words)/float64(m.corpus.chunks), 1),
	}
	for i, t := range m.terms {
		r.cursors = append(r.cursors, cursor{
			List:     t.list,
			term:     i,
			maxScore: t.weight * m.words[t.word].idf * (k1 + 1) * t.share,
		})
	}
	return r
}

// rate rates one chunk. The cursors only move forward, or start again.
func (r *ranker) rate(seq int64) (hit, error) {
	for i := range r.cursors {
		c := &r.cursors[i]
		if c.at > 0 && c.Rows[c.at-1] >= seq {
			c.at = 0
		}
		r.advance(c, seq)
	}
	return r.hit(seq)
}

// advance moves a cursor to a chunk and notes how often the chunk contains its term.
func (r *ranker) advance(c *cursor, seq int64) bool {
	c.seek(seq)
	if r.counts[c.term] = 0; c.row() == seq {
		r.counts[c.term] = c.Counts[c.at]
		return true
	}
	return false
}

// hit returns a chunk's rating from its counts.
func (r *ranker) hit(seq int64) (hit, error) {
	length, err := r.lengths.of(seq)
	if err != nil {
		return hit{}, err
	}
	norm := k1 * (1 - b + b*float64(length)/r.average)
	h, names, held := hit{seq: seq}, 0, 0
	for _, w := range r.words {
		part := w.reachedWeight(r.terms, r.counts, norm)
		h.score += w.weight() * w.idf * (k1 + 1) * part
		if w.rare {
			if names++; part > 0 {
				held++
			}
		}
	}
	h.score = min(h.score/r.best, 1)
	if held > 0 {
		h.names = float64(held) / float64(names)
	}
	return h, nil
}

// reachedWeight returns the part of its maximum weight that a word reaches in a chunk.
func (w rated) reachedWeight(list []term, counts []int32, norm float64) (best float64) {
	own := 0.0
	for _, j := range w.terms {
		if f := float64(counts[j]); list[j].share == 1 {
			own += f
		} else {
			best = max(best, list[j].share*f/(f+norm))
		}
	}
	return max(best, own/(own+norm))
}

// top returns the count best chunks. It goes through the lists of all terms at once and,
// once count have been found, only considers chunks whose terms can add up to more than
// the last of them (Turtle and Flood's MaxScore).
func (x *Text) top(matches *Matches, count int) ([]hit, error) {
	ranker := x.newRanker(matches)
	light := ranker.sortCursors()
	sums := make([]float64, len(ranker.cursors)+1) // maximum sum of the first cursors
	for i, c := range ranker.cursors {
		sums[i+1] = sums[i] + c.maxScore/matches.best
	}
	var found []hit
	first, least := light, 0.0 // the first cursor whose chunks are considered, and the score to exceed
	for {
		seq := x.next(ranker.cursors[first:])
		if seq == math.MaxInt64 {
			return found, nil
		}
		hit, err := ranker.consider(seq, first, sums, least)
		if err != nil {
			return nil, err
		}
		if hit.score <= least {
			continue
		}
		if in, err := x.sees(seq); err != nil {
			return nil, err
		} else if !in {
			continue
		}
		at, _ := slices.BinarySearchFunc(found, hit, compareHits)
		if found = slices.Insert(found, at, hit); len(found) > count {
			found = found[:count]
		}
		if len(found) == count {
			for least = found[count-1].score; first < len(ranker.cursors) && sums[first+1] <= least; {
				first++
			}
		}
	}
}

// sortCursors sorts the cursors by how much they add, after those that do not select
// chunks, and returns the number of the latter.
func (r *ranker) sortCursors() (light int) {
	isLight := func(c cursor) bool {
		return r.terms[c.term].weight < minWeight
	}
	for _, c := range r.cursors {
		if isLight(c) {
			light++
		}
	}
	if light == len(r.cursors) {
		light = 0
	}
	slices.SortStableFunc(r.cursors, func(a, b cursor) int {
		if light > 0 && isLight(a) != isLight(b) {
			if isLight(a) {
				return -1
			}
			return 1
		}
		switch {
		case a.maxScore < b.maxScore:
			return -1
		case a.maxScore > b.maxScore:
			return 1
		}
		return 0
	})
	return light
}

// next returns the next chunk at one of some cursors that can belong to the source;
// the highest number at the end.
func (x *Text) next(cursors []cursor) int64 {
	for {
		seq := int64(math.MaxInt64)
		for i := range cursors {
			seq = min(seq, cursors[i].row())
		}
		if x.Source == 0 || x.members == nil || seq == math.MaxInt64 {
			return seq
		}
		at, in := slices.BinarySearch(x.members, seq)
		if in {
			return seq
		}
		if at == len(x.members) {
			return math.MaxInt64
		}
		for i := range cursors {
			cursors[i].seek(x.members[at])
		}
	}
}

// consider rates a chunk at one of the cursors from first on, and advances those.
// The score is 0 if it does not exceed least.
func (r *ranker) consider(seq int64, first int, sums []float64, least float64) (hit, error) {
	most := sums[first]
	for i := first; i < len(r.cursors); i++ {
		c := &r.cursors[i]
		if r.counts[c.term] = 0; c.row() == seq {
			r.counts[c.term] = c.Counts[c.at]
			most += c.maxScore / r.best
			c.at++
		}
	}
	for i := first - 1; i >= 0; i-- {
		if most <= least {
			return hit{}, nil
		}
		if c := &r.cursors[i]; !r.advance(c, seq) {
			most -= c.maxScore / r.best
		}
	}
	if most <= least {
		return hit{}, nil
	}
	return r.hit(seq)
}
