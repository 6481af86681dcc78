package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Standby starts a standby that replicates this server. From now on each commit of this
// server waits until the standby has it too.
func (s *Server) Standby() *Server {
	s.t.Helper()
	s.Query("postgres", "ALTER SYSTEM SET synchronous_standby_names = walreceiver")
	s.Query("postgres", "SELECT pg_reload_conf()")
	to := newServer(s.t)
	s.run(
		"pg_basebackup",
		"-D", to.data(),
		"-d", "host=127.0.0.1 user=satchel port="+s.port,
		"-R", "-X",
		"stream", "-c",
		"fast", "--no-sync",
	)
	to.configure("synchronous_standby_names = ''") // when it is promoted
	to.Up()
	return to
}

// configure adds a line to the configuration that ALTER SYSTEM writes.
func (s *Server) configure(line string) {
	s.t.Helper()
	f, err := os.OpenFile(
		filepath.Join(s.data(), "postgresql.auto.conf"),
		os.O_APPEND|os.O_WRONLY,
		0,
	)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// Promote makes a standby a primary, which accepts changes and has no standby of its own.
func (s *Server) Promote() {
	s.t.Helper()
	s.run("pg_ctl", "-D", s.data(), "-w", "promote")
}

// Remove stops the server as a crash would, and removes its files.
func (s *Server) Remove() {
	s.t.Helper()
	s.Kill()
	s.remove()
}

// Query returns the rows of a statement as lines, with "|" between the columns.
func (s *Server) Query(database, statement string) string {
	s.t.Helper()
	out, err := s.command(
		"psql", "-XAt",
		"-h", "127.0.0.1",
		"-p", s.port,
		"-U", "satchel",
		"-d", database,
		"-c", statement,
	).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", statement, err, out)
	}
	return strings.TrimSpace(string(out))
}
