package document

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// manyPages is a PDF with a page for each text; a page of "" is blank.
func manyPages(texts ...string) []byte {
	kids := make([]string, len(texts))
	var objects []string
	for i, text := range texts {
		kids[i] = fmt.Sprintf("%d 0 R", 4+2*i)
		objects = append(
			objects,
			fmt.Sprintf("<</Type/Page/Parent 2 0 R/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>>>>>", 5+2*i),
			pdfStream("", "BT /F1 12 Tf 14 TL 50 700 Td "+text+" ET"),
		)
	}
	return pdfBytes("", append([]string{
		"<</Type/Catalog/Pages 2 0 R>>",
		fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", strings.Join(kids, " "), len(texts)),
		helvetica,
	}, objects...)...)
}

func TestReadPageKeepsPages(t *testing.T) {
	file := manyPages("(The pump) Tj 0 -40 Td (# runs) Tj", "", "(The motor hums) Tj")
	page, err := ReadPage(t.Context(), "https://example.com/pump", "application/pdf", file)
	if err != nil || page.Text != "\f1\nThe pump\n\n# runs\n\n\f3\nThe motor hums\n\n" {
		t.Fatalf("got %q, %v", page.Text, err)
	}
	doc := ParsePage(page.Text, Limits{})
	got := ""
	for _, b := range doc.Blocks {
		got += fmt.Sprintf("%d %s %s\n", b.Page, b.Kind, doc.TextOf(b))
	}
	if got != "1 paragraph The pump\n1 paragraph # runs\n3 paragraph The motor hums\n" || doc.Pages != 3 {
		t.Errorf("%d pages:\n%s", doc.Pages, got)
	}
}

func TestReadPageOfTextHasNoPages(t *testing.T) {
	page, err := ReadPage(t.Context(), "https://example.com/rfc.txt", "text/plain", []byte("\f7\nRFC 1\n\f\nend\n"))
	if err != nil || strings.Contains(page.Text, "\f") {
		t.Fatalf("got %q, %v", page.Text, err)
	}
	doc := ParsePage(page.Text, Limits{})
	if len(doc.Blocks) != 2 || doc.Blocks[0].Page != 0 || doc.Pages != 0 {
		t.Errorf("got %+v", doc)
	}
}

func FuzzOfPage(f *testing.F) {
	f.Add("\f1\na\n\nb\n\n\f3\nc\n")
	f.Add("\f\f-1\n\f99999999999\nx")
	f.Add("# a\f2\nb")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			return // not what ReadPage returns
		}
		doc, end := ParsePage(text, Limits{}), uint32(0)
		for _, b := range doc.Blocks {
			if b.Start < end || b.End <= b.Start || int(b.End) > len(doc.Text) || b.Page < 0 {
				t.Fatalf("block %+v of %q", b, doc.Text)
			}
			end = b.End
		}
	})
}
