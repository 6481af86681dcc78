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
func (c *Cluster) claim(ctx context.Context, session string, dead map[string]bool) error {
	c.mu.Lock()
	alive := c.aliveLocked()
	var orphans []*agentRow
	for id, k := range c.agents {
		_, listed := c.nodes[k.owner]
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
	c.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	n := 0
	for row, err := range c.pool.Query(ctx, `UPDATE agent a SET owner = $1, changed = clock_timestamp()
		FROM unnest($2::text[], $3::text[]) AS u(id, owner) WHERE a.id = u.id AND a.owner = u.owner AND NOT a.deleted AND a.file_version <= $4
		RETURNING `+agentColumns, session, ids, owners, store.FileVersion()) {
		if err != nil {
			return err
		}
		k, err := scanAgent(row)
		if err != nil {
			return err
		}
		n++
		c.mu.Lock()
		c.rememberLocked(k)
		c.stats.Claims++
		c.mu.Unlock()
	}
	if n > 0 {
		c.Log.Info("agents of servers that left are taken over", "agents", n)
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
func (c *Cluster) reconcile(session string) {
	if c.folder == nil {
		return
	}
	present, stoppedHere := map[string]bool{}, map[string]bool{}
	for _, db := range c.folder.Agents() {
		present[db.ID()], stoppedHere[db.ID()] = true, errors.Is(db.Problem(), errBehind)
	}
	c.mu.Lock()
	var toAdd []agentRow
	var toRemove, halted []string
	for id, k := range c.agents {
		busy := c.changing[id] || c.moving[id] != nil
		switch mine := k.owner == session && !k.deleted; {
		case busy:
		case k.owner == stopped && !k.deleted:
			if !present[id] {
				halted = append(halted, id)
			}
		case mine && !present[id] && !c.leaving && !c.additions.Busy(id):
			toAdd = append(toAdd, *k)
			if k.isComplete() {
				c.changing[id] = true
			}
		case present[id] && (!mine || stoppedHere[id]):
			toRemove = append(toRemove, id)
			c.changing[id] = true
		}
	}
	_, hasDefault := c.agents[agent.DefaultID]
	makeDefault := !hasDefault &&
		!c.leaving &&
		!c.full.IsZero() &&
		!c.changing[agent.DefaultID]
	if makeDefault {
		c.changing[agent.DefaultID] = true
	}
	c.mu.Unlock()
	for _, id := range halted {
		c.folder.AddStoppedAgent(id, errBehindAgent)
	}
	for _, id := range toRemove {
		c.parts.Go(func() {
			c.remove(id)
			c.endChange(id)
		})
	}
	if makeDefault {
		c.parts.Go(c.makeDefault)
	}
	c.addAll(toAdd)
}

// makeDefault creates the default agent of a new cluster, unless another server does.
func (c *Cluster) makeDefault() {
	defer c.endChange(agent.DefaultID)
	if err := c.folder.MakeDefault(); err != nil && agent.ErrorCode(err) != agent.CodeAgentNameExists {
		c.Log.Error("make the default agent", "error", err)
	}
}

// endChange records that agents are no longer being added or removed.
func (c *Cluster) endChange(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsettled = true
	for _, id := range ids {
		delete(c.changing, id)
	}
}

// remove removes an agent from the folder.
func (c *Cluster) remove(id string) {
	c.mu.Lock()
	f := c.files[id]
	c.mu.Unlock()
	if err := c.folder.RemoveAgent(id); err != nil {
		c.Log.Info("close the file of an agent that is no longer this server's", "agent", id, "error", err)
	}
	c.mu.Lock()
	delete(c.files, id) // another server may write the agent before it comes back
	var refused copyState
	if f != nil {
		refused = *f
	}
	c.mu.Unlock()
	if refused.unsure { // the file also has the commit that was refused
		c.recordRefused(id, refused)
	}
}

// giveUp removes an agent from the folder after one of its commits was refused. It is
// added again if this server still owns it.
func (c *Cluster) giveUp(id string, reason error) {
	c.mu.Lock()
	if c.changing[id] {
		c.mu.Unlock()
		return
	}
	c.changing[id] = true
	c.mu.Unlock()
	c.remove(id)
	if errors.Is(reason, errBehind) {
		c.stopAgent(id, reason)
	}
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	if _, err := c.readAgent(ctx, id); agent.IgnoreNotFound(err) != nil {
		c.Log.Warn("look up an agent's owner", "agent", id, "error", err)
	}
	c.endChange(id)
	c.notify()
}

// Nodes implements Directory.
func (c *Cluster) Nodes(context.Context) ([]Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Node
	for _, session := range slices.Sorted(maps.Keys(c.nodes)) {
		n := c.nodes[session].Node
		n.Agents = c.owned[session]
		if n.Alive || time.Since(n.Seen) < deadNodeAge {
			all = append(all, n)
		}
	}
	return all, nil
}

// Lifetime implements Directory.
func (c *Cluster) Lifetime(session string) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[session]; n != nil {
		return n.lifetime
	}
	ended, end := context.WithCancel(context.Background())
	end()
	return ended
}

// Move implements Directory.
func (c *Cluster) Move(ctx context.Context, id, node string) error {
	target, err := c.target(node)
	if err != nil && c.refresh(ctx) == nil { // the server may have joined since the last poll
		target, err = c.target(node)
	}
	if err != nil {
		return err
	}
	return c.give(ctx, id, target)
}

// target finds a server that can be given agents.
func (c *Cluster) target(node string) (*peer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found *peer
	for _, n := range c.nodes {
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
func (c *Cluster) give(ctx context.Context, id string, to *peer) error {
	c.mu.Lock()
	k := c.agents[id]
	if k == nil ||
		k.owner != c.self.Session ||
		c.changing[id] ||
		c.moving[id] != nil {
		c.mu.Unlock()
		return agent.NotFound("agent", id).Because(ErrNotOwner)
	}
	if k.fileVersion > to.fileVersion {
		c.mu.Unlock()
		return agent.Errorf(
			agent.CodeConflict,
			"the server %s has an older version of Satchel, which cannot open this agent",
			to.Name,
		)
	}
	moved := make(chan struct{})
	c.moving[id] = moved
	session := c.self.Session
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.moving, id)
		c.mu.Unlock()
		close(moved)
		c.notify()
	}()
	c.additions.Forget(id)
	if err := c.additions.Wait(ctx, id); err != nil {
		return err
	}
	c.remove(id)
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	if err := c.flushNotes(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	_, err := c.pool.Exec(
		ctx,
		"UPDATE agent SET owner = $3, changed = clock_timestamp() WHERE id = $1 AND owner = $2 AND NOT deleted",
		id,
		session,
		to.Session,
	)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	_, err = c.readAgent(ctx, id)
	return err
}

// others returns the servers that can be given agents, and all servers by session.
func (c *Cluster) others() (alive []*peer, byID map[string]*peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	alive = slices.DeleteFunc(c.aliveLocked(), func(n *peer) bool { return n.Self })
	return alive, maps.Clone(c.nodes)
}

// aliveLocked returns the servers that can have agents. The caller holds mu.
func (c *Cluster) aliveLocked() (alive []*peer) {
	for _, n := range c.nodes {
		if n.Alive && !n.Leaving {
			alive = append(alive, n)
		}
	}
	return alive
}
