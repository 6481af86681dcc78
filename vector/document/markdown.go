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
	doc := markdownDocument(text, in.limits)
	doc.Lined = true
	return doc, nil
}

// AsMarkdown parses the text of a document as Markdown.
func (d *Document) AsMarkdown() *Document {
	doc := Markdown(d.Text, Limits{})
	doc.Lined = d.Lined
	for _, at := range d.Joined {
		at += uint32(len(doc.Text)) - uint32(len(d.Text)) // by what front matter lost
		doc.Joined = append(doc.Joined, at)
	}
	return doc
}

// Markdown finds the blocks of a text known to be Markdown, such as a crawled
// page. Its lines end in \n.
func Markdown(text string, limits Limits) *Document {
	doc := markdownDocument(text, limits.orDefaults())
	doc.Format = FormatMarkdown
	return doc
}

func markdownDocument(text string, limits Limits) *Document {
	front, body := cutFrontMatter(text)
	var joined []uint32
	if len(body) < len(text) {
		text, joined = front+"\n"+body, []uint32{0} // without the first line
	}
	o := newOutline(text, limits)
	o.add(KindRow, 0, 0, len(front))
	markMarkdown(o, len(text)-len(body), len(text))
	doc := &Document{
		Text:   text,
		Blocks: o.blocks,
		Title:  frontMatterTitle(front),
		Joined: joined,
	}
	if doc.Title == "" {
		doc.Title = o.title()
	}
	return doc
}

// maxFrontMatter limits the length of front matter, in bytes.
const maxFrontMatter = 64 << 10

// cutFrontMatter splits off front matter: the lines between a first line of
// --- (YAML) or +++ (TOML) and the next such line. front is "" if there is
// none.
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
				break // a thematic break, not front matter
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

// markMarkdown finds the blocks of text[start:end]. It follows CommonMark and
// GitHub's tables for blocks at the outermost level; block quotes and HTML
// blocks count as paragraphs.
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

// line returns the line at pos without its line ending, and the start of the
// next.
func (m *mdScanner) line(pos int) (string, int) {
	next := lineEnd(m.text, pos, m.end)
	return strings.TrimSuffix(m.text[pos:next], "\n"), next
}

// block finds the block at pos and returns the offset after it.
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

// lineKind returns what the line at pos starts; level is that of a heading.
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
		if rule, _ := m.line(next); isTableRule(rule) {
			return lineTable, 0
		}
	}
	return lineText, 0
}

// fence finds a fenced code block; one without an end extends to the end of
// the text.
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

// table finds a table: header, delimiter row, and rows up to the first line
// that is blank or starts another block.
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

// list finds a list. It continues over blank lines as long as an item or an
// indented line follows, and ends at a code fence, which is a separate block.
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

// maxSetext limits the text, in bytes, that an underline of - or = makes a
// heading. Below a longer one it is a thematic break.
const maxSetext = 400

// paragraph finds a paragraph, or a heading if it is underlined with = or -.
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
