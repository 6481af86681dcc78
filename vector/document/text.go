package document

import (
	"context"
	"strings"
)

func readText(_ context.Context, in input) (*Document, error) {
	text, err := in.text(FormatText)
	if err != nil {
		return nil, err
	}
	text, joined := joinLines(text)
	o := newOutline(text, in.limits)
	markParagraphs(o, 0, len(text))
	return &Document{
		Text:   text,
		Blocks: o.blocks,
		Lined:  true,
		Joined: joined,
	}, nil
}

// text returns the whole input as UTF-8.
func (in input) text(format Format) (string, error) {
	data, err := in.decode(format)
	if err != nil {
		return "", err
	}
	return lines(data), nil
}

// markParagraphs finds the paragraphs of text[start:end], separated by blank
// lines.
func markParagraphs(o *outline, start, end int) {
	for pos := start; pos < end; {
		next := lineEnd(o.text, pos, end)
		if isBlank(o.text[pos:next]) {
			o.add(KindParagraph, 0, start, pos)
			start = next
		}
		pos = next
	}
	o.add(KindParagraph, 0, start, end)
}

// lineEnd returns the offset after the line at pos.
func lineEnd(text string, pos, end int) int {
	if i := strings.IndexByte(text[pos:end], '\n'); i >= 0 {
		return pos + i + 1
	}
	return end
}

func isBlank(line string) bool { return strings.TrimSpace(line) == "" }
