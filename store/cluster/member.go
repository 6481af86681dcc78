package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"satchel/store/cluster/pg"
)

// Times of membership. Safety does not depend on them: a server that is wrong about
// another only costs time. They are measured by each server's own monotonic clock.
const (
	pollEvery   = time.Second
	pollTime    = 3 * time.Second  // of one poll
	maxSilence  = 6 * time.Second  // of the database, after which a server no longer serves requests
	deadAfter   = 8 * time.Second  // without a heartbeat
	pollGap     = 4 * time.Second  // between two polls, after which observations start again
	deadNodeAge = time.Hour        // after they died
	readAll     = time.Minute      // how often all agents are listed
	overlap     = 10 * time.Second // by which a row may become visible later than its time of change
	claimLimit  = 500              // agents at a poll
)

// peer is what this server has seen of another.
type peer struct {
	Node
	fileVersion int
	beat        int64
	at          time.Time // when the heartbeat last changed, or observations began
	probed      int64     // the heartbeat at which its address was tried
	refused     bool      // it has refused a connection since the heartbeat changed

	lifetime context.Context // see Directory
	end      context.CancelFunc
}

// join adds the session to the cluster, unless another server has the same URL.
func (c *Cluster) join(ctx context.Context) error {
	began := time.Now()
	if err := c.announce(ctx, deadAfter); err != nil {
		return fmt.Errorf("join the cluster: %w", err)
	}
	c.mu.Lock()
	c.self.Alive, c.answered, c.full, c.unsettled, c.problem = true, began, time.Time{}, true, nil
	c.lastSeen.Session, c.lastSeen.Beat = c.self.Session, 0
	c.mu.Unlock()
	return c.poll(ctx)
}

// rejoin begins a new session after the others considered this server dead, or the
// outcome of a commit remained unknown.
func (c *Cluster) rejoin(ctx context.Context) error {
	c.mu.Lock()
	old := c.self.Session
	c.self.Alive, c.expired = false, true
	c.mu.Unlock()
	c.Log.Warn("this server begins a new session in the cluster")
	for _, db := range c.folder.Agents() {
		c.remove(db.ID())
	}
	bounded, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	if _, err := c.pool.Exec(
		bounded,
		"UPDATE node SET alive = false, died = clock_timestamp() WHERE session = $1 AND alive",
		old,
	); err != nil {
		return err
	}
	c.mu.Lock()
	c.self.Session, c.expired = rand.Text(), false
	c.mu.Unlock()
	return c.join(ctx)
}

// retire makes the other servers take over this server's agents.
func (c *Cluster) retire(ctx context.Context) {
	c.mu.Lock()
	c.leaving, c.retired = true, true
	session, restored := c.self.Session, c.restored
	c.mu.Unlock()
	c.writeLastSeen()
	if restored {
		return
	}
	if err := c.flushNotes(ctx); err != nil {
		c.Log.Warn("the cluster does not know all of the agents' due work", "error", err)
	}
	if _, err := c.pool.Exec(
		ctx,
		"UPDATE node SET alive = false, died = clock_timestamp() WHERE session = $1",
		session,
	); err != nil {
		c.Log.Warn("leave the cluster; the others notice within seconds", "error", err)
	}
}

// watch polls the database until ctx is done.
func (c *Cluster) watch(ctx context.Context) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	var failing string
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-c.wake:
		}
		failing = c.logStep(ctx, c.step(ctx), failing)
	}
}

// logStep logs the outcome of a step if it differs from the previous one, and returns a
// description of what fails.
func (c *Cluster) logStep(ctx context.Context, err error, before string) (failing string) {
	switch {
	case err == nil:
		if before != "" {
			c.Log.Info("this server is connected to its cluster again")
		}
		return ""
	case errors.Is(err, errSameURL), errors.Is(err, errRecovering), errors.Is(err, errRestored):
		failing = "this server takes no part in its cluster"
		c.mu.Lock()
		c.problem = err
		c.mu.Unlock()
	default:
		failing = "the cluster's database does not answer"
	}
	if failing != before && ctx.Err() == nil {
		c.Log.Error(failing, "error", err)
	}
	return failing
}

func (c *Cluster) step(ctx context.Context) error {
	c.stepping.Lock()
	defer c.stepping.Unlock()
	c.mu.Lock()
	expired, stopping, restored := c.expired || !c.self.Alive, c.retired || c.ordered == Stopping, c.restored
	c.mu.Unlock()
	if restored {
		return c.awaitResume(ctx)
	}
	c.followDisk(ctx)
	if expired && !stopping {
		return c.rejoin(ctx)
	}
	if err := c.poll(ctx); err != nil {
		return err
	}
	c.giveRemaining(ctx)
	return c.flushNotes(ctx)
}

// refresh polls the database at once.
func (c *Cluster) refresh(ctx context.Context) error {
	c.stepping.Lock()
	defer c.stepping.Unlock()
	return c.poll(ctx)
}

// poll sends a heartbeat and reads what changed.
func (c *Cluster) poll(whole context.Context) error {
	ctx, cancel := context.WithTimeout(whole, pollTime)
	defer cancel()
	began := time.Now()
	c.mu.Lock()
	session, since, gap := c.self.Session, c.asOf.Add(-overlap), began.Sub(c.answered) > pollGap
	all := began.Sub(c.full) > readAll
	if all {
		since = time.Time{}
	}
	c.mu.Unlock()
	seen := pollResult{startedAt: began, gap: gap, all: all}
	err := c.pool.ExecBatch(ctx, seen.batch(session, c.takeLag(), since))
	if err == nil && seen.asOf.IsZero() {
		err = errors.New("the database has lost the row of the cluster")
	}
	if err != nil {
		c.restartObservations()
		return err
	}
	c.compareClock(seen, time.Now())
	if c.isOlder(session, seen) {
		return c.halt()
	}
	if !seen.beat {
		c.expire(session)
		return nil
	}
	if err := c.followAccess(ctx, seen.keys); err != nil {
		return err
	}
	if !c.note(session, seen) {
		return nil
	}
	if err := c.readChanged(whole, seen); err != nil {
		return err
	}
	c.settle(whole, session)
	if seen.all {
		c.purgeDead(whole)
		c.writeLastSeen()
	}
	return nil
}

// pollResult is the result of a poll.
type pollResult struct {
	startedAt time.Time
	gap, all  bool
	beat      bool // the session is alive
	nodes     []peer
	died      []time.Duration // how long ago, of nodes that are not alive
	agents    []listed
	asOf      time.Time // by the database's clock, before the agents were listed
	keys      int64

	joins       int64
	incarnation string
}

// batch returns the statements of a poll, which set the result.
func (p *pollResult) batch(session string, lag time.Duration, since time.Time) pg.Batch {
	return pg.Batch{
		{
			SQL:  "UPDATE node SET beat = beat + 1, lag = $2 WHERE session = $1 AND alive RETURNING beat",
			Args: []any{session, lag.Milliseconds()},
			Read: func(pg.Row) error {
				p.beat = true
				return nil
			},
		},
		{
			SQL: "SELECT session, name, url, version, file_version, beat, alive, leaving, reason, lag, " +
				"coalesce(extract(epoch FROM clock_timestamp() - died), 0)::float8 FROM node",
			Read: p.readNode,
		},
		{
			SQL: "SELECT keys_version, joins, incarnation, clock_timestamp() FROM cluster",
			Read: func(row pg.Row) error {
				return row.Scan(&p.keys, &p.joins, &p.incarnation, &p.asOf)
			},
		},
		{
			SQL:  "SELECT id, changed FROM agent WHERE changed > $1",
			Args: []any{since},
			Read: func(row pg.Row) error {
				var l listed
				err := row.Scan(&l.id, &l.changed)
				p.agents = append(p.agents, l)
				return err
			},
		},
	}
}

func (p *pollResult) readNode(row pg.Row) error {
	var n peer
	var died float64
	var lag int64
	err := row.Scan(
		&n.Session, &n.Name, &n.URL, &n.Version, &n.fileVersion, &n.beat, &n.Alive, &n.Leaving, (*string)(&n.Reason),
		&lag, &died,
	)
	n.Lag = time.Duration(lag) * time.Millisecond
	p.nodes, p.died = append(p.nodes, n), append(p.died, time.Duration(died*float64(time.Second)))
	return err
}

// restartObservations restarts all observations: while the database cannot be
// reached, no server is considered dead.
func (c *Cluster) restartObservations() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		n.at, n.refused = time.Now(), false
	}
}

// note stores the result of a poll in memory, and reports whether the session is still
// that of the poll.
func (c *Cluster) note(session string, p pollResult) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.self.Session != session {
		return false
	}
	c.answered = p.startedAt
	nodes := map[string]*peer{}
	for i, n := range p.nodes {
		old := c.nodes[n.Session]
		n.at, n.Self = p.startedAt, n.Session == session
		if old != nil {
			n.lifetime, n.end = old.lifetime, old.end
		} else {
			n.lifetime, n.end = context.WithCancel(context.Background())
		}
		if old != nil && old.beat == n.beat && !p.gap {
			n.at, n.probed, n.refused = old.at, old.probed, old.refused
		}
		if n.Seen = n.at; !n.Alive {
			n.Seen = p.startedAt.Add(-p.died[i])
			n.end()
		}
		nodes[n.Session] = &n
	}
	for id, old := range c.nodes {
		if nodes[id] == nil {
			old.end()
		}
	}
	c.nodes = nodes
	return true
}

// settle acts on the result of a poll: servers that are silent are declared dead, agents
// of the dead are claimed, and the folder gets the agents that this server owns and no
// others.
func (c *Cluster) settle(ctx context.Context, session string) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	dead := map[string]bool{"": true}
	for _, n := range c.silent(dead) {
		done, err := c.pool.Exec(
			ctx,
			"UPDATE node SET alive = false, died = clock_timestamp() WHERE session = $1 AND beat = $2 AND alive",
			n.Session,
			n.beat,
		)
		if err == nil && done.RowsAffected() > 0 {
			c.Log.Warn("a server of the cluster does not answer and is taken for dead", "server", n.Name, "url", n.URL)
			dead[n.Session] = true
			c.mu.Lock()
			n.Alive = false
			n.end()
			c.mu.Unlock()
		}
	}
	c.mu.Lock()
	orphans := !c.leaving && c.orphansLocked(dead)
	c.mu.Unlock()
	if orphans {
		if err := c.claim(ctx, session, dead); err != nil && ctx.Err() == nil {
			c.Log.Warn("claim agents of servers that left", "error", err)
		}
	}
	c.mu.Lock()
	unsettled := c.unsettled
	c.unsettled = false
	c.mu.Unlock()
	if unsettled {
		c.reconcile(session)
	}
}

// silent returns the servers that are to be declared dead, and adds those that already
// are to dead.
func (c *Cluster) silent(dead map[string]bool) (silent []*peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		quiet := time.Since(n.at)
		switch {
		case !n.Alive:
			dead[n.Session] = true
		case n.Self:
		case quiet > deadAfter || quiet > refusedAfter && n.refused:
			silent = append(silent, n)
		case quiet > refusedAfter:
			c.probe(n)
		}
	}
	return silent
}

// purgeDead removes servers that died long ago and own nothing.
func (c *Cluster) purgeDead(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	_, err := c.pool.Exec(ctx, `DELETE FROM node n WHERE NOT alive AND died < clock_timestamp() - make_interval(secs => $1)
		AND NOT EXISTS (SELECT 1 FROM agent a WHERE a.owner = n.session AND NOT a.deleted)`, deadNodeAge.Seconds())
	if err == nil {
		_, err = c.pool.Exec(
			ctx,
			"DELETE FROM agent WHERE deleted AND changed < clock_timestamp() - make_interval(secs => $1)",
			deadNodeAge.Seconds(),
		)
	}
	if err != nil && ctx.Err() == nil {
		c.Log.Warn("remove servers that left the cluster", "error", err)
	}
}
