package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// maxTableRows limits the rows that a node reads.
const maxTableRows = 1000

// tableOperations are the operations of a table node.
var tableOperations = map[string]func(ctx context.Context, c *Call) (Outcome, error){
	"find":   findRows,
	"count":  findRows,
	"insert": insertRows,
	"update": updateRows,
	"upsert": upsertRow,
	"delete": deleteRows,
}

// runTable reads or changes rows of a table. Changes are committed together with
// the node's result.
func runTable(ctx context.Context, c *Call) (Outcome, error) {
	operation := c.Text("operation")
	if operation == "" {
		operation = "find"
	}
	run, known := tableOperations[operation]
	if !known {
		return Outcome{}, agent.Invalid(
			"operation",
			"must be of "+fmt.Sprint(slices.Sorted(maps.Keys(tableOperations))),
		)
	}
	return run(ctx, c)
}

// rowsOutput returns the output of a table node: the rows, the first row, and their
// number.
func rowsOutput(rows []json.RawMessage, count int) map[string]any {
	output := map[string]any{"rows": rows, "row": nil, "count": count}
	if len(rows) > 0 {
		output["row"] = rows[0]
	}
	return output
}

func findRows(ctx context.Context, c *Call) (Outcome, error) {
	where, err := c.conditions()
	if err != nil {
		return Outcome{}, err
	}
	q := store.RowQuery{Where: where, Limit: int(min(max(c.Number("limit", 100), 0), maxTableRows))}
	if c.Text("operation") == "count" {
		q.Limit = 0
	}
	if column := c.Text("sort"); column != "" {
		q.Order = []store.Order{{Field: column, Desc: c.Text("order") == "desc"}}
	}
	_, rows, total, err := c.DB.TableRows(ctx, c.Text("table"), q)
	return Outcome{Output: rowsOutput(rows, total)}, err
}

// conditions reads the conditions of a table node, whose templates are filled.
func (c *Call) conditions() (where []agent.RowCondition, err error) {
	given := c.Data["conditions"]
	if given == nil {
		return nil, nil
	}
	raw, err := json.Marshal(given)
	if err != nil || json.Unmarshal(raw, &where) != nil {
		return nil, agent.Invalid("conditions", "must be a list of {column, operator, value}")
	}
	return where, nil
}

// row reads the row of a table node.
func (c *Call) row() (agent.Row, error) {
	object, ok := c.Data["row"].(map[string]any)
	if !ok {
		return nil, agent.Invalid("row", "must be an object of columns")
	}
	return agent.Row(object), nil
}

// rowRecorder returns the Recorder with which a store method commits the node's result
// together with its rows, or nil. The Recorder sets the returned bool.
func (c *Call) rowRecorder(output func([]json.RawMessage) any) (store.Recorder, *bool) {
	recorded := new(bool)
	if c.Record == nil {
		return nil, recorded
	}
	return func(rows []json.RawMessage) (string, agent.NodeResult, error) {
		*recorded = true
		return c.Record(output(rows))
	}, recorded
}

func changedRows(rows []json.RawMessage) any {
	return rowsOutput(rows, len(rows))
}

// changeOutcome returns the outcome of a change.
func changeOutcome(rows []json.RawMessage, recorded *bool, err error) (Outcome, error) {
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Output: changedRows(rows), Recorded: *recorded}, nil
}

func insertRows(ctx context.Context, call *Call) (Outcome, error) {
	var rows []agent.Row
	if list, ok := call.Data["rows"].([]any); ok {
		for i, entry := range list {
			object, ok := entry.(map[string]any)
			if !ok {
				return Outcome{}, agent.Invalid(fmt.Sprintf("rows[%d]", i), "must be an object of columns")
			}
			rows = append(rows, object)
		}
	} else {
		row, err := call.row()
		if err != nil {
			return Outcome{}, err
		}
		rows = []agent.Row{row}
	}
	if len(rows) > agent.MaxRowBatch {
		return Outcome{}, agent.Invalid("rows", fmt.Sprintf("must have at most %d entries", agent.MaxRowBatch))
	}
	record, recorded := call.rowRecorder(changedRows)
	added, err := call.DB.InsertRows(ctx, call.Text("table"), rows, record)
	return changeOutcome(added, recorded, err)
}

func updateRows(ctx context.Context, c *Call) (Outcome, error) {
	where, err := c.conditions()
	if err != nil {
		return Outcome{}, err
	}
	row, err := c.row()
	if err != nil {
		return Outcome{}, err
	}
	record, recorded := c.rowRecorder(changedRows)
	rows, err := c.DB.UpdateRows(ctx, c.Text("table"), where, row, record)
	return changeOutcome(rows, recorded, err)
}

func deleteRows(ctx context.Context, c *Call) (Outcome, error) {
	where, err := c.conditions()
	if err != nil {
		return Outcome{}, err
	}
	record, recorded := c.rowRecorder(changedRows)
	rows, err := c.DB.DeleteRows(ctx, c.Text("table"), where, record)
	return changeOutcome(rows, recorded, err)
}

func upsertRow(ctx context.Context, call *Call) (Outcome, error) {
	row, err := call.row()
	if err != nil {
		return Outcome{}, err
	}
	key := call.Text("key")
	if key == "" {
		return Outcome{}, agent.Invalid("key", "is required to update or insert")
	}
	written := func(raw json.RawMessage, isNew bool) map[string]any {
		output := rowsOutput([]json.RawMessage{raw}, 1)
		output["created"] = isNew
		return output
	}
	recorded := false
	var record func(json.RawMessage, bool) (string, agent.NodeResult, error)
	if call.Record != nil {
		record = func(raw json.RawMessage, isNew bool) (string, agent.NodeResult, error) {
			recorded = true
			return call.Record(written(raw, isNew))
		}
	}
	raw, isNew, err := call.DB.UpsertRow(ctx, call.Text("table"), key, row, record)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Output: written(raw, isNew), Recorded: recorded}, nil
}

// checkTable checks the name of a table.
func checkTable(data map[string]any) (field, issue string) {
	if name, ok := data["table"].(string); ok &&
		name != "" &&
		!strings.Contains(name, "{{") &&
		!agent.ValidTableName(name) {
		return "data.table", "is not a table name"
	}
	return "", ""
}
