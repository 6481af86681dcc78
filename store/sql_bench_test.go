package store

import (
	"fmt"
	"testing"

	"satchel/store/sqlsandbox"
)

func BenchmarkSQL(b *testing.B) {
	db := openForSQL(b)
	askSQL(
		b,
		db,
		"INSERT INTO contacts(id, name, email) WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c "+
			"LIMIT 20000) SELECT 'c' || x, 'Name ' || x, x || '@example.com' FROM c",
	)
	bench := func(name string, access Access, query string, param func(i int) []any) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := db.SQL(b.Context(), query, Params{List: param(i)}, access); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	bench("point select", sqlViewer, "SELECT id, name, email FROM contacts WHERE id = ?", func(i int) []any {
		return []any{fmt.Sprint("c", i%20000)}
	})
	for _, n := range []int{10, 100, 1000} {
		bench(
			fmt.Sprint("select/rows=", n),
			sqlViewer,
			"SELECT id, name, email, notes, created_at FROM contacts LIMIT ?",
			func(int) []any { return []any{n} },
		)
	}
	bench(
		"aggregate/rows=20000",
		sqlViewer,
		"SELECT count(*), max(length(name)) FROM contacts",
		func(int) []any { return nil },
	)
	bench(
		"insert",
		sqlAdmin,
		"INSERT INTO tasks(title, start_time, end_time) VALUES (?, '2026-01-01T00:00:00.000Z', "+
			"'2026-01-01T01:00:00.000Z')",
		func(i int) []any { return []any{i} },
	)
}

func BenchmarkSQLOpen(b *testing.B) {
	db := openForSQL(b)
	s, err := sqlsandbox.Parse("SELECT 1", Params{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p := sqlsandbox.New(db.path, &sandboxOptions)
		if _, err := p.Read(b.Context(), s, sqlsandbox.DefaultLimits); err != nil {
			b.Fatal(err)
		}
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
