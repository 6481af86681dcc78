package chunk

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/vector/document"
)

// level is the strength of a boundary between two chunks, strongest first.
type level uint8

const (
	atHeading  level = iota // before a heading
	atBlock                 // before a paragraph, table, fence, list or record
	atRow                   // before a line of a table, fence, list or record
	atSentence              // after a sentence
	atLine                  // at a line's end within running text
	atWord                  // before a word
	levels
)

// rule accepts the last boundary between two levels that is beyond a part of
// the window.
type rule struct {
	strongest, weakest level
	fill               float64
}

// rulesOf lists, for each method, the boundaries it looks for, in order. If
// none is found, a chunk ends between two characters.
var rulesOf = map[string][]rule{
	Fixed:     {{atHeading, atWord, 0.9}},
	Sentence:  {{atHeading, atSentence, 0}, {atLine, atWord, 0.5}},
	Recursive: recursiveRules,
	Markdown:  recursiveRules,
	Semantic:  recursiveRules,
}

var recursiveRules = []rule{
	{atHeading, atHeading, 0.33},
	{atBlock, atBlock, 0.25},
	{atRow, atRow, 0.25},
	{atSentence, atSentence, 0.33},
	{atLine, atWord, 0.5},
}

// lastBoundary returns the last boundary between the two levels in
// text[from:to], inclusive, or -1.
func (splitter *splitter) lastBoundary(strongest, weakest level, from, to int) int {
	last := -1
	splitter.boundaries(from, to, func(at int, l level) bool {
		if l >= strongest && l <= weakest {
			last = at
		}
		return true
	})
	return last
}

// firstBoundary is like lastBoundary for the first one.
func (splitter *splitter) firstBoundary(strongest, weakest level, from, to int) int {
	first := -1
	splitter.boundaries(from, to, func(at int, l level) bool {
		if l >= strongest && l <= weakest {
			first = at
		}
		return first < 0
	})
	return first
}

// boundaries calls yield with every position in text[from:to], inclusive, where
// a chunk may end or start, until it returns false.
func (splitter *splitter) boundaries(from, to int, yield func(at int, l level) bool) {
	blocks := splitter.doc.Blocks
	for i := splitter.blockAt(max(from-1, 0)); i < len(blocks) && int(blocks[i].Start) <= to; i++ {
		b := blocks[i]
		if start := int(b.Start); start >= from && (i == 0 || blocks[i-1].Kind != document.KindHeading) {
			l := atBlock
			if b.Kind == document.KindHeading {
				l = atHeading
			}
			if !yield(start, l) {
				return
			}
		}
		if !splitter.within(b, from, to, yield) {
			return
		}
	}
}

// within is boundaries for the inside of one block.
func (splitter *splitter) within(block document.Block, from, to int, yield func(at int, l level) bool) bool {
	end := min(int(block.End), to)
	// A little back, to see the white space before a word that starts at from.
	for p := max(int(block.Start), spaceBefore(splitter.text, from)); p < end; {
		c := splitter.text[p]
		if c > ' ' && c < utf8.RuneSelf {
			p++
			continue
		}
		at, next, l := splitter.classify(block, p, int(block.End))
		if l < levels && at >= from && at <= to && at < int(block.End) && !yield(at, l) {
			return false
		}
		p = next
	}
	return true
}

// classify examines the space or non-ASCII character at p. It returns the
// boundary there, its level (levels for none), and where to continue.
func (splitter *splitter) classify(b document.Block, p, end int) (at, next int, l level) {
	r, size := utf8.DecodeRuneInString(splitter.text[p:end])
	switch {
	case unicode.IsSpace(r):
		return splitter.classifySpace(b, p, end)
	case b.Kind == document.KindFence:
		return p, p + size, levels
	case isFullStop(r):
		at = skipClosers(splitter.text[:end], p+size)
		return at, at, atSentence
	case isComma(r):
		return p + size, p + size, atWord
	}
	return p, p + size, levels
}

// maxSpaceRun is how far a run of white space is followed, in bytes. A longer
// one is several boundaries.
const maxSpaceRun = 256

func (splitter *splitter) classifySpace(block document.Block, position, end int) (at, next int, level level) {
	newlines, line := 0, position
	next = position
	for next < min(end, position+maxSpaceRun) {
		r, size := utf8.DecodeRuneInString(splitter.text[next:end])
		if !unicode.IsSpace(r) {
			break
		}
		next += size
		if r == '\n' {
			newlines++
			line = next
		}
	}
	switch {
	case block.Kind == document.KindHeading || newlines == 0 && block.Kind == document.KindFence:
		return next, next, atWord
	case newlines == 0 && endsSentence(splitter.text, position, next):
		return next, next, atSentence
	case newlines == 0:
		return next, next, atWord
	case line <= int(block.Start)+splitter.headLines(block):
		return line, next, levels // repeated text alone is not a chunk
	case block.Kind != document.KindParagraph:
		return line, next, atRow
	case newlines > 1:
		return line, next, atBlock
	case endsSentence(splitter.text, position, next):
		return line, next, atSentence
	}
	return line, next, atLine
}

// spaceBefore returns the start of the white space before from, or of the
// character before from.
func spaceBefore(text string, from int) int {
	before := text[max(0, from-maxSpaceRun):from]
	if start := from - len(before) + len(strings.TrimRightFunc(before, unicode.IsSpace)); start < from {
		return start
	}
	return retreat(text, 0, from, 1)
}
