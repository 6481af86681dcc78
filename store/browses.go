package store

import (
	"context"
	"encoding/json"

	"satchel/agent"
	"satchel/store/sqlite"
)

const maxBrowses = 200 // of an agent

const browseColumns = "id, session_id, status, goal, max_steps, max_tokens, hosts, variables, takeover, result, " +
	"reason, takeover_id, step_count, input_tokens, output_tokens, created_at, ended_at"

var browseListing = listing[agent.Browse]{listed{
	table:   "_browses",
	columns: browseColumns,
	order:   Order{"created_at", true},
	sort:    map[string]string{"created_at": "created_at", "status": "status"},
	search:  []string{"id", "goal"},
}, scanBrowse}

func scanBrowse(rows *sqlite.Rows) (browse agent.Browse, err error) {
	var hosts, variables, result rawJSON
	if err := rows.Scan(
		&browse.ID, &browse.SessionID, &browse.Status, &browse.Goal, &browse.MaxSteps, &browse.MaxTokens, &hosts,
		&variables, &browse.Takeover, &result, &browse.Reason, &browse.TakeoverID, &browse.StepCount,
		&browse.InputTokens, &browse.OutputTokens, &browse.CreatedAt, &browse.EndedAt,
	); err != nil {
		return browse, err
	}
	for raw, into := range map[*rawJSON]any{
		&hosts:     &browse.Hosts,
		&variables: &browse.Variables,
		&result:    &browse.Result,
	} {
		if err := json.Unmarshal(*raw, into); err != nil {
			return browse, err
		}
	}
	return browse, nil
}

// Browses lists the browses of a session, newest first.
func (db *DB) Browses(ctx context.Context, sessionID string, p Page) ([]agent.Browse, int, error) {
	var f filter
	f.in("session_id", sessionID)
	return listPage(ctx, db, browseListing, f, p)
}

// Browse reads a browse of a session with its steps.
func (db *DB) Browse(
	ctx context.Context,
	sessionID, id string,
) (browse agent.Browse, steps []agent.BrowseStep, err error) {
	browse, err = Read(ctx, db, func(tx *Tx) (agent.Browse, error) {
		found, err := all(
			tx,
			scanBrowse,
			"SELECT "+browseColumns+" FROM _browses WHERE id = ? AND session_id = ?",
			id,
			sessionID,
		)
		if err == nil && len(found) == 0 {
			err = agent.NotFound("browse", id)
		}
		if err != nil {
			return agent.Browse{}, err
		}
		steps, err = all(
			tx,
			scanBrowseStep,
			"SELECT step, action, selector, text, description, url, error, duration_ms, created_at "+
				"FROM _browse_steps WHERE browse_id = ? ORDER BY step",
			id,
		)
		return found[0], err
	})
	return browse, steps, err
}

func scanBrowseStep(rows *sqlite.Rows) (s agent.BrowseStep, err error) {
	return s, rows.Scan(
		&s.Step, &s.Action, &s.Selector, &s.Text, &s.Description, &s.URL, &s.Error, &s.DurationMS, &s.CreatedAt,
	)
}

// CreateBrowse stores a new browse. If another browse of its session has not ended,
// it returns CONFLICT with that one's id. The agent's oldest ended browses beyond
// the limit are deleted.
func (db *DB) CreateBrowse(ctx context.Context, browse agent.Browse) error {
	hosts, err := json.Marshal(browse.Hosts)
	if err != nil {
		return err
	}
	variables, err := json.Marshal(browse.Variables)
	if err != nil {
		return err
	}
	return db.Do(ctx, func(tx *Tx) error {
		open, err := all(
			tx,
			scanBrowse,
			"SELECT "+browseColumns+" FROM _browses WHERE session_id = ? AND ended_at IS NULL",
			browse.SessionID,
		)
		if err != nil {
			return err
		}
		if len(open) > 0 {
			return agent.Errorf(
				agent.CodeConflict,
				"the session is already working on another goal",
			).With("existing_id", open[0].ID)
		}
		if _, err := tx.exec(`DELETE FROM _browses WHERE ended_at IS NOT NULL AND id NOT IN
				(SELECT id FROM _browses ORDER BY created_at DESC, id DESC LIMIT ?)`, maxBrowses-1); err != nil {
			return err
		}
		if _, err := tx.exec(
			"INSERT INTO _browses("+browseColumns+") VALUES (?,?,?,?,?,?,?,?,?,NULL,'','',0,0,0,?,NULL)",
			browse.ID, browse.SessionID, browse.Status, browse.Goal, browse.MaxSteps, browse.MaxTokens,
			string(hosts), string(variables), browse.Takeover, browse.CreatedAt,
		); err != nil {
			return err
		}
		return tx.audit("goal given to browser session", map[string]any{
			"session_id": browse.SessionID,
			"browse_id":  browse.ID,
		})
	})
}

// UpdateBrowse stores the state and the new steps of a browse. One that has ended is
// not changed.
func (db *DB) UpdateBrowse(ctx context.Context, browse agent.Browse, steps ...agent.BrowseStep) error {
	result, err := json.Marshal(browse.Result)
	if err != nil {
		return err
	}
	return db.Do(ctx, func(tx *Tx) error {
		done, err := tx.exec(
			`UPDATE _browses SET status = ?, result = ?, reason = ?, takeover_id = ?, step_count = ?, input_tokens = ?, output_tokens = ?, ended_at = ?
			WHERE id = ? AND ended_at IS NULL`,
			browse.Status,
			string(result),
			browse.Reason, browse.TakeoverID, browse.StepCount, browse.InputTokens, browse.OutputTokens,
			browse.EndedAt, browse.ID,
		)
		if err != nil || done.Changes == 0 {
			return err
		}
		for _, s := range steps {
			if _, err := tx.exec(
				"INSERT INTO _browse_steps(browse_id, step, action, selector, text, description, url, error, "+
					"duration_ms, created_at) VALUES (?,?,?,?,?,?,?,?,?,?)",
				browse.ID, s.Step, s.Action, s.Selector, s.Text, s.Description, s.URL, s.Error,
				s.DurationMS, s.CreatedAt,
			); err != nil {
				return err
			}
		}
		return nil
	})
}

// endBrowses ends the browse of a session that has ended.
func (tx *Tx) endBrowses(sessionID, reason string) error {
	_, err := tx.exec(
		"UPDATE _browses SET status = ?, reason = ?, ended_at = ? WHERE session_id = ? AND ended_at IS NULL",
		agent.BrowseFailed, reason, tx.Now, sessionID,
	)
	return err
}
