package store

import (
	"context"
	"encoding/json"

	"satchel/agent"
	"satchel/store/sqlite"
)

// WorkingExecution is an execution loaded to continue, with the graph of its
// version.
type WorkingExecution struct {
	agent.Execution
	Workflow agent.Workflow
	Test     *TestGraph // of a test; nil for others
	Results  []agent.NodeResult
	Waits    []Wait
}

// WorkingExecution reads an execution to continue.
func (db *DB) WorkingExecution(ctx context.Context, id string) (WorkingExecution, error) {
	return Read(ctx, db, func(tx *Tx) (execution WorkingExecution, err error) {
		if execution.Execution, err = tx.execution(id); err != nil {
			return execution, err
		}
		if execution.Workflow, err = tx.workflow(execution.WorkflowID); err != nil {
			return execution, err
		}
		if err := tx.version(&execution.Workflow, execution.Version); err != nil {
			return execution, err
		}
		if execution.Test, err = tx.testGraph(&execution.Execution); err != nil {
			return execution, err
		}
		if execution.Test != nil {
			execution.Workflow.Nodes, execution.Workflow.Edges = execution.Test.Nodes, execution.Test.Edges
		}
		if execution.Results, err = tx.journal(id); err != nil {
			return execution, err
		}
		execution.Waits, err = tx.waits("execution_id = ?", id)
		return execution, err
	})
}

// ExecutionWork is the pending work of an agent's executions.
type ExecutionWork struct {
	Running []string       // those not suspended, oldest first
	Queued  map[string]int // by workflow
	Due     []Wait         // those that have ended or timed out, the longest due first
	Next    agent.Time     // when the next of the other waits times out; zero: never
}

// ExecutionWork reads the pending work of executions; Due has at most limit
// waits. Executions that came with a copied file are left out, unless release
// is set, which permanently releases them.
func (db *DB) ExecutionWork(ctx context.Context, now agent.Time, limit int, release bool) (ExecutionWork, error) {
	var paused bool
	read := func(tx *Tx) (w ExecutionWork, err error) {
		if paused, err = tx.executionsPaused(); err != nil || paused && release {
			return w, err
		}
		return tx.executionWork(now, limit)
	}
	w, err := Read(ctx, db, read)
	if err != nil || !paused || !release {
		return w, err
	}
	return Write(ctx, db, func(tx *Tx) (w ExecutionWork, err error) {
		tx.claimWork(workExecutions)
		if _, err := tx.exec(
			"UPDATE executions SET paused = 0 WHERE status IN ('queued','running') AND paused",
		); err != nil {
			return w, err
		}
		return tx.executionWork(now, limit)
	})
}

func (tx *Tx) executionsPaused() (paused bool, err error) {
	return paused, tx.value(
		&paused,
		"SELECT EXISTS (SELECT 1 FROM executions WHERE status IN ('queued','running') AND paused)",
	)
}

func (tx *Tx) executionWork(now agent.Time, limit int) (work ExecutionWork, err error) {
	work.Running, err = all(
		tx,
		scanID,
		"SELECT id FROM executions WHERE status = 'running' AND suspended = 0 AND NOT paused ORDER BY id",
	)
	if err != nil {
		return work, err
	}
	type queue struct {
		workflow string
		n        int
	}
	queues, err := all(
		tx,
		func(rows *sqlite.Rows) (q queue, err error) {
			return q, rows.Scan(&q.workflow, &q.n)
		},
		"SELECT workflow_id, count(*) FROM executions WHERE status = 'queued' AND NOT paused GROUP BY workflow_id",
	)
	if err != nil {
		return work, err
	}
	work.Queued = make(map[string]int, len(queues))
	for _, q := range queues {
		work.Queued[q.workflow] = q.n
	}
	if work.Due, err = tx.waits("due_at <= ?"+notPaused+" ORDER BY due_at LIMIT ?", now, limit); err != nil {
		return work, err
	}
	if len(work.Due) == limit {
		work.Next = now
		return work, nil
	}
	return work, tx.value(&work.Next, "SELECT min(due_at) FROM _waits WHERE due_at > ?"+notPaused, now)
}

// BeginQueued begins the execution of a workflow that has been queued longest and
// returns its id; "" if there is none.
func (db *DB) BeginQueued(ctx context.Context, workflowID string) (string, error) {
	return Write(ctx, db, func(tx *Tx) (string, error) {
		tx.claimWork(workExecutions)
		ids, err := all(tx, scanID, `UPDATE executions SET status = 'running', started_at = ? WHERE id = (SELECT id FROM executions
			WHERE status = 'queued' AND suspended = 0 AND workflow_id = ? AND NOT paused ORDER BY id LIMIT 1) RETURNING id`, tx.Now, workflowID)
		if err != nil || len(ids) == 0 {
			return "", err
		}
		e, err := tx.execution(ids[0])
		if err != nil {
			return "", err
		}
		var name string
		if err := tx.value(&name, "SELECT name FROM workflows WHERE id = ?", workflowID); err != nil {
			return "", err
		}
		return e.ID, tx.emitExecution(&e, name, transition{started: true})
	})
}

// RunningExecutions returns which of these executions are still queued or
// running.
func (db *DB) RunningExecutions(ctx context.Context, ids []string) (map[string]bool, error) {
	raw, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	return Read(ctx, db, func(tx *Tx) (map[string]bool, error) {
		found, err := all(
			tx,
			scanID,
			"SELECT e.id FROM json_each(?) j JOIN executions e ON e.id = j.value "+
				"WHERE e.status IN ('queued','running')",
			string(raw),
		)
		running := map[string]bool{}
		for _, id := range found {
			running[id] = true
		}
		return running, err
	})
}
