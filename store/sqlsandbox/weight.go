package sqlsandbox

// weight is the cost of the calls in a statement, as far as its text shows.
type weight struct {
	calls    int          // calls of functions, and operators that produce text
	args     int          // arguments of calls beyond the first
	patterns []patternUse // calls whose cost grows with the product of two lengths
}

// patternUse is a call that looks for one text in another. length is the length of the
// pattern in bytes, patternParam if it is a parameter, or patternUnknown if it is not
// known before the call.
type patternUse struct {
	function string
	length   int
}

const (
	patternParam   = -2
	patternUnknown = -1
)

// patternArgs are the functions whose cost is a product of two lengths, with the index of
// the argument that is the pattern.
var patternArgs = map[string]int{
	"trim": 1, "ltrim": 1, "rtrim": 1, "instr": 1, "replace": 1, "unhex": 1, "like": 0, "glob": 0,
	"json_patch": 1, "jsonb_patch": 1,
}

// call is a pair of parentheses while the statement is weighed.
type call struct {
	name   string // the function name before it, or ""
	open   int    // the index of (
	from   int    // where the argument begins
	args   int
	length int // of the argument that is the pattern
}

// weigh adds up the cost of the statement. It overestimates rather than underestimates.
func (w words) weigh() weight {
	var sum weight
	var calls []call
	for index, token := range w.tokens {
		switch {
		case token.kind == tokenWord && !w.is(index+1, "("):
			if word := w.word(index); word == "LIKE" || word == "GLOB" {
				sum.patterns = append(sum.patterns, patternUse{lowerASCII(word), w.operand(index+1, index+2)})
			}
		case w.is(index, "||"), w.is(index, "->"), w.is(index, "->>"):
			sum.calls++
		case w.is(index, "("):
			calls = append(calls, call{
				name:   w.name(index - 1),
				open:   index,
				from:   index + 1,
				length: patternUnknown,
			})
		case w.is(index, ",") && len(calls) > 0:
			w.endArgument(&calls[len(calls)-1], index)
		case w.is(index, ")") && len(calls) > 0:
			c := calls[len(calls)-1]
			calls = calls[:len(calls)-1]
			w.endArgument(&c, index)
			w.endCall(c, index, &sum)
		}
	}
	return sum
}

// name returns the function that token i, before a parenthesis, could call, or "".
func (w words) name(i int) string {
	if i < 0 ||
		w.tokens[i].kind > tokenName ||
		w.word(i) == "IN" ||
		w.word(i) == "VALUES" {
		return ""
	}
	return unquote(w.string(i))
}

// endArgument records the argument of c that ends at index i.
func (w words) endArgument(c *call, i int) {
	if place, ok := patternArgs[c.name]; ok && place == c.args {
		c.length = w.literal(c.from, i)
	}
	c.args++
	c.from = i + 1
}

// endCall adds the call whose closing parenthesis is at index i.
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

// operand returns the length of the value that tokens [from, to) stand for, unless an
// operator after them makes it part of a longer one.
func (w words) operand(from, to int) int {
	if to < len(w.tokens) &&
		w.tokens[to].kind == tokenOther &&
		!w.is(to, ")") &&
		!w.is(to, ",") {
		return patternUnknown
	}
	if to == from+3 {
		from, to = from+1, to-1
	}
	return w.literal(from, to)
}

// literal returns the length of the value that tokens [from, to) stand for.
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
