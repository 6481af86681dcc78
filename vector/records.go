package vector

import (
	"context"
	"encoding/json"
	"strings"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/store"
	"satchel/vector/document"
	"satchel/vector/feed"
)

// Sources of type database and api are read record by record. The content of a
// record is remembered as a hash: an unchanged record keeps its chunks and
// vectors, and one that a later reading does not contain is deleted.

// CodeTooMany means that a source has more records than allowed.
const CodeTooMany agent.Code = "TOO_MANY_RECORDS"

// itemBatch is how many records are compared and split between two checks of
// ctx.
const itemBatch = 200

// readRows reads the rows of a database source. A killed program runs the query
// again.
func (ix *Index) readRows(ctx context.Context, db *store.DB, work *store.Work, _ model) error {
	return ix.attempt(ctx, db, work, "reading these rows", func() error {
		f, err := db.BeginFeed(ctx, work.ID)
		if err != nil {
			return err
		}
		var config agent.DatabaseConfig
		if err := json.Unmarshal(f.Config, &config); err != nil {
			return ix.failSource(ctx, db, work, err, "the source's config could not be read")
		}
		rows, failure := db.Rows(ctx, config.Query, store.MaxSourceRows)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if failure == nil && rows.Truncated {
			failure = agent.Errorf(
				CodeTooMany,
				"the query returns more than %d rows or %d MB; narrow it",
				store.MaxSourceRows, store.MaxSourceBytes>>20,
			)
		}
		var columns feed.Columns
		if failure == nil {
			columns, failure = feed.FindColumns(config, rows.Columns)
		}
		if failure != nil {
			return ix.failSource(ctx, db, work, failure, "the query could not be run")
		}
		for from := 0; from < len(rows.Rows); from += itemBatch {
			items := make([]feed.Item, 0, itemBatch)
			for i := from; i < min(from+itemBatch, len(rows.Rows)); i++ {
				items = append(items, columns.Item(rows.Rows[i]))
				rows.Rows[i] = nil // its text may be long
			}
			if _, err := ix.putItems(ctx, db, work, f, items); err != nil {
				return err
			}
			ix.step("records")
		}
		return db.EndFeed(ctx, f)
	})
}

// fetchNext reads the next page of an API and reports whether there was one to
// read. A killed program resumes at the page that was interrupted.
func (ix *Index) fetchNext(ctx context.Context, db *store.DB) (bool, error) {
	work, err := db.NextFetch(ctx)
	if err != nil || work == nil {
		return false, err
	}
	f, err := db.BeginFeed(ctx, work.ID)
	if err != nil {
		return true, err
	}
	fetching, cancel := db.WhileUnfinished(ctx, work.ID)
	defer cancel()
	var config agent.APIConfig
	failure := json.Unmarshal(f.Config, &config)
	if failure == nil {
		var secrets map[string]string
		if secrets, failure = db.Secrets(ctx, work.ID, config.URL); failure == nil {
			config.PutSecrets(secrets)
		}
	}
	var credential egress.Credential
	if failure == nil {
		credential, failure = ix.network.Credentials.Find(ctx, db, config.Credential)
	}
	var page feed.Page
	if failure == nil {
		page, failure = ix.network.Feeds.Page(fetching, config, credential, f.Page, f.Next)
	}
	if fetching.Err() != nil {
		return true, context.Cause(fetching)
	}
	if failure == nil {
		failure, err = ix.failTooMany(ctx, db, f, len(page.Items))
		if err != nil {
			return true, err
		}
	}
	if failure != nil {
		return true, ix.failSource(ctx, db, work, failure, "the API could not be read")
	}
	ix.step("page")
	return true, ix.putPage(ctx, db, work, f, config.Pagination, page)
}

func (ix *Index) failTooMany(ctx context.Context, db *store.DB, f store.Feed, more int) (failure, err error) {
	n, err := db.CountRecords(ctx, f)
	if err == nil && n+more > store.MaxSourceRows {
		failure = agent.Errorf(CodeTooMany, "the API returns more than %d items", store.MaxSourceRows)
	}
	return failure, err
}

// putPage stores the items of a page, and ends the reading after the last.
func (ix *Index) putPage(
	ctx context.Context,
	db *store.DB,
	work *store.Work,
	f store.Feed,
	pagination agent.Pagination,
	page feed.Page,
) error {
	met, err := ix.putItems(ctx, db, work, f, page.Items)
	if err != nil {
		return err
	}
	last := true
	switch pagination.Type {
	case "page":
		last = met == 0 // none, or an API that returns the same for every number
	case "cursor":
		last = page.Next == "" || page.Next == f.Next
	}
	if !last && f.Page+1 < pagination.MaxPages {
		return db.NotePageDone(ctx, f, page.Next)
	}
	f.More = !last
	return db.EndFeed(ctx, f)
}

// putItems stores the items that this reading has not seen yet, and returns
// their number. Of items with the same id the first counts.
func (ix *Index) putItems(
	ctx context.Context,
	db *store.DB,
	work *store.Work,
	f store.Feed,
	items []feed.Item,
) (met int, err error) {
	for len(items) > 0 {
		batch := items[:min(len(items), itemBatch)]
		items = items[len(batch):]
		ids := make([]string, len(batch))
		for i, item := range batch {
			ids[i] = item.ID
		}
		known, err := db.KnownRecords(ctx, f.SourceID, ids)
		if err != nil {
			return met, err
		}
		records := make([]store.Record, 0, len(batch))
		for _, item := range batch {
			record := known[item.ID]
			if record.Run == f.Run && record.Hash != "" {
				continue
			}
			r := store.Record{
				ID:    item.ID,
				Hash:  item.Hash(),
				Known: record.Hash == item.Hash(),
			}
			if !r.Known {
				if r.Chunks, err = ix.splitItem(ctx, work, item); err != nil {
					return met, err
				}
			}
			known[item.ID] = store.KnownRecord{Hash: r.Hash, Run: f.Run}
			records = append(records, r)
		}
		if err := db.PutRecords(ctx, f, records); err != nil {
			return met, err
		}
		met += len(records)
	}
	return met, nil
}

func (ix *Index) splitItem(ctx context.Context, w *store.Work, item feed.Item) (chunks []store.NewChunk, err error) {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", " ").Replace(strings.ToValidUTF8(item.Text, "\uFFFD"))
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if err := ix.acquire(ctx); err != nil {
		return nil, err
	}
	defer ix.release()
	defer recoverError(&err)
	doc := document.Markdown(text, document.Limits{})
	if item.Title != "" {
		doc.Title = item.Title
	}
	return ix.split(ctx, w, doc)
}
