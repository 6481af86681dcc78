package httpapi

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"satchel/agent"
	"satchel/httpapi/rest"
)

// Limits of a contacts file, in addition to its size.
const (
	maxContactColumns  = 200
	maxColumnName      = 100      // characters
	maxTagCell         = 1000     // entries, before empty and duplicate ones are removed
	maxContactMetadata = 48 << 20 // bytes of all rows' metadata
)

// A contacts file is CSV (RFC 4180) with a header row. It has these columns,
// then tags and metadata, then those that are only in exports.
var contactTexts = []struct {
	name   string
	value  func(*agent.Contact) string
	change func(*agent.ContactChange) *agent.Optional[string]
}{
	{
		"name",
		func(c *agent.Contact) string { return c.Name },
		func(ch *agent.ContactChange) *agent.Optional[string] {
			return &ch.Name
		},
	},
	{
		"email",
		func(c *agent.Contact) string { return c.Email },
		func(ch *agent.ContactChange) *agent.Optional[string] {
			return &ch.Email
		},
	},
	{
		"phone",
		func(c *agent.Contact) string { return c.Phone },
		func(ch *agent.ContactChange) *agent.Optional[string] {
			return &ch.Phone
		},
	},
	{
		"chatbot_a",
		func(c *agent.Contact) string { return c.Telegram },
		func(ch *agent.ContactChange) *agent.Optional[string] {
			return &ch.Telegram
		},
	},
	{
		"chatbot_b",
		func(c *agent.Contact) string { return c.WhatsApp },
		func(ch *agent.ContactChange) *agent.Optional[string] {
			return &ch.WhatsApp
		},
	},
	{
		"social_handle",
		func(c *agent.Contact) string { return c.SocialHandle },
		func(ch *agent.ContactChange) *agent.Optional[string] {
			return &ch.SocialHandle
		},
	},
	{
		"external_id",
		func(c *agent.Contact) string { return c.ExternalID },
		func(ch *agent.ContactChange) *agent.Optional[string] {
			return &ch.ExternalID
		},
	},
	{
		"notes",
		func(c *agent.Contact) string { return c.Notes },
		func(ch *agent.ContactChange) *agent.Optional[string] {
			return &ch.Notes
		},
	},
}

// contactAliases are common other names of columns.
var contactAliases = map[string]string{"telegram": "chatbot_a", "whatsapp": "chatbot_b"}

// exportedOnly are columns that only an export has. An import ignores them, except the id of
// a contact.
var exportedOnly = []string{"id", "created_at", "updated_at"}

// contactWriter writes contacts as CSV.
type contactWriter struct {
	csv   *csv.Writer
	cells []string
}

// writeContactsCSV writes the header row of a contacts file. The caller must
// close the writer, even if there are no contacts.
func writeContactsCSV(w io.Writer) *contactWriter {
	out := &contactWriter{csv: csv.NewWriter(w)}
	for _, column := range contactTexts {
		out.cells = append(out.cells, column.name)
	}
	out.cells = append(append(out.cells, "tags", "metadata"), exportedOnly...)
	_ = out.csv.Write(out.cells) // the next Write or Close returns the error
	return out
}

// Write writes one contact. readContactsCSV returns the same contact for the
// row, for any UTF-8 texts.
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

// Close flushes the writer. It does not close the underlying one.
func (w *contactWriter) Close() error {
	w.csv.Flush()
	return w.csv.Error()
}

// formulaStarts are the first characters of cells that spreadsheets execute. Some take the
// full-width forms of East Asian keyboards for the plain ones, and some skip white space.
const formulaStarts = "=+-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20"

// guardFormula puts an apostrophe before a cell that a spreadsheet would
// execute as a formula, or that looks like what one writes for another. A cell that already looks guarded gets another
// one, so that unguardFormula restores every cell.
func guardFormula(cell string) string {
	if isFormula(cell) || isRewritten(strings.TrimLeft(cell, "'")) {
		return "'" + cell
	}
	return cell
}

func unguardFormula(cell string) string {
	if strings.HasPrefix(cell, "'") && (isFormula(cell) || isRewritten(strings.TrimLeft(cell, "'"))) {
		return cell[1:]
	}
	return cell
}

// isFormula reports whether a cell is a formula after its leading apostrophes.
func isFormula(cell string) bool {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(cell, "'"))
	return strings.ContainsRune(formulaStarts, first)
}

// joinTags writes tags as one CSV record within a cell.
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

// splitTags parses the result of joinTags; line breaks separate tags too.
// issue describes an invalid cell.
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

// metadataPair is a cell of an unknown column.
type metadataPair struct{ key, value string }

// rowMetadata returns a contact's metadata from the metadata cell and the
// unknown columns, which take precedence. It is nil if there is neither, and
// false if the cell is not an object.
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
		var given map[string]json.RawMessage // raw, so that numbers are unchanged
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

// readText reads a file of at most limit bytes, removing a byte order mark. A
// file with the mark of another encoding than UTF-8 is an error.
func readText(reader io.Reader, limit int64) (string, error) {
	raw, err := rest.ReadText(reader, limit)
	if agent.ErrorCode(err) == agent.CodeFileTooLarge {
		return "", agent.Errorf(
			agent.CodeFileTooLarge,
			"the file may have at most %d bytes",
			limit,
		).With("limit_bytes", limit)
	}
	if err != nil {
		return "", err
	}
	s := strings.TrimPrefix(string(raw), "\uFEFF")
	if strings.HasPrefix(s, "\xff\xfe") || strings.HasPrefix(s, "\xfe\xff") {
		return "", agent.Invalid("file", "must be UTF-8 text, not UTF-16")
	}
	return s, nil
}

// contactColumn is a column of an imported file.
type contactColumn struct {
	name   string // of the field, or as in the header if there is none
	known  bool
	change func(*agent.ContactChange) *agent.Optional[string] // of text fields
}

// readColumn parses a cell of the header row.
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

// checkColumns rejects an invalid header row.
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
			return agent.Invalid(
				"file",
				fmt.Sprintf("has a name of more than %d characters over column %d", maxColumnName, i+1),
			)
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
