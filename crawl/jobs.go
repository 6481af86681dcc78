package crawl

import (
	"context"
	"slices"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Bounds of the walks that run at a time.
const (
	maxWalks      = 16
	maxAgentWalks = 4 // of one agent
)

// sweepEvery is how often the Crawler looks for agents that appeared, were
// disabled or enabled, were deleted, or may be tried again after a failure.
const sweepEvery = 2 * time.Second

// The wait after a failure of the store, which doubles with each in a row.
const (
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
)

type jobKey struct {
	db     *store.DB
	source string
}

// job is a walk that waits or runs.
type job struct {
	key    jobKey
	work   store.CrawlWork
	cancel context.CancelFunc // nil while it waits
}

// agentWork is the state of an agent that is not at rest.
type agentWork struct {
	walking  int
	looking  bool // its file is being looked into
	disabled bool
	failures int
	retryAt  time.Time // zero: no retry is due
	rested   chan struct{}
}

// Start takes up walks that did not end and begins to work. It returns at once
// and may be called twice. The work ends with ctx or Stop.
func (c *Crawler) Start(ctx context.Context) error {
	c.startMu.Lock()
	defer c.startMu.Unlock()
	if c.stop != nil {
		return nil
	}
	ctx, c.stop = context.WithCancel(ctx)
	c.mu.Lock()
	c.met = map[*store.DB]bool{}
	c.mu.Unlock()
	c.running.Go(func() { c.serve(ctx) })
	return nil
}

// Stop cuts all walks and waits until nothing runs. They go on with the next
// Start, in this process or another.
func (c *Crawler) Stop() {
	c.startMu.Lock()
	defer c.startMu.Unlock()
	if c.stop == nil {
		return
	}
	c.stop()
	c.running.Wait()
	c.client.CloseIdleConnections()
	c.stop = nil
}

// Kick tells that something about an agent's crawls may have changed: a source
// was made, restarted or deleted, the agent was disabled, enabled or deleted.
// It returns at once.
func (c *Crawler) Kick(db *store.DB) {
	c.mu.Lock()
	c.kicked[db] = true
	c.agent(db)
	c.mu.Unlock()
	c.nudge()
}

func (c *Crawler) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// agent returns the state of an agent; the caller holds c.mu, as for all below
// whose comment does not say otherwise.
func (c *Crawler) agent(db *store.DB) *agentWork {
	a := c.agents[db]
	if a == nil {
		a = &agentWork{rested: make(chan struct{})}
		c.agents[db] = a
	}
	return a
}

// Wait returns nil once no walk of an agent waits or runs, or ctx's error.
// Those that wait for the agent to be enabled, or for another try after a
// failure, do not count.
func (c *Crawler) Wait(ctx context.Context, db *store.DB) error {
	for {
		c.mu.Lock()
		a := c.agents[db]
		if a == nil || !c.busy(db) {
			c.mu.Unlock()
			return nil
		}
		rested := a.rested
		c.mu.Unlock()
		select {
		case <-rested:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// busy tells whether there is, or may be, a walk of an agent.
func (c *Crawler) busy(db *store.DB) bool {
	if a := c.agents[db]; c.kicked[db] || a != nil && a.looking {
		return true
	}
	for key := range c.jobs {
		if key.db == db {
			return true
		}
	}
	return false
}

// settle wakes those that wait for an agent to come to rest.
func (c *Crawler) settle(db *store.DB) {
	a := c.agents[db]
	if a == nil || c.busy(db) {
		return
	}
	close(a.rested)
	a.rested = make(chan struct{})
	if !a.disabled && a.retryAt.IsZero() {
		delete(c.agents, db)
	}
}

// serve is the one goroutine that decides what runs. It needs no lock.
func (c *Crawler) serve(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	c.sweep(time.Now())
	for {
		c.runOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case now := <-ticker.C:
			c.sweep(now)
		}
	}
}

// sweep kicks agents with unfinished work not met before, those that wait for
// something, and those whose walks may have to stop. It takes c.mu itself.
func (c *Crawler) sweep(now time.Time) {
	present := map[*store.DB]bool{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, db := range c.options.Folder.Agents() {
		present[db] = true
		if db.Unfinished() && !c.met[db] {
			c.kicked[db] = true
			c.agent(db)
		}
		if db.Unfinished() {
			c.met[db] = true
		}
	}
	for db := range c.met {
		if !present[db] || !db.Unfinished() {
			delete(c.met, db)
		}
	}
	for db, a := range c.agents {
		disabled := db.Agent().Status == agent.StatusDisabled
		if !present[db] || disabled != a.disabled || !a.retryAt.IsZero() && !now.Before(a.retryAt) {
			c.kicked[db] = true
		}
	}
}

// runOnce looks at the agents that were kicked, and starts walks for which
// there is room. It takes c.mu itself.
func (c *Crawler) runOnce(ctx context.Context) {
	for {
		c.mu.Lock()
		var db *store.DB
		for next := range c.kicked {
			db = next
			break
		}
		if db == nil || ctx.Err() != nil {
			c.mu.Unlock()
			break
		}
		delete(c.kicked, db)
		c.agent(db).looking = true
		c.mu.Unlock()
		c.look(ctx, db)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(j *job) bool {
		a := c.agent(j.key.db)
		if ctx.Err() != nil || c.walking >= maxWalks || a.walking >= maxAgentWalks {
			return false
		}
		a.walking++
		c.walking++
		var walkCtx context.Context
		walkCtx, j.cancel = context.WithCancel(ctx)
		c.running.Go(func() { c.walk(walkCtx, j) })
		return true
	})
}

// look brings the jobs of an agent into step with its file. It takes c.mu
// itself.
func (c *Crawler) look(ctx context.Context, db *store.DB) {
	var works []store.CrawlWork
	var err error
	disabled := db.Agent().Status == agent.StatusDisabled
	if !disabled {
		works, err = db.CrawlWork(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.agent(db)
	a.looking, a.disabled, a.retryAt = false, disabled, time.Time{}
	if err != nil && ctx.Err() == nil && agent.ErrorCode(err) != agent.CodeNotFound {
		c.failed(db, err)
	}
	wanted := map[string]bool{}
	for _, work := range works {
		wanted[work.SourceID] = true
		key := jobKey{db, work.SourceID}
		if c.jobs[key] == nil {
			j := &job{key: key, work: work}
			c.jobs[key] = j
			c.waiting = append(c.waiting, j)
		}
	}
	for key, j := range c.jobs {
		if key.db == db && !wanted[key.source] && (err == nil || agent.ErrorCode(err) == agent.CodeNotFound) {
			c.drop(j)
		}
	}
	c.settle(db)
}

// drop ends a job: a running one ends itself soon.
func (c *Crawler) drop(j *job) {
	if j.cancel != nil {
		j.cancel()
		return
	}
	delete(c.jobs, j.key)
	c.waiting = slices.DeleteFunc(c.waiting, func(w *job) bool { return w == j })
}

func (c *Crawler) failed(db *store.DB, err error) {
	a := c.agent(db)
	a.retryAt = time.Now().Add(min(firstRetry<<min(a.failures, 10), lastRetry))
	a.failures++
	c.log.Error("crawl an agent's sources", "agent", db.ID(), "error", err)
}

// walk runs one job to its end. It needs no lock.
func (c *Crawler) walk(ctx context.Context, j *job) {
	err := c.walkOn(ctx, j)
	c.mu.Lock()
	defer c.mu.Unlock()
	stopped := ctx.Err() != nil
	j.cancel()
	delete(c.jobs, j.key)
	c.walking--
	a := c.agent(j.key.db)
	a.walking--
	switch {
	case err == nil:
		a.failures = 0
	case stopped, agent.ErrorCode(err) == agent.CodeNotFound:
		// When the source is still there, and restarted, the next look finds it.
		c.kicked[j.key.db] = true
	default:
		c.failed(j.key.db, err)
	}
	c.settle(j.key.db)
	c.nudge()
}

// walkOn walks from where a job stands. A start that may not be reached any
// more, since the settings changed, ends the source.
func (c *Crawler) walkOn(ctx context.Context, j *job) error {
	w, leave, err := c.newWalk(j.key.db, j.work)
	if err != nil {
		return j.key.db.FinishSource(ctx, j.key.source, explain(err))
	}
	defer leave()
	return w.run(ctx)
}
