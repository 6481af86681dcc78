package document

import (
	"bytes"
	"context"
	"strconv"
	"strings"
)

// readCSV writes each row as lines of "header: value", so that a row can be
// read without its header. Commas, semicolons and tabs are detected. Empty
// values are omitted. Rows with more or fewer fields than the header are
// counted, and read as far as possible.
func readCSV(ctx context.Context, in input) (*Document, error) {
	data, err := in.decode(FormatCSV)
	if err != nil {
		return nil, err
	}
	data, delimiter := csvDelimiter(data, in.name)
	doc := &Document{}
	doc.Text, doc.Blocks, err = records(in.limits, func(writer *recordWriter) error {
		t := csvTable{out: writer}
		rows := csvReader{data: data, delimiter: delimiter}
		for i := 0; rows.next(); i++ {
			if i%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if rows.tooMany {
				return tooComplex("a row of the file has more than %d columns", maxColumns)
			}
			if err := t.row(rows.fields); err != nil {
				return err
			}
		}
		doc.RaggedRows = t.ragged
		return t.headerOnly()
	})
	if err != nil {
		return nil, err
	}
	return doc, nil
}

// csvTable writes the rows of one table as records.
type csvTable struct {
	out    *recordWriter
	header [][]byte // with the ": " after each name
	rows   int
	ragged int
}

func (t *csvTable) row(fields [][]byte) error {
	if t.header == nil {
		data := isData(fields)
		t.header = csvHeader(fields, data)
		if !data {
			return nil
		}
	}
	t.rows++
	if len(fields) != len(t.header) {
		t.ragged++
	}
	for i, value := range fields {
		if len(bytes.TrimSpace(value)) == 0 {
			continue
		}
		if i < len(t.header) {
			t.out.write(t.header[i])
		} else {
			t.out.write([]byte(numberedColumn(i) + ": "))
		}
		if err := t.out.line(value); err != nil {
			return err
		}
	}
	t.out.end()
	return nil
}

// headerOnly writes the header of a table without rows.
func (t *csvTable) headerOnly() error {
	if t.rows > 0 || t.header == nil {
		return nil
	}
	t.out.write([]byte("columns: "))
	for i, name := range t.header {
		if i > 0 {
			t.out.write(afterItem)
		}
		t.out.write(name[:len(name)-len(afterName)])
	}
	return t.out.line(nil)
}

// csvHeader returns the names of the columns: the first row, with numbers for
// empty names, or numbers for all columns if the first row is data.
func csvHeader(fields [][]byte, data bool) [][]byte {
	header := make([][]byte, len(fields))
	for i, field := range fields {
		name := columnName(field)
		if name == "" || data {
			name = numberedColumn(i)
		}
		header[i] = []byte(name + ": ")
	}
	return header
}

func numberedColumn(i int) string { return "column " + strconv.Itoa(i+1) }

// isData reports whether a first row has only numbers, and so is not a header.
func isData(fields [][]byte) bool {
	for _, field := range fields {
		if _, err := strconv.ParseFloat(strings.TrimSpace(string(field)), 64); err != nil {
			return false
		}
	}
	return true
}
