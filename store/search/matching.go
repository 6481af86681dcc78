package search

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"satchel/store/sqlite"
)

// Text is full text over an agent's chunks, as one search may see them, in one
// transaction.
type Text struct {
	Query    func(query string, args ...any) (*sqlite.Rows, error)
	Source   int64  // only chunks of the source with this seq; 0: of all
	SourceID string // its id
	Mixed    bool   // some chunks are of deleted sources
	Whole    bool   // look at everything, however long it takes
	Few      int    // how many matches are ranked one by one; 0: fewMatches
}

func (x *Text) few() int { return cmp.Or(x.Few, fewMatches) }

// Matches are chunks that hold some of the words of a search.
type Matches struct {
	// Scores are by seq. Each is the part that a chunk reaches of the best bm25
	// possible for the words, 0 to 1: a chunk that repeats each of them without
	// end would have 1. Of the ways to write a word the best counts.
	Scores map[int64]float64
	// Names are the parts of the query's names that a chunk holds, 0 to 1, of
	// those that few chunks hold.
	Names map[int64]float64

	corpus corpus
	words  []rated
	terms  []term
	best   float64
}

// Matching returns the n chunks that rank highest by bm25 for some words.
//
// Words that are in over half of many chunks are passed over, and only the
// rarest of many words are looked for. When even so more than fewMatches chunks
// match, not all are looked at; see findSome.
func (x *Text) Matching(w Words, n int) (*Matches, error) {
	m := &Matches{Scores: map[int64]float64{}, Names: map[int64]float64{}}
	var err error
	if m.corpus, err = x.corpus(); err != nil || m.corpus.chunks == 0 {
		return m, err
	}
	if m.words, m.terms, m.best, err = x.weigh(m.corpus, w); err != nil || len(m.terms) == 0 {
		return m, err
	}
	look, find := weighty(m.terms), x.findSome
	if x.Whole || m.corpus.inScope(look) <= x.few() {
		find = x.findAll
	}
	found, err := find(m.corpus, look, n)
	if err != nil {
		return m, err
	}
	if err := x.rate(m, found); err != nil {
		return m, err
	}
	m.Scores = Best(m.Scores, n)
	return m, nil
}

// Also adds to matches those of the given chunks that match too.
func (x *Text) Also(m *Matches, seqs []int64) error {
	seqs = slices.DeleteFunc(slices.Sorted(slices.Values(seqs)), func(seq int64) bool { _, ok := m.Scores[seq]; return ok })
	if len(m.terms) == 0 || len(seqs) == 0 {
		return nil
	}
	return x.rate(m, seqs)
}

// shortlistOf is how many chunks FTS5 puts forward for each that is wanted: it
// adds up the ways to write a word.
const shortlistOf = 2

// findAll lets FTS5 rank every chunk that matches, and returns the best.
func (x *Text) findAll(c corpus, list []term, n int) ([]int64, error) {
	if n *= shortlistOf; x.Whole {
		n *= 10
	}
	where, args := x.scope(c)
	found, err := Scores(x.Query, "SELECT rowid, -bm25(_chunk_text) AS score FROM _chunk_text WHERE _chunk_text MATCH ?"+where+" ORDER BY score DESC LIMIT ?",
		slices.Concat([]any{anyOf(list)}, args, []any{n})...)
	return slices.Sorted(maps.Keys(found)), err
}

// anyOf is the FTS5 expression for what holds any of the terms.
func anyOf(list []term) string {
	quoted := make([]string, len(list))
	for i, t := range list {
		quoted[i] = t.match()
	}
	return strings.Join(quoted, " OR ")
}

// scope is what narrows a match down to the chunks that this search may see.
func (x *Text) scope(c corpus) (where string, args []any) {
	switch {
	case x.Source != 0:
		where = " AND EXISTS (SELECT 1 FROM chunks WHERE seq = _chunk_text.rowid AND source_id = ?)"
		args = []any{x.SourceID}
		if c.exact {
			where, args = " AND rowid BETWEEN ? AND ?"+where, []any{c.low, c.high, x.SourceID}
		}
	case x.Mixed:
		where = " AND NOT EXISTS (SELECT 1 FROM chunks JOIN _purge USING (source_id) WHERE seq = _chunk_text.rowid)"
	}
	return where, args
}

// corpus is what full text knows of its chunks as a whole.
type corpus struct {
	chunks      int
	words       int   // of all chunks
	first, last int64 // the lowest and the highest seq
	low, high   int64 // the same of the chunks that are searched, roughly unless exact
	exact       bool
}

// countedSource is how many chunks a source may have to look at each for the
// range of their seqs.
const countedSource = 20_000

func (x *Text) corpus() (c corpus, err error) {
	if err := x.bounds(&c.first, &c.last, "SELECT coalesce(min(seq), 0), 0 FROM chunks UNION ALL SELECT 0, coalesce(max(seq), 0) FROM chunks"); err != nil || c.last == 0 {
		return c, err // the index is made with the first chunk
	}
	// Record 1 holds the number of rows and, for each column, that of words, see
	// FTS5_AVERAGES_ROWID in SQLite's fts5_index.c.
	var rest []byte
	if err := x.value(&rest, "SELECT block FROM _chunk_text_data WHERE id = 1"); err != nil || len(rest) == 0 {
		return c, err
	}
	c.chunks, rest = varint(rest)
	for len(rest) > 0 {
		var n int
		n, rest = varint(rest)
		c.words += n
	}
	c.low, c.high = c.first, c.last
	if x.Source == 0 {
		return c, nil
	}
	var chunks int
	if err := x.value(&chunks, "SELECT chunks FROM sources WHERE seq = ?", x.Source); err != nil {
		return c, err
	}
	if c.exact = chunks <= countedSource; c.exact {
		return c, x.bounds(&c.low, &c.high, "SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM chunks WHERE source_id = ?", x.SourceID)
	}
	return c, x.bounds(&c.low, &c.high, `SELECT min(seq), max(seq) FROM (
		SELECT * FROM (SELECT seq FROM chunks WHERE source_id = ?1 ORDER BY position LIMIT 1) UNION ALL
		SELECT * FROM (SELECT seq FROM chunks WHERE source_id = ?1 ORDER BY position DESC LIMIT 1))`, x.SourceID)
}

// bounds reads rows of two numbers and adds them up.
func (x *Text) bounds(low, high *int64, query string, args ...any) error {
	rows, err := x.Query(query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	*low, *high = 0, 0
	for rows.Next() {
		var a, b int64
		if err := rows.Scan(&a, &b); err != nil {
			return err
		}
		*low, *high = *low+a, *high+b
	}
	return rows.Err()
}

// value reads one value of the first row, if there is one.
func (x *Text) value(dst any, query string, args ...any) error {
	rows, err := x.Query(query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		if err := rows.Scan(dst); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Scores runs a query whose rows are a seq and a number, and returns them as a
// map.
func Scores(run func(query string, args ...any) (*sqlite.Rows, error), query string, args ...any) (map[int64]float64, error) {
	rows, err := run(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[int64]float64{}
	for rows.Next() {
		var seq int64
		var score float64
		if err := rows.Scan(&seq, &score); err != nil {
			return nil, err
		}
		found[seq] = score
	}
	return found, rows.Err()
}

// varint reads a number as SQLite's file format has it, highest bits first, and
// returns what follows it.
func varint(b []byte) (n int, rest []byte) {
	for i, x := range b {
		if i == 8 {
			return n<<8 | int(x), b[9:]
		}
		if n = n<<7 | int(x&0x7f); x < 0x80 {
			return n, b[i+1:]
		}
	}
	return n, nil
}

// inScope is about how many chunks of the scope match, each counted once for
// every term that it holds.
func (c corpus) inScope(list []term) int {
	n := countMatches(list)
	if c.exact {
		return int(float64(n) * float64(c.high-c.low+1) / float64(c.last-c.first+1))
	}
	return n
}

func countMatches(list []term) (n int) {
	for _, t := range list {
		n += t.chunks
	}
	return n
}

// probe is how many matches are counted at each end of a large collection.
const probe = 1500

// count returns how many chunks hold a term. A count by MATCH goes through
// FTS5's own tokenizer and stemmer, but takes long for a frequent term: past
// x.few() the number is estimated from how close together the first and the last
// ones are.
func (x *Text) count(c corpus, t term) (int, error) {
	n, dense, err := x.ahead(c, t, probe)
	if err != nil || n < probe {
		return n, err
	}
	var end, first int64
	if err := x.bounds(&end, &first, "SELECT count(*), coalesce(min(rowid), 0) FROM (SELECT rowid FROM _chunk_text WHERE _chunk_text MATCH ? ORDER BY rowid DESC LIMIT ?)",
		t.match(), probe); err != nil {
		return 0, err
	}
	tail := float64(end) / float64(c.last-first+1)
	estimate := func() int { return min(int((dense+tail)/2*float64(c.last-c.first+1)), c.chunks) }
	if estimate() < 3*x.few() { // near enough to count
		if n, dense, err = x.ahead(c, t, x.few()+1); err != nil || n <= x.few() {
			return n, err
		}
	}
	return max(estimate(), x.few()+1), nil
}

// Frequency returns about how many chunks hold a word.
func (x *Text) Frequency(word string) (int, error) {
	c, err := x.corpus()
	if err != nil {
		return 0, err
	}
	return x.count(c, term{text: word})
}

// ahead counts chunks that hold a term, the oldest first and no more than limit,
// and tells how many of those passed by they are.
func (x *Text) ahead(c corpus, t term, limit int) (int, float64, error) {
	var n, last int64
	err := x.bounds(&n, &last, "SELECT count(*), coalesce(max(rowid), 0) FROM (SELECT rowid FROM _chunk_text WHERE _chunk_text MATCH ? LIMIT ?)", t.match(), limit)
	return int(n), float64(n) / float64(max(last-c.first, 0)+1), err
}
