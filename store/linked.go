package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"

	"satchel/agent"
)

// linkedFile is an agent's file outside the data folder that is used where it is.
type linkedFile struct {
	id, path string // path is absolute, without symbolic links
}

// link determines which agent the file of Options.Linked belongs to. It returns an
// error if the file is not an agent's, or if a server has the data folder open that
// contains it.
func (folder *Folder) link(path string) error {
	if err := checkRegular(path); err != nil {
		return err
	}
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return err
	}
	if hasOtherNames(abs) { // each name would have a -wal of its own
		return fmt.Errorf("%s cannot be opened: it has another name elsewhere (a hard link); open a copy", path)
	}
	found := inspect(abs)
	if found.problem != nil {
		return withFileName(path, found.problem)
	}
	if found.folder != folder.path { // opened here for the first time
		if err := checkWithin(context.Background(), abs); err != nil {
			return withFileName(path, damaged(err))
		}
	}
	if home := filepath.Dir(filepath.Dir(abs)); home != folder.path {
		err := notServed(home)
		if err == nil && filepath.Base(filepath.Dir(abs)) == "agents" {
			err = checkFolderUse(home, false)
		}
		if err != nil {
			return fmt.Errorf("%s cannot be opened: %w", path, err)
		}
	}
	id := found.id
	if id == agent.DefaultID || !isFileName(id) {
		id = agent.NewID(agent.KindAgent)
	}
	if _, err := os.Lstat(folder.filePath(id)); err == nil {
		return fmt.Errorf("%s cannot be opened: the data folder %s has this agent", path, folder.path)
	}
	folder.linked = linkedFile{id: id, path: abs}
	return nil
}

// notServed returns an error if a server has a folder open. The folder need not be a
// data folder.
func notServed(folder string) error {
	path := filepath.Join(folder, lockFile)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	lock := flock.New(path)
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	free, err := lock.TryLockContext(ctx, lockRetry)
	switch {
	case free:
		return lock.Unlock()
	case err == nil || errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %s", ErrLocked, folder)
	}
	return err
}

// filePath returns the path of an agent's file.
func (folder *Folder) filePath(id string) string {
	if folder.linked.id == id && id != "" {
		return folder.linked.path
	}
	return filepath.Join(folder.path, "agents", id+".db")
}

// withLinked adds the linked file to the sorted ids of the agents folder.
func (folder *Folder) withLinked(ids []string) []string {
	if folder.linked.id == "" {
		return ids
	}
	at, found := slices.BinarySearch(ids, folder.linked.id)
	if found {
		return ids
	}
	return slices.Insert(ids, at, folder.linked.id)
}

// Linked returns the agent whose file is outside the data folder, or nil.
func (folder *Folder) Linked() *DB {
	return folder.known(folder.linked.id)
}
