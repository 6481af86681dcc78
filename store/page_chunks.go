package store

import (
	"context"

	"satchel/store/sqlite"
)

// PendingPage is a page whose chunks have to be recreated or deleted.
type PendingPage struct {
	Seq   int64
	URL   string
	Title string
	Text  string
	Hash  string
	Drop  bool
}

// PendingPage returns the next page of a source whose chunks are out of date,
// or nil.
func (db *DB) PendingPage(ctx context.Context, sourceID string) (*PendingPage, error) {
	return Read(ctx, db, func(tx *Tx) (*PendingPage, error) {
		found, err := all(
			tx,
			func(rows *sqlite.Rows) (p PendingPage, err error) {
				return p, rows.Scan(&p.Seq, &p.URL, &p.Title, &p.Text, &p.Hash, &p.Drop)
			},
			`SELECT seq, url, title, text, hash, pending = 'drop' FROM _pages WHERE source_id = ? `+
				`AND pending <> '' ORDER BY seq LIMIT 1`,
			sourceID,
		)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return &found[0], nil
	})
}

// ReplacePageChunks replaces the chunks of a page, in several writes, or
// deletes the page if it has to be dropped. If the page has changed since, it
// stays pending.
func (db *DB) ReplacePageChunks(ctx context.Context, sourceID string, page PendingPage, chunks []NewChunk) error {
	for {
		n, err := Write(ctx, db, func(tx *Tx) (int64, error) {
			return tx.deleteChunks(
				"SELECT seq FROM chunks WHERE source_id = ? AND url = ? LIMIT ?",
				sourceID, page.URL, chunkBatch,
			)
		})
		if err != nil {
			return err
		} else if n < chunkBatch {
			break
		}
	}
	for {
		batch := chunks[:min(len(chunks), chunkBatch)]
		chunks = chunks[len(batch):]
		err := db.Do(ctx, func(tx *Tx) error {
			var position int
			if err := tx.value(
				&position,
				"SELECT coalesce(max(position) + 1, 0) FROM chunks WHERE source_id = ?",
				sourceID,
			); err != nil {
				return err
			}
			if err := tx.appendChunks(sourceID, position, batch); err != nil || len(chunks) > 0 {
				return err
			}
			return tx.settlePage(page)
		})
		if err != nil || len(chunks) == 0 {
			return err
		}
	}
}

func (tx *Tx) settlePage(p PendingPage) error {
	statement, args := "UPDATE _pages SET pending = '' WHERE seq = ? AND hash = ?", []any{p.Seq, p.Hash}
	if p.Drop {
		statement, args = "DELETE FROM _pages WHERE seq = ? AND pending = 'drop'", args[:1]
	}
	_, err := tx.exec(statement, args...)
	return err
}

// OrderChunks gives the chunks of a crawled source positions without gaps, in
// the order of its pages.
func (db *DB) OrderChunks(ctx context.Context, sourceID string) error {
	return db.Do(ctx, func(tx *Tx) error {
		// Positions are unique at every moment, so they move through negative ones.
		_, err := tx.exec(`UPDATE chunks SET position = -1 - r.n FROM (SELECT c.seq AS chunk, row_number() OVER (ORDER BY p.seq, c.position) - 1 AS n
			FROM chunks c LEFT JOIN _pages p ON p.source_id = c.source_id AND p.url = c.url WHERE c.source_id = ?1) r
			WHERE chunks.seq = r.chunk`, sourceID)
		if err != nil {
			return err
		}
		_, err = tx.exec("UPDATE chunks SET position = -1 - position WHERE source_id = ? AND position < 0", sourceID)
		return err
	})
}
