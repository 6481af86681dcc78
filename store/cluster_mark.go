package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"satchel/agent"
	"satchel/store/sqlite"
)

// clusterFolder is where a server of a cluster stores what it knows about its
// copies.
const clusterFolder = "cluster"

// errClusterFolder reports that a data folder has copies of a cluster's agents.
var errClusterFolder = errors.New("this data folder belongs to a server of a cluster, and its files may be old " +
	"copies: start the server with --cluster, and use its API or a data folder made by \"satchel " +
	"cluster export\" for the rest")

// ErrOwnAgents is returned for a data folder with its own agents where copies
// of a cluster's agents are expected.
var ErrOwnAgents = errors.New("this data folder has agents of its own: bring them into the cluster with \"satchel " +
	"cluster import\", and start with an empty --data")

// checkFolderUse refuses to use a folder both in a cluster and without one.
func checkFolderUse(path string, shared bool) error {
	_, err := os.Stat(filepath.Join(path, clusterFolder))
	switch {
	case err == nil && !shared:
		return errClusterFolder
	case err == nil || !shared:
		return nil
	}
	if ids, _ := (&Folder{path: path}).listFiles(); len(ids) > 0 {
		return ErrOwnAgents
	}
	return os.MkdirAll(filepath.Join(path, clusterFolder), 0o700)
}

// AgentFile is an agent's file in a data folder that no server has open.
type AgentFile struct {
	ID, Path string
	Summary

	Access agent.Access // of the default agent's file
}

// EachFile calls fn with each agent's file in a data folder that no server has open.
func EachFile(folder string, masterKeys [][]byte, fn func(AgentFile) error) error {
	if _, err := os.Stat(filepath.Join(folder, "agents")); err != nil {
		return fmt.Errorf("%s is not a data folder: %w", folder, err)
	}
	f, err := Open(Options{Path: folder, MasterKeys: masterKeys})
	if err != nil {
		return err
	}
	defer f.Close()
	for _, db := range f.Agents() {
		if err := db.Problem(); err != nil {
			return err
		}
		file := AgentFile{
			ID:      db.id,
			Path:    db.path,
			Summary: db.record.Load().summary(),
		}
		if db.id == agent.DefaultID {
			if file.Access, err = readAccess(db); err != nil {
				return err
			}
		}
		if err := fn(file); err != nil {
			return err
		}
	}
	return nil
}

// CopyMarked copies an agent's file, with its API keys, to a new file that belongs
// to mark.
func CopyMarked(ctx context.Context, from, to, mark string) error {
	if err := RemoveIfExists(to); err != nil {
		return err
	}
	if err := copyDatabase(ctx, to, sharedSource(from)); err != nil {
		return err
	}
	if err := checkCopy(ctx, to); err != nil {
		return err
	}
	return Mark(to, mark)
}

// Mark makes an agent's file, which must not be open, belong to a data folder or a
// cluster.
func Mark(path, mark string) error {
	c, err := openConn(source(path, sqlite.ReadWrite, "journal_mode(WAL)", "synchronous(FULL)"))
	if err != nil {
		return err
	}
	err = migrate(c)
	if err == nil {
		_, err = c.exec("UPDATE _agent SET folder = ?", mark)
	}
	return errors.Join(err, c.close())
}
