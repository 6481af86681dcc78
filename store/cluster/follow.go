package cluster

import (
	"context"
	"slices"
	"time"

	"satchel/agent"
)

// followLimit is how many rows of agents are read at a time.
const followLimit = 1000

// listed is an agent with the time at which its row changed.
type listed struct {
	id      string
	changed time.Time
}

// readChanged reads those agents listed by a poll whose rows in memory are missing or out of
// date.
func (c *Cluster) readChanged(ctx context.Context, p pollResult) error {
	for ids := range slices.Chunk(c.outdated(p), followLimit) {
		read, err := c.readAgents(ctx, ids)
		if err != nil {
			return err
		}
		c.mu.Lock()
		for _, k := range read {
			c.rememberLocked(k)
		}
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asOf = p.asOf
	if p.all {
		c.full = p.startedAt
		c.unsettled = true
	}
	return nil
}

// outdated lists the agents of a poll whose rows in memory are missing or out of date. If
// the poll lists all agents, the others are forgotten, and should the database's clock
// have gone back, all rows count as out of date.
func (c *Cluster) outdated(p pollResult) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range p.agents {
		k := c.agents[l.id]
		if k != nil && k.changed.Equal(l.changed) {
			continue
		}
		if k != nil && p.all {
			k.changed = time.Time{}
		}
		ids = append(ids, l.id)
	}
	if !p.all || len(p.agents) >= len(c.agents) && len(ids) == 0 {
		return ids
	}
	listed := make(map[string]bool, len(p.agents))
	for _, l := range p.agents {
		listed[l.id] = true
	}
	for id, k := range c.agents {
		if !listed[id] && k.changed.Before(p.asOf.Add(-overlap)) {
			c.forgetLocked(id)
			delete(c.agents, id)
		}
	}
	return ids
}

// readAgents reads rows of agents by their ids.
func (c *Cluster) readAgents(ctx context.Context, ids []string) (read []agentRow, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	for row, err := range c.pool.Query(ctx, "SELECT "+agentColumns+" FROM agent a WHERE id = ANY($1)", ids) {
		if err != nil {
			return nil, err
		}
		k, err := scanAgent(row)
		if err != nil {
			return nil, err
		}
		read = append(read, k)
	}
	return read, nil
}

// rememberLocked stores a row in memory. The caller holds mu.
func (c *Cluster) rememberLocked(k agentRow) {
	old := c.agents[k.id]
	if old != nil && k.changed.Before(old.changed) {
		return
	}
	c.unsettled = c.unsettled ||
		old == nil ||
		old.owner != k.owner ||
		old.deleted != k.deleted
	c.forgetLocked(k.id)
	c.agents[k.id] = &k
	if !k.deleted {
		c.byName[agent.NameKey(k.name)] = k.id
		c.owned[k.owner]++
	}
}

// forgetLocked marks an agent in memory as deleted. The caller holds mu.
func (c *Cluster) forgetLocked(id string) {
	k := c.agents[id]
	if k == nil || k.deleted {
		return
	}
	k.deleted = true
	if key := agent.NameKey(k.name); c.byName[key] == id {
		delete(c.byName, key)
	}
	if c.owned[k.owner]--; c.owned[k.owner] == 0 {
		delete(c.owned, k.owner)
	}
}

// orphansLocked reports whether there are agents whose owner is dead or unknown. The
// caller holds mu.
func (c *Cluster) orphansLocked(dead map[string]bool) bool {
	for owner := range c.owned {
		if _, known := c.nodes[owner]; owner != stopped && (dead[owner] || !known) {
			return true
		}
	}
	return false
}
