package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"unicode/utf8"
)

// limit is the number of columns that a line may have, rowLimit of a row of the tables of
// routes and node types. A tab counts four.
const (
	limit    = 120
	rowLimit = 160
	tabWidth = 4
)

// source is a Go file, with the offsets at which its lines begin.
type source struct {
	name  string
	text  []byte
	tree  *ast.File
	lines []int
}

func parse(name string, text []byte) (*source, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &source{
		name:  name,
		text:  text,
		tree:  tree,
		lines: []int{0},
	}
	for i, char := range text {
		if char == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s, nil
}

// at returns the offset of a position.
func (s *source) at(pos token.Pos) int {
	return int(pos - s.tree.FileStart)
}

// line returns the number of the line, from 0, that an offset is in.
func (s *source) line(offset int) int {
	i, found := slices.BinarySearch(s.lines, offset)
	if !found {
		i--
	}
	return i
}

func (s *source) lineOf(pos token.Pos) int {
	return s.line(s.at(pos))
}

// bounds returns the offsets of a line without its end.
func (s *source) bounds(line int) (from, to int) {
	from, to = s.lines[line], len(s.text)
	if line+1 < len(s.lines) {
		to = s.lines[line+1] - 1
	}
	return from, to
}

func (s *source) lineText(line int) string {
	from, to := s.bounds(line)
	return string(s.text[from:to])
}

// indent returns the columns before the first sign of a line.
func (s *source) indent(line int) int {
	text := s.lineText(line)
	return width(text[:len(text)-len(strings.TrimLeft(text, "\t "))])
}

// column returns the columns of a line before an offset.
func (s *source) column(offset int) int {
	return width(string(s.text[s.lines[s.line(offset)]:offset]))
}

func width[text string | []byte](line text) int {
	return utf8.RuneCountInString(string(line)) + (tabWidth-1)*strings.Count(string(line), "\t")
}

// edit replaces a part of a text.
type edit struct {
	from, to int
	insert   string
}

// apply makes edits, which do not overlap.
func apply(text []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int {
		return a.from - b.from
	})
	var out bytes.Buffer
	done := 0
	for _, e := range edits {
		out.Write(text[done:e.from])
		out.WriteString(e.insert)
		done = e.to
	}
	out.Write(text[done:])
	return out.Bytes()
}
