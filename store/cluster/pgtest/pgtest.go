// Package pgtest runs PostgreSQL servers for tests.
package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"satchel/agent/testenv"
)

// Server is a PostgreSQL server for a test, which is removed at the end of the test.
type Server struct {
	t      testing.TB
	bin    string
	folder string
	port   string

	started bool // once
}

// unprivileged is the user and group of the server if the test runs as root, as which
// PostgreSQL refuses to run. It is nobody on Debian and similar systems.
const unprivileged = 65534

// Start starts an empty server that stores its data as durably as a real one. If
// PostgreSQL is missing, the test is skipped; if every test must run, Start installs it
// as root, and fails otherwise.
func Start(t testing.TB) *Server {
	t.Helper()
	s := newServer(t)
	s.run(
		"initdb", "-D", s.data(), "-U", "satchel", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync",
		"--no-instructions",
	)
	s.Up()
	return s
}

// newServer returns a server without data.
func newServer(t testing.TB) *Server {
	t.Helper()
	server := &Server{
		t:    t,
		bin:  find(t),
		port: freePort(t),
	} // or skips the test
	folder, err := os.MkdirTemp("", "satchel-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	server.folder = folder
	t.Cleanup(func() {
		if _, err := os.Stat(server.data()); err == nil {
			_ = server.command("pg_ctl", "-D", server.data(), "-m", "immediate", "-w", "stop").Run()
		}
		server.remove()
	})
	if os.Getuid() == 0 {
		if err := os.Chown(folder, unprivileged, unprivileged); err != nil {
			t.Fatal(err)
		}
	}
	return server
}

func (s *Server) remove() { _ = os.RemoveAll(s.folder) }

func (s *Server) data() string {
	return filepath.Join(s.folder, "data")
}

// Up starts the server, for the first time or after Kill.
func (s *Server) Up() {
	s.t.Helper()
	err := s.start()
	if err != nil && !s.started { // another program may have taken the port
		s.port = freePort(s.t)
		err = s.start()
	}
	s.started = true
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) start() error {
	options := "-c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c shared_buffers=16MB " +
		"-c max_connections=60 -p " +
		s.port
	return s.try(
		"pg_ctl",
		"-D", s.data(),
		"-o", options,
		"-l", filepath.Join(s.folder, "log"),
		"-w", "-t",
		"60", "start",
	)
}

// Kill stops the server as a crash would.
func (s *Server) Kill() {
	s.t.Helper()
	s.run("pg_ctl", "-D", s.data(), "-m", "immediate", "-w", "stop")
}

// Addr returns the host and port of the server.
func (s *Server) Addr() string {
	return net.JoinHostPort("127.0.0.1", s.port)
}

// Database creates an empty database and returns its URL.
func (s *Server) Database(name string) string {
	s.t.Helper()
	s.run("createdb", "-h", "127.0.0.1", "-p", s.port, "-U", "satchel", name)
	return s.URL(name)
}

// URL returns the URL of a database of the server.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://satchel@%s/%s?sslmode=disable", s.Addr(), database)
}

// command returns a command that runs one of PostgreSQL's programs, as a user who may.
func (s *Server) command(program string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.bin, program), args...)
	c.Dir = s.folder
	withoutRoot(c)
	return c
}

func (s *Server) run(program string, args ...string) {
	s.t.Helper()
	if err := s.try(program, args...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) try(program string, args ...string) error {
	out, err := os.CreateTemp("", "satchel-pgtest-") // not a pipe: the server would inherit it and keep it open
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	c := s.command(program, args...)
	c.Stdout, c.Stderr = out, out
	if err := c.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		log, _ := os.ReadFile(filepath.Join(s.folder, "log"))
		return fmt.Errorf("%s: %w\n%s\n%s", program, err, text, log)
	}
	return nil
}

// find returns the folder with the programs of the newest installed PostgreSQL.
func find(t testing.TB) string {
	t.Helper()
	if bin := newest(); bin != "" {
		return bin
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	if !testenv.All() || os.Getuid() != 0 {
		testenv.Need(t, "PostgreSQL", errors.New("run: sudo apt-get install -y --no-install-recommends postgresql"))
	}
	// Test packages run at the same time: with the lock, one waits for the other.
	install := func() ([]byte, error) {
		return exec.Command(
			"env", "DEBIAN_FRONTEND=noninteractive",
			"apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends", "postgresql",
		).CombinedOutput()
	}
	out, err := install()
	if err != nil { // a fresh machine has no package lists
		_ = exec.Command("apt-get", "update").Run()
		out, err = install()
	}
	if err != nil {
		t.Fatalf("apt-get install postgresql: %v\n%s", err, bytes.TrimSpace(out))
	}
	bin := newest()
	if bin == "" {
		t.Fatal("PostgreSQL was installed, but there is no /usr/lib/postgresql/*/bin/initdb")
	}
	return bin
}

func newest() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4])
		return n
	}
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int {
		return version(a) - version(b)
	}))
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// Processes returns the ids of the server's processes.
func (s *Server) Processes() (ids []int) {
	s.t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		s.t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	id, _ := strconv.Atoi(first)
	ids = []int{id}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", id, id))
	for _, child := range strings.Fields(string(children)) {
		id, _ := strconv.Atoi(child)
		ids = append(ids, id)
	}
	return ids
}
