package sqlsandbox

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Span is a part of a text, from byte Start to before byte End.
type Span struct{ Start, End int }

// BoundQuery is a statement in which parameters take the place of spans.
type BoundQuery struct {
	pieces []queryPiece
	prefix string // of the names given to spans, which no parameter of the query has
	quoted []bool // by span: it was a string in single quotes
	params int    // how many parameters the query itself has
}

// queryPiece is literal SQL, one of the query's own parameters, or a span.
type queryPiece struct {
	text  string // the SQL; of a parameter as it was written
	param int    // its number by SQLite's rules, from 1; 0: none
	span  int    // its number, from 1; 0: none
}

// Quoted reports whether span i was a whole string in single quotes, so that its value is
// text whatever its type.
func (b *BoundQuery) Quoted(i int) bool { return b.quoted[i] }

const (
	withinQuotes = "has a template within quotes, where it cannot be bound as a parameter; write LIKE '%' || " +
		"{{x}} || '%' in place of LIKE '%{{x}}%'"
	asName = "has a template in the place of a name or keyword; templates are bound as parameters " +
		"and stand for values only"
)

// CheckSpans is CutSpans for a query that is about to be saved: it also refuses spans in
// places where SQL does not allow a value.
func CheckSpans(query string, spans []Span) error {
	boundQuery, err := CutSpans(query, spans)
	if err != nil {
		return err
	}
	s, err := parse(boundQuery.text(false))
	var refused *agent.Error
	switch {
	case agent.ErrorCode(err) == agent.CodeForbiddenOperation:
		return badQuery("begins with a statement that is not allowed")
	case errors.As(err, &refused) && strings.Contains(refused.Message, sqlite.MoreStatements):
		return badQuery("holds more than one statement")
	case err != nil:
		return badQuery("%s, or there is no statement around it", asName)
	}
	ok, err := parses(s.text)
	if err == nil && !ok {
		err = badQuery("%s, or the SQL around it has a syntax error", asName)
	}
	return err
}

// CutSpans replaces spans of a query, which must be in order and not overlap, with
// parameters, so that their values are never read as SQL. A span that is a whole string
// in single quotes is replaced including its quotes; one in a comment is dropped. The
// error is INVALID_QUERY if a span is only part of a string or name.
func CutSpans(query string, spans []Span) (*BoundQuery, error) {
	if len(query) > maxQuery {
		return nil, badQuery("is longer than %d bytes", maxQuery)
	}
	boundQuery := &BoundQuery{prefix: "template", quoted: make([]bool, len(spans))}
	for strings.Contains(query, boundQuery.prefix) {
		boundQuery.prefix += "_"
	}
	// In marked each span is one token, so that its content does not matter.
	var marked strings.Builder
	places := make([]Span, len(spans)) // of the marks
	last := 0
	for i, s := range spans {
		marked.WriteString(query[last:s.Start])
		places[i].Start = marked.Len()
		marked.WriteString(boundQuery.name(i))
		places[i].End = marked.Len()
		last = s.End
	}
	marked.WriteString(query[last:])
	return boundQuery, boundQuery.cut(marked.String(), places)
}

func (b *BoundQuery) name(span int) string {
	return fmt.Sprintf(":%s%d", b.prefix, span+1)
}

// cut splits a text with marks into pieces.
func (b *BoundQuery) cut(text string, marks []Span) error {
	var (
		numbers  = map[string]int{} // of parameters that may occur again
		at       = 0                // up to where the text has been cut
		next     = 0                // the first mark that no token so far has covered
		previous string             // the previous token, in upper case
	)
	for t := (tokenizer{text: text}); ; {
		tok, ok := t.next()
		if !ok {
			tok.start, tok.end = len(text), len(text)
		}
		for ; next < len(marks) && marks[next].End <= tok.start; next++ { // in a comment
			b.pieces = append(b.pieces, queryPiece{text: text[at:marks[next].Start] + " "})
			at = marks[next].End
		}
		if !ok {
			b.pieces = append(b.pieces, queryPiece{text: text[at:]})
			return nil
		}
		spelt := text[tok.start:tok.end]
		switch {
		case next < len(marks) && marks[next].Start < tok.end:
			quotes, err := checkMark(tok, marks[next], previous)
			if err != nil {
				return err
			}
			b.quoted[next] = quotes
			next++
			b.pieces = append(
				b.pieces,
				queryPiece{text: text[at:tok.start]},
				queryPiece{span: next},
			)
			at = tok.end
		case tok.kind == tokenParam:
			number, known := numbers[spelt]
			if !known {
				if number = paramNumber(spelt); number == 0 {
					number = b.params + 1
				}
				if spelt != "?" {
					numbers[spelt] = number
				}
			}
			b.params = max(b.params, number)
			b.pieces = append(b.pieces, queryPiece{text: text[at:tok.start]}, queryPiece{text: spelt, param: number})
			at = tok.end
		}
		previous = strings.ToUpper(spelt)
	}
}

// checkMark reports whether a mark is a whole string in single quotes. The error says why
// the token around it cannot be a parameter.
func checkMark(tok token, mark Span, previous string) (quotes bool, err error) {
	switch {
	case previous == "BY":
		return false, badQuery("%s", asName)
	case tok.kind == tokenString && tok.start == mark.Start-1 && tok.end == mark.End+1:
		return true, nil
	case tok.kind == tokenParam && tok.start == mark.Start && tok.end == mark.End:
		return false, nil
	case tok.start < mark.Start && tok.kind != tokenWord && tok.kind != tokenParam || tok.kind == tokenBad:
		return false, badQuery("%s", withinQuotes)
	}
	return false, badQuery("%s", asName)
}

// maxParams is the highest number of a parameter, as in SQLite.
const maxParams = 32_766

// paramNumber returns the number in ?12, or 0.
func paramNumber(spelt string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(spelt, "?"))
	if err != nil {
		return 0
	}
	return min(n, maxParams+1) // SQLite refuses the one above
}

// With returns the statement with its parameters: the query's own and a value
// for each span. They have names when own is an object, else numbers.
func (b *BoundQuery) With(own Params, values []any) (string, Params, error) {
	if own.Named == nil {
		if len(own.List) != b.params {
			return "", own, badQuery("the statement takes %d parameters, but params has %d", b.params, len(own.List)).
				With("expected", b.params).With("given", len(own.List))
		}
		all := Params{List: slices.Clone(own.List)}
		for _, p := range b.pieces {
			if p.span > 0 {
				all.List = append(all.List, values[p.span-1])
			}
		}
		return b.text(false), all, nil
	}
	all := Params{Named: maps.Clone(own.Named)}
	for _, p := range b.pieces {
		if p.span > 0 {
			all.Named[b.name(p.span - 1)[1:]] = values[p.span-1]
		}
	}
	return b.text(true), all, nil
}

// text returns the statement with names for its spans, or with numbers for all of its
// parameters.
func (b *BoundQuery) text(named bool) string {
	var text strings.Builder
	number := b.params
	for _, p := range b.pieces {
		switch {
		case p.span > 0 && named:
			text.WriteString(" " + b.name(p.span-1) + " ")
		case p.span > 0:
			number++
			fmt.Fprintf(&text, " ?%d ", number)
		case p.param > 0 && !named:
			fmt.Fprintf(&text, " ?%d ", p.param)
		default:
			text.WriteString(p.text)
		}
	}
	return text.String()
}
