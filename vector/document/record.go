package document

import (
	"bytes"
	"strings"
)

// recordWriter writes records as "name: value" lines, separated by blank
// lines. The result can be far longer than the file, which does not repeat
// names, so readers run twice: first with a writer that only counts and stops
// at the limit, then with one that has allocated exactly that much.
type recordWriter struct {
	limit   int
	counted int
	writing bool
	text    strings.Builder
	ends    []uint32 // of each record, when writing
	max     int      // records that get a block each
	open    bool     // a record has been started
}

// records runs read twice, as described at recordWriter, and returns the
// result.
func records(limits Limits, read func(*recordWriter) error) (string, []Block, error) {
	writer := &recordWriter{limit: limits.Text, max: limits.Blocks}
	if err := read(writer); err != nil {
		return "", nil, err
	}
	writer.end()
	total := writer.counted
	writer.counted, writer.writing = 0, true
	writer.text.Grow(total)
	if err := read(writer); err != nil {
		return "", nil, err
	}
	writer.end()
	text := writer.text.String()
	o := newOutline(text, limits)
	o.blocks = make([]Block, 0, len(writer.ends))
	start := 0
	for _, end := range writer.ends {
		o.add(KindRow, 0, start, int(end))
		start = int(end)
	}
	return text, o.blocks, nil
}

// line ends a line of the open record, after writing rest.
func (w *recordWriter) line(rest []byte) error {
	w.write(rest)
	w.write(newline)
	w.open = true
	if w.counted > w.limit {
		return tooMuchText(w.limit)
	}
	return nil
}

var (
	newline   = []byte("\n")
	afterName = []byte(": ")
	afterItem = []byte(", ")
)

// write appends to the open line. It replaces carriage returns and NUL, which
// JSON strings may contain but a Document's text may not.
func (w *recordWriter) write(s []byte) {
	if bytes.IndexByte(s, '\r') >= 0 || bytes.IndexByte(s, 0) >= 0 {
		s = bytes.ReplaceAll([]byte(lines(s)), []byte{0}, []byte(" "))
	}
	w.counted += len(s)
	if w.writing {
		w.text.Write(s)
	}
}

// end closes the open record.
func (w *recordWriter) end() {
	if !w.open {
		return
	}
	w.open = false
	if w.writing {
		if len(w.ends) < w.max {
			w.ends = append(w.ends, uint32(w.text.Len()))
		} else {
			w.ends[len(w.ends)-1] = uint32(w.text.Len())
		}
	}
	w.write(newline)
}

// columnName cleans a column's name for use before ": " on one line.
func columnName(name []byte) string {
	return clipTitle(string(name[:min(len(name), 4*maxTitle+64)]))
}
