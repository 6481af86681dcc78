package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"satchel/agent"
)

// Temporary files in a data folder are of three kinds, which hold agents' data and keys
// and are removed after a kill:
//   - the server's own, in DATA/tmp, which each start and end of it empties;
//   - new versions of DATA/*.new and DATA/replica/*.new, which are renamed when they are
//     complete: the next start removes them;
//   - folders that MakeTemp makes for commands, which may run beside a server: the next
//     MakeTemp, or the next start, removes those that no command uses.
const (
	commandTemp = "command-"     // begins the names of MakeTemp's folders
	commandLock = "command.lock" // is locked while a command uses such a folder
)

// leftByCommands matches the names of what commands may leave; earlier versions made
// files and folders that begin with "restore-".
var leftByCommands = agent.Pattern(`^(command|restore)-[0-9a-z]+(\.clean|-wal|-shm|-journal)*$`)

// MakeTemp makes a private folder for the temporary files of a command, in a data folder
// that a server may have open. remove deletes it.
func MakeTemp(folder string) (path string, remove func() error, err error) {
	if err := clearCommands(folder); err != nil {
		return "", nil, err
	}
	lock := flock.New(filepath.Join(folder, commandLock))
	if err := lock.RLock(); err != nil {
		return "", nil, fmt.Errorf("lock the data folder's temporary files: %w", err)
	}
	if path, err = os.MkdirTemp(folder, commandTemp); err != nil {
		return "", nil, errors.Join(err, lock.Unlock())
	}
	return path, func() error {
		return errors.Join(os.RemoveAll(path), lock.Unlock())
	}, nil
}

// clearCommands removes what killed commands left, unless a command is running.
func clearCommands(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var remaining []string
	for _, e := range entries {
		if leftByCommands().MatchString(e.Name()) {
			remaining = append(remaining, filepath.Join(folder, e.Name()))
		}
	}
	if len(remaining) == 0 {
		return nil
	}
	lock := flock.New(filepath.Join(folder, commandLock))
	if free, err := lock.TryLock(); err != nil || !free {
		return err
	}
	var errs []error
	for _, path := range remaining {
		errs = append(errs, os.RemoveAll(path))
	}
	return errors.Join(errors.Join(errs...), lock.Unlock())
}

// clearTemp removes temporary files that a crash may have left. Only the holder of the
// folder's lock may do so.
func (folder *Folder) clearTemp() error {
	errs := []error{os.RemoveAll(folder.tempPath("")), clearCommands(folder.path)}
	for _, pattern := range []string{"*.new", "replica/*.new"} {
		files, err := filepath.Glob(filepath.Join(folder.path, pattern))
		errs = append(errs, err)
		for _, path := range files {
			errs = append(errs, os.Remove(path))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clear the data folder's temporary files: %w", err)
	}
	if err := os.MkdirAll(folder.tempPath(""), 0o700); err != nil {
		return fmt.Errorf("make the data folder's tmp: %w", err)
	}
	return nil
}
