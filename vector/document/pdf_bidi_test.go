package document

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
)

// bidiFile returns a page of one font whose codes 0 to 255 are the given characters
// from 0xA0 on and ASCII below; each is half as wide as the size 10. Characters that
// are marks have no width.
func bidiFile(characters, content string) []byte {
	var cmap, widths strings.Builder
	cmap.WriteString("1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <20> <7e> <0020> endbfrange ")
	code := 0xA0
	for _, r := range characters {
		fmt.Fprintf(&cmap, "1 beginbfchar <%02x> <%04x> endbfchar ", code, utf16.Encode([]rune{r}))
		code++
	}
	for code := 0; code < 256; code++ {
		r := []rune(characters)
		if i := code - 0xA0; i >= 0 &&
			i < len(r) &&
			(r[i] >= 0x5B0 && r[i] <= 0x5BD || r[i] >= 0x64B && r[i] <= 0x652) {
			widths.WriteString("0 ")
		} else {
			widths.WriteString("500 ")
		}
	}
	font := "<</Type/Font/Subtype/TrueType/FirstChar 0/LastChar 255/Widths[" + widths.String() + "]/ToUnicode 6 0 R>>"
	return pdfBytes("", catalog, onlyPage, textPage, pdfStream("", content), font, pdfStream("", cmap.String()))
}

// bidiCodes returns a text as a string of that font.
func bidiCodes(characters, text string) string {
	var b strings.Builder
	for _, r := range text {
		if i := strings.IndexRune(characters, r); i >= 0 {
			fmt.Fprintf(&b, "%02x", 0xA0+len([]rune(characters[:i])))
		} else {
			fmt.Fprintf(&b, "%02x", r)
		}
	}
	return "<" + b.String() + ">"
}

// visual draws lines as they look, from left to right.
func visual(characters string, lines ...string) string {
	content := "BT /F1 10 Tf 14 TL 50 700 Td "
	for _, line := range lines {
		content += bidiCodes(characters, line) + " Tj T* "
	}
	return content + "ET"
}

// logical draws each character of a line at its place, from right to left.
func logical(characters, line string) string {
	content := "BT /F1 10 Tf "
	x := 500
	for _, r := range line {
		content += fmt.Sprintf("1 0 0 1 %d 700 Tm %s Tj ", x, bidiCodes(characters, string(r)))
		x -= 5
	}
	return content + "ET"
}

const (
	hebrew = "אבגדהוזחטיךכלםמןנסעףפץצקרשתָּ"
	arabic = "ﻣﺮﺣﺒﺎﻻﻟﻌﺎﱂلمسرحبا١٢٣َّﷲ"
)

// The text of a page is in the order in which it is read, whatever the order in which
// it is drawn.
func TestPDFRightToLeft(t *testing.T) {
	cases := []struct{ name, characters, content, want string }{
		{"as it looks", hebrew, visual(hebrew, "םלוע םולש"), "שלום עולם"},
		{"in reading order", hebrew, logical(hebrew, "שלום עולם"), "שלום עולם"},
		{
			"in reading order, without spaces",
			hebrew,
			"BT /F1 10 Tf 1 0 0 1 100 700 Tm " + bidiCodes(hebrew, "םולש") + " Tj 1 0 0 1 75 700 Tm " +
				bidiCodes(hebrew, "םלוע") + " Tj ET",
			"שלום עולם",
		},
		{
			"words in reading order, far apart",
			hebrew,
			"BT /F1 10 Tf 1 0 0 1 500 700 Tm " + bidiCodes(hebrew, "ריחמ") + " Tj 1 0 0 1 75 700 Tm (12) Tj ET",
			"מחיר\t12",
		},
		{"two lines", hebrew, visual(hebrew, "םלוע םולש", "בוט םוי"), "שלום עולם\nיום טוב"},
		{"a full stop", hebrew, visual(hebrew, ".םולש"), "שלום."},
		{"a number", hebrew, visual(hebrew, "םוי 12.5 דוע"), "עוד 12.5 יום"},
		{
			"a date and a telephone number",
			hebrew,
			visual(hebrew, "03-1234567 :ןופלט ,31/12/2024"),
			"31/12/2024, טלפון: 03-1234567",
		},
		{"a percentage", hebrew, visual(hebrew, "החנה 50%"), "50% הנחה"},
		{"an English name", hebrew, visual(hebrew, "שדח Windows 11 Pro ונא"), "אנו Windows 11 Pro חדש"},
		{"parentheses", hebrew, visual(hebrew, "(בוט) םוי"), "יום (טוב)"},
		{"parentheses as they are read", hebrew, visual(hebrew, ")בוט( םוי", ")בוט םוי"), "יום (טוב)\nיום טוב)"},
		{"parentheses around English", hebrew, visual(hebrew, "(Windows) םוי"), "יום (Windows)"},
		{
			"an English line in a Hebrew page",
			hebrew,
			visual(hebrew, "םולש", "םולש", "The word םולש means peace"),
			"שלום\nשלום\nThe word שלום means peace",
		},
		{
			"an English line with a Hebrew word",
			hebrew,
			visual(hebrew, "The word םולש means peace", "in Hebrew and other languages"),
			"The word שלום means peace\nin Hebrew and other languages",
		},
		{
			"an English line with Hebrew words",
			hebrew,
			visual(hebrew, "They said \"םלוע םולש\" twice today"),
			"They said \"שלום עולם\" twice today",
		},
		{
			"a line of Hebrew among English ones",
			hebrew,
			visual(hebrew, "A greeting in another language:", "!םלוע םולש"),
			"A greeting in another language:\nשלום עולם!",
		},
		{"points", hebrew, visual(hebrew, "םו"+"לָש"), "שָלום"},
		{"an Arabic word", arabic, visual(arabic, "ابحرم"), "مرحبا"},
		{"presentation forms", arabic, visual(arabic, "ﺎﺒﺣﺮﻣ"), "مرحبا"},
		{"a ligature of two letters", arabic, visual(arabic, "ﻻ"), "لا"},
		{"Arabic digits", arabic, visual(arabic, "١٢٣ مسر"), "رسم ١٢٣"},
		{"only English", hebrew, visual(hebrew, "plain (text) 12"), "plain (text) 12"},
		{
			"columns",
			hebrew,
			"BT /F1 10 Tf 1 0 0 1 50 700 Tm " + bidiCodes(hebrew, "ריחמ") + " Tj 1 0 0 1 300 700 Tm " +
				bidiCodes(hebrew, "רצומ") + " Tj ET",
			"מוצר\tמחיר",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := extractHere(t, FormatPDF, "a.pdf", "", bidiFile(c.characters, c.content))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, got, c.want)
		})
	}
}
