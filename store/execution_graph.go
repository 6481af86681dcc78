package store

import (
	"context"
	"encoding/json"

	"satchel/agent"
	"satchel/store/sqlite"
)

// TestGraph is what a test runs in place of a version of its workflow.
type TestGraph struct {
	Nodes []agent.RawNode
	Edges []agent.RawEdge
	Plan  json.RawMessage // how much of it runs, and with which outputs; see flow
}

// maxTests is how many tests are kept per workflow.
const maxTests = 20

// InsertTest inserts an execution that tests a graph which has not been saved, and
// deletes the workflow's oldest finished tests.
func (db *DB) InsertTest(ctx context.Context, execution *agent.Execution, graph TestGraph) error {
	nodes, edges, _, err := writeGraph(&agent.Workflow{Nodes: graph.Nodes, Edges: graph.Edges})
	if err != nil {
		return err
	}
	return db.Do(ctx, func(tx *Tx) error {
		tx.claimWork(workExecutions)
		if err := tx.insertExecution(execution, "", false); err != nil {
			return err
		}
		if _, err := tx.exec(
			"INSERT INTO _tests(execution_id, nodes, edges, plan) VALUES (?,?,?,?)",
			execution.ID,
			nodes,
			edges,
			string(graph.Plan),
		); err != nil {
			return err
		}
		if _, err := tx.exec(trimTests, execution.WorkflowID, maxTests); err != nil {
			return err
		}
		return tx.audit("workflow tested", map[string]any{
			"workflow_id":  execution.WorkflowID,
			"execution_id": execution.ID,
		})
	})
}

const trimTests = `DELETE FROM executions WHERE trigger = 'test' AND workflow_id = ?1 AND status NOT IN ('queued','running')
	AND id NOT IN (SELECT id FROM executions WHERE trigger = 'test' AND workflow_id = ?1 ORDER BY id DESC LIMIT ?2)`

// testGraph reads the graph of a test; nil for any other execution.
func (tx *Tx) testGraph(execution *agent.Execution) (*TestGraph, error) {
	if execution.Trigger != agent.TriggerTest {
		return nil, nil
	}
	found, err := all(tx, func(rows *sqlite.Rows) (g TestGraph, err error) {
		var nodes, edges, plan []byte
		if err := rows.Scan(&nodes, &edges, &plan); err != nil {
			return g, err
		}
		var w agent.Workflow
		err = readGraph(&w, nodes, edges, []byte("{}"))
		return TestGraph{w.Nodes, w.Edges, plan}, err
	}, "SELECT nodes, edges, plan FROM _tests WHERE execution_id = ?", execution.ID)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}
