// Package chunk splits a document into overlapping chunks of limited length for
// embedding and search.
//
// Every method guarantees: No chunk's content is longer than the requested
// size. Every character of the document that is not white space is in some
// chunk. A chunk that starts inside a table, a code fence or a record repeats
// the table's header, the fence's first line or the value's name. No character
// is separated from its combining marks.
package chunk

import (
	"context"
	"fmt"
	"unicode/utf8"

	"satchel/agent"
	"satchel/vector/document"
)

// The methods of splitting.
const (
	// Fixed fills every chunk up to its size, without splitting words.
	Fixed = "fixed"
	// Sentence fills chunks with whole sentences.
	Sentence = "sentence"
	// Recursive splits at the strongest boundary within reach: a heading, or
	// else the end of a paragraph, a row or line of code, a sentence, a word. A
	// document that fits into one chunk is split at its headings, since the
	// embedding of a whole handbook is near to no question about a part of it.
	Recursive = "recursive"
	// Markdown starts a chunk at every heading and splits long sections like
	// Recursive. Plain text is parsed as Markdown.
	Markdown = "markdown"
	// Semantic starts a chunk where the meaning of adjacent sentences diverges,
	// and splits long stretches like Recursive.
	Semantic = "semantic"
)

// Limits of a chunk's size, in characters, and of the number of chunks per
// document.
const (
	MinSize   = 20
	MaxSize   = 20_000
	MaxChunks = 1_000_000
)

// Embed returns a vector of equal length for each text, in order.
type Embed func(ctx context.Context, texts []string) ([][]float32, error)

// Config controls splitting. Sizes are in characters (Unicode code points).
type Config struct {
	Size    int // of a chunk, MinSize to MaxSize
	Overlap int // characters repeated from the previous chunk, 0 to Size-1
	Method  string

	// Embed is only used by Semantic, which splits like Recursive without it.
	Embed Embed
}

// Validate checks the limits of the fields of Config.
func (c Config) Validate() error {
	var is agent.Issues
	is.Check(
		c.Size >= MinSize && c.Size <= MaxSize,
		"chunk_size",
		fmt.Sprintf("must be between %d and %d characters", MinSize, MaxSize),
	)
	is.Check(c.Overlap >= 0 && c.Overlap < c.Size, "overlap", "must be at least 0 and less than chunk_size")
	_, known := rulesOf[c.Method]
	is.Check(known, "method", "must be fixed, sentence, recursive, markdown or semantic")
	return is.Err()
}

// Chunk is one piece of a document.
type Chunk struct {
	Content  string // at most Config.Size characters
	Heading  string // the headings above its start, as "A > B"
	Page     int    // where it starts; 0 if the format has no pages
	Position int    // 0 is the first chunk

	PageStarts []agent.PageStart // where each page starts in Content, if there are several
	// the headings that follow within the chunk, in the form of Heading, at most maxLaterHeadings
	LaterHeadings []string
	Line          int // where it starts in the file; 0 if the format has no lines
	LastLine      int // where it ends
}

// Split splits doc. Its time is linear in the length of the text, and it needs
// little memory, since most chunks are slices of the text. Each chunk has new
// text of at least a tenth of the size, whatever the overlap. Errors are those
// of Validate, of Embed, of ctx, and document.CodeTooComplex for more than
// MaxChunks.
func Split(ctx context.Context, doc *document.Document, config Config) ([]Chunk, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.Method == Markdown && doc.Format == document.FormatText {
		doc = doc.AsMarkdown()
	}
	s := newSplitter(doc, config)
	breaks, err := s.breaks(ctx)
	if err != nil {
		return nil, err
	}
	start := 0
	for _, end := range append(breaks, len(doc.Text)) {
		if err := s.segment(ctx, start, end); err != nil {
			return nil, err
		}
		start = end
	}
	return s.chunks, nil
}

// breaks returns the offsets that no chunk may cross.
func (splitter *splitter) breaks(ctx context.Context) ([]int, error) {
	switch {
	case splitter.Method == Markdown:
		return splitter.headings(), nil
	case splitter.Method == Recursive && utf8.RuneCountInString(splitter.text) <= splitter.Size:
		return splitter.shortSections(), nil
	case splitter.Method == Semantic && splitter.Embed != nil:
		return splitter.topics(ctx)
	}
	return nil, nil
}

// headings returns where sections start. Consecutive headings start one section
// together.
func (splitter *splitter) headings() []int {
	var at []int
	for i, b := range splitter.doc.Blocks {
		if i > 0 && splitter.beginsSection(i) {
			at = append(at, int(b.Start))
		}
	}
	return at
}

// minSection is the least length of what shortSections splits off, in bytes: shorter
// sections say too little by themselves.
const minSection = 100

// shortSections returns the offsets at which a document that fits into one chunk is
// split: where sections start, if both sides have at least minSection bytes.
func (splitter *splitter) shortSections() []int {
	var at []int
	last := 0
	for _, offset := range splitter.headings() {
		if offset-last >= minSection && len(splitter.text)-offset >= minSection {
			at = append(at, offset)
			last = offset
		}
	}
	return at
}
