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
func (s *splitter) segment(ctx context.Context, start, end int) error {
	end = start + len(strings.TrimRightFunc(s.text[start:end], unicode.IsSpace))
	s.done = start
	for start = s.skipSpace(start, end); start < end; start = s.skipSpace(start, end) {
		if err := ctx.Err(); err != nil {
			return err
		}
		head := s.headAt(start)
		cut := s.cut(start, end, s.windowEnd(head, start, end))
		s.emit(head, start, cut)
		s.done = s.afterFence(cut)
		if len(s.chunks) > s.maxChunks {
			return agent.Errorf(
				document.CodeTooComplex,
				"the text would make more than %d chunks; choose a larger chunk_size or a smaller overlap",
				s.maxChunks,
			)
		}
		if s.done >= end {
			return nil
		}
		start = s.overlapFrom(start, end)
	}
	return nil
}

// windowEnd returns how far a window from start can reach without exceeding the
// size together with its head. Inside a code fence, it leaves room to close the
// fence.
func (s *splitter) windowEnd(head string, start, end int) int {
	room := s.Size - utf8.RuneCountInString(head)
	most := advance(s.text, start, end, room)
	if most < end {
		most = advance(s.text, start, most, room-len(s.tailAt(most)))
	}
	return most
}

// cut returns the best end of the window that starts at start.
func (s *splitter) cut(start, end, most int) int {
	if most == end {
		return end
	}
	least := min(s.done+s.minNew, most)
	for _, rule := range rulesOf[s.Method] {
		from := max(least, start+int(float64(most-start)*rule.fill))
		if at := s.lastBoundary(rule.strongest, rule.weakest, from, most); at > s.done {
			return s.endBeforeTitle(at, least)
		}
	}
	if at := graphemeBefore(s.text, most); at > s.done {
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
func (s *splitter) endBeforeTitle(at, least int) int {
	blocks := s.doc.Blocks
	i := s.blockAt(at)
	if i == 0 ||
		i == len(blocks) ||
		int(blocks[i].Start) != at ||
		blocks[i].Kind != document.KindParagraph {
		return at
	}
	last := blocks[i-1]
	line := strings.TrimSpace(s.text[last.Start:last.End])
	end, _ := utf8.DecodeLastRuneInString(line)
	if last.Kind != document.KindParagraph ||
		last.Page != blocks[i].Page ||
		int(last.Start) < least ||
		len(line) > maxTitleLine ||
		strings.Contains(line, "\n") ||
		!unicode.In(end, unicode.L, unicode.N) {
		return at
	}
	return int(last.Start)
}

// emit adds a chunk for the window, unless it contains nothing new.
func (s *splitter) emit(head string, start, cut int) {
	if strings.TrimSpace(s.text[s.done:cut]) == "" {
		return
	}
	if s.spans != nil {
		s.spans(start, cut)
	}
	content := strings.TrimRightFunc(s.text[start:cut], unicode.IsSpace)
	if tail := s.tailAt(cut); head != "" || tail != "" {
		content = head + content + tail
	}
	c := Chunk{Content: content, Position: len(s.chunks)}
	if i := s.blockAt(start); i < len(s.doc.Blocks) {
		c.Page = int(s.doc.Blocks[i].Page)
		c.PageStarts = pageStarts(s.doc.Blocks[i:], start-len(head), cut)
		i = s.lastOfHeadings(i, cut)
		c.Heading = s.doc.Path(i)
		c.LaterHeadings = s.laterHeadings(i+1, cut)
	}
	if s.doc.Lined {
		c.Line = s.lines.at(s.doc, start)
		last := s.lines // a copy, since the next chunk may start before
		c.LastLine = last.at(s.doc, start+len(strings.TrimRightFunc(s.text[start:cut], unicode.IsSpace)))
	}
	s.chunks = append(s.chunks, c)
}

// lastOfHeadings returns the innermost of the consecutive headings that start
// with block i and end before cut.
func (s *splitter) lastOfHeadings(i, cut int) int {
	blocks := s.doc.Blocks
	for i+1 < len(blocks) && blocks[i].Kind == document.KindHeading &&
		int(blocks[i+1].Start) < cut && blocks[i+1].Parent == int32(i) {
		i++
	}
	return i
}

// blockAt returns the index of the block that contains offset or follows it.
func (s *splitter) blockAt(offset int) int {
	return sort.Search(len(s.doc.Blocks), func(i int) bool {
		return int(s.doc.Blocks[i].End) > offset
	})
}

// beginsSection reports whether block i is a heading, and the first of
// consecutive ones.
func (s *splitter) beginsSection(i int) bool {
	blocks := s.doc.Blocks
	return blocks[i].Kind == document.KindHeading &&
		(i == 0 || blocks[i-1].Kind != document.KindHeading)
}

// skipSpace skips white space at offset, except the indentation of the
// following line.
func (s *splitter) skipSpace(offset, end int) int {
	line := offset
	inLine := offset > 0 && s.text[offset-1] != '\n'
	for offset < end {
		r, size := utf8.DecodeRuneInString(s.text[offset:end])
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
