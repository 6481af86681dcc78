package cluster

import (
	"context"
	"fmt"

	"satchel/agent"
)

// Drain implements Directory.
func (cluster *Cluster) Drain(ctx context.Context, why Reason) error {
	select {
	case cluster.draining <- struct{}{}:
		defer func() { <-cluster.draining }()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
	cluster.mu.Lock()
	before := cluster.ordered
	cluster.ordered = why
	cluster.mu.Unlock()
	err := cluster.drain(ctx, why)
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	if !cluster.leaving {
		cluster.ordered = before
	}
	return err
}

// reasonLocked returns why this server is to give its agents away, or "" if it is not.
// The caller holds mu.
func (cluster *Cluster) reasonLocked() Reason {
	if cluster.ordered == "" && cluster.noRoom {
		return DiskFull
	}
	return cluster.ordered
}

// giveRemaining gives away the agents that a server still owns after it was drained, or while
// its disk is full: those that it could not give away before, and those that it got
// before the others knew.
func (cluster *Cluster) giveRemaining(ctx context.Context) {
	cluster.mu.Lock()
	why := cluster.reasonLocked()
	rest := cluster.owned[cluster.self.Session] > 0 && !cluster.retired && (why == Drained || why == DiskFull)
	cluster.mu.Unlock()
	if !rest {
		return
	}
	select {
	case cluster.draining <- struct{}{}:
	default:
		return
	}
	cluster.parts.Go(func() {
		defer func() { <-cluster.draining }()
		err := cluster.drain(ctx, why)
		cluster.mu.Lock()
		repeated := cluster.undrained != nil && err != nil && cluster.undrained.Error() == err.Error()
		cluster.undrained = err
		cluster.mu.Unlock()
		if err != nil && !repeated && ctx.Err() == nil {
			cluster.Log.Warn("move all agents of this server to other servers", "why", why, "error", err)
		}
	})
}

// drain gives away the agents that this server knows it owns. The caller holds draining.
func (cluster *Cluster) drain(ctx context.Context, why Reason) error {
	alive, byID := cluster.others()
	if len(alive) == 0 {
		return agent.Errorf(agent.CodeConflict, "there is no other server that could take the agents")
	}
	bounded, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	if _, err := cluster.pool.Exec(
		bounded,
		"UPDATE node SET leaving = true, reason = $2 WHERE session = $1",
		cluster.Self().Session,
		string(why),
	); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	cluster.mu.Lock()
	cluster.leaving = true
	var mine []*agentRow
	for _, k := range cluster.agents {
		if k.owner == cluster.self.Session && !k.deleted {
			mine = append(mine, k)
		}
	}
	cluster.mu.Unlock()
	for _, k := range mine {
		to := byID[chooseOwner(k.id, k.fileVersion, alive)]
		if to == nil {
			return agent.Errorf(
				agent.CodeConflict,
				"no other server can open agent %s: they have older versions of Satchel",
				k.id,
			)
		}
		if err := cluster.give(ctx, k.id, to); agent.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
