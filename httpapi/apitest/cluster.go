package apitest

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
	"satchel/store/cluster"
)

// Cluster tells the servers of a test which of them owns an agent.
type Cluster struct {
	cluster.Signer
	Nodes []*Node

	Mu     sync.Mutex
	Owners map[string]*Node  // by id
	Names  map[string]string // id by name
	Next   map[string]*Node  // the owner after the first look-up, by id
	Asked  func()            // called when an owner is looked up again

	Hostile bool // names of servers have markup
	Alike   bool // the servers have the same name
	Dead    []cluster.Node
	Failing bool
	Ends    map[string]context.Context // lifetimes of servers that end during the test, by session
}

// Node is a server's view of a Cluster.
type Node struct {
	URL     string
	Folder  *store.Folder
	Cluster *Cluster
	Down    error
	Drained chan struct{}
	Reason  atomic.Value // why it is leaving, a cluster.Reason
}

func (n *Node) node(of *Node) cluster.Node {
	name := "node-" + strconv.Itoa(slices.Index(n.Cluster.Nodes, of)+1)
	switch {
	case n.Cluster.Alike:
		name = "node"
	case n.Cluster.Hostile:
		name += Hostile
	}
	why, _ := of.Reason.Load().(cluster.Reason)
	return cluster.Node{
		Session: of.Session(),
		Name:    name,
		URL:     of.URL,
		Lag:     7 * time.Millisecond,
		Seen:    time.Now(),
		Self:    of == n,
		Alive:   true,
		Leaving: why != "",
		Reason:  why,
	}
}

// Session returns the name of the server's session.
func (n *Node) Session() string {
	return strings.NewReplacer("http://", "", ":", "-").Replace(n.URL)
}

// Self returns the server itself.
func (n *Node) Self() cluster.Node { return n.node(n) }

// Ready returns Down.
func (n *Node) Ready() error { return n.Down }

// Stats returns figures that all differ.
func (n *Node) Stats() cluster.Stats {
	return cluster.Stats{
		Owned:  2,
		Lag:    1500 * time.Millisecond,
		Claims: 3,
		Fences: 4,
		Errors: 5,
		Ahead:  -3 * time.Second,
	}
}

// Owner returns an agent's owner and id.
func (n *Node) Owner(_ context.Context, ref string) (cluster.Node, string, error) {
	c := n.Cluster
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if id, ok := c.Names[ref]; ok {
		ref = id
	}
	owner, ok := c.Owners[ref]
	if next := c.Next[ref]; next != nil {
		c.Owners[ref] = next
		delete(c.Next, ref)
	}
	switch {
	case !ok:
		return cluster.Node{}, "", agent.NotFound("agent", ref)
	case owner == nil:
		return cluster.Node{}, ref, cluster.ErrUnavailable
	}
	return n.node(owner), ref, nil
}

// Await returns at once.
func (n *Node) Await(context.Context, string) error { return nil }

// Refresh returns an agent's owner, and calls Asked.
func (n *Node) Refresh(ctx context.Context, id string) (cluster.Node, error) {
	if n.Cluster.Asked != nil {
		n.Cluster.Asked()
	}
	node, _, err := n.Owner(ctx, id)
	return node, err
}

// Nodes lists the servers.
func (n *Node) Nodes(context.Context) (all []cluster.Node, _ error) {
	n.Cluster.Mu.Lock()
	failing := n.Cluster.Failing
	all = slices.Clone(n.Cluster.Dead)
	n.Cluster.Mu.Unlock()
	if failing {
		return nil, cluster.ErrUnavailable
	}
	for _, of := range n.Cluster.Nodes {
		all = append(all, n.node(of))
	}
	return all, nil
}

// Lifetime returns the lifetime of a server.
func (n *Node) Lifetime(session string) context.Context {
	n.Cluster.Mu.Lock()
	defer n.Cluster.Mu.Unlock()
	return cmp.Or(n.Cluster.Ends[session], context.Background())
}

// Agents lists the agents of all servers.
func (n *Node) Agents(context.Context) (all []cluster.Entry, _ error) {
	for _, of := range n.Cluster.Nodes {
		for _, db := range of.Folder.Agents() {
			if of == n.Cluster.Owners[db.ID()] {
				all = append(all, cluster.Entry{
					Agent:     db.Agent(),
					Admins:    db.Roles(),
					Owner:     of.Session(),
					Attention: store.Attention{Waiting: 3},
				})
			}
		}
	}
	return all, nil
}

// Move gives an agent of this server to another.
func (n *Node) Move(_ context.Context, id, node string) error {
	n.Cluster.Mu.Lock()
	defer n.Cluster.Mu.Unlock()
	for _, to := range n.Cluster.Nodes {
		if n.Cluster.Owners[id] == n && to.Session() == node {
			n.Cluster.Owners[id] = to
			return nil
		}
	}
	return agent.NotFound("server", node)
}

// Drain closes Drained.
func (n *Node) Drain(_ context.Context, why cluster.Reason) error {
	n.Reason.Store(why)
	close(n.Drained)
	return nil
}

// Sign signs a request to another server.
func (n *Node) Sign(r *http.Request) {
	n.Cluster.Signer.Sign(r)
}

// Verify reports whether another server has just signed a request.
func (n *Node) Verify(r *http.Request) (bool, error) {
	return n.Cluster.Signer.Verify(r)
}

// NewCluster starts two servers with a folder each, and returns their views. start starts
// one with the parts that it receives, and returns its address. The second server owns
// all agents.
func NewCluster(t testing.TB, start func(Parts) string) (first, second *Node) {
	t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	signer, err := cluster.NewSigner([][]byte{key})
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{
		Signer: signer,
		Owners: map[string]*Node{},
		Names:  map[string]string{},
	}
	for range 2 {
		parts := Open(t)
		n := &Node{
			Folder:  parts.Folder,
			Cluster: c,
			Drained: make(chan struct{}),
		}
		parts.Cluster = n
		n.URL = start(parts)
		c.Nodes = append(c.Nodes, n)
	}
	first, second = c.Nodes[0], c.Nodes[1]
	c.Owners[agent.DefaultID] = second
	return first, second
}

// Own creates an agent on a server.
func (n *Node) Own(t testing.TB, name string) *store.DB {
	t.Helper()
	db, err := n.Folder.CreateAgent(t.Context(), agent.Agent{Name: name}, "")
	if err != nil {
		t.Fatal(err)
	}
	n.Cluster.Mu.Lock()
	defer n.Cluster.Mu.Unlock()
	n.Cluster.Owners[db.ID()], n.Cluster.Names[name] = n, db.ID()
	return db
}
