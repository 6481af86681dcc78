package document

import (
	"math"
	"strings"

	"github.com/ledongthuc/pdf"
)

// pdfPage interprets the operators of a page that affect text (ISO 32000-1,
// section 9), and records the position of each character.
type pdfPage struct {
	streams  *pdfStreams
	fonts    *pdfFonts
	lines    pdfLines
	plain    strings.Builder // the text without regard to positions
	drawing  map[string]bool // the forms being drawn, by the text of their objects
	limit    int             // bytes of text
	area     float64         // of the page
	picture  bool            // an image covers half of the page
	depth    int             // nesting of forms
	drawings int
	marked   int // depth of marked content
	actual   *actualText

	state pdfState
	saved []pdfState
}

// pdfResources are the named resources of a page or form. Looking up a name
// may unpack a part of the file, so fonts are cached.
type pdfResources struct {
	value pdf.Value
	fonts map[string]*pdfFont
}

func newResources(v pdf.Value) *pdfResources {
	return &pdfResources{value: v, fonts: map[string]*pdfFont{}}
}

// font returns the font with a name, or nil if it is unreadable.
func (r *pdfResources) font(name string, known *pdfFonts) *pdfFont {
	f, ok := r.fonts[name]
	if !ok {
		f = known.font(value(r.value, "Font", name))
		r.fonts[name] = f
	}
	return f
}

// pdfState is the state saved by q and restored by Q, and the two matrices of
// a text object.
type pdfState struct {
	ctm, tm, lm matrix // from the user space to the page, of the text, of its line

	font                                *pdfFont
	size, charSpace, wordSpace, leading float64
	rise, scale                         float64
}

// matrix is a, b, c, d, e, f of PDF's [a b 0; c d 0; e f 1].
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// times returns m followed by n.
func (m matrix) times(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

func (m matrix) apply(x, y float64) (float64, float64) {
	return m[0]*x + m[2]*y + m[4], m[1]*x + m[3]*y + m[5]
}

// actualText is the replacement text of marked content (ISO 32000-1, section
// 14.9.4).
type actualText struct {
	text    string
	depth   int  // of the marked content
	written bool // the text was added with the first character
}

const (
	maxSavedStates  = 256
	maxDrawingDepth = 8
	maxDrawings     = 10_000
	maxOperands     = 64
)

// read interprets a content stream.
func (p *pdfPage) read(data []byte, resources pdf.Value) error {
	p.state = pdfState{
		ctm:   identity,
		tm:    identity,
		lm:    identity,
		scale: 1,
	}
	return p.run(data, newResources(resources))
}

func (p *pdfPage) run(data []byte, resources *pdfResources) error {
	lexer := &pdfLexer{data: data}
	operands := make([]pdfToken, 0, maxOperands)
	for {
		token := lexer.next()
		switch token.kind {
		case pdfEnd:
			return nil
		case pdfWord:
			if token.text == "ID" {
				lexer.image()
			} else if err := p.do(token.text, operands, resources); err != nil {
				return err
			}
			operands = operands[:0]
			continue
		case pdfOpen:
			token.array = lexer.array()
		case pdfClose:
			continue
		}
		if len(operands) < maxOperands {
			operands = append(operands, token)
		}
	}
}

// array reads the elements of an array or dictionary, with those of nested
// arrays, up to its end.
func (l *pdfLexer) array() []pdfToken {
	var out []pdfToken
	for depth := 1; depth > 0; {
		t := l.next()
		switch t.kind {
		case pdfEnd:
			return out
		case pdfOpen:
			depth++
		case pdfClose:
			depth--
		default:
			out = append(out, t)
		}
	}
	return out
}

// do executes one operator.
func (p *pdfPage) do(op string, operands []pdfToken, resources *pdfResources) error {
	switch op {
	case "q":
		if len(p.saved) < maxSavedStates {
			p.saved = append(p.saved, p.state)
		}
	case "Q":
		if last := len(p.saved) - 1; last >= 0 {
			p.state, p.saved = p.saved[last], p.saved[:last]
		}
	case "Tf":
		p.state.size = number(operands, 1)
		if len(operands) > 0 {
			p.state.font = resources.font(operands[0].text, p.fonts)
		}
	case "Tj", "TJ", "'", "\"":
		return p.showAny(op, operands)
	case "Do":
		if len(operands) > 0 {
			return p.draw(value(resources.value, "XObject", operands[0].text), resources)
		}
	case "BMC", "BDC":
		p.marked++
		if p.actual == nil && len(operands) > 0 {
			p.actual = findActualText(operands[len(operands)-1].array, p.marked)
		}
	case "EMC":
		if p.actual != nil && p.actual.depth == p.marked {
			p.actual = nil
		}
		p.marked = max(p.marked-1, 0)
	default:
		if op == "BT" || op == "T*" {
			p.plain.WriteByte('\n')
		}
		p.state.set(op, operands)
	}
	return nil
}

// poorShare is the share of known words below which the gaps in a text may be
// misleading; in any common language it is over a quarter.
const poorShare = 0.15

// text returns the page's text; without regard to positions if that has more known
// words and the other is poor.
func (p *pdfPage) text() string {
	text := p.lines.text()
	known, all := knownWords(text)
	if float64(known) > poorShare*float64(all) {
		return text
	}
	plain := p.plain.String()
	if more, _ := knownWords(plain); more > known {
		return plain
	}
	return text
}

// number returns an operand, or 0 if it is missing.
func number(operands []pdfToken, i int) float64 {
	if i < len(operands) {
		return operands[i].number
	}
	return 0
}

// set executes the operators that only change the state.
func (s *pdfState) set(op string, operands []pdfToken) {
	n := func(i int) float64 { return number(operands, i) }
	switch op {
	case "cm":
		s.ctm = matrix{n(0), n(1), n(2), n(3), n(4), n(5)}.times(s.ctm)
	case "BT":
		s.tm, s.lm = identity, identity
	case "Tc":
		s.charSpace = n(0)
	case "Tw":
		s.wordSpace = n(0)
	case "Tz":
		s.scale = n(0) / 100
	case "TL":
		s.leading = n(0)
	case "Ts":
		s.rise = n(0)
	case "Td":
		s.move(n(0), n(1))
	case "TD":
		s.leading = -n(1)
		s.move(n(0), n(1))
	case "Tm":
		s.lm = matrix{n(0), n(1), n(2), n(3), n(4), n(5)}
		s.tm = s.lm
	case "T*":
		s.move(0, -s.leading)
	}
}

// findActualText looks for ActualText in the properties of marked content.
func findActualText(properties []pdfToken, depth int) *actualText {
	for i := 0; i+1 < len(properties); i++ {
		if properties[i].kind == pdfName && properties[i].text == "ActualText" && properties[i+1].kind == pdfString {
			return &actualText{text: pdfText(properties[i+1].text), depth: depth}
		}
	}
	return nil
}

// pdfText decodes a text string: UTF-16 or UTF-8 with a byte order mark, or
// else roughly Latin-1.
func pdfText(s string) string {
	if text, ok := strings.CutPrefix(s, "\xFE\xFF"); ok {
		return decodeUTF16(text)
	}
	if text, ok := strings.CutPrefix(s, "\xEF\xBB\xBF"); ok {
		return text
	}
	return latinText(s)
}

// move starts a line at an offset from the start of the last one.
func (s *pdfState) move(x, y float64) {
	s.lm = matrix{1, 0, 0, 1, x, y}.times(s.lm)
	s.tm = s.lm
}

// showAny executes the four operators that show text.
func (p *pdfPage) showAny(op string, operands []pdfToken) error {
	state := &p.state
	if op == "\"" && len(operands) > 2 {
		state.wordSpace, state.charSpace = operands[0].number, operands[1].number
	}
	if op == "'" || op == "\"" {
		state.move(0, -state.leading)
	}
	if len(operands) == 0 {
		return nil
	}
	last := operands[len(operands)-1]
	if op != "TJ" {
		return p.show(last.text)
	}
	for _, element := range last.array {
		if element.kind == pdfNumber {
			state.advance(-element.number / 1000 * state.size * state.scale)
		} else if err := p.show(element.text); err != nil {
			return err
		}
	}
	return nil
}

func (s *pdfState) advance(x float64) {
	s.tm = matrix{1, 0, 0, 1, x, 0}.times(s.tm)
}

// show adds the characters of a string at their positions.
func (p *pdfPage) show(raw string) error {
	state := &p.state
	if state.font == nil {
		return nil
	}
	for raw != "" {
		char := state.font.next(raw)
		raw = raw[char.length:]
		width := char.width * state.size * state.scale
		follows := false
		if a := p.actual; a != nil {
			follows, char.text = a.written, a.text
			a.written = true
		}
		if p.limit -= len(char.text); p.limit < 0 {
			return tooComplex("a page of the file holds too much text")
		}
		at := state.tm.times(state.ctm)
		x, y := at.apply(0, state.rise)
		toX, toY := at.apply(width, state.rise)
		upX, upY := at.apply(0, state.rise+state.size)
		if !follows {
			p.plain.WriteString(char.text)
		}
		p.lines.add(pdfGlyph{
			text:    char.text,
			x:       x,
			y:       y,
			toX:     toX,
			toY:     toY,
			height:  math.Hypot(upX-x, upY-y),
			follows: follows,
		})
		step := width + state.charSpace*state.scale
		if char.space {
			step += state.wordSpace * state.scale
		}
		state.advance(step)
	}
	return nil
}

// draw draws a form, or records an image, which fills the unit square.
func (p *pdfPage) draw(object pdf.Value, resources *pdfResources) error {
	switch value(object, "Subtype").Name() {
	case "Image":
		m := p.state.ctm
		p.picture = p.picture || math.Abs(m[0]*m[3]-m[1]*m[2]) > p.area/2
	case "Form":
		p.drawings++
		text := object.String()
		if p.depth >= maxDrawingDepth ||
			p.drawings > maxDrawings ||
			p.drawing[text] ||
			p.streams.remaining <= 0 {
			return nil
		}
		if p.drawing == nil {
			p.drawing = map[string]bool{}
		}
		p.drawing[text] = true
		defer delete(p.drawing, text)
		if own := value(object, "Resources"); own.Kind() == pdf.Dict {
			resources = newResources(own)
		}
		state, saved := p.state, p.saved
		if m := value(object, "Matrix"); m.Kind() == pdf.Array && m.Len() == 6 {
			var form matrix
			for i := range form {
				form[i] = index(m, i).Float64()
			}
			p.state.ctm = form.times(p.state.ctm)
		}
		p.saved = nil
		p.depth++
		err := p.run(p.streams.unpack(object), resources)
		p.depth--
		p.state, p.saved = state, saved
		return err
	}
	return nil
}
