package search

import (
	"sync"

	"satchel/store/search/postings"
	"satchel/store/search/terms"
)

// Memory keeps what searches of one file need again: how long its chunks are, and
// which languages they are in. The text of a chunk never changes. It must be
// forgotten when the file may be another.
type Memory struct {
	mu        sync.Mutex
	lengths   map[int64][]uint16 // of lengthBlock chunks each, in words; 0: unknown
	corpus    corpus             // that has the languages
	languages []terms.Language
}

// lengthBlock chunks' lengths are read together, and maxLengthBlocks are kept: two
// bytes for each of eight million chunks.
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
	block   int64 // that was read last
	lengths []uint16
}

func (x *Text) lengths() *lengthReader { return &lengthReader{Text: x, block: -1} }

// of returns how many words a chunk has.
func (r *lengthReader) of(seq int64) (int, error) {
	block, at := seq/lengthBlock, seq%lengthBlock
	if block != r.block || r.lengths[at] == 0 {
		lengths := r.Memory.kept(block)
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

// read reads the lengths of a block, of which full text has one number for each
// column.
func (r *lengthReader) read(block int64) ([]uint16, error) {
	lengths := make([]uint16, lengthBlock)
	rows, err := r.Query("SELECT id, sz FROM _chunk_text_docsize WHERE id BETWEEN ? AND ?", block*lengthBlock, (block+1)*lengthBlock-1)
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

func (m *Memory) kept(block int64) []uint16 {
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

// languagesOf returns the languages of a file's chunks, which read finds.
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
