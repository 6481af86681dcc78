package document

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

// readJSON writes a JSON text, or one per line (JSON Lines), as lines of path
// and value: "order.items[0].name: value". Each element of an outermost array
// of objects, and each object directly below the root, is a record. Numbers
// are kept as written.
func readJSON(ctx context.Context, in input) (*Document, error) {
	data, err := in.decode(FormatJSON)
	if err != nil {
		return nil, err
	}
	texts, err := jsonTexts(data)
	if err != nil {
		return nil, err
	}
	text, blocks, err := records(in.limits, func(w *recordWriter) error {
		for one := range texts {
			walk := jsonWalker{
				ctx:      ctx,
				out:      w,
				data:     one,
				maxDepth: in.limits.Depth,
			}
			if err := walk.value(0); err != nil {
				return err
			}
			w.end()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Document{Text: text, Blocks: blocks}, nil
}

// jsonTexts validates data and returns its JSON texts: data itself, or its
// lines.
func jsonTexts(data []byte) (func(func([]byte) bool), error) {
	if json.Valid(data) {
		return func(yield func([]byte) bool) { yield(data) }, nil
	}
	texts := func(yield func([]byte) bool) {
		for line := range bytes.Lines(data) {
			if len(bytes.TrimSpace(line)) > 0 && !yield(line) {
				return
			}
		}
	}
	valid := true
	texts(func(line []byte) bool {
		valid = json.Valid(line)
		return valid
	})
	if valid {
		return texts, nil
	}
	return nil, brokenJSON(data)
}

// brokenJSON returns an error with the line where the JSON is invalid.
func brokenJSON(data []byte) error {
	var (
		whole  json.RawMessage
		syntax *json.SyntaxError
	)
	if err := json.Unmarshal(data, &whole); !errors.As(err, &syntax) {
		return broken("the file is not valid JSON")
	}
	offset := min(max(int(syntax.Offset), 0), len(data))
	// Only a Decoder distinguishes a wrong last byte from a missing one.
	atEnd := len(bytes.TrimSpace(data[offset:])) == 0
	if atEnd && errors.Is(json.NewDecoder(bytes.NewReader(data)).Decode(&whole), io.ErrUnexpectedEOF) {
		return broken("the JSON ends in the middle of a value")
	}
	return broken("the file is not valid JSON: see line %d", 1+bytes.Count(data[:offset], []byte("\n")))
}

// jsonWalker writes one valid JSON text. It scans the bytes itself, as
// encoding/json allocates twice per token, and the text is already validated.
type jsonWalker struct {
	ctx      context.Context
	out      *recordWriter
	data     []byte
	pos      int
	maxDepth int
	path     []byte
	inArray  bool // inside an outermost array of objects
	steps    int
}

// value writes the value at pos, nested at depth.
func (w *jsonWalker) value(depth int) error {
	if w.steps++; w.steps%4096 == 0 && w.ctx.Err() != nil {
		return w.ctx.Err()
	}
	if depth > w.maxDepth {
		return tooComplex("the JSON is nested deeper than %d levels", w.maxDepth)
	}
	w.space()
	switch {
	case w.data[w.pos] == '{':
		return w.object(depth)
	case w.data[w.pos] != '[':
		return w.leaf(w.scalar())
	case w.hasOnlyScalars():
		return w.scalars()
	}
	return w.array(depth)
}

func (w *jsonWalker) object(depth int) error {
	if w.skipIfEmpty() {
		return w.leaf([]byte("{}"))
	}
	for parent := len(w.path); ; w.path = w.path[:parent] {
		w.space()
		w.path = appendKey(w.path, w.scalar())
		w.space()
		w.pos++ // the colon
		w.space()
		apart := depth == 0 && !w.inArray && w.data[w.pos] == '{'
		if apart {
			w.out.end()
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
		if apart {
			w.out.end()
		}
		if w.last() {
			w.path = w.path[:parent]
			return nil
		}
	}
}

func (w *jsonWalker) array(depth int) error {
	outermost := !w.inArray
	w.inArray = true
	w.pos++
	for parent, i := len(w.path), 0; ; i++ {
		if outermost {
			w.out.end()
		}
		w.path = append(strconv.AppendInt(append(w.path, '['), int64(i), 10), ']')
		if err := w.value(depth + 1); err != nil {
			return err
		}
		w.path = w.path[:parent]
		if w.last() {
			break
		}
	}
	if outermost {
		w.inArray = false
		w.out.end()
	}
	return nil
}

// hasOnlyScalars reports whether the array at pos contains neither objects nor
// arrays.
func (w *jsonWalker) hasOnlyScalars() bool {
	start := w.pos
	defer func() { w.pos = start }()
	if w.skipIfEmpty() {
		return true
	}
	for {
		w.space()
		if c := w.data[w.pos]; c == '{' || c == '[' {
			return false
		}
		w.skipScalar()
		if w.last() {
			return true
		}
	}
}

// scalars writes the array at pos on one line.
func (w *jsonWalker) scalars() error {
	if w.skipIfEmpty() {
		return w.leaf([]byte("[]"))
	}
	w.label()
	for {
		w.space()
		w.out.write(w.scalar())
		if w.last() {
			return w.out.line(nil)
		}
		w.out.write(afterItem)
		if w.out.counted > w.out.limit {
			return tooMuchText(w.out.limit)
		}
	}
}

func (w *jsonWalker) leaf(value []byte) error {
	w.label()
	return w.out.line(value)
}

func (w *jsonWalker) label() {
	if len(w.path) > 0 {
		w.out.write(w.path)
		w.out.write(afterName)
	}
}

// skipIfEmpty skips the opening bracket of the object or array at pos. If it is
// empty, it also skips the closing one and returns true.
func (w *jsonWalker) skipIfEmpty() bool {
	w.pos++
	w.space()
	if c := w.data[w.pos]; c == '}' || c == ']' {
		w.pos++
		return true
	}
	return false
}

// last skips the comma or bracket after a value and reports whether it was a
// bracket.
func (w *jsonWalker) last() bool {
	w.space()
	w.pos++
	return w.data[w.pos-1] != ','
}

func (w *jsonWalker) space() {
	for w.pos < len(w.data) && strings.IndexByte(" \t\r\n", w.data[w.pos]) >= 0 {
		w.pos++
	}
}

// scalar skips the string, number or literal at pos and returns its text.
func (w *jsonWalker) scalar() []byte {
	start := w.pos
	escaped := w.skipScalar()
	raw := w.data[start:w.pos]
	if raw[0] != '"' {
		return raw
	}
	if !escaped {
		return raw[1 : len(raw)-1]
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return raw // unreachable: the text is valid
	}
	return []byte(s)
}

// skipScalar skips the scalar at pos and reports whether it is a string with
// escapes.
func (w *jsonWalker) skipScalar() (escaped bool) {
	if w.data[w.pos] != '"' {
		for w.pos < len(w.data) && strings.IndexByte(",]} \t\r\n", w.data[w.pos]) < 0 {
			w.pos++
		}
		return false
	}
	for w.pos++; w.data[w.pos] != '"'; w.pos++ {
		if w.data[w.pos] == '\\' {
			escaped = true
			w.pos++
		}
	}
	w.pos++
	return escaped
}

// appendKey appends a member's name to a path, quoted in brackets if it would
// otherwise read as several steps or none.
func appendKey(path, key []byte) []byte {
	if len(key) == 0 || bytes.ContainsAny(key, ".[]:\"\n\r\t\x00") {
		return append(strconv.AppendQuote(append(path, '['), string(key)), ']')
	}
	if len(path) > 0 {
		path = append(path, '.')
	}
	return append(path, key...)
}
