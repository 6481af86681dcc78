package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"satchel/agent"
	"satchel/store/sqlite"
)

// MaxPending limits the deliveries waiting for one subscription. Further ones fail
// immediately and can be delivered manually.
const MaxPending = 10_000

const deliveryColumns = "id, event, event_id, webhook_id, attempt, status, response_status, duration_ms, error, " +
	"next_attempt_at, created_at"

var deliveryListing = listing[agent.Delivery]{listed{
	table:   "_deliveries",
	columns: deliveryColumns,
	order:   Order{"created_at", true},
	sort:    map[string]string{"created_at": "id"}, // ids sort by time
	search:  []string{"event", "error"},
}, scanDelivery}

func scanDelivery(rows *sqlite.Rows) (d agent.Delivery, err error) {
	return d, rows.Scan(
		&d.ID, &d.Event, &d.EventID, &d.WebhookID, &d.Attempt, &d.Status, &d.ResponseStatus, &d.DurationMS, &d.Error,
		&d.NextAttemptAt, &d.CreatedAt,
	)
}

// Deliveries lists the deliveries of a subscription in any of the given states,
// newest first.
func (db *DB) Deliveries(
	ctx context.Context,
	webhookID string,
	states []string,
	p Page,
) ([]agent.Delivery, int, error) {
	var total int
	page, err := Read(ctx, db, func(tx *Tx) (page []agent.Delivery, err error) {
		if _, err := tx.webhook(webhookID); err != nil {
			return nil, err
		}
		var f filter
		f.in("webhook_id", webhookID)
		f.in("status", states...)
		page, total, err = deliveryListing.list(tx, f, p)
		return page, err
	})
	return page, total, err
}

// AllDeliveries lists the deliveries of all or the given subscriptions, newest
// first, in any of the given states.
func (db *DB) AllDeliveries(ctx context.Context, webhookIDs, states []string, p Page) ([]agent.Delivery, int, error) {
	var f filter
	f.add("true") // _counts has no row for them
	f.in("webhook_id", webhookIDs...)
	f.in("status", states...)
	return listPage(ctx, db, deliveryListing, f, p)
}

// Delivery reads one delivery with the body that is posted.
func (db *DB) Delivery(ctx context.Context, webhookID, id string) (d agent.Delivery, body []byte, err error) {
	d, err = Read(ctx, db, func(tx *Tx) (agent.Delivery, error) {
		d, err := tx.delivery(webhookID, id)
		if err != nil {
			return d, err
		}
		var text string
		err = tx.value(&text, "SELECT body FROM _deliveries WHERE id = ?", id)
		body = []byte(text)
		return d, err
	})
	return d, body, err
}

func (tx *Tx) delivery(webhookID, id string) (agent.Delivery, error) {
	found, err := all(
		tx,
		scanDelivery,
		"SELECT "+deliveryColumns+" FROM _deliveries WHERE id = ? AND webhook_id = ?",
		id,
		webhookID,
	)
	if err != nil {
		return agent.Delivery{}, err
	}
	if len(found) == 0 {
		return agent.Delivery{}, agent.NotFound("delivery", id)
	}
	return found[0], nil
}

// EnqueueDeliveries creates a delivery, due immediately, of each event for each
// active subscription that wants it and was active when it happened. Events that
// already have deliveries get no others. It returns how many it created.
func (db *DB) EnqueueDeliveries(ctx context.Context, events []agent.Event, now agent.Time) (int, error) {
	wanted, err := Read(ctx, db, func(tx *Tx) ([]pendingDelivery, error) {
		return tx.pendingDeliveries(events)
	})
	if err != nil || len(wanted) == 0 {
		return 0, err
	}
	return Write(ctx, db, func(tx *Tx) (int, error) {
		wanted, err := tx.pendingDeliveries(events) // a subscription may have been switched off since
		made := 0
		for i := 0; err == nil && i < len(wanted); i++ {
			var n int
			n, err = tx.enqueue(wanted[i], now)
			made += n
		}
		return made, err
	})
}

// pendingDelivery holds the events that a subscription is to receive.
type pendingDelivery struct {
	webhookID string
	events    []agent.Event
}

func (tx *Tx) pendingDeliveries(events []agent.Event) ([]pendingDelivery, error) {
	type candidate struct {
		agent.Webhook
		since int64
	}
	webhooks, err := all(tx, func(rows *sqlite.Rows) (c candidate, err error) {
		var patterns rawJSON
		if err := rows.Scan(&c.ID, &patterns, &c.since); err != nil {
			return c, err
		}
		c.Events = stringsIn(patterns)
		return c, nil
	}, "SELECT id, events, since_seq FROM webhooks WHERE active = 1 ORDER BY id LIMIT ?", agent.MaxWebhooks)
	if err != nil {
		return nil, err
	}
	var wanted []pendingDelivery
	for _, w := range webhooks {
		x := pendingDelivery{webhookID: w.ID}
		for _, e := range events {
			if e.Seq > w.since && w.Wants(e.Type) {
				x.events = append(x.events, e)
			}
		}
		if len(x.events) > 0 {
			wanted = append(wanted, x)
		}
	}
	return wanted, nil
}

// enqueue creates the deliveries of one subscription.
func (tx *Tx) enqueue(delivery pendingDelivery, now agent.Time) (int, error) {
	var waiting int
	if err := tx.value(
		&waiting,
		"SELECT count(*) FROM _deliveries WHERE webhook_id = ? AND status = 'pending'",
		delivery.webhookID,
	); err != nil {
		return 0, err
	}
	made := 0
	for _, event := range delivery.events {
		d := agent.Delivery{
			ID:            agent.NewID(agent.KindDelivery),
			Event:         event.Type,
			EventID:       event.ID,
			WebhookID:     delivery.webhookID,
			Status:        agent.DeliveryPending,
			NextAttemptAt: now,
			CreatedAt:     now,
		}
		if waiting+made >= MaxPending {
			d.Status, d.NextAttemptAt = agent.DeliveryFailed, agent.Time{}
			d.Error = fmt.Sprintf("%d deliveries were waiting already", MaxPending)
		}
		body, err := EventBody(event, tx.db.id)
		if err != nil {
			return made, err
		}
		done, err := tx.insertDelivery(d, body, event.Chain())
		if err != nil {
			return made, err
		}
		if done.Changes > 0 && d.Status == agent.DeliveryPending {
			made++
		}
	}
	return made, nil
}

// EventBody returns the JSON body in which an event is delivered.
func EventBody(e agent.Event, agentID string) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e.Envelope(agentID)); err != nil {
		return nil, fmt.Errorf("event %s: %w", e.ID, err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

func (tx *Tx) insertDelivery(d agent.Delivery, body []byte, chain agent.Chain) (sqlite.Result, error) {
	return tx.exec(
		`INSERT INTO _deliveries(`+deliveryColumns+
			`, body, depth, root) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (webhook_id, event_id) DO NOTHING`,
		d.ID, d.Event, d.EventID, d.WebhookID, d.Attempt, d.Status, d.ResponseStatus, d.DurationMS, d.Error,
		d.NextAttemptAt, d.CreatedAt, string(body), chain.Depth, chain.Root,
	)
}

// NoteDelivery stores a delivery that was attempted outside the queue.
func (db *DB) NoteDelivery(ctx context.Context, d agent.Delivery, body []byte) error {
	return db.Do(ctx, func(tx *Tx) error {
		_, err := tx.insertDelivery(d, body, agent.Chain{})
		return errors.Join(err, tx.audit("webhook tested", map[string]any{"webhook_id": d.WebhookID}))
	})
}

// Due lists the deliveries of one subscription that are due, in that order.
type Due struct {
	WebhookID string
	URL       string
	IDs       []string
}

// DueDeliveries returns the deliveries that are due at now, at most limit per
// subscription and one per subscription whose last attempt failed, and when the
// next one after now is due; zero for never.
func (db *DB) DueDeliveries(ctx context.Context, now agent.Time, limit int) (due []Due, next agent.Time, err error) {
	due, err = Read(ctx, db, func(tx *Tx) ([]Due, error) {
		if err := tx.value(
			&next,
			"SELECT min(next_attempt_at) FROM _deliveries WHERE status = 'pending' AND next_attempt_at > ?",
			now,
		); err != nil {
			return nil, err
		}
		due, err := all(
			tx,
			func(rows *sqlite.Rows) (d Due, err error) {
				return d, rows.Scan(&d.WebhookID, &d.URL)
			},
			`SELECT id, url FROM webhooks w WHERE EXISTS (SELECT 1 FROM _deliveries d
				WHERE d.webhook_id = w.id AND d.status = 'pending' AND d.next_attempt_at <= ?)`,
			now,
		)
		if err != nil {
			return nil, err
		}
		for index := range due {
			due[index].IDs, err = all(
				tx,
				func(rows *sqlite.Rows) (id string, err error) {
					return id, rows.Scan(&id)
				},
				`SELECT id FROM _deliveries
				WHERE webhook_id = ? AND status = 'pending' AND next_attempt_at <= ? ORDER BY next_attempt_at, id
				LIMIT iif((SELECT failure_count FROM webhooks WHERE id = ?1) > 0, 1, ?)`,
				due[index].WebhookID,
				now,
				limit,
			)
			if err != nil {
				return nil, err
			}
		}
		return due, nil
	})
	return due, next, err
}

// Outgoing is a delivery with everything needed for an attempt.
type Outgoing struct {
	agent.Delivery
	URL     string
	Failing bool     // the last attempt for this subscription failed
	Secrets []string // to sign with; none: missing, or encrypted with another master key
	Body    []byte
	Chain   agent.Chain // of the executions that led to the event
}

// Outgoing reads a delivery to attempt at now; nil if it is not due.
func (db *DB) Outgoing(ctx context.Context, id string, now agent.Time) (*Outgoing, error) {
	return Read(ctx, db, func(tx *Tx) (*Outgoing, error) {
		found, err := all(tx, func(rows *sqlite.Rows) (o *Outgoing, err error) {
			o = &Outgoing{}
			return o, rows.Scan(
				&o.ID, &o.WebhookID, &o.Event, &o.EventID, &o.Attempt, (*rawJSON)(&o.Body), &o.Chain.Depth,
				&o.Chain.Root, &o.URL, &o.Failing,
			)
		}, `SELECT d.id, d.webhook_id, d.event, d.event_id, d.attempt, d.body, d.depth, d.root, w.url, w.failure_count > 0 FROM _deliveries d JOIN webhooks w ON w.id = d.webhook_id
			WHERE d.id = ? AND d.status = 'pending' AND d.next_attempt_at <= ?`, id, now)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		o := found[0]
		if o.Secrets, err = tx.webhookSecrets(o.WebhookID, now); err != nil && !errors.Is(err, errLocked) {
			return nil, err
		}
		return o, nil
	})
}

// Attempt is the outcome of one attempt of a delivery.
type Attempt struct {
	DeliveryID, WebhookID string
	At                    agent.Time
	Status                int // of HTTP; 0 without a response
	Duration              time.Duration
	Error                 string     // empty: delivered
	Next                  agent.Time // time of the next attempt; zero for none
	TargetGone            bool       // the target wants no more deliveries
}

// EndAttempt stores the outcome of an attempt. A subscription whose target no
// longer exists is switched off, and so is one if a delivery has used up its
// attempts and no other has succeeded since it was created. Deliveries that
// become due are not announced: the caller looks for them.
func (db *DB) EndAttempt(ctx context.Context, attempt Attempt) (off bool, err error) {
	return Write(ctx, db, func(tx *Tx) (bool, error) {
		tx.claimWork(workDeliveries)
		var status *int
		if attempt.Status != 0 {
			status = &attempt.Status
		}
		state := agent.DeliveryDelivered
		switch {
		case attempt.Error == "":
			attempt.Next = agent.Time{}
		case attempt.Next.IsZero():
			state = agent.DeliveryFailed
		default:
			state = agent.DeliveryPending
		}
		done, err := tx.exec(`UPDATE _deliveries SET attempt = attempt + 1, status = ?, response_status = ?, duration_ms = ?, error = ?, next_attempt_at = ?
			WHERE id = ? AND (status = 'pending' OR ?2 = 'delivered')`, state, status, attempt.Duration.Milliseconds(), attempt.Error, attempt.Next, attempt.DeliveryID)
		if err != nil {
			return false, err
		}
		if done.Changes == 0 {
			return false, err // deleted or switched off in the meantime
		}
		return tx.noteAttempt(attempt, status, state)
	})
}

// noteAttempt updates the subscription's own record of its deliveries.
func (tx *Tx) noteAttempt(attempt Attempt, status *int, state agent.DeliveryStatus) (off bool, err error) {
	if state == agent.DeliveryDelivered {
		_, err := tx.exec(
			"UPDATE webhooks SET failure_count = 0, last_delivery_at = ?1, last_success_at = ?1, "+
				"last_status = ?2 WHERE id = ?3",
			attempt.At,
			status,
			attempt.WebhookID,
		)
		return false, err
	}
	if _, err := tx.exec(
		"UPDATE webhooks SET failure_count = failure_count + 1, last_delivery_at = ?, last_status = ? WHERE id = ?",
		attempt.At, status, attempt.WebhookID,
	); err != nil {
		return false, err
	}
	if !attempt.TargetGone && state == agent.DeliveryPending {
		return false, nil
	}
	done, err := tx.exec(`UPDATE webhooks SET active = 0, updated_at = ? WHERE id = ? AND active = 1
		AND (? OR coalesce(last_success_at, '') < (SELECT created_at FROM _deliveries WHERE id = ?))`, tx.Now, attempt.WebhookID, attempt.TargetGone, attempt.DeliveryID)
	if err != nil {
		return false, err
	}
	if done.Changes == 0 {
		return false, nil
	}
	why := "all tries of a delivery failed"
	if attempt.TargetGone {
		why = "its target is gone"
	}
	return true, tx.log(agent.LevelWarn, "webhooks", "a subscription was switched off: "+why, map[string]any{
		"webhook_id": attempt.WebhookID,
	})
}

// Redeliver makes a delivery due again, with a full number of attempts and under the
// same webhook-id. The subscription must be active.
func (db *DB) Redeliver(ctx context.Context, webhookID, id string, now agent.Time) (agent.Delivery, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Delivery, error) {
		webhook, err := tx.webhook(webhookID)
		if err != nil {
			return agent.Delivery{}, err
		}
		if _, err := tx.delivery(webhookID, id); err != nil {
			return agent.Delivery{}, err
		}
		if !webhook.Active {
			return agent.Delivery{}, agent.Errorf(
				agent.CodeConflict,
				"this subscription is switched off; set active to true first",
			)
		}
		if _, err := tx.exec(
			`UPDATE _deliveries SET attempt = iif(status = 'pending', attempt, 0), status = 'pending', `+
				`next_attempt_at = ? WHERE id = ?`,
			now,
			id,
		); err != nil {
			return agent.Delivery{}, err
		}
		if err := tx.audit("webhook delivery repeated", map[string]any{
			"webhook_id":  webhookID,
			"delivery_id": id,
		}); err != nil {
			return agent.Delivery{}, err
		}
		return tx.delivery(webhookID, id)
	})
}
