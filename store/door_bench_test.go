package store

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkDoor(b *testing.B) {
	db := openForDoor(b)
	askDoor(b, db, "INSERT INTO contacts(id, name, email) WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 20000) SELECT 'c' || x, 'Name ' || x, x || '@example.com' FROM c")
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
	bench("point select", doorViewer, "SELECT id, name, email FROM contacts WHERE id = ?", func(i int) []any { return []any{fmt.Sprint("c", i%20000)} })
	for _, n := range []int{10, 100, 1000} {
		bench(fmt.Sprint("select/rows=", n), doorViewer, "SELECT id, name, email, notes, created_at FROM contacts LIMIT ?", func(int) []any { return []any{n} })
	}
	bench("aggregate/rows=20000", doorViewer, "SELECT count(*), max(length(name)) FROM contacts", func(int) []any { return nil })
	bench("insert", doorAdmin, "INSERT INTO tasks(title, start_time, end_time) VALUES (?, '2026-01-01T00:00:00.000Z', '2026-01-01T01:00:00.000Z')", func(i int) []any { return []any{i} })
}

func BenchmarkDoorParse(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		query := "INSERT INTO contacts(name, email) VALUES " + strings.TrimSuffix(strings.Repeat("(?, trim('a', ?)), ", n), ", ")
		b.Run(fmt.Sprint("tuples=", n), func(b *testing.B) {
			b.SetBytes(int64(len(query)))
			for b.Loop() {
				if _, err := parseStatement(query); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDoorOpen(b *testing.B) {
	db := openForDoor(b)
	for b.Loop() {
		c, err := openDoor(db.path, false)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.close(); err != nil {
			b.Fatal(err)
		}
	}
}
