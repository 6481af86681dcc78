package store

import (
	"context"
	"encoding/json"
	"errors"

	"satchel/agent"
	"satchel/store/sqlite"
)

const sessionColumns = "id, status, headless, viewport, persist, error, created_at, last_activity, closed_at"

var sessionListing = listing[agent.Session]{
	table:   "sessions",
	columns: sessionColumns,
	order:   "created_at DESC, id DESC",
	sort:    map[string]string{"created_at": "created_at", "last_activity": "last_activity", "status": "status"},
	search:  []string{"id"},
	scan:    scanSession,
}

func scanSession(rows *sqlite.Rows) (s agent.Session, err error) {
	var viewport []byte
	if err := rows.Scan(&s.ID, &s.Status, &s.Headless, &viewport, &s.Persist, &s.Error, &s.CreatedAt, &s.LastActivity, &s.ClosedAt); err != nil {
		return s, err
	}
	return s, json.Unmarshal(viewport, &s.Viewport)
}

// Sessions lists browser sessions, newest first: those that are open, and those
// that ended by themselves within the last hour.
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

// CreateSession writes the row of a session that was opened; rows of sessions
// that ended more than an hour ago go.
func (db *DB) CreateSession(ctx context.Context, s agent.Session) error {
	viewport, err := json.Marshal(s.Viewport)
	if err != nil {
		return err
	}
	_, err = Write(ctx, db, func(tx *Tx) (struct{}, error) {
		if _, err := tx.exec("DELETE FROM sessions WHERE closed_at < ?", agent.At(tx.Now.Add(-agent.SessionKept))); err != nil {
			return struct{}{}, err
		}
		if _, err := tx.exec("INSERT INTO sessions("+sessionColumns+") VALUES (?,?,?,?,?,?,?,?,?)", s.ID, s.Status, s.Headless,
			string(viewport), s.Persist, s.Error, s.CreatedAt, s.LastActivity, nil); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, tx.audit("browser session opened", map[string]any{"session_id": s.ID})
	})
	return err
}

// NoteSession stores the state of an open session. One that has ended or is
// gone stays as it is.
func (db *DB) NoteSession(ctx context.Context, id string, status agent.SessionStatus, lastActivity agent.Time) error {
	_, err := Write(ctx, db, func(tx *Tx) (sqlite.Result, error) {
		return tx.exec("UPDATE sessions SET status = ?, last_activity = ? WHERE id = ? AND closed_at IS NULL", status, lastActivity, id)
	})
	return err
}

// EndSession stores that a session has ended; problem says why it broke, ""
// when it did not.
func (db *DB) EndSession(ctx context.Context, id string, problem string) error {
	status := agent.SessionClosed
	if problem != "" {
		status = agent.SessionFailed
	}
	_, err := Write(ctx, db, func(tx *Tx) (struct{}, error) {
		if _, err := tx.exec("UPDATE sessions SET status = ?, error = ?, closed_at = ? WHERE id = ? AND closed_at IS NULL", status, problem, tx.Now, id); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, tx.endApprovals(id)
	})
	return err
}

// endApprovals has the approvals that wait for a takeover of a session that
// has ended be due at once.
func (tx *Tx) endApprovals(sessionID string) error {
	_, err := tx.exec("UPDATE _waits SET due_at = ? WHERE kind = ? AND child_id IN (SELECT id FROM takeovers WHERE session_id = ? AND status = ?)",
		tx.Now, string(WaitApproval), sessionID, agent.TakeoverCancelled)
	return err
}

// EndLostSessions ends the sessions whose rows say that they are open and that
// live does not know: those of a server that was killed.
func (db *DB) EndLostSessions(ctx context.Context, live func(id string) bool, problem string) error {
	_, err := Write(ctx, db, func(tx *Tx) (struct{}, error) {
		open, err := all(tx, func(rows *sqlite.Rows) (id string, err error) { return id, rows.Scan(&id) }, "SELECT id FROM sessions WHERE closed_at IS NULL")
		if err != nil {
			return struct{}{}, err
		}
		for _, id := range open {
			if live(id) {
				continue
			}
			if _, err := tx.exec("UPDATE sessions SET status = ?, error = ?, closed_at = ? WHERE id = ?", agent.SessionFailed, problem, tx.Now, id); err != nil {
				return struct{}{}, err
			}
			if err := tx.endApprovals(id); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return err
}

// DeleteSession removes the row of a session.
func (db *DB) DeleteSession(ctx context.Context, id string) error {
	_, err := Write(ctx, db, func(tx *Tx) (struct{}, error) {
		if err := tx.deleteRow("sessions", "session", id); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, tx.audit("browser session closed", map[string]any{"session_id": id})
	})
	return err
}

// The owner and field of _secrets under which a browser's cookies and storage
// are sealed.
const (
	browserOwner = "browser"
	browserField = "state"
)

// BrowserState opens the cookies and storage that the agent's last persistent
// session left; "" when there are none. locked says that another master key
// sealed them.
func (db *DB) BrowserState(ctx context.Context) (state string, locked bool, err error) {
	state, err = Read(ctx, db, func(tx *Tx) (string, error) { return tx.secret(browserOwner, browserField) })
	if errors.Is(err, errLocked) {
		return "", true, nil
	}
	return state, false, err
}

// SetBrowserState seals the cookies and storage of a session; "" forgets them.
func (db *DB) SetBrowserState(ctx context.Context, state string) error {
	_, err := Write(ctx, db, func(tx *Tx) (struct{}, error) {
		return struct{}{}, tx.putSecret(browserOwner, browserField, state)
	})
	return err
}
