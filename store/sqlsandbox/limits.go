package sqlsandbox

import (
	"math"
	"time"
)

// Limits bound what one statement may use.
type Limits struct {
	Time   time.Duration // a statement that runs longer is stopped, and undone
	Rows   int           // further rows are left out
	Bytes  int           // of the answer as JSON; further rows are left out
	Memory int64         // bytes that SQLite holds for it
	Temp   int64         // bytes written to temporary files
	// Each, unless nil, is called for each row, and the result has no rows. An error from
	// it ends the statement.
	Each func(columns []string, row []any) error
}

// DefaultLimits are the documented limits of time and result size, and what a statement
// may use to compute, sort, group and compare. The process grows by up to twice the
// memory, since its allocator rounds up, and by the size of the result.
var DefaultLimits = Limits{
	Time:   10 * time.Second,
	Rows:   1000,
	Bytes:  16 << 20,
	Memory: 24 << 20,
	Temp:   128 << 20,
}

const (
	longestValue  = 4 << 20 // bytes of a text, blob or row that a statement may handle
	shortestValue = 4 << 10 // a statement that may not even handle this much is refused
	maxPattern    = 1000    // bytes of a LIKE or GLOB pattern
)

// SQLite checks the deadline between the steps of its program, and a function call is one
// step however long it takes. So the cost of the calls for one row is bounded beforehand,
// by limiting the length of values.
const (
	rowCost  = 1e9  // nanoseconds that all calls for a row may take in the worst case
	callCost = 10.0 // for each byte that a call or || reads
	argCost  = 8.0  // and for each argument beyond the first, such as a JSON path
)

// patternCosts are the nanoseconds for each byte of a text times each byte of the pattern
// searched for in it, in the worst case: measured with texts of a's and patterns of a's
// that end in b.
var patternCosts = map[string]float64{
	"trim": 10, "ltrim": 10, "rtrim": 10, "unhex": 10, "like": 3, "glob": 3,
	"instr": .02, "replace": .02, "json_patch": .2, "jsonb_patch": .2,
}

// valueLimit returns the length in bytes that a value may have in a statement whose
// longest parameter has param bytes. It returns an error if no length is small enough.
func (w weight) valueLimit(param int) (int, error) {
	// Calls cost a·L² + b·L for values of length L.
	var a float64
	b := callCost*float64(w.calls) + argCost*float64(w.args)
	for _, p := range w.patterns {
		length, cost := p.length, patternCosts[p.function]
		if length == patternParam {
			length = param
		}
		if p.function == "like" || p.function == "glob" {
			if length == patternUnknown || length > maxPattern {
				length = maxPattern
			}
		}
		if length == patternUnknown {
			a += cost
		} else {
			b += callCost + cost*float64(length)
		}
	}
	limit := float64(longestValue)
	if a > 0 {
		limit = min(limit, (math.Sqrt(b*b+4*a*rowCost)-b)/(2*a))
	} else if b > 0 {
		limit = min(limit, rowCost/b)
	}
	if limit < shortestValue {
		return 0, badQuery("the statement calls too many functions; split it")
	}
	return int(limit), nil
}
