package cluster

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

var testKey = bytes.Repeat([]byte{7}, 32)

// server is one server of a cluster, in this process.
type server struct {
	*Cluster
	f     *store.Folder
	path  string
	ended sync.Once
}

// serve starts a server on a folder; it leaves the cluster when the test ends.
func serve(t testing.TB, url, name, path string) *server {
	t.Helper()
	return serveAt(t, url, name, "http://"+name, path)
}

// serveAt is serve for a server that the others reach at the given address.
func serveAt(t testing.TB, url, name, address, path string) *server {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	c, err := Open(t.Context(), Options{
		URL:        url,
		MasterKeys: [][]byte{testKey},
		Path:       path,
		Name:       name,
		Version:    "1",
		Log:        log,
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := store.Open(store.Options{Path: path, MasterKeys: [][]byte{testKey}, Log: log, Cluster: c})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(context.Background(), f, address); err != nil {
		t.Fatal(err)
	}
	s := &server{Cluster: c, f: f, path: path}
	t.Cleanup(s.end)
	return s
}

func (s *server) end() {
	s.ended.Do(func() {
		_ = s.f.Close()
		s.Close()
	})
}

// eventually polls the database until the condition holds, and does what each poll found.
func (s *server) eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for !is() {
		if err := s.step(ctx); err != nil && ctx.Err() != nil {
			t.Fatalf("%s: timed out; %v", what, err)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: timed out", what)
		case <-time.After(10 * time.Millisecond): // the rest of the server needs CPU time, too
		}
	}
}

func (s *server) has(id string) func() bool {
	return func() bool {
		db, err := s.f.Agent(id)
		return err == nil && db.Problem() == nil && !db.Gone()
	}
}

// make creates an agent.
func (s *server) make(t testing.TB, name string) *store.DB {
	t.Helper()
	db, err := s.f.CreateAgent(t.Context(), agent.Agent{Name: name}, "owner@example.com")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// agent returns an agent of the server.
func (s *server) agent(t testing.TB, id string) *store.DB {
	t.Helper()
	s.eventually(t, "to have agent "+id, s.has(id))
	db, err := s.f.Agent(id)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// write creates a contact.
func write(ctx context.Context, db *store.DB, notes string) (id string, err error) {
	c, err := db.CreateContact(ctx, agent.ContactChange{Name: agent.Some("x"), Notes: agent.Some(notes)})
	return c.ID, err
}

func mustWrite(t testing.TB, db *store.DB, notes string) (id string) {
	t.Helper()
	id, err := write(t.Context(), db, notes)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// missing returns the contacts that an agent does not have.
func missing(t testing.TB, db *store.DB, ids []string) (lost []string) {
	t.Helper()
	for _, id := range ids {
		if _, err := db.Contact(t.Context(), id); err != nil {
			lost = append(lost, id+": "+err.Error())
		}
	}
	return lost
}

// die makes the other servers declare this one dead, although it is still running.
func (s *server) die(t testing.TB) {
	t.Helper()
	if _, err := s.pool.Exec(
		t.Context(),
		"UPDATE node SET alive = false, died = clock_timestamp() WHERE session = $1",
		s.Self().Session,
	); err != nil {
		t.Fatal(err)
	}
}
