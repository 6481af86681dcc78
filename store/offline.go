package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"satchel/agent"
)

// BackupFile copies an agent, found by id or name, to a file that must not
// exist, whether or not a server has the data folder open.
func BackupFile(folder, idOrName, to string) error {
	if err := checkFolderUse(folder, false); err != nil {
		return err
	}
	from, err := findFile(folder, idOrName)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s already exists", to)
	}
	temp := to + ".partial"
	if err := errors.Join(RemoveIfExists(temp), RemoveIfExists(temp+cleanSuffix)); err != nil { // left by a kill
		return err
	}
	err = copyDatabase(context.Background(), temp, sharedSource(from))
	if err == nil {
		err = dropAccess(temp)
	}
	if err != nil {
		return errors.Join(err, RemoveIfExists(temp))
	}
	if err := os.Rename(temp, to); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(to))
}

// findFile finds an agent's file in a data folder that is not open here.
func findFile(folder, idOrName string) (string, error) {
	f := &Folder{path: folder}
	ids, err := f.listFiles()
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		if id == idOrName {
			return f.filePath(id), inspect(f.filePath(id)).problem
		}
	}
	for i, found := range f.inspectAll(ids) {
		if found.problem == nil && agent.NameKey(found.agent.Name) == agent.NameKey(idOrName) {
			return f.filePath(ids[i]), nil
		}
	}
	path, err := filepath.Abs(f.agentsPath())
	if err != nil {
		return "", err
	}
	return "", fmt.Errorf("no agent %q in %s", idOrName, path)
}

// RestoreFile puts a backup among the agents of a data folder, under its old id if
// that is free, and returns the agent's id. A running server adopts it within two
// seconds, a stopped one when it starts; either way the agent is paused.
func RestoreFile(ctx context.Context, folder, from string) (id string, err error) {
	if err := checkRegular(from); err != nil {
		return "", err
	}
	if err := checkFolderUse(folder, false); err != nil {
		return "", err
	}
	path, err := makeFolder(folder)
	if err != nil {
		return "", err
	}
	dir, remove, err := MakeTemp(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, remove()) }()
	temp := filepath.Join(dir, "agent.db")
	if err := explain(copyBackup(ctx, temp, from)); err != nil {
		return "", invalidFileError(err)
	}
	found := row{}
	if err = checkImport(ctx, temp); err == nil {
		err = dropAccess(temp)
	}
	if err == nil {
		found, err = prepareCopy(ctx, temp, "")
	}
	if err != nil {
		return "", invalidFileError(explain(err))
	}
	f := &Folder{path: path}
	if id = found.id; !isFileName(id) {
		id = agent.NewID(agent.KindAgent)
	}
	if err = place(temp, f.filePath(id)); errors.Is(err, fs.ErrExist) {
		id = agent.NewID(agent.KindAgent)
		err = place(temp, f.filePath(id))
	}
	return id, err
}

// PutFile adds an agent's complete file, without a -wal, to a data folder
// unchanged, under an id that is free there. It is the same agent, with its API
// keys, and counts as a copy unless the folder has the path that the file comes
// from.
func PutFile(ctx context.Context, folder, from, id string) error {
	if !isFileName(id) {
		return fmt.Errorf("%q is not an agent's id", agent.Clip(id, 60))
	}
	if err := checkImport(ctx, from); err != nil {
		return err
	}
	if err := checkFolderUse(folder, false); err != nil {
		return err
	}
	path, err := makeFolder(folder)
	if err != nil {
		return err
	}
	f := &Folder{path: path}
	if err := place(from, f.filePath(id)); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists", f.filePath(id))
	} else if err != nil {
		return err
	}
	return nil
}

// copyBackup copies a backup, which may be in a folder that cannot be written.
func copyBackup(ctx context.Context, to, from string) error {
	err := copyDatabase(ctx, to, sharedSource(from))
	switch sqliteCode(err) & 0xff {
	case codePerm, codeReadOnly, codeCantOpen:
		return errors.Join(RemoveIfExists(to), copyDatabase(ctx, to, unlockedSource(from)))
	}
	return err
}
