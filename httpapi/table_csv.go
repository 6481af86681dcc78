package httpapi

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store"
)

type exportRowsIn struct {
	tableIn
	Format string `query:"format" enum:"csv,json" doc:"csv when it is not given." example:"csv"`
}

// rowsExport describes an export as JSON, which is streamed.
type rowsExport struct {
	Rows []json.RawMessage `json:"rows"`
}

// exportRows streams all rows of a table.
func (s *Server) exportRows(call *rest.Call) error {
	in, err := rest.Bind[exportRowsIn](call)
	if err != nil {
		return err
	}
	t, err := call.DB.Table(call, in.Table)
	if err != nil {
		return err
	}
	asJSON, err := startExport(call, in.Format, t.Name)
	if err != nil {
		return err
	}
	if asJSON {
		return streamList(call.HTTP.Response(), "rows", func(write func(json.RawMessage) error) error {
			return call.DB.EachTableRow(call, &t, write)
		})
	}
	return sendRowsCSV(call, &t)
}

func sendRowsCSV(call *rest.Call, table *agent.Table) error {
	writer := csv.NewWriter(call.HTTP.Response())
	columns := []string{"id"}
	for _, column := range table.Columns {
		columns = append(columns, column.Name)
	}
	columns = append(columns, "created_at", "updated_at")
	if err := writer.Write(columns); err != nil {
		return err
	}
	cells := make([]string, len(columns))
	err := call.DB.EachTableRow(call, table, func(raw json.RawMessage) error {
		var row map[string]json.RawMessage
		if err := json.Unmarshal(raw, &row); err != nil {
			return err
		}
		for i, name := range columns {
			cells[i] = rowCell(
				row[name],
				i > 0 && i <= len(table.Columns) && table.Columns[i-1].Type == agent.ColumnJSON,
			)
		}
		return writer.Write(cells)
	})
	writer.Flush()
	if err != nil {
		return err
	}
	return writer.Error()
}

// emptyText is the cell of an empty text, since an empty cell is null.
const emptyText = "'"

// rowCell returns a value as a cell: text as it is, with an apostrophe before what a
// spreadsheet would take for a formula and before an empty text, and anything else, or of a
// column of JSON, as JSON.
func rowCell(raw json.RawMessage, isJSON bool) string {
	var text string
	switch {
	case string(raw) == "null":
		return ""
	case !isJSON && json.Unmarshal(raw, &text) == nil && isApostrophes(text):
		return "'" + text
	case !isJSON && text != "":
		return guardFormula(text)
	}
	return string(raw)
}

// isApostrophes reports whether a text is empty, or may be taken for the cell of an empty one.
func isApostrophes(text string) bool { return strings.Trim(text, "'") == "" }

type importRowsIn struct {
	tableIn
	DryRun bool   `query:"dry_run" doc:"true: store nothing and return what would be stored. Also accepted as a form field."`
	Key    string `query:"key" doc:"The column that identifies existing rows: id, which is the default, or a unique one. Also accepted as a form field." example:"email"`
}

// importRows reads a CSV file into a table.
func (s *Server) importRows(call *rest.Call) error {
	in, err := rest.Bind[importRowsIn](call)
	if err != nil {
		return err
	}
	table, err := call.DB.Table(call, in.Table)
	if err != nil {
		return err
	}
	fields := map[string]string{"key": in.Key, "dry_run": strconv.FormatBool(in.DryRun)}
	file, err := rest.FilePart(call, "file", fields)
	if err != nil {
		return err
	}
	text, err := readText(file, maxCSV)
	if err != nil {
		return err
	}
	rows, err := readRowsCSV(&table, text)
	if err != nil {
		return err
	}
	if err := file.Rest(fields); err != nil {
		return err
	}
	dry, err := isDryRun(fields)
	if err != nil {
		return err
	}
	mode, size := store.StoreImport, importBatch
	if dry {
		// all at once, so that rows are also compared with those before them
		mode, size = store.TryImport, max(len(rows), 1)
	}
	result, err := importInBatches(
		rows,
		size,
		func(cells [][]agent.Cell) ([]store.Imported, error) {
			return call.DB.ImportRows(call, table.Name, cmp.Or(fields["key"], "id"), cells, mode)
		},
	)
	if err != nil {
		return err
	}
	return rest.WriteJSON(call.HTTP, http.StatusOK, result)
}

// columnOf returns the column named by a cell of a header row. Case is ignored, and
// spaces, hyphens, dots and slashes count as _.
func columnOf(t *agent.Table, cell string) (agent.TableColumn, bool) {
	name := strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r == '.' || r == '/' {
			return '_'
		}
		return r
	}, strings.TrimSpace(cell))
	for _, c := range slices.Concat(t.Columns, agent.RowColumns) {
		if strings.EqualFold(c.Name, name) {
			return c, true
		}
	}
	return agent.TableColumn{}, false
}

// readRowsCSV reads a file as readContactsCSV does. A column that the table
// does not have is an error; created_at and updated_at are ignored.
func readRowsCSV(table *agent.Table, text string) ([]csvRow[[]agent.Cell], error) {
	records, err := openRecords(text, func(cell string) bool {
		_, known := columnOf(table, cell)
		return known
	})
	if err != nil {
		return nil, err
	}
	columns := make([]agent.TableColumn, len(records.fields))
	seen := map[string]bool{}
	for i, cell := range records.fields {
		c, known := columnOf(table, cell)
		switch {
		case !known:
			return nil, agent.Invalid(
				"file",
				fmt.Sprintf("has the column %q, which the table %s does not have", agent.Clip(cell, 60), table.Name),
			)
		case seen[c.Name]:
			return nil, agent.Invalid("file", fmt.Sprintf("has the column %s twice", c.Name))
		}
		columns[i], seen[c.Name] = c, true
	}
	var rows []csvRow[[]agent.Cell]
	for records.next(len(columns)) {
		if records.blank {
			continue
		}
		if len(rows) == maxImportRows {
			return nil, errTooManyRows()
		}
		rows = append(rows, readTableRow(records, columns))
	}
	return rows, nil
}

// tableCell returns the text of a column's cell. A column of numbers takes a rounded one.
func tableCell(c *agent.TableColumn, cell string) (text, issue string) {
	if cell != "" && isApostrophes(cell) {
		return cell[1:], ""
	}
	if text, issue = readCell(cell); issue != "" && c.Type == agent.ColumnNumber {
		return cell, ""
	}
	return text, issue
}

func readTableRow(records *csvRecords, columns []agent.TableColumn) (row csvRow[[]agent.Cell]) {
	row.Row = records.row
	switch {
	case records.broken != "":
		row.issue("row", records.broken)
		return row
	case records.count != len(columns):
		row.issue("row", fmt.Sprintf("has %d cells where the header row has %d", records.count, len(columns)))
		return row
	}
	for index := range columns {
		column := &columns[index]
		if column.Name == "created_at" || column.Name == "updated_at" {
			continue
		}
		cell, wrong := tableCell(column, records.fields[index])
		if wrong == "" && !utf8.ValidString(cell) {
			wrong = "is not UTF-8 text"
		}
		var value any
		if wrong == "" {
			value, wrong = column.ParseCell(cell)
		}
		if column.Type == agent.ColumnText && records.fields[index] == emptyText {
			value = ""
		}
		switch {
		case wrong != "":
			row.issue(column.Name, wrong)
		case (value == nil || value == "") && column.Required && column.Name != "id":
			row.issue(column.Name, "is required")
		default:
			row.Change = append(row.Change, agent.Cell{Column: column.Name, Value: value})
		}
	}
	return row
}
