package gateways

import (
	"bytes"
	"strings"

	"golang.org/x/net/html/atom"

	"satchel/agent/markup"
)

// htmlText returns the text of an HTML email: tags are removed, block elements
// become lines.
func htmlText(source string) string {
	var out strings.Builder
	for r, hidden := markup.New([]byte(source)), false; ; {
		switch kind := r.Next(); kind {
		case markup.End:
			return collapse(out.String())
		case markup.Text:
			if !hidden {
				out.Write(bytes.ReplaceAll(r.Text(), []byte("\n"), []byte(" ")))
			}
		default:
			hidden = false
			switch atom.Lookup(r.Name()) {
			case atom.Script, atom.Style, atom.Title: // text-only content
				hidden = kind == markup.StartTag
			case atom.Br, atom.P, atom.Div, atom.Tr, atom.Li, atom.Ul, atom.Ol, atom.H1, atom.H2, atom.H3, atom.H4, atom.Blockquote, atom.Table, atom.Hr:
				out.WriteByte('\n')
			}
		}
	}
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
