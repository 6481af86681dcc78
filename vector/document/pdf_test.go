package document

import (
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ledongthuc/pdf"
	"satchel/agent"
)

// pdfBytes writes a PDF file of these objects, numbered from 1; the first is
// the catalog. trailer is added to the trailer's dictionary.
func pdfBytes(trailer string, objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var offsets []int
	for i, object := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, trailer, xref)
	return b.Bytes()
}

func pdfStream(dict, data string) string {
	return fmt.Sprintf("<<%s/Length %d>>\nstream\n%s\nendstream", dict, len(data), data)
}

// helvetica is a font in which all widths are half the font size.
const helvetica = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"

// onePage returns a file of one page with the given instructions. More objects start
// at number 6 and are named by resources.
func onePage(content, resources string, more ...string) []byte {
	return pdfBytes("", append([]string{
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>" + resources + ">>>>",
		pdfStream("", content),
		helvetica,
	}, more...)...)
}

func TestPDFPages(t *testing.T) {
	cases := []struct{ name, content, want string }{
		{"one string", "BT /F1 12 Tf 50 700 Td (Hello, world) Tj ET", "Hello, world"},
		{"lines", "BT /F1 12 Tf 14 TL 50 700 Td (one) Tj T* (two) Tj (three) ' ET", "one\ntwo\nthree"},
		{
			"paragraphs",
			"BT /F1 12 Tf 50 700 Td (a) Tj 0 -14 Td (b) Tj 0 -14 Td (c) Tj 0 -28 Td (d) Tj 0 -14 Td (e) Tj ET",
			"a\nb\nc\n\nd\ne",
		},
		{
			"a headline",
			"BT /F1 20 Tf 50 700 Td (Head) Tj /F1 10 Tf 0 -14 Td (text) Tj 0 -14 Td (more) Tj ET",
			"Head\n\ntext\nmore",
		},
		{"gaps are spaces", "BT /F1 10 Tf 50 700 Td [(on)20(e)-300(two)] TJ ET", "one two"},
		{"wide gaps are columns", "BT /F1 10 Tf 50 700 Td (key) Tj 200 0 Td (value) Tj ET", "key\tvalue"},
		{
			"positions within a line",
			"BT /F1 10 Tf 1 0 0 1 50 700 Tm (one) Tj 1 0 0 1 65 700 Tm (two) Tj 1 0 0 1 83 700 Tm (three) Tj ET",
			"onetwo three",
		},
		{"character and word spacing", "BT /F1 10 Tf 50 700 Td 0.5 Tc (abc) Tj 5 Tw ( d e) Tj ET", "abc d e"},
		{
			"two columns",
			"BT /F1 10 Tf 50 700 Td (a1) Tj 0 -12 Td (a2) Tj 200 12 Td (b1) Tj 0 -12 Td (b2) Tj ET",
			"a1\na2\n\nb1\nb2",
		},
		{"bold by drawing twice", "BT /F1 10 Tf 50 700 Td (x) Tj ET BT /F1 10 Tf 50.2 700 Td (x) Tj ET", "x"},
		{
			"a divided word",
			"BT /F1 10 Tf 12 TL 50 700 Td (under-) Tj T* (stand, A-) Tj T* (B) Tj ET",
			"understand, A-\nB",
		},
		{"rotated by 90 degrees", "BT /F1 10 Tf 0 1 -1 0 50 100 Tm (up) Tj 0 -12 Td (next) Tj ET", "up\nnext"},
		{
			"scaled by the page",
			"q 0.1 0 0 0.1 0 0 cm BT /F1 100 Tf 500 7000 Td (one) Tj 150 0 Td (two) Tj ET Q",
			"onetwo",
		},
		{"strings", `BT /F1 10 Tf 50 700 Td (a\(b\)\\ \101\7 (in) \
go) Tj <20 48 6> Tj ET`, "a(b)\\ A (in) go H`"},
		{"windows-1252", "BT /F1 10 Tf 50 700 Td (\x93\x80 \xe9\x94) Tj ET", "“€ é”"},
		{"leaders", "BT /F1 10 Tf 50 700 Td (Intro . . . . . . . . 7) Tj ET", "Intro … 7"},
		{
			"an image among the text",
			"BT /F1 10 Tf 50 700 Td (a) Tj ET BI /W 1 /H 1 ID (\x00<<EIx\xff\nEI BT /F1 10 Tf 50 600 Td (b) Tj ET",
			"a\n\nb",
		},
		{
			"actual text",
			"BT /F1 10 Tf 50 700 Td (o) Tj /Span<</ActualText(\xfe\xff\x00f\x00\xe9)>>BDC (xxx) Tj EMC (n) Tj ET",
			"ofén",
		},
		{
			"invalid operators around",
			"Q Q ] >> ) 1 0 0 BT /F1 10 Tf 50 700 Td (ok) Tj /Nope Do /F9 1 Tf (gone) Tj EMC ET",
			"ok",
		},
		{"a truncated end", "BT /F1 10 Tf 50 700 Td (ok) Tj [(cut", "ok"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := extractHere(t, FormatPDF, "a.pdf", "", onePage(c.content, ""))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, got, c.want)
		})
	}
}

func TestPDFFonts(t *testing.T) {
	cmap := `/CIDInit /ProcSet findresource begin 12 dict begin begincmap
1 begincodespacerange <0000> <FFFF> endcodespacerange
2 beginbfchar <0001> <00480069> <0002> <D83DDE00> endbfchar
2 beginbfrange <0010> <0012> <0061> <0020> <0021> [<0078> <0079>] endbfrange endcmap`
	composite := "<</Type/Font/Subtype/Type0/Encoding/Identity-H/ToUnicode 7 0 " +
		"R/DescendantFonts[<</Subtype/CIDFontType2/DW 500/W[1[1000] 16 18 600]>>]>>"
	cases := []struct{ name, show, font, stream, want string }{
		{"a table of a composite font", "<000100020010001100120020 0021>", composite, pdfStream("", cmap), "Hi😀abcxy"},
		{"widths of a composite font", "[<0001> -500 <0010> -50 <0011>]", composite, pdfStream("", cmap), "Hi ab"},
		{
			"names of characters",
			"(ABC\x0c)",
			"<</Type/Font/Subtype/Type1/Encoding<</Differences[65/eacute/uni20AC/u1F600]>>>>",
			"null",
			"é€😀fi",
		},
		{
			"the font's table wins",
			"(A)",
			"<</Type/Font/Subtype/TrueType/Encoding/WinAnsiEncoding/ToUnicode 7 0 R>>",
			pdfStream("", "1 beginbfchar <41> <017D> endbfchar"),
			"Ž",
		},
		{
			"Shift-JIS",
			"(A\x82\xa0)",
			"<</Type/Font/Subtype/Type0/Encoding/90ms-RKSJ-H/DescendantFonts[<<>>]>>",
			"null",
			"Aあ",
		},
		{
			"UTF-16",
			"<4e2d6587>",
			"<</Type/Font/Subtype/Type0/Encoding/UniGB-UTF16-H/DescendantFonts[<<>>]>>",
			"null",
			"中文",
		},
		{
			"a compressed table",
			"(A)",
			"<</Type/Font/Subtype/Type1/ToUnicode 7 0 R>>",
			compressed("1 beginbfchar <41> <03A9> endbfchar"),
			"Ω",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			op := " Tj"
			if c.show[0] == '[' {
				op = " TJ"
			}
			file := pdfBytes(
				"",
				"<</Type/Catalog/Pages 2 0 R>>",
				"<</Type/Pages/Kids[3 0 R]/Count 1/Resources<</Font<</F1 6 0 R/F2 5 0 R>>>>>>",
				"<</Type/Page/Parent 2 0 R/Contents[4 0 R 4 0 R]>>",
				pdfStream("", "BT /F1 10 Tf 50 700 Td "+c.show+op+" ET"),
				helvetica,
				c.font,
				c.stream,
			)
			got, _, err := extractHere(t, FormatPDF, "a.pdf", "", file)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, got, c.want) // drawn twice in the same place
		})
	}
}

func compressed(data string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write([]byte(data))
	z.Close()
	return pdfStream("/Filter/FlateDecode", b.String())
}

func TestPDFDrawings(t *testing.T) {
	form := pdfStream(
		"/Type/XObject/Subtype/Form/Matrix[1 0 0 1 0 -100]/Resources<</Font<</F1 5 0 R>>/XObject<</X 6 0 R>>>>",
		"BT /F1 10 Tf 50 700 Td (inside) Tj ET /X Do",
	)
	got, _, err := extractHere(
		t, FormatPDF, "a.pdf", "",
		onePage("BT /F1 10 Tf 50 700 Td (outside) Tj ET /X Do", "/XObject<</X 6 0 R>>", form),
	)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(got, "inside"); !strings.HasPrefix(got, "outside") || n != 1 {
		t.Errorf("got \"inside\" %d times: %q", n, got)
	}
}

// A real file, as a word processor writes it.
func TestPDF(t *testing.T) {
	doc := mustRead(t, "manual.pdf", readFile(t, "testdata/manual.pdf"))
	compare(t, outlineOf(doc), `
paragraph p1 "Pump manual"
paragraph p1 "Safety"
paragraph p1 "Read this before use. The efficient pump is quiet.\nPart\tPrice\nSeal\t2 €"
paragraph p1 "Repair"
paragraph p1 "Call us — 日本語 too."`)
	if doc.Title != "Pump manual" || doc.Pages != 1 || doc.Format != FormatPDF {
		t.Errorf("title %q, %d pages", doc.Title, doc.Pages)
	}
}

// The name of the file from which a PDF was made is not used as its title.
func TestPDFTitles(t *testing.T) {
	for title, want := range map[string]string{
		"Pump manual":                 "Pump manual",
		"Release 2.1":                 "Release 2.1",
		"handbook.html":               "",
		"Report FINAL.DOCX":           "",
		"Microsoft Word - letter.doc": "",
		"Untitled":                    "",
		"Microsoft in the classroom":  "Microsoft in the classroom",
	} {
		file := pdfBytes(
			"/Info<</Title("+title+")>>",
			"<</Type/Catalog/Pages 2 0 R>>",
			"<</Type/Pages/Count 1/Kids[3 0 R]/Resources<</Font<</F1 5 0 R>>>>>>",
			"<</Type/Page/Contents 4 0 R>>",
			pdfStream("", "BT /F1 10 Tf 50 700 Td (first) Tj ET"),
			helvetica,
		)
		doc, err := Read(context.Background(), "a.pdf", "", file, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if doc.Title != want {
			t.Errorf("title %q of %q, want %q", doc.Title, title, want)
		}
	}
}

func TestPDFPageNumbers(t *testing.T) {
	page := func(n int) string { return fmt.Sprintf("<</Type/Page/Contents %d 0 R>>", n) }
	text := func(s string) string { return pdfStream("", "BT /F1 10 Tf 50 700 Td ("+s+") Tj ET") }
	file := pdfBytes(
		"/Info<</Title(\xfe\xff\x00\xdc\x00b)>>",
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Count 4/Kids[3 0 R 4 0 R]/Resources<</Font<</F1 9 0 R>>>>>>",
		"<</Type/Pages/Count 3/Kids[5 0 R 6 0 R 5 0 R]>>",
		page(8),
		page(7),
		page(99),
		text("first"),
		text("last"),
		helvetica,
	)
	doc, err := Read(
		context.Background(),
		"a.pdf",
		"",
		append([]byte("junk\n"), append(file, "\n\x00tail"...)...),
		Limits{},
	)
	if err != nil {
		t.Fatal(err)
	}
	checkDocument(t, doc)
	compare(t, outlineOf(doc), "paragraph p1 \"first\"\nparagraph p3 \"first\"\nparagraph p4 \"last\"")
	if doc.Title != "Üb" || doc.Pages != 4 {
		t.Errorf("title %q, %d pages", doc.Title, doc.Pages)
	}
	if _, err := Read(
		context.Background(),
		"a.pdf",
		"",
		file,
		Limits{Pages: 3},
	); agent.ErrorCode(err) != CodeTooComplex {
		t.Errorf("over the limit of pages: got %v", err)
	}
}

func TestPDFVersions(t *testing.T) {
	good := onePage("BT /F1 10 Tf 50 700 Td (text) Tj ET", "")
	for _, header := range []string{"%PDF-2.0\n", "%PDF-1.4\r", "%PDF-1.9 ", "%PDF-x.y\n"} {
		file := append([]byte(header), good[9:]...)
		if got, _, err := extractHere(t, FormatPDF, "a.pdf", "", file); err != nil || got != "text" {
			t.Errorf("%q: got %q, %v", header, got, err)
		}
	}
}

func TestPDFsThatCannotBeRead(t *testing.T) {
	good := onePage("BT /F1 10 Tf 50 700 Td (some text) Tj ET", "")
	image := "<</Type/XObject/Subtype/Image/Width 1/Height 1/Length 0>>\nstream\n\nendstream"
	standard := "/ID[(0123456789abcdef)(x)]/Encrypt<</Filter/Standard/V %d/R %d/Length 128/P -4/O(" +
		strings.Repeat("o", 32) + ")/U(" + strings.Repeat("u", 32) + ")>>"
	encrypted := func(v, r int) []byte {
		return pdfBytes(fmt.Sprintf(standard, v, r), "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[]/Count 0>>")
	}
	cases := []struct {
		name    string
		data    []byte
		code    agent.Code
		message string
	}{
		{"cut off", good[:len(good)/2], CodeBrokenFile, "cut off"},
		{"no pages", pdfBytes("", "<</Type/Catalog>>"), CodeBrokenFile, "pages"},
		{
			"pages in a circle",
			pdfBytes("", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[2 0 R 2 0 R]/Count 9>>"),
			CodeBrokenFile,
			"pages",
		},
		{"a scan", onePage("q 600 0 0 780 0 0 cm /X Do Q", "/XObject<</X 6 0 R>>", image), CodeNoText, "scan"},
		{
			"a scan with a stamp",
			onePage("600 0 0 780 0 0 cm /X Do BT /F1 10 Tf 50 700 Td (page 1) Tj ET", "/XObject<</X 6 0 R>>", image),
			CodeNoText,
			"scan",
		},
		{
			"only a small image",
			onePage("q 60 0 0 60 0 0 cm /X Do Q", "/XObject<</X 6 0 R>>", image),
			CodeNoText,
			"no text",
		},
		{"empty", onePage("", ""), CodeNoText, "no text"},
		{"a password", encrypted(2, 3), CodeEncrypted, "password"},
		{"an unknown encryption", encrypted(5, 6), CodeEncrypted, "encrypted"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(context.Background(), "a.pdf", "", c.data, Limits{})
			if agent.ErrorCode(err) != c.code || !strings.Contains(err.Error(), c.message) {
				t.Fatalf("got %v", err)
			}
			checkError(t, err)
		})
	}
}

// A page whose instructions decompress to more than the limit uses no memory of the
// parent, and fails with an error for clients.
func TestPDFBomb(t *testing.T) {
	file := pdfBytes(
		"",
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Contents[4 0 R 4 0 R 4 0 R 4 0 R]>>",
		compressed(strings.Repeat(" ", 40<<20)),
	)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Read(context.Background(), "a.pdf", "", file, Limits{Memory: 256 << 20})
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Fatal("the file was accepted")
	}
	checkError(t, err)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("the parent allocated %d MB", grown>>20)
	}
}

// A file that is truncated or damaged anywhere is read in part, or rejected with an
// error for clients.
func TestDamagedPDF(t *testing.T) {
	good := []byte(readFile(t, "testdata/manual.pdf"))
	for i := range 120 {
		damaged := bytes.Clone(good)
		at := i * len(good) / 120
		for j := at; j < min(at+40, len(good)); j++ {
			damaged[j] ^= byte(i + j)
		}
		text, _, err := extractHere(t, FormatPDF, "a.pdf", "", damaged)
		if err != nil {
			checkError(t, err)
			continue
		}
		checkDocument(t, &Document{Text: text, Blocks: []Block{{Parent: -1, End: uint32(len(text))}}})
	}
}

func TestPoorTextIsReadAgain(t *testing.T) {
	// Each letter is placed separately, with gaps as wide as between words.
	var spaced strings.Builder
	spaced.WriteString("BT /F1 10 Tf 1 0 0 1 50 700 Tm ")
	for i, r := range "the cat is on the mat and the dog is in it" {
		if r != ' ' {
			fmt.Fprintf(&spaced, "1 0 0 1 %d 700 Tm (%c) Tj ", 50+8*i, r)
		} else {
			spaced.WriteString("( ) Tj ")
		}
	}
	got, _, err := extractHere(t, FormatPDF, "a.pdf", "", onePage(spaced.String()+"ET", ""))
	if err != nil || strings.TrimSpace(got) != "the cat is on the mat and the dog is in it" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestKnownWords(t *testing.T) {
	for text, want := range map[string][2]int{
		"I a e The cat and the dog": {3, 8},
		"T h e c a t":               {0, 6},
		"Der Hund ist im Haus":      {3, 5},
		"":                          {0, 0},
		"123 4":                     {0, 0},
	} {
		if known, all := knownWords(text); known != want[0] || all != want[1] {
			t.Errorf("%q: got %d of %d", text, known, all)
		}
	}
}

func FuzzPDFContent(f *testing.F) {
	for _, seed := range []string{
		"BT /F1 12 Tf 50 700 Td (Hello) Tj ET",
		"[(a)-300<62>] TJ T* ' \"",
		"BI ID \nEI q Q cm",
		"/X Do (\\053\\\n(",
		"<</ActualText(x)>> BDC << [ EMC",
		"1e99 -.5 +3 --2 0 0 Tm (x) Tj",
		"/F2 1 Tf <0001> Tj",
	} {
		f.Add(
			[]byte(seed),
			[]byte("1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <00> <ff> <0041> endbfrange"),
		)
	}
	f.Fuzz(func(t *testing.T, content, cmap []byte) {
		streams := &pdfStreams{remaining: 1 << 20}
		p := &pdfPage{streams: streams, fonts: newPDFFonts(streams), limit: 1 << 16}
		table := readCMap(cmap)
		resources := newResources(value(mustOpen(t).Trailer(), "Root"))
		resources.fonts["F1"] = &pdfFont{unicode: table, width: 0.5}
		resources.fonts["F2"] = &pdfFont{unicode: table, composite: true, width: 1}
		p.state = pdfState{ctm: identity, tm: identity, lm: identity, scale: 1}
		if err := p.run(content, resources); err != nil {
			checkError(t, err)
		}
		text := clean(p.lines.text())
		checkDocument(t, &Document{Text: text, Blocks: newBlocks(text)})
	})
}

// newBlocks marks a text as one paragraph.
func newBlocks(text string) []Block {
	o := newOutline(text, Limits{}.orDefaults())
	o.add(KindParagraph, 0, 0, len(text))
	return o.blocks
}

func FuzzPDFFile(f *testing.F) {
	f.Add(onePage("BT /F1 10 Tf 50 700 Td (some text) Tj ET", ""))
	f.Add([]byte(readFile(f, "testdata/manual.pdf")))
	f.Fuzz(func(t *testing.T, file []byte) {
		doc, err := Read(context.Background(), "a.pdf", "", file, Limits{Time: 5 * time.Second, Memory: 256 << 20})
		if err != nil {
			checkError(t, err)
			return
		}
		checkDocument(t, doc)
	})
}

// mustOpen opens a small file.
func mustOpen(t testing.TB) *pdf.Reader {
	t.Helper()
	file, err := openPDF(onePage("", ""), &pdfStreams{remaining: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return file
}
