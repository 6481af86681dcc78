package cluster

import (
	"context"
	"fmt"

	"satchel/agent"
)

// Drain implements Directory.
func (c *Cluster) Drain(ctx context.Context, why Reason) error {
	select {
	case c.draining <- struct{}{}:
		defer func() { <-c.draining }()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
	c.mu.Lock()
	before := c.ordered
	c.ordered = why
	c.mu.Unlock()
	err := c.drain(ctx, why)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.leaving {
		c.ordered = before
	}
	return err
}

// reasonLocked returns why this server is to give its agents away, or "" if it is not.
// The caller holds mu.
func (c *Cluster) reasonLocked() Reason {
	if c.ordered == "" && c.noRoom {
		return DiskFull
	}
	return c.ordered
}

// giveRemaining gives away the agents that a server still owns after it was drained, or while
// its disk is full: those that it could not give away before, and those that it got
// before the others knew.
func (c *Cluster) giveRemaining(ctx context.Context) {
	c.mu.Lock()
	why := c.reasonLocked()
	rest := c.owned[c.self.Session] > 0 && !c.retired && (why == Drained || why == DiskFull)
	c.mu.Unlock()
	if !rest {
		return
	}
	select {
	case c.draining <- struct{}{}:
	default:
		return
	}
	c.parts.Go(func() {
		defer func() { <-c.draining }()
		err := c.drain(ctx, why)
		c.mu.Lock()
		repeated := c.undrained != nil && err != nil && c.undrained.Error() == err.Error()
		c.undrained = err
		c.mu.Unlock()
		if err != nil && !repeated && ctx.Err() == nil {
			c.Log.Warn("move all agents of this server to other servers", "why", why, "error", err)
		}
	})
}

// drain gives away the agents that this server knows it owns. The caller holds draining.
func (c *Cluster) drain(ctx context.Context, why Reason) error {
	alive, byID := c.others()
	if len(alive) == 0 {
		return agent.Errorf(agent.CodeConflict, "there is no other server that could take the agents")
	}
	bounded, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	if _, err := c.pool.Exec(
		bounded,
		"UPDATE node SET leaving = true, reason = $2 WHERE session = $1",
		c.Self().Session,
		string(why),
	); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	c.mu.Lock()
	c.leaving = true
	var mine []*agentRow
	for _, k := range c.agents {
		if k.owner == c.self.Session && !k.deleted {
			mine = append(mine, k)
		}
	}
	c.mu.Unlock()
	for _, k := range mine {
		to := byID[chooseOwner(k.id, k.fileVersion, alive)]
		if to == nil {
			return agent.Errorf(
				agent.CodeConflict,
				"no other server can open agent %s: they have older versions of Satchel",
				k.id,
			)
		}
		if err := c.give(ctx, k.id, to); agent.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
