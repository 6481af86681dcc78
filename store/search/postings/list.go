package postings

import (
	"slices"
	"sort"
)

// List holds the rows that contain a term, in ascending order.
type List struct {
	Rows   []int64
	Counts []int32 // how often each row contains the term
	Cut    bool    // further rows were omitted

	ends  []int  // where each row's positions end in bytes
	bytes []byte // positions in FTS5's encoding
}

// At returns the index of a row in the list, or of the first row after it. The search
// begins at index from, which must not be past the row.
func (l *List) At(row int64, from int) int {
	step := 1
	for from+step < len(l.Rows) && l.Rows[from+step] < row {
		from += step
		step *= 2
	}
	end := min(from+step+1, len(l.Rows))
	return from + sort.Search(end-from, func(i int) bool {
		return l.Rows[from+i] >= row
	})
}

// positions decodes the positions of the row at index i into into: the column in the
// upper 32 bits, the word's number within it in the lower ones.
func (l *List) positions(index int, into []int64) []int64 {
	from := 0
	if index > 0 {
		from = l.ends[index-1]
	}
	b, at := l.bytes[from:l.ends[index]], int64(0)
	for len(b) > 0 {
		var n uint64
		if n, b = varint(b); n == 1 {
			n, b = varint(b)
			at = int64(n) << 32
			continue
		}
		at += int64(n) - 2
		into = append(into, at)
	}
	return into
}

// count returns the number of positions encoded in b, a sequence of numbers in which a
// 1 announces that the next number is a column.
func count(b []byte) (n int32) {
	for i := 0; i < len(b); i++ {
		if b[i] == 1 {
			i++
			n--
		}
		for i < len(b) && b[i] >= 0x80 {
			i++
		}
		n++
	}
	return n
}

// Phrase returns the rows that contain the terms of lists consecutively. The lists must
// have been read with positions.
func Phrase(lists []List) List {
	var found List
	at, places := make([]int, len(lists)), make([][]int64, len(lists))
	for index, row := range lists[0].Rows {
		at[0] = index
		in := true
		for j := 1; in && j < len(lists); j++ {
			at[j] = lists[j].At(row, at[j])
			in = at[j] < len(lists[j].Rows) && lists[j].Rows[at[j]] == row
		}
		if !in {
			continue
		}
		for j := range lists {
			places[j] = lists[j].positions(at[j], places[j][:0])
		}
		if n := countPhrases(places); n > 0 {
			found.Rows, found.Counts = append(found.Rows, row), append(found.Counts, n)
		}
	}
	return found
}

// countPhrases counts the positions of the first term that are followed by those of the
// others.
func countPhrases(places [][]int64) (n int32) {
	for _, p := range places[0] {
		follows := true
		for j := 1; follows && j < len(places); j++ {
			_, follows = slices.BinarySearch(places[j], p+int64(j))
		}
		if follows {
			n++
		}
	}
	return n
}

// Overlap reports whether some row contains both terms.
func Overlap(a, b List) bool {
	for at, i := 0, 0; i < len(a.Rows); i++ {
		if at = b.At(a.Rows[i], at); at == len(b.Rows) {
			return false
		}
		if b.Rows[at] == a.Rows[i] {
			return true
		}
	}
	return false
}

// Union returns the rows that contain any of the terms.
func Union(lists []List) List {
	sums := map[int64]int32{}
	for _, l := range lists {
		for i, row := range l.Rows {
			sums[row] += l.Counts[i]
		}
	}
	u := List{Rows: make([]int64, 0, len(sums))}
	for row := range sums {
		u.Rows = append(u.Rows, row)
	}
	slices.Sort(u.Rows)
	for _, row := range u.Rows {
		u.Counts = append(u.Counts, sums[row])
	}
	return u
}

// merge merges the lists of several segments, oldest first. A row without positions has
// been deleted.
func merge(parts []List) List {
	if len(parts) == 0 {
		return List{}
	}
	all := parts[0]
	for _, p := range parts[1:] {
		if n := len(all.Rows); p.Rows[0] <= all.Rows[n-1] {
			all = mergeNewer(all, p)
		} else {
			all = all.concat(p)
		}
	}
	return all.withoutDeleted()
}

// mergeNewer merges two lists; for a row in both, the newer list takes precedence.
func mergeNewer(old, newer List) List {
	merged := List{Cut: old.Cut || newer.Cut}
	for i, j := 0, 0; i < len(old.Rows) || j < len(newer.Rows); {
		switch {
		case j == len(newer.Rows) || i < len(old.Rows) && old.Rows[i] < newer.Rows[j]:
			merged.add(&old, i)
			i++
		default:
			if i < len(old.Rows) && old.Rows[i] == newer.Rows[j] {
				i++
			}
			merged.add(&newer, j)
			j++
		}
	}
	return merged
}

// concat appends a list whose rows all follow those of l.
func (l List) concat(next List) List {
	for _, end := range next.ends {
		l.ends = append(l.ends, len(l.bytes)+end)
	}
	return List{
		Rows:   append(l.Rows, next.Rows...),
		Counts: append(l.Counts, next.Counts...),
		Cut:    l.Cut || next.Cut,
		ends:   l.ends,
		bytes:  append(l.bytes, next.bytes...),
	}
}

// add appends the row at an index of another list.
func (l *List) add(from *List, at int) {
	l.Rows, l.Counts = append(l.Rows, from.Rows[at]), append(l.Counts, from.Counts[at])
	if from.ends != nil {
		start := 0
		if at > 0 {
			start = from.ends[at-1]
		}
		l.bytes = append(l.bytes, from.bytes[start:from.ends[at]]...)
		l.ends = append(l.ends, len(l.bytes))
	}
}

// withoutDeleted returns the list without deleted rows.
func (l List) withoutDeleted() List {
	if !slices.Contains(l.Counts, 0) {
		return l
	}
	kept := List{Cut: l.Cut}
	for i, n := range l.Counts {
		if n > 0 {
			kept.add(&l, i)
		}
	}
	return kept
}

// decoder reads the rows of one term from the pages of a segment.
type decoder struct {
	list      List
	limit     int
	positions bool

	started bool   // the term has been found
	row     int64  // the last one read
	rest    int    // bytes of its positions that are on following pages
	part    []byte // those on previous pages
}

// read reads a page and reports whether the term continues on the next one.
func (d *decoder) read(leaf leaf, term []byte) (more bool, err error) {
	from, to := 4, leaf.firstTerm()
	if !d.started {
		if from, to = leaf.find(term); from == 0 {
			return false, nil
		}
		d.started = true
	} else if from = d.remainder(leaf.data[from:to]) + from; from < to {
		d.row = 0 // the first row of a page is written in full
	}
	d.reserve(to - from)
	if err := d.entries(leaf.data[from:to]); err != nil {
		return false, err
	}
	if d.limit > 0 && len(d.list.Rows) > d.limit {
		d.list.Cut = true
		return false, nil
	}
	return to == leaf.size, nil
}

// reserve reserves capacity for the rows in some bytes; each row takes at least three.
func (d *decoder) reserve(bytes int) {
	if n := bytes / 3; cap(d.list.Rows)-len(d.list.Rows) < n {
		n = max(n, len(d.list.Rows))
		d.list.Rows, d.list.Counts = slices.Grow(d.list.Rows, n), slices.Grow(d.list.Counts, n)
	}
}

// remainder reads the positions at the beginning of a page that continue those of the
// last row on the previous page, and returns their length.
func (d *decoder) remainder(b []byte) int {
	n := min(d.rest, len(b))
	if n > 0 {
		d.part = append(d.part, b[:n]...)
		if d.rest -= n; d.rest == 0 {
			d.addRow(d.part)
		}
	}
	return n
}

// entries reads rows. Each consists of the difference from the previous row's number,
// twice the length of its positions plus a flag that an older entry is deleted, and the
// positions. Rows are appended to local slices, since storing the slices in the decoder
// for each row takes longer than decoding it.
func (d *decoder) entries(data []byte) error {
	rows, counts := d.list.Rows, d.list.Counts
	for len(data) > 0 {
		var distance, size uint64
		distance, data = varint(data)
		size, data = varint(data)
		d.row += int64(distance)
		n := int(size / 2)
		if n > len(data) {
			d.part, d.rest = append(d.part[:0], data...), n-len(data)
			break
		}
		rows, counts = append(rows, d.row), append(counts, count(data[:n]))
		d.keepPositions(data[:n])
		data = data[n:]
	}
	d.list.Rows, d.list.Counts = rows, counts
	return nil
}

// addRow adds the row whose positions are complete.
func (d *decoder) addRow(positions []byte) {
	d.list.Rows, d.list.Counts = append(d.list.Rows, d.row), append(d.list.Counts, count(positions))
	d.keepPositions(positions)
}

func (d *decoder) keepPositions(positions []byte) {
	if d.positions {
		d.list.bytes = append(d.list.bytes, positions...)
		d.list.ends = append(d.list.ends, len(d.list.bytes))
	}
}

// find returns where the rows of a term begin and end on a page, or 0 if the term is
// not on it. A term is encoded as the length of the prefix that it shares with the
// previous one (omitted for the first), the length of the rest, and the rest.
func (l leaf) find(wanted []byte) (from, to int) {
	at, matched := 0, 0 // the previous term sorts before wanted and shares this many bytes with it
	for index, first := l.index, true; len(index) > 0; first = false {
		var step, common, count int
		step, index = length(index)
		if at += step; at >= l.size {
			return 0, 0
		}
		data := l.data[at:]
		if !first {
			common, data = length(data)
		}
		if count, data = length(data); common > matched {
			continue
		}
		if common < matched || count > len(data) {
			return 0, 0
		}
		same := 0
		for same < count && matched < len(wanted) && data[same] == wanted[matched] {
			same, matched = same+1, matched+1
		}
		switch {
		case same < count && (matched == len(wanted) || data[same] > wanted[matched]):
			return 0, 0
		case same == count && matched == len(wanted):
			from, to = l.size-len(data)+count, l.size
			if len(index) > 0 {
				step, _ = length(index)
				to = min(max(at+step, from), l.size)
			}
			return from, to
		}
	}
	return 0, 0
}

// terms calls fn with the terms of a page until it returns false. It returns true if fn
// never did.
func (l leaf) terms(fn func(term []byte) bool) (bool, error) {
	var term []byte
	at := 0
	for index, first := l.index, true; len(index) > 0; first = false {
		var step, common, n int
		step, index = length(index)
		if at += step; at >= l.size {
			return false, errDamaged
		}
		b := l.data[at:]
		if !first {
			common, b = length(b)
		}
		if n, b = length(b); common > len(term) || n > len(b) {
			return false, errDamaged
		}
		if term = append(term[:common], b[:n]...); !fn(term) {
			return false, nil
		}
	}
	return true, nil
}
