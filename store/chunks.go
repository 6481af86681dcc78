package store

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

// NewChunk is a chunk that has not been stored yet.
type NewChunk struct {
	Content string
	Section string
	Page    int
	URL     string

	LaterSections  []string          // sections that start in it
	Line, LastLine int               // of the file; 0 for none
	PageStarts     []agent.PageStart // see agent.ChunkMetadata
}

// Work is a source that is waiting to be read or embedded.
type Work struct {
	ID       string
	Type     string
	Name     string
	Chunking agent.Chunking
	Chunked  bool // the text has been split, or the site crawled; vectors may be missing
	Attempts int  // how often reading it was begun before
	Model    string
	Reading  bool // it has to be read, split or prepared for the model; otherwise, embedded
	Delayed  bool // NoteProblem reported a delay
	Document bool // it has to be read from a file that is not text, see WorkFilter
}

// WorkFilter specifies which work NextWork looks for.
type WorkFilter struct {
	Model     string // that the vectors have to be from
	Reading   bool   // reading, splitting, and switching to Model
	Embedding bool   // embedding chunks, and finishing sources that have none left

	// TextExtensions are the extensions of names of text files, such as ".txt".
	// Other files are documents, whose reading may take long.
	TextExtensions []string
	Documents      DocumentFilter
}

// DocumentFilter specifies whether NextWork looks for documents that have to be read.
type DocumentFilter int

// With AnyWork NextWork looks for all work, with WithoutDocuments for all but reading
// documents, with OnlyDocuments for nothing else.
const (
	AnyWork DocumentFilter = iota
	WithoutDocuments
	OnlyDocuments
)

// NextWork returns the oldest source that has to be read, so that it can soon be
// found by words; otherwise the oldest whose vectors are missing; or nil. A source
// whose pages or items are fetched over the network counts only while there is
// fetched data to process. A source that only has to be embedded again with another
// model comes last, so that only one at a time is without vectors.
func (db *DB) NextWork(ctx context.Context, want WorkFilter) (*Work, error) {
	extensions, err := json.Marshal(want.TextExtensions)
	if err != nil {
		return nil, err
	}
	return Read(ctx, db, func(tx *Tx) (*Work, error) {
		return tx.readWork(`WITH work AS (SELECT s.*, CASE
					WHEN type IN ('crawl','url') THEN embedding_model <> ?1 OR EXISTS (SELECT 1 FROM _pages p WHERE p.source_id = s.id AND p.pending <> '')
					WHEN type = 'api' THEN embedding_model <> ?1
					ELSE NOT chunked OR embedding_model <> ?1 END AS reading,
					chunked AND embedding_model NOT IN ('', ?1) AS again,
					type = 'file' AND NOT chunked AND NOT EXISTS (SELECT 1 FROM _files f WHERE f.source_id = s.id
						AND lower(replace(f.name, rtrim(f.name, replace(f.name, '.', '')), '.')) IN (SELECT value FROM json_each(?4))) AS document
				FROM sources s WHERE status NOT IN ('ready','error'))
			SELECT id, type, name, config, chunked, attempts, embedding_model, reading, error_code NOT IN ('','STOPPED'), document FROM work
			WHERE (?5 = 0 OR document = (?5 = 2)) AND (reading AND ?2 OR NOT reading AND ?3 AND (chunked OR EXISTS (SELECT 1 FROM chunks c WHERE c.source_id = work.id AND c.embedded = 0)))
			ORDER BY again, reading DESC, created_at, id LIMIT 1`, want.Model, want.Reading, want.Embedding, string(extensions), int(want.Documents))
	})
}

// readWork reads one source, or nil.
func (tx *Tx) readWork(query string, args ...any) (*Work, error) {
	found, err := all(tx, func(rows *sqlite.Rows) (w Work, err error) {
		var config rawJSON
		if err := rows.Scan(
			&w.ID, &w.Type, &w.Name, &config, &w.Chunked, &w.Attempts, &w.Model, &w.Reading, &w.Delayed, &w.Document,
		); err != nil {
			return w, err
		}
		w.Chunking, err = agent.ReadChunking(w.Type, config)
		return w, err
	}, query, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// BeginReading notes that a source's file is about to be read, so that a file that
// crashes the program is not retried forever.
func (db *DB) BeginReading(ctx context.Context, id string) error {
	_, err := Write(ctx, db, func(tx *Tx) (sqlite.Result, error) {
		return tx.exec("UPDATE sources SET attempts = attempts + 1 WHERE id = ?", id)
	})
	return err
}

// ForgetReading undoes BeginReading, because the program itself postponed the
// reading.
func (db *DB) ForgetReading(ctx context.Context, id string) error {
	_, err := Write(ctx, db, func(tx *Tx) (sqlite.Result, error) {
		return tx.exec("UPDATE sources SET attempts = max(attempts - 1, 0) WHERE id = ?", id)
	})
	return err
}

// chunkBatch limits how many chunks one write adds or deletes, so that the agent's
// other writes wait only a few milliseconds.
const chunkBatch = 100

// DropChunks deletes all chunks of a source, in several writes. If the source has been
// deleted or stopped, the error is NOT_FOUND.
func (db *DB) DropChunks(ctx context.Context, sourceID string) error {
	for {
		n, err := Write(ctx, db, func(tx *Tx) (int64, error) {
			if err := tx.checkUnfinished(sourceID); err != nil {
				return 0, err
			}
			return tx.dropChunks(sourceID)
		})
		if err != nil || n < chunkBatch {
			return err
		}
	}
}

func (tx *Tx) dropChunks(sourceID string) (int64, error) {
	return tx.deleteChunks("SELECT seq FROM chunks WHERE source_id = ? LIMIT ?", sourceID, chunkBatch)
}

// Purge deletes some chunks of deleted sources and reports whether there are more.
func (db *DB) Purge(ctx context.Context) (more bool, err error) {
	return Write(ctx, db, func(tx *Tx) (bool, error) {
		var id string
		err := tx.value(&id, "SELECT source_id FROM _purge LIMIT 1")
		if errors.Is(err, sqlite.ErrNoRows) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		n, err := tx.dropChunks(id)
		if err != nil || n == chunkBatch {
			return true, err
		}
		done, err := tx.exec(
			"DELETE FROM _records WHERE seq IN (SELECT seq FROM _records WHERE source_id = ? LIMIT ?)",
			id, 10*chunkBatch,
		)
		if err != nil {
			return true, err
		}
		if n = done.Changes; n < 10*chunkBatch {
			_, err = tx.exec("DELETE FROM _purge WHERE source_id = ?", id)
		}
		return true, err
	})
}

// AppendChunks adds chunks to a source, the first at position from, in several
// writes. Full-text search finds them immediately. If the source has been deleted or
// stopped, the error is NOT_FOUND.
func (db *DB) AppendChunks(ctx context.Context, sourceID string, from int, chunks []NewChunk) error {
	for len(chunks) > 0 {
		batch := chunks[:min(len(chunks), chunkBatch)]
		err := db.Do(ctx, func(tx *Tx) error {
			if err := tx.checkUnfinished(sourceID); err != nil {
				return err
			}
			return tx.appendChunks(sourceID, from, batch)
		})
		if err != nil {
			return err
		}
		from, chunks = from+len(batch), chunks[len(batch):]
	}
	return nil
}

func (tx *Tx) appendChunks(sourceID string, from int, chunks []NewChunk) error {
	done, err := tx.exec(
		"UPDATE sources SET chunks = ?, updated_at = ? WHERE id = ?",
		from+len(chunks),
		tx.Now,
		sourceID,
	)
	if err != nil {
		return err
	}
	if done.Changes == 0 {
		return errors.Join(err, agent.NotFound("source", sourceID))
	}
	for i, c := range chunks {
		if err := tx.insertChunk(sourceID, from+i, 0, c); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) insertChunk(sourceID string, position int, record int64, chunk NewChunk) error {
	pages := ""
	if len(chunk.PageStarts) > 0 {
		raw, _ := json.Marshal(chunk.PageStarts) // numbers cannot fail
		pages = string(raw)
	}
	_, err := tx.exec(
		`INSERT INTO chunks(id, source_id, position, content, section, page, url, record_seq,
		further_sections, line, last_line, page_starts)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?)`,
		agent.NewID(agent.KindChunk),
		sourceID, position, chunk.Content, chunk.Section, chunk.Page, chunk.URL, record,
		strings.Join(chunk.LaterSections, "\n"),
		chunk.Line,
		chunk.LastLine,
		pages,
	)
	return err
}

// EndChunks notes that a source's text has been split completely, and which model
// its vectors will be from.
func (db *DB) EndChunks(ctx context.Context, sourceID, model string) error {
	_, err := Write(ctx, db, func(tx *Tx) (sqlite.Result, error) {
		return tx.exec(
			"UPDATE sources SET chunked = 1, embedding_model = ?, updated_at = ? WHERE id = ? "+
				"AND status NOT IN ('ready','error')",
			model,
			tx.Now,
			sourceID,
		)
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
		return all(
			tx,
			func(rows *sqlite.Rows) (u Unembedded, err error) {
				return u, rows.Scan(&u.Seq, &u.Section, &u.Content)
			},
			"SELECT seq, section, content FROM chunks WHERE source_id = ? AND embedded = 0 ORDER BY position LIMIT ?",
			sourceID, limit,
		)
	})
}

// NoteProblem shows on a source what is delaying its processing, which continues;
// nil clears that. A source that was stopped keeps showing that.
func (db *DB) NoteProblem(ctx context.Context, id string, problem *agent.SourceError) error {
	_, err := Write(ctx, db, func(tx *Tx) (sqlite.Result, error) {
		p := agent.SourceError{}
		if problem != nil {
			p = *problem
		}
		return tx.exec(
			"UPDATE sources SET error_code = ?, error_message = ?, updated_at = ? WHERE id = ? AND status NOT IN "+
				"('ready','error') AND error_code <> 'STOPPED'",
			p.Code, p.Message, tx.Now, id,
		)
	})
	return err
}

// FinishSource marks a source as ready, or as failed with problem, and emits the
// event. A crawl that was stopped fails with that. If the source has been deleted or
// has ended, the error is NOT_FOUND.
func (db *DB) FinishSource(ctx context.Context, id string, problem *agent.SourceError) error {
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.checkUnfinished(id); err != nil {
			return err
		}
		if problem == nil {
			var err error
			if problem, err = tx.stopOf(id); err != nil {
				return err
			}
		}
		return tx.finishSource(id, problem)
	})
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

// RestartSource processes a finished source again. It returns CONFLICT while the
// source is being processed.
func (db *DB) RestartSource(ctx context.Context, id string, status agent.SourceStatus) (agent.Source, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Source, error) {
		return tx.restartSource(id, status)
	})
}

func (tx *Tx) restartSource(id string, status agent.SourceStatus) (agent.Source, error) {
	source, err := tx.source(id)
	if err != nil {
		return source, err
	}
	if source.Status != agent.SourceReady && source.Status != agent.SourceFailed {
		return source, agent.Errorf(
			agent.CodeConflict,
			"this source is already being processed",
		).With("status", source.Status)
	}
	if _, err := tx.exec(`UPDATE sources SET status = ?, chunked = 0, attempts = 0, error_code = '', error_message = '', updated_at = ?
		WHERE id = ?`, status, tx.Now, id); err != nil {
		return source, err
	}
	if err := tx.forgetCrawl(id); err != nil {
		return source, err
	}
	if _, err := tx.exec("UPDATE _feeds SET page = 0, next = '' WHERE source_id = ?", id); err != nil {
		return source, err
	}
	if err := tx.audit("source restarted", map[string]any{"source_id": id}); err != nil {
		return source, err
	}
	return tx.source(id)
}

// Chunks lists the chunks of a source in their order.
func (db *DB) Chunks(ctx context.Context, sourceID string, page Page) ([]agent.Chunk, int, error) {
	var total int
	chunks, err := Read(ctx, db, func(tx *Tx) ([]agent.Chunk, error) {
		s, err := tx.source(sourceID)
		if err != nil {
			return nil, err
		}
		total = s.Chunks
		return all(
			tx,
			scanChunk(s.Name),
			"SELECT "+chunkColumns+" FROM chunks WHERE source_id = ? ORDER BY position LIMIT ? OFFSET ?",
			sourceID,
			page.Limit,
			page.Offset,
		)
	})
	return chunks, total, err
}

const chunkColumns = "id, position, content, " + placeColumns

// placeColumns are the columns that placeOf returns fields for.
const placeColumns = "section, page, url, further_sections, line, last_line, page_starts"

func scanChunk(source string) func(*sqlite.Rows) (agent.Chunk, error) {
	return func(rows *sqlite.Rows) (c agent.Chunk, err error) {
		place := placeOf(&c)
		if err = rows.Scan(append([]any{&c.ID, &c.Position, &c.Content}, place.fields()...)...); err == nil {
			place.set(source)
		}
		return c, err
	}
}

// chunkPlace says where in its source a chunk is.
type chunkPlace struct {
	*agent.ChunkMetadata
	content        *string
	further, pages string
}

func placeOf(c *agent.Chunk) *chunkPlace {
	return &chunkPlace{ChunkMetadata: &c.Metadata, content: &c.Content}
}

func (p *chunkPlace) fields() []any {
	return []any{&p.Section, &p.Page, &p.URL, &p.further, &p.Line, &p.LastLine, &p.pages}
}

// set completes what was read.
func (p *chunkPlace) set(source string) {
	p.SourceName, p.Sections = source, []string{}
	if p.Section != "" {
		p.Sections = append(p.Sections, p.Section)
	}
	if p.further != "" {
		p.Sections = append(p.Sections, strings.Split(p.further, "\n")...)
	}
	p.LastPage = p.Page
	_ = json.Unmarshal([]byte(p.pages), &p.PageStarts) // empty unless it has several pages
	last := -1
	for _, start := range p.PageStarts {
		if start.Offset <= last || start.Offset > len(*p.content) { // an imported file may have anything
			p.PageStarts = nil
			break
		}
		last = start.Offset
	}
	p.SetPlace()
	p.SetPages([2]int{0, len(*p.content)})
}

// EachChunk calls fn with the chunks of a source from position first to last, in
// order.
func (tx *Tx) EachChunk(sourceID string, first, last int, fn func(agent.Chunk)) error {
	source, err := tx.source(sourceID)
	if err != nil {
		return err
	}
	scan := scanChunk(source.Name)
	return tx.each(
		func(rows *sqlite.Rows) error {
			c, err := scan(rows)
			if err == nil {
				fn(c)
			}
			return err
		},
		"SELECT "+chunkColumns+" FROM chunks WHERE source_id = ? AND position BETWEEN ? AND ? ORDER BY position",
		sourceID,
		first,
		last,
	)
}

// sampledLength limits the characters of a chunk that SourceTexts returns.
const sampledLength = 300

// SourceTexts returns the beginnings of up to limit chunks from the middle of the
// newest sources, as a sample of their content.
func (db *DB) SourceTexts(ctx context.Context, limit int) ([]string, error) {
	return Read(ctx, db, func(tx *Tx) ([]string, error) {
		return all(tx, func(rows *sqlite.Rows) (text string, err error) {
			return text, rows.Scan(&text)
		}, `SELECT substr(c.content, 1, ?1) FROM (SELECT id, chunks FROM sources WHERE chunks > 0 ORDER BY created_at DESC, id DESC LIMIT ?2) s
			CROSS JOIN chunks c ON c.source_id = s.id AND c.position IN (s.chunks / 4, s.chunks / 2, s.chunks * 3 / 4) LIMIT ?2`, sampledLength, limit)
	})
}
