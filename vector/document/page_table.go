package document

import (
	"strings"

	"golang.org/x/net/html/atom"
)

// maxTableColumns limits the columns of a Markdown table.
const maxTableColumns = 50

// table writes a data table as a table, and the cells of a layout table one
// after the other.
func (writer *pageWriter) table(index int32) {
	rows := writer.rows(index)
	grid, columns := writer.grid(rows)
	writer.dropColon()
	if columns < 2 || columns > maxTableColumns || writer.containsBlocks(index) {
		writer.cells(index)
		return
	}
	for c := index + 1; c < writer.end(index); c = writer.end(c) {
		if writer.nodes[c].tag == atom.Caption && !writer.boilerplate[c] {
			writer.blocks(c)
		}
	}
	if len(rows[0]) == 1 {
		writer.blocks(rows[0][0]) // the caption
		grid = grid[1:]
	}
	written := 0
	for _, cells := range grid {
		line, blank := writer.row(cells, columns)
		if blank {
			continue
		}
		if written++; written == 1 {
			writer.begin()
			line += "\n" + writer.prefix + "|" + strings.Repeat("---|", columns)
		} else {
			writer.out.WriteString("\n" + writer.prefix)
		}
		writer.out.WriteString(line)
	}
	writer.tight = false
}

func (writer *pageWriter) row(cells []cell, columns int) (line string, blank bool) {
	var builder strings.Builder
	builder.Grow(1 + 4*columns)
	builder.WriteByte('|')
	blank = true
	for k := range columns {
		builder.WriteByte(' ')
		if len(cells) > 0 && cells[0].column == int32(k) {
			c := pageWriter{tree: writer.tree, limit: writer.limit}
			text := strings.ReplaceAll(c.inline(cells[0].node), "|", `\|`)
			builder.WriteString(text)
			blank = blank && text == ""
			cells = cells[1:]
		}
		builder.WriteString(" |")
	}
	return builder.String(), blank
}

// cell is a cell and its column.
type cell struct{ node, column int32 }

// grid places the cells of rows in columns and returns the number of columns.
// Rows are cut off at the maximum width of a table.
func (writer *pageWriter) grid(rows [][]int32) (grid [][]cell, columns int) {
	grid = make([][]cell, len(rows))
	var covered [maxTableColumns + 1]uint16 // by column: rows covered by a cell above
	for number, row := range rows {
		grid[number] = make([]cell, 0, len(row))
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
			grid[number] = append(grid[number], cell{node, int32(column)})
			a := writer.attrsOf(node)
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
func (writer *pageWriter) rows(index int32) (rows [][]int32) {
	for code := index + 1; code < writer.end(index); code = writer.end(code) {
		switch {
		case writer.boilerplate[code]:
		case writer.nodes[code].tag == atom.Thead ||
			writer.nodes[code].tag == atom.Tbody ||
			writer.nodes[code].tag == atom.Tfoot:
			rows = append(rows, writer.rows(code)...)
		case writer.nodes[code].tag == atom.Tr:
			var row []int32
			for d := code + 1; d < writer.end(code); d = writer.end(d) {
				if (writer.nodes[d].tag == atom.Td || writer.nodes[d].tag == atom.Th) && !writer.boilerplate[d] {
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
func (writer *pageWriter) containsBlocks(i int32) bool {
	for k := i + 1; k < writer.end(i); k++ {
		switch writer.nodes[k].tag {
		case atom.Table, atom.Pre, atom.Blockquote, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
			if !writer.boilerplate[k] {
				return true
			}
		}
	}
	return false
}

func (writer *pageWriter) cells(i int32) {
	for c := i + 1; c < writer.end(i); c = writer.end(c) {
		if !writer.boilerplate[c] {
			writer.node(c)
		}
	}
}
