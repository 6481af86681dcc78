package store

import (
	"context"
	"encoding/json"
	"errors"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Fields of _secrets that a subscription has.
const (
	secretField       = "secret"
	formerSecretField = "former_secret"
)

const webhookColumns = "id, url, events, active, failure_count, last_delivery_at, last_status, created_at, updated_at"

var webhookListing = listing[agent.Webhook]{listed{
	table:   "webhooks",
	columns: webhookColumns,
	order:   Order{"created_at", true},
	sort:    map[string]string{"created_at": "created_at", "updated_at": "updated_at", "url": "url"},
	search:  []string{"url", "events"},
}, scanWebhook}

func scanWebhook(rows *sqlite.Rows) (w agent.Webhook, err error) {
	var events rawJSON
	err = rows.Scan(
		&w.ID, &w.URL, &events, &w.Active, &w.FailureCount, &w.LastDeliveryAt, &w.LastStatus,
		&w.CreatedAt, &w.UpdatedAt,
	)
	if err != nil {
		return w, err
	}
	w.Events = stringsIn(events)
	return w, nil
}

// stringsIn returns the strings of a stored list, which SQL may have written, and
// skips other elements.
func stringsIn(raw rawJSON) []string {
	var values []any
	_ = json.Unmarshal(raw, &values) // the column contains a list
	texts := []string{}
	for _, v := range values {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// Webhooks lists subscriptions, newest first.
func (db *DB) Webhooks(ctx context.Context, p Page) ([]agent.Webhook, int, error) {
	return listPage(ctx, db, webhookListing, filter{}, p)
}

// Webhook reads one subscription.
func (db *DB) Webhook(ctx context.Context, id string) (agent.Webhook, error) {
	return ReadOne(ctx, db, func(tx *Tx) (agent.Webhook, error) {
		return tx.webhook(id)
	})
}

func (tx *Tx) webhook(id string) (agent.Webhook, error) {
	return one(tx, scanWebhook, "webhook", "SELECT "+webhookColumns+" FROM webhooks WHERE id = ?", id)
}

// CreateWebhook adds a subscription with its secret, which is encrypted.
func (db *DB) CreateWebhook(ctx context.Context, webhook agent.Webhook, secret string) (agent.Webhook, error) {
	if err := webhook.Validate(); err != nil {
		return webhook, err
	}
	return Write(ctx, db, func(tx *Tx) (agent.Webhook, error) {
		w := webhook
		w.ID, w.CreatedAt, w.UpdatedAt = agent.NewID(agent.KindWebhook), tx.Now, tx.Now
		var count int
		if err := tx.value(&count, "SELECT n FROM _counts WHERE name = 'webhooks'"); err != nil {
			return w, err
		}
		if count >= agent.MaxWebhooks {
			return w, agent.Errorf(
				agent.CodeConflict,
				"an agent has at most %d webhook subscriptions",
				agent.MaxWebhooks,
			).With("limit", agent.MaxWebhooks)
		}
		events, err := json.Marshal(w.Events)
		if err != nil {
			return w, err
		}
		if _, err := tx.exec(
			"INSERT INTO webhooks(id, url, events, active, created_at, updated_at) VALUES (?,?,?,?,?,?)",
			w.ID,
			w.URL,
			string(events),
			w.Active,
			tx.Now,
			tx.Now,
		); err != nil {
			return w, err
		}
		return w, errors.Join(
			tx.putSecret(w.ID, secretField, secret),
			tx.audit("webhook created", map[string]any{"webhook_id": w.ID}),
		)
	})
}

// UpdateWebhook changes the given fields of a subscription. Switching it off cancels
// its pending deliveries; switching it on clears its failures.
func (db *DB) UpdateWebhook(ctx context.Context, id string, change agent.WebhookChange) (agent.Webhook, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Webhook, error) {
		webhook, err := tx.webhook(id)
		if err != nil {
			return webhook, err
		}
		change.Apply(&webhook)
		if err := webhook.Validate(); err != nil {
			return webhook, err
		}
		events, err := json.Marshal(webhook.Events)
		if err != nil {
			return webhook, err
		}
		if _, err := tx.exec(
			"UPDATE webhooks SET url = ?, events = ?, active = ?, updated_at = ? WHERE id = ?",
			webhook.URL,
			string(events),
			webhook.Active,
			tx.Now,
			id,
		); err != nil {
			return webhook, err
		}
		if err := tx.audit("webhook updated", map[string]any{"webhook_id": id}); err != nil {
			return webhook, err
		}
		return tx.webhook(id)
	})
}

// RotateWebhookSecret gives a subscription a new secret. Until then the one
// before signs too.
func (db *DB) RotateWebhookSecret(ctx context.Context, id, secret string, until agent.Time) (agent.Webhook, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Webhook, error) {
		if _, err := tx.webhook(id); err != nil {
			return agent.Webhook{}, err
		}
		former, err := tx.secret(id, secretField)
		if err != nil && !errors.Is(err, errLocked) {
			return agent.Webhook{}, err
		}
		if _, err := tx.exec(
			"UPDATE webhooks SET previous_secret_until = ?, updated_at = ? WHERE id = ?",
			until, tx.Now, id,
		); err != nil {
			return agent.Webhook{}, err
		}
		if err := errors.Join(
			tx.putSecret(id, formerSecretField, former),
			tx.putSecret(id, secretField, secret),
			tx.audit("webhook secret rotated", map[string]any{"webhook_id": id}),
		); err != nil {
			return agent.Webhook{}, err
		}
		return tx.webhook(id)
	})
}

// DeleteWebhook removes a subscription with its deliveries.
func (db *DB) DeleteWebhook(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.deleteRow("webhooks", "webhook", id); err != nil {
			return err
		}
		return tx.audit("webhook deleted", map[string]any{"webhook_id": id})
	})
}

// WebhookSecrets decrypts the secrets that sign for a subscription at a time: the
// current one first, then the previous one while it is valid.
func (db *DB) WebhookSecrets(ctx context.Context, id string, now agent.Time) ([]string, error) {
	return Read(ctx, db, func(tx *Tx) ([]string, error) {
		return tx.webhookSecrets(id, now)
	})
}

func (tx *Tx) webhookSecrets(id string, now agent.Time) ([]string, error) {
	secret, err := tx.secret(id, secretField)
	if err != nil || secret == "" {
		return nil, err
	}
	var until agent.Time
	if err := tx.value(&until, "SELECT previous_secret_until FROM webhooks WHERE id = ?", id); err != nil {
		return nil, err
	}
	if !now.Before(until.Time) {
		return []string{secret}, nil
	}
	former, err := tx.secret(id, formerSecretField)
	if err != nil || former == "" {
		return []string{secret}, nil
	}
	return []string{secret, former}, nil
}
