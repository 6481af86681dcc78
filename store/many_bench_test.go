package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"satchel/store/sqlite"
)

// openMany creates n agents and opens their files.
func openMany(b *testing.B, n int) []*DB {
	b.Helper()
	path := b.TempDir()
	makeAgents(b, path, n)
	f := openWith(b, Options{Path: path})
	list := make([]*DB, n)
	for i := range list {
		list[i] = byName(b, f, fmt.Sprintf("agent-%d", i))
		if _, err := list[i].CreateContact(b.Context(), named("x")); err != nil {
			b.Fatal(err)
		}
	}
	return list
}

// BenchmarkManyAgents creates and reads contacts of random agents with 16 clients, and
// reports the memory that an open agent takes.
func BenchmarkManyAgents(b *testing.B) {
	for _, n := range []int{1, 100, 500} {
		before, others := resident(b), sqlite.Count()
		list := openMany(b, n)
		var number atomic.Int64
		ctx := WithActor(context.Background(), "bench@example.com")
		b.Run(fmt.Sprintf("create/%d", n), func(b *testing.B) {
			done := measureCPU(b)
			inParallel(b, 16, func(i int) error {
				_, err := list[rand.IntN(n)].CreateContact(ctx, numberedContact(int(number.Add(1))))
				return err
			})
			done()
		})
		b.Run(fmt.Sprintf("read/%d", n), func(b *testing.B) {
			done := measureCPU(b)
			inParallel(b, 16, func(i int) error {
				_, _, err := list[rand.IntN(n)].Contacts(ctx, nil, Page{Limit: 1})
				return err
			})
			done()
			b.ReportMetric(float64(resident(b)-before)/float64(n), "bytes/open-agent")
			b.ReportMetric(float64(sqlite.Count()-others), "connections")
		})
	}
}
