package gateways

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"golang.org/x/net/html/atom"

	"satchel/agent/markup"
)

// htmlText returns the text of an HTML email that its reader sees: tags are
// removed, block elements become lines. If all of it is hidden, which may be
// broken HTML, it returns the hidden text.
func htmlText(source string) string {
	var shown, all strings.Builder
	var hide hiding
	write := func(text []byte) {
		all.Write(text)
		if hide.element == "" {
			shown.Write(text)
		}
	}
	for reader, raw := markup.New([]byte(source)), false; ; {
		switch kind := reader.Next(); kind {
		case markup.End:
			return cmp.Or(collapse(shown.String()), collapse(all.String()))
		case markup.Text:
			if !raw {
				write(bytes.ReplaceAll(reader.Text(), []byte("\n"), []byte(" ")))
			}
		default:
			raw = false
			hide.tag(reader, kind)
			switch atom.Lookup(reader.Name()) {
			case atom.Script, atom.Style, atom.Title: // text-only content
				raw = kind == markup.StartTag
			case atom.Br, atom.P, atom.Div, atom.Tr, atom.Li, atom.Ul, atom.Ol, atom.H1, atom.H2, atom.H3, atom.H4,
				atom.Blockquote, atom.Table, atom.Hr:
				write([]byte("\n"))
			}
		}
	}
}

// hiding follows a page through the elements that it hides.
type hiding struct {
	element string // the hidden element; "": none
	depth   int    // of elements of the same name
}

// voidElements have no end tag.
var voidElements = []atom.Atom{atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input,
	atom.Link, atom.Meta, atom.Source, atom.Track, atom.Wbr}

// tag takes the next tag into account.
func (h *hiding) tag(reader *markup.Reader, kind markup.Kind) {
	name := string(reader.Name())
	switch {
	case h.element == "p" && kind == markup.StartTag && name == "p": // it ends the one before
		h.element = ""
	case h.element != "" && name != h.element:
		return
	case h.element != "" && kind == markup.StartTag:
		h.depth++
		return
	case h.element != "":
		if h.depth--; h.depth == 0 {
			h.element = ""
		}
		return
	}
	if kind == markup.StartTag &&
		!slices.Contains(voidElements, atom.Lookup(reader.Name())) &&
		isHidden(reader) {
		h.element, h.depth = name, 1
	}
}

// isHidden reports whether an element's own attributes hide it.
func isHidden(r *markup.Reader) bool {
	hidden := false
	for key, value, ok := r.Attr(); ok; key, value, ok = r.Attr() {
		switch string(key) {
		case "hidden":
			hidden = true
		case "style":
			hidden = hidden || hidesElement(string(value))
		}
	}
	return hidden
}

// hidesElement reports whether a style hides an element. A font size of 0 does
// not: it removes the gaps between columns, whose texts have sizes of their own.
func hidesElement(style string) bool {
	values := map[string]string{}
	for declaration := range strings.SplitSeq(strings.ToLower(style), ";") {
		property, value, _ := strings.Cut(declaration, ":")
		value, _, _ = strings.Cut(value, "!")
		values[strings.TrimSpace(property)] = strings.TrimSpace(value)
	}
	clipped := strings.Contains(values["overflow"]+values["overflow-y"], "hidden")
	empty := slices.ContainsFunc(
		[]string{"max-height", "height", "max-width", "width"},
		func(size string) bool { return isZero(values[size]) },
	)
	return values["display"] == "none" ||
		values["visibility"] == "hidden" ||
		isZero(values["opacity"]) ||
		clipped && empty
}

// isZero reports whether a length or a number is zero.
func isZero(value string) bool {
	return strings.HasPrefix(value, "0") && strings.Trim(value, "0.empxtrin%") == ""
}

// collapse merges repeated spaces and repeated blank lines.
func collapse(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" || len(lines) > 0 && lines[len(lines)-1] != "" {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
