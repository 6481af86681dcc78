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

// inlineBytes is how large an object or a list may be, as JSON, that is sent
// with what holds it. Of a larger one, what the script reads is sent when it
// reads it, so that a script costs what it reads and not what there is.
const inlineBytes = 4 << 10

// Bounds of the pieces of a list that are sent when the script reads an entry
// of it: the first is small, and each is twice as large as the one before.
const (
	firstPiece = 1 << 10
	maxPiece   = 256 << 10
)

// refBytes is what a value that is not sent yet counts.
const refBytes = 32

// readRequest asks for a part of a large value: the entry of an object at Key,
// entries of a list from At on, or all entries.
type readRequest struct {
	Number int
	Key    string `json:",omitempty"`
	At     int    `json:",omitempty"`
	Whole  bool   `json:",omitempty"`
}

// variables are those of one script, as its parent sends them.
type variables struct {
	inline int    // see inlineBytes
	first  []byte // what is sent with the order
	large  []any
	piece  []int // by number of a list: bytes of its next piece
	sent   int
}

// write writes values as a frame of frameValue.
func (v *variables) write(keys []string, values []any) ([]byte, error) {
	var out, larges bytes.Buffer
	out.WriteString(`{"values":[`)
	for i, value := range values {
		if i > 0 {
			out.WriteByte(',')
		}
		number, length, ok := v.postpone(value)
		if ok {
			out.WriteString("null")
			fmt.Fprintf(&larges, ",[%d,%d,%d]", i, number, length)
			v.sent += refBytes
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		out.Write(text)
	}
	out.WriteString(`],"large":[`)
	out.Write(bytes.TrimPrefix(larges.Bytes(), []byte(",")))
	out.WriteString(`]`)
	if keys != nil {
		text, err := json.Marshal(keys)
		if err != nil {
			return nil, err
		}
		out.WriteString(`,"keys":`)
		out.Write(text)
	}
	out.WriteByte('}')
	v.sent += out.Len()
	return out.Bytes(), nil
}

// postpone gives a large object or list a number; length is -1 of an object.
func (v *variables) postpone(value any) (number, length int, ok bool) {
	length = -1
	switch value := value.(type) {
	case map[string]any:
	case []any:
		length = len(value)
	default:
		return 0, 0, false
	}
	if room(value, v.inline) >= 0 {
		return 0, 0, false
	}
	v.large, v.piece = append(v.large, value), append(v.piece, firstPiece)
	return len(v.large) - 1, length, true
}

// room is what a value leaves of so many bytes as JSON, about, and below 0 when
// it needs more. It looks at no more of the value than that.
func room(value any, left int) int {
	switch value := value.(type) {
	case string:
		return left - len(value) - 2
	case map[string]any:
		left -= 2
		for key, entry := range value {
			if left = room(entry, left-len(key)-4); left < 0 {
				break
			}
		}
		return left
	case []any:
		left -= 2
		for _, entry := range value {
			if left = room(entry, left-1); left < 0 {
				break
			}
		}
		return left
	}
	return left - 8
}

// errRead is the error of a child that asks for what it was not given.
var errRead = errors.New("script: a child reads what is not there")

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
	return []byte(`{"problem":` + strconv.Quote(fmt.Sprintf("the script reads more than %d bytes of its variables as JSON", MaxVariables)) + `}`), nil
}

func (v *variables) part(r readRequest) ([]byte, error) {
	switch value := v.large[r.Number].(type) {
	case map[string]any:
		if r.Whole {
			keys := slices.AppendSeq(make([]string, 0, len(value)), maps.Keys(value))
			slices.Sort(keys)
			values := make([]any, len(keys))
			for i, key := range keys {
				values[i] = value[key]
			}
			return v.write(keys, values)
		}
		entry, ok := value[r.Key]
		if !ok {
			return v.write(nil, nil)
		}
		return v.write(nil, []any{entry})
	case []any:
		if r.Whole {
			return v.write(nil, value)
		}
		if r.At < 0 || r.At >= len(value) {
			return nil, errRead
		}
		return v.write(nil, value[r.At:r.At+v.count(r.Number, value[r.At:])])
	}
	return nil, errRead
}

// count is how many entries the next piece of a list has.
func (v *variables) count(number int, entries []any) int {
	left := v.piece[number]
	v.piece[number] = min(2*left, maxPiece)
	for i, entry := range entries {
		if left -= max(0, v.inline-room(entry, v.inline)) + 1; left < 0 {
			return max(1, i)
		}
	}
	return len(entries)
}

// Mentioned lists the words in a script that may be names of variables. It is
// not exact where a script can read a variable without mentioning its name.
func Mentioned(code string) (names []string, exact bool) {
	found := map[string]bool{}
	for word := range strings.FieldsFuncSeq(code, func(r rune) bool { return !inName(r) }) {
		if name := strings.TrimLeft(word, "0123456789"); name != "" {
			found[name] = true
		}
	}
	return slices.Collect(maps.Keys(found)), !found["eval"] && !found["arguments"] && !strings.Contains(code, `\u`)
}

// inName reports whether a name of a variable may contain r.
func inName(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '$'
}
