package store

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
)

func TestSmoke(t *testing.T) {
	f, err := Open(Options{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	db := f.Default()
	ctx := WithActor(context.Background(), "ada@example.com")
	if _, err := Write(ctx, db, func(tx *Tx) (int, error) {
		return 0, tx.script(`INSERT INTO _secrets VALUES('o','f','k','hunter2-secret','x');
		INSERT INTO sources(id,type,name,status,created_at,updated_at) VALUES('s1','file','n','ready','2026-01-01T00:00:00.000Z','2026-01-01T00:00:00.000Z');
		INSERT INTO _files(source_id,upload,name,media_type,size,sha256) VALUES('s1','u1','n','t',1,'deadbeef');
		INSERT INTO _file_parts VALUES('u1',0,'abc');
		INSERT INTO chunks(id,source_id,position,content) VALUES('c1','s1',0,'hello world');
		`)
	}); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{
		"SELECT 1", "SELECT * FROM contacts", "INSERT INTO contacts(name,tags,email) VALUES ('Ada','[\"a\"]','x@y.z') RETURNING name, tags",
		"SELECT id,name FROM contacts", "UPDATE contacts SET name='B'", "select count(*) from contacts",
		"select count(*) from main.contacts c",
		"WITH x AS (SELECT 1 a) SELECT count(*) FROM x",
		"WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c LIMIT 3) SELECT * FROM c",
		"SELECT * FROM _secrets", "SELECT count(*) FROM _secrets", "SELECT 1 FROM main._Secrets", "SELECT * FROM \"_secrets\"",
		"SELECT name FROM sqlite_schema LIMIT 2", "SELECT * FROM pragma_table_info('contacts') limit 1", "SELECT * FROM pragma_table_info('_keys')",
		"PRAGMA integrity_check", "PRAGMA quick_check", "SELECT * FROM pragma_integrity_check", "PRAGMA table_list", "PRAGMA journal_mode", "PRAGMA journal_mode=off",
		"PRAGMA foreign_key_check",
		"INSERT INTO conversations(id) VALUES('v1')", "INSERT INTO messages(conversation_id,role,content) VALUES ('v1','user','hi'),('v1','user','hi')",
		"SELECT * FROM messages", "DELETE FROM conversations", "SELECT count(*) FROM messages",
		"DELETE FROM sources RETURNING id", "SELECT count(*) FROM chunks", "DELETE FROM chunks", "INSERT INTO logs(level,source,message) VALUES ('a','b','c')",
		"SELECT message, data FROM logs", "UPDATE sources SET status='x'", "REPLACE INTO contacts(id,name) VALUES ('contact-1','x')", "REPLACE INTO contacts(id,name) VALUES ('contact-1','y')",
		"EXPLAIN QUERY PLAN SELECT * FROM contacts ORDER BY name", "EXPLAIN DELETE FROM contacts WHERE id=1",
		"SELECT * FROM json_each('[1,2]')", "SELECT 1; SELECT 2", "SELECT x'00ff', 9007199254740993, 1e999, null, 'a' || char(0) || 'b'", "CREATE TABLE x(y)", "VACUUM",
		"SELECT load_extension('x')", "SELECT * FROM dbstat", "SELECT count(*) FROM dbstat", "SELECT * FROM sqlite_dbpage", "SELECT a FROM contacts", "SELEC 1", "SELECT 1 +", "SELECT * FROM nope",
		"INSERT INTO contacts(name,email) VALUES('z','b@b.b') ON CONFLICT DO UPDATE SET name='q'", "INSERT INTO messages(conversation_id,role,content) VALUES ('v9','user','hi')",
		"WITH _contacts_tagged AS MATERIALIZED (SELECT count(*) n FROM _keys) SELECT * FROM _contacts_tagged",
		"INSERT INTO contacts(name) WITH _contacts_tagged AS MATERIALIZED (SELECT count(*) n FROM _keys) SELECT n FROM _contacts_tagged",
	} {
		r, err := db.SQL(ctx, q, Params{}, Access{Write: true})
		b, _ := json.Marshal(r)
		if len(b) > 300 {
			b = b[:300]
		}
		if err != nil {
			fmt.Println(q, "\n      ERR", err)
		} else {
			fmt.Println(q, "\n     ", string(b))
		}
	}
	s, err := db.Schema(ctx)
	b, _ := json.Marshal(s)
	fmt.Println(string(b[:400]), err)
}
