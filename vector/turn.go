package vector

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
	"satchel/vector/document"
)

// batchSize is how many chunks are embedded in one turn and stored in one
// commit: the cost of a crash, and the granularity of progress.
const batchSize = 16

// remoteBatch is batchSize for a provider, where a request is expensive
// compared to a text.
const remoteBatch = 64

// runLocal is one turn of an agent on this machine: it deletes some chunks of
// deleted sources and embeds one batch. Reading is left to runReading and runDocument.
func (ix *Index) runLocal(ctx context.Context, db *store.DB) (work.Next, error) {
	return ix.runOnce(ctx, db, false)
}

// textExtensions are those of files that are read before documents.
var textExtensions = document.TextExtensions()

// runDocument is one turn of an agent that has a document to read.
func (ix *Index) runDocument(ctx context.Context, db *store.DB, in *work.Queue[*store.DB]) error {
	if right := ix.documentQueue(db); right != in {
		ix.moveTo(db, right)
		return nil
	}
	defer ix.moveTo(db, ix.local)
	model, err := ix.model(ctx, db)
	if err != nil {
		return err
	}
	want := store.WorkFilter{
		Model:          model.name,
		Reading:        true,
		TextExtensions: textExtensions,
		Documents:      store.OnlyDocuments,
	}
	w, err := db.NextWork(ctx, want)
	if err != nil || w == nil {
		return err
	}
	late, err := ix.readFile(ctx, db, w, model)
	if err == nil {
		ix.noteLate(db, late) // last: from here on the other queue may read
	}
	if !model.isLocal() {
		ix.moveTo(db, ix.remote)
	}
	return agent.IgnoreNotFound(err)
}

// runReading is one turn of an agent whose next step is reading a text.
func (ix *Index) runReading(ctx context.Context, db *store.DB) (work.Next, error) {
	defer ix.moveTo(db, ix.local)
	_, err := ix.runOnce(ctx, db, true)
	return work.Next{}, err
}

func (ix *Index) runOnce(ctx context.Context, db *store.DB, reading bool) (work.Next, error) {
	purging, err := db.Purge(ctx)
	if err != nil {
		return work.Next{}, err
	}
	model, err := ix.model(ctx, db)
	if err != nil {
		return work.Next{}, err
	}
	want := store.WorkFilter{
		Model:          model.name,
		Reading:        true,
		Embedding:      model.isLocal(),
		TextExtensions: textExtensions,
	}
	w, err := db.NextWork(ctx, want)
	if err == nil && w != nil && w.Document {
		ix.moveTo(db, ix.documentQueue(db))
		want.Documents = store.WithoutDocuments // which does not wait for it
		if w, err = db.NextWork(ctx, want); err == nil && w == nil {
			return work.Next{Again: purging}, nil
		}
	}
	switch {
	case err != nil:
		return work.Next{}, err
	case w == nil && purging:
		return work.Next{Again: true}, nil
	case w == nil:
		return work.Next{}, db.SweepVectors(ctx)
	}
	step, reads, err := ix.next(ctx, db, w, model)
	switch {
	case err != nil:
		return work.Next{}, err
	case reads && !reading:
		ix.moveTo(db, ix.reading)
		return work.Next{}, nil
	case reading && !reads: // the other queue continues with it
		return work.Next{}, nil
	}
	err = step(ctx, db, w, model)
	if !model.isLocal() {
		ix.moveTo(db, ix.remote)
	}
	return work.Next{Again: true}, agent.IgnoreNotFound(err)
}

// runRemote is one turn of an agent that uses the network: it fetches a page of
// an API, or embeds a batch with the provider.
func (ix *Index) runRemote(ctx context.Context, db *store.DB) (work.Next, error) {
	model, err := ix.model(ctx, db)
	if err != nil {
		return work.Next{}, err
	}
	fetched, err := ix.fetchNext(ctx, db)
	if fetched || err != nil {
		ix.moveTo(db, ix.local)
		return work.Next{Again: true}, agent.IgnoreNotFound(err)
	}
	if model.isLocal() {
		return work.Next{}, nil
	}
	w, err := db.NextWork(ctx, store.WorkFilter{Model: model.name, Embedding: true})
	if err != nil || w == nil {
		return work.Next{}, err
	}
	return work.Next{Again: true}, agent.IgnoreNotFound(ix.embedNext(ctx, db, w, model))
}

// step is what is done for a source in one turn.
type step func(context.Context, *store.DB, *store.Work, model) error

// next determines the next step of a source, and whether it reads a document.
func (ix *Index) next(ctx context.Context, db *store.DB, w *store.Work, m model) (do step, reads bool, err error) {
	switch {
	case agent.Crawled(w.Type):
		return ix.nextOfPages(ctx, db, w, m)
	case !w.Reading:
		return ix.embedNext, false, nil
	case w.Type == agent.SourceFile && !w.Chunked:
		return ix.read, true, nil
	case w.Type == agent.SourceDatabase && !w.Chunked:
		return ix.readRows, true, nil
	}
	return ix.switchModel, false, nil
}

// switchModel prepares a source for the vectors of a model.
func (ix *Index) switchModel(ctx context.Context, db *store.DB, w *store.Work, m model) error {
	ix.step("adopt")
	return db.AdoptModel(ctx, w.ID, m.name)
}

// errRetryLater means that a provider does not respond and the source shows it.
var errRetryLater = errors.New("delayed")

// embedNext embeds the next batch of a source, or finishes the source if no
// chunk lacks a vector. What was embedded before an error or Stop is kept.
func (ix *Index) embedNext(ctx context.Context, db *store.DB, w *store.Work, model model) error {
	size := batchSize
	if !model.isLocal() {
		size = remoteBatch
	}
	batch, err := db.Unembedded(ctx, w.ID, size)
	if err != nil {
		return err
	}
	if len(batch) == 0 {
		return ix.finish(ctx, db, w)
	}
	texts := make([]string, len(batch))
	for i, u := range batch {
		texts[i] = model.prefix() + textToEmbed(u.Section, u.Content)
	}
	var vectors [][]float32
	var failure error
	if model.isLocal() {
		vectors, failure = embedAll(ctx, texts, ix.inBackground(ix.embedBy(model)))
	} else {
		vectors, failure = ix.askFor(ctx, db, w, model, texts)
	}
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
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if agent.ErrorCode(failure) == agent.CodeNotFound { // deleted or stopped
		return failure
	}
	if failure != nil {
		return ix.handleEmbedFailure(ctx, db, w, model, failure)
	}
	if w.Delayed {
		return db.NoteProblem(ctx, w.ID, nil)
	}
	return nil
}

// finish finishes a source without chunks left to embed, unless more of it is
// being read.
func (ix *Index) finish(ctx context.Context, db *store.DB, w *store.Work) error {
	switch {
	case agent.Crawled(w.Type):
		return ix.finishPages(ctx, db, w)
	case !w.Chunked:
		return nil
	}
	ix.step("finish")
	return db.FinishSource(ctx, w.ID, nil)
}

// handleEmbedFailure handles a source whose texts could not be embedded. It
// fails, unless the error is a temporary one of a provider, or the model's file is
// missing: then it shows the reason for the delay and is retried later.
func (ix *Index) handleEmbedFailure(
	ctx context.Context,
	db *store.DB,
	w *store.Work,
	model model,
	failure error,
) error {
	if model.to.Local() || isPermanent(failure) {
		return ix.failSource(ctx, db, w, failure, "the text could not be embedded")
	}
	sentence := "the embedding provider could not be used"
	if model.to.File() {
		sentence = "the model " + model.to.Model + " could not be used"
	}
	problem := sourceError(failure, sentence)
	if err := db.NoteProblem(ctx, w.ID, &problem); err != nil {
		return err
	}
	ix.step("held up")
	ix.log.Warn("embed chunks", "agent", db.ID(), "source", w.ID, "error", failure)
	return errRetryLater
}

// embedAll embeds texts on several processors. With an error it returns the
// vectors computed so far; the others are nil.
func embedAll(ctx context.Context, texts []string, embed embedding) ([][]float32, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	vectors := make([][]float32, len(texts))
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(len(texts), work.Processors) {
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

// embedding embeds one text.
type embedding func(ctx context.Context, text string) ([]float32, error)

// inBackground returns a function that embeds one text in the background, when a
// processor is free.
func (ix *Index) inBackground(embed embedding) embedding {
	return func(ctx context.Context, text string) ([]float32, error) {
		if err := ix.acquire(ctx); err != nil {
			return nil, err
		}
		defer ix.release()
		return embed(ctx, text)
	}
}

// acquire waits for a processor, until release.
func (ix *Index) acquire(ctx context.Context) error {
	select {
	case ix.processors <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (ix *Index) release() { <-ix.processors }

// sourceError returns how a source shows an error: the error's text if it is
// meant for clients, or else sentence.
func sourceError(cause error, sentence string) agent.SourceError {
	var known *agent.Error
	if errors.As(cause, &known) {
		return agent.SourceError{Code: string(known.Code), Message: known.Message}
	}
	return agent.SourceError{Code: string(agent.CodeInternal), Message: sentence}
}

// failSource fails a source with an error, as sourceError shows it. The cause is
// logged.
func (ix *Index) failSource(
	ctx context.Context,
	db *store.DB,
	w *store.Work,
	cause error,
	sentence string,
) error {
	problem := sourceError(cause, sentence)
	if err := db.FinishSource(ctx, w.ID, &problem); err != nil {
		return err
	}
	ix.log.Warn("index source", "agent", db.ID(), "source", w.ID, "error", cause)
	return nil
}
