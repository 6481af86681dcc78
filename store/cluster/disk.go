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

// followDisk checks whether this server's disk is full, and lets it take agents again
// once there is room. An operator's drain stays in effect.
func (c *Cluster) followDisk(ctx context.Context) {
	free, err := c.free(c.Path)
	if err != nil {
		return // free space is unknown here: writes fail when the disk is full
	}
	c.mu.Lock()
	before := c.noRoom
	full := free < diskFull || before && free < diskRoom
	idle := c.ordered != "" || c.retired || len(c.draining) > 0
	if !idle {
		c.noRoom = full
	}
	c.mu.Unlock()
	switch {
	case idle:
	case full && !before:
		c.Log.Error("the disk of this server is full: its agents move to other servers", "path", c.Path, "free", free)
	case before && !full:
		if err := c.acceptAgents(ctx); err != nil {
			c.Log.Warn("take part in the cluster again", "error", err)
		}
	}
}

// acceptAgents lets this server take agents again.
func (c *Cluster) acceptAgents(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	if _, err := c.pool.Exec(
		ctx,
		"UPDATE node SET leaving = false, reason = '' WHERE session = $1",
		c.Self().Session,
	); err != nil {
		c.mu.Lock()
		c.noRoom = true // so that it is tried again
		c.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	c.Log.Info("the disk of this server has space again: it takes agents again")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = c.ordered != "" || c.retired
	c.unsettled = true
	return nil
}
