package vector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"satchel/agent"
	"satchel/store"
	"satchel/vector/lexicon"
)

// Mode is the basis for the order of results.
type Mode string

// The modes of a search.
const (
	Hybrid  Mode = "hybrid"  // by meaning and words
	Vector  Mode = "vector"  // by meaning only
	Keyword Mode = "keyword" // by words only
)

// Limits of a search.
const (
	DefaultLimit = 10
	MaxLimit     = 50
	MaxQuery     = 2000 // characters
)

// Query is a search in an agent's knowledge.
type Query struct {
	Text     string  // 1 to MaxQuery characters
	Limit    int     // 0: DefaultLimit; other values are limited to 1 to MaxLimit
	SourceID string  // only chunks of this source; empty: all sources
	MinScore float64 // 0 to 1: only results with at least this score
	Mode     Mode    // empty: Hybrid
	Rerank   bool    // an installed reranker reads the first results

	whole bool // see store.Knowledge.Whole
}

// Result is a chunk found by a search, or several consecutive chunks.
type Result struct {
	ID       string  `json:"id" doc:"The id of the chunk, or of the best of several." example:"chunk-06f1q2s3t4v5a6b7c8d9"`
	SourceID string  `json:"source_id" example:"source-06f1q2s3t4v5a6b7c8d9"`
	Content  string  `json:"content" doc:"The text of the chunk, or of up to three overlapping chunks without repetition."`
	Score    float64 `json:"score" doc:"Estimated probability that the result answers the query, 0 to 1. Results come in its order." example:"0.734512"`
	// The cosine alone means little: its level depends on the model and the
	// language.
	Similarity float64        `json:"similarity" doc:"Cosine similarity of the best chunk to the query, 0 to 1; 0 if unknown." example:"0.612043"`
	Metadata   ResultMetadata `json:"metadata"`

	Matches      [][]int `json:"matches" doc:"Positions of the query's words in content, in any form: from and to, in UTF-16 code units." example:"[[11,17]]"`
	BestSentence []int   `json:"best_sentence,omitempty" doc:"Position of the sentence in content that answers the query best: from and to, in UTF-16 code units." example:"[0,42]"`
}

// ResultMetadata is the origin of a result.
type ResultMetadata struct {
	agent.ChunkMetadata          // of the best chunk
	ChunkIDs            []string `json:"chunk_ids,omitempty" doc:"The ids of all chunks in order, if the result consists of several."`
}

// check validates a query and applies its limits.
func (q Query) check() (Query, error) {
	q.Text = strings.TrimSpace(strings.ToValidUTF8(q.Text, " "))
	if len(strings.Fields(q.Text)) > 2 && strings.ToUpper(q.Text) == q.Text { // capitals say nothing there
		q.Text = strings.ToLower(q.Text)
	}
	q.Mode = cmp.Or(q.Mode, Hybrid)
	q.Limit = min(max(cmp.Or(q.Limit, DefaultLimit), 1), MaxLimit)
	var is agent.Issues
	is.Check(q.Text != "", "query", "is required")
	is.Check(
		utf8.RuneCountInString(q.Text) <= MaxQuery,
		"query",
		fmt.Sprintf("must have at most %d characters", MaxQuery),
	)
	is.Check(q.MinScore >= 0 && q.MinScore <= 1, "min_score", "must be between 0 and 1")
	is.Check(q.Mode == Hybrid || q.Mode == Vector || q.Mode == Keyword, "mode", "must be hybrid, vector or keyword")
	return q, is.Err()
}

// Search returns the best chunks of an agent for a query. Errors are validation
// errors, NOT_FOUND for an unknown source, and those of the store and of the
// embedder.
//
// Hybrid results are ordered by the cosine similarity of their embeddings plus the part
// they reach of the best possible bm25 for the query's words, where small parts are
// weighted down further; rank fusion would let weak word matches drown a good
// paraphrase. With the built-in model, the lexicon's word similarities are added for
// the best results. The command in vector/lab/quality measures the effect.
//
// The score estimates the probability that a result answers the query. Chunks whose
// embedding is not stored yet are found by words only; for up to Limit of them, the
// embedding is computed during the search.
//
// If a provider of embeddings does not respond, the search uses words only,
// regardless of MinScore; a search by meaning only fails with UPSTREAM_ERROR.
func (ix *Index) Search(ctx context.Context, db *store.DB, q Query) ([]Result, error) {
	a, err := ix.Ask(ctx, db, q)
	return a.Results, err
}

// Answer is the outcome of a search.
type Answer struct {
	Results []Result
	Mode    Mode   // by which the results were found
	Notice  string // what clients should know about the results; empty: nothing

	Reranked bool // the scores are those of a reranker
}

// noticeUnavailable is the notice of a hybrid search that could only use words.
const noticeUnavailable = "the embedding provider does not respond: these results are by words only"

// noticeNotInstalled is its notice if the model is an installed one.
const noticeNotInstalled = "the agent's embedding model is not installed or cannot be used: " +
	"these results are by words only"

// note adds to the notice.
func (a *Answer) note(text string) {
	if a.Notice != "" {
		text = a.Notice + "; " + text
	}
	a.Notice = text
}

// Ask is Search with a notice about the results.
func (ix *Index) Ask(ctx context.Context, db *store.DB, q Query) (Answer, error) {
	q, err := q.check()
	if err != nil {
		return Answer{}, err
	}
	a, err := ix.answer(ctx, db, q.widened())
	if err == nil && q.Rerank {
		ix.rerank(ctx, q, &a)
		err = ctx.Err()
	}
	return a, err
}

// answer searches, by words only if the query cannot be embedded.
func (ix *Index) answer(ctx context.Context, db *store.DB, query Query) (Answer, error) {
	model, err := ix.model(ctx, db)
	if err != nil {
		return Answer{}, err
	}
	found, err := ix.find(ctx, db, model, query)
	if err == nil ||
		model.to.Local() ||
		query.Mode == Vector ||
		ctx.Err() != nil ||
		!errors.Is(err, errNoVectors) {
		return found, err
	}
	ix.log.Warn("search by words only", "agent", db.ID(), "error", err)
	query.Mode, query.MinScore = Keyword, 0
	prepared, err := ix.prepare(ctx, db, model, query)
	if err != nil {
		return Answer{}, err
	}
	r := ix.ranking(model, query)
	list, err := ix.shortlist(ctx, db, model, query, r, prepared, nil)
	a := Answer{
		Results: results(list, query, r),
		Mode:    Keyword,
		Notice:  noticeUnavailable,
	}
	if model.to.File() {
		a.Notice = noticeNotInstalled
	}
	prepared.markMatches(query.Text, a.Results)
	return a, err
}

// errNoVectors means that texts of a search could not be embedded.
var errNoVectors = errors.New("not embedded")

// embedFor embeds texts for a search.
func (ix *Index) embedFor(ctx context.Context, db *store.DB, m model, texts ...string) ([][]float32, error) {
	vectors, err := ix.embedForCaller(ctx, db, m, texts)
	if err != nil && ctx.Err() == nil {
		return nil, errors.Join(errNoVectors, err)
	}
	return vectors, err
}

// find searches by vectors, of the agent's model and of earlier ones. If the
// agent's model fails, those of earlier ones answer.
func (ix *Index) find(ctx context.Context, db *store.DB, model model, query Query) (Answer, error) {
	prepared, err := ix.prepare(ctx, db, model, query)
	if err != nil {
		return Answer{}, err
	}
	modelResults, failed := ix.searchModel(ctx, db, model, query, prepared)
	if failed != nil && !errors.Is(failed, errNoVectors) {
		return Answer{}, failed
	}
	others, err := ix.earlierModels(ctx, db, model, query)
	if err != nil {
		return Answer{}, err
	}
	for _, other := range others {
		more, err := ix.searchModel(ctx, db, other, query, prepared)
		if err != nil {
			return Answer{}, err
		}
		modelResults.add(more)
	}
	if modelResults.vector == nil {
		return Answer{}, failed
	}
	if err := addRelatedness(modelResults.found, modelResults.ranking, query); err != nil {
		return Answer{}, err
	}
	modelResults.ranking.findLeader(modelResults.found)
	found := pick(modelResults.found, query, modelResults.ranking, max(maxJoined*query.Limit, backgroundRank+1))
	answer := Answer{Mode: query.Mode}
	if failed != nil {
		ix.log.Warn("search by the vectors of earlier models", "agent", db.ID(), "error", failed)
		answer.Notice = noModel
	} else if err := ix.complete(ctx, db, model, found, modelResults.vector); err != nil {
		return Answer{}, err
	}
	answer.Results = results(found, query, modelResults.ranking)
	prepared.markMatches(query.Text, answer.Results)
	return answer, nil
}

// question is a query prepared for searching.
type question struct {
	words   store.Words
	text    string
	matches func() (*store.Matches, error) // waits for the chunks that match
}

// prepare adds to a query's words the other ways in which chunks write them, and to its
// text the words that mistyped ones most resemble. Chunks that match the words are
// searched for while the caller embeds the text.
func (ix *Index) prepare(ctx context.Context, db *store.DB, model model, query Query) (question, error) {
	type outcome struct {
		matches *store.Matches
		err     error
	}
	words, spoken := wordsOf(query.Text)
	prepared, found := make(chan question, 1), make(chan outcome, 1)
	go func() {
		matches, err := readKnowledge(ctx, db, model, query, func(k *store.Knowledge) (*store.Matches, error) {
			expanded, corrected, err := k.Expand(words, store.Expansion{Languages: spoken, IsSpelled: ix.isSpelled})
			if err != nil {
				return nil, err
			}
			prepared <- question{words: expanded, text: textToEmbed("", withCorrections(query.Text, corrected))}
			if query.Mode == Vector {
				return &store.Matches{}, nil
			}
			return k.Matching(expanded, sideLimit(query.Limit))
		})
		found <- outcome{matches, err}
		close(prepared)
	}()
	ready, ok := <-prepared
	ready.matches = sync.OnceValues(func() (*store.Matches, error) {
		o := <-found
		return o.matches, o.err
	})
	if !ok {
		_, err := ready.matches()
		return question{}, err
	}
	return ready, nil
}

// isSpelled reports whether a word is spelled correctly as far as the lexicon knows.
func (ix *Index) isSpelled(word string) bool {
	table, err := lexicon.Load()
	return err == nil && table.Knows(word)
}

// withCorrections adds to a text the words that its mistyped words most resemble.
func withCorrections(text string, corrected map[string]string) string {
	if len(corrected) == 0 {
		return text
	}
	fields := strings.Fields(text)
	for i, field := range fields {
		if right := corrected[strings.ToLower(strings.TrimFunc(field, separates))]; right != "" {
			fields[i] = field + " " + right
		}
	}
	return strings.Join(fields, " ")
}

// shortlist reads the chunks that can be among the results: the best according
// to the file, and others without a vector. Meaning and words are searched
// concurrently, in separate transactions; chunks deleted in the meantime are
// dropped.
func (ix *Index) shortlist(
	ctx context.Context,
	db *store.DB,
	model model,
	query Query,
	ranking ranking,
	prepared question,
	vector []float32,
) ([]candidate, error) {
	var near map[int64]float64
	var failed error
	if query.Mode != Keyword {
		near, failed = readKnowledge(ctx, db, model, query, func(k *store.Knowledge) (map[int64]float64, error) {
			return k.Nearest(vector, sideLimit(query.Limit))
		})
	}
	matches, err := prepared.matches()
	if err := errors.Join(failed, err); err != nil {
		return nil, err
	}
	return readKnowledge(ctx, db, model, query, func(k *store.Knowledge) ([]candidate, error) {
		return candidates(k, query, ranking, vector, near, matches)
	})
}

// readKnowledge opens the chunks for one part of a search.
func readKnowledge[T any](
	ctx context.Context,
	db *store.DB,
	m model,
	q Query,
	fn func(*store.Knowledge) (T, error),
) (T, error) {
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

// asQuestion appends a question mark to a query unless it ends like a sentence.
// Few people type one, but models are trained on complete sentences, and with
// it they place the query nearer to its answers.
func asQuestion(query string) string {
	if strings.ContainsAny(query[max(len(query)-1, 0):], ".!?") {
		return query
	}
	return query + "?"
}

// complete computes the missing cosines.
func (ix *Index) complete(
	ctx context.Context,
	db *store.DB,
	model model,
	list []candidate,
	vector []float32,
) error {
	var missing []*candidate
	var texts []string
	for i := range list {
		if c := &list[i]; !c.hasCosine {
			missing = append(missing, c)
			texts = append(texts, model.prefix()+textToEmbed(c.Metadata.Section, c.Content))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	vectors, err := ix.embedFor(ctx, db, model, texts...)
	if err != nil {
		return fmt.Errorf("embed results: %w", err)
	}
	if len(vectors[0]) != len(vector) {
		return fmt.Errorf("vectors of %d and %d numbers of one model", len(vector), len(vectors[0]))
	}
	for i, c := range missing {
		c.cosine, c.hasCosine = cosine(vector, vectors[i]), true
	}
	return nil
}

// results converts candidates with known cosines to results.
func results(list []candidate, query Query, ranking ranking) []Result {
	ranking.order(list)
	ranking.rate(list)
	var found []passage
	for _, c := range list {
		if ranking.score(&c) < query.MinScore {
			continue
		}
		if found = addPassage(found, c); len(found) > query.Limit {
			found = found[:query.Limit]
			break
		}
	}
	out := make([]Result, len(found))
	for i, p := range found {
		out[i] = p.result(ranking)
	}
	return out
}

// Embed returns the embeddings of texts with the agent's model, and the model's
// name. Errors are those of the model's provider.
func (ix *Index) Embed(ctx context.Context, db *store.DB, texts ...string) ([][]float32, string, error) {
	m, err := ix.model(ctx, db)
	if err != nil {
		return nil, "", err
	}
	plain := make([]string, len(texts))
	for i, text := range texts {
		plain[i] = textToEmbed("", text)
	}
	vectors, err := ix.embedForCaller(ctx, db, m, plain)
	return vectors, m.name, err
}
