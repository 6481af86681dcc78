package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"satchel/agent"
	"satchel/store"
)

// Import adds the agents of a data folder, which no server may have open, to the cluster,
// and returns how many. The servers of the cluster take them over. The folder is not
// changed. An agent whose id or name is already in the cluster is an error; the agents
// before it have been imported, and importing again skips them.
func (cluster *Cluster) Import(ctx context.Context, folder string) (count int, err error) {
	temps, err := os.MkdirTemp("", "satchel-import-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temps)
	err = store.EachFile(folder, cluster.MasterKeys, func(file store.AgentFile) error {
		var exists bool
		if err := cluster.pool.QueryRow(
			ctx,
			"SELECT EXISTS (SELECT 1 FROM agent WHERE id = $1 AND NOT deleted)",
			file.ID,
		).Scan(&exists); err != nil {
			return err
		}
		if exists {
			cluster.Log.Warn("the cluster has this agent already; it is not imported", "agent", file.ID)
			return nil
		}
		temp := filepath.Join(temps, file.ID+".db")
		defer os.Remove(temp)
		if err := store.CopyMarked(ctx, file.Path, temp, cluster.Mark()); err != nil {
			return fmt.Errorf("agent %s: %w", file.ID, err)
		}
		if file.ID == agent.DefaultID {
			if err := cluster.importAccess(ctx, file.Access); err != nil {
				return err
			}
		}
		if err := cluster.insertAgent(ctx, "", file.ID, temp, file.Summary); err != nil {
			return fmt.Errorf("agent %s: %w", file.ID, err)
		}
		// Pending work is known only once the file is read.
		_, err := cluster.pool.Exec(
			ctx,
			"UPDATE agent SET info_head = 0, changed = clock_timestamp() WHERE id = $1",
			file.ID,
		)
		count++
		return err
	})
	return count, err
}

// Export writes the agents of the cluster, each as of one moment, to a data folder and
// returns how many. The folder must be empty or not exist.
func (cluster *Cluster) Export(ctx context.Context, folder string) (count int, err error) {
	if entries, err := os.ReadDir(folder); len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, errors.Join(fmt.Errorf("%s is not an empty folder", folder), err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "agents"), 0o700); err != nil {
		return 0, err
	}
	if folder, err = filepath.Abs(folder); err == nil {
		folder, err = filepath.EvalSymlinks(folder)
	}
	if err != nil {
		return 0, err
	}
	var ids []string
	for row, err := range cluster.pool.Query(ctx, "SELECT id FROM agent WHERE NOT deleted ORDER BY id") {
		var id string
		if err == nil {
			err = row.Scan(&id)
		}
		if err != nil {
			return 0, err
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		path := filepath.Join(folder, "agents", id+".db")
		if _, _, err = cluster.write(ctx, id, path, olderCopy{}); err == nil {
			err = store.Mark(path, folder)
		}
		if err != nil {
			return count, fmt.Errorf("agent %s: %w", id, err)
		}
		count++
	}
	return count, err
}
