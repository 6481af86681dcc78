package httpapi

import (
	"cmp"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/flow/graph"
	"satchel/httpapi/rest"
	"satchel/store"
)

type consoleIn struct {
	Agent string `query:"agent" doc:"Id or name of an agent to include in agents, if the caller may see it." example:"default"`
}

// consoleOut is the initial data of a page of the console.
type consoleOut struct {
	Version     string           `json:"version" doc:"Version of the program." example:"0.1.0"`
	Open        bool             `json:"open" doc:"There is no access control: everyone acts as owner."`
	Identity    *consoleIdentity `json:"identity" types:"null" doc:"The caller; null without an identity or access control."`
	DefaultRole string           `json:"default_role" enum:"viewer,admin,none" doc:"With access control: the role on the default agent of callers without an identity or an API key." example:"viewer"`
	Decided     bool             `json:"default_role_decided" doc:"The operator or an owner of the default agent decided on default_role."`
	PublicURL   string           `json:"public_url" doc:"Public URL of the server, SATCHEL_PUBLIC_URL; empty if it is not set." example:"https://satchel.example.com"`
	Limits      consoleLimits    `json:"limits"`
	Agents      []consoleAgent   `json:"agents" doc:"Agents on which the caller has a role: the default agent first, then by name; at most 200."`
	More        bool             `json:"more_agents" doc:"There are more agents."`
	Cluster     bool             `json:"cluster" doc:"The server belongs to a cluster, which the caller may manage."`
}

type consoleIdentity struct {
	Email string `json:"email,omitempty" example:"ada@example.com"`
	Name  string `json:"name,omitempty" example:"Ada"`
	Key   string `json:"key,omitempty" doc:"Name of the API key of the request." example:"nightly import"`
}

type consoleLimits struct {
	UploadBytes int64 `json:"upload_bytes" doc:"Maximum size of an upload in bytes." example:"26214400"`
	CDPSessions int   `json:"cdp_sessions" doc:"Browser sessions for Playwright and Puppeteer that may be open at the same time, --allow-cdp; 0: none." example:"2"`
}

type consoleAgent struct {
	ID       string       `json:"id" example:"agent-06f1q2s3t4v5a6b7c8d9"`
	Name     string       `json:"name" example:"support-bot"`
	Status   agent.Status `json:"status" enum:"active,paused,disabled" example:"active"`
	Role     agent.Role   `json:"role" enum:"owner,admin,viewer" example:"owner"`
	Waiting  int          `json:"waiting" doc:"Number of pending approvals, open takeovers and conversations that wait for a person. For an agent whose file is closed, the number at that time; for one of another server of a cluster, a number some seconds old." example:"2"`
	Failures int          `json:"failures" doc:"Executions of the last 24 hours that ended in an error and were not repeated since, counted like waiting." example:"1"`

	Holds *store.Holdings `json:"holds" types:"null" doc:"What the agent has, counted like waiting; null if its file has not been open since it could be counted."`
}

// maxConsoleAgents limits the agents in that data.
const maxConsoleAgents = 200

func (s *Server) console(call *rest.Call, in *consoleIn) (consoleOut, error) {
	stranger := s.policy.DefaultRole()
	out := consoleOut{
		Version:     s.options.Version,
		Open:        s.policy.Open(),
		DefaultRole: stranger.Name(),
		Decided:     stranger.Decided(),
		Limits:      consoleLimits{UploadBytes: s.options.MaxUpload},
		Agents:      []consoleAgent{},
	}
	if s.options.Browser != nil {
		out.Limits.CDPSessions = s.options.Browser.ClientSessions()
	}
	if s.options.Gateways != nil {
		out.PublicURL = s.options.Gateways.PublicURL()
	}
	if id := call.Identity; id.Known() && !id.Open {
		out.Identity = &consoleIdentity{Email: id.Email, Name: id.Name}
		if id.Key != nil {
			out.Identity.Key = cmp.Or(id.Key.Name, id.Key.Prefix)
		}
	}
	visible, err := s.visible(call)
	if err != nil {
		return out, err
	}
	if s.options.Cluster != nil {
		_, err := s.directory(call)
		out.Cluster = err == nil
	}
	slices.SortFunc(visible, func(a, b visibleAgent) int {
		if order := compareBools(a.ID == agent.DefaultID, b.ID == agent.DefaultID); order != 0 {
			return order
		}
		return cmp.Compare(agent.NameKey(a.Name), agent.NameKey(b.Name))
	})
	if out.More = len(visible) > maxConsoleAgents; out.More {
		visible = firstIncluding(visible, in.Agent, maxConsoleAgents)
	}
	for _, visibleAgent := range visible {
		attention := visibleAgent.attention
		if visibleAgent.db != nil {
			if attention, err = visibleAgent.db.Attention(call); err != nil && call.Err() != nil {
				return out, err
			}
		}
		out.Agents = append(out.Agents, consoleAgent{
			ID:       visibleAgent.ID,
			Name:     visibleAgent.Name,
			Status:   visibleAgent.Status,
			Role:     visibleAgent.role,
			Waiting:  attention.Waiting,
			Failures: attention.Failures,
			Holds:    attention.Holds,
		})
	}
	return out, nil
}

// firstIncluding returns the first n agents of a list; if the one with an id or a name is
// not among them, it replaces the last one.
func firstIncluding(all []visibleAgent, idOrName string, n int) []visibleAgent {
	first := slices.Clone(all[:n])
	named := func(v visibleAgent) bool {
		return v.ID == idOrName || strings.EqualFold(v.Name, idOrName)
	}
	if i := slices.IndexFunc(all, named); i >= n {
		first[n-1] = all[i]
	}
	return first
}

// compareBools orders true before false.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

type waitingOut struct {
	Waiting []agent.Waiting `json:"waiting"`
	Meta    rest.Meta       `json:"meta"`
}

func (s *Server) listWaiting(c *rest.Call, in *rest.ListParams) (waitingOut, error) {
	page, err := in.Page()
	if err != nil {
		return waitingOut{}, err
	}
	found, err := c.DB.Waiting(c)
	return waitingOut{rest.Cut(found, page), rest.MetaOf(page, len(found))}, err
}

type overviewIn struct {
	Days int `query:"days" doc:"Number of days in the series, up to today." minimum:"1" maximum:"90" default:"14" example:"14"`
}

func (s *Server) overview(c *rest.Call, in *overviewIn) (agent.Overview, error) {
	if in.Days < 0 || in.Days > 90 {
		return agent.Overview{}, agent.Invalid("days", "must be 1 to 90")
	}
	o, err := c.DB.Overview(c, cmp.Or(in.Days, 14))
	for i := range o.Failures {
		f := &o.Failures[i]
		if t, ok := graph.Lookup(f.NodeType); ok {
			f.NodeLabel = cmp.Or(f.NodeLabel, t.Label)
		}
		f.NodeLabel = cmp.Or(f.NodeLabel, f.NodeID)
	}
	return o, err
}
