package store

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"satchel/agent"
)

func openedSession(t *testing.T, db *DB, id string) {
	t.Helper()
	s := agent.Session{
		ID:           id,
		Status:       agent.SessionActive,
		Viewport:     agent.DefaultViewport,
		CreatedAt:    agent.Now(),
		LastActivity: agent.Now(),
	}
	if err := db.CreateSession(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// TestSessionLog checks that a session's newest actions are kept, also after its end,
// until it is deleted.
func TestSessionLog(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	openedSession(t, db, "session-a")
	openedSession(t, db, "session-b")
	for i := range agent.MaxSessionActions + 3 {
		a := agent.SessionAction{
			Action:    "click",
			Input:     json.RawMessage(`{}`),
			URL:       fmt.Sprint("https://example.com/", i),
			CreatedAt: agent.Now(),
		}
		if err := db.LogAction(t.Context(), "session-a", a, "Shop"); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.LogAction(
		t.Context(),
		"session-none",
		agent.SessionAction{Input: json.RawMessage(`{}`), CreatedAt: agent.Now()},
		"",
	); err != nil {
		t.Errorf("an action of an unknown session: %v", err)
	}
	if err := db.EndSession(t.Context(), "session-a", SessionEnd{Thumbnail: []byte("jpeg")}); err != nil {
		t.Fatal(err)
	}
	list, total, err := db.SessionActions(t.Context(), "session-a", Page{Limit: 1})
	if err != nil || total != agent.MaxSessionActions || list[0].URL != "https://example.com/502" {
		t.Errorf("%d actions, %+v, %v", total, list, err)
	}
	if _, total, err := db.SessionActions(t.Context(), "session-b", Page{Limit: 1}); err != nil || total != 0 {
		t.Errorf("%d actions of another session, %v", total, err)
	}
	if s, err := db.Session(t.Context(), "session-a"); err != nil ||
		s.Status != agent.SessionClosed ||
		s.URL != "https://example.com/502" ||
		s.Title != "Shop" {
		t.Errorf("%+v, %v", s, err)
	}
	if image, err := db.Thumbnail(t.Context(), "session-a"); err != nil || string(image) != "jpeg" {
		t.Errorf("the last picture is %q, %v", image, err)
	}
	if err := db.DeleteSession(t.Context(), "session-a"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Thumbnail(t.Context(), "session-a"); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("the picture of a deleted session: %v", err)
	}
	if _, total, err := db.SessionActions(t.Context(), "session-a", Page{Limit: 1}); err != nil || total != 0 {
		t.Errorf("%d actions of a deleted session, %v", total, err)
	}
}

// TestEndedSessionsAreBounded checks that a hundred ended sessions of the last 30 days
// are kept.
func TestEndedSessionsAreBounded(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	for i := range agent.MaxEndedSessions + 5 {
		id := fmt.Sprintf("session-%03d", i)
		openedSession(t, db, id)
		if err := db.EndSession(t.Context(), id, SessionEnd{}); err != nil {
			t.Fatal(err)
		}
	}
	old := agent.At(time.Now().Add(-agent.SessionKept - time.Hour))
	if _, err := Write(t.Context(), db, func(tx *Tx) (any, error) {
		return tx.exec("UPDATE sessions SET closed_at = ? WHERE id = 'session-104'", old)
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Session(t.Context(), "session-104"); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("a session that ended long ago: %v", err)
	}
	openedSession(t, db, "session-open")
	var left int
	if _, err := Read(t.Context(), db, func(tx *Tx) (any, error) {
		return nil, tx.value(&left, "SELECT count(*) FROM sessions")
	}); err != nil || left != agent.MaxEndedSessions+1 {
		t.Errorf("%d sessions are left, %v", left, err) // and the open one
	}
}

// TestRowsOneByOne checks that EachRow passes more rows than an answer has, and refuses a
// statement that writes.
func TestRowsOneByOne(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	n := 0
	r, err := db.EachRow(
		t.Context(),
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 5000) "+
			"SELECT x, 'row ' || x AS name FROM c",
		Params{},
		func(columns []string, row []any) error {
			if n++; len(columns) != 2 || row[0] != int64(n) {
				return fmt.Errorf("row %d is %v of %v", n, row, columns)
			}
			return nil
		},
	)
	if err != nil || n != 5000 || r.RowCount != 5000 || r.Truncated || len(r.Rows) != 0 {
		t.Errorf("%d rows, %+v, %v", n, r, err)
	}
	if _, err := db.EachRow(
		t.Context(),
		"DELETE FROM contacts RETURNING id",
		Params{},
		nil,
	); agent.ErrorCode(err) != agent.CodeForbiddenOperation {
		t.Errorf("a writing statement: %v", err)
	}
}
