package chunk

import (
	"context"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/agent"
	"satchel/vector/document"
)

// splitter walks through a text once, from chunk to chunk. Every chunk is a
// window on the text: it starts at the last chunk's end or, with an overlap,
// before it, and ends at the best boundary that its size allows.
type splitter struct {
	Config
	doc       *document.Document
	text      string
	minNew    int // characters of new text in a chunk
	maxChunks int // maximum number of chunks
	done      int // all text before this offset is in chunks
	row       rowLine
	lines     lineCount
	chunks    []Chunk
	spans     func(start, end int) // called with each window, for tests
}

func newSplitter(doc *document.Document, c Config) *splitter {
	return &splitter{
		Config:    c,
		doc:       doc,
		text:      doc.Text,
		minNew:    max(c.Size/10, 1),
		maxChunks: MaxChunks,
	}
}

// segment splits text[start:end]. Neither chunks nor overlaps reach beyond it.
func (splitter *splitter) segment(ctx context.Context, start, end int) error {
	end = start + len(strings.TrimRightFunc(splitter.text[start:end], unicode.IsSpace))
	splitter.done = start
	for start = splitter.skipSpace(start, end); start < end; start = splitter.skipSpace(start, end) {
		if err := ctx.Err(); err != nil {
			return err
		}
		head := splitter.headAt(start)
		cut := splitter.cut(start, end, splitter.windowEnd(head, start, end))
		splitter.emit(head, start, cut)
		splitter.done = splitter.afterFence(cut)
		if len(splitter.chunks) > splitter.maxChunks {
			return agent.Errorf(
				document.CodeTooComplex,
				"the text would make more than %d chunks; choose a larger chunk_size or a smaller overlap",
				splitter.maxChunks,
			)
		}
		if splitter.done >= end {
			return nil
		}
		start = splitter.overlapFrom(start, end)
	}
	return nil
}

// windowEnd returns how far a window from start can reach without exceeding the
// size together with its head. Inside a code fence, it leaves room to close the
// fence.
func (splitter *splitter) windowEnd(head string, start, end int) int {
	room := splitter.Size - utf8.RuneCountInString(head)
	most := advance(splitter.text, start, end, room)
	if most < end {
		most = advance(splitter.text, start, most, room-len(splitter.tailAt(most)))
	}
	return most
}

// cut returns the best end of the window that starts at start.
func (splitter *splitter) cut(start, end, most int) int {
	if most == end {
		return end
	}
	least := min(splitter.done+splitter.minNew, most)
	for _, rule := range rulesOf[splitter.Method] {
		from := max(least, start+int(float64(most-start)*rule.fill))
		if at := splitter.lastBoundary(rule.strongest, rule.weakest, from, most); at > splitter.done {
			return splitter.endBeforeTitle(at, least)
		}
	}
	if at := graphemeBefore(splitter.text, most); at > splitter.done {
		return at
	}
	return most
}

// maxTitleLine is the longest line that endBeforeTitle takes for a title, in bytes.
const maxTitleLine = 80

// endBeforeTitle returns where to end a chunk instead of at an offset. If the chunk would
// end with a short line by itself that does not end a sentence, it ends before that
// line, but not before least: in text without headings, such as that of a PDF, the line
// is likely a heading and belongs to what follows.
func (splitter *splitter) endBeforeTitle(at, least int) int {
	blocks := splitter.doc.Blocks
	index := splitter.blockAt(at)
	if index == 0 ||
		index == len(blocks) ||
		int(blocks[index].Start) != at ||
		blocks[index].Kind != document.KindParagraph {
		return at
	}
	last := blocks[index-1]
	line := strings.TrimSpace(splitter.text[last.Start:last.End])
	end, _ := utf8.DecodeLastRuneInString(line)
	if last.Kind != document.KindParagraph ||
		last.Page != blocks[index].Page ||
		int(last.Start) < least ||
		len(line) > maxTitleLine ||
		strings.Contains(line, "\n") ||
		!unicode.In(end, unicode.L, unicode.N) {
		return at
	}
	return int(last.Start)
}

// emit adds a chunk for the window, unless it contains nothing new.
func (splitter *splitter) emit(head string, start, cut int) {
	if strings.TrimSpace(splitter.text[splitter.done:cut]) == "" {
		return
	}
	if splitter.spans != nil {
		splitter.spans(start, cut)
	}
	content := strings.TrimRightFunc(splitter.text[start:cut], unicode.IsSpace)
	if tail := splitter.tailAt(cut); head != "" || tail != "" {
		content = head + content + tail
	}
	c := Chunk{Content: content, Position: len(splitter.chunks)}
	if i := splitter.blockAt(start); i < len(splitter.doc.Blocks) {
		c.Page = int(splitter.doc.Blocks[i].Page)
		c.PageStarts = pageStarts(splitter.doc.Blocks[i:], start-len(head), cut)
		i = splitter.lastOfHeadings(i, cut)
		c.Heading = splitter.doc.Path(i)
		c.LaterHeadings = splitter.laterHeadings(i+1, cut)
	}
	if splitter.doc.Lined {
		c.Line = splitter.lines.at(splitter.doc, start)
		last := splitter.lines // a copy, since the next chunk may start before
		c.LastLine = last.at(splitter.doc, start+len(strings.TrimRightFunc(splitter.text[start:cut], unicode.IsSpace)))
	}
	splitter.chunks = append(splitter.chunks, c)
}

// lastOfHeadings returns the innermost of the consecutive headings that start
// with block i and end before cut.
func (splitter *splitter) lastOfHeadings(i, cut int) int {
	blocks := splitter.doc.Blocks
	for i+1 < len(blocks) && blocks[i].Kind == document.KindHeading &&
		int(blocks[i+1].Start) < cut && blocks[i+1].Parent == int32(i) {
		i++
	}
	return i
}

// blockAt returns the index of the block that contains offset or follows it.
func (splitter *splitter) blockAt(offset int) int {
	return sort.Search(len(splitter.doc.Blocks), func(i int) bool {
		return int(splitter.doc.Blocks[i].End) > offset
	})
}

// beginsSection reports whether block i is a heading, and the first of
// consecutive ones.
func (splitter *splitter) beginsSection(i int) bool {
	blocks := splitter.doc.Blocks
	return blocks[i].Kind == document.KindHeading &&
		(i == 0 || blocks[i-1].Kind != document.KindHeading)
}

// skipSpace skips white space at offset, except the indentation of the
// following line.
func (splitter *splitter) skipSpace(offset, end int) int {
	line := offset
	inLine := offset > 0 && splitter.text[offset-1] != '\n'
	for offset < end {
		r, size := utf8.DecodeRuneInString(splitter.text[offset:end])
		if !unicode.IsSpace(r) {
			break
		}
		offset += size
		if r == '\n' {
			line, inLine = offset, false
		}
	}
	if inLine {
		return offset
	}
	return min(line, end)
}

// advance returns the offset n characters after start, at most end.
func advance(text string, start, end, n int) int {
	if end-start <= n {
		return end
	}
	for ; n > 0 && start < end; n-- {
		if text[start] < utf8.RuneSelf {
			start++
			continue
		}
		_, size := utf8.DecodeRuneInString(text[start:end])
		start += size
	}
	return start
}

// retreat returns the offset n characters before end, at least start.
func retreat(text string, start, end, n int) int {
	for ; n > 0 && end > start; n-- {
		if text[end-1] < utf8.RuneSelf {
			end--
			continue
		}
		_, size := utf8.DecodeLastRuneInString(text[start:end])
		end -= size
	}
	return end
}
