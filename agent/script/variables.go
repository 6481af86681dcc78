package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// inlineBytes is the largest size, as JSON, of an object or list that is sent
// together with its container. Parts of larger ones are sent when the script
// reads them, so that a script costs what it reads rather than what exists.
const inlineBytes = 4 << 10

// Sizes of the pieces of a list that are sent when the script reads an entry:
// the first is small, and each one is twice as large as the previous.
const (
	firstPiece = 1 << 10
	maxPiece   = 256 << 10
)

// refBytes is what a reference to a value that is not sent yet counts.
const refBytes = 32

// readRequest asks for a part of a large value: the entry of an object at Key,
// entries of a list from At on, or all entries.
type readRequest struct {
	Number int
	Key    string `json:",omitempty"`
	At     int    `json:",omitempty"`
	Whole  bool   `json:",omitempty"`
}

// variables are the variables of one script, as sent by its parent.
type variables struct {
	inline int    // see inlineBytes
	first  []byte // sent with the order
	large  []any
	piece  []int // by number of a list: bytes of its next piece
	sent   int
	// warning is about an integer among them that changed.
	warning string
}

// part is a frame of frameValues being written.
type part struct {
	of            *variables
	values, large bytes.Buffer
	remaining     int // bytes left for outlines
}

// write encodes values as a frame of frameValues.
func (v *variables) write(keys []string, values []any) ([]byte, error) {
	p := part{of: v, remaining: v.inline}
	p.values.WriteString(`{"values":[`)
	for i, value := range values {
		if i > 0 {
			p.values.WriteByte(',')
		}
		if err := p.add(i, value); err != nil {
			return nil, err
		}
	}
	p.values.WriteString(`],"large":[`)
	p.values.Write(bytes.TrimPrefix(p.large.Bytes(), []byte(",")))
	p.values.WriteString(`]`)
	if keys != nil {
		text, err := json.Marshal(keys)
		if err != nil {
			return nil, err
		}
		p.values.WriteString(`,"keys":`)
		p.values.Write(text)
	}
	p.values.WriteByte('}')
	v.sent += p.values.Len()
	if v.warning == "" {
		v.warning = changedInteger(p.values.Bytes())
	}
	return p.values.Bytes(), nil
}

// add writes a value. A large object with few entries is written with its
// entries, so that a script need not request each.
func (p *part) add(at int, value any) error {
	object, _ := value.(map[string]any)
	if object == nil || remaining(object, p.of.inline) >= 0 || !p.reserveOutlines(object) {
		return p.entry(at, "null", value)
	}
	for i, key := range slices.Sorted(maps.Keys(object)) {
		name, err := json.Marshal(key)
		if err != nil {
			return err
		}
		p.values.WriteByte("{,"[min(i, 1)])
		p.values.Write(name)
		p.values.WriteByte(':')
		if err := p.entry(at, string(name), object[key]); err != nil {
			return err
		}
	}
	p.values.WriteByte('}')
	return nil
}

// entry writes a value, or a reference to it if it is large.
func (p *part) entry(at int, key string, value any) error {
	if number, length, ok := p.of.deferValue(value); ok {
		p.values.WriteString("null")
		fmt.Fprintf(&p.large, ",[%d,%d,%d,%s]", at, number, length, key)
		p.of.sent += refBytes
		return nil
	}
	text, err := json.Marshal(value)
	p.values.Write(text)
	return err
}

// reserveOutlines reports whether there is room for an object's small entries as well
// as references to its large ones, and reserves it.
func (p *part) reserveOutlines(object map[string]any) bool {
	budget := p.remaining
	for key, entry := range object {
		budget -= len(key) + 4
		switch entry.(type) {
		case map[string]any, []any:
			if remaining(entry, p.of.inline) < 0 {
				budget -= refBytes
				continue
			}
		}
		if budget = remaining(entry, budget); budget < 0 {
			return false
		}
	}
	if budget < 0 || len(object) == 0 {
		return false
	}
	p.remaining = budget
	return true
}

// deferValue assigns a number to a large object or list. length is -1 for an
// object.
func (v *variables) deferValue(value any) (number, length int, ok bool) {
	length = -1
	switch value := value.(type) {
	case map[string]any:
	case []any:
		length = len(value)
	default:
		return 0, 0, false
	}
	if remaining(value, v.inline) >= 0 {
		return 0, 0, false
	}
	v.large, v.piece = append(v.large, value), append(v.piece, firstPiece)
	return len(v.large) - 1, length, true
}

// remaining returns how much of a budget of bytes remains after a value, encoded as JSON,
// approximately. It is negative if the value needs more. It inspects no more of
// the value than that.
func remaining(value any, budget int) int {
	switch value := value.(type) {
	case string:
		return budget - len(value) - 2
	case map[string]any:
		budget -= 2
		for key, entry := range value {
			if budget = remaining(entry, budget-len(key)-4); budget < 0 {
				break
			}
		}
		return budget
	case []any:
		budget -= 2
		for _, entry := range value {
			if budget = remaining(entry, budget-1); budget < 0 {
				break
			}
		}
		return budget
	}
	return budget - 8
}

// errRead is the error if a child requests what it was not offered.
var errRead = errors.New("script: a child reads a variable that does not exist")

// read answers a request of the child.
func (v *variables) read(payload []byte) ([]byte, error) {
	var r readRequest
	if err := readJSON(payload, &r); err != nil {
		return nil, err
	}
	if r.Number < 0 || r.Number >= len(v.large) {
		return nil, errRead
	}
	if v.sent > MaxVariables {
		return v.refuse()
	}
	text, err := v.part(r)
	if err == nil && len(text) > MaxVariables {
		return v.refuse()
	}
	return text, err
}

func (v *variables) refuse() ([]byte, error) {
	return []byte(`{"problem":` +
		strconv.Quote(fmt.Sprintf("the script reads more than %d bytes of its variables as JSON", MaxVariables)) +
		`}`), nil
}

func (v *variables) part(request readRequest) ([]byte, error) {
	switch value := v.large[request.Number].(type) {
	case map[string]any:
		if request.Whole {
			keys := slices.AppendSeq(make([]string, 0, len(value)), maps.Keys(value))
			slices.Sort(keys)
			values := make([]any, len(keys))
			for i, key := range keys {
				values[i] = value[key]
			}
			return v.write(keys, values)
		}
		entry, ok := value[request.Key]
		if !ok {
			return v.write(nil, nil)
		}
		return v.write(nil, []any{entry})
	case []any:
		if request.Whole {
			return v.write(nil, value)
		}
		if request.At < 0 || request.At >= len(value) {
			return nil, errRead
		}
		return v.write(nil, value[request.At:request.At+v.count(request.Number, value[request.At:])])
	}
	return nil, errRead
}

// count returns how many entries the next piece of a list has.
func (v *variables) count(number int, entries []any) int {
	budget := v.piece[number]
	v.piece[number] = min(2*budget, maxPiece)
	for i, entry := range entries {
		if budget -= max(0, v.inline-remaining(entry, v.inline)) + 1; budget < 0 {
			return max(1, i)
		}
	}
	return len(entries)
}

// Mentioned returns the words in a script that may be names of variables. exact
// is false if the script can read a variable without mentioning its name.
func Mentioned(code string) (names []string, exact bool) {
	found := map[string]bool{}
	for word := range strings.FieldsFuncSeq(code, func(r rune) bool {
		return !isNameRune(r)
	}) {
		if name := strings.TrimLeft(word, "0123456789"); name != "" {
			found[name] = true
		}
	}
	return slices.Collect(maps.Keys(found)), !found["eval"] &&
		!found["arguments"] &&
		!strings.Contains(code, `\u`)
}

// isNameRune reports whether the name of a variable may contain r.
func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' ||
		'A' <= r && r <= 'Z' ||
		'0' <= r && r <= '9' ||
		r == '_' ||
		r == '$'
}
