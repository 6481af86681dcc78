package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"satchel/agent"
	"satchel/store/sqlite"
)

const executionColumns = `id, workflow_id, version, status, trigger, trigger_node, parent_id, retried_from, depth, root_id, input, output, error,
	created_at, started_at, completed_at`

var executionListing = listing[agent.Execution]{listed{
	table:   "executions",
	columns: executionColumns,
	order:   Order{"created_at", true},
	sort: map[string]string{
		"created_at":   "id",
		"started_at":   "coalesce(started_at, '')",
		"completed_at": "coalesce(completed_at, '')",
		"status":       "status",
	},
}, scanExecution}

func scanExecution(rows *sqlite.Rows) (e agent.Execution, err error) {
	var input, output, problem []byte
	if err := rows.Scan(
		&e.ID, &e.WorkflowID, &e.Version, &e.Status, &e.Trigger, &e.TriggerNode, &e.ParentID, &e.RetriedFrom,
		&e.Depth, &e.RootID, &input, &output, &problem, &e.CreatedAt, &e.StartedAt, &e.CompletedAt,
	); err != nil {
		return e, err
	}
	e.Input, e.Output = input, output
	if problem != nil {
		if err := json.Unmarshal(problem, &e.Error); err != nil {
			return e, fmt.Errorf("stored error: %w", err)
		}
	}
	return e, nil
}

// ExecutionFilter selects executions; empty fields select all.
type ExecutionFilter struct {
	WorkflowID string
	Version    int // of the workflow; only with WorkflowID
	Statuses   []string
	Triggers   []string
	ContactID  string // the contact of its input
	Tests      bool   // include tests, if Triggers is empty
}

// Executions lists executions, newest first, and returns their total number.
func (db *DB) Executions(ctx context.Context, ef ExecutionFilter, p Page) ([]agent.Execution, int, error) {
	var total int
	page, err := Read(ctx, db, func(tx *Tx) (page []agent.Execution, err error) {
		tests := ef.Tests || len(ef.Triggers) > 0
		if !tests {
			// Without conditions the number of executions is known.
			if err := tx.value(
				&tests,
				"SELECT NOT EXISTS (SELECT 1 FROM executions WHERE trigger = 'test')",
			); err != nil {
				return nil, err
			}
		}
		if len(ef.Triggers) > 0 {
			if err := tx.wantFor("executions", "executions_trigger"); err != nil {
				return nil, err
			}
		}
		if ef.byVersion() {
			if err := tx.wantFor("executions", "executions_version"); err != nil {
				return nil, err
			}
		}
		if ef.ContactID != "" {
			if err := tx.wantFor("executions", "executions_by_contact"); err != nil {
				return nil, err
			}
		}
		page, total, err = executionListing.list(tx, ef.filter(p.Order, tests), p)
		return page, err
	})
	return page, total, err
}

// Conditions for executions that have ended and for those that have not, as in the
// partial indexes.
const (
	executionEnded      = "status IN ('complete','errored','terminated')"
	executionUnfinished = "status IN ('queued','running')"
)

func (ef ExecutionFilter) byVersion() bool {
	return ef.WorkflowID != "" && ef.Version > 0
}

// filter returns the conditions for a list in an order. With tests, they are
// included like the others.
func (ef ExecutionFilter) filter(order []Order, tests bool) (filter filter) {
	if ef.WorkflowID != "" {
		filter.in("workflow_id", ef.WorkflowID)
	}
	filter.in("status", ef.Statuses...)
	filter.in("trigger", ef.Triggers...)
	if !tests {
		filter.where = append(filter.where, condition{text: "trigger <> 'test'", counted: "value_3 <> 'test'"})
	}
	if ef.byVersion() {
		filter.where = append(filter.where, condition{
			text: "version = ?",
			args: []any{ef.Version},
			hide: true,
		})
	}
	if ef.ContactID != "" {
		filter.add("input ->> '$.contact.id' = ?", ef.ContactID)
	}
	if ef.byVersion() || ef.ContactID != "" {
		return filter
	}
	filter.countBy("executions", "workflow_id", "status", "trigger")
	unfinished, args := clause(append(slices.Clip(filter.where), condition{text: executionUnfinished}), false)
	filter.count = "SELECT (" + filter.count + ") + (SELECT count(*) FROM executions" + unfinished + ")"
	filter.countArgs = append(filter.countArgs, args...)
	if !sortedBy(order, "created_at") || len(ef.Triggers) > 0 && len(filter.where) > 1 {
		return filter
	}
	ended := !slices.ContainsFunc(ef.Statuses, func(s string) bool {
		return !agent.ExecutionStatus(s).Ended()
	})
	switch {
	case len(ef.Triggers) > 0:
		filter.indexed, filter.split = true, "trigger"
	case ef.WorkflowID != "":
		filter.indexed, filter.split = true, "status"
		if len(ef.Statuses) == 0 {
			filter.in("status", textsOf(agent.ExecutionStatuses)...)
		}
	case len(ef.Statuses) > 0 && ended:
		filter.indexed, filter.split = true, "status"
		filter.add(executionEnded)
	case len(ef.Statuses) == 0:
		filter.indexed = true
	}
	return filter
}

// sortedBy reports whether a list is already in the order of a field.
func sortedBy(order []Order, field string) bool {
	return len(order) == 0 || len(order) == 1 && order[0].Field == field
}

func textsOf[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// Execution reads an execution with the results of its nodes so far, in the order in
// which they ended; nodes that are waiting come last.
func (db *DB) Execution(ctx context.Context, id string) (agent.Execution, []agent.NodeResult, error) {
	var results []agent.NodeResult
	execution, err := Read(ctx, db, func(tx *Tx) (agent.Execution, error) {
		e, err := tx.execution(id)
		if err != nil {
			return e, err
		}
		g, err := tx.testGraph(&e)
		if err != nil {
			return e, err
		}
		if g != nil {
			e.Nodes, e.Edges = g.Nodes, g.Edges
		}
		if results, err = tx.journal(id); err != nil {
			return e, err
		}
		waits, err := tx.waits("execution_id = ?", id)
		for _, w := range waits {
			results = append(results, w.Result())
		}
		return e, err
	})
	return execution, results, err
}

func (tx *Tx) execution(id string) (agent.Execution, error) {
	return one(tx, scanExecution, "execution", "SELECT "+executionColumns+" FROM executions WHERE id = ?", id)
}

// journalResult is a node result in the form of the journal.
type journalResult struct {
	agent.NodeResult
	Items json.RawMessage `json:"items,omitempty"`
}

// journal reads the results of an execution's nodes. A node that began and ended is
// listed only once, at its end.
func (tx *Tx) journal(id string) ([]agent.NodeResult, error) {
	rows, err := all(tx, func(rows *sqlite.Rows) (part []journalResult, err error) {
		var raw sqlite.RawBytes
		if err := rows.Scan(&raw); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &part); err != nil {
			return nil, fmt.Errorf("stored node results: %w", err)
		}
		return part, nil
	}, "SELECT results FROM _journal WHERE execution_id = ? ORDER BY seq", id)
	if err != nil {
		return nil, err
	}
	type place struct{ node, path string }
	began := map[place]int{}
	results := []agent.NodeResult{}
	for _, part := range rows {
		for _, j := range part {
			j.NodeResult.Items = j.Items
			at := place{j.NodeID, j.FullPath()}
			if i, ok := began[at]; ok {
				if j.NodeResult.Items == nil {
					j.NodeResult.Items = results[i].Items
				}
				results[i].NodeID = "" // it is listed where it ended
			}
			began[at] = len(results)
			results = append(results, j.NodeResult)
		}
	}
	return slices.DeleteFunc(results, func(r agent.NodeResult) bool {
		return r.NodeID == ""
	}), nil
}

// WorkflowText is a workflow as stored, which is read for each execution and
// compared with what was compiled from it before.
type WorkflowText struct {
	ID, Name               string
	Nodes, Edges, Settings string
	Status                 agent.WorkflowStatus
	Version                int
}

// Workflow decodes the text.
func (t *WorkflowText) Workflow() (agent.Workflow, error) {
	w := agent.Workflow{
		ID:      t.ID,
		Name:    t.Name,
		Status:  t.Status,
		Version: t.Version,
	}
	return w, readGraph(
		&w,
		[]byte(t.Nodes),
		[]byte(t.Edges),
		[]byte(t.Settings),
	)
}

// NewExecution is what is needed to start an execution.
type NewExecution struct {
	Text     WorkflowText
	Contact  json.RawMessage // the requested contact; nil if it does not exist
	Repeated bool            // an execution with the idempotency key exists; the rest is empty
}

// NewExecution reads a workflow to execute, a contact unless contactID is empty, and
// whether key, unless it is empty, has already started an execution.
func (db *DB) NewExecution(ctx context.Context, workflowID, contactID, key string) (execution NewExecution, err error) {
	if contactID == "" && key == "" {
		execution.Text, err = ReadOne(ctx, db, func(tx *Tx) (WorkflowText, error) {
			return tx.workflowText(workflowID)
		})
		return execution, err
	}
	return Read(ctx, db, func(tx *Tx) (newExecution NewExecution, err error) {
		if key != "" {
			if err := tx.value(
				&newExecution.Repeated,
				"SELECT EXISTS (SELECT 1 FROM executions WHERE idempotency_key = ? AND idempotency_key <> '')",
				key,
			); err != nil || newExecution.Repeated {
				return newExecution, err
			}
		}
		if newExecution.Text, err = tx.workflowText(workflowID); err != nil || contactID == "" {
			return newExecution, err
		}
		c, err := tx.contact(contactID)
		if agent.ErrorCode(err) == agent.CodeNotFound {
			return newExecution, nil
		}
		if err == nil {
			newExecution.Contact, err = json.Marshal(c)
		}
		return newExecution, err
	})
}

func (tx *Tx) workflowText(id string) (t WorkflowText, err error) {
	err = tx.row(
		"SELECT id, name, nodes, edges, settings, status, version FROM workflows WHERE id = ?",
		id,
	).Scan(&t.ID, &t.Name, &t.Nodes, &t.Edges, &t.Settings, &t.Status, &t.Version)
	if errors.Is(err, sqlite.ErrNoRows) {
		err = agent.NotFound("workflow", id)
	}
	return t, err
}

func scanID(rows *sqlite.Rows) (id string, err error) {
	return id, rows.Scan(&id)
}

// Retention of executions that have ended, in addition to the agent's retention_days.
const maxExecutions = 200_000

const (
	trimOldExecutions = "DELETE FROM executions WHERE id IN (SELECT id FROM executions WHERE created_at < ? " +
		"AND status NOT IN ('queued','running') ORDER BY id LIMIT ?)"
	trimManyExecutions = `DELETE FROM executions WHERE id IN (SELECT id FROM executions WHERE status NOT IN ('queued','running')
		ORDER BY id LIMIT min(?, max(0, (SELECT n FROM _counts WHERE name = 'executions') - ?)))`
)
