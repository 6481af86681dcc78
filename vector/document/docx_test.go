package document

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"io"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"satchel/agent"
)

const (
	wordNS = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" ` +
		`xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
	relType = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
)

// docxFile packs parts into a .docx. A part named without a folder is the content of
// the root element of the part with that name in the main folder.
func docxFile(t testing.TB, parts map[string]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestSpeed)
	})
	root := map[string]string{
		"document":  "document",
		"styles":    "styles",
		"numbering": "numbering",
		"footnotes": "footnotes",
		"endnotes":  "endnotes",
	}
	for name, content := range parts {
		if element, ok := root[name]; ok {
			inside := content
			if name == "document" {
				inside = "<w:body>" + content + "</w:body>"
			}
			name = "word/" + name + ".xml"
			content = `<?xml version="1.0" encoding="UTF-8"?><w:` + element + ` ` + wordNS + `>` + inside + `</w:` +
				element + `>`
		}
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func par(text string) string {
	return `<w:p><w:r><w:t xml:space="preserve">` + text + `</w:t></w:r></w:p>`
}

func styled(style, text string) string {
	return `<w:p><w:pPr><w:pStyle w:val="` + style + `"/></w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
}

func item(id, level, text string) string {
	return `<w:p><w:pPr><w:numPr><w:ilvl w:val="` + level + `"/><w:numId w:val="` + id +
		`"/></w:numPr></w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
}

func row(cells ...string) string {
	var b strings.Builder
	for _, cell := range cells {
		b.WriteString("<w:tc>" + par(cell) + "</w:tc>")
	}
	return "<w:tr>" + b.String() + "</w:tr>"
}

const testNumbering = `
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="2">
 <w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
 <w:lvl w:ilvl="1"><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%2)"/></w:lvl>
 <w:lvl w:ilvl="2"><w:numFmt w:val="lowerRoman"/><w:lvlText w:val="%1.%2.%3"/></w:lvl></w:abstractNum>
<w:num w:numId="10"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="20"><w:abstractNumId w:val="2"/></w:num>
<w:num w:numId="21"><w:abstractNumId w:val="2"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>`

const testStyles = `
<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Kapitel"><w:name w:val="Kapitel"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Eigen"><w:name w:val="Eigen"/><w:basedOn w:val="Kapitel"/></w:style>
<w:style w:type="paragraph" w:styleId="Liste"><w:name w:val="List Bullet"/><w:pPr><w:numPr><w:numId w:val="10"/></w:numPr></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Kreis1"><w:name w:val="a"/><w:basedOn w:val="Kreis2"/></w:style>
<w:style w:type="paragraph" w:styleId="Kreis2"><w:name w:val="b"/><w:basedOn w:val="Kreis1"/></w:style>
<w:style w:type="paragraph" w:styleId="Verzeichnis1"><w:name w:val="toc 1"/></w:style>`

// furniture returns the parts of a document with headers and footers, by name.
func furniture(document string, parts map[string]string) map[string]string {
	out := map[string]string{"document": document}
	rels := `<Relationships xmlns="x">`
	for i, name := range slices.Sorted(maps.Keys(parts)) {
		kind := strings.TrimRight(name, "123456789")
		rels += `<Relationship Id="f` + strconv.Itoa(i) + `" Type="` + relType + kind + `" Target="` + name + `.xml"/>`
		out["word/"+name+".xml"] = `<w:x ` + wordNS + `>` + parts[name] + `</w:x>`
	}
	out["word/_rels/document.xml.rels"] = rels + `</Relationships>`
	return out
}

// field is a field as Word writes it.
func field(instruction, result string) string {
	return `<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> ` + instruction +
		` </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>` +
		result + `</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>`
}

// The text of headers and footers is there once, without the numbers of pages.
func TestDOCXFurniture(t *testing.T) {
	text := func(s string) string { return `<w:r><w:t xml:space="preserve">` + s + `</w:t></w:r>` }
	p := func(runs ...string) string { return "<w:p>" + strings.Join(runs, "") + "</w:p>" }
	tab := "<w:r><w:tab/></w:r>"
	cases := []struct {
		name  string
		parts map[string]string
		want  string
	}{
		{
			"both",
			map[string]string{"header1": par("Acme Ltd, 1 Main Street"), "footer1": par("Confidential")},
			"Acme Ltd, 1 Main Street\n\nbody\n\nConfidential",
		},
		{
			"the same in each section",
			map[string]string{
				"header1": par("Acme"),
				"header2": par("Acme ") + par(""),
				"header3": par("First page"),
				"footer1": par("Acme"),
			},
			"Acme\n\nFirst page\n\nbody",
		},
		{
			"a page's number",
			map[string]string{
				"footer1": p(text("Page "), field("PAGE", "3"), text(" of "), field(`NUMPAGES \* MERGEFORMAT`, "12")),
				"footer2": p(field("PAGE", "3")),
			},
			"body",
		},
		{
			"a page's number beside text",
			map[string]string{
				"footer1": p(
					text("Acme"),
					tab,
					text("Seite "),
					field("PAGE", "3"),
					`<w:r><w:ptab w:alignment="right"/></w:r>`,
					text("Confidential"),
				),
			},
			"body\n\nAcme\tConfidential",
		},
		{
			"a simple field",
			map[string]string{
				"footer1": p(
					`<w:fldSimple w:instr=" PAGE "><w:r><w:t>3</w:t></w:r></w:fldSimple>`,
					text(" | Version 7 of the house rules"),
				),
			},
			"body\n\nVersion 7 of the house rules",
		},
		{
			"other fields",
			map[string]string{
				"header1": p(field(`STYLEREF "Heading 1"`, "Chapter"), text(" by "), field("AUTHOR", "Ada")),
			},
			"Chapter by Ada\n\nbody",
		},
		{
			"a table",
			map[string]string{"header1": "<w:tbl>" + row("Acme Ltd", "+49 30 1234") + "</w:tbl>"},
			"Acme Ltd\n\n+49 30 1234\n\nbody",
		},
		{
			"a title and a list",
			map[string]string{"header1": styled("Title", "Handbook") + item("10", "0", "a")},
			"Handbook\n\na\n\nbody",
		},
		{
			"a damaged part",
			map[string]string{
				"header1": par("Acme") + "<w:p",
				"header2": "<!DOCTYPE x>" + par("x"),
				"footer1": par("end"),
			},
			"Acme\n\nbody\n\nend",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := extractHere(t, FormatDOCX, "a.docx", "", docxFile(t, furniture(par("body"), c.parts)))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, got, c.want)
		})
	}
}

func TestDOCX(t *testing.T) {
	link := `<Relationships xmlns="x"><Relationship Id="rId5" Type="` + relType +
		`hyperlink" Target="https://x.org/a" TargetMode="External"/><Relationship Id="rId6" Type="` + relType +
		`hyperlink" Target="javascript:x" TargetMode="External"/></Relationships>`
	cases := []struct {
		name  string
		parts map[string]string
		want  string
	}{
		{
			"paragraphs",
			map[string]string{"document": par("one ") + par("") + par(" two &amp; three")},
			"one\n\ntwo & three",
		},
		{
			"runs, tabs, breaks",
			map[string]string{
				"document": `<w:p><w:pPr><w:tabs><w:tab w:val="left"/></w:tabs></w:pPr><w:r><w:rPr><w:b/></w:rPr>` +
					`<w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t></w:r></w:p>`,
			},
			"a\tb\nc-d",
		},
		{
			"headings by names, outline and base",
			map[string]string{
				"styles": testStyles,
				"document": styled("berschrift1", "A") + styled("Kapitel", "B") + styled("Eigen", "C") +
					styled("Heading3", "D") + styled("Kreis1", "text") +
					`<w:p><w:pPr><w:pStyle w:val="berschrift1"/><w:outlineLvl w:val="9"/></w:pPr><w:r>` +
					`<w:t>body</w:t></w:r></w:p>`,
			},
			"# A\n\n## B\n\n## C\n\n### D\n\ntext\n\nbody",
		},
		{
			"a table of contents is left out",
			map[string]string{"styles": testStyles, "document": styled("Verzeichnis1", "A 1") + par("x")},
			"x",
		},
		{
			"lists",
			map[string]string{
				"numbering": testNumbering,
				"styles":    testStyles,
				"document": par("lead") + item("10", "0", "a") + item(
					"10",
					"1",
					"b",
				) + styled("Liste", "c") + par("mid") + item(
					"20",
					"0",
					"x",
				) + item(
					"20",
					"1",
					"y",
				) + item(
					"20",
					"1",
					"z",
				) + item(
					"20",
					"2",
					"deep",
				) + item("20", "0", "w") + item("21", "0", "v") + item("20", "0", "on") + item(
					"21",
					"0",
					"and on",
				) + item("0", "0", "none") + item(
					"99",
					"0",
					"unknown",
				),
			},
			"lead\n\n- a\n  - b\n- c\n\nmid\n\n3. x\n  - a) y\n  - b) z\n    - 3.b.i deep\n4. w\n1. v\n2. on\n" +
				"3. and on\n\nnone\n\n- unknown",
		},
		{
			"a numbered heading",
			map[string]string{
				"numbering": testNumbering,
				"document": `<w:p><w:pPr><w:pStyle w:val="Heading1"/><w:numPr>` +
					`<w:numId w:val="20"/></w:numPr></w:pPr><w:r><w:t>Scope</w:t></w:r></w:p>`,
			},
			"# 3. Scope",
		},
		{
			"a table",
			map[string]string{
				"document": "<w:tbl><w:tblPr/>" + row("k", "v|w") + row("a", "1") + row("", "") + row("b") +
					"</w:tbl>" + par("after"),
			},
			"| k | v\\|w |\n|---|---|\n| a | 1 |\n| b |  |\n\nafter",
		},
		{"a frame", map[string]string{"document": "<w:tbl>" + row("boxed") + row("too") + "</w:tbl>"}, "boxed\n\ntoo"},
		{
			"a table in a table",
			map[string]string{
				"document": "<w:tbl><w:tr><w:tc>" + par("out") + "<w:tbl>" + row("in", "side") +
					"</w:tbl></w:tc><w:tc>" + par("x") + par("y") + "</w:tc></w:tr></w:tbl>",
			},
			"| out in side | x y |\n|---|---|",
		},
		{
			"links",
			map[string]string{
				"word/_rels/document.xml.rels": link,
				"document": `<w:p><w:r><w:t>see </w:t></w:r><w:hyperlink r:id="rId5"><w:r>` +
					`<w:t>this</w:t></w:r></w:hyperlink><w:hyperlink r:id="rId6"><w:r>` +
					`<w:t> that</w:t></w:r></w:hyperlink><w:hyperlink w:anchor="x"><w:r>` +
					`<w:t> here</w:t></w:r></w:hyperlink></w:p>`,
			},
			"see [this](https://x.org/a) that here",
		},
		{"notes", map[string]string{
			"footnotes": `<w:footnote w:type="separator" w:id="0"><w:p><w:r>` +
				`<w:t>-</w:t></w:r></w:p></w:footnote><w:footnote w:id="2">` + par("First.") +
				par("More.") + `</w:footnote>`,
			"endnotes": `<w:endnote w:id="2">` + par("Last.") + `</w:endnote>`,
			"document": `<w:p><w:r><w:t>a</w:t><w:footnoteReference w:id="2"/><w:t> b</w:t><w:endnoteReference ` +
				`w:id="2"/><w:footnoteReference w:id="77"/></w:r></w:p>`,
		},
			"a[^1] b[^2][^3]\n\n[^1]: First. More.\n\n[^2]: Last."},
		{
			"changes and fields",
			map[string]string{
				"document": `<w:p><w:ins><w:r><w:t>new </w:t></w:r></w:ins><w:del><w:r>` +
					`<w:delText>old</w:delText></w:r></w:del><w:moveFrom><w:r><w:t>gone</w:t></w:r></w:moveFrom>` +
					`<w:r><w:instrText>PAGE</w:instrText><w:t>7</w:t></w:r><w:sdt><w:sdtPr><w:t>no</w:t></w:sdtPr>` +
					`<w:sdtContent><w:r><w:t> in</w:t></w:r></w:sdtContent></w:sdt></w:p>`,
			},
			"new 7 in",
		},
		{
			"a text box once",
			map[string]string{
				"document": `<w:p><w:r><w:t>a</w:t><mc:AlternateContent xmlns:mc="m"><mc:Choice><w:txbxContent>` +
					par("box") + `</w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent>` + par("box") +
					`</w:txbxContent></mc:Fallback></mc:AlternateContent><w:t>b</w:t></w:r></w:p>`,
			},
			"box\n\nab",
		},
		{
			"text like Markdown",
			map[string]string{"document": par("# no heading") + par("``` no fence")},
			"\\# no heading\n\n\\`\\`\\` no fence",
		},
		{
			"damaged styles and numbering",
			map[string]string{
				"word/styles.xml":              "<w:styles",
				"word/numbering.xml":           "nonsense",
				"word/footnotes.xml":           "<a><b>",
				"word/_rels/document.xml.rels": "<",
				"document": styled("Heading1", "A") + item("1", "0", "b") +
					`<w:p><w:r><w:t>c</w:t><w:footnoteReference w:id="1"/></w:r></w:p>`,
			},
			"# A\n\n- b\n\nc[^1]",
		},
		{"parts under other names", map[string]string{
			"_rels/.rels": `<Relationships><Relationship Id="a" Type="` + relType +
				`officeDocument" Target="/word/main.xml"/></Relationships>`,
			"word/_rels/main.xml.rels": `<Relationships><Relationship Id="b" Type="` + relType +
				`styles" Target="odd.xml"/></Relationships>`,
			"word/main.xml": `<w:document ` + wordNS + `><w:body>` + styled("Kapitel", "B") +
				`</w:body></w:document>`,
			"word/odd.xml": `<w:styles ` + wordNS + `>` + testStyles + `</w:styles>`,
		}, "## B"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := extractHere(t, FormatDOCX, "a.docx", "", docxFile(t, c.parts))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, got, c.want)
		})
	}
}

func TestDOCXThroughTheChild(t *testing.T) {
	file := docxFile(t, map[string]string{
		"docProps/core.xml": `<cp:coreProperties xmlns:cp="c" xmlns:dc="d"><dc:title>The ` +
			`Title</dc:title></cp:coreProperties>`,
		"document": styled("Heading1", "A") + par("text"),
	})
	doc, err := Read(context.Background(), "a.docx", "", file, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	checkDocument(t, doc)
	compare(t, outlineOf(doc), "heading1 (A) \"# A\"\nparagraph (A) \"text\"")
	if doc.Title != "The Title" || doc.Format != FormatDOCX {
		t.Errorf("got %+v", doc)
	}
}

func TestBrokenDOCX(t *testing.T) {
	good := docxFile(t, map[string]string{"document": par(strings.Repeat("text ", 1000))})
	other := docxFile(t, map[string]string{"xl/workbook.xml": "<x/>"})
	deep := strings.Repeat("<w:x>", 5000)
	cases := []struct {
		name string
		data []byte
		code agent.Code
	}{
		{"truncated", good[:len(good)-30], agent.CodeValidation},
		{"a workbook", other, agent.CodeValidation},
		{
			"truncated XML",
			docxFile(t, map[string]string{"word/document.xml": "<w:document " + wordNS + "><w:p><w:r><w:t>a"}),
			CodeBrokenFile,
		},
		{"not XML", docxFile(t, map[string]string{"word/document.xml": "plain"}), CodeNoText},
		{"no text", docxFile(t, map[string]string{"document": par(" ")}), CodeNoText},
		{
			"entities",
			docxFile(t, map[string]string{
				"word/document.xml": `<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;">]><w:document ` + wordNS +
					`>` + par("&b;") + `</w:document>`,
			}),
			CodeBrokenFile,
		},
		{"an unknown entity", docxFile(t, map[string]string{"document": par("&b;")}), CodeBrokenFile},
		{"deep", docxFile(t, map[string]string{"document": deep}), CodeTooComplex},
		{"a bomb", docxFile(t, map[string]string{"document": par(strings.Repeat("a", 32<<20))}), CodeTooComplex},
		{
			"a bomb of styles",
			docxFile(t, map[string]string{"document": par("x"), "styles": strings.Repeat(" ", 20<<20)}),
			CodeTooComplex,
		},
		{
			"a bomb of notes",
			docxFile(t, map[string]string{
				"document":  `<w:p><w:r><w:footnoteReference w:id="1"/></w:r></w:p>`,
				"footnotes": strings.Repeat(" ", 32<<20),
			}),
			CodeTooComplex,
		},
		{"damaged data", damage(good), CodeBrokenFile},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Read(context.Background(), "a.docx", "", c.data, Limits{})
			runtime.ReadMemStats(&after)
			if agent.ErrorCode(err) != c.code {
				t.Fatalf("got %v", err)
			}
			checkError(t, err)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
				t.Errorf("the parent allocated %d MB", grown>>20)
			}
		})
	}
}

// damage changes the compressed data of a file's first entry.
func damage(file []byte) []byte {
	file = bytes.Clone(file)
	for i := 60; i < 80; i++ {
		file[i] = 0xff
	}
	return file
}

// Links in the archive are ignored, and an archive of too many entries is rejected.
func TestArchive(t *testing.T) {
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	link := &zip.FileHeader{Name: "word/document.xml"}
	link.SetMode(fs.ModeSymlink | 0o777)
	w, err := z.CreateHeader(link)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, "/etc/passwd")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := checkDOCX(buf.Bytes()); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("a link: got %v", err)
	}
	buf.Reset()
	z = zip.NewWriter(&buf)
	for i := range maxEntries + 1 {
		if _, err := z.CreateHeader(&zip.FileHeader{Name: "word/" + strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok := openArchive(buf.Bytes()); ok {
		t.Error("an archive of too many entries was opened")
	}
}

func TestNumerals(t *testing.T) {
	for _, c := range []struct {
		format string
		n      int
		want   string
	}{
		{"decimal", 12, "12"}, {"lowerLetter", 1, "a"}, {"upperLetter", 26, "Z"}, {"lowerLetter", 28, "bb"},
		{"lowerLetter", 100000, "100000"}, {"upperRoman", 1994, "MCMXCIV"}, {"lowerRoman", 4, "iv"},
		{"upperRoman", 0, "0"}, {"upperRoman", 5000, "5000"}, {"chineseCounting", 3, "3"},
	} {
		if got := numeral(c.format, c.n); got != c.want {
			t.Errorf("%s %d: got %s", c.format, c.n, got)
		}
	}
}

func FuzzDOCXText(f *testing.F) {
	f.Add(styled("Heading1", "A")+item("20", "2", "x")+"<w:tbl>"+row("a", "b")+"</w:tbl>", testStyles, testNumbering)
	f.Add("<w:tbl><w:tc>"+par("x")+"<w:tr></w:tbl></w:p></w:hyperlink>", "", "")
	f.Add(
		`<w:p><w:hyperlink r:id="a"><w:p><w:r><w:footnoteReference w:id="1"/></w:p></w:hyperlink></w:p>`,
		"",
		"<w:num/>",
	)
	f.Fuzz(func(t *testing.T, body, styles, numbering string) {
		file := docxFile(t, map[string]string{
			"document":  body,
			"styles":    styles,
			"numbering": numbering,
			"footnotes": body,
		})
		checkExtraction(t, file)
	})
}

func FuzzDOCXFile(f *testing.F) {
	f.Add(docxFile(f, map[string]string{"document": par("text")}))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := Check("a.docx", "", file); err == nil {
			checkExtraction(t, file)
		}
	})
}

func checkExtraction(t *testing.T, file []byte) {
	text, s, err := extractHere(t, FormatDOCX, "a.docx", "", file)
	if err != nil {
		checkError(t, err)
		return
	}
	doc := Markdown(text, Limits{Blocks: 50})
	doc.Title = s.title
	checkDocument(t, doc)
}
