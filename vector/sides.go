package vector

import (
	"context"
	"errors"
	"fmt"

	"satchel/store"
)

// noModel is the notice of a search by vectors of earlier models.
const noModel = "the agent's embedding model cannot be used: these results are by words and by " +
	"vectors of an earlier model"

// modelResults are the results of one model.
type modelResults struct {
	vector  []float32 // of the query
	ranking ranking
	found   []candidate
}

// searchModel searches by the vectors of a model, and by words.
func (ix *Index) searchModel(
	ctx context.Context,
	db *store.DB,
	m model,
	q Query,
	prepared question,
) (s modelResults, err error) {
	vectors, err := ix.embedFor(ctx, db, m, m.query(prepared.text))
	if err != nil {
		return s, fmt.Errorf("embed the query: %w", err)
	}
	r := ix.ranking(m, q)
	if r.scale, err = ix.scaleOf(ctx, m, vectors[0]); err != nil {
		return s, errors.Join(errNoVectors, err)
	}
	if r.local {
		if r.unrelated, err = ix.unrelatedScale(ctx, m, vectors[0]); err != nil {
			return s, errors.Join(errNoVectors, err)
		}
	}
	found, err := ix.shortlist(ctx, db, m, q, r, prepared, vectors[0])
	return modelResults{vectors[0], r, found}, err
}

// add adds what was found with an earlier model. If both found a chunk, the candidate
// with a vector is kept.
func (s *modelResults) add(more modelResults) {
	if s.vector == nil {
		*s = more
		return
	}
	at := make(map[int64]int, len(s.found))
	for i, c := range s.found {
		at[c.Seq] = i
	}
	for _, c := range more.found {
		i, both := at[c.Seq]
		switch {
		case !both:
			s.found = append(s.found, c)
		case c.hasCosine && !s.found[i].hasCosine:
			s.found[i] = c
		}
	}
}
