package search

import (
	"sync"

	"satchel/store/search/postings"
	"satchel/store/search/terms"
)

// Memory caches what the searches of one file need repeatedly: the lengths of its
// chunks, and their languages. The text of a chunk never changes. It must be cleared
// if the file may have been replaced.
type Memory struct {
	mu        sync.Mutex
	lengths   map[int64][]uint16 // of lengthBlock chunks each, in words; 0: unknown
	corpus    corpus             // to which the languages apply
	languages []terms.Language
}

// Lengths are read in blocks of lengthBlock chunks, and at most maxLengthBlocks blocks
// are kept: two bytes for each of eight million chunks.
const (
	lengthBlock     = 1024
	maxLengthBlocks = 8192
)

// Forget forgets everything.
func (m *Memory) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lengths, m.corpus, m.languages = nil, corpus{}, nil
}

// lengthReader reads lengths for one search.
type lengthReader struct {
	*Text
	block   int64 // last block read
	lengths []uint16
}

func (x *Text) lengths() *lengthReader {
	return &lengthReader{Text: x, block: -1}
}

// of returns the number of words of a chunk.
func (r *lengthReader) of(seq int64) (int, error) {
	block, at := seq/lengthBlock, seq%lengthBlock
	if block != r.block || r.lengths[at] == 0 {
		lengths := r.Memory.cached(block)
		if lengths == nil || lengths[at] == 0 {
			var err error
			if lengths, err = r.read(block); err != nil {
				return 0, err
			}
			r.Memory.keep(block, lengths)
		}
		r.block, r.lengths = block, lengths
	}
	return int(r.lengths[at]), nil
}

// read reads a block of lengths. Full-text search stores one number per column for
// each chunk.
func (r *lengthReader) read(block int64) ([]uint16, error) {
	lengths := make([]uint16, lengthBlock)
	rows, err := r.Query(
		"SELECT id, sz FROM _chunk_text_docsize WHERE id BETWEEN ? AND ?",
		block*lengthBlock,
		(block+1)*lengthBlock-1,
	)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var sizes []byte
		if err := rows.Scan(&seq, &sizes); err != nil {
			return nil, err
		}
		lengths[seq%lengthBlock] = uint16(min(max(postings.Sum(sizes), 1), 1<<16-1))
	}
	return lengths, rows.Err()
}

func (m *Memory) cached(block int64) []uint16 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lengths[block]
}

func (m *Memory) keep(block int64, lengths []uint16) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lengths == nil || len(m.lengths) >= maxLengthBlocks {
		m.lengths = map[int64][]uint16{}
	}
	m.lengths[block] = lengths
}

// languagesOf returns the languages of a file's chunks, calling read if they are
// unknown.
func (m *Memory) languagesOf(c corpus, read func() ([]terms.Language, error)) ([]terms.Language, error) {
	m.mu.Lock()
	known, list := m.corpus == c, m.languages
	m.mu.Unlock()
	if known {
		return list, nil
	}
	list, err := read()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.corpus, m.languages = c, list
	return list, nil
}
