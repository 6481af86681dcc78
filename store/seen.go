package store

import (
	"context"
	"crypto/sha256"

	"satchel/agent"
)

// maxSeen is how many keys of items a node remembers; the newest are kept.
const maxSeen = 100_000

// MaxNewItems limits the items that NewItems is given at once.
const MaxNewItems = 10_000

// SeenQuery asks which items a node has not seen.
type SeenQuery struct {
	WorkflowID, NodeID string
	ExecutionID        string   // "" when a node is tested on its own: nothing is written
	Keys               []string // of the items
	// SkipFirst makes the items of the first call count as seen.
	SkipFirst bool
}

// NewItems returns the positions of items that a node has not seen, each key
// once, and remembers them. record returns the node's result: both are
// committed, or neither. Items are forgotten if the execution fails.
func (db *DB) NewItems(
	ctx context.Context,
	query SeenQuery,
	record func(positions []int) (executionID string, result agent.NodeResult, err error),
) ([]int, error) {
	if query.ExecutionID == "" || record == nil {
		return Read(ctx, db, func(tx *Tx) ([]int, error) {
			fresh, _, err := tx.unseen(query)
			return fresh, err
		})
	}
	return Write(ctx, db, func(tx *Tx) ([]int, error) {
		fresh, hashes, err := tx.unseen(query)
		if err != nil {
			return nil, err
		}
		if err := tx.remember(query, hashes); err != nil {
			return nil, err
		}
		return fresh, tx.recordNode(func() (string, agent.NodeResult, error) { return record(fresh) })
	})
}

// unseen returns the positions of new items, and the hashes of all keys. The empty
// key records that the node has been run before.
func (tx *Tx) unseen(query SeenQuery) (fresh []int, hashes [][]byte, err error) {
	var before bool
	const find = "SELECT EXISTS (SELECT 1 FROM _seen WHERE workflow_id = ? AND node_id = ? AND key = ?)"
	if err := tx.value(&before, find, query.WorkflowID, query.NodeID, []byte{}); err != nil {
		return nil, nil, err
	}
	fresh = []int{}
	met := map[[16]byte]bool{}
	for i, key := range query.Keys {
		sum := sha256.Sum256([]byte(key))
		hash := [16]byte(sum[:16])
		if met[hash] {
			continue
		}
		met[hash] = true
		hashes = append(hashes, hash[:])
		var known bool
		if err := tx.value(&known, find, query.WorkflowID, query.NodeID, hash[:]); err != nil {
			return nil, nil, err
		}
		if !known && (before || !query.SkipFirst) {
			fresh = append(fresh, i)
		}
	}
	return fresh, append(hashes, []byte{}), nil
}

// remember writes what a node has seen. A key that is seen again counts among the
// newest.
func (tx *Tx) remember(query SeenQuery, hashes [][]byte) error {
	var last int64
	if err := tx.value(
		&last,
		"SELECT coalesce(max(n), 0) FROM _seen WHERE workflow_id = ? AND node_id = ?",
		query.WorkflowID, query.NodeID,
	); err != nil {
		return err
	}
	for _, hash := range hashes {
		last++
		if _, err := tx.exec(
			`INSERT INTO _seen(workflow_id, node_id, key, n, execution_id) VALUES (?1, ?2, ?3, ?4, ?5)
			ON CONFLICT (workflow_id, node_id, key) DO UPDATE SET n = excluded.n WHERE n < excluded.n - ?6`,
			query.WorkflowID, query.NodeID, hash, last, query.ExecutionID, maxSeen/2,
		); err != nil {
			return err
		}
	}
	_, err := tx.exec(
		"DELETE FROM _seen WHERE workflow_id = ? AND node_id = ? AND n <= ? AND key <> ?",
		query.WorkflowID,
		query.NodeID,
		last-maxSeen,
		[]byte{},
	)
	return err
}

// endSeen keeps what the nodes of an execution have seen, or forgets it if the
// execution failed.
func (tx *Tx) endSeen(executionID string, status agent.ExecutionStatus) error {
	statement := "DELETE FROM _seen WHERE execution_id = ? AND execution_id <> ''"
	if status == agent.ExecutionComplete {
		statement = "UPDATE _seen SET execution_id = '' WHERE execution_id = ? AND execution_id <> ''"
	}
	_, err := tx.exec(statement, executionID)
	return err
}
