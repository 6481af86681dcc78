package main

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
)

// allowed returns for each line of a Go file how many columns it may have: any number with
// a struct tag or in a raw text of several lines, more in a row of the tables of routes
// and node types.
func (s *source) allowed() func(line int) int {
	exceptions := map[int]int{}
	mark := func(from, to, columns int) {
		for ; from <= to; from++ {
			exceptions[from] = columns
		}
	}
	if isTable(s.name) {
		ast.Inspect(s.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				for _, row := range n.Elts {
					if s.lineOf(row.Pos()) > s.lineOf(n.Lbrace) {
						mark(s.lineOf(row.Pos()), s.lineOf(row.End()), rowLimit)
					}
				}
			case *ast.FuncLit: // what runs is no row
				mark(s.lineOf(n.Body.Lbrace)+1, s.lineOf(n.Body.Rbrace)-1, limit)
			}
			return true
		})
	}
	const unlimited = 1 << 30
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil && n.Tag.Value[0] == '`' {
				exceptions[s.lineOf(n.Tag.Pos())] = unlimited
			}
		case *ast.BasicLit:
			if from, to := s.lineOf(n.Pos()), s.lineOf(n.End()); n.Kind == token.STRING && to > from {
				mark(from, to, unlimited)
			}
		}
		return true
	})
	return func(line int) int {
		if columns, found := exceptions[line]; found {
			return columns
		}
		return limit
	}
}

// isTable reports whether a file has the table of routes, or one of node types.
func isTable(name string) bool {
	types, _ := path.Match("flow/graph/types*.go", name)
	return (types || name == "httpapi/routes.go") && !strings.HasSuffix(name, "_test.go")
}

// long returns the lines that have more columns than they may.
func (s *source) long() (lines []int) {
	allowed := s.allowed()
	for line := range s.lines {
		if width(s.lineText(line)) > allowed(line) {
			lines = append(lines, line)
		}
	}
	return lines
}
