package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Limits on the responses stored for clients of the Responses API.
const (
	ResponseLife     = 7 * 24 * time.Hour
	maxResponses     = 10_000
	maxResponseBytes = 64 << 20 // in total
	maxChain         = 100      // responses of one conversation that are read
	maxChainBytes    = 4 << 20
)

// Response is a stored response and its request.
type Response struct {
	ID       string
	Previous string          // the response that it continues; "" for none
	Input    json.RawMessage // the items of the request, an array
	Body     json.RawMessage // the response, an object with its items in output
}

// PutResponse stores a response and deletes those that are too old or too many.
func (db *DB) PutResponse(ctx context.Context, response Response) error {
	size := len(response.Input) + len(response.Body)
	return db.Do(ctx, func(tx *Tx) error {
		if _, err := tx.exec(
			"INSERT INTO _responses(id, previous_id, size, input, body, created_at) VALUES (?,?,?,?,?,?)",
			response.ID,
			response.Previous,
			size,
			string(response.Input),
			string(response.Body),
			tx.Now,
		); err != nil {
			return err
		}
		return tx.trimResponses()
	})
}

// trimResponses deletes responses beyond the limits, oldest first.
func (tx *Tx) trimResponses() error {
	var n, size int64
	if err := tx.value(&n, "SELECT count(*) FROM _responses"); err != nil {
		return err
	}
	if err := tx.value(&size, "SELECT coalesce(sum(size), 0) FROM _responses"); err != nil {
		return err
	}
	if n > maxResponses || size > maxResponseBytes {
		_, err := tx.exec(`DELETE FROM _responses WHERE id IN (SELECT id FROM (
			SELECT id, row_number() OVER newest AS n, sum(size) OVER newest AS total FROM _responses WINDOW newest AS (ORDER BY created_at DESC, id DESC))
			WHERE n > ? OR total > ?)`, maxResponses, maxResponseBytes)
		return err
	}
	return nil
}

func scanResponse(rows *sqlite.Rows) (r Response, err error) {
	var input, body rawJSON
	err = rows.Scan(&r.ID, &r.Previous, &input, &body)
	r.Input, r.Body = json.RawMessage(input), json.RawMessage(body)
	return r, err
}

// Response reads a stored response.
func (db *DB) Response(ctx context.Context, id string) (Response, error) {
	return Read(ctx, db, func(tx *Tx) (Response, error) {
		found, err := all(
			tx,
			scanResponse,
			"SELECT id, previous_id, input, body FROM _responses WHERE id = ? AND created_at > ?",
			id,
			agent.At(tx.Now.Add(-ResponseLife)),
		)
		if err == nil && len(found) == 0 {
			err = agent.NotFound("response", id)
		}
		if err != nil {
			return Response{}, err
		}
		return found[0], nil
	})
}

// ResponseChain reads a response and those that it continues, oldest first: as many
// as are still stored, at most 100 and 4 MB. whole is false if there are more.
func (db *DB) ResponseChain(ctx context.Context, id string) (chain []Response, whole bool, err error) {
	size := 0
	for next := id; ; {
		r, err := db.Response(ctx, next)
		if agent.ErrorCode(err) == agent.CodeNotFound && len(chain) > 0 {
			break
		}
		if err != nil {
			return nil, false, err
		}
		if size += len(r.Input) + len(r.Body); len(chain) > 0 && (size > maxChainBytes || len(chain) == maxChain) {
			break
		}
		chain = append(chain, r)
		if next = r.Previous; next == "" {
			whole = true
			break
		}
	}
	slices.Reverse(chain)
	return chain, whole, nil
}

// DeleteResponse deletes a stored response.
func (db *DB) DeleteResponse(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		return tx.deleteRow("_responses", "response", id)
	})
}
