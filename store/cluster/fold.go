package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"satchel/agent"
	"satchel/store"
	"satchel/store/cluster/pg"
)

// When the log of an agent is folded into its base: when it exceeds foldBytes and
// 1/foldPart of the file, since a fold may rewrite the whole file; or when the agent has
// not been written for foldIdleAfter.
const (
	foldBytes     = 4 << 20
	foldPart      = 8
	foldIdleAfter = 10 * time.Minute
	foldEvery     = 5 * time.Second // looks
)

// foldAll folds the logs of this server's agents, one at a time, and records
// their pending work.
func (cluster *Cluster) foldAll(ctx context.Context) {
	ticker := time.NewTicker(foldEvery)
	defer ticker.Stop()
	purged := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			cluster.noteWritten(ctx, now)
			for _, id := range cluster.dueFolds(now) {
				if err := cluster.fold(ctx, id); agent.IgnoreNotFound(err) != nil && ctx.Err() == nil {
					cluster.Log.Warn("fold the log of an agent", "agent", id, "error", err)
				}
			}
			if now.Sub(purged) > 24*time.Hour {
				purged = now
				cluster.purgeLost(now)
			}
		}
	}
}

// dueFolds lists the agents whose logs are to be folded.
func (cluster *Cluster) dueFolds(now time.Time) (ids []string) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	if cluster.expired || cluster.leaving {
		return nil
	}
	for id, f := range cluster.files {
		if f.session == cluster.self.Session &&
			(f.logged > foldBytes && cluster.isLogLong(id, f.logged) ||
				f.logged > 0 && now.Sub(f.written) > foldIdleAfter) {
			ids = append(ids, id)
		}
	}
	return ids
}

// isLogLong reports whether a log of this many bytes is long for the agent's file.
func (cluster *Cluster) isLogLong(id string, logged int64) bool {
	info, err := os.Stat(cluster.folder.FilePath(id))
	return err != nil || logged > info.Size()/foldPart
}

// fold makes the agent's file as it is now the base, and removes the log up to then.
func (cluster *Cluster) fold(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, restoreTime)
	defer cancel()
	db, err := cluster.folder.Agent(id)
	if err != nil {
		return err
	}
	cluster.mu.Lock()
	state := cluster.files[id]
	cluster.mu.Unlock()
	if state == nil {
		return nil
	}
	snapshot, err := db.Hold(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Release()
	path := cluster.folder.FilePath(id)
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	err = cluster.pool.Transact(ctx, func(tx *pg.Tx) error {
		if err := putBase(ctx, tx, id, file, int64(snapshot.At.TXID)); err != nil {
			return err
		}
		if store.StampOf(path) != snapshot.At.Stamp {
			return errors.New("another program changed the file")
		}
		// Last, so that commits wait only briefly for this row.
		done, err := tx.Exec(
			ctx,
			"UPDATE agent SET changed = changed WHERE id = $1 AND owner = $2 AND NOT deleted AND head >= $3",
			id,
			state.session,
			int64(snapshot.At.TXID),
		)
		if err == nil && done.RowsAffected() == 0 {
			return agent.NotFound("agent", id).Because(ErrNotOwner)
		}
		return err
	})
	if err != nil {
		return err
	}
	return cluster.countLog(ctx, id, state)
}

// countLog reads the size of the log since the last fold.
func (cluster *Cluster) countLog(ctx context.Context, id string, f *copyState) error {
	var bytes int64
	if err := cluster.pool.QueryRow(
		ctx,
		"SELECT coalesce(sum(length(body)), 0) FROM log WHERE agent = $1",
		id,
	).Scan(&bytes); err != nil {
		return err
	}
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	f.logged = bytes
	return nil
}

// putBase stores a complete file, which must not change meanwhile, as the base
// of an agent at a commit: the blocks that differ from those of the previous
// base.
func putBase(ctx context.Context, tx *pg.Tx, id string, file *os.File, seq int64) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	before, err := blockSums(ctx, tx, id)
	if err != nil {
		return err
	}
	data, no := make([]byte, blockSize), 0
	for at := int64(0); at < info.Size(); no++ {
		n, err := file.ReadAt(data, at)
		if err != nil && err != io.EOF {
			return err
		}
		at += int64(n)
		sum := sha256.Sum256(data[:n])
		if bytes.Equal(before[no], sum[:]) {
			continue
		}
		if _, err := tx.Exec(ctx, `INSERT INTO block(agent, no, sha, body) VALUES ($1,$2,$3,$4)
			ON CONFLICT (agent, no) DO UPDATE SET sha = excluded.sha, body = excluded.body`, id, no, sum[:], data[:n]); err != nil {
			return err
		}
	}
	return tx.ExecBatch(ctx, pg.Batch{
		{SQL: "DELETE FROM block WHERE agent = $1 AND no >= $2", Args: []any{id, no}},
		{SQL: `INSERT INTO base(agent, seq, size) VALUES ($1,$2,$3)
			ON CONFLICT (agent) DO UPDATE SET seq = excluded.seq, size = excluded.size`, Args: []any{id, seq, info.Size()}},
		{SQL: "DELETE FROM log WHERE agent = $1 AND seq <= $2", Args: []any{id, seq}},
	})
}

func blockSums(ctx context.Context, tx *pg.Tx, id string) (map[int][]byte, error) {
	sums := map[int][]byte{}
	for row, err := range tx.Query(ctx, "SELECT no, sha FROM block WHERE agent = $1", id) {
		var no int
		var sha []byte
		if err == nil {
			err = row.Scan(&no, &sha)
		}
		if err != nil {
			return nil, fmt.Errorf("read the blocks: %w", err)
		}
		sums[no] = sha
	}
	return sums, nil
}
