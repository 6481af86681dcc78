package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"

	"satchel/agent"
)

// NewChunk is a chunk before it is stored.
type NewChunk struct {
	Content string
	Section string
	Page    int
	URL     string
}

// Work is a source that waits to be read or embedded.
type Work struct {
	ID       string
	Type     string
	Name     string
	Chunking agent.Chunking
	Chunked  bool // the text has been cut, or the site walked; vectors may be missing
	Attempts int  // how often its reading began before
	Model    string
}

// NextWork returns the oldest source that is to be read, so that words are
// found soon, else the oldest whose vectors are missing, or nil. A source that
// is being crawled counts only while pages of it wait.
func (db *DB) NextWork(ctx context.Context) (*Work, error) {
	return Read(ctx, db, func(tx *Tx) (*Work, error) {
		found, err := all(tx, func(rows *sql.Rows) (w Work, err error) {
			var config rawJSON
			if err := rows.Scan(&w.ID, &w.Type, &w.Name, &config, &w.Chunked, &w.Attempts, &w.Model); err != nil {
				return w, err
			}
			w.Chunking = agent.DefaultChunking
			return w, unmarshalInto(config, &w.Chunking)
		}, `WITH work AS (SELECT s.*, type IN ('crawl','url') AS crawled,
				EXISTS (SELECT 1 FROM _pages p WHERE p.source_id = s.id AND p.pending <> '') AS pending
			FROM sources s WHERE status NOT IN ('ready','error'))
			SELECT id, type, name, config, chunked, attempts, embedding_model FROM work
			WHERE NOT crawled OR chunked OR pending OR EXISTS (SELECT 1 FROM chunks c WHERE c.source_id = work.id AND c.embedded = 0)
			ORDER BY CASE WHEN crawled THEN NOT pending ELSE chunked END, created_at, id LIMIT 1`)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return &found[0], nil
	})
}

// BeginReading notes that a source's file is about to be read, so that one
// which takes the program down with it is not tried for ever.
func (db *DB) BeginReading(ctx context.Context, id string) error {
	_, err := Write(ctx, db, func(tx *Tx) (sql.Result, error) {
		return tx.exec("UPDATE sources SET attempts = attempts + 1 WHERE id = ?", id)
	})
	return err
}

// ForgetReading takes BeginReading back: the reading was not cut off, but put
// off by the program itself.
func (db *DB) ForgetReading(ctx context.Context, id string) error {
	_, err := Write(ctx, db, func(tx *Tx) (sql.Result, error) {
		return tx.exec("UPDATE sources SET attempts = max(attempts - 1, 0) WHERE id = ?", id)
	})
	return err
}

// chunkBatch bounds how many chunks one write adds or deletes, so that other
// writes of the agent wait for a few milliseconds only.
const chunkBatch = 100

// DropChunks deletes every chunk of a source, in several writes.
func (db *DB) DropChunks(ctx context.Context, sourceID string) error {
	for {
		n, err := Write(ctx, db, func(tx *Tx) (int64, error) { return tx.dropChunks(sourceID) })
		if err != nil || n < chunkBatch {
			return err
		}
	}
}

func (tx *Tx) dropChunks(sourceID string) (int64, error) {
	done, err := tx.exec("DELETE FROM chunks WHERE seq IN (SELECT seq FROM chunks WHERE source_id = ? LIMIT ?)", sourceID, chunkBatch)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// Purge deletes some chunks of deleted sources and tells whether more is left.
func (db *DB) Purge(ctx context.Context) (more bool, err error) {
	return Write(ctx, db, func(tx *Tx) (bool, error) {
		var id string
		err := tx.value(&id, "SELECT source_id FROM _purge LIMIT 1")
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		n, err := tx.dropChunks(id)
		if err == nil && n < chunkBatch {
			_, err = tx.exec("DELETE FROM _purge WHERE source_id = ?", id)
		}
		return true, err
	})
}

// AppendChunks adds chunks to a source, the first at position from, in several
// writes. They are found by full text from then on. A source deleted meanwhile
// is NOT_FOUND.
func (db *DB) AppendChunks(ctx context.Context, sourceID string, from int, chunks []NewChunk) error {
	for len(chunks) > 0 {
		batch := chunks[:min(len(chunks), chunkBatch)]
		_, err := Write(ctx, db, func(tx *Tx) (struct{}, error) {
			return struct{}{}, tx.appendChunks(sourceID, from, batch)
		})
		if err != nil {
			return err
		}
		from, chunks = from+len(batch), chunks[len(batch):]
	}
	return nil
}

func (tx *Tx) appendChunks(sourceID string, from int, chunks []NewChunk) error {
	done, err := tx.exec("UPDATE sources SET chunks = ?, updated_at = ? WHERE id = ?", from+len(chunks), tx.Now, sourceID)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, agent.NotFound("source", sourceID))
	}
	for i, c := range chunks {
		if _, err := tx.exec("INSERT INTO chunks(id, source_id, position, content, section, page, url) VALUES (?,?,?,?,?,?,?)",
			agent.NewID(agent.KindChunk), sourceID, from+i, c.Content, c.Section, c.Page, c.URL); err != nil {
			return err
		}
	}
	return nil
}

// EndChunks notes that a source's text has been cut whole, and which model
// its vectors will be of.
func (db *DB) EndChunks(ctx context.Context, sourceID, model string) error {
	_, err := Write(ctx, db, func(tx *Tx) (sql.Result, error) {
		return tx.exec("UPDATE sources SET chunked = 1, embedding_model = ?, updated_at = ? WHERE id = ?", model, tx.Now, sourceID)
	})
	return err
}

// Unembedded is a chunk without a vector.
type Unembedded struct {
	Seq     int64
	Section string
	Content string
}

// Unembedded returns up to limit chunks of a source that have no vector.
func (db *DB) Unembedded(ctx context.Context, sourceID string, limit int) ([]Unembedded, error) {
	return Read(ctx, db, func(tx *Tx) ([]Unembedded, error) {
		return all(tx, func(rows *sql.Rows) (u Unembedded, err error) {
			return u, rows.Scan(&u.Seq, &u.Section, &u.Content)
		}, "SELECT seq, section, content FROM chunks WHERE source_id = ? AND embedded = 0 ORDER BY position LIMIT ?", sourceID, limit)
	})
}

// PutVectors stores the vectors of chunks by their Seq. Chunks that are gone
// meanwhile are passed over.
func (db *DB) PutVectors(ctx context.Context, vectors map[int64][]float32) error {
	_, err := Write(ctx, db, func(tx *Tx) (struct{}, error) {
		records := map[int][]byte{} // of the search index, by the length of the vectors
		for _, seq := range slices.Sorted(maps.Keys(vectors)) {
			source, err := tx.putVector(seq, vectors[seq])
			if errors.Is(err, sql.ErrNoRows) {
				continue
			} else if err != nil {
				return struct{}{}, err
			}
			dims := len(vectors[seq])
			records[dims] = append(records[dims], codeRecord(seq, source, vectors[seq])...)
		}
		for dims, list := range records {
			if err := tx.appendSegments(dims, list); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return err
}

// putVector stores one vector and returns the seq of its chunk's source. A
// chunk that is gone or has a vector is sql.ErrNoRows.
func (tx *Tx) putVector(seq int64, vector []float32) (source int64, err error) {
	if err := tx.value(&source, "SELECT s.seq FROM chunks c JOIN sources s ON s.id = c.source_id WHERE c.seq = ? AND c.embedded = 0", seq); err != nil {
		return 0, err
	}
	if _, err := tx.exec("INSERT INTO _chunk_vectors(rowid, source, embedding) VALUES (?,?,?)", seq, source, packVector(vector)); err != nil {
		return 0, err
	}
	_, err = tx.exec("UPDATE chunks SET embedded = 1 WHERE seq = ?", seq)
	return source, err
}

// packVector lays a vector out as sqlite-vec reads it: little-endian float32.
func packVector(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// FinishSource ends work on a source: ready, or failed with problem, and
// writes the event that tells of it.
func (db *DB) FinishSource(ctx context.Context, id string, problem *agent.SourceError) error {
	_, err := Write(ctx, db, func(tx *Tx) (struct{}, error) { return struct{}{}, tx.finishSource(id, problem) })
	return err
}

func (tx *Tx) finishSource(id string, problem *agent.SourceError) error {
	status, event := agent.SourceReady, agent.EventSourceReady
	p := agent.SourceError{}
	if problem != nil {
		status, event, p = agent.SourceFailed, agent.EventSourceError, *problem
	}
	_, err := tx.exec(`UPDATE sources SET status = ?, error_code = ?, error_message = ?, attempts = 0, updated_at = ?,
		chunks = (SELECT count(*) FROM chunks WHERE source_id = ?5) WHERE id = ?5`, status, p.Code, p.Message, tx.Now, id)
	if err != nil {
		return err
	}
	s, err := tx.source(id)
	if err != nil {
		return err
	}
	return tx.emit(event, map[string]any{"source": s})
}

// RestartSource sends a source that is finished through its work again.
// A source under work is a conflict.
func (db *DB) RestartSource(ctx context.Context, id string, status agent.SourceStatus) (agent.Source, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Source, error) {
		s, err := tx.source(id)
		if err != nil {
			return s, err
		}
		if s.Status != agent.SourceReady && s.Status != agent.SourceFailed {
			return s, agent.Errorf(agent.CodeConflict, "this source is being worked on already").With("status", s.Status)
		}
		if _, err := tx.exec(`UPDATE sources SET status = ?, chunked = 0, attempts = 0, error_code = '', error_message = '', updated_at = ?
			WHERE id = ?`, status, tx.Now, id); err != nil {
			return s, err
		}
		if err := tx.forgetCrawl(id); err != nil {
			return s, err
		}
		if err := tx.audit("source restarted", map[string]any{"source_id": id}); err != nil {
			return s, err
		}
		return tx.source(id)
	})
}

// Chunks lists the chunks of a source in their order.
func (db *DB) Chunks(ctx context.Context, sourceID string, p Page) ([]agent.Chunk, int, error) {
	var total int
	chunks, err := Read(ctx, db, func(tx *Tx) ([]agent.Chunk, error) {
		s, err := tx.source(sourceID)
		if err != nil {
			return nil, err
		}
		total = s.Chunks
		return all(tx, func(rows *sql.Rows) (c agent.Chunk, err error) {
			c.Metadata.SourceName = s.Name
			return c, rows.Scan(&c.ID, &c.Position, &c.Content, &c.Metadata.Section, &c.Metadata.Page, &c.Metadata.URL)
		}, "SELECT id, position, content, section, page, url FROM chunks WHERE source_id = ? ORDER BY position LIMIT ? OFFSET ?", sourceID, p.Limit, p.Offset)
	})
	return chunks, total, err
}
