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

// CountValues returns about how many values JSON has, without decoding it: it counts the
// characters that stand before values, outside of strings.
func CountValues(raw []byte) (n int64) {
	quoted := false
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			quoted = !quoted
		case '\\':
			i++
		case ',', '[', '{':
			if !quoted {
				n++
			}
		}
	}
	return n
}
