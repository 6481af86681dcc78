package document

import (
	"bytes"
	"errors"
	"io"
	"math"
	"path"
	"strings"

	"github.com/ledongthuc/pdf"
	"satchel/agent"
)

// minWordsPerPage is the average below which a file counts as scanned if
// images cover most of its pages.
const minWordsPerPage = 20

// extractPDF reads the text of each page. Package pdf parses the objects of
// the file; positions and characters are computed here. Package pdf's own text
// of a page is used if it has more known words.
func extractPDF(in input, out *sink) error {
	file, err := openPDF(in.data)
	if err != nil {
		return err
	}
	d := &pdfDocument{out: out, maxPages: in.limits.Pages, fonts: map[string]*pdfFont{}}
	root := value(file.Trailer(), "Root", "Pages")
	if err := d.walk(root, inherited{area: letterArea}, 0); err != nil {
		return err
	}
	switch {
	case d.pages == 0:
		return broken("the file is damaged: its pages cannot be found")
	case d.words == 0 && d.failed == d.pages:
		return broken("the file is damaged, or written in a way that cannot be read")
	case d.words < minWordsPerPage*d.pages && 2*d.pictures >= d.pages:
		return noText("the file looks like a scan: pictures of pages, without text in them")
	case d.words == 0:
		return noText("the file holds no text that can be read")
	}
	out.pages = d.pages
	out.title = title(file)
	return nil
}

// openPDF reads the file's table of objects. Package pdf requires an exact
// first line and an end marker on the last line; real files have newer
// versions or extra bytes before or after.
func openPDF(data []byte) (*pdf.Reader, error) {
	start := bytes.Index(data[:min(len(data), 1024)], []byte("%PDF-"))
	end := bytes.LastIndex(data, []byte("%%EOF"))
	if start < 0 {
		return nil, rejected("is not a PDF file")
	}
	if end < start {
		return nil, broken("the PDF file is cut off: its end is missing")
	}
	data = data[start : end+len("%%EOF")]
	r, err := pdf.NewReader(pdfFile{bytes.NewReader(data)}, int64(len(data)))
	switch {
	case err == nil:
		return r, nil
	case errors.Is(err, pdf.ErrInvalidPassword):
		return nil, agent.Errorf(CodeEncrypted, "the file is protected by a password")
	case bytes.Contains(data, []byte("/Encrypt")):
		return nil, agent.Errorf(CodeEncrypted, "the file is encrypted in a way that cannot be read")
	}
	return nil, broken("the PDF file is damaged: its list of objects cannot be read")
}

// pdfFile replaces a file's first line with the one that package pdf requires.
type pdfFile struct{ *bytes.Reader }

const pdfHeader = "%PDF-1.7\n"

func (f pdfFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.Reader.ReadAt(p, offset)
	if offset >= 0 && offset < int64(len(pdfHeader)) {
		copy(p[:n], pdfHeader[offset:])
	}
	return n, err
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
	if strings.HasPrefix(name, "microsoft ") && strings.Contains(name, " - ") || name == "untitled" || formats[path.Ext(name)] {
		return ""
	}
	return title
}

// formats are the extensions of files that PDFs are made from.
var formats = map[string]bool{".html": true, ".htm": true, ".doc": true, ".docx": true, ".odt": true, ".rtf": true, ".txt": true, ".md": true,
	".tex": true, ".dvi": true, ".ppt": true, ".pptx": true, ".xls": true, ".xlsx": true, ".indd": true, ".pages": true, ".pdf": true}

// pdfDocument is the state of reading a file's pages.
type pdfDocument struct {
	out      *sink
	maxPages int
	fonts    map[string]*pdfFont // by the text of their dictionaries

	nodes    int // visited in the page tree
	pages    int
	failed   int // pages that could not be read
	pictures int // pages covered by an image
	words    int
	misses   int // consecutive pages on which package pdf was no better
}

// letterArea is the area of a page without a size, in square points.
const letterArea = 612 * 792

// maxPageDepth limits the depth of the page tree, which may have cycles.
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

// walk reads the pages below a node of the page tree.
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
	reader := &pdfPage{fonts: d.fonts, limit: d.out.remaining, area: from.area}
	err := reader.read(contents(value(node, "Contents")), from.resources)
	if reader.picture {
		d.pictures++
	}
	text := reader.lines.text()
	if alternative := d.plainText(node, text); alternative != "" {
		text = alternative
	}
	if text = clean(text); isBlank(text) {
		if err != nil {
			d.failed++
		}
		return nil
	}
	d.words += len(strings.Fields(text))
	return d.out.write(d.pages, text)
}

// poorShare is the share of known words below which a text may have been
// decoded wrongly; in any common language it is over a quarter.
const poorShare = 0.15

// plainText returns package pdf's text of a page if text is poor and that has
// more known words. As it is slow, it is given up after too many misses.
func (d *pdfDocument) plainText(node pdf.Value, text string) (better string) {
	known, all := knownWords(text)
	if d.misses > 10 || float64(known) > poorShare*float64(all) {
		return ""
	}
	defer func() {
		if recover() != nil {
			better = ""
		}
	}()
	plain, err := pdf.Page{V: node}.GetPlainText(nil)
	if theirs, _ := knownWords(plain); err == nil && theirs > known {
		d.misses = 0
		return plain
	}
	d.misses++
	return ""
}

// maxContent limits the content stream of a page or of a form on it, in bytes.
const maxContent = 32 << 20

// contents unpacks a page's content streams. Unreadable ones are skipped.
func contents(v pdf.Value) []byte {
	if v.Kind() != pdf.Array {
		return unpack(v)
	}
	var all []byte
	for i := 0; i < v.Len() && len(all) < maxContent; i++ {
		all = append(append(all, unpack(index(v, i))...), '\n')
	}
	return all
}

func unpack(v pdf.Value) (data []byte) {
	defer func() {
		if recover() != nil {
			data = nil
		}
	}()
	if v.Kind() != pdf.Stream {
		return nil
	}
	r := v.Reader()
	defer r.Close()
	data, _ = io.ReadAll(io.LimitReader(r, maxContent)) // of a truncated stream, whatever can be read
	return data
}
