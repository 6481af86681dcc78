package cluster

import (
	"context"
	"fmt"
)

// Free bytes on a server's disk below which its agents move to other servers,
// and from which it takes agents again.
const (
	diskFull = 64 << 20
	diskRoom = 256 << 20
)

// followDisk has this server give its agents to the others while its disk is full, and
// take part again once there is room. An operator's drain stays.
func (c *Cluster) followDisk(ctx context.Context) {
	free, err := c.free(c.Path)
	if err != nil {
		return // the disk cannot be asked here: writes say when it is full
	}
	c.mu.Lock()
	before := c.noRoom
	full := free < diskFull || before && free < diskRoom
	idle := c.drained || c.retired || c.emptying
	if !idle {
		c.noRoom = full
		c.emptying = full && c.owned[c.self.Session] > 0
	}
	emptying := c.emptying
	c.mu.Unlock()
	switch {
	case idle:
	case full:
		if !before {
			c.Log.Error("the disk of this server is full: its agents move to other servers", "path", c.Path, "free", free)
		}
		if emptying {
			c.parts.Go(func() { c.empty(ctx) })
		}
	case before:
		if err := c.takePart(ctx); err != nil {
			c.Log.Warn("take part in the cluster again", "error", err)
		}
	}
}

// empty gives the agents away. What remains is tried again at the next poll.
func (c *Cluster) empty(ctx context.Context) {
	err := c.drain(ctx, DiskFull)
	c.mu.Lock()
	c.emptying = false
	repeated := c.emptied != nil && err != nil && c.emptied.Error() == err.Error()
	c.emptied = err
	c.mu.Unlock()
	if err != nil && !repeated && ctx.Err() == nil {
		c.Log.Warn("move all agents of this server, whose disk is full, to other servers", "error", err)
	}
}

// takePart has this server get agents again.
func (c *Cluster) takePart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	if _, err := c.pool.Exec(ctx, "UPDATE node SET leaving = false, reason = '' WHERE session = $1", c.Self().Session); err != nil {
		c.mu.Lock()
		c.noRoom = true // so that it is tried again
		c.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	c.Log.Info("the disk of this server has space again: it takes agents again")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = c.drained || c.retired
	c.unsettled = true
	return nil
}
