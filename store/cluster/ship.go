package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"satchel/store/cluster/pg"
)

// Limits of one statement, and of how many run at a time.
const (
	batchCommits = 64
	batchBytes   = 8 << 20
	shippers     = 2
)

// Times of shipping: how long one statement may take, how long a commit's outcome may be
// uncertain before this server ends its session, and the pauses between attempts.
const (
	statementTime = 5 * time.Second
	uncertainTime = 30 * time.Second
	firstPause    = 20 * time.Millisecond
	longestPause  = time.Second
)

// shipment is one commit of an agent. An agent has one at a time, since its writer
// waits for the outcome.
type shipment struct {
	id, session string
	head        int64 // the agent's head before it
	body        []byte
	startedAt   time.Time
	done        chan error // with a buffer of 1
}

// errBehind reports that the database has lost commits, as when a standby that was behind
// is promoted.
var errBehind = errors.New("the database has lost commits that it had taken")

// shipper inserts commits into the log.
type shipper struct {
	pool      *pg.Pool
	log       *slog.Logger
	queue     chan *shipment
	expired   func(session string) // called when an outcome remained uncertain
	failed    func()               // called when a statement was not answered
	uncertain time.Duration
}

// run ships until ctx is done.
func (s *shipper) run(ctx context.Context) {
	var rest *shipment
	for {
		first := rest
		if rest = nil; first == nil {
			select {
			case <-ctx.Done():
				return
			case first = <-s.queue:
			}
		}
		var batch []*shipment
		batch, rest = s.collect(first)
		s.ship(ctx, batch)
	}
}

// collect returns a batch of first and the shipments queued behind it, and the first
// shipment that no longer fits.
func (s *shipper) collect(first *shipment) (batch []*shipment, rest *shipment) {
	batch, size := []*shipment{first}, len(first.body)
	for len(batch) < batchCommits {
		select {
		case next := <-s.queue:
			if size += len(next.body); size > batchBytes {
				return batch, next
			}
			batch = append(batch, next)
		default:
			return batch, nil
		}
	}
	return batch, nil
}

// ship inserts a batch and reports the outcome of each shipment.
func (s *shipper) ship(ctx context.Context, batch []*shipment) {
	taken, err := s.insert(ctx, batch)
	if err == nil {
		s.settle(ctx, batch, taken)
		return
	}
	s.log.Warn("the outcome of commits is uncertain", "commits", len(batch), "error", err)
	deadline := time.Now().Add(s.uncertain)
	for pause := firstPause; len(batch) > 0; pause = min(2*pause, longestPause) {
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			s.giveUp(batch, err)
			return
		}
		batch, err = s.resolve(ctx, batch)
	}
}

// settle reports the outcomes of a statement that was answered: commits that are not in
// taken were definitely refused.
func (s *shipper) settle(ctx context.Context, batch []*shipment, taken map[string]bool) {
	for _, c := range batch {
		if taken[c.id] {
			c.done <- nil
			continue
		}
		err := error(ErrNotOwner)
		if at, e := s.lookUp(ctx, []*shipment{c}); e == nil && at[c.id].owner == c.session {
			err = c.conflictError(at[c.id].head)
		}
		c.done <- err
	}
}

// conflictError returns the error for a commit that does not continue the owner's agent in
// the database.
func (c *shipment) conflictError(head int64) error {
	kind := errBehind
	if head > c.head {
		kind = ErrUnavailable // the local file is wrong and will be restored
	}
	return fmt.Errorf("%w: agent %s is at commit %d, and was at %d", kind, c.id, head, c.head)
}

// giveUp reports that the outcomes remain unknown. The statements may still be executed,
// but not once the agents have another owner, so the session ends.
func (s *shipper) giveUp(batch []*shipment, reason error) {
	text := "the database does not answer"
	var refused *pg.Error
	if errors.As(reason, &refused) { // for instance, its disk is full or it is read-only
		text = "the database does not take changes: " + refused.Message
	}
	for _, c := range batch {
		s.expired(c.session)
		c.done <- fmt.Errorf("%w: %s", ErrUnavailable, text)
	}
}

// resolve determines the outcomes of commits whose statement was not answered, and ships
// those that did not arrive again. It returns those that are still uncertain, and why.
func (s *shipper) resolve(ctx context.Context, batch []*shipment) (uncertain []*shipment, err error) {
	at, err := s.lookUp(ctx, batch)
	if err != nil {
		return batch, err
	}
	var again []*shipment
	for _, c := range batch {
		switch a := at[c.id]; {
		case a.owner != c.session:
			c.done <- fmt.Errorf("%w: the agent has been taken over", ErrUnavailable)
		case a.head == c.head+1: // an agent has one commit in flight, so it is this one
			c.done <- nil
		case a.head == c.head:
			again = append(again, c)
		default:
			c.done <- c.conflictError(a.head)
		}
	}
	if len(again) == 0 {
		return nil, nil
	}
	taken, err := s.insert(ctx, again)
	if err != nil {
		return again, err
	}
	for _, c := range again {
		if taken[c.id] {
			c.done <- nil
		} else { // the first statement has been executed since, or there is another owner
			uncertain = append(uncertain, c)
		}
	}
	return uncertain, nil
}

// insertCommits inserts the commits whose agents still have the given owner and head. Row
// locks serialize it with changes of the owner.
const insertCommits = `
WITH u AS (SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[]) AS u(id, owner, head, body)),
ok AS (UPDATE agent a SET head = a.head + 1 FROM u WHERE a.id = u.id AND a.owner = u.owner AND a.head = u.head AND NOT a.deleted
	RETURNING a.id, a.head, u.body)
INSERT INTO log(agent, seq, body) SELECT id, head, body FROM ok RETURNING agent`

// insert ships a batch and returns the agents whose commits were taken.
func (s *shipper) insert(ctx context.Context, batch []*shipment) (taken map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	ids, owners, heads, bodies :=
		make([]string, len(batch)), make([]string, len(batch)), make([]int64, len(batch)), make([][]byte, len(batch))
	for i, c := range batch {
		ids[i], owners[i], heads[i], bodies[i] = c.id, c.session, c.head, c.body
	}
	defer func() {
		if err != nil {
			s.failed()
		}
	}()
	taken = map[string]bool{}
	for row, err := range s.pool.Query(ctx, insertCommits, ids, owners, heads, bodies) {
		var id string
		if err == nil {
			err = row.Scan(&id)
		}
		if err != nil {
			return nil, err
		}
		taken[id] = true
	}
	return taken, nil
}

// agentPlace is an agent's owner and head in the database.
type agentPlace struct {
	owner string
	head  int64
}

// lookUp returns the places of agents; deleted ones are missing.
func (s *shipper) lookUp(ctx context.Context, batch []*shipment) (map[string]agentPlace, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	var ids []string
	for _, c := range batch {
		ids = append(ids, c.id)
	}
	found := map[string]agentPlace{}
	for row, err := range s.pool.Query(
		ctx,
		"SELECT id, owner, head FROM agent WHERE id = ANY($1) AND NOT deleted",
		ids,
	) {
		var id string
		var p agentPlace
		if err == nil {
			err = row.Scan(&id, &p.owner, &p.head)
		}
		if err != nil {
			return nil, err
		}
		found[id] = p
	}
	return found, nil
}
