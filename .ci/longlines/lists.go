package main

import (
	"bytes"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// between returns the points after the commas between nodes on the same line.
func (s *source) between(list []ast.Node) (points []point) {
	together := s.together(list)
	filled := s.isFilled(list)
	for i := 1; i < len(list); i++ {
		end, next := s.at(list[i-1].End()), s.at(list[i].Pos())
		comma := end + bytes.IndexByte(s.text[end:], ',') + 1
		optional := filled || together(i)
		if s.line(end) == s.line(next) {
			points = append(points, point{offset: comma, optional: optional})
		} else if optional && len(bytes.TrimSpace(s.text[comma:next])) == 0 {
			points = append(points, point{
				offset:   comma,
				insert:   " ",
				optional: true,
				joins:    next,
			})
		}
	}
	return points
}

// together returns which arguments are on the line of the one before: the value after its
// name, as for a log, short values of a format or a statement, and four or more that are
// tiny.
func (s *source) together(list []ast.Node) func(int) bool {
	if name := s.pairs(list); name >= 0 {
		return func(i int) bool {
			return i > name && (i-name)%2 == 1
		}
	}
	text := slices.IndexFunc(list, isString)
	if text >= 0 &&
		strings.ContainsAny(s.nodeText(list[text]), "%?") &&
		s.areShort(list[text+1:]) {
		return func(i int) bool { return i > text+1 }
	}
	from, to := 0, 0 // of the tiny ones
	for i := 0; i < len(list); i++ {
		begin := i
		for i < len(list) &&
			width(s.nodeText(list[i])) <= tiny &&
			isName(list[i]) {
			i++
		}
		if i-begin > max(3, to-from) {
			from, to = begin, i
		}
	}
	return func(i int) bool { return i > from && i < to }
}

// pairs returns where names with their values begin, as for a log, or -1.
func (s *source) pairs(list []ast.Node) int {
	text := slices.IndexFunc(list, isString)
	if text >= 0 && (len(list)-text)%2 == 1 {
		text++ // a message comes first
	}
	if text < 0 || len(list)-text < 4 || isKeyed(list) {
		return -1
	}
	values := false
	for i, n := range list[text:] {
		if i%2 == 0 && !pairName.MatchString(s.nodeText(n)) || !s.isFlat(n) {
			return -1
		}
		values = values || i%2 == 1 && !isString(n)
	}
	if !values {
		return -1
	}
	return text
}

var pairName = regexp.MustCompile(`^"[\w.-]+"$`)

// areShort reports whether nodes are names that fit into a line.
func (s *source) areShort(list []ast.Node) bool {
	columns := 0
	for _, n := range list {
		if !isName(n) {
			return false
		}
		columns += width(s.nodeText(n)) + 2
	}
	return len(list) > 1 && columns <= limit*2/3
}

func (s *source) nodeText(n ast.Node) string {
	return string(s.text[s.at(n.Pos()):s.at(n.End())])
}

func (s *source) isFlat(n ast.Node) bool {
	return s.lineOf(n.Pos()) == s.lineOf(n.End())
}

func isString(n ast.Node) bool {
	lit, isLiteral := n.(*ast.BasicLit)
	return isLiteral && lit.Kind == token.STRING
}

// isName reports whether a value is a constant or the name of a variable or a field.
func isName(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BasicLit, *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return isName(n.X)
	case *ast.UnaryExpr:
		return isName(n.X)
	case *ast.BinaryExpr:
		return isName(n.X) && isName(n.Y)
	}
	return false
}

// isFilled reports whether short elements in brackets fill lines: they are too many to
// have a line each.
func (s *source) isFilled(list []ast.Node) bool {
	if s.pairs(list) >= 0 {
		return false
	}
	switch first := list[0].(type) {
	case *ast.Field:
		return false
	case *ast.KeyValueExpr:
		if isIdent(first.Key) || len(list) <= 8 {
			return false
		}
	}
	columns, widest := 0, 0
	for _, n := range list {
		columns += width(s.nodeText(n)) + 2
		widest = max(widest, width(s.nodeText(n)))
	}
	return len(list) > 8 && columns < tiny*len(list) || len(list) > 5 && columns < tiny*3/4*len(list) && widest < tiny
}

func isKeyed(list []ast.Node) bool {
	if len(list) == 0 {
		return false
	}
	_, keyed := list[0].(*ast.KeyValueExpr)
	return keyed
}

func isIdent(n ast.Expr) bool {
	_, is := n.(*ast.Ident)
	return is
}

// separate returns the points that put nodes in brackets on lines of their own.
func (s *source) separate(open, closing token.Pos, list []ast.Node) (points []point) {
	first, last := s.at(open)+1, s.at(closing)
	if s.line(first) == s.lineOf(list[0].Pos()) {
		points = append(points, point{offset: first})
	}
	points = append(points, s.between(list)...)
	end := s.at(list[len(list)-1].End())
	if rest := s.text[end:last]; !bytes.Contains(rest, []byte("\n")) {
		comma := ","
		if bytes.Contains(rest, []byte(",")) {
			comma = ""
		}
		points = append(points, point{offset: last, insert: comma})
	}
	return points
}

func optional(points []point) []point {
	for i := range points {
		points[i].optional = true
	}
	return points
}

func nodes[N ast.Node](list []N) (all []ast.Node) {
	for _, n := range list {
		all = append(all, n)
	}
	return all
}
