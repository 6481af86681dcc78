package vector

import (
	"maps"
	"satchel/store"
	"slices"
)

// candidate is a chunk that may become a result.
type candidate struct {
	store.FoundChunk // only Seq until the text is read
	cosine           float64
	hasCosine        bool    // the cosine is known
	scale            scale   // of the cosine
	words            float64 // part of the best possible bm25
	names            float64 // part of the query's names that few chunks contain
	related          float64 // similarity according to the lexicon
}

// level returns the cosine on the scale of all models.
func (c *candidate) level() float64 {
	return c.scale.level(c.cosine)
}

// sideLimit returns how many chunks each side, meaning and words, contributes.
func sideLimit(limit int) int { return max(2*limit, 50) }

// candidates combines what was found by meaning and by words. Each side also
// rates what the other found.
func candidates(
	knowledge *store.Knowledge,
	query Query,
	ranking ranking,
	vector []float32,
	near map[int64]float64,
	matching *store.Matches,
) ([]candidate, error) {
	var rest []int64
	for seq := range matching.Scores {
		if _, ok := near[seq]; !ok {
			rest = append(rest, seq)
		}
	}
	if err := knowledge.AddMatches(matching, slices.Collect(maps.Keys(near))); err != nil {
		return nil, err
	}
	cosines, err := knowledge.Cosines(vector, rest)
	if err != nil {
		return nil, err
	}
	n := sideLimit(query.Limit)
	if most := maxJoined * query.Limit; query.Mode != Hybrid || n < most {
		n = most
	}
	return readTexts(knowledge, pick(merge(near, cosines, matching, ranking.scale), query, ranking, n))
}

// merge lists every contributed chunk with everything known about it.
func merge(near, cosines map[int64]float64, matching *store.Matches, scale scale) []candidate {
	bySeq := map[int64]*candidate{}
	at := func(seq int64) *candidate {
		c, ok := bySeq[seq]
		if !ok {
			c = &candidate{FoundChunk: store.FoundChunk{Seq: seq}, scale: scale}
			bySeq[seq] = c
		}
		return c
	}
	for _, known := range []map[int64]float64{near, cosines} {
		for seq, cosine := range known {
			c := at(seq)
			c.cosine, c.hasCosine = cosine, true
		}
	}
	for seq, words := range matching.Scores {
		c := at(seq)
		c.words, c.names = words, matching.Names[seq]
	}
	list := make([]candidate, 0, len(bySeq))
	for _, c := range bySeq {
		list = append(list, *c)
	}
	return list
}

// pick keeps the best n candidates. Of the chunks without a vector it keeps those that
// are best by words, up to the limit, because each costs an embedding.
func pick(list []candidate, q Query, r ranking, n int) []candidate {
	r.order(list)
	kept := list[:0]
	var known, unknown int
	for _, c := range list {
		switch {
		case !c.hasCosine && unknown < q.Limit:
			unknown++
			kept = append(kept, c)
		case c.hasCosine && known < n:
			known++
			kept = append(kept, c)
		}
	}
	return kept
}

// readTexts reads the candidates' text. Chunks that the search may not see are
// dropped.
func readTexts(knowledge *store.Knowledge, list []candidate) ([]candidate, error) {
	seqs := make([]int64, len(list))
	bySeq := make(map[int64]*candidate, len(list))
	for i := range list {
		seqs[i] = list[i].Seq
		bySeq[list[i].Seq] = &list[i]
	}
	chunks, err := knowledge.Chunks(seqs)
	if err != nil {
		return nil, err
	}
	found := make([]candidate, len(chunks))
	for i, chunk := range chunks {
		found[i] = *bySeq[chunk.Seq]
		found[i].FoundChunk = chunk
	}
	return found, nil
}
