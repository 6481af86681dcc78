//go:build unix

package cluster

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/testenv"
	"satchel/store"
	"satchel/store/cluster/pgtest"
)

// killRounds is the variable that sets how often servers are killed, paused and cut off:
//
//	SATCHEL_KILL_ROUNDS=50 go test ./store/cluster -run TestNothingIsLost -v -timeout 2h
//	SATCHEL_KILL_ROUNDS=50 go test ./store/cluster -run TestNothingIsLost -v -timeout 2h
const killRounds = "SATCHEL_KILL_ROUNDS"

// longestGap is how long writes to an agent may fail, on a machine that is busy with
// other tests.
const longestGap = 4 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv("CLUSTER_FOLDER") != "" {
		writeUntilKilled()
		return
	}
	os.Exit(testenv.Run(m))
}

// writeUntilKilled runs a server that writes to all agents that it owns, and prints a
// line for each write that was acknowledged.
func writeUntilKilled() {
	path, name := os.Getenv("CLUSTER_FOLDER"), os.Getenv("CLUSTER_NAME")
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	c, err := Open(context.Background(), Options{
		URL:        os.Getenv("CLUSTER_URL"),
		MasterKeys: [][]byte{testKey},
		Path:       path,
		Name:       name,
		Log:        log,
	})
	var f *store.Folder
	if err == nil {
		f, err = store.Open(store.Options{Path: path, MasterKeys: [][]byte{testKey}, Log: log, Cluster: c})
	}
	if err == nil {
		err = c.Start(context.Background(), f, "http://"+name)
	}
	if err != nil { // the database is busy: restart, as a service manager would
		log.Error("start", "error", err)
		panic(syscall.Exec(os.Args[0], os.Args, os.Environ()))
	}
	writing := map[*store.DB]bool{}
	ticker := time.NewTicker(50 * time.Millisecond)
	for range ticker.C {
		for _, db := range f.Agents() {
			if !writing[db] && db.ID() != agent.DefaultID {
				writing[db] = true
				for w := range 2 {
					go writeAgent(db, w, log)
				}
			}
		}
	}
}

var printing sync.Mutex

func writeAgent(db *store.DB, w int, log *slog.Logger) {
	for n := 0; !db.Gone(); n++ {
		name := fmt.Sprintf("%d-%d-%p-%d", os.Getpid(), w, db, n) // unique to this write
		_, err := db.CreateContact(context.Background(), agent.ContactChange{
			Name:  agent.Some(name),
			Notes: agent.Some(strings.Repeat(fmt.Sprint(n, " "), rand.IntN(3000))),
		})
		if err != nil {
			log.Info("not acknowledged", "agent", db.ID(), "error", err)
			continue
		}
		printing.Lock()
		fmt.Printf("%s %s\n", db.ID(), name)
		printing.Unlock()
		if n%10 == 9 && w == 0 {
			if _, err := db.SQL(
				context.Background(),
				"UPDATE contacts SET notes = 'changed' WHERE id IN (SELECT id FROM contacts ORDER BY id DESC LIMIT 5)",
				store.Params{},
				store.Access{Write: true},
			); err != nil {
				log.Info("not changed", "agent", db.ID(), "error", err)
			}
		}
	}
}

// node is a server in a process of its own.
type node struct {
	name, folder string
	relay        *pgtest.Relay
	url          string
	process      *exec.Cmd
	reading      chan struct{}
}

// acks are the writes that were acknowledged.
type acks struct {
	mu    sync.Mutex
	names map[string][]string // by agent
	count int
	grew  *sync.Cond
}

func (a *acks) read(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if db, name, ok := strings.Cut(lines.Text(), " "); ok {
			a.mu.Lock()
			a.names[db] = append(a.names[db], name)
			a.count++
			a.grew.Broadcast()
			a.mu.Unlock()
		}
	}
}

// more waits until each of the agents has n more acknowledged writes.
func (a *acks) more(t *testing.T, agents []string, n int) time.Duration {
	t.Helper()
	began := time.Now()
	timer := time.AfterFunc(longestGap, a.grew.Broadcast)
	defer timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	before := map[string]int{}
	for _, id := range agents {
		before[id] = len(a.names[id])
	}
	for _, id := range agents {
		for len(a.names[id]) < before[id]+n {
			if time.Since(began) >= longestGap {
				t.Fatalf("agent %s was not written for %v", id, longestGap)
			}
			a.grew.Wait()
		}
	}
	return time.Since(began)
}

func (n *node) start(t *testing.T, all *acks) {
	t.Helper()
	n.process = exec.Command(os.Args[0], "-test.run=^$")
	n.process.Env = append(os.Environ(), "CLUSTER_FOLDER="+n.folder, "CLUSTER_NAME="+n.name, "CLUSTER_URL="+n.url)
	log, err := os.OpenFile(filepath.Join(n.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	n.process.Stderr = log
	out, err := n.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.process.Start(); err != nil {
		t.Fatal(err)
	}
	n.reading = make(chan struct{})
	go func() {
		defer close(n.reading)
		all.read(out)
	}()
}

func (n *node) kill() {
	_ = n.process.Process.Kill()
	<-n.reading
	_ = n.process.Wait()
}

// TestNothingIsLost kills, pauses and cuts off servers and the database while they write,
// and checks that everything that was acknowledged is there.
func TestNothingIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	rounds, _ := strconv.Atoi(os.Getenv(killRounds))
	if rounds == 0 {
		rounds = 2
	}
	pg := pgtest.Start(t)
	url := pg.Database("lost")
	all := &acks{names: map[string][]string{}}
	all.grew = sync.NewCond(&all.mu)
	ids := makeAgents(t, url, 6)
	var nodes []*node
	for _, name := range []string{"a", "b", "c"} {
		n := &node{name: name, folder: t.TempDir()}
		n.relay, n.url = between(t, url)
		n.start(t, all)
		nodes = append(nodes, n)
	}
	t.Cleanup(func() {
		for _, n := range nodes {
			_ = n.process.Process.Signal(syscall.SIGCONT)
			n.kill()
		}
		if t.Failed() {
			for _, n := range nodes {
				text, _ := os.ReadFile(filepath.Join(n.folder, "log"))
				t.Logf("%s:\n%s", n.name, text[max(0, len(text)-6000):])
			}
		}
	})
	t.Logf("first writes after %v", all.more(t, ids, 20))
	for round := range rounds {
		disturb(t, pg, url, nodes, all, ids, round)
	}
	for _, n := range nodes {
		n.kill()
	}
	checkAcknowledged(t, url, all)
}

// makeAgents creates agents that no server owns any more.
func makeAgents(t *testing.T, url string, n int) (ids []string) {
	t.Helper()
	s := serve(t, url, "maker", t.TempDir())
	s.agent(t, agent.DefaultID)
	for n := range n {
		ids = append(ids, s.make(t, fmt.Sprintf("agent-%d", n)).ID())
	}
	s.end()
	return ids
}

// ownerOf returns the server that owns an agent.
func ownerOf(t *testing.T, url string, nodes []*node, id string) *node {
	t.Helper()
	pool, err := connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var name string
	if err := pool.QueryRow(
		t.Context(),
		"SELECT n.name FROM agent a JOIN node n ON n.session = a.owner WHERE a.id = $1",
		id,
	).Scan(&name); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if n.name == name {
			return n
		}
	}
	t.Fatalf("agent %s belongs to %s", id, name)
	return nil
}

// disturb does one of several kinds of damage and waits until all agents can be written
// again.
func disturb(t *testing.T, pg *pgtest.Server, url string, nodes []*node, all *acks, ids []string, round int) {
	t.Helper()
	n := ownerOf(t, url, nodes, ids[round%len(ids)])
	harm := []string{"killed", "loses answers", "paused", "killed and started", "database crashed", "cut off"}[round%6]
	switch harm {
	case "killed":
		n.kill()
	case "killed and started":
		n.kill()
		n.start(t, all)
	case "paused":
		_ = n.process.Process.Signal(syscall.SIGSTOP)
	case "loses answers":
		for range 5 {
			n.relay.Lose(true)
			<-n.relay.Lost
			n.relay.Lose(false)
			all.more(t, ids[:1], 5)
		}
	case "cut off":
		n.relay.Lose(true)
	case "database crashed":
		pg.Kill()
		pg.Up()
	}
	waited := all.more(t, ids, 20)
	all.mu.Lock()
	count := all.count
	all.mu.Unlock()
	t.Logf(
		"round %d: %s %s, all agents are written again after %v; %d acknowledged",
		round, n.name, harm, waited, count,
	)
	switch harm {
	case "killed":
		n.start(t, all)
	case "paused":
		_ = n.process.Process.Signal(syscall.SIGCONT)
	case "cut off":
		n.relay.Lose(false)
	}
}

// checkAcknowledged compares the agents in the database with what was acknowledged.
func checkAcknowledged(t *testing.T, url string, all *acks) {
	t.Helper()
	s := serve(t, url, "checker", t.TempDir())
	if _, err := s.pool.Exec(
		t.Context(),
		"UPDATE node SET alive = false, died = clock_timestamp() WHERE session <> $1",
		s.Self().Session,
	); err != nil {
		t.Fatal(err)
	}
	total := 0
	for id, names := range all.names {
		times := contactNames(t, s.agent(t, id))
		lost := 0
		for _, name := range names {
			if times[name] == 0 {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("agent %s: %d of %d acknowledged writes are lost", id, lost, len(names))
		}
		for name, n := range times {
			if n > 1 {
				t.Errorf("agent %s: the write %s is there %d times", id, name, n)
			}
		}
		checkWhole(t, s, id)
		total += len(names)
	}
	t.Logf("%d acknowledged in all", total)
}

// contactNames counts an agent's contacts by name.
func contactNames(t *testing.T, db *store.DB) map[string]int {
	t.Helper()
	times := map[string]int{}
	for page := (store.Page{Limit: 500}); ; page.Offset += page.Limit {
		contacts, total, err := db.Contacts(t.Context(), nil, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range contacts {
			times[c.Name]++
		}
		if page.Offset+page.Limit >= total {
			return times
		}
	}
}

// checkWhole compares the owner's file with the database's copy, and checks its
// integrity.
func checkWhole(t *testing.T, s *server, id string) {
	t.Helper()
	db := s.agent(t, id)
	held, err := db.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	copied := filepath.Join(t.TempDir(), "copy.db")
	if _, _, err := s.Cluster.write(t.Context(), id, copied, olderCopy{}); err != nil {
		t.Fatal(err)
	}
	want, e1 := os.ReadFile(s.f.FilePath(id))
	got, e2 := os.ReadFile(copied)
	if e1 != nil || e2 != nil || !bytes.Equal(want, got) {
		t.Errorf("the restored file of %s differs: %v, %v", id, e1, e2)
	}
	if err := store.PutFile(t.Context(), t.TempDir(), copied, id); err != nil {
		t.Errorf("the restored file of %s: %v", id, err)
	}
}
