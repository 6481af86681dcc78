package store

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"

	"satchel/agent"
)

// Knowledge is what a search may see of an agent's chunks, in one transaction:
// those of sources that exist, and vectors of one model.
type Knowledge struct {
	tx       *Tx
	source   int64 // only chunks of the source with this seq; 0: of all
	sourceID string
	model    string
	mixed    bool // some vectors are of deleted sources or of another model
}

// Knowledge opens the chunks for a search. model names the model whose vectors
// count. sourceID narrows the search to one source, which is NOT_FOUND when it
// is not there; empty, all are searched.
func (tx *Tx) Knowledge(sourceID, model string) (*Knowledge, error) {
	k := &Knowledge{tx: tx, sourceID: sourceID, model: model}
	if sourceID != "" {
		err := tx.value(&k.source, "SELECT seq FROM sources WHERE id = ?", sourceID)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, agent.NotFound("source", sourceID)
		}
		return k, err
	}
	return k, tx.value(&k.mixed, `SELECT EXISTS (SELECT 1 FROM _purge) OR
		EXISTS (SELECT 1 FROM sources WHERE embedding_model NOT IN ('', ?))`, model)
}

// MaxNearest is the most neighbours that are found at once.
const MaxNearest = 4096

// leastCoded is how many vectors a file has before the index in memory is
// searched in place of the vectors themselves.
const leastCoded = fullSegment

// Nearest returns the n chunks whose vectors are most like vector, by their
// seq, each with its cosine similarity. Of few chunks they are exactly the
// nearest, of many nearly so.
func (k *Knowledge) Nearest(vector []float32, n int) (map[int64]float64, error) {
	heads, err := k.tx.segmentHeads(len(vector), 1, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	if countRecords(heads) >= leastCoded {
		return k.nearestByCodes(heads, vector, n)
	}
	return k.nearestByVectors(vector, n)
}

func (k *Knowledge) nearestByVectors(vector []float32, n int) (map[int64]float64, error) {
	if has, err := k.tx.hasVectors(len(vector)); err != nil || !has {
		return map[int64]float64{}, err
	}
	query := "SELECT rowid, coalesce(1 - distance, 0) FROM " + vectorsOf(len(vector)) + " WHERE embedding MATCH ? AND k = ?"
	args := []any{packVector(vector), min(n, MaxNearest)}
	switch {
	case k.source != 0:
		query += " AND source IN (SELECT seq FROM sources WHERE seq = ? AND embedding_model = ?)"
		args = append(args, k.source, k.model)
	case k.mixed:
		query += " AND source IN (SELECT seq FROM sources WHERE embedding_model = ?)"
		args = append(args, k.model)
	}
	return k.scores(query, args...)
}

// Cosines returns the exact cosine similarities between vector and those of
// the given chunks that have a vector.
func (k *Knowledge) Cosines(vector []float32, seqs []int64) (map[int64]float64, error) {
	if has, err := k.tx.hasVectors(len(vector)); err != nil || !has || len(seqs) == 0 {
		return map[int64]float64{}, err
	}
	return k.scores(`SELECT v.rowid, coalesce(1 - vec_distance_cosine(v.embedding, ?), 0)
		FROM json_each(?) j CROSS JOIN chunks c ON c.seq = j.value CROSS JOIN sources s ON s.id = c.source_id
		CROSS JOIN `+vectorsOf(len(vector))+` v ON v.rowid = c.seq
		WHERE c.embedded = 1 AND s.embedding_model = ?`, packVector(vector), listJSON(seqs), k.model)
}

// Words are what full text looks for. They stand for themselves: nothing in
// them is an operator.
type Words struct {
	Single  []string // words to find; any of them makes a match
	Phrases []string // words in a row, or one, which count in addition where they occur
}

// Matching returns, by seq, chunks that hold some of the words: the n that
// rank highest by bm25, and beside them those of also that match. The score is
// the part that a chunk reaches of the best bm25 possible for these words, 0
// to 1: a chunk that repeats each of them without end would have 1.
//
// Words that are in over half of many chunks are passed over, and only the
// rarest of many words are looked for.
func (k *Knowledge) Matching(w Words, n int, also []int64) (map[int64]float64, error) {
	terms, best, err := k.weigh(w)
	if err != nil || len(terms) == 0 {
		return map[int64]float64{}, err
	}
	match := make([]string, len(terms))
	for i, t := range terms {
		match[i] = quoteTerm(t.text)
	}
	scope, args := "+rowid NOT IN (SELECT seq FROM chunks WHERE source_id IN (SELECT source_id FROM _purge))", []any{}
	if k.source != 0 {
		scope, args = "+rowid IN (SELECT seq FROM chunks WHERE source_id = ?)", []any{k.sourceID}
	}
	// FTS5 works out bm25 for every match anyway, so those of also come first
	// in one pass over them.
	found, err := k.scores(`SELECT rowid, -bm25(_chunk_text) AS score FROM _chunk_text WHERE _chunk_text MATCH ? AND `+scope+`
		ORDER BY rowid IN (SELECT value FROM json_each(?)) DESC, score DESC LIMIT ?`,
		slices.Concat([]any{strings.Join(match, " OR ")}, args, []any{listJSON(also), n + len(also)})...)
	for seq, score := range found {
		found[seq] = min(score/best, 1)
	}
	return found, err
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
	chunks int
	idf    float64
}

// weigh picks the terms to look for and returns the best possible bm25 for the
// query: the sum of idf·(k1+1), with FTS5's own idf and k1 = 1.2, see
// https://www.sqlite.org/fts5.html#the_bm25_function. A word that is in no
// chunk counts too, for no chunk answers that part of the query, unless some
// hold it as a part of a phrase that is written in another way.
func (k *Knowledge) weigh(w Words) (terms []term, best float64, err error) {
	var total int
	if err := k.tx.value(&total, "SELECT count(*) FROM chunks"); err != nil {
		return nil, 0, err
	}
	single := w.Single[:min(len(w.Single), maxTerms)]
	phrases := w.Phrases[:min(len(w.Phrases), maxTerms-len(single))]
	var missing []term
	for i, text := range slices.Concat(single, phrases) {
		if len(text) > maxTermBytes {
			continue
		}
		t := term{text: text}
		// A count by MATCH goes through FTS5's own tokenizer and stemmer.
		if err := k.tx.value(&t.chunks, "SELECT count(*) FROM _chunk_text WHERE _chunk_text MATCH ?", quoteTerm(text)); err != nil {
			return nil, 0, err
		}
		t.idf = idf(total, t.chunks)
		switch {
		case t.chunks > 0:
			terms = append(terms, t)
		case i < len(single):
			missing = append(missing, t)
		}
	}
	best = unanswered(missing, terms, phrases)
	terms = telling(terms)
	for _, t := range terms {
		best += t.idf
	}
	const k1 = 1.2
	return terms, best * (k1 + 1), nil
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

// scores reads rows of a seq and a number.
func (k *Knowledge) scores(query string, args ...any) (map[int64]float64, error) {
	rows, err := k.tx.query(query, args...)
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

// FoundChunk is a chunk as a search finds it.
type FoundChunk struct {
	agent.Chunk
	Seq      int64
	SourceID string
}

// Chunks returns the given chunks, in the order of seqs; of deleted sources
// there are none.
func (k *Knowledge) Chunks(seqs []int64) ([]FoundChunk, error) {
	return all(k.tx, func(rows *sql.Rows) (f FoundChunk, err error) {
		m := &f.Metadata
		return f, rows.Scan(&f.Seq, &f.ID, &f.SourceID, &f.Position, &f.Content, &m.SourceName, &m.Page, &m.Section, &m.URL)
	}, `SELECT c.seq, c.id, c.source_id, c.position, c.content, s.name, c.page, c.section, c.url
		FROM json_each(?) j CROSS JOIN chunks c ON c.seq = j.value CROSS JOIN sources s ON s.id = c.source_id
		ORDER BY j.key`, listJSON(seqs))
}

// listJSON lets a statement take a list as one parameter.
func listJSON(seqs []int64) string {
	if len(seqs) == 0 {
		return "[]"
	}
	list, _ := json.Marshal(seqs) // a list of integers cannot fail
	return string(list)
}
