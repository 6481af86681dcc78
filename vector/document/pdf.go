package document

import (
	"bytes"
	"errors"
	"io"
	"math"
	"path"
	"strconv"
	"strings"

	"satchel/agent"

	"github.com/ledongthuc/pdf"
)

// minWordsPerPage is the average below which a file counts as scanned if
// images cover most of its pages.
const minWordsPerPage = 20

// extractPDF reads the text of each page. Package pdf parses the objects of
// the file; positions and characters are computed here.
func extractPDF(in input, out *sink) error {
	limit := min(minPDFUnpacked+maxPDFRatio*len(in.data), maxPDFUnpacked)
	streams := &pdfStreams{remaining: limit}
	file, err := openPDF(in.data, streams)
	if err != nil {
		return err
	}
	document := &pdfDocument{
		out:      out,
		maxPages: in.limits.Pages,
		streams:  streams,
		fonts:    newPDFFonts(streams),
		seen:     map[string]bool{},
	}
	root := value(file.Trailer(), "Root", "Pages")
	if err := document.walk(root, inherited{area: letterArea}, 0); err != nil && !errors.Is(err, errUnpacked) {
		return err
	}
	switch {
	case streams.remaining <= 0:
		return tooComplex("the file unpacks to more than %d MB", limit>>20)
	case document.pages == 0:
		return broken("the file is damaged: its pages cannot be found")
	case document.words == 0 && document.failed == document.pages:
		return broken("the file is damaged, or written in a way that cannot be read")
	case document.words < minWordsPerPage*document.pages && 2*document.pictures >= document.pages:
		return noText("the file looks like a scan: pictures of pages, without text in them")
	case document.words == 0:
		return noText("the file holds no text that can be read")
	}
	out.pages = document.pages
	out.title = title(file)
	return nil
}

// openPDF finds the file's objects. Real files have extra bytes before or after.
func openPDF(data []byte, streams *pdfStreams) (*pdf.Reader, error) {
	data, err := trimPDF(data)
	if err != nil {
		return nil, err
	}
	objects, err := findPDFObjects(data)
	if err != nil {
		return nil, err
	}
	r, err := objects.open(streams.unpack)
	var known *agent.Error
	switch {
	case err == nil || errors.As(err, &known):
		return r, err
	case errors.Is(err, pdf.ErrInvalidPassword):
		return nil, agent.Errorf(CodeEncrypted, "the file is protected by a password")
	case objects.trailer["Encrypt"] != "":
		return nil, agent.Errorf(CodeEncrypted, "the file is encrypted in a way that cannot be read")
	}
	return nil, broken("the PDF file is damaged: its list of objects cannot be read")
}

// trimPDF returns a file without extra bytes. The end of a whole file is marked,
// or it has its trailer there.
func trimPDF(data []byte) ([]byte, error) {
	start := bytes.Index(data[:min(len(data), 1024)], []byte("%PDF-"))
	if start < 0 {
		return nil, rejected("is not a PDF file")
	}
	data = data[start:]
	marker := []byte("%%EOF")
	end := bytes.LastIndex(data, marker)
	if end >= 0 {
		whole := data[:end+len(marker)]
		if linearLength(data) > len(data) && bytes.Count(whole, marker) == 1 {
			end = -1 // only its first page is whole
		} else {
			return whole, nil
		}
	}
	after := data[max(bytes.LastIndex(data, []byte("endobj")), 0):]
	if end < 0 && (bytes.Contains(after, []byte("startxref")) || bytes.Contains(after, []byte("trailer"))) {
		return data, nil
	}
	return nil, broken("the PDF file is cut off: its end is missing")
}

// linearLength returns the length that a file states in its first object if its
// first page is stored first (ISO 32000-1, annex F), or else 0.
func linearLength(data []byte) int {
	head := data[:min(len(data), 2048)]
	i := bytes.Index(head, []byte("obj"))
	if i < 0 {
		return 0
	}
	l := &pdfLexer{data: head, pos: i + len("obj")}
	entries, _ := l.dictionary()
	if entries["Linearized"] == "" {
		return 0
	}
	length, _ := strconv.Atoi(entries["L"])
	return length
}

// pdfFile is a file with objects appended. Its first line is replaced with one
// that package pdf accepts.
type pdfFile struct{ data, extra []byte }

const pdfHeader = "%PDF-1.7\n"

func (f pdfFile) ReadAt(p []byte, offset int64) (int, error) {
	n := 0
	if offset >= 0 && offset < int64(len(f.data)) {
		n = copy(p, f.data[offset:])
		if offset < int64(len(pdfHeader)) {
			copy(p[:n], pdfHeader[offset:])
		}
	}
	if from := offset + int64(n) - int64(len(f.data)); from >= 0 && from < int64(len(f.extra)) {
		n += copy(p[n:], f.extra[from:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

var _ io.ReaderAt = pdfFile{}

// value follows keys. Unreadable values are null.
func value(v pdf.Value, keys ...string) (found pdf.Value) {
	defer func() {
		if recover() != nil {
			found = pdf.Value{}
		}
	}()
	for _, key := range keys {
		v = v.Key(key)
	}
	return v
}

func title(file *pdf.Reader) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	return cleanTitle(clipTitle(clean(value(file.Trailer(), "Info", "Title").Text())))
}

// cleanTitle returns a title, or "" if it is only the name of the file that the PDF was
// made from, which browsers and word processors store as its title.
func cleanTitle(title string) string {
	name := strings.ToLower(title)
	if strings.HasPrefix(name, "microsoft ") && strings.Contains(name, " - ") ||
		name == "untitled" ||
		formats[path.Ext(name)] {
		return ""
	}
	return title
}

// formats are the extensions of files that PDFs are made from.
var formats = map[string]bool{
	".html": true, ".htm": true, ".doc": true, ".docx": true, ".odt": true, ".rtf": true, ".txt": true, ".md": true,
	".tex": true, ".dvi": true, ".ppt": true, ".pptx": true, ".xls": true, ".xlsx": true, ".indd": true,
	".pages": true, ".pdf": true,
}

// pdfDocument is the state of reading a file's pages.
type pdfDocument struct {
	out      *sink
	maxPages int
	streams  *pdfStreams
	fonts    *pdfFonts
	seen     map[string]bool // nodes of the page tree, by the text of their dictionaries

	nodes    int // visited in the page tree
	pages    int
	failed   int // pages that could not be read
	pictures int // pages covered by an image
	words    int
}

// letterArea is the area of a page without a size, in square points.
const letterArea = 612 * 792

// maxPageDepth limits the depth of the page tree.
const maxPageDepth = 50

// inherited is what pages inherit from the page tree.
type inherited struct {
	resources pdf.Value
	area      float64
}

// from returns what the pages below a node inherit.
func (h inherited) from(node pdf.Value) inherited {
	if own := value(node, "Resources"); own.Kind() == pdf.Dict {
		h.resources = own
	}
	if box := value(node, "MediaBox"); box.Kind() == pdf.Array && box.Len() == 4 {
		width := index(box, 2).Float64() - index(box, 0).Float64()
		h.area = math.Abs(width * (index(box, 3).Float64() - index(box, 1).Float64()))
	}
	return h
}

// walk reads the pages below a node of the page tree. A node below itself, or
// anywhere else again, is skipped; a page may be there repeatedly.
func (d *pdfDocument) walk(node pdf.Value, from inherited, depth int) error {
	if d.nodes++; depth > maxPageDepth || d.nodes > 10*d.maxPages {
		return tooComplex("the file's list of pages is nested too deep")
	}
	from = from.from(node)
	kids := value(node, "Kids")
	if kids.Kind() != pdf.Array {
		if node.Kind() != pdf.Dict {
			return nil
		}
		return d.page(node, from)
	}
	if text := node.String(); d.seen[text] {
		return nil
	} else {
		d.seen[text] = true
	}
	for i := range kids.Len() {
		if err := d.walk(index(kids, i), from, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func index(v pdf.Value, i int) (found pdf.Value) {
	defer func() {
		if recover() != nil {
			found = pdf.Value{}
		}
	}()
	return v.Index(i)
}

// page reads and writes one page.
func (d *pdfDocument) page(node pdf.Value, from inherited) error {
	if d.pages++; d.pages > d.maxPages {
		return tooComplex("the file has more than %d pages", d.maxPages)
	}
	reader := &pdfPage{
		streams: d.streams,
		fonts:   d.fonts,
		limit:   d.out.remaining,
		area:    from.area,
	}
	err := reader.read(d.streams.contents(value(node, "Contents")), from.resources)
	if d.streams.remaining <= 0 {
		return errUnpacked
	}
	if reader.picture {
		d.pictures++
	}
	text := reader.text()
	if text = clean(text); isBlank(text) {
		if err != nil {
			d.failed++
		}
		return nil
	}
	d.words += len(strings.Fields(text))
	return d.out.write(d.pages, text)
}

// pdfStreams unpacks the streams of a file, up to a limit for all of them.
type pdfStreams struct{ remaining int }

// errUnpacked ends the reading of a file that unpacks to too much.
var errUnpacked = errors.New("document: over the limit of unpacked bytes")

const (
	maxContent     = 32 << 20  // bytes of the content of a page or of a form on it
	minPDFUnpacked = 64 << 20  // bytes of all streams that any file may have
	maxPDFUnpacked = 512 << 20 // bytes of all streams of a large file
	maxPDFRatio    = 32        // of the bytes of all streams to the file
	emptyStream    = 2 << 10   // bytes that a small stream counts as
	maxFilters     = 8         // of a stream
)

// contents unpacks a page's content streams. Unreadable ones are skipped.
func (s *pdfStreams) contents(v pdf.Value) []byte {
	if v.Kind() != pdf.Array {
		return s.unpack(v)
	}
	var all []byte
	for i := 0; i < v.Len() && len(all) < maxContent && s.remaining > 0; i++ {
		all = append(append(all, s.unpack(index(v, i))...), '\n')
	}
	return all
}

func (s *pdfStreams) unpack(v pdf.Value) (data []byte) {
	defer func() {
		if recover() != nil {
			data = nil
		}
		s.remaining -= max(len(data), emptyStream)
	}()
	if v.Kind() != pdf.Stream || v.Key("Filter").Len() > maxFilters || s.remaining <= 0 {
		return nil
	}
	r := v.Reader()
	defer r.Close()
	data, _ = io.ReadAll(io.LimitReader(r, maxContent)) // of a truncated stream, whatever can be read
	return data
}
