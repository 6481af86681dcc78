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
	model model,
	query Query,
	prepared question,
) (results modelResults, err error) {
	vectors, err := ix.embedFor(ctx, db, model, model.query(prepared.text))
	if err != nil {
		return results, fmt.Errorf("embed the query: %w", err)
	}
	r := ix.ranking(model, query)
	if r.scale, err = ix.scaleOf(ctx, model, vectors[0]); err != nil {
		return results, errors.Join(errNoVectors, err)
	}
	if r.local {
		if r.unrelated, err = ix.unrelatedScale(ctx, model, vectors[0]); err != nil {
			return results, errors.Join(errNoVectors, err)
		}
	}
	found, err := ix.shortlist(ctx, db, model, query, r, prepared, vectors[0])
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
