package store

import (
	"context"
	"encoding/json"
	"errors"

	"satchel/agent"
	"satchel/store/search"
	"satchel/store/sqlite"
)

// CreateFeedSource creates a source of type database or api with the status
// processing. config is stored unchanged; secrets, by the names of the fields that
// config shows masked, are encrypted.
func (db *DB) CreateFeedSource(
	ctx context.Context,
	sourceType, name string,
	config any,
	secrets map[string]string,
) (agent.Source, error) {
	return db.createSource(
		ctx,
		agent.Source{Type: sourceType, Name: name, Status: agent.SourceProcessing},
		config,
		secrets,
	)
}

// createSource stores a source that is fully described by a config, and its secrets.
func (db *DB) createSource(
	ctx context.Context,
	s agent.Source,
	config any,
	secrets map[string]string,
) (agent.Source, error) {
	if err := agent.CheckSourceName(s.Name); err != nil {
		return agent.Source{}, err
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return agent.Source{}, err
	}
	s.ID, s.Config = agent.NewID(agent.KindSource), raw
	return Write(ctx, db, func(tx *Tx) (agent.Source, error) {
		return tx.insertSource(s, secrets)
	})
}

func (tx *Tx) insertSource(source agent.Source, secrets map[string]string) (agent.Source, error) {
	source.CreatedAt, source.UpdatedAt = tx.Now, tx.Now
	if err := tx.checkNewCredential(source.Config, nil); err != nil {
		return source, err
	}
	if _, err := tx.exec(
		"INSERT INTO sources(id, type, name, status, config, created_at, updated_at) VALUES (?,?,?,?,?,?,?)",
		source.ID, source.Type, source.Name, source.Status,
		string(source.Config),
		source.CreatedAt,
		source.UpdatedAt,
	); err != nil {
		return source, err
	}
	if err := tx.putSecrets(source.ID, addressOf(source.Config), secrets); err != nil {
		return source, err
	}
	return source, tx.audit("source created", map[string]any{"source_id": source.ID, "name": source.Name})
}

// checkNewCredential refuses a config of a source or tool that names another credential than
// before, if the agent does not have it.
func (tx *Tx) checkNewCredential(config, before json.RawMessage) error {
	named := func(raw json.RawMessage) string {
		var c struct{ Credential string }
		_ = json.Unmarshal(raw, &c) // a config of another type has none
		return c.Credential
	}
	if named(config) == named(before) {
		return nil
	}
	return tx.checkReference("config.credential", "credential", named(config))
}

// Feed is a source that is read record by record, and how far the reading has come.
type Feed struct {
	SourceID string
	Type     string
	Name     string
	Config   json.RawMessage
	Chunking agent.Chunking
	Run      int    // number of this reading
	Page     int    // pages of it that are done
	Next     string // where the next page is, as given to NotePageDone
	More     bool   // for EndFeed: some pages were not read
}

// NextFetch returns the oldest source of type api that has not been read completely,
// or nil.
func (db *DB) NextFetch(ctx context.Context) (*Work, error) {
	return Read(ctx, db, func(tx *Tx) (*Work, error) {
		return tx.readWork(`SELECT id, type, name, config, chunked, attempts, embedding_model, 1, error_code <> '', 0 FROM sources
			WHERE status NOT IN ('ready','error') AND type = 'api' AND NOT chunked ORDER BY created_at, id LIMIT 1`)
	})
}

// BeginFeed begins reading a source, or resumes a reading that was interrupted
// between two pages. NOT_FOUND means that there is nothing left to read.
func (db *DB) BeginFeed(ctx context.Context, sourceID string) (Feed, error) {
	return Write(ctx, db, func(tx *Tx) (feed Feed, err error) {
		if err := tx.checkActive(sourceID); err != nil {
			return feed, err
		}
		if _, err := tx.exec(`INSERT INTO _feeds(source_id, run) VALUES (?,1)
			ON CONFLICT DO UPDATE SET run = run + (page = 0)`, sourceID); err != nil {
			return feed, err
		}
		if err := tx.row(
			"SELECT s.id, type, name, config, run, page, next FROM sources s "+
				"JOIN _feeds f ON f.source_id = s.id WHERE s.id = ?",
			sourceID,
		).Scan(
			&feed.SourceID,
			&feed.Type,
			&feed.Name,
			(*rawJSON)(&feed.Config),
			&feed.Run,
			&feed.Page,
			&feed.Next,
		); err != nil {
			return feed, err
		}
		feed.Chunking, err = agent.ReadChunking(feed.Type, feed.Config)
		return feed, err
	})
}

// KnownRecord is what is stored about a record.
type KnownRecord struct {
	Hash string
	Run  int
}

// KnownRecords returns those of the records that the source has, by id.
func (db *DB) KnownRecords(ctx context.Context, sourceID string, ids []string) (map[string]KnownRecord, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	return Read(ctx, db, func(tx *Tx) (map[string]KnownRecord, error) {
		rows, err := tx.query(
			`SELECT r.id, r.hash, r.run FROM json_each(?) j CROSS `+
				`JOIN _records r ON r.source_id = ? AND r.id = j.value`,
			string(list),
			sourceID,
		)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		known := map[string]KnownRecord{}
		for rows.Next() {
			var id string
			var r KnownRecord
			if err := rows.Scan(&id, &r.Hash, &r.Run); err != nil {
				return nil, err
			}
			known[id] = r
		}
		return known, rows.Err()
	})
}

// Record is a record as found by a reading. If its hash is already known, Chunks is
// not used.
type Record struct {
	ID     string
	Hash   string
	Known  bool
	Chunks []NewChunk
}

// PutRecords stores that a reading found records, and replaces the chunks of those
// that are new or changed, in several writes. A record that is interrupted between
// two writes is unknown to the next reading.
func (db *DB) PutRecords(ctx context.Context, feed Feed, records []Record) error {
	for len(records) > 0 {
		count, chunks := 0, 0
		for count < len(records) &&
			count < chunkBatch &&
			(count == 0 || chunks+len(records[count].Chunks) <= chunkBatch) {
			chunks += len(records[count].Chunks)
			count++
		}
		batch := records[:count]
		records = records[count:]
		if chunks > chunkBatch {
			if err := db.putLargeRecord(ctx, feed, batch[0]); err != nil {
				return err
			}
			continue
		}
		err := db.Do(ctx, func(tx *Tx) error {
			if err := tx.checkActive(feed.SourceID); err != nil {
				return err
			}
			for _, r := range batch {
				if err := tx.putRecord(feed, r); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) putRecord(f Feed, r Record) error {
	if r.Known {
		_, err := tx.exec("UPDATE _records SET run = ? WHERE source_id = ? AND id = ?", f.Run, f.SourceID, r.ID)
		return err
	}
	seq, err := tx.beginRecord(f, r)
	if err != nil {
		return err
	}
	if err := tx.addRecordChunks(f, seq, r.Chunks); err != nil {
		return err
	}
	return tx.endRecord(f, seq, r)
}

// putLargeRecord stores a record with more chunks than one write takes.
func (db *DB) putLargeRecord(ctx context.Context, feed Feed, record Record) error {
	seq, err := Write(ctx, db, func(tx *Tx) (int64, error) {
		if err := tx.checkActive(feed.SourceID); err != nil {
			return 0, err
		}
		return tx.beginRecord(feed, record)
	})
	for chunks := record.Chunks; err == nil && len(chunks) > 0; {
		batch := chunks[:min(len(chunks), chunkBatch)]
		chunks = chunks[len(batch):]
		err = db.Do(ctx, func(tx *Tx) error {
			if err := tx.checkActive(feed.SourceID); err != nil {
				return err
			}
			if err := tx.addRecordChunks(feed, seq, batch); err != nil || len(chunks) > 0 {
				return err
			}
			return tx.endRecord(feed, seq, record)
		})
	}
	return err
}

// beginRecord removes the chunks of a record and returns its seq.
func (tx *Tx) beginRecord(f Feed, r Record) (seq int64, err error) {
	err = tx.value(&seq, `INSERT INTO _records(source_id, id, hash, run) VALUES (?,?,'',?)
		ON CONFLICT (source_id, id) DO UPDATE SET hash = '', run = excluded.run RETURNING seq`, f.SourceID, r.ID, f.Run)
	if err != nil {
		return 0, err
	}
	return seq, tx.deleteRecordChunks(f, seq)
}

// deleteRecordChunks removes the chunks of the records with these seqs.
func (tx *Tx) deleteRecordChunks(f Feed, seqs ...int64) error {
	n, err := tx.deleteChunks(
		"SELECT seq FROM chunks WHERE record_seq IN (SELECT value FROM json_each(?)) AND record_seq <> 0",
		search.ListJSON(seqs),
	)
	if err == nil && n > 0 {
		_, err = tx.exec("UPDATE sources SET chunks = max(chunks - ?, 0) WHERE id = ?", n, f.SourceID)
	}
	return err
}

func (tx *Tx) addRecordChunks(feed Feed, record int64, chunks []NewChunk) error {
	var position int
	if err := tx.value(
		&position,
		"SELECT coalesce(max(position) + 1, 0) FROM chunks WHERE source_id = ?",
		feed.SourceID,
	); err != nil {
		return err
	}
	for i, c := range chunks {
		if err := tx.insertChunk(feed.SourceID, position+i, record, c); err != nil {
			return err
		}
	}
	_, err := tx.exec(
		"UPDATE sources SET chunks = chunks + ?, updated_at = ? WHERE id = ?",
		len(chunks),
		tx.Now,
		feed.SourceID,
	)
	return err
}

func (tx *Tx) endRecord(f Feed, seq int64, r Record) error {
	_, err := tx.exec("UPDATE _records SET hash = ?, changed = ? WHERE seq = ?", r.Hash, f.Run, seq)
	return err
}

// CountRecords returns how many records a reading has found.
func (db *DB) CountRecords(ctx context.Context, f Feed) (int, error) {
	return Read(ctx, db, func(tx *Tx) (n int, err error) {
		return n, tx.value(&n, "SELECT count(*) FROM _records WHERE source_id = ? AND run = ?", f.SourceID, f.Run)
	})
}

// NotePageDone notes that a page of a reading is done and where the next one is.
func (db *DB) NotePageDone(ctx context.Context, f Feed, next string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.checkActive(f.SourceID); err != nil {
			return err
		}
		_, err := tx.exec(
			"UPDATE _feeds SET page = ?, next = ? WHERE source_id = ? AND run = ?",
			f.Page+1, next, f.SourceID, f.Run,
		)
		return err
	})
}

// EndFeed ends a reading: records that it did not find are deleted with their
// chunks, and the results are written into the source's config. Its chunks remain to
// be embedded.
func (db *DB) EndFeed(ctx context.Context, feed Feed) error {
	removed := 0
	for {
		n, err := Write(ctx, db, func(tx *Tx) (int, error) {
			return tx.dropVanished(feed)
		})
		if err != nil {
			return err
		}
		removed += n
		if n < chunkBatch {
			break
		}
	}
	if err := db.renumberChunks(ctx, feed.SourceID); err != nil {
		return err
	}
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.checkActive(feed.SourceID); err != nil {
			return err
		}
		return tx.endFeed(feed, removed)
	})
}

// dropVanished deletes some records that a reading did not find.
func (tx *Tx) dropVanished(feed Feed) (int, error) {
	if err := tx.checkActive(feed.SourceID); err != nil {
		return 0, err
	}
	seqs, err := all(
		tx,
		func(rows *sqlite.Rows) (seq int64, err error) {
			return seq, rows.Scan(&seq)
		},
		"SELECT seq FROM _records WHERE source_id = ? AND run <> ? LIMIT ?",
		feed.SourceID, feed.Run, chunkBatch,
	)
	if err != nil || len(seqs) == 0 {
		return 0, err
	}
	if err := tx.deleteRecordChunks(feed, seqs...); err != nil {
		return 0, err
	}
	_, err = tx.exec("DELETE FROM _records WHERE seq IN (SELECT value FROM json_each(?))", search.ListJSON(seqs))
	return len(seqs), err
}

func (tx *Tx) endFeed(feed Feed, removed int) error {
	var total, changed int
	if err := tx.row(
		"SELECT count(*), count(*) FILTER (WHERE changed = ?) FROM _records WHERE source_id = ?",
		feed.Run, feed.SourceID,
	).Scan(&total, &changed); err != nil {
		return err
	}
	err := tx.setConfig(feed.SourceID, map[string]any{
		"record_count":      total,
		"changed_records":   changed,
		"unchanged_records": total - changed,
		"removed_records":   removed,
		"more_pages":        feed.More,
		"last_read_at":      tx.Now,
	})
	if err != nil {
		return err
	}
	if _, err := tx.exec("UPDATE _feeds SET page = 0, next = '' WHERE source_id = ?", feed.SourceID); err != nil {
		return err
	}
	_, err = tx.exec("UPDATE sources SET chunked = 1, updated_at = ? WHERE id = ?", tx.Now, feed.SourceID)
	return err
}

// renumberChunks renumbers the chunks of a source without gaps, in order, in several
// writes.
func (db *DB) renumberChunks(ctx context.Context, sourceID string) error {
	type row struct {
		seq      int64
		position int
	}
	for next, after := 0, -1; ; {
		moved, err := Write(ctx, db, func(tx *Tx) ([]row, error) {
			found, err := all(
				tx,
				func(rows *sqlite.Rows) (r row, err error) {
					return r, rows.Scan(&r.seq, &r.position)
				},
				"SELECT seq, position FROM chunks WHERE source_id = ? AND position > ? ORDER BY position LIMIT ?",
				sourceID, after, 10*chunkBatch,
			)
			for i, r := range found {
				if err != nil || r.position == next+i {
					continue // already in place
				}
				// The chunk that had this position has already moved, or there was none.
				_, err = tx.exec("UPDATE chunks SET position = ? WHERE seq = ?", next+i, r.seq)
			}
			return found, err
		})
		if err != nil || len(moved) == 0 {
			return err
		}
		next += len(moved)
		after = moved[len(moved)-1].position
	}
}

// checkActive returns NOT_FOUND unless the source exists and its reading or crawl
// continues.
func (tx *Tx) checkActive(sourceID string) error {
	var going bool
	err := tx.value(
		&going,
		"SELECT status NOT IN ('ready','error') AND NOT chunked FROM sources WHERE id = ?",
		sourceID,
	)
	if errors.Is(err, sqlite.ErrNoRows) || err == nil && !going {
		return agent.NotFound("source", sourceID)
	}
	return err
}
