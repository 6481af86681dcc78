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

// Segments contain one bit per dimension of every vector of a file, so that an index
// in memory can be read quickly. A record consists of the chunk's seq and its
// source's, as little-endian numbers of 64 and 32 bits, and a code of bitcode.
//
// A segment never changes and its id is random, so a cached segment is valid for
// every file, copy and moment in which it is listed.

// Head is what a search reads of a segment that is already in memory.
type Head struct {
	ID      int64
	Records int
}

// CountRecords returns the total number of records in segments.
func CountRecords(heads []Head) (n int) {
	for _, h := range heads {
		n += h.Records
	}
	return n
}

// recordHead is the length of the part of a record before its code.
const recordHead = 12

// RecordSize returns the length of the record of a vector, in bytes.
func RecordSize(dims int) int { return recordHead + bitcode.Size(dims) }

// Record returns the record of a vector.
func Record(seq, source int64, vector []float32) []byte {
	b := make([]byte, 0, RecordSize(len(vector)))
	b = binary.LittleEndian.AppendUint64(b, uint64(seq))
	b = binary.LittleEndian.AppendUint32(b, uint32(source))
	return bitcode.Append(b, vector)
}

// Seq returns the seq of a record's chunk.
func Seq(record []byte) int64 {
	return int64(binary.LittleEndian.Uint64(record))
}

// segment is a segment in memory.
type segment struct {
	seqs    []int64
	sources []uint32
	codes   *bitcode.List
}

// segmentBytes returns how much memory a segment of n records takes.
func segmentBytes(dims, n int) int64 {
	return int64(n*RecordSize(dims) + 256)
}

func newSegment(dims int, data []byte) (*segment, error) {
	size := RecordSize(dims)
	n := len(data) / size
	if len(data) != n*size {
		return nil, fmt.Errorf("a segment of the search index is damaged: %d bytes", len(data))
	}
	s := &segment{
		seqs:    make([]int64, 0, n),
		sources: make([]uint32, 0, n),
		codes:   bitcode.NewList(dims, n),
	}
	for r := range slices.Chunk(data, size) {
		s.seqs = append(s.seqs, Seq(r))
		s.sources = append(s.sources, binary.LittleEndian.Uint32(r[8:]))
		s.codes.Add(r[recordHead:])
	}
	return s, nil
}
