package chunk

import (
	"strings"
	"unicode/utf8"

	"satchel/vector/document"
)

// headAt returns what a chunk that starts at start must repeat to be
// understandable: the header of the table, the first line of the code fence or
// the name of the value that contains start. A head that would fill more than
// half of a chunk is omitted.
func (splitter *splitter) headAt(start int) string {
	block, ok := splitter.enclosingBlock(start)
	if !ok {
		return ""
	}
	text := splitter.text[block.Start:block.End]
	offset := start - int(block.Start)
	head := ""
	if block.Kind == document.KindRow {
		var line int
		line, head = splitter.row.at(splitter, int(block.Start), start)
		offset = start - line
	} else {
		head = text[:splitter.headLines(block)]
	}
	if offset < len(head) || utf8.RuneCountInString(head) > splitter.Size/2 {
		return ""
	}
	return head
}

// tailAt returns what a chunk that ends at cut must end with: the closing line
// of the code fence that contains cut. It is ASCII.
func (splitter *splitter) tailAt(cut int) string {
	b, ok := splitter.enclosingBlock(cut)
	if !ok || b.Kind != document.KindFence {
		return ""
	}
	opener := splitter.text[b.Start:][:splitter.headLines(b)]
	marker := document.FenceMarker(opener)
	if marker == "" || cut-int(b.Start) < len(opener) || len(marker) >= splitter.Size/4 {
		return ""
	}
	return "\n" + marker
}

// afterFence returns the end of the code fence that contains cut if only its
// last line is left, with which the chunk before cut already ends; otherwise
// cut.
func (splitter *splitter) afterFence(cut int) int {
	tail := splitter.tailAt(cut)
	if tail == "" {
		return cut
	}
	b, _ := splitter.enclosingBlock(cut)
	rest := splitter.text[cut:b.End]
	if len(rest) < 4*splitter.Size && strings.TrimLeft(strings.TrimSpace(rest), tail[1:2]) == "" {
		return int(b.End)
	}
	return cut
}

// enclosingBlock returns the block that contains offset, unless the block starts there.
func (splitter *splitter) enclosingBlock(offset int) (document.Block, bool) {
	i := splitter.blockAt(offset)
	if i >= len(splitter.doc.Blocks) || int(splitter.doc.Blocks[i].Start) >= offset {
		return document.Block{}, false
	}
	return splitter.doc.Blocks[i], true
}

// headLines returns the length of what chunks repeat of a table or a fence.
func (splitter *splitter) headLines(b document.Block) int {
	switch b.Kind {
	case document.KindTable:
		return len(splitter.firstLines(splitter.text[b.Start:b.End], 2))
	case document.KindFence:
		return len(splitter.firstLines(splitter.text[b.Start:b.End], 1))
	}
	return 0
}

// firstLines returns the first n lines of text with their line ends, or "" if
// they are longer than a chunk.
func (splitter *splitter) firstLines(text string, n int) string {
	within := text[:min(len(text), utf8.UTFMax*splitter.Size)]
	end := 0
	for range n {
		i := strings.IndexByte(within[end:], '\n')
		if i < 0 {
			return ""
		}
		end += i + 1
	}
	return text[:end]
}

// rowLine remembers the start of the record line in which the last chunk
// started, so that the name of a value of many megabytes is not searched again
// for each of its chunks. Chunks only ever start further on.
type rowLine struct {
	start, seen int
}

// at returns the offset of the line that contains offset, and the "name: " with
// which the line starts. The record starts at block.
func (r *rowLine) at(s *splitter, block, offset int) (line int, name string) {
	if r.start < block || r.seen > offset {
		r.start, r.seen = block, block
	}
	if i := strings.LastIndexByte(s.text[r.seen:offset], '\n'); i >= 0 {
		r.start = r.seen + i + 1
	}
	r.seen = offset
	rest := s.text[r.start:min(len(s.text), r.start+utf8.UTFMax*s.Size)]
	first, _, _ := strings.Cut(rest, "\n")
	if i := strings.Index(first, ": "); i >= 0 {
		return r.start, rest[:i+2]
	}
	return r.start, ""
}
