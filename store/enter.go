package store

import (
	"context"
	"database/sql"
	"errors"

	"satchel/agent"
)

// Enter writes executions that begin or queue. entered tells which of them
// were entered: one whose cause has started an execution before is not.
func (db *DB) Enter(ctx context.Context, started []StartedExecution) (entered []bool, err error) {
	return Write(ctx, db, func(tx *Tx) ([]bool, error) {
		entered := make([]bool, len(started))
		for i, s := range started {
			known, err := tx.causeOf(s.Cause, s.Alike)
			if err != nil {
				return nil, err
			}
			if known != "" {
				continue
			}
			if err := tx.insertExecution(s.Execution, s.Cause, false); err != nil {
				return nil, err
			}
			if err := tx.auditExecuted(s.Execution); err != nil {
				return nil, err
			}
			if err := tx.tell(s.Execution, s.Name, s.Status == agent.ExecutionRunning, false); err != nil {
				return nil, err
			}
			entered[i] = true
		}
		return entered, nil
	})
}

// RetryExecution enters an execution that repeats another, with the results
// that it takes over.
func (db *DB) RetryExecution(ctx context.Context, s StartedExecution, results []agent.NodeResult) error {
	_, err := Write(ctx, db, func(tx *Tx) (struct{}, error) {
		if err := tx.insertExecution(s.Execution, "", false); err != nil {
			return struct{}{}, err
		}
		if len(results) > 0 {
			if err := tx.appendJournal(s.ID, results); err != nil {
				return struct{}{}, err
			}
		}
		if err := tx.tell(s.Execution, s.Name, s.Status == agent.ExecutionRunning, false); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, tx.audit("execution retried", map[string]any{"execution_id": s.RetriedFrom, "new_execution_id": s.ID})
	})
	return err
}

// causeOf returns the execution that a cause started, or, when alike is set,
// that one like it did within agent.SignatureAge; "" for none.
func (tx *Tx) causeOf(cause, alike string) (id string, err error) {
	if cause == "" {
		return "", nil
	}
	err = tx.value(&id, "SELECT id FROM executions WHERE cause = ? AND cause <> ''", cause)
	if !errors.Is(err, sql.ErrNoRows) || alike == "" {
		return id, withoutNone(err)
	}
	err = tx.value(&id, "SELECT id FROM executions WHERE cause > ?1 AND cause < ?1 || char(0x10ffff) AND cause <> '' AND created_at > ?2 AND created_at <= ?3 ORDER BY created_at DESC LIMIT 1",
		alike, agent.At(tx.Now.Add(-agent.SignatureAge)), agent.At(tx.Now.Add(agent.SignatureAge)))
	return id, withoutNone(err)
}

// withoutNone takes away the error of a query that found nothing.
func withoutNone(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// ExecutionOf finds the execution that a cause, or one like it, started; see
// StartedExecution.
func (db *DB) ExecutionOf(ctx context.Context, cause, alike string) (string, error) {
	id, err := Read(ctx, db, func(tx *Tx) (string, error) { return tx.causeOf(cause, alike) })
	if err == nil && id == "" {
		err = agent.Errorf(agent.CodeNotFound, "the execution is not there any more")
	}
	return id, err
}
