package httpapi

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"satchel/agent"
)

// contactRow is one row of a contacts file.
type contactRow = csvRow[agent.ContactChange]

// readContactsCSV reads a contacts file of at most limit bytes. The delimiter
// is a comma, a semicolon or a tab. Columns are named after the fields of a
// contact, in any case; other columns become texts in its metadata, and those
// that are only in exports are ignored, except the ids of contacts. An empty cell does not change the
// field. Empty rows are skipped. Only the format is validated; agent.Contact
// validates the rest.
//
// An error means that the file as a whole is invalid: VALIDATION_ERROR of the
// field "file" or FILE_TOO_LARGE, or else an error of reader.
func readContactsCSV(reader io.Reader, limit int64) ([]contactRow, error) {
	text, err := readText(reader, limit)
	if err != nil {
		return nil, err
	}
	records, err := openRecords(text, func(cell string) bool {
		return readColumn(cell).known
	})
	if err != nil {
		return nil, err
	}
	in := contactReader{records: records, valid: utf8.ValidString(text)}
	for _, field := range records.fields {
		in.columns = append(in.columns, readColumn(field))
	}
	if err := checkColumns(records, in.columns); err != nil {
		return nil, err
	}
	rows := make([]contactRow, 0, min(strings.Count(text, "\n")+1, maxImportRows))
	for records.next(len(in.columns)) {
		if records.blank {
			continue
		}
		if len(rows) == maxImportRows {
			return nil, errTooManyRows()
		}
		rows = append(rows, in.row())
		if in.metadata > maxContactMetadata {
			return nil, agent.Errorf(
				agent.CodeFileTooLarge,
				"the file's columns contain more than %d MB of metadata",
				maxContactMetadata>>20,
			)
		}
	}
	return rows, nil
}

// openRecords detects the delimiter and reads the header row, the first that
// is not empty. A line like "sep=;" before it, which some spreadsheets write,
// takes precedence.
func openRecords(text string, known func(cell string) bool) (*csvRecords, error) {
	delimiters := ",;\t"
	if end := strings.IndexAny(text, "\r\n"); end == len("sep=;") &&
		strings.EqualFold(text[:4], "sep=") &&
		strings.IndexByte(",;\t|", text[4]) >= 0 {
		delimiters, text = text[4:5], strings.TrimPrefix(text[end:], "\r")
		text = strings.TrimPrefix(text, "\n")
	}
	var best *csvRecords
	bestScore := -1
	for i := range len(delimiters) {
		records := &csvRecords{text: text, delimiter: delimiters[i]}
		for records.next(maxContactColumns) && records.blank {
		}
		if score := headerScore(records, known); score > bestScore {
			best, bestScore = records, score
		}
	}
	if best.row == 0 || best.blank {
		return nil, agent.Invalid("file", "is empty")
	}
	for i, field := range best.fields {
		best.fields[i] = unguardFormula(field)
	}
	return best, nil
}

// headerScore ranks delimiters by the number of known columns in the header
// row, then by the number of columns.
func headerScore(header *csvRecords, known func(cell string) bool) int {
	score := min(header.count, maxContactColumns)
	for _, field := range header.fields {
		if known(field) {
			score += 2 * maxContactColumns
		}
	}
	return score
}

// contactReader converts records to rows.
type contactReader struct {
	records  *csvRecords
	columns  []contactColumn
	valid    bool // the whole file is UTF-8
	metadata int  // bytes of metadata so far
}

// row converts the current record.
func (in *contactReader) row() contactRow {
	row := contactRow{Row: in.records.row}
	switch n := in.records.count; {
	case in.records.broken != "":
		row.issue(in.columnName(n), in.records.broken)
	case n != len(in.columns):
		row.issue("row", fmt.Sprintf("has %d cells where the header row has %d", n, len(in.columns)))
	default:
		in.fill(&row)
	}
	if row.Issues != nil {
		row.Change = agent.ContactChange{}
	}
	return row
}

// columnName names a column in errors.
func (in *contactReader) columnName(i int) string {
	switch {
	case i >= len(in.columns):
		return "row"
	case in.columns[i].name == "":
		return fmt.Sprintf("column %d", i+1)
	}
	return in.columns[i].name
}

// fill reads the cells of a record that has as many cells as the header.
func (in *contactReader) fill(row *contactRow) {
	var object string
	var pairs []metadataPair
	for index, column := range in.columns {
		cell, wrong := readCell(in.records.fields[index])
		switch {
		case wrong != "" && column.name != "notes":
			row.issue(in.columnName(index), wrong)
		case wrong != "":
			row.Change.Notes = agent.Some(in.records.fields[index])
		case cell == "" || isBlank(cell) && column.name != "notes": // notes keep white space
		case !in.valid && !utf8.ValidString(cell):
			row.issue(in.columnName(index), "is not UTF-8 text")
		case column.change != nil:
			*column.change(&row.Change) = agent.Some(cell)
		case column.name == "":
			row.issue(in.columnName(index), "has no name in the header row")
		case !column.known:
			pairs = append(pairs, metadataPair{column.name, cell})
		case column.name == "metadata":
			object = cell
		case column.name == "tags":
			setTags(row, cell)
		case column.name == "id" && agent.IsID(agent.KindContact, strings.TrimSpace(cell)):
			row.Change.ID = strings.TrimSpace(cell)
		}
	}
	metadata, ok := rowMetadata(object, pairs)
	if !ok {
		row.issue("metadata", "must be a JSON object")
	} else if metadata != nil {
		in.metadata += len(metadata)
		row.Change.Metadata = agent.Some(metadata)
	}
}

func setTags(row *contactRow, cell string) {
	tags, issue := splitTags(cell)
	if issue != "" {
		row.issue("tags", issue)
	} else if len(tags) > 0 {
		row.Change.Tags = agent.Some(tags)
	}
}
