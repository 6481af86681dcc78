package store

import (
	"strings"
	"testing"
)

// Every table and column has a description, and every description is of an existing one.
func TestSQLDescriptions(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	names, err := Read(t.Context(), db, func(tx *Tx) ([]string, error) {
		return all(tx, scanID, `SELECT t.name || '.' || c.name FROM pragma_table_list t, pragma_table_info(t.name) c
			WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT GLOB 'sqlite_*' AND t.name NOT GLOB '_chunk_vectors_*'`)
	})
	if err != nil || len(names) < 300 {
		t.Fatalf("%d columns, %v", len(names), err)
	}
	known := map[string]bool{anyTable: true, "": true} // the empty lines between tables
	for _, name := range names {
		table, column, _ := strings.Cut(name, ".")
		known[table], known[name], known[anyTable+"."+column] = true, true, true
		if descriptions()[table] == "" || describe(table, column) == "" {
			t.Errorf("%s is not described", name)
		}
	}
	for name := range descriptions() {
		if !known[name] {
			t.Errorf("%q is described and does not exist", name)
		}
	}
}
