package vector

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"satchel/agent"
	"satchel/store"
	"satchel/vector/encoder"
)

// batchSize is how many chunks are embedded in one turn and stored in one
// commit: what a crash costs, and how fine progress is shown.
const batchSize = 16

// runOnce is one turn of an agent: some chunks of deleted sources go, and one
// document is read or one batch embedded. Reading is left to the lane for it.
func (ix *Index) runOnce(ctx context.Context, db *store.DB, mayRead bool) outcome {
	if db.Agent().Status == agent.StatusDisabled {
		return stopped
	}
	purging, err := db.Purge(ctx)
	if err != nil {
		return ix.ended(ctx, db, err)
	}
	w, err := db.NextWork(ctx)
	switch {
	case err != nil:
		return ix.ended(ctx, db, err)
	case w == nil && purging:
		return more
	case w == nil:
		if err := db.SweepVectors(ctx); err != nil {
			return ix.ended(ctx, db, err)
		}
		return nothing
	}
	toDo, reads, err := ix.next(ctx, db, w)
	switch {
	case err != nil:
		return ix.ended(ctx, db, err)
	case reads && !mayRead:
		return toRead
	}
	err = toDo(ctx, db, w)
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return more // deleted meanwhile: the next turn finds what is left
	}
	return ix.ended(ctx, db, err)
}

// next finds out what is to be done next for a source, and whether that is to
// read a document.
func (ix *Index) next(ctx context.Context, db *store.DB, w *store.Work) (toDo func(context.Context, *store.DB, *store.Work) error, reads bool, err error) {
	if agent.Crawled(w.Type) {
		return ix.nextOfPages(ctx, db, w)
	}
	if !w.Chunked || w.Model != ix.embedder.Model() {
		return ix.read, true, nil
	}
	return ix.embedNext, false, nil
}

// ended tells what an error of the store means for the agent.
func (ix *Index) ended(ctx context.Context, db *store.DB, err error) outcome {
	switch {
	case err == nil, ctx.Err() != nil:
		return more
	case agent.ErrorCode(err) == agent.CodeNotFound:
		return nothing
	}
	ix.log.Error("index an agent's sources", "agent", db.ID(), "error", err)
	return failed
}

// embedNext embeds the next batch of a source, or ends the source when no
// chunk lacks a vector. What was embedded before an error or Stop is kept.
func (ix *Index) embedNext(ctx context.Context, db *store.DB, w *store.Work) error {
	batch, err := db.Unembedded(ctx, w.ID, batchSize)
	if err != nil {
		return err
	}
	if len(batch) == 0 {
		if agent.Crawled(w.Type) {
			return ix.finishPages(ctx, db, w)
		}
		ix.step("finish")
		return db.FinishSource(ctx, w.ID, nil)
	}
	texts := make([]string, len(batch))
	for i, u := range batch {
		texts[i] = embeddable(u.Section, u.Content)
	}
	vectors, failure := embedAll(ctx, texts, ix.embedInTurn)
	made := map[int64][]float32{}
	for i, v := range vectors {
		if v != nil {
			made[batch[i].Seq] = v
		}
	}
	if len(made) > 0 {
		ix.step("put")
		if err := db.PutVectors(context.WithoutCancel(ctx), made); err != nil {
			return err
		}
	}
	if failure == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return ix.giveUp(ctx, db, w, failure, "the text could not be embedded")
}

// embedAll embeds texts on several processors. After an error the vectors that
// were made are returned with it, the others are nil.
func embedAll(ctx context.Context, texts []string, embed func(context.Context, string) ([]float32, error)) ([][]float32, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	vectors := make([][]float32, len(texts))
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(len(texts), runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(texts)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				v, err := embed(ctx, texts[i])
				if err != nil {
					cancel(err)
					return
				}
				vectors[i] = v
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return vectors, context.Cause(ctx)
	}
	return vectors, nil
}

// embed embeds one text for someone who waits for it.
func (ix *Index) embed(ctx context.Context, text string) (v []float32, err error) {
	defer recovered(&err)
	v, err = ix.embedder.Embed(ctx, text)
	if err == nil && len(v) != encoder.Dims {
		err = fmt.Errorf("the vector has %d numbers in place of %d", len(v), encoder.Dims)
	}
	return v, err
}

// embedInTurn embeds one text in the background, when a processor is free.
func (ix *Index) embedInTurn(ctx context.Context, text string) ([]float32, error) {
	if err := ix.enter(ctx); err != nil {
		return nil, err
	}
	defer ix.leave()
	return ix.embed(ctx, text)
}

// enter waits for a processor to compute on, until leave.
func (ix *Index) enter(ctx context.Context) error {
	select {
	case ix.processors <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (ix *Index) leave() { <-ix.processors }

// giveUp ends a source with an error: that of cause when it is meant for
// clients, else a sentence of ours, and the cause goes to the log.
func (ix *Index) giveUp(ctx context.Context, db *store.DB, w *store.Work, cause error, sentence string) error {
	problem := agent.SourceError{Code: string(agent.CodeInternal), Message: sentence}
	var known *agent.Error
	if errors.As(cause, &known) {
		problem = agent.SourceError{Code: string(known.Code), Message: known.Message}
	}
	if err := db.FinishSource(ctx, w.ID, &problem); err != nil {
		return err
	}
	ix.log.Warn("a source could not be indexed", "agent", db.ID(), "source", w.ID, "error", cause)
	return nil
}
