package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"satchel/agent"
	"satchel/store/search"
	"satchel/store/sqlite"
)

// There is one table of vectors for each length, because sqlite-vec requires all
// vectors of a table to have the same length: _chunk_vectors, created with the first
// chunk, holds those of the built-in model; the others are created with the first
// vector of their length. A row has the seq of its chunk. When a chunk is deleted, a
// trigger of the schema deletes its vector from the first table, and deleteChunks
// from the others.
const (
	vectorTable  = "_chunk_vectors"
	vectorLength = 512
)

// MaxVectorLength is the largest number of dimensions that can be stored.
const MaxVectorLength = 8192

// vectorsOf returns the name of the table for vectors of n dimensions.
func vectorsOf(n int) string {
	if n == vectorLength {
		return vectorTable
	}
	return vectorTable + "_" + strconv.Itoa(n)
}

// otherVectors lists the vector tables that are not part of the schema.
func (tx *Tx) otherVectors() ([]string, error) {
	found, err := all(
		tx,
		func(rows *sqlite.Rows) (name string, err error) {
			return name, rows.Scan(&name)
		},
		"SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB '_chunk_vectors_[0-9]*'",
	)
	return slices.DeleteFunc(found, func(name string) bool {
		_, err := strconv.Atoi(strings.TrimPrefix(name, vectorTable+"_"))
		return err != nil // a shadow table
	}), err
}

// hasVectors reports whether there is a table for vectors of n dimensions.
func (tx *Tx) hasVectors(n int) (has bool, err error) {
	return has, tx.value(
		&has,
		"SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?)",
		vectorsOf(n),
	)
}

// vectorBlock is how many bytes of vectors sqlite-vec keeps in one block: as many as
// in the schema's table.
const vectorBlock = 256 * vectorLength * 4

// makeVectors creates the table for vectors of count dimensions unless it exists.
func (tx *Tx) makeVectors(count int) error {
	if count < 1 || count > MaxVectorLength {
		return fmt.Errorf("a vector of %d dimensions cannot be stored", count)
	}
	if count == vectorLength { // created with the first chunk
		return nil
	}
	if has, err := tx.hasVectors(count); err != nil || has {
		return err
	}
	rows := min(max(vectorBlock/(4*count)/8*8, 8), 1024) // sqlite-vec requires a multiple of 8, and not too many
	_, err := tx.exec(fmt.Sprintf(
		"CREATE VIRTUAL TABLE %s USING vec0(source INTEGER, embedding float[%d] distance_metric=cosine, chunk_size=%d)",
		vectorsOf(count),
		count,
		rows,
	))
	return err
}

// deleteChunks deletes the chunks whose seq the query which selects, and their
// vectors, and returns their number.
func (tx *Tx) deleteChunks(which string, args ...any) (int64, error) {
	others, err := tx.otherVectors()
	if err != nil {
		return 0, err
	}
	for _, table := range others {
		if _, err := tx.exec("DELETE FROM "+table+" WHERE rowid IN ("+which+")", args...); err != nil {
			return 0, err
		}
	}
	done, err := tx.exec("DELETE FROM chunks WHERE seq IN ("+which+")", args...)
	if err != nil {
		return 0, err
	}
	return done.Changes, nil
}

// PutVectors stores the vectors of chunks by their Seq; all have the same
// length, 1 to MaxVectorLength. Chunks that no longer exist are skipped.
func (db *DB) PutVectors(ctx context.Context, vectors map[int64][]float32) error {
	return db.Do(ctx, func(tx *Tx) error {
		records := map[int][]byte{} // of the search index, by the length of the vectors
		for _, seq := range slices.Sorted(maps.Keys(vectors)) {
			source, err := tx.putVector(seq, vectors[seq])
			if errors.Is(err, sqlite.ErrNoRows) {
				continue
			} else if err != nil {
				return err
			}
			n := len(vectors[seq])
			records[n] = append(records[n], search.Record(seq, source, vectors[seq])...)
		}
		for n, list := range records {
			if err := tx.appendSegments(n, list); err != nil {
				return err
			}
		}
		return nil
	})
}

// putVector stores one vector and returns the seq of its chunk's source. If the
// chunk no longer exists or already has a vector, the error is sqlite.ErrNoRows.
func (tx *Tx) putVector(seq int64, vector []float32) (source int64, err error) {
	if err := tx.value(
		&source,
		"SELECT s.seq FROM chunks c JOIN sources s ON s.id = c.source_id WHERE c.seq = ? AND c.embedded = 0",
		seq,
	); err != nil {
		return 0, err
	}
	if err := tx.makeVectors(len(vector)); err != nil {
		return 0, err
	}
	if _, err := tx.exec(
		"INSERT INTO "+vectorsOf(len(vector))+"(rowid, source, embedding) VALUES (?,?,?)",
		seq,
		source,
		packVector(vector),
	); err != nil {
		return 0, err
	}
	_, err = tx.exec("UPDATE chunks SET embedded = 1 WHERE seq = ?", seq)
	return source, err
}

// packVector encodes a vector as sqlite-vec reads it: little-endian float32.
func packVector(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// AdoptModel stores which model a source's vectors are from. Vectors of another
// model are deleted first, in several writes; the chunks are kept and can still be
// found by their words.
func (db *DB) AdoptModel(ctx context.Context, sourceID, model string) error {
	for after := -1; ; {
		next, err := Write(ctx, db, func(tx *Tx) (int, error) {
			return tx.dropVectors(sourceID, after)
		})
		if err != nil {
			return err
		}
		if next == after {
			break
		}
		after = next
	}
	return db.Do(ctx, func(tx *Tx) error {
		done, err := tx.exec(
			"UPDATE sources SET embedding_model = ?, updated_at = ? WHERE id = ?",
			model, tx.Now, sourceID,
		)
		if err != nil {
			return err
		}
		if done.Changes == 0 {
			return errors.Join(err, agent.NotFound("source", sourceID))
		}
		return nil
	})
}

// dropVectors deletes some vectors of a source, those of its first chunks after a
// position, and returns the position of the last of them.
func (tx *Tx) dropVectors(sourceID string, after int) (int, error) {
	tables, err := tx.otherVectors()
	if err != nil {
		return after, err
	}
	type row struct {
		seq      int64
		position int
	}
	found, err := all(
		tx,
		func(rows *sqlite.Rows) (r row, err error) {
			return r, rows.Scan(&r.seq, &r.position)
		},
		"SELECT seq, position FROM chunks WHERE source_id = ? AND position > ? AND embedded = 1 "+
			"ORDER BY position LIMIT ?",
		sourceID,
		after,
		chunkBatch,
	)
	if err != nil || len(found) == 0 {
		return after, err
	}
	for _, r := range found {
		for _, table := range append(tables, vectorTable) {
			if _, err := tx.exec("DELETE FROM "+table+" WHERE rowid = ?", r.seq); err != nil {
				return after, err
			}
		}
		if _, err := tx.exec("UPDATE chunks SET embedded = 0 WHERE seq = ?", r.seq); err != nil {
			return after, err
		}
	}
	return found[len(found)-1].position, tx.countDeleted(len(found))
}

// VectorModels lists the models whose vectors an agent's sources have; sourceID
// limits it to one source.
func (tx *Tx) VectorModels(sourceID string) ([]string, error) {
	return all(
		tx,
		func(rows *sqlite.Rows) (name string, err error) {
			return name, rows.Scan(&name)
		},
		"SELECT DISTINCT embedding_model FROM sources WHERE embedding_model <> '' AND (id = ?1 OR ?1 = '') ORDER BY 1",
		sourceID,
	)
}

// ReembedSources embeds finished sources again whose vectors are from another model:
// their chunks stay and get vectors of model. like limits it to models whose names
// match a GLOB pattern.
func (db *DB) ReembedSources(ctx context.Context, model, like string) error {
	_, err := Write(ctx, db, func(tx *Tx) (sqlite.Result, error) {
		return tx.exec(`UPDATE sources SET status = 'updating', updated_at = ?1
			WHERE status = 'ready' AND chunked AND chunks > 0 AND embedding_model NOT IN ('', ?2) AND embedding_model GLOB ?3`, tx.Now, model, like)
	})
	return err
}
