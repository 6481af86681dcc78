package cluster

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store/cluster/pgtest"
)

// BenchmarkRestore restores the file of an agent of 100 MB from the database, as for a
// server that has no copy of it. It reports the CPU time here and in PostgreSQL.
//
//	go test ./store/cluster -run '^$' -bench Restore -benchtime 3x
//	go test ./store/cluster -run '^$' -bench Restore -benchtime 3x
func BenchmarkRestore(b *testing.B) {
	pg := pgtest.Start(b)
	s := serve(b, pg.Database("restore"), "a", b.TempDir())
	s.agent(b, agent.DefaultID)
	db := s.make(b, "bakery")
	source := rand.NewChaCha8([32]byte{7})
	for range 2500 {
		text := make([]byte, 20_000)
		_, _ = source.Read(text)
		mustWrite(b, db, strings.Map(func(r rune) rune { return 'a' + r%26 }, string(text)))
	}
	to := filepath.Join(b.TempDir(), "restored.db")
	before, usage := processTime(b, os.Getpid()), s.usage(b, pg)
	for b.Loop() {
		if _, _, err := s.Cluster.write(b.Context(), db.ID(), to, olderCopy{}); err != nil {
			b.Fatal(err)
		}
	}
	after := s.usage(b, pg)
	info, err := os.Stat(to)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size()>>20), "MB")
	b.ReportMetric((processTime(b, os.Getpid())-before).Seconds()*1e3/float64(b.N), "cpu-ms")
	b.ReportMetric((after.cpu-usage.cpu).Seconds()*1e3/float64(b.N), "pg-cpu-ms")
}
