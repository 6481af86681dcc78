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
func (cluster *Cluster) followDisk(ctx context.Context) {
	free, err := cluster.free(cluster.Path)
	if err != nil {
		return // free space is unknown here: writes fail when the disk is full
	}
	cluster.mu.Lock()
	before := cluster.noRoom
	full := free < diskFull || before && free < diskRoom
	idle := cluster.ordered != "" || cluster.retired || len(cluster.draining) > 0
	if !idle {
		cluster.noRoom = full
	}
	cluster.mu.Unlock()
	switch {
	case idle:
	case full && !before:
		cluster.Log.Error(
			"the disk of this server is full: its agents move to other servers",
			"path", cluster.Path,
			"free", free,
		)
	case before && !full:
		if err := cluster.acceptAgents(ctx); err != nil {
			cluster.Log.Warn("take part in the cluster again", "error", err)
		}
	}
}

// acceptAgents lets this server take agents again.
func (cluster *Cluster) acceptAgents(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	if _, err := cluster.pool.Exec(
		ctx,
		"UPDATE node SET leaving = false, reason = '' WHERE session = $1",
		cluster.Self().Session,
	); err != nil {
		cluster.mu.Lock()
		cluster.noRoom = true // so that it is tried again
		cluster.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	cluster.Log.Info("the disk of this server has space again: it takes agents again")
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	cluster.leaving = cluster.ordered != "" || cluster.retired
	cluster.unsettled = true
	return nil
}
