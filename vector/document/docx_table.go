package document

import (
	"bytes"
	"strings"
)

// docxTable is an open table with the texts of its cells so far.
type docxTable struct {
	rows [][][]byte
}

func (w *docxWalker) table(do func(*docxTable)) {
	if n := len(w.tables); n > 0 {
		do(w.tables[n-1])
	}
}

func (t *docxTable) openCell() {
	if n := len(t.rows); n > 0 && len(t.rows[n-1]) < maxColumns {
		t.rows[n-1] = append(t.rows[n-1], nil)
	}
}

// add adds a paragraph to the last cell.
func (t *docxTable) add(text string) {
	if len(t.rows) == 0 || len(t.rows[len(t.rows)-1]) == 0 {
		t.rows = append(t.rows, [][]byte{nil}) // text outside of any cell
	}
	row := t.rows[len(t.rows)-1]
	cell := &row[len(row)-1]
	if len(*cell) > 0 {
		*cell = append(*cell, '\n')
	}
	*cell = append(*cell, text...)
}

// endTable writes the innermost table, or adds its text to the cell around it.
func (w *docxWalker) endTable() error {
	length := len(w.tables)
	if length == 0 {
		return nil
	}
	table := w.tables[length-1]
	w.tables = w.tables[:length-1]
	if length > 1 {
		if text := table.flat(); text != "" {
			w.tables[length-2].add(text)
		}
		return nil
	}
	w.held = 0
	columns := table.columns()
	if columns < 2 { // a border around text
		for _, row := range table.rows {
			if err := w.writeFramed(row); err != nil {
				return err
			}
		}
		return nil
	}
	var b strings.Builder
	header := true
	for _, row := range table.rows {
		if isBlankRow(row) {
			continue
		}
		writeRow(&b, row, columns)
		if header {
			b.WriteString("\n|" + strings.Repeat("---|", columns))
			header = false
		}
		b.WriteByte('\n')
	}
	return w.write(strings.TrimSuffix(b.String(), "\n"), false)
}

func isBlankRow(row [][]byte) bool {
	return len(bytes.TrimSpace(bytes.Join(row, nil))) == 0
}

func (w *docxWalker) writeFramed(row [][]byte) error {
	for _, cell := range row {
		if len(cell) == 0 {
			continue
		}
		if err := w.write(escapeBlock(string(cell)), false); err != nil {
			return err
		}
	}
	return nil
}

// columns returns the number of cells of the longest row; 0 if all cells are
// empty.
func (t *docxTable) columns() int {
	columns, text := 0, false
	for _, row := range t.rows {
		columns = max(columns, len(row))
		text = text || !isBlankRow(row)
	}
	if !text {
		return 0
	}
	return columns
}

// writeRow writes a row as "| a | b |", padded to the number of columns, up to
// a limit: one long row must not widen thousands of short ones.
func writeRow(b *strings.Builder, row [][]byte, columns int) {
	b.WriteByte('|')
	for i := range max(len(row), min(columns, 64)) {
		cell := ""
		if i < len(row) {
			cell = strings.Join(strings.Fields(string(row[i])), " ")
		}
		b.WriteString(" " + strings.ReplaceAll(cell, "|", `\|`) + " |")
	}
}

// flat returns a table's text for use inside a cell.
func (t *docxTable) flat() string {
	var rows []string
	for _, row := range t.rows {
		if line := bytes.TrimSpace(bytes.Join(row, []byte(" "))); len(line) > 0 {
			rows = append(rows, string(line))
		}
	}
	return strings.Join(rows, "; ")
}
