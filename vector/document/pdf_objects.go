package document

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ledongthuc/pdf"
)

// Package pdf follows the offsets in a file's tables of objects, in object
// streams and between them. These are wrong in many real files, and may form
// circles. Therefore the tables are not used: the file is scanned for objects,
// of which the last one with a number counts, and package pdf reads the file
// with a simple table appended, without object streams.

// pdfObjects are the objects of a file.
type pdfObjects struct {
	data    []byte
	found   map[int]pdfObject
	trailer map[string]string // the entries of all trailers; those of the last one count
	catalog string            // a reference to the last catalog
	streams []pdfStreamObject
	extra   bytes.Buffer // objects to be appended to the file
	effort  int          // bytes that were read in vain
}

// pdfObject is the place of an object in the file with what is appended to it.
type pdfObject struct {
	generation int
	offset     int // of its number
	since      int // offset of what it was read from, such as an object stream
}

// pdfStreamObject is a stream in the file.
type pdfStreamObject struct {
	id, generation, offset int
	dictionary             []byte
	entries                map[string]string
	start, end             int // of its data
}

const (
	maxPDFObject   = 1 << 21  // the highest number of an object
	maxObjectTexts = 64 << 20 // bytes in all object streams
)

// findPDFObjects scans a file.
func findPDFObjects(data []byte) (*pdfObjects, error) {
	objects := &pdfObjects{
		data:    data,
		found:   map[int]pdfObject{},
		trailer: map[string]string{},
	}
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte("obj"))
		if i < 0 {
			objects.readTrailers(at, len(data))
			break
		}
		objects.readTrailers(at, at+i)
		at = objects.object(at + i)
		if objects.isHopeless() {
			return nil, broken("the PDF file is damaged: its objects have no end")
		}
	}
	for _, s := range objects.streams {
		objects.correctLength(s)
	}
	return objects, nil
}

// readTrailers reads the trailers between two offsets.
func (o *pdfObjects) readTrailers(from, to int) {
	for from < to && !o.isHopeless() {
		i := bytes.Index(o.data[from:to], []byte("trailer"))
		if i < 0 {
			return
		}
		from += i + len("trailer")
		l := &pdfLexer{data: o.data, pos: from}
		entries, whole := l.dictionary()
		maps.Copy(o.trailer, entries)
		o.spend(whole, l.pos-from)
	}
}

// spend counts what was read of something without an end.
func (o *pdfObjects) spend(whole bool, length int) {
	if !whole {
		o.effort += length
	}
}

// isHopeless reports whether so much has no end that scanning the file would take
// too long.
func (o *pdfObjects) isHopeless() bool {
	return o.effort > 4*len(o.data)+1<<20
}

// object records the object whose keyword "obj" is at an offset, and returns
// where to continue.
func (o *pdfObjects) object(at int) int {
	after := at + len("obj")
	id, generation, offset, ok := objectNumber(o.data, at)
	if !ok || after < len(o.data) && !isPDFSpace(o.data[after]) && !isPDFDelimiter(o.data[after]) {
		return after
	}
	o.found[id] = pdfObject{generation: generation, offset: offset, since: offset}
	lexer := &pdfLexer{data: o.data, pos: after}
	entries, whole := lexer.dictionary()
	o.spend(whole, lexer.pos-after)
	if !whole {
		return after
	}
	o.noteCatalog(entries, id, generation)
	dictionary := bytes.TrimSpace(o.data[after:lexer.pos])
	end := lexer.pos
	if lexer.next().text != "stream" {
		return end
	}
	s := pdfStreamObject{
		id:         id,
		generation: generation,
		offset:     offset,
		dictionary: dictionary,
		entries:    entries,
	}
	s.start = lineStart(o.data, lexer.pos)
	s.end = o.streamEnd(s.start, entries["Length"])
	o.streams = append(o.streams, s)
	if entries["Type"] == "/XRef" {
		maps.Copy(o.trailer, entries)
	}
	return s.end
}

func (o *pdfObjects) noteCatalog(entries map[string]string, id, generation int) {
	if entries["Type"] == "/Catalog" {
		o.catalog = fmt.Sprintf("%d %d R", id, generation)
	}
}

// objectNumber parses the numbers before the keyword "obj" at an offset.
func objectNumber(data []byte, at int) (id, generation, offset int, ok bool) {
	generation, at, ok = numberBefore(data, at)
	if !ok || generation > 0xFFFF {
		return 0, 0, 0, false
	}
	id, at, ok = numberBefore(data, at)
	return id, generation, at, ok && id <= maxPDFObject
}

// numberBefore parses the number that ends, with white space, at an offset.
func numberBefore(data []byte, at int) (number, start int, ok bool) {
	end := at
	for end > 0 && at-end < 16 && isPDFSpace(data[end-1]) {
		end--
	}
	start = end
	for start > 0 &&
		end-start < 10 &&
		data[start-1] >= '0' &&
		data[start-1] <= '9' {
		start--
	}
	number, err := strconv.Atoi(string(data[start:end]))
	return number, start, err == nil && end < at
}

// lineStart returns the offset after the line end that follows the keyword
// "stream".
func lineStart(data []byte, at int) int {
	if at < len(data) && data[at] == '\r' {
		at++
	}
	if at < len(data) && data[at] == '\n' {
		at++
	}
	return at
}

// streamEnd returns the end of a stream's data: by its length if that is right,
// or else by the keyword that follows.
func (o *pdfObjects) streamEnd(start int, length string) int {
	if n, err := strconv.Atoi(length); err == nil && o.endsStream(start, n) {
		return start + n
	}
	end := len(o.data)
	for _, keyword := range []string{"endstream", "endobj"} {
		i := bytes.Index(o.data[start:end], []byte(keyword))
		o.spend(i >= 0, end-start)
		if i >= 0 {
			end = start + i
			break
		}
	}
	if end > start && o.data[end-1] == '\n' {
		end--
	}
	if end > start && o.data[end-1] == '\r' {
		end--
	}
	return end
}

// endsStream reports whether the keyword "endstream" follows data of a length.
func (o *pdfObjects) endsStream(start, length int) bool {
	if length < 0 || length > len(o.data)-start {
		return false
	}
	after := o.data[start+length:]
	return bytes.HasPrefix(bytes.TrimLeft(after[:min(len(after), 32)], "\r\n\t "), []byte("endstream"))
}

// correctLength appends a copy of a stream whose length is wrong.
func (o *pdfObjects) correctLength(object pdfStreamObject) {
	if o.found[object.id].offset != object.offset {
		return // replaced by a later one
	}
	length := object.entries["Length"]
	if id, ok := referenced(length); ok {
		length = o.number(id)
	}
	if n, err := strconv.Atoi(length); err == nil && o.endsStream(object.start, n) {
		return
	}
	dictionary := bytes.TrimSuffix(object.dictionary, []byte(">>"))
	text := fmt.Sprintf(
		"%s/Length %d>>\nstream\n%s\nendstream",
		dictionary,
		object.end-object.start,
		o.data[object.start:object.end],
	)
	o.append(object.id, object.generation, object.offset, text)
}

// number returns the text of an object that is a number.
func (o *pdfObjects) number(id int) string {
	object, ok := o.found[id]
	if !ok || object.offset >= len(o.data) {
		return ""
	}
	l := &pdfLexer{data: o.data, pos: object.offset}
	for range 3 { // its number, its generation, "obj"
		l.next()
	}
	l.space()
	return l.regular()
}

// append appends an object to the file.
func (o *pdfObjects) append(id, generation, since int, text string) {
	o.extra.WriteString("\n")
	o.found[id] = pdfObject{
		generation: generation,
		offset:     len(o.data) + o.extra.Len(),
		since:      since,
	}
	fmt.Fprintf(&o.extra, "%d %d obj\n%s\nendobj\n", id, generation, text)
}

// open returns package pdf's reader of the objects.
func (o *pdfObjects) open(unpack func(pdf.Value) []byte) (*pdf.Reader, error) {
	var list []string
	var streams []pdfStreamObject
	for _, s := range o.streams {
		if object := o.found[s.id]; s.entries["Type"] == "/ObjStm" && object.since == s.offset {
			list = append(list, fmt.Sprintf("%d %d R", s.id, object.generation))
			streams = append(streams, s)
		}
	}
	reader, err := o.reader("/ObjectStreams[" + strings.Join(list, " ") + "]")
	if err != nil {
		return nil, err
	}
	for i, s := range streams {
		if err := o.unpack(s, unpack(index(value(reader.Trailer(), "ObjectStreams"), i))); err != nil {
			return nil, err
		}
	}
	if reader, err = o.reader(""); err == nil &&
		o.catalog != "" &&
		value(reader.Trailer(), "Root", "Pages").Kind() != pdf.Dict {
		o.trailer["Root"] = o.catalog
		return o.reader("")
	}
	return reader, err
}

// unpack appends the objects of an object stream (ISO 32000-1, section 7.5.7).
func (o *pdfObjects) unpack(object pdfStreamObject, data []byte) error {
	first, err := strconv.Atoi(object.entries["First"])
	if err != nil || first < 0 || first > len(data) {
		return nil
	}
	for heads := (&pdfLexer{data: data[:first]}); ; {
		id, offset := heads.next(), heads.next()
		if offset.kind != pdfNumber {
			return nil
		}
		number, at := int(id.number), first+int(offset.number)
		if number < 0 ||
			number > maxPDFObject ||
			at < first ||
			at >= len(data) ||
			o.found[number].since > object.offset {
			continue
		}
		lexer := &pdfLexer{data: data, pos: at}
		if bytes.HasPrefix(data[at:], []byte("<<")) {
			entries, _ := lexer.dictionary()
			o.noteCatalog(entries, number, 0)
		} else {
			lexer.skip(lexer.next())
		}
		text := data[at:lexer.pos]
		if o.trailer["Encrypt"] != "" {
			text = withoutStrings(text)
		}
		if o.append(
			number,
			0,
			object.offset,
			string(text),
		); o.extra.Len() > len(o.data)+maxObjectTexts {
			return tooComplex("the file's objects are over the limit of %d MB", maxObjectTexts>>20)
		}
	}
}

// withoutStrings returns an object without its strings, which package pdf would
// decrypt, although the object stream was.
func withoutStrings(text []byte) []byte {
	var out []byte
	for l := (&pdfLexer{data: text}); ; {
		l.space()
		start := l.pos
		switch t := l.next(); t.kind {
		case pdfEnd:
			return out
		case pdfString:
			out = append(out, " null"...)
		default:
			out = append(append(out, ' '), text[start:l.pos]...)
		}
	}
}

// reader opens the file with a table of objects and a trailer appended.
func (o *pdfObjects) reader(entries string) (*pdf.Reader, error) {
	size := o.extra.Len()
	defer o.extra.Truncate(size)
	ids := slices.Sorted(maps.Keys(o.found))
	fmt.Fprintf(&o.extra, "\nxref\n0 1\n0000000000 65535 f \n")
	for _, id := range ids {
		object := o.found[id]
		fmt.Fprintf(&o.extra, "%d 1\n%010d %05d n \n", id, object.offset, object.generation)
	}
	fmt.Fprintf(&o.extra, "trailer\n<</Size %d%s", maxPDFObject+1, entries)
	if root := o.trailer["Root"]; o.has(root) {
		fmt.Fprintf(&o.extra, "/Root %s", root)
	} else if o.catalog != "" {
		fmt.Fprintf(&o.extra, "/Root %s", o.catalog)
	}
	for _, key := range []string{"Info", "Encrypt", "ID"} {
		if v := o.trailer[key]; v != "" {
			fmt.Fprintf(&o.extra, "/%s %s", key, v)
		}
	}
	fmt.Fprintf(&o.extra, ">>\nstartxref\n%d\n%%%%EOF", len(o.data)+size+1)
	file := pdfFile{data: o.data, extra: bytes.Clone(o.extra.Bytes())}
	return pdf.NewReader(file, int64(len(o.data)+len(file.extra)))
}

// has reports whether a reference is to an object of the file.
func (o *pdfObjects) has(reference string) bool {
	id, _ := referenced(reference)
	_, ok := o.found[id]
	return ok
}

// referenced returns the number of the object of a reference, such as "5 0 R".
func referenced(reference string) (id int, ok bool) {
	parts := strings.Fields(reference)
	if len(parts) != 3 || parts[2] != "R" {
		return 0, false
	}
	id, err := strconv.Atoi(parts[0])
	return id, err == nil
}

// dictionaryKeys are the keys whose values dictionary returns.
var dictionaryKeys = map[string]bool{
	"Type": true, "Length": true, "First": true, "Linearized": true, "L": true,
	"Root": true, "Info": true, "Encrypt": true, "ID": true,
}

// dictionary reads a dictionary and returns the source of some values. It
// returns false if there is no dictionary, or one without an end.
func (l *pdfLexer) dictionary() (entries map[string]string, whole bool) {
	l.space()
	if !bytes.HasPrefix(l.data[l.pos:], []byte("<<")) {
		return nil, true
	}
	l.pos += len("<<")
	for {
		key := l.next()
		switch key.kind {
		case pdfClose:
			return entries, true
		case pdfEnd:
			return entries, false
		case pdfWord:
			if isObjectWord(key.text) {
				return entries, false
			}
		}
		if key.kind != pdfName {
			l.skip(key)
			continue
		}
		l.space()
		start := l.pos
		if value := l.next(); value.kind == pdfClose {
			return entries, true // a key without a value
		} else if !l.skip(value) {
			return entries, false
		}
		if dictionaryKeys[key.text] {
			if entries == nil {
				entries = map[string]string{}
			}
			entries[key.text] = string(bytes.TrimSpace(l.data[start:l.pos]))
		}
	}
}

func isObjectWord(word string) bool { return word == "endobj" || word == "obj" || word == "stream" }

// skip skips the rest of an object after its first token. It returns false if
// the object has no end.
func (l *pdfLexer) skip(first pdfToken) bool {
	switch first.kind {
	case pdfNumber: // perhaps of a reference
		at := l.pos
		if l.next().kind != pdfNumber || l.next().text != "R" {
			l.pos = at
		}
	case pdfOpen:
		for depth := 1; depth > 0; {
			switch t := l.next(); {
			case t.kind == pdfOpen:
				depth++
			case t.kind == pdfClose:
				depth--
			case t.kind == pdfEnd, t.kind == pdfWord && isObjectWord(t.text):
				return false
			}
		}
	case pdfWord:
		return !isObjectWord(first.text)
	}
	return first.kind != pdfEnd
}
