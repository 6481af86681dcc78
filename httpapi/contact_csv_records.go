package httpapi

import "strings"

// csvRecords reads RFC 4180 records with any delimiter. Unlike encoding/csv it
// keeps CR LF within quotes, accepts CR alone as a line ending, and continues
// after a broken record, with the line after the one where the broken field
// starts.
type csvRecords struct {
	text      string
	delimiter byte
	pos       int

	// Of the current record:
	row    int      // counted from 1, including empty lines, as in a spreadsheet
	fields []string // at most as many as requested; valid until the next record
	count  int      // of all its fields, or of those before the broken one
	blank  bool     // it is only white space
	broken string   // what is wrong with its quotes, or empty
}

// next reads a record, keeping only its first fields, and reports whether
// there was one.
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

// field reads one field and reports whether another one follows in the record.
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

// quoted reads the rest of a quoted field from there on.
func (r *csvRecords) quoted(from int) (field string, more bool) {
	doubled := false
	for index := from; ; index++ {
		next := strings.IndexByte(r.text[index:], '"')
		if next < 0 {
			r.broken = "has a quote that is never closed"
			return "", false
		}
		index += next
		if index+1 < len(r.text) && r.text[index+1] == '"' {
			doubled = true
			index++
			continue
		}
		field = r.text[from:index]
		for index++; index < len(r.text) && r.text[index] == ' '; index++ {
		}
		if index < len(r.text) && !r.isSeparator(r.text[index]) {
			r.broken = "has text after a closing quote"
			return "", false
		}
		if doubled {
			field = strings.ReplaceAll(field, `""`, `"`)
		}
		return field, r.separator(index)
	}
}

func (r *csvRecords) isSeparator(c byte) bool {
	return c == r.delimiter || c == '\n' || c == '\r'
}

// separator skips the separator at i and reports whether it was the delimiter.
func (r *csvRecords) separator(i int) bool {
	r.pos = i + 1
	if i >= len(r.text) {
		return false
	}
	if r.text[i] == '\r' &&
		r.pos < len(r.text) &&
		r.text[r.pos] == '\n' {
		r.pos++
	}
	return r.text[i] == r.delimiter
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }
