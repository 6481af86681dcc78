package store

import (
	"testing"

	"satchel/agent"
)

// TestDeepOffsets checks that a page deep in a list is the same with anchors as without,
// whatever was added and deleted before.
func TestDeepOffsets(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	db := createAgent(t, openFolder(t), "a")
	fillPeople(t, db, 3700)
	do(
		t,
		db,
		"UPDATE contacts SET created_at = strftime('%Y-%m-%dT%H:%M:%fZ', 1767225600 + rowid / 10, 'unixepoch'), "+
			"id = 'contact-' || (rowid * 7919 % 100000)",
	)
	compare := func(when string) {
		t.Helper()
		for _, desc := range []bool{true, false} {
			order := []Order{{"created_at", desc}}
			want := allContacts(t, db, desc)
			for _, offset := range []int{
				999, 1000, 1001, 1999, 2500, 2999, 3000, 3001, 3600, 3690, len(want) - 1, len(want),
			} {
				list, total, err := db.Contacts(t.Context(), nil, Page{Limit: 5, Offset: offset, Order: order})
				if err != nil || total != len(want) {
					t.Fatalf("%s: %d, %v", when, total, err)
				}
				got := idsOf(list, func(c agent.Contact) string { return c.ID })
				expect := want[offset:min(offset+5, len(want))]
				for i := range expect {
					if i >= len(got) || got[i] != expect[i] || len(got) != len(expect) {
						t.Fatalf("%s, %d (descending %v): %v, want %v", when, offset, desc, got, expect)
					}
				}
			}
		}
	}
	compare("without the part of the schema")
	growAll(t, db)
	compare("new")
	if len(db.anchors.get("contacts").keys) != 3 {
		t.Errorf("%d anchors", len(db.anchors.get("contacts").keys))
	}
	do(
		t,
		db,
		"INSERT INTO contacts(id, name, created_at) VALUES ('contact-new1', 'x', '2027-01-01T00:00:00.000Z'), "+
			"('contact-new2', 'x', '2027-01-01T00:00:00.000Z')",
	)
	compare("two added")
	do(t, db, "INSERT INTO contacts(id, name, created_at) VALUES ('contact-old', 'x', '2020-01-01T00:00:00.000Z')")
	compare("one added among the others")
	do(t, db, "DELETE FROM contacts WHERE rowid = 5")
	do(t, db, "INSERT INTO contacts(id, name, created_at) VALUES ('contact-mid', 'x', '2026-01-01T00:02:00.000Z')")
	compare("one deleted and one added")
	do(t, db, "UPDATE contacts SET created_at = '2019-01-01T00:00:00.000Z' WHERE rowid = 3000")
	compare("one moved")
}

// allContacts returns the ids of all contacts in their usual order.
func allContacts(t *testing.T, db *DB, desc bool) []string {
	t.Helper()
	order := "created_at, id"
	if desc {
		order = "created_at DESC, id DESC"
	}
	ids, err := Read(t.Context(), db, func(tx *Tx) ([]string, error) {
		return all(tx, scanID, "SELECT id FROM contacts ORDER BY "+order)
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
