package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Row holds the values of a row of a Table by column. Decoded numbers are
// json.Number, so that they stay exact.
type Row map[string]any

// UnmarshalJSON decodes an object, with numbers as json.Number.
func (r *Row) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil {
		return err
	}
	*r = values
	return nil
}

// Cell is the value of a column as it is stored: nil, a string, a float64 or an
// int64.
type Cell struct {
	Column string
	Value  any
}

// Cells checks the values of a row and returns its cells: all columns for a new
// row, only the given ones for a change. field names the row in issues. Columns
// that the program sets are ignored.
func (t *Table) Cells(row Row, isNew bool, field string) ([]Cell, error) {
	var is Issues
	cells := make([]Cell, 0, len(t.Columns))
	for i := range t.Columns {
		c := &t.Columns[i]
		given, present := row[c.Name]
		if !present && !isNew {
			continue
		}
		value, issue := c.Parse(given)
		if issue == "" && c.Required && (value == nil || value == "") {
			issue = "is required"
		}
		is.Check(issue == "", join(field, c.Name), issue)
		cells = append(cells, Cell{c.Name, value})
	}
	for name := range row {
		if _, known := t.Column(name); !known {
			is.Add(join(field, Clip(name, 60)), "is not a column of the table "+t.Name)
		}
	}
	Sort(is, func(a, b Issue) int {
		return strings.Compare(a.Field, b.Field)
	})
	if err := is.Err(); err != nil {
		return nil, err
	}
	return cells, checkRowSize(cells, field)
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

func checkRowSize(cells []Cell, field string) error {
	size := 0
	for _, c := range cells {
		if text, ok := c.Value.(string); ok {
			size += len(text)
		}
	}
	if size <= MaxRowBytes {
		return nil
	}
	if field == "" {
		field = "row"
	}
	return Invalid(field, fmt.Sprintf("must have at most %d KB", MaxRowBytes>>10))
}

// Parse converts a JSON value to what the column stores. issue is "" if it can be
// stored.
func (c *TableColumn) Parse(value any) (cell any, issue string) {
	if value == nil {
		return nil, ""
	}
	if text, ok := value.(string); ok && (!utf8.ValidString(text) || strings.ContainsRune(text, 0)) {
		return nil, "must be UTF-8 without NUL characters"
	}
	switch c.Type {
	case ColumnNumber:
		return parseNumber(value)
	case ColumnBoolean:
		return parseBoolean(value)
	case ColumnTime:
		return parseTime(value)
	case ColumnJSON:
		return parseJSON(value)
	case ColumnChoice:
		text, ok := value.(string)
		switch {
		case text == "" && ok:
			return nil, ""
		case !ok || !slices.Contains(c.Options, text):
			return nil, "must be one of " + Clip(strings.Join(c.Options, ", "), 200)
		}
		return text, ""
	}
	return parseText(value)
}

func parseText(value any) (any, string) {
	switch v := value.(type) {
	case string:
		return v, ""
	case json.Number:
		return v.String(), ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), ""
	case bool:
		return strconv.FormatBool(v), ""
	}
	return nil, "must be text"
}

// maxExact is the largest integer up to which every number of JSON is exact.
const maxExact = 1 << 53

func parseNumber(value any) (any, string) {
	var n float64
	var err error
	switch v := value.(type) {
	case float64:
		n = v
	case json.Number:
		n, err = strconv.ParseFloat(v.String(), 64)
	case string:
		if v = strings.TrimSpace(v); v == "" {
			return nil, ""
		}
		if strings.Trim(v, "+-0123456789.eE") != "" {
			return nil, "must be a number"
		}
		n, err = strconv.ParseFloat(v, 64)
	default:
		return nil, "must be a number"
	}
	switch {
	case err != nil || math.IsInf(n, 0) || math.IsNaN(n):
		return nil, "must be a number"
	case n == math.Trunc(n) &&
		math.Abs(n) > maxExact &&
		!strings.ContainsAny(fmt.Sprint(value), "eE."):
		return nil, "has more digits than a number keeps; store it as text"
	}
	return n, ""
}

func parseBoolean(value any) (any, string) {
	switch item := value.(type) {
	case bool:
		if item {
			return int64(1), ""
		}
		return int64(0), ""
	case json.Number:
		return parseBoolean(item.String())
	case float64:
		return parseBoolean(strconv.FormatFloat(item, 'g', -1, 64))
	case string:
		switch strings.ToLower(strings.TrimSpace(item)) {
		case "true", "yes", "on", "1":
			return int64(1), ""
		case "false", "no", "off", "0":
			return int64(0), ""
		case "":
			return nil, ""
		}
	}
	return nil, "must be true or false"
}

func parseTime(value any) (any, string) {
	text, ok := value.(string)
	var at Time
	if !ok {
		return nil, "must be a time such as 2026-01-31T09:00:00Z"
	}
	if err := at.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
		return nil, err.Error()
	}
	return at.Value(), ""
}

func parseJSON(value any) (any, string) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, "must be JSON"
	}
	raw := bytes.TrimSpace(out.Bytes())
	depth, nul := scanJSON(raw)
	switch {
	case depth > MaxObjectDepth:
		return nil, fmt.Sprintf("must be nested at most %d deep", MaxObjectDepth)
	case nul:
		return nil, "must not contain NUL characters"
	}
	return string(raw), ""
}

// ParseCell converts the text of a cell, from a file or a form, to what the column
// stores. An empty text is no value.
func (c *TableColumn) ParseCell(text string) (cell any, issue string) {
	if text == "" {
		return nil, ""
	}
	if c.Type != ColumnJSON {
		return c.Parse(text)
	}
	if CheckNesting(c.Name, []byte(text)) != nil || !json.Valid([]byte(text)) {
		return nil, "must be JSON"
	}
	return c.Parse(json.RawMessage(text))
}

// RowCondition is a condition that rows must meet.
type RowCondition struct {
	Column   string `json:"column" example:"status"`
	Operator string `json:"operator" enum:"equals,not_equals,contains,not_contains,starts_with,ends_with,gt,gte,lt,lte,in,not_in,is_empty,is_not_empty,is_true,is_false" example:"equals"`
	Value    any    `json:"value,omitempty"`
}
