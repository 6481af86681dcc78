package crawl

import (
	"context"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// Limits of concurrent walks, and of agents whose walks are being read.
const (
	maxWalks      = 16
	maxAgentWalks = 4 // per agent
	maxLookups    = 4
)

// The delay after a failure of the store, doubled with each consecutive one.
const (
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
)

// walkKey identifies the walk of a source.
type walkKey struct {
	db     *store.DB
	source string
}

func (c *Crawler) makeQueues() {
	backoff := work.Exponential(firstRetry, lastRetry)
	c.agents = work.New(work.Options[*store.DB]{
		Run:     c.enqueueWalks,
		Limit:   maxLookups,
		Backoff: backoff,
		OnError: func(db *store.DB, err error) {
			c.log.Error("enqueue crawls", "agent", db.ID(), "error", err)
		},
	})
	c.walks = work.New(work.Options[walkKey]{
		Run:        c.walk,
		Limit:      maxWalks,
		Backoff:    backoff,
		Group:      func(key walkKey) any { return key.db },
		GroupLimit: func(any) int { return maxAgentWalks },
		OnError: func(key walkKey, err error) {
			c.log.Error("crawl source", "agent", key.db.ID(), "source", key.source, "error", err)
		},
	})
}

// notify enqueues an agent whose crawls may have work.
func (c *Crawler) notify(db *store.DB, p store.Pending) {
	c.agents.Notify(db, p.Sources.Time, p.Changed)
}

// Start resumes unfinished walks and begins to work. It returns immediately and
// may be called twice. The work ends with ctx or Stop.
func (c *Crawler) Start(ctx context.Context) error {
	c.agents.Start(ctx)
	c.walks.Start(ctx)
	return nil
}

// Stop interrupts all walks and waits until nothing runs. They resume with the
// next Start, in this process or another.
func (c *Crawler) Stop() {
	c.agents.Stop()
	c.walks.Stop()
	c.client.CloseIdleConnections()
}

// Wait returns nil when no walk of an agent is waiting or running, or ctx's
// error. Walks that wait for the agent to be enabled, or for a retry after a
// failure, do not count.
func (c *Crawler) Wait(ctx context.Context, db *store.DB) error {
	for {
		before := c.lookups.Load()
		if err := c.agents.Wait(ctx, db); err != nil {
			return err
		}
		for _, key := range c.walks.Keys(db) {
			if err := c.walks.Wait(ctx, key); err != nil {
				return err
			}
		}
		if !c.agents.Busy(db) && c.lookups.Load() == before {
			return nil
		}
	}
}

// enqueueWalks enqueues the unfinished walks of an agent, and ends those that
// are no longer wanted: their source or agent was deleted or disabled.
func (c *Crawler) enqueueWalks(ctx context.Context, db *store.DB) (work.Next, error) {
	defer c.lookups.Add(1)
	var works []store.CrawlWork
	if !db.Gone() && db.Problem() == nil && db.Agent().Status != agent.StatusDisabled {
		var err error
		if works, err = db.CrawlWork(ctx); err != nil && agent.ErrorCode(err) != agent.CodeNotFound {
			return work.Next{}, err
		}
	}
	wanted := map[string]bool{}
	for _, w := range works {
		wanted[w.SourceID] = true
		c.walks.Enqueue(walkKey{db, w.SourceID})
	}
	for _, key := range c.walks.Keys(db) {
		if !wanted[key.source] {
			c.walks.Forget(key)
		}
	}
	return work.Next{}, nil
}

// Forget interrupts the walk of a source that was stopped, unless it has been started
// again.
func (c *Crawler) Forget(db *store.DB, sourceID string) {
	c.walks.Forget(walkKey{db, sourceID})
	c.agents.Enqueue(db)
}

// walk is one turn of a source: its walk, from the current state to the end.
func (c *Crawler) walk(ctx context.Context, key walkKey) (work.Next, error) {
	w, err := c.readWork(ctx, key)
	if err == nil && w != nil {
		err = c.resume(ctx, key.db, *w)
	}
	if err == nil || agent.ErrorCode(err) == agent.CodeNotFound {
		return work.Next{}, nil // a walk restarted in the meantime was enqueued again
	}
	return work.Next{}, err
}

// readWork reads the remaining work of a source, or nil.
func (c *Crawler) readWork(ctx context.Context, key walkKey) (*store.CrawlWork, error) {
	works, err := key.db.CrawlWork(ctx)
	for i := range works {
		if works[i].SourceID == key.source {
			return &works[i], nil
		}
	}
	return nil, err
}

// resume continues a walk. A start that may no longer be reached, because the
// settings changed, fails the source.
func (c *Crawler) resume(ctx context.Context, db *store.DB, work store.CrawlWork) error {
	w, release, err := c.newWalk(db, work)
	if err != nil {
		return db.FinishSource(ctx, work.SourceID, explain(err))
	}
	defer release()
	return w.run(ctx)
}
