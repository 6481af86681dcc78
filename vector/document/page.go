package document

import (
	"bytes"
	"context"
	"net/url"
	"path"
	"strings"

	"github.com/markusmobius/go-trafilatura"
	"golang.org/x/net/html"
)

// formatPage is HTML of which only the main content is wanted. No file has it.
const formatPage Format = "page"

// maxPageText bounds the text of one crawled page, in bytes.
const maxPageText = 4 << 20

// ReadPage extracts the text of a page that was fetched from an address. Of
// HTML, which must be UTF-8, it keeps the main content and leaves out what the
// site repeats on every page. A page without text is no error; errors are
// those of Read.
func ReadPage(ctx context.Context, address, media string, data []byte) (title, markdown string, err error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return "", "", nil
	}
	var doc *Document
	limits := Limits{Text: maxPageText}
	if media == "text/html" || media == "application/xhtml+xml" {
		in := input{name: address, media: "text/html; charset=utf-8", data: data, limits: limits.orDefaults()}
		doc, err = isolated(formatPage, wholeMarkdown)(ctx, in)
	} else {
		doc, err = Read(ctx, nameless(address, media), media, data, limits)
	}
	if err != nil {
		return "", "", err
	}
	return doc.Title, doc.Text, nil
}

// nameless is a file name of the format that a media type says, since what an
// address ends in says little.
func nameless(address, media string) string {
	switch media {
	case "application/pdf":
		return "page.pdf"
	case "text/markdown", "text/x-markdown":
		return "page.md"
	}
	if u, err := url.Parse(address); err == nil && byExtension[strings.ToLower(path.Ext(u.Path))] == FormatMarkdown {
		return "page.md" // servers send Markdown as plain text
	}
	return "page.txt"
}

// enough is the share of a page's text that the main content must hold, or
// else the page is read whole: extraction sometimes takes a small part of a
// page for all of it.
const enough = 0.25

// extractPage turns the main content of a page into Markdown.
func extractPage(in input, out *sink) error {
	var whole strings.Builder
	around := &sink{left: in.limits.Text, limit: in.limits.Text, emit: func(_ int, text string) error {
		whole.WriteString(text)
		return nil
	}}
	if err := extractHTML(in, around); err != nil {
		return err
	}
	out.title = around.title
	text := mainContent(in)
	if isBlank(whole.String()) || float64(inked(text)) < enough*float64(inked(whole.String())) {
		text = whole.String()
	}
	return out.write(0, text)
}

// mainContent is "" where none is found, or where the library stumbles.
func mainContent(in input) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	address, err := url.Parse(in.name)
	if err != nil {
		return ""
	}
	found, err := trafilatura.Extract(bytes.NewReader(in.data), trafilatura.Options{
		OriginalURL: address, IncludeLinks: true, ExcludeComments: true, EnableFallback: true,
		HtmlDateMode: trafilatura.Disabled,
	})
	if err != nil || found.ContentNode == nil {
		return ""
	}
	root := &html.Node{Type: html.DocumentNode}
	if parent := found.ContentNode.Parent; parent != nil {
		parent.RemoveChild(found.ContentNode)
	}
	root.AppendChild(found.ContentNode)
	page := htmlPage{base: address}
	page.clean(root, true)
	text, err = toMarkdown(root)
	if err != nil {
		return ""
	}
	return text
}

// inked counts what is not white space, about.
func inked(text string) int {
	return len(text) - strings.Count(text, " ") - strings.Count(text, "\n")
}
