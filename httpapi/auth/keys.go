package auth

import (
	"slices"

	"satchel/agent"
)

// MayManage reports whether a caller may see and revoke a key: its creator may, a key by
// the same creator with at least the same power, and anyone who acts as owner of
// everything.
func (p *Policy) MayManage(caller agent.Identity, k *agent.Key) bool {
	own := caller.Key
	switch {
	case caller.Open:
		return true
	case own == nil:
		return k.CreatedBy != "" && k.CreatedBy == caller.Email
	case own.CreatedBy == "" && own.Role == agent.RoleOwner && own.Reaches(agent.AllAgents):
		return true
	}
	return k.CreatedBy == own.CreatedBy && own.Covers(k)
}

// LimitKey replaces names of agents with ids, and refuses a key that could do more than
// the caller who creates it.
func (p *Policy) LimitKey(caller agent.Identity, key *agent.Key) error {
	if slices.Contains(key.Agents, agent.AllAgents) {
		key.Agents = []string{agent.AllAgents}
		return p.checkWideKey(caller, key)
	}
	for i, name := range key.Agents {
		db, err := p.options.Folder.Agent(name)
		if err != nil {
			return agent.Invalid("agents", "names an agent that does not exist")
		}
		key.Agents[i] = db.ID()
		if !ownRole(caller, db).Covers(key.Role) {
			return agent.Errorf(
				agent.CodeForbidden,
				"a key cannot have more access than its creator: your role on %s is lower",
				name,
			).With("field", "role")
		}
	}
	return nil
}

// checkWideKey checks a key for all agents. A person's key acts on each agent with at
// most that person's role at the time, so only a role that the person has nowhere is
// refused.
func (p *Policy) checkWideKey(caller agent.Identity, key *agent.Key) error {
	if own := caller.Key; own != nil {
		if !own.Reaches(agent.AllAgents) {
			return agent.Errorf(
				agent.CodeForbidden,
				"a key cannot have more access than its creator: name the agents of your own key",
			).With("field", "agents")
		}
		if !own.Role.Covers(key.Role) {
			return agent.Errorf(
				agent.CodeForbidden,
				"a key cannot have more access than its creator: yours has the role %s",
				own.Role,
			).With("field", "role")
		}
		return nil
	}
	best := agent.RoleNone
	for _, db := range p.Visible(caller) {
		if role := ownRole(caller, db); !best.Covers(role) {
			best = role
		}
	}
	if best == agent.RoleNone {
		return agent.Errorf(
			agent.CodeForbidden,
			"a key cannot have more access than its creator, and you have no role on any agent; create an agent first",
		).With("field", "agents")
	}
	if !best.Covers(key.Role) {
		return agent.Errorf(
			agent.CodeForbidden,
			"a key cannot have more access than its creator: your highest role is %s",
			best,
		).With("field", "role")
	}
	return nil
}
