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
func (cluster *Cluster) readChanged(ctx context.Context, result pollResult) error {
	for ids := range slices.Chunk(cluster.outdated(result), followLimit) {
		read, err := cluster.readAgents(ctx, ids)
		if err != nil {
			return err
		}
		cluster.mu.Lock()
		for _, k := range read {
			cluster.rememberLocked(k)
		}
		cluster.mu.Unlock()
	}
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	cluster.asOf = result.asOf
	if result.all {
		cluster.full = result.startedAt
		cluster.unsettled = true
	}
	return nil
}

// outdated lists the agents of a poll whose rows in memory are missing or out of date. If
// the poll lists all agents, the others are forgotten, and should the database's clock
// have gone back, all rows count as out of date.
func (cluster *Cluster) outdated(result pollResult) (ids []string) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	for _, l := range result.agents {
		k := cluster.agents[l.id]
		if k != nil && k.changed.Equal(l.changed) {
			continue
		}
		if k != nil && result.all {
			k.changed = time.Time{}
		}
		ids = append(ids, l.id)
	}
	if !result.all || len(result.agents) >= len(cluster.agents) && len(ids) == 0 {
		return ids
	}
	listed := make(map[string]bool, len(result.agents))
	for _, l := range result.agents {
		listed[l.id] = true
	}
	for id, k := range cluster.agents {
		if !listed[id] && k.changed.Before(result.asOf.Add(-overlap)) {
			cluster.forgetLocked(id)
			delete(cluster.agents, id)
		}
	}
	return ids
}

// readAgents reads rows of agents by their ids.
func (cluster *Cluster) readAgents(ctx context.Context, ids []string) (read []agentRow, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	for row, err := range cluster.pool.Query(ctx, "SELECT "+agentColumns+" FROM agent a WHERE id = ANY($1)", ids) {
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
func (cluster *Cluster) rememberLocked(k agentRow) {
	old := cluster.agents[k.id]
	if old != nil && k.changed.Before(old.changed) {
		return
	}
	cluster.unsettled = cluster.unsettled ||
		old == nil ||
		old.owner != k.owner ||
		old.deleted != k.deleted
	cluster.forgetLocked(k.id)
	cluster.agents[k.id] = &k
	if !k.deleted {
		cluster.byName[agent.NameKey(k.name)] = k.id
		cluster.owned[k.owner]++
	}
}

// forgetLocked marks an agent in memory as deleted. The caller holds mu.
func (cluster *Cluster) forgetLocked(id string) {
	k := cluster.agents[id]
	if k == nil || k.deleted {
		return
	}
	k.deleted = true
	if key := agent.NameKey(k.name); cluster.byName[key] == id {
		delete(cluster.byName, key)
	}
	if cluster.owned[k.owner]--; cluster.owned[k.owner] == 0 {
		delete(cluster.owned, k.owner)
	}
}

// orphansLocked reports whether there are agents whose owner is dead or unknown. The
// caller holds mu.
func (cluster *Cluster) orphansLocked(dead map[string]bool) bool {
	for owner := range cluster.owned {
		if _, known := cluster.nodes[owner]; owner != stopped && (dead[owner] || !known) {
			return true
		}
	}
	return false
}
