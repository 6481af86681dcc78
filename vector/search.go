package vector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"satchel/agent"
	"satchel/store"
)

// Mode says what the order of results comes from.
type Mode string

// The modes of a search.
const (
	Hybrid  Mode = "hybrid"  // by meaning and words together
	Vector  Mode = "vector"  // by meaning alone
	Keyword Mode = "keyword" // by words alone
)

// The bounds of a search.
const (
	DefaultLimit = 10
	MaxLimit     = 50
	MaxQuery     = 2000 // characters
)

// Query is a question to an agent's knowledge.
type Query struct {
	Text     string  // 1 to MaxQuery characters
	Limit    int     // 0: DefaultLimit; others are brought within 1 to MaxLimit
	SourceID string  // only chunks of this source; empty: of all
	MinScore float64 // 0 to 1: only results that score as much
	Mode     Mode    // empty: Hybrid

	whole bool // see store.Knowledge.Whole
}

// Result is a chunk that a search found, or several that continue each other.
type Result struct {
	ID       string         `json:"id" doc:"The id of the chunk, of several that of the best." example:"chunk-06f1q2s3t4v5a6b7c8d9"`
	SourceID string         `json:"source_id" example:"source-06f1q2s3t4v5a6b7c8d9"`
	Content  string         `json:"content" doc:"The text of the chunk, or of up to three that overlap, each part of it once."`
	Score    float64        `json:"score" doc:"Cosine similarity of the best chunk to the query, 0 to 1, in every mode." example:"0.734512"`
	Metadata ResultMetadata `json:"metadata"`
}

// ResultMetadata tells where a result comes from.
type ResultMetadata struct {
	agent.ChunkMetadata          // the best chunk's
	ChunkIDs            []string `json:"chunk_ids,omitempty" doc:"The ids of all chunks in their order, when the result is made of several."`
}

// check brings a query into its bounds.
func (q Query) check() (Query, error) {
	q.Text = strings.TrimSpace(strings.ToValidUTF8(q.Text, " "))
	q.Mode = cmp.Or(q.Mode, Hybrid)
	q.Limit = min(max(cmp.Or(q.Limit, DefaultLimit), 1), MaxLimit)
	var is agent.Issues
	is.Check(q.Text != "", "query", "is required")
	is.Check(utf8.RuneCountInString(q.Text) <= MaxQuery, "query", fmt.Sprintf("must have at most %d characters", MaxQuery))
	is.Check(q.MinScore >= 0 && q.MinScore <= 1, "min_score", "must be between 0 and 1")
	is.Check(q.Mode == Hybrid || q.Mode == Vector || q.Mode == Keyword, "mode", "must be hybrid, vector or keyword")
	return q, is.Err()
}

// Search finds the chunks of an agent that answer a query best. Errors are
// validation errors, NOT_FOUND for a source that is not there, and those of
// the store and of the embedder.
//
// Hybrid results are ordered by the cosine similarity of their embeddings plus
// the part that they reach of the best bm25 possible for the query's words,
// where a small part counts for less still; a fusion of ranks would drown a
// good paraphrase in weak matches of words. With the model inside the binary,
// what the lexicon knows of single words is added for the best of them. What
// this is worth is measured by the command eval, beside this package.
//
// The score is the cosine similarity whatever the order. For a chunk whose
// embedding has not been stored yet it is worked out on the spot, for no more
// chunks than the limit; until then a chunk is found by its words only.
//
// A provider of embeddings that does not answer leaves a search by words alone,
// without scores and whatever MinScore says; one by meaning alone fails then,
// with UPSTREAM_ERROR.
func (ix *Index) Search(ctx context.Context, db *store.DB, q Query) ([]Result, error) {
	a, err := ix.Ask(ctx, db, q)
	return a.Results, err
}

// Answer is what came of a search.
type Answer struct {
	Results []Result
	Mode    Mode   // by which the results were found
	Notice  string // what a client should know about them; empty: nothing
}

// noMeaning is the notice of a search that had to do without meaning.
const noMeaning = "the embedding provider does not answer: these results are by words alone and have no score"

// Ask is Search with what is to be told about the results.
func (ix *Index) Ask(ctx context.Context, db *store.DB, q Query) (Answer, error) {
	q, err := q.check()
	if err != nil {
		return Answer{}, err
	}
	m, err := ix.model(ctx, db)
	if err != nil {
		return Answer{}, err
	}
	answer, err := ix.find(ctx, db, m, q)
	if err == nil || m.to.Local() || q.Mode == Vector || ctx.Err() != nil || !errors.Is(err, errNoVectors) {
		return answer, err
	}
	ix.log.Warn("a search did without meaning", "agent", db.ID(), "error", err)
	q.Mode, q.MinScore = Keyword, 0
	found, err := ix.shortlist(ctx, db, m, q, nil)
	return Answer{results(found, q), Keyword, noMeaning}, err
}

// errNoVectors says that texts of a search could not be embedded.
var errNoVectors = errors.New("not embedded")

// embedFor embeds texts of a search.
func (ix *Index) embedFor(ctx context.Context, db *store.DB, m model, texts ...string) ([][]float32, error) {
	vectors, err := ix.embedNow(ctx, db, m, texts)
	if err != nil && ctx.Err() == nil {
		return nil, errors.Join(errNoVectors, err)
	}
	return vectors, err
}

func (ix *Index) find(ctx context.Context, db *store.DB, m model, q Query) (Answer, error) {
	vectors, err := ix.embedFor(ctx, db, m, asQuestion(embeddable("", q.Text)))
	if err != nil {
		return Answer{}, fmt.Errorf("embed the query: %w", err)
	}
	found, err := ix.shortlist(ctx, db, m, q, vectors[0])
	if err != nil {
		return Answer{}, err
	}
	if err := ix.relate(found, m, q); err != nil {
		return Answer{}, err
	}
	found = pick(found, q, maxJoined*q.Limit)
	if err := ix.complete(ctx, db, m, found, vectors[0]); err != nil {
		return Answer{}, err
	}
	return Answer{Results: results(found, q), Mode: q.Mode}, nil
}

// shortlist reads the chunks that can be among the results: the best by what
// the file knows, and others that lack a vector. Meaning and words are looked
// for at the same time, each in a transaction of its own; what is gone by the
// end drops out.
func (ix *Index) shortlist(ctx context.Context, db *store.DB, m model, q Query, vector []float32) ([]candidate, error) {
	n := sideOf(q.Limit)
	var near map[int64]float64
	var failed error
	var aside sync.WaitGroup
	if q.Mode != Keyword {
		aside.Go(func() {
			near, failed = readKnowledge(ctx, db, m, q, func(k *store.Knowledge) (map[int64]float64, error) { return k.Nearest(vector, n) })
		})
	}
	matching, err := &store.Matches{}, error(nil)
	if q.Mode != Vector {
		matching, err = readKnowledge(ctx, db, m, q, func(k *store.Knowledge) (*store.Matches, error) { return k.Matching(wordsOf(q.Text), n) })
	}
	aside.Wait()
	if err := errors.Join(failed, err); err != nil {
		return nil, err
	}
	return readKnowledge(ctx, db, m, q, func(k *store.Knowledge) ([]candidate, error) { return candidates(k, q, vector, near, matching) })
}

// readKnowledge opens the chunks for one part of a search.
func readKnowledge[T any](ctx context.Context, db *store.DB, m model, q Query, fn func(*store.Knowledge) (T, error)) (T, error) {
	return store.Read(ctx, db, func(tx *store.Tx) (none T, err error) {
		k, err := tx.Knowledge(q.SourceID, m.name)
		if err != nil {
			return none, err
		}
		if q.whole {
			k.Whole()
		}
		return fn(k)
	})
}

// asQuestion ends a query with a question mark unless it ends as a sentence does.
// Few people type one, but models learned from sentences that are complete, and
// with it they place the query nearer to its answers.
func asQuestion(query string) string {
	if strings.ContainsAny(query[max(len(query)-1, 0):], ".!?") {
		return query
	}
	return query + "?"
}

// candidate is a chunk that may become a result.
type candidate struct {
	store.FoundChunk // only the Seq until the text is read
	cosine           float64
	known            bool    // the cosine is there
	words            float64 // part of the best possible bm25
	related          float64 // likeness by the lexicon
}

// sideOf is how many chunks each side, meaning and words, puts forward.
func sideOf(limit int) int { return max(2*limit, 50) }

// candidates brings together what was found by meaning and by words: each is
// asked about what the other found.
func candidates(k *store.Knowledge, q Query, vector []float32, near map[int64]float64, matching *store.Matches) ([]candidate, error) {
	var rest []int64
	for seq := range matching.Scores {
		if _, ok := near[seq]; !ok {
			rest = append(rest, seq)
		}
	}
	if err := k.Also(matching, slices.Collect(maps.Keys(near))); err != nil {
		return nil, err
	}
	cosines, err := k.Cosines(vector, rest)
	if err != nil {
		return nil, err
	}
	n := sideOf(q.Limit)
	if most := maxJoined * q.Limit; q.Mode != Hybrid || n < most {
		n = most
	}
	return read(k, pick(merge(near, cosines, matching.Scores), q, n))
}

// merge lists every chunk that was put forward with all that is known of it.
func merge(near, cosines, matching map[int64]float64) []candidate {
	bySeq := map[int64]*candidate{}
	at := func(seq int64) *candidate {
		c, ok := bySeq[seq]
		if !ok {
			c = &candidate{FoundChunk: store.FoundChunk{Seq: seq}}
			bySeq[seq] = c
		}
		return c
	}
	for _, known := range []map[int64]float64{near, cosines} {
		for seq, cosine := range known {
			c := at(seq)
			c.cosine, c.known = cosine, true
		}
	}
	for seq, words := range matching {
		at(seq).words = words
	}
	list := make([]candidate, 0, len(bySeq))
	for _, c := range bySeq {
		list = append(list, *c)
	}
	return list
}

// pick keeps what can still become a result or a part of one, the best n. Of
// chunks without a vector those with the best words are kept, as many as the
// limit: each costs an embedding.
func pick(list []candidate, q Query, n int) []candidate {
	order(list, q.Mode)
	kept := list[:0]
	var known, unknown int
	for _, c := range list {
		switch {
		case !c.known && unknown < q.Limit:
			unknown++
			kept = append(kept, c)
		case c.known && known < n && c.score() >= q.MinScore:
			known++
			kept = append(kept, c)
		}
	}
	return kept
}

// read fetches the candidates' text; chunks that search may not see drop out.
func read(k *store.Knowledge, list []candidate) ([]candidate, error) {
	seqs := make([]int64, len(list))
	bySeq := make(map[int64]*candidate, len(list))
	for i := range list {
		seqs[i] = list[i].Seq
		bySeq[list[i].Seq] = &list[i]
	}
	chunks, err := k.Chunks(seqs)
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

// complete works out the cosines that are missing.
func (ix *Index) complete(ctx context.Context, db *store.DB, m model, list []candidate, vector []float32) error {
	var missing []*candidate
	var texts []string
	for i := range list {
		if c := &list[i]; !c.known {
			missing = append(missing, c)
			texts = append(texts, embeddable(c.Metadata.Section, c.Content))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	vectors, err := ix.embedFor(ctx, db, m, texts...)
	if err != nil {
		return fmt.Errorf("embed what was found: %w", err)
	}
	if len(vectors[0]) != len(vector) {
		return fmt.Errorf("vectors of %d and %d numbers of one model", len(vector), len(vectors[0]))
	}
	for i, c := range missing {
		c.cosine, c.known = cosine(vector, vectors[i]), true
	}
	return nil
}

// results makes the answer of candidates whose cosines are all known.
func results(list []candidate, q Query) []Result {
	order(list, q.Mode)
	var found []passage
	for _, c := range list {
		if c.score() < q.MinScore {
			continue
		}
		if found = addPassage(found, c); len(found) > q.Limit {
			found = found[:q.Limit]
			break
		}
	}
	out := make([]Result, len(found))
	for i, p := range found {
		out[i] = p.result()
	}
	return out
}

// Embed returns the vectors of texts' meanings as the agent's model gives them,
// and the model's name. Errors are those of the model's provider.
func (ix *Index) Embed(ctx context.Context, db *store.DB, texts ...string) ([][]float32, string, error) {
	m, err := ix.model(ctx, db)
	if err != nil {
		return nil, "", err
	}
	plain := make([]string, len(texts))
	for i, text := range texts {
		plain[i] = embeddable("", text)
	}
	vectors, err := ix.embedNow(ctx, db, m, plain)
	return vectors, m.name, err
}
