package document

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
)

// Limits on unpacking a .docx. Word's own files have a few dozen parts and
// compress four to twenty times.
const (
	maxEntries   = 10_000
	maxRatio     = 100
	maxUnpacked  = 128 << 20 // bytes of all parts together
	maxSmallPart = 8 << 20   // bytes of a part other than the main text
	maxRootRels  = 64 << 10  // bytes of the part that names the main text
	maxSlack     = 1 << 20   // bytes of a part before its compression ratio is checked
)

// archive reads parts of a ZIP file without trusting the sizes it declares.
type archive struct {
	parts     map[string]*zip.File // by name in lower case, without a leading slash
	remaining int64                // bytes that may still be unpacked
}

var zipEntry = []byte("PK\x01\x02")

// openArchive reads the directory of a ZIP file. It counts the entries before
// package zip allocates them.
func openArchive(data []byte) (*archive, bool) {
	if !bytes.HasPrefix(data, []byte("PK\x03\x04")) || bytes.Count(data, zipEntry) > maxEntries {
		return nil, false
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, false
	}
	a := &archive{parts: map[string]*zip.File{}, remaining: maxUnpacked}
	for _, f := range z.File {
		name := partName(f.Name)
		if _, twice := a.parts[name]; f.Mode().IsRegular() && !twice {
			a.parts[name] = f
		}
	}
	return a, true
}

// partName normalizes the name of a part: Open Packaging Conventions ignores
// case.
func partName(name string) string {
	return strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(name, `\`, "/"), "/"))
}

func (a *archive) has(name string) bool {
	return a.parts[partName(name)] != nil
}

// open returns a part for reading, or nil if there is no part with that name.
func (a *archive) open(name string) (io.ReadCloser, error) {
	f := a.parts[partName(name)]
	if f == nil {
		return nil, nil
	}
	r, err := f.Open()
	if err != nil {
		return nil, damagedPart(f.Name)
	}
	ratio := max(maxSlack, int64(f.CompressedSize64)*maxRatio)
	return &part{
		ReadCloser: r,
		archive:    a,
		name:       f.Name,
		remaining:  ratio,
	}, nil
}

// read returns the content of a part of at most limit bytes, or nil if there
// is no part with that name.
func (a *archive) read(name string, limit int) ([]byte, error) {
	r, err := a.open(name)
	if r == nil || err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = tooLargeUnpacked()
	}
	return data, err
}

// part reads one part with limits. Its errors are *agent.Error.
type part struct {
	io.ReadCloser
	archive   *archive
	name      string
	remaining int64 // bytes until the limit of its compression ratio
}

func (p *part) Read(buf []byte) (int, error) {
	n, err := p.ReadCloser.Read(buf)
	p.remaining -= int64(n)
	p.archive.remaining -= int64(n)
	switch {
	case p.remaining < 0 || p.archive.remaining < 0:
		return 0, tooLargeUnpacked()
	case err != nil && err != io.EOF:
		return n, damagedPart(p.name)
	}
	return n, err
}

func tooLargeUnpacked() error {
	return tooComplex("the file unpacks to far more than its size allows")
}

func damagedPart(name string) error {
	return broken("the file is damaged: its part %q cannot be unpacked", clipTitle(name))
}

// ole is the signature of compound files: .doc files, and .docx files with a
// password.
var ole = []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")

// checkDOCX reports whether a file can be a .docx, without unpacking it.
func checkDOCX(data []byte) error {
	if bytes.HasPrefix(data, ole) {
		return rejected("is an old .doc file or protected by a password; save it as .docx without one")
	}
	a, ok := openArchive(data)
	if !ok || docxMain(a) == "" {
		return rejected("is not a DOCX file")
	}
	return nil
}

// docxMain returns the name of the main part: from the package's
// relationships, or else Word's default; "" if there is none.
func docxMain(a *archive) string {
	if rels, err := a.read("_rels/.rels", maxRootRels); err == nil {
		for _, rel := range relationships(rels, "") {
			if strings.HasSuffix(rel.kind, "/officeDocument") && strings.HasSuffix(rel.target, ".xml") &&
				strings.Contains(rel.target, "word/") && a.has(rel.target) {
				return rel.target
			}
		}
	}
	if a.has("word/document.xml") {
		return "word/document.xml"
	}
	return ""
}
