package gateways

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// htmlText is the text of an email written in HTML: tags go, blocks become
// lines.
func htmlText(source string) string {
	var out strings.Builder
	hidden := atom.Atom(0) // the element whose text does not show
	tokens := html.NewTokenizer(strings.NewReader(source))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			break
		}
		token := tokens.Token()
		switch {
		case hidden != 0:
			if kind == html.EndTagToken && token.DataAtom == hidden {
				hidden = 0
			}
		case kind == html.TextToken:
			out.WriteString(strings.ReplaceAll(token.Data, "\n", " "))
		case kind == html.StartTagToken || kind == html.EndTagToken || kind == html.SelfClosingTagToken:
			switch token.DataAtom {
			case atom.Script, atom.Style, atom.Title:
				if kind == html.StartTagToken {
					hidden = token.DataAtom
				}
			case atom.Br, atom.P, atom.Div, atom.Tr, atom.Li, atom.Ul, atom.Ol, atom.H1, atom.H2, atom.H3, atom.H4, atom.Blockquote, atom.Table, atom.Hr:
				out.WriteByte('\n')
			}
		}
	}
	var lines []string
	for line := range strings.SplitSeq(out.String(), "\n") {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" || len(lines) > 0 && lines[len(lines)-1] != "" {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
