package document

import (
	"context"
	"strings"
)

func readMarkdown(_ context.Context, in input) (*Document, error) {
	text, err := in.text(FormatMarkdown)
	if err != nil {
		return nil, err
	}
	return markdownDocument(text, in.limits), nil
}

// Markdown marks the blocks of a text that is known to be Markdown: of a
// crawled page, say. Its lines end in \n.
func Markdown(text string, limits Limits) *Document {
	doc := markdownDocument(text, limits.orDefaults())
	doc.Format = FormatMarkdown
	return doc
}

func markdownDocument(text string, limits Limits) *Document {
	front, body := cutFrontMatter(text)
	if len(body) < len(text) {
		text = front + "\n" + body
	}
	o := newOutline(text, limits)
	o.add(KindRow, 0, 0, len(front))
	markMarkdown(o, len(text)-len(body), len(text))
	doc := &Document{Text: text, Blocks: o.blocks, Title: frontMatterTitle(front)}
	if doc.Title == "" {
		doc.Title = o.title()
	}
	return doc
}

// maxFrontMatter bounds the search for the line that ends it, in bytes.
const maxFrontMatter = 64 << 10

// cutFrontMatter splits off the lines between a first line of --- (YAML) or
// +++ (TOML) and the next such line. Without them front is "".
func cutFrontMatter(text string) (front, body string) {
	for _, fence := range []string{"---\n", "+++\n"} {
		rest, ok := strings.CutPrefix(text, fence)
		if !ok {
			continue
		}
		for pos := 0; pos < min(len(rest), maxFrontMatter); {
			next := lineEnd(rest, pos, len(rest))
			line := strings.TrimRight(rest[pos:next], " \t\n")
			if line == fence[:3] || line == "..." && fence[0] == '-' {
				return rest[:pos], rest[next:]
			}
			if pos == 0 && !strings.ContainsAny(line, ":=#") {
				break // a thematic break, and text
			}
			pos = next
		}
	}
	return "", text
}

func frontMatterTitle(front string) string {
	for line := range strings.Lines(front) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			key, value, ok = strings.Cut(line, "=")
		}
		if ok && strings.TrimRight(key, " \t") == "title" {
			return clipTitle(strings.Trim(strings.TrimSpace(value), `"'`))
		}
	}
	return ""
}

// markMarkdown marks the blocks of text[start:end]. It follows CommonMark and
// GitHub's tables as far as blocks at the outermost level go; block quotes and
// HTML blocks pass as paragraphs.
func markMarkdown(o *outline, start, end int) {
	m := mdScanner{outline: o, end: end}
	for pos := start; pos < end; {
		pos = m.block(pos)
	}
}

type mdScanner struct {
	*outline
	end int
}

// line returns the line at pos without its end, and where the next begins.
func (m *mdScanner) line(pos int) (string, int) {
	next := lineEnd(m.text, pos, m.end)
	return strings.TrimSuffix(m.text[pos:next], "\n"), next
}

// block marks the block that begins at pos and returns the offset after it.
func (m *mdScanner) block(pos int) int {
	line, next := m.line(pos)
	switch kind, level := m.lineKind(pos, line, next); kind {
	case lineBlank:
		return next
	case lineFence:
		return m.fence(pos, line, next)
	case lineHeading:
		m.add(KindHeading, level, pos, next)
		return next
	case lineTable:
		return m.table(pos)
	case lineItem:
		return m.list(pos)
	}
	return m.paragraph(pos)
}

type mdLine uint8

const (
	lineText mdLine = iota
	lineBlank
	lineFence
	lineHeading
	lineTable // the first of a table
	lineItem  // the first of a list item
)

// lineKind says what begins with the line at pos; level is of a heading.
func (m *mdScanner) lineKind(pos int, line string, next int) (kind mdLine, level int) {
	trimmed := strings.TrimLeft(line, " \t")
	indent := len(line) - len(trimmed)
	switch {
	case isBlank(trimmed):
		return lineBlank, 0
	case fenceMarker(trimmed) != "":
		return lineFence, 0
	case indent < 4 && atxLevel(trimmed) > 0:
		return lineHeading, atxLevel(trimmed)
	case isListItem(trimmed):
		return lineItem, 0
	case strings.Contains(line, "|") && next < m.end:
		if under, _ := m.line(next); isTableRule(under) {
			return lineTable, 0
		}
	}
	return lineText, 0
}

// fence marks a fenced code block; one that is never closed runs to the end.
func (m *mdScanner) fence(pos int, line string, next int) int {
	marker := fenceMarker(strings.TrimLeft(line, " \t"))
	for next < m.end {
		line, next = m.line(next)
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, marker) && strings.Trim(line, marker[:1]) == "" {
			break
		}
	}
	m.add(KindFence, 0, pos, next)
	return next
}

// table marks a table: header, rule, and rows up to the first line that is
// blank or begins another block.
func (m *mdScanner) table(pos int) int {
	_, next := m.line(pos)
	_, next = m.line(next)
	for next < m.end {
		line, after := m.line(next)
		if kind, _ := m.lineKind(next, line, after); kind != lineText && kind != lineTable {
			break
		}
		next = after
	}
	m.add(KindTable, 0, pos, next)
	return next
}

// list marks a list. It goes on over blank lines as long as what follows is an
// item or indented, and ends where a fence begins, which is marked by itself.
func (m *mdScanner) list(pos int) int {
	_, next := m.line(pos)
	blank := false
	for next < m.end {
		line, after := m.line(next)
		kind, _ := m.lineKind(next, line, after)
		indented := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")
		if kind == lineFence || kind == lineHeading || kind == lineTable ||
			kind == lineText && blank && !indented {
			break
		}
		blank = kind == lineBlank
		next = after
	}
	m.add(KindList, 0, pos, next)
	return next
}

// maxSetext is the longest text, in bytes, that a line of - or = under it makes
// a heading. Under a longer one it is a thematic break.
const maxSetext = 400

// paragraph marks a paragraph, or the heading that it is when a line of = or -
// stands under it.
func (m *mdScanner) paragraph(pos int) int {
	_, next := m.line(pos)
	for next < m.end {
		line, after := m.line(next)
		if level := setextLevel(line); level > 0 && next-pos <= maxSetext {
			m.add(KindHeading, level, pos, after)
			return after
		}
		if kind, _ := m.lineKind(next, line, after); kind != lineText {
			break
		}
		next = after
	}
	m.add(KindParagraph, 0, pos, next)
	return next
}
