package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
	"satchel/store/cluster/pgtest"
)

// BenchmarkCommits writes to agents of one server, each in a loop of its own, and reports
// what a commit costs this process and PostgreSQL.
//
//	go test ./store/cluster -run '^$' -bench Commits -benchtime 20000x
//	go test ./store/cluster -run '^$' -bench Commits -benchtime 20000x
func BenchmarkCommits(b *testing.B) {
	pg := pgtest.Start(b)
	for _, agents := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(agents), func(b *testing.B) { benchmarkCommits(b, pg, agents) })
	}
}

var benchmarked atomic.Int64

func benchmarkCommits(b *testing.B, pg *pgtest.Server, agents int) {
	s := serve(b, pg.Database(fmt.Sprintf("bench%d", benchmarked.Add(1))), "a", b.TempDir())
	s.agent(b, agent.DefaultID)
	dbs := make([]*store.DB, agents)
	for i := range dbs {
		dbs[i] = s.make(b, fmt.Sprint("bakery-", i))
		mustWrite(b, dbs[i], "before")
	}
	before, database := processTime(b, os.Getpid()), s.usage(b, pg)
	var next atomic.Int64
	took := make([][]time.Duration, agents)
	var all sync.WaitGroup
	b.ResetTimer()
	for i, db := range dbs {
		all.Go(func() {
			for next.Add(1) <= int64(b.N) {
				began := time.Now()
				if _, err := write(
					context.Background(),
					db,
					"note of a customer who came back for more bread",
				); err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(began))
			}
		})
	}
	all.Wait()
	b.StopTimer()
	n := float64(b.N)
	times := slices.Concat(took...)
	slices.Sort(times)
	after := s.usage(b, pg)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(n/b.Elapsed().Seconds(), "commits/s")
	b.ReportMetric(times[len(times)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(times[len(times)*99/100].Seconds()*1000, "p99-ms")
	b.ReportMetric((processTime(b, os.Getpid())-before).Seconds()*1e6/n, "cpu-µs")
	b.ReportMetric((after.cpu-database.cpu).Seconds()*1e6/n, "pg-cpu-µs")
	b.ReportMetric(float64(after.wal-database.wal)/n, "wal-B")
	b.ReportMetric(float64(after.syncs-database.syncs)/n, "syncs")
	b.ReportMetric(float64(after.transactions-database.transactions)/n, "transactions")
	b.ReportMetric(float64(after.logged-database.logged)/n, "log-B")
}

// growthTime is the variable that sets how long BenchmarkGrowth writes:
//
//	SATCHEL_GROWTH_TIME=15m go test ./store/cluster -run '^$' -bench Growth -benchtime 1x -timeout 1h
const growthTime = "SATCHEL_GROWTH_TIME"

// BenchmarkGrowth changes contacts of 64 agents 500 times a second, or as often as the
// machine can, and prints the sizes of the tables, in MB.
func BenchmarkGrowth(b *testing.B) {
	const agents, perSecond = 64, 500
	length, err := time.ParseDuration(os.Getenv(growthTime))
	if err != nil {
		b.Skip("set " + growthTime)
	}
	s := serve(b, pgtest.Start(b).Database("growth"), "a", b.TempDir())
	s.agent(b, agent.DefaultID)
	began := time.Now()
	pace := time.NewTicker(time.Second / perSecond)
	defer pace.Stop()
	var commits atomic.Int64
	var all sync.WaitGroup
	for i := range agents {
		db := s.make(b, fmt.Sprint("bakery-", i))
		contacts := []string{}
		for range 200 {
			contacts = append(contacts, mustWrite(b, db, "before"))
		}
		all.Go(func() {
			for n := i; time.Since(began) < length; n++ {
				<-pace.C
				if _, err := db.UpdateContact(context.Background(), contacts[n%len(contacts)], agent.ContactChange{
					Notes: agent.Some(fmt.Sprint("asked for bread ", n)),
				}); err != nil {
					b.Error(err)
					return
				}
				commits.Add(1)
			}
		})
	}
	ticker := time.NewTicker(length / 30)
	defer ticker.Stop()
	last, lastTime := int64(0), began
	for now := range ticker.C {
		var log, heap, index, toast, live, dead, rows, vacuums, agents, block int64
		if err := s.pool.QueryRow(b.Context(), `SELECT pg_total_relation_size('log'), pg_relation_size('log'), pg_indexes_size('log'), coalesce(pg_total_relation_size(nullif(reltoastrelid, 0)), 0),
			(SELECT coalesce(sum(length(body)), 0) FROM log), n_dead_tup, n_live_tup, autovacuum_count, pg_total_relation_size('agent'), pg_total_relation_size('block')
			FROM pg_stat_user_tables JOIN pg_class c ON c.oid = relid WHERE relid = 'log'::regclass`).Scan(&log, &heap, &index, &toast, &live, &dead, &rows, &vacuums, &agents, &block); err != nil {
			b.Fatal(err)
		}
		mb := func(n int64) string { return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) }
		n := commits.Load()
		fmt.Printf(
			"%4.0f s %4.0f commits/s  log %s (heap %s index %s toast %s) live %s in %d rows, dead %d, "+
				"vacuums %d; agent %s block %s\n",
			now.Sub(began).Seconds(), float64(n-last)/now.Sub(lastTime).Seconds(), mb(log), mb(heap), mb(index),
			mb(toast), mb(live), rows, dead, vacuums, mb(agents), mb(block),
		)
		if last, lastTime = n, now; time.Since(began) > length {
			break
		}
	}
	all.Wait()
}

// usage is the work that a database and its server have done.
type usage struct {
	cpu                              time.Duration
	wal, syncs, transactions, logged int64
}

func (s *server) usage(b *testing.B, pg *pgtest.Server) (u usage) {
	b.Helper()
	if err := s.pool.QueryRow(b.Context(), `SELECT wal_bytes::bigint, wal_sync, xact_commit, (SELECT coalesce(sum(length(body)), 0) FROM log)::bigint
		FROM pg_stat_wal, pg_stat_database WHERE datname = current_database()`).Scan(&u.wal, &u.syncs, &u.transactions, &u.logged); err != nil {
		b.Fatal(err)
	}
	for _, pid := range pg.Processes() {
		u.cpu += processTime(b, pid)
	}
	return u
}

// processTime returns the CPU time of a process and of those children of it that have
// ended.
func processTime(b *testing.B, pid int) (sum time.Duration) {
	b.Helper()
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0 // it has ended: its time counts for its parent
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	for _, field := range fields[11:15] {
		ticks, _ := strconv.Atoi(field)
		sum += time.Duration(ticks) * 10 * time.Millisecond
	}
	return sum
}
