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
			if s.Cause != "" {
				var known bool
				if err := tx.value(&known, "SELECT EXISTS (SELECT 1 FROM executions WHERE cause = ? AND cause <> '')", s.Cause); err != nil {
					return nil, err
				}
				if known {
					continue
				}
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

// ExecutionOf finds the execution that a cause started.
func (db *DB) ExecutionOf(ctx context.Context, cause string) (id string, err error) {
	id, err = Read(ctx, db, func(tx *Tx) (id string, err error) {
		return id, tx.value(&id, "SELECT id FROM executions WHERE cause = ? AND cause <> ''", cause)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = agent.Errorf(agent.CodeNotFound, "the execution is not there any more")
	}
	return id, err
}
