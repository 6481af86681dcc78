package main

import (
	"bytes"
	"go/ast"
	"go/token"
	"slices"
)

// group is a part of the code that is broken as a whole: the arguments of a call, the
// elements of a literal, the terms of a condition.
type group struct {
	node   ast.Node
	points []point
	width  int // columns that it has on the line
}

// point is where a line can be broken.
type point struct {
	offset   int
	insert   string // before the end of the line: a comma, if the bracket needs one
	optional bool   // only where the line would be too long
	joins    int    // up to where insert replaces the text instead, if not 0: the line is joined with the next
}

// Widths, in columns: what is in brackets is worth breaking; what has a bracket and is the
// last argument begins on the line of the call; an argument that may share its line.
const (
	worthBreaking = 20
	worthHugging  = 24
	tiny          = 24
)

// picker chooses the group by which a line is broken: the outermost that helps.
type picker struct {
	*source
	number   int // of the line
	from, to int
	limit    int  // columns that the line may have
	weak     bool // what looks worse is allowed: after =, a comparison or a dot
}

func (s *source) picker(line, limit int, weak bool) *picker {
	from, to := s.bounds(line)
	return &picker{s, line, from, to, limit, weak}
}

// pick returns the group in a node, nil if it has none on the line.
func (p *picker) pick(n ast.Node) *group {
	if p.at(n.Pos()) > p.to || p.at(n.End()) < p.from {
		return nil
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		return p.call(n)
	case *ast.CompositeLit:
		return p.literal(n)
	case *ast.BinaryExpr:
		return p.binary(n)
	case *ast.FuncDecl:
		if g := p.block(n, n.Body); g != nil {
			return g
		}
	case *ast.FuncLit:
		if g := p.block(n, n.Body); g != nil {
			return g
		}
	case *ast.StructType:
		if g := p.braces(
			n,
			n.Fields.Opening,
			n.Fields.Closing,
			len(n.Fields.List),
		); g != nil {
			return g
		}
	case *ast.InterfaceType:
		if g := p.braces(
			n,
			n.Methods.Opening,
			n.Methods.Closing,
			len(n.Methods.List),
		); g != nil {
			return g
		}
	case *ast.FuncType:
		return p.signature(n)
	case *ast.CaseClause:
		return p.widest(p.list(n, n.List), p.inside(n))
	case *ast.ReturnStmt:
		return p.orElse(p.inside(n), p.list(n, n.Results))
	case *ast.AssignStmt:
		if last := n.Rhs[len(n.Rhs)-1]; len(n.Rhs) > 1 && !p.hugs(last) {
			if g := p.assigned(n); g != nil {
				return g
			}
		}
		return p.orElse(p.inside(n), p.assigned(n))
	case *ast.ValueSpec:
		return p.orElse(p.inside(n), p.list(n, n.Values))
	}
	return p.inside(n)
}

// orElse returns the second group, which looks worse, if there is no first one.
func (p *picker) orElse(first, second *group) *group {
	if first == nil && p.weak {
		return second
	}
	return first
}

// inside returns the widest of the groups in the parts of a node.
func (p *picker) inside(n ast.Node) (widest *group) {
	ast.Inspect(n, func(part ast.Node) bool {
		if part == n {
			return true
		}
		if part != nil {
			widest = p.widest(widest, p.pick(part))
		}
		return false
	})
	return widest
}

func (p *picker) widest(a, b *group) *group {
	if a == nil || b != nil && b.width >= a.width {
		return b
	}
	return a
}

// on returns how many columns of the line lie between two offsets.
func (p *picker) on(from, to int) int {
	from, to = max(from, p.from), min(to, p.to)
	return width(p.text[from:max(from, to)])
}

// group returns the group with those of the points that are on the line, or nil.
func (p *picker) group(n ast.Node, points []point, columns int) *group {
	for _, point := range points {
		if point.joins == 0 && point.offset >= p.from && point.offset <= p.to {
			return &group{n, points, columns}
		}
	}
	return nil
}

// block returns the group of a body on one line.
func (p *picker) block(n ast.Node, body *ast.BlockStmt) *group {
	if body == nil {
		return nil
	}
	return p.braces(n, body.Lbrace, body.Rbrace, len(body.List))
}

// braces returns the group of braces on one line, whose parts gofmt puts on lines.
func (p *picker) braces(n ast.Node, open, closing token.Pos, parts int) *group {
	if parts == 0 || !open.IsValid() || p.lineOf(open) != p.lineOf(closing) {
		return nil
	}
	points := []point{{offset: p.at(open) + 1}, {offset: p.at(closing)}}
	return p.group(n, points, p.on(p.at(open), p.at(closing)))
}

// brackets returns the group of nodes in brackets: the nodes are on lines of their own.
func (p *picker) brackets(n ast.Node, open, closing token.Pos, list []ast.Node) *group {
	columns := p.on(p.at(open), p.at(closing))
	if len(list) == 0 || !open.IsValid() || columns < worthBreaking && !p.weak {
		return nil
	}
	return p.group(n, p.separate(open, closing, list), columns)
}

// list returns the group of nodes with commas between them and no brackets around them.
func (p *picker) list(n ast.Node, list []ast.Expr) *group {
	if len(list) < 2 {
		return nil
	}
	from, to := p.at(list[0].Pos()), p.at(list[len(list)-1].End())
	return p.group(n, optional(p.between(nodes(list))), p.on(from, to))
}

// assigned returns the group of what is assigned: it begins on the next line.
func (p *picker) assigned(n *ast.AssignStmt) *group {
	points := optional(p.between(nodes(n.Rhs)))
	after := p.at(n.TokPos) + len(n.Tok.String())
	if p.line(after) == p.lineOf(n.Rhs[0].Pos()) {
		points = append(points, point{offset: after})
	}
	return p.group(n, points, p.on(after, p.to))
}

// signature returns the group of the parameters, or of the results if these are wider.
func (p *picker) signature(n *ast.FuncType) *group {
	of := func(fields *ast.FieldList) *group {
		if fields == nil {
			return nil
		}
		if g := p.brackets(n, fields.Opening, fields.Closing, nodes(fields.List)); g != nil {
			return g
		}
		return p.inside(fields)
	}
	parameters, results := of(n.Params), of(n.Results)
	if parameters != nil && (results == nil || parameters.width > worthHugging) {
		return parameters
	}
	return p.widest(parameters, results)
}

// literal returns the group of the elements of a literal, or one in its only element.
func (p *picker) literal(n *ast.CompositeLit) *group {
	if n.Type != nil &&
		p.at(n.Type.End()) > p.from &&
		p.lineOf(n.Type.Pos()) == p.lineOf(n.Type.End()) {
		if g := p.pick(n.Type); g != nil && p.column(p.at(n.Lbrace)) >= limit {
			return g
		}
	}
	if len(n.Elts) == 1 && p.hugs(n.Elts[0]) {
		if g := p.pick(n.Elts[0]); g != nil {
			return g
		}
	}
	if g := p.brackets(n, n.Lbrace, n.Rbrace, nodes(n.Elts)); g != nil {
		return g
	}
	return p.inside(n)
}

// call returns the group of the arguments of a call, or of one before it in a chain.
func (p *picker) call(n *ast.CallExpr) *group {
	if chain := p.chain(n); chain != nil {
		return chain
	}
	before := p.pick(n.Fun)
	if selector, isSelector := n.Fun.(*ast.SelectorExpr); isSelector && before != nil && before.node == selector.X {
		before.points = append(before.points, p.join(selector)...)
	}
	return p.widest(before, p.arguments(n))
}

// join returns the point that puts the selector of a broken call on the line of its
// bracket, if it is on the next one.
func (p *picker) join(n *ast.SelectorExpr) []point {
	from, to := p.at(n.X.End())+1, p.at(n.Sel.Pos())
	if p.lineOf(n.X.End()) != p.number ||
		p.line(to) == p.number ||
		len(bytes.TrimSpace(p.text[from:to])) > 0 {
		return nil
	}
	return []point{{offset: from, joins: to}}
}

// arguments returns the group of the arguments of a call, or one in the last of them,
// which then begins on the line of the call.
func (p *picker) arguments(n *ast.CallExpr) *group {
	if len(n.Args) == 0 {
		return nil
	}
	own := p.brackets(n, n.Lparen, n.Rparen, nodes(n.Args))
	last := n.Args[len(n.Args)-1]
	if own == nil {
		var widest *group
		for _, argument := range n.Args {
			widest = p.widest(widest, p.pick(argument))
		}
		return widest
	}
	onLine := p.lineOf(n.Lparen) == p.number && p.lineOf(last.Pos()) == p.number
	if onLine && (p.hugs(last) || len(n.Args) == 1 && p.hugsAlone(last)) {
		if g := p.pick(last); g != nil {
			return g
		}
	}
	if len(n.Args) == 1 &&
		isText(last) &&
		width(p.nodeText(last))+p.indent(p.number)+tabWidth >= limit {
		return p.pick(last)
	}
	return own
}

// hugs reports whether a function or a literal that is the last argument begins on the
// line of the call: it is broken by its braces.
func (p *picker) hugs(n ast.Expr) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		return len(n.Body.List) > 0 && p.fits(n.Body.Lbrace, n.Body.Rbrace)
	case *ast.CompositeLit:
		return len(n.Elts) > 0 && p.fits(n.Lbrace, n.Rbrace)
	case *ast.UnaryExpr:
		return n.Op == token.AND && p.hugs(n.X)
	}
	return false
}

// hugsAlone reports the same of a call that is the only argument.
func (p *picker) hugsAlone(n ast.Expr) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		return len(n.Args) > 0 && p.fits(n.Lparen, n.Rparen)
	case *ast.IndexExpr:
		return p.hugsAlone(n.X)
	}
	return false
}

// fits reports whether a bracket fits on the line, and has enough in it to be broken.
func (p *picker) fits(open, closing token.Pos) bool {
	return p.lineOf(open) == p.number &&
		p.column(p.at(open)) < limit &&
		p.on(p.at(open), p.at(closing)) >= worthHugging
}

// chain returns the group of the dots of a chain of calls, such as a builder's.
func (p *picker) chain(n *ast.CallExpr) *group {
	var points []point
	longest, end := 0, p.at(n.End())
	for {
		selector, isSelector := n.Fun.(*ast.SelectorExpr)
		if !isSelector {
			break
		}
		before, isCall := selector.X.(*ast.CallExpr)
		if !isCall {
			break
		}
		dot := p.at(selector.Sel.Pos())
		if p.line(p.at(before.End())) == p.line(dot) {
			points = append(points, point{offset: dot})
		}
		longest, end = max(longest, p.on(dot, end)), dot
		n = before
	}
	if len(points) == 0 {
		return nil
	}
	head := p.on(p.from, end)
	if (len(points) > 1 || p.limit == rowLimit) && max(head, longest+tabWidth) <= p.limit || p.weak {
		return p.group(n, points, p.on(p.at(n.Pos()), p.to))
	}
	return nil
}

// binary returns the group of the terms of an expression.
func (p *picker) binary(n *ast.BinaryExpr) *group {
	terms, points := p.terms(n, n.Op.Precedence())
	columns := p.on(p.at(n.Pos()), p.at(n.End()))
	switch {
	case n.Op == token.LAND || n.Op == token.LOR:
		if len(terms) > 4 && columns < tiny*2/3*len(terms) {
			points = optional(points)
		}
		if g := p.group(n, points, columns); g != nil {
			return g
		}
	case n.Op == token.ADD && p.isSplit(terms):
		return nil
	case n.Op == token.ADD && slices.ContainsFunc(terms, isText), n.Op == token.OR:
		if g := p.group(n, optional(points), columns); g != nil {
			return g
		}
	}
	var widest *group
	for _, term := range terms {
		widest = p.widest(widest, p.pick(term))
	}
	return p.orElse(widest, p.group(n, optional(points), columns))
}

// terms returns the terms of an expression that operators of the same precedence join,
// with the points after these operators.
func (p *picker) terms(n ast.Expr, precedence int) (terms []ast.Expr, points []point) {
	binary, isBinary := n.(*ast.BinaryExpr)
	if !isBinary || binary.Op.Precedence() != precedence {
		return []ast.Expr{n}, nil
	}
	terms, points = p.terms(binary.X, precedence)
	if after := p.at(binary.OpPos) + len(binary.Op.String()); p.line(after) == p.lineOf(binary.Y.Pos()) {
		points = append(points, point{offset: after})
	}
	return append(terms, binary.Y), points
}

func isText(n ast.Expr) bool {
	switch n := n.(type) {
	case *ast.BasicLit:
		return isString(n)
	case *ast.BinaryExpr:
		return n.Op == token.ADD && (isText(n.X) || isText(n.Y))
	}
	return false
}

// isSplit reports whether one of the terms on the line is a string that does not fit into
// a line and begins where it can be split.
func (p *picker) isSplit(terms []ast.Expr) bool {
	return slices.ContainsFunc(terms, func(term ast.Expr) bool {
		from := p.at(term.Pos())
		return isString(term) &&
			from >= p.from &&
			p.isFlat(term) &&
			p.column(from) < limit-2*shortest &&
			width(p.nodeText(term))+p.indent(p.number)+tabWidth > limit
	})
}
