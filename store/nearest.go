package store

import (
	"satchel/store/search"
	"satchel/store/sqlite"
)

// nearestByIndex is Nearest with the index in memory.
//
// Entries of chunks that have been deleted are detected here, because their vectors
// are missing. If that leaves too few results, more candidates are examined.
func (k *Knowledge) nearestByIndex(heads []search.Head, vector []float32, count int) (map[int64]float64, error) {
	sources, err := k.sources()
	if err != nil {
		return nil, err
	}
	load := func(h search.Head) ([]byte, error) {
		return k.tx.segment(h)
	}
	for keep := search.Shortlist(count, search.CountRecords(heads)); ; keep *= 4 {
		found, err := k.tx.db.folder.vectors.Nearest(k.tx.db, vector, heads, sources, keep, load)
		if err != nil {
			return nil, err
		}
		exact, err := k.tx.cosines(
			vector,
			"SELECT p.rowid, p.chunk_id, p.chunk_offset FROM json_each(?) j CROSS JOIN "+placesIn(len(vector))+
				" p ON p.rowid = j.value",
			search.ListJSON(found),
		)
		if err != nil {
			return nil, err
		}
		if len(found) < keep || len(exact) >= keep/2 {
			return search.Best(exact, count), nil
		}
	}
}

// sources returns the seqs of the sources whose vectors are searched; nil means all.
func (k *Knowledge) sources() (map[uint32]bool, error) {
	if k.text.Source == 0 && !k.text.Mixed {
		return nil, nil
	}
	list, err := all(
		k.tx,
		func(rows *sqlite.Rows) (seq uint32, err error) {
			return seq, rows.Scan(&seq)
		},
		"SELECT seq FROM sources WHERE embedding_model = ?1 AND (seq = ?2 OR ?2 = 0)",
		k.model, k.text.Source,
	)
	allowed := make(map[uint32]bool, len(list))
	for _, seq := range list {
		allowed[seq] = true
	}
	return allowed, err
}
