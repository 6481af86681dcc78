package document

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

// A page shows Hebrew and Arabic from right to left, whatever the order in which
// it draws them. Lines with such letters are sorted by position, and then brought
// into the order in which they are read, by the Unicode bidirectional algorithm
// (UAX #9) in reverse.

// direction is what the algorithm distinguishes of a text.
type direction uint8

const (
	neutral     direction = iota
	leftToRight           // a letter
	rightToLeft           // a letter
	digits
	digitSeparator // between two numerals
	digitSign      // beside a digits, such as a percent sign
)

// directionOf returns the direction of a text's first letter or digits, or else
// of its first character.
func directionOf(text string) direction {
	found := neutral
	for i, r := range text {
		d := directionOfRune(r)
		if d == leftToRight || d == rightToLeft || d == digits {
			return d
		}
		if i == 0 {
			found = d
		}
	}
	return found
}

func directionOfRune(r rune) direction {
	properties, _ := bidi.LookupRune(r)
	switch properties.Class() {
	case bidi.L:
		return leftToRight
	case bidi.R, bidi.AL:
		return rightToLeft
	case bidi.EN, bidi.AN:
		return digits
	case bidi.ES, bidi.CS:
		return digitSeparator
	case bidi.ET:
		return digitSign
	}
	return neutral
}

// isRightToLeft reports whether a text has a letter written from right to left.
func isRightToLeft(text string) bool {
	if len(text) == 1 { // the usual case
		return false
	}
	return directionOf(text) == rightToLeft
}

// bidiUnit is the text of a glyph, or the gap between two.
type bidiUnit struct {
	text      string
	direction direction
	reversed  bool // it is not part of a text from left to right
}

// rtlLine is a line with letters from right to left, in reading order.
type rtlLine []bidiUnit

// readingOrder returns a line's glyphs in reading order. rtl is the direction of
// most of the page.
func readingOrder(glyphs []pdfGlyph, rtl bool) rtlLine {
	units := visualUnits(glyphs)
	switch left, right := wordsOf(units); {
	case left > 2*right:
		rtl = false
	case right > 2*left:
		rtl = true
	}
	if rtl {
		return reverseUnits(units)
	}
	var out rtlLine
	for from := 0; from < len(units); {
		to := from + 1
		if units[from].direction != rightToLeft {
			out = append(out, units[from])
			from = to
			continue
		}
		for i := to; i < len(units) &&
			units[i].direction != leftToRight &&
			units[i].text != "\t"; i++ {
			if units[i].direction == rightToLeft {
				to = i + 1
			}
		}
		out = append(out, reverseUnits(units[from:to])...)
		from = to
	}
	return out
}

// wordsOf counts the words from left to right and from right to left.
func wordsOf(units []bidiUnit) (left, right int) {
	before := neutral
	for _, u := range units {
		if u.direction != before && u.direction == leftToRight {
			left++
		} else if u.direction != before && u.direction == rightToLeft {
			right++
		}
		before = u.direction
	}
	return left, right
}

// visualUnits returns a line's glyphs and the gaps between them from left to
// right. Marks are added to the letter that they are nearest to.
func visualUnits(glyphs []pdfGlyph) []bidiUnit {
	type letter struct {
		text               string
		start, end, height float64
	}
	ux, uy := baseline(glyphs[0])
	var letters, marks []letter
	for _, g := range glyphs {
		l := letter{baseLetters(g.text), g.x*ux + g.y*uy, g.toX*ux + g.toY*uy, g.height}
		if r, _ := utf8.DecodeRuneInString(l.text); unicode.Is(unicode.Mn, r) {
			marks = append(marks, l)
		} else {
			letters = append(letters, l)
		}
	}
	slices.SortStableFunc(letters, func(a, b letter) int {
		return cmp.Compare(a.start+a.end, b.start+b.end)
	})
	ends := make([]float64, len(letters)) // with the marks
	for i, l := range letters {
		ends[i] = l.end
	}
	for _, mark := range marks {
		middle := (mark.start + mark.end) / 2
		nearest, distance := -1, math.Inf(1)
		for i, l := range letters {
			if d := max(l.start-middle, middle-l.end, 0); d <= distance && directionOf(l.text) != neutral {
				nearest, distance = i, d
			}
		}
		if nearest >= 0 {
			letters[nearest].text += mark.text
			ends[nearest] = max(ends[nearest], mark.end)
		}
	}
	var units []bidiUnit
	for i, l := range letters {
		if i > 0 {
			units = append(units, bidiUnit{text: gapText(l.start-ends[i-1], max(l.height, letters[i-1].height))})
		}
		units = append(units, bidiUnit{text: l.text, direction: directionOf(l.text)})
	}
	return slices.DeleteFunc(units, func(u bidiUnit) bool { return u.text == "" })
}

// reverseUnits returns the units of a text from right to left, in which words
// and numbers from left to right keep their order.
func reverseUnits(units []bidiUnit) rtlLine {
	out := make(rtlLine, 0, len(units))
	for to := len(units); to > 0; {
		from := to - 1
		for start := spanStart(units, from); start < from; start = spanStart(units, from) {
			from = start
		}
		out = append(out, units[from:to]...)
		if to-from == 1 {
			out[len(out)-1].reversed = true
		}
		to = from
	}
	return out
}

func isSpan(u bidiUnit) bool { return u.direction == leftToRight || u.direction == digits }

// spanStart returns the start of the previous part of the span of letters from
// left to right, or of numerals, to which the unit at an index belongs; the index
// itself if there is none.
func spanStart(units []bidiUnit, at int) int {
	if at == 0 {
		return at
	}
	here, before := units[at].direction, units[at-1].direction
	switch {
	case here == digitSign && before == digits, here == digits && before == digitSign:
		return at - 1
	case !isSpan(units[at]):
		return at
	case before == here || before == leftToRight:
		return at - 1
	case here == digits &&
		before == digitSeparator &&
		at > 1 &&
		units[at-2].direction == digits:
		return at - 2
	}
	start := at - 1
	for start > 0 && mayJoin(units[start], here) {
		start--
	}
	if units[start].direction == leftToRight {
		return start
	}
	if here == leftToRight && before == digits {
		return at - 1 // as in "4K"
	}
	return at
}

// mayJoin reports whether a unit may stand between a letter from left to right and
// what follows it in the same span.
func mayJoin(u bidiUnit, following direction) bool {
	switch u.direction {
	case leftToRight, rightToLeft:
		return false
	case digits:
		return following == leftToRight
	}
	return u.text != "\t"
}

// baseline returns the direction of a glyph's baseline.
func baseline(g pdfGlyph) (ux, uy float64) {
	ux, uy = g.toX-g.x, g.toY-g.y
	length := math.Hypot(ux, uy)
	if length == 0 {
		return 1, 0
	}
	return ux / length, uy / length
}

// brackets are pairs of mirror images.
const brackets = "()[]{}<>«»‹›"

// mirrorImage returns the mirror image of a bracket, and 1 if the bracket opens or -1
// if it closes; or the text and 0 if it is none.
func mirrorImage(text string) (mirrored string, opens int) {
	list := []rune(brackets)
	i := slices.IndexFunc(list, func(r rune) bool {
		return string(r) == text
	})
	switch {
	case i < 0:
		return text, 0
	case i%2 == 0:
		return string(list[i+1]), 1
	}
	return string(list[i-1]), -1
}

// areMirrored reports whether the brackets of texts from right to left are as they
// look; some programs store those that are read.
func areMirrored(lines []rtlLine) bool {
	votes := 0
	for _, line := range lines {
		for _, u := range line {
			if _, opens := mirrorImage(u.text); u.reversed && opens != 0 {
				votes += opens
				break
			}
		}
	}
	return votes < 0
}

// text returns the text of a line. Brackets from right to left are replaced with
// their mirror images if mirror is set.
func (line rtlLine) text(mirror bool) string {
	var b strings.Builder
	for _, u := range line {
		if u.reversed && mirror {
			u.text, _ = mirrorImage(u.text)
		}
		b.WriteString(u.text)
	}
	return b.String()
}

// baseLetters replaces the forms of letters that fonts have for their places in a
// word.
func baseLetters(text string) string {
	isForm := func(r rune) bool {
		return r >= 0xFB1D && r <= 0xFDFF || r >= 0xFE70 && r <= 0xFEFC
	}
	if !strings.ContainsFunc(text, isForm) {
		return text
	}
	return strings.TrimLeft(norm.NFKC.String(text), " ") // marks are on a space
}
