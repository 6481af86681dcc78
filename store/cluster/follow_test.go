package cluster

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// A poll reads only the agents that changed, and one that lists all agents finds what the
// others missed.
func testFollow(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	b := serve(t, url, "b", t.TempDir())
	if _, err := open(t, url, t.TempDir()).Agents(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("the agents of a server that has not read them: %v", err)
	}
	bakery, florist, butcher := a.make(t, "Bakery").ID(), a.make(t, "Florist").ID(), a.make(t, "Butcher").ID()
	poll := func(all bool) {
		t.Helper()
		b.stepping.Lock()
		defer b.stepping.Unlock()
		if all {
			b.mu.Lock()
			b.full = time.Time{}
			b.mu.Unlock()
		}
		if err := b.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	row := func(id string) *agentRow {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.agents[id]
	}
	name := func(id string) string {
		k, _ := b.find(id)
		return k.name
	}
	poll(false)
	before := row(florist)
	a.exec(t, "UPDATE agent SET name = 'Baker', changed = clock_timestamp() WHERE id = $1", bakery)
	poll(false)
	if name(bakery) != "Baker" {
		t.Errorf("an agent that was renamed is %q", name(bakery))
	}
	if row(florist) != before {
		t.Error("an agent that did not change was read again")
	}
	a.exec(t, "UPDATE agent SET name = 'Miller', changed = clock_timestamp() - interval '1 hour' WHERE id = $1", bakery)
	a.exec(t, "UPDATE agent SET changed = changed - interval '1 hour' WHERE id = $1", butcher)
	poll(true)
	a.exec(t, "DELETE FROM agent WHERE id = $1", butcher)
	poll(false)
	if name(bakery) != "Miller" || name(butcher) == "" {
		t.Errorf("agents are %q and %q", name(bakery), name(butcher))
	}
	poll(true)
	if name(butcher) != "" || name(florist) == "" {
		t.Errorf("after one was removed, agents are %q and %q", name(butcher), name(florist))
	}
	nodes, err := b.Nodes(t.Context())
	if i := slices.IndexFunc(
		nodes,
		func(n Node) bool { return n.Name == "a" },
	); err != nil || i < 0 || nodes[i].Agents != 3 {
		t.Errorf("the servers are %+v, %v", nodes, err)
	}
}

// The lifetime of a server ends when this one declares it dead, when the database says
// that it left, and when the database no longer has it.
func testLifetime(t *testing.T, url string) {
	s := serve(t, url, "a", t.TempDir())
	own, unknown := s.Lifetime(s.Self().Session), s.Lifetime("unknown")
	for session, end := range map[string]func(){
		"silent": func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.nodes["silent"].at = time.Now().Add(-time.Hour)
		},
		"left": func() {
			s.exec(t, "UPDATE node SET alive = false, died = clock_timestamp() WHERE session = 'left'")
		},
		"removed": func() { s.exec(t, "DELETE FROM node WHERE session = 'removed'") },
	} {
		s.exec(
			t,
			"INSERT INTO node(session, name, url, version, file_version) VALUES ($1, $1, $1, '1', $2)",
			session,
			store.FileVersion(),
		)
		s.eventually(t, "to know a server", func() bool { return s.Lifetime(session).Err() == nil })
		lifetime := s.Lifetime(session)
		if err := s.step(t.Context()); err != nil || lifetime.Err() != nil || s.Lifetime(session) != lifetime {
			t.Errorf("the lifetime of a running server: %v, %v", lifetime.Err(), err)
		}
		s.eventually(t, "the end of a server that is "+session, func() bool {
			end()
			return lifetime.Err() != nil
		})
		if s.Lifetime(session).Err() == nil {
			t.Errorf("a server that is %s has a lifetime", session)
		}
	}
	if own.Err() != nil || unknown.Err() == nil {
		t.Errorf("the lifetime of this server: %v, of an unknown one: %v", own.Err(), unknown.Err())
	}
}

func (s *server) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func TestCompareClock(t *testing.T) {
	began := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	now := began.Add(100 * time.Millisecond)
	var logged bytes.Buffer
	c := &Cluster{Options: Options{Log: slog.New(slog.NewTextHandler(&logged, nil))}}
	for _, test := range []struct {
		database, ahead time.Duration
		warns           bool
	}{
		{50 * time.Millisecond, 0, false},
		{-time.Second, time.Second, false},
		{-3 * time.Hour, 3 * time.Hour, true},
		{-3 * time.Hour, 3 * time.Hour, false}, // once
		{time.Hour, 100*time.Millisecond - time.Hour, false},
		{0, 0, false},
		{time.Hour, 100*time.Millisecond - time.Hour, true},
	} {
		logged.Reset()
		c.compareClock(pollResult{startedAt: began, asOf: began.Add(test.database)}, now)
		if c.stats.Ahead != test.ahead || (logged.Len() > 0) != test.warns {
			t.Errorf(
				"a database at %v: ahead by %v of %v, logged %q",
				test.database,
				c.stats.Ahead,
				test.ahead,
				logged.String(),
			)
		}
	}
}
