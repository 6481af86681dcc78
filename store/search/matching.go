package search

import (
	"cmp"
	"slices"

	"satchel/store/search/postings"
	"satchel/store/search/terms"
	"satchel/store/sqlite"
)

// Text is full-text search over the part of an agent's chunks that a search sees, in
// one transaction.
type Text struct {
	Query    func(query string, args ...any) (*sqlite.Rows, error)
	Source   int64  // seq of the only source to search; 0: all
	SourceID string // its id
	Mixed    bool   // some chunks are of deleted sources
	Memory   *Memory

	index   *postings.Index
	lists   map[termKey]postings.List // already read
	rows    int                       // of them
	members []int64                   // the chunks of the source, if they are few
}

// termKey identifies a list of postings.
type termKey struct {
	text   string
	prefix bool
}

// Matches are chunks that contain some of the words of a search.
type Matches struct {
	// Scores are by seq: the chunk's share, from 0 to 1, of the best bm25
	// possible for the words, which a chunk would reach by repeating each of
	// them endlessly. Of several spellings of a word, the best one counts.
	Scores map[int64]float64
	// Names are the parts of the query's names that a chunk contains, 0 to 1,
	// counting only names that few chunks contain.
	Names map[int64]float64

	corpus corpus
	words  []rated
	terms  []term
	best   float64
}

// Matching returns the n chunks that rank highest for some words by bm25.
//
// If there are many chunks, words that occur in more than half of them are ignored,
// and of many words only the rarest are used.
func (x *Text) Matching(w Words, n int) (*Matches, error) {
	m := &Matches{Scores: map[int64]float64{}, Names: map[int64]float64{}}
	var err error
	if m.corpus, err = x.open(); err != nil || m.corpus.chunks == 0 {
		return m, err
	}
	if m.words, m.terms, m.best, err = x.weigh(m.corpus, w); err != nil || len(m.terms) == 0 {
		return m, err
	}
	found, err := x.top(m, n)
	for _, h := range found {
		m.add(h)
	}
	return m, err
}

func (m *Matches) add(h hit) {
	m.Scores[h.seq] = h.score
	if h.names > 0 {
		m.Names[h.seq] = h.names
	}
}

// Also adds to matches those of the given chunks that match.
func (x *Text) Also(matches *Matches, seqs []int64) error {
	if len(matches.terms) == 0 {
		return nil
	}
	if _, err := x.open(); err != nil {
		return err
	}
	ranker := x.newRanker(matches)
	for _, seq := range seqs {
		if _, ok := matches.Scores[seq]; ok {
			continue
		}
		h, err := ranker.rate(seq)
		if err != nil {
			return err
		}
		if h.score == 0 {
			continue
		}
		if in, err := x.sees(seq); err != nil {
			return err
		} else if in {
			matches.add(h)
		}
	}
	return nil
}

// corpus is what full-text search knows about its chunks as a whole.
type corpus struct {
	chunks int
	words  int // in all chunks
}

// open opens the index, which is created with the first chunk.
func (x *Text) open() (corpus, error) {
	if x.index == nil {
		var chunks bool
		if err := x.value(&chunks, "SELECT EXISTS (SELECT 1 FROM chunks)"); err != nil || !chunks {
			return corpus{}, err
		}
		index, err := postings.Open(x.Query, "_chunk_text")
		if err != nil {
			return corpus{}, err
		}
		if err := x.readMembers(); err != nil {
			return corpus{}, err
		}
		x.index, x.lists = index, map[termKey]postings.List{}
	}
	return corpus{x.index.Rows, x.index.Words}, nil
}

// fewMembers is the maximum number of chunks of a source that are read into a list.
const fewMembers = 20_000

func (x *Text) readMembers() error {
	var count int
	if x.Source == 0 {
		return nil
	}
	if err := x.value(&count, "SELECT chunks FROM sources WHERE seq = ?", x.Source); err != nil || count > fewMembers {
		return err
	}
	x.members = make([]int64, 0, count)
	rows, err := x.Query("SELECT seq FROM chunks WHERE source_id = ?", x.SourceID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			return err
		}
		x.members = append(x.members, seq)
	}
	slices.Sort(x.members)
	return rows.Err()
}

// sees reports whether the search sees a chunk.
func (x *Text) sees(seq int64) (in bool, err error) {
	switch {
	case x.members != nil:
		_, in = slices.BinarySearch(x.members, seq)
		return in, nil
	case x.Source != 0:
		return in, x.value(&in, "SELECT source_id = ? FROM chunks WHERE seq = ?", x.SourceID, seq)
	case x.Mixed:
		return in, x.value(
			&in,
			"SELECT NOT EXISTS (SELECT 1 FROM _purge p WHERE p.source_id = c.source_id) FROM chunks c WHERE seq = ?",
			seq,
		)
	}
	return true, nil
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

// Limits on the rows read for one search, of which some ten million per second can
// be read, and on the words that may begin with a prefix.
const (
	maxRows     = 4_000_000
	maxPrefixed = 1000
)

// list returns the chunks that contain a term. Unless all is set, it is cut if
// there are many chunks and more than half of them contain the term.
func (x *Text) list(key termKey, all bool) (list postings.List, err error) {
	list, ok := x.lists[key]
	if ok && !(list.Cut && all) {
		return list, nil
	}
	limit := 0
	if !all && x.index.Rows > 2*fewChunks {
		limit = x.index.Rows/2 + 1
	}
	switch words := terms.Terms(key.text); {
	case len(words) == 0:
	case key.prefix:
		list, err = x.prefixed(words[0])
	case len(words) == 1:
		list, err = x.index.Term(words[0], false, limit)
	default:
		list, err = x.phrase(words)
	}
	x.lists[key] = list
	x.rows += len(list.Rows)
	return list, err
}

func (x *Text) prefixed(prefix string) (postings.List, error) {
	words, err := x.index.Terms(prefix, maxPrefixed)
	if err != nil {
		return postings.List{}, err
	}
	lists := make([]postings.List, len(words))
	for i, word := range words {
		if lists[i], err = x.index.Term(word, false, 0); err != nil {
			return postings.List{}, err
		}
	}
	return postings.Union(lists), nil
}

func (x *Text) phrase(words []string) (postings.List, error) {
	lists := make([]postings.List, len(words))
	for i, word := range words {
		var err error
		if lists[i], err = x.index.Term(word, true, maxRows/4); err != nil || len(lists[i].Rows) == 0 {
			return postings.List{}, err
		}
		x.rows += len(lists[i].Rows)
	}
	return postings.Phrase(lists), nil
}

// count returns how many chunks contain a term. For a term in more than half of many
// chunks, the count is cut off there.
func (x *Text) count(text string) (int, error) {
	l, err := x.list(termKey{text: text}, false)
	return len(l.Rows), err
}

// Scores runs a query whose rows are a seq and a number, and returns them as a
// map.
func Scores(
	run func(query string, args ...any) (*sqlite.Rows, error),
	query string,
	args ...any,
) (map[int64]float64, error) {
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

// hit is a chunk that matches.
type hit struct {
	seq          int64
	score, names float64
}

// compareHits sorts the better one first and, of equal ones, the older.
func compareHits(a, b hit) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.seq, b.seq))
}
