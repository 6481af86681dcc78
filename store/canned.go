package store

import (
	"context"

	"satchel/agent"
	"satchel/store/sqlite"
)

const cannedColumns = "id, shortcut, text, created_at, updated_at"

var cannedListing = listing[agent.CannedReply]{listed{
	table:   "canned_replies",
	columns: cannedColumns,
	order:   Order{"shortcut", false},
	sort:    map[string]string{"shortcut": "shortcut COLLATE NOCASE", "created_at": "created_at"},
	search:  []string{"shortcut", "text"},
}, scanCanned}

// maxCanned limits an agent's canned replies.
const maxCanned = 1_000

func scanCanned(rows *sqlite.Rows) (r agent.CannedReply, err error) {
	return r, rows.Scan(&r.ID, &r.Shortcut, &r.Text, &r.CreatedAt, &r.UpdatedAt)
}

// CannedReplies lists canned replies.
func (db *DB) CannedReplies(ctx context.Context, p Page) ([]agent.CannedReply, int, error) {
	return listPage(ctx, db, cannedListing, filter{}, p)
}

// CreateCannedReply adds a canned reply. It returns CONFLICT if the shortcut is
// taken.
func (db *DB) CreateCannedReply(ctx context.Context, change agent.CannedReplyChange) (agent.CannedReply, error) {
	var reply agent.CannedReply
	change.Apply(&reply)
	if err := reply.Validate(); err != nil {
		return reply, err
	}
	return Write(ctx, db, func(tx *Tx) (agent.CannedReply, error) {
		cannedReply := reply
		var count int
		if err := tx.value(&count, "SELECT n FROM _counts WHERE name = 'canned_replies'"); err != nil {
			return cannedReply, err
		}
		if count >= maxCanned {
			return cannedReply, agent.Errorf(
				agent.CodeConflict,
				"an agent has at most %d canned replies",
				maxCanned,
			).With("limit", maxCanned)
		}
		cannedReply.ID, cannedReply.CreatedAt, cannedReply.UpdatedAt = agent.NewID(agent.KindReply), tx.Now, tx.Now
		if _, err := tx.exec(
			"INSERT INTO canned_replies("+cannedColumns+") VALUES (?,?,?,?,?)",
			cannedReply.ID, cannedReply.Shortcut, cannedReply.Text, cannedReply.CreatedAt, cannedReply.UpdatedAt,
		); err != nil {
			return cannedReply, shortcutError(err)
		}
		return cannedReply, tx.audit("canned reply created", map[string]any{"reply_id": cannedReply.ID})
	})
}

// UpdateCannedReply changes the given fields of a canned reply.
func (db *DB) UpdateCannedReply(
	ctx context.Context,
	id string,
	change agent.CannedReplyChange,
) (agent.CannedReply, error) {
	return Write(ctx, db, func(tx *Tx) (agent.CannedReply, error) {
		found, err := all(tx, scanCanned, "SELECT "+cannedColumns+" FROM canned_replies WHERE id = ?", id)
		if err != nil {
			return agent.CannedReply{}, err
		}
		if len(found) == 0 {
			return agent.CannedReply{}, agent.NotFound("canned reply", id)
		}
		r := found[0]
		change.Apply(&r)
		if err := r.Validate(); err != nil {
			return r, err
		}
		r.UpdatedAt = tx.Now
		if _, err := tx.exec(
			"UPDATE canned_replies SET shortcut = ?, text = ?, updated_at = ? WHERE id = ?",
			r.Shortcut, r.Text, r.UpdatedAt, id,
		); err != nil {
			return r, shortcutError(err)
		}
		return r, tx.audit("canned reply updated", map[string]any{"reply_id": id})
	})
}

func shortcutError(err error) error {
	if isUnique(err) {
		return agent.Errorf(agent.CodeConflict, "another canned reply has this shortcut").
			With("field", "shortcut").
			Because(err)
	}
	return err
}

// DeleteCannedReply removes a canned reply.
func (db *DB) DeleteCannedReply(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.deleteRow("canned_replies", "canned reply", id); err != nil {
			return err
		}
		return tx.audit("canned reply deleted", map[string]any{"reply_id": id})
	})
}
