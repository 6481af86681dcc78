package store

import (
	"path/filepath"
	"testing"
)

func TestSchemaApplies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#d%.db")
	c, err := openConn(dsn(path, "rwc", "auto_vacuum(2)", "journal_mode(WAL)"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := migrate(c); err != nil {
		t.Fatal(err)
	}
	if err := migrate(c); err != nil {
		t.Fatal("second time:", err)
	}
	for _, q := range []string{
		`INSERT INTO contacts(name,email,tags) VALUES ('Ada','ada@example.com','["vip","x"]')`,
		`UPDATE contacts SET email='b@x.y'`,
		`INSERT INTO sources(id,type,name,status,created_at,updated_at) VALUES('s','file','n','ready','2026-01-31T09:00:00.000Z','2026-01-31T09:00:00.000Z')`,
		`INSERT INTO chunks(id,source_id,position,content) VALUES('c','s',0,'hello world')`,
		`DELETE FROM sources`,
		`DELETE FROM contacts`,
	} {
		if _, err := c.exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	var n int
	if err := c.value(&n, "SELECT count(*) FROM _events"); err != nil || n != 3 {
		t.Fatalf("events: %d, %v", n, err)
	}
}
