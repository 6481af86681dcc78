package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store"
	"satchel/store/cluster/pg"
)

// Recover writes agents from the data folder of a stopped server back to the database, if
// the database has fewer of their commits, and returns how many. It recovers only agents
// that no server can be using: stopped ones, and all if no server is running. An empty
// database becomes that of the folder's cluster. If no server is running, none can join
// until Continue.
func (cluster *Cluster) Recover(ctx context.Context, folder string) (count int, err error) {
	release, err := store.LockCopies(folder)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, release()) }()
	seen, quiet := readLastSeen(folder), false
	var incarnation string
	if err := cluster.pool.QueryRow(ctx, "SELECT incarnation FROM cluster").Scan(&incarnation); err != nil {
		return 0, err
	}
	if seen.Cluster != "" && seen.Cluster != cluster.id {
		if err := cluster.adopt(ctx, seen); err != nil {
			return 0, err
		}
		incarnation = seen.Incarnation
	}
	if seen.Cluster != cluster.id || seen.Incarnation != incarnation {
		return 0, fmt.Errorf("%s is of another cluster, or was not in it when its database was restored", folder)
	}
	if quiet, err = cluster.isQuiet(ctx); err != nil {
		return 0, err
	}
	if quiet {
		if _, err := cluster.pool.Exec(ctx, "UPDATE cluster SET recovering = true"); err != nil {
			return 0, err
		}
	}
	cluster.lastSeen.Incarnation = incarnation
	return cluster.recoverCopies(ctx, folder, quiet)
}

// errInUse reports that a database is not empty and so cannot become another cluster's.
var errInUse = errors.New("the database is not empty, and of another cluster than this data folder: recover into a " +
	"new one, before any server starts on it")

// adopt makes an empty database that of a folder's cluster, whose own database was lost.
func (cluster *Cluster) adopt(ctx context.Context, seen lastSeen) error {
	isKey := func(key []byte) bool {
		return keyCheck(key, seen.Cluster) == seen.MasterKey
	}
	if seen.MasterKey != "" && !slices.ContainsFunc(cluster.MasterKeys, isKey) {
		return errMasterKey
	}
	done, err := cluster.pool.Exec(ctx, `UPDATE cluster SET id = $1, incarnation = $2, master_key = $3
		WHERE joins = 0 AND NOT recovering AND NOT EXISTS (SELECT 1 FROM agent)`, seen.Cluster, seen.Incarnation, keyCheck(cluster.MasterKeys[0], seen.Cluster))
	if err == nil && done.RowsAffected() == 0 {
		err = errInUse
	}
	if err == nil {
		cluster.id = seen.Cluster
	}
	return err
}

// isQuiet reports whether no server of the cluster sends heartbeats.
func (cluster *Cluster) isQuiet(ctx context.Context) (bool, error) {
	var sums [2]int64
	for i := range sums {
		if i > 0 {
			select {
			case <-ctx.Done():
				return false, ctx.Err()
			case <-time.After(pollTime + pollEvery):
			}
		}
		if err := cluster.pool.QueryRow(
			ctx,
			"SELECT coalesce(sum(beat), 0)::bigint FROM node",
		).Scan(&sums[i]); err != nil {
			return false, err
		}
	}
	return sums[0] == sums[1], nil
}

// recoverCopies recovers the agents of a folder whose files were closed properly.
func (cluster *Cluster) recoverCopies(ctx context.Context, folder string, quiet bool) (count int, err error) {
	temps, err := os.MkdirTemp("", "satchel-recover-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temps)
	records, err := filepath.Glob(filepath.Join(folder, "cluster", "*.json"))
	for _, record := range records {
		id := strings.TrimSuffix(filepath.Base(record), ".json")
		path := filepath.Join(folder, "agents", id+".db")
		recorded, ok := cluster.recordedCopy(record, path)
		if !ok {
			cluster.Log.Warn("an agent's file was not closed properly and is not recovered", "agent", id, "file", path)
			continue
		}
		missing, err := cluster.hasLostCommits(ctx, id, recorded.Head, quiet)
		if err == nil && missing {
			if err = cluster.recoverCopy(
				ctx,
				id,
				path,
				filepath.Join(temps, id),
				recorded.Head,
			); err == nil {
				count++
			}
		}
		if agent.ErrorCode(err) == agent.CodeAgentNameExists { // one that was deleted or renamed since
			cluster.Log.Warn(
				"an agent is not recovered because another one has its name",
				"agent", id,
				"file", path,
				"error", err,
			)
			err = nil
		}
		if err != nil {
			return count, fmt.Errorf("agent %s: %w", id, err)
		}
	}
	return count, err
}

// hasLostCommits reports whether the database lacks an agent's commits up to head, and no server
// can have continued without them.
func (cluster *Cluster) hasLostCommits(ctx context.Context, id string, head int64, quiet bool) (bool, error) {
	var now int64
	var owner string
	err := cluster.pool.QueryRow(ctx, "SELECT head, owner FROM agent WHERE id = $1", id).Scan(&now, &owner)
	switch {
	case errors.Is(err, pg.ErrNoRows):
		return quiet, nil
	case err != nil || now >= head:
		return false, err
	case !quiet && owner != stopped:
		cluster.Log.Warn("a server has this agent: stop all servers to recover it", "agent", id)
		return false, nil
	}
	return true, nil
}

// recoverCopy writes an agent's file, as of the commit head, to the database. temp is a
// folder for temporary files.
func (cluster *Cluster) recoverCopy(ctx context.Context, id, path, temp string, head int64) error {
	defer os.RemoveAll(temp)
	if err := os.MkdirAll(filepath.Join(temp, "agents"), 0o700); err != nil {
		return err
	}
	temp, err := filepath.EvalSymlinks(temp)
	if err == nil {
		err = store.CopyMarked(ctx, path, filepath.Join(temp, "agents", id+".db"), temp)
	}
	if err != nil {
		return err
	}
	return store.EachFile(temp, cluster.MasterKeys, func(f store.AgentFile) error {
		if f.ID != id {
			return nil // the default agent that every folder has
		}
		if id == agent.DefaultID {
			if err := cluster.importAccess(ctx, f.Access); err != nil {
				return err
			}
		}
		marked := filepath.Join(temp, "marked.db")
		if err := store.CopyMarked(ctx, f.Path, marked, cluster.Mark()); err != nil {
			return err
		}
		return cluster.replaceAgent(ctx, f, marked, head)
	})
}

// replaceAgent makes a file the base of an agent at a commit. A server takes the agent
// over after Continue.
func (cluster *Cluster) replaceAgent(ctx context.Context, agentFile store.AgentFile, path string, head int64) error {
	var exists bool
	if err := cluster.pool.QueryRow(
		ctx,
		"SELECT EXISTS (SELECT 1 FROM agent WHERE id = $1)",
		agentFile.ID,
	).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		if err := cluster.insertAgent(ctx, stopped, agentFile.ID, path, agentFile.Summary); err != nil {
			return err
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	name := agentFile.Summary.Agent.Name
	err = cluster.pool.Transact(ctx, func(tx *pg.Tx) error {
		_, err := tx.Exec(
			ctx,
			`UPDATE agent SET owner = $2, head = $3, name = $4, name_key = $5, file_version = $6, deleted = false, `+
				`info_head = 0, changed = clock_timestamp() WHERE id = $1`,
			agentFile.ID, stopped, head, name,
			agent.NameKey(name),
			store.FileVersion(),
		)
		if err != nil {
			return err
		}
		return putBase(ctx, tx, agentFile.ID, file, head)
	})
	return nameError(err, name)
}

// Continue lets the servers continue from the state of the database, after it was
// restored or agents were stopped.
func (cluster *Cluster) Continue(ctx context.Context) error {
	return cluster.pool.ExecBatch(ctx, pg.Batch{
		{SQL: "UPDATE cluster SET incarnation = $1, recovering = false", Args: []any{rand.Text()}},
		{SQL: "UPDATE agent SET owner = '', changed = clock_timestamp() WHERE owner = $1", Args: []any{stopped}},
	})
}
