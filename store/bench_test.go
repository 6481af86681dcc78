package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/cputime"
	"satchel/store/sqlite"
)

// cpuTime returns the CPU time that this process has used.
func cpuTime() time.Duration {
	used, err := cputime.Used()
	if err != nil {
		panic(err)
	}
	return used
}

// measureCPU reports the CPU time of an operation. Call the function that it returns at
// the end of the benchmark.
func measureCPU(b *testing.B) func() {
	before := cpuTime()
	b.ReportAllocs()
	b.ResetTimer()
	return func() {
		b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/1000/float64(b.N), "cpu-µs/op")
	}
}

// inParallel runs fn b.N times on n goroutines.
func inParallel(b *testing.B, n int, fn func(i int) error) { inParallelTimes(b, n, b.N, fn) }

// inParallelTimes runs fn a number of times on n goroutines.
func inParallelTimes(b *testing.B, n, times int, fn func(i int) error) {
	var next atomic.Int64
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= times {
					return
				}
				if err := fn(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
}

// BenchmarkCreateContact is the store's part of a create over HTTP: with the
// audit row and the event, durable.
func BenchmarkCreateContact(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			db := openFolder(b).Default()
			ctx := WithActor(context.Background(), "bench@example.com")
			done := measureCPU(b)
			inParallel(b, n, func(i int) error {
				_, err := db.CreateContact(ctx, numberedContact(i))
				return err
			})
			done()
		})
	}
}

// BenchmarkRawInsert is the baseline of SQLite itself: prepared inserts of the same rows
// into the same table, with so many rows per durable commit.
func BenchmarkRawInsert(b *testing.B) {
	for _, perCommit := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("rows_per_commit=%d", perCommit), func(b *testing.B) {
			c := rawDatabase(b)
			const insert = "INSERT INTO contacts(" + contactColumns + ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"
			done := measureCPU(b)
			for i := 0; i < b.N; {
				if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
					b.Fatal(err)
				}
				for end := min(i+perCommit, b.N); i < end; i++ {
					now := agent.Now()
					if _, err := c.exec(
						insert, agent.NewID(agent.KindContact), "Contact", fmt.Sprintf("contact%d@example.com", i),
						fmt.Sprintf("+1 555 %07d", i), "", "", "", "", "", `["vip"]`, "{}", now, now,
					); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := c.exec("COMMIT"); err != nil {
					b.Fatal(err)
				}
			}
			done()
		})
	}
}

func rawDatabase(b *testing.B) *conn {
	b.Helper()
	path := filepath.Join(b.TempDir(), "raw.db")
	writeBlank(b, path)
	c, err := openConn(source(path, sqlite.ReadWrite, append([]string{"journal_mode(WAL)"}, writerPragmas...)...))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.close(); err != nil {
			b.Error(err)
		}
	})
	return c
}

// BenchmarkCreateAgent makes agents one after another.
func BenchmarkCreateAgent(b *testing.B) {
	f := openFolder(b)
	done := measureCPU(b)
	for i := range b.N {
		if _, err := f.CreateAgent(
			b.Context(),
			agent.Agent{Name: fmt.Sprintf("agent-%d", i)},
			"o@example.com",
		); err != nil {
			b.Fatal(err)
		}
	}
	done()
}

func BenchmarkContact(b *testing.B) {
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			db := openFolder(b).Default()
			fillContacts(b, db, 1000)
			list, _, err := db.Contacts(b.Context(), nil, Page{Limit: 200})
			if err != nil {
				b.Fatal(err)
			}
			done := measureCPU(b)
			inParallel(b, n, func(i int) error {
				_, err := db.Contact(context.Background(), list[i%len(list)].ID)
				return err
			})
			done()
		})
	}
}

func BenchmarkContacts(b *testing.B) {
	for _, rows := range []int{1_000, 100_000} {
		db := openFolder(b).Default()
		fillContacts(b, db, rows)
		for name, page := range map[string]Page{
			"newest":        {Limit: 50},
			"created_at":    {Limit: 50, Order: []Order{{Field: "created_at", Desc: true}}},
			"by_name":       {Limit: 50, Order: []Order{{Field: "name"}}},
			"search":        {Limit: 50, Search: "contact77"},
			"offset_of_900": {Limit: 50, Offset: 900},
		} {
			b.Run(fmt.Sprintf("rows=%d/%s", rows, name), func(b *testing.B) {
				done := measureCPU(b)
				for range b.N {
					if _, total, err := db.Contacts(context.Background(), nil, page); err != nil || total == 0 {
						b.Fatal(total, err)
					}
				}
				done()
			})
		}
	}
}

// BenchmarkColdAgent measures the first response of an agent whose file is closed.
func BenchmarkColdAgent(b *testing.B) {
	db := openFolder(b).Default()
	createContact(b, db, named("x"))
	done := measureCPU(b)
	for range b.N {
		if _, _, err := db.Contacts(context.Background(), nil, Page{Limit: 50}); err != nil {
			b.Fatal(err)
		}
		if closed, err := db.closeIdle(); !closed || err != nil {
			b.Fatal(closed, err)
		}
	}
	done()
}

// BenchmarkFirstRead measures the first reads of agents whose files are closed, one read
// each, as after a start.
func BenchmarkFirstRead(b *testing.B) {
	const n = 300
	path := b.TempDir()
	makeAgents(b, path, n)
	f := openWith(b, Options{Path: path})
	list := make([]*DB, n)
	for i := range list {
		list[i] = byName(b, f, fmt.Sprintf("agent-%d", i))
	}
	done := measureCPU(b)
	for i := range b.N {
		if i%n == 0 && i > 0 {
			b.StopTimer()
			f.maintain(b.Context(), time.Now().Add(closeAfter))
			b.StartTimer()
		}
		if _, _, err := list[i%n].Contacts(context.Background(), nil, Page{Limit: 50}); err != nil {
			b.Fatal(err)
		}
	}
	done()
}

// BenchmarkOpen measures a start with many agents, after a clean stop and without the
// catalog's cache, and the memory that each agent of the catalog takes.
func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		path := b.TempDir()
		makeAgents(b, path, n)
		for _, remembered := range []bool{true, false} {
			b.Run(fmt.Sprintf("agents=%d/remembered=%v", n, remembered), func(b *testing.B) {
				before := memory()
				openOnce(b, path) // so that there is something to cache
				b.ResetTimer()
				for range b.N {
					if !remembered {
						b.StopTimer()
						if err := os.Remove(cachePath(path)); err != nil {
							b.Fatal(err)
						}
						b.StartTimer()
					}
					openOnce(b, path)
				}
				b.StopTimer()
				f, err := Open(Options{Path: path, Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(memory()-before)/float64(n), "bytes/agent")
				closeFolder(b, f)
			})
		}
	}
}

// BenchmarkInspect measures what a start without the catalog's cache does with each file,
// for a few files and for many.
func BenchmarkInspect(b *testing.B) {
	const n = 100
	path := b.TempDir()
	makeAgents(b, path, n)
	f := openWith(b, Options{Path: path})
	ids, err := f.listFiles()
	if err != nil {
		b.Fatal(err)
	}
	many := readers(b)
	for name, read := range map[string]func(string) bool{
		"few": func(path string) bool { return inspect(path).problem == nil },
		"many": func(path string) bool {
			_, ok := many.read(path)
			return ok
		},
	} {
		b.Run(name, func(b *testing.B) {
			read(f.filePath(ids[0]))
			done := measureCPU(b)
			for i := range b.N {
				if id := ids[i%len(ids)]; !read(f.filePath(id)) {
					b.Fatal(id)
				}
			}
			done()
		})
	}
}

func openOnce(b *testing.B, path string) {
	f, err := Open(Options{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	closeFolder(b, f)
	b.StartTimer()
}

// BenchmarkOpenAgents measures the resident memory that open files take, and what is left
// of it after they were closed as idle.
func BenchmarkOpenAgents(b *testing.B) {
	const n = 200
	path := b.TempDir()
	makeAgents(b, path, n)
	f := openWith(b, Options{Path: path})
	for b.Loop() {
		before := resident(b)
		for i := range n {
			if _, err := byName(b, f, fmt.Sprintf("agent-%d", i)).CreateContact(b.Context(), named("x")); err != nil {
				b.Fatal(err)
			}
			if _, _, err := byName(b, f, fmt.Sprintf("agent-%d", i)).Contacts(
				b.Context(),
				nil,
				Page{Limit: 50},
			); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(resident(b)-before)/n, "bytes/open-agent")
		f.maintain(b.Context(), time.Now().Add(closeAfter))
		if f.OpenCount() != 0 {
			b.Fatal("not all are closed")
		}
		b.ReportMetric(float64(resident(b)-before)/n, "bytes/closed-agent")
	}
}

// memory returns the bytes that are live on Go's heap.
func memory() int64 {
	for range 3 { // objects with finalizers need more than one
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// resident returns the resident memory of the process, in bytes: SQLite's memory is not
// on Go's heap.
func resident(b *testing.B) int64 {
	b.Helper()
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// BenchmarkRead measures the overhead of every read: a connection and a transaction.
func BenchmarkRead(b *testing.B) {
	db := openFolder(b).Default()
	done := measureCPU(b)
	for range b.N {
		_, err := Read(context.Background(), db, func(*Tx) (int, error) { return 0, nil })
		if err != nil && !errors.Is(err, sqlite.ErrNoRows) {
			b.Fatal(err)
		}
	}
	done()
}
