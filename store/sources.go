package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

const sourceColumns = "id, type, name, status, chunks, file_path, config, embedding_model, error_code, " +
	"error_message, created_at, updated_at"

var sourceListing = listing[agent.Source]{listed{
	table:   "sources",
	columns: strings.Replace(sourceColumns, " config,", " json_remove(config, '$.pageHashes', '$.failedPages'),", 1),
	order:   Order{"created_at", true},
	sort: map[string]string{
		"name":       "name COLLATE NOCASE",
		"created_at": "created_at",
		"updated_at": "updated_at",
		"status":     "status",
		"type":       "type",
		"chunks":     "chunks",
	},
	search: []string{"name"},
}, scanSource}

func scanSource(rows *sqlite.Rows) (s agent.Source, err error) {
	var problem agent.SourceError
	err = rows.Scan(
		&s.ID, &s.Type, &s.Name, &s.Status, &s.Chunks, &s.FilePath, (*rawJSON)(&s.Config), &s.EmbeddingModel,
		&problem.Code, &problem.Message, &s.CreatedAt, &s.UpdatedAt,
	)
	if problem.Code != "" {
		s.Error = &problem
	}
	return s, err
}

// SourceFilter selects sources with any of the given values.
type SourceFilter struct {
	Types    []string
	Statuses []string
}

// Sources lists sources, newest first; those being processed with their progress.
func (db *DB) Sources(ctx context.Context, sf SourceFilter, p Page) ([]agent.Source, int, error) {
	var f filter
	f.in("type", sf.Types...)
	f.in("status", sf.Statuses...)
	var total int
	list, err := Read(ctx, db, func(tx *Tx) (list []agent.Source, err error) {
		list, total, err = sourceListing.list(tx, f, p)
		for i := 0; i < len(list) && err == nil; i++ {
			list[i].Progress, err = tx.sourceProgress(list[i])
		}
		return list, err
	})
	return list, total, err
}

// Source reads one source, with its progress if it is being processed.
func (db *DB) Source(ctx context.Context, id string) (agent.Source, error) {
	return Read(ctx, db, func(tx *Tx) (agent.Source, error) { return tx.source(id) })
}

func (tx *Tx) source(id string) (agent.Source, error) {
	found, err := all(tx, scanSource, "SELECT "+sourceColumns+" FROM sources WHERE id = ?", id)
	if err != nil {
		return agent.Source{}, err
	}
	if len(found) == 0 {
		return agent.Source{}, agent.NotFound("source", id)
	}
	s := found[0]
	s.Progress, err = tx.sourceProgress(s)
	return s, err
}

// sourceProgress counts the pages or chunks of a source that is being processed; nil
// for others.
func (tx *Tx) sourceProgress(source agent.Source) (*agent.Progress, error) {
	if source.Status == agent.SourceReady || source.Status == agent.SourceFailed {
		return nil, nil
	}
	if agent.Crawled(source.Type) {
		return tx.crawlProgress(source)
	}
	p := agent.Progress{Total: source.Chunks}
	if err := tx.value(
		&p.Queued,
		"SELECT count(*) FROM chunks WHERE source_id = ? AND embedded = 0",
		source.ID,
	); err != nil {
		return nil, err
	}
	p.Done = p.Total - p.Queued
	return &p, nil
}

// DeleteSource removes a source with its file. Its chunks become invisible
// immediately and are deleted by Purge.
func (db *DB) DeleteSource(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.deleteRow("sources", "source", id); err != nil {
			return err
		}
		return tx.audit("source deleted", map[string]any{"source_id": id})
	})
}

// partSize is how much of a file is stored in one row, which limits how long an
// upload keeps other writes waiting.
const partSize = 256 << 10

// Upload is a file whose bytes are stored in the agent's file and that does not
// belong to a source yet.
type Upload struct {
	Name      string // base name, as given by the client
	MediaType string
	Size      int64
	SHA256    string

	id string
	db *DB
}

// ErrTooLarge reports that a file is longer than the upload limit.
var ErrTooLarge = errors.New("file too large")

// ReceiveFile stores the bytes of reader, up to limit; a longer file is ErrTooLarge. End
// the upload with CreateFileSource or Discard.
func (db *DB) ReceiveFile(ctx context.Context, name, mediaType string, reader io.Reader, limit int64) (*Upload, error) {
	upload := &Upload{
		Name:      name,
		MediaType: mediaType,
		id:        agent.NewID("upload"),
		db:        db,
	}
	db.mu.Lock()
	if db.uploads == nil {
		db.uploads = map[string]bool{}
	}
	db.uploads[upload.id] = true
	db.mu.Unlock()
	if err := upload.receive(ctx, reader, limit); err != nil {
		upload.Discard()
		return nil, err
	}
	return upload, nil
}

func (u *Upload) receive(ctx context.Context, reader io.Reader, limit int64) error {
	hash := sha256.New()
	buf := make([]byte, partSize)
	for count := 0; ; count++ {
		read, err := io.ReadFull(reader, buf)
		if read > 0 {
			part := buf[:read]
			hash.Write(part)
			if u.Size += int64(read); u.Size > limit {
				return ErrTooLarge
			}
			_, werr := Write(ctx, u.db, func(tx *Tx) (sqlite.Result, error) {
				return tx.exec("INSERT INTO _file_parts(upload, n, data) VALUES (?,?,?)", u.id, count, part)
			})
			if werr != nil {
				return werr
			}
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			u.SHA256 = hex.EncodeToString(hash.Sum(nil))
			return nil
		case err != nil:
			return fmt.Errorf("receive file: %w", err)
		}
	}
}

// Discard removes an upload that did not become a source. It may be called after
// CreateFileSource; it then does nothing.
func (u *Upload) Discard() {
	if !u.finish() {
		return
	}
	_, err := Write(context.Background(), u.db, func(tx *Tx) (sqlite.Result, error) {
		return tx.exec("DELETE FROM _file_parts WHERE upload = ?", u.id)
	})
	if err != nil && !errors.Is(err, ErrNotOwner) { // the server that opens the file next removes it
		u.db.folder.log.Error("discard upload", "agent", u.db.id, "error", err)
	}
}

// finish ends the upload and reports whether it was still in progress.
func (u *Upload) finish() bool {
	u.db.mu.Lock()
	defer u.db.mu.Unlock()
	registered := u.db.uploads[u.id]
	delete(u.db.uploads, u.id)
	return registered
}

// dropLostUploads removes parts that no source and no upload in progress owns, which
// a crash left behind.
func (tx *Tx) dropLostUploads() error {
	lost, err := all(
		tx,
		func(rows *sqlite.Rows) (id string, err error) {
			return id, rows.Scan(&id)
		},
		"SELECT DISTINCT upload FROM _file_parts WHERE upload NOT IN (SELECT upload FROM _files) AND upload NOT IN "+
			"(SELECT upload FROM downloads) AND upload NOT IN (SELECT upload FROM _attachments)",
	)
	if err != nil {
		return err
	}
	for _, id := range lost {
		tx.db.mu.Lock()
		running := tx.db.uploads[id]
		tx.db.mu.Unlock()
		if running {
			continue
		}
		if _, err := tx.exec("DELETE FROM _file_parts WHERE upload = ?", id); err != nil {
			return err
		}
	}
	return nil
}

// CreateFileSource creates a source from an upload, with the status processing.
func (db *DB) CreateFileSource(
	ctx context.Context,
	name string,
	chunking agent.Chunking,
	upload *Upload,
) (agent.Source, error) {
	if err := agent.CheckSourceName(name); err != nil {
		return agent.Source{}, err
	}
	config, err := json.Marshal(chunking)
	if err != nil {
		return agent.Source{}, err
	}
	source, err := Write(ctx, db, func(tx *Tx) (agent.Source, error) {
		id := agent.NewID(agent.KindSource)
		s := agent.Source{
			ID:        id,
			Type:      agent.SourceFile,
			Name:      name,
			Status:    agent.SourceProcessing,
			Config:    config,
			FilePath:  "sources/" + id + "/" + upload.Name,
			CreatedAt: tx.Now,
			UpdatedAt: tx.Now,
		}
		if _, err := tx.exec(
			"INSERT INTO sources(id, type, name, status, file_path, config, created_at, "+
				"updated_at) VALUES (?,?,?,?,?,?,?,?)",
			s.ID, s.Type, s.Name, s.Status, s.FilePath,
			string(s.Config),
			s.CreatedAt,
			s.UpdatedAt,
		); err != nil {
			return s, err
		}
		if _, err := tx.exec(
			"INSERT INTO _files(source_id, upload, name, media_type, size, sha256) VALUES (?,?,?,?,?,?)",
			s.ID, upload.id, upload.Name, upload.MediaType, upload.Size, upload.SHA256,
		); err != nil {
			return s, err
		}
		return s, tx.audit("source created", map[string]any{"source_id": s.ID, "name": s.Name})
	})
	if err == nil {
		upload.finish()
	}
	return source, err
}

// File is the original file of a source.
type File struct {
	Name      string
	MediaType string
	Size      int64
	SHA256    string

	upload string
	db     *DB
}

// SourceFile returns the original file of a source.
func (db *DB) SourceFile(ctx context.Context, sourceID string) (File, error) {
	return Read(ctx, db, func(tx *Tx) (File, error) {
		f := File{db: db}
		if _, err := tx.source(sourceID); err != nil {
			return f, err
		}
		err := tx.row(
			"SELECT upload, name, media_type, size, sha256 FROM _files WHERE source_id = ?",
			sourceID,
		).Scan(&f.upload, &f.Name, &f.MediaType, &f.Size, &f.SHA256)
		if errors.Is(err, sqlite.ErrNoRows) {
			return f, agent.Errorf(agent.CodeNotFound, "this source has no file")
		}
		return f, err
	})
}

// WriteTo writes the file part by part. If the source is deleted in the meantime, it
// stops with an error.
func (f File) WriteTo(ctx context.Context, w io.Writer) error {
	for written, n := int64(0), 0; written < f.Size; n++ {
		part, err := Read(ctx, f.db, func(tx *Tx) (part []byte, err error) {
			return part, tx.value(&part, "SELECT data FROM _file_parts WHERE upload = ? AND n = ?", f.upload, n)
		})
		if err != nil {
			return fmt.Errorf("read file part %d: %w", n, err)
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
		written += int64(len(part))
	}
	return nil
}
