package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/clock"
	"satchel/store/sqlite"
)

// Limits on what an overview examines.
const (
	maxDurations     = 500   // executions of a day, the newest
	maxFailures      = 2_000 // errored executions that are grouped, the newest
	maxFailureGroups = 50
	nextRuns         = 5
)

// Overview summarizes an agent; its series cover the given number of days.
func (db *DB) Overview(ctx context.Context, days int) (agent.Overview, error) {
	return Read(ctx, db, func(tx *Tx) (overview agent.Overview, err error) {
		settings, err := tx.settings()
		if err != nil {
			return overview, err
		}
		if err := tx.wantFor("messages", "messages_role"); err != nil {
			return overview, err
		}
		if overview.Counts, err = tx.counts(); err != nil {
			return overview, err
		}
		if overview.Checklist, err = tx.checklist(settings.LLMProvider != ""); err != nil {
			return overview, err
		}
		if overview.Series, err = tx.series(settings.Timezone, days); err != nil {
			return overview, err
		}
		if overview.Failures, err = tx.failures(); err != nil {
			return overview, err
		}
		overview.NextRuns, err = all(
			tx,
			func(rows *sqlite.Rows) (r agent.NextRun, err error) {
				return r, rows.Scan(&r.ScheduleID, &r.Name, &r.At)
			},
			"SELECT id, name, next_run FROM schedules WHERE status = 'active' AND next_run IS NOT NULL "+
				"ORDER BY next_run LIMIT ?",
			nextRuns,
		)
		if err != nil {
			return overview, err
		}
		if err := tx.value(
			&overview.SessionsOpen,
			"SELECT count(*) FROM sessions WHERE closed_at IS NULL",
		); err != nil {
			return overview, err
		}
		return overview, tx.value(
			&overview.SourcesAtWork,
			"SELECT count(*) FROM sources WHERE status NOT IN ('ready','error')",
		)
	})
}

func (tx *Tx) counts() (map[string]int, error) {
	rows, err := tx.query("SELECT name, n FROM _counts")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := map[string]int{}
	for rows.Next() {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			return nil, err
		}
		counts[name] = n
	}
	return counts, rows.Err()
}

// checklist returns the first steps, and which of them have been done.
func (tx *Tx) checklist(model bool) ([]agent.ChecklistItem, error) {
	list := []agent.ChecklistItem{
		{ID: "knowledge"},
		{ID: "model", Done: model},
		{ID: "ask"},
		{ID: "channel"},
		{ID: "workflow"},
	}
	return list, tx.row(`SELECT EXISTS (SELECT 1 FROM sources), EXISTS (SELECT 1 FROM messages WHERE role = 'assistant'),
		EXISTS (SELECT 1 FROM gateways WHERE status = 'active'), EXISTS (SELECT 1 FROM workflows WHERE status = 'active')`).Scan(
		&list[0].Done,
		&list[2].Done,
		&list[3].Done,
		&list[4].Done,
	)
}

// series counts by day in a time zone.
func (tx *Tx) series(timezone string, days int) (series agent.OverviewSeries, err error) {
	zone, err := clock.Zone(timezone)
	if err != nil {
		zone = time.UTC
	}
	year, month, day := tx.Now.In(zone).Date()
	next, err := tx.firstMessage(time.Date(year, month, day-days+1, 0, 0, 0, 0, zone))
	for i := days - 1; i >= 0 && err == nil; i-- {
		from, to := time.Date(year, month, day-i, 0, 0, 0, 0, zone), time.Date(year, month, day-i+1, 0, 0, 0, 0, zone)
		series.Days = append(series.Days, from.Format(time.DateOnly))
		if err = tx.executionsOf(
			&series,
			agent.FirstID(agent.KindExecution, from),
			agent.FirstID(agent.KindExecution, to),
		); err != nil {
			break
		}
		first := next
		if next, err = tx.firstMessage(to); err == nil {
			err = tx.messagesOf(&series, first, next)
		}
	}
	return series, err
}

// executionsOf adds a day: the executions with ids in a range.
func (tx *Tx) executionsOf(overviewSeries *agent.OverviewSeries, from, to string) error {
	for status, series := range map[agent.ExecutionStatus]*[]int{
		agent.ExecutionComplete:   &overviewSeries.Executions.Complete,
		agent.ExecutionErrored:    &overviewSeries.Executions.Errored,
		agent.ExecutionTerminated: &overviewSeries.Executions.Terminated,
	} {
		var n int
		if err := tx.value(
			&n,
			"SELECT count(*) FROM executions WHERE status = ? AND "+executionEnded+
				" AND id >= ? AND id < ? AND trigger <> 'test'",
			status,
			from,
			to,
		); err != nil {
			return err
		}
		*series = append(*series, n)
	}
	took, err := all(tx, func(rows *sqlite.Rows) (ms int, err error) {
		var began, ended agent.Time
		err = rows.Scan(&began, &ended)
		return int(ended.Sub(began.Time).Milliseconds()), err
	}, `SELECT started_at, completed_at FROM executions WHERE id >= ? AND id < ? AND trigger <> 'test' AND status = 'complete' AND started_at IS NOT NULL AND completed_at IS NOT NULL
		ORDER BY id DESC LIMIT ?`, from, to, maxDurations)
	if err != nil {
		return err
	}
	slices.Sort(took)
	overviewSeries.Duration.P50 = append(overviewSeries.Duration.P50, percentile(took, 50))
	overviewSeries.Duration.P95 = append(overviewSeries.Duration.P95, percentile(took, 95))
	return nil
}

// percentile returns the value of a sorted list that this many percent do not
// exceed; 0 for an empty list.
func percentile(sorted []int, percent int) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

// messagesOf adds a day: the messages with ids in a range.
func (tx *Tx) messagesOf(s *agent.OverviewSeries, from, to int64) error {
	var in, out int
	if err := tx.row(`SELECT (SELECT count(*) FROM messages WHERE role = 'user' AND id >= ?1 AND id < ?2),
		(SELECT count(*) FROM messages WHERE role = 'assistant' AND id >= ?1 AND id < ?2)`, from, to).Scan(&in, &out); err != nil {
		return err
	}
	s.Messages.In, s.Messages.Out = append(s.Messages.In, in), append(s.Messages.Out, out)
	return nil
}

// firstMessage returns the smallest id of a message written at or after a time, or
// an id beyond all. Ids of messages grow with time, so it is found by binary search.
func (tx *Tx) firstMessage(at time.Time) (int64, error) {
	var low, high int64
	if err := tx.value(&high, "SELECT coalesce(max(id), 0) + 1 FROM messages"); err != nil {
		return 0, err
	}
	moment := agent.At(at)
	for low < high {
		middle := low + (high-low)/2
		var id int64
		var written agent.Time
		err := tx.row(
			"SELECT id, created_at FROM messages WHERE id >= ? ORDER BY id LIMIT 1",
			middle,
		).Scan(&id, &written)
		switch {
		case errors.Is(err, sqlite.ErrNoRows) || err == nil && !written.Before(moment.Time):
			high = middle
		case err != nil:
			return 0, err
		default:
			low = id + 1
		}
	}
	return low, nil
}

// failures groups the executions that failed recently and were not repeated since.
func (tx *Tx) failures() ([]agent.FailureGroup, error) {
	groups, err := all(
		tx,
		func(rows *sqlite.Rows) (g agent.FailureGroup, err error) {
			return g, rows.Scan(&g.WorkflowID, &g.NodeID, &g.Error, &g.Count, &g.ExecutionID, &g.LastAt)
		},
		`SELECT workflow_id, coalesce(error ->> '$.node_id', '') AS node, coalesce(error ->> '$.message', '') AS message, count(*), max(id), max(coalesce(completed_at, created_at)) AS last_at
		FROM (SELECT * FROM `+failedExecutions+` ORDER BY id DESC LIMIT ?1)
		GROUP BY workflow_id, node, message ORDER BY last_at DESC LIMIT ?3`,
		maxFailures,
		agent.FirstID(agent.KindExecution, tx.Now.Add(-FailureAge)),
		maxFailureGroups,
	)
	if err != nil {
		return nil, err
	}
	known := map[string]agent.Workflow{}
	for i := range groups {
		g := &groups[i]
		w, ok := known[g.WorkflowID]
		if !ok {
			if w, err = tx.workflow(g.WorkflowID); err != nil {
				return nil, err
			}
			known[g.WorkflowID] = w
		}
		g.WorkflowName = w.Name
		g.NodeType, g.NodeLabel = describeNode(w.Nodes, g.NodeID)
	}
	return groups, nil
}

// describeNode returns the type and the label of a node.
func describeNode(nodes []agent.RawNode, id string) (kind, label string) {
	for _, raw := range nodes {
		var node struct {
			ID   string `json:"id"`
			Type string `json:"type"`
			Data struct {
				Label any `json:"label"`
			} `json:"data"`
		}
		if json.Unmarshal(raw, &node) == nil && node.ID == id {
			label, _ = node.Data.Label.(string)
			return node.Type, strings.TrimSpace(label)
		}
	}
	return "", ""
}
