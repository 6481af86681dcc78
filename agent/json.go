package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// DecodeJSON decodes one JSON value. Numbers in it are json.Number, so that they keep all
// their digits.
func DecodeJSON(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}

// maxDepth is the nesting from which on encoding/json refuses JSON before it decodes any of it.
const maxDepth = 10_000

// CountValues returns about how many values JSON has, without decoding it: it counts the
// characters that stand before values, outside of strings. JSON that is nested too deeply
// is only counted up to there, since it is not decoded.
func CountValues(raw []byte) (count int64) {
	quoted, depth := false, 0
	for i := 0; i < len(raw) && depth <= maxDepth; i++ {
		switch b := raw[i]; {
		case b == '"':
			quoted = !quoted
		case b == '\\':
			i++
		case quoted:
		case b == ',':
			count++
		case b == '[' || b == '{':
			count++
			depth++
		case b == ']' || b == '}':
			depth--
		}
	}
	return count
}
