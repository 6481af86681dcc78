package store

import (
	"context"

	"satchel/agent"
	"satchel/store/sqlite"
)

const downloadColumns = "id, session_id, name, url, size, status, error, created_at"

var downloadListing = listing[agent.Download]{listed{
	table:   "downloads",
	columns: downloadColumns,
	order:   Order{"created_at", true},
	sort:    map[string]string{"created_at": "created_at", "name": "name COLLATE NOCASE", "size": "size"},
	search:  []string{"name", "url"},
}, scanDownload}

func scanDownload(rows *sqlite.Rows) (d agent.Download, err error) {
	return d, rows.Scan(&d.ID, &d.SessionID, &d.Name, &d.URL, &d.Size, &d.Status, &d.Error, &d.CreatedAt)
}

// Downloads lists files downloaded by pages, newest first; sessionID limits it to
// one session unless it is "".
func (db *DB) Downloads(ctx context.Context, sessionID string, p Page) ([]agent.Download, int, error) {
	f := filter{indexed: sessionID == ""}
	f.add("1") // so that rows are counted
	if sessionID != "" {
		f.add("session_id = ?", sessionID)
	}
	return listPage(ctx, db, downloadListing, f, p)
}

// CreateDownload stores a download, whose bytes ReceiveFile took; file is nil if it
// failed. The oldest downloads are deleted to make room.
func (db *DB) CreateDownload(ctx context.Context, download agent.Download, file *Upload) (agent.Download, error) {
	upload := ""
	if file != nil {
		upload, download.Size = file.id, file.Size
	}
	made, err := Write(ctx, db, func(tx *Tx) (agent.Download, error) {
		d := download
		d.ID, d.CreatedAt = agent.NewID(agent.KindDownload), tx.Now
		if _, err := tx.exec(
			"INSERT INTO downloads("+downloadColumns+", upload) VALUES (?,?,?,?,?,?,?,?,?)",
			d.ID, d.SessionID, d.Name, d.URL, d.Size, d.Status, d.Error, d.CreatedAt, upload,
		); err != nil {
			return d, err
		}
		_, err := tx.exec(`DELETE FROM downloads WHERE id IN (SELECT id FROM
			(SELECT id, row_number() OVER newest AS n, sum(size) OVER newest AS bytes FROM downloads WINDOW newest AS (ORDER BY created_at DESC, id DESC))
			WHERE n > ? OR bytes > ? AND n > 1)`, agent.MaxDownloads, agent.MaxDownloadBytes)
		return d, err
	})
	if err == nil && file != nil {
		file.finish()
	}
	return made, err
}

// DownloadFile returns the bytes of a download.
func (db *DB) DownloadFile(ctx context.Context, id string) (File, error) {
	return Read(ctx, db, func(tx *Tx) (File, error) {
		f := File{db: db, MediaType: "application/octet-stream"}
		found, err := all(tx, func(rows *sqlite.Rows) (File, error) {
			f := f
			return f, rows.Scan(&f.Name, &f.Size, &f.upload)
		}, "SELECT name, size, upload FROM downloads WHERE id = ?", id)
		if err != nil {
			return f, err
		}
		if len(found) == 0 || found[0].upload == "" {
			return f, agent.NotFound("download", id)
		}
		return found[0], nil
	})
}

// DeleteDownload removes a download with its bytes.
func (db *DB) DeleteDownload(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.deleteRow("downloads", "download", id); err != nil {
			return err
		}
		return tx.audit("download deleted", map[string]any{"download_id": id})
	})
}
