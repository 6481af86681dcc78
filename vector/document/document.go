// Package document extracts text from files: plain text, Markdown, JSON, CSV,
// HTML, DOCX and PDF. The result is always one Markdown text and the positions
// of its headings, tables, code blocks, lists and rows, which is what
// splitting into chunks needs.
//
// The bytes are untrusted. Every reader limits size and depth, a broken file
// results in an *agent.Error with a message for its owner, and HTML, DOCX and
// PDF are parsed in a child process with limits of time and memory (see
// RunChild).
package document

import (
	"context"
	"strings"
)

// Kind is the kind of a block.
type Kind uint8

// The kinds of block. Row is one record of data, written as "name: value"
// lines: a row of a CSV file, or an element of a JSON array.
const (
	KindParagraph Kind = iota
	KindHeading
	KindFence
	KindTable
	KindList
	KindRow
)

func (k Kind) String() string {
	return [...]string{"paragraph", "heading", "fence", "table", "list", "row"}[k]
}

// Block is the position of a part of a document's text. Blocks are in reading
// order and do not overlap; between them is only white space. A block has
// offsets instead of a string, so that a file of a million rows needs 20 MB of
// blocks instead of a second copy of its text.
type Block struct {
	Kind   Kind
	Level  uint8  // of a heading, 1 to 6
	Page   int32  // 1 is the first page, 0 if the format has no pages
	Parent int32  // index of the heading above it, -1 for none
	Start  uint32 // first byte in Document.Text
	End    uint32 // byte after the last one
}

// Document is the text extracted from a file.
type Document struct {
	Format Format
	Title  string // the file's own title, "" if it has none
	Text   string // Markdown, lines ending in \n, valid UTF-8 without NUL
	Blocks []Block
	Pages  int // 0 if the format has no pages

	// Lined reports whether the lines of Text are those of the file, except
	// that the line ends at the offsets Joined are missing.
	Lined  bool
	Joined []uint32 // in ascending order

	// RaggedRows counts the rows of a CSV file with more or fewer fields than
	// its header.
	RaggedRows int
}

// TextOf returns the Markdown of a block.
func (d *Document) TextOf(b Block) string {
	return d.Text[b.Start:b.End]
}

// Path returns the headings above block i, outermost first, as "A > B". A
// heading's own text is part of its path.
func (d *Document) Path(i int) string {
	var parts []string
	if d.Blocks[i].Kind != KindHeading {
		i = int(d.Blocks[i].Parent)
	}
	for ; i >= 0; i = int(d.Blocks[i].Parent) {
		if h := HeadingText(d.TextOf(d.Blocks[i])); h != "" {
			parts = append(parts, h)
		}
	}
	for l, r := 0, len(parts)-1; l < r; l, r = l+1, r-1 {
		parts[l], parts[r] = parts[r], parts[l]
	}
	return strings.Join(parts, " > ")
}

// Read extracts the text of a file. The format is determined as by Check, whose
// errors it returns; media is the file's Content-Type if known, or "". Errors
// are *agent.Error: those of Check, or one with the code CodeBrokenFile,
// CodeTooComplex, CodeEncrypted, CodeNoText or CodeTimeout. data must not
// change while Read runs and is not kept afterwards.
func Read(ctx context.Context, name, media string, data []byte, limits Limits) (*Document, error) {
	format, err := Check(name, media, data)
	if err != nil {
		return nil, err
	}
	limits = limits.orDefaults()
	doc, err := readers[format](ctx, input{
		name:   name,
		media:  media,
		data:   data,
		limits: limits,
	})
	if err != nil {
		return nil, err
	}
	doc.Format = format
	if strings.TrimSpace(doc.Text) == "" {
		return nil, noText("the file contains no text")
	}
	return doc, nil
}

// input is the input of a reader.
type input struct {
	name, media string
	data        []byte
	limits      Limits
	fallback    fallback
}

// readers maps each format to its reader.
var readers = map[Format]func(context.Context, input) (*Document, error){
	FormatText:     readText,
	FormatMarkdown: readMarkdown,
	FormatJSON:     readJSON,
	FormatCSV:      readCSV,
	FormatHTML:     isolated(FormatHTML, markdownBlocks),
	FormatDOCX:     isolated(FormatDOCX, markdownBlocks),
	FormatPDF:      isolated(FormatPDF, pageParagraphs),
}
