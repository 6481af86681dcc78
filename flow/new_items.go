package flow

import (
	"context"
	"encoding/json"
	"fmt"

	"satchel/agent"
	"satchel/agent/template"
	"satchel/store"
)

// runNewItems returns the items of a list that this node has not seen before. The
// items are committed as seen together with the node's result.
func runNewItems(ctx context.Context, call *Call) (Outcome, error) {
	items, ok := call.Data["items"].([]any)
	if !ok {
		return Outcome{}, agent.Invalid("items", "must be a list")
	}
	if len(items) > store.MaxNewItems {
		return Outcome{}, agent.Invalid("items", fmt.Sprintf("must have at most %d entries", store.MaxNewItems))
	}
	keys, err := itemKeys(items, call.Text("key"))
	if err != nil {
		return Outcome{}, err
	}
	output := func(positions []int) map[string]any {
		fresh := make([]any, 0, len(positions))
		for _, i := range positions {
			fresh = append(fresh, items[i])
		}
		return map[string]any{"items": fresh, "count": len(fresh)}
	}
	query := store.SeenQuery{
		WorkflowID:  call.Program.ID,
		NodeID:      call.Node.ID,
		ExecutionID: call.ExecutionID,
		Keys:        keys,
		SkipFirst:   call.Text("first") == "none",
	}
	recorded := false
	var record func([]int) (string, agent.NodeResult, error)
	if call.Record != nil {
		record = func(positions []int) (string, agent.NodeResult, error) {
			recorded = true
			return call.Record(output(positions))
		}
	}
	positions, err := call.DB.NewItems(ctx, query, record)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Output: output(positions), Recorded: recorded}, nil
}

// itemKeys returns what identifies the items: the value at a path in each, or
// the whole item without a path.
func itemKeys(items []any, key string) ([]string, error) {
	path, err := template.ParsePath(key)
	if err != nil {
		return nil, agent.Invalid("key", err.Error())
	}
	keys := make([]string, len(items))
	for i, item := range items {
		v, ok := path.Walk(item)
		if !ok || v == nil {
			return nil, agent.Invalid("key", fmt.Sprintf("is not in entry %d of items", i))
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		keys[i] = string(raw)
	}
	return keys, nil
}

// checkNewItems checks the path of the key.
func checkNewItems(data map[string]any) (field, issue string) {
	key, _ := data["key"].(string)
	if _, err := template.ParsePath(key); err != nil {
		return "data.key", err.Error()
	}
	return "", ""
}
