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
func (cluster *Cluster) join(ctx context.Context) error {
	began := time.Now()
	if err := cluster.announce(ctx, deadAfter); err != nil {
		return fmt.Errorf("join the cluster: %w", err)
	}
	cluster.mu.Lock()
	cluster.self.Alive, cluster.answered, cluster.full, cluster.unsettled, cluster.problem =
		true, began, time.Time{}, true, nil
	cluster.lastSeen.Session, cluster.lastSeen.Beat = cluster.self.Session, 0
	cluster.mu.Unlock()
	return cluster.poll(ctx)
}

// rejoin begins a new session after the others considered this server dead, or the
// outcome of a commit remained unknown.
func (cluster *Cluster) rejoin(ctx context.Context) error {
	cluster.mu.Lock()
	old := cluster.self.Session
	cluster.self.Alive, cluster.expired = false, true
	cluster.mu.Unlock()
	cluster.Log.Warn("this server begins a new session in the cluster")
	for _, db := range cluster.folder.Agents() {
		cluster.remove(db.ID())
	}
	bounded, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	if _, err := cluster.pool.Exec(
		bounded,
		"UPDATE node SET alive = false, died = clock_timestamp() WHERE session = $1 AND alive",
		old,
	); err != nil {
		return err
	}
	cluster.mu.Lock()
	cluster.self.Session, cluster.expired = rand.Text(), false
	cluster.mu.Unlock()
	return cluster.join(ctx)
}

// retire makes the other servers take over this server's agents.
func (cluster *Cluster) retire(ctx context.Context) {
	cluster.mu.Lock()
	cluster.leaving, cluster.retired = true, true
	session, restored := cluster.self.Session, cluster.restored
	cluster.mu.Unlock()
	cluster.writeLastSeen()
	if restored {
		return
	}
	if err := cluster.flushNotes(ctx); err != nil {
		cluster.Log.Warn("the cluster does not know all of the agents' due work", "error", err)
	}
	if _, err := cluster.pool.Exec(
		ctx,
		"UPDATE node SET alive = false, died = clock_timestamp() WHERE session = $1",
		session,
	); err != nil {
		cluster.Log.Warn("leave the cluster; the others notice within seconds", "error", err)
	}
}

// watch polls the database until ctx is done.
func (cluster *Cluster) watch(ctx context.Context) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	var failing string
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-cluster.wake:
		}
		failing = cluster.logStep(ctx, cluster.step(ctx), failing)
	}
}

// logStep logs the outcome of a step if it differs from the previous one, and returns a
// description of what fails.
func (cluster *Cluster) logStep(ctx context.Context, err error, before string) (failing string) {
	switch {
	case err == nil:
		if before != "" {
			cluster.Log.Info("this server is connected to its cluster again")
		}
		return ""
	case errors.Is(err, errSameURL), errors.Is(err, errRecovering), errors.Is(err, errRestored):
		failing = "this server takes no part in its cluster"
		cluster.mu.Lock()
		cluster.problem = err
		cluster.mu.Unlock()
	default:
		failing = "the cluster's database does not answer"
	}
	if failing != before && ctx.Err() == nil {
		cluster.Log.Error(failing, "error", err)
	}
	return failing
}

func (cluster *Cluster) step(ctx context.Context) error {
	cluster.stepping.Lock()
	defer cluster.stepping.Unlock()
	cluster.mu.Lock()
	expired, stopping, restored :=
		cluster.expired || !cluster.self.Alive, cluster.retired || cluster.ordered == Stopping, cluster.restored
	cluster.mu.Unlock()
	if restored {
		return cluster.awaitResume(ctx)
	}
	cluster.followDisk(ctx)
	if expired && !stopping {
		return cluster.rejoin(ctx)
	}
	if err := cluster.poll(ctx); err != nil {
		return err
	}
	cluster.giveRemaining(ctx)
	return cluster.flushNotes(ctx)
}

// refresh polls the database at once.
func (cluster *Cluster) refresh(ctx context.Context) error {
	cluster.stepping.Lock()
	defer cluster.stepping.Unlock()
	return cluster.poll(ctx)
}

// poll sends a heartbeat and reads what changed.
func (cluster *Cluster) poll(whole context.Context) error {
	ctx, cancel := context.WithTimeout(whole, pollTime)
	defer cancel()
	began := time.Now()
	cluster.mu.Lock()
	session, since, gap := cluster.self.Session, cluster.asOf.Add(-overlap), began.Sub(cluster.answered) > pollGap
	all := began.Sub(cluster.full) > readAll
	if all {
		since = time.Time{}
	}
	cluster.mu.Unlock()
	seen := pollResult{startedAt: began, gap: gap, all: all}
	err := cluster.pool.ExecBatch(ctx, seen.batch(session, cluster.takeLag(), since))
	if err == nil && seen.asOf.IsZero() {
		err = errors.New("the database has lost the row of the cluster")
	}
	if err != nil {
		cluster.restartObservations()
		return err
	}
	cluster.compareClock(seen, time.Now())
	if cluster.isOlder(session, seen) {
		return cluster.halt()
	}
	if !seen.beat {
		cluster.expire(session)
		return nil
	}
	if err := cluster.followAccess(ctx, seen.keys); err != nil {
		return err
	}
	if !cluster.note(session, seen) {
		return nil
	}
	if err := cluster.readChanged(whole, seen); err != nil {
		return err
	}
	cluster.settle(whole, session)
	if seen.all {
		cluster.purgeDead(whole)
		cluster.writeLastSeen()
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
func (cluster *Cluster) restartObservations() {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	for _, n := range cluster.nodes {
		n.at, n.refused = time.Now(), false
	}
}

// note stores the result of a poll in memory, and reports whether the session is still
// that of the poll.
func (cluster *Cluster) note(session string, result pollResult) bool {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	if cluster.self.Session != session {
		return false
	}
	cluster.answered = result.startedAt
	nodes := map[string]*peer{}
	for index, peer := range result.nodes {
		old := cluster.nodes[peer.Session]
		peer.at, peer.Self = result.startedAt, peer.Session == session
		if old != nil {
			peer.lifetime, peer.end = old.lifetime, old.end
		} else {
			peer.lifetime, peer.end = context.WithCancel(context.Background())
		}
		if old != nil && old.beat == peer.beat && !result.gap {
			peer.at, peer.probed, peer.refused = old.at, old.probed, old.refused
		}
		if peer.Seen = peer.at; !peer.Alive {
			peer.Seen = result.startedAt.Add(-result.died[index])
			peer.end()
		}
		nodes[peer.Session] = &peer
	}
	for id, old := range cluster.nodes {
		if nodes[id] == nil {
			old.end()
		}
	}
	cluster.nodes = nodes
	return true
}

// settle acts on the result of a poll: servers that are silent are declared dead, agents
// of the dead are claimed, and the folder gets the agents that this server owns and no
// others.
func (cluster *Cluster) settle(ctx context.Context, session string) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	dead := map[string]bool{"": true}
	for _, n := range cluster.silent(dead) {
		done, err := cluster.pool.Exec(
			ctx,
			"UPDATE node SET alive = false, died = clock_timestamp() WHERE session = $1 AND beat = $2 AND alive",
			n.Session,
			n.beat,
		)
		if err == nil && done.RowsAffected() > 0 {
			cluster.Log.Warn(
				"a server of the cluster does not answer and is taken for dead",
				"server", n.Name,
				"url", n.URL,
			)
			dead[n.Session] = true
			cluster.mu.Lock()
			n.Alive = false
			n.end()
			cluster.mu.Unlock()
		}
	}
	cluster.mu.Lock()
	orphans := !cluster.leaving && cluster.orphansLocked(dead)
	cluster.mu.Unlock()
	if orphans {
		if err := cluster.claim(ctx, session, dead); err != nil && ctx.Err() == nil {
			cluster.Log.Warn("claim agents of servers that left", "error", err)
		}
	}
	cluster.mu.Lock()
	unsettled := cluster.unsettled
	cluster.unsettled = false
	cluster.mu.Unlock()
	if unsettled {
		cluster.reconcile(session)
	}
}

// silent returns the servers that are to be declared dead, and adds those that already
// are to dead.
func (cluster *Cluster) silent(dead map[string]bool) (silent []*peer) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	for _, n := range cluster.nodes {
		quiet := time.Since(n.at)
		switch {
		case !n.Alive:
			dead[n.Session] = true
		case n.Self:
		case quiet > deadAfter || quiet > refusedAfter && n.refused:
			silent = append(silent, n)
		case quiet > refusedAfter:
			cluster.probe(n)
		}
	}
	return silent
}

// purgeDead removes servers that died long ago and own nothing.
func (cluster *Cluster) purgeDead(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	_, err := cluster.pool.Exec(ctx, `DELETE FROM node n WHERE NOT alive AND died < clock_timestamp() - make_interval(secs => $1)
		AND NOT EXISTS (SELECT 1 FROM agent a WHERE a.owner = n.session AND NOT a.deleted)`, deadNodeAge.Seconds())
	if err == nil {
		_, err = cluster.pool.Exec(
			ctx,
			"DELETE FROM agent WHERE deleted AND changed < clock_timestamp() - make_interval(secs => $1)",
			deadNodeAge.Seconds(),
		)
	}
	if err != nil && ctx.Err() == nil {
		cluster.Log.Warn("remove servers that left the cluster", "error", err)
	}
}
