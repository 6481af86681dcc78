//go:build unix

package main

import (
	"bytes"
	"fmt"
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

	"satchel/store/cluster/pgtest"
)

// faultSeeds is the variable that sets the number of seeds of TestClusterSurvivesFaults,
// and firstSeed the one that sets the first:
//
//	SATCHEL_FAULT_SEEDS=200 go test . -run TestClusterSurvivesFaults -v -timeout 10h
//	SATCHEL_FAULT_SEEDS=200 go test . -run TestClusterSurvivesFaults -v -timeout 10h
const (
	faultSeeds = "SATCHEL_FAULT_SEEDS"
	firstSeed  = "SATCHEL_FAULT_SEED"
)

// faultyAgents are the agents that clients write to while servers fail.
var faultyAgents = []string{"bakery", "florist", "grocer"}

const (
	writersAtOnce = 2 // for each agent
	longestFault  = 30 * time.Second

	clientPatience = 5 * time.Second // for a response
	longestGap     = 4 * time.Minute // without a write, on a machine that is busy with other tests
)

// faultyCluster is a cluster whose parts fail.
type faultyCluster struct {
	pg    *pgtest.Server
	nodes []*faultyNode
}

type faultyNode struct {
	mu sync.Mutex
	*clusterNode
	toDatabase, fromPeers *pgtest.Relay
	cut                   bool // cut off from the database
}

// client returns the server as seen by a client, which does not know when it is
// restarted.
func (n *faultyNode) client() *clusterNode {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &clusterNode{url: n.url, patience: clientPatience}
}

// address returns the address on which the server listens.
func (n *faultyNode) address() string {
	return strings.TrimSuffix(strings.TrimPrefix(n.client().url, "http://"), "/api")
}

func startFaultyCluster(t *testing.T) *faultyCluster {
	f := &faultyCluster{pg: pgtest.Start(t)}
	url := f.pg.Database("satchel")
	for range 3 {
		n := &faultyNode{toDatabase: pgtest.NewRelay(t), fromPeers: pgtest.NewRelay(t)}
		n.toDatabase.To(f.pg.Addr())
		n.clusterNode = startNode(
			t,
			strings.Replace(url, f.pg.Addr(), n.toDatabase.Addr(), 1),
			"--cluster-url",
			n.peerURL(),
		)
		n.fromPeers.To(n.address())
		f.nodes = append(f.nodes, n)
	}
	for _, agent := range faultyAgents {
		if status, made := f.nodes[0].ask(t, "POST", "/agents", map[string]any{"name": agent}); status != 201 {
			t.Fatalf("%d %v", status, made)
		}
	}
	return f
}

// writes records what clients wrote, each with a unique name.
type writes struct {
	mu      sync.Mutex
	grew    *sync.Cond
	acked   map[string][]string // names by agent
	unknown int                 // without a known outcome
	refused int                 // with 503
}

// write creates contacts of an agent through any server until stop is closed.
func (f *faultyCluster) write(t *testing.T, w *writes, agent, writer string, r *rand.Rand, stop chan struct{}) {
	for n := 0; ; n++ {
		name := fmt.Sprintf("%s-%d", writer, n)
		status, answer := f.nodes[r.IntN(len(f.nodes))].client().ask(
			t,
			"POST",
			"/agents/"+agent+"/contacts",
			map[string]any{"name": name},
		)
		w.mu.Lock()
		switch {
		case status == 201:
			w.acked[agent] = append(w.acked[agent], name)
			w.grew.Broadcast()
		case status == 0:
			w.unknown++
		case status == 503 && answer["Retry-After"] != nil:
			w.refused++
		default:
			t.Errorf("the response to a write is %d %v", status, answer)
		}
		w.mu.Unlock()
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond): // the servers need CPU time, too
		}
	}
}

// more waits until each agent has n more acknowledged writes.
func (w *writes) more(t *testing.T, n int) time.Duration {
	t.Helper()
	began := time.Now()
	defer time.AfterFunc(longestGap, w.grew.Broadcast).Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	want := map[string]int{}
	for _, agent := range faultyAgents {
		want[agent] = len(w.acked[agent]) + n
	}
	for _, agent := range faultyAgents {
		for len(w.acked[agent]) < want[agent] {
			if time.Since(began) >= longestGap {
				t.Fatalf("agent %s was not written for %v", agent, longestGap)
			}
			w.grew.Wait()
		}
	}
	return time.Since(began)
}

// fault is a kind of failure; begin returns a function that ends it, nil if it ends
// itself.
type fault struct {
	name  string
	begin func(*testing.T, *faultyCluster, *faultyNode, *writes) (end func())
}

var faults = []fault{
	{"is killed", func(t *testing.T, _ *faultyCluster, n *faultyNode, _ *writes) func() {
		n.kill()
		return func() {
			n.mu.Lock()
			n.start(t)
			n.mu.Unlock()
			n.fromPeers.To(n.address())
		}
	}},
	{"is paused", func(_ *testing.T, _ *faultyCluster, n *faultyNode, _ *writes) func() {
		_ = n.process.Process.Signal(syscall.SIGSTOP)
		return func() { _ = n.process.Process.Signal(syscall.SIGCONT) }
	}},
	{"is cut off from the database", func(_ *testing.T, f *faultyCluster, n *faultyNode, _ *writes) func() {
		n.cut = true
		n.toDatabase.To("")
		return func() {
			n.cut = false
			n.toDatabase.To(f.pg.Addr())
		}
	}},
	{"is cut off from the other servers", func(_ *testing.T, _ *faultyCluster, n *faultyNode, _ *writes) func() {
		n.fromPeers.To("")
		return func() { n.fromPeers.To(n.address()) }
	}},
	{"gets no responses from the database", func(_ *testing.T, _ *faultyCluster, n *faultyNode, _ *writes) func() {
		n.toDatabase.Lose(true)
		return func() { n.toDatabase.Lose(false) }
	}},
	{"loses its responses to the other servers", func(_ *testing.T, _ *faultyCluster, n *faultyNode, _ *writes) func() {
		n.fromPeers.Lose(true)
		return func() { n.fromPeers.Lose(false) }
	}},
	{"and the database cannot reach each other", func(_ *testing.T, _ *faultyCluster, n *faultyNode, _ *writes) func() {
		return n.toDatabase.Stall()
	}},
	{
		"and the other servers cannot reach each other",
		func(_ *testing.T, _ *faultyCluster, n *faultyNode, _ *writes) func() {
			return n.fromPeers.Stall()
		},
	},
	{"loses some responses from the database", func(_ *testing.T, _ *faultyCluster, n *faultyNode, _ *writes) func() {
		for range 5 {
			n.toDatabase.Lose(true)
			select {
			case <-n.toDatabase.Lost:
			case <-time.After(3 * time.Second): // it sends no queries, because it was killed
			}
			n.toDatabase.Lose(false)
		}
		return nil
	}},
	{"sees the database crash", func(_ *testing.T, f *faultyCluster, _ *faultyNode, _ *writes) func() {
		f.pg.Kill()
		f.pg.Up()
		return nil
	}},
	{
		"sees the database lost and its standby promoted",
		func(t *testing.T, f *faultyCluster, _ *faultyNode, w *writes) func() {
			standby := f.pg.Standby()
			w.more(t, 5) // they are acknowledged by the standby
			f.pg.Remove()
			standby.Promote()
			f.pg = standby
			for _, n := range f.nodes {
				if !n.cut {
					n.toDatabase.To(standby.Addr())
				}
			}
			return nil
		},
	},
}

// TestClusterSurvivesFaults has three servers and their database fail, in two ways at a
// time, while clients write through all servers. Each acknowledged write is there once,
// and no other one twice; the files in the database equal those of the owners byte for
// byte.
func TestClusterSurvivesFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	seeds, _ := strconv.ParseUint(os.Getenv(faultSeeds), 10, 64)
	first, _ := strconv.ParseUint(os.Getenv(firstSeed), 10, 64)
	f := startFaultyCluster(t)
	for seed := first; seed < first+max(seeds, 1) && !t.Failed(); seed++ {
		f.survive(t, seed)
	}
	f.checkFiles(t)
}

// survive runs the failures that a seed selects.
func (f *faultyCluster) survive(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	w := &writes{acked: map[string][]string{}}
	w.grew = sync.NewCond(&w.mu)
	stop, clients := make(chan struct{}), sync.WaitGroup{}
	for i, agent := range faultyAgents {
		for n := range writersAtOnce {
			clients.Go(func() {
				f.write(t, w, agent, fmt.Sprintf("%d-%d", seed, n), rand.New(rand.NewPCG(seed, uint64(10*i+n+1))), stop)
			})
		}
	}
	end := sync.OnceFunc(func() {
		close(stop)
		clients.Wait()
	})
	defer end()
	w.more(t, 5)
	f.spread(t, r.Perm(len(f.nodes)))
	which, order := r.Perm(len(faults)), r.Perm(len(f.nodes))
	var ends []func()
	said := fmt.Sprintf("seed %d:", seed)
	for i := range 2 {
		lasts := time.Second + time.Duration(r.Int64N(int64(longestFault-time.Second)))/time.Duration(2-i)
		fault := faults[which[i]]
		if end := fault.begin(t, f, f.nodes[order[i]], w); end != nil {
			ends = append(ends, end)
		}
		if len(ends) > 0 {
			<-time.After(lasts) // the length of the failure is what is tested
		}
		said += fmt.Sprintf(" server %d %s, %.1fs;", order[i]+1, fault.name, lasts.Seconds())
	}
	for _, end := range ends {
		end()
	}
	back := w.more(t, 10)
	end()
	f.compareFiles(t)
	total := 0
	for agent, names := range w.acked {
		f.check(t, agent, names)
		total += len(names)
	}
	t.Logf(
		"%s all agents can be written %.1fs later; %d writes acknowledged, %d refused, %d without a response",
		said,
		back.Seconds(),
		total,
		w.refused,
		w.unknown,
	)
}

// spread moves agents until each server has one.
func (f *faultyCluster) spread(t *testing.T, order []int) {
	t.Helper()
	for deadline := time.Now().Add(longestGap); ; {
		owners, placed := f.owners(), 0
		for i, agent := range faultyAgents {
			n := f.nodes[order[i]]
			if owners[agent].owner != n {
				n.client().ask(t, "POST", "/cluster/agents/"+agent+"/move", map[string]any{"node": n.peerURL()})
			} else {
				placed++
			}
		}
		switch {
		case placed == len(faultyAgents):
			return
		case time.Now().After(deadline):
			t.Fatalf("the agents' owners are %v", owners)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// must makes a request to any server until it succeeds.
func (f *faultyCluster) must(t *testing.T, method, path string, body any) map[string]any {
	t.Helper()
	for n, deadline := 0, time.Now().Add(longestGap); ; n++ {
		status, answer := f.nodes[n%len(f.nodes)].client().ask(t, method, path, body)
		if status == 200 {
			return answer
		}
		if status != 0 && status != 503 || time.Now().After(deadline) {
			t.Fatalf("%s %s: %d %v", method, path, status, answer)
		}
	}
}

// check compares the contacts of an agent with those that were acknowledged, and
// removes them.
func (f *faultyCluster) check(t *testing.T, agent string, acked []string) {
	t.Helper()
	times := map[string]int{}
	for _, c := range f.must(t, "GET", "/agents/"+agent+"/contacts/export?format=json", nil)["contacts"].([]any) {
		times[c.(map[string]any)["name"].(string)]++
	}
	for _, name := range acked {
		if times[name] == 0 {
			t.Errorf("agent %s: the acknowledged write %s is lost", agent, name)
		}
	}
	for name, n := range times {
		if n > 1 {
			t.Errorf("agent %s: the write %s is there %d times", agent, name, n)
		}
	}
	f.must(t, "POST", "/agents/"+agent+"/sql/execute", map[string]any{"query": "DELETE FROM contacts"})
}

// checkFiles stops the servers and checks all agents' files.
func (f *faultyCluster) checkFiles(t *testing.T) {
	t.Helper()
	for _, n := range f.nodes {
		n.kill()
	}
	n, to := f.nodes[0], filepath.Join(t.TempDir(), "exported")
	if out, err := n.command("cluster", "export", to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files, _ := filepath.Glob(filepath.Join(to, "agents", "*.db"))
	if len(files) != len(faultyAgents)+1 { // with the default agent
		t.Errorf("%d agents were exported", len(files))
	}
	var found bytes.Buffer
	doctor := exec.Command(os.Args[0], "doctor", "--data", to)
	doctor.Env, doctor.Stdout = append(os.Environ(), asProgram+"=1"), &found
	_ = doctor.Run() // its exit status also reports on this machine
	for line := range strings.Lines(found.String()) {
		if strings.HasPrefix(line, "!!") && strings.Contains(line, "agent") {
			t.Errorf("after the faults: %s", line)
		}
	}
}
