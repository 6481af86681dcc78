package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// record is a record of a list.
type record map[string]any

// text returns a field as one line; a path such as error.message leads into
// objects.
func (r record) text(path string) string {
	name, rest, nested := strings.Cut(path, ".")
	if nested {
		inner, _ := r[name].(map[string]any)
		return record(inner).text(rest)
	}
	return cell(r[name])
}

// column is a column of a table.
type column struct {
	title string
	field string
}

// columns makes columns of fields, whose titles are their names.
func columns(fields ...string) []column {
	out := make([]column, len(fields))
	for i, field := range fields {
		name := strings.NewReplacer("_", " ", ".", " ").Replace(strings.TrimSuffix(field, "_at"))
		out[i] = column{title: strings.ToUpper(name), field: field}
	}
	return out
}

// maxCell is how many characters of a cell are shown.
const maxCell = 60

// cell returns a value as one short line without control characters.
func cell(value any) string {
	var text string
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		text = localTime(v)
	case float64, bool, json.Number:
		text = fmt.Sprint(v)
	case []any:
		text = listText(v)
	default:
		raw, _ := json.Marshal(v)
		if text = string(raw); text == "[]" || text == "{}" {
			return ""
		}
	}
	text = strings.Join(strings.Fields(clean(text)), " ")
	if runes := []rune(text); len(runes) > maxCell {
		text = string(runes[:maxCell-1]) + "…"
	}
	return text
}

// listText returns the items of a list in one line, objects by their names.
func listText(list []any) string {
	items := make([]string, len(list))
	for i, item := range list {
		if fields, ok := item.(map[string]any); ok && fields["name"] != nil {
			item = fields["name"]
		}
		items[i] = cell(item)
	}
	return strings.Join(items, ", ")
}

// localTime returns a time in the zone of this machine, and other text as it is.
func localTime(text string) string {
	if len(text) < len("2006-01-02T15:04:05Z") || text[4] != '-' {
		return text
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// clean removes what could steer a terminal or reverse text: control characters
// but line breaks and tabs, and marks of direction.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f:
			return -1
		}
		return r
	}, text)
}

// writeTable prints records with a line of titles.
func writeTable(to io.Writer, records []record, columns []column) error {
	rows := make([][]string, len(records))
	for i, r := range records {
		for _, c := range columns {
			rows[i] = append(rows[i], r.text(c.field))
		}
	}
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	return writeRows(to, titles, rows)
}

// writeRecord prints a record: a line for each field, then a table for each list of
// objects.
func writeRecord(to io.Writer, r record) error {
	lines, tables := [][]string{}, map[string][]record{}
	r.flatten("", func(name string, value any) {
		if rows := objects(value); rows != nil {
			tables[name] = rows
		} else if text, ok := value.(string); ok {
			lines = append(lines, []string{name, strings.Join(strings.Fields(clean(localTime(text))), " ")})
		} else {
			lines = append(lines, []string{name, cell(value)})
		}
	})
	err := writeRows(to, []string{"FIELD", "VALUE"}, lines)
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		fmt.Fprintf(to, "\n%s\n", strings.ToUpper(name))
		err = errors.Join(err, writeTable(to, tables[name], columns(scalarFields(tables[name])...)))
	}
	return err
}

// flatten calls f with each field in the order of their names, but id, name and status
// first, and with those of objects by their paths.
func (r record) flatten(path string, f func(name string, value any)) {
	for _, name := range fieldNames(r) {
		if inner, ok := r[name].(map[string]any); ok {
			record(inner).flatten(path+clean(name)+".", f)
		} else {
			f(path+clean(name), r[name])
		}
	}
}

func fieldNames(r record) []string {
	first := []string{"id", "name", "status"}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(r)), func(name string) bool {
		return slices.Contains(first, name)
	})
	first = slices.DeleteFunc(first, func(name string) bool {
		return r[name] == nil
	})
	return append(first, names...)
}

// objects returns the items of a list if it has some and all are objects.
func objects(value any) []record {
	list, _ := value.([]any)
	var rows []record
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil
		}
		rows = append(rows, fields)
	}
	return rows
}

// scalarFields returns the fields of records that have a value that is not an object or
// a list.
func scalarFields(rows []record) []string {
	all := record{}
	for _, r := range rows {
		for name, value := range r {
			switch value.(type) {
			case string, float64, bool, json.Number:
				all[name] = value
			}
		}
	}
	return fieldNames(all)
}

func writeRows(to io.Writer, titles []string, rows [][]string) error {
	var text strings.Builder
	out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{titles}, rows...) {
		fmt.Fprintln(out, strings.Join(row, "\t"))
	}
	err := out.Flush()
	for line := range strings.Lines(text.String()) {
		_, writeErr := fmt.Fprintln(to, strings.TrimRight(line, " \n"))
		err = errors.Join(err, writeErr)
	}
	return err
}

// writeJSON prints a value for programs, indented.
func writeJSON(to io.Writer, value any) error {
	out := json.NewEncoder(to)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(value)
}
