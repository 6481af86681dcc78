package store

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"satchel/agent"
)

// Cursor is a position in a list: after the record with these values of the list's
// sort keys.
type Cursor struct {
	Order  string `json:"order"` // of the list that it belongs to
	Values []any  `json:"values"`
}

// String returns the cursor as clients see it.
func (c *Cursor) String() string {
	raw, err := json.Marshal(c)
	if err != nil {
		return "" // other values than strings and numbers
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// ParseCursor parses what String returned.
func ParseCursor(text string) (*Cursor, error) {
	invalid := agent.Invalid("cursor", "must be a cursor returned with a page of this list")
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, invalid
	}
	c := &Cursor{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(c); err != nil || slices.ContainsFunc(c.Values, isComposite) {
		return nil, invalid
	}
	for i, v := range c.Values {
		if number, ok := v.(json.Number); ok {
			if c.Values[i], err = number.Int64(); err != nil {
				return nil, invalid
			}
		}
	}
	return c, nil
}

func isComposite(v any) bool {
	switch v.(type) {
	case string, json.Number:
		return false
	}
	return true
}

// checkCursor refuses a cursor of a list with another order.
func checkCursor(keys []sortKey, c *Cursor) error {
	if c != nil && (c.Order != orderOf(keys) || len(c.Values) != len(keys)) {
		return agent.Invalid("cursor", "belongs to a list with a different order")
	}
	return nil
}

func orderOf(keys []sortKey) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = k.field
		if k.desc {
			parts[i] = "-" + k.field
		}
	}
	return strings.Join(parts, ",")
}

// cursor returns the position after a record.
func (l *listed) cursor(keys []sortKey, record any) (*Cursor, error) {
	raw, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	var shown map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&shown); err != nil {
		return nil, err
	}
	c := &Cursor{Order: orderOf(keys)}
	for _, k := range keys {
		field := k.field
		if k.column == "id" {
			field = "id"
		}
		v := shown[field]
		if l.value != nil {
			if special := l.value(record, field); special != nil {
				v = special
			}
		}
		if v == nil {
			v = "" // as the column has it
		}
		c.Values = append(c.Values, v)
	}
	return c, nil
}

// afterCursor is the condition that a record comes after a cursor.
func afterCursor(keys []sortKey, cursor *Cursor) (string, []any) {
	columns := make([]string, len(keys))
	mixed := false
	for i, k := range keys {
		columns[i] = k.column
		mixed = mixed || k.desc != keys[0].desc
	}
	if !mixed {
		return "(" + strings.Join(columns, ", ") + ") " + after(keys[0]) + " (" +
			placeholders(len(keys)) + ")", cursor.Values
	}
	// k1 > ? OR k1 = ? AND (k2 > ? OR ...), and k1 >= ? for the index.
	condition, args := "", []any{}
	for i := len(keys) - 1; i >= 0; i-- {
		own := columns[i] + " " + after(keys[i]) + " ?"
		if condition == "" {
			condition, args = own, []any{cursor.Values[i]}
			continue
		}
		condition = "(" + own + " OR " + columns[i] + " = ? AND " + condition + ")"
		args = append([]any{cursor.Values[i], cursor.Values[i]}, args...)
	}
	return columns[0] + " " + after(keys[0]) + "= ? AND " + condition, append([]any{cursor.Values[0]}, args...)
}

func after(k sortKey) string {
	if k.desc {
		return "<"
	}
	return ">"
}
