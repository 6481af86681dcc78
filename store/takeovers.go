package store

import (
	"context"

	"satchel/agent"
	"satchel/store/sqlite"
)

const takeoverColumns = "id, session_id, status, reason, timeout, created_at, expires_at, started_at, ended_at, note"

func scanTakeover(rows *sqlite.Rows) (t agent.Takeover, err error) {
	return t, rows.Scan(
		&t.ID, &t.SessionID, &t.Status, &t.Reason, &t.Timeout, &t.CreatedAt, &t.ExpiresAt, &t.StartedAt, &t.EndedAt,
		&t.Note,
	)
}

func (tx *Tx) takeover(sessionID, id string) (agent.Takeover, error) {
	found, err := all(
		tx,
		scanTakeover,
		"SELECT "+takeoverColumns+" FROM takeovers WHERE id = ? AND session_id = ?",
		id,
		sessionID,
	)
	if err != nil {
		return agent.Takeover{}, err
	}
	if len(found) == 0 {
		return agent.Takeover{}, agent.NotFound("takeover", id)
	}
	return found[0], nil
}

// Takeover reads a takeover of a session.
func (db *DB) Takeover(ctx context.Context, sessionID, id string) (agent.Takeover, error) {
	return ReadOne(ctx, db, func(tx *Tx) (agent.Takeover, error) {
		return tx.takeover(sessionID, id)
	})
}

// TakeoverCompleted reports whether a person has completed a takeover.
func (db *DB) TakeoverCompleted(ctx context.Context, id string) (bool, error) {
	return Read(ctx, db, func(tx *Tx) (done bool, err error) {
		return done, tx.value(
			&done,
			"SELECT EXISTS (SELECT 1 FROM takeovers WHERE id = ? AND status = ?)",
			id, agent.TakeoverCompleted,
		)
	})
}

// CreateTakeover creates a pending takeover of an open session and emits its event,
// which has a reference to the link for the person to open. If another takeover is open, the
// error is CONFLICT with that one's id.
func (db *DB) CreateTakeover(ctx context.Context, takeover agent.Takeover) (agent.Takeover, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Takeover, error) {
		open, err := all(
			tx,
			scanTakeover,
			"SELECT "+takeoverColumns+" FROM takeovers WHERE session_id = ? AND ended_at IS NULL",
			takeover.SessionID,
		)
		if err != nil {
			return takeover, err
		}
		if len(open) > 0 {
			return takeover, agent.Errorf(
				agent.CodeConflict,
				"the session already has an open takeover",
			).With("existing_id", open[0].ID)
		}
		if _, err := tx.exec(
			"INSERT INTO takeovers("+takeoverColumns+") VALUES (?,?,?,?,?,?,?,NULL,NULL,'')",
			takeover.ID, takeover.SessionID, agent.TakeoverPending, takeover.Reason, takeover.Timeout,
			takeover.CreatedAt, takeover.ExpiresAt,
		); err != nil {
			return takeover, err
		}
		takeover.Status, takeover.TakeoverURL = agent.TakeoverPending, ""
		if err := tx.emit(agent.EventTakeoverRequested, map[string]any{"takeover": requested(takeover)}); err != nil {
			return takeover, err
		}
		return takeover, tx.audit("takeover requested", map[string]any{
			"session_id":  takeover.SessionID,
			"takeover_id": takeover.ID,
		})
	})
}

// takeoverEvents are the events for each status.
var takeoverEvents = map[agent.TakeoverStatus]string{
	agent.TakeoverCompleted: agent.EventTakeoverCompleted,
	agent.TakeoverExpired:   agent.EventTakeoverExpired,
}

// OpenTakeover returns the open takeover of a session, or nil.
func (db *DB) OpenTakeover(ctx context.Context, sessionID string) (*agent.Takeover, error) {
	return Read(ctx, db, func(tx *Tx) (*agent.Takeover, error) {
		open, err := all(
			tx,
			scanTakeover,
			"SELECT "+takeoverColumns+" FROM takeovers WHERE session_id = ? AND ended_at IS NULL",
			sessionID,
		)
		if err != nil || len(open) == 0 {
			return nil, err
		}
		return &open[0], nil
	})
}

// NoteTakeover stores a person's note on an open takeover.
func (db *DB) NoteTakeover(ctx context.Context, sessionID, id, note string) error {
	_, err := Write(ctx, db, func(tx *Tx) (sqlite.Result, error) {
		return tx.exec(
			"UPDATE takeovers SET note = ? WHERE id = ? AND session_id = ? AND ended_at IS NULL",
			note, id, sessionID,
		)
	})
	return err
}

// MoveTakeover changes the status of an open takeover and emits the event. If it has
// ended, the error is CONFLICT; if it is already active, nothing changes.
func (db *DB) MoveTakeover(ctx context.Context, sessionID, id string, to agent.TakeoverStatus) (agent.Takeover, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Takeover, error) {
		takeover, err := tx.takeover(sessionID, id)
		if err != nil || takeover.Status == to && to == agent.TakeoverActive {
			return takeover, err
		}
		if !takeover.Status.Open() {
			return takeover, agent.Errorf(
				agent.CodeConflict,
				"the takeover has ended: it is %s",
				takeover.Status,
			).With("status", takeover.Status)
		}
		takeover.Status = to
		if to == agent.TakeoverActive {
			takeover.StartedAt = tx.Now
		} else {
			takeover.EndedAt = tx.Now
		}
		if _, err := tx.exec(
			"UPDATE takeovers SET status = ?, started_at = ?, ended_at = ? WHERE id = ?",
			takeover.Status, takeover.StartedAt, takeover.EndedAt, id,
		); err != nil {
			return takeover, err
		}
		if event := takeoverEvents[to]; event != "" {
			if err := tx.emit(event, map[string]any{"takeover": takeover}); err != nil {
				return takeover, err
			}
		}
		return takeover, tx.audit("takeover "+string(to), map[string]any{"session_id": sessionID, "takeover_id": id})
	})
}
