// Package chunk cuts a document into overlapping pieces of bounded length for
// embedding and search.
//
// Whatever the method, four things hold. No chunk's content is longer than the
// size asked for. Every character of the document that is no white space lies
// in some chunk. A chunk that begins inside a table, a code fence or a record
// repeats the table's header, the fence's first line or the value's name. And
// no character is cut from the marks that combine with it.
package chunk

import (
	"context"
	"fmt"

	"satchel/agent"
	"satchel/vector/document"
)

// The methods of cutting.
const (
	// Fixed fills every chunk up to its size, giving way only to a word.
	Fixed = "fixed"
	// Sentence fills chunks with whole sentences.
	Sentence = "sentence"
	// Recursive cuts at the strongest boundary in reach: a heading, else the
	// end of a paragraph, a row or line of code, a sentence, a word.
	Recursive = "recursive"
	// Markdown begins a chunk at every heading and cuts long sections like
	// Recursive. A plain text is read as Markdown for it.
	Markdown = "markdown"
	// Semantic begins a chunk where the meaning of neighbouring sentences
	// drifts apart, and cuts long stretches like Recursive.
	Semantic = "semantic"
)

// The bounds on a chunk's size, in characters, and on the number of chunks
// that one document may become.
const (
	MinSize   = 20
	MaxSize   = 20_000
	MaxChunks = 1_000_000
)

// Embed turns texts into vectors of one length, one for each text in order.
type Embed func(ctx context.Context, texts []string) ([][]float32, error)

// Config says how to cut. Sizes are in characters (Unicode code points).
type Config struct {
	Size    int // of a chunk, MinSize to MaxSize
	Overlap int // characters that a chunk repeats of the one before it, 0 to Size-1
	Method  string

	// Embed is used by Semantic alone, which cuts like Recursive without it.
	Embed Embed
}

// NewConfig fills in what a client left out: 1,000 characters, an overlap of
// 200 or a fifth of a smaller size, and Recursive. nil and "" are left out.
// Errors name the client's fields: chunk_size, overlap, method.
func NewConfig(size, overlap *int, method string) (Config, error) {
	c := Config{Size: agent.DefaultChunking.Size, Method: agent.DefaultChunking.Method}
	if size != nil {
		c.Size = *size
	}
	c.Overlap = min(agent.DefaultChunking.Overlap, max(c.Size, 0)/5)
	if overlap != nil {
		c.Overlap = *overlap
	}
	if method != "" {
		c.Method = method
	}
	return c, c.Validate()
}

// Validate checks the bounds that the fields of Config name.
func (c Config) Validate() error {
	var is agent.Issues
	is.Check(c.Size >= MinSize && c.Size <= MaxSize, "chunk_size",
		fmt.Sprintf("must be between %d and %d characters", MinSize, MaxSize))
	is.Check(c.Overlap >= 0 && c.Overlap < c.Size, "overlap", "must be at least 0 and less than chunk_size")
	_, known := rulesOf[c.Method]
	is.Check(known, "method", "must be fixed, sentence, recursive, markdown or semantic")
	return is.Err()
}

// Chunk is one piece of a document.
type Chunk struct {
	Content  string // at most Config.Size characters
	Heading  string // the headings it stands under, as "A > B"
	Page     int    // where it begins; 0 where the format has no pages
	Position int    // 0 is the first chunk
}

// Split cuts doc. Its time grows with the length of the text, and beyond the
// text itself, which chunks are mostly slices of, it needs little memory.
// Chunks hold at least a tenth of a size of new text each, whatever the
// overlap. Errors are those of Validate, of Embed, of ctx, and
// document.CodeTooComplex for more than MaxChunks.
func Split(ctx context.Context, doc *document.Document, c Config) ([]Chunk, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Method == Markdown && doc.Format == document.FormatText {
		doc = document.Markdown(doc.Text, document.Limits{})
	}
	s := newSplitter(doc, c)
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

// breaks returns the offsets that no chunk reaches over.
func (s *splitter) breaks(ctx context.Context) ([]int, error) {
	switch {
	case s.Method == Markdown:
		return s.headings(), nil
	case s.Method == Semantic && s.Embed != nil:
		return s.topics(ctx)
	}
	return nil, nil
}

// headings returns where sections begin. Headings in a row begin one together.
func (s *splitter) headings() []int {
	var at []int
	for i, b := range s.doc.Blocks {
		if i > 0 && s.beginsSection(i) {
			at = append(at, int(b.Start))
		}
	}
	return at
}
