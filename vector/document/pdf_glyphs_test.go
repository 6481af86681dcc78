package document

import "testing"

// Glyph names have texts by the rules of the Adobe Glyph List.
func TestPDFGlyphNames(t *testing.T) {
	for name, want := range map[string]string{
		"A": "A", "eacute": "é", "Euro": "€", "f_i": "fi", "f_f_i": "ffi", "T_h": "Th", "Q_u.alt": "Qu",
		"c_t.liga": "ct", "uni20AC": "€", "uni00660069": "fi", "u1F600": "😀", "u20AC": "€", "one.oldstyle": "1",
		"a.sc": "a", "Asmall": "A", "oneoldstyle": "1", "fi": "ﬁ", "f_uni0069": "fi", "afii57664": "א", ".notdef": "",
		"": "", "g123": "", "uniD800": "", "uniXYZW": "", "u110000": "", "space": " ", "hyphen": "-",
		"_": "", "A_": "A",
	} {
		if got := (pdfGlyphNames{}).text(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	differences := "<</Type/Encoding/BaseEncoding/MacRomanEncoding/Differences[1/f_i/T_h/Q_u.al" +
		"t/one.onum/uni00660066]>>"
	file := pdfBytes(
		"", catalog, onlyPage, textPage,
		pdfStream("", "BT /F1 10 Tf 50 700 Td (of\\001ce \\002e \\003een \\0041 o\\005er \\216) Tj ET"),
		"<</Type/Font/Subtype/Type1/BaseFont/X/Encoding "+differences+">>",
	)
	got, _, err := extractHere(t, FormatPDF, "a.pdf", "", file)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, got, "office The Queen 11 offer é")
}
