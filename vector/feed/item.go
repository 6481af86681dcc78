package feed

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"satchel/agent"
)

// Item is one record: a row of a query or an item of an API.
type Item struct {
	ID    string
	Title string
	Text  string
}

// maxID is the longest id that is stored unchanged, in bytes.
const maxID = 200

// Hash returns the SHA-256 of the item's content.
func (i Item) Hash() string {
	return hash(i.Title + "\x00" + i.Text)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// identify sets the item's id: the given one, its hash if that is long, or the
// hash of the item's content if there is none.
func (i *Item) identify(id string) {
	switch {
	case id == "":
		i.ID = "sha256:" + i.Hash()
	case len(id) > maxID:
		i.ID = "sha256:" + hash(id)
	default:
		i.ID = strings.ToValidUTF8(id, "\uFFFD")
	}
}

// maxTitle is the longest title of an item, in characters.
const maxTitle = 200

func title(text string) string {
	return agent.Clip(strings.Join(strings.Fields(text), " "), maxTitle)
}

// Columns are the indexes of a config's columns in the rows of its query.
type Columns struct {
	names     []string
	id, title int // -1 for none
	content   []int
}

// FindColumns finds the columns that a config names among those of its query.
// The error names the field.
func FindColumns(config agent.DatabaseConfig, names []string) (Columns, error) {
	found := Columns{names: names, id: -1, title: -1}
	var is agent.Issues
	find := func(field, name string) int {
		i := slices.Index(names, name)
		is.Check(i >= 0, field, fmt.Sprintf("names %q, which is not a column of the query", agent.Clip(name, 60)))
		return i
	}
	if config.IDColumn != "" {
		found.id = find("config.id_column", config.IDColumn)
	}
	if config.TitleColumn != "" {
		found.title = find("config.title_column", config.TitleColumn)
	}
	for _, name := range config.ContentColumns {
		found.content = append(found.content, find("config.content_columns", name))
	}
	if len(config.ContentColumns) == 0 {
		for i := range names {
			if i != found.id && i != found.title {
				found.content = append(found.content, i)
			}
		}
	}
	return found, is.Err()
}

// Item converts a row to an item: its title, and a "column: value" line for
// each non-empty column of its text.
func (c Columns) Item(row []any) Item {
	var item Item
	if c.title >= 0 {
		item.Title = title(cell(row[c.title]))
	}
	var b strings.Builder
	for _, i := range c.content {
		if text := strings.TrimSpace(cell(row[i])); text != "" {
			b.WriteString(c.names[i] + ": " + text + "\n")
		}
	}
	item.Text = b.String()
	id := ""
	if c.id >= 0 {
		id = cell(row[c.id])
	}
	item.identify(id)
	return item
}

// cell returns a value of the SQL sandbox as text.
func cell(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	return fmt.Sprint(value)
}
