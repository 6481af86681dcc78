// Package cluster lets several servers share their agents through one
// PostgreSQL database. Each agent belongs to one server at a time, its owner,
// which opens its file as a single server does. The owner of an agent and every
// commit of its file are rows of the database: a commit counts once its row is
// stored, and the statement that inserts it checks the owner. So no agent is
// lost when a server fails, and two servers never write to the same agent, even
// if each believes that it is the owner.
package cluster

import (
	"context"
	"errors"
	"net/http"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Directory is a server's view of the cluster that it belongs to. Its methods are safe
// for concurrent use.
type Directory interface {
	// Self returns this server. Its Session changes if the others considered it dead and
	// it joined again.
	Self() Node

	// Ready returns an ErrUnavailable if this server must not answer for any agent at
	// present: PostgreSQL has not responded for some seconds, or the server is joining or
	// leaving.
	Ready() error

	// Owner returns the server that owns an agent, found by id or else by name
	// ignoring case, and the agent's id. It reads from memory, which follows
	// the database within two seconds; agents that are not in memory are looked
	// up. The error has agent.CodeNotFound if there is no such agent, and is an
	// ErrUnavailable while it has no owner or the database does not respond.
	Owner(ctx context.Context, idOrName string) (Node, string, error)

	// Refresh looks an agent's owner up in the database, after a server answered
	// that it does not own the agent, or not at all.
	Refresh(ctx context.Context, id string) (Node, error)

	// Await waits until the folder of this server, which owns an agent, has it: its file
	// may have to be fetched first, before those of agents without waiting requests, or
	// the agent is being moved to another server. The error is ErrNotOwner if this server
	// does not own it, or an ErrUnavailable if ctx ended.
	Await(ctx context.Context, id string) error

	// Nodes returns the servers that are alive, and those that died within an hour.
	Nodes(ctx context.Context) ([]Node, error)

	// Lifetime returns a context that is done once a server, given by its Session, has
	// left or is considered dead, or if this server does not know it.
	Lifetime(session string) context.Context

	// Agents returns all agents of the cluster, in no particular order. The result must
	// not be changed. The error is an ErrUnavailable until this server has read them.
	Agents(ctx context.Context) ([]Entry, error)

	// Move moves an agent, which this server must own, to another server, given by its
	// Session, Name or URL. It returns once that server owns the agent, which it serves
	// within a second. The error has a code of package agent if there is no such server,
	// or this one does not own the agent.
	Move(ctx context.Context, id, node string) error

	// Drain moves all agents of this server to the others, after which it takes no more.
	// It returns once those that it knows it owns are gone, or with the error of the
	// first that could not be moved; unless it is Stopping, it continues with the rest.
	Drain(context.Context, Reason) error

	// Stats returns this server's counters.
	Stats() Stats

	// Sign marks a request that this server forwards to an agent's owner; Verify
	// reports whether a server of this cluster signed a request just now. A server
	// answers such a request itself or refuses it: it is not forwarded again. The error
	// is an ErrSignatureTime if the request was signed at another time.
	Sign(*http.Request)
	Verify(*http.Request) (bool, error)
}

// Node is a server of the cluster.
type Node struct {
	Session string        // of one start of the server, never reused
	Name    string        // given by the operator, else its host name
	URL     string        // where the other servers reach it, like http://10.0.0.1:8787
	Version string        // of the program
	Seen    time.Time     // when this server last saw its heartbeat change
	Agents  int           // that it owns
	Lag     time.Duration // see Stats, when it was last seen
	Self    bool          // it is this server
	Alive   bool
	Leaving bool   // its agents move to other servers, and it gets no more
	Reason  Reason // why it is leaving; "" if an older version of the program does not report it
}

// Reason is why a server gives its agents away.
type Reason string

// The reasons.
const (
	Drained  Reason = "drained"   // by the operator: it takes no agents until it is restarted
	Stopping Reason = "stopping"  // it ends
	DiskFull Reason = "disk_full" // it takes agents again once there is room
)

// Stats are a server's counters since it started.
type Stats struct {
	Owned  int           // agents that it owns now
	Lag    time.Duration // the longest that a commit of about the last second has waited for the database
	Claims int64         // agents that it took over from servers that left
	Fences int64         // commits that were refused, since another server had the agent
	Errors int64         // statements with commits that the database did not answer
	Ahead  time.Duration // minimum difference between this server's clock and the database's; negative if it is behind
}

// Entry is an agent of the cluster.
type Entry struct {
	Agent  agent.Agent           // as of the last time its file was closed, or its own row changed
	Admins map[string]agent.Role // by email
	Owner  string                // the Session of the server that owns it

	Attention store.Attention // some seconds old at most
}

// ErrNotOwner is returned if this server does not, or no longer, own an agent.
// Nothing has been done, so the request can be sent to the owner.
var ErrNotOwner = store.ErrNotOwner

// ErrUnavailable reports that the cluster cannot answer at present. A write that failed
// with it may have been done.
var ErrUnavailable = errors.New("the cluster is not available at present")
