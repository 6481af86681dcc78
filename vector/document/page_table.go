package document

import (
	"strings"

	"golang.org/x/net/html/atom"
)

// maxTableColumns limits the columns of a Markdown table.
const maxTableColumns = 50

// table writes a data table as a table, and the cells of a layout table one
// after the other.
func (w *pageWriter) table(i int32) {
	rows := w.rows(i)
	grid, columns := w.grid(rows)
	w.dropColon()
	if columns < 2 || columns > maxTableColumns || w.containsBlocks(i) {
		w.cells(i)
		return
	}
	for c := i + 1; c < w.end(i); c = w.end(c) {
		if w.nodes[c].tag == atom.Caption && !w.boilerplate[c] {
			w.blocks(c)
		}
	}
	if len(rows[0]) == 1 {
		w.blocks(rows[0][0]) // the caption
		grid = grid[1:]
	}
	written := 0
	for _, cells := range grid {
		line, blank := w.row(cells, columns)
		if blank {
			continue
		}
		if written++; written == 1 {
			w.begin()
			line += "\n" + w.prefix + "|" + strings.Repeat("---|", columns)
		} else {
			w.out.WriteString("\n" + w.prefix)
		}
		w.out.WriteString(line)
	}
	w.tight = false
}

func (w *pageWriter) row(cells []cell, columns int) (line string, blank bool) {
	var b strings.Builder
	b.Grow(1 + 4*columns)
	b.WriteByte('|')
	blank = true
	for k := range columns {
		b.WriteByte(' ')
		if len(cells) > 0 && cells[0].column == int32(k) {
			c := pageWriter{tree: w.tree, limit: w.limit}
			text := strings.ReplaceAll(c.inline(cells[0].node), "|", `\|`)
			b.WriteString(text)
			blank = blank && text == ""
			cells = cells[1:]
		}
		b.WriteString(" |")
	}
	return b.String(), blank
}

// cell is a cell and its column.
type cell struct{ node, column int32 }

// grid places the cells of rows in columns and returns the number of columns.
// Rows are cut off at the maximum width of a table.
func (w *pageWriter) grid(rows [][]int32) (grid [][]cell, columns int) {
	grid = make([][]cell, len(rows))
	var covered [maxTableColumns + 1]uint16 // by column: rows covered by a cell above
	for r, row := range rows {
		grid[r] = make([]cell, 0, len(row))
		column := 0
		skip := func() {
			for ; column < maxTableColumns && covered[column] > 0; column++ {
				covered[column]--
			}
		}
		for _, node := range row {
			if skip(); column > maxTableColumns {
				break
			}
			grid[r] = append(grid[r], cell{node, int32(column)})
			a := w.attrsOf(node)
			end := min(column+max(int(a.columns), 1), maxTableColumns+1)
			for ; column < end; column++ {
				covered[column] = max(a.rows, 1) - 1
			}
		}
		skip()
		columns = max(columns, column)
	}
	return grid, columns
}

// rows returns the cells of a table's rows.
func (w *pageWriter) rows(i int32) (rows [][]int32) {
	for c := i + 1; c < w.end(i); c = w.end(c) {
		switch {
		case w.boilerplate[c]:
		case w.nodes[c].tag == atom.Thead ||
			w.nodes[c].tag == atom.Tbody ||
			w.nodes[c].tag == atom.Tfoot:
			rows = append(rows, w.rows(c)...)
		case w.nodes[c].tag == atom.Tr:
			var row []int32
			for d := c + 1; d < w.end(c); d = w.end(d) {
				if (w.nodes[d].tag == atom.Td || w.nodes[d].tag == atom.Th) && !w.boilerplate[d] {
					row = append(row, d)
				}
			}
			if len(row) > 0 {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// containsBlocks reports whether a table contains blocks, which Markdown cells
// cannot.
func (w *pageWriter) containsBlocks(i int32) bool {
	for k := i + 1; k < w.end(i); k++ {
		switch w.nodes[k].tag {
		case atom.Table, atom.Pre, atom.Blockquote, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
			if !w.boilerplate[k] {
				return true
			}
		}
	}
	return false
}

func (w *pageWriter) cells(i int32) {
	for c := i + 1; c < w.end(i); c = w.end(c) {
		if !w.boilerplate[c] {
			w.node(c)
		}
	}
}
