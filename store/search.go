package store

import (
	"errors"
	"math"

	"satchel/agent"
	"satchel/store/search"
	"satchel/store/search/terms"
	"satchel/store/sqlite"
)

// Knowledge is the part of an agent's chunks that a search sees, in one transaction:
// chunks of sources that exist, and vectors of one model.
type Knowledge struct {
	tx    *Tx
	model string
	text  search.Text // Mixed also when some vectors are of another model
	whole bool
}

// Knowledge opens the chunks for a search. model is the model whose vectors are
// searched. sourceID limits the search to one source, which is NOT_FOUND if it does
// not exist; if empty, all are searched.
func (tx *Tx) Knowledge(sourceID, model string) (*Knowledge, error) {
	knowledge := &Knowledge{
		tx:    tx,
		model: model,
		text: search.Text{
			Query:    tx.query,
			SourceID: sourceID,
			Memory:   &tx.db.chunks,
		},
	}
	if sourceID != "" {
		err := tx.value(&knowledge.text.Source, "SELECT seq FROM sources WHERE id = ?", sourceID)
		if errors.Is(err, sqlite.ErrNoRows) {
			return nil, agent.NotFound("source", sourceID)
		}
		return knowledge, err
	}
	return knowledge, tx.value(&knowledge.text.Mixed, `SELECT EXISTS (SELECT 1 FROM _purge) OR
		EXISTS (SELECT 1 FROM sources WHERE embedding_model NOT IN ('', ?))`, model)
}

// Whole makes Nearest scan every vector, as it does anyway if there are few. With
// many vectors that takes seconds; it is for measuring the recall of the index.
func (k *Knowledge) Whole() { k.whole = true }

// Words are what full-text search looks for, Matches what it finds.
type (
	Words     = search.Words
	Word      = search.Word
	Way       = search.Way
	Matches   = search.Matches
	Expansion = search.Expansion
)

// Expand adds to words the other forms in which chunks contain them; see
// search.Text.
func (k *Knowledge) Expand(w Words, e Expansion) (expanded Words, corrected map[string]string, err error) {
	return k.text.Expand(w, e)
}

// Matching returns the n chunks that rank highest for some words.
func (k *Knowledge) Matching(w Words, n int) (*Matches, error) {
	return k.text.Matching(w, n)
}

// AddMatches adds those of the given chunks that match, too.
func (k *Knowledge) AddMatches(m *Matches, seqs []int64) error {
	return k.text.Also(m, seqs)
}

// MaxNearest limits how many neighbours are found at once.
const MaxNearest = 4096

// minIndexedVectors is the number of vectors from which on the index in memory is searched
// instead of the vectors themselves.
const minIndexedVectors = fullSegment

// Nearest returns, by seq, the n chunks whose vectors are most similar to vector,
// each with its cosine similarity. Among few chunks the result is exact, among many
// approximate.
func (k *Knowledge) Nearest(vector []float32, n int) (map[int64]float64, error) {
	heads, err := k.tx.segmentHeads(len(vector), 1, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	if search.CountRecords(heads) >= minIndexedVectors && !k.whole {
		return k.nearestByIndex(heads, vector, n)
	}
	return k.nearestByVectors(vector, n)
}

func (k *Knowledge) nearestByVectors(vector []float32, count int) (map[int64]float64, error) {
	if has, err := k.tx.hasVectors(len(vector)); err != nil || !has {
		return map[int64]float64{}, err
	}
	query := "SELECT rowid, coalesce(1 - distance, 0) FROM " + vectorsOf(len(vector)) +
		" WHERE embedding MATCH ? AND k = ?"
	args := []any{packVector(vector), min(count, MaxNearest)}
	switch {
	case k.text.Source != 0:
		query += " AND source IN (SELECT seq FROM sources WHERE seq = ? AND embedding_model = ?)"
		args = append(args, k.text.Source, k.model)
	case k.text.Mixed:
		query += " AND source IN (SELECT seq FROM sources WHERE embedding_model = ?)"
		args = append(args, k.model)
	}
	return search.Scores(k.tx.query, query, args...)
}

// Cosines returns the exact cosine similarities between vector and those of
// the given chunks that have a vector.
func (k *Knowledge) Cosines(vector []float32, seqs []int64) (map[int64]float64, error) {
	if has, err := k.tx.hasVectors(len(vector)); err != nil || !has || len(seqs) == 0 {
		return map[int64]float64{}, err
	}
	return k.tx.cosines(vector, `SELECT p.rowid, p.chunk_id, p.chunk_offset
		FROM json_each(?) j CROSS JOIN chunks c ON c.seq = j.value CROSS JOIN sources s ON s.id = c.source_id
		CROSS JOIN `+placesIn(len(vector))+` p ON p.rowid = c.seq
		WHERE c.embedded = 1 AND s.embedding_model = ?`, search.ListJSON(seqs), k.model)
}

// FoundChunk is a chunk found by a search.
type FoundChunk struct {
	agent.Chunk
	Seq      int64
	SourceID string
}

// Chunks returns the given chunks in the order of seqs, without those of deleted
// sources.
func (k *Knowledge) Chunks(seqs []int64) ([]FoundChunk, error) {
	return all(k.tx, func(rows *sqlite.Rows) (f FoundChunk, err error) {
		var source string
		place := placeOf(&f.Chunk)
		if err = rows.Scan(append(
			[]any{&f.Seq, &f.ID, &f.SourceID, &f.Position, &f.Content, &source},
			place.fields()...,
		)...); err == nil {
			place.set(source)
		}
		return f, err
	}, `SELECT c.seq, c.id, c.source_id, c.position, c.content, s.name, `+placeColumns+`
		FROM json_each(?) j CROSS JOIN chunks c ON c.seq = j.value CROSS JOIN sources s ON s.id = c.source_id
		ORDER BY j.key`, search.ListJSON(seqs))
}

// The triggers of chunks hand their text to full text through this function.
var separateWords = sqlite.NewFunction("separate_words", terms.Separate)
