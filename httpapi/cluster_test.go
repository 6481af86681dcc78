package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"satchel/agent"
)

// Servers and agents can be listed, moved and drained through any server.
func TestCluster(t *testing.T) {
	first, second := newCluster(t)
	far, near := second.Own(t, "far"), first.Own(t, "near")
	for _, n := range []*fakeNode{first, second} {
		got := n.must(t, 200, "GET", "/api/cluster", "")
		if nodes := got["nodes"].([]any); len(nodes) != 2 ||
			at(nodes[0], "alive") != true ||
			fmt.Sprint(at(nodes[0], "lag_ms")) != "7" {
			t.Errorf("the servers: %v", got)
		}
		got = n.must(t, 200, "GET", "/api/cluster/agents?node="+first.Session(), "")
		if len(got["agents"].([]any)) != 1 ||
			at(got, "agents.0.id") != near.ID() ||
			at(got, "agents.0.node") != first.Session() {
			t.Errorf("the agents of the first server: %v", got)
		}
		if got := n.must(t, 200, "GET", "/api/cluster/agents?limit=1", ""); fmt.Sprint(at(got, "meta.total")) != "3" {
			t.Errorf("all agents: %v", got)
		}
	}
	first.must(t, 404, "POST", "/api/cluster/agents/far/move", `{"node":"nowhere"}`)
	first.must(t, 400, "POST", "/api/cluster/agents/far/move", `{}`)
	first.must(t, 404, "POST", "/api/cluster/agents/none/move", `{"node":"`+first.Session()+`"}`)
	first.must(t, 200, "POST", "/api/cluster/agents/far/move", `{"node":"`+first.Session()+`"}`)
	if first.Cluster.Owners[far.ID()] != first.Node {
		t.Error("the agent was not moved")
	}
	first.must(t, 404, "POST", "/api/cluster/nodes/nowhere/drain", "")
	first.Cluster.Failing = true
	if a := first.send(t, "GET", "/api/cluster", ""); a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("while the database does not answer: %d %v", a.StatusCode, a.Header)
	}
}

// A server performs its own drain, whichever server received the request.
func TestDrain(t *testing.T) {
	first, second := newCluster(t)
	for _, n := range []*fakeNode{first, second} {
		n.Cluster.Nodes[1].Drained = make(chan struct{})
		n.must(t, 202, "POST", "/api/cluster/nodes/node-2/drain", "")
		<-second.Drained
		if got := n.must(t, 200, "GET", "/api/cluster", ""); at(got, "nodes.1.leaving") != true ||
			at(got, "nodes.1.reason") != "drained" {
			t.Errorf("the servers: %v", got)
		}
	}
}

// A name that several servers have does not identify the one to drain; an id does.
func TestDrainOfSeveral(t *testing.T) {
	first, second := newCluster(t)
	first.Cluster.Alike = true
	first.must(t, 400, "POST", "/api/cluster/nodes/node/drain", "")
	for _, n := range []*fakeNode{first, second} {
		second.Drained = make(chan struct{})
		n.must(t, 202, "POST", "/api/cluster/nodes/"+second.Session()+"/drain", "")
		<-second.Drained
	}
}

// Only admins of the service may manage its cluster; a single server has no cluster.
func TestClusterIsForAdmins(t *testing.T) {
	first, second := newCluster(t)
	if _, _, err := second.folder.CreateKey(t.Context(), agent.Key{
		Name:   "reader",
		Role:   agent.RoleViewer,
		Agents: []string{"*"},
	}); err != nil {
		t.Fatal(err)
	}
	_, secret, err := first.folder.CreateKey(t.Context(), agent.Key{
		Name:   "reader",
		Role:   agent.RoleViewer,
		Agents: []string{"*"},
	})
	if err != nil {
		t.Fatal(err)
	}
	first.must(t, 401, "GET", "/api/cluster", "")
	first.with("X-API-Key", secret).must(t, 403, "GET", "/api/cluster", "")
	_, admin, err := first.folder.CreateKey(t.Context(), agent.Key{
		Name:   "operator",
		Role:   agent.RoleAdmin,
		Agents: []string{"*"},
	})
	if err != nil {
		t.Fatal(err)
	}
	first.with("X-API-Key", admin).must(t, 200, "GET", "/api/cluster", "")
	newTestClient(t).must(t, 404, "GET", "/api/cluster", "")
}

// A server of a cluster has Prometheus metrics of the cluster.
func TestClusterMetrics(t *testing.T) {
	first, _ := newCluster(t)
	text := first.do(t, "GET", "/metrics", http.NoBody, "").text
	for _, line := range []string{
		"agents 2", "lag_seconds 1.5", "claims_total 3", "fences_total 4", "ship_errors_total 5",
		"clock_ahead_seconds -3",
	} {
		if !strings.Contains(text, "\nsatchel_cluster_"+line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
}
