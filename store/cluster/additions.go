package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"satchel/agent"
	"satchel/agent/work"
)

// How many agents' files are read at a time before they are added to the folder, and how
// many of these slots are reserved for agents that requests wait for.
const (
	additionsAtOnce   = 4
	additionsReserved = 2
)

// newAdditions returns the queue of the agents whose files are to be read.
func (cluster *Cluster) newAdditions() *work.Queue[string] {
	return work.New(work.Options[string]{
		Limit:    additionsAtOnce,
		Reserved: additionsReserved,
		Run: func(_ context.Context, id string) (work.Next, error) {
			if k, mine := cluster.agentToAdd(id); mine {
				cluster.add(k)
			}
			return work.Next{}, nil
		},
	})
}

// agentToAdd returns the row of an agent, and whether it is still to be added to the folder.
func (cluster *Cluster) agentToAdd(id string) (k agentRow, is bool) {
	_, absent := cluster.folder.Agent(id)
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	if k := cluster.agents[id]; k != nil &&
		!k.deleted &&
		k.owner == cluster.self.Session &&
		absent != nil &&
		!cluster.expired &&
		!cluster.changing[id] &&
		cluster.moving[id] == nil {
		return *k, true
	}
	return k, false
}

// addAll adds agents to the folder: immediately, without their files, those
// whose due work is known; the others in the order in which their work is due.
// The default agent's file has the API keys.
func (cluster *Cluster) addAll(rows []agentRow) {
	slices.SortFunc(rows, func(a, b agentRow) int {
		return a.due().Compare(b.due())
	})
	for _, k := range rows {
		switch {
		case k.isComplete():
			cluster.add(k)
		case k.id == agent.DefaultID:
			cluster.additions.EnqueueFirst(k.id)
		default:
			cluster.additions.Enqueue(k.id)
		}
	}
}

// due returns when the agent's work is due according to its row, which may be out of
// date.
func (k agentRow) due() time.Time {
	if due := k.summary.Pending.Earliest(); !due.IsZero() {
		return due.Time
	}
	return time.Unix(1<<40, 0) // none
}

// isComplete reports whether the row has everything that is needed to add the agent to the
// folder without reading its file.
func (k agentRow) isComplete() bool {
	return k.infoHead == k.head && k.id != agent.DefaultID
}

// add adds an agent to the folder, reading its file first unless the agent is
// rested. If that fails, it is tried again at the next poll, unless the database lost
// commits.
func (cluster *Cluster) add(k agentRow) {
	defer cluster.endChange(k.id)
	var err error
	if k.isComplete() {
		err = cluster.folder.AddAgent(k.id, k.summary)
	} else {
		err = cluster.folder.AddUnreadAgent(k.id)
	}
	switch {
	case errors.Is(err, errBehind):
		cluster.stopAgent(k.id, err)
	case agent.IgnoreNotFound(err) != nil:
		cluster.Log.Warn("take over an agent", "agent", k.id, "error", err)
	}
}

// Await implements Directory.
func (cluster *Cluster) Await(ctx context.Context, id string) error {
	moved, queued, err := cluster.awaitChannel(id)
	switch {
	case moved != nil:
		select {
		case <-moved:
		case <-ctx.Done():
			err = ctx.Err()
		}
	case queued:
		cluster.additions.EnqueueFirst(id)
		err = cluster.additions.Wait(ctx, id)
	default:
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// awaitChannel returns what to wait for: that an agent has been moved away, or that
// its file has been read.
func (cluster *Cluster) awaitChannel(id string) (moved <-chan struct{}, read bool, err error) {
	_, absent := cluster.folder.Agent(id)
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	k := cluster.agents[id]
	switch {
	case cluster.moving[id] != nil:
		return cluster.moving[id], false, nil
	case k == nil || k.deleted || k.owner != cluster.self.Session && k.owner != stopped:
		return nil, false, ErrNotOwner
	case absent == nil ||
		k.owner == stopped ||
		cluster.changing[id] ||
		cluster.leaving && !cluster.additions.Busy(id):
		return nil, false, nil
	}
	return nil, true, nil
}
