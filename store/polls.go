package store

import (
	"context"
	"errors"
	"time"

	"satchel/agent"
	"satchel/store/sqlite"
)

// isPolling selects the gateways that poll their platform, because the platform cannot
// reach this server.
const isPolling = "type = 'chatbot_a' AND status = 'active' AND webhook_base = ''"

// PolledGateways lists the ids of the gateways that poll their platform, on a
// server that platforms cannot reach.
func (db *DB) PolledGateways(ctx context.Context) ([]string, error) {
	return Read(ctx, db, func(tx *Tx) ([]string, error) {
		return all(
			tx,
			func(rows *sqlite.Rows) (id string, err error) {
				return id, rows.Scan(&id)
			},
			"SELECT id FROM gateways WHERE "+isPolling+" ORDER BY id",
		)
	})
}

// pollMemory is how long the position of a gateway's last poll is used: after a week
// without updates, Telegram numbers them anew. Updates that are received twice then
// have no effect.
const pollMemory = 6 * 24 * time.Hour

// PollFrom opens a gateway and returns the position of its next poll, as stored by
// ReceiveInbound; 0 means from the beginning. ok is false if the gateway does not
// exist or must not poll.
func (db *DB) PollFrom(ctx context.Context, id string) (gateway OpenGateway, next int64, ok bool, err error) {
	gateway, err = Read(ctx, db, func(tx *Tx) (OpenGateway, error) {
		if err := tx.value(
			&ok,
			"SELECT EXISTS (SELECT 1 FROM gateways WHERE id = ? AND "+isPolling+")",
			id,
		); err != nil || !ok {
			return OpenGateway{}, err
		}
		if err := tx.value(
			&next,
			"SELECT next FROM _polls WHERE gateway_id = ? AND at > ?",
			id,
			agent.At(tx.Now.Add(-pollMemory)),
		); err != nil && !errors.Is(err, sqlite.ErrNoRows) {
			return OpenGateway{}, err
		}
		return tx.openGateway(id)
	})
	return gateway, next, ok && err == nil, err
}
