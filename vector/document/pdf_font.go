package document

import (
	"strings"
	"unicode/utf8"

	"github.com/ledongthuc/pdf"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
)

// pdfFont has the texts and widths of the codes in a string. It is read once,
// as package pdf reads a font's dictionary for each character.
type pdfFont struct {
	composite bool        // codes of several bytes
	table     [256]string // of a simple font
	unicode   *pdfCMap    // the font's own mapping, or nil; takes precedence
	multibyte *multibyte  // of a composite font with a named encoding
	widths    map[int]float64
	width     float64 // of codes without a width in widths, in font sizes
}

// pdfChar is one character of a string.
type pdfChar struct {
	length int // bytes of the string
	text   string
	width  float64
	space  bool // the one-byte code 32, which word spacing widens
}

// next reads the first character of raw.
func (f *pdfFont) next(raw string) pdfChar {
	if !f.composite {
		code := raw[0]
		c := pdfChar{
			length: 1,
			text:   f.table[code],
			width:  f.widthOf(int(code)),
			space:  code == ' ',
		}
		if text, ok := f.unicode.lookup(raw[:1]); ok {
			c.text = text
		}
		return c
	}
	length := min(2, len(raw))
	if f.multibyte != nil {
		length = f.multibyte.length(raw)
	} else if f.unicode != nil {
		length = f.unicode.length(raw)
	}
	code := 0
	for _, b := range []byte(raw[:length]) {
		code = code<<8 | int(b)
	}
	c := pdfChar{
		length: length,
		width:  f.widthOf(code),
		space:  length == 1 && raw[0] == ' ',
	}
	if text, ok := f.unicode.lookup(raw[:length]); ok {
		c.text = text
	} else if f.multibyte != nil {
		c.text = f.multibyte.decode(raw[:length])
	}
	return c
}

func (f *pdfFont) widthOf(code int) float64 {
	if w, ok := f.widths[code]; ok {
		return w
	}
	return f.width
}

// pdfFonts are the fonts of a file that were read.
type pdfFonts struct {
	streams *pdfStreams
	known   map[string]*pdfFont // by the text of their dictionaries
	glyphs  pdfGlyphNames
}

func newPDFFonts(streams *pdfStreams) *pdfFonts {
	return &pdfFonts{
		streams: streams,
		known:   map[string]*pdfFont{},
		glyphs:  pdfGlyphNames{},
	}
}

// font returns the font of a dictionary.
func (fs *pdfFonts) font(v pdf.Value) *pdfFont {
	if v.Kind() != pdf.Dict {
		return nil
	}
	key := v.String()
	f, ok := fs.known[key]
	if !ok {
		f = fs.read(v)
		fs.known[key] = f
	}
	return f
}

// read reads a font, and returns nil if it is unreadable.
func (fs *pdfFonts) read(value pdf.Value) (font *pdfFont) {
	defer func() {
		if recover() != nil {
			font = nil
		}
	}()
	font = &pdfFont{widths: map[int]float64{}}
	if cmap := value.Key("ToUnicode"); cmap.Kind() == pdf.Stream {
		font.unicode = readCMap(fs.streams.unpack(cmap))
	}
	if value.Key("Subtype").Name() == "Type0" {
		font.composite = true
		font.multibyte = multibytes[strings.TrimSuffix(strings.TrimSuffix(value.Key("Encoding").Name(), "-V"), "-H")]
		font.readCIDWidths(index(value.Key("DescendantFonts"), 0))
		return font
	}
	font.readTable(value, fs.glyphs)
	font.readWidths(value)
	return font
}

// readTable reads the text of each code. Package pdf has the tables of named
// encodings. It returns unknown codes unchanged, which are better read as
// windows-1252.
func (f *pdfFont) readTable(value pdf.Value, glyphs pdfGlyphNames) {
	encoding := value.Key("Encoding")
	base := encoding.Key("BaseEncoding").Name()
	var known pdf.TextEncoding
	if font := (pdf.Font{V: value}); encoding.Kind() != pdf.Dict && value.Key("ToUnicode").Kind() != pdf.Stream {
		known = font.Encoder()
	}
	for code := range 256 {
		text := ""
		if known != nil {
			text = known.Decode(string([]byte{byte(code)}))
		} else if base == "MacRomanEncoding" {
			text = string(charmap.Macintosh.DecodeByte(byte(code)))
		}
		f.table[code] = betterText(byte(code), text)
	}
	differences := encoding.Key("Differences")
	code := 0
	for i := range differences.Len() {
		switch d := differences.Index(i); d.Kind() {
		case pdf.Integer:
			code = int(d.Int64())
		case pdf.Name:
			if code >= 0 && code < 256 {
				if text := glyphs.text(d.Name()); text != "" {
					f.table[code] = text
				}
			}
			code++
		}
	}
}

// betterText corrects package pdf's text of a code where it is unknown or
// unchanged.
func betterText(code byte, text string) string {
	r, size := utf8.DecodeRuneInString(text)
	unknown := r == utf8.RuneError || rune(code) == r && size == len(text)
	switch {
	case !unknown:
		return text
	case code >= 0x0B && code <= 0x0F: // as in TeX's fonts
		return [...]string{"ff", "fi", "fl", "ffi", "ffl"}[code-0x0B]
	case code < ' ':
		return ""
	}
	return strings.Trim(string(charmap.Windows1252.DecodeByte(code)), "\uFFFD")
}

// latinText decodes a string of one-byte codes as windows-1252.
func latinText(s string) string {
	text, _ := charmap.Windows1252.NewDecoder().String(s)
	return text
}

// readWidths reads the widths of a simple font.
func (f *pdfFont) readWidths(value pdf.Value) {
	unit := 0.001
	if m := value.Key("FontMatrix"); value.Key("Subtype").Name() == "Type3" && m.Len() == 6 {
		unit = m.Index(0).Float64()
	}
	f.width = value.Key("FontDescriptor").Key("MissingWidth").Float64() * unit
	first := int(value.Key("FirstChar").Int64())
	widths := value.Key("Widths")
	for i := range min(widths.Len(), 256) {
		f.widths[first+i] = widths.Index(i).Float64() * unit
	}
	if len(f.widths) == 0 && f.width == 0 { // one of the standard fonts
		f.width = 0.5
		if strings.Contains(value.Key("BaseFont").Name(), "Courier") {
			f.width = 0.6
		}
	}
}

// maxWidths limits the widths kept of one font.
const maxWidths = 1 << 17

// readCIDWidths reads the widths of a composite font: an array of "first
// [width …]" and "first last width".
func (f *pdfFont) readCIDWidths(value pdf.Value) {
	f.width = 1
	if dw := value.Key("DW"); dw.Kind() == pdf.Integer || dw.Kind() == pdf.Real {
		f.width = dw.Float64() / 1000
	}
	w := value.Key("W")
	for index, steps := 0, 0; index+1 < w.Len() && steps < maxWidths; steps++ {
		first := int(w.Index(index).Int64())
		next := w.Index(index + 1)
		if next.Kind() == pdf.Array {
			for j := range min(next.Len(), maxWidths-steps) {
				f.widths[first+j] = next.Index(j).Float64() / 1000
			}
			steps += next.Len()
			index += 2
			continue
		}
		width := w.Index(index+2).Float64() / 1000
		for code := first; code <= min(int(next.Int64()), first+0xFFFF) && steps < maxWidths; code++ {
			f.widths[code] = width
			steps++
		}
		index += 3
	}
}

// multibyte is a named encoding of East Asian text.
type multibyte struct {
	encoding encoding.Encoding
	single   func(first byte) bool // whether a byte is a whole character; nil if none is
}

// multibytes are the encodings by the names of their CMaps without -H or -V.
var multibytes = func() map[string]*multibyte {
	ascii := func(b byte) bool { return b < 0x80 }
	sjis := &multibyte{japanese.ShiftJIS, func(b byte) bool { return b < 0x80 || b >= 0xA0 && b < 0xE0 }}
	gbk := &multibyte{simplifiedchinese.GBK, ascii}
	big5 := &multibyte{traditionalchinese.Big5, ascii}
	uhc := &multibyte{korean.EUCKR, ascii}
	wide := &multibyte{unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), nil}
	m := map[string]*multibyte{
		"90ms-RKSJ": sjis, "90msp-RKSJ": sjis, "83pv-RKSJ": sjis, "EUC": {japanese.EUCJP, ascii},
		"GBK-EUC": gbk, "GBKp-EUC": gbk, "GB-EUC": gbk, "GBK2K": gbk,
		"ETen-B5": big5, "ETenms-B5": big5, "B5pc": big5, "HKscs-B5": big5,
		"KSCms-UHC": uhc, "KSC-EUC": uhc, "KSCms-UHC-HW": uhc,
	}
	for _, collection := range []string{"UniGB", "UniCNS", "UniJIS", "UniKS", "UniJIS2004"} {
		m[collection+"-UCS2"], m[collection+"-UTF16"] = wide, wide
	}
	return m
}()

func (m *multibyte) length(raw string) int {
	if len(raw) == 1 || m.single != nil && m.single(raw[0]) {
		return 1
	}
	return 2
}

func (m *multibyte) decode(raw string) string {
	text, err := m.encoding.NewDecoder().String(raw)
	if err != nil || strings.ContainsRune(text, utf8.RuneError) {
		return ""
	}
	return text
}
