package store

import (
	"strings"
	"unicode/utf8"

	"satchel/agent"
)

// maxQuery bounds a query's length in bytes. SQLite needs some 200 bytes of
// memory for each byte of a query made of nothing but short terms.
const maxQuery = 200_000

// statement is the one statement of a query. Its words serve to set limits and
// to answer with a fitting error; what it may touch its guard decides.
type statement struct {
	text   string          // without comments and semicolons around it
	before int             // characters of the query in front of text
	kind   string          // SELECT, INSERT, UPDATE, DELETE, PRAGMA or EXPLAIN
	spelt  map[string]bool // everything in it that could be a name, in lower case
	weight weight
}

// writes tells whether the statement is one that changes data.
func (s *statement) writes() bool { return isChange(s.kind) }

func isChange(kind string) bool { return kind == "INSERT" || kind == "UPDATE" || kind == "DELETE" }

// closedStatements are known to SQLite and refused.
var closedStatements = map[string]bool{
	"CREATE": true, "DROP": true, "ALTER": true, "ATTACH": true, "DETACH": true, "VACUUM": true, "REINDEX": true,
	"ANALYZE": true, "BEGIN": true, "COMMIT": true, "END": true, "ROLLBACK": true, "SAVEPOINT": true, "RELEASE": true,
	"VALUES": true,
}

// openStatements maps the words that may begin a statement to its kind.
var openStatements = map[string]string{
	"SELECT": "SELECT", "INSERT": "INSERT", "REPLACE": "INSERT", "UPDATE": "UPDATE", "DELETE": "DELETE",
	"PRAGMA": "PRAGMA", "EXPLAIN": "EXPLAIN",
}

func badQuery(format string, args ...any) *agent.Error {
	return agent.Errorf(agent.CodeInvalidQuery, format, args...)
}

// parseStatement finds the one statement of a query and its kind. An error is
// INVALID_QUERY, or FORBIDDEN_OPERATION for a kind that is refused.
func parseStatement(query string) (*statement, error) {
	switch {
	case len(query) > maxQuery:
		return nil, badQuery("query is longer than %d bytes", maxQuery)
	case strings.IndexByte(query, 0) >= 0:
		return nil, badQuery("query must not contain NUL characters")
	case !utf8.ValidString(query):
		return nil, badQuery("query must be UTF-8")
	}
	tokens, next := firstStatement(query)
	if len(tokens) == 0 {
		return nil, badQuery("query holds no statement")
	}
	w := words{query, tokens}
	kind, err := w.kind()
	if err != nil {
		return nil, err
	}
	if next < len(query) {
		return nil, badQuery(moreStatements).With("offset", offset(query, next))
	}
	start, end := tokens[0].start, tokens[len(tokens)-1].end
	s := &statement{text: query[start:end], before: offset(query, start), kind: kind, spelt: map[string]bool{}, weight: w.weigh()}
	for i, t := range tokens {
		if t.kind <= tokenString {
			s.spelt[unquote(w.string(i))] = true
		}
	}
	return s, nil
}

// firstStatement returns the tokens of the first statement in query, and where
// the next one begins: at the end when there is none.
func firstStatement(query string) (tokens []token, next int) {
	ended := false
	for t := (tokenizer{text: query}); ; {
		tok, ok := t.next()
		switch {
		case !ok:
			return tokens, len(query)
		case query[tok.start] == ';':
			ended = len(tokens) > 0
		case ended:
			return tokens, tok.start
		default:
			tokens = append(tokens, tok)
		}
	}
}

// offset counts the characters of text before byte n.
func offset(text string, n int) int { return utf8.RuneCountInString(text[:n]) }

// words are the tokens of a statement with the query they stand in.
type words struct {
	text   string
	tokens []token
}

// word returns token i in upper case when it is a bare word, else "".
func (w words) word(i int) string {
	if i < 0 || i >= len(w.tokens) || w.tokens[i].kind != tokenWord {
		return ""
	}
	return strings.ToUpper(w.string(i))
}

func (w words) string(i int) string { return w.text[w.tokens[i].start:w.tokens[i].end] }

// is tells whether token i is the given operator.
func (w words) is(i int, op string) bool {
	return i >= 0 && i < len(w.tokens) && w.tokens[i].kind == tokenOther && w.string(i) == op
}

// kind is the statement's kind, and what EXPLAIN explains must be allowed too.
func (w words) kind() (string, error) {
	if w.word(0) != "EXPLAIN" {
		return w.kindAt(0)
	}
	i := 1
	if w.word(1) == "QUERY" && w.word(2) == "PLAN" {
		i = 3
	}
	if _, err := w.kindAt(i); err != nil {
		return "", err
	}
	return "EXPLAIN", nil
}

func (w words) kindAt(i int) (string, error) {
	if w.word(i) == "WITH" {
		i = w.behindWith(i)
	}
	word := w.word(i)
	if closedStatements[word] {
		return "", agent.Errorf(agent.CodeForbiddenOperation, "%s statements are not allowed", word).With("statement", word)
	}
	if kind := openStatements[word]; kind != "" {
		if isChange(kind) {
			return kind, w.checkTarget(i)
		}
		return kind, nil
	}
	if i >= len(w.tokens) {
		return "", badQuery("incomplete input")
	}
	return "", badQuery("near %q: syntax error", agent.Clip(w.string(i), 40)).With("offset", offset(w.text, w.tokens[i].start))
}

// checkTarget refuses a change of the schema, which SQLite would take for a
// mistake: INSERT [OR …] INTO name, UPDATE [OR …] name, DELETE FROM name.
func (w words) checkTarget(i int) error {
	into := w.word(i) != "UPDATE"
	i++
	if w.word(i) == "OR" {
		i += 2
	}
	if into {
		i++
	}
	if w.is(i+1, ".") {
		i += 2
	}
	if i >= len(w.tokens) || w.tokens[i].kind > tokenString {
		return nil
	}
	if table := unquote(w.string(i)); systemTables[table] {
		return agent.Errorf(agent.CodeForbiddenOperation, "the table %s can only be read", table).With("table", table)
	}
	return nil
}

// behindWith returns the place of the word behind the common table
// expressions of the WITH at place i: name [(columns)] AS [[NOT] MATERIALIZED]
// (select), …. A clause of another shape ends the search where it differs.
func (w words) behindWith(i int) int {
	i++
	if w.word(i) == "RECURSIVE" && w.word(i+1) != "AS" && !w.is(i+1, "(") {
		i++
	}
	for {
		i = w.behindParens(i + 1) // the name, then its columns
		if w.word(i) != "AS" {
			return i
		}
		i++
		if w.word(i) == "NOT" {
			i++
		}
		if w.word(i) == "MATERIALIZED" {
			i++
		}
		i = w.behindParens(i)
		if !w.is(i, ",") {
			return i
		}
		i++
	}
}

// behindParens returns the place behind the parentheses that open at place i,
// or i when none open there.
func (w words) behindParens(i int) int {
	if !w.is(i, "(") {
		return i
	}
	for depth := 0; i < len(w.tokens); i++ {
		switch {
		case w.is(i, "("):
			depth++
		case w.is(i, ")"):
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return i
}

// weight is what the calls of a statement cost, as far as its words show it.
type weight struct {
	calls    int          // calls of functions, and operators that make texts
	args     int          // arguments of calls beyond the first
	patterns []patternUse // calls whose cost grows with the product of two lengths
}

// patternUse is a call that looks for one text in another. length is that of
// the pattern in bytes, param when it is a parameter, and -1 when it is not
// known before the call.
type patternUse struct {
	function string
	length   int
}

const (
	patternParam   = -2
	patternUnknown = -1
)

// patternArgs are the functions whose cost is a product of two lengths, and
// which argument is the pattern.
var patternArgs = map[string]int{
	"trim": 1, "ltrim": 1, "rtrim": 1, "instr": 1, "replace": 1, "unhex": 1, "like": 0, "glob": 0,
	"json_patch": 1, "jsonb_patch": 1,
}

// call is a pair of parentheses while the statement is weighed.
type call struct {
	name   string // what stands in front of it: a function, or nothing
	open   int    // the place of (
	from   int    // where the argument begins
	args   int
	length int // of the argument that is the pattern
}

// weigh sums up the statement. It errs on the heavy side.
func (w words) weigh() weight {
	var sum weight
	var calls []call
	for i, t := range w.tokens {
		switch {
		case t.kind == tokenWord && !w.is(i+1, "("):
			if word := w.word(i); word == "LIKE" || word == "GLOB" {
				sum.patterns = append(sum.patterns, patternUse{lowerASCII(word), w.operand(i+1, i+2)})
			}
		case w.is(i, "||"), w.is(i, "->"), w.is(i, "->>"):
			sum.calls++
		case w.is(i, "("):
			calls = append(calls, call{name: w.name(i - 1), open: i, from: i + 1, length: patternUnknown})
		case w.is(i, ",") && len(calls) > 0:
			w.endArgument(&calls[len(calls)-1], i)
		case w.is(i, ")") && len(calls) > 0:
			c := calls[len(calls)-1]
			calls = calls[:len(calls)-1]
			w.endArgument(&c, i)
			w.endCall(c, i, &sum)
		}
	}
	return sum
}

// name is what the token in front of a parenthesis could call, or "".
func (w words) name(i int) string {
	if i < 0 || w.tokens[i].kind > tokenName || w.word(i) == "IN" || w.word(i) == "VALUES" {
		return ""
	}
	return unquote(w.string(i))
}

// endArgument notes the argument of c that ends at place i.
func (w words) endArgument(c *call, i int) {
	if place, ok := patternArgs[c.name]; ok && place == c.args {
		c.length = w.literal(c.from, i)
	}
	c.args++
	c.from = i + 1
}

// endCall adds the call whose closing parenthesis is at place i.
func (w words) endCall(c call, i int, sum *weight) {
	if c.name == "" {
		return
	}
	sum.calls++
	sum.args += c.args - 1
	place, costly := patternArgs[c.name]
	switch {
	case !costly || c.args <= place:
		return
	case c.args == 1: // text LIKE (pattern)
		c.length = w.operand(c.open, i+1)
	}
	sum.patterns = append(sum.patterns, patternUse{c.name, c.length})
}

// operand is the length of the value that tokens [from, to) stand for, unless
// an operator behind them makes it part of a longer one.
func (w words) operand(from, to int) int {
	if to < len(w.tokens) && w.tokens[to].kind == tokenOther && !w.is(to, ")") && !w.is(to, ",") {
		return patternUnknown
	}
	if to == from+3 {
		from, to = from+1, to-1
	}
	return w.literal(from, to)
}

// literal is the length of the value that tokens [from, to) stand for.
func (w words) literal(from, to int) int {
	if to != from+1 || from >= len(w.tokens) {
		return patternUnknown
	}
	switch t := w.tokens[from]; {
	case t.kind == tokenParam:
		return patternParam
	case t.kind == tokenString, t.kind == tokenOther && isDigit(w.text[t.start]):
		return t.end - t.start
	}
	return patternUnknown
}
