package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"satchel/agent"
)

// ExecutionStep is what one step of an execution writes atomically.
type ExecutionStep struct {
	Execution      *agent.Execution
	Name           string             // of the workflow, for events
	New            bool               // the execution has no row yet
	IdempotencyKey string             // with New, as in StartedExecution
	Begin          bool               // it starts running
	Results        []agent.NodeResult // the outcome of nodes
	Waits          []Wait             // nodes that start waiting
	EndedWaits     []WaitEnd          // nodes that stop waiting, since their results no longer matter
	Suspended      bool               // only waits remain
	Waiting        int                // how many, with Suspended
	Children       []StartedExecution // executions that it starts
}

// StartedExecution is an execution to insert as queued or running.
type StartedExecution struct {
	*agent.Execution
	Name           string // of its workflow
	IdempotencyKey string // a second one with the same key is not inserted
	// Replay identifies the start for signature.MaxAge: within that time,
	// another start with the same value is refused.
	Replay string
}

// ErrEnded reports that an execution has ended or was deleted in the meantime.
var ErrEnded = errors.New("the execution has ended")

// ErrRepeated is returned if an execution with the same idempotency key exists.
var ErrRepeated = errors.New("an execution with this idempotency key exists")

// CommitExecution writes a step of an execution. ended are waits in other executions
// that ended because this one did. If the execution has already ended, the error is
// ErrEnded and nothing is written.
func (db *DB) CommitExecution(ctx context.Context, step ExecutionStep) (ended []WaitEnd, err error) {
	var journal string
	if len(step.Results) > 0 {
		if journal, err = encodeJournal(step.Results); err != nil {
			return nil, err
		}
	}
	events, err := executionEventsOf(step.Execution, step.Name, transition{
		started: step.Begin,
		ended:   step.Execution.Status.Ended(),
	})
	if err != nil {
		return nil, err
	}
	return Write(ctx, db, func(tx *Tx) ([]WaitEnd, error) {
		tx.claimWork(workExecutions)
		return tx.commitExecution(step, journal, events)
	})
}

// commitExecution writes a step whose journal and events are already encoded as
// JSON.
func (tx *Tx) commitExecution(step ExecutionStep, journal string, events executionEvents) ([]WaitEnd, error) {
	if err := tx.saveExecution(step); err != nil {
		return nil, err
	}
	if journal != "" {
		if _, err := tx.exec(insertJournal, step.Execution.ID, journal); err != nil {
			return nil, err
		}
	}
	for i := range step.Waits {
		if err := tx.insertWait(&step.Waits[i]); err != nil {
			return nil, err
		}
	}
	for _, w := range step.EndedWaits {
		if _, err := tx.exec(
			"DELETE FROM _waits WHERE execution_id = ? AND node_id = ? AND path = ?",
			w.ExecutionID,
			w.Result.NodeID,
			w.Result.FullPath(),
		); err != nil {
			return nil, err
		}
	}
	for _, child := range step.Children {
		if err := tx.insertExecution(child.Execution, child.IdempotencyKey, false); err != nil {
			return nil, err
		}
		if err := tx.emitExecution(child.Execution, child.Name, transition{
			started: child.Status == agent.ExecutionRunning,
		}); err != nil {
			return nil, err
		}
	}
	ended := step.Execution.Status.Ended()
	if err := tx.updateWaits(step, ended); err != nil {
		return nil, err
	}
	if err := tx.write(step.Execution, events); err != nil {
		return nil, err
	}
	if !ended || step.Execution.ParentID == "" {
		return nil, nil
	}
	return tx.endParentsWait(step.Execution)
}

// updateWaits deletes the waits of an execution that has ended. A suspended
// execution stays awake if one of its waits has ended in the meantime.
func (tx *Tx) updateWaits(p ExecutionStep, ended bool) (err error) {
	if ended && !p.New {
		if err := tx.endSeen(p.Execution.ID, p.Execution.Status); err != nil {
			return err
		}
		_, err = tx.exec("DELETE FROM _waits WHERE execution_id = ?", p.Execution.ID)
	} else if p.Suspended {
		_, err = tx.exec(
			"UPDATE executions SET suspended = (SELECT count(*) FROM _waits "+
				"WHERE execution_id = executions.id) = ? WHERE id = ?",
			p.Waiting,
			p.Execution.ID,
		)
	}
	return err
}

// saveExecution updates the execution's row, or finds that it has been ended by
// something else.
func (tx *Tx) saveExecution(step ExecutionStep) error {
	execution := step.Execution
	if step.New {
		if err := tx.insertExecution(execution, step.IdempotencyKey, step.Suspended); err != nil {
			return err
		}
		return tx.auditExecuted(execution)
	}
	problem, err := encodeError(execution.Error)
	if err != nil {
		return err
	}
	if !step.Begin && !step.Suspended && !execution.Status.Ended() {
		var exists bool
		if err := tx.value(&exists, selectIsRunning, execution.WorkflowID, execution.ID); err != nil {
			return err
		}
		if !exists {
			return ErrEnded
		}
		return nil
	}
	done, err := tx.exec(
		"UPDATE executions SET status = ?, suspended = ?, output = ?, error = ?, started_at = ?, completed_at = ? "+
			"WHERE id = ? AND status IN ('queued','running')",
		string(execution.Status),
		step.Suspended,
		nullText(execution.Output),
		problem, execution.StartedAt, execution.CompletedAt, execution.ID,
	)
	if err != nil {
		return err
	}
	if done.Changes == 0 {
		return errors.Join(err, ErrEnded)
	}
	return nil
}

// selectIsRunning is answered from an index alone, because the row contains the input,
// which may be large.
const selectIsRunning = `SELECT EXISTS (SELECT 1 FROM executions INDEXED BY executions_unfinished
	WHERE status IN ('queued','running') AND status = 'running' AND suspended IN (0,1) AND workflow_id = ? AND id = ?)`

const insertExecution = `INSERT INTO executions(id, workflow_id, version, status, suspended, trigger, trigger_node, idempotency_key, parent_id, retried_from, depth, root_id,
	input, output, error, created_at, started_at, completed_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`

func (tx *Tx) insertExecution(execution *agent.Execution, key string, suspended bool) error {
	problem, err := encodeError(execution.Error)
	if err != nil {
		return err
	}
	_, err = tx.exec(
		insertExecution, execution.ID, execution.WorkflowID, execution.Version, string(execution.Status), suspended,
		execution.Trigger, execution.TriggerNode, key, execution.ParentID, execution.RetriedFrom, execution.Depth,
		execution.RootID, string(execution.Input), nullText(execution.Output), problem, execution.CreatedAt,
		execution.StartedAt, execution.CompletedAt,
	)
	switch {
	case sqliteCode(err) == codeForeignKey:
		return agent.NotFound("workflow", execution.WorkflowID).Because(err)
	case key != "" && isUnique(err):
		return fmt.Errorf("%w: %w", ErrRepeated, err)
	}
	return err
}

// auditExecuted logs who executed a workflow manually.
func (tx *Tx) auditExecuted(e *agent.Execution) error {
	if e.Trigger != "manual" {
		return nil
	}
	return tx.audit("workflow executed", map[string]any{"workflow_id": e.WorkflowID, "execution_id": e.ID})
}

func encodeError(e *agent.ExecutionError) (any, error) {
	if e == nil {
		return nil, nil
	}
	raw, err := json.Marshal(e)
	return string(raw), err
}

func nullText(raw json.RawMessage) any {
	if raw == nil {
		return nil
	}
	return string(raw)
}

const insertJournal = "INSERT INTO _journal SELECT ?1, (SELECT coalesce(max(seq), 0) + 1 FROM _journal " +
	"WHERE execution_id = ?1), ?2"

func encodeJournal(results []agent.NodeResult) (string, error) {
	part := make([]journalResult, len(results))
	for i, r := range results {
		part[i] = journalResult{NodeResult: r, Items: r.Items}
	}
	raw, err := json.Marshal(part)
	if err != nil {
		return "", fmt.Errorf("node results: %w", err)
	}
	return string(raw), nil
}

func (tx *Tx) appendJournal(id string, results []agent.NodeResult) error {
	raw, err := encodeJournal(results)
	if err != nil {
		return err
	}
	_, err = tx.exec(insertJournal, id, raw)
	return err
}

// endParentsWait ends the wait of the node that started an execution.
func (tx *Tx) endParentsWait(execution *agent.Execution) ([]WaitEnd, error) {
	waits, err := tx.waits("child_id = ?", execution.ID)
	if err != nil {
		return nil, err
	}
	var ended []WaitEnd
	for _, w := range waits {
		end := WaitEnd{ExecutionID: w.ExecutionID, Result: w.ResultOf(execution, tx.Now)}
		ok, err := tx.endWait(end)
		if err != nil {
			return nil, err
		}
		if ok {
			ended = append(ended, end)
		}
	}
	return ended, nil
}

// ResultOf returns the result of a node that waited for an execution, which has
// ended.
func (w *Wait) ResultOf(execution *agent.Execution, now agent.Time) agent.NodeResult {
	result := w.Result()
	result.Status, result.DurationMS = agent.NodeSuccess, float64(now.Sub(w.StartedAt.Time).Milliseconds())
	result.Output, _ = json.Marshal(map[string]any{
		"execution_id": execution.ID,
		"status":       execution.Status,
		"output":       execution.Output,
	})
	if execution.Status != agent.ExecutionComplete {
		result.Status = agent.NodeFailed
		result.Error = &agent.ExecutionError{
			Code:    string(agent.CodeExecution),
			Message: "the execution that it started ended as " + string(execution.Status),
			NodeID:  w.NodeID,
			Details: map[string]any{"execution_id": execution.ID, "status": execution.Status},
		}
	}
	return result
}
