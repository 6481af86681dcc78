package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"satchel/store/sqlite"
)

// A search finds records that contain a text. In large tables it uses an index of
// trigrams, which is a part of the schema that the first search requests; what the
// index finds is compared with the text itself. The index is built in the
// background, oldest rows first. Rows that it does not contain yet, and rows that
// have changed since (_search_changes), are examined one by one.

// While much is left to index, searches run one at a time, so that the processor
// time that the index needs does not go to examining the same rows again and again.

// searched are the tables with a search index, and what the index contains.
var searched = map[string]string{
	"contacts":      "name || char(1,1) || email || char(1,1) || phone || char(1,1)",
	"conversations": "external_thread_id || char(1,1) || metadata || char(1,1)",
	"messages":      "content || char(1,1)",
}

// candidates returns a query for the rows of an index that may contain a text; ok is
// false if the index does not help. Each trigram in the index is three characters
// long, padded with two after the end of each text, so that a shorter text is found
// where a trigram begins with it.
func candidates(index, text string) (query string, arg []any, ok bool) {
	runes := []rune(text)
	switch {
	case strings.ContainsRune(text, 0) ||
		!utf8.ValidString(text) ||
		len(runes) == 0 ||
		len(runes) == 1 && runes[0] < utf8.RuneSelf:
		return "", nil, false
	case len(runes) < 3:
		from := strings.ToLower(text)
		return "SELECT doc FROM " + index +
			"_terms WHERE term >= ? AND term < ?", []any{from, from + "\U0010FFFF"}, true
	}
	pieces := rarest(runes)
	for i, p := range pieces {
		pieces[i] = `"` + strings.ReplaceAll(p, `"`, `""`) + `"`
	}
	return "SELECT rowid FROM " + index + " WHERE " + index + " MATCH ?", []any{strings.Join(pieces, " ")}, true
}

// maxPieces limits how many trigrams of a text are looked up: a frequent one costs
// more than it excludes.
const maxPieces = 3

// rarest returns the trigrams of a text that are likely to be in few records. Of two
// similar ones it prefers the later, since numbers and names usually differ at the
// end.
func rarest(runes []rune) []string {
	pieces := make([]string, 0, len(runes)-2)
	for i := len(runes) - 3; i >= 0; i-- {
		pieces = append(pieces, string(runes[i:i+3]))
	}
	slices.SortStableFunc(pieces, func(a, b string) int {
		return rarity(b) - rarity(a)
	})
	return pieces[:min(len(pieces), maxPieces)]
}

// frequentFirst are the characters of ordinary text, most frequent first.
const frequentFirst = " etaoinsrhldcumfpgwybvk"

// rarity returns a larger number for a rarer trigram.
func rarity(piece string) (sum int) {
	for _, r := range strings.ToLower(piece) {
		if i := strings.IndexRune(frequentFirst, r); i >= 0 {
			sum += i
		} else {
			sum += len(frequentFirst)
		}
	}
	return sum
}

// readSearch is Read for a list that may be searched for a text.
func readSearch[T any](ctx context.Context, db *DB, text string, fn func(*Tx) (T, error)) (T, error) {
	if text != "" && db.indexing.Load() {
		leave, err := db.awaitExamining(ctx)
		if err != nil {
			var zero T
			return zero, err
		}
		defer leave()
	}
	return Read(ctx, db, fn)
}

// awaitExamining waits until no other search of the file examines the rows that are
// not indexed, or until all are indexed.
func (db *DB) awaitExamining(ctx context.Context) (leave func(), err error) {
	f, err := db.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer db.release(ctx)
	select {
	case f.examining <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	leave = sync.OnceFunc(func() { <-f.examining })
	if !db.indexing.Load() {
		leave()
	}
	return leave, nil
}

// searchPart begins the names of the parts of the schema that are indexes of texts.
const searchPart = "search_"

// indexedTo returns the first row of a table that its index does not contain; 0 if
// there is no index. A table that is large enough gets one.
func (tx *Tx) indexedTo(table string) (next int64, err error) {
	err = tx.value(&next, "SELECT n FROM _filter_counts WHERE list = 'search' AND value_1 = ?", table)
	if !errors.Is(err, sqlite.ErrNoRows) {
		return next, err
	}
	return 0, tx.wantFor(table, searchPart+table)
}

// found returns a query for column of the rows, from row oldest on, that contain a
// text in one of the columns.
func (tx *Tx) found(table, column string, columns []string, text string, oldest int64) (string, []any, error) {
	like, args := likeAny(columns, text)
	next, err := tx.indexedTo(table)
	if err != nil {
		return "", nil, err
	}
	which, some, ok := candidates("_search_"+table, text)
	base := "SELECT " + column + " AS found FROM " + table + " WHERE rowid "
	if next == 0 || !ok {
		return base + ">= ? AND " + like, append([]any{oldest}, args...), nil
	}
	query := base + "IN (" + which + ") AND rowid >= ? AND " + like + " UNION ALL " +
		base + ">= ? AND " + like + " UNION ALL " +
		base + "IN (SELECT CAST(row AS INTEGER) FROM _search_changes WHERE list = ?) AND rowid >= ? AND " + like
	return query, slices.Concat(
		some,
		[]any{oldest},
		args,
		[]any{max(next, oldest)},
		args,
		[]any{table, oldest},
		args,
	), nil
}

// foundLogs is found for the log, whose index is in blocks of entries.
func (tx *Tx) foundLogs(columns []string, text string) (string, []any, error) {
	next, err := tx.indexedTo("logs")
	which, some, ok := candidates("_search_logs", text)
	if next == 0 || !ok || err != nil {
		return "", nil, err
	}
	like, args := likeAny(columns, text)
	const base = "SELECT logs.created_at AS found_at, logs.id AS found_id FROM "
	query := base + `_search_log_blocks b CROSS JOIN logs ON (logs.created_at, logs.id) > (b.after_at, b.after_id) AND (logs.created_at, logs.id) <= (b.to_at, b.to_id)
		WHERE b.seq IN (` + which + ") AND " + like + " UNION ALL " +
		base + "logs WHERE " + behindBlocks + " AND " + like + " UNION ALL " +
		base + "_search_changes c CROSS JOIN logs ON logs.created_at = substr(c.row, 1, 24) " +
		"AND logs.id = substr(c.row, 25) WHERE c.list = 'logs' AND " + like
	return query, slices.Concat(some, args, args, args), nil
}

// How much is indexed at a time: in one write, and in one check of a file.
const (
	indexedRows   = 500
	unindexedRows = 64 // that a search examines one by one
	blockRows     = 64
	indexedBlocks = 16 // of blockRows entries of the log
	indexingTime  = 200 * time.Millisecond
	indexingDelay = 400 * time.Millisecond // without writes
	maxLogChanges = 2_000                  // to entries out of order; after more, the log is indexed again
)

// indexSearched indexes the rows that are searched, as far as time allows.
func (db *DB) indexSearched(ctx context.Context, file *file) error {
	for begun := time.Now(); ; {
		lacking, err := db.unindexed(ctx, file)
		if err != nil || len(lacking) == 0 {
			db.indexing.Store(false)
			return err
		}
		if spent := time.Since(begun); spent > indexingDelay || spent > indexingTime && file.isWriting() {
			db.partsDue.Store(true)
			db.indexing.Store(true)
			return nil
		}
		for _, table := range lacking {
			err := file.submit(&job{ctx: ctx, run: func(c *conn) error {
				tx := newTx(ctx, c, db)
				if table == "logs" {
					return tx.indexLogs()
				}
				return tx.indexRows(table)
			}})
			if err != nil {
				return fmt.Errorf("index records for search: %w", err)
			}
		}
	}
}

// unindexed lists the tables whose index lacks enough rows to be worth a write.
func (db *DB) unindexed(ctx context.Context, file *file) (tables []string, err error) {
	err = db.readUnused(ctx, file, func(tx *Tx) error {
		indexed, err := all(tx, scanID, "SELECT value_1 FROM _filter_counts WHERE list = 'search'")
		for _, table := range indexed {
			where, rows, changes :=
				"rowid >= (SELECT n FROM _filter_counts WHERE list = 'search' AND value_1 = ?1)",
				unindexedRows, unindexedRows
			if table == "logs" {
				where, rows, changes = behindBlocks, 2*blockRows, maxLogChanges
			}
			lacks := false
			query := "SELECT (SELECT count(*) FROM (SELECT 1 FROM " + table + " WHERE " + where +
				" LIMIT ?2)) >= ?2 OR (SELECT count(*) FROM _search_changes WHERE list = ?1) >= ?3"
			if err := tx.value(&lacks, query, table, rows, changes); err != nil {
				return err
			}
			if lacks {
				tables = append(tables, table)
			}
		}
		return err
	})
	return tables, err
}

// behindBlocks is the condition that an entry of the log is not in a block yet.
const behindBlocks = "(created_at, id) > (SELECT to_at, to_id FROM _search_log_blocks UNION ALL SELECT '', '' " +
	"ORDER BY 1 DESC, 2 DESC LIMIT 1)"

// indexRows adds rows to the index of a table, starting with those that have
// changed.
func (tx *Tx) indexRows(table string) error {
	text := searched[table]
	for _, step := range []struct {
		query string
		args  []any
	}{
		{
			"DELETE FROM _search_" + table +
				" WHERE rowid IN (SELECT CAST(row AS INTEGER) FROM _search_changes " +
				"WHERE list = ? ORDER BY row LIMIT ?)",
			[]any{table, indexedRows},
		},
		{"INSERT INTO _search_" + table + "(rowid, text) SELECT rowid, " + text + " FROM " + table + ` WHERE rowid IN (SELECT CAST(row AS INTEGER) FROM _search_changes WHERE list = ?1 ORDER BY row LIMIT ?2)
			AND rowid < (SELECT n FROM _filter_counts WHERE list = 'search' AND value_1 = ?1)`, []any{table, indexedRows}},
		{
			"DELETE FROM _search_changes WHERE (list, row) IN (SELECT list, row FROM _search_changes " +
				"WHERE list = ? ORDER BY row LIMIT ?)",
			[]any{table, indexedRows},
		},
	} {
		if _, err := tx.exec(step.query, step.args...); err != nil {
			return err
		}
	}
	var next, last int64
	if err := tx.value(&next, "SELECT n FROM _filter_counts WHERE list = 'search' AND value_1 = ?", table); err != nil {
		return err
	}
	if err := tx.value(
		&last,
		"SELECT coalesce(max(rowid), 0) FROM (SELECT rowid FROM "+table+" WHERE rowid >= ? ORDER BY rowid LIMIT ?)",
		next,
		indexedRows,
	); err != nil || last == 0 {
		return err
	}
	if _, err := tx.exec(
		"INSERT INTO _search_"+table+"(rowid, text) SELECT rowid, "+text+" FROM "+table+" WHERE rowid BETWEEN ? AND ?",
		next,
		last,
	); err != nil {
		return err
	}
	_, err := tx.exec("UPDATE _filter_counts SET n = ? WHERE list = 'search' AND value_1 = ?", last+1, table)
	return err
}

// indexLogs adds blocks of entries to the index of the log, and removes blocks
// of deleted entries.
func (tx *Tx) indexLogs() error {
	var changes int
	if err := tx.value(&changes, "SELECT count(*) FROM _search_changes WHERE list = 'logs'"); err != nil {
		return err
	}
	cleaning := []string{
		"DELETE FROM _search_logs WHERE rowid IN (SELECT seq FROM _search_log_blocks WHERE " + emptyBlocks + ")",
		"DELETE FROM _search_log_blocks WHERE " + emptyBlocks,
	}
	if changes >= maxLogChanges {
		cleaning = []string{
			"DELETE FROM _search_changes WHERE list = 'logs'",
			"DELETE FROM _search_log_blocks",
			"INSERT INTO _search_logs(_search_logs) VALUES ('delete-all')",
		}
	}
	for _, query := range cleaning {
		if _, err := tx.exec(query); err != nil {
			return err
		}
	}
	for range indexedBlocks {
		if more, err := tx.addBlock(); err != nil || !more {
			return err
		}
	}
	return nil
}

const emptyBlocks = "(to_at, to_id) < (SELECT created_at, id FROM logs ORDER BY created_at, id LIMIT 1)"

// addBlock indexes the next blockRows entries of the log, if there are that many.
func (tx *Tx) addBlock() (more bool, err error) {
	type key struct {
		at, id string
		seq    int64
	}
	last, err := all(
		tx,
		func(rows *sqlite.Rows) (k key, err error) {
			return k, rows.Scan(&k.at, &k.id, &k.seq)
		},
		"SELECT to_at, to_id, (SELECT max(seq) FROM _search_log_blocks) FROM _search_log_blocks UNION ALL "+
			"SELECT '', '', 0 ORDER BY 1 DESC, 2 DESC LIMIT 1",
	)
	if err != nil {
		return false, err
	}
	end, err := all(
		tx,
		func(rows *sqlite.Rows) (k key, err error) {
			return k, rows.Scan(&k.at, &k.id)
		},
		"SELECT created_at, id FROM logs WHERE (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT 1 OFFSET ?",
		last[0].at,
		last[0].id,
		blockRows-1,
	)
	if err != nil || len(end) == 0 {
		return false, err
	}
	from, to, seq := last[0], end[0], last[0].seq+1
	if _, err := tx.exec(
		"INSERT INTO _search_log_blocks(to_at, to_id, after_at, after_id, seq) VALUES (?,?,?,?,?)",
		to.at, to.id, from.at, from.id, seq,
	); err != nil {
		return false, err
	}
	if _, err := tx.exec(`INSERT INTO _search_logs(rowid, text) SELECT ?, group_concat(message || char(1,1) || data || char(1,1), '')
		FROM logs WHERE (created_at, id) > (?, ?) AND (created_at, id) <= (?, ?)`, seq, from.at, from.id, to.at, to.id); err != nil {
		return false, err
	}
	_, err = tx.exec("UPDATE _filter_counts SET value_2 = ? WHERE list = 'search' AND value_1 = 'logs'", to.at)
	return true, err
}
