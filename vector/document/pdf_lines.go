package document

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/agent"
)

// pdfGlyph is a character on a page: from x, y to the start of the next.
type pdfGlyph struct {
	text           string
	x, y, toX, toY float64
	height         float64
	follows        bool // its text was added with the previous character
}

// pdfLines joins the characters of a page into lines, in the order in which
// the page draws them. That is nearly always the reading order, columns
// included, which positions alone do not show.
type pdfLines struct {
	lines []pdfLine
	last  pdfGlyph
	line  []pdfGlyph // the last glyphs of the line
	words [2]int     // with letters from left to right, and from right to left
}

type pdfLine struct {
	text   strings.Builder
	glyphs []pdfGlyph // of a line with letters from right to left
	height float64
	gap    float64 // to the previous line; negative if upwards, as to a new column
}

// Distances, in font sizes.
const (
	sameLine  = 0.6 // how far a character may be off the baseline
	wordGap   = 0.16
	columnGap = 3
	backspace = 2 // how far a character may be moved back
)

// add adds the next character.
func (p *pdfLines) add(glyph pdfGlyph) {
	if glyph.follows {
		p.extend(glyph)
		return
	}
	if glyph.text == "" || glyph.height == 0 {
		return
	}
	if len(p.lines) == 0 {
		p.begin(glyph, 0)
		return
	}
	last := p.last
	height := max(glyph.height, last.height)
	along, across := offset(last, glyph)
	switch {
	case along < 0 && p.isDrawn(glyph):
		return // drawn again to look bold
	case math.Abs(across) > sameLine*height || along < -backspace*height && !p.isRightToLeft(glyph):
		p.begin(glyph, across)
		return
	}
	p.write(gapText(along, height))
	p.write(glyph.text)
	line := &p.lines[len(p.lines)-1]
	line.height = max(line.height, glyph.height)
	p.keep(glyph)
}

// extend moves the end of the last character to that of one that is part of it.
func (p *pdfLines) extend(g pdfGlyph) {
	p.last.toX, p.last.toY = g.toX, g.toY
	if len(p.lines) == 0 {
		return
	}
	if glyphs := p.lines[len(p.lines)-1].glyphs; len(glyphs) > 0 {
		glyphs[len(glyphs)-1].toX, glyphs[len(glyphs)-1].toY = g.toX, g.toY
	}
}

// gapText returns the text of a gap between two characters.
func gapText(gap, height float64) string {
	switch {
	case gap > columnGap*height:
		return "\t"
	case gap > wordGap*height:
		return " "
	}
	return ""
}

// isRightToLeft reports whether the line, with the next character, has letters from
// right to left.
func (p *pdfLines) isRightToLeft(next pdfGlyph) bool {
	return p.lines[len(p.lines)-1].glyphs != nil || isRightToLeft(next.text)
}

// maxRemembered is the number of a line's characters that are kept. Longer lines
// are left in the order in which they are drawn.
const maxRemembered = 512

// keep keeps the last character.
func (p *pdfLines) keep(glyph pdfGlyph) {
	line := &p.lines[len(p.lines)-1]
	direction := directionOf(glyph.text)
	if starts := len(p.line) == 0 || directionOf(p.last.text) != direction; starts && direction == leftToRight {
		p.words[0]++
	} else if starts && direction == rightToLeft {
		p.words[1]++
	}
	p.last = glyph
	switch {
	case line.glyphs != nil:
		line.glyphs = append(line.glyphs, glyph)
	case direction == rightToLeft && len(p.line) < maxRemembered:
		line.glyphs = append(slices.Clone(p.line), glyph)
	}
	if len(p.line) == maxRemembered {
		p.line = p.line[:copy(p.line, p.line[maxRemembered/2:])]
	}
	p.line = append(p.line, glyph)
}

// isDrawn reports whether the line already has the same character at the same
// place.
func (p *pdfLines) isDrawn(g pdfGlyph) bool {
	for _, other := range p.line {
		if other.text == g.text && math.Hypot(g.x-other.x, g.y-other.y) < 0.1*g.height {
			return true
		}
	}
	return false
}

// offset returns the distance of a glyph from the end of the previous one,
// along the baseline and across it (downwards is positive).
func offset(last, g pdfGlyph) (along, across float64) {
	ux, uy := baseline(g)
	dx, dy := g.x-last.toX, g.y-last.toY
	return dx*ux + dy*uy, dx*uy - dy*ux
}

func (p *pdfLines) begin(g pdfGlyph, gap float64) {
	p.lines = append(p.lines, pdfLine{height: g.height, gap: gap})
	p.line = p.line[:0]
	p.keep(g)
	p.write(g.text)
}

func (p *pdfLines) write(text string) {
	p.lines[len(p.lines)-1].text.WriteString(text)
}

// text returns the page's text. A line that is further apart than most or of
// another size starts a paragraph; words hyphenated at the end of a line are
// joined.
func (p *pdfLines) text() string {
	usual := p.usualGap()
	texts := p.texts()
	var out []byte
	var before *pdfLine
	tail := ""
	for index := range p.lines {
		line := &p.lines[index]
		text := cleanLine(texts[index])
		if text == "" {
			continue
		}
		switch {
		case before == nil:
		case endsHyphenated(tail, text):
			out = out[:len(out)-len("-")]
		case areApart(before, line, usual):
			out = append(out, "\n\n"...)
		default:
			out = append(out, '\n')
		}
		out = append(out, text...)
		before, tail = line, text
	}
	return string(out)
}

// texts returns the texts of all lines.
func (p *pdfLines) texts() []string {
	texts := make([]string, len(p.lines))
	var ordered []rtlLine
	for i := range p.lines {
		texts[i] = p.lines[i].text.String()
		if p.lines[i].glyphs != nil {
			ordered = append(ordered, readingOrder(p.lines[i].glyphs, p.words[1] >= p.words[0]))
		}
	}
	mirror := areMirrored(ordered)
	for i := range p.lines {
		if p.lines[i].glyphs != nil {
			texts[i], ordered = ordered[0].text(mirror), ordered[1:]
		}
	}
	return texts
}

// usualGap is the median distance between lines.
func (p *pdfLines) usualGap() float64 {
	var gaps []float64
	for i := range p.lines {
		if gap := p.lines[i].gap; gap > 0 {
			gaps = append(gaps, gap)
		}
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

func areApart(before, line *pdfLine, usual float64) bool {
	return line.gap < 0 || line.gap > 1.35*usual || line.gap > 3*line.height ||
		math.Abs(line.height-before.height) > 0.15*before.height
}

// endsHyphenated reports whether a line ends in a hyphenated word.
func endsHyphenated(line, next string) bool {
	body, ok := strings.CutSuffix(line, "-")
	if !ok {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(body)
	first, _ := utf8.DecodeRuneInString(next)
	return unicode.IsLower(last) && unicode.IsLower(first)
}

// leaders are the dots before a page number.
var leaders = agent.Pattern(`(?:[.:·…]\s?){5,}`)

// cleanLine replaces ligatures and removes double spaces and leaders.
func cleanLine(line string) string {
	line = leaders().ReplaceAllString(ligatures.Replace(line), " … ")
	columns := strings.Split(line, "\t")
	kept := columns[:0]
	for _, column := range columns {
		if text := strings.Join(strings.Fields(column), " "); text != "" {
			kept = append(kept, text)
		}
	}
	return strings.Join(kept, "\t")
}

var ligatures = strings.NewReplacer(
	"\uFB00", "ff", "\uFB01", "fi", "\uFB02", "fl", "\uFB03", "ffi",
	"\uFB04", "ffl", "\uFB05", "st", "\uFB06", "st", "\u00AD", "-", "\u00A0", " ",
)
