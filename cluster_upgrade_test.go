package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"satchel/store/cluster/pgtest"
)

// upgradedCluster is a cluster whose servers are replaced while clients use it.
type upgradedCluster struct {
	mu    sync.Mutex
	nodes []*clusterNode

	requests, retries int
	failed            []string
	executions        map[string]string // agents by execution
}

func (u *upgradedCluster) node(n int) *clusterNode {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.nodes[n%len(u.nodes)]
}

// request makes a request as a load balancer does: one that a server refuses, or answers
// with 503, goes to the next one.
func (u *upgradedCluster) request(t *testing.T, method, path string, body any) map[string]any {
	for try, deadline := 0, time.Now().Add(time.Minute); ; try++ {
		status, answer := u.node(try).ask(t, method, path, body)
		u.mu.Lock()
		switch {
		case status >= 200 && status < 300:
			u.requests++
		case (status == 0 || status == 503) && time.Now().Before(deadline) && t.Context().Err() == nil:
			u.retries++
			u.mu.Unlock()
			continue
		default:
			u.failed = append(u.failed, fmt.Sprintf("%s %s: %d %v", method, path, status, answer))
		}
		u.mu.Unlock()
		return answer
	}
}

// load executes a workflow of an agent and creates a contact, one after the other, until
// stop is closed.
func (u *upgradedCluster) load(t *testing.T, agent, workflow string, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		id, _ := u.request(t, "POST", "/agents/"+agent+"/workflows/execute", map[string]any{
			"workflow_id": workflow,
		})["execution_id"].(string)
		u.mu.Lock()
		u.executions[id] = agent
		u.mu.Unlock()
		u.request(t, "POST", "/agents/"+agent+"/contacts", map[string]any{"name": "x"})
	}
}

// TestClusterIsUpgraded replaces three servers, one after the other, while clients
// execute workflows through all of them. No execution fails, and no request that is sent
// again when a server refuses it.
func TestClusterIsUpgraded(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }))
	t.Cleanup(target.Close)
	database := pgtest.Start(t).Database("satchel")
	u := &upgradedCluster{executions: map[string]string{}}
	for range 3 {
		u.nodes = append(u.nodes, startNode(t, database))
	}
	flow := fmt.Sprintf(`{"name":"w","status":"active","settings":{"concurrency":100},"nodes":[{"id":"t","type":"trigger"},{"id":"a","type":"http-request","data":{"url":"%[1]s/a","method":"POST"}},
		{"id":"w","type":"wait","data":{"duration":1}},{"id":"b","type":"http-request","data":{"url":"%[1]s/b","method":"POST"}}],
		"edges":[{"source":"t","target":"a"},{"source":"a","target":"w"},{"source":"w","target":"b"}]}`, target.URL)
	stop, clients := make(chan struct{}), sync.WaitGroup{}
	for n, agent := range []string{"bakery", "florist", "default"} {
		if agent != "default" {
			u.node(n).insist(t, "POST", "/agents", map[string]any{"name": agent})
		}
		made := u.request(t, "POST", "/agents/"+agent+"/workflows", json.RawMessage(flow))
		clients.Go(func() { u.load(t, agent, made["id"].(string), stop) })
	}
	for n := range 3 {
		old := u.node(n)
		if err := old.process.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = old.process.Wait()
		next := startNode(t, database)
		u.mu.Lock()
		u.nodes[n] = next
		u.mu.Unlock()
	}
	close(stop)
	clients.Wait()
	u.check(t)
}

// check checks how all executions have ended.
func (u *upgradedCluster) check(t *testing.T) {
	t.Helper()
	for id, agent := range u.executions {
		path := "/agents/" + agent + "/workflows/executions/" + id
		for deadline := time.Now().Add(time.Minute); ; {
			e := u.request(t, "GET", path+"?wait=10", nil)
			if e["status"] == "complete" {
				break
			}
			if e["status"] == "errored" || time.Now().After(deadline) {
				t.Errorf("execution %s of %s: %v %v", id, agent, e["status"], e["error"])
				break
			}
		}
	}
	t.Logf("%d requests answered, %d attempts refused, %d executions", u.requests, u.retries, len(u.executions))
	if len(u.failed) > 0 || len(u.executions) < 10 {
		t.Errorf("%d executions, and %d requests failed: %.600v", len(u.executions), len(u.failed), u.failed)
	}
}
