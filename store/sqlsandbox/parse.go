package sqlsandbox

import (
	"strings"
	"unicode/utf8"

	"satchel/agent"
	"satchel/store/sqlite"
)

// maxQuery bounds a query's length in bytes. SQLite needs some 200 bytes of
// memory for each byte of a query made only of short terms.
const maxQuery = 200_000

// Statement is the one statement of a query, with its parameters. Its words serve only to
// set limits and to choose an error; what it may access is decided while SQLite compiles
// it.
type Statement struct {
	Kind string // SELECT, INSERT, UPDATE, DELETE, PRAGMA or EXPLAIN

	text   string          // without comments and semicolons around it
	before int             // characters of the query before text
	names  map[string]bool // everything in it that could be a name, in lower case
	weight weight
	args   arguments
}

// Writes reports whether the statement is of a kind that changes data.
func (s *Statement) Writes() bool { return isChange(s.Kind) }

func isChange(kind string) bool { return kind == "INSERT" || kind == "UPDATE" || kind == "DELETE" }

// closedStatements are SQLite's statements that are refused.
var closedStatements = map[string]bool{
	"CREATE": true, "DROP": true, "ALTER": true, "ATTACH": true, "DETACH": true, "VACUUM": true, "REINDEX": true,
	"ANALYZE": true, "BEGIN": true, "COMMIT": true, "END": true, "ROLLBACK": true, "SAVEPOINT": true, "RELEASE": true,
	"VALUES": true,
}

// openStatements maps the words with which a statement may begin to its kind.
var openStatements = map[string]string{
	"SELECT":  "SELECT",
	"INSERT":  "INSERT",
	"REPLACE": "INSERT",
	"UPDATE":  "UPDATE",
	"DELETE":  "DELETE",
	"PRAGMA":  "PRAGMA",
	"EXPLAIN": "EXPLAIN",
}

func badQuery(format string, args ...any) *agent.Error {
	return agent.Errorf(agent.CodeInvalidQuery, format, args...)
}

// Parse parses a query, which must be one statement, and checks the parameters. The error
// is INVALID_QUERY, or FORBIDDEN_OPERATION for a kind of statement that is refused.
func Parse(query string, params Params) (*Statement, error) {
	s, err := parse(query)
	if err != nil {
		return nil, err
	}
	s.args, err = params.arguments()
	return s, err
}

// parse is Parse without parameters.
func parse(query string) (*Statement, error) {
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
		return nil, badQuery(sqlite.MoreStatements).With("offset", offset(query, next))
	}
	start, end := tokens[0].start, tokens[len(tokens)-1].end
	s := &Statement{
		text:   query[start:end],
		before: offset(query, start),
		Kind:   kind,
		names:  map[string]bool{},
		weight: w.weigh(),
	}
	for i, t := range tokens {
		if t.kind <= tokenString {
			s.names[unquote(w.string(i))] = true
		}
	}
	return s, nil
}

// firstStatement returns the tokens of the first statement in query, and where the next
// one begins, which is the end if there is none.
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
func offset(text string, n int) int {
	return utf8.RuneCountInString(text[:n])
}

// words are the tokens of a statement, with the text of the query.
type words struct {
	text   string
	tokens []token
}

// word returns token i in upper case if it is a bare word, else "".
func (w words) word(i int) string {
	if i < 0 || i >= len(w.tokens) || w.tokens[i].kind != tokenWord {
		return ""
	}
	return strings.ToUpper(w.string(i))
}

func (w words) string(i int) string {
	return w.text[w.tokens[i].start:w.tokens[i].end]
}

// is reports whether token i is the given operator.
func (w words) is(i int, op string) bool {
	return i >= 0 &&
		i < len(w.tokens) &&
		w.tokens[i].kind == tokenOther &&
		w.string(i) == op
}

// kind returns the statement's kind. What EXPLAIN explains must be allowed too.
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

func (w words) kindAt(index int) (string, error) {
	if w.word(index) == "WITH" {
		index = w.skipWith(index)
	}
	word := w.word(index)
	if closedStatements[word] {
		return "", agent.Errorf(
			agent.CodeForbiddenOperation,
			"%s statements are not allowed",
			word,
		).With("statement", word)
	}
	if kind := openStatements[word]; kind != "" {
		if isChange(kind) {
			return kind, w.checkTarget(index)
		}
		return kind, nil
	}
	if index >= len(w.tokens) {
		return "", badQuery("incomplete input")
	}
	return "", badQuery(
		"near %q: syntax error",
		agent.Clip(w.string(index), 40),
	).With("offset", offset(w.text, w.tokens[index].start))
}

// checkTarget refuses changes to the schema tables, which SQLite would report as a
// mistake rather than as forbidden: INSERT [OR …] INTO name, UPDATE [OR …] name, DELETE
// FROM name.
func (w words) checkTarget(index int) error {
	into := w.word(index) != "UPDATE"
	index++
	if w.word(index) == "OR" {
		index += 2
	}
	if into {
		index++
	}
	if w.is(index+1, ".") {
		index += 2
	}
	if index >= len(w.tokens) || w.tokens[index].kind > tokenString {
		return nil
	}
	if table := unquote(w.string(index)); systemTables[table] {
		return agent.Errorf(agent.CodeForbiddenOperation, "the table %s can only be read", table).With("table", table)
	}
	return nil
}

// skipWith returns the index of the word after the common table expressions of the WITH
// at index i: name [(columns)] AS [[NOT] MATERIALIZED] (select), …. If a clause has
// another form, the search ends where it differs.
func (w words) skipWith(index int) int {
	index++
	if w.word(index) == "RECURSIVE" &&
		w.word(index+1) != "AS" &&
		!w.is(index+1, "(") {
		index++
	}
	for {
		index = w.skipParens(index + 1) // the name, then its columns
		if w.word(index) != "AS" {
			return index
		}
		index++
		if w.word(index) == "NOT" {
			index++
		}
		if w.word(index) == "MATERIALIZED" {
			index++
		}
		index = w.skipParens(index)
		if !w.is(index, ",") {
			return index
		}
		index++
	}
}

// skipParens returns the index after the parentheses that open at index i, or i if none
// open there.
func (w words) skipParens(i int) int {
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
