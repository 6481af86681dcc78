package cluster

import (
	"fmt"
	"os"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store/cluster/pgtest"
)

// BenchmarkTakeover takes over the agents of a server that is dead. The newest commits of
// each are only in the log, and this server has no copy of its file. It reports the time
// for all agents, and the CPU time per agent here and in PostgreSQL.
//
//	go test ./store/cluster -run '^$' -bench Takeover -benchtime 1x
//	go test ./store/cluster -run '^$' -bench Takeover -benchtime 1x
func BenchmarkTakeover(b *testing.B) {
	pg := pgtest.Start(b)
	for _, agents := range []int{100, 1000} {
		b.Run(fmt.Sprint(agents), func(b *testing.B) {
			for range b.N {
				benchmarkTakeover(b, pg, agents)
			}
		})
	}
}

func benchmarkTakeover(b *testing.B, pg *pgtest.Server, agents int) {
	b.StopTimer()
	url := pg.Database(fmt.Sprintf("takeover%d", benchmarked.Add(1)))
	killed := serve(b, url, "killed", b.TempDir())
	killed.agent(b, agent.DefaultID)
	for i := range agents {
		db := killed.make(b, fmt.Sprint("bakery-", i))
		for range 3 {
			mustWrite(b, db, "note of a customer who came back for more bread")
		}
	}
	s := serve(b, url, "survivor", b.TempDir())
	killed.end()
	// As after a kill: the rows lack what is only in the files.
	if _, err := s.pool.Exec(
		b.Context(),
		"UPDATE agent SET owner = 'killed', info_head = 0, changed = clock_timestamp()",
	); err != nil {
		b.Fatal(err)
	}
	if _, err := s.pool.Exec(
		b.Context(),
		"UPDATE node SET alive = false, died = clock_timestamp() WHERE session <> $1",
		s.Self().Session,
	); err != nil {
		b.Fatal(err)
	}
	before, usage := processTime(b, os.Getpid()), s.usage(b, pg)
	b.StartTimer()
	began := time.Now()
	s.eventually(b, "to have all agents", func() bool { return len(s.f.Agents()) > agents })
	took := time.Since(began)
	b.StopTimer()
	after := s.usage(b, pg)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took.Seconds(), "s")
	b.ReportMetric((processTime(b, os.Getpid())-before).Seconds()*1e3/float64(agents), "cpu-ms")
	b.ReportMetric((after.cpu-usage.cpu).Seconds()*1e3/float64(agents), "pg-cpu-ms")
}
