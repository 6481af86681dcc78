package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"satchel/agent"
	"satchel/store/sqlite"
)

const sessionColumns = "id, status, headless, viewport, persist, error, created_at, " +
	"last_activity, closed_at, url, title"

var sessionListing = listing[agent.Session]{listed{
	table:   "sessions",
	columns: sessionColumns,
	order:   Order{"created_at", true},
	sort:    map[string]string{"created_at": "created_at", "last_activity": "last_activity", "status": "status"},
	search:  []string{"id", "url", "title"},
}, scanSession}

func scanSession(rows *sqlite.Rows) (s agent.Session, err error) {
	var viewport []byte
	if err := rows.Scan(
		&s.ID, &s.Status, &s.Headless, &viewport, &s.Persist, &s.Error, &s.CreatedAt, &s.LastActivity, &s.ClosedAt,
		&s.URL, &s.Title,
	); err != nil {
		return s, err
	}
	return s, json.Unmarshal(viewport, &s.Viewport)
}

// Sessions lists browser sessions, newest first: those that are open, and those
// that ended within the last 30 days.
func (db *DB) Sessions(ctx context.Context, p Page) ([]agent.Session, int, error) {
	var f filter
	f.add("(closed_at IS NULL OR closed_at > ?)", agent.At(agent.Now().Add(-agent.SessionKept)))
	return listPage(ctx, db, sessionListing, f, p)
}

// Session reads one browser session.
func (db *DB) Session(ctx context.Context, id string) (agent.Session, error) {
	return Read(ctx, db, func(tx *Tx) (agent.Session, error) {
		found, err := all(tx, scanSession, "SELECT "+sessionColumns+" FROM sessions WHERE id = ?", id)
		if err != nil {
			return agent.Session{}, err
		}
		if len(found) == 0 || found[0].Status.Ended() && tx.Now.Sub(found[0].ClosedAt.Time) > agent.SessionKept {
			return agent.Session{}, agent.NotFound("session", id)
		}
		return found[0], nil
	})
}

// CreateSession writes the row of a session that was opened. Rows of sessions that
// ended long ago, or are too many, are deleted.
func (db *DB) CreateSession(ctx context.Context, session agent.Session) error {
	viewport, err := json.Marshal(session.Viewport)
	if err != nil {
		return err
	}
	return db.Do(ctx, func(tx *Tx) error {
		if _, err := tx.exec(
			`DELETE FROM sessions WHERE closed_at < ? OR closed_at IS NOT NULL AND id NOT IN
				(SELECT id FROM sessions WHERE closed_at IS NOT NULL ORDER BY closed_at DESC LIMIT ?)`,
			agent.At(tx.Now.Add(-agent.SessionKept)),
			agent.MaxEndedSessions,
		); err != nil {
			return err
		}
		if _, err := tx.exec(
			"INSERT INTO sessions("+sessionColumns+") VALUES (?,?,?,?,?,?,?,?,?,?,?)", session.ID,
			session.Status, session.Headless, string(viewport), session.Persist, session.Error, session.CreatedAt,
			session.LastActivity, nil, session.URL, session.Title,
		); err != nil {
			return err
		}
		return tx.audit("browser session opened", map[string]any{"session_id": session.ID})
	})
}

// NoteSession stores the state of an open session. One that has ended or been
// deleted is not changed.
func (db *DB) NoteSession(ctx context.Context, id string, status agent.SessionStatus, lastActivity agent.Time) error {
	_, err := Write(ctx, db, func(tx *Tx) (sqlite.Result, error) {
		return tx.exec(
			"UPDATE sessions SET status = ?, last_activity = ? WHERE id = ? AND closed_at IS NULL",
			status, lastActivity, id,
		)
	})
	return err
}

// SessionEnd is what remains of a session: why it failed, "" if it did not, and what
// its active tab showed, if known.
type SessionEnd struct {
	Problem, URL, Title string
	Thumbnail           []byte // JPEG
}

// EndSession records that a session has ended.
func (db *DB) EndSession(ctx context.Context, id string, end SessionEnd) error {
	status := agent.SessionClosed
	if end.Problem != "" {
		status = agent.SessionFailed
	}
	return db.Do(ctx, func(tx *Tx) error {
		if _, err := tx.exec(`UPDATE sessions SET status = ?, error = ?, closed_at = ?, url = iif(? <> '', ?, url), title = iif(? <> '', ?, title)
				WHERE id = ? AND closed_at IS NULL`, status, end.Problem, tx.Now, end.URL, end.URL, end.URL, end.Title, id); err != nil {
			return err
		}
		if len(end.Thumbnail) > 0 {
			if _, err := tx.exec(
				"INSERT OR REPLACE INTO _thumbnails(session_id, image) SELECT id, ? FROM sessions WHERE id = ?",
				end.Thumbnail, id,
			); err != nil {
				return err
			}
		}
		reason := "the session was closed"
		if end.Problem != "" {
			reason = "the session ended: " + end.Problem
		}
		return errors.Join(tx.endApprovals(id), tx.endBrowses(id, reason))
	})
}

// endApprovals makes approvals that wait for a takeover of an ended session due
// immediately.
func (tx *Tx) endApprovals(sessionID string) error {
	_, err := tx.exec(
		"UPDATE _waits SET due_at = ? WHERE kind = ? AND child_id IN (SELECT id FROM takeovers "+
			"WHERE session_id = ? AND status = ?)",
		tx.Now,
		string(WaitApproval),
		sessionID,
		agent.TakeoverCancelled,
	)
	return err
}

// EndLostSessions ends the sessions that are open according to their rows but
// unknown to live: those of a server that was killed.
func (db *DB) EndLostSessions(ctx context.Context, live func(id string) bool, problem string) error {
	return db.Do(ctx, func(tx *Tx) error {
		open, err := all(
			tx,
			func(rows *sqlite.Rows) (id string, err error) {
				return id, rows.Scan(&id)
			},
			"SELECT id FROM sessions WHERE closed_at IS NULL",
		)
		if err != nil {
			return err
		}
		for _, id := range open {
			if live(id) {
				continue
			}
			if _, err := tx.exec(
				"UPDATE sessions SET status = ?, error = ?, closed_at = ? WHERE id = ?",
				agent.SessionFailed, problem, tx.Now, id,
			); err != nil {
				return err
			}
			if err := errors.Join(tx.endApprovals(id), tx.endBrowses(id, problem)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Thumbnail returns the last picture of a session that has ended; NOT_FOUND if there
// is none.
func (db *DB) Thumbnail(ctx context.Context, id string) ([]byte, error) {
	return Read(ctx, db, func(tx *Tx) ([]byte, error) {
		found, err := all(
			tx,
			func(rows *sqlite.Rows) (image []byte, err error) {
				return image, rows.Scan(&image)
			},
			"SELECT image FROM _thumbnails WHERE session_id = ?",
			id,
		)
		if err == nil && len(found) == 0 {
			return nil, agent.NotFound("thumbnail", id)
		}
		return slices.Concat(found...), err
	})
}

// LogAction adds an action and the resulting address to the log of a session,
// which keeps the newest ones. A session that no longer exists is ignored.
func (db *DB) LogAction(ctx context.Context, id string, action agent.SessionAction, title string) error {
	_, err := Write(ctx, db, func(tx *Tx) (sqlite.Result, error) {
		if _, err := tx.exec(
			"UPDATE sessions SET url = ?, title = ? WHERE id = ? AND closed_at IS NULL AND (url, title) <> (?, ?)",
			action.URL, title, id, action.URL, title,
		); err != nil {
			return sqlite.Result{}, err
		}
		if _, err := tx.exec(
			"INSERT INTO session_actions(session_id, action, input, url, duration_ms, error, created_at) "+
				"SELECT id, ?, ?, ?, ?, ?, ? FROM sessions WHERE id = ?",
			action.Action,
			string(action.Input),
			action.URL, action.DurationMS, action.Error, action.CreatedAt, id,
		); err != nil {
			return sqlite.Result{}, err
		}
		return tx.exec(`DELETE FROM session_actions WHERE session_id = ? AND seq <=
			(SELECT seq FROM session_actions WHERE session_id = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)`, id, id, agent.MaxSessionActions)
	})
	return err
}

var actionListing = listing[agent.SessionAction]{listed{
	table:   "session_actions",
	columns: "seq, action, input, url, duration_ms, error, created_at",
	key:     "seq",
	order:   Order{"seq", true},
	sort:    map[string]string{"seq": "seq", "duration_ms": "duration_ms"},
	search:  []string{"action", "url", "error"},
}, func(rows *sqlite.Rows) (a agent.SessionAction, err error) {
	var input string
	err = rows.Scan(&a.Seq, &a.Action, &input, &a.URL, &a.DurationMS, &a.Error, &a.CreatedAt)
	a.Input = json.RawMessage(input)
	return a, err
}}

// SessionActions lists what was done in a session, newest first.
func (db *DB) SessionActions(ctx context.Context, id string, p Page) ([]agent.SessionAction, int, error) {
	var f filter
	f.in("session_id", id)
	return listPage(ctx, db, actionListing, f, p)
}

// DeleteSession removes the row of a session.
func (db *DB) DeleteSession(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.deleteRow("sessions", "session", id); err != nil {
			return err
		}
		return tx.audit("browser session closed", map[string]any{"session_id": id})
	})
}

// The owner and field of _secrets for a browser's encrypted cookies and storage.
const (
	browserOwner = "browser"
	browserField = "state"
)

// BrowserState decrypts the cookies and storage that the agent's last persistent
// session left; "" if there are none. locked reports that they were encrypted with
// another master key.
func (db *DB) BrowserState(ctx context.Context) (state string, locked bool, err error) {
	state, err = Read(ctx, db, func(tx *Tx) (string, error) {
		return tx.secret(browserOwner, browserField)
	})
	if errors.Is(err, errLocked) {
		return "", true, nil
	}
	return state, false, err
}

// SetBrowserState encrypts and stores the cookies and storage of a session; ""
// deletes them.
func (db *DB) SetBrowserState(ctx context.Context, state string) error {
	return db.Do(ctx, func(tx *Tx) error {
		return tx.putSecret(browserOwner, browserField, state)
	})
}
