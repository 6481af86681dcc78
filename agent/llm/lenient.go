package llm

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The types of this file decode what servers send that call themselves compatible with
// OpenAI's API, and differ from its description.

// count is a number of tokens: a number with or without a fraction, or a text. Anything
// else counts as 0, since no answer should fail because of its usage.
type count int64

// UnmarshalJSON never fails.
func (n *count) UnmarshalJSON(data []byte) error {
	value, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err != nil || !(value >= 0) || value > math.MaxInt32 {
		value = 0
	}
	*n = count(value)
	return nil
}

// text is a string, null, a number, or a list of parts, of which those of text count.
type text string

// UnmarshalJSON fails for no valid JSON; values that are no text become empty.
func (t *text) UnmarshalJSON(data []byte) error {
	*t = ""
	var list []json.RawMessage
	switch data[0] {
	case '"':
		return json.Unmarshal(data, (*string)(t))
	case '[':
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
	case '{':
		list = []json.RawMessage{data}
	case 'n', 't', 'f':
	default:
		*t = text(data)
	}
	var all strings.Builder
	for _, raw := range list {
		var part struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if raw[0] == '"' {
			_ = json.Unmarshal(raw, &part.Text)
		} else if raw[0] != '{' || json.Unmarshal(raw, &part) != nil {
			continue
		}
		if part.Type == "" || part.Type == "text" || part.Type == "output_text" {
			all.WriteString(part.Text)
		}
	}
	*t += text(all.String())
	return nil
}

// arguments are those of a tool call: a text that is JSON, or the JSON itself.
type arguments string

// UnmarshalJSON accepts any JSON.
func (a *arguments) UnmarshalJSON(data []byte) error {
	switch {
	case data[0] == '"':
		return json.Unmarshal(data, (*string)(a))
	case bytes.Equal(data, []byte("null")):
		*a = ""
	default:
		*a = arguments(data)
	}
	return nil
}

// splitFields decodes an object's known fields into the given values, and returns the
// rest of its fields, without those in ignored and those that are null.
func splitFields(data []byte, known map[string]any, ignored ...string) (map[string]json.RawMessage, error) {
	var rest map[string]json.RawMessage
	if err := json.Unmarshal(data, &rest); err != nil {
		return nil, err
	}
	for name, value := range rest {
		target := known[name]
		if target != nil {
			if err := json.Unmarshal(value, target); err != nil {
				return nil, err
			}
		}
		if target != nil || string(value) == "null" || slices.Contains(ignored, name) {
			delete(rest, name)
		}
	}
	if len(rest) == 0 {
		return nil, nil
	}
	return rest, nil
}

// withFields encodes an object with additional fields.
func withFields(object any, fields map[string]json.RawMessage) ([]byte, error) {
	raw, err := json.Marshal(object)
	if err != nil || len(fields) == 0 {
		return raw, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	for name, value := range fields {
		if _, own := all[name]; !own {
			all[name] = value
		}
	}
	return json.Marshal(all)
}

// textBuffer is a text that comes in pieces.
type textBuffer struct{ bytes []byte }

// MarshalJSON encodes the text.
func (b *textBuffer) MarshalJSON() ([]byte, error) {
	return json.Marshal(string(b.bytes))
}

// fieldPieces assembles the fields of a message, or of a call, of a stream.
type fieldPieces map[string]any

// add adds the fields of the next piece. Texts whose names are in pieces continue those
// before, others replace them.
func (f *fieldPieces) add(fields map[string]json.RawMessage, pieces ...string) {
	for name, raw := range fields {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		var value any
		if decoder.Decode(&value) != nil {
			continue
		}
		if *f == nil {
			*f = fieldPieces{}
		}
		continues := slices.Contains(pieces, name) || slices.Contains(nestedPieces, name)
		(*f)[name] = mergePiece((*f)[name], value, continues)
	}
}

// nestedPieces are the names of texts in objects that continue from piece to piece, such
// as those of OpenRouter's reasoning_details.
var nestedPieces = []string{"text", "summary", "data", "thinking", "reasoning", "reasoning_content"}

// mergePiece adds a piece to what came before.
func mergePiece(before, piece any, continues bool) any {
	switch piece := piece.(type) {
	case string:
		buffer, ok := before.(*textBuffer)
		if !ok || !continues {
			buffer = &textBuffer{}
		}
		buffer.bytes = append(buffer.bytes, piece...)
		return buffer
	case []any:
		list, _ := before.([]any)
		for i, entry := range piece {
			if n := len(list); n > 0 && (sameIndex(list[n-1], entry) || i == 0 && continuesBlock(list[n-1], entry)) {
				list[n-1] = mergePiece(list[n-1], entry, false)
			} else {
				list = append(list, mergePiece(nil, entry, false))
			}
		}
		return list
	case map[string]any:
		object, ok := before.(map[string]any)
		if !ok {
			object = map[string]any{}
		}
		for name, value := range piece {
			if object[name] != nil && (value == nil || value == "") {
				continue
			}
			object[name] = mergePiece(object[name], value, slices.Contains(nestedPieces, name))
		}
		return object
	}
	return piece
}

// sameIndex reports whether two entries of a list are pieces of one.
func sameIndex(a, b any) bool {
	first, _ := a.(map[string]any)
	second, _ := b.(map[string]any)
	return first["index"] != nil && first["index"] == second["index"]
}

// continuesBlock reports whether an entry without an index, which begins the list of the
// next piece, continues the last one: LiteLLM sends pieces of thinking blocks like that,
// and the signature last.
func continuesBlock(last, entry any) bool {
	before, _ := last.(map[string]any)
	next, _ := entry.(map[string]any)
	kind, _ := before["type"].(*textBuffer)
	signature, _ := before["signature"].(*textBuffer)
	isSigned := signature != nil && len(signature.bytes) > 0
	return !isSigned &&
		before["index"] == nil &&
		next["index"] == nil &&
		kind != nil &&
		string(kind.bytes) == next["type"]
}

// fields returns the assembled fields.
func (f fieldPieces) fields() map[string]json.RawMessage {
	if len(f) == 0 {
		return nil
	}
	fields := make(map[string]json.RawMessage, len(f))
	for name, value := range f {
		if raw, err := json.Marshal(value); err == nil {
			fields[name] = raw
		}
	}
	return fields
}
