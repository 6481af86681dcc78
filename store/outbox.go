package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Consumers of the outbox. Each has a cursor in every file.
const (
	ConsumerWorkflows = "workflows"
	ConsumerWebhooks  = "webhooks"
)

// emit writes an event into the outbox. data must hold no secret.
func (tx *Tx) emit(event string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("event data: %w", err)
	}
	_, err = tx.exec(
		"INSERT INTO _events(id, type, data, created_at) VALUES (?,?,?,?)",
		agent.NewID(agent.KindEvent),
		event,
		string(raw),
		tx.Now,
	)
	return err
}

const eventColumns = "seq, id, type, data, depth, root, created_at"

func scanEvent(rows *sqlite.Rows) (e agent.Event, err error) {
	return e, rows.Scan(&e.Seq, &e.ID, &e.Type, (*rawJSON)(&e.Data), &e.Depth, &e.Root, &e.CreatedAt)
}

// Events returns up to limit events of the outbox after sequence number after,
// oldest first.
func (db *DB) Events(ctx context.Context, after int64, limit int) ([]agent.Event, error) {
	return Read(ctx, db, func(tx *Tx) ([]agent.Event, error) {
		return tx.eventsBehind(after, nil, true, limit)
	})
}

// activateAgent records that the agent becomes active: earlier events start nothing,
// however late they are read.
func (tx *Tx) activateAgent() error {
	_, err := tx.exec("UPDATE _agent SET active_since_seq = (SELECT coalesce(max(seq), 0) FROM _events)")
	return err
}

// Undelivered is what a consumer has to do about an agent's events, all read in one
// transaction: DB.Agent may be older than the change that an event reports.
type Undelivered struct {
	Events        []agent.Event // those with subscribers, oldest first
	After         int64         // how far the consumer has come
	Last          int64         // how far it will have come after Events
	More          bool          // there may be others after Last
	NoSubscribers bool          // no event has a subscriber
}

// subscriptions returns, for the consumers of this program, the names and patterns of
// the events that have subscribers. Others receive all.
var subscriptions = map[string]func(*Tx) ([]string, error){
	ConsumerWebhooks: func(tx *Tx) ([]string, error) { // a change to an agent may let deliveries continue
		return all(tx, scanID, `SELECT j.value FROM webhooks w, json_each(w.events) j WHERE w.active = 1
			UNION SELECT ? FROM webhooks WHERE active = 1`, agent.EventAgentUpdated)
	},
	ConsumerWorkflows: func(tx *Tx) ([]string, error) {
		return all(tx, scanID, `SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM _triggers WHERE event = value)
			OR EXISTS (SELECT 1 FROM _waits WHERE event = value AND event <> '')`, everyPattern)
	},
}

// everyPattern is everything that a trigger or a wait can listen to, as a JSON list.
// Looking up each takes the same time, however many executions are waiting.
var everyPattern = func() string {
	var patterns []string
	for _, name := range agent.EventNames {
		for _, p := range agent.EventPatterns(name) {
			if !slices.Contains(patterns, p) {
				patterns = append(patterns, p)
			}
		}
	}
	raw, _ := json.Marshal(patterns) // a list of strings cannot fail
	return string(raw)
}()

// subscribedEvents returns the events that a consumer receives; all reports whether it receives every event.
func (tx *Tx) subscribedEvents(consumer string) (names []string, all bool, err error) {
	ask, known := subscriptions[consumer]
	if !known {
		return nil, true, nil
	}
	patterns, err := ask(tx)
	for _, name := range agent.EventNames {
		if slices.ContainsFunc(patterns, func(p string) bool {
			return agent.MatchEvent(p, name)
		}) {
			names = append(names, name)
		}
	}
	return names, len(names) == len(agent.EventNames), err
}

// Undelivered returns up to limit events that a consumer has not passed yet. Events
// without a subscriber are skipped without being read. A consumer without
// subscribers is moved past all events.
func (db *DB) Undelivered(ctx context.Context, consumer string, limit int) (Undelivered, error) {
	f, err := db.acquire(ctx)
	if err != nil {
		return Undelivered{}, err
	}
	defer db.release(ctx)
	at := f.unsubscribed.now()
	u, err := db.undelivered(ctx, consumer, limit)
	if err == nil && u.Last > u.After {
		f.unsubscribed.note(consumer, u.NoSubscribers, at)
	}
	return u, err
}

func (db *DB) undelivered(ctx context.Context, consumer string, limit int) (Undelivered, error) {
	return Read(ctx, db, func(tx *Tx) (undelivered Undelivered, err error) {
		err = tx.row(
			"SELECT coalesce((SELECT seq FROM _cursors WHERE consumer = ?), 0), coalesce((SELECT "+
				"max(seq) FROM _events), 0)",
			consumer,
		).Scan(&undelivered.After, &undelivered.Last)
		if err != nil || undelivered.Last <= undelivered.After {
			undelivered.Last = undelivered.After
			return undelivered, err
		}
		names, all, err := tx.subscribedEvents(consumer)
		if err != nil {
			return undelivered, err
		}
		if undelivered.NoSubscribers = !all && len(names) == 0; undelivered.NoSubscribers {
			return undelivered, nil
		}
		undelivered.Events, err = tx.eventsBehind(undelivered.After, names, all, limit)
		if undelivered.More = len(undelivered.Events) == limit; undelivered.More {
			undelivered.Last = undelivered.Events[limit-1].Seq
		}
		return undelivered, err
	})
}

func (tx *Tx) eventsBehind(after int64, names []string, any bool, limit int) ([]agent.Event, error) {
	if any {
		return all(
			tx,
			scanEvent,
			"SELECT "+eventColumns+" FROM _events WHERE seq > ? ORDER BY seq LIMIT ?",
			after,
			limit,
		)
	}
	raw, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	return all(tx, scanEvent, "SELECT "+eventColumns+` FROM _events
		WHERE seq > ? AND type IN (SELECT value FROM json_each(?)) ORDER BY seq LIMIT ?`, after, string(raw), limit)
}

// PassEvents notes that a consumer has passed the events up to seq. A cursor
// never goes back.
func (db *DB) PassEvents(ctx context.Context, consumer string, seq int64) error {
	return db.Do(ctx, func(tx *Tx) error {
		return tx.passEvents(consumer, seq)
	})
}

func (c *conn) passEvents(consumer string, seq int64) error {
	_, err := c.exec(
		"INSERT INTO _cursors VALUES (?,?) ON CONFLICT DO UPDATE SET seq = max(seq, excluded.seq)",
		consumer, seq,
	)
	return err
}

// forgetUndelivered skips the undelivered events of a copied file, because the
// original delivers them.
func (tx *Tx) forgetUndelivered() error {
	if _, err := tx.exec(
		"UPDATE _cursors SET seq = max(seq, (SELECT coalesce(max(seq), 0) FROM _events))",
	); err != nil {
		return err
	}
	if _, err := tx.exec("DELETE FROM _answers"); err != nil {
		return err
	}
	for table, where := range map[string]string{
		"_deliveries": "status = 'pending'",
		"_outgoing":   "status IN ('pending','sending')",
	} {
		if _, err := tx.exec("UPDATE " + table + ` SET status = 'failed', next_attempt_at = NULL,
			error = 'left to the agent that this one was copied from' WHERE ` + where); err != nil {
			return err
		}
	}
	return nil
}

// lastEvent selects the number of the newest event.
const lastEvent = "SELECT coalesce(max(seq), 0) FROM _events"

type chainKey struct{}

// WithChain returns a context whose writes, including those by SQL, emit events of
// this chain of executions. An execution started by an event of depth n emits events
// of depth n+1.
func WithChain(ctx context.Context, c agent.Chain) context.Context {
	return context.WithValue(ctx, chainKey{}, c)
}

// ChainOf returns the chain of executions that writes with ctx belong to.
func ChainOf(ctx context.Context) agent.Chain {
	chain, _ := ctx.Value(chainKey{}).(agent.Chain)
	return chain
}

// setChain marks the events of a write with its chain. Triggers write most events
// and do not know about chains.
const setChain = "UPDATE _events SET depth = ?, root = ? WHERE seq > ?"

// What executions start later counts along their chain.
const (
	beginChain = "INSERT OR REPLACE INTO _chains(id, root) VALUES ('', ?)"
	endChain   = "DELETE FROM _chains WHERE id = ''"
)

// ScheduledChain returns the chain that created or timed a schedule or a task. Its
// length is one, since what is scheduled is not nested in what scheduled it.
func (db *DB) ScheduledChain(ctx context.Context, id string) (agent.Chain, error) {
	return Read(ctx, db, func(tx *Tx) (c agent.Chain, err error) {
		if err := tx.value(
			&c.Root,
			"SELECT coalesce((SELECT root FROM _chains WHERE id = ?), '')",
			id,
		); err != nil || c.Root == "" {
			return c, err
		}
		c.Depth, c.Remote = 1, true
		return c, nil
	})
}

// emitAbout emits an event about a schedule or a task.
func (tx *Tx) emitAbout(id, event string, data any) error {
	if err := tx.emit(event, data); err != nil {
		return err
	}
	_, err := tx.exec(
		"UPDATE _events SET depth = 1, root = (SELECT root FROM _chains WHERE id = ?1) "+
			"WHERE seq = last_insert_rowid() AND EXISTS (SELECT 1 FROM _chains WHERE id = ?1)",
		id,
	)
	return err
}

// notReceived deletes the events that triggers write for user messages of an
// execution, such as the prompt of a chat node: they were not sent by a person,
// and must not start workflows.
const notReceived = "DELETE FROM _events WHERE seq > ? AND type = 'message.received'"

func (tx *Tx) chained(chain agent.Chain, change func() error) error {
	if chain.Depth == 0 {
		return change()
	}
	var before int64
	if err := tx.value(&before, lastEvent); err != nil {
		return err
	}
	if _, err := tx.exec(beginChain, chain.Root); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	if _, err := tx.exec(endChain); err != nil {
		return err
	}
	if !chain.Remote {
		if _, err := tx.exec(notReceived, before); err != nil {
			return err
		}
	}
	_, err := tx.exec(setChain, chain.Depth, chain.Root, before)
	return err
}
