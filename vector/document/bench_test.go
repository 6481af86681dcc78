package document

import (
	"context"
	"strings"
	"testing"
)

func BenchmarkRead(b *testing.B) {
	unit := map[string]string{
		"a.txt": "A line of plain text, nothing more.\n\n",
		"a.md": "# Heading\n\nA paragraph with *some* words.\n\n- item\n- item\n\n" +
			"| a | b |\n|---|---|\n| 1 | 2 |\n\n",
		"a.json": `{"id": 12345, "name": "Ada Lovelace", "tags": ["a", "b"], "sub": {"x": 1.5, "y": null}}` + "\n",
		"a.csv":  "12345,Ada Lovelace,London,\"a \"\"quoted\"\" one\"\n",
	}
	for _, name := range []string{"a.txt", "a.md", "a.json", "a.csv"} {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"10KB", 10 << 10}, {"1MB", 1 << 20}, {"25MB", 25 << 20}} {
			data := []byte(strings.Repeat(unit[name], size.bytes/len(unit[name])))
			b.Run(name[2:]+"/"+size.name, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Read(context.Background(), name, "", data, Limits{Text: 256 << 20}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkExtract measures the work of a child process, without starting one.
func BenchmarkExtract(b *testing.B) {
	page := readFile(b, "testdata/page.html")
	begin, end := strings.Index(page, "<h1>"), strings.Index(page, "</main>")
	paragraphs := styled("Heading1", "Head") + par("some text of a paragraph") + "<w:tbl>" + row("a", "b") +
		row("c", "d") + "</w:tbl>"
	for _, size := range []struct {
		name  string
		bytes int
	}{{"10KB", 10 << 10}, {"1MB", 1 << 20}} {
		html := page[:begin] + strings.Repeat(page[begin:end], size.bytes/(end-begin)) + page[end:]
		docx := docxFile(b, map[string]string{"document": strings.Repeat(paragraphs, size.bytes/len(paragraphs))})
		pdf := onePage(strings.Repeat("BT /F1 10 Tf 50 700 Td (A line of text on a page) Tj ET\n", size.bytes/56), "")
		for _, c := range []struct {
			format Format
			data   []byte
		}{{FormatHTML, []byte(html)}, {FormatDOCX, docx}, {FormatPDF, pdf}} {
			b.Run(string(c.format)+"/"+size.name, func(b *testing.B) {
				b.SetBytes(int64(size.bytes))
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := extractHere(b, c.format, "a", "", c.data); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkChild measures reading a small file in a child process.
func BenchmarkChild(b *testing.B) {
	for b.Loop() {
		if _, err := Read(context.Background(), "a.html", "", []byte("<p>text"), Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
