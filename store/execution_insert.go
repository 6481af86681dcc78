package store

import (
	"context"
	"errors"

	"satchel/agent"
	"satchel/agent/signature"
	"satchel/store/sqlite"
)

// InsertExecutions inserts executions that begin or queue. inserted reports which
// were inserted: those with a known idempotency key or replay are not.
func (db *DB) InsertExecutions(ctx context.Context, started []StartedExecution) (inserted []bool, err error) {
	return Write(ctx, db, func(tx *Tx) ([]bool, error) {
		tx.claimWork(workExecutions)
		inserted := make([]bool, len(started))
		for index, execution := range started {
			known, err := tx.executionOf(execution.IdempotencyKey, execution.Replay)
			if err != nil {
				return nil, err
			}
			if known != "" {
				continue
			}
			if err := tx.insertExecution(execution.Execution, execution.IdempotencyKey, false); err != nil {
				return nil, err
			}
			if err := tx.noteReplay(execution.Replay, execution.ID); err != nil {
				return nil, err
			}
			if err := tx.auditExecuted(execution.Execution); err != nil {
				return nil, err
			}
			if err := tx.emitExecution(execution.Execution, execution.Name, transition{
				started: execution.Status == agent.ExecutionRunning,
			}); err != nil {
				return nil, err
			}
			inserted[index] = true
		}
		return inserted, nil
	})
}

// RetryExecution inserts an execution that repeats another, reusing the given
// results of it.
func (db *DB) RetryExecution(ctx context.Context, execution StartedExecution, results []agent.NodeResult) error {
	return db.Do(ctx, func(tx *Tx) error {
		tx.claimWork(workExecutions)
		if err := tx.insertExecution(execution.Execution, "", false); err != nil {
			return err
		}
		if len(results) > 0 {
			if err := tx.appendJournal(execution.ID, results); err != nil {
				return err
			}
		}
		if err := tx.emitExecution(execution.Execution, execution.Name, transition{
			started: execution.Status == agent.ExecutionRunning,
		}); err != nil {
			return err
		}
		return tx.audit("execution retried", map[string]any{
			"execution_id":     execution.RetriedFrom,
			"new_execution_id": execution.ID,
		})
	})
}

// executionOf returns the execution with an idempotency key, or with a replay within
// signature.MaxAge; "" if there is none.
func (tx *Tx) executionOf(key, replay string) (id string, err error) {
	if key != "" {
		if err = tx.value(
			&id,
			"SELECT id FROM executions WHERE idempotency_key = ? AND idempotency_key <> ''",
			key,
		); !errors.Is(err, sqlite.ErrNoRows) {
			return id, err
		}
	}
	if replay == "" {
		return "", nil
	}
	err = tx.value(
		&id,
		"SELECT execution_id FROM _replays WHERE request = ? AND created_at BETWEEN ? AND ?",
		replay,
		agent.At(tx.Now.Add(-signature.MaxAge)),
		agent.At(tx.Now.Add(signature.MaxAge)),
	)
	if errors.Is(err, sqlite.ErrNoRows) {
		err = nil
	}
	return id, err
}

// noteReplay remembers what started an execution and forgets what is too old to
// count as a replay.
func (tx *Tx) noteReplay(replay, executionID string) error {
	if replay == "" {
		return nil
	}
	if _, err := tx.exec(
		"DELETE FROM _replays WHERE created_at < ?",
		agent.At(tx.Now.Add(-signature.MaxAge)),
	); err != nil {
		return err
	}
	_, err := tx.exec(
		"INSERT INTO _replays VALUES (?1,?2,?3) ON CONFLICT DO UPDATE SET execution_id = ?2, created_at = ?3",
		replay, executionID, tx.Now,
	)
	return err
}

// ExecutionOf finds the execution with an idempotency key or a replay; see
// StartedExecution.
func (db *DB) ExecutionOf(ctx context.Context, key, replay string) (string, error) {
	id, err := Read(ctx, db, func(tx *Tx) (string, error) {
		return tx.executionOf(key, replay)
	})
	if err == nil && id == "" {
		err = agent.Errorf(agent.CodeNotFound, "the execution no longer exists")
	}
	return id, err
}
