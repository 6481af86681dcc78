package document

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/agent"
)

// outline collects the blocks of a text in reading order.
type outline struct {
	text   string
	max    int
	page   int32
	blocks []Block
	open   []int32 // the headings above the next block
}

func newOutline(text string, limits Limits) *outline {
	return &outline{text: text, max: limits.Blocks}
}

// add adds text[start:end] as a block, without surrounding white space but
// with the indentation of its first line. White space alone is not a block.
func (o *outline) add(kind Kind, level, start, end int) {
	end = start + len(strings.TrimRightFunc(o.text[start:end], unicode.IsSpace))
	start = skipBlankLines(o.text, start, end)
	if start >= end {
		return
	}
	if len(o.blocks) >= o.max {
		last := &o.blocks[len(o.blocks)-1]
		last.Kind, last.Level, last.End = KindParagraph, 0, uint32(end)
		return
	}
	if kind == KindHeading {
		o.closeTo(level)
	}
	parent := int32(-1)
	if n := len(o.open); n > 0 {
		parent = o.open[n-1]
	}
	o.blocks = append(o.blocks, Block{
		Kind:   kind,
		Level:  uint8(level),
		Page:   o.page,
		Parent: parent,
		Start:  uint32(start),
		End:    uint32(end),
	})
	if kind == KindHeading {
		o.open = append(o.open, int32(len(o.blocks)-1))
	}
}

// closeTo closes the headings that a heading of this level ends.
func (o *outline) closeTo(level int) {
	for n := len(o.open); n > 0 && int(o.blocks[o.open[n-1]].Level) >= level; n-- {
		o.open = o.open[:n-1]
	}
}

// title returns the heading of the highest level; "" if several have it, since none of
// them is about the others' text.
func (o *outline) title() string {
	best, several := -1, false
	for i, b := range o.blocks {
		if b.Kind == KindHeading && (best < 0 || b.Level <= o.blocks[best].Level) {
			several = best >= 0 && b.Level == o.blocks[best].Level
			best = i
		}
	}
	if best < 0 || several {
		return ""
	}
	b := o.blocks[best]
	return clipTitle(HeadingText(o.text[b.Start:b.End]))
}

// skipBlankLines returns the start of the first line in text[start:end] that
// is not blank.
func skipBlankLines(text string, start, end int) int {
	line := start
	for i := start; i < end; {
		r, size := utf8.DecodeRuneInString(text[i:end])
		if !unicode.IsSpace(r) {
			return line
		}
		i += size
		if r == '\n' {
			line = i
		}
	}
	return end
}

// clipTitle returns an untrusted text as a title: one line of limited length.
func clipTitle(s string) string {
	if len(s) > 4*maxTitle+64 {
		s = strings.ToValidUTF8(s[:4*maxTitle+64], "")
	}
	return agent.Clip(strings.Join(strings.Fields(s), " "), maxTitle)
}
