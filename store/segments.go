package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"

	"satchel/store/search"
	"satchel/store/sqlite"
)

// New vectors are added as small segments (see package search), which are merged as
// their number grows. Records of deleted chunks stay until SweepVectors, and whoever
// finds one checks whether the chunk exists.

// The sizes of segments, in records: small ones are merged this many at a time; full
// ones are not merged any further.
const (
	smallSegment  = 256
	fullSegment   = 4096
	mergeSegments = 16
)

// appendSegments stores records of vectors of a length.
func (tx *Tx) appendSegments(dims int, records []byte) error {
	size := search.RecordSize(dims)
	for part := range slices.Chunk(records, fullSegment*size) {
		if err := tx.insertSegment(dims, part); err != nil {
			return err
		}
	}
	if err := tx.mergeSegments(dims, 0, smallSegment); err != nil {
		return err
	}
	return tx.mergeSegments(dims, smallSegment, fullSegment)
}

func (tx *Tx) insertSegment(dims int, records []byte) error {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	_, err := tx.exec(
		"INSERT INTO _vector_segments(id, dims, n, data) VALUES (?,?,?,?)",
		int64(binary.LittleEndian.Uint64(id[:])>>1),
		dims,
		len(records)/search.RecordSize(dims),
		records,
	)
	return err
}

// mergeSegments merges the segments with at least from and fewer than below records
// into one, once there are many or they hold enough for one of the next size.
func (tx *Tx) mergeSegments(dims, from, below int) error {
	heads, err := tx.segmentHeads(dims, from, below)
	total := search.CountRecords(heads)
	if err != nil || len(heads) < 2 || len(heads) < mergeSegments && total < below {
		return err
	}
	merged := make([]byte, 0, total*search.RecordSize(dims))
	for _, h := range heads {
		var data []byte
		if err := tx.value(&data, "DELETE FROM _vector_segments WHERE id = ? RETURNING data", h.ID); err != nil {
			return err
		}
		merged = append(merged, data...)
	}
	return tx.insertSegment(dims, merged)
}

// segmentHeads lists segments with at least from and fewer than below records,
// smallest first.
func (tx *Tx) segmentHeads(dims, from, below int) ([]search.Head, error) {
	return all(
		tx,
		scanSegmentHead,
		"SELECT id, n FROM _vector_segments WHERE dims = ? AND n >= ? AND n < ? ORDER BY n",
		dims, from, below,
	)
}

func scanSegmentHead(rows *sqlite.Rows) (h search.Head, err error) {
	return h, rows.Scan(&h.ID, &h.Records)
}

// segment reads the records of a segment; none if it does not exist.
func (tx *Tx) segment(h search.Head) (data []byte, err error) {
	err = tx.value(&data, "SELECT data FROM _vector_segments WHERE id = ?", h.ID)
	if errors.Is(err, sqlite.ErrNoRows) {
		err = nil
	}
	return data, err
}

// A sweep is due when more than one record of sweepPart belongs to a deleted
// chunk, and more than minSwept do.
const (
	sweepPart = 4
	minSwept  = 1000
)

// SweepVectors removes the records of deleted chunks from the search index once
// there are many, one segment per write. It reads outside of writes.
func (db *DB) SweepVectors(ctx context.Context) error {
	var deleted int
	heads, err := Read(ctx, db, func(tx *Tx) ([]search.Head, error) {
		var total int
		if err := tx.value(
			&deleted,
			"SELECT n FROM _counts WHERE name = 'vectors_gone'",
		); err != nil || deleted <= minSwept {
			return nil, err
		}
		if err := tx.value(
			&total,
			"SELECT coalesce(sum(n), 0) FROM _vector_segments",
		); err != nil || deleted <= total/sweepPart {
			return nil, err
		}
		return all(tx, scanSegmentHead, "SELECT id, n FROM _vector_segments")
	})
	if err != nil || len(heads) == 0 {
		return err
	}
	swept := 0
	for _, h := range heads {
		n, err := db.sweepSegment(ctx, h.ID)
		if err != nil {
			return err
		}
		swept += n
	}
	if swept > 0 {
		return nil
	}
	// there is nothing to find
	return db.Do(ctx, func(tx *Tx) error {
		return tx.countDeleted(-deleted)
	})
}

// countDeleted corrects the count of records whose chunks were deleted.
func (tx *Tx) countDeleted(by int) error {
	_, err := tx.exec("UPDATE _counts SET n = n + ? WHERE name = 'vectors_gone'", by)
	return err
}

// sweepSegment replaces a segment by one of the chunks that still exist, and returns
// how many records that removed. Chunks deleted while it works are left for the next
// sweep.
func (db *DB) sweepSegment(ctx context.Context, id int64) (swept int, err error) {
	type part struct {
		dims, n int
		data    []byte
	}
	kept, err := Read(ctx, db, func(tx *Tx) (p part, err error) {
		found, err := all(
			tx,
			func(rows *sqlite.Rows) (p part, err error) {
				return p, rows.Scan(&p.dims, &p.n, &p.data)
			},
			"SELECT dims, n, data FROM _vector_segments WHERE id = ?",
			id,
		)
		if err != nil || len(found) == 0 { // merged in the meantime
			return p, err
		}
		p = found[0]
		p.data, err = tx.liveRecords(p.data, search.RecordSize(p.dims))
		return p, err
	})
	swept = kept.n - len(kept.data)/search.RecordSize(kept.dims)
	if err != nil || swept == 0 {
		return 0, err
	}
	return Write(ctx, db, func(tx *Tx) (int, error) {
		done, err := tx.exec("DELETE FROM _vector_segments WHERE id = ?", id)
		if err != nil {
			return 0, err
		}
		if done.Changes == 0 {
			return 0, err
		}
		if len(kept.data) > 0 {
			if err := tx.insertSegment(kept.dims, kept.data); err != nil {
				return 0, err
			}
		}
		return swept, tx.countDeleted(-swept)
	})
}

// liveRecords returns the records whose chunks exist and have a vector.
func (tx *Tx) liveRecords(data []byte, size int) ([]byte, error) {
	var seqs []int64
	for r := range slices.Chunk(data, size) {
		seqs = append(seqs, search.Seq(r))
	}
	deleted := map[int64]bool{}
	missing, err := all(
		tx,
		func(rows *sqlite.Rows) (seq int64, err error) {
			return seq, rows.Scan(&seq)
		},
		"SELECT value FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM chunks WHERE seq = value AND embedded)",
		search.ListJSON(seqs),
	)
	for _, seq := range missing {
		deleted[seq] = true
	}
	kept := make([]byte, 0, len(data))
	for i, r := range slices.Collect(slices.Chunk(data, size)) {
		if !deleted[seqs[i]] {
			kept = append(kept, r...)
		}
	}
	return kept, err
}
