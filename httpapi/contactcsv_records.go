package httpapi

import "strings"

// csvRecords reads RFC 4180 records with any delimiter out of a text. Unlike
// encoding/csv it leaves a CR LF within quotes as it is, takes CR alone as the
// end of a line, and goes on after a broken record: with the line after the one
// that the broken field began on.
type csvRecords struct {
	text      string
	delimiter byte
	pos       int

	// Of the record that next has read:
	row    int      // counted from 1, empty lines too, as a spreadsheet does
	fields []string // no more than were to be kept; valid until the next one
	count  int      // of all its fields; of those before the broken one
	blank  bool     // it holds nothing but space
	broken string   // what is wrong with its quotes; empty: nothing
}

// next reads a record, keeping its first fields only, and reports whether there
// was one.
func (r *csvRecords) next(keep int) bool {
	if r.pos >= len(r.text) {
		return false
	}
	r.row++
	r.fields, r.count, r.blank, r.broken = r.fields[:0], 0, true, ""
	for more := true; more; r.count++ {
		var field string
		if field, more = r.field(); r.broken != "" {
			rest := strings.IndexAny(r.text[r.pos:], "\r\n")
			if rest < 0 {
				rest = len(r.text) - r.pos
			}
			r.separator(r.pos + rest)
			r.blank = false
			return true
		}
		if len(r.fields) < keep {
			r.fields = append(r.fields, field)
		}
		r.blank = r.blank && isBlank(field)
	}
	return true
}

// field reads one field and reports whether another follows in the record.
func (r *csvRecords) field() (field string, more bool) {
	i := r.pos
	for i < len(r.text) && r.text[i] == ' ' {
		i++
	}
	if i < len(r.text) && r.text[i] == '"' {
		return r.quoted(i + 1)
	}
	for i = r.pos; i < len(r.text) && !r.isSeparator(r.text[i]); i++ {
		if r.text[i] == '"' {
			r.broken = "has a quote within text that is not quoted"
			return "", false
		}
	}
	field = r.text[r.pos:i]
	return field, r.separator(i)
}

// quoted reads the rest of a field whose text begins at from.
func (r *csvRecords) quoted(from int) (field string, more bool) {
	doubled := false
	for i := from; ; i++ {
		next := strings.IndexByte(r.text[i:], '"')
		if next < 0 {
			r.broken = "has a quote that is never closed"
			return "", false
		}
		i += next
		if i+1 < len(r.text) && r.text[i+1] == '"' {
			doubled = true
			i++
			continue
		}
		field = r.text[from:i]
		for i++; i < len(r.text) && r.text[i] == ' '; i++ {
		}
		if i < len(r.text) && !r.isSeparator(r.text[i]) {
			r.broken = "has text after a closing quote"
			return "", false
		}
		if doubled {
			field = strings.ReplaceAll(field, `""`, `"`)
		}
		return field, r.separator(i)
	}
}

func (r *csvRecords) isSeparator(c byte) bool { return c == r.delimiter || c == '\n' || c == '\r' }

// separator passes the one at i, and reports whether it was the delimiter.
func (r *csvRecords) separator(i int) bool {
	r.pos = i + 1
	if i >= len(r.text) {
		return false
	}
	if r.text[i] == '\r' && r.pos < len(r.text) && r.text[r.pos] == '\n' {
		r.pos++
	}
	return r.text[i] == r.delimiter
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }
