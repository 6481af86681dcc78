package sqlsandbox

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"satchel/agent"
)

// Params are the parameters of a SQL statement: List for ? and ?1, or Named for :name,
// @name and $name, with or without that sign in the key. Values are nil, bool (1 and 0),
// string, json.Number, float64, int and int64. In JSON they are an array or an object.
type Params struct {
	List  []any
	Named map[string]any
}

// UnmarshalJSON reads an array, an object or null. Numbers stay exact.
func (p *Params) UnmarshalJSON(data []byte) error {
	*p = Params{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return d.Decode(&p.Named)
	}
	return d.Decode(&p.List)
}

// MarshalJSON writes the form that UnmarshalJSON reads.
func (p Params) MarshalJSON() ([]byte, error) {
	if p.Named != nil {
		return json.Marshal(p.Named)
	}
	if p.List == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(p.List)
}

// arguments are the parameters as passed to SQLite.
type arguments struct {
	list    []any
	named   map[string]any
	longest int // bytes of the longest text
}

// arguments checks and converts all values. For a bad one the error is INVALID_QUERY and
// names its field.
func (p Params) arguments() (arguments, error) {
	a := arguments{list: make([]any, len(p.List))}
	for i, v := range p.List {
		var err error
		if a.list[i], err = a.argument(fmt.Sprintf("params[%d]", i), v); err != nil {
			return a, err
		}
	}
	if p.Named == nil {
		return a, nil
	}
	a.named = make(map[string]any, len(p.Named))
	for name, v := range p.Named {
		value, err := a.argument("params."+agent.Clip(name, 60), v)
		if err != nil {
			return a, err
		}
		a.named[strings.TrimLeft(name, ":@$")] = value
	}
	return a, nil
}

// argument turns one value into nil, an int64, a float64 or a string.
func (a *arguments) argument(field string, value any) (any, error) {
	bad := func(issue string) (any, error) {
		return nil, badQuery("%s %s", field, issue).With("field", field).With("issue", issue)
	}
	switch item := value.(type) {
	case nil:
		return nil, nil
	case bool:
		if item {
			return int64(1), nil
		}
		return int64(0), nil
	case int:
		return int64(item), nil
	case int64:
		return item, nil
	case float64:
		if item == math.Trunc(item) && math.Abs(item) <= exactInteger {
			return int64(item), nil
		}
		return item, nil
	case json.Number:
		if n, err := strconv.ParseInt(item.String(), 10, 64); err == nil {
			return n, nil
		}
		f, err := item.Float64()
		if err != nil {
			return bad("is not a number that can be stored")
		}
		return f, nil
	case string:
		if strings.IndexByte(item, 0) >= 0 {
			return bad("must not contain NUL characters")
		}
		a.longest = max(a.longest, len(item))
		return strings.ToValidUTF8(item, "\ufffd"), nil
	}
	return bad("must be text, a number, true, false or null")
}

// order orders the arguments as the statement's parameters require. params has their
// names, including the sign, and "" for a plain ?.
func (a arguments) order(params []string) ([]any, error) {
	if a.named == nil {
		if len(a.list) != len(params) {
			return nil, badQuery("the statement takes %d parameters, but params has %d", len(params), len(a.list)).
				With("expected", len(params)).With("given", len(a.list))
		}
		return a.list, nil
	}
	values := make([]any, len(params))
	used := map[string]bool{}
	for i, name := range params {
		if name == "" || name[0] == '?' {
			return nil, badQuery("parameter %d of the statement has no name, but params is an object", i+1)
		}
		value, ok := a.named[name[1:]]
		if !ok {
			return nil, badQuery("params lacks %s", agent.Clip(name, 60)).With("parameter", agent.Clip(name, 60))
		}
		values[i] = value
		used[name[1:]] = true
	}
	for name := range a.named {
		if !used[name] {
			return nil, badQuery(
				"the statement has no parameter %s",
				agent.Clip(name, 60),
			).With("parameter", agent.Clip(name, 60))
		}
	}
	return values, nil
}

// exactInteger is the largest integer up to which JSON readers that use float64 represent
// every integer exactly.
const exactInteger = 1 << 53

// jsonValue returns an SQLite value as it appears in the result, and the minimum number
// of bytes that it takes there: blobs as base64, integers that a float64 cannot hold as
// decimal text, infinities by name, and text as valid UTF-8.
func jsonValue(value any) (any, int) {
	switch item := value.(type) {
	case int64:
		if item > exactInteger || item < -exactInteger {
			value = strconv.FormatInt(item, 10)
		}
		return value, 24
	case float64:
		switch {
		case math.IsInf(item, 1):
			return "Infinity", 12
		case math.IsInf(item, -1):
			return "-Infinity", 12
		case math.IsNaN(item):
			return nil, 6
		}
		return item, 26
	case string:
		text := strings.ToValidUTF8(item, "\ufffd")
		return text, jsonLength(text)
	case []byte:
		text := base64.StdEncoding.EncodeToString(item)
		return text, len(text) + 3
	}
	return nil, 5
}

// jsonLength returns how many bytes encoding/json writes for text and a comma.
func jsonLength(text string) int {
	n := len(text) + 3
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t':
			n++
		case c < ' ' || c == '<' || c == '>' || c == '&' || c == 0x7f:
			n += 5
		}
	}
	return n
}
