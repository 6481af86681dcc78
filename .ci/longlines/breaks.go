package main

import (
	"bytes"
	"errors"
	"go/ast"
	"go/format"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// rounds is how often a file is formatted at most: each round breaks one level of nesting.
const rounds = 60

// Ways to break a line; a line that one did not shorten is left to the next.
const (
	byGroup = iota
	byText
	byWeakGroup
	notAtAll
)

// reformat breaks the long lines of a file as far as possible.
func reformat(name string, text []byte) ([]byte, error) {
	tried := map[string]int{} // the ways that were tried with a line and left it as it was
	for range rounds {
		s, err := parse(name, text)
		if err != nil {
			return nil, err
		}
		edits, lines := s.edits(tried)
		if len(edits) == 0 {
			break
		}
		broken, err := format.Source(apply(text, edits))
		if err != nil {
			return nil, err
		}
		if bytes.Equal(broken, text) {
			if len(lines) == 0 {
				return nil, errors.New("the layout does not settle")
			}
			for _, line := range lines {
				tried[line]++
			}
		}
		text = broken
	}
	return text, nil
}

// edits returns the changes of one round, and the lines that they break. Texts are broken
// when all else is, since it is only then known where they begin.
func (s *source) edits(tried map[string]int) (edits []edit, lines []string) {
	for _, of := range []func() []edit{s.comments, s.statements, s.halfBroken, s.dense} {
		if edits := of(); len(edits) > 0 {
			return edits, nil
		}
	}
	long, allowed := s.long(), s.allowed()
	onlyPadded := !slices.ContainsFunc(long, func(line int) bool {
		return !isPadded(s.lineText(line))
	})
	for way := byGroup; way < notAtAll && len(edits) == 0; way++ {
		covered := -1 // the last line that an edit of this round may move
		for _, line := range long {
			text := s.lineText(line)
			if line <= covered || tried[text] > way || way == byText && !onlyPadded && isPadded(text) {
				continue
			}
			found, last := s.breakLine(line, way, allowed)
			if len(found) > 0 && (len(edits) == 0 || found[0].from >= edits[len(edits)-1].to) {
				edits, lines = append(edits, found...), append(lines, text)
				covered = max(last, line)
			}
		}
	}
	return edits, lines
}

// isPadded reports whether a row is wide because another one of its table is: it may fit
// once that is broken.
var isPadded = regexp.MustCompile(`^\t+\S.*:  +\S`).MatchString

// breakLine returns the edits that break a line, and the last line of what they are in.
func (s *source) breakLine(line, way int, allowed func(int) int) ([]edit, int) {
	if way == byText {
		return s.splitText(line), line
	}
	p := s.picker(line, allowed(line), way == byWeakGroup)
	g := p.pick(s.tree)
	if g == nil {
		return nil, line
	}
	return p.edits(g), s.lineOf(g.node.End())
}

// edits returns the edits that break a group.
func (p *picker) edits(g *group) (edits []edit) {
	slices.SortFunc(g.points, func(a, b point) int {
		return a.offset - b.offset
	})
	for _, point := range p.filled(g) {
		if point.joins > 0 {
			edits = append(edits, edit{point.offset, point.joins, point.insert})
		} else {
			edits = append(edits, edit{point.offset, point.offset, point.insert + "\n"})
		}
	}
	return edits
}

// filled returns those of the points of a group that are used: the optional ones only
// where the line would have too many columns.
func (p *picker) filled(g *group) (points []point) {
	indent := p.indent(p.number)
	if p.at(g.node.Pos()) >= p.from { // what follows is inside
		indent += tabWidth
	}
	begin := p.from // of what is on the present line
	columns := func(end int) int {
		if begin == p.from {
			return p.column(end)
		}
		return indent + width(bytes.TrimLeft(p.text[begin:end], " "))
	}
	var last, before *point // optional ones
	for _, next := range append(g.points, point{offset: p.to, optional: true}) {
		onLine := next.offset >= p.from && next.offset <= p.to
		if onLine &&
			last != nil &&
			last.offset > begin &&
			columns(next.offset) > limit {
			if next.offset-last.offset < tiny &&
				next.offset == p.to &&
				before != nil &&
				before.offset > begin {
				last = before // so that not only a bracket or a short word is left
			}
			points, begin = append(points, *last), last.offset
		}
		switch {
		case next.joins > 0:
			if !next.optional || onLine && begin > p.from {
				points = append(points, next)
			}
		case !next.optional:
			if points = append(points, next); onLine {
				begin = next.offset
			}
		case onLine:
			last, before = &next, last
		}
	}
	return points
}

// statements returns the edits that put the statements of functions on lines, where
// several are on one.
func (s *source) statements() (edits []edit) {
	ast.Inspect(s.tree, func(n ast.Node) bool {
		body, isBlock := n.(*ast.BlockStmt)
		if isBlock && len(body.List) > 1 && s.lineOf(body.Lbrace) == s.lineOf(body.Rbrace) {
			open, closing := s.at(body.Lbrace)+1, s.at(body.Rbrace)
			edits = append(edits, edit{open, open, "\n"}, edit{closing, closing, "\n"})
			return false
		}
		return true
	})
	return edits
}

// halfBroken returns the edits that break the rest of what is broken in part: arguments,
// parameters and fields have a line each, or none of them has.
func (s *source) halfBroken() (edits []edit) {
	end := 0 // of the last edit
	complete := func(open, closing token.Pos, list []ast.Node) {
		if len(list) < 2 ||
			!open.IsValid() ||
			s.at(open) < end ||
			!s.isBroken(open, list) {
			return
		}
		for _, point := range s.separate(open, closing, list) {
			if !point.optional {
				edits = append(edits, edit{point.offset, point.offset, point.insert + "\n"})
				end = point.offset
			}
		}
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			complete(n.Lparen, n.Rparen, nodes(n.Args))
		case *ast.FuncType:
			complete(n.Params.Opening, n.Params.Closing, nodes(n.Params.List))
		case *ast.CompositeLit:
			if list := nodes(n.Elts); isKeyed(list) && !isTable(s.name) {
				complete(n.Lbrace, n.Rbrace, list)
			}
		}
		return true
	})
	return edits
}

// isBroken reports whether some of the nodes in brackets begin on another line than the
// bracket or the node before them ends.
func (s *source) isBroken(open token.Pos, list []ast.Node) bool {
	line := s.lineOf(open)
	for _, n := range list {
		if s.lineOf(n.Pos()) > line {
			return true
		}
		line = s.lineOf(n.End())
	}
	return false
}

// A line with more than denseTokens is broken although there is room, if it has a
// function, a literal of several fields or a condition of several terms; one with more
// than crowdedTokens also if it has a call of several arguments.
const (
	denseTokens   = 21
	crowdedTokens = 30
)

// dense returns the edits that break dense lines.
func (s *source) dense() (edits []edit) {
	if isTable(s.name) || strings.HasSuffix(s.name, "_test.go") {
		return nil
	}
	counts := map[int]int{}
	scan(s.text, 0, func(offset int, kind token.Token, literal string) {
		if kind != token.SEMICOLON || literal == ";" {
			counts[s.line(offset)]++
		}
	})
	covered := -1
	for line := range s.lines {
		if counts[line] <= denseTokens || line <= covered {
			continue
		}
		p := s.picker(line, limit, false)
		if g := p.pick(s.tree); g != nil && isManyFold(g, counts[line] > crowdedTokens) {
			edits, covered = append(edits, p.edits(g)...), s.lineOf(g.node.End())
		}
	}
	return edits
}

// isManyFold reports whether a group has enough parts for lines of their own.
func isManyFold(g *group, crowded bool) bool {
	lines := 0
	for _, point := range g.points {
		if !point.optional {
			lines++
		}
	}
	switch n := g.node.(type) {
	case *ast.FuncLit, *ast.FuncDecl:
		return true
	case *ast.CompositeLit:
		return isKeyed(nodes(n.Elts)) && lines > 3
	case *ast.BinaryExpr:
		return (n.Op == token.LAND || n.Op == token.LOR) &&
			(lines > 2 || crowded && lines > 1) &&
			g.width > limit/2
	case *ast.CallExpr:
		return crowded && lines > 3
	case *ast.FuncType:
		return crowded && lines > 5
	}
	return false
}
