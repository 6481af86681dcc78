package store

import (
	"context"

	"satchel/agent"
)

// Terminate ends an execution that has not ended, and those that its nodes are
// waiting for. It returns all executions that it ended, the given one first, and the
// waits in other executions that this ended.
func (db *DB) Terminate(ctx context.Context, id string) (terminated []agent.Execution, resumed []WaitEnd, err error) {
	terminated, err = Write(ctx, db, func(tx *Tx) ([]agent.Execution, error) {
		tx.claimWork(workExecutions)
		resumed = nil
		e, err := tx.execution(id)
		if err != nil {
			return nil, err
		}
		if e.Status.Ended() {
			return nil, agent.Errorf(
				agent.CodeConflict,
				"the execution has ended: it is %s",
				e.Status,
			).With("status", e.Status)
		}
		ended := []agent.Execution{e}
		for i := 0; i < len(ended); i++ {
			parents, err := tx.terminate(&ended[i])
			if err != nil {
				return nil, err
			}
			resumed = append(resumed, parents...)
			children, err := all(
				tx,
				scanExecution,
				"SELECT "+executionColumns+" FROM executions WHERE parent_id = ? AND status IN ('queued','running')",
				ended[i].ID,
			)
			if err != nil {
				return nil, err
			}
			ended = append(ended, children...)
		}
		return ended, tx.audit("execution terminated", map[string]any{"execution_id": id})
	})
	return terminated, resumed, err
}

func (tx *Tx) terminate(e *agent.Execution) ([]WaitEnd, error) {
	e.Status, e.CompletedAt = agent.ExecutionTerminated, tx.Now
	if _, err := tx.exec(
		"UPDATE executions SET status = ?, suspended = 0, completed_at = ? WHERE id = ?",
		string(e.Status),
		e.CompletedAt,
		e.ID,
	); err != nil {
		return nil, err
	}
	if err := tx.endSeen(e.ID, e.Status); err != nil {
		return nil, err
	}
	waits, err := tx.waits("execution_id = ?", e.ID)
	if err != nil {
		return nil, err
	}
	var cancelled []agent.NodeResult
	for _, w := range waits {
		r := w.Result()
		r.Status, r.DurationMS = agent.NodeCancelled, float64(tx.Now.Sub(w.StartedAt.Time).Milliseconds())
		cancelled = append(cancelled, r)
	}
	if len(cancelled) > 0 {
		if err := tx.appendJournal(e.ID, cancelled); err != nil {
			return nil, err
		}
		if _, err := tx.exec("DELETE FROM _waits WHERE execution_id = ?", e.ID); err != nil {
			return nil, err
		}
	}
	var name string
	if err := tx.value(&name, "SELECT name FROM workflows WHERE id = ?", e.WorkflowID); err != nil {
		return nil, err
	}
	if err := tx.emitExecution(e, name, transition{ended: true}); err != nil {
		return nil, err
	}
	return tx.endParentsWait(e)
}
