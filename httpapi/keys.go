package httpapi

import (
	"slices"

	"satchel/agent"
	"satchel/store"
)

type keysOut struct {
	Keys []*agent.Key `json:"keys"`
	Meta Meta         `json:"meta"`
}

// mayManage reports whether the caller may see and revoke a key: the person who
// made it may, a key of the same maker that is no less powerful, and whoever
// acts as owner of everything.
func (c *Call) mayManage(k *agent.Key) bool {
	own := c.Identity.Key
	switch {
	case c.Identity.Open:
		return true
	case own == nil:
		return k.Maker != "" && k.Maker == c.Identity.Email
	case own.Maker == "" && own.Role == agent.RoleOwner && own.Reaches(agent.AllAgents):
		return true
	}
	return k.Maker == own.Maker && own.Covers(k)
}

func (s *Server) manageable(c *Call) ([]*agent.Key, error) {
	keys, err := s.folder.Keys(c)
	return slices.DeleteFunc(keys, func(k *agent.Key) bool { return !c.mayManage(k) }), err
}

func (s *Server) listKeys(c *Call, in *ListParams) (keysOut, error) {
	page, err := in.Page()
	if err != nil {
		return keysOut{}, err
	}
	keys, err := s.manageable(c)
	keys = slices.DeleteFunc(keys, func(k *agent.Key) bool { return !mentions(page.Search, k.Name, k.Prefix) })
	return keysOut{cut(keys, page), metaOf(page, len(keys))}, err
}

type createKeyIn struct {
	Body struct {
		Name      string     `json:"name" required:"true" doc:"What the key is for." example:"nightly import"`
		Role      agent.Role `json:"role" required:"true" enum:"owner,admin,viewer" example:"admin"`
		Agents    []string   `json:"agents" required:"true" doc:"Agent ids or names, or [\"*\"] for every agent that the maker reaches." example:"[\"*\"]"`
		ExpiresAt agent.Time `json:"expires_at,omitempty" types:"string" doc:"A time, or a date: its midnight." example:"2030-01-31T09:00:00Z"`
	}
}

// keyOut is a key with the key itself, which is shown once.
type keyOut struct {
	agent.Key
	Secret string `json:"key" doc:"The key itself. It is shown once and stored as a hash." example:"satchel_…"`
}

func keyLocation(_ *Call, out any) string { return "/api/keys/" + out.(keyOut).ID }

func (s *Server) createKey(c *Call, in *createKeyIn) (keyOut, error) {
	k := agent.Key{Name: in.Body.Name, Role: in.Body.Role, Agents: slices.Clone(in.Body.Agents), ExpiresAt: in.Body.ExpiresAt, Maker: c.Identity.Email}
	if err := k.Validate(agent.Now()); err != nil {
		return keyOut{}, err
	}
	if own := c.Identity.Key; own != nil {
		k.Parent = own.ID
	}
	if err := c.limitKey(&k); err != nil {
		return keyOut{}, err
	}
	k, secret, err := s.folder.CreateKey(c, k)
	return keyOut{k, secret}, err
}

// limitKey turns names of agents into ids and refuses a key that could do
// more than its maker.
func (c *Call) limitKey(k *agent.Key) error {
	if slices.Contains(k.Agents, agent.AllAgents) {
		k.Agents = []string{agent.AllAgents}
		return c.limitWideKey(k)
	}
	for i, name := range k.Agents {
		db, err := c.server.folder.Agent(name)
		if err != nil {
			return agent.Invalid("agents", "names an agent that does not exist")
		}
		k.Agents[i] = db.ID()
		if !c.ownRoleOn(db).Covers(k.Role) {
			return agent.Errorf(agent.CodeForbidden, "a key can do no more than its maker: your role on %s is weaker", name).With("field", "role")
		}
	}
	return nil
}

// ownRoleOn is the caller's own role on an agent: the role that everyone has
// on the default agent is nobody's own.
func (c *Call) ownRoleOn(db *store.DB) agent.Role {
	return c.Identity.OwnRole(db.ID(), db.Roles())
}

// limitWideKey checks a key for all agents. One made by a person acts on each
// agent with no more than that person's role at the time, so only a role that
// the person has nowhere is refused.
func (c *Call) limitWideKey(k *agent.Key) error {
	if own := c.Identity.Key; own != nil {
		if !own.Reaches(agent.AllAgents) {
			return agent.Errorf(agent.CodeForbidden, "a key reaches no more than its maker: name the agents that yours is for").With("field", "agents")
		}
		if !own.Role.Covers(k.Role) {
			return agent.Errorf(agent.CodeForbidden, "a key can do no more than its maker: yours has the role %s", own.Role).With("field", "role")
		}
		return nil
	}
	best := agent.RoleNone
	for _, db := range c.visible() {
		if role := c.ownRoleOn(db); !best.Covers(role) {
			best = role
		}
	}
	if best == agent.RoleNone {
		return agent.Errorf(agent.CodeForbidden, "a key can do no more than its maker, and you have no role on any agent; make an agent first").With("field", "agents")
	}
	if !best.Covers(k.Role) {
		return agent.Errorf(agent.CodeForbidden, "a key can do no more than its maker: your strongest role is %s", best).With("field", "role")
	}
	return nil
}

type keyIn struct {
	ID string `path:"keyId" doc:"Id of the key." example:"key-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) deleteKey(c *Call, in *keyIn) (none, error) {
	keys, err := s.manageable(c)
	if err != nil {
		return none{}, err
	}
	if !slices.ContainsFunc(keys, func(k *agent.Key) bool { return k.ID == in.ID }) {
		return none{}, agent.NotFound("key", in.ID)
	}
	return none{}, s.folder.DeleteKey(c, in.ID)
}
