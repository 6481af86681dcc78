package document

import (
	"strings"

	"golang.org/x/net/html/atom"
)

// maxTableColumns bounds the columns of a table that is written as one.
const maxTableColumns = 50

// table writes a table of data as one, and the cells of a table that lays out
// a page one after the other.
func (w *pageWriter) table(i int32) {
	rows := w.rows(i)
	w.dropColon()
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	if columns < 2 || columns > maxTableColumns || w.holdsBlocks(i) {
		w.cells(i)
		return
	}
	for c := i + 1; c < w.end(i); c = w.end(c) {
		if w.nodes[c].tag == atom.Caption && !w.junk[c] {
			w.blocks(c)
		}
	}
	if len(rows[0]) == 1 {
		w.blocks(rows[0][0]) // the table's name
		rows = rows[1:]
	}
	written := 0
	for _, row := range rows {
		line, blank := w.row(row, columns)
		if blank {
			continue
		}
		if written++; written == 1 {
			w.begin()
			line += "\n" + w.prefix + "|" + strings.Repeat("---|", columns)
		} else {
			line = "\n" + w.prefix + line
		}
		w.out.WriteString(line)
	}
	w.tight = false
}

func (w *pageWriter) row(cells []int32, columns int) (line string, blank bool) {
	var b strings.Builder
	blank = true
	b.WriteByte('|')
	for k := range columns {
		text := ""
		if k < len(cells) {
			c := pageWriter{tree: w.tree, limit: w.limit}
			text = strings.ReplaceAll(c.inline(cells[k]), "|", `\|`)
		}
		blank = blank && text == ""
		b.WriteString(" " + text + " |")
	}
	return b.String(), blank
}

// rows lists the cells of a table's rows.
func (w *pageWriter) rows(i int32) (rows [][]int32) {
	for c := i + 1; c < w.end(i); c = w.end(c) {
		switch {
		case w.junk[c]:
		case w.nodes[c].tag == atom.Thead || w.nodes[c].tag == atom.Tbody || w.nodes[c].tag == atom.Tfoot:
			rows = append(rows, w.rows(c)...)
		case w.nodes[c].tag == atom.Tr:
			var row []int32
			for d := c + 1; d < w.end(c); d = w.end(d) {
				if (w.nodes[d].tag == atom.Td || w.nodes[d].tag == atom.Th) && !w.junk[d] {
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

// holdsBlocks reports whether a table holds what no cell of Markdown can.
func (w *pageWriter) holdsBlocks(i int32) bool {
	for k := i + 1; k < w.end(i); k++ {
		switch w.nodes[k].tag {
		case atom.Table, atom.Pre, atom.Blockquote, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
			if !w.junk[k] {
				return true
			}
		}
	}
	return false
}

func (w *pageWriter) cells(i int32) {
	for c := i + 1; c < w.end(i); c = w.end(c) {
		if !w.junk[c] {
			w.node(c)
		}
	}
}
