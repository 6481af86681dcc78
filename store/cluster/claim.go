package cluster

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"satchel/agent"
	"satchel/store"
)

// claim takes this server's share of the agents whose owner is dead. Each surviving
// server computes the shares independently; if they differ, the first statement wins.
func (cluster *Cluster) claim(ctx context.Context, session string, dead map[string]bool) error {
	cluster.mu.Lock()
	alive := cluster.aliveLocked()
	var orphans []*agentRow
	for id, k := range cluster.agents {
		_, listed := cluster.nodes[k.owner]
		if (dead[k.owner] || !listed) &&
			k.owner != stopped &&
			!k.deleted &&
			chooseOwner(id, k.fileVersion, alive) == session {
			orphans = append(orphans, k)
		}
	}
	slices.SortFunc(orphans, func(a, b *agentRow) int {
		return a.due().Compare(b.due())
	})
	var ids, owners []string
	for _, k := range orphans[:min(len(orphans), claimLimit)] {
		ids, owners = append(ids, k.id), append(owners, k.owner)
	}
	cluster.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	count := 0
	for row, err := range cluster.pool.Query(ctx, `UPDATE agent a SET owner = $1, changed = clock_timestamp()
		FROM unnest($2::text[], $3::text[]) AS u(id, owner) WHERE a.id = u.id AND a.owner = u.owner AND NOT a.deleted AND a.file_version <= $4
		RETURNING `+agentColumns, session, ids, owners, store.FileVersion()) {
		if err != nil {
			return err
		}
		k, err := scanAgent(row)
		if err != nil {
			return err
		}
		count++
		cluster.mu.Lock()
		cluster.rememberLocked(k)
		cluster.stats.Claims++
		cluster.mu.Unlock()
	}
	if count > 0 {
		cluster.Log.Info("agents of servers that left are taken over", "agents", count)
	}
	return nil
}

// chooseOwner returns the session of the server that is to have an agent: of those that can
// open the file's version, the one with the highest hash of both ids (rendezvous
// hashing).
func chooseOwner(id string, version int, alive []*peer) (session string) {
	var highest uint64
	for _, n := range alive {
		if n.fileVersion < version {
			continue
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(n.Session + "\x00" + id))
		x := h.Sum64() // its low bits are mixed better than its high ones
		x ^= x >> 32
		x *= 0x9e3779b97f4a7c15
		x ^= x >> 29
		if session == "" || x > highest || x == highest && n.Session > session {
			session, highest = n.Session, x
		}
	}
	return session
}

// reconcile adds agents to the folder and removes others, so that it has exactly those
// that this server owns.
func (cluster *Cluster) reconcile(session string) {
	if cluster.folder == nil {
		return
	}
	present, stoppedHere := map[string]bool{}, map[string]bool{}
	for _, db := range cluster.folder.Agents() {
		present[db.ID()], stoppedHere[db.ID()] = true, errors.Is(db.Problem(), errBehind)
	}
	cluster.mu.Lock()
	var toAdd []agentRow
	var toRemove, halted []string
	for id, row := range cluster.agents {
		busy := cluster.changing[id] || cluster.moving[id] != nil
		switch mine := row.owner == session && !row.deleted; {
		case busy:
		case row.owner == stopped && !row.deleted:
			if !present[id] {
				halted = append(halted, id)
			}
		case mine &&
			!present[id] &&
			!cluster.leaving &&
			!cluster.additions.Busy(id):
			toAdd = append(toAdd, *row)
			if row.isComplete() {
				cluster.changing[id] = true
			}
		case present[id] && (!mine || stoppedHere[id]):
			toRemove = append(toRemove, id)
			cluster.changing[id] = true
		}
	}
	_, hasDefault := cluster.agents[agent.DefaultID]
	makeDefault := !hasDefault &&
		!cluster.leaving &&
		!cluster.full.IsZero() &&
		!cluster.changing[agent.DefaultID]
	if makeDefault {
		cluster.changing[agent.DefaultID] = true
	}
	cluster.mu.Unlock()
	for _, id := range halted {
		cluster.folder.AddStoppedAgent(id, errBehindAgent)
	}
	for _, id := range toRemove {
		cluster.parts.Go(func() {
			cluster.remove(id)
			cluster.endChange(id)
		})
	}
	if makeDefault {
		cluster.parts.Go(cluster.makeDefault)
	}
	cluster.addAll(toAdd)
}

// makeDefault creates the default agent of a new cluster, unless another server does.
func (cluster *Cluster) makeDefault() {
	defer cluster.endChange(agent.DefaultID)
	if err := cluster.folder.MakeDefault(); err != nil && agent.ErrorCode(err) != agent.CodeAgentNameExists {
		cluster.Log.Error("make the default agent", "error", err)
	}
}

// endChange records that agents are no longer being added or removed.
func (cluster *Cluster) endChange(ids ...string) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	cluster.unsettled = true
	for _, id := range ids {
		delete(cluster.changing, id)
	}
}

// remove removes an agent from the folder.
func (cluster *Cluster) remove(id string) {
	cluster.mu.Lock()
	f := cluster.files[id]
	cluster.mu.Unlock()
	if err := cluster.folder.RemoveAgent(id); err != nil {
		cluster.Log.Info("close the file of an agent that is no longer this server's", "agent", id, "error", err)
	}
	cluster.mu.Lock()
	delete(cluster.files, id) // another server may write the agent before it comes back
	var refused copyState
	if f != nil {
		refused = *f
	}
	cluster.mu.Unlock()
	if refused.unsure { // the file also has the commit that was refused
		cluster.recordRefused(id, refused)
	}
}

// giveUp removes an agent from the folder after one of its commits was refused. It is
// added again if this server still owns it.
func (cluster *Cluster) giveUp(id string, reason error) {
	cluster.mu.Lock()
	if cluster.changing[id] {
		cluster.mu.Unlock()
		return
	}
	cluster.changing[id] = true
	cluster.mu.Unlock()
	cluster.remove(id)
	if errors.Is(reason, errBehind) {
		cluster.stopAgent(id, reason)
	}
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	if _, err := cluster.readAgent(ctx, id); agent.IgnoreNotFound(err) != nil {
		cluster.Log.Warn("look up an agent's owner", "agent", id, "error", err)
	}
	cluster.endChange(id)
	cluster.notify()
}

// Nodes implements Directory.
func (cluster *Cluster) Nodes(context.Context) ([]Node, error) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	var all []Node
	for _, session := range slices.Sorted(maps.Keys(cluster.nodes)) {
		n := cluster.nodes[session].Node
		n.Agents = cluster.owned[session]
		if n.Alive || time.Since(n.Seen) < deadNodeAge {
			all = append(all, n)
		}
	}
	return all, nil
}

// Lifetime implements Directory.
func (cluster *Cluster) Lifetime(session string) context.Context {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	if n := cluster.nodes[session]; n != nil {
		return n.lifetime
	}
	ended, end := context.WithCancel(context.Background())
	end()
	return ended
}

// Move implements Directory.
func (cluster *Cluster) Move(ctx context.Context, id, node string) error {
	target, err := cluster.target(node)
	if err != nil && cluster.refresh(ctx) == nil { // the server may have joined since the last poll
		target, err = cluster.target(node)
	}
	if err != nil {
		return err
	}
	return cluster.give(ctx, id, target)
}

// target finds a server that can be given agents.
func (cluster *Cluster) target(node string) (*peer, error) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	var found *peer
	for _, n := range cluster.nodes {
		switch {
		case !n.Alive || n.Leaving || n.Self:
		case n.Session == node || n.URL == node:
			return n, nil
		case n.Name != node:
		case found != nil:
			return nil, agent.Invalid("node", "is the name of several servers: give the id or URL of one")
		default:
			found = n
		}
	}
	if found == nil {
		return nil, agent.Invalid("node", "is not another server of the cluster that is alive")
	}
	return found, nil
}

// give makes another server the owner of one of this server's agents.
func (cluster *Cluster) give(ctx context.Context, id string, to *peer) error {
	cluster.mu.Lock()
	row := cluster.agents[id]
	if row == nil ||
		row.owner != cluster.self.Session ||
		cluster.changing[id] ||
		cluster.moving[id] != nil {
		cluster.mu.Unlock()
		return agent.NotFound("agent", id).Because(ErrNotOwner)
	}
	if row.fileVersion > to.fileVersion {
		cluster.mu.Unlock()
		return agent.Errorf(
			agent.CodeConflict,
			"the server %s has an older version of Satchel, which cannot open this agent",
			to.Name,
		)
	}
	moved := make(chan struct{})
	cluster.moving[id] = moved
	session := cluster.self.Session
	cluster.mu.Unlock()
	defer func() {
		cluster.mu.Lock()
		delete(cluster.moving, id)
		cluster.mu.Unlock()
		close(moved)
		cluster.notify()
	}()
	cluster.additions.Forget(id)
	if err := cluster.additions.Wait(ctx, id); err != nil {
		return err
	}
	cluster.remove(id)
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	if err := cluster.flushNotes(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	_, err := cluster.pool.Exec(
		ctx,
		"UPDATE agent SET owner = $3, changed = clock_timestamp() WHERE id = $1 AND owner = $2 AND NOT deleted",
		id,
		session,
		to.Session,
	)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	_, err = cluster.readAgent(ctx, id)
	return err
}

// others returns the servers that can be given agents, and all servers by session.
func (cluster *Cluster) others() (alive []*peer, byID map[string]*peer) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	alive = slices.DeleteFunc(cluster.aliveLocked(), func(n *peer) bool { return n.Self })
	return alive, maps.Clone(cluster.nodes)
}

// aliveLocked returns the servers that can have agents. The caller holds mu.
func (cluster *Cluster) aliveLocked() (alive []*peer) {
	for _, n := range cluster.nodes {
		if n.Alive && !n.Leaving {
			alive = append(alive, n)
		}
	}
	return alive
}
