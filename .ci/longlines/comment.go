package main

import (
	"go/ast"
	"regexp"
	"strings"
)

// comments returns the edits for long lines that have a comment: it is wrapped, or moved
// above the code that it follows.
func (s *source) comments() (edits []edit) {
	long := map[int]bool{}
	for _, line := range s.long() {
		long[line] = true
	}
	done := -1
	for _, group := range s.tree.Comments {
		for _, c := range group.List {
			line := s.lineOf(c.Pos())
			if !long[line] || line <= done || !strings.HasPrefix(c.Text, "// ") {
				continue
			}
			from, to := s.bounds(line)
			code := strings.TrimSpace(string(s.text[from:s.at(c.Pos())]))
			if code != "" {
				edits = append(edits, s.moveComment(line, c)...)
				continue
			}
			lines := []string{c.Text}
			for _, next := range group.List {
				if s.lineOf(next.Pos()) == line+len(lines) && continues(next.Text) {
					lines = append(lines, next.Text)
				}
			}
			done = line + len(lines) - 1
			_, to = s.bounds(done)
			wrapped := wrapComment(strings.Repeat("\t", s.indent(line)/tabWidth), lines)
			if wrapped != string(s.text[from:to]) {
				edits = append(edits, edit{from, to, wrapped})
			}
		}
	}
	return edits
}

// continues reports whether a line of a comment continues the paragraph before it.
var continues = regexp.MustCompile(`^// [^ \t#-]`).MatchString

// wrapComment fills lines with the words of a comment.
func wrapComment(indent string, lines []string) string {
	var words []string
	for _, line := range lines {
		words = append(words, strings.Fields(strings.TrimPrefix(line, "//"))...)
	}
	return wrap(indent+"//", words)
}

// wrap fills lines that begin with a prefix with words.
func wrap(prefix string, words []string) string {
	var lines []string
	line := prefix
	for _, word := range words {
		if line != prefix && width(line+" "+word) > limit {
			lines, line = append(lines, line), prefix
		}
		line += " " + word
	}
	return strings.Join(append(lines, line), "\n")
}

// moveComment returns the edits that move a comment from the end of a line to a line of
// its own: above the code, or below what begins a block and has no place above it.
func (s *source) moveComment(line int, c *ast.Comment) []edit {
	from, to := s.bounds(line)
	before := string(s.text[from:s.at(c.Pos())])
	code := strings.TrimSpace(before)
	indent := before[:len(before)-len(strings.TrimLeft(before, "\t "))]
	remove := edit{from + len(strings.TrimRight(before, "\t ")), to, ""}
	switch {
	case inBlock.MatchString(code):
		remove.insert = "\n" + wrapComment(indent+"\t", []string{c.Text})
		return []edit{remove}
	case closing.MatchString(code):
		return nil
	}
	return []edit{{from, from, wrapComment(indent, []string{c.Text}) + "\n"}, remove}
}

var (
	inBlock = regexp.MustCompile(`^(\}|func\b).*\{$|^(case|default)\b.*:$`)
	closing = regexp.MustCompile(`^[)\]}]`)
)
