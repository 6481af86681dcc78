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
		execution, err := tx.execution(id)
		if err != nil {
			return nil, err
		}
		if execution.Status.Ended() {
			return nil, agent.Errorf(
				agent.CodeConflict,
				"the execution has ended: it is %s",
				execution.Status,
			).With("status", execution.Status)
		}
		ended := []agent.Execution{execution}
		for index := 0; index < len(ended); index++ {
			parents, err := tx.terminate(&ended[index])
			if err != nil {
				return nil, err
			}
			resumed = append(resumed, parents...)
			children, err := all(
				tx,
				scanExecution,
				"SELECT "+executionColumns+" FROM executions WHERE parent_id = ? AND status IN ('queued','running')",
				ended[index].ID,
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

func (tx *Tx) terminate(execution *agent.Execution) ([]WaitEnd, error) {
	execution.Status, execution.CompletedAt = agent.ExecutionTerminated, tx.Now
	if _, err := tx.exec(
		"UPDATE executions SET status = ?, suspended = 0, completed_at = ? WHERE id = ?",
		string(execution.Status),
		execution.CompletedAt,
		execution.ID,
	); err != nil {
		return nil, err
	}
	if err := tx.endSeen(execution.ID, execution.Status); err != nil {
		return nil, err
	}
	waits, err := tx.waits("execution_id = ?", execution.ID)
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
		if err := tx.appendJournal(execution.ID, cancelled); err != nil {
			return nil, err
		}
		if _, err := tx.exec("DELETE FROM _waits WHERE execution_id = ?", execution.ID); err != nil {
			return nil, err
		}
	}
	var name string
	if err := tx.value(&name, "SELECT name FROM workflows WHERE id = ?", execution.WorkflowID); err != nil {
		return nil, err
	}
	if err := tx.emitExecution(execution, name, transition{ended: true}); err != nil {
		return nil, err
	}
	return tx.endParentsWait(execution)
}
