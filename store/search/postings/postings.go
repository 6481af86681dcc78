// Package postings reads the inverted index of an FTS5 table: which rows contain a
// word, how often, and where. FTS5 itself iterates over a term's rows once for each
// function call, at about two microseconds per row; here a term is read once,
// in about a twentieth of that.
//
// The format of the shadow tables is described at the beginning of SQLite's
// ext/fts5/fts5_index.c. It is a part of SQLite's file format, so it does not
// change; tables with detail other than full and with tombstones (contentless_delete)
// are not read.
package postings

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"satchel/store/sqlite"
)

// Query runs a statement in the transaction in which the index is read.
type Query func(query string, args ...any) (*sqlite.Rows, error)

// The ids of the data table's records that are not pages, and the number of bits of a
// page's id below its segment's id.
const (
	averagesID  = 1
	structureID = 10
	segmentBits = 37
)

// mainIndex is the prefix of terms in the index of whole words.
const mainIndex = '0'

// Index is the inverted index of an FTS5 table.
type Index struct {
	query    Query
	data     string // SQL statements
	pages    string
	place    string
	segments []segment // oldest first

	Rows  int // number of rows in the table
	Words int // number of words in all rows
}

// segment is a sorted list of terms with their rows, on its own pages. For the same row
// and term, a later segment replaces an earlier one.
type segment struct{ id, first, last int64 }

var errDamaged = errors.New("the full text index is damaged")

// Open opens the index of an FTS5 table.
func Open(query Query, table string) (*Index, error) {
	index := &Index{
		query: query,
		data:  "SELECT block FROM " + table + "_data WHERE id = ?",
		pages: "SELECT block FROM " + table + "_data WHERE id BETWEEN ? AND ? ORDER BY id",
		place: "SELECT pgno >> 1 FROM " + table + "_idx WHERE segid = ? AND term <= ? ORDER BY term DESC LIMIT 1",
	}
	averages, err := index.block(averagesID)
	if err != nil || len(averages) == 0 {
		return index, err
	}
	rows, averages := varint(averages)
	index.Rows, index.Words = int(rows), Sum(averages)
	structure, err := index.block(structureID)
	if err != nil {
		return nil, err
	}
	index.segments, err = segmentsOf(structure)
	return index, err
}

// segmentsOf parses the record that lists the segments by level. Merging the segments
// of a level yields one of the next level; within a level, later ones are newer.
func segmentsOf(data []byte) (list []segment, err error) {
	if len(data) < 4 {
		return nil, errDamaged
	}
	levels, data := varint(data[4:])
	_, data = varint(data) // number of segments
	_, data = varint(data) // number of pages written
	for range levels {
		if len(data) == 0 {
			return nil, errDamaged
		}
		var count uint64
		_, data = varint(data) // number of segments being merged
		count, data = varint(data)
		level := make([]segment, 0, min(count, 100))
		for range count {
			if len(data) == 0 {
				return nil, errDamaged
			}
			var id, first, last uint64
			id, data = varint(data)
			first, data = varint(data)
			last, data = varint(data)
			if last > 0 {
				level = append(level, segment{int64(id), int64(first), int64(last)})
			}
		}
		list = append(level, list...)
	}
	return list, nil
}

func (x *Index) block(id int64) (block []byte, err error) {
	rows, err := x.query(x.data, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&block)
	}
	return block, errors.Join(err, rows.Err())
}

// leaf is a page of a segment: terms, each followed by its rows. The index that follows
// at offset size lists where terms begin.
type leaf struct {
	data  []byte
	size  int
	index []byte
}

func newLeaf(block []byte) (leaf, error) {
	if len(block) < 4 {
		return leaf{}, errDamaged
	}
	size := int(binary.BigEndian.Uint16(block[2:]))
	if size < 4 || size > len(block) {
		return leaf{}, errDamaged
	}
	return leaf{block[:size], size, block[size:]}, nil
}

// firstTerm returns where the first term of a page begins, or the page's size if it has
// none.
func (l leaf) firstTerm() int {
	if len(l.index) == 0 {
		return l.size
	}
	at, _ := length(l.index)
	return min(max(at, 4), l.size)
}

// leaves calls fn with the pages of a segment, beginning with a page number, until it
// returns false. A page is only valid during the call.
func (x *Index) leaves(segment segment, from int64, fn func(leaf) (bool, error)) error {
	rows, err := x.query(
		x.pages,
		segment.id<<segmentBits+max(from, segment.first),
		segment.id<<segmentBits+segment.last,
	)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var block sqlite.RawBytes
		if err := rows.Scan(&block); err != nil {
			return err
		}
		l, err := newLeaf(block)
		if err != nil {
			return err
		}
		if more, err := fn(l); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}

// placeOf returns the number of the page of a segment that contains a term, if the
// segment contains it.
func (x *Index) placeOf(s segment, term []byte) (page int64, err error) {
	if s.first == s.last {
		return s.first, nil
	}
	rows, err := x.query(x.place, s.id, term)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&page)
	}
	return max(page, s.first), errors.Join(err, rows.Err())
}

// Term returns the rows that contain a term, in the form that the table's tokenizer
// produces. With positions, the list includes where the term occurs in each row. If
// limit is not 0, the list may be cut after that many rows.
func (x *Index) Term(term string, positions bool, limit int) (List, error) {
	parts, err := x.parts(term, positions, limit)
	return merge(parts), err
}

// Contains reports whether some row contains a term. It reads only the first rows if
// they suffice.
func (x *Index) Contains(term string) (bool, error) {
	parts, err := x.parts(term, false, 1)
	if err != nil {
		return false, err
	}
	known := int64(math.MaxInt64) // up to this row, all parts are complete
	for _, p := range parts {
		if p.Cut {
			known = min(known, p.Rows[len(p.Rows)-1])
		}
	}
	first := merge(parts)
	if len(first.Rows) > 0 && first.Rows[0] <= known {
		return true, nil
	}
	if known == math.MaxInt64 {
		return false, nil
	}
	all, err := x.Term(term, false, 0)
	return len(all.Rows) > 0, err
}

// parts returns the rows of a term in each segment, oldest segment first.
func (x *Index) parts(term string, positions bool, limit int) (parts []List, err error) {
	wanted := append([]byte{mainIndex}, term...)
	for _, s := range x.segments {
		page, err := x.placeOf(s, wanted)
		if err != nil {
			return nil, err
		}
		d := decoder{limit: limit, positions: positions}
		if err := x.leaves(s, page, func(l leaf) (bool, error) {
			return d.read(l, wanted)
		}); err != nil {
			return nil, fmt.Errorf("read the rows of a term: %w", err)
		}
		if len(d.list.Rows) > 0 {
			parts = append(parts, d.list)
		}
	}
	return parts, nil
}

// Terms returns up to limit terms with a prefix, in order. Some may occur only in
// deleted rows.
func (x *Index) Terms(prefix string, limit int) ([]string, error) {
	wanted := append([]byte{mainIndex}, prefix...)
	var list []string
	for _, segment := range x.segments {
		page, err := x.placeOf(segment, wanted)
		if err != nil {
			return nil, err
		}
		found := 0
		err = x.leaves(segment, page, func(l leaf) (bool, error) {
			return l.terms(func(term []byte) bool {
				if c := comparePrefix(term, wanted); c != 0 {
					return c < 0
				}
				list = append(list, string(term[1:]))
				found++
				return found < limit
			})
		})
		if err != nil {
			return nil, fmt.Errorf("read terms: %w", err)
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), limit)], nil
}

// comparePrefix compares the beginning of a term with a prefix.
func comparePrefix(term, prefix []byte) int {
	return slices.Compare(term[:min(len(term), len(prefix))], prefix)
}

// Sum returns the sum of consecutive encoded numbers, such as the sizes of columns.
func Sum(b []byte) (sum int) {
	for len(b) > 0 {
		var n uint64
		n, b = varint(b)
		sum += int(n)
	}
	return sum
}

// varint decodes a variable-length integer of SQLite's file format, most significant
// bits first, and returns it with the remaining bytes.
func varint(b []byte) (n uint64, rest []byte) {
	for i, x := range b {
		if i == 8 {
			return n<<8 | uint64(x), b[9:]
		}
		if n = n<<7 | uint64(x&0x7f); x < 0x80 {
			return n, b[i+1:]
		}
	}
	return n, nil
}

// length decodes a length on a page.
func length(b []byte) (n int, rest []byte) {
	long, rest := varint(b)
	return int(min(long, 1<<16)), rest
}
