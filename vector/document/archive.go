package document

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
)

// The bounds on what a .docx may unpack to. Word's own files hold some dozen
// parts and compress four to twenty times.
const (
	maxEntries   = 10_000
	maxRatio     = 100
	maxUnpacked  = 128 << 20 // bytes, all parts that are read together
	maxSmallPart = 8 << 20   // bytes of a part other than the text itself
	maxRootRels  = 64 << 10  // bytes of the part that names the text
	maxSlack     = 1 << 20   // bytes of a part that no ratio is asked of
)

// archive reads parts out of a ZIP file whose sizes are not believed.
type archive struct {
	parts map[string]*zip.File // by name in lower case, without a leading slash
	left  int64                // bytes that may still be unpacked
}

var zipEntry = []byte("PK\x01\x02")

// openArchive reads the directory of a ZIP file. It counts the entries before
// package zip makes room for them.
func openArchive(data []byte) (*archive, bool) {
	if !bytes.HasPrefix(data, []byte("PK\x03\x04")) || bytes.Count(data, zipEntry) > maxEntries {
		return nil, false
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, false
	}
	a := &archive{parts: map[string]*zip.File{}, left: maxUnpacked}
	for _, f := range z.File {
		name := partName(f.Name)
		if _, twice := a.parts[name]; f.Mode().IsRegular() && !twice {
			a.parts[name] = f
		}
	}
	return a, true
}

// partName compares the names of parts as Open Packaging Conventions does:
// without regard to case.
func partName(name string) string {
	return strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(name, `\`, "/"), "/"))
}

func (a *archive) has(name string) bool { return a.parts[partName(name)] != nil }

// open returns a part for reading; nil when there is none of that name.
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
	return &part{ReadCloser: r, archive: a, name: f.Name, left: ratio}, nil
}

// read unpacks a part of at most limit bytes whole; nil when there is none of
// that name.
func (a *archive) read(name string, limit int) ([]byte, error) {
	r, err := a.open(name)
	if r == nil || err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = unpacksTooFar()
	}
	return data, err
}

// part is one part while it is unpacked. Its errors are *agent.Error.
type part struct {
	io.ReadCloser
	archive *archive
	name    string
	left    int64 // bytes until its ratio is passed
}

func (p *part) Read(buf []byte) (int, error) {
	n, err := p.ReadCloser.Read(buf)
	p.left -= int64(n)
	p.archive.left -= int64(n)
	switch {
	case p.left < 0 || p.archive.left < 0:
		return 0, unpacksTooFar()
	case err != nil && err != io.EOF:
		return n, damagedPart(p.name)
	}
	return n, err
}

func unpacksTooFar() error {
	return tooComplex("the file unpacks to far more than its size allows")
}

func damagedPart(name string) error {
	return broken("the file is damaged: its part %q cannot be unpacked", clipTitle(name))
}

// ole is the signature of the compound files that hold .doc files, and .docx
// files under a password.
var ole = []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")

// checkDOCX tells at once whether a file can be a .docx.
func checkDOCX(data []byte) error {
	if bytes.HasPrefix(data, ole) {
		return refused("is an old .doc file or protected by a password; save it as .docx without one")
	}
	a, ok := openArchive(data)
	if !ok || docxMain(a) == "" {
		return refused("is no DOCX file")
	}
	return nil
}

// docxMain returns the name of a document's main part: the one that the
// package's relationships name, else where Word puts it; "" when there is none.
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
