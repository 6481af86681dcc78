package store

import (
	"cmp"
	"database/sql"
	"database/sql/driver"
	"math"
	"slices"
	"strings"

	"modernc.org/sqlite"

	"satchel/store/terms"
)

// The triggers of chunks hand their text to full text through this function.
var _ = sqliteFunction("separate_words", terms.Separate)

// sqliteFunction makes a function of one text known to every connection.
func sqliteFunction(name string, fn func(string) string) bool {
	sqlite.MustRegisterDeterministicScalarFunction(name, 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		text, _ := args[0].(string)
		return fn(text), nil
	})
	return true
}

// Words are what full text looks for. They stand for themselves: nothing in
// them is an operator.
type Words struct {
	Single   []string // words to find; any of them makes a match
	Prefixes []string // beginnings of words to find
	Phrases  []string // words in a row, or one, which count in addition where they occur
}

// Matches are chunks that hold some of the words of a search.
type Matches struct {
	// Scores are by seq. Each is the part that a chunk reaches of the best bm25
	// possible for the words, 0 to 1: a chunk that repeats each of them without
	// end would have 1.
	Scores map[int64]float64

	corpus corpus
	terms  []term
	best   float64
}

// Matching returns the n chunks that rank highest by bm25 for some words.
//
// Words that are in over half of many chunks are passed over, and only the
// rarest of many words are looked for. When even so more than fewMatches chunks
// match, not all are looked at; see rankSome.
func (k *Knowledge) Matching(w Words, n int) (*Matches, error) {
	m := &Matches{Scores: map[int64]float64{}}
	var err error
	if m.corpus, err = k.corpus(); err != nil || m.corpus.chunks == 0 {
		return m, err
	}
	if m.terms, m.best, err = k.weigh(m.corpus, w); err != nil || len(m.terms) == 0 {
		return m, err
	}
	rank := k.rankSome
	if k.whole || m.corpus.inScope(m.terms) <= k.few {
		rank = k.rankAll
	}
	found, err := rank(m.corpus, m.terms, n)
	m.add(found)
	return m, err
}

// Also adds to matches those of the given chunks that match too.
func (k *Knowledge) Also(m *Matches, seqs []int64) error {
	seqs = slices.DeleteFunc(slices.Sorted(slices.Values(seqs)), func(seq int64) bool { _, ok := m.Scores[seq]; return ok })
	if len(m.terms) == 0 || len(seqs) == 0 {
		return nil
	}
	found, err := k.bm25(m.corpus, m.terms, seqs)
	m.add(found)
	return err
}

func (m *Matches) add(scores map[int64]float64) {
	for seq, score := range scores {
		m.Scores[seq] = min(score/m.best, 1)
	}
}

// rankAll works out bm25 for every chunk that matches, as FTS5 does anyway.
func (k *Knowledge) rankAll(c corpus, list []term, n int) (map[int64]float64, error) {
	where, args := k.scope(c)
	return k.scores("SELECT rowid, -bm25(_chunk_text) AS score FROM _chunk_text WHERE _chunk_text MATCH ?"+where+" ORDER BY score DESC LIMIT ?",
		slices.Concat([]any{anyOf(list)}, args, []any{n})...)
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
func (k *Knowledge) scope(c corpus) (where string, args []any) {
	switch {
	case k.source != 0:
		where = " AND EXISTS (SELECT 1 FROM chunks WHERE seq = _chunk_text.rowid AND source_id = ?)"
		args = []any{k.sourceID}
		if c.exact {
			where, args = " AND rowid BETWEEN ? AND ?"+where, []any{c.low, c.high, k.sourceID}
		}
	case k.mixed:
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

func (k *Knowledge) corpus() (c corpus, err error) {
	// Record 1 holds the number of rows and, for each column, that of words, see
	// FTS5_AVERAGES_ROWID in SQLite's fts5_index.c.
	averages, err := all(k.tx, func(rows *sql.Rows) (b []byte, err error) { return b, rows.Scan(&b) },
		"SELECT block FROM _chunk_text_data WHERE id = 1")
	if err != nil || len(averages) == 0 {
		return c, err
	}
	rest := averages[0]
	c.chunks, rest = varint(rest)
	for len(rest) > 0 {
		var n int
		n, rest = varint(rest)
		c.words += n
	}
	if err := k.bounds(&c.first, &c.last, "SELECT coalesce(min(seq), 0), 0 FROM chunks UNION ALL SELECT 0, coalesce(max(seq), 0) FROM chunks"); err != nil {
		return c, err
	}
	c.low, c.high = c.first, c.last
	if k.source == 0 {
		return c, nil
	}
	var chunks int
	if err := k.tx.value(&chunks, "SELECT chunks FROM sources WHERE seq = ?", k.source); err != nil {
		return c, err
	}
	if c.exact = chunks <= countedSource; c.exact {
		return c, k.bounds(&c.low, &c.high, "SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM chunks WHERE source_id = ?", k.sourceID)
	}
	return c, k.bounds(&c.low, &c.high, `SELECT min(seq), max(seq) FROM (
		SELECT * FROM (SELECT seq FROM chunks WHERE source_id = ?1 ORDER BY position LIMIT 1) UNION ALL
		SELECT * FROM (SELECT seq FROM chunks WHERE source_id = ?1 ORDER BY position DESC LIMIT 1))`, k.sourceID)
}

// bounds reads rows of two numbers and adds them up.
func (k *Knowledge) bounds(low, high *int64, query string, args ...any) error {
	rows, err := k.tx.query(query, args...)
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

// The bounds on the terms of one search: how many are counted, how many of
// those are looked for, and how many chunks a term that tells nothing may be in
// before it is passed over.
const (
	maxTerms     = 64
	maxMatched   = 24
	maxTermBytes = 200
	fewChunks    = 1000
)

// term is a word or phrase with its weight.
type term struct {
	text   string
	prefix bool // words that begin with it
	chunks int  // that hold it; of more than fewMatches an estimate
	idf    float64
}

// match is the FTS5 expression for a term.
func (t term) match() string {
	if t.prefix {
		return quoteTerm(t.text) + " *"
	}
	return quoteTerm(t.text)
}

// weigh picks the terms to look for and returns the best possible bm25 for the
// query: the sum of idf·(k1+1), with FTS5's own idf, see
// https://www.sqlite.org/fts5.html#the_bm25_function. A word that is in no
// chunk counts too, for no chunk answers that part of the query, unless some
// hold it as a part of a phrase that is written in another way.
func (k *Knowledge) weigh(c corpus, w Words) (found []term, best float64, err error) {
	single := w.Single[:min(len(w.Single), maxTerms)]
	prefixes := w.Prefixes[:min(len(w.Prefixes), maxTerms-len(single))]
	phrases := w.Phrases[:min(len(w.Phrases), maxTerms-len(single)-len(prefixes))]
	var missing []term
	for i, text := range slices.Concat(single, prefixes, phrases) {
		if len(text) > maxTermBytes {
			continue
		}
		t := term{text: text, prefix: i >= len(single) && i < len(single)+len(prefixes)}
		if t.chunks, err = k.count(c, t); err != nil {
			return nil, 0, err
		}
		t.idf = idf(c.chunks, t.chunks)
		switch {
		case t.chunks > 0:
			found = append(found, t)
		case i < len(single)+len(prefixes):
			missing = append(missing, t)
		}
	}
	best = unanswered(missing, found, phrases)
	found = telling(found)
	for _, t := range found {
		best += t.idf
	}
	return found, best * (k1 + 1), nil
}

// probe is how many matches are counted at each end of a large collection.
const probe = 1500

// count returns how many chunks hold a term. A count by MATCH goes through
// FTS5's own tokenizer and stemmer, but takes long for a frequent term: past
// k.few the number is estimated from how close together the first and the last
// ones are.
func (k *Knowledge) count(c corpus, t term) (int, error) {
	n, dense, err := k.ahead(c, t, probe)
	if err != nil || n < probe {
		return n, err
	}
	var end, first int64
	if err := k.bounds(&end, &first, "SELECT count(*), coalesce(min(rowid), 0) FROM (SELECT rowid FROM _chunk_text WHERE _chunk_text MATCH ? ORDER BY rowid DESC LIMIT ?)",
		t.match(), probe); err != nil {
		return 0, err
	}
	tail := float64(end) / float64(c.last-first+1)
	estimate := func() int { return min(int((dense+tail)/2*float64(c.last-c.first+1)), c.chunks) }
	if estimate() < 3*k.few { // near enough to count
		if n, dense, err = k.ahead(c, t, k.few+1); err != nil || n <= k.few {
			return n, err
		}
	}
	return max(estimate(), k.few+1), nil
}

// ahead counts chunks that hold a term, the oldest first and no more than limit,
// and tells how many of those passed by they are.
func (k *Knowledge) ahead(c corpus, t term, limit int) (int, float64, error) {
	var n, last int64
	err := k.bounds(&n, &last, "SELECT count(*), coalesce(max(rowid), 0) FROM (SELECT rowid FROM _chunk_text WHERE _chunk_text MATCH ? LIMIT ?)", t.match(), limit)
	return int(n), float64(n) / float64(max(last-c.first, 0)+1), err
}

// unanswered adds up the words of missing that are in none of the phrases that
// were found: "e" and "1042" are in "e1042", "e1042" is in "e 1042".
func unanswered(missing, found []term, phrases []string) (idf float64) {
	for _, m := range missing {
		if !slices.ContainsFunc(found, func(f term) bool {
			return slices.Contains(phrases, f.text) && strings.Contains(strings.ReplaceAll(f.text, " ", ""), m.text)
		}) {
			idf += m.idf
		}
	}
	return idf
}

// leastIDF is the idf that FTS5 gives to what is in half of the rows or more.
const leastIDF = 1e-6

func idf(total, chunks int) float64 {
	n := float64(chunks)
	return max(math.Log((float64(total)-n+0.5)/(n+0.5)), leastIDF)
}

// telling leaves out terms that cost much and tell nothing, unless there are
// no others, and keeps the rarest.
func telling(terms []term) []term {
	slices.SortStableFunc(terms, func(a, b term) int { return cmp.Compare(a.chunks, b.chunks) })
	n := min(len(terms), maxMatched)
	for n > 1 && terms[n-1].idf == leastIDF && terms[n-1].chunks > fewChunks {
		n--
	}
	return terms[:n]
}

// quoteTerm makes an FTS5 string of text, which is a term or a phrase whatever
// it holds. FTS5 reads its query up to the first NUL.
func quoteTerm(text string) string {
	return `"` + strings.NewReplacer(`"`, `""`, "\x00", " ").Replace(text) + `"`
}
