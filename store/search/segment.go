// Package search finds chunks: by words, ranking the matches of full text
// search, and by meaning, with an in-memory index of one bit per dimension of
// each vector.
package search

import (
	"encoding/binary"
	"fmt"
	"slices"

	"satchel/store/search/bitcode"
)

// Segments hold one bit a dimension of every vector of a file, so that an index
// in memory is read in little time. A record is the chunk's seq and its
// source's as little-endian numbers of 64 and 32 bits, and a code of bitcode.
//
// A segment never changes, and its id is random: what memory holds of it is
// right for every file, copy and moment in which it is listed.

// Head is what a search reads of a segment that is in memory already.
type Head struct {
	ID      int64
	Records int
}

// CountRecords adds up the records of segments.
func CountRecords(heads []Head) (n int) {
	for _, h := range heads {
		n += h.Records
	}
	return n
}

// recordHead is the length of a record before its code.
const recordHead = 12

// RecordSize is the length of a record of a vector, in bytes.
func RecordSize(dims int) int { return recordHead + bitcode.Size(dims) }

// Record is the record of one vector.
func Record(seq, source int64, vector []float32) []byte {
	b := make([]byte, 0, RecordSize(len(vector)))
	b = binary.LittleEndian.AppendUint64(b, uint64(seq))
	b = binary.LittleEndian.AppendUint32(b, uint32(source))
	return bitcode.Append(b, vector)
}

// Seq is the chunk of a record.
func Seq(record []byte) int64 { return int64(binary.LittleEndian.Uint64(record)) }

// segment is a segment in memory.
type segment struct {
	seqs    []int64
	sources []uint32
	codes   *bitcode.List
}

// segmentBytes is the memory that a segment of n records holds.
func segmentBytes(dims, n int) int64 { return int64(n*RecordSize(dims) + 256) }

func newSegment(dims int, data []byte) (*segment, error) {
	size := RecordSize(dims)
	n := len(data) / size
	if len(data) != n*size {
		return nil, fmt.Errorf("a segment of the search index is damaged: %d bytes", len(data))
	}
	s := &segment{seqs: make([]int64, 0, n), sources: make([]uint32, 0, n), codes: bitcode.NewList(dims, n)}
	for r := range slices.Chunk(data, size) {
		s.seqs = append(s.seqs, Seq(r))
		s.sources = append(s.sources, binary.LittleEndian.Uint32(r[8:]))
		s.codes.Add(r[recordHead:])
	}
	return s, nil
}
