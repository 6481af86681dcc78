package document

import (
	"fmt"
	"strconv"
	"strings"
)

// In the result of ReadPage, a page of a document such as a PDF starts with a
// line of a form feed and the page's number. There are no other form feeds.

// paged returns the text of a document with its page markers.
func paged(doc *Document) string {
	if doc.Pages == 0 {
		return withoutFormFeeds(doc.Text)
	}
	var b strings.Builder
	page := int32(-1)
	for _, block := range doc.Blocks {
		if block.Page != page {
			page = block.Page
			fmt.Fprintf(&b, "\f%d\n", page)
		}
		b.WriteString(withoutFormFeeds(doc.TextOf(block)) + "\n\n")
	}
	return b.String()
}

// withoutFormFeeds returns text without form feeds.
func withoutFormFeeds(text string) string { return strings.ReplaceAll(text, "\f", " ") }

// ParsePage finds the blocks of a result of ReadPage: of Markdown, or of the
// pages of a PDF.
func ParsePage(text string, limits Limits) *Document {
	if !strings.HasPrefix(text, "\f") {
		return Markdown(withoutFormFeeds(text), limits)
	}
	var builder strings.Builder
	var pages []span
	for _, part := range strings.Split(text, "\f")[1:] {
		number, body, _ := strings.Cut(part, "\n")
		page, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			page, body = 0, part
		}
		start := builder.Len()
		builder.WriteString(body)
		builder.WriteByte('\n')
		pages = append(pages, span{int32(max(page, 0)), start, builder.Len()})
	}
	o := newOutline(builder.String(), limits.orDefaults())
	pageParagraphs(o, pages)
	return &Document{
		Format: FormatPDF,
		Text:   o.text,
		Blocks: o.blocks,
		Pages:  int(pages[len(pages)-1].page),
	}
}
