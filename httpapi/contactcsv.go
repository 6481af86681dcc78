package httpapi

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"satchel/agent"
)

// Bounds of a contacts file, beside its size.
const (
	maxContactRows     = 100_000
	maxContactColumns  = 200
	maxColumnName      = 100      // characters
	maxTagCell         = 1000     // entries, before blank and repeated ones go
	maxContactMetadata = 48 << 20 // bytes that the rows' metadata may come to
)

// A contacts file is CSV (RFC 4180) with a header row. Its columns are these,
// then tags and metadata, then those that only an export has.
var contactTexts = []struct {
	name   string
	value  func(*agent.Contact) string
	change func(*agent.ContactChange) *agent.Optional[string]
}{
	{"name", func(c *agent.Contact) string { return c.Name }, func(ch *agent.ContactChange) *agent.Optional[string] { return &ch.Name }},
	{"email", func(c *agent.Contact) string { return c.Email }, func(ch *agent.ContactChange) *agent.Optional[string] { return &ch.Email }},
	{"phone", func(c *agent.Contact) string { return c.Phone }, func(ch *agent.ContactChange) *agent.Optional[string] { return &ch.Phone }},
	{"chatbot_a", func(c *agent.Contact) string { return c.Telegram }, func(ch *agent.ContactChange) *agent.Optional[string] { return &ch.Telegram }},
	{"chatbot_b", func(c *agent.Contact) string { return c.WhatsApp }, func(ch *agent.ContactChange) *agent.Optional[string] { return &ch.WhatsApp }},
	{"social_handle", func(c *agent.Contact) string { return c.SocialHandle }, func(ch *agent.ContactChange) *agent.Optional[string] { return &ch.SocialHandle }},
	{"external_id", func(c *agent.Contact) string { return c.ExternalID }, func(ch *agent.ContactChange) *agent.Optional[string] { return &ch.ExternalID }},
	{"notes", func(c *agent.Contact) string { return c.Notes }, func(ch *agent.ContactChange) *agent.Optional[string] { return &ch.Notes }},
}

// contactAliases are other names of columns, as people write them.
var contactAliases = map[string]string{"telegram": "chatbot_a", "whatsapp": "chatbot_b"}

// exportedOnly are columns that an import passes over.
var exportedOnly = []string{"id", "created_at", "updated_at"}

// contactWriter writes contacts as CSV.
type contactWriter struct {
	csv   *csv.Writer
	cells []string
}

// writeContactsCSV begins a contacts file with its header row. The caller
// closes the writer, also when there are no contacts.
func writeContactsCSV(w io.Writer) *contactWriter {
	out := &contactWriter{csv: csv.NewWriter(w)}
	for _, column := range contactTexts {
		out.cells = append(out.cells, column.name)
	}
	out.cells = append(append(out.cells, "tags", "metadata"), exportedOnly...)
	_ = out.csv.Write(out.cells) // the next Write or Close returns an error
	return out
}

// Write writes one contact. readContactsCSV makes the same contact of the row,
// whatever its texts are, as long as they are UTF-8.
func (w *contactWriter) Write(c agent.Contact) error {
	w.cells = w.cells[:0]
	for _, column := range contactTexts {
		w.cells = append(w.cells, column.value(&c))
	}
	metadata := string(c.Metadata)
	if metadata == "{}" {
		metadata = ""
	}
	w.cells = append(w.cells, joinTags(c.Tags), metadata, c.ID, c.CreatedAt.String(), c.UpdatedAt.String())
	for i, cell := range w.cells {
		w.cells[i] = guardFormula(strings.ToValidUTF8(cell, "\uFFFD"))
	}
	return w.csv.Write(w.cells)
}

// Close writes what is still held back. It does not close what is below.
func (w *contactWriter) Close() error {
	w.csv.Flush()
	return w.csv.Error()
}

// guardFormula puts an apostrophe before a cell that a spreadsheet would run
// as a formula. One that looks as if it had been guarded gets another, so that
// unguardFormula gives back every cell as it was.
func guardFormula(cell string) string {
	if isFormula(cell) {
		return "'" + cell
	}
	return cell
}

func unguardFormula(cell string) string {
	if strings.HasPrefix(cell, "'") && isFormula(cell) {
		return cell[1:]
	}
	return cell
}

// isFormula reports whether a cell is a formula, but for apostrophes before it.
func isFormula(cell string) bool {
	cell = strings.TrimLeft(cell, "'")
	return cell != "" && strings.IndexByte("=+-@\t\r", cell[0]) >= 0
}

// joinTags writes tags as one record of CSV within a cell.
func joinTags(tags []string) string {
	var cell strings.Builder
	for i, tag := range agent.CleanTags(tags) {
		if i > 0 {
			cell.WriteByte(',')
		}
		if strings.ContainsAny(tag, "\",\r\n") {
			tag = `"` + strings.ReplaceAll(tag, `"`, `""`) + `"`
		}
		cell.WriteString(tag)
	}
	return cell.String()
}

// splitTags reads what joinTags writes; a line break parts tags as well. What
// is wrong with the cell is the issue.
func splitTags(cell string) (tags []string, issue string) {
	records := csvRecords{text: cell, delimiter: ','}
	for records.next(maxTagCell) {
		if records.broken != "" {
			return nil, records.broken
		}
		if tags = append(tags, records.fields...); records.count > maxTagCell || len(tags) > maxTagCell {
			return nil, fmt.Sprintf("must have at most %d entries", maxTagCell)
		}
	}
	return agent.CleanTags(tags), ""
}

// metadataPair is a cell of a column that contacts do not have.
type metadataPair struct{ key, value string }

// rowMetadata makes a contact's metadata of the cell of that name and the
// unknown columns, which win. It is nil when there is neither, and false when
// the cell is no object.
func rowMetadata(cell string, pairs []metadataPair) (json.RawMessage, bool) {
	cell = strings.TrimSpace(cell)
	if cell != "" && (cell[0] != '{' || !json.Valid([]byte(cell))) {
		return nil, false
	}
	if len(pairs) == 0 {
		if cell == "" {
			return nil, true
		}
		return json.RawMessage(cell), true
	}
	object := make(map[string]any, len(pairs))
	if cell != "" {
		var given map[string]json.RawMessage // raw, so that numbers stay as they are
		if json.Unmarshal([]byte(cell), &given) != nil {
			return nil, false
		}
		for key, value := range given {
			object[key] = value
		}
	}
	for _, pair := range pairs {
		object[pair.key] = pair.value
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(object) != nil {
		return nil, false
	}
	return json.RawMessage(strings.TrimSuffix(out.String(), "\n")), true
}

// readText reads a file of at most limit bytes, which must be UTF-8 as far as
// its byte order mark tells; the mark is taken off.
func readText(r io.Reader, limit int64) (string, error) {
	var text strings.Builder
	n, err := io.Copy(&text, io.LimitReader(r, limit+1))
	if err != nil {
		return "", err
	}
	if n > limit {
		return "", agent.Errorf(agent.CodeFileTooLarge, "the file may have at most %d bytes", limit).With("limit_bytes", limit)
	}
	s := strings.TrimPrefix(text.String(), "\uFEFF")
	if strings.HasPrefix(s, "\xff\xfe") || strings.HasPrefix(s, "\xfe\xff") {
		return "", agent.Invalid("file", "must be UTF-8 text, not UTF-16")
	}
	return s, nil
}

// contactColumn is a column of a file that is read.
type contactColumn struct {
	name   string // of the field; as the header writes it when there is none
	known  bool
	change func(*agent.ContactChange) *agent.Optional[string] // of the texts
}

// readColumn reads a cell of the header row.
func readColumn(cell string) contactColumn {
	written := strings.TrimSpace(cell)
	name := strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' {
			return '_'
		}
		return r
	}, strings.ToLower(written))
	if alias, ok := contactAliases[name]; ok {
		name = alias
	}
	for _, text := range contactTexts {
		if text.name == name {
			return contactColumn{name, true, text.change}
		}
	}
	if name == "tags" || name == "metadata" {
		return contactColumn{name: name, known: true}
	}
	for _, exported := range exportedOnly {
		if exported == name {
			return contactColumn{name: name, known: true}
		}
	}
	return contactColumn{name: written}
}

// checkColumns refuses a header row by which the rows cannot be read.
func checkColumns(records *csvRecords, columns []contactColumn) error {
	if records.broken != "" {
		return agent.Invalid("file", records.broken+", in the header row")
	}
	if records.count > maxContactColumns {
		return agent.Invalid("file", fmt.Sprintf("may have at most %d columns", maxContactColumns))
	}
	seen := map[string]bool{"": true}
	named := false
	for i, column := range columns {
		key := strings.ToLower(column.name)
		switch {
		case !utf8.ValidString(column.name):
			return agent.Invalid("file", "must be UTF-8 text")
		case utf8.RuneCountInString(column.name) > maxColumnName:
			return agent.Invalid("file", fmt.Sprintf("has a name of more than %d characters over column %d", maxColumnName, i+1))
		case key != "" && seen[key]:
			return agent.Invalid("file", fmt.Sprintf("has the column %q twice", column.name))
		}
		seen[key] = true
		named = named || column.name == "name"
	}
	if !named {
		return agent.Invalid("file", `needs a column "name" in its header row`)
	}
	return nil
}
