package document

import (
	"bytes"
	"strings"
)

// csvReader reads RFC 4180 records with any delimiter. Unlike encoding/csv it
// accepts stray quotes, and it limits the number of fields before it allocates
// them: a line of 25 million commas costs as much as 16,384 fields.
type csvReader struct {
	data      []byte
	pos       int
	delimiter byte
	fields    [][]byte // of the current record; valid until the next one
	tooMany   bool     // the record has more than maxColumns fields
	literal   bool     // a quote is not closed: from there on quotes are plain characters
}

// next reads the next record, skipping empty lines.
func (r *csvReader) next() bool {
	for r.pos < len(r.data) && (r.data[r.pos] == '\n' || r.data[r.pos] == '\r') {
		r.pos++
	}
	if r.pos >= len(r.data) {
		return false
	}
	r.fields = r.fields[:0]
	for more := true; more; {
		if len(r.fields) >= maxColumns {
			r.tooMany = true
			return true
		}
		var field []byte
		field, more = r.field()
		r.fields = append(r.fields, field)
	}
	return true
}

// field reads one field and reports whether another one follows in the record.
func (r *csvReader) field() (field []byte, more bool) {
	start := r.pos
	for start < len(r.data) && r.data[start] == ' ' {
		start++
	}
	if !r.literal && start < len(r.data) && r.data[start] == '"' {
		if end := r.closingQuote(start + 1); end >= 0 {
			if field = r.data[start+1 : end]; bytes.IndexByte(field, '"') >= 0 {
				field = bytes.ReplaceAll(field, []byte(`""`), []byte(`"`))
			}
			r.pos = end + 1
			for r.pos < len(r.data) && r.data[r.pos] == ' ' {
				r.pos++
			}
			return field, r.separator()
		}
		r.literal = true
	}
	start = r.pos
	for r.pos < len(r.data) {
		if c := r.data[r.pos]; c == r.delimiter || c == '\n' || c == '\r' {
			break
		}
		r.pos++
	}
	return bytes.TrimSpace(r.data[start:r.pos]), r.separator()
}

// separator skips the end of a field and reports whether it was the delimiter.
func (r *csvReader) separator() bool {
	if r.pos >= len(r.data) {
		return false
	}
	r.pos++
	return r.data[r.pos-1] == r.delimiter
}

// closingQuote returns the offset of the quote that ends the field that starts
// at pos: one that is not doubled and is followed by a delimiter or the end of
// a line or of the data. Other quotes are part of the text.
func (r *csvReader) closingQuote(pos int) int {
	for {
		index := bytes.IndexByte(r.data[pos:], '"')
		if index < 0 {
			return -1
		}
		pos += index + 1
		if pos < len(r.data) && r.data[pos] == '"' {
			pos++
			continue
		}
		after := pos
		for after < len(r.data) && r.data[after] == ' ' {
			after++
		}
		if after >= len(r.data) || r.data[after] == r.delimiter ||
			r.data[after] == '\n' || r.data[after] == '\r' {
			return pos - 1
		}
	}
}

// csvDelimiter detects the delimiter that splits the first rows most evenly. A
// first line like "sep=;", which Excel writes, takes precedence and is
// removed.
func csvDelimiter(data []byte, name string) (rest []byte, delimiter byte) {
	first, after, _ := bytes.Cut(data, newline)
	if first = bytes.TrimSpace(first); len(first) == 5 && string(first[:4]) == "sep=" {
		return after, first[4]
	}
	sample := data[:min(len(data), 64<<10)]
	tabs := delimiterScore(csvReader{data: sample, delimiter: '\t'})
	if tabs > 0 && strings.HasSuffix(strings.ToLower(name), ".tsv") {
		return data, '\t'
	}
	best := 0
	delimiter = ','
	for _, c := range []byte{',', ';'} {
		if score := delimiterScore(csvReader{data: sample, delimiter: c}); score > best {
			best, delimiter = score, c
		}
	}
	if tabs > best {
		delimiter = '\t'
	}
	return data, delimiter
}

// delimiterScore scores a delimiter by how many of the first 50 rows have as many
// fields as the first one, and by how many fields that is; 0 for a single
// column.
func delimiterScore(rows csvReader) int {
	columns, same := 0, 0
	for i := 0; i < 50 && rows.next(); i++ {
		if i == 0 {
			columns = len(rows.fields)
		}
		if len(rows.fields) == columns {
			same++
		}
	}
	if columns < 2 {
		return 0
	}
	return same*100 + min(columns, 99)
}
