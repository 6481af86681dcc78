package vector

import (
	"context"

	"satchel/store"
	"satchel/vector/document"
)

// The pages of a crawled source are split one at a time, as they arrive. The
// walk has extracted their text and stored it in the agent's file, so an
// unchanged page keeps its chunks and vectors.

// nextOfPages is next for a crawled source.
func (ix *Index) nextOfPages(
	ctx context.Context,
	db *store.DB,
	work *store.Work,
	m model,
) (do step, reads bool, err error) {
	switch {
	case work.Model != m.name:
		return ix.switchModel, false, nil
	case !work.Reading:
		return ix.embedNext, false, nil
	}
	page, err := db.PendingPage(ctx, work.ID)
	return func(ctx context.Context, db *store.DB, w *store.Work, _ model) error {
		if page == nil {
			return nil // deleted in the meantime
		}
		return ix.replacePage(ctx, db, w, page)
	}, true, err
}

// replacePage replaces a page's chunks.
func (ix *Index) replacePage(ctx context.Context, db *store.DB, w *store.Work, page *store.PendingPage) error {
	var chunks []store.NewChunk
	if !page.Drop {
		var failure error
		if chunks, failure = ix.splitPage(ctx, w, page); ctx.Err() != nil {
			return ctx.Err()
		} else if failure != nil {
			return ix.failSource(ctx, db, w, failure, "the text of "+page.URL+" could not be cut")
		}
	}
	ix.step("page")
	return db.ReplacePageChunks(ctx, w.ID, *page, chunks)
}

func (ix *Index) splitPage(
	ctx context.Context,
	work *store.Work,
	page *store.PendingPage,
) (chunks []store.NewChunk, err error) {
	if err := ix.acquire(ctx); err != nil {
		return nil, err
	}
	defer ix.release()
	defer recoverError(&err)
	doc := document.ParsePage(page.Text, document.Limits{})
	if page.Title != "" {
		doc.Title = page.Title
	}
	if chunks, err = ix.split(ctx, work, doc); err != nil {
		return nil, err
	}
	for i := range chunks {
		chunks[i].URL = page.URL
	}
	return chunks, nil
}

// finishPages finishes a crawled source once its walk has ended and no page or
// chunk is pending.
func (ix *Index) finishPages(ctx context.Context, db *store.DB, w *store.Work) error {
	if !w.Chunked {
		return nil
	}
	if err := db.OrderChunks(ctx, w.ID); err != nil {
		return err
	}
	ix.step("finish")
	return db.FinishSource(ctx, w.ID, nil)
}
