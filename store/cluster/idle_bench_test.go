package cluster

import (
	"encoding/json"
	"os"
	"runtime"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
	"satchel/store/cluster/pgtest"
)

// BenchmarkIdle reports what a server with 20,000 agents, half of which it owns, costs
// while it receives no requests.
//
//	go test ./store/cluster -run '^$' -bench Idle -benchtime 1x
//	go test ./store/cluster -run '^$' -bench Idle -benchtime 1x
func BenchmarkIdle(b *testing.B) {
	const agents, idle = 20000, 2 * time.Minute
	pg := pgtest.Start(b)
	s := serve(b, pg.Database("idle"), "a", b.TempDir())
	s.agent(b, agent.DefaultID)
	info, err := json.Marshal(store.Summary{
		Agent: agent.Agent{
			ID:          agent.DefaultID,
			Name:        "bakery",
			Description: "Answers what customers of the bakery ask.",
			Status:      agent.StatusActive,
			CreatedAt:   agent.Now(),
		},
		Admins:    map[string]agent.Role{"owner@example.com": agent.RoleOwner},
		Attention: store.Attention{Holds: &store.Holdings{}},
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.pool.Exec(
		b.Context(),
		"INSERT INTO node(session, name, url, version, file_version) VALUES ('other', "+
			"'other', 'http://other', '1', $1)",
		store.FileVersion(),
	); err != nil {
		b.Fatal(err)
	}
	insert := `INSERT INTO agent(id, name, name_key, owner, head, file_version, info, info_head)
		SELECT 'agt_' || lpad(n::text, 26, '0'), 'bakery-' || n, 'bakery-' || n, CASE WHEN n % 2 = 0 THEN $1 ELSE 'other' END, 1, $2, $3, 1 FROM generate_series(1, $4) n`
	if _, err := s.pool.Exec(
		b.Context(), insert, s.Self().Session, store.FileVersion(), string(info), agents,
	); err != nil {
		b.Fatal(err)
	}
	s.eventually(b, "to have its agents", func() bool {
		_, err := s.pool.Exec(b.Context(), "UPDATE node SET beat = beat + 1 WHERE session = 'other'")
		return err == nil && len(s.f.Agents()) > agents/2
	})
	goroutines := runtime.NumGoroutine()
	alive := time.NewTicker(2 * time.Second)
	defer alive.Stop()
	for range b.N {
		before, database := processTime(b, os.Getpid()), s.usage(b, pg)
		for began := time.Now(); time.Since(began) < idle; <-alive.C {
			if _, err := s.pool.Exec(
				b.Context(),
				"UPDATE node SET beat = beat + 1 WHERE session = 'other'",
			); err != nil {
				b.Fatal(err)
			}
		}
		after := s.usage(b, pg)
		share := func(d time.Duration) float64 { return 100 * d.Seconds() / idle.Seconds() }
		b.ReportMetric(share(processTime(b, os.Getpid())-before), "%cpu")
		b.ReportMetric(share(after.cpu-database.cpu), "%pg-cpu")
		b.ReportMetric(float64(after.transactions-database.transactions)/idle.Seconds(), "transactions/s")
		b.ReportMetric(float64(goroutines), "goroutines")
	}
}
