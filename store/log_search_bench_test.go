package store

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// searchLog searches the log for a word that it does not have.
func searchLog(db *DB) error {
	_, total, err := db.Logs(context.Background(), LogFilter{}, Page{Limit: 50, Search: "nothing-like-this"})
	if err == nil && total != 0 {
		err = fmt.Errorf("%d found", total)
	}
	return err
}

// BenchmarkLogSearch searches 20,000 entries: one by one, and with the index, whose build
// it also measures.
func BenchmarkLogSearch(b *testing.B) {
	db := createAgent(b, openFolder(b), "a")
	fillGrowth(b, db, 10_000)
	run := func(name string, fn func() error) {
		b.Run(name, func(b *testing.B) {
			done := measureCPU(b)
			for b.Loop() {
				if err := fn(); err != nil {
					b.Fatal(err)
				}
			}
			done()
		})
	}
	run("not_indexed", func() error { return searchLog(db) })
	growAll(b, db)
	run("index", func() error {
		do(b, db, "DELETE FROM _search_log_blocks WHERE 1")
		do(b, db, "INSERT INTO _search_logs(_search_logs) VALUES ('delete-all')")
		growAll(b, db)
		return nil
	})
	run("indexed", func() error { return searchLog(db) })
}

// BenchmarkFirstLogSearches measures the first 3,000 searches of 30,000 entries by 16
// clients, and the building of the index.
func BenchmarkFirstLogSearches(b *testing.B) {
	const searches = 3_000
	f := openFolder(b)
	if err := f.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	var used time.Duration
	for i := range b.N {
		b.StopTimer()
		db := createAgent(b, f, fmt.Sprint("agent-", i))
		fillGrowth(b, db, 15_000)
		before := cpuTime()
		b.StartTimer()
		inParallelTimes(b, 16, searches, func(int) error { return searchLog(db) })
		used += cpuTime() - before
	}
	b.ReportMetric(float64(used.Microseconds())/float64(b.N)/searches, "cpu-µs/search")
}
