package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"satchel/store/sqlite"
)

// vectorPlace is where vec0 stores the vector of a chunk: which block of its shadow
// table, and which slot in the block. See
// https://github.com/asg017/sqlite-vec/blob/main/ARCHITECTURE.md.
type vectorPlace struct{ seq, block, slot int64 }

// cosines returns the cosine similarities between vector and the vectors whose
// places the query which selects.
//
// The vectors are read one block at a time: vec0 would open the block again for each
// vector, and SQLite reaches a part of a block only through all pages before it.
// it.
func (tx *Tx) cosines(vector []float32, which string, args ...any) (found map[int64]float64, err error) {
	places, err := all(
		tx,
		func(rows *sqlite.Rows) (p vectorPlace, err error) {
			return p, rows.Scan(&p.seq, &p.block, &p.slot)
		},
		which,
		args...,
	)
	found = make(map[int64]float64, len(places))
	if err != nil || len(places) == 0 {
		return found, err
	}
	slices.SortFunc(places, func(a, b vectorPlace) int {
		return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.slot, b.slot))
	})
	blocks, err := tx.sql.OpenBlob(vectorsOf(len(vector))+"_vector_chunks00", "vectors", places[0].block)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, blocks.Close())
	}()
	bytes := 4 * len(vector)
	for _, p := range places {
		if err := blocks.MoveTo(p.block); err != nil {
			return nil, err
		}
		packed, err := blocks.Read(int(p.slot)*bytes, bytes)
		if err != nil {
			return nil, err
		}
		found[p.seq] = cosine(vector, packed)
	}
	return found, nil
}

// placesIn is the table with the places of vectors of n dimensions.
func placesIn(n int) string { return vectorsOf(n) + "_rowids" }

// cosine returns the cosine similarity between a vector and one packed by
// packVector; 0 if either is zero.
func cosine(a []float32, packed []byte) float64 {
	var dot, ofA, ofB float32
	for i, x := range a {
		y := math.Float32frombits(binary.LittleEndian.Uint32(packed[4*i:]))
		dot, ofA, ofB = dot+x*y, ofA+x*x, ofB+y*y
	}
	if similarity := float64(dot) / (math.Sqrt(float64(ofA)) * math.Sqrt(float64(ofB))); !math.IsNaN(similarity) {
		return similarity
	}
	return 0
}
