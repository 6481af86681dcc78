package store

import (
	"cmp"
	"context"
	"slices"

	"satchel/agent"
	"satchel/store/sqlite"
)

// recentExecutions selects a workflow's newest executions of one status, which the
// index executions_workflow has in order.
const recentExecutions = "SELECT id, status, coalesce(error ->> '$.message', '') FROM executions " +
	"WHERE workflow_id = ? AND status = ? AND trigger <> 'test' ORDER BY id DESC LIMIT ?"

// RecentExecutions reads the newest executions of each workflow, newest first and at
// most count of each, without tests; workflows without executions are absent.
func (db *DB) RecentExecutions(
	ctx context.Context,
	workflows []string,
	count int,
) (map[string][]agent.RecentExecution, error) {
	return Read(ctx, db, func(tx *Tx) (map[string][]agent.RecentExecution, error) {
		recent := make(map[string][]agent.RecentExecution, len(workflows))
		for _, id := range workflows {
			var list []agent.RecentExecution
			for _, status := range agent.ExecutionStatuses {
				found, err := all(tx, scanRecentExecution, recentExecutions, id, status, count)
				if err != nil {
					return nil, err
				}
				list = append(list, found...)
			}
			if len(list) > 0 {
				slices.SortFunc(list, func(a, b agent.RecentExecution) int {
					return cmp.Compare(b.ID, a.ID)
				})
				recent[id] = list[:min(count, len(list))]
			}
		}
		return recent, nil
	})
}

func scanRecentExecution(rows *sqlite.Rows) (x agent.RecentExecution, err error) {
	return x, rows.Scan(&x.ID, &x.Status, &x.Error)
}
