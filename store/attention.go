package store

import (
	"cmp"
	"context"
	"time"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Attention counts what needs a person's attention.
type Attention struct {
	Waiting  int        `json:"waiting,omitempty"`  // approvals, open takeovers and conversations that wait for a person
	Failures int        `json:"failures,omitempty"` // executions of the last FailureAge that ended in an error, and were not repeated since
	FailedAt agent.Time `json:"failed_at,omitzero"` // when the newest of them was started
	Holds    *Holdings  `json:"holds,omitempty"`    // nil: nothing of this is known
}

func (a Attention) known() bool { return a.Holds != nil }

// Holdings counts what an agent has.
type Holdings struct {
	Sources       int `json:"sources" example:"12"`
	Conversations int `json:"conversations" doc:"Open ones." example:"4"`
	Workflows     int `json:"workflows" doc:"Active ones." example:"3"`
}

// FailureAge is how long a failed execution counts in Attention.
const FailureAge = 24 * time.Hour

// maxHandovers limits how many muted conversations are checked, the most recently
// changed first.
const maxHandovers = 1_000

// maxApprovals limits how many approvals, and how many takeovers, are listed.
const maxApprovals = 1_000

// handovers are the open conversations that are waiting for a person: they are muted
// and the contact wrote last, or they are marked.
const handovers = `conversations v WHERE v.status = 'open' AND (v.needs_human = 1 OR (SELECT role FROM messages WHERE id = v.last_message_id) = 'user')
	AND v.rowid IN (SELECT rowid FROM (SELECT rowid FROM conversations WHERE muted = 1 ORDER BY updated_at DESC LIMIT ?1)
		UNION SELECT rowid FROM (SELECT rowid FROM conversations WHERE needs_human = 1 ORDER BY last_message_id DESC LIMIT ?1))`

// approvals leaves out those that belong to a takeover, which is counted itself, and
// those of tests.
const approvals = "kind = 'approval' AND child_id = '' AND execution_id NOT IN (SELECT id " +
	"FROM executions WHERE trigger = 'test')"

// failedExecutions are those with ids from ?2 that ended in an error, without
// tests and without those whose retry has ended, since the retry shows the
// current state.
const failedExecutions = `executions WHERE status = 'errored' AND ` + executionEnded + ` AND id >= ?2 AND trigger <> 'test'
	AND id NOT IN (SELECT retried_from FROM executions WHERE status IN ('complete','errored') AND id >= ?2 AND trigger = 'retry')`

const selectWaiting = `SELECT (SELECT count(*) FROM _waits WHERE ` + approvals + `) + (SELECT count(*) FROM takeovers WHERE ended_at IS NULL)
	+ (SELECT count(*) FROM ` + handovers + `)`

const selectAttention = selectWaiting + `,
	(SELECT count(*) FROM ` + failedExecutions + `),
	(SELECT created_at FROM ` + failedExecutions + ` ORDER BY id DESC LIMIT 1),
	(SELECT n FROM _counts WHERE name = 'sources'), (` + countConversations + ` AND value_2 = 'open'), (SELECT count(DISTINCT workflow_id) FROM _triggers)`

func (c *conn) attention(now agent.Time) (Attention, error) {
	var holds Holdings
	a := Attention{Holds: &holds}
	return a, c.row(selectAttention, maxHandovers, agent.FirstID(agent.KindExecution, now.Add(-FailureAge))).
		Scan(&a.Waiting, &a.Failures, &a.FailedAt, &holds.Sources, &holds.Conversations, &holds.Workflows)
}

// Attention counts what needs a person's attention. It does not open a closed file:
// for one it returns the counts as of its last close, or none if it was never open.
func (db *DB) Attention(ctx context.Context) (Attention, error) {
	attention, open, now := Attention{}, false, agent.Now()
	err := db.ifOpen(func(f *file) error {
		open = true
		r, err := f.reader(ctx)
		if err != nil {
			return err
		}
		defer f.putBack(r, true)
		if attention, err = r.attention(now); err != nil {
			return err
		}
		return f.awaitShipped(ctx)
	})
	if open {
		return attention, explain(err)
	}
	return db.record.Load().attention.At(now), nil
}

// At returns the counts without failures that have become too old.
func (a Attention) At(now agent.Time) Attention {
	if now.Sub(a.FailedAt.Time) > FailureAge {
		a.Failures = 0
	}
	return a
}

// Waiting lists what is waiting for a person, newest first.
func (db *DB) Waiting(ctx context.Context) ([]agent.Waiting, error) {
	return Read(ctx, db, func(tx *Tx) ([]agent.Waiting, error) {
		found := []agent.Waiting{}
		for _, read := range []func(*Tx) ([]agent.Waiting, error){
			waitingApprovals,
			waitingTakeovers,
			waitingHandovers,
		} {
			part, err := read(tx)
			if err != nil {
				return nil, err
			}
			found = append(found, part...)
		}
		agent.Sort(found, func(a, b agent.Waiting) int {
			return cmp.Or(
				b.AskedAt.Compare(a.AskedAt.Time),
				cmp.Compare(a.ExecutionID+a.NodeID, b.ExecutionID+b.NodeID),
			)
		})
		return found, nil
	})
}

func waitingApprovals(tx *Tx) ([]agent.Waiting, error) {
	return all(tx, func(rows *sqlite.Rows) (agent.Waiting, error) {
		w := agent.Waiting{Kind: agent.WaitingApproval}
		return w, rows.Scan(
			&w.Title, &w.Message, &w.AskedAt, &w.ExpiresAt, &w.ExecutionID, &w.NodeID, &w.Path, &w.WorkflowID,
			&w.WorkflowName, &w.CommentRequired,
		)
	}, `SELECT a.title, a.message, a.started_at, a.due_at, a.execution_id, a.node_id, a.path, e.workflow_id, f.name, a.comment_required
		FROM (SELECT * FROM _waits WHERE `+approvals+` ORDER BY started_at DESC LIMIT ?) a
		JOIN executions e ON e.id = a.execution_id JOIN workflows f ON f.id = e.workflow_id`, maxApprovals)
}

func waitingTakeovers(tx *Tx) ([]agent.Waiting, error) {
	return all(tx, func(rows *sqlite.Rows) (agent.Waiting, error) {
		w := agent.Waiting{Kind: agent.WaitingTakeover}
		return w, rows.Scan(
			&w.Title, &w.Message, &w.AskedAt, &w.ExpiresAt, &w.ExecutionID, &w.NodeID, &w.Path, &w.WorkflowID,
			&w.WorkflowName, &w.SessionID, &w.TakeoverID,
		)
	}, `SELECT coalesce(a.title, ''), coalesce(a.message, t.reason), t.created_at, t.expires_at, coalesce(a.execution_id, ''), coalesce(a.node_id, ''), coalesce(a.path, ''),
			coalesce(e.workflow_id, ''), coalesce(f.name, ''), t.session_id, t.id
		FROM takeovers t LEFT JOIN _waits a ON a.child_id = t.id AND a.child_id <> '' AND a.kind = 'approval'
		LEFT JOIN executions e ON e.id = a.execution_id LEFT JOIN workflows f ON f.id = e.workflow_id
		WHERE t.ended_at IS NULL ORDER BY t.created_at DESC LIMIT ?`, maxApprovals)
}

// maxPreview limits the excerpt of the message that a handover is about, in
// characters.
const maxPreview = 500

func waitingHandovers(tx *Tx) ([]agent.Waiting, error) {
	return all(tx, func(rows *sqlite.Rows) (agent.Waiting, error) {
		w := agent.Waiting{Kind: agent.WaitingHandover}
		err := rows.Scan(&w.ConversationID, &w.ContactName, &w.Message, &w.AskedAt)
		w.Title = w.ContactName
		return w, err
	}, `SELECT v.id, coalesce(c.name, ''), coalesce(substr(m.content, 1, ?2), ''), coalesce(m.created_at, v.updated_at)
		FROM (SELECT v.id, v.contact_id, v.last_message_id, v.updated_at FROM `+handovers+`) v
		LEFT JOIN messages m ON m.id = v.last_message_id LEFT JOIN contacts c ON c.id = v.contact_id`, maxHandovers, maxPreview)
}
