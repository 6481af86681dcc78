package main

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// splitText returns the edits that break one of the strings of a line, the widest that can
// be, in two.
func (s *source) splitText(line int) []edit {
	from, to := s.bounds(line)
	var strings []*ast.BasicLit
	var above []ast.Node
	ast.Inspect(s.tree, func(n ast.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		if s.at(n.Pos()) > to || s.at(n.End()) < from {
			return false
		}
		lit, isLiteral := n.(*ast.BasicLit)
		if isLiteral &&
			isString(lit) &&
			s.at(lit.Pos()) >= from &&
			s.at(lit.End()) <= to &&
			mayBeSum(above) {
			strings = append(strings, lit)
		}
		above = append(above, n)
		return true
	})
	slices.SortStableFunc(strings, func(a, b *ast.BasicLit) int {
		return len(b.Value) - len(a.Value)
	})
	for _, lit := range strings {
		if edits := s.split(lit); len(edits) > 0 {
			return edits
		}
	}
	return nil
}

// mayBeSum reports whether a string with these nodes around it may become a sum.
func mayBeSum(above []ast.Node) bool {
	switch above[len(above)-1].(type) {
	case *ast.ImportSpec, *ast.Field, *ast.IndexExpr, *ast.SliceExpr, *ast.SelectorExpr:
		return false
	}
	return true
}

// shortest is the least that a part of a broken string has, in columns.
const shortest = 24

// split returns the edits that break a string. What does not fit goes to the next line: to
// the begin of a string that is added there already, or a new one.
func (s *source) split(lit *ast.BasicLit) []edit {
	from, to := s.at(lit.Pos()), s.at(lit.End())
	literal := string(s.text[from:to])
	quote, content := literal[:1], literal[1:len(literal)-1]
	room := limit - s.column(from) - len(quote+quote+" +")
	if room < shortest/2 || width(content) <= shortest+shortest/2 {
		return nil
	}
	next := -1
	rest := strings.TrimLeft(string(s.text[to:]), " ")
	if after, found := strings.CutPrefix(rest, "+\n"); found && !strings.HasSuffix(content, `\n`) {
		after = strings.TrimLeft(after, "\t ")
		if strings.HasPrefix(after, quote) {
			next = len(s.text) - len(after) + 1
		}
	}
	if next < 0 {
		room = min(room, width(content)-shortest)
	}
	at := splitAt(content, room, quote == "`")
	if at <= 0 || at >= len(content) {
		return nil
	}
	cut := from + 1 + at
	if next < 0 {
		return []edit{{cut, cut, quote + " +\n" + quote}}
	}
	return []edit{{cut, to - 1, ""}, {next, next, content[at:]}}
}

// Places at which a string is broken rather than at others, and how much rather: each is
// worth so many per cent of a line.
var places = []struct {
	before, after *regexp.Regexp
	worth         int
}{
	{regexp.MustCompile(`\\n$`), nil, 60},
	{regexp.MustCompile(` $`), sqlClause, 55},
	{regexp.MustCompile(` (&&|\|\|) $`), nil, 50},
	{regexp.MustCompile(` $`), regexp.MustCompile(`^(AND|OR)\b`), 45},
	{regexp.MustCompile(`[.:;!?] $`), nil, 42},
	{nil, regexp.MustCompile(`^<\w`), 40},
	{regexp.MustCompile(`, $`), nil, 38},
	{regexp.MustCompile(`[\]}0-9a-z"],$`), regexp.MustCompile(`^["{]`), 38},
	{regexp.MustCompile(` $`), nil, 30},
	{regexp.MustCompile(`[,;]$`), nil, 20},
	{regexp.MustCompile(`[&|]$`), nil, 10},
}

const worthElsewhere = -50

var sqlClause = regexp.MustCompile(`^(FROM|WHERE|ORDER BY|GROUP BY|VALUES|SET|LEFT JOIN|JOIN|LIMIT|ON CONFLICT|` +
	`RETURNING|UNION|SELECT)\b`)

// splitAt returns the offset at which a string is best broken so that its first part has
// at most some columns; 0 if there is none.
func splitAt(content string, room int, raw bool) (at int) {
	best := worthElsewhere
	for i, columns := 0, 0; i < len(content) && columns < room; columns = width(content[:i]) {
		if value := columns*100/room + worth(content, i); columns >= min(shortest, room/2) && value > best {
			at, best = i, value
		}
		i += size(content[i:], raw)
	}
	return at
}

func worth(content string, at int) int {
	before, after := content[max(0, at-4):at], content[at:]
	for _, place := range places {
		if (place.before == nil || place.before.MatchString(before)) &&
			(place.after == nil || place.after.MatchString(after)) {
			return place.worth
		}
	}
	return worthElsewhere
}

var escape = regexp.MustCompile(`^\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)`)

// size returns the length of the first sign of a string, which may be an escape.
func size(content string, raw bool) int {
	if !raw && content[0] == '\\' {
		return len(escape.FindString(content))
	}
	_, n := utf8.DecodeRuneInString(content)
	return n
}
