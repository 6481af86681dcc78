package httpapi

import (
	"cmp"
	"context"
	"slices"
	"time"

	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store/cluster"
)

// drainTime is how long a drained server may take to move its agents to others.
const drainTime = 10 * time.Minute

type clusterNode struct {
	ID      string     `json:"id" doc:"Of one start of the server." example:"3NQ7WQY5S4ZKJH6M2T8R"`
	Name    string     `json:"name" example:"node-1"`
	URL     string     `json:"url" doc:"Where the other servers reach it." example:"http://10.0.0.1:8787"`
	Version string     `json:"version" example:"0.1.0"`
	Agents  int        `json:"agents" doc:"Number of agents that it owns." example:"12"`
	LagMS   int64      `json:"lag_ms" doc:"The longest that a commit of about its last second has waited for the database, in milliseconds." example:"4"`
	Alive   bool       `json:"alive" doc:"Servers that died are listed for an hour."`
	Leaving bool       `json:"leaving" doc:"Its agents move to the other servers, and it gets no more."`
	Reason  string     `json:"reason,omitempty" enum:"drained,stopping,disk_full" doc:"Why it is leaving. After disk_full it gets agents again once there is space." example:"drained"`
	Self    bool       `json:"self" doc:"It answers this request."`
	SeenAt  agent.Time `json:"seen_at" format:"date-time" doc:"When it was last seen alive."`
}

type clusterOut struct {
	Nodes []clusterNode `json:"nodes"`
}

// directory returns the cluster, for callers that may manage it: admins of the default
// agent by a role of their own.
func (s *Server) directory(call *rest.Call) (cluster.Directory, error) {
	d := s.options.Cluster
	if d == nil {
		return nil, agent.Errorf(agent.CodeNotFound, "this server does not belong to a cluster")
	}
	entries, err := d.Agents(call)
	if err != nil {
		return nil, unavailable(err)
	}
	var admins map[string]agent.Role
	for _, e := range entries {
		if e.Agent.ID == agent.DefaultID {
			admins = e.Admins
		}
	}
	if !call.Identity.OwnRole(agent.DefaultID, admins).Covers(agent.RoleAdmin) {
		return nil, agent.Errorf(
			agent.CodeForbidden,
			"this requires the role admin on the default agent; its default role is not enough",
		).With("role", agent.RoleAdmin)
	}
	return d, nil
}

func (s *Server) getCluster(call *rest.Call, _ *none) (clusterOut, error) {
	out := clusterOut{Nodes: []clusterNode{}}
	directory, err := s.directory(call)
	if err != nil {
		return out, err
	}
	nodes, err := directory.Nodes(call)
	if err != nil {
		return out, unavailable(err)
	}
	for _, n := range nodes {
		out.Nodes = append(out.Nodes, clusterNode{
			ID:      n.Session,
			Name:    n.Name,
			URL:     n.URL,
			Version: n.Version,
			Agents:  n.Agents,
			LagMS:   n.Lag.Milliseconds(),
			Alive:   n.Alive,
			Leaving: n.Leaving,
			Reason:  string(n.Reason),
			Self:    n.Self,
			SeenAt:  agent.At(n.Seen),
		})
	}
	agent.Sort(out.Nodes, func(a, b clusterNode) int {
		return cmp.Or(
			compareBools(a.Alive, b.Alive),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.ID, b.ID),
		)
	})
	return out, nil
}

type clusterAgentsIn struct {
	rest.ListParams
	Node string `query:"node" doc:"Only agents of the server with this id." example:"3NQ7WQY5S4ZKJH6M2T8R"`
}

type clusterAgent struct {
	ID   string `json:"id" example:"agent-06f1q2s3t4v5a6b7c8d9"`
	Name string `json:"name" example:"support-bot"`
	Node string `json:"node" doc:"Id of the server that owns it; \"stopped\" if the database has lost commits of it." example:"3NQ7WQY5S4ZKJH6M2T8R"`
}

type clusterAgentsOut struct {
	Agents []clusterAgent `json:"agents"`
	Meta   rest.Meta      `json:"meta"`
}

func (s *Server) listClusterAgents(call *rest.Call, in *clusterAgentsIn) (clusterAgentsOut, error) {
	page, err := in.Page()
	if err != nil {
		return clusterAgentsOut{}, err
	}
	directory, err := s.directory(call)
	if err != nil {
		return clusterAgentsOut{}, err
	}
	entries, err := directory.Agents(call)
	if err != nil {
		return clusterAgentsOut{}, unavailable(err)
	}
	agents := []clusterAgent{}
	for _, e := range entries {
		if (in.Node == "" || e.Owner == in.Node) && mentions(page.Search, e.Agent.Name) {
			agents = append(agents, clusterAgent{e.Agent.ID, e.Agent.Name, e.Owner})
		}
	}
	slices.SortFunc(agents, func(a, b clusterAgent) int {
		return cmp.Compare(agent.NameKey(a.Name), agent.NameKey(b.Name))
	})
	return clusterAgentsOut{rest.Cut(agents, page), rest.MetaOf(page, len(agents))}, nil
}

type moveAgentIn struct {
	Agent string `path:"agent" doc:"Id or name of the agent." example:"support-bot"`
	Body  struct {
		Node string `json:"node" required:"true" doc:"Id, name or URL of the server that gets the agent." example:"node-2"`
	}
}

// moveAgent moves an agent from this server to another. The request has been forwarded to
// the agent's owner.
func (s *Server) moveAgent(c *rest.Call, in *moveAgentIn) (Success, error) {
	d, err := s.directory(c)
	if err != nil {
		return Success{}, err
	}
	if in.Body.Node == "" {
		return Success{}, agent.Invalid("node", "is required")
	}
	_, id, err := d.Owner(c, in.Agent)
	if err == nil {
		err = d.Move(c, id, in.Body.Node)
	}
	return Success{Success: err == nil}, err
}

type drainNodeIn struct {
	Node string `path:"nodeId" doc:"Id or name of the server." example:"node-2"`
}

// drainNode starts moving all agents of this server to the others. The request has been
// forwarded to the server to be drained.
func (s *Server) drainNode(call *rest.Call, in *drainNodeIn) (Success, error) {
	directory, err := s.directory(call)
	if err != nil {
		return Success{}, err
	}
	nodes, err := directory.Nodes(call)
	if err != nil {
		return Success{}, unavailable(err)
	}
	switch meant := findNodes(nodes, in.Node); {
	case len(meant) > 1:
		return Success{}, agent.Invalid("nodeId", "is the name of several servers: give the id of one")
	case len(meant) == 0 || !meant[0].Self:
		return Success{}, agent.NotFound("server", in.Node)
	}
	ctx, cancel := context.WithTimeout(s.streams, drainTime) // a stopping server drains itself
	go func() {
		defer cancel()
		if err := directory.Drain(ctx, cluster.Drained); err != nil {
			s.log.Error("move the agents of this server to others", "error", err)
		}
	}()
	return Success{true, "the server gives its agents to the others, and gets no more until it is restarted"}, nil
}

// findNodes returns the live server with an id, or the live servers with that name.
func findNodes(nodes []cluster.Node, idOrName string) (meant []cluster.Node) {
	for _, n := range nodes {
		switch {
		case !n.Alive || idOrName == "":
		case n.Session == idOrName:
			return []cluster.Node{n}
		case n.Name == idOrName:
			meant = append(meant, n)
		}
	}
	return meant
}
