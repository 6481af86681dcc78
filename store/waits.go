package store

import (
	"context"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Wait is a node that is waiting.
type Wait struct {
	ExecutionID string
	NodeID      string
	Path        string // iterations of the loops around the node
	Type        string // of the node
	Kind        WaitKind
	DueAt       agent.Time // when it times out; zero: never
	Event       string     // that it waits for
	ChildID     string     // the execution that it waits for
	StartedAt   agent.Time
	Title       string // of an approval, as is Message
	Message     string
	// CommentRequired: approving it requires a comment.
	CommentRequired bool
}

// WaitKind specifies what a node waits for.
type WaitKind string

// The kinds of waits.
const (
	WaitTimer     WaitKind = "timer"
	WaitEvent     WaitKind = "event"
	WaitApproval  WaitKind = "approval"
	WaitExecution WaitKind = "execution"
)

// Result returns the waiting node as a listing shows it.
func (w *Wait) Result() agent.NodeResult {
	result := agent.NodeResult{
		NodeID:    w.NodeID,
		Type:      w.Type,
		Status:    agent.NodeWaiting,
		StartedAt: w.StartedAt,
		Attempt:   1,
	}
	result.SetPath(w.Path)
	if w.Kind == WaitApproval && (w.Title+w.Message != "" || w.CommentRequired) {
		result.Approval = &agent.Approval{
			Title:           w.Title,
			Message:         w.Message,
			CommentRequired: w.CommentRequired,
		}
	}
	return result
}

const waitColumns = "execution_id, node_id, path, type, kind, due_at, event, child_id, started_at, title, " +
	"message, comment_required"

func (tx *Tx) waits(where string, args ...any) ([]Wait, error) {
	return all(tx, func(rows *sqlite.Rows) (w Wait, err error) {
		return w, rows.Scan(
			&w.ExecutionID, &w.NodeID, &w.Path, &w.Type, &w.Kind, &w.DueAt, &w.Event, &w.ChildID, &w.StartedAt,
			&w.Title, &w.Message, &w.CommentRequired,
		)
	}, "SELECT "+waitColumns+" FROM _waits WHERE "+where, args...)
}

func (tx *Tx) insertWait(w *Wait) error {
	_, err := tx.exec(
		"INSERT OR REPLACE INTO _waits("+waitColumns+") VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
		w.ExecutionID, w.NodeID, w.Path, w.Type, string(w.Kind), w.DueAt, w.Event, w.ChildID, w.StartedAt, w.Title,
		w.Message, w.CommentRequired,
	)
	return err
}

// notPaused excludes executions that came with a copied file.
const notPaused = " AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = execution_id AND e.paused)"

// ExecutionWaits returns the waits of one execution.
func (db *DB) ExecutionWaits(ctx context.Context, id string) ([]Wait, error) {
	return Read(ctx, db, func(tx *Tx) ([]Wait, error) {
		if _, err := tx.execution(id); err != nil {
			return nil, err
		}
		return tx.waits("execution_id = ?", id)
	})
}

// WaitEnd is the outcome of a wait.
type WaitEnd struct {
	ExecutionID string
	Result      agent.NodeResult
}

// EndWaits ends waits with their results, except those that have already ended in
// another way, and returns the ended ones. Their executions are then awake.
func (db *DB) EndWaits(ctx context.Context, ends []WaitEnd) ([]WaitEnd, error) {
	return Write(ctx, db, func(tx *Tx) ([]WaitEnd, error) {
		tx.claimWork(workExecutions)
		var ended []WaitEnd
		for _, end := range ends {
			ok, err := tx.endWait(end)
			if err != nil {
				return nil, err
			}
			if ok {
				ended = append(ended, end)
			}
		}
		return ended, nil
	})
}

func (tx *Tx) endWait(end WaitEnd) (bool, error) {
	done, err := tx.exec(
		"DELETE FROM _waits WHERE execution_id = ? AND node_id = ? AND path = ?",
		end.ExecutionID,
		end.Result.NodeID,
		end.Result.FullPath(),
	)
	if err != nil {
		return false, err
	}
	if done.Changes == 0 {
		return false, err
	}
	if err := tx.appendJournal(end.ExecutionID, []agent.NodeResult{end.Result}); err != nil {
		return false, err
	}
	_, err = tx.exec("UPDATE executions SET suspended = 0 WHERE id = ?", end.ExecutionID)
	return true, err
}
