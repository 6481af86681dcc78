package vector

import (
	"cmp"
	"context"
	"satchel/agent/work"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// How many results an installed reranker reads, and for how long.
const (
	rerankResults = 20
	rerankTime    = 3 * time.Second
)

// Notices of searches with rerank.
const (
	noReranker   = "no reranker is installed on this server: the results are as without one"
	rerankerFail = "the reranker could not be used: the results are as without it"
	rerankerSlow = "the reranker had no time for all results: those that it did not read come last"
)

// widened returns the query whose results are reranked.
func (q Query) widened() Query {
	if q.Rerank {
		q.Limit, q.MinScore = max(q.Limit, rerankResults), 0
	}
	return q
}

// rerank sorts results by the estimates of an installed reranker, which become
// their scores. Without a reranker, or if it fails, the order stays and the
// notice gives the reason.
func (ix *Index) rerank(ctx context.Context, q Query, a *Answer) {
	name := ix.files.Reranker()
	switch {
	case name == "":
		a.note(noReranker)
	case len(a.Results) > 0:
		ix.rerankBy(ctx, name, q, a)
	}
	a.Results = slices.DeleteFunc(a.Results, func(r Result) bool {
		return r.Score < q.MinScore
	})
	a.Results = a.Results[:min(len(a.Results), q.Limit)]
}

func (ix *Index) rerankBy(ctx context.Context, name string, query Query, answer *Answer) {
	model, err := ix.files.Open(name)
	if err != nil {
		ix.log.Warn("open reranker", "model", name, "error", err)
		answer.note(rerankerFail)
		return
	}
	limited, cancel := context.WithTimeout(ctx, rerankTime)
	defer cancel()
	scores, err := estimates(
		limited,
		answer.Results[:min(len(answer.Results), rerankResults)],
		func(r Result) (float64, error) {
			return model.Score(limited, query.Text, textToEmbed(r.Metadata.Section, r.Content))
		},
	)
	switch {
	case len(scores) == 0:
		if err != nil && ctx.Err() == nil {
			ix.log.Warn("rerank results", "model", name, "error", err)
		}
		answer.note(rerankerFail)
		return
	case len(scores) < min(len(answer.Results), rerankResults):
		answer.note(rerankerSlow)
	}
	answer.Reranked = true
	reorder(answer.Results, scores)
}

// estimates returns the scores of the first results that were computed without an
// error, by their place.
func estimates(ctx context.Context, list []Result, score func(Result) (float64, error)) (map[int]float64, error) {
	scores := make(map[int]float64, len(list))
	var failed error
	var mu sync.Mutex // guards scores and failed
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(len(list), work.Processors) {
		group.Go(func() {
			for i := int(next.Add(1) - 1); i < len(list) && ctx.Err() == nil; i = int(next.Add(1) - 1) {
				s, err := score(list[i])
				mu.Lock()
				if err == nil {
					scores[i] = s
				} else {
					failed = cmp.Or(failed, err)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return scores, failed
}

// reorder sorts the results that have a score by it. The others follow in their
// order, with scores that are not above.
func reorder(list []Result, scores map[int]float64) {
	least := 1.0
	for _, s := range scores {
		least = min(least, millionths(s))
	}
	read := make(map[string]bool, len(scores))
	for i := range list {
		if s, ok := scores[i]; ok {
			list[i].Score, read[list[i].ID] = millionths(s), true
		} else {
			list[i].Score = min(list[i].Score, least)
		}
	}
	slices.SortStableFunc(list, func(a, b Result) int {
		if read[a.ID] != read[b.ID] {
			if read[a.ID] {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.Score, a.Score)
	})
}
